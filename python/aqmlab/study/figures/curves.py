"""The curves of a figure: which cells, what they are called, and how they look.

A hue is a family of disciplines, the same in all figures of a study. In a figure of one family its shades are the load
or parameter by which its curves differ. A line is solid with ECN and dashed without where both are shown; where ECN
does not vary, its style tells parameters apart. What then still differs has sparse marks, and so have hues where more
than two meet. The uncongested link is grey and dashed, drop-tail black, whatever its buffers are called, and solid with
the buffer that most figures of the study have.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab.figures.looks import DROP_TAIL, HUES, INK, MARKS, REFERENCE, SHADES, Look, hollow, marks_of, shaded
from aqmlab.figures.looks import hues_of as hues_among
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json
from aqmlab.study.figures.cell import Cell, Find, ecn_of, qdisc_of, without_label

SOLID = "-"
STYLES: tuple[Any, ...] = (
    SOLID,
    (0, (3.2, 1.4)),
    (0, (1, 1.3)),
    (0, (6, 1.4, 1.2, 1.4)),
    (0, (6, 1.2, 1, 1.2, 1, 1.2)),
)
WITHOUT_ECN, OTHER_ECN = STYLES[1], (STYLES[3], STYLES[2], STYLES[4])
REFERENCE_STYLES: tuple[Any, ...] = ((0, (5, 2)), (0, (1.6, 1.2)), (0, (7, 1.5, 1.5, 1.5)))
POINT_MARKS = dict(zip(MARKS, (*MARKS[1:], "*"), strict=True))
"""The same where each point has a mark, and no mark is the first of them."""

SELDOM = (3, 7, 8, 9, 4, 5, 6, 0, 1, 2)
"""Hues in the order in which those are given that no kind prefers."""

Called = tuple[str, str]
"""A discipline throughout a study: its kind, and what it is called but for numbers."""


@dataclass(frozen=True)
class Hues:
    """What is the same in all figures of a study."""

    of: Mapping[Called, str]
    """The hue of each discipline."""
    baseline: str = ""
    """Which drop-tail queue most of its figures have; nothing if there is none."""


@dataclass(frozen=True)
class Curve:
    """A cell, what it is called beside the others, and its look."""

    cell: Cell
    label: str
    look: Look
    mark: str
    panel: str | None
    """Value of the axis that makes panels; `None` if it belongs in all of them."""

    @property
    def point_mark(self) -> str:
        """Its mark where each of its points has one."""
        return POINT_MARKS[self.mark]

    def line(self, sheet: Sheet, number: int = 0, points: int = 400) -> dict[str, Any]:
        """For `Axes.plot`; the marks of curves that run together stand at different places."""
        if not self.mark:
            return self.look.line(sheet)
        step = max(points // 9, 1)
        return {
            **self.look.line(sheet),
            **hollow(self.mark, sheet),
            "markevery": ((number * step) // 5 % step, step),
        }


def hues_of(specs: Sequence[Json], find: Find) -> Hues:
    """The hue of each discipline in all figures of a study: different where two are in one figure.

    One that is called as its kind has the hue that this prefers, one that is called otherwise has it where it is still
    to be had, and others have hues that few prefer.
    """
    kinds: dict[Called, str] = {}
    figures: list[set[Called]] = []
    drop_tails: Counter[str] = Counter()
    for spec in specs:
        cells = [cell for selector in spec["curves"] for cell in find(without_label(selector))]
        ordinary = [cell for cell in cells if not cell.uncongested and not _is_drop_tail(cell)]
        figures.append({_called(cell) for cell in ordinary})
        drop_tails.update(dict.fromkeys(_aqm(cell) for cell in cells if _is_drop_tail(cell)).keys())
        for cell in ordinary:
            kinds.setdefault(_called(cell), str(qdisc_of(cell)["kind"]))
    order = sorted(kinds.items(), key=lambda item: item[0][1] != item[1])
    hues = hues_among(order, SELDOM, lambda one, other: any({one, other} <= figure for figure in figures))
    return Hues(hues, max(drop_tails, key=drop_tails.__getitem__, default=""))


def hue_of(name: str, hues: Hues) -> str:
    """The hue of the discipline of this name, of those that `hues_of` gave."""
    return next((hue for called, hue in hues.of.items() if called[1] == _without_numbers(name)), HUES[0])


def _called(cell: Cell) -> Called:
    return str(qdisc_of(cell)["kind"]), _without_numbers(_aqm(cell))


def _aqm(cell: Cell) -> str:
    return cell.at.get("aqm", str(qdisc_of(cell)["kind"]))


def _without_numbers(name: str) -> str:
    return _stem(name).replace("-", "_")


def curves_of(spec: Json, find: Find, hues: Hues | None = None) -> list[Curve]:
    """The curves of a `[[figure]]`, in its order; a cell that is selected twice is drawn once.

    Cells that are called the same, in other panels or elsewhere along `x`, look the same. `hues` are those of the
    whole study.
    """
    chosen: dict[str, Cell] = {}
    names: dict[str, str] = {}
    for selector in spec["curves"]:
        found = find(without_label(selector))
        for cell in found:
            chosen.setdefault(cell.name, cell)
            if "label" in selector and _is_one_curve(found, spec):
                names[cell.name] = str(selector["label"])
    cells = list(chosen.values())
    panels, x = spec.get("panels"), spec.get("x", spec.get("along"))
    without = _along([axis for axis in (panels, x) if axis is not None], cells)
    said = label_cells(cells, without)
    labels = told_by_grid(
        cells,
        [names.get(cell.name, label) for cell, label in zip(cells, said, strict=True)],
        [axis for axis in (panels, x) if axis],
    )
    first: dict[str, Cell] = {}
    for cell, label in zip(cells, labels, strict=True):
        first.setdefault(label, cell)
    looks = dict(zip(first, look_cells(list(first.values()), without, hues or hues_of([spec], find)), strict=True))
    return [
        Curve(cell, label, *looks[label], _panel_of(cell, panels)) for cell, label in zip(cells, labels, strict=True)
    ]


def noted(curves: Sequence[Curve], note_of: Callable[[Cell], str]) -> list[Curve]:
    """Curves of which some have a note behind their names, and dashes where these mean nothing else in their figure."""
    notes = [note_of(curve.cell) for curve in curves]
    is_free = all(curve.look.style == SOLID for curve in curves if not curve.cell.uncongested)
    found = []
    for curve, note in zip(curves, notes, strict=True):
        is_dashed = note and is_free and not curve.cell.uncongested
        look = replace(curve.look, style=STYLES[1]) if is_dashed else curve.look
        found.append(replace(curve, label=f"{curve.label} ({note})", look=look) if note else curve)
    return found


def _panel_of(cell: Cell, axis: str | None) -> str | None:
    """What cannot mark stands beside the marking disciplines too, for it has no other place there."""
    if axis is None or (axis == "ecn" and (cell.uncongested or _is_drop_tail(cell))):
        return None
    return cell.at.get(axis)


def _is_one_curve(cells: Sequence[Cell], spec: Json) -> bool:
    """Whether cells differ in nothing but panel and place along `x`."""
    own = _along([spec[key] for key in ("panels", "x", "along") if key in spec], cells)
    return not varying(cells, own)


def _along(axes: Sequence[str], cells: Sequence[Cell]) -> list[str]:
    """Some axes, and those that advance together with one of them."""
    found = list(axes)
    for axis in axes:
        steps = [cell.at.get(axis) for cell in cells]
        for other in varying(cells, found):
            values = [cell.at.get(other) for cell in cells]
            if _is_function(steps, values) and _is_function(values, steps):
                found.append(other)
    return found


def told_by_grid(cells: Sequence[Cell], labels: Sequence[str], axes: Sequence[str]) -> list[str]:
    """Labels that say their grid too where cells of several grids would stand at the same place of the same curve."""
    places = [(label, *(cell.at.get(axis) for axis in axes)) for cell, label in zip(cells, labels, strict=True)]
    twice = {place[0] for place in places if places.count(place) > 1}
    return [f"{label}, {cell.grid}" if label in twice else label for cell, label in zip(cells, labels, strict=True)]


def varying(cells: Sequence[Cell], without: Sequence[str] = ()) -> list[str]:
    """Axes along which cells differ, in the order in which the cells name them."""
    axes = dict.fromkeys(axis for cell in cells for axis in cell.at if axis not in without)
    return [axis for axis in axes if len({cell.at.get(axis) for cell in cells}) > 1]


def label_cells(cells: Sequence[Cell], without: Sequence[str] = ()) -> list[str]:
    """What tells each cell from the others of the same panel or curve."""
    ordinary = [cell for cell in cells if not cell.uncongested]
    references = [cell for cell in cells if cell.uncongested]
    labels = _joined(ordinary, without) | _joined_references(references, ordinary, without)
    return [labels[cell.name] for cell in cells]


def _joined(cells: Sequence[Cell], without: Sequence[str]) -> dict[str, str]:
    axes = varying(cells, without)
    grids = len({cell.grid for cell in cells}) > 1 and not axes
    found = {}
    for cell in cells:
        # A queue that cannot mark is no choice against ECN.
        own = [axis for axis in cell.at if axis in axes and (axis != "ecn" or not _is_drop_tail(cell))]
        words = [cell.grid] if grids else [_word(cell, axis) for axis in own]
        found[cell.name] = ", ".join(filter(None, words)) or _discipline(cell)
    return found


def _word(cell: Cell, axis: str) -> str:
    """A value as part of a legend; one that says nothing by itself says its axis too."""
    word = cell.labels.get(axis, cell.at.get(axis, ""))
    match (axis, word.lower()):
        case (_, ""):
            return ""
        case ("ecn", "off"):
            return "no ECN"
        case ("ecn", "on"):
            return "ECN"
        case (_, "on" | "off" | "yes" | "no"):
            return f"{axis} {word}"
    return f"{axis} {word}" if word.replace(".", "").isdigit() and axis != "aqm" else word


def _discipline(cell: Cell) -> str:
    """The label of the axis whose values are disciplines; the whole label where no axis is."""
    return cell.labels.get("aqm", cell.label)


def _joined_references(cells: Sequence[Cell], ordinary: Sequence[Cell], without: Sequence[str]) -> dict[str, str]:
    """Uncongested links are called that; where there are several, also by what they differ in."""
    axes = [axis for axis in varying(cells, without) if len({cell.at.get(axis) for cell in ordinary}) != 1]
    found = {}
    for cell in cells:
        words = [_word(cell, axis) for axis in axes if axis not in ("aqm", "ecn")]
        found[cell.name] = ", ".join(["uncongested", *filter(None, words)])
    return found


def look_cells(cells: Sequence[Cell], without: Sequence[str], of_study: Hues) -> list[tuple[Look, str]]:
    """The look and mark of each cell."""
    references = [cell for cell in cells if cell.uncongested]
    ordinary = [cell for cell in cells if not cell.uncongested]
    looks = _looks(ordinary, _told_apart(ordinary, without), of_study)
    found = {cell.name: look for cell, look in zip(ordinary, looks, strict=True)}
    for k, cell in enumerate(references):
        found[cell.name] = (Look(REFERENCE, REFERENCE_STYLES[k % len(REFERENCE_STYLES)], 2.4, 3), "")
    return [found[cell.name] for cell in cells]


@dataclass(frozen=True)
class _Told:
    """By what one cell may be told from another, each as something that can be compared."""

    family: Hashable
    parameter: Hashable
    ecn: str
    rest: tuple[str | None, ...]


def _told_apart(cells: Sequence[Cell], without: Sequence[str]) -> list[_Told]:
    laws = [repr(sorted((k, repr(v)) for k, v in qdisc_of(cell).items() if k != "ecn")) for cell in cells]
    words = [ecn_of(cell) for cell in cells]
    axes = varying(cells, without)
    values = {axis: [cell.at.get(axis) for cell in cells] for axis in axes}
    of_law = [axis for axis in axes if _is_function(laws, values[axis])]
    of_ecn = [axis for axis in axes if axis not in of_law and _is_function(words, values[axis])]
    told = [
        *of_law,
        *of_ecn,
        *(axis for axis in axes if _is_function(list(zip(laws, words, strict=True)), values[axis])),
    ]
    rest = [axis for axis in axes if axis not in told]
    found = [
        _Told(
            _family(cell, of_law),
            laws[k],
            words[k],
            tuple(values[axis][k] for axis in rest),
        )
        for k, cell in enumerate(cells)
    ]
    if len(set(found)) < len(found):  # the same in another grid
        found = [replace(one, rest=(*one.rest, cell.grid)) for one, cell in zip(found, cells, strict=True)]
    return found


def _family(cell: Cell, of_law: Sequence[str]) -> Hashable:
    """All drop-tail queues are of one, for they are all black: `td` and `td-short` differ in their buffers."""
    if _is_drop_tail(cell):
        return "drop-tail"
    return str(qdisc_of(cell)["kind"]), tuple(_stem(cell.at.get(axis) or "") for axis in of_law)


def _is_function(keys: Sequence[Hashable], values: Sequence[Hashable]) -> bool:
    """Whether equal keys always go with equal values."""
    seen: dict[Hashable, Hashable] = {}
    return all(seen.setdefault(key, value) == value for key, value in zip(keys, values, strict=True))


def _stem(name: str) -> str:
    """A value's name without its numbers: `pi-24` and `pi-240` are one family, `ared-byte-12` another."""
    return "-".join(part for part in name.split("-") if not part[:1].isdigit())


