"""A sweep: a file with a grid, run into a folder with one row a run.

The folder holds `sweep.toml` (the file, over copies in `files/` of what it names), `sweep.json` (which runs, and what
they took) and `runs.parquet`.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aqmlab import arguments, bounds, engine, files, statistics, toml_text
from aqmlab.engine import Tree
from aqmlab.errors import BadInput, Interrupted, Misbehaved
from aqmlab.json_files import Json, read_json
from aqmlab.laws import brought
from aqmlab.progress import Foreseen, Monitor, Silent
from aqmlab.results import coarse, store
from aqmlab.runs import planning
from aqmlab.statistics import Interval
from aqmlab.sweep import axes, grid, making, offered, repeatable, table
from aqmlab.sweep.executor import Executor
from aqmlab.sweep.grid import Grid, Point
from aqmlab.sweep.kept import Kept
from aqmlab.sweep.plan import Task, together

FILE, SOURCE = "sweep.json", "sweep.toml"
KEYS = ("name", "seeds", "scenario", "grid")


@dataclass(frozen=True)
class Sweep:
    """What a file asks for."""

    name: str
    origin: Path
    grids: tuple[Grid, ...]
    seeds: Mapping[str, tuple[int, ...]]
    """Of each grid, by its name."""
    asked: Tree = field(default_factory=dict)
    """The tables of a file beside `origin` that asks for the same by itself."""

    @property
    def points(self) -> list[Point]:
        """The points of all grids."""
        return [point for one in self.grids for point in one.points]

    @property
    def runs(self) -> list[tuple[Point, int]]:
        """Every pair of point and seed."""
        return [(point, seed) for point in self.points for seed in self.seeds[point.grid]]


@dataclass(frozen=True)
class Failure:
    """A run of a point that was not made, because a law of one's own broke its promises."""

    grid: str
    point: str
    seed: int
    message: str
    """What it did, in a line, without the name of the run."""
    laws: tuple[str, ...]
    """The laws of one's own in its scenario."""


@dataclass(frozen=True)
class Finished:
    """A sweep that was run."""

    sweep: Sweep
    folder: Path
    facts: Json
    rows: Sequence[Json]
    failed: Sequence[Failure] = ()

    @property
    def table(self) -> Path:
        """The file with one row a run."""
        return self.folder / table.FILE

    def mean(self, point: str, column: str) -> Interval | None:
        """A measure over the seeds of a point; None where a run has no such number.

        The interval of a quantile that is read off a histogram is no narrower than its bin.
        """
        values = [row.get(column) for row in self.rows if row["point"] == point]
        numbers = [value for value in values if value is not None]
        if not numbers or len(numbers) < len(values):
            return None
        return coarse.no_finer(statistics.across_runs(numbers), coarse.widest_s(column, numbers))

    def as_dict(self) -> Json:
        """For JSON."""
        return {**self.facts, "folder": str(self.folder), "rows": list(self.rows)}


class Incomplete(Misbehaved):
    """A law has broken its promises in some runs of a sweep; the others were made, and are `found`."""

    def __init__(self, found: Finished) -> None:
        """Says what happened in each run that failed."""
        super().__init__("; ".join(f"{one.point}, seed {one.seed}: {one.message}" for one in found.failed))
        self.found = found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.found,)


@planning.uncollected()
def read(file: str | Path, seeds: int | None = None, changes: Mapping[str, Any] | None = None) -> Sweep:
    """Reads a file and checks its form.

    `seeds` runs are made of each point, whatever the file says. `changes` sets keys of the scenarios by their dotted
    names. Raises `BadInput` if something is wrong.
    """
    file = arguments.path(file, "file", "the path of a file with a grid")
    tree = toml_text.read(file, files.GRID)
    if "profiles" in tree:
        raise BadInput(f"{file}: is a study; expected aqmlab study {file.parent}, or a file with [[grid]] alone")
    if "grid" not in tree and {"link", "links", "traffic"} & tree.keys():
        what, verb = ("comparison", "compare") if "variant" in tree else ("scenario", "run")
        raise BadInput(f"{file}: grid: missing; this is a {what}; expected `{verb}` instead of `sweep`")
    axes.known(tree, KEYS, str(file))
    name = axes.check_text(tree.get("name", file.stem), f"{file}: name")
    edits = arguments.changes(changes, "changes")
    grids = grid.read(tree, str(file), edits)
    grid.check_seed(tree, str(file), edits, seeds)
    given = {
        one.name: grid.seeds(
            tree.get("seeds", 1) if seeds is None else arguments.whole(seeds, "seeds"),
            f"{file}: seeds",
            grid.first_seed(one.points[0].source.tree, f"{file}: grid {one.name}"),
        )
        for one in grids
    }
    own = {one.name: one.seeds for one in grids if one.seeds is not None and seeds is None}
    of = {**given, **own}
    bounds.check_plan(sum(len(one.points) * len(of[one.name]) for one in grids), str(file))
    return Sweep(name, file, tuple(grids), of, {"name": name, **grid.as_asked(tree, str(file), edits, seeds)})


