"""An advice: what each candidate is to each application, with its interval."""

from functools import partial

from matplotlib.figure import Figure

from aqmlab.advice import words
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
        scale = words.SCALES[one.unit][0]
        for at, (name, colour) in enumerate(zip(names, colours, strict=True)):
            found = advice.value(name, one)
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
        panel.set_title(words.title(one))
        is_left = position % across == 0
        panel.set_yticks(range(len(names)), names if is_left else [""] * len(names))
        panel.set_ylim(-0.6, len(names) - 0.4)
    return figure


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
