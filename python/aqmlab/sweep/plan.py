"""From points and seeds to tasks: loads calibrated, populations put in their place, everything checked by the engine.

A load is calibrated once for all points that ask for the same demand, with the first seed of each, or with each of its
seeds where the grid says so; calibrations run side by side. Tasks that are the same run have the same key, wherever
they come from.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from aqmlab import engine, reference, scenario, shaping, toml_text, units
from aqmlab.engine import KeptFile, Load, Need, Resolved
from aqmlab.errors import BadInput, Interrupted
from aqmlab.json_files import Json
from aqmlab.progress import Monitor, Silent, Size
from aqmlab.runs import calibration, planning, runner
from aqmlab.runs.calibration import Calibration
from aqmlab.sweep.grid import Point
from aqmlab.sweep.kept import key_of


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

    @property
    def name(self) -> str:
        """What it is called in complaints."""
        return f"{self.point}, seed {self.seed}"


def plan(
    runs: Sequence[tuple[Point, int]],
    *,
    jobs: int | None = None,
    monitor: Monitor | None = None,
    fresh: bool = False,
    known: dict[str, Calibration] | None = None,
) -> list[Task]:
    """A task for each pair of point and seed, in the same order.

    `fresh`: calibrations are not read from the cache. `known` are those that other plans of the same command have come
    to, by their keys; what this one finds is added.
    """
    monitor, at_once = monitor or Silent(), runner.default_jobs() if jobs is None else jobs
    if at_once < 1:
        raise BadInput(f"jobs: {jobs}: expected 1 or more")
    points = {point.name: point for point, _ in runs}
    # Seeds that share a calibration, by the point and the first of them.
    shared: dict[tuple[str, int], list[int]] = {}
    first_of: dict[str, int] = {}
    for point, seed in runs:
        first = seed if point.calibrates_each_seed else first_of.setdefault(point.name, seed)
        shared.setdefault((point.name, first), []).append(seed)
    resolved = _resolved(points, list(shared))
    found = _calibrated(points, resolved, at_once, monitor, fresh, {} if known is None else known)
    with planning.uncollected():
        home = Path.cwd()
        tasks = {
            (group[0], task.seed): task
            for group, seeds in shared.items()
            for task in _tasks(points[group[0]], resolved[group], found[group], seeds, home)
        }
        return [tasks[point.name, seed] for point, seed in runs]


@planning.uncollected()
def _resolved(points: Mapping[str, Point], groups: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Resolved]:
    """Every point with its first seed, checked."""
    sources = [points[name].source.with_changes({"seed": first}) for name, first in groups]
    resolved = dict(zip(groups, planning.resolved(sources), strict=True))
    _all_different(points, resolved)
    for (name, _), item in resolved.items():
        if not points[name].uncongested:
            shaping.doubts(item)
    return resolved


def _all_different(points: Mapping[str, Point], resolved: Mapping[tuple[str, int], Resolved]) -> None:
    """Refuses two points of a grid that are one run under two names, unless the grid says that this is meant."""
    names: dict[tuple[str, int, str], str] = {}
    for (name, first), item in resolved.items():
        point = points[name]
        if point.may_be_another:
            continue
        what = _on_its_link(point, item).digest
        other = names.setdefault((point.grid, first, what), name)
        if other != name:
            raise BadInput(
                f"{point.source.file or point.source.origin}: grid {point.grid}: {other} and {name} are the same run; "
                f"expected one of them in [[grid.skip]], or same = true in the grid where that is meant"
            )


def _on_its_link(point: Point, resolved: Resolved) -> Resolved:
    """The scenario of a point, before populations are put in the place of loads."""
    if not point.uncongested:
        return resolved
    rates = reference.rates(resolved.scenario, resolved.origin, _rate(point.uncongested_rate))
    tree = reference.uncongested(resolved.scenario, rates, resolved.origin)
    return engine.resolve(toml_text.dumps(tree), resolved.origin)


def _calibrated(
    points: Mapping[str, Point],
    resolved: Mapping[tuple[str, int], Resolved],
    at_once: int,
    monitor: Monitor,
    fresh: bool,
    known: dict[str, Calibration],
) -> dict[tuple[str, int], list[Calibration]]:
    """The populations of each point, by its name and the seed that they are looked for with."""
    asked: dict[str, tuple[Resolved, Load, float | None]] = {}
    keys: dict[tuple[str, int], list[tuple[str, Load]]] = {}
    for group, item in resolved.items():
        rate = _rate(points[group[0]].calibration_rate)
        keys[group] = [(calibration.key_of(item, load, rate), load) for load in item.loads]
        for key, load in keys[group]:
            if key not in known:
                asked.setdefault(key, (item, load, rate))

    # A search is a few runs one after the other, so several searches share the processors better than one at a time.
    each = max(1, at_once // max(1, len(asked)))

    def search(item: Resolved, load: Load, rate: float | None, stop: threading.Event) -> Calibration:
        return calibration.calibrate(item, load, each, _Stoppable(monitor, stop), rate, fresh)

    try:
        answers = runner.in_parallel([partial(search, *what) for what in asked.values()], at_once)
    except KeyboardInterrupt:
        raise Interrupted("stopped while calibrating; the loads that are found are kept, no run was made yet") from None
    known.update(zip(asked, answers, strict=True))
    return {group: [replace(known[key], traffic=load.traffic) for key, load in own] for group, own in keys.items()}


class _Stoppable:
    """Ends runs of calibrations at their next report of progress once they are to stop."""

    def __init__(self, monitor: Monitor, stop: threading.Event) -> None:
        self.expect, self.begin, self.end = monitor.expect, monitor.begin, monitor.end
        self._monitor, self._stop = monitor, stop

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        if self._stop.is_set():
            raise runner.Cancelled
        self._monitor.tick(run, tick)


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
    tasks = []
    for seed in seeds:
        # What is resolved resolves to itself.
        is_first = seed == first.scenario["seed"]
        final = first if is_first else engine.resolve(first.toml, resolved.origin, [("seed", str(seed))])
        tasks.append(
            Task(
                key=key_of(final.digest),
                point=point.name,
                label=f"{point.name}, seed {seed}" if len(seeds) > 1 or point.calibrates_each_seed else point.name,
                seed=seed,
                toml=final.toml,
                origin=str(home / resolved.origin),
                digest=final.digest,
                size=runner.size(final, resolved.loads),
                calibrations=notes,
                files=final.files,
                is_reference=point.uncongested,
                memory=final.memory,
            )
        )
    return tasks


def _rate(text: str | None) -> float | None:
    return None if text is None else units.rate_bps(text, "uncongested_rate")