@brought.scoped
def run(
    sweep: Sweep,
    folder: str | Path,
    *,
    jobs: int | None = None,
    resume: bool = False,
    fresh: bool = False,
    allow_code: bool = False,
    monitor: Monitor | None = None,
    executor: Executor | None = None,
) -> Finished:
    """Runs a sweep into a folder. Rows are written as runs finish; Ctrl-C loses what is under way, and nothing else.

    - `jobs` runs are made at a time, by default one a core.
    - `resume` goes on with a folder whose runs were interrupted; `fresh` makes those anew that are kept from before.
    - `allow_code` runs the code that the sweep's file names, files of laws, in this call alone.
    - `executor` makes them elsewhere than in processes on this machine.

    Where a law of one's own breaks its promises, the other runs are made all the same, and `Incomplete` is raised,
    which has them; the same call with `resume` makes the runs that failed again, also where the law's file has been
    changed.
    """
    if not isinstance(sweep, Sweep):
        raise BadInput(f"sweep: {sweep!r}: expected what sweeps.read gives for its file")
    arguments.truths(resume=resume, fresh=fresh)
    jobs = None if jobs is None else arguments.whole(jobs, "jobs")
    started, folder = time.monotonic(), arguments.path(folder, "folder")
    store.claim(folder, resume)
    if resume and store.is_begun(folder) and not {FILE, SOURCE} & {entry.name for entry in folder.iterdir()}:
        raise BadInput(f"{folder}: holds no sweep; expected the folder of the one to be resumed")
    runs = sweep.runs
    heard = Foreseen(monitor or Silent())
    kept = Kept()
    kept.check()
    with kept.interruptible("stopped before the first run", fresh):
        (tasks,) = together([runs], jobs=jobs, monitor=heard, fresh=fresh, kept=kept)
    planned = {f"{point.name}, seed {seed}": task.digest for (point, seed), task in zip(runs, tasks, strict=True)}
    before = read_json(folder / FILE) if resume and (folder / FILE).exists() else {}
    if before and not _is_same(before, planned, dict(zip(planned, tasks, strict=True))):
        raise BadInput(
            f"{folder}: holds a sweep of other runs; expected the file as it was, or another folder: runs that are the "
            "same are not made again there either"
        )
    folder.mkdir(parents=True, exist_ok=True)
    facts: Json = {
        "kind": "sweep",
        "complete": False,
        "name": sweep.name,
        "version": engine.version(),
        "engine_sha256": engine.file_sha256(),
        "grids": [_about(one, sweep.seeds[one.name]) for one in sweep.grids],
        "plan": planned,
        "failed": before.get("failed", []),
    }
    with store.alone(folder):
        store.claim(folder, resume)  # somebody else may have begun meanwhile, and be through
        if any(before.get(key) != facts[key] for key in ("version", "engine_sha256")):
            (folder / table.FILE).unlink(missing_ok=True)  # rows of another engine than the one that is said now
        store.write_json(folder / FILE, facts)
        store.write_text(folder / SOURCE, _again(sweep, folder))
        failures = _Failures(folder, facts)
        rows, effort = _make(runs, tasks, folder, jobs, fresh, heard, executor, failures, kept)
        with kept.interruptible(f"stopped: all runs are finished in {folder}", fresh):
            failed = [asdict(failure) for failure in failures.found]
            over_seeds = {point.grid for point in sweep.points if point.calibrate == grid.OVER_SEEDS}
            facts |= {"complete": not failed, "failed": failed, "offered": offered.off(rows, over_seeds)}
            facts |= {**effort, "wall_s": time.monotonic() - started}
            store.write_json(folder / FILE, facts)
    finished = Finished(sweep, folder, facts, rows, failures.found)
    if failures.found:
        raise Incomplete(finished)
    return finished


