"""Figures as files and as parts of a page."""

import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.figure import Figure

from aqmlab import arguments, files
from aqmlab.errors import BadInput
from aqmlab.figures import glyphs, plots
from aqmlab.figures.looks import GRID, INK, MUTED, ON_PAGE, PAPER
from aqmlab.figures.paper import SIZE, sheet_of
from aqmlab.figures.sheet import PAGE, PHONE, Sheet
from aqmlab.results import store

COLOURS = {
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
    **dict.fromkeys(("axes.labelcolor", "axes.titlecolor", "text.color", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), PAPER),
    "grid.color": GRID,
}

FORMATS = ("pdf", "svg", "png")
POINTS_PER_INCH = 72.0
PNG_DPI, PAPER_DPI = 160.0, 600.0
"""Of a PNG beside a page, and for a paper."""
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "aqmlab"},
    "png": {"Software": "aqmlab"},
    "pdf": {"CreationDate": None, "Creator": "aqmlab", "Producer": "aqmlab"},
}
"""Without dates: the same results give the same bytes."""


@dataclass(frozen=True)
class Drawn:
    """A figure: what it is called, what it shows, and how it is drawn."""

    name: str
    title: str
    caption: str
    draw: Callable[[Sheet], Figure]

    def as_format(self, format: str, sheet: Sheet = PAGE) -> bytes:
        """The content of its file."""
        with mpl.rc_context(sheet.style(COLOURS)):
            return _saved(self.draw(sheet), format, PAPER_DPI)

    def save(self, path: str | Path, *, width: str = "column", size: str = SIZE, font: str = "") -> Path:
        """Writes it for a paper; the file's name says the format."""
        place = arguments.path(path, "path", f"the path of a file whose name ends in .{', .'.join(FORMATS)}")
        if place.suffix[1:] not in FORMATS:
            raise BadInput(f"{place}: expected a name that ends in .{', .'.join(FORMATS)}")
        sheet = sheet_of(width, size, font)
        files.check_folder_of(place)
        with glyphs.missing_said((), self.name):
            store.write_bytes(place, self.as_format(place.suffix[1:], sheet))
        return place

    @property
    def svg(self) -> str:
        """The figure as SVG, as wide as a page."""
        return self.as_format("svg").decode()


@dataclass(frozen=True)
class Pictures:
    """A figure in all the forms in which a report has it."""

    name: str
    title: str
    caption: str
    svg: str
    narrow: str
    """The SVG for a telephone."""
    raster: Callable[[], bytes]
    described: tuple[str, str] = ("[]", "[]")
    """What both have so that they answer to the pointer, as `plots.described` says it."""

    @property
    def png(self) -> bytes:
        """The figure as PNG, as wide as the SVG. It is drawn when it is asked for, since a page can do without."""
        return self.raster()

    def for_page(self) -> str:
        """Both SVGs, of which the style sheet shows one."""
        label = f"{self.title}; described below"
        wide = _inline(self.svg, self.name, label, "figure wide", self.described[0])
        return wide + _inline(self.narrow, f"{self.name}-narrow", label, "figure narrow", self.described[1])


def pictures(drawn: Drawn) -> Pictures:
    """Draws a figure for a report."""
    with mpl.rc_context(PAGE.style(COLOURS)):
        figure = drawn.draw(PAGE)
        svg, described = _answering(figure)
    with mpl.rc_context(PHONE.style(COLOURS)):
        narrow, described_narrow = _answering(drawn.draw(PHONE))
    both = described, described_narrow
    return Pictures(drawn.name, drawn.title, drawn.caption, svg, narrow, partial(_rastered, figure), both)


def answering(drawn: Drawn, sheet: Sheet) -> bytes:
    """An SVG whose curves have ids and its plots, for `told`."""
    with mpl.rc_context(sheet.style(COLOURS)):
        return json.dumps(_answering(drawn.draw(sheet))).encode()


def told(content: bytes) -> tuple[str, str]:
    """The SVG and the plots of `answering`."""
    svg, described = json.loads(content)
    return svg, described


def _answering(figure: Figure) -> tuple[str, str]:
    """An SVG whose curves have ids, and its plots."""
    _lay_out(figure, "svg")
    described = plots.described(figure)
    return _saved(figure, "svg").decode(), described


def as_on_page(drawn: Drawn) -> bytes:
    """A PNG that is laid out as the SVG of a page."""
    with mpl.rc_context(PAGE.style(COLOURS)):
        return _rastered(drawn.draw(PAGE))


def _rastered(figure: Figure) -> bytes:
    with mpl.rc_context(PAGE.style(COLOURS)):
        _lay_out(figure, "svg")
        return _saved(figure, "png", PNG_DPI)


def _saved(figure: Figure, format: str, dpi: float = PNG_DPI) -> bytes:
    _lay_out(figure, format, dpi)
    content = io.BytesIO()
    figure.savefig(content, format=format, dpi=dpi, metadata=METADATA[format])
    return content.getvalue()


def _lay_out(figure: Figure, format: str, dpi: float = PNG_DPI) -> None:
    """Once, for its first file: it takes as long as drawing it."""
    if (layout := figure.get_layout_engine()) is not None:
        get_registered_canvas_class(format)(figure)  # with which it is measured
        figure.dpi = dpi if format == "png" else POINTS_PER_INCH
        layout.execute(figure)
        figure.set_layout_engine(None)  # `savefig` would lay it out by drawing all of it into nothing


def _inline(svg: str, prefix: str, label: str, kind: str, described: str = "[]") -> str:
    """An SVG to be set into a page: colours by style sheet, ids of its own, no fixed size."""
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    head, body = text.split(">", 1)
    head = re.sub(r'\s(width|height|version)="[^"]*"', "", head)
    head += f' role="img" aria-label="{escape(label)}" class="{kind}"'
    if described != "[]":
        named = described.replace(f'"{plots.CURVE}-', f'"{prefix}-{plots.CURVE}-')
        head += f' data-plots="{escape(named)}"'
    body = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', body)
    body = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)
    body = re.sub(r"font: ((?:\d+ )?[\d.]+px) [^;\"]+", r"font: \1 var(--figure-font)", body)
    body = re.sub(r"<[^>]+>", _shortened, body)
    for colour, on_page in ON_PAGE.items():
        body = body.replace(colour, on_page)
    return head + ">" + body


def _shortened(tag: re.Match[str]) -> str:
    """Coordinates to a tenth of a point: finer than a screen, and half of the size of a page."""
    text = re.sub(r"\d+\.\d\d+", lambda number: f"{float(number[0]):.{1 if float(number[0]) > 5 else 2}f}", tag[0])
    text = re.sub(r"\s+", " ", text)
    return text if " C " in text else text.replace(" L ", " ")  # pairs after a move are lines
