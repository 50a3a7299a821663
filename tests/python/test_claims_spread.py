"""Intervals of few runs and bands about curves: what they promise, held against simulated runs whose truth is known."""

import math

import numpy as np
import pytest
from scipy import stats

from aqmlab.claims import FAILS, HOLDS, OPEN, reading
from aqmlab.claims import spread as spreads
from aqmlab.claims.asked import ask
from aqmlab.claims.spread import Kin, among, kin, spread, together
from aqmlab.claims.verdict import Abscissa, Finding
from aqmlab.measures.responses import index
from aqmlab.results.window import CDF_TIMES
from aqmlab.statistics import BATCHES, Interval
from subjects import Runs, losing, points, window

POINTS = points()
TRIALS = 400
CHANCE = 3 * math.sqrt(0.95 * 0.05 / TRIALS)
"""Three standard deviations of a share of 95 % over so many trials: 3.3 points."""
ABSCISSAE = 20


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    """The quantile leaves 5 % to 0.7 points then, a fifth of what the trials know it to."""
    monkeypatch.setattr(spreads, "DRAWS", 1000)


def curves(draw, count, runs, common):
    """Runs of points as curves about 0, [point, run, abscissa]: smooth, nothing at the ends, most in the middle.

    Standard deviations of points differ by a factor of 1.65 either way. A share `common` of the variance is what the
    seeds do to all points, to each by a factor of its own; and the seeds move all of them alike by three times as much.
    """
    at = np.arange(ABSCISSAE)
    smooth = np.linalg.cholesky(np.exp(-(((at[:, None] - at) / 5) ** 2)) + 1e-9 * np.eye(ABSCISSAE))
    own = draw.standard_normal((count, runs, ABSCISSAE)) @ smooth.T * np.exp(draw.normal(0, 0.5, (count, 1, 1)))
    seeds = draw.standard_normal((runs, ABSCISSAE)) @ smooth.T
    follows = draw.standard_normal((count, 1, 1))
    shape = np.sin(np.linspace(0.3, 2.9, ABSCISSAE))
    return shape * (math.sqrt(1 - common) * own + (math.sqrt(common) * follows + 3) * seeds)


def finding(differences, found, low=-math.inf, high=math.inf, of=1):
    """A finding on the mean over runs of some differences."""
    runs, means = len(differences), differences.mean(axis=0)
    widths = zip(means, found.half_widths, found.bands, strict=True)
    curve = tuple(
        Abscissa(f"at {k}", Interval(float(m), float(width), runs, "runs"), float(band))
        for k, (m, width, band) in enumerate(widths)
    )
    return Finding("", curve[0].interval, low, high, "points", freedom=found.freedom, curve=curve, among=of)


