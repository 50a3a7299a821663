"""DCN: finds the flows that send much, and brings only those down to a common share.

Source: Le, Aikat, Jeffay and Smith 2004, §3; the controller is that of AFD (Pan, Breslau, Prabhakar and Shenker 2003).

SB, the scoreboard, counts the packets of flows that are not known; a slot holds one flow, and another flow that falls
into it takes it over. A flow with ``threshold`` packets, no two of them ``clear`` apart, becomes known: its entry is
copied to HB. A packet of a known flow is signalled with probability 1 - share / count, and all others are forwarded.
``tdec`` after a flow became known, and every ``tdec`` from then on, its count falls by the share; one whose count is
negative is forgotten. Every ``tupdate``

    share := share + a (q_old - q_ref) - b (q - q_ref);  q_old := q

where the paper prints  share + a (q - q_ref) - b (q_old - q_ref). The share stays between 0 and the largest count.

Readings: where an update and a reduction fall on one instant, the update comes first. The entry stays on the scoreboard
when it is copied. While nobody is known the largest count is what a flow becomes known with; there the share begins.
A packet lost by the limit is not forwarded, but it has arrived.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from aqmlab.oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from aqmlab.oracle.parameters import Measure, Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "dialect": "afd",
    "qref": "24p",
    "a": 1.7,
    "b": 1.8,
    "tupdate": "6.25ms",
    "tdec": "800ms",
    "clear": "800ms",
    "threshold": 4,
    "counts": "forwarded",
    "sb": 8192,
    "hb": 4096,
    "mean_packet": "500b",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """DCN before a link of ``rate_bps``."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Dcn(parameters, rate_bps, uniform), parameters.length("limit"))


@dataclass
class Score:
    """An entry of the scoreboard."""

    flow: int
    count: int
    last_ns: int


@dataclass
class Known:
    """A flow that sends much."""

    count: float
    reduce_at_ns: int


class Dcn(Law):
    """The law."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        mean_packet = parameters.size("mean_packet")
        if parameters.is_time("qref"):
            self.measure = Measure(True, mean_packet)
            self.qref = rate_bps * parameters.time_ns("qref") / 8e9 / mean_packet
        else:
            qref = parameters.length("qref")
            self.measure = Measure(qref.in_bytes, mean_packet)
            self.qref = self.measure.packets(qref)
        self.prints = parameters.word("dialect") == "printed"
        self.a = parameters.number("a")
        self.b = parameters.number("b")
        self.update_ns = Fraction(parameters.time_ns("tupdate"))
        self.tdec_ns = parameters.time_ns("tdec")
        self.clearing_ns = parameters.time_ns("clear")
        self.threshold = int(parameters.number("threshold"))
        self.counts_arrived = parameters.word("counts") == "arrived"
        self.slots = int(parameters.number("sb"))
        self.room = int(parameters.number("hb"))
        self.marks = parameters.flag("ecn")
        self.uniform = uniform

        self.scoreboard: dict[int, Score] = {}
        self.known: dict[int, Known] = {}
        self.share = float(self.threshold)
        self.before = 0.0
        self.updates = 0

    # ---- packets ----

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Signals packets of known flows by chance; counts what is forwarded, or all."""
        signal = self.judge(packet)
        if signal is None or signal.word == "mark" or self.counts_arrived:
            self.count(packet, now_ns)
        return signal

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """Counts it only where arrivals are counted."""
        if self.counts_arrived:
            self.count(packet, now_ns)

    def judge(self, packet: Packet) -> Signal | None:
        """By the count without this packet."""
        flow = self.known.get(packet.flow)
        if flow is None or flow.count <= self.share:
            return None
        if not chance(1.0 - self.share / flow.count, self.uniform):
            return None
        return Signal("mark" if self.marks and packet.has_ect else "drop", "early")

    def count(self, packet: Packet, now_ns: int) -> None:
        """Counts a packet where its flow is kept."""
        if packet.flow in self.known:
            self.known[packet.flow].count += 1
            return
        slot = packet.flow % self.slots  # any hash would do
        score = self.scoreboard.get(slot)
        if score is None or score.flow != packet.flow or now_ns - score.last_ns >= self.clearing_ns:
            score = self.scoreboard[slot] = Score(packet.flow, 0, now_ns)
        score.count += 1
        score.last_ns = now_ns
        if score.count >= self.threshold and len(self.known) < self.room:
            self.known[packet.flow] = Known(score.count, now_ns + self.tdec_ns)

    # ---- time ----

    def due_ns(self, ticks_done: int) -> int | None:
        """The next update or reduction."""
        return min([self.next_update_ns(), *(flow.reduce_at_ns for flow in self.known.values())])

    def next_update_ns(self) -> int:
        """The next update of the share."""
        return math.floor((self.updates + 1) * self.update_ns + Fraction(1, 2))

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """An update, or the reductions of this instant."""
        if self.next_update_ns() == now_ns:
            self.updates += 1
            self.update(self.measure.queue(waiting))
            return
        for number, flow in list(self.known.items()):
            if flow.reduce_at_ns == now_ns:
                flow.count -= self.share
                flow.reduce_at_ns += self.tdec_ns
                if flow.count < 0.0:
                    del self.known[number]

    def update(self, queue: float) -> None:
        """One step of the controller."""
        now, before = queue - self.qref, self.before - self.qref
        step = self.a * now - self.b * before if self.prints else self.a * before - self.b * now
        largest = max([float(self.threshold), *(flow.count for flow in self.known.values())])
        self.share = min(largest, max(0.0, self.share + step))
        self.before = queue

    def control(self) -> float:
        """The share."""
        return self.share
