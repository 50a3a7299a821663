"""DRR: queues take turns, each with a credit that grows by ``quantum`` a turn.

Source: Shreedhar and Varghese 1995; ns-2.35 (queue/drr.cc) for a full buffer. A queue sends in its turn while its
oldest packet is no larger than its credit (the paper's deficit counter); what is left waits for its next turn, and is
forgotten when it runs empty. A queue that was empty joins behind all others.

At the limit, the arriving packet counted, the queue with the most bytes loses its oldest packet (``drop = "head"``,
ns-2) or its newest, until the rest fits. Of equal queues it is the next in turn, as in ns-2. A packet that does not fit
into an empty buffer is lost alone; ns-2 would first lose what its queue holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from aqmlab.oracle.frame import Packet, Told, Uniform
from aqmlab.oracle.parameters import Parameters, Written
from aqmlab.oracle.queues import FlowQueues, told_of

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "flows": 1024,
    "quantum": "1514b",
    "drop": "head",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> FlowQueues:
    """DRR; the rate does not matter, and hashes are taken never to meet."""
    return Drr(Parameters(DEFAULTS, given))


class Drr(FlowQueues):
    """The discipline."""

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters.length("limit"))
        self.quantum = parameters.size("quantum")
        self.drops_newest = parameters.word("drop") == "tail"

        self.turns: deque[int] = deque()
        """The flows that wait, the one in turn first."""
        self.has_begun = False
        """Whether the first one had its quantum in this turn."""
        self.credit: dict[int, int] = {}

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Accepts, and loses what is then too much."""
        if not self.can_ever_hold(packet):
            return told_of(packet, [packet])
        if packet.flow not in self.queues:
            self.turns.append(packet.flow)
            self.credit[packet.flow] = 0
        self.put(packet)
        lost: list[Packet] = []
        while self.is_over():
            flow = max(self.turns, key=self.bytes_of)  # the first of equals
            lost.append(self.remove_newest(flow) if self.drops_newest else self.remove_oldest(flow))
            self.leave_if_empty(flow)
        return told_of(packet, lost)

    def take(self, now_ns: int) -> list[Told]:
        """Gives turns until one is good for a packet."""
        while self.turns:
            flow = self.turns[0]
            if not self.has_begun:
                self.credit[flow] += self.quantum
                self.has_begun = True
            if self.queues[flow][0].size <= self.credit[flow]:
                packet = self.remove_oldest(flow)
                self.credit[flow] -= packet.size
                self.leave_if_empty(flow)
                return [Told("send", number=packet.number)]
            self.turns.rotate(-1)
            self.has_begun = False
        return [Told("none")]

    def leave_if_empty(self, flow: int) -> None:
        """An empty queue has no turn, and keeps nothing."""
        if flow in self.queues:
            return
        if self.turns[0] == flow:
            self.has_begun = False
        self.turns.remove(flow)
        del self.credit[flow]