def _looks(cells: Sequence[Cell], told: Sequence[_Told], of_study: Hues) -> list[tuple[Look, str]]:
    usual = [k for k, cell in enumerate(cells) if _is_drop_tail(cell) and _aqm(cell) == of_study.baseline]
    levels = {"parameter": _places(told, usual), "rest": _numbered([t.rest for t in told])}
    left = [name for name, places in levels.items() if max(places, default=0) > 0]
    # Drop-tail alone is black, too: its buffers are told apart by style.
    if len({t.family for t in told}) > 1 or not left or (left == ["parameter"] and all(map(_is_drop_tail, cells))):
        hues = _family_hues(cells, [t.family for t in told], of_study)
    else:
        # One family: its curves differ in load or hosts, or else in parameters, and these have shades of its hue.
        by = left.pop()
        own = _family_hues(cells, [t.family for t in told], of_study)[0]
        palette = _of_one(own, max(levels[by]) + 1)
        hues = [palette[level % len(palette)] for level in levels[by]]

    if _varies(told, lambda t: t.ecn):
        styles = _ecn_styles(cells, told, levels["parameter"])
    else:
        by_style = levels[left.pop(0)] if left else [0] * len(told)
        styles = [STYLES[level % len(STYLES)] for level in by_style]
    # The parameters of drop-tail have their styles already, for it has no ECN to be told by them.
    rounds = _rounds(hues, [t.family for t in told])
    marked = [
        (rounds[k], *(0 if name == "parameter" and _is_drop_tail(cell) else levels[name][k] for name in left))
        for k, cell in enumerate(cells)
    ]
    # Shades are told apart in grey, too.
    of_hues = marks_of(hues) if {*hues} <= {INK, *HUES} else [0] * len(hues)
    with_hues = list(zip(of_hues, marked, strict=True))
    numbers = _numbered(with_hues, first=(0, (0,) * (1 + len(left))))
    if max(numbers, default=0) >= len(MARKS):
        numbers = _numbered(marked, first=(0,) * (1 + len(left)))
    marks = [MARKS[number % len(MARKS)] for number in numbers]
    return [
        (Look(hue, style, 2.4 if hue == INK else 1.7, 4 if hue == INK else 5), mark)
        for hue, style, mark in zip(hues, styles, marks, strict=True)
    ]


