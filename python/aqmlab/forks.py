"""Forks of a process that has used polars: its threads are not in them, and whoever waits for them waits for ever.

That polars is loaded does no harm: it starts its threads when they are first needed.
"""

import os
import sys
from pathlib import Path

from aqmlab.errors import CannotRun

THREADS = "polars-"
"""What the names of polars' threads begin with; a number follows."""

_had_threads = False
_lost_threads = False


def check() -> None:
    """Raises `CannotRun` where tables can be neither written nor read."""
    if _lost_threads:
        raise CannotRun(
            "this process was forked from one that had used tables, whose threads are not here; "
            'expected one started anew, by multiprocessing.get_context("spawn")'
        )


def _has_threads() -> bool:
    """Whether polars has started its threads in this process; where names of threads cannot be seen, whether it may."""
    try:
        names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    except OSError:
        names = []
    if not names:
        return "polars" in sys.modules
    return any(name.startswith(THREADS) and name[len(THREADS) :].strip().isdigit() for name in names)


def _before() -> None:
    global _had_threads
    _had_threads = _has_threads()


def _in_child() -> None:
    global _lost_threads
    _lost_threads = _lost_threads or _had_threads


os.register_at_fork(before=_before, after_in_child=_in_child)
