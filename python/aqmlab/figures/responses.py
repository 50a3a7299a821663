"""Response times: the distribution to 2 s as the studies draw it, and the tail."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullFormatter

from aqmlab import units
from aqmlab.comparison import Column
from aqmlab.figures.looks import MUTED, PAPER, Drawn, Look, finish, void_note
from aqmlab.window import CDF_TIMES, TAIL_TIMES


def response_cdf(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn:
    """Distribution of response times to 2 s, as in the studies' figures."""
    widths = [_cdf_half_width(column) for column in columns]
    known = [width for width in widths if width is not None]
    precision = ""
    if known:
        several = min(len(c.result.runs) for c in columns) > 1
        where = "across runs" if several else "from 20 parts within the one run"
        precision = f"; 95 % interval at most ±{100 * max(known):.1f} points ({where})"
    caption = (
        "Share of exchanges whose response is complete within the time on the horizontal axis; higher is better. "
        f"{_sizes(columns)}{precision}.{void_note(columns)}"
    )

    def draw() -> Figure:
        figure = Figure(figsize=(9.4, 5.4), layout="constrained")
        axes = figure.add_subplot()
        for column in columns:
            axes.plot(CDF_TIMES, 100 * column.cdf, label=column.label, **looks[column.name].line())
        axes.set(xlim=(0, 2), ylim=(0, 100), xlabel="response time (s)", ylabel="exchanges completed (%)")
        axes.set_xticks(np.arange(0, 2.01, 0.25))
        axes.set_yticks(range(0, 101, 10))
        _legend_beside(axes, columns, lambda column: float(column.cdf[-1]))
        backing = Rectangle((0.375, 0.012), 0.62, 0.575, transform=axes.transAxes, color=PAPER, linewidth=0, zorder=2.5)
        axes.add_patch(backing)
        inset = axes.inset_axes((0.43, 0.075, 0.55, 0.44))
        _zoom(inset, columns, looks)
        return figure

    return finish("response-cdf", "Response times", caption, draw)


def _cdf_half_width(column: Column) -> float | None:
    marks = [int(np.searchsorted(CDF_TIMES, t - 1e-9)) for t in (0.1, 0.2, 0.3, 0.5, 1.0)]
    widths = [
        column.statistic(lambda w, k=k: float(w.cdf[k]), lambda w, k=k: w.cdf_parts[:, k]).half_width  # type: ignore[misc]
        for k in marks
    ]
    known = [width for width in widths if width is not None]
    return max(known) if known else None


def _zoom(axes: Axes, columns: Sequence[Column], looks: dict[str, Look]) -> None:
    """The upper part once more, enlarged: where timeouts show and disciplines part."""
    congested = [column for column in columns if not column.uncongested] or list(columns)
    start = int(np.searchsorted(CDF_TIMES, 0.4))
    low = min(float(column.cdf[start]) for column in congested)
    for column in columns:
        look = looks[column.name].line()
        axes.plot(CDF_TIMES, 100 * column.cdf, **{**look, "linewidth": look["linewidth"] * 0.85})
    floor = 5 * np.floor(100 * low / 5)
    axes.set(xlim=(0.4, 2), ylim=(floor, 100.4))
    axes.set_xticks(np.arange(0.5, 2.01, 0.25))
    axes.tick_params(labelsize=8.5, length=2)
    title = f"enlarged: from 0.4 s and {floor:.0f} %"
    axes.set_title(title, fontsize=9, color=MUTED, fontweight="normal", pad=4)


def _legend_beside(axes: Axes, columns: Sequence[Column], rank: Callable[[Column], float]) -> None:
    """A legend beside the curves, best first, as the curves stand at the right edge."""
    if len(columns) < 2:
        return
    handles, labels = axes.get_legend_handles_labels()
    at = {label: handle for handle, label in zip(handles, labels, strict=True)}
    order = sorted(columns, key=rank, reverse=True)
    axes.legend(
        [at[column.label] for column in order],
        [column.label for column in order],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        labelspacing=0.75,
    )


def response_tail(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn:
    """The tail on logarithmic axes: share of exchanges slower than a time."""
    caption = (
        "Share of exchanges that take longer than the time on the horizontal axis, both axes logarithmic; lower is "
        f"better. A curve ends where fewer than 10 exchanges are left. {_sizes(columns)}. Exchanges that the end of "
        f"the window cut off are not in it, so the far tail is too low.{void_note(columns)}"
    )

    def draw() -> Figure:
        figure = Figure(figsize=(9.4, 5.0), layout="constrained")
        axes = figure.add_subplot()
        lowest, longest = 1.0, 2.0
        for column in columns:
            shown = column.tail >= 10 / max(column.completed, 1)
            times, shares = TAIL_TIMES[shown], 100 * column.tail[shown]
            if not times.size:
                continue
            lowest, longest = min(lowest, float(shares[-1])), max(longest, float(times[-1]))
            axes.plot(times, shares, label=column.label, **looks[column.name].line())
        axes.set(xscale="log", yscale="log", xlim=(0.02, longest * 1.1), ylim=(max(lowest * 0.7, 1e-4), 110))
        axes.set(xlabel="response time (s)", ylabel="exchanges that take longer (%)")
        axes.xaxis.set_major_formatter(FuncFormatter(_plain))
        axes.yaxis.set_major_formatter(FuncFormatter(_plain))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
        _legend_beside(axes, [c for c in columns if (c.tail > 0).any()], lambda column: -_quantile(column, 0.999))
        return figure

    return finish("response-tail", "The slowest exchanges", caption, draw)


def _plain(value: float, _position: int | None = None) -> str:
    return f"{value:g}"


def _quantile(column: Column, share: float) -> float:
    return float(TAIL_TIMES[min(int(np.searchsorted(-column.tail, -(1 - share))), TAIL_TIMES.size - 1)])


def _sizes(columns: Sequence[Column]) -> str:
    counts = sorted(column.completed for column in columns)
    runs = {len(column.result.runs) for column in columns}
    low, high = units.say_count(counts[0]), units.say_count(counts[-1])
    said = f"n = {low} exchanges" if low == high else f"n = {low} to {high} exchanges a curve"
    each = " each" if len(columns) > 1 else ""
    return f"{said}, {'/'.join(map(str, sorted(runs)))} run{'s' if runs != {1} else ''}{each}"
