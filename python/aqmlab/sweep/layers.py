"""Says what each axis of a grid sets, and whether it is still so when all axes have been applied.

A table with a `kind` replaces the old one whole, and with it whatever an earlier axis has set in it: hosts with ECN
would stand before a queue that drops, under a name that says "on". Such a point is refused. A later axis may say
otherwise of a key that it names itself: a discipline's own limit, and an axis of limits after it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab import scenario
from aqmlab.engine import Tree
from aqmlab.errors import BadInput
from aqmlab.json_files import at

Path = tuple[str, ...]
"""The steps of a dotted key."""

_NOTHING = object()


@dataclass(frozen=True)
class Said:
    """What a value of an axis says, or a cell, whatever it is laid over."""

    set: Mapping[Path, Any]
    """Every single key that it sets."""
    named: frozenset[Path]
    """Of these, those that it may set otherwise than an earlier one: not in passing, with a table replaced whole."""


@dataclass(frozen=True)
class Layer:
    """One value of an axis, or one cell, and what the scenario was once it was laid over it."""

    where: str
    """Its place in the file."""
    what: str
    """`axis ecn (on)`."""
    tree: Tree
    said: Said
    is_cell: bool = False


def said(change: Mapping[str, Any], settings: Mapping[str, Any], is_cell: bool = False) -> Said:
    """What tables and dotted keys say, the latter laid over the former."""
    leaves = list(_leaves((), change))
    found = {path: item for path, item, _ in leaves}
    named = {path for path, _, in_passing in leaves if is_cell or not in_passing}
    for key, item in settings.items():
        place = tuple(key.split("."))
        found = {path: old for path, old in found.items() if path[: len(place)] != place}
        below = list(_leaves(place, item, in_passing=isinstance(item, Mapping)))
        found.update({path: value for path, value, _ in below})
        named |= {path for path, _, in_passing in below if is_cell or not in_passing}
    return Said(found, frozenset(named))


def check(layers: Sequence[Layer], called: str) -> None:
    """Refuses a point in which a later layer has undone what the value of an axis sets."""
    for k, one in enumerate(layers):
        if one.is_cell:
            continue
        for path, wanted in one.said.set.items():
            if not _is(_at(layers[-1].tree, path), wanted):
                _judge(one, layers[k + 1 :], path, wanted, called)


def are_as_set(tree: Tree, settings: Mapping[str, Any]) -> bool:
    """Whether every single key that dotted keys and their values set is so in the tables."""
    return all(_is(_at(tree, path), wanted) for path, wanted in said({}, settings).set.items())


def is_named(key: str, all_said: Iterable[Said]) -> bool:
    """Whether something of what is said sets a dotted key, or a key below it."""
    place = tuple(key.split("."))
    return any(path[: len(place)] == place for said in all_said for path in said.set)


def _is(here: Any, wanted: Any) -> bool:
    """Whether what stands at a key is what was set: also a NaN, which equals nothing and is refused as no value."""
    return here is wanted or bool(here == wanted)


def _judge(one: Layer, later: Sequence[Layer], path: Path, wanted: Any, called: str) -> None:
    culprit = next(other for other in later if not _is(_at(other.tree, path), wanted))
    if path in culprit.said.named:
        return
    other = scenario.stands_for(".".join(path))
    if other is not None and tuple(other.split(".")) in culprit.said.named:
        if culprit.is_cell or path not in one.said.named:
            return
        raise BadInput(
            f"{culprit.where}: {other}: stands in the place of {'.'.join(path)}, which {one.what} sets to {wanted!r}, "
            f"in {called}; expected either of them"
        )
    here = _at(culprit.tree, path)
    does = "takes it away" if here is _NOTHING else f"makes it {here!r}"
    raise BadInput(
        f"{culprit.where}: {'.'.join(path)}: {one.what} sets it to {wanted!r}, and the table of {culprit.what} {does} "
        f"in {called}; expected {one.what.partition(' (')[0]} after it in the file"
    )


def _leaves(path: Path, item: Any, in_passing: bool = False) -> Iterator[tuple[Path, Any, bool]]:
    """Path, value, and whether it comes with a table or a list of tables that replaces the old one whole."""
    if isinstance(item, Mapping):
        for name, entry in item.items():
            yield from _leaves((*path, str(name)), entry, in_passing or "kind" in item)
    elif isinstance(item, list) and item and all(isinstance(entry, Mapping) for entry in item):
        for k, entry in enumerate(item):
            yield from _leaves((*path, str(k)), entry, in_passing=True)
    else:
        yield path, item, in_passing


def _at(tree: Tree, path: Path) -> Any:
    return at(tree, path, _NOTHING)
