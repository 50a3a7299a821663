"""Grids of runs: a scenario, and axes along which it is changed.

```toml
[scenario]                     # keys of a scenario file; or scenario = "web-pi.toml"
[[grid]]
name = "web"
[grid.scenario]                # tables laid over the scenario, for this grid alone
[[grid.axis]]
name = "aqm"
[[grid.axis.value]]            # a value is written as a [[variant]] of a comparison file is
name = "pi-24"
label = "PI 24"                # what people read; by default the name
link.qdisc = { kind = "pi", qref = "24p" }
[[grid.axis]]
name = "load"
key = "traffic.0.load"         # one dotted key and its values, whose texts are their names
values = ["90mbit", "98mbit"]
names = ["90", "98"]
zip = "A"                      # axes with the same word advance together instead of multiplying
[[grid.skip]]                  # cells that do not exist: all coordinates match
aqm = "uncongested"
ecn = "on"
[[grid.cell]]                  # cells with something of their own, after all axes
at = { aqm = ["pi-24"], load = "98" }
set = { "link.qdisc.limit" = "480p" }
```

What is laid over what: scenario, the grid's tables, its `set`, the values in the order of the axes (tables, then
`set`), cells in their order. A table with a `kind` replaces the old one whole, and what is said of `link.qdisc` alone
is said of both directions, as in comparison files.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from aqmlab import arguments, scenario, toml_text
from aqmlab.bounds import check_plan
from aqmlab.engine import Tree
from aqmlab.errors import BadInput, shown
from aqmlab.json_files import at
from aqmlab.laws import forms
from aqmlab.scenario import QUEUES, Source
from aqmlab.sweep import axes as axis
from aqmlab.sweep import layers
from aqmlab.sweep.axes import Axis, Value
from aqmlab.sweep.selectors import coordinates, matches, select
from aqmlab.variants import has_variants, laid_over

__all__ = ["Axis", "Grid", "Point", "Value", "read", "seeds", "select"]

GRID_KEYS = (
    *("name", "title", "scenario", "set", "seeds", "uncongested_rate", "calibrate", "same"),
    *("axis", "skip", "cell"),
)
CALIBRATE = (ONCE, OVER_SEEDS, EACH_SEED) = ("once", "over-seeds", "each-seed")


@dataclass(frozen=True)
class Point:
    """One cell of a grid: a scenario, to be run under one seed or several."""

    name: str
    """Grid and values: `web/pi-24/off/98`."""
    grid: str
    at: Mapping[str, str]
    """Axis -> name of its value."""
    labels: Mapping[str, str]
    """Axis -> what people read."""
    numbers: Mapping[str, float]
    """Axis -> its value as a number, of those axes that have numbers."""
    uncongested: bool
    uncongested_rate: str | None
    """Rate of the uncongested link of this point; None: ten times the link's."""
    calibration_rate: str | None
    """Rate of the link that loads are calibrated on, the same for all points of a grid; None: ten times the link's."""
    source: Source
    calibrate: str = ONCE
    """Whose population a load has: that of the first seed, one of all seeds on average, or each seed its own."""
    may_be_another: bool = False
    """Whether another point of its grid may be the same run."""

    @property
    def label(self) -> str:
        """What people read."""
        return ", ".join(self.labels.values()) or self.grid


@dataclass(frozen=True)
class Grid:
    """Axes, and the points that they span."""

    name: str
    title: str
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    seeds: tuple[int, ...] | None = None
    """Seeds of its own; None: those of all grids."""


def read(tree: Mapping[str, Any], origin: str, changes: Mapping[str, Any] | None = None) -> list[Grid]:
    """The grids of a file whose tables are `tree`; `changes` are dotted keys set in all of its scenarios."""
    rows = axis.tables(tree, "grid", origin)
    if not rows:
        raise BadInput(f"{origin}: grid: missing; expected one or more [[grid]] tables")
    grids = []
    for k, row in enumerate(rows):
        table = {"name": "grid", **row} if len(rows) == 1 else row
        base = _scenario(tree.get("scenario", {} if "scenario" in row else None), origin)
        grids.append(_grid(base, table, f"{origin}: grid.{k}", origin, changes or {}))
    axis.all_different([grid.name for grid in grids], f"{origin}: grid")
    _same_units(grids, origin)
    return grids


