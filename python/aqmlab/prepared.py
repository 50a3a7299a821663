"""From what somebody asks for to runs that are ready to be made: read, checked, calibrated, laid out in folders."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aqmlab import arguments, bounds, doubts, engine, reference, scenario, toml_text, variants
from aqmlab.comparison import Entry
from aqmlab.engine import Resolved
from aqmlab.errors import BadInput, Interrupted
from aqmlab.laws import brought
from aqmlab.live import witnesses
from aqmlab.progress import NOTHING, Foreseen, Monitor, Silent, Size, Unseen, View
from aqmlab.results import store
from aqmlab.results.result import Result, Temporary
from aqmlab.runs import calibration, places, planning, runner
from aqmlab.runs.bed import Bed
from aqmlab.runs.calibration import Calibration
from aqmlab.runs.loads import Loads
from aqmlab.runs.runner import Job
from aqmlab.scenario import ScenarioLike, Source
from aqmlab.variants import Variant

LARGEST_SEED = 2**63 - 1
"""That TOML has, and so a scenario."""


def read(scenario_like: ScenarioLike, changes: Mapping[str, Any] | None, seed: int | None) -> Source:
    """Reads a scenario with what is changed of it. Code that an argument names is allowed from then on."""
    edits = arguments.changes(changes, "set")
    brought.allow_set(edits)
    if isinstance(scenario_like, Mapping):
        arguments.values(scenario_like, "<scenario>")
        brought.allow_in(brought.named_in(dict(scenario_like)))
    source = scenario.read(scenario_like)
    if seed is not None:
        edits["seed"] = seed
    return source.with_changes(edits)


def resolve(source: Source, reps: int) -> Resolved:
    """Has the engine check a scenario that is to be run so often."""
    check_reps(reps)
    resolved = source.resolve()
    check_seeds(int(resolved.scenario.get("seed", 1)), reps)
    return resolved


def check_seeds(first: int, reps: int) -> None:
    """Refuses runs of which the last would have a seed beyond the largest."""
    if first + reps - 1 > LARGEST_SEED:
        raise BadInput(
            f"seed {first}, {arguments.named('reps', reps)}: the last run would have the seed {first + reps - 1}; "
            f"expected at most {LARGEST_SEED}"
        )


def place(out: str | Path | None, called: str) -> tuple[Path, Temporary | None]:
    """The folder of results, and what holds it where nobody has said which: one that is `called` so, and does not last.

    Raises `BadInput` if `out` is no path.
    """
    if out is not None:
        return arguments.path(out), None
    keep = Temporary()
    return keep.folder / called, keep


@dataclass(frozen=True)
class Work:
    """A scenario that is to be run, some times over, and the folder that is claimed for its result."""

    resolved: Resolved
    reps: int
    folder: Path
    keep: Temporary | None
    resume: bool

    def planned(self, found: Sequence[Calibration], bed: Bed | None = None) -> list[Job]:
        """Its runs with these populations, on a test bed if one is given; refuses a folder that holds another's."""
        planned = runs_of(self.resolved, found, self.reps, self.folder, self.resolved.name)
        planned = [replace(job, bed=bed) for job in planned]
        if self.resume and store.is_begun(self.folder):
            try:
                places.same_work(self.folder, planned)
            except BadInput as error:
                if self.resolved.loads and self.reps > 1:
                    also = "a load is met over the seeds of all runs, so that more runs are another work"
                    raise BadInput(f"{error} ({also})") from None
                raise
        return planned

    def result(self, planned: Sequence[Job], at_once: int, monitor: Monitor, view: View | None = None) -> Result:
        """Makes the runs that are not finished."""
        with interruptible(planned, self.folder), places.alone(self.folder, self.reps, self.resume):
            make(planned, at_once, monitor, view)
            if self.reps > 1:
                store.finish_replications(self.folder, [job.folder.name for job in planned])
        return Result(self.folder, self.keep)


def work(source: Source, reps: int, out: str | Path | None, resume: bool, expected: str) -> Work:
    """Checks a scenario and claims a folder for it; of a comparison it says what is `expected`."""
    if variants.has_variants(source):
        raise BadInput(f"{source.origin}: variant: this is a comparison; expected {expected}")
    resolved = resolve(source, reps)
    doubts.of(resolved, source.tree)
    folder, keep = place(out, "result")
    places.check(folder, reps)
    store.claim(folder, resume)
    return Work(resolved, reps, folder, keep, resume)


@planning.uncollected()
def resolve_all(wanted: Sequence[Variant]) -> list[Resolved]:
    """Has the engine check the scenario of every variant, and says what is doubtful in one."""
    resolved = planning.resolved([variant.source for variant in wanted])
    for variant, item in zip(wanted, resolved, strict=True):
        if not variant.uncongested:
            doubts.of(item, variant.source.tree)
    return resolved


def check_reps(reps: int) -> None:
    """Refuses a number of runs that is none, or too large for a plan."""
    bounds.check_plan(arguments.whole(reps, "reps"), "reps")


def check_kernel(kernel: str | None, is_virtual: bool) -> None:
    """Refuses what names no kernel of virtual time, and a kernel of virtual time for runs in real time."""
    if kernel is not None and not isinstance(kernel, str):
        raise BadInput(f'kernel: {kernel!r}: expected the name of a kernel of virtual time, such as "7.3"')
    if kernel is not None and not is_virtual:
        raise BadInput(f"kernel: {kernel}: expected a run in virtual time with it")


