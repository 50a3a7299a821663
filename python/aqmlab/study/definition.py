"""A study as data: a folder with `study.toml`, `claims.toml` and `README.md`, read and checked before anything runs.

`study.toml` says what is run (a scenario, and grids of changes to it), at which scale (profiles: `full` is the
published one, `medium` has a part of its window, `quick` is one of minutes) and what is drawn; `claims.toml` what is
claimed of it. A profile may leave points of a grid out; what figures and claims name is checked against all points of
the full profile, so that a name that is wrong is wrong in every profile.
"""

import copy
import fnmatch
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aqmlab import arguments, files, near, scenario, toml_text
from aqmlab.bounds import check_plan
from aqmlab.claims import reading
from aqmlab.claims.reading import ClaimText
from aqmlab.errors import BadInput
from aqmlab.json_files import Json
from aqmlab.scenario import Source
from aqmlab.study import folders
from aqmlab.study.folders import FILE, head
from aqmlab.sweep import axes
from aqmlab.sweep import grid as grids
from aqmlab.sweep.grid import Grid, Point
from aqmlab.sweep.selectors import select
from aqmlab.variants import laid_over

CLAIMS, README = "claims.toml", "README.md"
FULL, MEDIUM, QUICK = "full", "medium", "quick"
SCALES = (FULL, MEDIUM, QUICK)
"""Names of profiles on the command line; what the first that was run says stands before what the others say."""
FLAGS = {MEDIUM: "--medium", QUICK: "--quick"}
"""What asks for a profile."""
ASKED_OF_COMPARISONS = "asked_of_comparisons"
"""In `study.toml`: whether its experiment is a comparison of disciplines under one load, which others may make too."""

_KEYS = (
    *("id", "title", "paper", "about", ASKED_OF_COMPARISONS),
    *("profiles", "bed", "scenario", "grid", "choice", "figure", "table", "live"),
)
_PROFILE_KEYS = ("seeds", "set", "says", "asked_only")
_BED_KEYS = ("name", "title", "set", "point", "says")
_BED_POINT_KEYS = ("of", "set")
_GRID_KEYS = ("seeds", "set", "only")
_SELECTORS = {"figure": ("curves",), "table": ("rows",)}


@dataclass(frozen=True)
class Profile:
    """A scale at which a study is run."""

    name: str
    seeds: tuple[int, ...]
    """Of grids that do not say otherwise."""
    set: Json
    """Dotted keys of the scenario, as the lengths of runs."""
    says: str
    """What is less sure at this scale."""
    asked_only: bool = False
    """Points that no claim asks of are run only where they are named."""


@dataclass(frozen=True)
class Bed:
    """A test bed that a study is also asked of: what its scenario says besides, in every grid.

    The claims have a verdict on each, side by side: none of them is chosen after the fact.
    """

    name: str
    """On the command line."""
    title: str
    """In words, as the head of a column."""
    set: Json
    """Dotted keys of the scenario, beneath what axes and cells say."""
    says: str
    """What is set, and how it is known."""
    points: tuple[tuple[Json, Json], ...] = ()
    """Selectors of points, each with dotted keys that are set above what axes and cells say."""