def _of_one(hue: str, count: int) -> tuple[str, ...]:
    """Shades of a hue; where there are too many, and for black, which has none beside the grey reference, all hues."""
    if hue != INK and count in SHADES:
        return tuple(shaded(hue, shade) for shade in SHADES[count])
    return (hue, *(other for other in HUES if other != hue))


def _places(told: Sequence[_Told], first: Sequence[int] = ()) -> list[int]:
    """The number of each one's parameters within its family; those of `first` come before others."""
    within: dict[Hashable, list[Hashable]] = {}
    for t in [*(told[k] for k in first), *told]:
        seen = within.setdefault(t.family, [])
        if t.parameter not in seen:
            seen.append(t.parameter)
    return [within[t.family].index(t.parameter) for t in told]


def _rounds(hues: Sequence[str], families: Sequence[Hashable]) -> list[int]:
    """How many families had the same hue before: more of them than hues are told apart by marks."""
    of_hue: dict[str, list[Hashable]] = {}
    for hue, family in zip(hues, families, strict=True):
        if family not in (seen := of_hue.setdefault(hue, [])):
            seen.append(family)
    return [of_hue[hue].index(family) for hue, family in zip(hues, families, strict=True)]


def _numbered(keys: Sequence[Hashable], first: Hashable = None) -> list[int]:
    """Numbers from 0 in the order in which keys come; `first` is 0 wherever it comes."""
    order = list(dict.fromkeys([first, *keys] if first in keys else keys))
    return [order.index(key) for key in keys]


