"""What a verdict says of those that the recommended one cannot be told from."""

from pathlib import Path

import pytest

from aqmlab.advice import costs, words
from aqmlab.advice.candidates import TODAY
from aqmlab.report import advice as report
from test_advise_words import COMMAND, OF_SOME, SOME, SURE, advised, with_pages

pytestmark = pytest.mark.usefixtures("compiled")


def said_of(scores: dict[str, tuple[float, ...]]) -> str:
    found = advised(scores, dict.fromkeys(scores, 4.0))
    (said,) = [one for one in words.verdict(found) if one.startswith("Of them it had the best mean, ")]
    return said


def test_a_choice_among_those_that_cannot_be_told_apart_says_by_how_little_it_is_ahead() -> None:
    found = advised(SURE, dict.fromkeys(SURE, 4.0))
    cost = costs.of(found.question, found.candidate("fq_codel"))
    assert cost is not None
    # 0.8583 and 0.8567, which stand in the table as 0.858 and 0.857; flow queues cost less than CAKE.
    assert said_of(SURE) == (
        f"Of them it had the best mean, by 0.001 of the score; fq_codel costs least a packet, {cost.ns:.0f} ns over "
        "drop-tail."
    )
    swapped = {TODAY: SURE[TODAY], "cake": SURE["fq_codel"], "fq_codel": SURE["cake"]}
    assert "; it costs least a packet, " in said_of(swapped)
    closer = {**SURE, "fq_codel": (0.89, 0.82, 0.84, 0.82, 0.91, 0.8695)}
    assert "best mean, by less than 0.001 of the score" in said_of(closer)


def test_a_queue_that_stays_as_it_is_costs_nothing_more() -> None:
    today = (0.5, 0.6, 0.5, 0.6, 0.5, 0.6)
    cake = (0.62, 0.49, 0.61, 0.48, 0.63, 0.5)
    assert said_of({TODAY: today, "cake": cake}).endswith("; fifo, as today costs least a packet, 0 ns over drop-tail.")
    # Of it no cost is shown where it is the first.
    assert said_of({TODAY: cake, "cake": today}) == "Of them it had the best mean, by 0.005 of the score."


def test_a_lone_first_is_not_compared() -> None:
    worse = tuple(one - 0.05 - 0.001 * at for at, one in enumerate(SURE["cake"]))
    found = advised({TODAY: SURE[TODAY], "cake": SURE["cake"], "fq_codel": worse}, dict.fromkeys(SURE, 4.0))
    assert not any("best mean" in one for one in words.verdict(found))


def test_a_queue_that_stays_has_one_column_and_no_differences(tmp_path: Path) -> None:
    for best, other in ((TODAY, "cake"), ("cake", TODAY)):
        found = with_pages(advised({TODAY: OF_SOME[best], "cake": OF_SOME[other]}, {TODAY: 2.0, "cake": 4.0}), SOME)
        is_today = found.race.first == TODAY
        assert is_today == (best == "cake")
        (of_rounds,) = [one for one in words.notes(found) if one.startswith("A row is of the rounds")]
        assert ("under both of its queues" in of_rounds) != is_today
        page = report.write(found, COMMAND, tmp_path / other).read_text(encoding="utf-8")
        assert ("Differences are paired" in page) != is_today and "Today is the line as it is" in page
