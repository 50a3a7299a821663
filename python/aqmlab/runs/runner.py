"""Runs scenarios side by side: one thread a run, the engine outside the interpreter lock.

Ctrl-C (or an error in one run) ends the others at their next report of progress; what is finished stays.
"""

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from aqmlab import engine, units
from aqmlab.engine import Load, Resolved, Tree
from aqmlab.errors import Misbehaved
from aqmlab.json_files import Json
from aqmlab.laws import brought
from aqmlab.progress import NOTHING, Monitor, Size, announce, told_of_the_end
from aqmlab.results import store
from aqmlab.runs import apart, memory
from aqmlab.runs.bed import Bed
from aqmlab.runs.cost import expected_bits
from aqmlab.runs.watchdog import Watchdog

T = TypeVar("T")


class Cancelled(Exception):  # noqa: N818 - not an error: another run failed, or somebody pressed Ctrl-C
    """Raised inside a run that is to end."""


class Slots:
    """So many runs at a time, whoever makes them."""

    def __init__(self, count: int) -> None:
        self._most, self._taken = max(1, count), 0
        self._changed = threading.Condition()

    def fit(self, runs: Sequence[memory.Reckoned]) -> None:
        """Lets there be no more of them than there is memory for so many of these runs."""
        with self._changed:
            self._most = memory.runs_at_once(runs, self._most)

    @contextlib.contextmanager
    def one(self, *stops: threading.Event) -> Iterator[None]:
        """Waits for one that is free, and holds it meanwhile; any of `stops` ends the wait."""
        with self._changed:
            while self._taken >= self._most:
                self._changed.wait(timeout=0.1)
                if any(stop.is_set() for stop in stops):
                    raise Cancelled
            self._taken += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken -= 1
                self._changed.notify()


@dataclass(frozen=True)
class Job:
    """One run to be made and the folder it shall become."""

    label: str
    resolved: Resolved
    folder: Path
    calibrations: Sequence[Json] = ()
    is_reference: bool = False
    """Whether its link is to be uncongested."""
    bed: Bed | None = None
    """The test bed it runs on; `None`: the simulator."""


class Spares:
    """Runs of several variants, of which those go on whose laws keep their promises.

    Of a variant that had a run in which they did not, no further run is begun.
    """

    def __init__(self, variants: Mapping[str, Sequence[Job]], tell: Callable[[str, str], None]) -> None:
        """`variants` are the runs of each, by its name; `tell` is told the name of one that fails, and what was wrong.

        It is told of one variant after the other.
        """
        self._variant = {job.folder: name for name, jobs in variants.items() for job in jobs}
        self._tell, self._telling = tell, threading.Lock()
        self.failed: dict[str, str] = {}
        """What was wrong in the first run of a variant that failed, by its name."""

    def has_failed(self, job: Job) -> bool:
        """Whether a run of the same variant has failed."""
        return self._variant[job.folder] in self.failed

    def note(self, job: Job, error: Misbehaved) -> None:
        """A run has failed."""
        name = self._variant[job.folder]
        with self._telling:
            if name not in self.failed:
                self.failed[name] = str(error)
                self._tell(name, str(error))


