"""Code of a law's file runs while it is loaded and may never end: it gets a time, and a library is tried apart."""

import ctypes
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from aqmlab import engine
from aqmlab.errors import BadInput

LOADING_S = 30.0
"""How long the file of a law may take to be imported or loaded."""

_LOADED = b"the library was loaded"
_TRIAL = f"""
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

loader = ExtensionFileLoader("_native", sys.argv[1])
native = module_from_spec(spec_from_loader("_native", loader))
loader.exec_module(native)
try:
    native.bring_library(sys.argv[2], sys.argv[2], "")
except native.ScenarioError:
    pass  # whoever brings it next says what is wrong with it
print({_LOADED.decode()!r})
"""
"""Has the engine bring a library: that runs its constructors and the function that answers its table, and reads all
that the table points at. The words say that none of these has ended the process. Of the package nothing is imported but
the engine, which is there sooner than `ctypes`."""


class _TookTooLongError(BaseException):
    """No `Exception`, so that a law's own handlers let it through."""


@contextmanager
def ends_in_time(path: Path) -> Iterator[None]:
    """Refuses the file whose code is run within, with a line, if it is not over after `LOADING_S`.

    In the main thread a signal ends the code wherever it waits. In another one it ends when it next runs Python.
    """
    try:
        with _by_signal() if threading.current_thread() is threading.main_thread() else _by_thread():
            yield
    except _TookTooLongError:
        raise BadInput(f"{path}: {_never_ended()}") from None


def _never_ended() -> str:
    return f"still runs {LOADING_S:g} s after it was loaded; expected a file whose own code ends"


@contextmanager
def _by_signal() -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise _TookTooLongError

    before = signal.signal(signal.SIGALRM, end)
    left, _ = signal.setitimer(signal.ITIMER_REAL, LOADING_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _by_thread() -> Iterator[None]:
    ours = ctypes.c_ulong(threading.get_ident())
    timer = threading.Timer(
        LOADING_S, lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(ours, ctypes.py_object(_TookTooLongError))
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def try_library(copy: str, path: Path) -> None:
    """Brings a library in a process of its own first: one that breaks or never ends there is refused with a line.

    `copy` is what is loaded, `path` what the line names.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _TRIAL, engine.file(), copy], capture_output=True, timeout=LOADING_S
        )
    except subprocess.TimeoutExpired:
        raise BadInput(f"{path}: {_never_ended()}") from None
    if done.returncode < 0:
        how = signal.Signals(-done.returncode).name
        raise BadInput(f"{path}: was ended by {how} while it was loaded; expected a library that can be loaded")
    if _LOADED not in done.stdout:
        raise BadInput(
            f"{path}: ended its process with exit code {done.returncode} while it was loaded; expected a library that "
            f"can be loaded"
        )
