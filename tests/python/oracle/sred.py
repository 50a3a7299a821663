"""SRED: how often arriving packets match a random one of a list of recent packets tells how many flows there are.

Source: Ott, Lakshman and Wong 1999. The list of ``zombies`` fills with what arrives. From then on each arriving packet
is compared with one drawn from it; one that is no hit takes its place with probability r. With alpha = r / zombies

    P := (1 - alpha) P + alpha Hit
    p_sred = p_max from a queue of a third of the limit, p_max / 4 from a sixth, and 0 below
    p_zap = p_sred min(1, 1 / (256 P)^2), in full SRED times 1 + Hit / P

While the list fills there is no hit and P is 0. Readings: a packet that the limit refuses has arrived, and meets the
list; the probability shown is that at the queue of the last arrival, without the hit.
"""

from __future__ import annotations

from collections.abc import Mapping

from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "dialect": "full",
    "probability": 0.15,
    "zombies": 1000,
    "r": 0.25,
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """SRED; the link's rate does not matter."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Sred(parameters, uniform), parameters.length("limit"))


class Sred(Law):
    """The law."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        self.limit = parameters.length("limit")
        self.is_full_sred = parameters.word("dialect") == "full"
        self.max_p = parameters.number("probability")
        self.size = int(parameters.number("zombies"))
        self.r = parameters.number("r")
        self.marks = parameters.flag("ecn")
        self.uniform = uniform

        self.zombies: list[int] = []
        self.frequency = 0.0
        self.p_sred = 0.0

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Compares, then judges."""
        hit = self.compare(packet.flow)
        queue = waiting.bytes if self.limit.in_bytes else waiting.packets
        self.p_sred = self.step(queue)
        p = self.probability()
        if hit and self.is_full_sred:
            p *= 1.0 + 1.0 / self.frequency
        if not chance(p, self.uniform):
            return None
        return Signal("mark" if self.marks and packet.has_ect else "drop", "early")

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """It arrived."""
        self.compare(packet.flow)

    def compare(self, flow: int) -> bool:
        """Whether the packet is a hit."""
        if len(self.zombies) < self.size:
            self.zombies.append(flow)
            return False
        place = int(self.uniform.unit() * self.size)
        hit = self.zombies[place] == flow
        if not hit and chance(self.r, self.uniform):
            self.zombies[place] = flow
        alpha = self.r / self.size
        self.frequency = (1.0 - alpha) * self.frequency + alpha * hit
        return hit

    def step(self, queue: int) -> float:
        """p_sred."""
        if 3 * queue >= self.limit.amount:
            return self.max_p
        return self.max_p / 4.0 if 6 * queue >= self.limit.amount else 0.0

    def probability(self) -> float:
        """p_zap without a hit."""
        flows_part = (256.0 * self.frequency) ** 2
        return self.p_sred / flows_part if flows_part > 1.0 else self.p_sred

    def control(self) -> float:
        """The hit frequency."""
        return self.frequency
