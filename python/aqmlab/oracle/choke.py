"""CHOKe: an arriving packet that meets one of its own flow in the queue is lost together with it.

Source: Pan, Prabhakar and Psounis 2000, §II and §IV; Linux sch_choke for the dialect and the thresholds (tc-choke(8)).

The average is RED's. Above min, ``candidates`` packets are drawn from the queue, each from those that are left; those
of the arriving packet's flow are dropped, and it with them. What matches none is judged by RED.

Dialect linux (sch_choke): RED with a stored draw, but a band that does not hold min and does hold max; the packet is
judged before the limit is looked at; marks above max too.

Readings: a match neither counts nor ends a count in RED's spacing. In the paper dialect the limit comes after the
candidates and before RED, for which a packet without room is one that the limit refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.oracle import red
from aqmlab.oracle.frame import Discipline, Packet, Signal, Told, Uniform
from aqmlab.oracle.parameters import Length, Parameters, Written

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

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Samples, compares, judges."""
        packet.arrived_ns = now_ns
        self.red.sample(self.waiting, now_ns)
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
        self.waiting.packets += 1
        self.waiting.bytes += packet.size
        accepted = Told("accept", number=packet.number)
        return [accepted] if signal is None else [Told("mark", signal.cause, packet.number), accepted]

    def signal(self, packet: Packet, cause: str | None) -> Signal | None:
        """RED's wish, if it has one."""
        return None if cause is None else self.red.signal(packet, cause)

    def matches(self, packet: Packet) -> list[Packet]:
        """Draws the candidates, and removes those of the packet's flow."""
        lost: list[Packet] = []
        for _ in range(self.candidates):
            if not self._held:
                break
            place = int(self.red.uniform.unit() * len(self._held))
            candidate = self._held[place]
            if candidate.flow == packet.flow:
                del self._held[place]
                self.waiting.packets -= 1
                self.waiting.bytes -= candidate.size
                lost.append(candidate)
        return lost

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
        p = law.max_p * (law.avg - law.min) / (law.max - law.min)
        if law.in_byte_mode:
            p *= packet.size / law.mean_packet
        if law.count * p < law.stored_draw:
            return None
        law.count = 0
        law.stored_draw = law.uniform.unit()
        return "early"
