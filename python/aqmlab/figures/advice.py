"""An advice: what each candidate is to each application, with its interval."""

from collections.abc import Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from aqmlab.advice import cells
from aqmlab.advice.advising import Advice
from aqmlab.advice.applications import Figure as Measure
from aqmlab.advice.candidates import TODAY
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.looks import HUES, INK, REFERENCE
from aqmlab.figures.sheet import Sheet
from aqmlab.statistics import Interval


def candidates(advice: Advice) -> Drawn:
    """A panel for each figure, a line for each candidate."""
    caption = (
        "Means over the runs of each candidate, with 95 % intervals, which are cut where the measure cannot go "
        "further. Blue is what is recommended; green what may be as good: a tie, or worse by next to nothing; black "
        "today; grey what is behind. Those that left the race did so after fewer runs than the others."
    )
    return Drawn("candidates", "What each candidate is to each application", caption, partial(_panels, advice))


def _panels(advice: Advice, sheet: Sheet) -> Figure:
    names = advice.ranking[::-1]
    colours = [_colour(advice, name) for name in names]
    across = 1 if sheet.is_narrow else 3
    down = -(-len(advice.figures) // across)
    figure = Figure(figsize=sheet.size(down * (0.9 + 0.24 * len(names))), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for position, panel in enumerate(grid.flat):
        if position >= len(advice.figures):
            panel.set_visible(False)
            continue
        one = advice.figures[position]
        scale = cells.SCALES[one.unit][0]
        values = [advice.value(name, one) for name in names]
        for at, (found, colour) in enumerate(zip(values, colours, strict=True)):
            if found is None:
                continue
            panel.errorbar(
                found.value * scale,
                at,
                xerr=_drawn(one, found, scale),
                fmt="o",
                color=colour,
                markersize=sheet.points(5),
                linewidth=sheet.points(1.6),
            )
        _end(panel, one, scale, [found.value for found in values if found is not None])
        panel.set_title(cells.title(one))
        is_left = position % across == 0
        panel.set_yticks(range(len(names)), names if is_left else [""] * len(names))
        panel.set_ylim(-0.6, len(names) - 0.4)
    return figure


def _end(panel: Axes, one: Measure, scale: float, values: Sequence[float]) -> None:
    """No tick stands where the measure cannot be; where all are at its least, the axis goes on to one of its unit."""
    least, most = (end * scale for end in one.possible)
    left, right = panel.get_xlim()
    if values and all(value * scale == least for value in values):
        left, right = least - 0.05, least + 1
    panel.set_xlim(left, right)
    panel.set_xticks([tick for tick in panel.get_xticks() if max(left, least) <= tick <= min(right, most)])


def _drawn(one: Measure, found: Interval, scale: float) -> list[list[float]] | None:
    """How far an interval is drawn, below and above the mean: no further than the measure can go."""
    if found.half_width is None:
        return None
    least, most = one.possible
    ends = max(least, found.low), min(most, found.high)
    return [[max(0.0, found.value - ends[0]) * scale], [max(0.0, ends[1] - found.value) * scale]]


def _colour(advice: Advice, name: str) -> str:
    if name == advice.race.first:
        return HUES[0]
    if name == TODAY:
        return INK
    return HUES[2] if advice.state(name) in ("tie", "near") else REFERENCE
