"""ARED: RED that adapts max_p and sets its other parameters from the link.

Source: Floyd, Gummadi and Shenker 2001. Every ``interval`` the average is compared with the target, the middle fifth of
the band: above it max_p grows by the smaller of ``alpha`` and a quarter of itself, below it it shrinks by the factor
``beta``, within ``bottom`` and ``top``. Both slopes of the curve follow max_p.

With C the packets of mean size that the link sends in a second: w_q = 1 - exp(-1/C), min the larger of 5 and
C target_delay / 2, max = 3 min.

Linux (sch_red, red_adaptative_timer) works as the paper says, by a clock that goes on while the link is idle, with the
average as decayed by then. ns-2.35 (red.cc, updateMaxP) looks at each arrival whether more than an interval has passed
since the last change, and takes the whole of a step that begins within bottom and top. Its bottom is 0.01, or 1/W if
that is less, W being the packets of 1000 bytes that the link sends in 100 ms. ALTQ has no adaptive RED: the dialect
altq adapts as the paper says.

Deviation from red.cc in the ns2 dialect: the gentle slope follows max_p, where red.cc computes it once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from oracle import red
from oracle.frame import Discipline, Uniform
from oracle.parameters import Length, Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    **red.DEFAULTS,
    "limit": "",
    "min": "",
    "max": "",
    "probability": 0.1,
    "wq": "",
    "gentle": True,
    "target_delay": "5ms",
    "interval": "500ms",
    "alpha": 0.01,
    "beta": 0.9,
    "bottom": "",
    "top": 0.5,
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """ARED before a link of ``rate_bps``."""
    defaults = {**DEFAULTS, **from_the_link(given, rate_bps)}
    defaults = {**defaults, **red.computed(defaults, given)}
    parameters = Parameters(defaults, given)
    if parameters.has("limit"):
        limit = parameters.length("limit")
    else:
        # Twice the end of gentle, and at least 1000 packets, so that the average decides before the buffer does.
        twice = parameters.length("gentle_end").times(2.0)
        least = 1000.0 * parameters.size("mean_packet") if twice.in_bytes else 1000.0
        limit = Length(max(twice.amount, least), twice.in_bytes)
    return Discipline(Ared(parameters, rate_bps, uniform), limit)


def from_the_link(given: Mapping[str, Written], rate_bps: int) -> dict[str, Written]:
    """The weight and the thresholds that are not given."""
    known = Parameters(DEFAULTS, given)
    packets_per_second = rate_bps / (8.0 * known.size("mean_packet"))
    if known.has("min"):
        least = known.length("min")
    elif known.has("max"):
        least = known.length("max").times(1.0 / 3.0)
    else:
        least = Length(max(5.0, packets_per_second * known.time_ns("target_delay") / 1e9 / 2.0), in_bytes=False)
    bottom = min(0.01, 80_000.0 / rate_bps) if known.word("dialect") == "ns2" else 0.01
    return {
        "gentle": known.word("dialect") != "linux",
        "wq": -math.expm1(-1.0 / packets_per_second),
        "min": least,
        "max": least.times(3.0),
        "bottom": max(bottom, 1e-6),
    }


class Ared(red.Red):
    """The law."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        super().__init__(parameters, rate_bps, uniform)
        self.alpha = parameters.number("alpha")
        self.beta = parameters.number("beta")
        self.bottom = parameters.number("bottom")
        self.top = parameters.number("top")
        self.target_low = self.min + 0.4 * (self.max - self.min)
        self.target_high = self.min + 0.6 * (self.max - self.min)
        self.interval_ns = parameters.time_ns("interval")
        self.last_change_ns = 0
        if self.dialect != "ns2":
            self.period_ns = Fraction(self.interval_ns)

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """One step of max_p, by the average as it is now."""
        idle_since = self.idle_since_ns
        self.adapt(self.avg if idle_since is None else self.decayed(idle_since, now_ns))

    def sample(self, waiting: Waiting, now_ns: int) -> None:
        """As RED; ns-2 takes its step here."""
        super().sample(waiting, now_ns)
        if self.dialect == "ns2" and now_ns > self.last_change_ns + self.interval_ns:
            before = self.max_p
            self.adapt(self.avg)
            if self.max_p != before:
                self.last_change_ns = now_ns

    def adapt(self, avg: float) -> None:
        """Moves max_p if the average is off target; not beyond bottom and top (ns-2: from within), nor back."""
        up, down = self.max_p + min(self.alpha, self.max_p / 4.0), self.max_p * self.beta
        if avg > self.target_high and self.max_p < self.top:
            self.max_p = min(1.0, up) if self.dialect == "ns2" else min(self.top, up)
        elif avg < self.target_low and self.max_p > self.bottom:
            self.max_p = down if self.dialect == "ns2" else max(self.bottom, down)
