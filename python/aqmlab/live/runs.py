"""Live runs, one after the other: each becomes a result folder like a simulated one.

Two at a time would be each other's lateness in real time. In virtual time they would not; but one keeps a core busy.
"""

import re
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from aqmlab import links, units
from aqmlab.engine import Resolved
from aqmlab.errors import BadInput, CannotRun, Misbehaved
from aqmlab.json_files import Json
from aqmlab.laws import brought
from aqmlab.live import plan, preflight, process, virtual
from aqmlab.live.settings import Settings, settings
from aqmlab.progress import View, told_of_the_end
from aqmlab.results import store
from aqmlab.runs import runner
from aqmlab.runs.bed import Bed
from aqmlab.runs.runner import Job


def check(jobs: Sequence[Job]) -> None:
    """Makes sure that this machine can do it, before anything runs."""
    for job in jobs:
        if job.bed is None or runner.is_finished(job):
            continue
        bed = job.bed
        plan.check(job.resolved, is_virtual=bed.is_virtual, kernel=bed.kernel, has_traffic=bed.has_traffic)
        if bed.is_virtual:
            virtual.check_place(job.folder)
        if bed.command and shutil.which(bed.command[0]) is None:
            raise BadInput(f"live: {bed.command[0]}: no such program; expected one to run inside, after --")


def remarks(jobs: Sequence[Job]) -> list[str]:
    """What kernels do otherwise than the scenarios say, each thing once."""
    said = [remark for job in jobs if job.bed is not None for remark in plan.remarks(job.resolved)]
    if any(job.bed is not None and not job.bed.is_virtual for job in jobs):
        said += preflight.beside()
    return list(dict.fromkeys(said))


def run_all(jobs: Sequence[Job], view: View) -> None:
    """Makes every run whose folder is not finished yet."""
    waiting = [job for job in jobs if job.bed is not None and not runner.is_finished(job)]
    view.expect(len(waiting), runner.size_of_all([job.resolved for job in waiting]))
    runner.in_parallel(
        [partial(_run, job, job.bed, _facts(job, job.bed), view) for job in waiting if job.bed is not None], 1
    )


def _facts(job: Job, bed: Bed) -> Json:
    """What makes a run on this bed another one."""
    return bed.as_dict(plan.capture(job.resolved))


def _run(job: Job, bed: Bed, facts: Json, view: View, stop: threading.Event) -> None:
    if _facts(job, bed) != facts:
        raise CannotRun(
            f"{job.label}: the kernel of virtual time has been changed since the first run; expected one for all runs"
        )
    with store.making(job.folder) as place:
        resolved = store.keep_files(place, job.folder, job.resolved)
        wanted = settings(resolved)
        store.write_text(place / "scenario.toml", resolved.toml)
        store.write_json(place / process.PLAN, _plan(place, resolved, bed))
        outcome, wall_s = _observed(job, bed, place, view, stop)
        summary = outcome.get("summary")
        if not isinstance(summary, dict):
            raise CannotRun("live: the test bed ended without a summary")
        if found := summary.get("live"):
            void = found.get("void")
            said = with_bound(void, resolved.scenario) if void else None
            found["void"] = unmeasured(summary, resolved.scenario) or said
        summary["engine"] = _as_seen_here(summary["engine"], wall_s, runner.simulated_s(resolved))
        process.clean(place)
        store.finish_run(
            place,
            job.folder,
            resolved,
            summary,
            job.calibrations,
            wall_s,
            _about({**facts, **_name(bed)}, resolved, wanted, summary, outcome),
        )


def _plan(place: Path, resolved: Resolved, bed: Bed) -> Json:
    """What the process of the test bed is told."""
    return plan.of(
        resolved,
        str(place.absolute() / "scenario.toml"),
        is_virtual=bed.is_virtual,
        command=bed.command,
        side=bed.side,
        has_traffic=bed.has_traffic,
        capture=bed.capture or plan.capture(resolved),
    )


def _observed(job: Job, bed: Bed, place: Path, view: View, stop: threading.Event) -> tuple[Json, float]:
    started = time.monotonic()
    run = view.begin(job.label, runner.size(job.resolved))
    view.about(run, job.resolved.scenario, bed.clock)

    def heard(tick: Mapping[str, Any]) -> None:
        view.tick(run, {"wall_s": time.monotonic() - started, "bottleneck_packets": 0, **tick})

    try:
        with told_of_the_end(view, run):
            outcome = process.run(
                process.arguments(place.absolute(), bed.is_virtual, bed.kernel),
                place.absolute(),
                stop,
                heard,
                is_virtual=bed.is_virtual,
                said=view.hear if bed.command else None,
                laws=brought.of(job.resolved.scenario),
            )
    except Misbehaved as error:
        raise Misbehaved(f"{job.label}: {error}") from None
    return outcome, time.monotonic() - started


def _as_seen_here(engine: Json, wall_s: float, simulated_s: float) -> Json:
    """What it took in this machine's time: a clock of virtual time knows nothing of that."""
    return {**engine, "wall_s": wall_s, "simulated_per_wall": simulated_s / wall_s if wall_s > 0 else None}


_CHECKED = re.compile(
    r"the link, checked before the run, (forward|in reverse): the rate was .*, expected ([0-9.]+) Mb/s within .*"
)
"""Why a run does not count whose link had another rate than it was to have."""


def with_bound(void: str, tree: Mapping[str, Any]) -> str:
    """A reason why a run is void, with the key of the scenario that the rate expected there is from, if it names one.

    The check's packets cross the links of the first block's route, and access links.
    """
    if (found := _CHECKED.fullmatch(void)) is None:
        return void
    way = "forward" if found[1] == "forward" else "reverse"
    place = links.WAYS.index(way)
    crossed = links.route(tree, tree["traffic"][0], way)
    slowest = min(crossed, key=lambda name: links.rates_bps(tree, name, "")[place])
    name = "rate" if way == "forward" else "reverse_rate"
    of_link = f"{links.key(tree, slowest)}.{name} = {links.of(tree)[slowest].get(name)}"
    access = tree["path"]["access_rate"]
    access_bps = units.rate_bps(access, "path.access_rate")
    is_access = access_bps < links.rates_bps(tree, slowest, "")[place] and abs(float(found[2]) * 1e6 - access_bps) < 1e3
    bound = f"path.access_rate = {access}, below {of_link}" if is_access else of_link
    return f"{void}, by {bound}"


def unmeasured(summary: Json, tree: Mapping[str, Any]) -> str | None:
    """Why a run does not count in which nothing was measured, since the program inside had ended; None of others."""
    if summary["measured_s"] > 0:
        return None
    ended = units.say_seconds(float(summary["live"]["duration_s"]))
    return (
        f"the program ended after {ended}, before the measured window began (warmup = {tree['warmup']}): expected one "
        "that runs for longer, or a shorter warmup"
    )


def _name(bed: Bed) -> Json:
    return {} if bed.kernel_name is None else {"kernel_name": bed.kernel_name}


def _about(facts: Json, resolved: Resolved, wanted: Settings, summary: Json, outcome: Json) -> Json:
    """The manifest's own section on how a run was made, which begins with the `facts` of its bed."""
    found = summary.get("live") or {}
    remarks = [*plan.remarks(resolved), *(found.get("remarks") or [])]
    return {
        **facts,
        "void": found.get("void"),
        "kernel": found.get("kernel"),
        "command_status": found.get("command_status"),
        "settings": {"sysctl": wanted.sysctl, "blocks": [vars(block) for block in wanted.blocks]},
        "remarks": list(dict.fromkeys(remarks)),
        "readback": outcome.get("readback"),
    }