def _ecn_styles(cells: Sequence[Cell], told: Sequence[_Told], places: Sequence[int]) -> list[Any]:
    """Solid with ECN and dashed without; other ways to use it have other styles, but the first if there is no `on`."""
    words = [word for word in dict.fromkeys(t.ecn for t in told) if word != "off"]
    order = ["on", *[word for word in words if word != "on"]] if "on" in words else words
    styles = dict(zip(order, (SOLID, *OTHER_ECN), strict=False)) | {"off": WITHOUT_ECN}
    return [
        STYLES[place % len(STYLES)] if _is_drop_tail(cell) else styles.get(t.ecn, SOLID)
        for cell, t, place in zip(cells, told, places, strict=True)
    ]


def _is_drop_tail(cell: Cell) -> bool:
    return not cell.uncongested and qdisc_of(cell)["kind"] in DROP_TAIL


def _varies(told: Sequence[_Told], key: Callable[[_Told], Hashable]) -> bool:
    return len({key(t) for t in told}) > 1


def _family_hues(cells: Sequence[Cell], families: Sequence[Hashable], of_study: Hues) -> list[str]:
    """A hue for each family: the study's, but for a family that another of the figure would share it with."""
    of_family = dict(zip(reversed(families), reversed(cells), strict=True))
    of_family = dict(reversed(of_family.items()))
    given: dict[Hashable, str] = {family: INK for family, cell in of_family.items() if _is_drop_tail(cell)}
    for family, cell in of_family.items():
        wanted = of_study.of.get(_called(cell))
        if family not in given and wanted is not None and wanted not in given.values():
            given[family] = wanted
    for family in of_family:
        free = [HUES[place] for place in SELDOM if HUES[place] not in given.values()]
        given.setdefault(family, free[0] if free else HUES[len(given) % len(HUES)])
    return [given[family] for family in families]
