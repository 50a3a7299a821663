"""What advice is made with: the E-model beside its recommendation, and a race beside what it promises."""

import numpy as np
import pytest

from aqmlab.advice.race import Race, looks
from aqmlab.results.emodel import Call, opinion, rating


def test_a_call_without_delay_and_loss_has_the_published_default() -> None:
    # G.107 (06/2015), clause 7.7: with every default R = 93.2, and MOS = 4.41.
    found = rating(Call(0.0))
    assert round(found, 1) == 93.2
    assert round(opinion(found), 2) == 4.41


@pytest.mark.parametrize(("r", "mos"), [(90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58)])
def test_opinions_are_those_of_the_table(r: float, mos: float) -> None:
    # G.107, table B.1, which is rounded to two digits, not always to the nearest.
    assert opinion(r) == pytest.approx(mos, abs=0.0075)


def test_opinions_end_where_the_recommendation_ends_them() -> None:
    assert opinion(-5.0) == 1.0
    assert opinion(100.0) == 4.5
    # Just above 0 the cubic falls below 1.
    assert opinion(3.0) == 1.0


@pytest.mark.parametrize(
    ("delay_ms", "low", "high"),
    # G.114 (05/2003), figure 1, which is this model with perfect echo control: users are very satisfied (R 90) up to
    # about 175 ms, satisfied (80) up to 275 ms, some dissatisfied (70) up to 385 ms; what 65 dB of echo loudness leaves
    # of an echo costs up to 3 in R at 150 ms, more later.
    [(100, 90, 93), (200, 83, 89), (275, 74, 82), (385, 61, 72)],
)
def test_delay_costs_what_the_figure_of_g114_shows(delay_ms: float, low: float, high: float) -> None:
    assert low < rating(Call(delay_ms / 1000)) < high


def test_losses_cost_what_their_formula_says() -> None:
    # 95 * P / (P / BurstR + Bpl) with G.711 concealed (25.1): P = 5 %, at random, and in runs twice as long.
    clear = rating(Call(0.0))
    assert clear - rating(Call(0.0, 0.05)) == pytest.approx(95 * 5 / 30.1)
    assert clear - rating(Call(0.0, 0.05, 2.0)) == pytest.approx(95 * 5 / 27.6)
    # Without concealment (4.3), half of all that can be lost is lost at 4.3 %.
    assert clear - rating(Call(0.0, 0.043), 4.3) == pytest.approx(47.5)


def test_looks_end_with_the_last_round() -> None:
    assert looks(30) == (8, 12, 18, 30)
    assert looks(6) == (6,)
    # A look shortly before the last one would cost more of the error than it spares runs.
    assert looks(9) == (9,)


def raced(means: list[float], spread: float, seed: int, rounds: int = 30) -> Race:
    """A race of scores with common noise of each round and noise of their own."""
    generator = np.random.default_rng(seed)
    race = Race([str(position) for position in range(len(means))], looks(rounds))
    for at in range(1, rounds + 1):
        common = generator.normal(0, 10 * spread)
        own = generator.normal(0, spread, len(means))
        for name in list(race.running):
            race.add(name, means[int(name)] + common + own[int(name)])
        if at in race.looks and race.judge():
            break
    return race


def test_the_best_leaves_and_the_bound_is_broken_no_oftener_than_promised() -> None:
    means = [0.5, 0.498, 0.495, 0.49, 0.48, 0.4]
    races = [raced(means, 0.01, seed) for seed in range(120)]
    wrong = sum(
        "0" not in race.running or means[0] - means[int(race.first)] > race.shortfall() + 1e-12 for race in races
    )
    # Of 120 races with an error of 5 % at most, 6 and three standard deviations of a binomial: 6 + 3 * 2.4.
    assert wrong <= 13
    # Noise that a round has for all is no matter: with unpaired scores of spread 0.1 nobody could leave in 30 rounds.
    assert sum(len(race.running) < len(means) for race in races) > 115


def test_what_is_the_same_is_a_tie() -> None:
    race = raced([0.5, 0.5, 0.3], 0.01, 1)
    assert sorted(race.running) == ["0", "1"]
    least, most = race.gain("0", "1")
    assert least < 0 < most
    assert race.shortfall() > 0


