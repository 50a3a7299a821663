"""Which live runs there are, and what is left of those whose process is gone.

A live run notes down its process and folders in the user's runtime folder, leaves a token in each of the folders, and
all that it starts carries its process and folder in the environment (`AQMLAB_LIVE`). Processes of a run end with it,
whatever ends it (PR_SET_PDEATHSIG), and its namespaces with them; what can be left is a program of the user's own that
went into the background, and the folders of a run that was killed.

What is removed is what a dead run's note names and still holds that run's token: not a folder of the same name that
somebody has made since. Numbers of processes mean something only where they were given out, so runs of another start of
the machine, or of another process namespace (a container that shares /tmp), are neither dead nor alive from here.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqmlab.errors import CannotRun
from aqmlab.scratch import opened

MARK = "AQMLAB_LIVE"
"""In the environment of all processes of a run: the process that makes it, when that was started, the process namespace
it is of, the folder; as in `4711:123456:4026531836:FOLDER`."""

TOKEN = ".aqmlab-live"
"""The file in a folder that says whose it is."""

LARGEST_NOTE = 1 << 16
"""Bytes; a note has some hundred."""

HALF_WRITTEN_S = 60.0
"""A note that makes no sense and is older than this will never make any: a full disk, a writer that was killed."""


def folder() -> Path:
    """Where runs note themselves down, this user's own."""
    return _folders()[0]


def _folders() -> list[Path]:
    """That, and where they do in a session that has another runtime folder, or none."""
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}")
    shared = Path(tempfile.gettempdir()) / f"aqmlab-{os.geteuid()}"
    # Another user's, which sudo may leave in the environment, is no place for this one's notes.
    return [runtime / "aqmlab", shared] if _is_private(runtime) else [shared]


def _is_private(path: Path) -> bool:
    """Whether a folder is this user's, and nobody else may look into it or write."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _is_safe(path: Path) -> bool:
    """Whether a folder is private and nobody else can put another one in its place."""
    try:
        above = path.parent.stat()
    except OSError:
        return False
    is_ours = above.st_uid in (0, os.geteuid()) and (not above.st_mode & 0o022 or bool(above.st_mode & stat.S_ISVTX))
    return is_ours and _is_private(path)


@contextlib.contextmanager
def noted(directory: Path, *more: Path) -> Iterator[dict[str, str]]:
    """Around a run in `directory`: notes it down, with `more` folders that go with it should it be killed.

    Gives what belongs into the environment of what it starts. Raises CannotRun where notes would not be safe.
    """
    where = folder()
    with contextlib.suppress(FileExistsError):
        where.mkdir(mode=0o700)
    if not _is_safe(where):
        raise CannotRun(
            f"live: {where}: expected a folder of this user's own that nobody else may open (mode 0700); remove it, or "
            "set XDG_RUNTIME_DIR to one"
        )
    pid = os.getpid()
    paths = [str(path.absolute()) for path in (directory, *more)]
    token = secrets.token_hex(16)
    note = {"pid": pid, "started": started(pid), **_here(), "token": token, "folders": paths}
    _forget(paths)
    file = where / f"{pid}-{token[:8]}.json"
    try:
        _write_private(file, json.dumps(note))
        for name in paths:
            # One that is not there yet cannot be told from another of its name, and is left alone.
            with contextlib.suppress(FileNotFoundError):
                (Path(name) / TOKEN).unlink(missing_ok=True)
                _write_private(Path(name) / TOKEN, token)
        yield _marks(note)
    finally:
        file.unlink(missing_ok=True)
        for name in paths:
            with contextlib.suppress(OSError):
                (Path(name) / TOKEN).unlink()


def _marks(note: Mapping[str, Any]) -> dict[str, str]:
    return {MARK: f"{note['pid']}:{note['started']}:{note['processes']}:{note['folders'][0]}"}


def _write_private(path: Path, text: str) -> None:
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(made, "w", encoding="utf-8") as file:
        file.write(text)


def _forget(paths: Sequence[str]) -> None:
    """Notes of dead runs that had these folders: whoever has them now threw away what was there."""
    for file, facts in _notes():
        if _is_dead(facts) and set(facts["folders"]) <= set(paths):
            file.unlink(missing_ok=True)


def _here() -> dict[str, Any]:
    """What numbers of processes mean something in: this start of the machine, and the process namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    try:
        return {"boot": boot.read_text(encoding="ascii").strip(), "processes": Path("/proc/self/ns/pid").stat().st_ino}
    except OSError:
        return {"boot": "", "processes": 0}


def started(pid: int) -> int | None:
    """When a process was started, in clock ticks since the machine was; nothing where there is none.

    With the number it names a process for ever: numbers are given out again.
    """
    try:
        # proc(5): the name, in brackets, may hold anything; the 22nd field is the 20th behind it.
        behind = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if behind[0] in "ZX" else int(behind[19])


@dataclass
class Remains:
    """What is left of a run whose process is gone."""

    folders: list[str]
    processes: list[int] = field(default_factory=list)
    token: str = ""

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {"folders": self.folders, "processes": self.processes}


def living() -> list[str]:
    """Folders of the runs that are alive."""
    return [name for _, facts in _notes() if _is_alive(facts) for name in facts["folders"]]


