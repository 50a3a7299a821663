"""Selectors: which points of a grid are meant.

A selector is a table: `{ grid = "web", aqm = ["pi-24", "rem-24"], load = "98" }`. An axis that is left out means all of
its values; `grid` may be left out where only one grid has the axes. What is selected comes in the order of the
selector's lists, and else in the order of the grid.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from aqmlab.errors import BadInput, shown
from aqmlab.sweep.axes import value_text

OWN_KEYS = ("grid", "label")
"""Keys of a selector that are no axes; `label` is for those who draw what is selected."""


class Placed(Protocol):
    """A point, as far as it can be selected: where it lies."""

    @property
    def grid(self) -> str:
        """The name of the grid that it is of."""
        ...

    @property
    def at(self) -> Mapping[str, str]:
        """The value of each axis."""
        ...


P = TypeVar("P", bound=Placed)


def select(
    points: Sequence[P], selector: Mapping[str, Any], where: str, known: Sequence[Placed] | None = None
) -> list[P]:
    """The points that a selector means; `BadInput` at `where` if there are none.

    `known` are all points that there could be: what is among these and not among `points` is no mistake, and the answer
    may be empty.
    """
    if not isinstance(selector, Mapping):
        raise BadInput(f'{where}: {selector!r}: expected a selector, as in {{ grid = "web", aqm = "pi-24" }}')
    everything: Sequence[Placed] = points if known is None else known
    grid = _grid(everything, selector, where)
    among = [point for point in everything if point.grid == grid]
    values = {name: list(dict.fromkeys(point.at[name] for point in among)) for name in among[0].at}
    wanted = coordinates({key: item for key, item in selector.items() if key not in OWN_KEYS}, values, where)
    if not any(matches(wanted, point.at) for point in among):
        raise BadInput(f"{where}: {_written(selector)}: selects nothing; expected a cell that the grid {grid} has")
    chosen = [point for point in points if point.grid == grid and matches(wanted, point.at)]
    return sorted(chosen, key=lambda point: [wanted[name].index(point.at[name]) for name in wanted])


def coordinates(
    table: Mapping[str, Any], values: Mapping[str, Sequence[str]], where: str
) -> dict[str, tuple[str, ...]]:
    """Coordinates as given, one value or a list for an axis, checked against the axes' values."""
    wanted = {}
    for name, item in table.items():
        if name not in values:
            raise BadInput(f"{where}: {name}: no such axis; expected one of {', '.join(values) or 'none'}")
        names = tuple(map(value_text, item if isinstance(item, list | tuple) else [item]))
        for one in names:
            if one not in values[name]:
                raise BadInput(f"{where}.{name}: {one!r}: expected one of {', '.join(values[name])}")
        if not names:
            raise BadInput(f"{where}.{name}: empty; expected one of {', '.join(values[name])}, or a list of them")
        wanted[name] = names
    return wanted


def matches(wanted: Mapping[str, Sequence[str]], at: Mapping[str, str]) -> bool:
    """Whether a place has all the coordinates."""
    return all(at[name] in names for name, names in wanted.items())


def _grid(points: Sequence[Placed], selector: Mapping[str, Any], where: str) -> str:
    """The grid that is named, or the only one that has such axes; of several the only one that has such points."""
    axes = {point.grid: tuple(point.at) for point in points}
    if "grid" in selector:
        name = selector["grid"]
        if not isinstance(name, str) or name not in axes:
            raise BadInput(f"{where}.grid: {shown(name)}expected one of {', '.join(axes)}")
        return name
    asked = {key: item for key, item in selector.items() if key not in OWN_KEYS}
    found = [name for name, own in axes.items() if set(asked) <= set(own)]
    if not found:
        strange = next((key for key in asked if not any(key in own for own in axes.values())), None)
        if strange is not None:
            every = dict.fromkeys(name for own in axes.values() for name in own)
            raise BadInput(f"{where}: {strange}: no such axis; expected one of {', '.join(every)}")
        raise BadInput(f"{where}: {_written(selector)}: no grid has these axes; expected those of one grid")
    if len(found) > 1:
        texts = {key: set(map(value_text, item if isinstance(item, list) else [item])) for key, item in asked.items()}
        fit = [
            grid
            for grid in found
            if all(names <= {point.at[key] for point in points if point.grid == grid} for key, names in texts.items())
        ]
        if len(fit) != 1:
            raise BadInput(f"{where}: {_written(selector)}: grid is missing; expected one of {', '.join(fit or found)}")
        found = fit
    return found[0]


def _written(selector: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {item!r}" for key, item in selector.items()) + " }"
