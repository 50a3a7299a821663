"""How long packets wait: the percentiles of queueing delay that a run keeps, a row for each discipline."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from aqmlab import links
from aqmlab.comparison import Column, ways_of_data
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.legends import MARKED, below, wrapped
from aqmlab.figures.looks import MUTED, Look, void_note
from aqmlab.figures.sheet import Sheet
from aqmlab.figures.ticks import plain
from aqmlab.results import times, ways
from aqmlab.results.run import of_link
from aqmlab.statistics import Interval

MEDIAN, MEAN, P95, P99, LONGEST = "p50", "mean", "p95", "p99", "longest"
MARKS = {MEDIAN: "|", MEAN: "D", P95: "o", P99: "s", LONGEST: "x"}
"""What is drawn of each row, and with which mark."""
BESIDE = {MEAN: 0.33, P99: -0.33}
"""The headline numbers have their intervals drawn, below and above the row, for they may overlap."""
WORDS = {MEDIAN: "median", MEAN: "mean", P95: "95 %", P99: "99 %", LONGEST: "longest"}
SHORTEST_MS = 0.01
"""What is less is drawn at the edge: nobody cares for less, and an axis in powers of ten has no nothing."""
NAMES = 0.24
"""Share of a figure's width that the names of rows may take."""
ROW, LINE = 0.36, 0.17
"""Inches: the height of a row, and of a line of its name."""
LEAST = 5.0
"""How many times the lower end of an axis the upper one is at least."""
DECADES = 2.2
"""Powers of ten on an axis up to which there are numbers between them, too."""


@dataclass(frozen=True)
class Row:
    """What packets waited at a link under a discipline, milliseconds, by direction and mark."""

    label: str
    color: str
    waits: dict[str, dict[str, Interval]]


