"""Who hears of the progress of runs: what is asked of them, and those that say nothing."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Size:
    """What is known of runs before they begin."""

    simulated_s: float
    cost: float
    """What they are expected to cost, in whatever unit: only ratios count."""

    def __add__(self, other: "Size") -> "Size":
        """Both together."""
        return Size(self.simulated_s + other.simulated_s, self.cost + other.cost)


NOTHING = Size(0.0, 0.0)
"""The size of no run."""


class Monitor(Protocol):
    """A listener that hears how runs get on. Called from several threads."""

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming: how many, and their size together."""

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins; returns a number that identifies it."""

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is: `time_s`, `duration_s`, `bottleneck_packets`, `wall_s`."""

    def end(self, run: int) -> None:
        """Hears that a run has ended, well or not."""


class Silent:
    """Hears everything and says nothing."""

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming."""

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        return 0

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""

    def end(self, run: int) -> None:
        """Hears that a run has ended."""


class View(Monitor, Protocol):
    """A listener that hears more of live runs than of simulated ones, and remarks before they begin."""

    def say(self, remarks: Sequence[str]) -> None:
        """Hears what will not be as the scenario says, before the first run."""

    def about(self, run: int, scenario: Mapping[str, Any], clock: str) -> None:
        """Hears what a run is that has begun: its resolved scenario, `real` or `virtual` time."""

    def hear(self, text: str) -> None:
        """Hears what a program inside says, while it says it."""


class Unseen(Silent):
    """Sees everything and shows nothing."""

    def say(self, remarks: Sequence[str]) -> None:
        """Hears remarks before the first run."""

    def about(self, run: int, scenario: Mapping[str, Any], clock: str) -> None:
        """Hears what a run is that has begun."""

    def hear(self, text: str) -> None:
        """Hears what a program inside says."""


class Both:
    """Two that hear the same."""

    def __init__(self, first: Monitor, second: Monitor) -> None:
        self._each = (first, second)
        self._numbers: dict[int, tuple[int, int]] = {}
        self._next = itertools.count()

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming."""
        for monitor in self._each:
            monitor.expect(runs, size)

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        first, second = self._each
        run = next(self._next)
        self._numbers[run] = (first.begin(label, size), second.begin(label, size))
        return run

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        for monitor, number in zip(self._each, self._numbers[run], strict=True):
            monitor.tick(number, tick)

    def end(self, run: int) -> None:
        """Hears that a run has ended."""
        for monitor, number in zip(self._each, self._numbers[run], strict=True):
            monitor.end(number)


def clock_text(seconds: float | None) -> str:
    """A time as on a clock: minutes and seconds, hours where there are any."""
    if seconds is None:
        return "-:--"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
