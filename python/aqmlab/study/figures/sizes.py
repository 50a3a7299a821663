"""Sizes of responses: how many are up to a size, and which share of all bytes they carry."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from aqmlab.figures.drawn import Drawn
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json
from aqmlab.statistics import Array
from aqmlab.study.figures.cell import Cell
from aqmlab.study.figures.curves import Curve
from aqmlab.study.figures.layout import extent, legend, runs_said, widths_of
from aqmlab.study.measured import named


def sizes(name: str, spec: Json, curves: Sequence[Curve]) -> Drawn | None:
    """Left the distribution of sizes, right the share of bytes in responses up to a size."""
    from aqmlab.results.window import SIZE_BINS

    shown = [curve for curve in curves if number_and_bytes(curve.cell)[0].sum() > 0]
    if not shown:
        return None
    lost = [curve.label for curve in curves if curve not in shown]
    totals = [float(number_and_bytes(curve.cell)[0].sum()) for curve in shown]
    caption = (
        "Left: share of responses that are no larger than the size on the horizontal axis. Right: share of all bytes "
        f"of responses that these carry. Responses completed in the measured window; "
        f"{runs_said([c.cell for c in shown], totals, 'responses')}."
        f"{f' No response is complete: {named(lost)}.' if lost else ''}"
    )

    def draw(sheet: Sheet) -> Figure:
        parts = [("responses", list(shown)), ("bytes of responses", list(shown))]
        figure = Figure(figsize=extent(parts, shown, 4.0, 3.8, sheet), layout="constrained")
        grid = figure.subplots(1, 2, sharey=True, squeeze=False)[0]
        drawn = []
        for column, (axes, (title, panel)) in enumerate(zip(grid, parts, strict=True)):
            lines = [(curve, SIZE_BINS, _cumulative(number_and_bytes(curve.cell)[column])) for curve in panel]
            for k, ((curve, bins, share), wider) in enumerate(zip(lines, widths_of(lines), strict=True)):
                line = curve.line(sheet, k, bins.size)
                line["linewidth"] *= wider
                drawn.append((curve, axes.plot(bins, share, **line)[0]))
            axes.set(xscale="log", xlim=(30, 1e8), ylim=(0, 100), xlabel="size of a response")
            axes.set_title(title)
            axes.set_yticks(range(0, 101, 10))
            axes.xaxis.set_major_locator(LogLocator(numticks=4 if sheet.is_narrow else 9))
            axes.xaxis.set_major_formatter(FuncFormatter(_bytes))
            axes.xaxis.set_minor_formatter(NullFormatter())
        grid[0].set_ylabel("cumulative share (%)")
        legend(figure, grid, shown, drawn, lambda curve: 0.0, sheet)
        return figure

    return Drawn(name, str(spec["title"]), caption, draw)


def number_and_bytes(cell: Cell) -> tuple[Array, Array]:
    """Responses and their bytes in each class of size, over all runs."""
    numbers = sum(np.asarray(w.size_counts[0], dtype=float) for w in cell.windows)
    amounts = sum(np.asarray(w.size_bytes[0], dtype=float) for w in cell.windows)
    return np.asarray(numbers), np.asarray(amounts)


def _cumulative(counted: Array) -> Array:
    """Per cent up to each size."""
    return np.asarray(100 * np.cumsum(counted[:-1]) / max(float(counted.sum()), 1.0))


def _bytes(value: float, _position: int | None = None) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} B"
