"""Runs studies: plans every point of every grid, makes each different run once, asks the claims, draws, writes.

Runs are shared through the cache of condensed runs, by what they are: two points of one study, two studies, or a
study of today and one of last week that ask for the same run share it. Ctrl-C loses only what is under way.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aqmlab import arguments, units
from aqmlab import sweep as sweeps
from aqmlab.agreement.agreements import Agreement
from aqmlab.bounds import check_plan
from aqmlab.claims import asked
from aqmlab.errors import BadInput, Interrupted, Misbehaved
from aqmlab.json_files import Json
from aqmlab.laws import brought
from aqmlab.progress import Foreseen, Monitor, Silent, View, clock_text
from aqmlab.results import store
from aqmlab.runs.progress_lines import with_lines
from aqmlab.scenario import USUAL_DURATION
from aqmlab.study import curves, found, live, outcome, page
from aqmlab.study.cells import Cell, Cells
from aqmlab.study.definition import FULL, Study
from aqmlab.study.outcome import Effort
from aqmlab.sweep import plan as plans
from aqmlab.sweep.condensed import Condensed
from aqmlab.sweep.executor import Executor
from aqmlab.sweep.grid import Point
from aqmlab.sweep.kept import Kept
from aqmlab.sweep.plan import Task
from aqmlab.sweep.table import FILE, Table

LISTED = 5
"""Points of a part that are named at most before it runs; of more the count says how many they are."""

Write = Callable[[Json, Study, Cells, Path, Sequence[Agreement]], Path]
"""Writes the page of a study into its folder: what was found, the study, its cells, the folder, agreements."""

DRAWN = ("figures", "tables")
"""Folders of what pages show."""


@dataclass(frozen=True)
class Finished:
    """A study that was run."""

    study: Study
    folder: Path
    found: Json
    report: Path
    cpu_s: Mapping[str, float]
    """Of each different run."""
    agreements: Sequence[Agreement] = ()
    """Of its comparison between real TCP stacks."""


@dataclass(frozen=True)
class _Planned:
    study: Study
    folder: Path
    tasks: tuple[tuple[Point, Task], ...]

    @property
    def keys(self) -> set[str]:
        return {task.key for _, task in self.tasks}


@dataclass(frozen=True)
class _Made:
    """What was made, or was there before."""

    kept: Kept
    before: set[str]
    """Keys of what was kept from before."""
    anew: set[str]
    """Keys of what had to be made, what lay there and could not be read among them."""
    failed: dict[str, str]
    """Keys of runs in which a law has broken its promises, and what it did."""

    def load(self, key: str) -> Condensed:
        return self.kept.load(key)


@brought.scoped
def run(
    studies: Mapping[Path, Study],
    *,
    jobs: int | None = None,
    fresh: bool = False,
    allow_code: bool = False,
    executor: Executor | None = None,
    witnesses: Sequence[str] = (),
    monitor: Monitor | None = None,
    view: View | None = None,
    say: Callable[[str], None] = lambda _: None,
    write: Write = page.write,
    spares: bool = False,
) -> list[Finished]:
    """Runs studies, each into its folder; `fresh` leaves what is kept of earlier runs unread.

    All their runs are one plan under one monitor; an `executor` makes them elsewhere than in processes on this machine.
    `say` hears in a line each how many there are. `witnesses` ("live", "virtual") look at the comparison that a study
    has for them, before `view`. `write` makes the page of each, and may add to what is found. `allow_code` runs the
    code that the studies name, in this call alone. With `spares` a law that breaks its promises ends none but its own
    runs: their points are left out, and `failed` of what was found says which they are.

    Raises `BadInput` if an argument is wrong, and `Interrupted` after Ctrl-C.
    """
    if not isinstance(studies, Mapping) or not all(isinstance(study, Study) for study in studies.values()):
        raise BadInput(
            f'studies: {studies!r}: expected each study by the folder of its results, as in {{Path("results/le2003"): '
            'aqmlab.study.read("le2003", quick=True)[0]}'
        )
    studies = {arguments.path(folder, "studies"): study for folder, study in studies.items()}
    monitor, started = monitor or Silent(), time.monotonic()
    check_plan(sum(study.count for study in studies.values()), ", ".join(study.id for study in studies.values()))
    for folder, study in studies.items():
        outcome.claim_folder(folder, study.id)
        study.check_scales()
        if witnesses and len(studies) == 1:
            live.comparison_file(study)
    for line in (line for study in studies.values() if study.only for line in _part(study)):
        say(line)
    kept = Kept()
    kept.check()
    with kept.interruptible("stopped before the first run", fresh):
        heard = Foreseen(with_lines(monitor, say))
        asked = [study.runs for study in studies.values()]
        tasks = plans.together(asked, jobs=jobs, monitor=heard, fresh=fresh, kept=kept)
        planned = [
            _Planned(study, folder, tuple((point, task) for (point, _), task in zip(runs, own, strict=True)))
            for (folder, study), runs, own in zip(studies.items(), asked, tasks, strict=True)
        ]
    with contextlib.ExitStack() as locks:
        for folder, study in studies.items():
            folder.mkdir(parents=True, exist_ok=True)
            locks.enter_context(store.alone(folder))
            outcome.begin(folder, study)
        made = _make(planned, jobs, fresh, executor, heard, kept, say, spares)
        wall_s = time.monotonic() - started
        with kept.interruptible("stopped; all runs are finished", fresh):
            return [
                _finish(
                    one,
                    made,
                    _effort(one, planned, made, wall_s),
                    [
                        item
                        for witness in witnesses
                        if one.study.live is not None
                        for item in live.compare(one.study, one.folder, witness, jobs=jobs, monitor=monitor, view=view)
                    ],
                    write,
                )
                for one in planned
            ]


def _make(
    planned: Sequence[_Planned],
    jobs: int | None,
    fresh: bool,
    executor: Executor | None,
    monitor: Foreseen,
    kept: Kept,
    say: Callable[[str], None],
    spares: bool,
) -> _Made:
    """Makes what is not kept, and writes rows as runs finish."""
    tasks = {task.key: task for one in planned for _, task in one.tasks}
    made = _Made(kept, set() if fresh else {key for key in tasks if kept.has(key)}, set(), {})
    for one in planned:
        say(_announcement(one, planned, made.before))
    tables = {one.folder: Table(one.folder / FILE) for one in planned}
    where: dict[str, list[tuple[Path, Point, Task]]] = {}
    for one in planned:
        for point, task in one.tasks:
            where.setdefault(task.key, []).append((one.folder, point, task))
    done = 0
    first: list[Misbehaved] = []

    def spare(task: Task, error: Misbehaved) -> None:
        made.failed[task.key] = str(error).replace(f"{task.name}: ", "", 1)
        first.append(error)

    try:
        wanted = list(tasks.values())
        runs = sweeps.run(
            wanted,
            jobs=jobs,
            monitor=monitor,
            kept=kept,
            fresh=fresh,
            executor=executor,
            made=made.anew,
            spare=spare if spares else None,
        )
        try:
            with contextlib.closing(runs):
                for key, condensed in runs:
                    for folder, point, task in where[key]:
                        tables[folder].add(point, task.seed, condensed.as_asked(task.calibrations, task.is_reference))
                    done += 1
        finally:
            for table in tables.values():
                table.write()
    except KeyboardInterrupt:
        raise Interrupted(f"stopped: {done} of {len(tasks)} runs are finished; {kept.again(fresh)}") from None
    if any(one.keys <= made.failed.keys() for one in planned):
        raise first[0]
    return made


def _effort(one: _Planned, planned: Sequence[_Planned], made: _Made, wall_s: float) -> Effort:
    shared = {other.study.id: len(one.keys & other.keys) for other in planned if other is not one}
    return Effort(
        runs=len(one.keys - made.failed.keys()),
        kept=len(one.keys - made.anew),
        shared={name: count for name, count in shared.items() if count},
        wall_s=wall_s,
    )


def _part(study: Study) -> list[str]:
    """The points of a part, before anything of it runs: how many, what they cost, and a few by their names."""
    runs = study.runs
    simulated_s = sum(units.seconds(point.source.tree.get("duration", USUAL_DURATION), "duration") for point, _ in runs)
    pace = found.pace(study)
    cost = f", {clock_text(simulated_s)} simulated" + (
        f", about {clock_text(pace * simulated_s)} of processor time by the runs that are kept with the study"
        if pace is not None
        else ""
    )
    names = [point.name for point in study.points]
    more = [f"  and {len(names) - LISTED} more"] if len(names) > LISTED else []
    said = f"{study.id}: {len(names)} {'point' if len(names) == 1 else 'points'}"
    return [f"{said}, {_runs_said(len(runs))}{cost}:", *(f"  {name}" for name in names[:LISTED]), *more]


def _runs_said(count: int) -> str:
    return f"{count} {'run' if count == 1 else 'runs'}"


def _announcement(one: _Planned, planned: Sequence[_Planned], there: set[str]) -> str:
    """`le2007: 64 runs of 22 points; 20 of them le2003 needs too; 12 are kept from before`."""
    shared = {other.study.id: len(one.keys & other.keys) for other in planned if other is not one}
    kept = len(one.keys & there)
    said = [
        f"{one.study.id}: {_runs_said(len(one.keys))} of {len(one.study.points)} points",
        *(f"{count} of them {other} needs too" for other, count in shared.items() if count),
        *([f"{kept} are kept from before"] if kept else []),
    ]
    return "; ".join(said)


def _finish(one: _Planned, made: _Made, effort: Effort, agreements: Sequence[Agreement], write: Write) -> Finished:
    """Reads the runs of a study back, asks the claims, draws, writes."""
    study = one.study
    loaded = {key: made.load(key) for key in one.keys - made.failed.keys()}
    lost = [(point, task) for point, task in one.tasks if task.key in made.failed]
    without = {point.name for point, _ in lost}  # fewer runs would not stand beside as many of others
    of_point: dict[str, list[Condensed]] = {}
    for point, task in one.tasks:
        if point.name in without:
            continue
        of_point.setdefault(point.name, []).append(loaded[task.key].as_asked(task.calibrations, task.is_reference))
    cells = Cells(study.everything, [Cell(p, of_point[p.name]) for p in study.points if p.name in of_point])
    claims = [asked.ask(text.in_profile(study.profile.name), cells.by_name) for text in study.claims]
    if study.profile.name != FULL and not study.changes:
        claims = found.at_full_scale(study.folder, claims, None if study.bed is None else study.bed.name)
    facts = outcome.of_study(study, cells, claims, effort)
    facts["complete"] = not lost
    facts["failed"] = [
        {"grid": point.grid, "point": point.name, "seed": task.seed, "message": made.failed[task.key]}
        for point, task in lost
    ]
    facts["agreements"] = [item.as_dict() for item in agreements]
    for name in DRAWN:  # what is not drawn any more shall not stay
        shutil.rmtree(one.folder / name, ignore_errors=True)
    curves.write(study, cells, one.folder)
    report = write(facts, study, cells, one.folder, agreements)
    store.write_json(one.folder / found.RESULT, facts)
    return Finished(study, one.folder, facts, report, {key: run.cpu_s for key, run in loaded.items()}, agreements)
