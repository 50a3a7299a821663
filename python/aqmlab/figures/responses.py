"""Response times: the distribution to 2 s as the studies draw it, and the tail."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from aqmlab import statistics, units
from aqmlab.comparison import Column
from aqmlab.figures import coinciding, enlarged
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.legends import legend
from aqmlab.figures.looks import Look, void_note
from aqmlab.figures.sheet import Sheet
from aqmlab.figures.ticks import plain
from aqmlab.results import readable, video
from aqmlab.results.exchanges import index
from aqmlab.results.readable import listed
from aqmlab.results.window import CDF_TIMES, TAIL_TIMES, Window
from aqmlab.statistics import Array

MARKED_TIMES = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
"""Where the precision of a distribution is asked, seconds."""
WITHIN = "Share of exchanges whose response is complete within the time on the horizontal axis; higher is better."
"""What a distribution shows."""
LONGER = (
    "Share of exchanges that take longer than the time on the horizontal axis, both axes logarithmic; lower is better."
)
"""What a tail shows."""
PIECES = {"pages": "one object of a page", video.KIND: "one segment of a film"}
"""What of an application is a single exchange."""
CUT_OFF = "Exchanges that take longer than the warm-up are not all in it, so the far tail is too low."
"""What is missing in a tail: what began before the run did cannot be done in its window."""
FEWEST_LEFT = 10
"""Exchanges that a tail is drawn down to."""
FEWEST_FOR_A_BAND = 3
"""Runs: the t-interval of two is as wide as the figure."""


@dataclass(frozen=True)
class Curve:
    """A distribution: its name and look, and per cent at some times."""

    label: str
    look: Look
    times: Array
    shares: Array
    band: tuple[Array, Array] | None
    """Ends of the 95 % t-interval across runs at each time, where there are several."""
    rank: float
    """The highest is the first in the legend."""
    is_reference: bool

    @property
    def lowest(self) -> Array:
        """The lower end of its band, where it has one, else itself; per cent at each time."""
        return self.shares if self.band is None else self.band[0]

    def draw(self, axes: Axes, sheet: Sheet, wider: float = 1.0) -> Line2D:
        """Draws the curve as a line, so many times wider than its look, with its band."""
        line = self.look.line(sheet)
        if self.band is not None:
            axes.fill_between(
                self.times, *self.band, color=self.look.color, alpha=0.18, linewidth=0, zorder=self.look.layer - 0.5
            )
        return axes.plot(self.times, self.shares, **{**line, "linewidth": wider * line["linewidth"]})[0]


def _draw(axes: Axes, curves: Sequence[Curve], sheet: Sheet, start: float = 0.0, is_log: bool = False) -> list[Line2D]:
    """Draws curves of which those from `start` on are seen: what lies beneath others is wider."""
    seen = [curve.times >= start - 1e-9 for curve in curves]
    shown = [(curve.look, curve.times[part], curve.shares[part]) for curve, part in zip(curves, seen, strict=True)]
    wider = coinciding.widths(shown, is_log)
    thin = 1.0 if start == 0 else enlarged.THINNER
    return [curve.draw(axes, sheet, thin * one) for curve, one in zip(curves, wider, strict=True)]


def response_cdf(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn:
    """Distribution of response times to 2 s, as in the studies' figures."""
    widths = [found for column in columns if (found := _cdf_half_widths(column))]
    precision = ""
    if widths:
        several = min(len(c.result.runs) for c in columns) > 1
        where = "across runs" if several else "from 20 parts within the one run"
        whose = "" if len(widths) == len(columns) else f" of the {len(widths)} of {len(columns)} curves that have one"
        precision = f"; 95 % interval {widest_said(widths)}{whose} ({where})"
    curves = [
        Curve(
            column.label,
            looks[column.name],
            CDF_TIMES,
            100 * column.cdf,
            _band(column, lambda window: window.cdf),
            float(column.cdf[-1]),
            column.uncongested,
        )
        for column in columns
    ]
    within = " ".join(filter(None, (_exchange_said(columns), WITHIN)))
    caption = f"{within} {_sizes(columns)}{precision}.{_bands_said(curves)}{_wider_said(curves)}{void_note(columns)}"
    return Drawn("response-cdf", "Response times", caption, partial(_distributions, curves))


