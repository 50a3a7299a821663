"""PIE: controls the waiting time to a target by an integrating controller whose steps are smaller at low probabilities.

Source: Pan, Natarajan, Baker and White 2017 (RFC 8033); in the dialect ``linux`` net/sched/sch_pie.c. Every ``tupdate``

    p := p + (alpha (wait - target) + beta (wait - wait before)) / divisor(p)

with alpha and beta in Hz, times in seconds, at most 0.02 up once p is 0.1. Two waits of 0 let p decay. The wait is that
of the last packet to leave, 0 if it left nothing behind; or with ``dq_rate_estimator`` the queue over its drain rate.

=================  ==========================================================================================
p                  drop_prob, the probability of a signal
wait               current_qdelay: the waiting time that the next step will see (of the estimator: saw)
wait_at_step       qdelay_old: the waiting time that the last step saw
burst_s            burst_allowance: how long nothing is signalled
sum                accu_prob: the probabilities since the last signal, where signals are spaced
=================  ==========================================================================================

An estimate of the drain rate: while ``THRESHOLD`` bytes wait a measurement begins when a packet has left; when that
many bytes more have left, the time they took enters an average by 1/4, and the wait is the queue times that average
over ``THRESHOLD`` (RFC 8033 §5.3, appendix A). In Linux the first packet counts as well, and the rate of what was
counted enters an average by 1/8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "dialect": "rfc",
    "target": "15ms",
    "tupdate": "15ms",
    "alpha": 0.125,
    "beta": 1.25,
    "max_burst": "150ms",
    "ecn_prob": 0.1,
    "bytemode": False,
    "mean_packet": "1500b",
    "derandomize": "",
    "dq_rate_estimator": False,
}

TICK_NS = 64
THRESHOLD = 16384
"""Bytes that must wait for a measurement of the drain rate to begin, and leave for it to end."""


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """PIE over one queue."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Pie(parameters, uniform), parameters.length("limit"))


def divisor(p: float) -> float:
    """What a step is divided by at the probability p, below 1 (RFC 8033 §4.2)."""
    for bound, value in ((1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)):
        if p < bound:
            return value
    return 1.0


