"""Figures for a paper: how wide a column is, and in which type."""

import math
import re
from typing import Any

from matplotlib.font_manager import FontProperties, findfont

from aqmlab.errors import BadInput
from aqmlab.figures.sheet import Sheet

WIDTHS = {"column": "3.3in", "page": "7in"}
"""One column and two of the usual papers of IEEE and ACM."""
SIZE = "8pt"
INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
TALLEST = 8.0
"""Inches that a page of these papers leaves for a figure and its caption."""
FEWEST_EMS = 22.0
"""Less wide than these, in sizes of the type, names and numbers have no room."""
ROUNDING = 1e-9
WIDEST, LARGEST = 40.0, 40.0
"""Inches, and points: what is meant otherwise."""


def sheet_of(width: str = "column", size: str = SIZE, font: str = "") -> Sheet:
    """A sheet as wide as asked, `column`, `page` or a length such as 3.3in, with type of a size such as 8pt."""
    of_width = f"width: {width!r}: expected column, page or a length, as in 3.3in"
    inches = _inches(WIDTHS.get(width, width) if isinstance(width, str) else width, of_width)
    points = 72 * _inches(size, f"size: {size!r}: expected points, as in {SIZE}")
    if not isinstance(font, str):
        raise BadInput(f"font: {font!r}: expected a family that is installed")
    if inches > WIDEST:
        raise BadInput(f"width: {width!r}: expected at most {WIDEST:g}in")
    if points > LARGEST:
        raise BadInput(f"size: {size!r}: expected at most {LARGEST:g}pt")
    least = FEWEST_EMS * points / 72
    if inches < least - ROUNDING:
        raise BadInput(f"width: {width!r}: expected at least {math.ceil(100 * least) / 100:g}in for type of {size}")
    if font:
        try:
            findfont(FontProperties(family=font), fallback_to_default=False)
        except ValueError:
            raise BadInput(f"font: {font!r}: expected a family that is installed") from None
    return Sheet(inches, points, font, TALLEST)


def _inches(text: Any, complaint: str) -> float:
    is_text = isinstance(text, str)
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*(in|cm|mm|pt)", text.strip()) if is_text else None
    if found is None or float(found[1]) <= 0:
        raise BadInput(complaint)
    return float(found[1]) * INCHES[found[2]]