@pytest.mark.parametrize("common", [0.0, 0.5])
@pytest.mark.parametrize("runs", [3, 5, 10])
def test_intervals_and_bands_hold_what_they_say(runs, common):
    draw = np.random.default_rng(runs)
    by_itself = whole = wrong = 0
    for _ in range(TRIALS):
        made = curves(draw, 10, runs, common)
        difference = made[0] - made[1]
        found = spread(difference, 2.0, kin(list(made)))
        means = np.abs(difference.mean(axis=0))
        by_itself += means[ABSCISSAE // 3] < found.half_widths[ABSCISSAE // 3]
        whole += bool((means < found.bands).all())
        # Both points are the same in truth, and the bound is just that.
        wrong += finding(difference, found, high=0.0).verdict == FAILS
    assert abs(by_itself / TRIALS - 0.95) < CHANCE
    assert abs(whole / TRIALS - 0.95) < CHANCE
    # Above 0 by chance somewhere: on one side of the band.
    assert wrong / TRIALS < 0.025 + 3 * math.sqrt(0.025 * 0.975 / TRIALS)


@pytest.mark.parametrize("runs", [3, 5])
def test_points_that_all_follow_the_seeds_are_not_taken_for_many(runs):
    draw = np.random.default_rng(runs)
    held, worth = 0, []
    for _ in range(TRIALS):
        made = curves(draw, 10, runs, 0.9)
        difference = made[0] - made[1]
        kin_of = kin(list(made))
        held += bool((np.abs(difference.mean(axis=0)) < spread(difference, 2.0, kin_of).bands).all())
        worth.append(kin_of.independent)
    assert held / TRIALS > 0.95 - CHANCE
    # Of ten points each is worth a fifth, where nine tenths of what they vary is the seeds'.
    assert np.median(worth) < 3


def test_of_several_curves_of_a_claim_one_is_outside_by_chance_one_time_in_twenty_at_most():
    draw, wrong = np.random.default_rng(7), 0
    for _ in range(TRIALS):
        made = curves(draw, 10, 5, 0.3)
        kin_of = kin(list(made))
        pairs = [made[k] - made[0] for k in range(1, 6)]
        wrong += any(
            finding(pair, spread(pair, 2.0, kin_of), low=-0.0, high=math.inf, of=5).verdict == FAILS for pair in pairs
        )
    assert wrong / TRIALS < 0.05 + CHANCE


def test_points_far_noisier_than_most_stand_on_their_own_runs_and_the_others_are_pooled_without_them():
    draw, noisy = np.random.default_rng(11), np.array([30.0] * 3 + [1.0] * 19)[:, None, None]
    held = {"calm": 0, "mixed": 0, "noisy": 0}
    left_out, beside = 0, []
    for _ in range(TRIALS):
        made = draw.standard_normal((22, 3, 1)) * np.exp(draw.uniform(-0.5, 0.5, (22, 1, 1))) * noisy
        kin_of = kin(list(made))
        left_out += kin_of.wild == {0, 1, 2}
        for name, (one, other) in {"calm": (20, 21), "mixed": (0, 21), "noisy": (0, 1)}.items():
            difference = made[one] - made[other]
            found = spread(difference, 2.0, kin_of, bool({one, other} & kin_of.wild))
            held[name] += bool(abs(difference.mean()) < found.half_widths[0])
            if name == "calm":
                without = spread(difference, 2.0, kin(list(made[3:])))
                beside.append(found.half_widths[0] / without.half_widths[0])
    # Of three runs a noisy point looks calm one time in forty, so that 92 % of the tables are told right.
    assert left_out / TRIALS > 0.85
    for name, count in held.items():
        assert count / TRIALS > 0.95 - CHANCE, name
    # As wide as without the noisy points: with them in the mean they are eight times as wide.
    assert np.median(beside) == pytest.approx(1.0, rel=0.01)


def test_points_that_differ_as_points_do_are_all_pooled():
    draw = np.random.default_rng(12)
    tables = [list(curves(draw, 10, 3, 0.3)) for _ in range(50)]
    assert sum(len(kin(table).wild) for table in tables) <= 0.05 * 500, "one of twenty by chance, at most"
    silent = [np.zeros((3, 1))] * 6 + [draw.normal(0, 1, (3, 1)) for _ in range(4)]
    assert not kin(silent).wild, "what does not vary at all is not what is usual"
    wild = [draw.normal(0, size, (3, 1)) for size in (1, 1, 1, 1e6)]
    assert kin(wild) is None, "too few are left"


def test_a_difference_of_three_runs_that_agree_by_luck_is_not_believed_to_the_last_digit():
    draw = np.random.default_rng(3)
    others = [draw.normal(0, 1, (3, 1)) for _ in range(8)]
    lucky = np.array([[1.011], [1.012], [1.013]])
    base = draw.normal(0, 1, (3, 1))
    kin_of = kin([*others, base + lucky, base])
    alone, found = spread(lucky, 2.0, None), spread(lucky, 2.0, kin_of)
    assert alone.half_widths[0] == pytest.approx(stats.t.ppf(0.975, 2) * 0.001 / math.sqrt(3))
    # By hand: two further runs of the residual mean square, four degrees of freedom.
    mean_square = kin_of.mean_square[0]
    variance = (2 * 2 * mean_square + 2 * 0.001**2) / 4
    assert found.freedom == 4
    assert found.half_widths[0] == pytest.approx(stats.t.ppf(0.975, 4) * math.sqrt(variance / 3))
    assert found.half_widths[0] > 100 * alone.half_widths[0]


def test_residuals_are_what_the_means_of_points_and_runs_leave():
    draw = np.random.default_rng(1)
    table = draw.normal(0, 2, (400, 5, 1)) + 10 * draw.normal(0, 1, (1, 5, 1)) + np.arange(400)[:, None, None]
    kin_of = kin(list(table))
    # A variance of 4 with 399 x 4 degrees of freedom: within 3.5 %, one standard deviation.
    assert kin_of.mean_square[0] == pytest.approx(4, rel=0.14)
    # Independent points are nearly as many as there are.
    assert Kin(kin_of.residuals[:20]).independent > 10
    assert kin(list(table[:3])) is None, "too few of them"
    assert kin(list(table[:9, :1])) is None, "of single runs"
    unknown = np.full((5, 1), np.nan)
    assert kin([*table[:3], unknown]) is None, "a point without numbers is none of them"


def test_a_band_is_as_wide_as_the_abscissae_are_independent(monkeypatch):
    monkeypatch.setattr(spreads, "DRAWS", 40_000)
    draw = np.random.default_rng(2)
    one = stats.t.ppf(0.975, 8)
    alike = np.repeat(draw.standard_normal((300, 1)), 6, axis=1)
    assert together(alike, 6, 8.0) == pytest.approx(one, rel=0.03)
    apart = draw.standard_normal((300, 6))
    # Of six independent ones under one estimate of their variance: below Bonferroni's, by little.
    bonferroni = stats.t.ppf(1 - 0.025 / 6, 8)
    assert 0.9 * bonferroni < together(apart, 6, 8.0) < bonferroni
    assert together(None, 6, 8.0) == pytest.approx(bonferroni)
    assert together(alike, 1, 8.0) == pytest.approx(one)
    assert among(one, 8.0, 6) == pytest.approx(bonferroni)


CURVE = {"measure": "ahead", "at_s": [0.1, 0.3, 1.0], "of": {"aqm": "pi", "ecn": "off", "load": "98"}}


def read(*checks):
    table = {"id": "x-1", "says": "so", "reason": "because", "check": list(checks)}
    (text,) = reading.of_tables({"claim": [table]}, "claims.toml", "A paper", POINTS)
    return text


def timed(*shares):
    """A run for each of these rows: what share of 1000 exchanges is done within 0.1, 0.3 and 1 s."""
    made = []
    for row in shares:
        counts = np.diff([0, *(round(1000 * share) for share in row), 1000])
        made.append(window(np.repeat([0.05, 0.2, 0.5, 1.5], counts)))
    return Runs(made)


def test_a_parameter_that_is_a_list_makes_one_number_which_is_the_worst_of_its_curve():
    pi = timed((0.50, 0.70, 0.90), (0.51, 0.71, 0.91), (0.52, 0.72, 0.92))
    tail = timed((0.49, 0.60, 0.88), (0.50, 0.612, 0.89), (0.51, 0.62, 0.90))
    subjects = {"web/pi/off/98": pi, "web/tail/off/98": tail}
    claim = ask(read(CURVE | {"than": {"aqm": "tail"}, "high": "much"}), subjects)
    (found,) = claim.findings
    assert [one.at for one in found.curve] == ["at 100 ms", "at 300 ms", "at 1 s"]
    assert [one.interval.value for one in found.curve] == pytest.approx([0.01, 0.0993333, 0.02], abs=1e-6)
    assert found.interval is found.curve[1].interval and found.verdict == OPEN
    assert found.number.startswith("+9.93 ± 0.29 points, at 300 ms, the worst of 3")
    assert claim.as_dict()["findings"][0]["curve"][0]["at"] == "at 100 ms"
    assert claim.measure == "share of exchanges done at 100 ms to 1 s, difference"
    for bounds, verdict in (({"high": 0.15}, HOLDS), ({"high": "clear"}, FAILS), ({"low": "slight"}, OPEN)):
        assert ask(read(CURVE | {"than": {"aqm": "tail"}, **bounds}), subjects).verdict == verdict, bounds


ABOVE = {
    "measure": "ahead",
    "at_s": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0],
    "of": {"aqm": "pi", "ecn": "off", "load": "98"},
    "than": {"aqm": "tail"},
    "low": "clear",
    "stretch": 0.25,
}