@pytest.mark.parametrize("rounds", [6, 15])
def test_who_is_best_stays_whatever_the_noise_is(rounds: int) -> None:
    """All are alike in the mean, which is the worst case; some vary much, some resemble each other, as disciplines do.

    The noise of each round is of two points, so that nothing is normal: its signs alone are symmetric.
    """
    names, wrong, races = [str(number) for number in range(12)], 0, 120
    wide = np.where(np.arange(12) % 3 == 0, 0.25, 0.02)
    for seed in range(races):
        generator = np.random.default_rng(seed)
        race = Race(names, looks(rounds))
        kinds = wide * generator.choice((-1.0, 1.0), (rounds, 4))[:, np.arange(12) % 4]
        scores = 0.5 + kinds + wide * generator.choice((-0.7, -0.3, 0.3, 0.7), (rounds, 12))
        for at in range(1, rounds + 1):
            for name in list(race.running):
                race.add(name, float(scores[at - 1, int(name)]))
            if at in race.looks and race.judge():
                break
        wrong += "0" not in race.running
    # Of 120 races with an error of 5 % at most, 6 and three standard deviations of a binomial: 6 + 3 * 2.4.
    assert wrong <= 13


def test_what_is_gained_is_as_much_as_promised_of_whoever_was_chosen() -> None:
    # Ten are alike and 0.1 better than what there is; the first is chosen for its luck.
    names, rounds, wrong, races = ["today", *map(str, range(10))], 6, 0, 120
    for seed in range(races):
        generator = np.random.default_rng(1000 + seed)
        race = Race(names, looks(rounds))
        for today in generator.normal(0.5, 0.1, rounds):
            race.add("today", today)
            for name in names[1:]:
                race.add(name, 0.6 + generator.normal(0, 0.05))
        race.judge()
        wrong += race.first != "today" and race.gain(race.first, "today")[0] > 0.1
    # As above.
    assert wrong <= 13


@pytest.mark.parametrize("rounds", [6, 12])
def test_what_is_surely_less_than_the_first_is_not_left_as_one_that_may_be_the_best(rounds: int) -> None:
    """Others leave at the same look, with fewer of whom an advantage would be told apart from chance more easily."""
    ahead = 0
    for seed in range(300):
        generator = np.random.default_rng(seed)
        means = [0.5, *(0.5 + generator.uniform(-0.2, 0.15, 5))]
        wide = generator.choice((0.02, 0.1, 0.2), 6)
        race = Race([str(number) for number in range(6)], looks(rounds))
        for at in range(1, rounds + 1):
            own = means + wide * generator.normal(0, 1, 6)
            for name in race.names:
                if name in race.running or name == "0":
                    race.add(name, float(own[int(name)]))
            if at in race.looks and race.judge():
                break
        if race.first != "0" and race.gain(race.first, "0")[0] > 0:
            ahead += 1
            assert "0" in race.left, seed
    assert ahead > 30


def test_six_rounds_tell_what_is_far_worse() -> None:
    """Scores of a cable of 250 and 40 Mb/s, where a bound for each pair said that today's queue might be the best."""
    today = (0.62, 0.18, 0.23, 0.59, 0.89, 0.20)
    fair = (0.96, 0.96, 0.95, 0.95, 0.93, 0.96)
    scores = {"today": today, "a": fair, "b": tuple(one + 0.001 * (-1) ** k for k, one in enumerate(fair))}
    scores |= {f"other {k}": tuple(one - 0.01 * (k + at) for at, one in enumerate(fair)) for k in range(9)}
    race = Race(list(scores), looks(6), close=0.01)
    for at in range(6):
        for name, all_of_it in scores.items():
            race.add(name, all_of_it[at])
    race.judge()
    assert race.left["today"] == 6 and {"a", "b"} <= set(race.running)
    least, most = race.gain(race.first, "today")
    mean = race.mean(race.first) - race.mean("today")
    assert 0.05 < least < mean < most < 1


