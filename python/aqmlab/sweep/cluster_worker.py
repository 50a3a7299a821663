"""What a worker of a Dask cluster does: makes one run in a process of its own, and tells how far it is.

The process keeps the worker answering its scheduler whatever the run does, and bounds the run's memory to the worker's
share. Files lie in the worker's own folder, by what is in them, and go away with it.
"""

import importlib
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError, CannotRun
from aqmlab.progress import Silent, Size
from aqmlab.sweep.local import SHARE, Processes, memory_bytes
from aqmlab.sweep.maker import Maker, maker
from aqmlab.sweep.plan import Task
from aqmlab.sweep.worker import BROKEN, DONE, KINDS, REFUSED

LACKS, DIFFERS, LEFT = "lacks", "differs", "left"
"""What else a worker answers: files that it needs first; that its engine is another; that it ended the run, because
nobody wants it any more or because the worker itself is going."""

TOPIC = "aqmlab"
"""Under which a worker tells how runs get on."""

TELL_EVERY_S = 1.0

Answer = tuple[str, str, tuple[Any, ...]]
"""Address of the worker, what kind of answer, and the answer."""


@dataclass(frozen=True)
class Order:
    """A run to be made."""

    session: str
    """Who asked."""
    task: Task
    """The files that its scenario names lie beside it, whatever its origin says."""
    engine: Maker
    """What is to make it."""


def own_engine() -> Maker:
    """The engine that this process has loaded, and the sources beside it."""
    return maker()


def make(order: Order) -> Answer:
    """Makes a run, as a task at a Dask worker."""
    worker = importlib.import_module("distributed").get_worker()
    if own_engine() != order.engine:
        return worker.address, DIFFERS, own_engine()
    folder = files_of(worker)
    if lacking := tuple(kept.file for kept in order.task.files if not (folder / kept.file).exists()):
        return worker.address, LACKS, lacking
    task = replace(order.task, origin=str(folder / "scenario.toml"))
    try:
        with closing(_process(worker).each([task], _Teller(worker, order))) as made:
            ((_, found),) = made
        return worker.address, DONE, (found.to_bytes(),)
    except _Left:
        return worker.address, LEFT, ()
    except AqmlabError as error:
        kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in KINDS)
        # How many runs this machine makes at a time was said to its worker, and not to the command.
        said = str(error).replace("fewer --jobs", "fewer --nthreads for its dask worker")
        return worker.address, REFUSED, (kind, said)
    except OSError as error:
        return worker.address, REFUSED, (CannotRun.__name__, f"{task.name}: {error}")
    except Exception:
        return worker.address, BROKEN, (traceback.format_exc(),)


def take_file(name: str, content: bytes, dask_worker: Any = None) -> None:
    """Puts a file where runs of this worker find it. Dask fills in the worker."""
    folder = files_of(dask_worker)
    partial = folder / f".{name}.partial"
    partial.write_bytes(content)
    partial.replace(folder / name)


def files_of(worker: Any) -> Path:
    """The folder of the files that scenarios name."""
    folder = Path(worker.local_directory) / "aqmlab-files"
    folder.mkdir(exist_ok=True)
    return folder


def share_of(worker: Any) -> int | None:
    """Memory that one of the runs at a worker may have: as many are made at a time as it has threads."""
    whole = worker.memory_manager.memory_limit or int(SHARE * memory_bytes())
    return whole // worker.state.nthreads or None


_OWN = threading.local()


def _process(worker: Any) -> Processes:
    """The process of this thread of the worker: it stays for the next run, and ends when the worker does."""
    if not hasattr(_OWN, "processes"):
        _OWN.processes = Processes(1, share_of(worker), Path(worker.local_directory), stay=True)
    processes: Processes = _OWN.processes
    return processes


class _Left(Exception):  # noqa: N818 - not an error: nobody waits for the run any more
    """Raised inside a run that is to end."""


class _Teller(Silent):
    """Tells the scheduler now and then how far a run is, and ends one that is not wanted any more."""

    def __init__(self, worker: Any, order: Order) -> None:
        self._worker, self._key, self._session = worker, worker.get_current_task(), order.session
        self._next = 0.0

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        self._tell(None)
        return 0

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        state = self._worker.state.tasks.get(self._key)
        if state is None or state.state == "cancelled" or self._worker.status.name not in ("running", "paused"):
            raise _Left
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + TELL_EVERY_S
            self._tell(dict(tick))

    def _tell(self, tick: Mapping[str, Any] | None) -> None:
        about = {"session": self._session, "key": self._key, "worker": self._worker.address, "tick": tick}
        self._worker.log_event(TOPIC, about)
