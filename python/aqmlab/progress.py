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
    """Who wants to hear how runs get on. Called from several threads."""

    def expect(self, runs: int, size: Size) -> None:
        """So many runs are coming, of this size in all."""

    def begin(self, label: str, size: Size) -> int:
        """A run begins; the answer identifies it."""

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """How far a run is: `time_s`, `duration_s`, `bottleneck_packets`, `wall_s`."""

    def end(self, run: int) -> None:
        """A run has ended, well or not."""


class Silent:
    """Hears everything and says nothing."""

    def expect(self, runs: int, size: Size) -> None:
        """See `Monitor`."""

    def begin(self, label: str, size: Size) -> int:
        """See `Monitor`."""
        return 0

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """See `Monitor`."""

    def end(self, run: int) -> None:
        """See `Monitor`."""


class View(Monitor, Protocol):
    """Who wants to see live runs: hears more of each than of a simulated one, and what is to be known before."""

    def say(self, remarks: Sequence[str]) -> None:
        """What is not as the scenario says, before the first run."""

    def about(self, run: int, scenario: Mapping[str, Any], clock: str) -> None:
        """What a run that has begun is: its resolved scenario, `real` or `virtual` time."""

    def hear(self, text: str) -> None:
        """What a program inside says, as it says it."""


class Unseen(Silent):
    """Sees everything and shows nothing."""

    def say(self, remarks: Sequence[str]) -> None:
        """See `View`."""

    def about(self, run: int, scenario: Mapping[str, Any], clock: str) -> None:
        """See `View`."""

    def hear(self, text: str) -> None:
        """See `View`."""


class Both:
    """Two that hear the same."""

    def __init__(self, first: Monitor, second: Monitor) -> None:
        self._each = (first, second)
        self._numbers: dict[int, tuple[int, int]] = {}
        self._next = itertools.count()

    def expect(self, runs: int, size: Size) -> None:
        """See `Monitor`."""
        for monitor in self._each:
            monitor.expect(runs, size)

    def begin(self, label: str, size: Size) -> int:
        """See `Monitor`."""
        first, second = self._each
        run = next(self._next)
        self._numbers[run] = (first.begin(label, size), second.begin(label, size))
        return run

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """See `Monitor`."""
        for monitor, number in zip(self._each, self._numbers[run], strict=True):
            monitor.tick(number, tick)

    def end(self, run: int) -> None:
        """See `Monitor`."""
        for monitor, number in zip(self._each, self._numbers[run], strict=True):
            monitor.end(number)


def clock_text(seconds: float | None) -> str:
    """A time as on a clock: minutes and seconds, hours where there are any."""
    if seconds is None:
        return "-:--"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
