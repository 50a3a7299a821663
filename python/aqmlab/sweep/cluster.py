"""Runs on a Dask cluster: the scheduler gives them to its workers, results come back and are kept here.

Workers need the same aqmlab and nothing else in common with this machine: what a run needs is sent along, files that
scenarios name to each worker once. A run whose worker is lost is given to another by the scheduler, as often as that
allows (`distributed.scheduler.allowed-failures`), and then handed in once more.

The package `distributed` is imported only here, and only when somebody asks for a cluster.
"""

import contextlib
import importlib
import logging
import queue
import re
import time
import tomllib
import uuid
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aqmlab import toml_text
from aqmlab.engine import KeptFile
from aqmlab.errors import AqmlabError, BadInput, CannotRun, Misbehaved
from aqmlab.progress import Monitor, cut
from aqmlab.scenario import with_files_called
from aqmlab.sweep.cluster_worker import DIFFERS, LACKS, LEFT, TOPIC, Answer, Order, make, own_engine, take_file
from aqmlab.sweep.condensed import Condensed
from aqmlab.sweep.executor import Executor, Spare
from aqmlab.sweep.maker import Maker, changed
from aqmlab.sweep.plan import Task
from aqmlab.sweep.worker import BROKEN, DONE, KINDS, REFUSED

ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):\d{1,5}")

CONNECT_S = 5.0
"""How long a scheduler may take to answer: a reachable one does at once, a busy one within a second or two."""

PATIENCE_S = 120.0
"""How long a cluster may be without a worker, at first and later: one of a batch system may well come back."""

LOOK_EVERY_S = 2.0
"""How often the scheduler is asked for its workers, and whether it is still there."""

AHEAD = 2
"""Runs handed in for each that can be made at a time: no worker waits for this machine, and little has to be called
back or sent again when something is lost."""

HANDED_IN = 2
"""How often a run is handed in at most, if its workers are lost."""


@contextlib.contextmanager
def connected(address: str | None, patience_s: float = PATIENCE_S) -> Iterator[Executor | None]:
    """An executor of the runs on the cluster whose scheduler has this address; None without one."""
    if address is None:
        yield None
        return
    cluster = Cluster(address, patience_s)
    try:
        yield cluster
    finally:
        cluster.close()


class Cluster:
    """An executor: the workers of a Dask scheduler."""

    def __init__(self, address: str, patience_s: float = PATIENCE_S) -> None:
        if not ADDRESS.fullmatch(address):
            raise BadInput(f"--scheduler: {address!r}: expected the address of a Dask scheduler: tcp://HOST:8786")
        self.address, self.patience_s = address, patience_s
        self.client = _connect(address)
        try:
            self._await_workers()
            self.check()
        except BaseException:
            self.close()
            raise

    def each(
        self, tasks: Sequence[Task], monitor: Monitor, spare: Spare | None = None
    ) -> Generator[tuple[Task, Condensed]]:
        """Makes tasks, and yields each result when it is there."""
        session = _Session(self, tasks, monitor, spare)
        try:
            yield from session.each()
        finally:
            session.end()

    def close(self) -> None:
        """Leaves the cluster; it goes on without us."""
        with contextlib.suppress(Exception):  # it may be gone by itself
            self.client.close(timeout=CONNECT_S)

    def workers(self) -> dict[str, int]:
        """How many runs each worker makes at a time; raises `CannotRun` if the scheduler is gone."""
        try:
            if self.client.status != "running":
                raise OSError(self.client.status)
            workers = self.client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, KeyError):
            raise self.gone() from None
        return {address: int(facts["nthreads"]) for address, facts in workers.items()}

    def check(self) -> None:
        """Makes sure that everybody has the same engine."""
        try:
            theirs = self.client.run_on_scheduler(own_engine)
        except OSError:
            raise self.gone() from None
        except Exception as error:
            raise CannotRun(_unfit(f"scheduler {self.address}", error)) from None
        if theirs[0] != own_engine()[0]:
            raise CannotRun(f"scheduler {self.address}: has {_differs(theirs)}")
        for address, answer in self.client.run(own_engine, on_error="return").items():
            if isinstance(answer, OSError):
                continue  # lost in the meantime
            if isinstance(answer, Exception):
                raise CannotRun(_unfit(f"worker {address}", answer))
            if answer != own_engine():
                raise CannotRun(f"worker {address}: has {_differs(answer)}")

    def gone(self) -> CannotRun:
        """What is said when the scheduler is not there any more."""
        return CannotRun(
            f"--scheduler: {self.address}: the connection is lost; what is finished is kept: start again to go on"
        )

    def deserted(self) -> CannotRun:
        """What is said when there are no workers."""
        return CannotRun(
            f"--scheduler: {self.address}: no worker for {self.patience_s:.0f} s; "
            f"expected some: dask worker {self.address}"
        )

    def _await_workers(self) -> None:
        deadline = time.monotonic() + self.patience_s
        while not self.workers():
            if time.monotonic() > deadline:
                raise self.deserted()
            time.sleep(0.2)


