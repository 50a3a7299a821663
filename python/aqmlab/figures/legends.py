"""Places the names of curves: beside the panel where there is room, else below the figure."""

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from aqmlab.figures.sheet import Sheet

CHARACTER = 0.56
"""Mean width of a character, in sizes of the type."""
KEY = 5.2
"""Width of a key and of the space about it, in sizes of the type."""
INSIDE = 24.0
"""Room in a panel, in sizes of the type."""
BESIDE = 0.36
"""Share of a figure's width that the names beside a panel may take; longer ones go on in another line."""


def legend(figure: Figure, axes: Axes, keys: Sequence[tuple[Artist, str]], sheet: Sheet, **looks: Any) -> None:
    """The curves of the one panel, in this order."""
    if sheet.is_narrow:
        below(figure, keys, sheet)
        return
    looks = {"labelspacing": 0.75, **looks}
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    _say(axes.legend, keys, BESIDE * sheet.ems - KEY, **place, **looks)


def below(figure: Figure, keys: Sequence[tuple[Artist, str]], sheet: Sheet) -> None:
    """The curves below all panels."""
    across = columns_below([name for _, name in keys], sheet)
    room = sheet.ems / across - KEY
    _say(figure.legend, keys, room, loc="outside lower left", ncols=across, columnspacing=1.6, labelspacing=0.4)


def columns_below(names: Sequence[str], sheet: Sheet) -> int:
    """Columns of a legend below: as many as the longest name leaves room for."""
    room = int(sheet.ems / (KEY + CHARACTER * max(map(len, names))))
    return max(1, min(room, len(names), 5))


def wrapped(name: str, ems: float) -> str:
    """A name in as many lines as it needs where there is room for so many sizes of the type."""
    return textwrap.fill(name, max(8, int(ems / CHARACTER)))


def inside(axes: Axes, keys: Sequence[tuple[Artist, str]], place: str) -> None:
    """The curves in a corner of the panel that they leave free."""
    _say(axes.legend, keys, INSIDE, loc=place)


def _say(legend_of: Any, keys: Sequence[tuple[Artist, str]], room: float, **looks: Any) -> None:
    # A name that begins with _ would be left out: names are put in afterwards.
    made: Legend = legend_of([artist for artist, _ in keys], [f"{k}" for k in range(len(keys))], **looks)
    for text, (_, name) in zip(made.get_texts(), keys, strict=True):
        text.set_text(wrapped(name, room))
