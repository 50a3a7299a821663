"""Ends a run that makes no progress, and says early how long a long one will take.

No rule here ends a run that is merely long. Simulated time that stands still while events go on will never move. And a
discipline whose clock is so fast that nearly all events are its ticks goes on at that pace, for its ticks do not depend
on the traffic: a day of them, some 10^12, tells nothing that a slower clock would not.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from aqmlab.errors import CannotRun
from aqmlab.progress import Silent, Size

MOST_AT_ONCE = 10**8
"""Events at one instant: more than ten for each of as many hosts as a run can have."""

LOOK_S = 60.0
"""Of wall time, over which the pace is looked at before a run is ended for it."""

TICKING = 0.99
"""Share of events that are ticks of a discipline, beyond which these set the pace."""

LONGEST_TICKING_S = 86_400.0
"""Wall time that a run may take whose pace ticks set."""

EARLY_S = 5.0
"""Of wall time, after which a run is known well enough to say how long it will take."""

LONG_S = 600.0
"""Wall time from which on that is worth a line."""


class Watchdog:
    """Looks at how one run gets on, each time that it tells."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._moved: tuple[float, int] = (-1.0, 0)
        self._looked: Mapping[str, Any] = {"time_s": 0.0, "wall_s": 0.0, "events": 0, "ticks": 0}

    def heard(self, tick: Mapping[str, Any]) -> None:
        """Raises CannotRun where the run makes no progress."""
        now_s, events = float(tick["time_s"]), int(tick.get("events", 0))
        if now_s != self._moved[0]:
            self._moved = (now_s, events)
        elif (stuck := events - self._moved[1]) > MOST_AT_ONCE:
            raise CannotRun(
                f"{self._name}: makes no progress: {stuck:,} events at {now_s:g} s, and simulated time stands still; "
                f"expected delays and rates that let time pass"
            )
        if tick["wall_s"] - self._looked["wall_s"] >= LOOK_S:
            self._look(tick, self._looked)
            self._looked = dict(tick)

    def _look(self, tick: Mapping[str, Any], before: Mapping[str, Any]) -> None:
        events, ticks = (tick.get(key, 0) - before.get(key, 0) for key in ("events", "ticks"))
        wall_s, simulated_s = tick["wall_s"] - before["wall_s"], tick["time_s"] - before["time_s"]
        if ticks < TICKING * max(events, 1):
            return
        left_s = (tick["duration_s"] - tick["time_s"]) * wall_s / max(simulated_s, 1e-9)
        if left_s > LONGEST_TICKING_S:
            raise CannotRun(
                f"{self._name}: makes no progress: {simulated_s:.3g} s simulated in {wall_s:.0f} s, the rest would "
                f"take {_said(left_s)}; {ticks:,} of {events:,} events were ticks of a discipline; expected one that "
                f"updates less often"
            )


class Forecast(Silent):
    """Says of the first run that takes long how long that will be."""

    def __init__(self, say: Callable[[str], Any]) -> None:
        self._say = say
        self._names: dict[int, str] = {}
        self._numbers = itertools.count()
        self._has_said = False

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        run = next(self._numbers)
        self._names[run] = label
        return run

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        if self._has_said or tick["wall_s"] < EARLY_S or tick["time_s"] <= 0:
            return
        whole_s = tick["duration_s"] * tick["wall_s"] / tick["time_s"]
        if whole_s > LONG_S:
            self._has_said = True
            self._say(
                f"{self._names.get(run, 'this run')}: will take about {_said(whole_s)} at this pace "
                f"({tick['time_s']:.3g} of {tick['duration_s']:g} s simulated so far)"
            )


def _said(seconds: float) -> str:
    """`20 minutes`, `3 hours`, `12 days`."""
    for unit, size in (("days", 86_400.0), ("hours", 3_600.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds / 60:.0f} minutes"
