"""How figures of several panels are laid out, and how their curves are named."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from aqmlab import units
from aqmlab.figures import coinciding, legends
from aqmlab.figures.sheet import Sheet
from aqmlab.figures.ticks import plain
from aqmlab.json_files import Json
from aqmlab.statistics import Array
from aqmlab.study.figures.cell import Cell
from aqmlab.study.figures.curves import Curve

FEW_DECADES = 2.2
"""Fewer than this on a logarithmic axis leave one or two decades to read it by."""
ACROSS = 4
"""Panels beside each other; more of them go into further rows."""
ACROSS_NARROW = 2
TITLES = 1.4
"""Characters of titles of the usual size that have room beside each other, for each size of the type of the width."""
BESIDE = 16
"""Curves that a legend beside one panel has room for."""
Panel = tuple[str, list[Curve]]


def panels_of(spec: Json, curves: Sequence[Curve]) -> list[Panel]:
    """Title and curves of each panel: one for each value of the axis `panels`, in the order of the curves."""
    axis = spec.get("panels")
    values = list(dict.fromkeys(curve.panel for curve in curves if curve.panel is not None))
    if axis is None or len(values) < 2:
        return [("", list(curves))]
    found = []
    for value in values:
        shown = [curve for curve in curves if curve.panel in (value, None)]
        word = next(curve.cell.labels.get(axis, value) for curve in shown if curve.panel == value)
        found.append((_titled(word, axis), shown))
    return found


def _titled(word: str, axis: str) -> str:
    """A value as the title of a panel; one that says nothing by itself says of what it is: `flows 64`, `98 % load`."""
    number = word.removesuffix(" %").replace(".", "")
    if not number.isdigit():
        return word
    return f"{word} {axis}" if word.endswith(" %") else f"{axis} {word}"


def across(parts: Sequence[Panel], sheet: Sheet) -> int:
    """Panels in a row."""
    return min(len(parts), ACROSS_NARROW if sheet.is_narrow else ACROSS)


def extent(
    parts: Sequence[Panel], curves: Sequence[Curve], alone: float, beside: float, sheet: Sheet
) -> tuple[float, float]:
    """Size in inches: `alone` is the height of one panel, `beside` that of several, which have the legend below."""
    names = len(_labels(curves))
    if len(parts) == 1 and not sheet.is_narrow:
        return sheet.size(max(alone, 0.6 + 0.235 * names))
    rows = -(-len(parts) // across(parts, sheet))
    height = beside if len(parts) > 1 else min(alone, 4.0)
    return sheet.size(height * rows + 0.22 * -(-names // legends.columns_below(_labels(curves), sheet)) + 0.1)


def panel_axes(figure: Figure, parts: Sequence[Panel], sheet: Sheet) -> list[Axes]:
    """Axes for each panel, with its title."""
    wide = across(parts, sheet)
    grid = figure.subplots(-(-len(parts) // wide), wide, sharex=True, sharey=True, squeeze=False)
    shown = list(grid.flat)[: len(parts)]
    for axes in list(grid.flat)[len(parts) :]:
        axes.set_visible(False)
    set_titles(shown, parts, sheet)
    return shown


def set_titles(panels: Sequence[Axes], parts: Sequence[Panel], sheet: Sheet) -> None:
    """The title of each panel, smaller where they are long."""
    room = sheet.ems / across(parts, sheet)
    is_long = max(len(title) for title, _ in parts) > TITLES * room
    for axes, (title, _) in zip(panels, parts, strict=True):
        axes.set_title(legends.wrapped(title, room), fontsize="small" if is_long else "medium")


def name_axes(panels: Sequence[Axes], xlabel: str, ylabel: str, sheet: Sheet) -> None:
    """Names the axes, once a row and once a column."""
    wide = min(len(panels), ACROSS_NARROW if sheet.is_narrow else ACROSS)
    for place, axes in enumerate(panels):
        if place % wide == 0:
            axes.set_ylabel(ylabel)
        if place + wide >= len(panels):
            axes.set_xlabel(xlabel)
            axes.tick_params(labelbottom=True)


Drawings = Sequence[tuple[Curve, Line2D]]
"""Curves and the lines that were drawn for them."""


def _labels(curves: Sequence[Curve]) -> list[str]:
    return list(dict.fromkeys(curve.label for curve in curves))


def legend(
    figure: Figure,
    grid: Sequence[Axes],
    curves: Sequence[Curve],
    lines: Drawings,
    rank: Callable[[Curve], float],
    sheet: Sheet,
    more: Sequence[tuple[Artist, str]] = (),
) -> None:
    """Beside one panel in the order of the curves, from the top; below several in the order of the study.

    `more` are keys that come after those of the curves.
    """
    first: dict[str, tuple[Line2D, Curve]] = {}
    for curve, line in lines:
        if curve.label not in first:
            first[curve.label] = coinciding.key(line, curve.look, sheet), curve
    keys = [first[label] for label in _labels(curves) if label in first]
    if not keys:
        return
    if len(grid) == 1:
        order = sorted(keys, key=lambda pair: rank(pair[1]), reverse=True)
        few = len(order) + len(more) <= BESIDE
        legends.legend(
            figure,
            grid[0],
            [*((line, curve.label) for line, curve in order), *more],
            sheet,
            labelspacing=0.75 if few else 0.4,
            fontsize="medium" if few else "small",
        )
        return
    legends.below(figure, [*((line, curve.label) for line, curve in keys), *more], sheet)


Lines = Sequence[tuple[Curve, Array, Array]]
"""Curves of a panel, with x and y."""


def widths_of(lines: Lines, is_log: bool = False) -> list[float]:
    """How many times wider than its look each line of a panel is drawn, as `widths` says it."""
    return coinciding.widths([(curve.look, x, y) for curve, x, y in lines], is_log)


def wider_said(panels: Sequence[Lines], is_log: bool = False) -> str:
    """A sentence at the end of a caption, where a panel has lines that are wider than their look."""
    return coinciding.said([width for lines in panels for width in widths_of(lines, is_log)])


def logarithmic(axis: Axis) -> None:
    """Plain numbers at a logarithmic axis, with 2 and 5 between the decades where it spans few of them."""
    low, high = axis.get_view_interval()
    few = 0 < low < high and np.log10(high / low) < FEW_DECADES
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(FuncFormatter(plain))
    axis.set_minor_formatter(NullFormatter())


def runs_said(cells: Sequence[Cell], counts: Sequence[float], what: str) -> str:
    """`n = 80,000 to 120,000 exchanges a curve, 3 runs each`."""
    each = " each" if len(cells) > 1 else ""
    numbers = sorted({len(cell.windows) for cell in cells})
    span = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    runs = f"{span} run{'s' if numbers != [1] else ''}{each}"
    if not counts or not what:
        return runs
    low, high = units.say_count(min(counts)), units.say_count(max(counts))
    return f"n = {low} {what}, {runs}" if low == high else f"n = {low} to {high} {what} a curve, {runs}"
