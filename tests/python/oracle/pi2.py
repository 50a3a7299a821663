"""PI2: a linear controller of the waiting time whose output is squared for Classic flows.

Source: De Schepper, Bondarenko, Tsang and Briscoe 2016; overload after RFC 9332 §A.2 and Linux sch_dualpi2.c. Every
``tupdate``

    p' := p' + alpha (wait - target) + beta (wait - wait before), within [0, 1]

with times in seconds and the wait that of the last packet to leave, 0 if it left nothing behind. A Classic packet is
signalled if two draws are less than p', a Scalable one (ECT(1) or CE) marked with probability ``coupling_factor`` p'.
Where that exceeds 1 the field no longer counts: all are dropped as Classic ones are, and Scalable ones that are spared
are marked. Without ``drop_on_overload`` p' ends where it would begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "dialect": "paper",
    "limit": "1000p",
    "ecn": False,
    "target": "20ms",
    "tupdate": "32ms",
    "alpha": 0.3125,
    "beta": 3.125,
    "coupling_factor": 2.0,
    "drop_on_overload": True,
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """PI2 over one queue."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Pi2(parameters, uniform), parameters.length("limit"))


class Controller:
    """The linear controller, which DualPI2 has as well."""

    def __init__(self, parameters: Parameters, alpha: float, beta: float) -> None:
        self.target_s = parameters.time_ns("target") / 1e9
        self.alpha = alpha
        self.beta = beta
        self.coupling_factor = parameters.number("coupling_factor")
        self.largest = 1.0 if parameters.flag("drop_on_overload") else min(1.0, 1.0 / self.coupling_factor)
        self.base = 0.0  # p'
        self.before_s = 0.0

    def step(self, wait_s: float) -> None:
        """Moves p'."""
        base = self.base + self.alpha * (wait_s - self.target_s) + self.beta * (wait_s - self.before_s)
        self.base = min(self.largest, max(0.0, base))
        self.before_s = wait_s

    @property
    def coupled(self) -> float:
        """The probability of Scalable marks; more than 1 is overload."""
        return self.coupling_factor * self.base


def is_scalable(packet: Packet) -> bool:
    """Whether a packet's field says so: ECT(1), or CE, which may have been ECT(1)."""
    return packet.ecn in ("ect1", "ce")


class Pi2(Law):
    """The law."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        self.controller = Controller(parameters, parameters.number("alpha"), parameters.number("beta"))
        self.period_ns = Fraction(parameters.time_ns("tupdate"))
        self.marks = parameters.flag("ecn")
        self.uniform = uniform
        self.wait_s = 0.0

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Signals by chance."""
        coupled = self.controller.coupled
        is_overload = coupled > 1.0
        if self.marks and is_scalable(packet) and not is_overload:
            return Signal("mark", "early") if chance(coupled, self.uniform) else None
        if self.draws_twice():
            if not (self.marks and packet.has_ect):
                return Signal("drop", "early")
            return Signal("drop", "overload") if is_overload else Signal("mark", "early")
        return Signal("mark", "early") if self.marks and is_scalable(packet) else None

    def draws_twice(self) -> bool:
        """True with the square of p'; the second draw only after a success."""
        return chance(self.controller.base, self.uniform) and chance(self.controller.base, self.uniform)

    def departure(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Notes the waiting time."""
        self.wait_s = (now_ns - packet.arrived_ns) / 1e9 if waiting.packets > 0 else 0.0
        return None

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """The controller's step."""
        self.controller.step(self.wait_s)

    def probability(self) -> float:
        """That of a Classic signal."""
        return self.controller.base**2

    def control(self) -> float:
        """p'."""
        return self.controller.base
