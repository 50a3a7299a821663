"""What an advice says that it takes for granted, and of a shaper that is set wrongly."""

from dataclasses import replace
from pathlib import Path

import pytest

from aqmlab.advice import assumptions, question, situation, words
from aqmlab.advice.candidates import TODAY
from aqmlab.report import advice as report
from test_advise_words import COMMAND, OF_SOME, SURE, advised

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.parametrize(
    ("down", "up", "rtt", "beyond"),
    [
        ("1.9mbit", "1mbit", None, "its rate down"),
        ("2mbit", "1mbit", None, ""),
        ("50mbit", "5mbit", "5ms..25ms", ""),
        # As number 0 of the table, whose rates are rounded.
        ("37mbit", "3.7mbit", "40ms..200ms", ""),
        ("250mbit", "1mbit", None, "its rate down and its rate up"),
        ("2mbit", "0.9mbit", None, "its rate up"),
        ("50mbit", "4.9mbit", None, "its rate up"),
        ("50mbit", "10mbit", "4ms..20ms", "its round trips"),
        ("50mbit", "10mbit", "40ms..201ms", "its round trips"),
    ],
)
def test_a_link_beyond_those_that_were_judged_is_told_so(down: str, up: str, rtt: str | None, beyond: str) -> None:
    found = advised(SURE, {TODAY: 2.0, "cake": 4.0, "fq_codel": 4.0})
    found = replace(found, question=question.read(down, up, rtt))
    said = assumptions.granted(found)
    limits = (
        "of 2 Mb/s to 50 Mb/s down, with a tenth of that and 1 Mb/s up at least, and round trips of 5 ms to 200 ms."
    )
    assert (f"tried on links {limits} This one is beyond by {beyond}, where" in said) == bool(beyond)
    assert ("was tried" in said) == bool(beyond)
    assert words.as_dict(found)["not_known"][0] == said


@pytest.mark.parametrize(("rtt", "number"), [("20ms..200ms", None), ("20ms..500ms", 40), ("2s", 10)])
def test_round_trips_so_long_that_a_run_has_few_are_counted(rtt: str, number: int | None) -> None:
    found = advised(SURE, {TODAY: 2.0, "cake": 4.0, "fq_codel": 4.0})
    said = assumptions.granted(replace(found, question=question.read("20mbit", "4mbit", rtt)))
    assert ("that it measures: that is few for" in said) == (number is not None)
    assert number is None or f" a run has {number}, in the 20 s that" in said


def test_calls_are_said_to_be_of_audio() -> None:
    found = advised(SURE, {TODAY: 2.0, "cake": 4.0, "fq_codel": 4.0})
    assert "Video calls are not in it: a call is one of audio, G.711." in assumptions.granted(found)


def test_the_rates_that_are_too_fast_are_said_beside_those_that_are_advised(tmp_path: Path) -> None:
    """On lte the one is 2.3 times the other: it is above the line's rate, and the advised one below its lowest."""
    found = advised(OF_SOME, {TODAY: 2.0, "cake": 4.0})
    asked = question.read("30mbit", "10mbit", access="lte", platform="openwrt")
    found = replace(found, question=asked, too_fast=found.rows[TODAY][:6])
    assert words.verdict(found)[0] == "Recommended: cake, shaped to 14.4 Mb/s down and 4.8 Mb/s up."
    assert assumptions.wrong(found) == "set to 33 Mb/s down and 11 Mb/s up, 10 % above what was said of the line"
    assert assumptions.wrong_head(found) == "change if shaped\nto 33 Mb/s down,\n11 Mb/s up"
    said = (
        "What changes if the shaper is set to 33 Mb/s down and 11 Mb/s up, 10 % above what was said of the line, is in"
    )
    assert said in assumptions.granted(found)
    # It is what runs have.
    drawn = situation.draw(asked, 0)
    made = situation.scenario(asked, drawn, found.first, 1 + found.rate_error).scenario["links"]["router"]
    assert (made["rate"], made["reverse_rate"]) == ("33mbit", "11mbit")
    assert words.as_dict(found)["too_fast_bps"] == [33_000_000, 11_000_000]
    page = report.write(found, COMMAND, tmp_path / "mine").read_text(encoding="utf-8")
    assert "<th>change if shaped<br>to 33\xa0Mb/s down,<br>11\xa0Mb/s up</th>" in page
    assert f"The last column is what changes if the shaper is {assumptions.wrong(found)}," in page.replace("\xa0", " ")
    assert assumptions.wrong_head(replace(found, too_fast=[])) == assumptions.wrong(replace(found, too_fast=[])) == ""