@dataclass(frozen=True)
class Study:
    """A study at one scale."""

    folder: Path
    tree: Json
    """`study.toml` as tables."""
    profile: Profile
    grids: tuple[Grid, ...]
    """With the points of this profile alone."""
    seeds: Mapping[str, tuple[int, ...]]
    """Of each grid, by its name."""
    everything: tuple[Point, ...] = field(repr=False)
    """All points of the full profile."""
    claims: tuple[ClaimText, ...] = field(repr=False)
    asked_seeds: int | None = None
    """Runs of each point, where that was asked for in place of what the study says."""
    only: tuple[str, ...] = ()
    """Patterns of names of points, where only a part of the profile was asked for."""
    changes: Json = field(default_factory=dict)
    """Dotted keys of the scenario that are not what the study says."""
    bed: Bed | None = None
    """The test bed that it is asked of; none for the study as its scenario stands."""
    asked_as: str | None = None
    """The command that runs all of it at the published scale, where it is not `aqmlab study`."""

    @property
    def command(self) -> str:
        """What runs it just so."""
        is_ours = files.end_of_links(self.folder) == files.end_of_links(folders.folder_of_all() / self.id)
        words = ["aqmlab", "study", self.id if is_ours else str(self.folder)]
        words = shlex.split(self.asked_as) if self.asked_as is not None else words
        words += [FLAGS[self.profile.name]] if self.profile.name in FLAGS else []
        words += [] if self.bed is None else ["--bed", self.bed.name]
        words += [] if self.asked_seeds is None else ["--seeds", str(self.asked_seeds)]
        words += [word for pattern in self.only for word in ("--only", pattern)]
        words += [word for key, item in self.changes.items() for word in ("--set", f"{key}={_setting(item)}")]
        return shlex.join(words)

    @property
    def id(self) -> str:
        """What it is called on the command line."""
        return str(self.tree["id"])

    @property
    def title(self) -> str:
        """The title of the paper."""
        return str(self.tree["title"])

    @property
    def paper(self) -> str:
        """Where it was published."""
        return str(self.tree.get("paper", ""))

    @cached_property
    def about(self) -> str:
        """What was asked, done and found: of `study.toml`, or else the README up to its second heading."""
        if "about" in self.tree:
            return str(self.tree["about"])
        path = self.folder / README
        if not path.exists():
            return ""
        lines = files.text(path, files.PROSE).splitlines()
        heads = [k for k, line in enumerate(lines) if line.startswith("#")]
        first, end = (heads[0] + 1, [*heads[1:], len(lines)][0]) if heads else (0, len(lines))
        return "\n".join(lines[first:end]).strip()

    @property
    def points(self) -> list[Point]:
        """All points of this profile."""
        return [point for grid in self.grids for point in grid.points]

    @property
    def runs(self) -> list[tuple[Point, int]]:
        """Every run of this profile: point and seed."""
        return [(point, seed) for grid in self.grids for point in grid.points for seed in self.seeds[grid.name]]

    @property
    def count(self) -> int:
        """How many runs that are."""
        return sum(len(grid.points) * len(self.seeds[grid.name]) for grid in self.grids)

    @property
    def figures(self) -> list[Json]:
        """The figures that `study.toml` asks for."""
        from aqmlab.study import figures  # drawing takes a second to load

        return figures.every(self.tree.get("figure", []))

    @property
    def tables(self) -> list[Json]:
        """The tables, as they stand in `study.toml`."""
        return list(self.tree.get("table", []))

    @property
    def beds(self) -> list[Bed]:
        """The test beds that it can be asked of."""
        return _beds(self.tree, self.folder / FILE)

    def check_scales(self) -> None:
        """Refuses what profiles and test beds say and no scenario can have, those that are not run among them.

        Each is tried on the first point.
        """
        path, first = self.folder / FILE, self.everything[0]
        full, *others = (_profile(self.tree, path, name) for name in by_scale(self.tree["profiles"]))
        said = [(f"profiles.{one.name}.set", one.set) for one in (full, *others)]
        said += [(f"bed {bed.name}: set", scenario.settings_over(full.set, bed.set)) for bed in self.beds]
        for where, settings in said:
            tree = scenario.copied(first.source.tree)
            for key in full.set.keys() - settings.keys():
                tree.pop(key, None)  # what this profile leaves as it is without any
            source = first.source.with_tree(tree).with_changes(settings)
            replace(source, origin=f"{path}: {where}").resolve()

    @property
    def live(self) -> Path | None:
        """The comparison that is also run between real TCP stacks."""
        found = self.tree.get("live")
        return None if found is None else self.folder / str(found["file"])


def by_scale(profiles: Iterable[str]) -> list[str]:
    """Names of profiles, the largest scale first."""
    return sorted(profiles, key=lambda name: (SCALES.index(name) if name in SCALES else len(SCALES), name))


def read(
    folder: Path,
    profile: str = FULL,
    seeds: int | None = None,
    only: Sequence[str] = (),
    changes: Mapping[str, Any] = MappingProxyType({}),
    bed: str | None = None,
) -> Study:
    """Reads a study and checks it; `seeds` runs of each point, whatever the profile says.

    `only` are patterns (`web/*/98`) of the names of the points that are to be run; all of the profile without.
    `changes` are dotted keys of the scenario that are set in every grid; values of axes and cells stand above them.
    `bed` names the test bed that it is asked of.
    """
    return of_tree(folder, head(folder), profile, seeds, only, changes, bed=bed)


