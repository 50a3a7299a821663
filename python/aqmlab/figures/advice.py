"""An advice: what each candidate is to each application, with its interval."""

from functools import partial

from matplotlib.figure import Figure

from aqmlab.advice import words
from aqmlab.advice.advising import Advice
from aqmlab.advice.candidates import TODAY
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.looks import HUES, INK, REFERENCE
from aqmlab.figures.sheet import Sheet


def candidates(advice: Advice) -> Drawn:
    """A panel for each figure, a line for each candidate."""
    caption = (
        "Means over the runs of each candidate, with 95 % intervals. Blue: what is recommended; green: what cannot be "
        "told from it; black: today; grey: what left the race, and after fewer runs than the others."
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
                xerr=None if found.half_width is None else found.half_width * scale,
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


def _colour(advice: Advice, name: str) -> str:
    if name == advice.race.first:
        return HUES[0]
    if name == TODAY:
        return INK
    return HUES[2] if name in advice.race.running else REFERENCE
