"""Says what the command does when it is told to end, from its first instant on. Nothing here is slow to import.

Being told to end by a batch system or by a terminal that is closed (SIGTERM, SIGHUP) is Ctrl-C too: what is under way
is tidied away, and a line says what is kept. What is ignored (nohup) stays so.

Whoever reads what is printed may go away too, as `head` does. Python then has BrokenPipeError where others are ended by
SIGPIPE; the exit code is the same.
"""

import contextlib
import io
import os
import re
import select
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

EXIT_CODE = 130
UNREAD = 128 + signal.SIGPIPE
"""What a shell says of a program that SIGPIPE ended."""
UNPRINTED = 3
"""As of whatever else this machine cannot do."""
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
USUAL = (signal.SIG_DFL, signal.default_int_handler)


def before_anything_runs() -> None:
    """From now on, until `like_ctrl_c`: there is nothing to tidy away yet."""
    for number in NUMBERS:
        if signal.getsignal(number) in USUAL:
            signal.signal(number, _at_once)


def _at_once(number: int, frame: Any) -> None:
    os.write(2, b"aqmlab: stopped before anything was run; nothing was written\n")
    os._exit(EXIT_CODE)


@contextlib.contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Meanwhile whoever tells this process to end raises KeyboardInterrupt; who asks again does not disturb that."""
    before = {}
    if threading.current_thread() is threading.main_thread():  # no other may say what signals do
        before = {number: signal.getsignal(number) for number in NUMBERS}
    try:
        for number, handler in before.items():
            if handler in (*USUAL, _at_once):
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _interrupt)
        yield
    finally:
        for number, handler in before.items():
            # Of the whole command: what is left to do is to end.
            signal.signal(number, signal.SIG_IGN if handler is _at_once else handler)


def _interrupt(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


OUTPUT = "standard output"
"""The name of what errors of writing to it say."""


class _Output(io.FileIO):
    """Standard output, whose errors say that they are its: those of a file that is open have no name."""

    def write(self, some: Any) -> int | None:  # type: ignore[override]
        try:
            return super().write(some)
        except OSError as error:
            error.filename = OUTPUT
            raise


def named_output() -> None:
    """From now on what goes wrong with standard output names it, and what its encoding has not is a question mark."""
    out = sys.stdout
    if out is not sys.__stdout__ or not isinstance(out, io.TextIOWrapper):  # none, or what somebody has made of it
        return
    raw = _Output(out.fileno(), "w", closefd=False)
    is_buffered = isinstance(out.buffer, io.BufferedWriter)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw) if is_buffered else raw,
        encoding=out.encoding,
        errors="replace" if out.errors == "strict" else out.errors,
        line_buffering=out.line_buffering,
        write_through=out.write_through,
    )


UNFINISHED = re.compile(r"(^|/)\.([^/]+?)(?:\.[0-9a-f]{32})?\.partial(?=/|$)")
"""In a path what files and folders are called while they are written, with their names to be."""


def cause(error: OSError) -> str:
    """What an error says, with what it is about: files that are under way by the names they are to have."""
    if error.strerror is None:
        return str(error)
    places = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    named = " -> ".join(dict.fromkeys(UNFINISHED.sub(r"\1\2", place) for place in places))
    return f"{named}: {error.strerror}" if named else error.strerror


def nobody_reads() -> bool:
    """Whether nobody reads standard output or standard error any more."""
    asked = select.poll()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # none, closed, or no file
            asked.register(stream.fileno(), 0)
    return any(event & select.POLLERR for _, event in asked.poll(0))


def printed(code: int) -> int:
    """Prints what is left to print; the answer is the exit code, another one than 0 where that fails."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            is_unread = isinstance(error, BrokenPipeError)
            if not is_unread and stream is sys.stdout and code != UNPRINTED:  # of which a line was said already
                os.write(2, f"aqmlab: {cause(error)}\n".encode())
            code = code or (UNREAD if is_unread else UNPRINTED)
            # Python tries once more when it ends.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    return code


def ended() -> None:
    """Has Python end with the exit code that it is given, although it was told to end.

    CPython ends by SIGINT where KeyboardInterrupt has passed through code that is made of text, a dataclass in the
    making for one, caught or not; it forgets that with the next such code.
    """
    exec("")
