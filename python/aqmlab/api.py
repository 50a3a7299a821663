"""What people import: `run`, `live`, `compare`, `calibrate`, `record`, `load`.

What only live runs and recordings need is loaded by these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import (
    arguments,
    bounds,
    comparison,
    files,
    links,
    prepared,
    reference,
    toml_text,
    units,
    variants,
)
from aqmlab.comparison import Comparison, Entry, Incomplete
from aqmlab.engine import Resolved
from aqmlab.errors import BadInput, Interrupted, doubt
from aqmlab.json_files import Json
from aqmlab.laws import brought, forms
from aqmlab.live import witnesses
from aqmlab.live.witnesses import Witness
from aqmlab.progress import Foreseen, Monitor, Unseen, View
from aqmlab.results import digests, store
from aqmlab.results.result import Result
from aqmlab.results.run import Run
from aqmlab.results.window import Window, condense
from aqmlab.runs import calibration, planning, runner
from aqmlab.runs.bed import CAPTURES, SIDES, Bed
from aqmlab.runs.calibration import Calibration
from aqmlab.runs.runner import Job, Spares
from aqmlab.scenario import ScenarioLike, Source, with_tables
from aqmlab.sweep import layers, repeatable, sweeps, table
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
    - `set` changes keys of the scenario by their dotted names: `{"link.qdisc.qref": "24p"}`. What is set takes the
      place of all that stood there: `{"link": {"rate": "5mbit"}}` is a link without a `qdisc`.
    - `out` is the folder of the result. Without it, the tables exist as long as the returned object does.
    - `jobs` runs are made at a time, by default one a core.
    - `resume` goes on with an `out` whose runs were interrupted.
    - `uncongested_rate` is the rate of the link on which loads are calibrated, as in "1gbit"; by default ten times the
      scenario's. A load is calibrated once, before the runs: its users offer it on average over the seeds of all runs.
    - `allow_code` runs the code that the scenario names, files of laws, in this call alone. What an argument names is
      run in any case.

    Raises `BadInput` if the scenario or an argument is wrong, `Misbehaved` if a law of one's own breaks its promises,
    `CannotRun` if it needs more memory than there is or makes no progress, and `Interrupted` after Ctrl-C.
    """
    monitor, at_once = prepared.listener(monitor), prepared.jobs_at_once(jobs)
    prepared.check_reps(reps)
    arguments.truths(resume=resume)
    source = prepared.read(scenario, set, seed)
    work = prepared.work(source, reps, out, resume, "`compare` instead of `run`")
    heard, size = Foreseen(monitor), runner.size(work.resolved, work.resolved.loads)
    (found,) = prepared.calibrate([work.resolved], at_once, heard, uncongested_rate, [size] * reps, reps=reps)
    return work.result(work.planned(found), at_once, heard)


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

    Raises `BadInput` if the scenario or an argument is wrong, `CannotRun` if this machine cannot make live runs,
    `Misbehaved` if a law of one's own breaks its promises, and `Interrupted` after Ctrl-C. A run that was too late is
    returned; its `void` says why it does not count.
    """
    from aqmlab.live import runs

    monitor, view = prepared.listener(monitor), view or Unseen()
    arguments.truths(virtual=virtual, traffic=traffic, resume=resume)
    if capture is not None and capture not in CAPTURES:
        raise BadInput(f"capture: {capture}: expected one of {', '.join(CAPTURES)}")
    if side not in SIDES:
        raise BadInput(f"side: {side}: expected one of {', '.join(SIDES)}")
    prepared.check_kernel(kernel, virtual)
    if not traffic and not command:
        raise BadInput("traffic: none, and no command either; expected a program to run, after --")
    source = prepared.read(scenario, set, seed)
    work = prepared.work(source, reps, out, resume, "`compare --live` instead of `live`")
    bed = Bed(virtual, capture, tuple(command), side, traffic, kernel)
    asked = Job(work.resolved.name, work.resolved, work.folder, bed=bed)
    runs.check([asked])
    view.say(runs.remarks([asked]))
    (found,) = prepared.calibrate(
        [work.resolved], prepared.jobs_at_once(jobs), Foreseen(monitor), uncongested_rate, reps=reps
    )
    return work.result(work.planned(found, bed), 1, monitor, view)


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
    kernel_qdisc: bool = False,
    kernel: str | None = None,
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
    this machine's TCP stacks in real time; `virtual` in a kernel of virtual time, which `kernel` may name;
    `kernel_qdisc` with the kernel's own queue discipline in place of aqmlab's, in virtual time if `virtual` is given,
    else in real time.

    Raises `BadInput` if something of `what` or an argument is wrong, `CannotRun` if this machine cannot make live runs,
    and `Interrupted` after Ctrl-C. Where a law of one's own breaks its promises, the others are run all the same, and
    `comparison.Incomplete` is raised, which has their comparison; the same call with `resume` runs the law again, also
    where its file has been changed. With witnesses the first that fails ends all.
    """
    arguments.truths(resume=resume, live=live, virtual=virtual, kernel_qdisc=kernel_qdisc)
    prepared.check_kernel(kernel, virtual)
    asked = witnesses.asked_for(live, virtual, kernel_qdisc, kernel)
    if not what:
        raise BadInput("compare: expected a comparison file, a scenario and disciplines, or several results")
    for item in what:
        if isinstance(item, Mapping):
            arguments.values(item, "<scenario>")
        elif isinstance(item, str):
            arguments.text(item, "compare")
    if all(_is_result(item) for item in what):
        if asked:
            raise BadInput("compare --live: expected a scenario, which results are not: they are what they are")
        for key, given in {"seed": seed, "reps": None if reps == 1 else reps, "set": set or None}.items():
            if given is not None:
                raise BadInput(f"{key}: {given!r}: expected a scenario, which results are not: they are what they are")
        if resume:
            raise BadInput(f"{arguments.named('resume')}: expected a scenario, of which runs can be missing")
        results = [item if isinstance(item, Result) else _result(item) for item in what]
        return _compare_results(results, out, baseline)
    monitor, view, at_once = prepared.listener(monitor), view or Unseen(), prepared.jobs_at_once(jobs)
    prepared.check_reps(reps)
    as_file, wanted = _variants(what, set, reps)
    _check_changes(set, wanted)
    first = seed if seed is not None else prepared.resolve(wanted[0].source, reps).scenario.get("seed", 1)
    prepared.check_seeds(int(first), reps)
    finished = _of_scenarios(
        variants.with_seed(wanted, int(first)),
        None if as_file is None else as_file.with_changes({"seed": int(first)}),
        reps=reps,
        out=out,
        resume=resume,
        baseline=baseline,
        uncongested_rate=uncongested_rate,
        asked=asked,
        at_once=at_once,
        monitor=monitor,
        view=view,
    )
    if asked:
        from aqmlab.agreement import agreements

        agreements.write(finished)
    if finished.failed:
        raise Incomplete(finished)
    return finished