def of_tree(
    folder: Path,
    tree: Json,
    profile: str = FULL,
    seeds: int | None = None,
    only: Sequence[str] = (),
    changes: Mapping[str, Any] = MappingProxyType({}),
    asked_as: str | None = None,
    bed: str | None = None,
) -> Study:
    """The same of tables that stand for `study.toml` of a folder; `asked_as` is the command that runs it in full."""
    path = folder / FILE
    axes.known(tree, _KEYS, str(path))
    if not isinstance(tree.get(ASKED_OF_COMPARISONS, False), bool):
        asked = tree[ASKED_OF_COMPARISONS]
        raise BadInput(f"{path}: {ASKED_OF_COMPARISONS}: {asked!r}: expected true or false")
    everything = tuple(point for grid in _grids(tree, path, FULL) for point in grid.points)
    chosen = _profile(tree, path, profile)
    on = None if bed is None else _bed(tree, path, bed)
    if on is not None:
        set_there = scenario.settings_over(chosen.set, on.set)
        chosen = replace(chosen, set=set_there, says=f"{chosen.says.rstrip()}\n{on.says.strip()}")
    of_bed = {} if on is None else on.set
    where = f"study {tree['id']}"
    check_plan(seeds or 0, where)
    if "seed" in changes:
        seed = arguments.changed("changes", "seed", changes["seed"], _setting(changes["seed"]))
        number = arguments.called("seeds")
        raise BadInput(f"{where}: {seed}: the study's seeds are run; expected {number} for another number of them")
    claims = folder / CLAIMS
    texts = tuple(reading.read(claims, str(tree.get("paper", "")), everything)) if claims.exists() else ()
    asked = {name for text in texts for name in text.points}

    def laid(settings: Mapping[str, Any]) -> list[Grid]:
        return _on_bed(_grids(tree, path, profile, scenario.settings_over(of_bed, settings)), on, everything, path)

    def wanted(whole: list[Grid]) -> list[Grid]:
        if only:
            return _parts(whole, only, where)
        return _kept(whole, asked) if chosen.asked_only and asked else whole

    of_profile = laid(changes)
    parts = wanted(of_profile)
    if changes:
        words = _changed_words(parts, lambda settings: wanted(laid(settings)), changes, where)
        settings = scenario.settings_over(chosen.set, changes)
        chosen = replace(chosen, set=settings, says=f"{chosen.says.rstrip()}\n{words}")
    if only:
        chosen = replace(chosen, says=f"{chosen.says.rstrip()}\n{_only_words(parts, of_profile, only)}")
    elif _count(parts) < _count(of_profile):
        chosen = replace(chosen, says=f"{chosen.says.rstrip()}\n{_asked_words(parts, of_profile)}")
    study = Study(
        folder=folder,
        tree=tree,
        profile=chosen if seeds is None else _with_seeds(chosen, seeds),
        grids=tuple(parts),
        seeds={
            grid.name: _seeds_of(tree, path, grid.name, chosen) if seeds is None else tuple(range(1, seeds + 1))
            for grid in parts
        },
        everything=everything,
        claims=texts,
        asked_seeds=seeds,
        only=tuple(only),
        changes=dict(changes),
        bed=on,
        asked_as=asked_as,
    )
    check_plan(study.count, where)
    _check_selectors(study, path)
    for grid in parts if changes else ():
        grid.points[0].source.resolve()  # a key that no scenario has is refused now
    return study


def _with_seeds(profile: Profile, seeds: int) -> Profile:
    runs = f"{seeds} run{'s' if seeds > 1 else ''} of each point"
    words = f"`--seeds` makes it {runs}, in place of the number that belongs to this profile."
    return replace(profile, seeds=tuple(range(1, seeds + 1)), says=f"{profile.says.rstrip()}\n{words}")