def as_asked(tree: Mapping[str, Any], origin: str, changes: Mapping[str, Any], count: int | None) -> Tree:
    """The tables of a file that ask for the same by themselves: the scenario's tables in place of its file's name.

    `changes` are set in all grids, and `count` seeds take the place of what the file says.
    """
    asked = dict(tree)
    if isinstance(tree.get("scenario"), str):
        asked["scenario"] = _scenario(tree["scenario"], origin)
    rows = axis.tables(tree, "grid", origin)
    if changes:
        rows = [{**row, "set": scenario.settings_over(row.get("set", {}), changes)} for row in rows]
    if count is not None:
        asked["seeds"] = count
        rows = [{key: item for key, item in row.items() if key != "seeds"} for row in rows]
    return {**asked, "grid": rows}


def _same_units(grids: Sequence[Grid], origin: str) -> None:
    """Axes of one name are one column of numbers."""
    known: dict[str, tuple[str, str]] = {}
    for grid in grids:
        for one in grid.axes:
            if one.unit is None:
                continue
            before, unit = known.setdefault(one.name, (grid.name, one.unit))
            if unit != one.unit:
                raise BadInput(
                    f"{origin}: grid {grid.name}: axis {one.name}: its numbers are {axis.said_unit(one.unit)}, in grid "
                    f"{before} {axis.said_unit(unit)}; expected one unit, or another name for one of the axes"
                )


def seeds(given: Any, where: str, first: int = 1) -> tuple[int, ...]:
    """A count (3: first, first + 1, first + 2) or a list of seeds."""
    check_plan(given if type(given) is int else len(given) if isinstance(given, list) else 0, where)
    if type(given) is int and given >= 1:
        return tuple(range(first, first + given))
    is_list = isinstance(given, list) and given and all(type(seed) is int and seed >= 0 for seed in given)
    if not is_list or len(set(given)) != len(given):
        raise BadInput(f"{where}: {given!r}: expected how many (3), or a list of different ones ([1, 2, 3])")
    return tuple(given)


def first_seed(tree: Mapping[str, Any], where: str) -> int:
    """The seed that a scenario gives, or 1."""
    seed = tree.get("seed", 1)
    if type(seed) is not int or seed < 0:
        raise BadInput(f"{where}: seed: {seed!r}: expected a whole number, 0 or more")
    return seed


def check_seed(tree: Mapping[str, Any], origin: str, changes: Mapping[str, Any], count: int | None) -> None:
    """Refuses a seed that is set where the seeds are a list: it is the first of them only where their number is given.

    `changes` are set in all grids, and `count` seeds take the place of what the file says.
    """
    for k, row in enumerate(axis.tables(tree, "grid", origin)):
        given = row.get("seeds", tree.get("seeds", 1)) if count is None else count
        if not isinstance(given, list):
            continue
        expected = f"does nothing beside the seeds {given}; expected a number of seeds, which are then those from it on"
        if "seed" in changes:
            raise BadInput(f"{arguments.changed('changes', 'seed', changes['seed'])}: {origin}: {expected}")
        if "seed" in row.get("set", {}):
            raise BadInput(f"{origin}: grid.{k}.set.seed: {row['set']['seed']!r}: {expected}")


def _scenario(given: Any, origin: str) -> Tree:
    if isinstance(given, str):
        source = scenario.read(Path(origin).parent / given)
        if has_variants(source):
            raise BadInput(f"{origin}: scenario: {given!r}: is a comparison file; expected one without [[variant]]")
        return _rebased(source.tree, Path(given).parent, Path(origin).parent)
    if not isinstance(given, Mapping):
        raise BadInput(f'{origin}: scenario: {shown(given)}expected a table [scenario], or a file as in "web-pi.toml"')
    return scenario.in_tables(given)


def _rebased(tree: Tree, folder: Path, home: Path) -> Tree:
    """The tables with files named as they are called from the grid's own folder."""

    def renamed(name: str, is_stack: bool) -> str:
        path, _ = forms.meant(home / folder / name)
        return (folder / name).as_posix() if path.is_file() else name

    rebased: Tree = scenario.with_files_renamed(tree, renamed)
    return rebased


