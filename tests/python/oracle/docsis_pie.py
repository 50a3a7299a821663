"""DOCSIS-PIE: the PIE of cable modems.

Source: White and Pan 2017 (RFC 8034 appendix A). The link's rate stands for PEAK_RATE and MSR, so that the waiting time
is the queue over it. Every ``tupdate`` (INTERVAL)

    p := p + (alpha (wait - target) + beta (wait - wait before)) / divisor(p)

unless a burst is allowed: then p is 0. p is for a packet of ``mean_packet`` bytes, may exceed 1 (until one of
``min_packet`` is signalled with 0.85), and is scaled by size to 0.85 at most. Signals are spaced.

==========  ==========================================================================================================
inactive    nothing is signalled while less than a third of the limit waits
quiescent   signals; the first makes it active and allows a burst of ``max_burst``
active      signals; quiet makes it quiescent, and more than ``burst_reset`` of quiet then makes it inactive
==========  ==========================================================================================================

With ``ecn`` what may be marked is marked, which the RFC does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from oracle import pie
from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Length, Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "dialect": "rfc",
    "limit": "",
    "ecn": False,
    "target": "10ms",
    "tupdate": "16ms",
    "alpha": 0.25,
    "beta": 2.5,
    "max_burst": "142ms",
    "burst_reset": "1s",
    "mean_packet": "1024b",
    "min_packet": "64b",
    "latency_low": "5ms",
    "latency_high": "200ms",
}

LEAST_SUM = 0.85  # PROB_LOW
CERTAIN_SUM = 8.5  # PROB_HIGH


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """DOCSIS-PIE before a link of ``rate_bps``; the buffer is what it sends in 250 ms unless given."""
    parameters = Parameters({**DEFAULTS, "limit": Length(rate_bps // 32, True)}, given)
    limit = parameters.length("limit")
    return Discipline(DocsisPie(parameters, limit, rate_bps, uniform), limit)


class DocsisPie(Law):
    """The law."""

    def __init__(self, parameters: Parameters, limit: Length, rate_bps: int, uniform: Uniform) -> None:
        self.target_s = parameters.time_ns("target") / 1e9
        self.tupdate_ns = parameters.time_ns("tupdate")
        self.period_ns = Fraction(self.tupdate_ns)
        self.alpha = parameters.number("alpha")
        self.beta = parameters.number("beta")
        self.max_burst_ns = parameters.time_ns("max_burst")
        self.reset_ns = parameters.time_ns("burst_reset")
        self.mean_packet = parameters.size("mean_packet")
        self.largest_p = LEAST_SUM * self.mean_packet / parameters.size("min_packet")
        self.short_s = parameters.time_ns("latency_low") / 1e9
        self.long_s = parameters.time_ns("latency_high") / 1e9
        self.marks = parameters.flag("ecn")
        self.limit = limit
        self.rate_bps = rate_bps
        self.uniform = uniform

        self.state = "inactive"
        self.p = 0.0
        self.wait_s = 0.0
        self.burst_ns = 0
        self.quiet_ns = 0
        self.sum = 0.0

    # ---- the data path ----

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Signals by chance what is not spared."""
        if not self.is_chosen(packet, waiting):
            return None
        if self.state == "quiescent":
            self.state = "active"
            self.burst_ns = self.max_burst_ns
        self.sum = 0.0
        return Signal("mark" if self.marks and packet.has_ect else "drop", "early")

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """A loss at the limit restarts the spacing, as in the ns-2 program of the RFC's authors (pie.cc)."""
        self.sum = 0.0

    def is_chosen(self, packet: Packet, waiting: Waiting) -> bool:
        """The RFC's drop_early."""
        if self.burst_ns > 0:
            return False
        if self.p == 0.0:
            self.sum = 0.0
        if self.state == "inactive":
            if 3 * (waiting.bytes if self.limit.in_bytes else waiting.packets) < self.limit.amount:
                return False
            self.state = "quiescent"
        # What is spared for the short queue counts in the sum all the same (CableLabs' ns-3 model, DropEarly).
        p = min(self.p * packet.size / self.mean_packet, LEAST_SUM)
        self.sum += p
        if (self.wait_s < self.target_s / 2.0 and self.p < 0.2) or waiting.bytes <= 2 * self.mean_packet:
            return False
        if self.sum < LEAST_SUM:
            return False
        return self.sum >= CERTAIN_SUM or chance(p, self.uniform)

    # ---- the control path ----

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """The controller's step."""
        before_s = self.wait_s
        self.wait_s = waiting.bytes * 8.0 / self.rate_bps
        if self.burst_ns > 0:
            self.p = 0.0
            self.burst_ns = max(0, self.burst_ns - self.tupdate_ns)
        else:
            step = self.alpha * (self.wait_s - self.target_s) + self.beta * (self.wait_s - before_s)
            step /= divisor(self.p)
            if self.p >= 0.1 and step > 0.02:
                step = 0.02
            p = self.p + step
            if self.wait_s < self.short_s and before_s < self.short_s:
                p *= 0.98
            elif self.wait_s > self.long_s:
                p += 0.02
            self.p = min(self.largest_p, max(0.0, p))
        half_s = self.target_s / 2.0
        is_quiet = self.wait_s < half_s and before_s < half_s and self.p == 0.0 and self.burst_ns == 0
        if self.state == "active":
            if is_quiet:
                self.state = "quiescent"
                self.quiet_ns = 0
        elif self.state == "quiescent":
            if is_quiet:
                self.quiet_ns += self.tupdate_ns
                if self.quiet_ns > self.reset_ns:
                    self.quiet_ns = 0
                    self.state = "inactive"
            else:
                self.quiet_ns = 0

    def probability(self) -> float:
        """That of a packet of mean size."""
        return min(self.p, LEAST_SUM)

    def control(self) -> float:
        """p."""
        return self.p


def divisor(p: float) -> float:
    """What a step is divided by at the probability p."""
    if p < 0.1:
        return pie.divisor(p)
    if p < 1.0:
        return 0.5
    return 0.125 if p < 10.0 else 0.03125
