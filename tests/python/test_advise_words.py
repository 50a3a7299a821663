"""What `aqmlab advise` leads with: what can be acted on, and how to go on where rounds leave it undecided."""

import re
from collections.abc import Mapping, Sequence

import pytest

from aqmlab.advice import advising, applications, candidates, question, words
from aqmlab.advice.advising import Advice
from aqmlab.advice.candidates import TODAY
from aqmlab.advice.race import Race, looks

pytestmark = pytest.mark.usefixtures("compiled")

COMMAND = ["aqmlab", "advise", "--down", "50mbit", "--rounds", "6", "--report", "-o", "mine/", "--jobs", "1"]


def advised(scores: Mapping[str, Sequence[float]], mos: Mapping[str, float]) -> Advice:
    """An advice of candidates with these scores, round by round, and calls that hardly vary."""
    asked = question.read("50mbit", "10mbit", platform="openwrt")
    all_of_them = {one.name: one for one in candidates.of("openwrt", "ethernet", 0.08)}
    rounds = len(scores[TODAY])
    race = Race(list(scores), looks(rounds), advising.CLOSE)
    rows: dict[str, list[applications.Row]] = {name: [] for name in scores}
    for at in range(rounds):
        for name, own in scores.items():
            race.add(name, own[at])
            rows[name].append(
                {
                    "calls_mos": mos[name] + 0.01 * at,
                    "pages_in_2s": 0.5 + 0.01 * at,
                    "game_p99_s": 0.1,
                    "down_bps": 4e7,
                    "up_bps": 8e6,
                }
            )
    race.judge()
    return Advice(asked, [all_of_them[name] for name in scores], race, rows, runs=rounds * len(scores), took_s=60.0)


SURE = {
    TODAY: (0.1, 0.3, 0.2, 0.25, 0.15, 0.3),
    "cake": (0.9, 0.8, 0.85, 0.82, 0.9, 0.88),
    "fq_codel": (0.89, 0.82, 0.84, 0.82, 0.91, 0.86),
}


def test_it_leads_with_what_can_be_acted_on() -> None:
    found = advised(SURE, {TODAY: 2.0, "cake": 4.0, "fq_codel": 4.0})
    recommended, gained, out, tie, below, *_ = words.verdict(found)
    assert recommended.startswith("Recommended: cake, shaped to ")
    least = found.race.gain("cake", TODAY)[0]
    assert gained == f"It is better than today by 0.64 on a score from 0 to 1; with 95 %, by {least:.2f} at least."
    assert 0 < least < 0.64
    assert out == f"Out, as worse than another beyond doubt: {TODAY}."
    assert tie.startswith("It cannot be told from fq_codel on that score")
    assert re.fullmatch(r"With 95 % it is at most 0\.0\d\d below the best of the 3 candidates\.", below)
    said = words.as_dict(found)["gain_over_today"]
    assert said["least_95"] == least and said["mean"] == pytest.approx(0.642, abs=0.001)


def test_what_is_no_surer_than_today_names_the_figures_that_are() -> None:
    scores = {TODAY: (0.9, 0.1, 0.8, 0.2, 0.9, 0.1), "cake": (0.5, 0.6, 0.5, 0.6, 0.5, 0.6)}
    found = advised(scores, {TODAY: 2.0, "cake": 4.0})
    # Their differences in MOS are all the same, which says nothing of others: one that is not.
    found.rows["cake"][0] = {**found.rows["cake"][0], "calls_mos": 3.9}
    said = words.verdict(found)
    assert said[1] == "It is better than today by 0.05 in the mean, on a score from 0 to 1, and that is not sure."
    assert said[2] == "Each by its own 95 % interval, it is better than today for a call's MOS."
    assert "It cannot be told from fifo, as today on that score: any of them may be the best." in said


def test_where_rounds_leave_it_undecided_the_command_goes_on() -> None:
    scores = {TODAY: (0.9, 0.1, 0.8, 0.2, 0.9, 0.1), "cake": (0.5, 0.6, 0.5, 0.6, 0.5, 0.6)}
    found = advised(scores, {TODAY: 2.0, "cake": 4.0})
    sentence, command = words.going_on(found, COMMAND)
    # 12 runs took a minute; 9 rounds more of two are 18 runs.
    assert (
        sentence == "6 rounds leave this undecided. More of them take some 3 min here, the first ones again included:"
    )
    assert command == "aqmlab advise --down 50mbit --report -o mine-15 --jobs 1 --rounds 15"
    assert words.going_on(found, ["aqmlab", "--out=x", "--rounds=6"])[1] == "aqmlab --out=x-15 --rounds 15"
    assert words.as_dict(found)["undecided"]


def test_what_is_decided_needs_no_more_rounds() -> None:
    behind = tuple(one - 0.05 - 0.001 * at for at, one in enumerate(SURE["cake"]))
    scores = {TODAY: SURE[TODAY], "cake": SURE["cake"], "fq_codel": behind}
    found = advised(scores, {TODAY: 2.0, "cake": 4.0, "fq_codel": 4.0})
    assert found.race.running == ["cake"] and words.going_on(found, COMMAND) == []
    assert "With 95 % it is the best of the 3 candidates." in words.verdict(found)