def _grid(base: Tree, table: Mapping[str, Any], where: str, origin: str, changes: Mapping[str, Any]) -> Grid:
    axis.known(table, GRID_KEYS, where)
    name = axis.check_name(table.get("name"), f"{where}.name")
    where = f"{where} ({name})"
    for key in ("scenario", "set"):
        if not isinstance(table.get(key, {}), Mapping):
            raise BadInput(f"{where}.{key}: {table[key]!r}: expected a table")
    settings = scenario.with_tables(scenario.settings_over(table.get("set", {}), changes))
    tree = _changed(base, table.get("scenario", {}), settings, where)
    rate = axis.check_rate(table.get("uncongested_rate"), f"{where}.uncongested_rate")
    calibrate = table.get("calibrate", ONCE)
    if calibrate not in CALIBRATE:
        raise BadInput(f"{where}.calibrate: {calibrate!r}: expected one of {', '.join(CALIBRATE)}")
    same = table.get("same", False)
    if not isinstance(same, bool):
        raise BadInput(f"{where}.same: {same!r}: expected true or false")
    axes = tuple(axis.read(row, f"{where}.axis.{k}") for k, row in enumerate(axis.tables(table, "axis", where)))
    axis.all_different([one.name for one in axes], f"{where}.axis")
    values = {one.name: [value.name for value in one.values] for one in axes}
    skips = [coordinates(row, values, f"{where}.skip.{k}") for k, row in enumerate(axis.tables(table, "skip", where))]
    cells = [_cell(row, values, f"{where}.cell.{k}") for k, row in enumerate(axis.tables(table, "cell", where))]
    points = []
    for row in _rows(axes, where):
        at = {one.name: value.name for one, value in zip(axes, row, strict=True)}
        if not any(matches(skip, at) for skip in skips):
            own = [cell for cell in cells if matches(cell.at, at)]
            point = _point("/".join((name, *at.values())), tree, axes, row, own, rate, origin, where)
            points.append(replace(point, calibrate=calibrate, may_be_another=same))
    if not points:
        raise BadInput(f"{where}.skip: leaves nothing of the grid; expected at least one cell")
    for k, cell in enumerate(cells):
        if not any(matches(cell.at, point.at) for point in points):
            raise BadInput(f"{where}.cell.{k}.at: matches no cell of the grid; expected at least one")
    for k, one in enumerate(axes):
        _check_rates(one, points, f"{where}.axis.{k} ({one.name})")
    said = [*(value.said for one in axes for value in one.values), *(cell.said for cell in cells)]
    for point in points:
        _as_set(point, changes, said)
    own_seeds = seeds(table["seeds"], f"{where}.seeds", first_seed(tree, where)) if "seeds" in table else None
    return Grid(name, str(table.get("title", name)), axes, tuple(points), own_seeds)


def _check_rates(one: Axis, points: Sequence[Point], where: str) -> None:
    """Refuses the rate of an uncongested link where no point has one."""
    with_link = {point.at[one.name] for point in points if point.uncongested}
    for k, value in enumerate(one.values):
        if value.uncongested_rate is not None and not value.uncongested and value.name not in with_link:
            raise BadInput(
                f"{where}.value.{k} ({value.name}).uncongested_rate: {value.uncongested_rate!r}: does nothing here; "
                "expected uncongested = true beside it"
            )


@dataclass(frozen=True)
class _Cell:
    where: str
    at: Mapping[str, Sequence[str]]
    change: Mapping[str, Any]
    settings: Mapping[str, Any]
    said: layers.Said


def _cell(table: Mapping[str, Any], values: Mapping[str, Sequence[str]], where: str) -> _Cell:
    at, settings = table.get("at"), table.get("set", {})
    if not isinstance(at, Mapping) or not at:
        raise BadInput(f'{where}.at: {shown(at)}expected coordinates, as in at = {{ aqm = "pi-24" }}')
    if not isinstance(settings, Mapping):
        raise BadInput(f'{where}.set: {settings!r}: expected a table, as in set = {{ "link.qdisc.limit" = "480p" }}')
    change = scenario.in_tables({key: item for key, item in table.items() if key not in ("at", "set")})
    axis.check_no_seed(change, where)
    axis.check_no_seed(settings, f"{where}.set")
    settings = scenario.with_tables(settings)
    said = layers.said(change, settings, is_cell=True)
    return _Cell(where, coordinates(at, values, f"{where}.at"), change, settings, said)


