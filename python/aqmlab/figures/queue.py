"""What happens in the queue over time: its length, its delay, and the probability with which its law drops or marks."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from aqmlab import engine, links, statistics, units
from aqmlab.comparison import Column
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.legends import wrapped
from aqmlab.figures.looks import INK, MUTED, Look, void_note
from aqmlab.figures.sheet import Sheet
from aqmlab.figures.ticks import plain
from aqmlab.json_files import Json
from aqmlab.links import WAYS
from aqmlab.results import times
from aqmlab.results.run import of_link
from aqmlab.results.ways import CARRYING
from aqmlab.statistics import Array

WORTH_SHOWING = 2.0
"""Packets: a queue that hardly ever reaches these is packets behind each other as they came."""
AROUND = 5.0
"""What the numbers beside a panel take of its width, in sizes of the type."""
THROUGHPUT = "throughput_bps"
"""Of each row of the queue table: what left in its interval."""
COVERED = "covered_ns"
"""Of each row of the queue table: the time that it is of, which may be shorter than an interval."""
DELAY, PACKETS = "queue_delay_mean_s", "delivered_packets"
"""Of each row of the queue table: what packets waited that left in its interval, in the mean; and how many did."""
WEIGHTS = {DELAY: PACKETS, THROUGHPUT: COVERED}
"""What rows count by in a mean over several, where not alike."""
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
        return float(statistics.quantiles(finite, [0.995])[0]) if finite.size else 0.0


@dataclass(frozen=True)
class Panel:
    """A variant: what its queues did in the first run, by direction."""

    label: str
    look: Look
    series: dict[str, Series]
    window: tuple[float, float]
    duration: float
    is_void: bool
    capacity: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """Where it changes with time, by direction: when, and how much from then on."""
    column: str = ""
    """The name of the variant."""

    @property
    def step(self) -> str:
        """What a point of a line is of."""
        return "second" if _step(self.duration) == 1 else f"{_step(self.duration):g} s"

    @property
    def top(self) -> float:
        """The top of the axis for all directions, with what they could have."""
        could = [float(most.max()) for way, (_, most) in self.capacity.items() if way in self.series]
        return max([one.top for one in self.series.values()] + could)


def queue_series(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn:
    """Queue length over time, a panel each."""
    shown = [column for column in columns if not column.uncongested] or list(columns)
    panels = _of_links(shown, looks, "queue_packets", 1)
    ways = _ways(panels)
    where = "at each link" if len(panels) > len(shown) else "at the bottleneck"
    caption = (
        f"Packets waiting {where}, {_said(ways)}, first run: mean of each {panels[0].step} (line) and the "
        "range between its 10th and 90th percentile (band). Shaded: not measured."
    )
    caption += _scales_said(panels, "queues") + void_note(shown)
    draw = partial(_panels, _only(panels, ways), _leads_alone(shown, panels), "queue (packets)")
    return Drawn("queue", "The queue", caption, draw)


def delay_series(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn | None:
    """Queueing delay over time, a panel each; None where no packet left a queue."""
    shown = [column for column in columns if not column.uncongested] or list(columns)
    panels = _of_links(shown, looks, DELAY, 1e3)
    if not any(_has_values(series) for panel in panels for series in panel.series.values()):
        return None
    ways = _ways(_of_links(shown, looks, "queue_packets", 1))
    intervals = {units.say_seconds(_interval_s(column)) for column in shown}
    caption = (
        f"Queueing delay, {_said(ways)}, first run: mean over the packets that left in each {panels[0].step} (line), "
        f"and the range between the 10th and 90th percentile of the means of its intervals of "
        f"{' or '.join(sorted(intervals))} (band). Shaded: not measured."
    )
    caption += _scales_said(panels, "delays") + void_note(shown)
    draw = partial(_panels, _only(panels, ways), _leads_alone(shown, panels), "queueing delay (ms)")
    return Drawn("delay-time", "Queueing delay over time", caption, draw)


def _scales_said(panels: Sequence[Panel], what: str) -> str:
    if len(panels) < 2:
        return ""
    return f" Panels share a scale unless their {what} differ by more than a factor of 3."


def throughput_series(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn | None:
    """What links carry over time, of those that change; None where none does."""
    shown = [column for column in columns if not column.uncongested]
    found = _of_links(shown, looks, THROUGHPUT, 1e-6, lambda link: links.changes(link))
    if not found:
        return None
    most = {way: max(panel.series[way].top for panel in found) for way in WAYS}
    ways = [way for way in WAYS if most[way] >= CARRYING * max(most.values())]
    caption = (
        f"What links that change carry, {_said(ways)}, first run: mean of each {found[0].step} (line) and the range "
        "between its 10th and 90th percentile (band). Shaded: not measured."
    )
    if any(panel.capacity for panel in found):
        caption += " Dashed: the rate that a schedule gives the link."
    caption += void_note(shown)
    draw = partial(_panels, _only(found, ways), _leads_alone(shown, found), "throughput (Mb/s)")
    return Drawn("throughput", "What the links carry", caption, draw)


def signal_series(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn | None:
    """The probability with which packets are dropped or marked, as the law has it; None if no law has any."""
    congested = [column for column in columns if not column.uncongested]
    every = _of_links(congested, looks, "probability", 100)
    pairs = zip(every, _of_links(congested, looks, "queue_packets", 1), strict=True)
    shown = [(one, queue) for one, queue in pairs if any(_has_values(series) for series in one.series.values())]
    if not shown:
        return None
    queues = _ways([queue for _, queue in shown])
    panels = [panel for panel, _ in shown]
    ways = [way for way in queues if any(_has_values(panel.series[way]) for panel in panels)] or [WAYS[0]]
    caption = (
        f"Probability of a drop or mark that the law has set, {_said(ways)}, first run: mean of each {panels[0].step} "
        "(line) and the range between its 10th and 90th percentile (band). Shaded: not measured."
    )
    told = [column for column in congested if any(panel.column == column.name for panel in panels)]
    caption += _scales_said(panels, "probabilities") + _left_out_said(congested, told) + void_note(told)
    draw = partial(_panels, _only(panels, ways), _leads_alone(told, panels), "probability (%)")
    return Drawn("probability", "Drop and mark probability", caption, draw)


def _left_out_said(columns: Sequence[Column], drawn: Sequence[Column]) -> str:
    """Who has no panel, and why: under fair queueing there is no one probability."""
    others = [column for column in columns if column not in drawn]
    fair = [column.label for column in others if _has_laws(column)]
    without = [column.label for column in others if not _has_laws(column)]
    said = [f"{', '.join(fair)}, where each queue has a law and a probability of its own"] if fair else []
    said += [f"{', '.join(without)}, which set{'s' * (len(without) == 1)} none"] if without else []
    return f" Not drawn: {'; '.join(said)}." if said else ""


def _has_laws(column: Column) -> bool:
    """Whether the discipline has a law with a probability in each of its queues; one that is not known may have."""
    before, _, law = str(column.qdisc["kind"]).partition("_")
    rows = [row for row in engine.disciplines() if row["name"] == law]
    return before == "fq" and all(any(g["column"] == "probability" for g in row["gauges"]) for row in rows)


def _of_links(
    columns: Sequence[Column],
    looks: dict[str, Look],
    name: str,
    factor: float,
    among: Callable[[Json], bool] = lambda _: True,
) -> list[Panel]:
    """A panel for each link of each column."""
    several = links.are_several_in(column.scenario for column in columns)
    return [
        _panel(column, looks[column.name], name, factor, link, several, len(columns) == 1)
        for column in columns
        for link, facts in links.of(column.scenario).items()
        if among(facts)
    ]


def _panel(column: Column, look: Look, name: str, factor: float, link: str, several: bool, is_alone: bool) -> Panel:
    run = column.result.runs[0]
    duration = units.seconds(column.scenario["duration"], "duration")
    series = _in_steps(with_throughput(of_link(run.queue, link)), name, factor, _step(duration))
    label = column.label
    if several:
        label = link if is_alone else f"{label}: {link}"
    capacity = {}
    if name == THROUGHPUT:
        for way in WAYS:
            steps = links.rates_over_time(links.of(column.scenario)[link], way, duration)
            if steps:
                at, bps = zip(*steps, (duration, steps[-1][1]), strict=True)
                capacity[way] = np.array(at), np.array(bps) * factor
    return Panel(label, look, series, run.window, duration, bool(column.void), capacity, column.name)


def with_throughput(queue: pl.DataFrame) -> pl.DataFrame:
    """A queue table with what left in each row, over the time that it covers: rows also end at the edges of the window
    and of the run."""
    covered_s = pl.col(COVERED) / times.PER_S
    return times.with_covered(queue).with_columns((pl.col("delivered_bytes") * 8.0 / covered_s).alias(THROUGHPUT))


def _interval_s(column: Column) -> float:
    """What a row of its queue table is of."""
    return units.seconds(column.scenario.get("record", {}).get("interval", "100ms"), "record.interval")


def _step(duration: float) -> float:
    """Whole seconds, as few as keep a run drawable."""
    return float(max(1, math.ceil(duration / STEPS)))


def _in_steps(queue: pl.DataFrame, name: str, factor: float, step: float) -> dict[str, Series]:
    middle = times.middle_of_step(queue.columns, step).alias("s")
    value = pl.col(name).cast(pl.Float64) * factor
    # A mean over packets counts each of them once, and one over time each moment; other columns say how it stands at
    # the ends of intervals.
    weight = pl.col(WEIGHTS[name]).cast(pl.Float64) if name in WEIGHTS else pl.lit(1.0)
    rows = queue.select("direction", middle, value, pl.when(value.is_not_null()).then(weight).alias("weight"))
    table = (
        rows.group_by("direction", "s")
        .agg(
            ((pl.col(name) * pl.col("weight")).sum() / pl.col("weight").sum()).alias("mean"),
            pl.col(name).quantile(0.1, "equiprobable").alias("low"),
            pl.col(name).quantile(0.9, "equiprobable").alias("high"),
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
    return [replace(panel, series={way: panel.series[way] for way in ways}) for panel in panels]


def _said(ways: Sequence[str]) -> str:
    return f"{ways[0]} direction" if len(ways) == 1 else "forward direction upwards and reverse direction downwards"


def _leads_alone(columns: Sequence[Column], panels: Sequence[Panel]) -> bool:
    """Whether a drop-tail queue that would break the pairs stands in a row alone."""
    is_odd = len(columns) > 2 and len(columns) % 2 == 1 and len(panels) == len(columns)
    return is_odd and columns[0].qdisc["kind"] in ("pfifo", "bfifo")


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
        if way in panel.capacity:
            since, most = panel.capacity[way]
            look: dict[str, Any] = {"color": INK, "linewidth": sheet.points(1.0), "linestyle": (0, (4, 2))}
            axes.plot(since, up * most, drawstyle="steps-post", **look)
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
    axes.set_title(wrapped(panel.label, room, "bold"))
    if panel.is_void:
        axes.axvspan(0, panel.duration, facecolor="none", edgecolor=MUTED, alpha=0.35, hatch="//", linewidth=0)
    start, end = panel.window
    axes.axvspan(0, start, color=MUTED, alpha=0.13, linewidth=0)
    if end < panel.duration:
        axes.axvspan(end, panel.duration, color=MUTED, alpha=0.13, linewidth=0)
    axes.set_xlim(0, panel.duration)
    axes.set_ylim(-reach if len(panel.series) > 1 else 0, reach)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(abs(value))))
