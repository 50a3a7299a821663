"""A measure against an axis of numbers: population, load, a parameter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from aqmlab.errors import BadInput
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json
from aqmlab.statistics import Interval
from aqmlab.study.figures.curves import Curve
from aqmlab.study.figures.layout import (
    Drawings,
    across,
    extent,
    legend,
    logarithmic,
    name_axes,
    panel_axes,
    panels_of,
    runs_said,
    widths_of,
)
from aqmlab.study.measured import Asked, asked_of, bases_said, has_interval, named

OWN_KEYS = ("id", "title", "kind", "curves", "caption", "panels", "x", "xlabel", "ylabel", "log")
"""Keys of such a figure; all others are its measure's."""
BESIDE = 0.012
"""Share of the axis over which the bars of curves at the same x are spread, so that none hides another."""
NAMED, LONGEST = 14, 12
"""Places along the axis that are called as the study calls them, and characters of such a name."""
CHARACTER, FEWEST_EMS = 0.9, 2.0
"""Sizes of the type that a character of a name takes with its share of the space about it, and the least of a name."""


@dataclass(frozen=True)
class Series:
    """One curve: where along the axis, and what was found there."""

    curve: Curve
    x: tuple[float, ...]
    found: tuple[Interval, ...]

    @property
    def name(self) -> str:
        """What it is called, with its panel."""
        return f"{self.curve.label}, {self.curve.panel}" if self.curve.panel else self.curve.label

    @property
    def last(self) -> float:
        """Its value at the right."""
        values = [interval.value for interval in self.found if np.isfinite(interval.value)]
        return values[-1] if values else -np.inf


def against(name: str, spec: Json, curves: Sequence[Curve]) -> Drawn | None:
    """One curve for all cells that differ in nothing but `x`."""
    axis = str(spec["x"])
    asked = measure_of(spec, f"figure {spec['id']}")
    series = [_series(members, axis, asked, str(spec["id"])) for members in _grouped(curves)]
    cells = [curve.cell for curve in curves]
    found = [(one.name, interval) for one in series for interval in one.found]
    if not any(np.isfinite(interval.value) for _, interval in found):
        return None
    lost = [name for name, interval in found if not np.isfinite(interval.value)]
    caption = (
        f"{asked.title[:1].upper()}{asked.title[1:]}. Bars: {bases_said(found, 'open marks')}; "
        f"{runs_said(cells, [], '')}.{f' No value at some points of: {named(lost)}.' if lost else ''}"
    )

    def draw(sheet: Sheet) -> Figure:
        drawn = [one.curve for one in series]
        parts = panels_of(spec, drawn)
        figure = Figure(figsize=extent(parts, drawn, 4.8, 3.6, sheet), layout="constrained")
        grid = panel_axes(figure, parts, sheet)
        lines: list[tuple[Curve, Line2D]] = []
        for axes, (_, shown) in zip(grid, parts, strict=True):
            lines += _draw_panel(axes, [one for one in series if one.curve in shown], str(spec.get("log", "")), sheet)
            _label_places(axes, axis, curves, "x" in str(spec.get("log", "")), across(parts, sheet) / sheet.ems)
        unit = f" ({asked.unit})" if asked.unit else ""
        name_axes(grid, str(spec.get("xlabel", axis)), str(spec.get("ylabel", f"{asked.title}{unit}")), sheet)
        if "y" not in str(spec.get("log", "")):
            _from_zero(grid[0])
        last = {one.curve.cell.name: one.last for one in series}
        legend(figure, grid, drawn, lines, lambda curve: last[curve.cell.name], sheet)
        return figure

    return Drawn(name, str(spec["title"]), caption, draw)


def measure_of(spec: Mapping[str, Any], where: str) -> Asked:
    """The one measure of such a figure."""
    keys = {key: item for key, item in spec.items() if key not in OWN_KEYS}
    return asked_of({key: item[:1] if isinstance(item, list) else item for key, item in keys.items()}, where)[0]