def _connect(address: str) -> Any:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise CannotRun(
            f"--scheduler: needs the Python package distributed ({error}); expected: pip install 'aqmlab[cluster]'"
        ) from None
    # What goes wrong is said here, in one line.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            # Of packages that the results do not depend on: the engine is asked for itself.
            warnings.simplefilter("ignore", importlib.import_module("distributed.versions").VersionMismatchWarning)
            return distributed.Client(address, timeout=CONNECT_S, set_as_default=False, name="aqmlab")
    except (OSError, ImportError, ValueError, RuntimeError) as error:
        raise CannotRun(
            f"--scheduler: {address}: no Dask scheduler answers within {CONNECT_S:.0f} s ({error}); "
            f"expected the address that `dask scheduler` says it listens at"
        ) from None


def _differs(theirs: Maker) -> str:
    return f"{changed(theirs, own_engine())}; expected the same build of aqmlab everywhere"


def _unfit(who: str, error: Exception) -> str:
    return f"{who}: cannot load this aqmlab ({type(error).__name__}: {error}); expected the same build of it everywhere"


@dataclass
class _HandedIn:
    task: Task
    future: Any
    count: int
    """How often it was handed in."""
    run: int | None = None
    """What the monitor calls it, once a worker has begun it."""
    worker: str = ""
    """Who makes it."""


