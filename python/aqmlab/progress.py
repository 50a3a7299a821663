"""Who hears of the progress of runs: what is asked of them, and those that say nothing."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Monitor(Protocol):
    """Who wants to hear how runs get on. Called from several threads."""

    def expect(self, runs: int, simulated_s: float) -> None:
        """So many runs are coming, so much simulated time in all."""

    def begin(self, label: str, simulated_s: float) -> int:
        """A run begins; the answer identifies it."""

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """How far a run is: `time_s`, `duration_s`, `bottleneck_packets`, `wall_s`."""

    def end(self, run: int) -> None:
        """A run has ended, well or not."""


class Silent:
    """Hears everything and says nothing."""

    def expect(self, runs: int, simulated_s: float) -> None:
        """See `Monitor`."""

    def begin(self, label: str, simulated_s: float) -> int:
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


def clock_text(seconds: float | None) -> str:
    """A time as on a clock: minutes and seconds, hours where there are any."""
    if seconds is None:
        return "-:--"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
