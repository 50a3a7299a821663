"""Response times of the points of a study: the distribution to 2 s as the papers draw it, and the tail."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from aqmlab import statistics
from aqmlab.figures import enlarged
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.responses import CUT_OFF, FEWEST_LEFT, LONGER, MARKED_TIMES, WITHIN, widest_said
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json
from aqmlab.results.exchanges import index
from aqmlab.results.window import CDF_TIMES, TAIL_TIMES
from aqmlab.statistics import Array
from aqmlab.study.figures.cell import Cell
from aqmlab.study.figures.curves import Curve
from aqmlab.study.figures.layout import (
    ACROSS,
    ACROSS_NARROW,
    Drawings,
    Lines,
    Panel,
    extent,
    legend,
    logarithmic,
    name_axes,
    panel_axes,
    panels_of,
    runs_said,
    set_titles,
    wider_said,
    widths_of,
)
from aqmlab.study.measured import bases_said, has_interval, named

LOWEST_ENLARGED = 45.0
"""Per cent: a part in a row of its own that begins lower is hardly larger than the whole."""
PRINTED_END = 2.0
"""Where the papers' distributions end, seconds."""


def cdf(name: str, spec: Json, curves: Sequence[Curve]) -> Drawn | None:
    """Share of exchanges complete within a time."""
    every, curves = curves, _with_exchanges(curves)
    if not curves:
        return None
    end = min(float(spec.get("xmax", 2.0)), 2.0)
    parts = panels_of(spec, curves)
    wider = wider_said([_lines(shown, 0.0, end) for _, shown in parts])
    caption = f"{WITHIN} {_sizes(curves)}{_precision(curves)}.{_without(every, curves)}{wider}"
    floor = _floor(curves, end)
    if len(parts) > ACROSS:
        caption += f" Shown from {enlarged.FROM_S:g} s and {floor:.0f} % on."
        return Drawn(name, str(spec["title"]), caption, lambda sheet: _enlarged(parts, curves, floor, end, sheet))

    def draw(sheet: Sheet) -> Figure:
        if sheet.is_narrow and len(parts) > ACROSS_NARROW:
            return _enlarged(parts, curves, floor, end, sheet)
        is_alone = len(parts) == 1
        rows = 1 if is_alone or not LOWEST_ENLARGED <= floor < 100 else 2
        figure = Figure(figsize=extent(parts, curves, 5.4, 3.6 if rows == 1 else 6.0, sheet), layout="constrained")
        lines: list[tuple[Curve, Line2D]] = []
        grid = figure.subplots(rows, len(parts), sharey="row", sharex="row", squeeze=False)
        for axes, (_, shown) in zip(grid[0], parts, strict=True):
            lines += _distributions(axes, shown, 0.0, end, sheet)
            axes.set(xlim=(0, end), ylim=(0, 100))
            axes.set_xticks(np.arange(0, end + 0.01, 0.25 if end < 1 or (is_alone and not sheet.is_narrow) else 0.5))
            axes.set_yticks(range(0, 101, 10 if is_alone else 20))
        set_titles(grid[0], parts, sheet)
        grid[0][0].set_ylabel("exchanges completed (%)")
        is_whole = is_alone and end == enlarged.END_S and not sheet.is_narrow
        if is_whole and enlarged.is_larger(floor) and enlarged.is_free([100 * mean_cdf(one.cell) for one in curves]):
            inset = enlarged.inset(grid[0][0], sheet)
            _distributions(inset, curves, enlarged.FROM_S, end, sheet, enlarged.THINNER)
            enlarged.span(inset, floor, sheet)
        if rows == 2:
            for axes, (_, shown) in zip(grid[1], parts, strict=True):
                _distributions(axes, shown, enlarged.FROM_S, end, sheet)
                axes.set(xlim=(enlarged.FROM_S, end), ylim=(floor, 100 + 0.01 * (100 - floor)))
            grid[1][0].set_ylabel(f"exchanges completed (%),\nenlarged from {floor:.0f} %")
        for axes in grid[-1]:
            axes.set_xlabel("response time (s)")
        legend(figure, grid[0], curves, lines, lambda curve: _rank(curve.cell), sheet)
        return figure

    return Drawn(name, str(spec["title"]), caption, draw)


