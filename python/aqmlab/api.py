"""What people import: `run`, `live`, `compare`, `calibrate`, `record`, `load`.

What only live runs and recordings need is loaded by these.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import (
    arguments,
    bounds,
    comparison,
    doubts,
    engine,
    files,
    links,
    reference,
    scenario,
    toml_text,
    units,
    variants,
)
from aqmlab.comparison import Comparison, Entry
from aqmlab.engine import Resolved
from aqmlab.errors import BadInput, Interrupted, doubt
from aqmlab.json_files import Json
from aqmlab.laws import brought
from aqmlab.live import witnesses
from aqmlab.progress import NOTHING, Foreseen, Monitor, Silent, Size, Unseen, View
from aqmlab.results import digests, store
from aqmlab.results.result import Result, Temporary
from aqmlab.results.run import Run
from aqmlab.results.window import Window, condense
from aqmlab.runs import calibration, places, planning, runner
from aqmlab.runs.bed import CAPTURES, SIDES, Bed
from aqmlab.runs.calibration import Calibration
from aqmlab.runs.loads import Loads
from aqmlab.runs.runner import Job
from aqmlab.scenario import ScenarioLike, Source
from aqmlab.variants import Variant

if TYPE_CHECKING:
    from aqmlab.runs.recording import Recording


@brought.scoped
def run(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    reps: int = 1,
    out: str | Path | None = None,
    set: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    resume: bool = False,
    uncongested_rate: str | None = None,
    allow_code: bool = False,
    monitor: Monitor | None = None,
) -> Result:
    """Runs a scenario in the simulator. `scenario` is a path, the text of a file, or its tables.

    - `seed` takes the place of the scenario's. `reps` independent runs have the seeds seed, seed + 1, ...
    - `set` changes keys of the scenario by their dotted names: `{"link.qdisc.qref": "24p"}`.
    - `out` is the folder of the result. Without it, the tables exist as long as the returned object does.
    - `jobs` runs are made at a time, by default one a core.
    - `resume` goes on with an `out` whose runs were interrupted.
    - `uncongested_rate` is the rate of the link on which loads are calibrated, as in "1gbit"; by default ten times the
      scenario's. A load is calibrated once, before the runs, with the first seed.
    - `allow_code` runs the code that the scenario names, files of laws, in this call alone. What an argument names is
      run in any case.

    Raises `BadInput` if the scenario or an argument is wrong, and `Interrupted` after Ctrl-C.
    """
    monitor, at_once = _listener(monitor), _jobs(jobs)
    _check_reps(reps)
    arguments.truths(resume=resume)
    source = _source(scenario, set, seed)
    if variants.has_variants(source):
        raise BadInput(f"{source.origin}: variant: this is a comparison; expected `compare` instead of `run`")
    resolved = _resolve(source, reps)
    doubts.of(resolved, source.tree)
    keep = Temporary() if out is None else None
    folder = keep.folder / "result" if keep else places.of(out)
    places.check(folder, reps)
    store.claim(folder, resume)
    heard = Foreseen(monitor)
    (found,) = _calibrate([resolved], at_once, heard, uncongested_rate, [runner.size(resolved, resolved.loads)] * reps)
    planned = _plan_runs(resolved, found, reps, folder, resolved.name)
    if resume and store.is_begun(folder):
        places.same_work(folder, planned)
    with _interruptible(planned, folder), places.alone(folder, reps, resume):
        _make(planned, at_once, heard)
        if reps > 1:
            store.finish_replications(folder, [job.folder.name for job in planned])
    return Result(folder, keep)


@brought.scoped
def live(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    reps: int = 1,
    out: str | Path | None = None,
    set: Mapping[str, Any] | None = None,
    virtual: bool = False,
    capture: str | None = None,
    command: Sequence[str] = (),
    side: str = "left",
    traffic: bool = True,
    jobs: int | None = None,
    resume: bool = False,
    uncongested_rate: str | None = None,
    kernel: str | None = None,
    allow_code: bool = False,
    monitor: Monitor | None = None,
    view: View | None = None,
) -> Result:
    """Runs a scenario between real TCP stacks: this machine's in real time, or those of a kernel in `virtual` time.

    Arguments that `run` has too mean the same here. Runs are made one at a time. The simulator calibrates loads, and
    `jobs` says how many of its runs are made at a time.

    - `capture` says where packets are captured: "off", "before" or "after" the queue, or "both".
    - `command` is a program that runs inside, on `side` "left" or "right".
    - `traffic` says whether the scenario's own traffic runs too; without it there must be a command.
    - `kernel` names one of several kernels of virtual time, such as "7.3".
    - `view` is told of the live runs, `monitor` of the calibration.

    Raises `BadInput` if the scenario or an argument is wrong, `CannotRun` if this machine cannot make live runs, and
    `Interrupted` after Ctrl-C. A run that was too late is returned; its `void` says why it does not count.
    """
    from aqmlab.live import runs

    monitor, view = _listener(monitor), view or Unseen()
    arguments.truths(virtual=virtual, traffic=traffic, resume=resume)
    if capture is not None and capture not in CAPTURES:
        raise BadInput(f"capture: {capture}: expected one of {', '.join(CAPTURES)}")
    if side not in SIDES:
        raise BadInput(f"side: {side}: expected one of {', '.join(SIDES)}")
    if kernel is not None and not virtual:
        raise BadInput(f"kernel: {kernel}: expected a run in virtual time with it")
    if not traffic and not command:
        raise BadInput("traffic: none, and no command either; expected a program to run, after --")
    source = _source(scenario, set, seed)
    if variants.has_variants(source):
        raise BadInput(f"{source.origin}: variant: this is a comparison; expected `compare --live` instead of `live`")
    resolved = _resolve(source, reps)
    doubts.of(resolved, source.tree)
    keep = Temporary() if out is None else None
    folder = keep.folder / "result" if keep else places.of(out)
    places.check(folder, reps)
    store.claim(folder, resume)
    bed = Bed(virtual, capture, tuple(command), side, traffic, kernel)
    asked = Job(resolved.name, resolved, folder, bed=bed)
    runs.check([asked])
    view.say(runs.remarks([asked]))
    (found,) = _calibrate([resolved], _jobs(jobs), Foreseen(monitor), uncongested_rate)
    planned = [replace(job, bed=bed) for job in _plan_runs(resolved, found, reps, folder, resolved.name)]
    if resume and store.is_begun(folder):
        places.same_work(folder, planned)
    with _interruptible(planned, folder), places.alone(folder, reps, resume):
        _make(planned, 1, monitor, view)
        if reps > 1:
            store.finish_replications(folder, [job.folder.name for job in planned])
    return Result(folder, keep)


@brought.scoped
def compare(
    *what: ScenarioLike | Result,
    seed: int | None = None,
    reps: int = 1,
    out: str | Path | None = None,
    set: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    resume: bool = False,
    baseline: str | None = None,
    uncongested_rate: str | None = None,
    live: bool = False,
    virtual: bool = False,
    kernel: bool = False,
    allow_code: bool = False,
    monitor: Monitor | None = None,
    view: View | None = None,
) -> Comparison:
    """Compares disciplines, scenarios or results under the same demands.

    `what` is one of four:

    - A comparison file, which is a scenario with `[[variant]]` tables.
    - A scenario, then disciplines in `tc`'s words ("pi qref 24p ecn"; "fq_codel / pfifo" is forward and in reverse), or
      "uncongested" for the reference.
    - Several scenarios.
    - Several results, or their folders.

    Arguments that `run` has too mean the same here. `baseline` names the column that the others are compared with.

    The simulator runs every variant. Each but the uncongested one can be run by other witnesses too: `live` between
    this machine's TCP stacks in real time; `virtual` in a kernel of virtual time; `kernel` with the kernel's own queue
    discipline in place of aqmlab's, in virtual time if `virtual` is given, else in real time.

    Raises `BadInput` if something of `what` or an argument is wrong, `CannotRun` if this machine cannot make live runs,
    and `Interrupted` after Ctrl-C.
    """
    arguments.truths(resume=resume, live=live, virtual=virtual, kernel=kernel)
    asked = witnesses.asked_for(live, virtual, kernel)
    if not what:
        raise BadInput("compare: expected a comparison file, a scenario and disciplines, or several results")
    if all(_is_result(item) for item in what):
        if asked:
            raise BadInput("compare --live: expected a scenario, which results are not: they are what they are")
        for key, given in {"seed": seed, "reps": None if reps == 1 else reps, "set": set or None}.items():
            if given is not None:
                raise BadInput(f"{key}: {given!r}: expected a scenario, which results are not: they are what they are")
        results = [item if isinstance(item, Result) else _result(item) for item in what]
        return _compare_results(results, out, baseline)
    monitor, view, at_once = _listener(monitor), view or Unseen(), _jobs(jobs)
    _check_reps(reps)
    as_file, wanted = _variants(what, set, reps)
    first = seed if seed is not None else _resolve(wanted[0].source, reps).scenario.get("seed", 1)
    wanted = variants.with_seed(wanted, int(first))
    resolved = _resolve_all(wanted)
    keep = Temporary() if out is None else None
    folder = keep.folder / "comparison" if keep else places.of(out)
    store.claim(folder, resume)
    rows = [(v.name, v.uncongested, v.baseline, _kind(r)) for v, r in zip(wanted, resolved, strict=True)]
    against = variants.choose_baseline(rows, baseline)

    if asked:
        from aqmlab.live import runs

        beds = [job for v, r in zip(wanted, resolved, strict=True) for job in witnesses.preview(asked, v, r, folder)]
        runs.check(beds)
        view.say([*witnesses.remarks(resolved), *runs.remarks(beds)])
    heard = Foreseen(monitor)
    sizes = [runner.size(_on_its_link(v, r, uncongested_rate), r.loads) for v, r in zip(wanted, resolved, strict=True)]
    calibrations = _calibrate(resolved, at_once, heard, uncongested_rate, sizes * reps)
    jobs_of, entries = _plan_columns(wanted, resolved, calibrations, reps, folder, asked, uncongested_rate)
    plan = {name: [job.resolved.digest for job in planned] for name, planned in jobs_of.items()}
    if resume and store.is_begun(folder):
        comparison.same_plan(folder, plan)
    folder.mkdir(parents=True, exist_ok=True)
    everything = [job for planned in jobs_of.values() for job in planned]
    with _interruptible(everything, folder), store.alone(folder):
        store.claim(folder, resume)  # somebody else may have begun meanwhile, and be through
        name = None if as_file is None else as_file.tree.get("name")
        comparison.write_plan(folder, name, entries, against, plan)
        if as_file is not None:
            tree = store.keep_named_files({**as_file.tree, "seed": int(first)}, as_file.origin, folder)
            store.write_text(folder / comparison.SOURCE, toml_text.dumps(tree))
        for planned in jobs_of.values():
            if reps > 1:
                planned[0].folder.parent.mkdir(exist_ok=True)
        condensed: dict[Path, Window] = {}

        def condense_beside(job: Job) -> None:
            condensed[job.folder] = condense(Run(job.folder))

        _make(everything, at_once, heard, view, condense_beside)
        if reps > 1:
            for planned in jobs_of.values():
                store.finish_replications(planned[0].folder.parent, [job.folder.name for job in planned])
        finished = comparison.finish(folder, keep, condensed)
    if asked:
        from aqmlab.agreement import agreements

        agreements.write(finished)
    return finished


@brought.scoped
def calibrate(
    scenario: ScenarioLike,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    uncongested_rate: str | None = None,
    fresh: bool = False,
    allow_code: bool = False,
    monitor: Monitor | None = None,
) -> list[Calibration]:
    """Finds the population for every block of traffic that asks for a load, and returns one entry a block.

    Arguments that `run` has too mean the same here. What was found before comes from a cache, unless `fresh` is set.
    Raises `BadInput` if the scenario is wrong or no block asks for a load.
    """
    arguments.truths(fresh=fresh)
    source = _source(scenario, set, seed)
    if variants.has_variants(source):
        source = variants.from_file(source)[0].source
    resolved = _resolve(source, 1)
    if not resolved.loads:
        raise BadInput(f'{resolved.origin}: traffic: expected a block with a load to calibrate, as in load = "98mbit"')
    (found,) = _calibrate([resolved], _jobs(jobs), Foreseen(_listener(monitor)), uncongested_rate, fresh=fresh)
    return found


@brought.scoped
def record(
    scenario: ScenarioLike,
    out: str | Path,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    uncongested_rate: str | None = None,
    allow_code: bool = False,
    monitor: Monitor | None = None,
) -> "Recording":
    """Records what the traffic of a scenario asks for on the uncongested link: who asks, when, and for how much.

    The recording is the file `out`. A scenario beside it replays the recording. If `scenario` is a comparison file, it
    is recorded without its variants, and the new scenario has them. Arguments that `run` has too mean the same here.
    Loads are calibrated first. Raises `BadInput` if the scenario is wrong, and `Interrupted` after Ctrl-C; then nothing
    is written.
    """
    from aqmlab.runs import recording

    monitor, at_once, place = _listener(monitor), _jobs(jobs), places.of(out, expected="the path of a file")
    given = _source(scenario, set, seed)
    resolved = _resolve(variants.without_variants(given), 1)
    recording.claim(place, resolved)
    heard = Foreseen(monitor)
    (found,) = _calibrate([resolved], at_once, heard, uncongested_rate, [runner.size(resolved, resolved.loads)])
    planned = _plan_runs(resolved, found, 1, place, resolved.name)[0].resolved
    rates = reference.rates(calibration.engine_tree(planned), planned.origin, _rate(uncongested_rate))
    least = reference.rates_of(planned.scenario, planned.origin)
    if any(rate < real for rate, real in zip(rates, least, strict=True)):
        own = units.say_rate(max(least))
        raise BadInput(f"--uncongested-rate {uncongested_rate}: expected at least the link's own rate, {own}")
    try:
        return recording.record(planned, rates, given.tree, place, heard)
    except KeyboardInterrupt:
        raise Interrupted("stopped while recording; nothing was written") from None


def load(folder: str | Path) -> Result | Comparison:
    """Opens the folder of a result: a comparison gives a `Comparison`, one run or several repetitions a `Result`.

    Raises `BadInput` if there is no such folder.
    """
    place = places.of(folder, "folder")
    if not place.is_dir():
        raise BadInput(f"{place}: no such folder; expected a result folder")
    if (place / comparison.FILE).exists():
        return Comparison(place)
    return Result(place)


def load_to_show(folder: str | Path) -> Result | Comparison:
    """Opens the folder of a result, and says which of its tables were changed after the run.

    `load` does not: it reads no table, so that processes that are forked after it can.
    """
    found = load(folder)
    results = [column.result for column in found.columns] if isinstance(found, Comparison) else [found]
    for line in digests.changed([run for result in results for run in result.runs]):
        doubt(line)
    return found


def _source(scenario_like: ScenarioLike, changes: Mapping[str, Any] | None, seed: int | None) -> Source:
    edits = arguments.changes(changes, "set")
    brought.allow_in(edits.values())
    if isinstance(scenario_like, Mapping):
        brought.allow_in(brought.named_in(dict(scenario_like)))
    source = scenario.read(scenario_like)
    if seed is not None:
        edits["seed"] = seed
    return source.with_changes(edits)


def _resolve(source: Source, reps: int) -> Resolved:
    _check_reps(reps)
    return source.resolve()


@planning.uncollected()
def _resolve_all(wanted: Sequence[Variant]) -> list[Resolved]:
    resolved = planning.resolved([variant.source for variant in wanted])
    for variant, item in zip(wanted, resolved, strict=True):
        if not variant.uncongested:
            doubts.of(item, variant.source.tree)
    return resolved


def _check_reps(reps: int) -> None:
    bounds.check_plan(arguments.whole(reps, "reps"), "reps")


def _jobs(jobs: int | None) -> int:
    return runner.default_jobs() if jobs is None else arguments.whole(jobs, "jobs")


def _listener(monitor: Monitor | None) -> Monitor:
    if monitor is not None and not isinstance(monitor, Monitor):
        raise BadInput(f"monitor: {monitor!r}: expected a listener with expect, share, begin, tick and end")
    return monitor or Silent()


def _kind(resolved: Resolved) -> str:
    return _scenario_kind(resolved.scenario)


def _rate(text: str | None) -> float | None:
    return None if text is None else units.rate_bps(text, "uncongested_rate")


def _calibrate(
    resolved: Sequence[Resolved],
    at_once: int,
    monitor: Foreseen,
    uncongested_rate: str | None,
    sizes: Sequence[Size] = (),
    fresh: bool = False,
) -> list[list[Calibration]]:
    """The populations of some scenarios; `sizes` are those of the runs that come after."""
    loads, rate = Loads(fresh), _rate(uncongested_rate)
    asked = [loads.ask(item, rate) for item in resolved]
    if not loads.are_known:
        monitor.foresee(len(sizes), sum(sizes, NOTHING))
        try:
            loads.find(at_once, monitor.told)
        except KeyboardInterrupt:
            raise Interrupted("stopped while calibrating; nothing was run yet") from None
    return [loads.of(each) for each in asked]


def _uncongested(resolved: Resolved, uncongested_rate: str | None) -> Resolved:
    tree = calibration.engine_tree(resolved)
    rates = reference.rates(tree, resolved.origin, _rate(uncongested_rate))
    return engine.resolve(toml_text.dumps(reference.uncongested(tree, rates, resolved.origin)), resolved.origin)


def _on_its_link(variant: Variant, resolved: Resolved, uncongested_rate: str | None) -> Resolved:
    """The scenario of a variant: the reference's is on another link."""
    return _uncongested(resolved, uncongested_rate) if variant.uncongested else resolved


