"""Lines that say how far the runs of a study are, where there is no terminal for bars."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from aqmlab.progress import Silent, Size, clock_text

SAY_EVERY_S = 60.0
"""How often a line is said."""


class Lines(Silent):
    """Says in a line now and then how far the runs that are expected are.

    What is left is reckoned by what each run is expected to cost: a sweep's dearest runs may come first.
    """

    def __init__(self, say: Callable[[str], None], what: str) -> None:
        self._say, self._what = say, what
        self._runs, self._ended = 0, 0
        self._cost = 0.0
        self._sizes: dict[int, Size] = {}
        self._shares: dict[int, float] = {}
        self._lock = threading.Lock()
        self._started = self._said = time.monotonic()

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming."""
        with self._lock:
            self._runs += runs
            self._cost += size.cost

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        with self._lock:
            run = len(self._sizes)
            if run == 0:
                self._started = self._said = time.monotonic()
            self._sizes[run], self._shares[run] = size, 0.0
            return run

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        with self._lock:
            self._shares[run] = min(tick["time_s"] / max(self._sizes[run].simulated_s, 1e-9), 1.0)
            self._speak()

    def end(self, run: int) -> None:
        """Hears that a run has ended."""
        with self._lock:
            self._shares[run] = 1.0
            self._ended += 1
            self._speak()

    def _speak(self) -> None:
        now = time.monotonic()
        if now - self._said <= SAY_EVERY_S:
            return
        self._said = now
        done = sum(share * self._sizes[run].cost for run, share in self._shares.items())
        left = (self._cost - done) * (now - self._started) / done if done else None
        self._say(f"{self._ended} of {self._runs} {self._what}, {clock_text(left)} left")