def delay_marks(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn | None:
    """The queueing delay of packets in each direction in which data flows; None where no run has any."""
    shown = [column for column in columns if not column.uncongested]
    several = links.are_several_in(column.scenario for column in shown)
    rows = [_row(column, link, looks, several, len(shown)) for column in shown for link in links.of(column.scenario)]
    directions = ways_of_data(shown, on_every_link=True)
    rows = [row for row in rows if any(row.waits[way] for way in directions)]
    if not rows:
        return None
    runs = {len(column.result.runs) for column in shown}
    kept = [one for row in rows for way in directions for one in row.waits[way].values()]
    caption = (
        f"What packets waited in the queue, {' and '.join(ways.WORDS[way] for way in directions)}: "
        "the delay that half, 95 % and 99 % of them did not exceed, their mean, and the longest delay of one packet. "
        "The bar reaches from the median to 99 %. Less is better; the axis is logarithmic. "
        f"{'/'.join(map(str, sorted(runs)))} run{'s' * (runs != {1})}"
        f"{' each' * (len(shown) > 1)}{', of which the mean is shown' * (runs != {1})}{_widths_said(kept)}."
    )
    if any(one.value < SHORTEST_MS for one in kept):
        caption += f" What is less than {SHORTEST_MS:g} ms stands at the left edge."
    caption += void_note(shown)
    return Drawn("delay", "Queueing delay", caption, partial(_drawn, rows, directions))


def _widths_said(kept: Sequence[Interval]) -> str:
    bases = {one.basis for one in kept if _width(one)}
    if "runs" in bases:
        return "; thin lines: 95 % t-intervals across runs, of the mean below and of 99 % above"
    return "; thin lines: 95 % intervals of the mean, from 20 parts of the one run" if bases else ""


def _row(column: Column, link: str, looks: dict[str, Look], several: bool, among: int) -> Row:
    label = column.label
    if several:
        label = link if among == 1 else f"{label}: {link}"
    before = f"{links.MANY}.{link}." if links.are_several(column.scenario) else ""
    waits = {way: _waits(column, link, f"{before}{way}", k) for k, way in enumerate(links.WAYS)}
    return Row(label, looks[column.name].color, waits)


def _waits(column: Column, link: str, way: str, direction: int) -> dict[str, Interval]:
    """What each mark stands at; without those that a run has not."""
    there = {name for window in column.windows for name in window.figures}
    names = {mark: f"{way}.queue_delay_{mark}_s" for mark in (MEDIAN, MEAN, P95, P99)}
    found = {mark: column.estimate(name) for mark, name in names.items() if name in there}
    longest = _longest_s(column, link, direction)
    if longest is not None:
        found[LONGEST] = Interval(longest, None, 1, "none")
    return {
        mark: Interval(1e3 * one.value, None if one.half_width is None else 1e3 * one.half_width, one.n, one.basis)
        for mark, one in found.items()
        if math.isfinite(one.value)
    }


def _longest_s(column: Column, link: str, direction: int) -> float | None:
    """The longest delay of a packet in the measured window of any run."""
    found = []
    for run in column.result.runs:
        rows, _ = times.in_window(of_link(run.queue, link), run.window)
        waits = rows.filter(rows["direction"] == direction)["queue_delay_max_s"].drop_nulls()
        found += [float(waits.to_numpy().max())] if waits.len() else []
    return max(found, default=None)


def _width(one: Interval) -> float:
    return one.half_width or 0.0


def _drawn(rows: Sequence[Row], directions: Sequence[str], sheet: Sheet) -> Figure:
    is_stacked = len(directions) > 1 and sheet.is_narrow
    names = [wrapped(row.label, NAMES * sheet.ems) for row in rows]
    tallest = max(1 + name.count("\n") for name in names)
    panel = max(ROW, LINE * tallest + 0.08) * len(rows) + 0.32
    down, across = (len(directions), 1) if is_stacked else (1, len(directions))
    figure = Figure(figsize=sheet.size(0.75 + panel * down), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    ends = _ends(rows, directions)
    for axes, way in zip(grid.flat, directions, strict=True):
        for place, row in enumerate(rows):
            _draw(axes, place, row.waits[way], row.color, ends, sheet)
        axes.set(xscale="log", xlim=ends, ylim=(len(rows) - 0.45, -0.55))
        if len(directions) > 1:
            axes.set_title(way)
        axes.grid(visible=False, axis="y")
        axes.set_yticks(range(len(rows)), names)
        axes.tick_params(axis="y", length=0, pad=sheet.points(7))
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if math.log10(ends[1] / ends[0]) > DECADES else (1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
        axes.xaxis.set_minor_formatter(NullFormatter())
    for axes in grid[-1]:
        axes.set_xlabel("queueing delay (ms)")
    there = [mark for mark in MARKS if any(mark in row.waits[way] for row in rows for way in directions)]
    below(figure, [(_mark([], [], mark, MUTED, sheet), WORDS[mark]) for mark in there], sheet, **MARKED)
    return figure


def _ends(rows: Sequence[Row], directions: Sequence[str]) -> tuple[float, float]:
    """Ends of the axis: with room about the marks and their intervals, and none below what is shown."""
    every = [one for row in rows for way in directions for one in row.waits[way].values()]
    values = [one.value for one in every] + [one.value + _width(one) for one in every]
    low, high = max(min(values), SHORTEST_MS) / 1.3, max(*values, SHORTEST_MS) * 1.3
    more = max(math.sqrt(LEAST * low / high), 1.0)
    return low / more, high * more


def _draw(
    axes: Axes, place: int, waits: dict[str, Interval], color: str, ends: tuple[float, float], sheet: Sheet
) -> None:
    def at(value: float) -> float:
        return float(np.clip(value, ends[0] * 1.02, ends[1]))

    if MEDIAN in waits and P99 in waits:
        reach = [at(waits[MEDIAN].value), at(waits[P99].value)]
        axes.plot(reach, [place, place], color=color, alpha=0.3, linewidth=sheet.points(9), solid_capstyle="butt")
    for mark, one in waits.items():
        if mark in BESIDE and (width := _width(one)):
            height = place + BESIDE[mark]
            around = [at(one.value - width), at(one.value + width)]
            axes.plot(around, [height, height], color=color, linewidth=sheet.points(1.2), solid_capstyle="butt")
            axes.plot([at(one.value)] * 2, [place, height], color=color, linewidth=sheet.points(0.8))
        axes.add_line(_mark([at(one.value)], [place], mark, color, sheet))


def _mark(x: Sequence[float], y: Sequence[float], mark: str, color: str, sheet: Sheet) -> Line2D:
    looks: dict[str, Any] = {"markerfacecolor": color, "markeredgecolor": color, "zorder": 5}
    if mark == MEAN:
        looks |= {"markerfacecolor": "white"}
    size = {MEDIAN: 11.0, MEAN: 5.5, P95: 5.0, P99: 6.5, LONGEST: 5.5}[mark]
    edge = {MEDIAN: 2.2, LONGEST: 1.4}.get(mark, 1.3)
    return Line2D(
        x,
        y,
        linestyle="None",
        marker=MARKS[mark],
        color=color,
        markersize=sheet.points(size),
        markeredgewidth=sheet.points(edge),
        clip_on=False,
        **looks,
    )
