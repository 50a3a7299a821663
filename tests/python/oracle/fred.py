"""FRED: RED that sees how much of the queue each flow has.

Source: Lin and Morris 1997, figure 6. With qlen and strikes of the packet's flow, of ``Nactive`` flows in the queue,
and the mean share avgcq = max(1, avg / Nactive):

- maxq is min, or 2 from an average of max on. A flow with maxq, or above the band with more than 2 avgcq, or with
  avgcq after more than one strike, is struck and loses the packet.
- In the band every other packet is counted; of flows with max(minq, avgcq) and more it is drawn as by RED.
- Above the band it is lost, below nothing is.

The average is sampled when a packet is accepted, by the queue before it, and when one leaves, by what is left; before
the decision where the queue is empty, and then not again. Strikes are forgotten when a flow's last packet leaves.

Readings: a flow that has no packet has no more than maxq, even if that is 0 (settled by what the engine does: by the
figure's letter a min of 0 would let nothing in). avgcq is that of the average and the flows at the decision. A packet
that the limit refuses restarts the count, as in RED.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oracle import red
from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Parameters, Waiting, Written

_OF_RED = ("limit", "ecn", "min", "max", "probability", "wq", "mode", "mean_packet")
DEFAULTS: dict[str, Written] = {**{name: red.DEFAULTS[name] for name in _OF_RED}, "minq": 2.0, "dialect": "paper"}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """FRED before a link of ``rate_bps``."""
    parameters = Parameters(DEFAULTS, given)
    for_red = {name: written for name, written in given.items() if name in _OF_RED}
    reds = Parameters({**red.DEFAULTS, **red.computed(red.DEFAULTS, for_red)}, for_red)
    law = Fred(red.Red(reds, rate_bps, uniform), parameters.number("minq"))
    return Discipline(law, parameters.length("limit"))


@dataclass
class Flow:
    """A flow with packets in the queue."""

    waiting: Waiting = field(default_factory=Waiting)
    strikes: int = 0


class Fred(Law):
    """The law."""

    def __init__(self, law: red.Red, minq: float) -> None:
        self.red = law
        self.minq = minq
        self.flows: dict[int, Flow] = {}

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Judges, and keeps the flow's part of the queue."""
        is_empty = waiting.packets == 0
        if is_empty:
            self.red.sample(waiting, now_ns)
        signal = self.judge(packet)
        if signal is not None and signal.word == "drop":
            return signal
        if not is_empty:
            self.red.sample(waiting, now_ns)
        flow = self.flows.setdefault(packet.flow, Flow())
        flow.waiting.packets += 1
        flow.waiting.bytes += packet.size
        return signal

    def judge(self, packet: Packet) -> Signal | None:
        """Figure 6."""
        law = self.red
        flow = self.flows.get(packet.flow, Flow())  # one without packets has no strikes, and none are kept
        qlen = law.measure.queue(flow.waiting)
        mean = max(1.0, law.avg / max(1, len(self.flows)))
        is_above = law.avg >= law.max
        maxq = 2.0 if is_above else law.min
        is_over = qlen >= maxq and packet.flow in self.flows
        if is_over or (is_above and qlen > 2.0 * mean) or (qlen >= mean and flow.strikes > 1):
            flow.strikes += 1
            return Signal("drop", "forced")
        if is_above:
            law.count = 0
            return Signal("drop", "overload" if law.marks and packet.has_ect else "forced")
        if law.avg < law.min:
            law.count = -1
            return None
        law.count += 1
        if qlen < max(self.minq, mean):
            return None
        p = law.curve()
        if law.in_byte_mode:
            p *= packet.size / law.mean_packet
        if not chance(law.spaced(p, law.count), law.uniform):
            return None
        law.count = 0
        return Signal("mark" if law.marks and packet.has_ect else "drop", "early")

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """Restarts the spacing; a sample where nothing waits, as of every lost arrival."""
        if waiting.packets == 0:
            self.red.sample(waiting, now_ns)
        self.red.count = -1 if self.red.avg < self.red.min else 0

    def departure(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """A sample; the flow's state goes with its last packet."""
        self.red.sample(waiting, now_ns)
        flow = self.flows[packet.flow]
        flow.waiting.packets -= 1
        flow.waiting.bytes -= packet.size
        if flow.waiting.packets == 0:
            del self.flows[packet.flow]
        return None

    def vain_request(self, now_ns: int) -> None:
        """The link is idle."""
        self.red.vain_request(now_ns)

    def probability(self) -> float:
        """RED's."""
        return self.red.probability()

    def control(self) -> float:
        """The average queue."""
        return self.red.avg