def _exchange_said(columns: Sequence[Column]) -> str:
    """What an exchange is to people, where tables say what these get of whole pages and films; else nothing."""
    there = {name for column in columns for numbers in column.result.numbers for name in numbers.applications}
    if not there:
        return ""
    pieces = ", ".join(said for name, said in PIECES.items() if name in there)
    return f"An exchange is one request and its answer{f': {pieces}' if pieces else ''}."


def _distributions(curves: Sequence[Curve], sheet: Sheet) -> Figure:
    floor = enlarged.floor([(curve.shares, curve.is_reference) for curve in curves])
    is_worth_it = enlarged.is_larger(floor)
    is_below = sheet.is_narrow and is_worth_it
    figure = Figure(figsize=sheet.size(7.6 if is_below else 5.4), layout="constrained")
    axes, *under = figure.subplots(2 if is_below else 1, 1, squeeze=False).flat
    lines = _draw(axes, curves, sheet)
    axes.set(xlim=(0, 2), ylim=(0, 100), xlabel="response time (s)", ylabel="exchanges completed (%)")
    axes.set_xticks(np.arange(0, 2.01, 0.5 if sheet.is_narrow else 0.25))
    axes.set_yticks(range(0, 101, 20 if sheet.is_narrow else 10))
    if is_below:
        _zoom(under[0], curves, floor, sheet)
        under[0].set(xlabel="response time (s)", ylabel="exchanges completed (%)")
    elif is_worth_it and enlarged.is_free([curve.lowest for curve in curves]):
        _zoom(enlarged.inset(axes, sheet), curves, floor, sheet)
    if len(curves) > 1:
        legend(figure, axes, _best_first(curves, lines, sheet), sheet)
    return figure


def _zoom(axes: Axes, curves: Sequence[Curve], floor: float, sheet: Sheet) -> None:
    """The upper part once more."""
    _draw(axes, curves, sheet, enlarged.FROM_S)
    enlarged.span(axes, floor, sheet)


def _best_first(curves: Sequence[Curve], lines: Sequence[Line2D], sheet: Sheet) -> list[tuple[Line2D, str]]:
    """Lines and names as the curves stand at the right edge."""
    order = sorted(range(len(curves)), key=lambda k: curves[k].rank, reverse=True)
    return [(coinciding.key(lines[k], curves[k].look, sheet), curves[k].label) for k in order]


