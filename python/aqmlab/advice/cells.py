"""Numbers of an advice as they stand in tables: with their intervals, and with digits that fit those beside them."""

import math
from collections.abc import Iterable

from aqmlab.advice.applications import Figure
from aqmlab.results import readable
from aqmlab.results.readable import TOO_FEW
from aqmlab.statistics import Interval

SCALES = {
    "share": (100.0, "%", 0),
    "mos": (1.0, "", 2),
    "s": (1e3, "ms", 0),
    "bps": (1e-6, "Mb/s", 1),
    "per_hour": (1.0, "", 0),
}


def is_wide(figure: Figure, found: Interval) -> bool:
    """Whether the interval of a value, or of a difference, is longer than all that the figure can be."""
    return readable.is_too_wide(found.half_width or 0.0, figure.possible)


def cell(figure: Figure, found: Interval | None, signed: bool = False, digits: int | None = None) -> str:
    """A value with its interval, in the application's unit.

    `digits` after the point are those of the cells beside it; without, it has as many as it needs itself.
    """
    if found is None:
        return "–"
    if digits is None:
        digits = _digits(figure, found)
    elif 0 < _width(figure, found) < 0.5 * 10**-digits:
        # No width is said to be nothing, whatever the others have.
        digits = _digits(figure, found)
    value = _number(figure, found.value, digits, "+" if signed else "")
    if found.half_width is None:
        return value
    return f"{value} {TOO_FEW if is_wide(figure, found) else f'± {_number(figure, found.half_width, digits)}'}"


FIGURES_SHOWN = 4
"""Of the largest number of some that stand side by side, so that a tiny one among them does not lengthen all."""


def together(figure: Figure, found: Iterable[Interval | None]) -> int:
    """Digits after the point of cells that stand side by side: those of the one that needs most, within reason."""
    there = [one for one in found if one is not None]
    scale, _, usual = SCALES[figure.unit]
    largest = max((abs(one.value) * scale for one in there), default=0.0)
    before = 0 if largest < 1 else math.floor(math.log10(largest)) + 1
    most = max((_digits(figure, one) for one in there), default=usual)
    return max(usual, min(most, FIGURES_SHOWN - before))


def bare(found: str) -> str:
    """A cell without what it says of its interval."""
    return found.partition(" ±")[0].removesuffix(f" {TOO_FEW}")


def _width(figure: Figure, found: Interval) -> float:
    """Half of its interval, in the figure's unit."""
    return (found.half_width or 0.0) * SCALES[figure.unit][0]


def _digits(figure: Figure, found: Interval) -> int:
    """Digits after the point that a value needs by itself: two that count of a small rate, one of a width."""
    scale, _, digits = SCALES[figure.unit]
    width = _width(figure, found)
    size = max(abs(found.value) * scale, 0.0 if is_wide(figure, found) else width)
    if 0 < width < 0.5 * 10**-digits:
        digits = min(math.ceil(-math.log10(width)), 4)
    if figure.unit == "bps" and 0 < size < 1:
        digits = max(digits, min(1 - math.floor(math.log10(size)), 4))
    return digits


def _number(figure: Figure, value: float, digits: int, sign: str = "") -> str:
    text = f"{value * SCALES[figure.unit][0]:{sign}.{digits}f}"
    # What rounds to nothing is neither more nor less.
    return text.replace("-", "−") if text.strip("+-0.") else text.lstrip("+-")


def head(figure: Figure) -> str:
    """The title of a narrow column, with its unit below."""
    return f"{figure.short}\n{SCALES[figure.unit][1]}"


def title(figure: Figure) -> str:
    """What a figure is called, with its unit."""
    unit = SCALES[figure.unit][1]
    return f"{figure.title}, {unit}" if unit else figure.title