def elsewhere() -> list[str]:
    """Folders of runs of which nothing can be said from here: of another container, or of an earlier start."""
    return [name for _, facts in _notes() if not _is_from_here(facts) for name in facts["folders"]]


def folder_of(number: int) -> Path | None:
    """The folder of the run that a process makes."""
    note = _made_by(number)
    return Path(note["folders"][0]) if note is not None else None


def marks_of(number: int) -> dict[str, str]:
    """What belongs into the environment of what joins the run that a process makes; nothing where it makes none."""
    note = _made_by(number)
    return _marks(note) if note is not None else {}


def _made_by(number: int) -> dict[str, Any] | None:
    alive = (facts for _, facts in _notes() if facts["pid"] == number and _is_alive(facts))
    return next(alive, None)


def remains() -> list[Remains]:
    """What dead runs of this user left."""
    found: dict[str, Remains] = {}
    for _, facts in _notes():
        if _is_dead(facts) and (left := [name for name in facts["folders"] if _holds(name, facts["token"])]):
            found[facts["folders"][0]] = Remains(left, token=facts["token"])
    for pid in _own_processes():
        marked = mark(pid)
        if marked is not None and _is_dead(marked) and pid != os.getpid():
            # Without a note the run has ended in order, and took its folders with it.
            found.setdefault(marked["folders"][0], Remains([])).processes.append(pid)
    return list(found.values())


def clean() -> list[Remains]:
    """Ends and removes what dead runs left; the answer is what there was."""
    found = remains()
    for one in found:
        for pid in one.processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 5.0
        while any(started(pid) is not None for pid in one.processes) and time.monotonic() < deadline:
            time.sleep(0.02)
        for name in one.folders:
            _remove(name, one.token)
    for file, facts in _notes():
        if _is_dead(facts) and not any(_holds(name, facts["token"]) for name in facts["folders"]):
            file.unlink(missing_ok=True)
    for file in _files():
        with contextlib.suppress(OSError):
            if _read(file) is None and time.time() - file.lstat().st_mtime > HALF_WRITTEN_S:
                file.unlink()
    return found


def _holds(name: str, token: str) -> bool:
    """Whether a folder is still that of the run with this token."""
    with contextlib.suppress(OSError), opened(name) as place:
        return _token_in(place) == token
    return False


def _remove(name: str, token: str) -> None:
    """Removes a folder if it is that of the run with this token, and nothing else whatever is put in its place."""
    with contextlib.suppress(OSError):
        with opened(name) as place:
            if _token_in(place) != token:
                return
            # The token last: what cannot be removed now is still known for what it is.
            with os.scandir(place) as entries:
                found = sorted(entries, key=lambda entry: entry.name == TOKEN)
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.name, dir_fd=place)
                else:
                    os.unlink(entry.name, dir_fd=place)
        Path(name).rmdir()


def _token_in(place: int) -> str | None:
    """What the token in an open folder says, if it is this user's own file."""
    try:
        file = os.open(TOKEN, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
    except OSError:
        return None
    with os.fdopen(file, "rb") as token:
        return token.read(64).decode("ascii", "replace") if _is_own_file(file) else None


def _is_own_file(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _files() -> list[Path]:
    return sorted(path for place in _folders() if _is_safe(place) for path in place.glob("*.json"))


def _notes() -> list[tuple[Path, dict[str, Any]]]:
    found = ((path, _read(path)) for path in _files())
    return [(path, facts) for path, facts in found if facts is not None]


def _read(path: Path) -> dict[str, Any] | None:
    """A note, if it is one, whole, and this user's."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(file, "rb") as note:
        text = note.read(LARGEST_NOTE) if _is_own_file(file) else b""
    try:
        facts = json.loads(text)
    except ValueError:
        return None
    kinds = {"pid": int, "started": int, "boot": str, "processes": int, "token": str, "folders": list}
    if not isinstance(facts, dict) or not all(isinstance(facts.get(key), kind) for key, kind in kinds.items()):
        return None
    names = facts["folders"]
    return facts if names and facts["token"] and all(isinstance(name, str) for name in names) else None


def _is_from_here(facts: dict[str, Any]) -> bool:
    return all(facts[key] == value for key, value in _here().items())


def _is_alive(facts: dict[str, Any]) -> bool:
    return _is_from_here(facts) and started(facts["pid"]) == facts["started"]


def _is_dead(facts: dict[str, Any]) -> bool:
    return _is_from_here(facts) and started(facts["pid"]) != facts["started"]


def _own_processes() -> Iterator[int]:
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if path.name.isdigit() and path.stat().st_uid == os.geteuid():
                yield int(path.name)


def mark(pid: int) -> dict[str, Any] | None:
    """The run that a process belongs to, as a note says it; nothing where it belongs to none."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    name = f"{MARK}=".encode()
    for item in environment:
        if not item.startswith(name):
            continue
        words = os.fsdecode(item[len(name) :]).split(":", 3)
        if len(words) == 4 and words[3] and all(word.isdigit() for word in words[:3]):
            number, began, processes = map(int, words[:3])
            # A process that is there is of this start of the machine.
            return {**_here(), "pid": number, "started": began, "processes": processes, "folders": [words[3]]}
    return None