def as_printed(name: str, spec: Json, curves: Sequence[Curve]) -> Drawn | None:
    """The same on the axes of the studies' papers: milliseconds to 2000, shares by twenties, and nothing enlarged."""
    shown = _with_exchanges(curves)
    if not shown:
        return None
    caption = (
        "As the paper prints it: share of exchanges whose response is complete within the time on the horizontal axis. "
        f"{_sizes(shown)}.{_without(curves, shown)}"
        f"{wider_said([_lines(here, 0.0, PRINTED_END) for _, here in panels_of(spec, shown)])}"
    )

    def draw(sheet: Sheet) -> Figure:
        parts = panels_of(spec, shown)
        figure = Figure(figsize=extent(parts, shown, 4.2, 3.2, sheet), layout="constrained")
        panels = panel_axes(figure, parts, sheet)
        lines: list[tuple[Curve, Line2D]] = []
        for axes, (_, here) in zip(panels, parts, strict=True):
            lines += _distributions(axes, here, 0.0, PRINTED_END, sheet)
            axes.set(xlim=(0, PRINTED_END), ylim=(0, 100))
            axes.set_xticks(np.arange(0, PRINTED_END + 0.01, 0.5 if sheet.is_narrow or len(parts) > 1 else 0.2))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{1000 * seconds:.0f}"))
            axes.set_yticks(range(0, 101, 20))
        name_axes(panels, "response time (ms)", "cumulative probability (%)", sheet)
        legend(figure, panels, shown, lines, lambda curve: _rank(curve.cell), sheet)
        return figure

    return Drawn(name, str(spec["title"]), caption, draw)


def _enlarged(parts: Sequence[Panel], curves: Sequence[Curve], floor: float, end: float, sheet: Sheet) -> Figure:
    """Where there are many panels, shows only the part in which curves differ."""
    figure = Figure(figsize=extent(parts, curves, 5.4, 2.7, sheet), layout="constrained")
    panels = panel_axes(figure, parts, sheet)
    lines: list[tuple[Curve, Line2D]] = []
    for axes, (_, shown) in zip(panels, parts, strict=True):
        lines += _distributions(axes, shown, enlarged.FROM_S, end, sheet)
        axes.set(xlim=(enlarged.FROM_S, end), ylim=(floor, 100 + 0.01 * (100 - floor)))
    name_axes(panels, "response time (s)", "exchanges completed (%)", sheet)
    legend(figure, panels, curves, lines, lambda curve: _rank(curve.cell), sheet)
    return figure


def mean_cdf(cell: Cell) -> Array:
    """Distribution function at `CDF_TIMES`, mean over runs."""
    return np.asarray(np.mean([window.cdf for window in cell.windows], axis=0))


def mean_tail(cell: Cell) -> Array:
    """Share of exchanges slower than `TAIL_TIMES`, mean over runs."""
    return np.asarray(np.mean([window.tail for window in cell.windows], axis=0))


def completed(cell: Cell) -> float:
    """Exchanges of all runs."""
    return float(sum(window.completed.sum() for window in cell.windows))


def _with_exchanges(curves: Sequence[Curve]) -> list[Curve]:
    return [curve for curve in curves if completed(curve.cell) > 0]


def _without(every: Sequence[Curve], shown: Sequence[Curve]) -> str:
    """Which curves have no exchanges."""
    lost = [curve.label for curve in every if curve not in shown]
    return f" No exchange is complete: {named(lost)}." if lost else ""


def _rank(cell: Cell) -> float:
    """By the enlarged part, where curves are told apart."""
    return float(mean_cdf(cell)[index(enlarged.FROM_S) :].mean())


def _lines(curves: Sequence[Curve], start: float, end: float) -> Lines:
    kept = (start - 1e-9 <= CDF_TIMES) & (end + 1e-9 >= CDF_TIMES)
    return [(curve, CDF_TIMES[kept], 100 * mean_cdf(curve.cell)[kept]) for curve in curves]


