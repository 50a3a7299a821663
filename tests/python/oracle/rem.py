"""REM: keeps a price that matches rate and queue to the link, and signals exponentially in it.

Source: Athuraliya, Low, Li and Yin 2001. Every ``interval`` T

    price := max(0, price + gamma (alpha (q - target) + x - c));  p = 1 - phi^(-price)

with x what arrived in the interval, lost or not (averaged with weight ``inw``), and c what the link sends in one. Queue
and arrivals are counted in packets, or in mean packets where bytes are measured. In byte mode a packet is signalled
with probability p size / weight_packet, which is mean_packet unless given.

ns-2.35 (queue/rem.cc), when it marks, marks ECN-capable packets as they depart, and drops nothing but what overflows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Measure, Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "dialect": "paper",
    "target": "20p",
    "gamma": 0.001,
    "alpha": 0.1,
    "phi": 1.001,
    "interval": "2ms",
    "inw": 1.0,
    "mode": "byte",
    "mean_packet": "500b",
    "weight_packet": "",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """REM before a link of ``rate_bps``."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Rem(parameters, rate_bps, uniform), parameters.length("limit"))


class Rem(Law):
    """The law."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        self.mean_packet = parameters.size("mean_packet")
        has_own = parameters.has("weight_packet")
        self.weight_packet = parameters.size("weight_packet") if has_own else self.mean_packet
        self.in_byte_mode = parameters.word("mode") == "byte"
        if parameters.is_time("target"):
            # A time is what the link sends in it: bytes.
            sent = rate_bps * parameters.time_ns("target") / 8e9
            self.measure = Measure(True, self.mean_packet)
            self.target = sent / self.mean_packet
        else:
            target = parameters.length("target")
            self.measure = Measure(self.in_byte_mode or target.in_bytes, self.mean_packet)
            self.target = self.measure.packets(target)
        self.gamma = parameters.number("gamma")
        self.alpha = parameters.number("alpha")
        self.phi = parameters.number("phi")
        self.inw = parameters.number("inw")
        interval_ns = parameters.time_ns("interval")
        self.period_ns = Fraction(interval_ns)
        self.capacity = rate_bps * interval_ns / (8e9 * self.mean_packet)
        self.marks = parameters.flag("ecn")
        self.marks_departures = self.marks and parameters.word("dialect") == "ns2"
        self.uniform = uniform

        self.price = 0.0
        self.arrived = Waiting()
        self.input = 0.0

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """The new price."""
        self.input = (1.0 - self.inw) * self.input + self.inw * self.measure.queue(self.arrived)
        self.arrived = Waiting()
        mismatch = self.alpha * (self.measure.queue(waiting) - self.target) + self.input - self.capacity
        self.price = max(0.0, self.price + self.gamma * mismatch)

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Counts the packet and signals it by chance."""
        self.counted(packet)
        if self.marks_departures or not chance(self.scaled(packet), self.uniform):
            return None
        return Signal("mark" if self.marks and packet.has_ect else "drop", "early")

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """What is refused has arrived all the same."""
        self.counted(packet)

    def departure(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """ns-2's place to mark."""
        if self.marks_departures and packet.has_ect and chance(self.scaled(packet), self.uniform):
            return Signal("mark", "early")
        return None

    def probability(self) -> float:
        """p of a packet of mean size."""
        return 1.0 - math.pow(self.phi, -self.price)

    def control(self) -> float:
        """The price."""
        return self.price

    def counted(self, packet: Packet) -> None:
        """Adds to what arrived in this interval."""
        self.arrived.packets += 1
        self.arrived.bytes += packet.size

    def scaled(self, packet: Packet) -> float:
        """p of this packet."""
        p = self.probability()
        return p * packet.size / self.weight_packet if self.in_byte_mode else p