def ahead_by(*points):
    """The claim that PI is better, where it is ahead of drop-tail by so many points at each of these times."""
    # Differences scatter by 0.2 points: a mean of three runs has an interval of 0.5 points by itself, and as one of the
    # eight that Bonferroni's band holds one of 1.5: t(1 - 0.025/8, 2) = 12.6 times 0.2/sqrt(3).
    scatter, places = np.array([-0.001, 0.0, 0.001]), [index(time) for time in ABOVE["at_s"]]

    def runs(shares, scatters):
        counts = np.zeros((3, BATCHES, len(CDF_TIMES)))
        counts[:, :, places] = 60 * (shares + scatters[:, None])[:, None, :]
        return Runs([window([0.1] * 60, cdf_counts=each) for each in counts])

    base = np.full(len(points), 0.5)
    return {"web/pi/off/98": runs(base + np.array(points) / 100, scatter), "web/tail/off/98": runs(base, -scatter)}


@pytest.mark.parametrize(
    ("points", "verdict", "why"),
    [
        ((1, 9, 10, 8, 1, 0, 0, 0), HOLDS, "clearly above on three of eight, and comparable elsewhere"),
        ((0, 0, 0, 0, 1, 0, 15, 15), HOLDS, "on two, whichever"),
        ((0, 25, 4, 1, 1, 1, 1, 1), OPEN, "clearly on one, and perhaps on a second"),
        ((0, 25, 1, 1, 1, 1, 1, 1), FAILS, "on one alone, however far"),
        ((2, 2, 2, 2, 2, 2, 2, 2), FAILS, "a little on all of it"),
        ((15, 15, 15, 1, 0, 0, -8, -8), FAILS, "what is gained before is not paid for by a loss behind"),
        ((15, 15, 15, 1, 0, 0, -2.5, -1), OPEN, "perhaps comparable elsewhere"),
        ((0, 0, 0, 0, 0, 0, 0, 0), FAILS, "equal"),
    ],
)
def test_better_is_clearly_above_on_a_share_of_the_curve_and_comparable_elsewhere(points, verdict, why):
    claim = ask(read(ABOVE), ahead_by(*points))
    assert claim.verdict == verdict, (why, claim.number)
    assert claim.bound == "above 5 points on 25 % of the curve, above −3 points on all of it"
    # Two of eight: beside it stands the second largest, and the least.
    second, least = sorted(points)[-2], min(points)
    found = claim.findings[0]
    assert found.interval.value == pytest.approx(second / 100, abs=2e-4)
    sign = "−" if least < 0 else "+"
    assert f"or more on 2 of 8, {sign}{abs(least):.1f}" in found.number and "at least" in found.number


