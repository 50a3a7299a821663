"""Places the names of curves: beside the panel where there is room, else below the figure."""

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.textpath import text_to_path

from aqmlab.figures.sheet import Sheet

CHARACTER = 0.56
"""Mean width of a character, in sizes of the type."""
MEASURED = 100.0
"""Points of the type in which widths are measured: at the sizes of figures, letters would be rounded to pixels."""
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


MARKED = {"handlelength": 0.8, "handletextpad": 0.5, "columnspacing": 2.4}
"""Looks of a legend of single marks: each stands nearer to its own words than to those of its neighbour."""


def below(figure: Figure, keys: Sequence[tuple[Artist, str]], sheet: Sheet, **looks: Any) -> None:
    """The curves below all panels."""
    across = columns_below([name for _, name in keys], sheet)
    room = sheet.ems / across - KEY
    looks = {"columnspacing": 1.6, "labelspacing": 0.4, **looks}
    _say(figure.legend, keys, room, loc="outside lower left", ncols=across, **looks)


def columns_below(names: Sequence[str], sheet: Sheet) -> int:
    """Columns of a legend below: as many as the longest name leaves room for."""
    room = int(sheet.ems / (KEY + CHARACTER * max(map(len, names))))
    return max(1, min(room, len(names), 5))


def wrapped(name: str, ems: float, weight: str = "normal") -> str:
    """A name in as many lines as it needs where there is room for so many sizes of the type.

    Widths are those of the family of type that is set. A word that has no room is divided.
    """
    font = FontProperties(weight=weight, size=MEASURED)
    if _ems(name, font) <= ems:
        return name
    lines: list[str] = []
    for word in name.split():
        if lines and _ems(f"{lines[-1]} {word}", font) <= ems:
            lines[-1] += f" {word}"
        else:
            lines += _parts(word, ems, font)
    return "\n".join(lines)


def _parts(word: str, ems: float, font: FontProperties) -> list[str]:
    if _ems(word, font) <= ems:
        return [word]
    parts = [""]
    for character in word:
        if parts[-1] and _ems(parts[-1] + character, font) > ems:
            parts.append("")
        parts[-1] += character
    return parts


def _ems(text: str, font: FontProperties) -> float:
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / MEASURED


def inside(axes: Axes, keys: Sequence[tuple[Artist, str]], place: str) -> None:
    """The curves in a corner of the panel that they leave free."""
    _say(axes.legend, keys, INSIDE, loc=place)


def _say(legend_of: Any, keys: Sequence[tuple[Artist, str]], room: float, **looks: Any) -> None:
    # A name that begins with _ would be left out: names are put in afterwards.
    made: Legend = legend_of([artist for artist, _ in keys], [f"{k}" for k in range(len(keys))], **looks)
    for text, (_, name) in zip(made.get_texts(), keys, strict=True):
        text.set_text(wrapped(name, room))