def test_of_fewer_rounds_than_signs_are_rare_nothing_is_said() -> None:
    race = Race(["a", "b"], looks(4))
    for at in range(4):
        race.add("a", 0.9 + 0.01 * at)
        race.add("b", 0.1)
    # 1 / 2^4 is above 5 %.
    assert not race.judge() and race.shortfall() == 1.0 and race.gain("a", "b") == (-1.0, 1.0)


def test_differences_that_are_all_the_same_prove_nothing() -> None:
    # Shares of few pages: both had none in time, eight times. The next run may differ.
    race = Race(["a", "b"], (8, 16), close=0.01)
    for _ in range(8):
        race.add("a", 0.0)
        race.add("b", 0.0)
    assert not race.judge()
    assert race.running == ["a", "b"]
    # An outcome of share p is missed eight times with (1 - p)^8; 5 % for two looks is 2.5 % each.
    assert race.shortfall() == pytest.approx(1 - 0.025 ** (1 / 8), abs=1e-3)


def test_a_choice_is_below_the_best_by_no_more_than_a_whole_score() -> None:
    race = Race(["a", "b"], (2, 4))
    for a, b in ((1.0, 0.0), (0.0, 1.0)):
        race.add("a", a)
        race.add("b", b)
    race.judge()
    # Two rounds have four choices of signs, of which none is as rare as 2.5 %.
    assert race.shortfall() == 1.0


def test_of_one_pair_nothing_is_known() -> None:
    race = Race(["a", "b"], (4,))
    race.add("a", 1.0)
    race.add("b", 0.0)
    assert race.gain("a", "b") == (-1.0, 1.0)
    assert not race.judge()
    assert race.first == "a"


def of_few_pages(seed: int, rounds: int) -> Race:
    """Scores that are nought in nearly all rounds: one candidate is rarely right by all of it, one rarely by a half."""
    generator = np.random.default_rng(seed)
    race = Race(["fifo", "fair", "other"], looks(rounds))
    for _ in range(rounds):
        race.add("fifo", 0.5 * (generator.random() < 0.06))
        race.add("fair", 1.0 * (generator.random() < 0.12))
        race.add("other", 0.5 * (generator.random() < 0.04))
    race.judge()
    return race


@pytest.mark.parametrize("rounds", [6, 9, 20])
def test_rounds_in_which_nothing_differs_make_no_bound_narrow(rounds: int) -> None:
    means = {"fifo": 0.03, "fair": 0.12, "other": 0.02}
    races = [of_few_pages(seed, rounds) for seed in range(300)]
    broken = sum(0.12 - means[race.first] > race.shortfall() + 1e-12 for race in races)
    # 5 % of 300 are 15; three standard deviations of a binomial more are 26.
    assert broken <= 26
    assert sum("fair" not in race.running for race in races) <= 26


def test_who_was_never_ahead_may_be_so_in_a_share_of_runs() -> None:
    race = Race(["fifo", "fair"], (9,))
    for at in range(9):
        race.add("fifo", 0.5 * (at in (2, 8)))
        race.add("fair", 0.5 * (at == 2))
    race.judge()
    assert race.first == "fifo" and race.running == ["fifo", "fair"]
    # Of nine runs none is of a share that is larger than this, with 95 %.
    assert race.shortfall() == pytest.approx(1 - 0.05 ** (1 / 9), abs=1e-3)
    low, high = race.gain("fifo", "fair")
    assert low < 0 and high == 1.0


@pytest.mark.parametrize(("ahead", "rounds", "exact"), [(6, 15, 0.191), (6, 9, 0.345), (7, 40, 0.085)])
def test_a_gain_that_is_the_same_wherever_there_is_one_is_no_surer_than_its_count(
    ahead: int, rounds: int, exact: float
) -> None:
    # Of a share that was seen so often, the exact lower bound of 95 % (Clopper and Pearson).
    race = Race(["first", "today"], looks(rounds))
    for position in range(rounds):
        race.add("first", float(position * ahead // rounds != (position + 1) * ahead // rounds))
        race.add("today", 0.0)
    least, most = race.gain("first", "today")
    assert race.lead("first", "today") == pytest.approx(ahead / rounds)
    assert 0 <= least <= exact and most > ahead / rounds + 0.1
