"""CHOKe: an arriving packet that meets one of its own flow in the queue is lost together with it.

Source: Pan, Prabhakar and Psounis 2000, §II and §IV; Linux sch_choke for the dialect and the thresholds (tc-choke(8)).

The average is RED's. Above min, ``candidates`` packets are drawn from the queue, each from those that are left; those
of the arriving packet's flow are dropped, and it with them. What matches none is judged by RED.

Dialect linux (sch_choke): RED with a stored draw, but a band that does not hold min and does hold max; the packet is
judged before the limit is looked at; marks above max too; draws hit the places of removed packets (`drawn_as_linux`);
fixed-point numbers lose parts of packets (`sample`, `judge_as_linux`).

Readings: a match neither counts nor ends a count in RED's spacing. In the paper dialect the limit comes after the
candidates and before RED, for which a packet without room is one that the limit refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from oracle import red
from oracle.frame import Discipline, Packet, Signal, Told, Uniform
from oracle.parameters import Length, Parameters, Written

DEFAULTS: dict[str, Written] = {
    **{name: red.DEFAULTS[name] for name in ("limit", "ecn", "dialect", "probability", "wq", "mode", "mean_packet")},
    "min": "",
    "max": "",
    "candidates": 1,
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """CHOKe before a link of ``rate_bps``."""
    known = Parameters(DEFAULTS, given)
    limit = known.length("limit")
    largest = known.length("max") if known.has("max") else limit.times(0.25)
    parameters = Parameters({**DEFAULTS, "max": largest, "min": largest.times(1.0 / 3.0)}, given)
    for_red = {name: written for name, written in given.items() if name != "candidates"}
    for_red |= {"min": parameters.length("min"), "max": parameters.length("max")}
    reds = Parameters({**red.DEFAULTS, **red.computed(red.DEFAULTS, for_red)}, for_red)
    return Choke(red.Red(reds, rate_bps, uniform), limit, int(parameters.number("candidates")))


class Choke(Discipline):
    """The queue, which reaches into itself."""

    def __init__(self, law: red.Red, limit: Length, candidates: int) -> None:
        super().__init__(law, limit)
        self.red = law
        self.candidates = candidates
        self.accepted: list[int] = []

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Samples, compares, judges."""
        packet.arrived_ns = now_ns
        self.sample(now_ns)
        lost = self.matches(packet) if self.red.avg > self.red.min else []
        if lost:
            return [Told("drop", "early", one.number) for one in [*lost, packet]]
        if self.red.dialect == "linux":
            signal = self.signal(packet, self.judge_as_linux(packet))
        elif self._is_full(packet):
            self.red.count = -1 if self.red.avg < self.red.min else 0
            signal = None
        else:
            signal = self.signal(packet, self.red.judge(packet))
        if signal is not None and signal.word == "drop":
            return [Told("drop", signal.cause, packet.number)]
        if self._is_full(packet):
            return [Told("drop", "tail", packet.number)]
        self._held.append(packet)
        self.accepted.append(packet.number)
        self.waiting.packets += 1
        self.waiting.bytes += packet.size
        accepted = Told("accept", number=packet.number)
        return [accepted] if signal is None else [Told("mark", signal.cause, packet.number), accepted]

    def sample(self, now_ns: int) -> None:
        """RED's, but in Linux qavg += backlog - (qavg >> Wlog), whose shift loses the parts of a packet."""
        law = self.red
        if law.dialect == "linux" and not law.in_byte_mode and law.idle_since_ns is None:
            law.avg += law.wq * (self.waiting.packets - math.floor(law.avg))
        else:
            law.sample(self.waiting, now_ns)

    def signal(self, packet: Packet, cause: str | None) -> Signal | None:
        """RED's wish, if it has one."""
        return None if cause is None else self.red.signal(packet, cause)

    def matches(self, packet: Packet) -> list[Packet]:
        """Draws the candidates, and removes those of the packet's flow."""
        lost: list[Packet] = []
        for _ in range(self.candidates):
            if not self._held:
                break
            candidate = self.drawn_as_linux() if self.red.dialect == "linux" else self.drawn()
            place = self._held.index(candidate)
            if candidate.flow == packet.flow:
                del self._held[place]
                self.waiting.packets -= 1
                self.waiting.bytes -= candidate.size
                lost.append(candidate)
        return lost

    def drawn(self) -> Packet:
        """One of those that wait."""
        return self._held[int(self.red.uniform.unit() * len(self._held))]

    def drawn_as_linux(self) -> Packet:
        """choke_peek_random: three draws among all places from the head to the last packet put in, those of removed
        packets among them; the head if there is none left at any of the three."""
        waiting = {packet.number: packet for packet in self._held}
        places = [number for number in self.accepted if number >= self._held[0].number]
        for _ in range(3):
            number = places[int(self.red.uniform.unit() * len(places))]
            if number in waiting:
                return waiting[number]
        return self._held[0]

    def judge_as_linux(self, packet: Packet) -> str | None:
        """sch_choke, choke_enqueue, with red_mark_probability of red.h."""
        law = self.red
        if law.avg <= law.min:
            law.count = -1
            return None
        if law.avg > law.max:
            law.count = -1
            return "forced"
        law.count += 1
        if law.count == 0:
            law.stored_draw = law.uniform.unit()
            return None
        above = law.avg - law.min if law.in_byte_mode else math.floor(law.avg - law.min)
        p = law.max_p * above / (law.max - law.min)
        if law.in_byte_mode:
            p *= packet.size / law.mean_packet
        if law.count * p < law.stored_draw:
            return None
        law.count = 0
        law.stored_draw = law.uniform.unit()
        return "early"
