"""What happens in the queue: its length, and the probability with which its law drops or marks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from aqmlab import units
from aqmlab.comparison import Column
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.legends import wrapped
from aqmlab.figures.looks import MUTED, Look, void_note
from aqmlab.figures.sheet import Sheet
from aqmlab.results.run import Run
from aqmlab.statistics import Array

WAYS = ("forward", "reverse")
WORTH_SHOWING = 2.0
"""Packets: a queue that hardly ever reaches these is packets behind each other as they came."""
AROUND = 5.0
"""What the numbers beside a panel take of its width, in sizes of the type."""
STEPS = 200
"""Points of a line: more would be finer than a figure shows."""


@dataclass(frozen=True)
class Series:
    """A quantity over time, in steps: mean, and 10th and 90th percentile."""

    s: Array
    mean: Array
    low: Array
    high: Array

    @property
    def top(self) -> float:
        """What a scale must reach, but for a few moments."""
        finite = self.high[np.isfinite(self.high)]
        return float(np.quantile(finite, 0.995)) if finite.size else 0.0


@dataclass(frozen=True)
class Panel:
    """A variant: what its queues did in the first run, by direction."""

    label: str
    look: Look
    series: dict[str, Series]
    window: tuple[float, float]
    duration: float
    is_void: bool

    @property
    def step(self) -> str:
        """What a point of a line is of."""
        return "second" if _step(self.duration) == 1 else f"{_step(self.duration):g} s"

    @property
    def top(self) -> float:
        """Of all directions."""
        return max(one.top for one in self.series.values())


def queue_series(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn:
    """Queue length over time, a panel each."""
    shown = [column for column in columns if not column.uncongested] or list(columns)
    panels = [_panel(column, looks[column.name], "queue_packets", 1) for column in shown]
    ways = _ways(panels)
    caption = (
        f"Packets waiting at the bottleneck, {_said(ways)}, first run: mean of each {panels[0].step} (line) and the "
        "range between its 10th and 90th percentile (band). Shaded: not measured."
    )
    if len(shown) > 1:
        caption += " Panels share a scale unless their queues differ by more than a factor of 3."
    caption += void_note(shown)
    draw = partial(_panels, _only(panels, ways), _leads_alone(shown), "queue (packets)")
    return Drawn("queue", "The queue", caption, draw)


def signal_series(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn | None:
    """The probability with which packets are dropped or marked, as the law has it; None if no law has any."""
    congested = [column for column in columns if not column.uncongested]
    every = [(column, _panel(column, looks[column.name], "probability", 100)) for column in congested]
    shown = [(column, panel) for column, panel in every if any(_has_values(one) for one in panel.series.values())]
    if not shown:
        return None
    queues = _ways([_panel(column, looks[column.name], "queue_packets", 1) for column, _ in shown])
    panels = [panel for _, panel in shown]
    ways = [way for way in queues if any(_has_values(panel.series[way]) for panel in panels)] or [WAYS[0]]
    caption = (
        f"Probability of a drop or mark that the law has set, {_said(ways)}, first run: mean of each {panels[0].step} "
        "(line) and the range between its 10th and 90th percentile (band). Shaded: not measured."
    )
    caption += void_note([column for column, _ in shown])
    alone = _leads_alone([column for column, _ in shown])
    draw = partial(_panels, _only(panels, ways), alone, "probability (%)")
    return Drawn("probability", "Drop and mark probability", caption, draw)


def _panel(column: Column, look: Look, name: str, factor: float) -> Panel:
    run = column.result.runs[0]
    duration = units.seconds(column.result.scenario["duration"], "duration")
    series = _in_steps(run, name, factor, _step(duration))
    return Panel(column.label, look, series, run.window, duration, bool(column.void))


def _step(duration: float) -> float:
    """Whole seconds, as few as keep a run drawable."""
    return float(max(1, math.ceil(duration / STEPS)))


def _in_steps(run: Run, name: str, factor: float, step: float) -> dict[str, Series]:
    rows = run.queue.select("time_s", "direction", pl.col(name).cast(pl.Float64) * factor)
    table = (
        rows.group_by("direction", (((pl.col("time_s") - 1e-6) / step).floor() * step + step / 2).alias("s"))
        .agg(
            pl.col(name).mean().alias("mean"),
            pl.col(name).quantile(0.1).alias("low"),
            pl.col(name).quantile(0.9).alias("high"),
        )
        .sort("s")
    )
    found = {}
    for k, way in enumerate(WAYS):
        part = table.filter(pl.col("direction") == k)
        found[way] = Series(*(part[key].to_numpy().astype(float) for key in ("s", "mean", "low", "high")))
    return found


def _has_values(series: Series) -> bool:
    return bool(np.isfinite(series.mean).any())


def _ways(panels: Sequence[Panel]) -> list[str]:
    """The directions in which any variant has a queue worth showing; forward if none has."""
    found = [way for way in WAYS if any(panel.series[way].top >= WORTH_SHOWING for panel in panels)]
    return found or [WAYS[0]]


def _only(panels: Sequence[Panel], ways: Sequence[str]) -> list[Panel]:
    return [
        Panel(p.label, p.look, {way: p.series[way] for way in ways}, p.window, p.duration, p.is_void) for p in panels
    ]


def _said(ways: Sequence[str]) -> str:
    return f"{ways[0]} direction" if len(ways) == 1 else "forward direction upwards and reverse direction downwards"


def _leads_alone(columns: Sequence[Column]) -> bool:
    """Whether a drop-tail queue that would break the pairs stands in a row alone."""
    return len(columns) > 2 and len(columns) % 2 == 1 and columns[0].qdisc["kind"] in ("pfifo", "bfifo")


def _panels(panels: Sequence[Panel], leads_alone: bool, ylabel: str, sheet: Sheet) -> Figure:
    cells: list[Panel | None] = list(panels)
    across = 2 if len(cells) > 1 and not sheet.is_narrow else 1
    if leads_alone and across == 2:
        cells.insert(1, None)
    down = -(-len(cells) // across)
    is_mirrored = len(panels[0].series) > 1
    figure = Figure(figsize=sheet.size(0.65 + (1.9 if is_mirrored else 1.4) * down), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, squeeze=False)
    least = min(panel.top for panel in panels)
    common = max(panel.top for panel in panels if panel.top <= 3 * least)
    for axes, panel in zip(grid.flat, cells, strict=False):
        if panel is not None:
            _draw(axes, panel, common if panel.top <= 3 * least else panel.top, sheet.ems / across - AROUND, sheet)
        else:
            axes.set_visible(False)
    for axes in grid.flat[len(cells) :]:
        axes.set_visible(False)
    for k in range(across):
        lowest = [axes for axes in grid[:, k] if axes.get_visible()][-1]
        lowest.set_xlabel("time (s)")
        lowest.tick_params(labelbottom=True)
    figure.supylabel(ylabel, fontsize="medium")
    return figure


def _draw(axes: Axes, panel: Panel, top: float, room: float, sheet: Sheet) -> None:
    reach = max(1.08 * top, 1e-9)
    hue = panel.look.color
    for way, one in panel.series.items():
        up = -1 if way == "reverse" and len(panel.series) > 1 else 1
        axes.fill_between(one.s, up * one.low, up * one.high, color=hue, alpha=0.28, linewidth=0)
        axes.plot(one.s, up * one.mean, color=hue, linewidth=sheet.points(1.2))
    if len(panel.series) > 1:
        axes.axhline(0, color=MUTED, linewidth=sheet.points(0.8))
        for way, at in (("forward", 0.75), ("reverse", 0.25)):
            axes.text(
                *(1.01, at, way),
                transform=axes.transAxes,
                rotation=270,
                va="center",
                fontsize="small",
                color=MUTED,
            )
    axes.set_title(wrapped(panel.label, room))
    if panel.is_void:
        axes.axvspan(0, panel.duration, facecolor="none", edgecolor=MUTED, alpha=0.35, hatch="//", linewidth=0)
    start, end = panel.window
    axes.axvspan(0, start, color=MUTED, alpha=0.13, linewidth=0)
    if end < panel.duration:
        axes.axvspan(end, panel.duration, color=MUTED, alpha=0.13, linewidth=0)
    axes.set_xlim(0, panel.duration)
    axes.set_ylim(-reach if len(panel.series) > 1 else 0, reach)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):g}"))
