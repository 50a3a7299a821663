"""What happens in the queue: its length, and the probability with which its law drops or marks."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from aqmlab import units
from aqmlab.comparison import Column
from aqmlab.figures.looks import MUTED, Drawn, Look, finish, void_note
from aqmlab.results import Run
from aqmlab.statistics import Array


def queue_series(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn:
    """Queue length over time, a panel each."""
    shown = [column for column in columns if not column.uncongested] or list(columns)
    caption = (
        "Packets waiting at the bottleneck, forward direction, first run: mean of each second (line) and the range "
        "between its 10th and 90th percentile (band). Shaded: warm-up, not measured."
    )
    if len(shown) > 1:
        caption += " Panels share a scale unless their queues differ by more than a factor of 3."
    caption += void_note(shown)
    return finish("queue", "The queue", caption, lambda: _panels(shown, looks, "queue_packets", 1, "queue (packets)"))


def signal_series(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn | None:
    """The probability with which packets are dropped or marked, as the law has it; None if no law has any."""
    shown = [c for c in columns if not c.uncongested and c.result.runs[0].queue["probability"].count() > 0]
    if not shown:
        return None
    caption = (
        "Probability of a drop or mark that the law has set, forward direction, first run: mean of each second (line) "
        "and the range between its 10th and 90th percentile (band). Shaded: warm-up, not measured."
    )
    caption += void_note(shown)
    return finish(
        "probability",
        "Drop and mark probability",
        caption,
        lambda: _panels(shown, looks, "probability", 100, "probability (%)"),
    )


def _forward(run: Run) -> pl.DataFrame:
    return run.queue.filter(pl.col("direction") == 0)


def _by_second(rows: pl.DataFrame, column: str) -> dict[str, Array]:
    """Mean and range of each second, or of each 1/300 of a long run, so that it stays drawable."""
    duration = float(rows["time_s"][-1]) if rows.height else 0.0
    step = max(1.0, duration / 300)
    table = (
        rows.group_by((((pl.col("time_s") - 1e-6) / step).floor() * step + step / 2).alias("s"))
        .agg(
            pl.col(column).mean().alias("mean"),
            pl.col(column).quantile(0.1).alias("low"),
            pl.col(column).quantile(0.9).alias("high"),
        )
        .sort("s")
    )
    return {name: table[name].to_numpy().astype(float) for name in table.columns}


def _panels(columns: Sequence[Column], looks: dict[str, Look], name: str, scale: float, ylabel: str) -> Figure:
    series = {column.name: _by_second(_forward(column.result.runs[0]), name) for column in columns}
    tops = {key: _top(table["high"]) * scale for key, table in series.items()}
    cells = _cells(columns)
    across = 2 if len(cells) > 1 else 1
    down = -(-len(cells) // across)
    figure = Figure(figsize=(9.4, 0.65 + 1.4 * down), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, squeeze=False)
    short = [top for top in tops.values() if top <= 3 * min(tops.values())]
    for axes, column in zip(grid.flat, cells, strict=False):
        if column is None:
            axes.set_visible(False)
            continue
        table, look, top = series[column.name], looks[column.name], tops[column.name]
        axes.fill_between(
            table["s"], scale * table["low"], scale * table["high"], color=look.color, alpha=0.28, linewidth=0
        )
        axes.plot(table["s"], scale * table["mean"], color=look.color, linewidth=1.2)
        axes.set_title(column.label, pad=3)
        if column.void:
            axes.axvspan(
                0, float(table["s"][-1]), facecolor="none", edgecolor=MUTED, alpha=0.35, hatch="//", linewidth=0
            )
        start, _ = column.result.runs[0].window
        axes.axvspan(0, start, color=MUTED, alpha=0.13, linewidth=0)
        axes.set_xlim(0, units.seconds(column.result.scenario["duration"], "duration"))
        axes.set_ylim(0, max((max(short) if top in short else top) * 1.08, 1e-9))
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in grid.flat[len(cells) :]:
        axes.set_visible(False)
    for k in range(across):
        lowest = [axes for axes in grid[:, k] if axes.get_visible()][-1]
        lowest.set_xlabel("time (s)")
        lowest.tick_params(labelbottom=True)
    figure.supylabel(ylabel, fontsize=10.5)
    return figure


def _top(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, 0.995)) if finite.size else 1.0


def _cells(columns: Sequence[Column]) -> list[Column | None]:
    """The panels, two a row; a drop-tail queue that would break the pairs stands in a row alone."""
    cells: list[Column | None] = list(columns)
    if len(columns) > 2 and len(columns) % 2 and columns[0].qdisc["kind"] in ("pfifo", "bfifo"):
        cells.insert(1, None)
    return cells