def test_the_widths_of_better_are_parameters_and_part_of_the_question():
    points = (1, 9, 10, 8, 1, 0, 0, 0)
    for changes, verdict in (
        ({"low": 0.15}, FAILS),
        ({"stretch": 0.75}, FAILS),
        ({"stretch": 0.3}, HOLDS),
        ({"elsewhere": 0.02}, FAILS),
        ({"elsewhere": "-much"}, HOLDS),
    ):
        changed = read(ABOVE | changes)
        assert ask(changed, ahead_by(*points)).verdict == verdict, changes
        assert changed.digest != read(ABOVE).digest


def test_two_curves_of_a_claim_are_told_by_where_they_begin_and_end():
    check = CURVE | {"than": {"aqm": "tail"}, "low": 0.0}
    claim = ask(read(check, check | {"at_s": 0.5}), {})
    assert [one.label for one in claim.findings] == [
        "at 100 ms to 1 s, PI − drop-tail",
        "at 500 ms, PI − drop-tail",
    ]


def test_other_points_of_the_grid_under_the_same_demands_say_how_far_a_difference_is_believed():
    draw = np.random.default_rng(4)
    loads = {name: losing(*(0.02 + draw.normal(0, 0.002, 3))) for name in ("pi/on", "red/on", "red/off")}
    base = 0.02 + draw.normal(0, 0.002, 3)
    few = {"web/pi/off/98": losing(*(base + np.array([0.0100, 0.0101, 0.0102]))), "web/tail/off/98": losing(*base)}
    check = {
        "measure": "loss_ratio",
        "of": {"aqm": "pi", "ecn": "off", "load": "98"},
        "than": {"aqm": "tail"},
        "low": 0.0,
    }
    more = few | {f"web/{name}/98": subject for name, subject in loads.items()}
    (alone,), (known,) = ask(read(check), few).findings, ask(read(check), more).findings
    assert alone.interval.half_width < 0.001 < known.interval.half_width
    # Not those under other demands, nor of another grid.
    other = {name: Runs(one.windows, demand=("other", (1, 2, 3))) for name, one in more.items() if name not in few}
    (apart,) = ask(read(check), few | other).findings
    assert apart.interval == alone.interval
    elsewhere = {name.replace("web/", "else/"): one for name, one in more.items() if name not in few}
    assert ask(read(check), few | elsewhere).findings[0].interval == alone.interval