def response_tail(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn:
    """The tail on logarithmic axes: share of exchanges slower than a time."""
    curves = []
    for column in columns:
        shown = column.tail >= FEWEST_LEFT / max(column.completed, 1)
        band = _band(column, lambda window: window.tail)
        curves.append(
            Curve(
                column.label,
                looks[column.name],
                TAIL_TIMES[shown],
                100 * column.tail[shown],
                None if band is None else (band[0][shown], band[1][shown]),
                -_quantile(column, 0.999),
                column.uncongested,
            )
        )
    caption = (
        f"{LONGER} A curve ends where fewer than {FEWEST_LEFT} exchanges are left. {_sizes(columns)}."
        f"{_bands_said(curves)}{_wider_said(curves, is_log=True)} {CUT_OFF}{void_note(columns)}"
    )
    return Drawn("response-tail", "The slowest exchanges", caption, partial(_tails, curves))


def _tails(curves: Sequence[Curve], sheet: Sheet) -> Figure:
    figure = Figure(figsize=sheet.size(5.4 if sheet.is_narrow else 5.0), layout="constrained")
    axes = figure.add_subplot()
    drawn = [curve for curve in curves if curve.times.size]
    lines = _draw(axes, drawn, sheet, is_log=True)
    lowest = min((float(curve.shares[-1]) for curve in drawn), default=1.0)
    longest = max((float(curve.times[-1]) for curve in drawn), default=2.0)
    axes.set(
        xscale="log", yscale="log", xlim=(0.02, max(longest, 2.0) * 1.1), ylim=(max(min(lowest, 1.0) * 0.7, 1e-4), 110)
    )
    axes.set(xlabel="response time (s)", ylabel="exchanges that take longer (%)")
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.yaxis.set_major_formatter(FuncFormatter(plain))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    if len(drawn) > 1:
        legend(figure, axes, _best_first(drawn, lines, sheet), sheet)
    return figure


def _band(column: Column, share: Callable[[Window], Array]) -> tuple[Array, Array] | None:
    """Ends of the t-interval across runs at each time, per cent."""
    runs = 100 * np.array([share(window) for window in column.windows])
    return band(runs) if runs.shape[0] >= FEWEST_FOR_A_BAND and np.isfinite(runs).all() else None


def band(runs: Array) -> tuple[Array, Array]:
    """Ends of the 95 % t-interval of the mean, per cent, of curves that are a row for each run."""
    mean, around = runs.mean(axis=0), statistics.half_widths(runs)
    return np.clip(mean - around, 0, 100), np.clip(mean + around, 0, 100)


def _bands_said(curves: Sequence[Curve]) -> str:
    return (
        " Bands: 95 % t-intervals across runs, of each time by itself."
        if any(curve.band is not None for curve in curves)
        else ""
    )


def _wider_said(curves: Sequence[Curve], is_log: bool = False) -> str:
    return coinciding.said(coinciding.widths([(curve.look, curve.times, curve.shares) for curve in curves], is_log))


def _cdf_half_widths(column: Column) -> dict[float, float]:
    """The half width at each of the marked times that has one: none at which nothing happens."""
    found = {
        time_s: column.statistic(lambda w, k=k: float(w.cdf[k]), lambda w, k=k: w.cdf_parts[:, k]).half_width  # type: ignore[misc]
        for time_s, k in zip(MARKED_TIMES, map(index, MARKED_TIMES), strict=True)
    }
    return {time_s: width for time_s, width in found.items() if width is not None}


def widest_said(widths: Sequence[Mapping[float, float]]) -> str:
    """The widest half width of any curve, and at which of the marked times there are such."""
    widest = max(max(found.values()) for found in widths)
    too_wide = [time_s for time_s in MARKED_TIMES if any(_is_too_wide(found.get(time_s, 0.0)) for found in widths)]
    if too_wide:
        return (
            f"longer than the scale at {listed([f'{time_s:g}' for time_s in too_wide])} s, for there are too few runs"
        )
    times = [f"{time_s:g}" for time_s in MARKED_TIMES if any(time_s in found for found in widths)]
    return f"at most ± {100 * widest:.1f} points at {listed(times)} s"


def _is_too_wide(width: float) -> bool:
    return readable.is_too_wide(width, readable.POSSIBLE["share"])


def _quantile(column: Column, share: float) -> float:
    return float(TAIL_TIMES[min(int(np.searchsorted(-column.tail, -(1 - share))), TAIL_TIMES.size - 1)])


def _sizes(columns: Sequence[Column]) -> str:
    counts = sorted(column.completed for column in columns)
    runs = {len(column.result.runs) for column in columns}
    low, high = units.say_count(counts[0]), units.say_count(counts[-1])
    said = f"n = {low} exchanges" if low == high else f"n = {low} to {high} exchanges a curve"
    each = " each" if len(columns) > 1 else ""
    return f"{said}, {'/'.join(map(str, sorted(runs)))} run{'s' if runs != {1} else ''}{each}"
