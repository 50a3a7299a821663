"""What single pages, films, calls and games got: a panel an application."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from aqmlab import applications, statistics
from aqmlab.comparison import Column
from aqmlab.figures import coinciding
from aqmlab.figures.apart import AROUND
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.legends import below, wrapped
from aqmlab.figures.looks import Look, void_note
from aqmlab.figures.sheet import Sheet
from aqmlab.results import readable
from aqmlab.statistics import Array

Curve = tuple[str, Look, Array, Array]

LACKING = {
    "pages": "A page that was not loaded by the end of the run took longer than it had been waited for (Kaplan and "
    "Meier 1958). Where the longest waits are of such pages, a curve ends below 100 %.",
    "live": "Frames that were lost count and have no place on the axis, so that a curve ends below 100 %.",
}
"""What is said of samples that have no place on the axis."""
NONE = {"pages": "none of the pages was loaded", "live": "none of the frames of real-time video came whole"}
"""Why there may be no curve."""


@dataclass(frozen=True)
class Panel:
    """An application: its curves, one a column, as values and per cent."""

    title: str
    axis: str
    curves: tuple[Curve, ...]


def application_distributions(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn | None:
    """Distributions of what people got, a panel an application; None where no block is of any."""
    seen = {column.name: [applications.samples(run) for run in column.result.runs] for column in columns}
    waited = {column.name: [applications.waits(run) for run in column.result.runs] for column in columns}
    panels, names, lacking, missing = [], [], [], []
    for one in applications.APPLICATIONS:
        found = [
            (
                column.label,
                looks[column.name],
                *(_steps(values) if one.waits is None else _begun(*_all_waits(waited[column.name], one.name))),
            )
            for column in columns
            if (values := _together(seen[column.name], one.name)).size
        ]
        curves = [curve for curve in found if curve[2].size]
        none = [label for label, _, at, _ in found if not at.size]
        if none and one.name in NONE:
            missing.append(f" {readable.listed(none)}: {NONE[one.name]}, so that there is no curve.")
        if curves:
            where = "to the right" if one.better > 0 else "to the left"
            panels.append(Panel(f"{one.title}: better {where}", one.axis, tuple(curves)))
            names.append(one.counted)
            if one.name in LACKING and any(np.isinf(_together(seen[name], one.name)).any() for name in seen):
                lacking.append(f" {LACKING[one.name]}")
    if not panels:
        return None
    each = f"{readable.listed(names)}, each counted by itself," if len(names) > 1 else names[0]
    caption = (
        f"Share of the {each} that got no more than the value on the horizontal axis."
        f"{''.join(lacking + missing)} All runs of a variant together."
        f"{coinciding.said([one for panel in panels for one in _widths(panel)])}{void_note(columns)}"
    )
    return Drawn("applications", "What people got", caption, partial(_drawn, panels))


def _together(runs: Sequence[dict[str, Array]], name: str) -> Array:
    found = [run[name] for run in runs if name in run and run[name].size]
    return np.sort(np.concatenate(found)) if found else np.empty(0)


def _steps(values: Array) -> tuple[Array, Array]:
    """The empirical distribution function, in per cent, of sorted values; endless ones have no place in it.

    Of endless ones alone it has no point.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return np.empty(0), np.empty(0)
    return _begun(finite, np.arange(1, finite.size + 1) / values.size)


def _all_waits(runs: Sequence[dict[str, tuple[Array, Array]]], name: str) -> tuple[Array, Array]:
    """The distribution of the waits of all runs."""
    found = [run[name] for run in runs if name in run]
    waited, over = (np.concatenate(both) for both in zip(*found, strict=True))
    return statistics.distribution_of_waits(waited, over)


def _begun(at: Array, share: Array) -> tuple[Array, Array]:
    """A distribution function in per cent, from nought on."""
    return np.concatenate([at[:1], at]), np.concatenate([[0.0][: at.size], 100 * share])


def _widths(panel: Panel) -> list[float]:
    return coinciding.widths_along([(look, at, share) for _, look, at, share in panel.curves], in_steps=True)


def _drawn(panels: Sequence[Panel], sheet: Sheet) -> Figure:
    keys = max(len(panel.curves) for panel in panels)
    across, down, size = sheet.grid(len(panels), 3.2, 0.25 * keys)
    figure = Figure(figsize=size, layout="constrained")
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    lines: dict[str, Line2D] = {}
    for axes, panel in zip(grid, panels, strict=False):
        wider = _widths(panel)
        for (label, look, at, share), width in zip(panel.curves, wider, strict=True):
            own = look.line(sheet)
            (line,) = axes.plot(at, share, drawstyle="steps-post", **{**own, "linewidth": width * own["linewidth"]})
            lines.setdefault(label, coinciding.key(line, look, sheet))
        room = sheet.ems / across - AROUND
        axes.set_title(wrapped(panel.title, room, "bold"))
        axes.set(xlabel=wrapped(panel.axis, room), ylabel="share (%)", ylim=(0, 100))
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    if len(lines) > 1:
        below(figure, [(line, label) for label, line in lines.items()], sheet)
    return figure