def _plan_runs(
    resolved: Resolved, calibrations: Sequence[Calibration], reps: int, folder: Path, label: str
) -> list[Job]:
    """The runs of one result, populations put in place of loads."""
    tree = calibration.engine_tree(resolved) if calibrations else {}
    for found in calibrations:
        tree = scenario.with_users(tree, found.traffic, found.users)
    # What is resolved resolves to itself.
    first = engine.resolve(toml_text.dumps(tree), resolved.origin) if calibrations else resolved
    notes = [{key: item for key, item in found.as_dict().items() if key != "cached"} for found in calibrations]
    seed = int(first.scenario.get("seed", 1))
    planned = []
    for k in range(reps):
        final = first if k == 0 else engine.resolve(first.toml, first.origin, [("seed", str(seed + k))])
        place, name = (folder, label) if reps == 1 else (folder / f"rep-{k + 1}", f"{label}, run {k + 1}")
        planned.append(Job(name, final, place, notes))
    return planned


@planning.uncollected()
def _plan_columns(
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
        item = _on_its_link(variant, item, uncongested_rate)
        place = scenario.slug(variant.name)
        planned = _plan_runs(item, found, reps, folder / place, variant.name)
        jobs_of[variant.name] = [replace(job, is_reference=True) for job in planned] if variant.uncongested else planned
        entries.append(Entry(variant.name, place, variant.uncongested))
        for witness in asked if not variant.uncongested else ():
            called = witness.called(variant.name)
            planned = _plan_runs(witness.changed(item), found, reps, folder / scenario.slug(called), called)
            jobs_of[called] = [replace(job, bed=witness.bed) for job in planned]
            entries.append(Entry(called, scenario.slug(called), False, witness.name, variant.name))
    return jobs_of, entries


def _make(
    jobs: Sequence[Job],
    at_once: int,
    monitor: Monitor,
    view: View | None = None,
    then: Callable[[Job], None] = lambda job: None,
) -> None:
    runner.run_all(jobs, at_once, monitor, then)
    if any(job.bed is not None for job in jobs):
        from aqmlab.live import runs

        runs.run_all(jobs, view or Unseen())


@contextlib.contextmanager
def _interruptible(jobs: Sequence[Job], folder: Path) -> Iterator[None]:
    """Says of Ctrl-C what is finished by then."""
    try:
        yield
    except KeyboardInterrupt:
        done = sum(map(runner.is_finished, jobs))
        raise Interrupted(
            f"stopped: {done} of {len(jobs)} runs are finished in {folder}; the same command with --resume goes on"
        ) from None


def _is_result(item: object) -> bool:
    if isinstance(item, Result):
        return True
    return isinstance(item, str | Path) and str(item) != "" and "\n" not in str(item) and files.is_folder(item)


def check_together(what: Sequence[ScenarioLike | Result]) -> None:
    """Refuses results beside what is none."""
    results = [item for item in what if _is_result(item)]
    others = [item for item in what if not _is_result(item)]
    if results and others:
        raise BadInput(
            f"{others[0]}: is no result folder, and {results[0]} is one; expected folders only, or a scenario and "
            "disciplines"
        )


def _result(folder: object) -> Result:
    opened = load_to_show(Path(str(folder)))
    if isinstance(opened, Comparison):
        raise BadInput(f"{folder}: is a comparison already; expected folders of runs (such as those inside it)")
    return opened


@planning.uncollected()
def _variants(
    what: Sequence[ScenarioLike | Result], changes: Mapping[str, Any] | None, reps: int
) -> tuple[Source | None, list[Variant]]:
    """What is to be compared, and the comparison file that says so if there is or could be one."""
    bounds.check_plan((len(what) - 1) * reps, "compare")
    first, *rest = what
    check_together(what)
    assert not isinstance(first, Result)
    source = _source(first, changes, None)
    if not rest:
        if not variants.has_variants(source):
            raise BadInput(
                f"{source.origin}: variant: missing; expected [[variant]] tables, or disciplines after the file name"
            )
        bounds.check_plan(len(source.tree["variant"]) * reps, f"{source.origin}: variant")
        return source, variants.from_file(source)
    # A policy is called by its file.
    others = [str(item) if brought.is_file(str(item)) else item for item in rest if not isinstance(item, Result)]
    if all(not isinstance(item, str) or _names_file(item) for item in others):
        return None, variants.from_files([source, *(_source(item, changes, None) for item in others)])
    written = variants.written_out(source, [str(item) for item in others])
    return written, variants.from_file(written)


def _names_file(word: str) -> bool:
    return "\n" in word or word.endswith(".toml") or (files.is_file(word) and not brought.is_file(word))


def _compare_results(results: Sequence[Result], out: str | Path | None, baseline: str | None) -> Comparison:
    if len(results) < 2:
        raise BadInput("compare: one result folder given; expected two or more")
    called = witnesses.named(results)
    names = [name for name, *_ in called]
    keep = Temporary() if out is None else None
    folder = keep.folder / "comparison" if keep else places.of(out)
    store.claim(folder, resume=False)
    rows = [
        (name, _is_reference(result), False, _scenario_kind(result.scenario))
        for name, result in zip(names, results, strict=True)
    ]
    ours = [row for row, (_, who, _) in zip(rows, called, strict=True) if who == witnesses.SIMULATED]
    against = variants.choose_baseline(rows if baseline or not ours else ours, baseline)
    folder.mkdir(parents=True, exist_ok=True)
    entries = [
        Entry(name, comparison.path_from(folder, result.folder), _is_reference(result), witness, subject)
        for (name, witness, subject), result in zip(called, results, strict=True)
    ]
    plan = {name: [run.manifest["scenario_digest"] for run in r.runs] for name, r in zip(names, results, strict=True)}
    comparison.write_plan(folder, None, entries, against, plan)
    finished = comparison.finish(folder, keep)
    finished.hold(results)
    if finished.witnesses:
        from aqmlab.agreement import agreements

        agreements.write(finished)
    return finished


def _scenario_kind(tree: Json) -> str:
    return str(links.first(tree).get("qdisc", {}).get("kind", ""))


def _is_reference(result: Result) -> bool:
    """Whether a result was made on the very link its load was calibrated on."""
    link = reference.rates_of(result.scenario, str(result.folder))
    return any(reference.rates_in(found) == link for found in result.calibration)
