"""The page of an advice in a real browser: its widest table is whole where the screen has room for it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import browser
from aqmlab.advice import question
from aqmlab.advice.advising import Advice
from aqmlab.advice.candidates import TODAY
from aqmlab.report import advice as report
from test_advise_words import COMMAND, OF_SOME, SOME, advised, with_pages

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser.started() as found:
        yield found


def of_homes() -> Advice:
    """Everything that can be said of a candidate, with intervals as wide as they come."""
    found = with_pages(advised(OF_SOME, {TODAY: 2.0, "cake": 4.0}), SOME)
    for name, times in ((TODAY, 5.0), ("cake", 1.0)):
        found.rows[name] = [
            {
                **row,
                "calls_mos": 2.0 + 0.3 * (at % 3),
                "game_p99_s": 0.1 * times + 0.09 * (at % 3),
                "film_startup_s": 0.5 * times + 0.7 * (at % 3),
                "film_stalls_per_hour": 30.0 * (at % 3),
                "film_bitrate_bps": 5.3e6 / times + 3e5 * (at % 3),
                "down_bps": 2.1e7 + 5e6 * (at % 3),
                "up_bps": 8.1e6 + 5e5 * (at % 3),
            }
            for at, row in enumerate(found.rows[name])
        ]
    asked = question.read("50mbit", "10mbit", platform="openwrt", what_for="calls,web,video,games,downloads")
    return replace(found, question=asked, too_fast=found.rows[TODAY][:6])


def test_no_column_is_lost_where_there_is_room(chromium: Any, tmp_path: Path) -> None:
    page = report.write(of_homes(), COMMAND, tmp_path / "mine")
    with browser.opened(chromium, page) as (view, _):
        for width in (1280, 1400, 1920):
            view.set_viewport_size({"width": width, "height": 900})
            box = view.locator(".whole")
            assert box.evaluate("one => one.scrollWidth <= one.clientWidth"), width
            edges = box.bounding_box()
            assert edges["x"] >= 0 and edges["x"] + edges["width"] <= width
    assert browser.faults(chromium, page) == []


BEGINS = """one => {
  const inside = document.createRange();
  inside.selectNodeContents(one);
  return inside.getBoundingClientRect().left;
}"""
"""Where the text of a cell begins."""


def test_a_telephone_shows_the_difference_beside_what_it_is_of(chromium: Any, tmp_path: Path) -> None:
    page = report.write(of_homes(), COMMAND, tmp_path / "mine")
    with browser.opened(chromium, page) as (view, _):
        view.set_viewport_size({"width": 390, "height": 900})
        box = view.locator(".scroll").first
        edge = box.bounding_box()["x"] + box.bounding_box()["width"]
        for place, row in enumerate(box.locator("tbody tr").all()):
            name, today, _, difference, *_ = row.locator("th, td").all()
            end = difference.bounding_box()
            # The shadow at the edge is .9rem wide.
            assert end["x"] + end["width"] <= edge - 14, place
            value = today.evaluate(BEGINS)
            assert value >= name.bounding_box()["x"] + name.bounding_box()["width"] + 7, place
        assert box.locator(".spread").first.evaluate("one => getComputedStyle(one).display") == "block"
