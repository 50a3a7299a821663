"""Runs in processes of this machine.

Each worker is a Python of its own, started anew rather than forked, and connected by a pipe: a run that needs too much
memory or dies takes nobody with it, and no thread, lock or open file of the caller is in it. A worker that is lost is
replaced, and its run made once more; a caller that is killed takes its workers with it. Memory is bounded: a run that
grows beyond a worker's share of the machine is ended with a word, and a worker that stays large after a run is replaced
by a fresh one.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from aqmlab import scratch
from aqmlab.errors import AqmlabError, CannotRun, Misbehaved
from aqmlab.progress import Monitor, cut
from aqmlab.runs import memory, runner, starter
from aqmlab.sweep.condensed import Condensed
from aqmlab.sweep.executor import Spare
from aqmlab.sweep.maker import changed, maker
from aqmlab.sweep.plan import Task
from aqmlab.sweep.worker import BROKEN, DONE, KINDS, READY, REFUSED, TICK

SHARE = 0.8
"""Share of the machine's memory that all workers together may have."""

LARGE_BYTES = 512 * 2**20
"""Memory of an idle worker above which it is replaced: its interpreter and tables take a third of that."""

PROGRAM = "from aqmlab.sweep.worker import main; main()"

TRIES = 2
"""How often a run is given to a worker at most."""


class Processes:
    """An executor of so many processes at a time, whose tables lie in `within` meanwhile.

    With `stay`, processes that have nothing to do wait for the next plan: to start one takes a second.
    """

    def __init__(
        self,
        jobs: int | None = None,
        most_bytes: int | None = None,
        within: Path | None = None,
        stay: bool = False,
    ) -> None:
        self.jobs, self.within, self.stay = jobs or runner.default_jobs(), within, stay
        self._idle: list[_Worker] = []
        self.most_bytes = most_bytes or int(SHARE * memory_bytes() / self.jobs) or None

    def each(
        self, tasks: Sequence[Task], monitor: Monitor, spare: Spare | None = None
    ) -> Generator[tuple[Task, Condensed]]:
        """Makes tasks, and yields each result when it is there."""
        jobs = memory.runs_at_once(tasks, self.jobs)
        monitor.share(jobs)
        most_bytes = self.most_bytes and self.most_bytes * self.jobs // jobs
        with scratch.folder("runs", self.within) as place:
            pool = _Pool(tasks, jobs, most_bytes, place, monitor, spare)
            pool.workers, self._idle = self._idle, []
            try:
                yield from pool.each()
            finally:
                self._idle = pool.end(self.stay)


def memory_bytes() -> int:
    """Memory of the machine, or of the control group that it may use; 0 where that cannot be told."""
    try:
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (ValueError, OSError):
        return 0
    with contextlib.suppress(OSError, ValueError):  # "max" where there is no limit
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(sizes)


@dataclass
class _Worker:
    process: "subprocess.Popen[bytes]"
    connection: "Connection[Any, Any]"
    is_ready: bool = False
    task: Task | None = None
    run: int = 0

    @classmethod
    def start(cls) -> "_Worker":
        ours, its = Pipe()
        try:
            process = starter.python(PROGRAM, [str(its.fileno())], [its.fileno()], starter.environment())
        except OSError as error:
            raise CannotRun(f"a worker cannot be started: {error}") from None
        finally:
            its.close()
        return cls(process, ours)

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.wait()


class _Pool:
    def __init__(
        self,
        tasks: Sequence[Task],
        jobs: int,
        most_bytes: int | None,
        scratch: Path,
        monitor: Monitor,
        spare: Spare | None,
    ) -> None:
        self.waiting = deque(tasks)
        self.left = len(tasks)
        self.lost: dict[str, int] = {}
        self.jobs, self.most_bytes, self.scratch, self.monitor = jobs, most_bytes, scratch, monitor
        self.spare = spare
        self.workers: list[_Worker] = []

    def each(self) -> Generator[tuple[Task, Condensed]]:
        while self.left:
            self._staff()
            for ready in wait([worker.connection for worker in self.workers]):
                worker = next(worker for worker in self.workers if worker.connection is ready)
                try:
                    kind, *said = worker.connection.recv()
                except (EOFError, ConnectionError):
                    self._lose(worker)
                    continue
                found = self._hear(worker, kind, said)
                if found is not None:
                    self.left -= 1
                    yield found

    def end(self, stay: bool) -> list[_Worker]:
        """Ends what is under way; the answer are the workers that stay."""
        staying = [worker for worker in self.workers if stay and worker.is_ready and worker.task is None]
        for worker in self.workers:
            if worker not in staying:
                worker.end()
            if worker.task is not None:
                cut(self.monitor, worker.run)
        return staying

    def _staff(self) -> None:
        """Starts as many workers as there is work for, and gives tasks to those that have none."""
        busy = sum(worker.task is not None for worker in self.workers)
        while len(self.workers) < min(self.jobs, busy + len(self.waiting)):
            self.workers.append(_Worker.start())
        for worker in self.workers:
            if worker.is_ready and worker.task is None and self.waiting:
                task = self.waiting.popleft()
                worker.task, worker.run = task, self.monitor.begin(task.label, task.size)
                with contextlib.suppress(ConnectionError):  # it is lost, as is seen when it is listened to
                    worker.connection.send((task, self.scratch, self.most_bytes))

    def _hear(self, worker: _Worker, kind: str, said: Sequence[Any]) -> tuple[Task, Condensed] | None:
        if kind == READY:
            if said[0] != maker():
                raise AqmlabError(
                    f"a worker has {changed(said[0], maker())}: changed while runs were under way; start again"
                )
            worker.is_ready = True
            return None
        task = worker.task
        assert task is not None, "only a worker with a task speaks"
        if kind == TICK:
            self.monitor.tick(worker.run, said[0])
            return None
        worker.task = None
        self.monitor.end(worker.run)
        if kind == REFUSED:
            error = KINDS[said[0]](said[1])
            if self.spare is None or not isinstance(error, Misbehaved):
                raise error
            self.left -= 1
            self.spare(task, error)
            return None
        if kind == BROKEN:
            raise RuntimeError(f"{task.name}:\n{said[0]}")
        assert kind == DONE, kind
        content, resident = said
        if resident > LARGE_BYTES:
            self.workers.remove(worker)
            worker.end()
        return task, Condensed.from_bytes(content)

    def _lose(self, worker: _Worker) -> None:
        """A worker is gone: its run is made once more, by another."""
        self.workers.remove(worker)
        code = worker.process.wait()
        worker.connection.close()
        how = f"killed by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"
        if worker.task is None:
            raise CannotRun(f"a worker was {how} before it had a run; expected {sys.executable} to start")
        task, key = worker.task, worker.task.key
        self.monitor.end(worker.run)
        self.lost[key] = self.lost.get(key, 0) + 1
        if self.lost[key] >= TRIES:
            raise CannotRun(
                f"{task.name}: {TRIES} workers that ran it were lost, the last {how}; "
                f"expected enough memory for {self.jobs} runs at a time, or fewer --jobs"
            )
        self.monitor.expect(1, task.size)
        self.waiting.appendleft(task)
