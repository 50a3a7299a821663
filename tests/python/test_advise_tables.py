"""Tables of an advice: which rounds a row is of, and how its cells are written."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from aqmlab.advice import applications, cells, gains, question, words
from aqmlab.advice.candidates import TODAY
from aqmlab.report import advice as report
from aqmlab.statistics import Interval
from test_advise_words import COMMAND, OF_SOME, SOME, advised, with_pages

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.parametrize(
    ("key", "value", "width", "signed", "said"),
    [
        ("calls_mos", 1.74, 9.41, False, "1.74 (too few runs)"),
        # From end to end it is longer than from 1 to 4.5.
        ("calls_mos", 1.74, 1.8, False, "1.74 (too few runs)"),
        ("calls_mos", 1.74, 1.7, False, "1.74 ± 1.70"),
        ("calls_mos", -0.5, 1.8, True, "−0.50 (too few runs)"),
        ("pages_in_2s", -0.83, 0.72, True, "−83 (too few runs)"),
        ("pages_in_2s", 0.53, 0.63, False, "53 (too few runs)"),
        ("pages_in_2s", 0.5, 0.5, False, "50 ± 50"),
        ("game_p99_s", 0.2, 1e3, False, "200 (too few runs)"),
        # A goodput is that of the link at most.
        ("down_bps", 4e7, 3e7, False, "40.0 (too few runs)"),
        ("down_bps", 4e7, 2e7, False, "40.0 ± 20.0"),
        ("up_bps", 4e6, 6e6, False, "4.0 (too few runs)"),
    ],
)
def test_an_interval_wider_than_its_scale_is_too_few_runs(key, value, width, signed, said) -> None:
    asked = question.read("50mbit", "10mbit")
    figure = next(one for one in applications.figures(asked) if one.key == key)
    said_of_it = cells.cell(figure, Interval(value, width, 2, "runs"), signed)
    assert said_of_it == said
    assert cells.bare(said_of_it) == said.split()[0]


def test_screen_and_page_say_so_of_two_runs_far_apart(tmp_path: Path) -> None:
    found = advised({TODAY: (0.1, 0.3), "cake": (0.9, 0.8)}, {TODAY: 2.0, "cake": 4.0})
    for name, opinions in ((TODAY, (1.0, 2.5)), ("cake", (1.0, 4.5))):
        for row, mos in zip(found.rows[name], opinions, strict=True):
            row["calls_mos"] = mos
    opinion = gains.rows(found)[0]
    assert [opinion[key] for key in ("today", "first", "difference")] == [
        "1.75 (too few runs)",
        "2.75 (too few runs)",
        "+1.00 (too few runs)",
    ]
    page = report.write(found, COMMAND, tmp_path / "mine").read_text(encoding="utf-8")
    shown = [cell.text for cell in BeautifulSoup(page, "html.parser").find_all("td")]
    assert "1.75 (too few runs)" in shown and "+1.00 (too few runs)" in shown


def test_a_row_is_of_the_rounds_that_both_have(tmp_path: Path) -> None:
    found = with_pages(advised(OF_SOME, {TODAY: 2.0, "cake": 4.0}), SOME)
    (pages,) = [row for row in gains.rows(found) if row["key"] == "pages_in_2s"]
    # 0.2 / 6 and 5.1 / 6. CAKE's own seven have 5.2 / 7, today's seven 0.2 / 7.
    assert [cells.bare(pages[key]) for key in ("today", "first", "difference")] == ["3", "85", "+82"]
    assert pages["of"] == "in 6 of 8 rounds" and pages["judged"] == "better"
    assert [row["of"] for row in gains.rows(found) if row["key"] != "pages_in_2s"] == [""] * 4
    worth = words.as_dict(found)["worth"]["pages_in_2s"]
    assert worth["rounds"] == worth["today"]["n"] == worth["first"]["n"] == worth["difference"]["n"] == 6
    assert worth["first"]["value"] - worth["today"]["value"] == pytest.approx(worth["difference"]["value"])
    # The table of all candidates says what it has of each.
    first, today = words.field(found)
    assert cells.bare(first["cells"][1]) == "74" and first["of"] == ["", "7 runs", "", "", ""] == today["of"]
    (left_out,) = [one for one in words.notes(found) if "somebody asked for it under both" in one]
    page = report.write(found, COMMAND, tmp_path / "mine").read_text(encoding="utf-8")
    soup = BeautifulSoup(page, "html.parser")
    assert [small.text for small in soup.find_all("small")] == ["in 6 of 8 rounds", "7 runs", "7 runs"]
    assert left_out in soup.text


def test_figures_that_all_rounds_have_say_nothing_of_rounds() -> None:
    found = advised(OF_SOME, {TODAY: 2.0, "cake": 4.0})
    assert words.notes(found) == [] and {row["of"] for row in gains.rows(found)} == {""}
    assert all(row["of"] == [""] * 5 for row in words.field(found))


def test_a_figure_without_a_number_has_no_difference_and_leaves_the_other() -> None:
    shares = (0.5, float("nan"), *(0.5,) * 6)
    found = with_pages(advised(OF_SOME, {TODAY: 2.0, "cake": 4.0}), {TODAY: shares})
    (pages,) = [row for row in gains.rows(found) if row["key"] == "pages_in_2s"]
    assert pages["today"] == pages["difference"] == "–" != pages["first"] and pages["of"] == ""


def test_few_rounds_are_for_better_or_worse_of_nothing() -> None:
    """Five that are all of one sign are so by chance once in 16 times: too often for 95 %."""
    few = {name: (*shares[:6], None, None) for name, shares in SOME.items()}
    found = with_pages(advised(OF_SOME, {TODAY: 2.0, "cake": 4.0}), few)
    (pages,) = [row for row in gains.rows(found) if row["key"] == "pages_in_2s"]
    difference = found.difference("cake", applications.FIGURES[1])
    assert difference is not None and difference.n == 5 and difference.low > 0
    assert pages["judged"] == "" and pages["of"] == "in 5 of 8 rounds"
    assert "Of fewer than 6 rounds nothing is marked ▲ or ▼." in words.notes(found)


def test_what_too_fast_a_shaper_changes_says_of_which_rounds_it_is(tmp_path: Path) -> None:
    found = with_pages(advised(OF_SOME, {TODAY: 2.0, "cake": 4.0}), SOME)
    shares = (None, 0.1, 0.0, 0.0, None, 0.1)
    found.too_fast = [{**row, "pages_in_2s": share} for row, share in zip(found.rows[TODAY], shares, strict=False)]
    rows = {row["key"]: row for row in gains.rows(found)}
    assert rows["pages_in_2s"]["harm_of"] == "in 4 of 6 rounds" and rows["pages_in_2s"]["harm_judged"] == ""
    assert rows["calls_mos"]["harm_of"] == ""
    assert "The last column is of the first 6 rounds, beside cake as advised." in words.notes(found)
    page = report.write(found, COMMAND, tmp_path / "mine").read_text(encoding="utf-8")
    assert "<small>in 4 of 6 rounds</small>" in page


def test_cells_beside_each_other_have_the_same_digits() -> None:
    """A small difference of two small rates: `0.4 ± 0.2` of both says nothing of it."""
    found = advised(OF_SOME, {TODAY: 2.0, "cake": 4.0})
    for name, down_bps, up_bps in ((TODAY, 4.3e5, 1.1e5), ("cake", 4.8e5, 7.7e4)):
        found.rows[name] = [
            {**row, "down_bps": down_bps + 1e5 * (at % 3), "up_bps": up_bps + 1e3 * (at % 2)}
            for at, row in enumerate(found.rows[name])
        ]
    found.rows["cake"][0] = {**found.rows["cake"][0], "down_bps": 6e5}
    for row in gains.rows(found)[3:]:
        shown = " ".join(row[key] for key in ("today", "first", "difference"))
        assert len({len(number.partition(".")[2]) for number in re.findall(r"\d+\.\d+", shown)}) == 1, shown
        assert not re.search(r"± 0\.0*( |$)", shown), shown
    for column in (3, 4):
        values = [cells.bare(row["cells"][column]) for row in words.field(found)]
        assert len({len(one.partition(".")[2]) for one in values}) == 1, values
    # One that is next to nothing does not lengthen those that are not, and no width is nothing.
    down = applications.FIGURES[3]
    beside = [Interval(value, None, 6, "none") for value in (31.5e6, 4300)]
    assert [cells.cell(down, one, digits=cells.together(down, beside)) for one in beside] == ["31.50", "0.00"]
    assert cells.cell(down, Interval(31.5e6, 2000, 6, "runs"), digits=2) == "31.500 ± 0.002"


def test_the_first_of_many_has_to_be_further_ahead_to_be_called_better() -> None:
    (pages,) = [one for one in applications.FIGURES if one.key == "pages_in_2s"]
    ahead = Interval(0.2, 0.15, 9, "runs")
    assert gains.judged(pages, ahead) == "better" and gains.judged(pages, ahead, among=12) == ""
    assert gains.judged(pages, Interval(0.4, 0.15, 9, "runs"), among=12) == "better"
