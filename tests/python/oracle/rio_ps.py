"""RIO-PS: the two REDs of RIO, where the first packets of a flow are IN ("short") and the later ones OUT ("long").

Source: Guo and Matta 2001. A packet is short while its flow has sent no more than L_t packets, ``threshold`` at first.
A flow is forgotten ``tu`` after its last packet. Every ``tc`` L_t moves by a packet, but not below 1: up if there are
fewer than ``slr`` active short flows for each long one, down if there are more. An ``slr`` of 0 keeps it where it is.

Readings: a flow is long from its first long packet on, by the threshold at the time of the step. What the limit refuses
was sent, and counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from oracle import rio
from oracle.frame import Discipline, Packet, Uniform
from oracle.parameters import Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    **rio.COMMON,
    "min_in": "",
    "max_in": "",
    "probability_in": 0.05,
    "min_out": "",
    "max_out": "",
    "probability_out": 0.1,
    "wq": 1.0 / 512.0,
    "threshold": 8,
    "slr": 3.0,
    "tu": "1s",
    "tc": "10s",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """RIO-PS before a link of ``rate_bps``."""
    limit = Parameters(DEFAULTS, given).length("limit")
    thresholds = {
        "min_in": limit.times(0.15),
        "max_in": limit.times(0.35),
        "min_out": limit.times(0.15),
        "max_out": limit.times(0.5),
    }
    return Discipline(RioPs(Parameters({**DEFAULTS, **thresholds}, given), rate_bps, uniform), limit)


@dataclass
class Flow:
    """What is known of a flow."""

    packets: int
    last_ns: int


class RioPs(rio.TwoReds):
    """The law, with the edge's table of flows."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        super().__init__(parameters, rate_bps, uniform)
        self.threshold = int(parameters.number("threshold"))
        self.slr = parameters.number("slr")
        self.tu_ns = parameters.time_ns("tu")
        if self.slr > 0.0:
            self.period_ns = Fraction(parameters.time_ns("tc"))
        self.flows: dict[int, Flow] = {}

    def is_in(self, packet: Packet, now_ns: int) -> bool:
        """Whether it is one of its flow's first."""
        flow = self.flows.get(packet.flow)
        if flow is None or now_ns - flow.last_ns >= self.tu_ns:
            flow = self.flows[packet.flow] = Flow(0, now_ns)
        flow.packets += 1
        flow.last_ns = now_ns
        return flow.packets <= self.threshold

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """One step of the threshold."""
        active = [flow for flow in self.flows.values() if now_ns - flow.last_ns < self.tu_ns]
        long = sum(flow.packets > self.threshold for flow in active)
        short = len(active) - long
        if short < self.slr * long:
            self.threshold += 1
        elif short > self.slr * long:
            self.threshold = max(1, self.threshold - 1)