def jobs_at_once(jobs: int | None) -> int:
    """So many runs are made at a time."""
    return runner.default_jobs() if jobs is None else arguments.whole(jobs, "jobs")


def listener(monitor: Monitor | None) -> Monitor:
    """Who hears of runs: nobody, if nobody was given."""
    if monitor is not None and not isinstance(monitor, Monitor):
        raise BadInput(f"monitor: {monitor!r}: expected a listener with expect, share, begin, tick and end")
    return monitor or Silent()


def calibrate(
    resolved: Sequence[Resolved],
    at_once: int,
    monitor: Foreseen,
    uncongested_rate: str | None,
    sizes: Sequence[Size] = (),
    fresh: bool = False,
    reps: int = 1,
) -> list[list[Calibration]]:
    """The populations of some scenarios, each over the seeds of its `reps` runs; `sizes` are of the runs after that."""
    loads, rate = Loads(fresh), reference.asked_rate_bps(uncongested_rate)
    asked = [loads.ask(item, rate, _seeds(item, reps)) for item in resolved]
    if not loads.are_known:
        monitor.foresee(len(sizes), sum(sizes, NOTHING))
        try:
            loads.find(at_once, monitor.told)
        except KeyboardInterrupt:
            raise Interrupted("stopped while calibrating; nothing was run yet") from None
    return [loads.of(each) for each in asked]


def _seeds(resolved: Resolved, reps: int) -> range:
    """The seeds of independent runs of a scenario."""
    first = int(resolved.scenario.get("seed", 1))
    return range(first, first + reps)


def _uncongested(resolved: Resolved, uncongested_rate: str | None) -> Resolved:
    tree = calibration.engine_tree(resolved)
    rates = reference.rates(tree, resolved.origin, reference.asked_rate_bps(uncongested_rate))
    return engine.resolve(toml_text.dumps(reference.uncongested(tree, rates, resolved.origin)), resolved.origin)


def on_its_link(variant: Variant, resolved: Resolved, uncongested_rate: str | None) -> Resolved:
    """The scenario of a variant: the reference's is on another link."""
    return _uncongested(resolved, uncongested_rate) if variant.uncongested else resolved


def runs_of(resolved: Resolved, calibrations: Sequence[Calibration], reps: int, folder: Path, label: str) -> list[Job]:
    """The runs of one result, populations put in place of loads."""
    tree = calibration.engine_tree(resolved) if calibrations else {}
    for found in calibrations:
        tree = scenario.with_users(tree, found.traffic, found.users)
    # What is resolved resolves to itself.
    first = engine.resolve(toml_text.dumps(tree), resolved.origin) if calibrations else resolved
    notes = [{key: item for key, item in found.as_dict().items() if key != "cached"} for found in calibrations]
    planned = []
    for k, seed in enumerate(_seeds(first, reps)):
        final = first if k == 0 else engine.resolve(first.toml, first.origin, [("seed", str(seed))])
        place, name = (folder, label) if reps == 1 else (folder / f"rep-{k + 1}", f"{label}, run {k + 1}")
        planned.append(Job(name, final, place, notes))
    return planned


@planning.uncollected()
def columns_of(
    wanted: Sequence[Variant],
    resolved: Sequence[Resolved],
    calibrations: Sequence[Sequence[Calibration]],
    reps: int,
    folder: Path,
    asked: Sequence[witnesses.Witness],
    uncongested_rate: str | None,
) -> tuple[dict[str, list[Job]], list[Entry]]:
    """The runs of each variant and of each witness of it, and where they shall lie."""
    jobs_of: dict[str, list[Job]] = {}
    entries: list[Entry] = []
    for variant, item, found in zip(wanted, resolved, calibrations, strict=True):
        item = on_its_link(variant, item, uncongested_rate)
        place = scenario.slug(variant.name)
        planned = runs_of(item, found, reps, folder / place, variant.name)
        jobs_of[variant.name] = [replace(job, is_reference=True) for job in planned] if variant.uncongested else planned
        entries.append(Entry(variant.name, place, variant.uncongested))
        for witness in asked if not variant.uncongested else ():
            called = witness.called(variant.name)
            planned = runs_of(witness.changed(item), found, reps, folder / scenario.slug(called), called)
            jobs_of[called] = [replace(job, bed=witness.bed) for job in planned]
            entries.append(Entry(called, scenario.slug(called), False, witness.name, variant.name))
    return jobs_of, entries


def make(
    jobs: Sequence[Job],
    at_once: int,
    monitor: Monitor,
    view: View | None = None,
    then: Callable[[Job], None] = lambda job: None,
    spares: runner.Spares | None = None,
) -> None:
    """Makes the runs: those of the simulator, of which `spares` lets some fail, then those between real stacks."""
    runner.run_all(jobs, at_once, monitor, then, spares)
    if any(job.bed is not None for job in jobs):
        from aqmlab.live import runs

        runs.run_all(jobs, view or Unseen())


@contextlib.contextmanager
def interruptible(jobs: Sequence[Job], folder: Path) -> Iterator[None]:
    """Says of Ctrl-C what is finished by then."""
    try:
        yield
    except KeyboardInterrupt:
        done = sum(map(runner.is_finished, jobs))
        raise Interrupted(
            f"stopped: {done} of {len(jobs)} runs are finished in {folder}; {arguments.again()} goes on"
        ) from None
