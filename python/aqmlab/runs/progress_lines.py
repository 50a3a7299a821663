"""Lines that say how far runs are, where there is no terminal for bars."""

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from aqmlab.bars import Bars
from aqmlab.progress import Both, Monitor, Silent, Size, clock_text
from aqmlab.remaining import Remaining
from aqmlab.runs.noted import Noted

SAY_EVERY_S = 60.0
"""How often a line is said."""


class Lines(Silent):
    """Says in a line now and then how far the runs that are expected are, and how long they will still take."""

    def __init__(self, say: Callable[[str], None], what: str) -> None:
        self._say, self._what = say, what
        self._remaining = Remaining()
        self._next = itertools.count()
        self._lock = threading.Lock()
        self._said: float | None = None

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming."""
        with self._lock:
            self._remaining.expect(runs, size)

    def share(self, at_once: int) -> None:
        """Hears how many runs may be made at a time."""
        with self._lock:
            self._remaining.share(at_once)

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        with self._lock:
            run = next(self._next)
            self._remaining.begin(run, size)
            if self._said is None:
                self._said = time.monotonic()
            return run

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        with self._lock:
            self._remaining.tick(run, tick["time_s"])
            self._speak()

    def end(self, run: int) -> None:
        """Hears that a run has ended."""
        with self._lock:
            self._remaining.end(run)
            self._speak()

    def _speak(self) -> None:
        now = time.monotonic()
        if self._said is None or now - self._said <= SAY_EVERY_S:
            return
        self._said = now
        ended, runs = self._remaining.ended, self._remaining.runs
        self._say(f"{ended} of {runs} {self._what}, {clock_text(self._remaining.left_s)} left")


def with_lines(monitor: Monitor, say: Callable[[str], None]) -> Monitor:
    """The monitor, and a line each minute beside it if it draws no bars."""
    shown = monitor.heard if isinstance(monitor, Noted) else monitor
    return monitor if isinstance(shown, Bars) else Both(monitor, Lines(say, "runs"))