def _grouped(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Cells in the same panel that are called the same are points of one curve."""
    groups: dict[tuple[str | None, str], list[Curve]] = {}
    for curve in curves:
        groups.setdefault((curve.panel, curve.label), []).append(curve)
    return list(groups.values())


def _series(members: Sequence[Curve], axis: str, asked: Asked, figure: str) -> Series:
    points = []
    for curve in members:
        if axis not in curve.cell.numbers:
            raise BadInput(
                f"figure {figure}: x: {axis!r}: expected an axis of numbers; {curve.cell.name} has none there"
            )
        points.append((curve.cell.numbers[axis], asked.of(curve.cell)))
    points.sort(key=lambda point: point[0])
    return Series(members[0], tuple(x for x, _ in points), tuple(found for _, found in points))


def _draw_panel(axes: Axes, series: Sequence[Series], log: str, sheet: Sheet) -> Drawings:
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    every = sorted({x for one in series for x in one.x})
    span = (every[-1] - every[0]) or 1.0
    lines = [(one.curve, np.array(one.x), np.array([found.value for found in one.found])) for one in series]
    wider = widths_of(lines, "y" in log)
    drawn = []
    for k, one in enumerate(series):
        off = (k / max(len(series) - 1, 1) - 0.5) * BESIDE * len(series) / 2
        x = np.array(one.x)
        x = x * np.exp(off * np.log(every[-1] / every[0])) if "x" in log and every[0] > 0 else x + off * span
        y = lines[k][2]
        around = np.array([found.half_width if has_interval(found) else np.nan for found in one.found], dtype=float)
        line = one.curve.look.line(sheet)
        line["linewidth"] *= wider[k]
        mark: dict[str, Any] = {
            "marker": one.curve.point_mark,
            "markersize": sheet.points(4.5 if one.curve.mark else 3.2),
            "markeredgewidth": sheet.points(1.1),
        }
        drawn.append((one.curve, axes.plot(x, y, **line, **mark)[0]))
        # What looks exact and is not shall not look so: a value without an interval is an open mark.
        bare = np.isnan(around)
        plain: dict[str, Any] = {"linestyle": "none", "markerfacecolor": axes.get_facecolor()}
        plain["markersize"] = sheet.points(5.0)
        axes.plot(x[bare], y[bare], **{**line, **mark, **plain, "zorder": line["zorder"] + 0.1})
        axes.errorbar(
            x,
            y,
            yerr=around,
            fmt="none",
            ecolor=one.curve.look.color,
            elinewidth=sheet.points(1.1),
            capsize=sheet.points(2.2),
            zorder=line["zorder"],
        )
    if "y" in log:
        logarithmic(axes.yaxis)
    return drawn


def _label_places(axes: Axes, axis: str, curves: Sequence[Curve], is_log: bool, em: float) -> None:
    """The values as the study labels them, as many as there is room for; the axis' own numbers if these are long.

    `em` is the size of the type as a share of the panel's width.
    """
    places = {c.cell.numbers[axis]: c.cell.labels.get(axis, "") for c in curves if axis in c.cell.numbers}
    if len(places) > NAMED or any(len(label) > LONGEST for label in places.values()):
        axes.xaxis.set_major_locator(
            MaxNLocator(7 if em < 1 / 40 else 4) if not is_log else axes.xaxis.get_major_locator()
        )
        return
    room = em * max(CHARACTER * max(map(len, places.values())), FEWEST_EMS)
    shown: list[float] = []
    values = sorted(places)
    span = _place(values[-1], is_log) - _place(values[0], is_log)
    for value in reversed(values):  # the largest populations and loads matter most
        if not shown or _place(shown[-1], is_log) - _place(value, is_log) > room * span:
            shown.append(value)
    axes.xaxis.set_major_locator(FixedLocator(sorted(shown)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: places.get(value, "")))
    axes.xaxis.set_minor_locator(FixedLocator(values))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _place(value: float, is_log: bool) -> float:
    return float(np.log(value)) if is_log else value


def _from_zero(axes: Axes) -> None:
    """From zero where that costs less than half of the height: a difference should not look larger than it is."""
    low, high = axes.get_ylim()
    if 0 < low < 0.5 * high:
        axes.set_ylim(0, high)
