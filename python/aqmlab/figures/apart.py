"""What a comparison holds together, each by itself: response times of blocks of traffic, delay and loss of probes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from aqmlab import separately
from aqmlab.comparison import Comparison
from aqmlab.figures import coinciding
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.legends import below, wrapped
from aqmlab.figures.looks import Look, void_note
from aqmlab.figures.responses import FEWEST_FOR_A_BAND, band
from aqmlab.figures.sheet import Sheet
from aqmlab.figures.ticks import plain
from aqmlab.results.run import Run
from aqmlab.statistics import Array

POINTS = 300
"""Of a curve."""
STEPS = 100
"""Times at which a tail is drawn for even shares of all packets, and as many for even ratios of those that are left."""
MOST_BANDS = 3
"""Curves of a tail: on a logarithmic axis bands about more of them fill the panel."""
FEWEST_LEFT = 10
"""Packets: where fewer are left, a curve of what takes longer ends."""
AROUND = 8.0
"""What the numbers beside a panel take of its width, in sizes of the type."""


@dataclass(frozen=True)
class Panel:
    """A block or a direction: its curves, one a column, as times and per cent."""

    title: str
    curves: tuple[tuple[str, Look, Array, Array], ...]
    bands: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """By curve the ends of the 95 % t-interval of its runs' mean at each of its times, where there are several runs."""


@dataclass(frozen=True)
class Shares:
    """What is drawn of sorted times: where, from the least and the greatest time of a panel, and per cent there."""

    at: Callable[[Array, float, float], Array]
    of: Callable[[Array, Array], Array]


def block_responses(found: Comparison, looks: dict[str, Look]) -> Drawn | None:
    """Distributions of response times, a panel a block; None where there is one block only."""
    named = separately.blocks(found)
    if not named:
        return None
    panels = _panels(found, looks, named, _responses, COMPLETED, (0.005, 0.995))
    others = "".join(f" traffic.{block}: {said}" for block in named if (said := separately.others(found, block)))
    caption = (
        "Share of the exchanges of each block whose response is complete within the time on the horizontal axis, which "
        "is logarithmic; higher is better. Each panel reaches from the fastest to the slowest half per cent. All runs "
        f"of a variant together.{bands_said(panels)}{others}{void_note(found.columns)}"
    )
    draw = partial(panels_drawn, panels, ("response time (s)", "exchanges completed (%)"), False)
    return Drawn("blocks", "Each block of traffic", caption, draw)


def probe_delays(found: Comparison, looks: dict[str, Look]) -> Drawn | None:
    """Delay and loss of probes, a panel a direction; None where they run one way only."""
    named = separately.ways(found)
    if not named:
        return None
    panels = _panels(found, looks, named, _delays, LONGER, (0.0, 1.0))
    bands = bands_said(panels)
    if bands and max(len(panel.curves) for panel in panels) > MOST_BANDS:
        panels = [replace(panel, bands={}) for panel in panels]
        bands = f" Of more than {MOST_BANDS} curves bands would hide each other, and none are drawn."
    wider = coinciding.said([one for panel in panels for one in _widths(panel, is_tail=True)])
    caption = (
        "Share of the probes' packets that take longer from end to end than the time on the horizontal axis, or are "
        "lost; lower is better. Vertical axis logarithmic. A curve that is level to the end is at the share lost. "
        f"It ends where fewer than {FEWEST_LEFT} packets are left. All runs of a variant together."
        f"{bands}{wider} {separately.together(found)}{void_note(found.columns)}"
    )
    draw = partial(panels_drawn, panels, ("one-way delay (ms)", "longer or lost (%)"), True)
    return Drawn("probes", "Probes each way", caption, draw)


def bands_said(panels: Sequence[Panel]) -> str:
    """A sentence of a caption on what bands are, where there are some."""
    return " Bands: 95 % t-intervals of the mean over runs." if any(panel.bands for panel in panels) else ""


def _panels(
    found: Comparison,
    looks: dict[str, Look],
    named: Mapping[int, str],
    read: Callable[[Run], dict[int, Array]],
    shares: Shares,
    span: tuple[float, float],
) -> list[Panel]:
    """Curves from the first to the last of these quantiles of any column of a panel."""
    seen = {column.name: [read(run) for run in column.result.runs] for column in found.columns}
    panels = []
    for key, title in named.items():
        each_of = [[run.get(key, np.empty(0)) for run in seen[column.name]] for column in found.columns]
        all_of = [np.sort(np.concatenate(each)) for each in each_of]
        ends = [np.quantile(times[np.isfinite(times)], span) for times in all_of if np.isfinite(times).any()]
        low, high = (min(e[0] for e in ends), max(e[1] for e in ends)) if ends else (0.01, 1.0)
        curves, bands = [], {}
        for column, times, each in zip(found.columns, all_of, each_of, strict=True):
            if times.size:
                at = shares.at(times, low, high)
                curves.append((column.label, looks[column.name], at, shares.of(times, at)))
                runs = [shares.of(np.sort(one), at) for one in each if one.size]
                if len(runs) >= FEWEST_FOR_A_BAND:
                    bands[column.label] = band(np.array(runs))
        panels.append(Panel(title, tuple(curves), bands))
    return panels


