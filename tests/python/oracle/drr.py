"""DRR: queues take turns, each with a credit that grows by ``quantum`` a turn.

Source: Shreedhar and Varghese 1995; ns-2.35 (queue/drr.cc) for a full buffer. A queue sends in its turn while its
oldest packet is no larger than its credit (the paper's deficit counter); what is left waits for its next turn, and is
forgotten when it runs empty. A queue that was empty joins behind all others.

At the limit, the arriving packet counted, the queue with the most bytes loses its oldest packet (``drop = "head"``,
ns-2) or its newest, until the rest fits. Of equal queues it is the next in turn: drr.cc looks for the longest from the
one in turn on. A packet that does not fit into an empty buffer is lost alone; ns-2 would first lose what its queue
holds.

Linux (net/sched/sch_drr.c) has no common buffer: the limit is that of the pfifo in each class, which loses its own, by
default the arriving packet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from oracle.frame import Packet, Told, Uniform
from oracle.parameters import Parameters, Waiting, Written
from oracle.queues import FlowQueues, told_of
from oracle.stream import flow_hash, place

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "flows": 1024,
    "quantum": "1514b",
    "dialect": "paper",
    "drop": "",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> FlowQueues:
    """DRR; the rate does not matter."""
    return Drr(Parameters(DEFAULTS, given), uniform)


class Drr(FlowQueues):
    """The discipline."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        super().__init__(parameters.length("limit"))
        self.places = int(parameters.number("flows"))
        self.salt = uniform.bits()
        self.quantum = parameters.size("quantum")
        self.is_linux = parameters.word("dialect") == "linux"
        self.drops_newest = parameters.word("drop") == "tail" if parameters.has("drop") else self.is_linux

        self.turns: deque[int] = deque()
        """The flows that wait, the one in turn first."""
        self.has_begun = False
        """Whether the first one had its quantum in this turn."""
        self.credit: dict[int, int] = {}

    def key(self, packet: Packet) -> int:
        """The place that the flow is hashed to."""
        return place(flow_hash(packet.flow, self.salt), self.places)

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Accepts, and loses what is then too much."""
        if not self.can_ever_hold(packet):
            return told_of(packet, [packet])
        if self.key(packet) not in self.queues:
            self.turns.append(self.key(packet))
            self.credit[self.key(packet)] = 0
        self.put(packet)
        lost: list[Packet] = []
        while self.is_over_limit(packet):
            flow = self.loser(packet)
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

    def is_over_limit(self, arriving: Packet) -> bool:
        """Whether more waits than is allowed: in all queues, or in Linux in that of the arriving packet."""
        queue = self.queues.get(self.key(arriving), deque())
        own = Waiting(packets=len(queue), bytes=sum(packet.size for packet in queue))
        return self.limit.of(own if self.is_linux else self.waiting) > self.limit.amount

    def loser(self, arriving: Packet) -> int:
        """The queue with the most bytes; of equals the next in turn. In Linux that of the arriving packet."""
        if self.is_linux:
            return self.key(arriving)
        most = max(self.bytes_of(flow) for flow in self.turns)
        return next(flow for flow in self.turns if self.bytes_of(flow) == most)

    def leave_if_empty(self, flow: int) -> None:
        """An empty queue has no turn, and keeps nothing."""
        if flow in self.queues:
            return
        if self.turns[0] == flow:
            self.has_begun = False
        self.turns.remove(flow)
        del self.credit[flow]