class _Session:
    """Runs of one plan on a cluster."""

    def __init__(self, cluster: Cluster, tasks: Sequence[Task], monitor: Monitor, spare: Spare | None = None) -> None:
        self.spare = spare
        self.cluster, self.client, self.monitor = cluster, cluster.client, monitor
        self.waiting = deque((task, 1) for task in tasks)
        self.under_way: dict[str, _HandedIn] = {}
        self.name = uuid.uuid4().hex
        self.heard: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.at_once = 1
        self.looked = self.staffed = time.monotonic()

    def each(self) -> Generator[tuple[Task, Condensed]]:
        # Both are called in threads of the client; the work is done in this one, which Ctrl-C reaches.
        self.client.subscribe_topic(TOPIC, lambda event: self.heard.put(("told", event[1])))
        self._look()
        while self.waiting or self.under_way:
            self._hand_in()
            try:
                kind, what = self.heard.get(timeout=LOOK_EVERY_S / 2)
            except queue.Empty:
                kind, what = "", None
            if time.monotonic() > self.looked + LOOK_EVERY_S:
                self._look()
            if kind == "told":
                self._tell(what)
            elif kind and (handed_in := self.under_way.pop(what, None)) is not None:
                found = self._finish(handed_in)
                if found is not None:
                    yield handed_in.task, found

    def end(self) -> None:
        """Calls back what is under way; workers end it at its next report of progress."""
        for each in self.under_way.values():
            if each.run is not None:
                cut(self.monitor, each.run)
        with contextlib.suppress(Exception):  # the scheduler may be gone, and calls everything back by itself then
            self.client.cancel([each.future for each in self.under_way.values()])
            self.client.unsubscribe_topic(TOPIC)
        self.under_way.clear()

    def _look(self) -> None:
        """Looks which workers are there; raises when there has been none for too long."""
        self.looked = time.monotonic()
        workers = self.cluster.workers()
        if workers:
            self.at_once, self.staffed = sum(workers.values()), self.looked
        elif self.looked > self.staffed + self.cluster.patience_s:
            raise self.cluster.deserted()

    def _hand_in(self) -> None:
        while self.waiting and len(self.under_way) < AHEAD * max(1, self.at_once):
            task, count = self.waiting.popleft()
            key = f"aqmlab-{uuid.uuid4().hex}"
            order = Order(self.name, _portable(task), own_engine())
            future = self.client.submit(make, order, key=key, pure=False)
            self.under_way[key] = _HandedIn(task, future, count)
            future.add_done_callback(lambda _, key=key: self.heard.put(("done", key)))

    def _again(self, handed_in: _HandedIn, count: int) -> None:
        if handed_in.run is not None:
            self.monitor.expect(1, handed_in.task.size)
        self.waiting.appendleft((handed_in.task, count))

    def _tell(self, what: dict[str, Any]) -> None:
        """A worker has begun a run, or says how far it is."""
        handed_in = self.under_way.get(what["key"]) if what["session"] == self.name else None
        if handed_in is None:
            return
        if handed_in.worker != what["worker"]:  # begun, or begun again after its worker was lost
            if handed_in.run is not None:
                self._stop_telling(handed_in)
                self.monitor.expect(1, handed_in.task.size)
            handed_in.run = self.monitor.begin(handed_in.task.label, handed_in.task.size)
            handed_in.worker = what["worker"]
        if what["tick"] is not None and handed_in.run is not None:
            self.monitor.tick(handed_in.run, what["tick"])

    def _stop_telling(self, handed_in: _HandedIn) -> None:
        if handed_in.run is not None:
            self.monitor.end(handed_in.run)

    def _finish(self, handed_in: _HandedIn) -> Condensed | None:
        task = handed_in.task
        self._stop_telling(handed_in)
        answer = self._answer(handed_in)
        if answer is None:
            return None
        address, kind, said = answer
        if kind == DONE:
            if handed_in.run is None:  # so short that nobody heard of it
                self.monitor.end(self.monitor.begin(task.label, task.size))
            found = Condensed.from_bytes(said[0])
            # Files have other names there, and nothing else differs.
            return replace(found, scenario_toml=task.toml) if task.files else found
        if kind == LACKS:
            self._send(address, task, said)
        if kind in (LACKS, LEFT):
            self._again(handed_in, handed_in.count)
            return None
        if kind == DIFFERS:
            raise CannotRun(f"worker {address}: has {_differs((said[0], said[1], said[2]))}")
        if kind == BROKEN:
            raise RuntimeError(f"worker {address}: {task.name}:\n{said[0]}")
        assert kind == REFUSED, kind
        error = KINDS[said[0]](f"worker {address}: {said[1]}")
        if self.spare is None or not isinstance(error, Misbehaved):
            raise error
        self.spare(task, error)
        return None

    def _answer(self, handed_in: _HandedIn) -> Answer | None:
        """What came of a run; None when it has to be made once more."""
        task, future = handed_in.task, handed_in.future
        if future.status == "cancelled":  # by nobody here: the client does it when it loses its scheduler
            raise self.cluster.gone()
        try:
            answer: Answer = future.result()
            return answer
        except (OSError, TimeoutError):
            raise self.cluster.gone() from None
        except AqmlabError:
            raise
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                self.cluster.check()  # names the worker, if it is one that came later and has no aqmlab
                raise CannotRun(_unfit(f"a worker of {self.cluster.address}", error)) from None
            if handed_in.count < HANDED_IN:
                self._again(handed_in, handed_in.count + 1)
                return None
            lost: Any = error
            raise CannotRun(
                f"{task.name}: {HANDED_IN * (lost.allowed_failures + 1)} workers that had it were "
                f"lost, the last {lost.last_worker.address}; expected workers that stay, with memory for their runs"
            ) from None

    def _send(self, address: str, task: Task, names: Sequence[str]) -> None:
        """Sends files to a worker that has not got them yet."""
        for kept in task.files:
            if (name := _sent_name(kept)) not in names:
                continue
            place = Path(task.origin).parent / kept.file
            try:
                content = place.read_bytes()
            except OSError as error:
                raise BadInput(f"{place}: cannot be read: {error.strerror}; {task.point} needs it") from None
            (answer,) = self.client.run(take_file, name, content, workers=[address], on_error="return").values() or (
                None,
            )
            if isinstance(answer, Exception) and address in self.cluster.workers():
                raise CannotRun(f"worker {address}: cannot keep {kept.file}: {answer}")


def _portable(task: Task) -> Task:
    """The task with its files beside it, each named by its content."""
    if not task.files:
        return task
    names = {(kept.file, kept.sha256): _sent_name(kept) for kept in task.files}
    tree = with_files_called(tomllib.loads(task.toml), names)
    files = tuple(KeptFile(_sent_name(kept), kept.sha256) for kept in task.files)
    return replace(task, toml=toml_text.dumps(tree), files=files)


def _sent_name(kept: KeptFile) -> str:
    return f"{kept.sha256}-{Path(kept.file).name}"