@brought.scoped
def calibrate(
    scenario: ScenarioLike,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    reps: int = 1,
    jobs: int | None = None,
    uncongested_rate: str | None = None,
    fresh: bool = False,
    allow_code: bool = False,
    monitor: Monitor | None = None,
) -> list[Calibration]:
    """Finds the population for every block of traffic that asks for a load, and returns one entry a block.

    Of a comparison file it is one for each different load that its variants ask for in a block. Arguments that `run`
    has too mean the same here: the load is met on average over the seeds of `reps` runs. What was found before comes
    from a cache, unless `fresh` is set.
    Raises `BadInput` if the scenario or an argument is wrong or no block asks for a load, and `Interrupted` after
    Ctrl-C.
    """
    arguments.truths(fresh=fresh)
    source = prepared.read(scenario, set, seed)
    several = variants.from_file(source) if variants.has_variants(source) else [variants.Variant("", source)]
    resolved = [prepared.resolve(one.source, reps) for one in several]
    if not any(one.loads for one in resolved):
        raise BadInput(f'{source.origin}: traffic: expected a block with a load to calibrate, as in load = "98mbit"')
    heard = Foreseen(prepared.listener(monitor))
    found = prepared.calibrate(resolved, prepared.jobs_at_once(jobs), heard, uncongested_rate, fresh=fresh, reps=reps)
    asking: dict[tuple[int, str], list[str]] = {}
    for variant, each in zip(several, found, strict=True):
        for one in each:
            asking.setdefault((one.traffic, one.key), []).append(variant.name)
    every = {(one.traffic, one.key): one for each in found for one in each}
    return [replace(one, variants=tuple(filter(None, asking[key]))) for key, one in every.items()]


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

    monitor, at_once, place = (
        prepared.listener(monitor),
        prepared.jobs_at_once(jobs),
        arguments.path(out, expected="the path of a file"),
    )
    given = prepared.read(scenario, set, seed)
    resolved = prepared.resolve(variants.without_variants(given), 1)
    recording.claim(place, resolved)
    heard = Foreseen(monitor)
    (found,) = prepared.calibrate([resolved], at_once, heard, uncongested_rate, [runner.size(resolved, resolved.loads)])
    planned = prepared.runs_of(resolved, found, 1, place, resolved.name)[0].resolved
    rates = reference.rates(
        calibration.engine_tree(planned), planned.origin, reference.asked_rate_bps(uncongested_rate)
    )
    least = reference.rates_of(planned.scenario, planned.origin)
    if any(rate < real for rate, real in zip(rates, least, strict=True)):
        own = units.say_rate(max(least))
        raise BadInput(
            f"{arguments.named('uncongested_rate', uncongested_rate)}: expected at least the link's own rate, {own}"
        )
    try:
        return recording.record(planned, rates, given.tree, place, heard)
    except KeyboardInterrupt:
        raise Interrupted("stopped while recording; nothing was written") from None


