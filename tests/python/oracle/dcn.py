"""DCN: finds the flows that send much, and brings only those down to a common share.

Source: Le, Aikat, Jeffay and Smith 2004, §3; the controller is that of AFD (Pan, Breslau, Prabhakar and Shenker 2003).

SB, the scoreboard, counts the packets of flows that are not known; a slot holds one flow, and another flow that falls
into it takes it over. A flow with ``threshold`` packets, no two of them ``clear`` apart, becomes known: its entry is
copied to HB. A packet of a known flow is signalled with probability 1 - share / count, and all others are forwarded.
``tdec`` after a flow became known, and every ``tdec`` from then on, its count is due to fall by the share; that is done
when its next packet arrives, or at the next sweep, of which there is one at each multiple of ``tdec``. A flow whose
count is negative is forgotten. Every ``tupdate``

    share := share + a (q_old - q_ref) - b (q - q_ref);  q_old := q

where the paper prints  share + a (q - q_ref) - b (q_old - q_ref). The share is not below 0. It rises to
the largest count of the time since the last sweep and that before it, no further, and at a queue above q_ref it falls
from there: a share above every count has no effect. It begins with what the link sends in ``tdec``.

Readings: where an update and a sweep fall on one instant, the update comes first. The entry stays on the scoreboard
when it is copied. While nobody is known the largest count is what a flow becomes known with.
A packet lost by the limit is not forwarded, but it has arrived.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Measure, Parameters, Waiting, Written
from oracle.stream import flow_hash, place

DEFAULTS: dict[str, Written] = {
    "share": "",
    "limit": "10000p",
    "ecn": False,
    "dialect": "afd",
    "qref": "24p",
    "a": 0.178,
    "b": 0.18,
    "tupdate": "6.25ms",
    "tdec": "800ms",
    "clear": "800ms",
    "threshold": 4,
    "counts": "forwarded",
    "sb": 8192,
    "hb": 4096,
    "mean_packet": "500b",
}


SALT = 0xDC4
"""Of the scoreboard's hash, the engine's: any would do."""


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
        self.share = rate_bps / (8.0 * mean_packet) * self.tdec_ns / 1e9
        if parameters.has("share"):
            self.share = parameters.number("share")
        self.before = 0.0
        self.updates = 0
        self.sweeps = 0
        self.largest = float(self.threshold)
        self.largest_before = float(self.threshold)

    # ---- packets ----

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Signals packets of known flows by chance; counts what is forwarded, or all."""
        self.reduce(packet.flow, now_ns)
        signal = self.judge(packet)
        if signal is None or signal.word == "mark" or self.counts_arrived:
            self.count(packet, now_ns)
        return signal

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """Counts it only where arrivals are counted."""
        if self.counts_arrived:
            self.reduce(packet.flow, now_ns)
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
            self.largest = max(self.largest, self.known[packet.flow].count)
            return
        slot = place(flow_hash(packet.flow, SALT), self.slots)
        score = self.scoreboard.get(slot)
        if score is None or score.flow != packet.flow or now_ns - score.last_ns >= self.clearing_ns:
            score = self.scoreboard[slot] = Score(packet.flow, 0, now_ns)
        score.count += 1
        score.last_ns = now_ns
        if score.count >= self.threshold and len(self.known) < self.room:
            self.known[packet.flow] = Known(score.count, now_ns + self.tdec_ns)
            self.largest = max(self.largest, float(score.count))

    # ---- time ----

    def due_ns(self, ticks_done: int) -> int | None:
        """The next update or sweep."""
        return min(self.next_update_ns(), (self.sweeps + 1) * self.tdec_ns)

    def next_update_ns(self) -> int:
        """The next update of the share."""
        return math.floor((self.updates + 1) * self.update_ns + Fraction(1, 2))

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """An update, or a sweep."""
        if self.next_update_ns() == now_ns:
            self.updates += 1
            self.update(self.measure.queue(waiting))
            return
        self.sweeps += 1
        for number in list(self.known):
            self.reduce(number, now_ns)
        self.largest_before = self.largest
        self.largest = max([float(self.threshold), *(flow.count for flow in self.known.values())])

    def reduce(self, number: int, now_ns: int) -> None:
        """Does the reduction of a flow that is due."""
        flow = self.known.get(number)
        if flow is None or flow.reduce_at_ns > now_ns:
            return
        flow.count -= self.share
        flow.reduce_at_ns += self.tdec_ns
        if flow.count < 0.0:
            del self.known[number]

    def update(self, queue: float) -> None:
        """One step of the controller."""
        now, before = queue - self.qref, self.before - self.qref
        step = self.a * now - self.b * before if self.prints else self.a * before - self.b * now
        most = max(self.largest, self.largest_before)
        if queue > self.qref:
            self.share = min(self.share, most)
        self.share = min(max(0.0, self.share + step), max(most, self.share))
        self.before = queue

    def control(self) -> float:
        """The share."""
        return self.share
