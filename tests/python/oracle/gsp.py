"""GSP: one packet is signalled when the queue is above a threshold, and then none for an interval.

Source: Lautenschlaeger and Francini 2015; draft-lauten-aqm-gsp. A packet that meets a queue above ``threshold`` after
the interval has ended is signalled, and begins the next:

    interval = preset / (1 + cumulative / tau)
    cumulative := cumulative + alpha (time above the threshold) - (time below), within [0, max_time]

on each arrival, with the times since the one before. Time below counts in the state "clear" only: an overflow ends it,
and it comes back when the queue was empty and is then above the threshold again. In the form with a delay the queue is
above while the packet that left last had stayed longer than ``threshold``, and not when the link has asked in vain.

Neither the threshold nor the bound of the cumulative time has a published value.
"""

from __future__ import annotations

from collections.abc import Mapping

from oracle.frame import Discipline, Law, Packet, Signal, Uniform
from oracle.parameters import Length, Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "dialect": "paper",
    "limit": "1000p",
    "ecn": False,
    "threshold": "100p",
    "interval": "200ms",
    "adaptive": True,
    "alpha": 2.0,
    "tau": "",
    "max_time": "50s",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """GSP; neither rate nor chance matters."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Gsp(parameters), parameters.length("limit"))


class Gsp(Law):
    """The law."""

    def __init__(self, parameters: Parameters) -> None:
        is_time = parameters.is_time("threshold")
        self.threshold_ns: int | None = parameters.time_ns("threshold") if is_time else None
        self.threshold: Length | None = None if is_time else parameters.length("threshold")
        self.preset = parameters.time_ns("interval") / 1e9
        self.is_adaptive = parameters.flag("adaptive")
        self.alpha = parameters.number("alpha")
        self.tau = parameters.time_ns("tau") / 1e9 if parameters.has("tau") else 5.0 * self.preset
        self.max_time = parameters.time_ns("max_time") / 1e9
        self.marks = parameters.flag("ecn")

        self.quiet_until_ns: int | None = None
        """When the running interval ends."""
        self.cumulative = 0.0
        self.above_ns = 0
        self.below_ns = 0
        """Time above, and below where that counts, since the last arrival."""
        self.counted_until_ns = 0
        self.is_above = False
        self.state = "clear"  # or "overflown", or "drained"

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Signals the first packet above the threshold when no interval runs."""
        self.adapt(now_ns)
        signal: Signal | None = None
        if self.is_above and self.may_begin(now_ns):
            self.begin(now_ns)
            signal = Signal("mark" if self.marks and packet.has_ect else "drop", "early")
        if signal is None or signal.word == "mark":
            self.see(Waiting(waiting.packets + 1, waiting.bytes + packet.size))
        return signal

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """An overflow: the cycle starts anew, and if no interval runs one begins."""
        self.adapt(now_ns)
        if self.may_begin(now_ns):
            self.begin(now_ns)
        # A packet larger than the limit overflows an empty queue, which then has been empty.
        self.state = "overflown" if waiting.packets > 0 else "drained"

    def departure(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Looks at the queue."""
        self.count_until(now_ns)
        if self.threshold_ns is not None:
            self.set_above(now_ns - packet.arrived_ns > self.threshold_ns)
        self.see(waiting)
        return None

    def vain_request(self, now_ns: int) -> None:
        """Nothing waits."""
        self.count_until(now_ns)
        self.set_above(False)
        self.see(Waiting())

    def control(self) -> float:
        """The interval in seconds."""
        return self.preset / (1.0 + self.cumulative / self.tau) if self.is_adaptive else self.preset

    def may_begin(self, now_ns: int) -> bool:
        """Whether no interval runs; one that ends now does."""
        return self.quiet_until_ns is None or now_ns > self.quiet_until_ns

    def begin(self, now_ns: int) -> None:
        """Begins an interval as long as it is now."""
        self.quiet_until_ns = now_ns + round(self.control() * 1e9)

    def adapt(self, now_ns: int) -> None:
        """Takes the times since the last arrival into account."""
        self.count_until(now_ns)
        cumulative = self.cumulative + (self.alpha * self.above_ns - self.below_ns) / 1e9
        self.cumulative = min(self.max_time, max(0.0, cumulative))
        self.above_ns = self.below_ns = 0

    def count_until(self, now_ns: int) -> None:
        """Counts the time since the last event."""
        passed_ns = now_ns - self.counted_until_ns
        self.counted_until_ns = now_ns
        if self.is_above:
            self.above_ns += passed_ns
        elif self.state == "clear":
            self.below_ns += passed_ns

    def see(self, waiting: Waiting) -> None:
        """Takes note of a new length of the queue."""
        if self.threshold is not None:
            self.set_above(self.threshold.of(waiting) > self.threshold.amount)
        if waiting.packets == 0 and self.state == "overflown":
            self.state = "drained"

    def set_above(self, is_above: bool) -> None:
        """Whether the queue is above the threshold from now on."""
        self.is_above = is_above
        if is_above and self.state == "drained":
            self.state = "clear"