def default_jobs() -> int:
    """As many runs at a time as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def simulated_s(resolved: Resolved) -> float:
    """Simulated time of a run."""
    return units.seconds(resolved.scenario.get("duration"), "duration")


def size(resolved: Resolved, loads: Sequence[Load] = ()) -> Size:
    """What is known of a run before it begins; `loads` are what blocks of it asked for before they had users."""
    return size_of(resolved.scenario, resolved.origin, loads)


def size_of(tree: Tree, origin: str, loads: Sequence[Load] = ()) -> Size:
    """The same of the tables of a resolved scenario."""
    return Size(units.seconds(tree.get("duration"), "duration"), expected_bits(tree, origin, loads))


def size_of_all(runs: Sequence[Resolved]) -> Size:
    """The size of runs together."""
    return sum(map(size, runs), NOTHING)


def is_finished(job: Job) -> bool:
    """Whether its folder holds it already."""
    if job.bed is None:
        return store.is_finished(job.folder, job.resolved.digest)
    captured = str(job.resolved.scenario.get("live", {}).get("capture", "off"))
    return store.is_finished(job.folder, job.resolved.digest, job.bed.as_dict(captured))


def run_all(
    jobs: Sequence[Job],
    at_once: int,
    monitor: Monitor,
    then: Callable[[Job], None] = lambda job: None,
    spares: Spares | None = None,
) -> None:
    """Makes every simulated run whose folder is not finished yet; `then` is done with each, beside the other runs.

    A law that breaks its promises ends them all, unless `spares` are told of it.
    """
    waiting = [job for job in jobs if job.bed is None and not is_finished(job)]
    at_once = memory.runs_at_once([job.resolved for job in waiting], at_once)
    monitor.share(at_once)
    announce(monitor, len(waiting), size_of_all([job.resolved for job in waiting]))
    in_parallel([partial(_run, job, monitor, then, spares) for job in waiting], at_once)


def observed(
    resolved: Resolved,
    directory: Path,
    label: str,
    stops: Sequence[threading.Event],
    monitor: Monitor,
    known: Size | None = None,
) -> tuple[Json, float]:
    """Simulates into a folder under a monitor's eyes; the answer is the summary and the wall time, seconds.

    Any of `stops` ends it.
    """
    started = time.monotonic()
    run = monitor.begin(label, known or size(resolved))

    watchdog = Watchdog(label)

    def progress(tick: Mapping[str, float]) -> None:
        if any(stop.is_set() for stop in stops):
            raise Cancelled
        watchdog.heard(tick)
        monitor.tick(run, tick)

    try:
        with told_of_the_end(monitor, run):
            make = apart.simulate if brought.runs_apart(resolved) else engine.simulate
            summary = make(resolved, directory, progress)
    except Misbehaved as error:
        raise Misbehaved(f"{label}: {error}") from None
    return summary, time.monotonic() - started


def _run(job: Job, monitor: Monitor, then: Callable[[Job], None], spares: Spares | None, stop: threading.Event) -> None:
    if spares is not None and spares.has_failed(job):
        return
    try:
        with store.making(job.folder) as place:
            resolved = store.keep_files(place, job.folder, job.resolved)
            summary, wall_s = observed(resolved, place, job.label, [stop], monitor)
            found, reference = job.calibrations, job.is_reference
            store.finish_run(place, job.folder, resolved, summary, found, wall_s, is_reference=reference)
    except Misbehaved as error:
        if spares is None:
            raise
        spares.note(job, error)
        return
    then(job)


def in_parallel(work: Sequence[Callable[[threading.Event], T]], at_once: int) -> list[T]:
    """Calls every piece of work in a thread of its own, at most so many at once; the answers in the same order.

    The first exception sets the event given to each, waits for all to end, and is raised; so does Ctrl-C, which reaches
    the main thread because all it does is wait.
    """
    stop, over = threading.Event(), threading.Event()
    left = itertools.count(len(work) - 1, -1)
    if not work:
        over.set()

    def guarded(piece: Callable[[threading.Event], T]) -> T:
        try:
            if stop.is_set():
                raise Cancelled
            return piece(stop)
        except BaseException:
            over.set()
            raise
        finally:
            if next(left) == 0:
                over.set()

    with ThreadPoolExecutor(max_workers=max(1, at_once), thread_name_prefix="aqmlab") as pool:
        futures = [pool.submit(guarded, piece) for piece in work]
        try:
            # With a timeout: a signal may be delivered to another thread, and then Python sees it only once the main
            # thread runs again.
            while not over.wait(timeout=0.1):
                pass
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            if any(not future.done() or future.exception() for future in futures):
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
    failures = [error for future in futures if not future.cancelled() and (error := future.exception())]
    for error in failures:
        if not isinstance(error, Cancelled):
            raise error
    if failures:
        raise failures[0]
    return [future.result() for future in futures]
