"""Who hears of the progress of runs: what is asked of them, and those that say nothing."""

import contextlib
import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

from aqmlab.errors import Misbehaved


@dataclass(frozen=True)
class Size:
    """What is known of runs before they begin."""

    simulated_s: float
    cost: float
    """What they are expected to cost, in whatever unit: only ratios count."""

    def __add__(self, other: "Size") -> "Size":
        """Both together."""
        return Size(self.simulated_s + other.simulated_s, self.cost + other.cost)

    def __sub__(self, other: "Size") -> "Size":
        """What is left without the other."""
        return Size(self.simulated_s - other.simulated_s, self.cost - other.cost)

    def __mul__(self, count: float) -> "Size":
        """So many of it."""
        return Size(self.simulated_s * count, self.cost * count)

    def within(self, other: "Size") -> "Size":
        """As much of it as there is of the other."""
        return Size(min(self.simulated_s, other.simulated_s), min(self.cost, other.cost))


NOTHING = Size(0.0, 0.0)
"""The size of no run."""


@runtime_checkable
class Monitor(Protocol):
    """A listener that hears how runs get on. Called from several threads."""

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming: how many, and their size together. Less than none: so many will not come."""

    def share(self, at_once: int) -> None:
        """Hears how many runs may be made at a time from now on."""

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins; returns a number that identifies it."""

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is: `time_s`, `duration_s`, `bottleneck_packets`, `wall_s`."""

    def end(self, run: int) -> None:
        """Hears that a run has ended, well or not."""


def cut(monitor: Monitor, run: int) -> None:
    """Tells that a run was cut off and will not be done, who has a `cut` for it; to others it has ended."""
    getattr(monitor, "cut", monitor.end)(run)


@contextlib.contextmanager
def told_of_the_end(monitor: Monitor, run: int) -> Iterator[None]:
    """Tells how the run ends that is made meanwhile: by itself, or by a law's failure, or cut off by anything else."""
    try:
        yield
    except Misbehaved:
        monitor.end(run)
        raise
    except BaseException:
        cut(monitor, run)
        raise
    monitor.end(run)


class Silent:
    """Hears everything and says nothing."""

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming."""

    def share(self, at_once: int) -> None:
        """Hears how many runs may be made at a time."""

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

    def share(self, at_once: int) -> None:
        """Hears how many runs may be made at a time."""
        for monitor in self._each:
            monitor.share(at_once)

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

    def cut(self, run: int) -> None:
        """Hears that a run was cut off."""
        for monitor, number in zip(self._each, self._numbers[run], strict=True):
            cut(monitor, number)


class Foreseen:
    """A monitor who knows of runs before they are announced, as far as they were foreseen.

    So what comes later counts from the beginning: a time that is left does not jump when it is announced.
    """

    def __init__(self, monitor: Monitor) -> None:
        self.share, self.begin, self.tick, self.end = monitor.share, monitor.begin, monitor.tick, monitor.end
        self.cut = partial(cut, monitor)
        self.told = monitor
        self._runs, self._size = 0, NOTHING
        self._lock = threading.Lock()

    def foresee(self, runs: int, size: Size) -> None:
        """Tells that runs will be announced."""
        with self._lock:
            self._runs += runs
            self._size += size
        self.told.expect(runs, size)

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming; of those that were not foreseen the monitor hears too."""
        with self._lock:
            known, of_size = min(runs, self._runs), size.within(self._size)
            self._runs -= known
            self._size -= of_size
        self.told.expect(runs - known, size - of_size)

    def all_announced(self) -> None:
        """Tells that what is still foreseen will not come."""
        with self._lock:
            runs, size = self._runs, self._size
            self._runs, self._size = 0, NOTHING
        self.told.expect(-runs, NOTHING - size)


def announce(monitor: Monitor, runs: int, size: Size) -> None:
    """Announces all runs that are still to come; what else was foreseen will not."""
    monitor.expect(runs, size)
    if isinstance(monitor, Foreseen):
        monitor.all_announced()


def clock_text(seconds: float | None) -> str:
    """A time as on a clock: minutes and seconds, hours where there are any."""
    if seconds is None:
        return "-:--"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
