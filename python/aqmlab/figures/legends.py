"""Where the names of curves stand: beside the panel where there is room, else below the figure."""

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
LONGEST = 0.4
"""Share of a figure's width that the names beside a panel may take."""


def legend(figure: Figure, axes: Axes, keys: Sequence[tuple[Artist, str]], sheet: Sheet, **looks: Any) -> None:
    """The curves of the one panel, in this order."""
    longest = max(len(name) for _, name in keys)
    if sheet.is_narrow or KEY + CHARACTER * longest > LONGEST * sheet.ems:
        below(figure, keys, sheet)
        return
    looks = {"labelspacing": 0.75, **looks}
    _say(axes.legend, keys, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, **looks)


def below(figure: Figure, keys: Sequence[tuple[Artist, str]], sheet: Sheet) -> None:
    """The curves below all panels."""
    across = columns_below([name for _, name in keys], sheet)
    _say(figure.legend, keys, loc="outside lower left", ncols=across, columnspacing=1.6, labelspacing=0.4)


def columns_below(names: Sequence[str], sheet: Sheet) -> int:
    """Columns of a legend below: as many as the longest name leaves room for."""
    room = int(sheet.ems / (KEY + CHARACTER * max(map(len, names))))
    return max(1, min(room, len(names), 5))


def inside(axes: Axes, keys: Sequence[tuple[Artist, str]], place: str) -> None:
    """The curves in a corner of the panel that they leave free."""
    _say(axes.legend, keys, loc=place)


def _say(legend_of: Any, keys: Sequence[tuple[Artist, str]], **looks: Any) -> None:
    # A name that begins with _ would be left out: names are put in afterwards.
    made: Legend = legend_of([artist for artist, _ in keys], [f"{k}" for k in range(len(keys))], **looks)
    for text, (_, name) in zip(made.get_texts(), keys, strict=True):
        text.set_text(name)
