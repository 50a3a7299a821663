"""Runs of consecutive losses: how often more than n packets are lost in a row."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from aqmlab.errors import BadInput
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json
from aqmlab.statistics import Array
from aqmlab.study.figures.cell import Cell
from aqmlab.study.figures.curves import Curve
from aqmlab.study.figures.layout import (
    extent,
    legend,
    logarithmic,
    name_axes,
    panel_axes,
    panels_of,
    runs_said,
    widths_of,
)
from aqmlab.study.measured import named

PLACES = ("forward", "reverse", "probes")
LONGEST = 63
"""Longer runs are counted with those of this length."""


def loss_runs(name: str, spec: Json, curves: Sequence[Curve]) -> Drawn | None:
    """P(run of consecutive losses > n), pooled over the runs of a cell."""
    place = str(spec.get("direction", "forward"))
    if place not in PLACES:
        raise BadInput(f"figure {spec['id']}: direction: {place!r}: expected one of {', '.join(PLACES)}")
    counted = {curve.cell.name: counts(curve.cell, place) for curve in curves}
    shown = [curve for curve in curves if counted[curve.cell.name].sum() > 0]
    if not shown:
        return None
    whose = "of the probes" if place == "probes" else f"at the bottleneck, {'in ' * (place == 'reverse')}{place}"
    totals = [float(counted[curve.cell.name].sum()) for curve in shown]
    none = [curve.label for curve in curves if curve not in shown]
    caption = (
        f"Share of runs of consecutive losses {whose} that are longer than n packets. "
        f"{runs_said([curve.cell for curve in shown], totals, 'runs of losses')}."
        + (f" No losses: {named(none)}." if none else "")
    )

    def draw(sheet: Sheet) -> Figure:
        parts = panels_of(spec, shown)
        figure = Figure(figsize=extent(parts, shown, 4.8, 3.6, sheet), layout="constrained")
        grid = panel_axes(figure, parts, sheet)
        reach, drawn = 5, []
        for axes, (_, panel) in zip(grid, parts, strict=True):
            lines = [(curve, *_positive(100 * longer(counted[curve.cell.name]))) for curve in panel]
            for k, ((curve, kept, share), wider) in enumerate(zip(lines, widths_of(lines, is_log=True), strict=True)):
                reach = max(reach, int(kept[-1]) + 1)
                # There is nothing between whole numbers of packets: each has its mark.
                points = {"marker": curve.point_mark, "markersize": sheet.points(4.0 if curve.mark else 2.6)}
                line = curve.line(sheet, k, kept.size) | points | {"markevery": 1}
                line["linewidth"] *= wider
                drawn.append((curve, axes.plot(kept, share, **line)[0]))
            axes.set_yscale("log")
        for axes in grid:
            axes.set_xlim(0, min(reach, LONGEST))
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            logarithmic(axes.yaxis)
        name_axes(grid, "n (packets)", "runs longer than n (%)", sheet)
        legend(figure, grid, shown, drawn, lambda curve: _mean(counted[curve.cell.name]), sheet)
        return figure

    return Drawn(name, str(spec["title"]), caption, draw)


def counts(cell: Cell, place: str) -> Array:
    """Number of runs of 1, 2, 3, ... losses, of all runs of a cell."""
    total = np.zeros(LONGEST)
    for summary in cell.summaries:
        found = (summary.get(place) or {}).get("loss_runs") or []
        total[: len(found)] += np.asarray(found[:LONGEST], dtype=float)
    return total


def longer(counted: Array) -> Array:
    """Share of runs that are longer than 0, 1, 2, ... packets."""
    beyond: Array = np.cumsum(counted[::-1])[::-1]
    return beyond / max(float(counted.sum()), 1.0)


def _positive(share: Array) -> tuple[Array, Array]:
    """What a logarithmic axis can show."""
    kept = np.flatnonzero(share > 0)
    return kept.astype(float), share[kept]


def _mean(counted: Array) -> float:
    return float((counted * np.arange(1, counted.size + 1)).sum() / max(counted.sum(), 1.0))
