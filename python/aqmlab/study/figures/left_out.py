"""Says in the caption of a figure or table, and in a figure's panels, which of its points a profile does not run."""

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from aqmlab.figures.legends import CHARACTER, wrapped
from aqmlab.figures.looks import MUTED
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json
from aqmlab.study.figures.cell import Find, LeftOut, Place, without_label
from aqmlab.study.figures.curves import Curve
from aqmlab.study.figures.layout import across, panels_of

NAMED = 6
"""Points that are named one by one."""
SMALL = 0.833
"""The type of a note, in sizes of that of a title."""
NARROWEST = 12.0
"""Sizes of the type: a note with less room beside the title of its panel stands above it."""


def said(selectors: Sequence[Json], find: Find, left_out: LeftOut) -> str:
    """` 4 of 12 points are not run in this profile: load 70; load 80.`; empty where all are."""
    there: dict[str, Place] = {}
    missing: dict[str, Place] = {}
    for selector in selectors:
        places = without_label(selector)
        there |= {cell.name: cell for cell in find(places)}
        missing |= {point.name: point for point in left_out(places)}
    if not missing:
        return ""
    every = [*there.values(), *missing.values()]
    verb = "is" if len(missing) == 1 else "are"
    return f" {len(missing)} of {len(every)} points {verb} not run in this profile: {_named(missing, every)}."


def absent(spec: Json, curves: Sequence[Curve], left_out: LeftOut) -> list[list[str]]:
    """For each panel, which curves of the legend it lacks because their points were not run."""
    axis = spec.get("panels")
    missing = [place for selector in spec["curves"] for place in left_out(without_label(selector))]
    values = dict.fromkeys(curve.panel for curve in curves if curve.panel is not None)

    def is_lost(curve: Curve, panel: str) -> bool:
        at = {**curve.cell.at, str(axis): panel}
        return any(place.at == at and place.name.partition("/")[0] == curve.cell.grid for place in missing)

    found = []
    for value in values:
        there = {curve.label for curve in curves if curve.panel in (value, None)}
        lost = (curve.label for curve in curves if curve.label not in there and is_lost(curve, value))
        found.append(list(dict.fromkeys(lost)))
    return found if len(found) > 1 else []


def noted(
    draw: Callable[[Sheet], Figure], spec: Json, curves: Sequence[Curve], lost: Sequence[Sequence[str]]
) -> Callable[[Sheet], Figure]:
    """Draws a figure of panels with a note above each that lacks curves of the legend, so that none seems hidden."""

    def draw_noted(sheet: Sheet) -> Figure:
        figure, parts = draw(sheet), panels_of(spec, curves)
        whole = sheet.ems / across(parts, sheet) - 4
        for axes, (title, _), names in zip(figure.axes, parts, lost, strict=False):
            if names:
                note, beside = f"not run: {'; '.join(names)}", whole - 1.1 * CHARACTER * len(title)
                text = (
                    wrapped(note, beside / SMALL)
                    if beside >= NARROWEST
                    else wrapped(note, whole / SMALL) + "\n" * (1 + axes.get_title("left").count("\n"))
                )
                axes.set_title(text, loc="right", fontsize="small", fontweight="normal", color=MUTED)
        return figure

    return draw_noted


def _named(missing: dict[str, Place], every: Sequence[Place]) -> str:
    """By the axes that tell what is missing from the rest."""
    axes = dict.fromkeys(axis for point in every for axis in point.at)
    told = [axis for axis in axes if len({point.at.get(axis) for point in every}) > 1]
    for axis in list(told):
        others = [other for other in told if other != axis]
        lost = {_at(point, others) for point in missing.values()}
        is_whole = all(point.name in missing for point in every if _at(point, others) in lost)
        if is_whole and len(lost) < len({_at(point, told) for point in missing.values()}):
            told = others  # what is missing is so all along this axis

    def called(point: Place) -> str:
        return ", ".join(_word(point, axis) for axis in told if axis in point.at) or point.name

    there = {called(point) for point in every if point.name not in missing}
    # What is called like a point that was run is one of another grid.
    names = [
        f"{point.name.partition('/')[0]}: {name}" if (name := called(point)) in there else name
        for point in missing.values()
    ]
    names = list(dict.fromkeys(names))
    more = f"; and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return "; ".join(names[:NAMED]) + more


def _at(point: Place, axes: Sequence[str]) -> tuple[str | None, ...]:
    return tuple(point.at.get(axis) for axis in axes)


def _word(point: Place, axis: str) -> str:
    """A value as people read it; a bare number or switch says its axis too."""
    word = point.labels.get(axis) or point.at[axis]
    is_bare = word.replace(".", "").isdigit() or word.lower() in ("on", "off", "yes", "no")
    return f"{axis} {word}" if is_bare else word
