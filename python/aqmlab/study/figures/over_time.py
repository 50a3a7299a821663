"""What happens at the link over time: a column of `queue.parquet`, a panel for each cell."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from aqmlab import links, units
from aqmlab.errors import BadInput
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.legends import wrapped
from aqmlab.figures.looks import MUTED
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json
from aqmlab.results import times
from aqmlab.results.run import of_link
from aqmlab.results.window import COUNTS
from aqmlab.scenario import measured_window
from aqmlab.statistics import Array
from aqmlab.study.figures.cell import Cell
from aqmlab.study.figures.curves import Curve
from aqmlab.study.measured import named

TITLES = {
    "queue_packets": (1.0, "queue (packets)"),
    "queue_bytes": (1e-3, "queue (kB)"),
    "queue_delay_mean_s": (1e3, "queueing delay (ms)"),
    "queue_delay_max_s": (1e3, "longest queueing delay (ms)"),
    "probability": (100.0, "probability (%)"),
    "control": (1.0, "control variable"),
}
"""Column -> factor and what the axis says; another column has its name there."""
STEPS = 300
"""Points of a line: more would be finer than a figure shows."""
INTERVAL = "100ms"
"""Of a row of the queue table, unless the scenario says otherwise."""


@dataclass(frozen=True)
class Series:
    """A column over time, in steps."""

    s: Array
    """Middle of each step."""
    mean: Array
    low: Array | None
    """The least of its intervals; none where intervals were put together and their extremes not kept."""
    high: Array | None
    step_s: float

    def top(self, start: float, end: float) -> float:
        """The largest number within a window, or of all where it has none."""
        every = self.mean if self.high is None else self.high
        for values in (every[(self.s >= start) & (self.s <= end)], every):
            if (finite := values[np.isfinite(values)]).size:
                return float(finite.max())
        return 1.0


def over_time(name: str, spec: Json, curves: Sequence[Curve]) -> Drawn | None:
    """Mean and range of a column over time, in the first run of each cell."""
    column = str(spec["column"])
    direction = str(spec.get("direction", "forward"))
    if direction not in links.WAYS:
        raise BadInput(f"figure {spec['id']}: direction: {direction!r}: expected forward or reverse")
    for curve in curves:
        if column not in curve.cell.queue.columns:
            own = ("time_s", "direction"), ("_min", "_max")
            there = ", ".join(c for c in curve.cell.queue.columns if c not in own[0] and not c.endswith(own[1]))
            raise BadInput(f"figure {spec['id']}: column: {column!r}: expected one of {there}")
    series = {c.cell.name: series_of(c.cell, column, direction == "reverse") for c in curves}
    shown = [curve for curve in curves if series[curve.cell.name].s.size]
    if not shown:
        return None
    factor, title = TITLES.get(column, (1.0, column.replace("_", " ") + (" per second" if column in COUNTS else "")))
    tops = {c.cell.name: factor * series[c.cell.name].top(*measured_window(c.cell.scenario)) for c in shown}
    caption = _caption(direction, column, shown, curves, series)

    def draw(sheet: Sheet) -> Figure:
        across = 2 if len(shown) > 1 and not sheet.is_narrow else 1
        down = max(-(-len(shown) // across), 1)
        figure = Figure(figsize=sheet.size(0.65 + (1.45 if down > 1 else 2.4) * down), layout="constrained")
        grid = figure.subplots(down, across, sharex=len({_duration(c.cell) for c in shown}) == 1, squeeze=False)
        least = min(tops.values())
        short = [top for top in tops.values() if top <= 3 * least]
        for axes, curve in zip(grid.flat, shown, strict=False):
            one, top = series[curve.cell.name], tops[curve.cell.name]
            hue = curve.look.color
            if one.low is not None and one.high is not None:
                axes.fill_between(one.s, factor * one.low, factor * one.high, color=hue, alpha=0.28, linewidth=0)
            axes.plot(one.s, factor * one.mean, color=hue, linewidth=sheet.points(1.2))
            axes.set_title(wrapped(curve.label, sheet.ems / across - 5))
            start, end = measured_window(curve.cell.scenario)
            axes.axvspan(0, start, color=MUTED, alpha=0.13, linewidth=0)
            if end < _duration(curve.cell):
                axes.axvspan(end, _duration(curve.cell), color=MUTED, alpha=0.13, linewidth=0)
            axes.set_xlim(0, _duration(curve.cell))
            axes.set_ylim(0, max((max(short) if top in short else top) * 1.08, 1e-9))
            axes.yaxis.set_major_locator(MaxNLocator(4))
        for axes in grid.flat[len(shown) :]:
            axes.set_visible(False)
        for k in range(across):
            lowest = [axes for axes in grid[:, k] if axes.get_visible()][-1]
            lowest.set_xlabel("time (s)")
            lowest.tick_params(labelbottom=True)
        figure.supylabel(str(spec.get("ylabel", title)), fontsize="medium")
        return figure

    return Drawn(name, str(spec["title"]), caption, draw)


def _caption(
    direction: str, column: str, shown: Sequence[Curve], curves: Sequence[Curve], series: dict[str, Series]
) -> str:
    seeds = sorted({window_seed(curve.cell) for curve in shown})
    found = [series[curve.cell.name] for curve in shown]
    lengths = sorted({one.step_s for one in found})
    each = " to ".join(dict.fromkeys(units.say_seconds(s) for s in (lengths[0], lengths[-1])))
    what = "number a second" if column in COUNTS else "mean"
    with_band = [one for one in found if one.low is not None]
    band = ""
    if with_band:
        intervals = ", ".join(dict.fromkeys(units.say_seconds(_interval(curve.cell)) for curve in shown))
        which = "" if len(with_band) == len(found) else ", where they are kept"
        band = f", and the least and the largest of its intervals of {intervals} (band{which})"
    elif column not in COUNTS:
        band = "; how it went within is not kept of runs as long as these"
    cut = any(_is_cut(series[c.cell.name], *measured_window(c.cell.scenario)) for c in shown)
    none = [curve.label for curve in curves if curve not in shown]
    return (
        f"{direction.capitalize()} direction, one run each (seed {', '.join(map(str, seeds))}): {what} of each {each} "
        f"(line){band}. Shaded: not measured{', and cut off where it is higher' if cut else ''}."
        f"{f' No values: {named(none)}.' if none else ''}"
    )


def _is_cut(one: Series, start: float, end: float) -> bool:
    every = one.mean if one.high is None else one.high
    return bool(np.nanmax(every, initial=0.0) > 1.08 * one.top(start, end))


def window_seed(cell: Cell) -> int:
    """Seed of the first run."""
    return int(cell.summaries[0].get("seed", 1))


def _duration(cell: Cell) -> float:
    return units.seconds(cell.scenario["duration"], "duration")


def _interval(cell: Cell) -> float:
    return units.seconds(cell.scenario.get("record", {}).get("interval", INTERVAL), "record.interval")


def series_of(cell: Cell, column: str, reverse: bool) -> Series:
    """A column in steps, of which each is the mean of its rows; of counts their number a second.

    The rows of a long run are intervals put together, whose columns are means already. The range within a step is that
    of intervals all the same: `COLUMN_min` and `COLUMN_max` keep it, and without these there is none.
    """
    own = of_link(cell.queue, next(iter(links.of(cell.scenario))))
    queue = own.filter(pl.col("direction") == int(reverse)).sort("time_s")
    length = pl.col("time_s") - pl.col("time_s").shift(1, fill_value=0.0)
    rows = queue.with_columns(length.alias("length_s")).filter(pl.col(column).is_not_null())
    step = max(_duration(cell) / STEPS, 1e-6)
    place = times.middle_of_step(queue.columns, step)
    value = pl.col(column).cast(pl.Float64)
    mean = value.sum() / pl.col("length_s").sum() if column in COUNTS else value.mean()
    ends = f"{column}_min", f"{column}_max"
    if not set(ends) <= set(queue.columns):
        is_whole = not rows.height or float(np.median(rows["length_s"].to_numpy())) < 1.5 * _interval(cell)
        ends = (column, column) if is_whole and column not in COUNTS else ("", "")
    range_of = [pl.col(ends[0]).min().alias("low"), pl.col(ends[1]).max().alias("high")] if ends[0] else []
    table = rows.group_by(place.alias("s")).agg(mean.alias("mean"), *range_of).sort("s")
    found = {name: table[name].to_numpy().astype(float) for name in table.columns}
    return Series(found["s"], found["mean"], found.get("low"), found.get("high"), step)