def load(folder: str | Path) -> Result | Comparison:
    """Opens the folder of a result: a comparison gives a `Comparison`, one run or several repetitions a `Result`.

    Raises `BadInput` if there is no such folder, or if it is that of a sweep.
    """
    place = arguments.path(folder, "folder")
    files.found_folder(place, "a result folder")
    if (place / sweeps.FILE).exists():
        raise BadInput(
            f"{place}: is a sweep, which keeps no tables for a page or figures; its numbers are in "
            f"{place / table.FILE}, a row a run, to be plotted from there (polars.read_parquet); "
            f"expected a result or comparison folder, such as aqmlab compare makes of one of its points"
        )
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


def _kind(resolved: Resolved) -> str:
    return _scenario_kind(resolved.scenario)


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
    for item in rest:
        if isinstance(item, type):
            raise brought.no_class(item)
    source = prepared.read(first, changes, None)
    if not rest:
        if not variants.has_variants(source):
            raise BadInput(
                f"{source.origin}: variant: missing; expected [[variant]] tables, or disciplines after the file name"
            )
        bounds.check_plan(len(source.tree["variant"]) * reps, f"{source.origin}: variant")
        return source, variants.from_file(source)
    # A policy is called by its file.
    others = [str(item) if forms.is_file(str(item)) else item for item in rest if not isinstance(item, Result)]
    if all(not isinstance(item, str) or _names_file(item) for item in others):
        return None, variants.from_files([source, *(prepared.read(item, changes, None) for item in others)])
    written = variants.written_out(source, [str(item) for item in others])
    return written, variants.from_file(written)


def _check_changes(changes: Mapping[str, Any] | None, wanted: Sequence[Variant]) -> None:
    """Refuses a change that does nothing, since every variant says otherwise of its key."""
    trees = [variant.source.tree for variant in wanted if not variant.uncongested]
    for key, value in arguments.changes(changes, "set").items():
        is_of_all = key.partition(".")[0] in (
            "name",
            "variant",
        )  # of the comparison, and of variants before they are read
        if trees and not is_of_all and not any(layers.are_as_set(tree, with_tables({key: value})) for tree in trees):
            raise BadInput(
                f"{arguments.changed('set', key, value)}: every variant undoes it; expected it among what the variants "
                "say, as in 'pie target 5ms'"
            )


def _names_file(word: str) -> bool:
    return "\n" in word or word.endswith(".toml") or (files.is_file(word) and not forms.is_file(word))