class Pie(Law):
    """The law."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        self.is_linux = parameters.word("dialect") == "linux"
        self.target_s = parameters.time_ns("target") / 1e9
        self.tupdate_s = parameters.time_ns("tupdate") / 1e9
        self.period_ns = Fraction(parameters.time_ns("tupdate"))
        self.alpha = parameters.number("alpha")
        self.beta = parameters.number("beta")
        self.max_burst_s = parameters.time_ns("max_burst") / 1e9
        self.ecn_prob = parameters.number("ecn_prob")
        self.in_byte_mode = parameters.flag("bytemode")
        self.mean_packet = parameters.size("mean_packet")
        self.spaces = parameters.flag("derandomize") if parameters.has("derandomize") else self.is_linux
        self.estimates = parameters.flag("dq_rate_estimator")
        self.marks = parameters.flag("ecn")
        self.uniform = uniform

        self.p = 0.0
        self.wait_s = 0.0
        self.wait_at_step_s = 0.0
        self.burst_s = self.max_burst_s
        self.sum = 0.0
        self.left_at_ns: int | None = None
        self.measured_from_ns: int | None = None
        self.measured_bytes = 0
        self.drain = 0.0  # avg_dq_time, seconds for THRESHOLD bytes; Linux: 256ths of a byte a tick; 0 if unknown

    # ---- arrivals ----

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Signals by chance what is not spared."""
        if not self.is_chosen(packet, waiting):
            return None
        may_mark = self.marks and packet.has_ect
        if may_mark and (self.p <= self.ecn_prob if self.is_linux else self.p < self.ecn_prob):
            if not self.is_linux or self.sum < 8.5:
                self.sum = 0.0
            return Signal("mark", "early")
        self.sum = 0.0
        return Signal("drop", "overload" if may_mark else "early")

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """A loss at the limit restarts the spacing."""
        self.sum = 0.0

    def is_chosen(self, packet: Packet, waiting: Waiting) -> bool:
        """drop_early of the RFC, pie_drop_early of Linux."""
        if self.burst_s > 0.0:
            return False
        wait_s = self.wait_s if self.is_linux else self.wait_at_step_s
        if wait_s < self.target_s / 2.0 and self.p < 0.2:
            return False
        if waiting.bytes < 2 * self.mean_packet or (not self.is_linux and waiting.bytes == 2 * self.mean_packet):
            return False
        p = self.p * min(1.0, packet.size / self.mean_packet) if self.in_byte_mode else self.p
        if self.spaces:
            self.sum = self.sum + p if p > 0.0 else 0.0
            if self.is_linux:
                self.sum = math.fmod(self.sum, 256.0)  # accu_prob has 64 bits, MAX_PROB is 56 of them
            if self.sum < 0.85:
                return False
            if self.sum >= 8.5:
                return True
        return chance(p, self.uniform)

    # ---- departures ----

    def departure(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Measures the waiting time or the drain rate; signals nothing."""
        if self.estimates:
            self.measure_drain(packet, waiting, now_ns)
            return None
        self.wait_s = (now_ns - packet.arrived_ns) / 1e9 if waiting.bytes > 0 else 0.0
        if self.is_linux and self.left_at_ns is not None:
            self.burst_s = max(0.0, (round(self.burst_s * 1e9) - (now_ns - self.left_at_ns)) / 1e9)
        self.left_at_ns = now_ns
        return None

    def measure_drain(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """A packet leaves, and what is left waits: by the RFC a packet that begins a measurement is not part of it."""
        if self.is_linux and self.measured_from_ns is None and waiting.bytes >= THRESHOLD:
            self.measured_from_ns = now_ns
            self.measured_bytes = 0
        if self.measured_from_ns is not None:
            self.measured_bytes += packet.size
            took_ns = now_ns - self.measured_from_ns
            ticks = now_ns // TICK_NS - self.measured_from_ns // TICK_NS
            if self.measured_bytes >= THRESHOLD and not (self.is_linux and ticks == 0):
                self.average_drain(took_ns, ticks)
                self.measured_from_ns = None
                if self.is_linux:
                    self.burst_s = max(0.0, (round(self.burst_s * 1e9) - took_ns) / 1e9)
        if self.measured_from_ns is None and waiting.bytes >= THRESHOLD:
            self.measured_from_ns = now_ns
            self.measured_bytes = 0

    def average_drain(self, took_ns: int, ticks: int) -> None:
        """A measurement enters the average, the first one as it is; Linux's is a whole number of 256ths of a byte a
        tick of 64 ns (PIE_SCALE, PSCHED_SHIFT)."""
        if self.is_linux:
            rate = self.measured_bytes * 256 // ticks
            average = int(self.drain)
            self.drain = float(rate if average == 0 else average - average // 8 + rate // 8)
        else:
            time_s = took_ns / 1e9
            self.drain = time_s if self.drain == 0.0 else self.drain + (time_s - self.drain) / 4.0

    # ---- steps ----

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """The controller's step."""
        before_s = self.wait_at_step_s
        if self.estimates:
            self.wait_s = self.estimated_s(waiting)
        wait_s = self.wait_s
        step = self.alpha * (wait_s - self.target_s) + self.beta * (wait_s - before_s)
        step /= divisor(self.p)
        if self.p >= 0.1 and step > 0.02:
            step = 0.02
        if self.is_linux and wait_s > 0.25:
            step += 0.02
        p = self.p + step
        # Linux has no bound at 1: its 64 bits end at 256 times that, and there it starts again from 1.
        capped = p >= 256.0 if self.is_linux else p > 1.0
        p = max(0.0, p)
        if capped:
            p = 1.0
        if wait_s == 0.0 and before_s == 0.0:
            if not self.is_linux:
                p *= 0.98
            elif waiting.bytes == 0 and not capped:
                p -= p / 64.0
        self.p = p
        self.wait_at_step_s = wait_s
        if not self.is_linux:
            self.burst_s = max(0.0, self.burst_s - self.tupdate_s)
            if self.burst_s < 1e-12:
                self.burst_s = 0.0  # ten steps of 15 ms are 150 ms
        if p == 0.0 and wait_s < self.target_s / 2.0 and before_s < self.target_s / 2.0:
            self.become_quiet()

    def estimated_s(self, waiting: Waiting) -> float:
        """The queue over its drain rate; 0 while that is unknown."""
        if self.drain == 0.0:
            return 0.0
        if self.is_linux:
            return (waiting.bytes * 256) % 2**32 // int(self.drain) * TICK_NS / 1e9
        return waiting.bytes * self.drain / THRESHOLD

    def become_quiet(self) -> None:
        """A burst may come again. Linux starts everything anew (pie_vars_init), its drain rate if it has one."""
        if not self.is_linux:
            self.burst_s = self.max_burst_s
        elif not self.estimates or self.drain > 0.0:
            self.burst_s = self.max_burst_s
            self.sum = 0.0
            self.left_at_ns = None
            self.measured_from_ns = None
            self.drain = 0.0

    def probability(self) -> float:
        """p."""
        return min(1.0, self.p)

    def control(self) -> float:
        """The waiting time at the last step, in seconds."""
        return self.wait_at_step_s
