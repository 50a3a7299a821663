"""What a figure on a page needs so that it answers to the pointer: where its axes lie, and whose its curves are.

A curve belongs to the entry of the legend that is drawn like it. Curves, and bands of the same colour, get ids of their
own in the SVG. Where marks are what is read, all lines and bars of an entry's colour belong to it.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

CURVE = "curve"
MARKS = "marks"
"""The label of axes on which marks are read, each at its place, instead of curves along the other axis; where nothing
is joined by a line they need none."""
SCALES = ("linear", "log")

Style = tuple[str, str]


def described(figure: Figure) -> str:
    """JSON of the plots of a figure that was laid out at 72 points an inch, whose curves get their ids by this.

    A plot has its box in the SVG as left, top, right and bottom; for each axis scale, ends and title; and its curves,
    each with its ids and its label.
    """
    labels = dict(_labels(figure))
    height = figure.bbox.height
    plots = [
        found
        for number, (axes, around) in enumerate(_all_axes(figure))
        if axes.get_visible() and (found := _plot(axes, around, number, labels, height))
    ]
    return json.dumps(plots, separators=(",", ":"), ensure_ascii=False)


def _all_axes(figure: Figure) -> Iterator[tuple[Axes, Axes]]:
    """All axes, those within others too, with those that they take their titles from."""
    for axes in figure.axes:
        yield axes, axes
        for inner in axes.child_axes:
            if isinstance(inner, Axes):
                yield inner, axes


def _labels(figure: Figure) -> Iterator[tuple[Style, str]]:
    """What each entry of a legend is called, by how it is drawn."""
    legends: list[Legend] = [*figure.legends, *(own for axes in figure.axes if (own := axes.get_legend()))]
    for legend in legends:
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=False):
            if isinstance(handle, Line2D):
                yield _style(handle), " ".join(text.get_text().split())


def _style(line: Line2D) -> Style:
    return to_hex(line.get_color()), str(line.get_linestyle())


def _plot(axes: Axes, around: Axes, number: int, labels: dict[Style, str], height: float) -> dict[str, Any] | None:
    if axes.get_xscale() not in SCALES or axes.get_yscale() not in SCALES:
        return None
    is_marks = axes.get_label() == MARKS or _is_of_points(axes, labels)
    of_colour = {colour: label for (colour, _), label in labels.items()} if is_marks else {}
    curves = []
    for place, line in enumerate(axes.lines):
        label = labels.get(_style(line)) or of_colour.get(_style(line)[0])
        if line.get_visible() and label and line.get_transform() == axes.transData:
            curves.append({"label": label, "ids": list(_named(axes, line, f"{CURVE}-{number}-{place}"))})
    if not curves:
        return None
    for place, bars in enumerate(axes.collections if is_marks else ()):
        if isinstance(bars, LineCollection) and (
            label := of_colour.get(to_hex(tuple(np.asarray(bars.get_edgecolor())[0])))
        ):
            bars.set_gid(f"{CURVE}-{number}-bars-{place}")
            curves.append({"label": label, "ids": [f"{CURVE}-{number}-bars-{place}"]})
    box = axes.get_window_extent()
    return {
        "box": [round(one, 2) for one in (box.x0, height - box.y1, box.x1, height - box.y0)],
        "x": _axis(axes.get_xscale(), axes.get_xlim(), axes.get_xlabel() or around.get_xlabel()),
        "y": _axis(axes.get_yscale(), axes.get_ylim(), axes.get_ylabel() or around.get_ylabel()),
        "curves": curves,
        **({MARKS: True} if is_marks else {}),
    }


def _is_of_points(axes: Axes, labels: dict[Style, str]) -> bool:
    """Whether nothing that the legend names is joined by a line."""
    named = [line for line in axes.lines if _style(line) in labels]
    return bool(named) and all(str(line.get_linestyle()) == "None" for line in named)


def _named(axes: Axes, line: Line2D, name: str) -> Iterator[str]:
    """Gives a curve and its bands their ids, the curve's first."""
    line.set_gid(name)
    yield name
    colour = to_hex(line.get_color())
    for place, band in enumerate(axes.collections):
        if isinstance(band, PolyCollection) and [to_hex(tuple(one)) for one in np.asarray(band.get_facecolor())] == [
            colour
        ]:
            band.set_gid(f"{name}-{place}")
            yield f"{name}-{place}"


def _axis(scale: str, ends: tuple[float, float], title: str) -> dict[str, Any]:
    return {"scale": scale, "ends": [float(end) for end in ends], "title": " ".join(title.split())}