def _of_scenarios(
    wanted: Sequence[Variant],
    as_file: Source | None,
    *,
    reps: int,
    out: str | Path | None,
    resume: bool,
    baseline: str | None,
    uncongested_rate: str | None,
    asked: Sequence[Witness],
    at_once: int,
    monitor: Monitor,
    view: View,
) -> Comparison:
    """Makes the runs of variants, by the witnesses that are asked too; `as_file` is the comparison file, if one can be.

    Variants whose laws failed are among the answer's `failed`.
    """
    resolved = prepared.resolve_all(wanted)
    folder, keep = prepared.place(out, "comparison")
    store.claim(folder, resume)
    rows = [(v.name, v.uncongested, v.baseline, _kind(r)) for v, r in zip(wanted, resolved, strict=True)]
    against = variants.choose_baseline(rows, baseline)
    if asked:
        from aqmlab.live import runs

        beds = [job for v, r in zip(wanted, resolved, strict=True) for job in witnesses.preview(asked, v, r, folder)]
        runs.check(beds)
        view.say([*witnesses.remarks(resolved), *runs.remarks(beds)])
    heard = Foreseen(monitor)
    sizes = [
        runner.size(prepared.on_its_link(v, r, uncongested_rate), r.loads)
        for v, r in zip(wanted, resolved, strict=True)
    ]
    calibrations = prepared.calibrate(resolved, at_once, heard, uncongested_rate, sizes * reps, reps=reps)
    jobs_of, entries = prepared.columns_of(wanted, resolved, calibrations, reps, folder, asked, uncongested_rate)
    plan = {name: [job.resolved.digest for job in planned] for name, planned in jobs_of.items()}
    laws = {name: [law.name for law in brought.of(planned[0].resolved.scenario)] for name, planned in jobs_of.items()}
    if resume and store.is_begun(folder):
        comparison.same_plan(folder, plan, laws)
    folder.mkdir(parents=True, exist_ok=True)
    everything = [job for planned in jobs_of.values() for job in planned]
    with prepared.interruptible(everything, folder), store.alone(folder):
        store.claim(folder, resume)  # somebody else may have begun meanwhile, and be through
        comparison.write_plan(folder, None if as_file is None else as_file.tree.get("name"), entries, against, plan)
        if as_file is not None:
            tree = repeatable.keep_named_files(as_file.tree, as_file.origin, folder)
            store.write_text(folder / comparison.SOURCE, toml_text.dumps(tree))
        for planned in jobs_of.values():
            if reps > 1:
                planned[0].folder.parent.mkdir(exist_ok=True)
        spares = (
            None if asked else Spares(jobs_of, lambda name, what: comparison.note_failure(folder, name, what, laws))
        )
        condensed: dict[Path, Window] = {}

        def condense_beside(job: Job) -> None:
            condensed[job.folder] = condense(Run(job.folder))

        prepared.make(everything, at_once, heard, view, condense_beside, spares)
        failed = {} if spares is None else spares.failed
        comparison.settle_failures(folder, failed, laws, rows, against)
        if reps > 1:
            for planned in (planned for name, planned in jobs_of.items() if name not in failed):
                store.finish_replications(planned[0].folder.parent, [job.folder.name for job in planned])
        return comparison.finish(folder, keep, condensed)


def _compare_results(results: Sequence[Result], out: str | Path | None, baseline: str | None) -> Comparison:
    if len(results) < 2:
        raise BadInput("compare: one result folder given; expected two or more")
    places = [files.end_of_links(result.folder) for result in results]
    for k, result in enumerate(results):
        if places[k] in places[:k]:
            raise BadInput(f"{result.folder}: is there twice; expected different results")
    called = witnesses.named(results)
    names = [name for name, *_ in called]
    folder, keep = prepared.place(out, "comparison")
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
    _doubt_pairs(finished)
    if finished.witnesses:
        from aqmlab.agreement import agreements

        agreements.write(finished)
    return finished


def _doubt_pairs(found: Comparison) -> None:
    """Says which columns are compared seed by seed with one that another engine has made."""
    for column in found.columns:
        base = found.base_of(column)
        made_by = [(one.result.manifest["version"], one.result.manifest.get("engine_sha256")) for one in (column, base)]
        if made_by[0] != made_by[1] and found.are_paired(column, base):
            doubt(
                f"{column.name}: is of another engine than {base.name} and is compared with it seed by seed, which is "
                "wrong if the two draw other demands from a seed; expected results of one engine"
            )


def _scenario_kind(tree: Json) -> str:
    return str(links.first(tree).get("qdisc", {}).get("kind", ""))


def _is_reference(result: Result) -> bool:
    """Whether a result was made on the very link its load was calibrated on."""
    link = reference.rates_of(result.scenario, str(result.folder))
    return any(reference.rates_in(found) == link for found in result.calibration)
