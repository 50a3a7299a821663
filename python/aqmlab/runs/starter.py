"""Starts processes that end with this one, whatever ends it.

Linux sends the signal of PR_SET_PDEATHSIG (prctl(2)) when the thread ends that started a process, and not when its
process does. So one thread starts them all, and lives as long as this process. Ctrl-C is blocked in it, and hence in
what it starts: it is for this process, which ends the others.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

BOUND = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() != {parent}:  # it was gone before this was said
    os._exit(1)
"""
"""What a process says first, before it imports anything that takes time."""


ONE_THREAD = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""Runs are parallel to each other; threads within one would only get in the others' way, and take memory."""


_ERROR = 2
"""The file descriptor of standard error."""


def environment() -> dict[str, str]:
    """What a process is started with that finds the same packages, and has one thread."""
    return {**ONE_THREAD, **os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}


def python(
    program: str, arguments: Sequence[str], keep: Sequence[int], env: Mapping[str, str], prints: bool = False
) -> "subprocess.Popen[bytes]":
    """A Python of its own that runs `program` with these arguments and open files, and nothing else of this one's.

    What it prints goes to standard error if it `prints`, and nowhere otherwise.
    """
    words = [sys.executable, "-P", "-c", BOUND.format(parent=os.getpid()) + program, *arguments]
    return _thread().submit(_start, words, keep, env, _ERROR if prints and _is_open(_ERROR) else None).result()


def _is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


def _start(
    words: Sequence[str], keep: Sequence[int], env: Mapping[str, str], output: int | None
) -> "subprocess.Popen[bytes]":
    to = subprocess.DEVNULL if output is None else output
    return subprocess.Popen(words, pass_fds=keep, stdin=subprocess.DEVNULL, stdout=to, env=env)


@lru_cache
def _thread() -> ThreadPoolExecutor:
    blocked = (signal.SIG_BLOCK, {signal.SIGINT})
    return ThreadPoolExecutor(1, "aqmlab-starter", initializer=signal.pthread_sigmask, initargs=blocked)


os.register_at_fork(after_in_child=_thread.cache_clear)  # a fork has no thread but its own