def _parts(whole: Sequence[Grid], only: Sequence[str], where: str) -> list[Grid]:
    """The grids with those points alone whose names match a pattern, each of which must match one."""
    names = [point.name for grid in whole for point in grid.points]
    for pattern in only:
        if not fnmatch.filter(names, pattern):
            asked = arguments.named("only", pattern)
            raise BadInput(
                f"{where}: {asked}: matches none of its {len(names)} points; expected a name as "
                f"{names[0]}, or a pattern of such as {names[0].partition('/')[0]}/*"
            )
    return _kept(whole, {name for pattern in only for name in fnmatch.filter(names, pattern)})


def _kept(whole: Sequence[Grid], names: set[str]) -> list[Grid]:
    cut = [replace(grid, points=tuple(point for point in grid.points if point.name in names)) for grid in whole]
    return [grid for grid in cut if grid.points]


def _count(parts: Sequence[Grid]) -> int:
    return sum(len(grid.points) for grid in parts)


def _only_words(parts: Sequence[Grid], whole: Sequence[Grid], only: Sequence[str]) -> str:
    named = " or ".join(f"`{pattern}`" for pattern in only)  # else the asterisks would mean something on a page
    return f"Only a part of it was run: {_count(parts)} of {_count(whole)} points, those named {named}."


def _asked_words(parts: Sequence[Grid], whole: Sequence[Grid]) -> str:
    count = f"{_count(parts)} of {_count(whole)}"
    return f"Only the points that claims ask of were run, {count}: `--only` runs others by name."


def _changed_words(
    now: Sequence[Grid], laid: Callable[[Mapping[str, Any]], Sequence[Grid]], changes: Mapping[str, Any], where: str
) -> str:
    """What was changed, each key with the points in which it makes a difference: axes may set the same keys."""
    said = []
    for key, item in changes.items():
        without = laid({other: kept for other, kept in changes.items() if other != key})
        points, others = ([point for grid in side for point in grid.points] for side in (now, without))
        differ = sum(one.source.tree != other.source.tree for one, other in zip(points, others, strict=True))
        if differ == 0:
            asked = arguments.changed("changes", key, item, _setting(item))
            raise BadInput(
                f"{where}: {asked}: changes none of the points asked for ({len(points)}), whose "
                "axes say otherwise or which are so without it"
            )
        said.append(f"{key} = {_setting(item)}, in {differ} of {len(points)} points")
    return f"Not as the study was: {'; '.join(said)}."


def _setting(item: Any) -> str:
    """A value as `--set` reads it back."""
    return item if isinstance(item, str) and scenario.parse_setting(f"key={item}")[1] == item else toml_text.value(item)


def has_scale(folder: Path, name: str) -> bool:
    """Whether a study has a profile; one whose profiles are no tables is left to be read, and refused."""
    profiles = head(folder).get("profiles")
    return not isinstance(profiles, Mapping) or name in profiles


def _profile(tree: Json, path: Path, name: str) -> Profile:
    profiles = tree.get("profiles", {})
    if not isinstance(profiles, Mapping) or not isinstance(profiles.get(name), Mapping):
        there = ", ".join(profiles) if isinstance(profiles, Mapping) and profiles else "none is there"
        raise BadInput(f"{path}: profiles.{name}: missing; expected a table with seeds and set ({there})")
    table = profiles[name]
    where = f"{path}: profiles.{name}"
    axes.known(table, _PROFILE_KEYS, where)
    asked_only = table.get("asked_only", False)
    if not isinstance(asked_only, bool):
        raise BadInput(f"{where}.asked_only: {asked_only!r}: expected true or false")
    return Profile(
        name,
        grids.seeds(table.get("seeds"), f"{where}.seeds"),
        _settings(table.get("set", {}), f"{where}.set"),
        str(table.get("says", "")),
        asked_only,
    )


def _beds(tree: Json, path: Path) -> list[Bed]:
    found = []
    for position, table in enumerate(_tables(tree, path, "bed")):
        where = f"{path}: bed.{position}"
        axes.known(table, _BED_KEYS, where)
        for key in ("name", "title"):
            if not table.get(key):
                raise BadInput(f"{where}.{key}: missing; expected a test bed with name, title and set or point")
        settings = _settings(table.get("set", {}), f"{where}.set")
        points = _bed_points(table, where)
        if not settings and not points:
            raise BadInput(f"{where}.set: missing; expected what is otherwise on this test bed, as set or point")
        found.append(Bed(str(table["name"]), str(table["title"]), settings, str(table.get("says", "")), points))
    return found