def _again(sweep: Sweep, folder: Path) -> str:
    """The text of a file in the folder that asks for the same sweep; the one that was given where that does."""
    kept = repeatable.keep_named_files(sweep.asked, str(sweep.origin), folder)
    text = files.text(sweep.origin, files.GRID)
    given = {"name": sweep.name, **toml_text.loads(text, str(sweep.origin))}
    return text if kept == given else toml_text.dumps(kept)


def _is_same(before: Json, planned: Mapping[str, str], tasks: Mapping[str, Task]) -> bool:
    """Whether a folder's plan is this one; laws that failed may have been repaired, and have other digests then."""
    then: Mapping[str, str] = before.get("plan") or {}
    failed = {law for one in before.get("failed", []) for law in one["laws"]}
    changed = [name for name, digest in planned.items() if then.get(name) != digest]
    return then.keys() == planned.keys() and all(failed.intersection(_laws(tasks[name])) for name in changed)


def _laws(task: Task) -> list[str]:
    return [law.name for law in brought.of(toml_text.loads(task.toml, task.origin))]


class _Failures:
    """Runs in which a law has broken its promises."""

    def __init__(self, folder: Path, facts: Json) -> None:
        self._folder, self._facts = folder, facts
        self.found: list[Failure] = []

    def note(self, task: Task, error: Misbehaved, points: Sequence[Point]) -> None:
        """Takes a failure for the points that ask for the run, and keeps at once which law is to be repaired."""
        laws, message = tuple(_laws(task)), str(error).replace(f"{task.name}: ", "", 1)
        own = [Failure(point.grid, point.name, task.seed, message, laws) for point in points]
        self.found += own
        known = {law for one in self._facts["failed"] for law in one["laws"]}
        if not known.issuperset(laws):
            self._facts["failed"] = [*self._facts["failed"], *map(asdict, own)]
            store.write_json(self._folder / FILE, self._facts)


def _about(one: Grid, seeds: Sequence[int]) -> Json:
    return {
        "name": one.name,
        "title": one.title,
        "seeds": list(seeds),
        "axes": [
            {
                "name": axis.name,
                "title": axis.title,
                "unit": axis.unit,
                "values": [{"name": v.name, "label": v.label, "number": v.number} for v in axis.values],
            }
            for axis in one.axes
        ],
        "points": len(one.points),
    }


def _make(
    runs: Sequence[tuple[Point, int]],
    tasks: Sequence[Task],
    folder: Path,
    jobs: int | None,
    fresh: bool,
    monitor: Foreseen,
    executor: Executor | None,
    failures: _Failures,
    kept: Kept,
) -> tuple[list[Json], Json]:
    """Rows, in the order of the plan, and what it took to find them."""
    asked: dict[str, list[tuple[Point, Task]]] = {}
    for (point, _), task in zip(runs, tasks, strict=True):
        asked.setdefault(task.key, []).append((point, task))
    kept.tidy()
    rows = table.Table(folder / table.FILE)
    made: set[str] = set()
    took: list[tuple[float, int]] = []
    done = 0

    def spare(task: Task, error: Misbehaved) -> None:
        failures.note(task, error, [point for point, _ in asked[task.key]])

    try:
        finished = making.run(
            tasks, jobs=jobs, monitor=monitor, kept=kept, fresh=fresh, executor=executor, made=made, spare=spare
        )
        try:
            for key, found in finished:
                done += 1
                if key in made:
                    took.append((found.cpu_s, found.peak_rss_bytes))
                for point, task in asked[key]:
                    rows.add(point, task.seed, found.as_asked(task.calibrations, task.is_reference))
        finally:
            rows.write()
    except KeyboardInterrupt:
        said = f"stopped: {done} of {len(asked)} runs are finished in {folder}; {kept.again(fresh)}"
        raise Interrupted(said) from None
    order = {(point.name, seed): k for k, (point, seed) in enumerate(runs)}
    failures.found.sort(key=lambda one: order[one.point, one.seed])
    ordered = sorted(rows.rows, key=lambda row: order[row["point"], row["seed"]])
    effort = {
        "runs": len(asked),
        "runs_made": len(took),
        "runs_kept": len(asked) - len(made),
        "cpu_s": sum(cpu_s for cpu_s, _ in took),
        "peak_rss_bytes": max((peak for _, peak in took), default=0),
    }
    return ordered, effort
