"""Keys that claims name of their points: refused before anything runs where no point can have a number there."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from aqmlab import links, near, scenario
from aqmlab.engine import Tree
from aqmlab.errors import AqmlabError, BadInput
from aqmlab.json_files import at
from aqmlab.measures.measure import Reading
from aqmlab.measures.recorded import quantity
from aqmlab.scenario import Source
from aqmlab.sweep.grid import Point


def check(readings: Iterable[Reading], points: Sequence[Point], where: str) -> None:
    """Refuses a parameter that the scenario of no point has, and a link that none of them has."""
    for reading in readings:
        key = str(dict(reading.given).get("key", ""))
        if reading.measure.name == "parameter":
            _check_parameter(key, points, where)
        elif reading.measure.name == "summary" and key.startswith(f"{links.MANY}."):
            _check_link(key, points, where)


def _check_parameter(key: str, points: Sequence[Point], where: str) -> None:
    trees = [point.source.tree for point in points]
    if any(_has(tree, key) for tree in trees):
        return
    known: dict[str, None] = {}
    for point in points:
        resolved = _resolved(point.source)
        if resolved is None or _has(resolved, key):
            return
        known |= dict.fromkeys(_numbers(resolved))
    raise BadInput(f"{where}: key: {key!r}: no number of the scenario of any of its points; {near.key(key, known)}")


def _check_link(key: str, points: Sequence[Point], where: str) -> None:
    name = key.split(".")[1]
    known = list(dict.fromkeys(link for point in points for link in links.of(point.source.tree)))
    if name not in known:
        raise BadInput(f"{where}: key: {key!r}: {name}: no link of any of its points; {near.expected(name, known)}")


def _has(tree: Tree, key: str) -> bool:
    return math.isfinite(quantity(at(tree, key)))


def _resolved(source: Source) -> Tree | None:
    """The scenario with its defaults, and with users where a load is asked for; none where it is refused elsewhere."""
    try:
        found = source.resolve()
    except AqmlabError:
        return None
    tree = scenario.copied(found.scenario)
    for load in found.loads:
        tree["traffic"][load.traffic].setdefault("users", 1)
    return tree


def _numbers(item: Any, before: str = "") -> Iterator[str]:
    """The dotted keys of all numbers in tables and lists."""
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(item, Mapping):
        entries = item.items()
    elif isinstance(item, list):
        entries = enumerate(item)
    elif math.isfinite(quantity(item)):
        yield before
    for key, entry in entries:
        yield from _numbers(entry, f"{before}.{key}" if before else str(key))
