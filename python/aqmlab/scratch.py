"""Makes temporary folders. A process that is killed leaves its folders, and the next process removes them.

Whoever makes one holds a lock on it (flock(2)), which the kernel lets go of whatever ends the process. A folder of this
user whose lock can be had is nobody's any more. Where a file system has no such locks, nothing is removed.
"""

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

NAME = re.compile(r"aqmlab-[a-z]+-[a-z0-9_]{8}\.scratch")
"""What these folders are called, and nothing else is."""

_TIDIED: set[Path] = set()
_LOCK = threading.Lock()


class Folder:
    """A temporary folder that goes away with this object, or with the process."""

    def __init__(self, what: str, parent: Path | None = None) -> None:
        above = Path(tempfile.gettempdir()) if parent is None else parent
        _tidy_once(above)
        self.path, lock = _made(what, above)
        self._end = weakref.finalize(self, _removed, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Removes it now."""
        self._end()


@contextlib.contextmanager
def folder(what: str, parent: Path | None = None) -> Iterator[Path]:
    """A temporary folder for `what` (a word), in `parent` or where temporary files lie."""
    own = Folder(what, parent)
    try:
        yield own.path
    finally:
        own.remove()


def tidy(above: Path) -> list[Path]:
    """Removes what processes that are gone have left in a folder; the answer is what that was."""
    removed = []
    with contextlib.suppress(OSError), os.scandir(above) as entries:
        for name in [entry.name for entry in entries if NAME.fullmatch(entry.name)]:
            with contextlib.suppress(OSError), opened(above / name) as place:
                if os.fstat(place).st_uid == os.geteuid():
                    fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it fails where somebody has it
                    shutil.rmtree(above / name)
                    removed.append(above / name)
    return removed


def _tidy_once(above: Path) -> None:
    """At the first folder of a process in each place."""
    with _LOCK:
        if above not in _TIDIED:
            _TIDIED.add(above)
            tidy(above)


def _made(what: str, above: Path) -> tuple[Path, int]:
    """A new folder and the descriptor that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"aqmlab-{what}-", suffix=".scratch", dir=above))
        # Somebody who tidies up may find it before it is locked, and remove it: then once more.
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if path.is_dir():
                return path, lock
            os.close(lock)


def _removed(path: Path, lock: int, maker: int) -> None:
    if os.getpid() == maker:  # a fork leaves it to the process that made it
        shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


@contextlib.contextmanager
def opened(path: Path | str) -> Iterator[int]:
    """A folder held open, and no link to one: what is done in it is done there."""
    place = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield place
    finally:
        os.close(place)