def _rows(axes: Sequence[Axis], where: str) -> list[tuple[Value, ...]]:
    """The product of the axes, those zipped together counted as one; the last varies fastest."""
    groups: dict[tuple[str, str | int], list[int]] = {}
    for k, one in enumerate(axes):
        groups.setdefault(("axis", k) if one.zipped is None else ("zip", one.zipped), []).append(k)
    for members in groups.values():
        lengths = {axes[k].name: len(axes[k].values) for k in members}
        if len(members) == 1 and axes[members[0]].zipped is not None:
            word, name = axes[members[0]].zipped, axes[members[0]].name
            raise BadInput(f"{where}.axis: zip {word!r}: {name} alone has it; expected another axis with that word")
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} has {count}" for name, count in lengths.items())
            raise BadInput(f"{where}.axis: zip {axes[members[0]].zipped!r}: {counts}; expected equally many values")
    check_plan(math.prod(len(axes[members[0]].values) for members in groups.values()), where)
    rows = []
    for chosen in product(*(range(len(axes[members[0]].values)) for members in groups.values())):
        at = {k: place for members, place in zip(groups.values(), chosen, strict=True) for k in members}
        rows.append(tuple(one.values[at[k]] for k, one in enumerate(axes)))
    return rows


def _point(
    name: str,
    tree: Tree,
    axes: Sequence[Axis],
    row: Sequence[Value],
    cells: Sequence[_Cell],
    rate: str | None,
    origin: str,
    where: str,
) -> Point:
    # The files of a scenario lie in the folder of its origin, which a name with slashes would seem to change.
    called = f"{origin} [{name.replace('/', ', ')}]"
    over = []
    for k, (one, value) in enumerate(zip(axes, row, strict=True)):
        tree = _changed(tree, value.change, value.settings, called)
        place, what = f"{where}.axis.{k} ({one.name})", f"axis {one.name} ({value.name})"
        over.append(layers.Layer(place, what, tree, value.said))
    for cell in cells:
        tree = _changed(tree, cell.change, cell.settings, called)
        over.append(layers.Layer(cell.where, "the cell", tree, cell.said, is_cell=True))
    layers.check(over, name)
    grid = name.partition("/")[0]
    return Point(
        name=name,
        grid=grid,
        at={one.name: value.name for one, value in zip(axes, row, strict=True)},
        labels={one.name: value.label for one, value in zip(axes, row, strict=True)},
        numbers={one.name: value.number for one, value in zip(axes, row, strict=True) if value.number is not None},
        uncongested=any(value.uncongested for value in row),
        uncongested_rate=next((value.uncongested_rate for value in row if value.uncongested_rate), rate),
        calibration_rate=rate,
        source=Source({"name": grid, **tree}, called, file=origin),
    )


def _changed(tree: Tree, change: Mapping[str, Any], settings: Mapping[str, Any], called: str) -> Tree:
    return scenario.with_settings(laid_over(tree, change) if change else tree, settings, called)


def _as_set(point: Point, changes: Mapping[str, Any], said: Sequence[layers.Said]) -> None:
    """A setting that an axis overrides would do nothing, and one that overrides an axis would make names lie.

    `said` is what the axes and cells of the grid say.
    """
    for key, wanted in changes.items():
        tree = point.source.tree
        if layers.are_as_set(tree, scenario.with_tables({key: wanted})):
            continue
        asked, here = arguments.changed("changes", key, wanted), at(tree, key)
        if here is None and not layers.is_named(key, said):
            raise BadInput(f"{asked}: {point.name} {_has_instead(tree, key, wanted)}")
        raise BadInput(f"{asked}: {point.name} has {here!r}; expected a key that no axis changes")


def _has_instead(tree: Tree, key: str, wanted: Any) -> str:
    """What a point has where a key was set, which no axis names, and what was expected."""
    other = scenario.stands_for(key)
    if other is not None and (there := at(tree, other)) is not None:
        return f"has {other} = {there!r} in its place; expected a key that no axis changes"
    what = "discipline" if any(step in QUEUES for step in key.split(".")) else key.rpartition(".")[0]
    own = f"set = {{ {toml_text.value(key)} = {toml_text.value(wanted)} }}"
    return f"has another {what}, without this key; expected [[grid.cell]] with {own} for some points alone"