def test_a_difference_with_a_point_far_noisier_than_most_is_believed_as_far_as_its_own_runs_go():
    draw = np.random.default_rng(5)
    made = {f"web/{name}/98": losing(*(0.02 + draw.normal(0, 0.001, 3))) for name in ("tail/off", "pi/on", "red/off")}
    made["web/pi/off/98"] = losing(0.01, 0.2, 0.4)
    made["web/red/on/98"] = losing(*(0.02 + draw.normal(0, 0.001, 3)))
    check = {
        "measure": "loss_ratio",
        "of": {"aqm": ["pi", "red"], "ecn": "off", "load": "98"},
        "than": {"aqm": "tail"},
        "low": 0.0,
    }
    alone = {name: made[name] for name in ("web/pi/off/98", "web/red/off/98", "web/tail/off/98")}
    (wild, calm), (wild_alone, calm_alone) = ask(read(check), made).findings, ask(read(check), alone).findings
    assert wild.interval.half_width == pytest.approx(wild_alone.interval.half_width) and wild.freedom == 2
    assert calm.freedom == 4 and calm.interval.half_width < 0.01, "as if the noisy point were not there"
    assert calm.interval != calm_alone.interval


def test_the_very_same_runs_are_no_worse_and_no_better():
    def same():
        made = losing(0.01, 0.02, 0.03)
        return Runs(made.windows, [{"seed": k, "lost": 10} for k in range(3)])

    subjects = {"web/pi/off/98": same(), "web/tail/off/98": same()}
    check = {"measure": "loss_ratio", "of": {"aqm": "pi", "ecn": "off", "load": "98"}, "than": {"aqm": "tail"}}
    no_worse = ask(read(check | {"high": "slight"}), subjects)
    assert no_worse.verdict == HOLDS and "the very same runs" in no_worse.number
    assert ask(read(check | {"high": 0.0}), subjects).verdict == OPEN, "an order is more than that"
    for name, seconds in (("web/pi/off/98", 1.5), ("web/tail/off/98", 2.5)):
        for summary in subjects[name].summaries:
            summary["engine"] = {"cpu_s": seconds}
    assert ask(read(check | {"high": "slight"}), subjects).verdict == HOLDS, "how long a run took is no outcome of it"
    # The same number of other runs may be chance.
    subjects["web/tail/off/98"].summaries[0]["lost"] = 11
    assert ask(read(check | {"high": "slight"}), subjects).verdict == OPEN


def probed(delay_s, runs=5):
    """Runs whose probes all took as long, over a path of 100 ms: 50 ms are propagation."""
    summary = {"probes": {"one_way_delay_s": {"p50": delay_s}}}
    scenario = {"path": {"rtt": "100ms"}, "traffic": [{"kind": "probe"}]}
    return Runs([window([0.1] * 60)] * runs, [summary] * runs, scenario=scenario)


@pytest.mark.parametrize(
    ("high", "verdict"),
    [(0.001, HOLDS), (0.00024, HOLDS), (0.00021, OPEN), (0.00019, OPEN), (0.00016, FAILS)],
)
def test_what_falls_into_one_bin_in_every_run_is_known_to_within_the_bin(high, verdict):
    # 502,015 units of 100 ns are in the octave from 2^18 on, which 1,024 bins of 256 units divide.
    check = {"measure": "probe_wait_s", "q": 0.5, "of": {"aqm": "pi", "ecn": "off", "load": "98"}, "high": high}
    claim = ask(read(check), {"web/pi/off/98": probed(0.0502015)})
    assert claim.verdict == verdict
    assert claim.findings[0].interval.half_width == pytest.approx(25.6e-6)


def test_a_difference_of_two_such_numbers_is_as_coarse_as_both():
    places = {"web/pi/off/98": probed(0.0502015), "web/tail/off/98": probed(0.0701)}
    check = {
        "measure": "probe_wait_s",
        "q": 0.5,
        "of": {"aqm": "pi", "ecn": "off", "load": "98"},
        "than": {"aqm": "tail"},
        "high": 0.0,
    }
    (found,) = ask(read(check), places).findings
    assert found.verdict == HOLDS
    assert found.interval.half_width == pytest.approx(25.6e-6 + 51.2e-6)
    (found,) = ask(read(check | {"relative": True, "unit": "%"}), places).findings
    assert found.interval.half_width == pytest.approx((0.0002015 / 0.0201) * (25.6e-6 / 0.0002015 + 51.2e-6 / 0.0201))