def _distributions(
    axes: Axes, curves: Sequence[Curve], start: float, end: float, sheet: Sheet, thin: float = 1.0
) -> Drawings:
    lines = _lines(curves, start, end)
    drawn = []
    for k, ((curve, times, shares), wider) in enumerate(zip(lines, widths_of(lines), strict=True)):
        line = curve.line(sheet, k, times.size)
        line["linewidth"] *= thin * wider
        drawn.append((curve, axes.plot(times, shares, **line)[0]))
    return drawn


def _floor(curves: Sequence[Curve], end: float) -> float:
    """Where the enlarged part begins, per cent."""
    shares = [(100 * mean_cdf(curve.cell), curve.cell.uncongested) for curve in curves]
    return enlarged.floor(shares, min(enlarged.FROM_S, 0.5 * end))


def ccdf(name: str, spec: Json, curves: Sequence[Curve]) -> Drawn | None:
    """Share of exchanges that take longer than a time."""
    every, curves = curves, _with_exchanges(curves)
    if not curves:
        return None
    caption = (
        f"{LONGER} A curve ends where fewer than {FEWEST_LEFT} exchanges are left. {_sizes(curves)}. {CUT_OFF}"
        f"{_without(every, curves)}{wider_said([_tails(shown) for _, shown in panels_of(spec, curves)], is_log=True)}"
    )

    def draw(sheet: Sheet) -> Figure:
        parts = panels_of(spec, curves)
        figure = Figure(figsize=extent(parts, curves, 5.0, 4.0, sheet), layout="constrained")
        grid = panel_axes(figure, parts, sheet)
        lowest, longest, drawn = 1.0, 2.0, []
        for axes, (_, shown) in zip(grid, parts, strict=True):
            lines = _tails(shown)
            for k, ((curve, times, shares), wider) in enumerate(zip(lines, widths_of(lines, is_log=True), strict=True)):
                if times.size:
                    lowest, longest = min(lowest, float(shares[-1])), max(longest, float(times[-1]))
                    line = curve.line(sheet, k, times.size)
                    line["linewidth"] *= wider
                    drawn.append((curve, axes.plot(times, shares, **line)[0]))
        for axes in grid:
            axes.set(xscale="log", yscale="log", xlim=(0.02, longest * 1.1), ylim=(max(lowest * 0.7, 1e-4), 110))
            logarithmic(axes.xaxis)
            logarithmic(axes.yaxis)
        name_axes(grid, "response time (s)", "exchanges that take longer (%)", sheet)
        legend(figure, grid, curves, drawn, lambda curve: _slowest(curve.cell), sheet)
        return figure

    return Drawn(name, str(spec["title"]), caption, draw)


def _tails(curves: Sequence[Curve]) -> Lines:
    return [(curve, *_tail(curve.cell)) for curve in curves]


def _tail(cell: Cell) -> tuple[Array, Array]:
    """Times, and per cent that take longer, as far as enough are left."""
    tail = mean_tail(cell)
    kept = tail >= FEWEST_LEFT / completed(cell)
    return TAIL_TIMES[kept], 100 * tail[kept]


def _slowest(cell: Cell) -> float:
    """Above the others at 1 to 10 s comes first."""
    tail = mean_tail(cell)[(TAIL_TIMES >= 1) & (TAIL_TIMES <= 10)]
    return float(np.log(np.maximum(tail, 1e-9)).mean())


def _precision(curves: Sequence[Curve]) -> str:
    """Which intervals the curves have, and the widest of any at some times."""
    found, widths = [], []
    for curve in curves:
        windows, own = curve.cell.windows, {}
        for time_s in MARKED_TIMES:
            k = index(time_s)
            values, parts = [float(w.cdf[k]) for w in windows], [w.trusted(w.cdf_parts[:, k]) for w in windows]
            one = statistics.estimate(values, parts)
            found.append((curve.label, one))
            if one.half_width is not None and has_interval(one):
                own[time_s] = one.half_width
        widths += [own] if own else []
    if not widths:
        return f"; {bases_said(found)}"
    return f"; intervals {widest_said(widths)} ({bases_said(found)})"


def _sizes(curves: Sequence[Curve]) -> str:
    counts = [completed(curve.cell) for curve in curves]
    return runs_said([curve.cell for curve in curves], counts, "exchanges")
