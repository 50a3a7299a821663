"""From points and seeds to tasks: loads calibrated, populations put in their place, everything checked by the engine.

A load is calibrated once for all points that ask for the same demand, with the first seed of each, or over all of its
seeds or with each of them where the grid says so; calibrations run side by side. Tasks that are the same run have the
same key, wherever they come from.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aqmlab import doubts, engine, reference, scenario, shaping, toml_text
from aqmlab.engine import KeptFile, Need, Resolved
from aqmlab.errors import BadInput, Interrupted, doubt
from aqmlab.files import cache_folder
from aqmlab.json_files import Json
from aqmlab.laws import brought
from aqmlab.progress import NOTHING, Foreseen, Monitor, Silent, Size
from aqmlab.runs import planning, runner
from aqmlab.runs.calibration import Calibration
from aqmlab.runs.loads import Asked, Loads
from aqmlab.sweep.grid import EACH_SEED, OVER_SEEDS, Point
from aqmlab.sweep.kept import Kept, key_of


@dataclass(frozen=True)
class Task:
    """One run to be made, complete in itself but for the files that its scenario names."""

    key: str
    """What the run is: tasks with the same key are the same run."""
    point: str
    """Name of the (first) point that asks for it."""
    label: str
    """What people read while it runs."""
    seed: int
    toml: str
    """The resolved scenario."""
    origin: str
    """Where it comes from; the files that it names lie beside it."""
    digest: str
    """Of the scenario."""
    size: Size
    calibrations: tuple[Json, ...] = ()
    files: tuple[KeptFile, ...] = ()
    """Files that the run needs, relative to the folder of `origin`."""
    is_reference: bool = False
    """Whether its link is to be uncongested."""
    memory: tuple[Need, ...] = ()
    """What it will need."""
    modules: str = ""
    """A digest of what its laws import."""

    @property
    def name(self) -> str:
        """What it is called in complaints."""
        return f"{self.point}, seed {self.seed}"


Group = tuple[int, str, int]
"""Seeds that share a calibration: the number of the plan, the point, and the first of them."""


def plan(
    runs: Sequence[tuple[Point, int]],
    *,
    jobs: int | None = None,
    monitor: Monitor | None = None,
    fresh: bool = False,
    kept: Kept | None = None,
) -> list[Task]:
    """A task for each pair of point and seed, in the same order; see `together`."""
    return together([runs], jobs=jobs, monitor=Foreseen(monitor or Silent()), fresh=fresh, kept=kept)[0]


def together(
    plans: Sequence[Sequence[tuple[Point, int]]],
    *,
    monitor: Foreseen,
    jobs: int | None = None,
    fresh: bool = False,
    kept: Kept | None = None,
) -> list[list[Task]]:
    """A task for each pair of point and seed of several plans, which share their calibrations.

    Where loads are to be looked for, the monitor hears before of the runs that come after it, but for those that are
    `kept`. `fresh`: neither calibrations nor runs are taken from before.
    """
    at_once = runner.default_jobs() if jobs is None else jobs
    if at_once < 1:
        raise BadInput(f"jobs: {jobs}: expected 1 or more")
    seeds: dict[Group, list[int]] = {}
    points: dict[Group, Point] = {}
    for number, runs in enumerate(plans):
        for group, point, seed in _grouped(number, runs):
            seeds.setdefault(group, []).append(seed)
            points[group] = point
    resolved = _resolved(points)
    loads = Loads(fresh)
    asked = {
        group: loads.ask(
            item,
            reference.asked_rate_bps(points[group].calibration_rate),
            seeds[group] if points[group].calibrate == OVER_SEEDS else (),
            seed_is_said=points[group].calibrate == EACH_SEED,
        )
        for group, item in resolved.items()
    }
    home = Path.cwd()

    def tasks_of(group: Group) -> list[Task]:
        return _tasks(points[group], resolved[group], loads.of(asked[group]), seeds[group], home)

    with planning.uncollected():
        tasks = {group: tasks_of(group) for group in seeds if loads.has(asked[group])}
    if not loads.are_known:
        known = {task.key: task.size for one in tasks.values() for task in one}
        sizes = [size for key, size in known.items() if fresh or kept is None or not kept.has(key)]
        sizes += _foreseen({group: seeds[group] for group in seeds if group not in tasks}, points, resolved, asked)
        monitor.foresee(len(sizes), sum(sizes, NOTHING))
        try:
            loads.find(at_once, monitor.told)
        except KeyboardInterrupt:
            said = "the loads that are found are kept, no run was made yet"
            if (why := (kept or Kept()).unusable()) is not None:
                said = f"nothing can be kept in {cache_folder()} ({why}), and no run was made yet"
            raise Interrupted(f"stopped while calibrating; {said}") from None
    with planning.uncollected():
        tasks |= {group: tasks_of(group) for group in seeds if group not in tasks}
        by_seed = {(*group[:2], task.seed): task for group, one in tasks.items() for task in one}
        return [[by_seed[number, point.name, seed] for point, seed in runs] for number, runs in enumerate(plans)]


def _grouped(number: int, runs: Sequence[tuple[Point, int]]) -> Iterator[tuple[Group, Point, int]]:
    """The runs of a plan, each with the group that it belongs to."""
    first_of: dict[str, int] = {}
    for point, seed in runs:
        first = seed if point.calibrate == EACH_SEED else first_of.setdefault(point.name, seed)
        yield (number, point.name, first), point, seed


@planning.uncollected()
def _resolved(points: Mapping[Group, Point]) -> dict[Group, Resolved]:
    """Every point with its first seed, checked."""
    sources = [point.source.with_changes({"seed": first}) for (_, _, first), point in points.items()]
    resolved = dict(zip(points, planning.resolved(sources), strict=True))
    _all_different(points, resolved)
    told: set[tuple[str, str]] = set()
    for group, item in resolved.items():
        if not points[group].uncongested:
            shaping.doubts(item)
        for line in doubts.loads(item):
            if (about := (points[group].grid, line)) not in told:
                told.add(about)
                doubt(f"{item.origin}: {line}")
    return resolved


def _all_different(points: Mapping[Group, Point], resolved: Mapping[Group, Resolved]) -> None:
    """Refuses two points of a grid that are one run under two names, unless the grid says that this is meant."""
    names: dict[tuple[int, str, int, str], str] = {}
    for group, item in resolved.items():
        point, (number, name, first) = points[group], group
        if point.may_be_another:
            continue
        what = _on_its_link(point, item).digest
        other = names.setdefault((number, point.grid, first, what), name)
        if other != name:
            raise BadInput(
                f"{point.source.file or point.source.origin}: grid {point.grid}: {other} and {name} are the same run; "
                f"expected one of them in [[grid.skip]], or same = true in the grid where that is meant"
            )


def _on_its_link(point: Point, resolved: Resolved) -> Resolved:
    """The scenario of a point, before populations are put in the place of loads."""
    if not point.uncongested:
        return resolved
    rates = reference.rates(resolved.scenario, resolved.origin, reference.asked_rate_bps(point.uncongested_rate))
    tree = reference.uncongested(resolved.scenario, rates, resolved.origin)
    return engine.resolve(toml_text.dumps(tree), resolved.origin)


def _foreseen(
    seeds: Mapping[Group, Sequence[int]],
    points: Mapping[Group, Point],
    resolved: Mapping[Group, Resolved],
    asked: Mapping[Group, Asked],
) -> list[Size]:
    """The size of each different run of some groups, before their populations are known."""
    sizes: dict[tuple[str, tuple[str, ...], int], Size] = {}
    for group, own in seeds.items():
        item = _on_its_link(points[group], resolved[group])
        loads = tuple(key for key, _ in asked[group])
        for seed in own:
            sizes[item.digest, loads, seed] = runner.size(item, resolved[group].loads)
    return list(sizes.values())


def _tasks(
    point: Point, resolved: Resolved, found: Sequence[Calibration], seeds: Sequence[int], home: Path
) -> list[Task]:
    first = _on_its_link(point, resolved)
    tree = first.scenario
    for each in found:
        tree = scenario.with_users(tree, each.traffic, each.users)
    if found:
        first = engine.resolve(toml_text.dumps(tree), resolved.origin)
    notes = tuple({key: item for key, item in each.as_dict().items() if key != "cached"} for each in found)
    tasks, modules = [], brought.modules_sha256(first.scenario)
    for seed in seeds:
        # What is resolved resolves to itself.
        is_first = seed == first.scenario["seed"]
        final = first if is_first else engine.resolve(first.toml, resolved.origin, [("seed", str(seed))])
        tasks.append(
            Task(
                key=key_of(final.digest, modules),
                point=point.name,
                label=f"{point.name}, seed {seed}" if len(seeds) > 1 or point.calibrate == EACH_SEED else point.name,
                seed=seed,
                toml=final.toml,
                origin=str(home / resolved.origin),
                digest=final.digest,
                size=runner.size(final, resolved.loads),
                calibrations=notes,
                files=final.files,
                is_reference=point.uncongested,
                memory=final.memory,
                modules=modules,
            )
        )
    return tasks
