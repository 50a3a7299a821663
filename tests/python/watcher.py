"""Hears of runs that are made elsewhere, and waits for what happens there."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from aqmlab.progress import Silent, Size


class Watcher(Silent):
    """Counts what it hears of runs."""

    def __init__(self) -> None:
        self.expected, self.begun, self.ended, self.ticks = 0, 0, 0, 0

    def expect(self, runs: int, size: Size) -> None:
        self.expected += runs

    def begin(self, label: str, size: Size) -> int:
        self.begun += 1
        return self.begun

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        self.ticks += 1

    def end(self, run: int) -> None:
        self.ended += 1


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Returns when something holds, and fails where it does not in this time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
