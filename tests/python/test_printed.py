"""Pages on paper: no column of a table is lost, whatever its width."""

import io
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pypdf
import pytest

import browser

COLUMNS = 30


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser.started() as found:
        yield found


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A table with groups of columns, and rows that share a name."""
    style, script = (files("aqmlab.report").joinpath(name).read_text("utf-8") for name in ("style.css", "print.js"))
    groups = "".join(f'<th colspan="5">group{k}</th>' for k in range(COLUMNS // 5))
    heads = "".join(f"<th>column{k:02}</th>" for k in range(COLUMNS))
    rows = "".join(
        f"<tr>{'<th rowspan=2>name</th>' if not row else ''}"
        + "".join(f"<td data-measure='m'>{row}x{k:02}</td>" for k in range(COLUMNS))
        + "</tr>"
        for row in range(2)
    )
    table = (
        f"<table data-file='f'><thead><tr><td></td>{groups}</tr><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody>"
    )
    path = tmp_path / "page.html"
    path.write_text(
        f'<!doctype html><html lang="en"><title>t</title><style>{style}</style><div class="scroll">{table}</table>'
        f"</div><script>{script}</script>"
    )
    return path


def test_a_table_wider_than_the_paper_is_printed_in_pieces(chromium: Any, page: Path) -> None:
    with browser.opened(chromium, page) as (view, complaints):
        before = view.content()
        whole = pypdf.PdfReader(io.BytesIO(view.pdf(format="A4")))
        assert view.content() == before and not complaints
    seen: list[tuple[str, float]] = []
    for sheet in whole.pages:
        width = float(sheet.mediabox.width)
        sheet.extract_text(
            visitor_text=lambda text, cm, tm, *_, w=width: seen.append((text.strip(), tm[4] * cm[0] / w))
        )
    words = " ".join(text for text, _ in seen)
    for k in range(COLUMNS):
        assert words.count(f"column{k:02}") == words.count(f"0x{k:02}") == words.count(f"1x{k:02}") == 1
    assert words.count("name") >= 3
    assert all(0 <= place < 1 for text, place in seen if text)


@pytest.mark.parametrize("width", [390, 1400])
def test_the_first_column_stays_in_sight(chromium: Any, page: Path, width: int) -> None:
    with browser.opened(chromium, page) as (view, _):
        view.set_viewport_size({"width": width, "height": 800})
        box = view.locator(".scroll")
        box.evaluate("one => { one.scrollLeft = 700; }")
        edge = box.bounding_box()["x"]
        assert view.locator("tbody th").bounding_box()["x"] == pytest.approx(edge, abs=1)
        assert view.locator("tbody td").first.bounding_box()["x"] < edge


def test_on_a_telephone_sentences_in_a_table_have_room_for_their_words(chromium: Any, tmp_path: Path) -> None:
    style = files("aqmlab.report").joinpath("style.css").read_text("utf-8")
    cells = (
        '<td class="prose">everywhere; <span>synchronisation</span> in time</td><td>bytes of 500</td>'
        + f'<td class="long">{"the inventors recommend " * 9}</td>'
    )
    path = tmp_path / "page.html"
    path.write_text(
        f'<!doctype html><html lang="en"><title>t</title><style>{style}</style><div class="scroll">'
        f'<table class="text"><tbody><tr>{cells}</tr></tbody></table></div>'
    )
    with browser.opened(chromium, path) as (view, _):
        wide = {}
        for width in (390, 1280):
            view.set_viewport_size({"width": width, "height": 900})
            wide[width] = view.evaluate("document.querySelector('.long').getBoundingClientRect().width")
            assert view.evaluate("document.documentElement.scrollWidth") <= width
            # No word is broken: the longest is a line.
            lines = "one => one.getClientRects().length"
            assert view.locator(".prose span").evaluate(lines) == 1
    assert wide[390] >= 240 and wide[1280] > wide[390]
