"""What code prints while it is loaded is no answer of a command: it goes to standard error.

That holds for the thread that loads it. What other threads print meanwhile goes where it went.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.Lock()
_LOADING: list[int] = []
"""Threads that load code, each as often as one load stands within another."""


class _Output:
    """Standard error to threads that load code, and what was there before to all others."""

    def __init__(self, before: Any) -> None:
        self.before = before

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if threading.get_ident() in _LOADING else self.before, name)


@contextmanager
def printed() -> Iterator[None]:
    """What this thread prints within goes to standard error."""
    ours = threading.get_ident()
    with _LOCK:
        if not _LOADING:
            sys.stdout = _Output(sys.stdout)
        _LOADING.append(ours)
    try:
        yield
    finally:
        with _LOCK:
            _LOADING.remove(ours)
            # Somebody else may have put something in its place, and puts it back later: it then hands on what comes.
            if not _LOADING and isinstance(sys.stdout, _Output):
                sys.stdout = sys.stdout.before
