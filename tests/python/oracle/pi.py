"""PI: controls the queue to a reference length by an integrating controller.

Source: Hollot, Misra, Towsley and Gong 2001. ``w`` times a second

    p := p + a (q - q_ref) - b (q_old - q_ref), within [0, 1];  q_old := q

Every arrival is signalled with probability p; in byte mode with p size / weight_packet, which is mean_packet unless
given, the queue being measured in mean packets. ECN-capable packets are marked at any p.

Design for N flows, round trips up to R and C packets a second, T = 1/w (TAC 2002, proposition 2): z = 2 N / (R^2 C),
the crossover at w_g = beta / R, K = w_g |j w_g R + 1| (4 N^2) / (R C)^3, and by the bilinear transform
a = K (1/z + T/2), b = K (1/z - T/2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Measure, Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "dialect": "paper",
    "limit": "1000p",
    "ecn": False,
    "qref": "50p",
    "a": "",
    "b": "",
    "w": "170hz",
    "mode": "packet",
    "mean_packet": "500b",
    "weight_packet": "",
    "flows": "",
    "rtt": "",
    "beta": 0.13,
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """PI before a link of ``rate_bps``."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Pi(parameters, rate_bps, uniform), parameters.length("limit"))


class Pi(Law):
    """The law."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        self.mean_packet = parameters.size("mean_packet")
        has_own = parameters.has("weight_packet")
        self.weight_packet = parameters.size("weight_packet") if has_own else self.mean_packet
        self.in_byte_mode = parameters.word("mode") == "byte"
        if parameters.is_time("qref"):
            # A time is what the link sends in it: bytes.
            sent = rate_bps * parameters.time_ns("qref") / 8e9
            self.measure = Measure(True, self.mean_packet)
            self.qref = sent / self.mean_packet
        else:
            qref = parameters.length("qref")
            self.measure = Measure(self.in_byte_mode or qref.in_bytes, self.mean_packet)
            self.qref = self.measure.packets(qref)
        hertz = parameters.hertz("w")
        self.period_ns = 10**9 / hertz
        if parameters.has("flows") and parameters.has("rtt"):
            capacity = rate_bps / (8.0 * self.mean_packet)
            rtt = parameters.time_ns("rtt") / 1e9
            a, b = designed(capacity, parameters.number("flows"), rtt, parameters.number("beta"), 1.0 / float(hertz))
        else:
            a, b = 1.822e-5, 1.816e-5
        self.a = parameters.number("a") if parameters.has("a") else a
        self.b = parameters.number("b") if parameters.has("b") else b
        self.marks = parameters.flag("ecn")
        self.uniform = uniform

        self.p = 0.0
        self.before = 0.0

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """The controller's step."""
        queue = self.measure.queue(waiting)
        p = self.p + self.a * (queue - self.qref) - self.b * (self.before - self.qref)
        self.p = min(1.0, max(0.0, p))
        self.before = queue

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Signals by chance, whatever waits."""
        p = self.p * packet.size / self.weight_packet if self.in_byte_mode else self.p
        if not chance(p, self.uniform):
            return None
        return Signal("mark" if self.marks and packet.has_ect else "drop", "early")

    def probability(self) -> float:
        """p."""
        return self.p

    def control(self) -> float:
        """The distance from the reference at the last tick; before the first the queue is taken as empty."""
        return self.before - self.qref


def designed(c: float, n: float, r: float, beta: float, t: float) -> tuple[float, float]:
    """The gains a and b for capacity, flows, round trip, crossover times round trip, and period."""
    z = 2.0 * n / (r * r * c)
    crossover = beta / r
    k = crossover * math.sqrt(1.0 + (crossover * r) ** 2) * 4.0 * n * n / (r * c) ** 3
    return k * (1.0 / z + t / 2.0), k * (1.0 / z - t / 2.0)