def _bed_points(table: Json, where: str) -> tuple[tuple[Json, Json], ...]:
    """What a test bed sets in some points alone."""
    rows = table.get("point", [])
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise BadInput(f"{where}.point: expected [[bed.point]] tables")
    found = []
    for k, row in enumerate(rows):
        place = f"{where}.point.{k}"
        axes.known(row, _BED_POINT_KEYS, place)
        settings = _settings(row.get("set", {}), f"{place}.set")
        if not isinstance(row.get("of"), Mapping) or not settings:
            raise BadInput(f'{place}: expected of and set, as in of = {{ aqm = "pi-24" }}')
        found.append((dict(row["of"]), settings))
    return tuple(found)


def _on_bed(grids_: Sequence[Grid], bed: Bed | None, everything: Sequence[Point], path: Path) -> list[Grid]:
    """The grids with what a test bed sets in some points alone."""
    if bed is None:
        return list(grids_)
    above: dict[str, Json] = {}
    for k, (selector, settings) in enumerate(bed.points):
        for point in select(everything, selector, f"{path}: bed {bed.name}: point.{k}.of"):
            above[point.name] = scenario.settings_over(above.get(point.name, {}), settings)

    def set_(point: Point) -> Point:
        changes = above.get(point.name)
        return point if changes is None else replace(point, source=point.source.with_changes(changes))

    return [replace(grid, points=tuple(set_(point) for point in grid.points)) for grid in grids_]


def _bed(tree: Json, path: Path, name: str) -> Bed:
    there = {bed.name: bed for bed in _beds(tree, path)}
    if name not in there:
        expected = f"one of {', '.join(there)}" if there else "none: this study has no other test bed"
        raise BadInput(f"study {tree['id']}: --bed {name}: expected {expected}")
    return there[name]


def _settings(value: Any, where: str) -> Json:
    if not isinstance(value, Mapping):
        raise BadInput(f'{where}: {value!r}: expected a table, as in {{ duration = "120min" }}')
    axes.check_no_seed(value, where)
    return dict(value)


def _tables(tree: Json, path: Path, key: str) -> list[Json]:
    found = tree.get(key, [])
    if not isinstance(found, list) or not all(isinstance(table, Mapping) for table in found):
        raise BadInput(f"{path}: {key}: expected [[{key}]] tables")
    return [dict(table) for table in found]


def _of_grid(table: Json, path: Path, position: int, profile: str) -> Json | None:
    """What a grid says of a profile; none where it has no part in it."""
    where = f"{path}: grid.{position}.{profile}"
    own = table.get(profile, {})
    if own is False:
        return None
    if not isinstance(own, Mapping):
        raise BadInput(f"{where}: {own!r}: expected a table with seeds, set, only; or false to leave the grid out")
    axes.known(own, _GRID_KEYS, where)
    return dict(own)


def _grids(tree: Json, path: Path, profile: str, changes: Mapping[str, Any] = MappingProxyType({})) -> list[Grid]:
    """The grids of a profile, its settings and those asked for put under the changes of the axes."""
    chosen = _profile(tree, path, profile)
    base = _scenario(tree, path)
    tables, kept = [], []
    for position, table in enumerate(_tables(tree, path, "grid")):
        own = _of_grid(table, path, position, profile)
        if own is None:
            continue
        where = f"{path}: grid.{position}"
        beneath = _settings(table.get("scenario", {}), f"{where}.scenario")
        said = (table.get("set", {}), f"{where}.set"), (own.get("set", {}), f"{where}.{profile}.set")
        of_grid, of_profile = (_settings(table, place) for table, place in said)
        settings = reduce(scenario.settings_over, (of_grid, chosen.set, of_profile, changes))
        whole = Source(laid_over(base, beneath), str(path)).with_changes(settings).tree
        own_keys = (*tree["profiles"], "seeds", "scenario", "set")
        rest = {key: item for key, item in table.items() if key not in own_keys}
        tables.append({**copy.deepcopy(rest), "scenario": whole})
        kept.append((f"{path}: grid.{position}.{profile}.only", own.get("only")))
    if not tables:
        raise BadInput(f"{path}: grid: nothing to run in the profile {profile}; expected one or more [[grid]] tables")
    made = grids.read({"scenario": {}, "grid": tables}, str(path))
    return [_only(grid, only, where) for grid, (where, only) in zip(made, kept, strict=True)]