def _responses(run: Run) -> dict[int, Array]:
    return _by(run, "exchanges", "traffic", pl.col("response_time_s"))


def _delays(run: Run) -> dict[int, Array]:
    """In milliseconds; endless where a packet was lost."""
    return _by(run, "probes", "direction", pl.col("delay_s").fill_null(float("inf")) * 1e3)


def _by(run: Run, table: str, key: str, times: pl.Expr) -> dict[int, Array]:
    rows = pl.scan_parquet(run.folder / f"{table}.parquet").group_by(key).agg(times.alias("times")).collect()
    return {int(k): np.asarray(found, dtype=np.float64) for k, found in rows.iter_rows()}


def _evenly(_times: Array, low: float, high: float) -> Array:
    return np.geomspace(max(low, 1e-4), max(high, 2e-4), POINTS)


def _completed(times: Array, at: Array) -> Array:
    return 100 * np.searchsorted(times, at, side="right") / times.size


def _steps(times: Array, _low: float, high: float) -> Array:
    """Times of its own, each just before and as packets arrive, to where too few are left, or to the longest delay."""
    if times.size < FEWEST_LEFT:
        return np.zeros(0)
    even, ratios = (space(FEWEST_LEFT, times.size, STEPS) for space in (np.linspace, np.geomspace))
    arrived = times[np.isfinite(times)]
    reached = times[times.size - np.concatenate([even, ratios]).astype(np.int64)]
    steps = np.concatenate([reached[np.isfinite(reached)], arrived[-1:]])
    at = np.unique(np.concatenate([[0.0], np.nextafter(steps, 0.0), steps, [1.05 * high]]))
    return at[_left(times, at) >= FEWEST_LEFT]


def _left(times: Array, at: Array) -> npt.NDArray[np.int64]:
    return times.size - np.searchsorted(times, at, side="right")


def _longer(times: Array, at: Array) -> Array:
    return 100 * _left(times, at) / times.size


COMPLETED, LONGER = Shares(_evenly, _completed), Shares(_steps, _longer)


def _widths(panel: Panel, is_tail: bool) -> list[float]:
    lines = [(look, at, share) for _, look, at, share in panel.curves]
    return coinciding.widths_along(lines, is_log=True) if is_tail else coinciding.widths(lines)


def panels_drawn(panels: Sequence[Panel], labels: tuple[str, str], is_tail: bool, sheet: Sheet) -> Figure:
    """Draws panels beside each other, with their names below. `labels` are those of the axes.

    Of a tail the vertical axis is logarithmic, of another distribution the horizontal one.
    """
    keys = max(len(panel.curves) for panel in panels)
    across, down, size = sheet.grid(len(panels), 3.4, 0.25 * keys)
    figure = Figure(figsize=size, layout="constrained")
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    lines: dict[str, Line2D] = {}
    for axes, panel in zip(grid, panels, strict=False):
        for (label, look, at, share), width in zip(panel.curves, _widths(panel, is_tail), strict=True):
            own = look.line(sheet)
            if label in panel.bands:
                looks = {"color": look.color, "alpha": 0.18, "linewidth": 0, "zorder": look.layer - 0.5}
                axes.fill_between(at, *panel.bands[label], **looks)
            (line,) = axes.plot(at, share, **{**own, "linewidth": width * own["linewidth"]})
            lines.setdefault(label, coinciding.key(line, look, sheet))
        axes.set_title(wrapped(panel.title, sheet.ems / across - AROUND, "bold"))
        axes.set(xlabel=labels[0], ylabel=labels[1])
        _scaled(axes, is_tail)
        if is_tail and panel.bands:  # which may reach down to nothing
            axes.set_ylim(bottom=0.6 * min(float(share.min()) for *_, share in panel.curves if share.size))
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    if len(lines) > 1:
        below(figure, [(line, label) for label, line in lines.items()], sheet)
    return figure


def _scaled(axes: Axes, is_tail: bool) -> None:
    if is_tail:
        axes.set_yscale("log")
        axes.set_ylim(top=110)
        axes.set_xlim(left=0)
    else:
        axes.set(xscale="log", ylim=(0, 100))
        axes.margins(x=0)
    axis = axes.yaxis if is_tail else axes.xaxis
    axis.set_major_formatter(FuncFormatter(plain))
    axis.set_minor_formatter(NullFormatter())
