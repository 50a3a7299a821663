"""Starts the process that is the test bed, follows its progress, stops it, and removes what it leaves.

It is one process, so that whatever ends it takes namespaces, devices and sockets with it; and it ends with this one.
Everything goes through files of one folder: `scenario.toml` and `live.json` in, `progress.jsonl`, tables and
`outcome.json` or `error.json` out.
"""

import codecs
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab.errors import CannotRun
from aqmlab.json_files import Json, read_json
from aqmlab.laws.brought import Brought
from aqmlab.live import at_fault, registry, virtual
from aqmlab.runs.runner import Cancelled

PROGRESS, OUTCOME, ERROR, PLAN, LOG = "progress.jsonl", "outcome.json", "error.json", "live.json", "child.log"
COMMAND_LOG = "command.log"
"""What was said where a program ran inside: part of the result."""
WORKING_FILES = (PROGRESS, OUTCOME, ERROR, PLAN, LOG, "bed.json")
"""What belongs to the making of a run and not to its result."""

PATIENCE_S = 5.0
"""Time that a process has to end by itself before it is killed."""

SILENCE_S = {"real": 60.0, "virtual": 600.0}
"""Time without a sign of life after which a process is given up. In real time it speaks five times a second, and every
other second while it checks the link; in virtual time once a virtual second, in which tens of thousands of packets may
pass at some hundred microseconds each."""

LOOK_S = 0.1

SIGNALLED = 128
"""Exit codes of a shell beyond this are signals."""


def arguments(directory: Path, is_virtual: bool, kernel: str | None = None) -> list[str]:
    """The command that runs the test bed over a folder."""
    if is_virtual:
        return virtual.command(directory, kernel)
    return [sys.executable, "-I", str(Path(__file__).with_name("child.py")), str(directory)]


def run(
    command: list[str],
    directory: Path,
    stop: threading.Event,
    heard: Callable[[Mapping[str, Any]], None],
    *,
    is_virtual: bool,
    said: Callable[[str], None] | None = None,
    laws: Sequence[Brought] = (),
) -> Json:
    """Runs the test bed to its end; the answer is its outcome.

    `heard` is called with each sign of progress. What comes on its standard output and error is kept; where a program
    runs inside it is part of the result, and `said` hears it as it comes. `laws` are those of one's own in the
    scenario. Raises `Misbehaved` where one of these is why there is no outcome.
    """
    log = directory / (LOG if said is None else COMMAND_LOG)
    tail = None if said is None else _Tail(log, said)
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(log.open("wb"))
        marks = stack.enter_context(registry.noted(directory))
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env={**os.environ, **marks},
                start_new_session=True,
            )
        except OSError as error:
            raise CannotRun(f"live: {command[0]} cannot be started: {error.strerror or error}") from None
        try:
            silence_s = SILENCE_S["virtual" if is_virtual else "real"]
            if not _follow(process, directory / PROGRESS, stop, heard, silence_s, tail):
                raise at_fault.ended(f"the test bed gave no sign of life for {silence_s:g} s and was ended", laws)
        finally:
            _end(process)
            if tail is not None:
                tail.look()
    return _outcome(directory, process.returncode, log, laws)


class _Tail:
    """A file that is read as it grows."""

    def __init__(self, path: Path, said: Callable[[str], None]) -> None:
        self._path = path
        self._said = said
        self._at = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def look(self) -> None:
        """Passes on what is new."""
        with self._path.open("rb") as file:
            file.seek(self._at)
            new = file.read()
        self._at += len(new)
        if text := self._decoder.decode(new):
            self._said(text)


def _follow(
    process: "subprocess.Popen[bytes]",
    path: Path,
    stop: threading.Event,
    heard: Callable[[Mapping[str, Any]], None],
    silence_s: float,
    tail: _Tail | None,
) -> bool:
    """Until the process has ended; the answer is whether it did, rather than fall silent."""
    position, last = 0, time.monotonic()
    while True:
        is_over = _has_ended(process)
        lines, position = _new_lines(path, position)
        for line in lines:
            # While the link is checked there is nothing to be seen yet.
            if not line.get("checks_link"):
                heard(line)
        if tail is not None:
            tail.look()
        if is_over:
            return True
        if lines:
            last = time.monotonic()
        elif time.monotonic() - last > silence_s:
            return False
        if stop.wait(LOOK_S):
            raise Cancelled


def _new_lines(path: Path, position: int) -> tuple[list[Json], int]:
    """The whole lines since a place in a file, and the place after them."""
    try:
        with path.open("rb") as file:
            file.seek(position)
            text = file.read()
    except FileNotFoundError:
        return [], position
    end = text.rfind(b"\n") + 1
    found = []
    for line in text[:end].splitlines():
        with contextlib.suppress(ValueError):  # a line cut short by a full disk
            value = json.loads(line)
            if isinstance(value, dict) and "time_s" in value and "duration_s" in value:
                found.append(value)
    return found, position + end


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Asks the process to end, and makes it; and whatever it started."""
    if not _has_ended(process):
        process.terminate()
        limit = time.monotonic() + PATIENCE_S
        while not _has_ended(process) and time.monotonic() < limit:
            time.sleep(0.02)
    # All of its session, and before it is waited for: until then nobody else can be given its number.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether it has, without burying it."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _outcome(directory: Path, code: int, log: Path, laws: Sequence[Brought]) -> Json:
    if (directory / ERROR).exists():
        raise at_fault.told(read_json(directory / ERROR), laws)
    if code == 0 and (directory / OUTCOME).exists():
        return read_json(directory / OUTCOME)
    raise at_fault.ended(f"the test bed {how(code)} before it had a result{_last_words(log)}", laws)


def how(code: int) -> str:
    """How a process has ended, by its exit code."""
    # As shells have it of what a signal ended within a kernel of virtual time.
    number = -code if code < 0 else code - SIGNALLED
    if number <= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(number).name}"
    return f"was ended by signal {number}"


def _last_words(log: Path) -> str:
    """The last line that it said, if any."""
    with contextlib.suppress(OSError):
        lines = log.read_bytes()[-2000:].decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        if said:
            return f": {said[-1][:300]}"
    return ""


def clean(directory: Path) -> None:
    """Takes away what belongs to the making of a run."""
    for name in WORKING_FILES:
        (directory / name).unlink(missing_ok=True)
    for path in directory.glob("machine.*"):
        path.unlink(missing_ok=True)
