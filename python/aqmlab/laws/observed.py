"""What an agent sees of a queue and what it says: numbers from 0 to 1 of what happened in each step, and a number from
-1 to 1 that stands for a value.

Environments that agents learn in and laws that policies steer have both from here, so that a policy is told of a queue
what it has learnt with.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from aqmlab.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]

HALF_S = 0.02
"""The wait that is seen as one half, seconds: waits from none to a second are told apart."""
PACKET_BITS = 12_000
"""A packet of 1500 bytes: how many of these a link can send in a step is seen as one half of what arrives."""


class Seen(NamedTuple):
    """What happened at a queue within a step, as the engine counts it."""

    offered_packets: int
    delivered_packets: int
    delivered_bytes: int
    dropped_packets: int
    marked_packets: int
    queue_packets: int
    queue_bytes: int
    wait_sum_ns: int
    wait_max_ns: int
    rate_bps: int
    probability: float


def _wait_s(seen: Seen) -> float:
    return seen.wait_sum_ns * 1e-9 / seen.delivered_packets if seen.delivered_packets else 0.0


def _share(part: float, whole: float) -> float:
    return min(1.0, part / whole) if whole > 0 else 0.0


def _half(value: float, half: float) -> float:
    return value / (value + half)


Quantity = Callable[[Seen, float], float]
"""What is seen of a step, of so many seconds, as a number from 0 to 1."""

QUANTITIES: Mapping[str, tuple[str, Quantity]] = {
    "wait": (
        "mean wait w of the packets that left, as w / (w + 20 ms); 0 if none left",
        lambda seen, step_s: _half(_wait_s(seen), HALF_S),
    ),
    "wait_max": (
        "longest of these waits w, as w / (w + 20 ms)",
        lambda seen, step_s: _half(seen.wait_max_ns * 1e-9, HALF_S),
    ),
    "rate": (
        "bits that left, of those that the link can send in the step",
        lambda seen, step_s: _share(8.0 * seen.delivered_bytes, seen.rate_bps * step_s),
    ),
    "arrivals": (
        "n / (n + c) of n packets that arrived, where the link can send c packets of 1500 bytes in the step",
        lambda seen, step_s: _half(seen.offered_packets, max(seen.rate_bps * step_s / PACKET_BITS, 1e-9)),
    ),
    "backlog": (
        "time t that the link needs for what waits at the end, as t / (t + 20 ms)",
        lambda seen, step_s: _half(8.0 * seen.queue_bytes / max(seen.rate_bps, 1), HALF_S),
    ),
    "losses": (
        "packets that were lost, of those that arrived",
        lambda seen, step_s: _share(seen.dropped_packets, seen.offered_packets),
    ),
    "marks": (
        "packets that were marked, of those that arrived",
        lambda seen, step_s: _share(seen.marked_packets, seen.offered_packets),
    ),
    "probability": (
        "square root of the probability of a signal",
        lambda seen, step_s: math.sqrt(min(max(seen.probability, 0.0), 1.0)),
    ),
}
"""What a law sees of its queue, by name."""

DEFAULT = ("wait", "rate", "backlog", "losses", "marks", "probability")
WINDOWS = 4
"""Steps back that are seen by default."""
MOST_WINDOWS = 1000


class Eyes:
    """Sees steps, one after the other: the last `windows` of them, the newest first."""

    def __init__(self, step_s: float, names: Sequence[str], windows: int) -> None:
        import numpy as np  # commands begin without it

        self.step_s = step_s
        self._quantities = [QUANTITIES[name][1] for name in names]
        self._steps = np.zeros(len(names) * windows, np.float32)
        self._joined = partial(np.concatenate, dtype=np.float32)

    def begin(self) -> None:
        """Forgets what was seen: steps before the first are all zero."""
        self._steps[:] = 0.0

    def look(self, seen: Seen) -> "Vector":
        """Sees a step: a vector of `windows` times the quantities, in their order. It changes with the next step."""
        steps, count = self._steps, len(self._quantities)
        if count < len(steps):
            steps[count:] = steps[:-count]
        steps[:count] = [quantity(seen, self.step_s) for quantity in self._quantities]
        return steps

    def seen(self, more: Sequence[float] = ()) -> "Vector":
        """What was seen, and `more` behind it; a vector of its own."""
        if not more:
            return self._steps.copy()
        found: Vector = self._joined((self._steps, more))
        return found

    @property
    def row(self) -> "Vector":
        """What is seen, at any time, as the one row of a matrix."""
        return self._steps.reshape(1, -1)


SCALES = ("linear", "log", "square")


@dataclass(frozen=True)
class Range:
    """The values that an action from -1 to 1 stands for."""

    low: float
    high: float
    scale: str = "linear"
    """How values lie between: `linear`; `log`, by equal ratios; `square`, as the square of a linear one."""

    def check(self, where: str) -> None:
        """Raises `BadInput` if it is none."""
        if self.scale not in SCALES:
            raise BadInput(f"{where}: {self.scale!r}: expected a scale of {', '.join(SCALES)}")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise BadInput(f"{where}: from {self.low:g} to {self.high:g}: expected a lower value before a higher one")
        if self.scale == "log" and self.low <= 0:
            raise BadInput(f"{where}: from {self.low:g} by log: expected a lowest value above 0, or another scale")

    def value(self, action: float) -> float:
        """What an action stands for; what lies beyond -1 and 1 is taken for these, no number for -1."""
        share = (min(max(action, -1.0), 1.0) + 1.0) / 2 if action == action else 0.0
        if self.scale == "log":
            return float(min(max(self.low * (self.high / self.low) ** share, self.low), self.high))
        return self.low + (self.high - self.low) * (share * share if self.scale == "square" else share)

    def as_dict(self) -> dict[str, Any]:
        """For the file of a policy."""
        return {"low": self.low, "high": self.high, "scale": self.scale}


PROBABILITY = Range(0.0, 1.0, "square")
"""The range of a probability where none is given."""


def check_names(names: Sequence[str], known: Sequence[str], where: str) -> None:
    """Raises `BadInput` unless all that is to be seen is known, and there is something."""
    if not names:
        raise BadInput(f"{where}: nothing; expected one or more of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise BadInput(f"{where}: {name!r}: expected of {', '.join(known)}")


def check_windows(windows: int, where: str) -> None:
    """Raises `BadInput` unless so many steps back can be seen."""
    if isinstance(windows, bool) or not isinstance(windows, int) or not 1 <= windows <= MOST_WINDOWS:
        raise BadInput(f"{where}: {windows!r}: expected how many steps back are seen, from 1 to {MOST_WINDOWS}")
