"""Goodput against queueing delay, a mark for each point: the figure in which RFC 7928 (2.7) wants AQMs compared."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from aqmlab.figures.drawn import Drawn
from aqmlab.figures.looks import MUTED
from aqmlab.figures.plots import MARKS as READ_BY_MARKS
from aqmlab.figures.responses import FEWEST_FOR_A_BAND
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json
from aqmlab.statistics import Interval
from aqmlab.study.figures.curves import Curve
from aqmlab.study.figures.layout import across, extent, legend, logarithmic, name_axes, panels_of, runs_said, set_titles
from aqmlab.study.measured import Asked, asked_of, has_interval

MARKS = ("o", "s", "^", "D", "v", "P", "X")
SAID = ("●", "■", "▲", "◆", "▼", "✚", "✖")
"""The same marks in words of a caption."""
LOGARITHMIC = 8.0
"""Delays further apart than this times are drawn on a logarithmic axis."""
X, Y = "queue_delay_mean_s", "goodput_bps"


def tradeoff(name: str, spec: Json, curves: Sequence[Curve]) -> Drawn | None:
    """A colour for all cells that differ in nothing but `along`, whose values are told by marks."""
    where, link = f"figure {spec['id']}", {"link": spec["link"]} if "link" in spec else {}
    (delay,) = asked_of({"measure": X, "direction": "forward", **link}, where)
    (goodput,) = asked_of(upwards(spec), where)
    what = "Goodput of TCP" if "y" not in spec else goodput.title[:1].upper() + goodput.title[1:]
    at = f" at {spec['link']}" if link else ""
    axis = spec.get("along")
    values = list(dict.fromkeys(_step(curve, axis) for curve in curves)) if axis else [""]
    steps = {value: k for k, value in enumerate(values)}
    if not any(np.isfinite(one.of(curve.cell).value) for curve in curves for one in (delay, goodput)):
        return None
    names = {_step(curve, axis): curve.cell.labels.get(str(axis), "") for curve in curves}
    marks = ", ".join(f"{SAID[k % len(SAID)]} {names[value] or value}" for value, k in steps.items())
    is_barred = any(_half_width(one.of(curve.cell)) is not None for curve in curves for one in (delay, goodput))
    bars = "Bars: 95 % t-intervals across runs" if is_barred else f"No bars: fewer than {FEWEST_FOR_A_BAND} runs"
    caption = (
        f"{what} against mean queueing delay{at}, both forward{f'; {axis}: {marks}' if axis else ''}. "
        f"Faint dots: runs. {bars}; {runs_said([curve.cell for curve in curves], [], '')}. "
        "Up and to the left is better."
    )

    def draw(sheet: Sheet) -> Figure:
        parts = panels_of(spec, curves)
        figure = Figure(figsize=extent(parts, curves, 4.4, 3.8, sheet), layout="constrained")
        wide = across(parts, sheet)
        # Rates differ, and with them the axes.
        grid = list(figure.subplots(-(-len(parts) // wide), wide, squeeze=False).flat)[: len(parts)]
        set_titles(grid, parts, sheet)
        delays = [value for curve in curves if (value := delay.of(curve.cell).value) > 0]
        is_log = len(delays) == len(curves) and max(delays) > LOGARITHMIC * min(delays)
        lines: list[tuple[Curve, Line2D]] = []
        for axes, (_, shown) in zip(grid, parts, strict=True):
            axes.set_label(READ_BY_MARKS)
            lines += _draw_panel(axes, shown, axis, steps, delay, goodput, sheet)
            if is_log:
                axes.set_xscale("log")
                logarithmic(axes.xaxis)
            else:
                axes.set_xlim(left=0)
        name_axes(grid, f"queueing delay ({delay.unit})", f"{goodput.title} ({goodput.unit})", sheet)
        look: dict[str, Any] = {"linestyle": "none", "color": MUTED, "markersize": sheet.points(5)}
        meant = [
            (Line2D([], [], marker=MARKS[k % len(MARKS)], **look), names[value] or value) for value, k in steps.items()
        ]
        more = meant if len(meant) > 1 else []
        legend(figure, grid, curves, lines, lambda curve: goodput.of(curve.cell).value, sheet, more)
        return figure

    return Drawn(name, str(spec["title"]), caption, draw)


def upwards(spec: Mapping[str, Any]) -> Json:
    """The measure that is drawn upwards: `y` names one, forward, or is one with its parameters."""
    asked = spec.get("y", Y)
    return dict(asked) if isinstance(asked, Mapping) else {"measure": asked, "direction": "forward"}


def _half_width(found: Interval) -> float | None:
    """Of an interval that can be drawn: that across two runs is as wide as the figure."""
    is_of_few = found.basis == "runs" and found.n < FEWEST_FOR_A_BAND
    return found.half_width if has_interval(found) and not is_of_few else None


def _step(curve: Curve, axis: object) -> str:
    return curve.cell.at.get(str(axis), "")


def _draw_panel(
    axes: Axes,
    curves: Sequence[Curve],
    axis: object,
    steps: dict[str, int],
    delay: Asked,
    goodput: Asked,
    sheet: Sheet,
) -> list[tuple[Curve, Line2D]]:
    drawn = []
    for label in dict.fromkeys(curve.label for curve in curves):
        members = sorted((one for one in curves if one.label == label), key=lambda one: steps.get(_step(one, axis), 0))
        look = members[0].look
        places = [(delay.of(one.cell), goodput.of(one.cell)) for one in members]
        thin = {**look.line(sheet), "linewidth": sheet.points(0.8)}
        # Only along numbers does the way from one case to the next mean something.
        between = {} if all(str(axis) in one.cell.numbers for one in members) else {"linestyle": "none"}
        (line,) = axes.plot([x.value for x, _ in places], [y.value for _, y in places], **{**thin, **between})
        key = Line2D([], [], **thin, marker="o", markersize=sheet.points(5))
        for one, (x, y) in zip(members, places, strict=True):
            runs = [[asked.factor * value for value in asked.reading.values(one.cell)] for asked in (delay, goodput)]
            dot: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": sheet.points(3), "alpha": 0.45}
            axes.plot(*runs, color=look.color, **dot)
            widths = [_half_width(found) for found in (x, y)]
            axes.errorbar(
                [x.value],
                [y.value],
                xerr=widths[0],
                yerr=widths[1],
                color=look.color,
                marker=MARKS[steps.get(_step(one, axis), 0) % len(MARKS)],
                markersize=sheet.points(5),
                elinewidth=sheet.points(1.1),
                capsize=sheet.points(2),
                zorder=line.get_zorder() + 1,
            )
        drawn.append((members[0], key))
    low, high = axes.get_ylim()
    axes.set_ylim(bottom=max(low, 0) if low > 0.5 * high else 0)
    return drawn
