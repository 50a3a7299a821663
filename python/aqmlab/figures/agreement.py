"""Simulated against live: response times of the same variant as several witnesses have them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from aqmlab.agreement.verdicts import DISTANCE
from aqmlab.comparison import Column
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.legends import INSIDE, inside, wrapped
from aqmlab.figures.looks import GRID, MUTED, Look, void_note
from aqmlab.figures.sheet import Sheet
from aqmlab.figures.ticks import plain
from aqmlab.statistics import Array

FEWEST_BEYOND = 10
"""Exchanges that must lie beyond a quantile for it to be drawn."""


def witness_panels(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn | None:
    """A row for each variant: the distributions over each other, and the quantiles against each other."""
    pairs = _pairs(columns)
    if not pairs:
        return None
    shown = [column for simulated, others in pairs for column in (simulated, *others)]
    caption = (
        "Left: share of exchanges complete within a time, as each witness has it; the band is "
        f"{100 * DISTANCE:g} points above and below the simulator. Right: quantiles of the live response times against "
        "the simulated ones, from the 1st percentile to where 10 exchanges are left; dots at 10, 25, 50, 75, 90, 95 "
        f"and 99 %; on the line both are equal.{void_note(shown)}"
    )
    rows = [[_Sample.of(column, looks[column.name]) for column in (simulated, *others)] for simulated, others in pairs]
    return Drawn("agreement", "Simulated and live", caption, partial(_panels, rows))


@dataclass(frozen=True)
class _Sample:
    """Response times as a witness has them."""

    subject: str
    who: str
    look: Look
    times: Array

    @staticmethod
    def of(column: Column, look: Look) -> "_Sample":
        runs = [run.exchanges["response_time_s"].to_numpy() for run in column.result.runs]
        return _Sample(column.subject, _who(column), look, np.sort(np.concatenate(runs)).astype(np.float64))


def _panels(rows: Sequence[Sequence[_Sample]], sheet: Sheet) -> Figure:
    across = 1 if sheet.is_narrow else 2
    down = len(rows) * 2 // across
    figure = Figure(figsize=sheet.size(0.5 + 3.6 * down), layout="constrained")
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    for k, samples in enumerate(rows):
        _distributions(grid[2 * k], samples, sheet)
        _quantiles(grid[2 * k + 1], samples, sheet)
    return figure


def _pairs(columns: Sequence[Column]) -> list[tuple[Column, list[Column]]]:
    """Each simulated variant with its witnesses, as far as they have exchanges."""
    found = []
    for simulated in columns:
        if simulated.witness != "simulated" or not _has_exchanges(simulated):
            continue
        others = [c for c in columns if c.subject == simulated.subject and c.witness != "simulated"]
        others = [column for column in others if _has_exchanges(column)]
        if others:
            found.append((simulated, others))
    return found


def _has_exchanges(column: Column) -> bool:
    return column.completed > 0 and all(run.has_exchanges for run in column.result.runs)


def _distributions(axes: Axes, samples: Sequence[_Sample], sheet: Sheet) -> None:
    lows, highs = zip(*(np.quantile(one.times, (0.005, 0.995)) for one in samples), strict=True)
    at = np.geomspace(max(min(lows), 1e-4), max(highs), 400)
    keys = []
    for k, one in enumerate(samples):
        share = np.searchsorted(one.times, at, side="right") / one.times.size
        if k == 0:
            axes.fill_between(
                at,
                100 * np.clip(share - DISTANCE, 0, 1),
                100 * np.clip(share + DISTANCE, 0, 1),
                color=one.look.color,
                alpha=0.13,
                linewidth=0,
            )
        keys.append((axes.plot(at, 100 * share, **one.look.line(sheet))[0], one.who))
    axes.set(xscale="log", xlim=(at[0], at[-1]), ylim=(0, 100))
    axes.set(xlabel="response time (s)", ylabel="exchanges completed (%)")
    axes.set_title(wrapped(samples[0].subject, INSIDE, "bold"))
    inside(axes, keys, "lower right")
    _plain_numbers(axes, both=False)


def _quantiles(axes: Axes, samples: Sequence[_Sample], sheet: Sheet) -> None:
    low, high = np.inf, 0.0
    keys = []
    simulated, *others = samples
    for one in others:
        pair = simulated.times, one.times
        last = 1 - FEWEST_BEYOND / min(times.size for times in pair)
        if last <= 0.5:
            continue
        shares = np.unique(np.concatenate([np.linspace(0.01, 0.99, 99), 1 - np.geomspace(0.01, 1 - last, 30)]))
        x, y = (np.quantile(times, shares[shares <= last]) for times in pair)
        keys.append((axes.plot(x, y, **one.look.line(sheet))[0], one.who))
        marks = [share for share in (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99) if share <= last]
        axes.plot(
            np.quantile(pair[0], marks),
            np.quantile(pair[1], marks),
            "o",
            color=one.look.color,
            markersize=sheet.points(4),
            zorder=6,
        )
        low, high = min(low, float(min(x[0], y[0]))), max(high, float(max(x[-1], y[-1])))
    if high <= 0:
        axes.set_visible(False)
        return
    ends = (0.85 * low, high / 0.85)
    axes.plot(ends, ends, color=MUTED, linewidth=sheet.points(1), zorder=2)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set(xlabel="simulated response time (s)", ylabel="live response time (s)")
    axes.grid(color=GRID)
    if len(others) > 1:
        inside(axes, keys, "upper left")
    _plain_numbers(axes, both=True)


def _who(column: Column) -> str:
    words = {"simulated": "simulated", "live": "live, real time", "virtual": "live, virtual time"}
    said = words.get(column.witness, f"the {column.witness}'s own")
    return f"{said} (void)" if column.void else said


def _plain_numbers(axes: Axes, both: bool) -> None:
    for axis in (axes.xaxis, axes.yaxis) if both else (axes.xaxis,):
        axis.set_major_formatter(FuncFormatter(plain))
        axis.set_minor_formatter(NullFormatter())