def _scenario(tree: Json, path: Path) -> Json:
    found = tree.get("scenario", {})
    if isinstance(found, str):
        return scenario.read(path.parent / found).tree
    return _settings(found, f"{path}: scenario")


def _only(grid: Grid, only: Any, where: str) -> Grid:
    """The grid with the points that a profile keeps of it: those of a selector, or of any of a list of them."""
    if only is None:
        return grid
    several = only if isinstance(only, list) else [only]
    if not several or not all(isinstance(one, Mapping) for one in several):
        raise BadInput(f'{where}: {only!r}: expected axes and names of values, as in {{ load = ["90", "98"] }}')
    kept = {point.name for one in several for point in select(grid.points, dict(one), where)}
    return replace(grid, points=tuple(point for point in grid.points if point.name in kept))


def _seeds_of(tree: Json, path: Path, name: str, profile: Profile) -> tuple[int, ...]:
    """Seeds of a grid: what it says of the profile, what it says of all, what the profile says."""
    for position, table in enumerate(_tables(tree, path, "grid")):
        if table.get("name") == name:
            own = _of_grid(table, path, position, profile.name) or {}
            if "seeds" in own:
                return grids.seeds(own["seeds"], f"{path}: grid.{position}.{profile.name}.seeds")
            if "seeds" in table:
                return grids.seeds(table["seeds"], f"{path}: grid.{position}.seeds")
    return profile.seeds


def _check_ids(study: Study, path: Path) -> None:
    """Figures and tables have files of their own, which their ids name."""
    from aqmlab.study import figures, tables

    for kind, names in (
        ("figure", [(spec["id"], figures.name_of(spec)) for spec in study.figures]),
        ("table", [(spec["id"], tables.name_of(spec)) for spec in study.tables]),
    ):
        for k, (one, name) in enumerate(names):
            if other := next((other for other, file in names[:k] if file == name), None):
                raise BadInput(
                    f"{path}: {kind}: id: {one!r}: expected another than that of the {kind} {other!r}, as files are "
                    f"called after it ({name})"
                )


def _check_selectors(study: Study, path: Path) -> None:
    """Whatever figures and tables name must be there in the full profile, and be such that they can be drawn."""
    from aqmlab.study import figures, tables  # drawing takes a second to load, and listing studies needs none of it

    checks = {"figure": (figures.check, figures.check_axes), "table": (tables.check, tables.check_axes)}
    for kind, keys in _SELECTORS.items():
        check, check_axes = checks[kind]
        for position, table in enumerate(_tables(study.tree, path, kind)):
            where = f"{path}: {kind}.{position}"
            check(table, where)
            points = [
                point
                for key in keys
                for k, selector in enumerate(table[key])
                for point in select(study.everything, selector, f"{where}.{key}.{k}")
            ]
            check_axes(table, points, where)
    _check_ids(study, path)
    grids_ = list(dict.fromkeys(point.grid for point in study.everything))
    for position, choice in enumerate(_tables(study.tree, path, "choice")):
        if (swept := choice.get("swept_in")) is not None and swept not in grids_:
            raise BadInput(f"{path}: choice.{position}: swept_in: {swept!r}: {near.expected(swept, grids_)}")
    for bed in study.beds:
        _on_bed([], bed, study.everything, path)
    live = study.tree.get("live")
    if live is not None:
        if not isinstance(live, Mapping) or not isinstance(live.get("file"), str):
            raise BadInput(f'{path}: live: {live!r}: expected a table, as in file = "live.toml"')
        axes.known(live, ("file", "seed", "reps", "says"), f"{path}: live")
        if study.live is not None and not study.live.is_file():
            raise BadInput(f"{path}: live.file: {live['file']!r}: expected a comparison file beside it")
