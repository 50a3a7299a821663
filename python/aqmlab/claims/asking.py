"""A check asks for numbers: this module says which points make each of its findings, and what that is called."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from aqmlab.errors import BadInput
from aqmlab.measures.measure import Reading
from aqmlab.sweep.grid import Point
from aqmlab.sweep.selectors import select

HOWS = ("value", "difference", "relative", "ratio", "contrast")
"""What is made of the points."""

Selector = Mapping[str, Any]


@dataclass(frozen=True)
class Group:
    """A point, or several that become one number a run."""

    points: tuple[Point, ...]
    each: str | None = None


Terms = tuple[tuple[float, Group], ...]


@dataclass(frozen=True)
class Question:
    """One number, its bounds, and the points that it is of."""

    check: int
    """Position of the check in its claim."""
    readings: tuple[Reading, ...]
    """One, or several where a parameter is a list: the abscissae of a curve, which are judged together."""
    how: str
    terms: Terms
    """With weights: +1 and -1 of a difference; those of a contrast."""
    low: float
    high: float
    stretch: float | None
    """Of a curve: on what share of it `low` has to be passed; None where that is all of it."""
    elsewhere: float
    """Of such a curve: the bound for all of it."""
    words: tuple[tuple[str, str], ...]
    """Its bounds that are words: `("low", "-equal")`."""
    unit: str
    published: float | None
    window_s: float
    label: str | None

    @property
    def reading(self) -> Reading:
        """The first of its readings: they are the same measure."""
        return self.readings[0]

    @property
    def brief(self) -> str:
        """What is measured, in front of a finding: `at 100 ms`, `at 100 ms to 1 s`."""
        return _from_to([reading.formula.brief for reading in self.readings])

    @property
    def measured(self) -> str:
        """What is measured, in full."""
        return _from_to([reading.formula.words for reading in self.readings])

    @property
    def points(self) -> set[str]:
        """Names of all of its points."""
        return {point.name for _, group in self.terms for point in group.points}

    @property
    def said(self) -> dict[str, Any]:
        """All that makes its answer: what is measured where, what is made of that, and the bounds."""
        said = [[reading.measure.name, *reading.given] for reading in self.readings]
        return {
            "check": self.check,
            "measure": said[0] if len(said) == 1 else said,
            "how": self.how,
            "terms": [(weight, group.each, [point.name for point in group.points]) for weight, group in self.terms],
            "low": self.low,
            "high": self.high,
            "window_s": self.window_s,
            **({} if self.stretch is None else {"stretch": self.stretch, "elsewhere": self.elsewhere}),
        }


def _from_to(said: Sequence[str]) -> str:
    """The first and the last of several texts, the latter without the words that both begin with."""
    first, last = said[0].split(), said[-1].split()
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    return said[0] if len(said) == 1 else f"{said[0]} to {' '.join(last[common:])}"


def questions(
    points: Sequence[Point],
    of: Sequence[Selector] | None,
    than: Sequence[Selector] | None,
    terms: Sequence[tuple[float, Selector]] | None,
    each: str | None,
    over: str | None,
    where: str,
) -> list[Terms]:
    """The weighted groups of points of each finding."""
    chosen = None if of is None else _all(points, of, None, f"{where}: of")
    if over is not None:
        _check_axis(over, chosen or points, f"{where}: over")
    if terms is not None:
        if chosen is None:
            return [_terms(points, terms, None, each, where)]
        return [_terms(points, terms, point, each, where) for point in chosen]
    assert chosen is not None, "of is there where there are no terms"
    found: list[Terms] = []
    for group in _grouped(chosen, each, over, f"{where}: of"):
        if than is None:
            found.append(((1.0, group),))
            continue
        others = [other for point in group.points for other in _all(points, than, point, f"{where}: than")]
        against = _grouped(_different(others), each, over, f"{where}: than")
        found += [((1.0, group), (-1.0, other)) for other in against if other.points != group.points]
    if not found:
        raise BadInput(f"{where}: than: selects what of selects; expected another point")
    return found


def _terms(
    points: Sequence[Point],
    terms: Sequence[tuple[float, Selector]],
    under: Point | None,
    each: str | None,
    where: str,
) -> Terms:
    """The groups of a contrast: each term is one point, or with `each` one number of several."""
    found = []
    for k, (weight, at) in enumerate(terms):
        chosen = _all(points, [at], under, f"{where}: terms.{k}.at")
        if each is None and len(chosen) > 1:
            names = ", ".join(point.name for point in chosen)
            raise BadInput(f"{where}: terms.{k}.at: selects {names}; expected one point, or each beside it")
        found.append((weight, Group(tuple(chosen), each)))
    return tuple(found)


def _all(points: Sequence[Point], selectors: Sequence[Selector], under: Point | None, where: str) -> list[Point]:
    """All points that selectors mean, where need be laid over the coordinates of another."""
    chosen: list[Point] = []
    for selector in selectors:
        whole = selector if under is None else _laid_over(selector, under, points, where)
        chosen += select(points, whole, where)
    return _different(chosen)


def _laid_over(selector: Selector, under: Point, points: Sequence[Point], where: str) -> Selector:
    """A selector with the coordinates of a point where it names none, as far as its grid has these axes."""
    grid = selector.get("grid", under.grid)
    values: dict[str, set[str]] = {}
    for point in points:
        if point.grid == grid:
            for axis, value in point.at.items():
                values.setdefault(axis, set()).add(value)
    inherited = {axis: value for axis, value in under.at.items() if axis in values and axis not in selector}
    for axis, value in inherited.items():
        if value not in values[axis]:
            raise BadInput(
                f"{where}: {axis}: missing; {under.name} has {value!r}, which grid {grid} does not have; "
                f"expected one of {', '.join(sorted(values[axis]))}"
            )
    return {"grid": grid, **inherited, **selector}


def _grouped(chosen: Sequence[Point], each: str | None, over: str | None, where: str) -> list[Group]:
    """Every point by itself; with `each` those together that differ along `over` alone."""
    if each is None:
        return [Group((point,)) for point in chosen]
    groups: dict[Any, list[Point]] = {}
    for point in chosen:
        kept = () if over is None else tuple(item for item in point.at.items() if item[0] != over)
        groups.setdefault((point.grid if over else None, kept), []).append(point)
    for members in groups.values():
        if len(members) < 2:
            raise BadInput(f"{where}: each: {each!r}: {members[0].name} is alone; expected several points")
    return [Group(tuple(members), each) for members in groups.values()]


def _different(points: Sequence[Point]) -> list[Point]:
    return list({point.name: point for point in points}.values())


def _check_axis(axis: str, points: Sequence[Point], where: str) -> None:
    axes = dict.fromkeys(name for point in points for name in point.at)
    if axis not in axes:
        raise BadInput(f"{where}: {axis!r}: expected one of {', '.join(axes)}")


Called = Callable[[Point], str]


def label(question: Question, every: Sequence[Question], called: Called | None = None) -> str:
    """What a finding is called among those of its claim: the coordinates that tell them apart.

    `called` names points in other words, as a comparison does with its columns.
    """
    points = _different([point for _, group in question.terms for point in group.points])
    prefix = question.label
    if prefix is None and len({(other.readings, other.how) for other in every}) > 1:
        prefix = question.brief
    if called is not None:
        name, suffix = called, ""
    else:
        name, suffix = _names(question, points, every)
    text = _joined(question, name)
    if question.how == "contrast" and question.label is not None:
        text = ""
    return ", ".join(part for part in (prefix, text) if part) + suffix


def _names(question: Question, points: Sequence[Point], every: Sequence[Question]) -> tuple[Called, str]:
    """How points are called by their coordinates, and those that all of the finding's have in common."""
    of_claim = [point for other in every for _, group in other.terms for point in group.points]
    axes = dict.fromkeys(axis for point in of_claim for axis in point.at)
    told = [axis for axis in axes if len({point.labels.get(axis) for point in of_claim}) > 1]
    if any(group.each for _, group in question.terms):
        # What a number is put together over tells nothing apart.
        groups = [group.points for _, group in question.terms]
        told = [axis for axis in told if all(len({p.labels.get(axis) for p in group}) == 1 for group in groups)]
    own = [axis for axis in told if len({point.labels.get(axis) for point in points}) > 1]
    shown = own or told or list(axes)[:1]
    common = [axis for axis in told if axis not in shown]

    def name(point: Point) -> str:
        return ", ".join(point.labels[axis] for axis in shown if axis in point.labels) or point.name

    said = [points[0].labels[axis] for axis in common if axis in points[0].labels]
    return name, f" ({', '.join(said)})" if said else ""


def _joined(question: Question, name: Called) -> str:
    """The points of a finding, as a formula in words."""

    def called(group: Group) -> str:
        names = ", ".join(dict.fromkeys(name(point) for point in group.points))
        return names if group.each is None else f"{group.each} over {names}"

    groups = [called(group) for _, group in question.terms]
    if question.how == "contrast":
        said = [
            f"{'−' if weight < 0 else '+'} {'' if abs(weight) == 1 else f'{abs(weight):g} × '}{text}"
            for (weight, _), text in zip(question.terms, groups, strict=True)
        ]
        return " ".join(said).removeprefix("+ ")
    return (" / " if question.how == "ratio" else " − ").join(groups)
