"""FQ-CoDel: a queue for each flow, in turns, with CoDel on each.

Source: Hoeiland-Joergensen et al. 2018 (RFC 8290); in the dialect ``linux`` net/sched/sch_fq_codel.c, where CoDel
compares the MTU with what all queues hold, and packets lost at the limit count as its signals.

When more than ``limit`` packets wait, the arriving one among them, the queue with the most bytes loses packets from its
head, ``drop_batch`` at most: half its packets (RFC 8290 §4.1), rounded up, or half its bytes (Linux); and again while a
limit in bytes, which neither knows, is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from oracle import codel
from oracle.codel import Codel
from oracle.fair import FairQueueing, Queue
from oracle.frame import Discipline, Packet, Told, Uniform
from oracle.parameters import Parameters, Written

DEFAULTS: dict[str, Written] = {
    **codel.DEFAULTS,
    "limit": "10240p",
    "ecn": True,
    "flows": 1024,
    "quantum": "1514b",
    "drop_batch": 64,
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """FQ-CoDel."""
    return FqCodel(Parameters(DEFAULTS, given), uniform)


class FqCodel(FairQueueing[Codel]):
    """The discipline."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        self.is_linux = parameters.word("dialect") == "linux"
        super().__init__(
            parameters.length("limit"),
            parameters.size("quantum"),
            int(parameters.number("flows")),
            uniform.bits(),
            keeps_new=not self.is_linux,
        )
        self.parameters = parameters
        self.drop_batch = int(parameters.number("drop_batch"))

    def make_law(self, place: int) -> Codel:
        """Another queue's CoDel."""
        return Codel(self.parameters)

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Offers a packet; what is told of it and of those that make room."""
        packet.arrived_ns = now_ns
        self.append(self.queue_of(packet), packet)
        told = [Told("accept", number=packet.number)]
        while self.is_over():
            told += self._evict()
        return told

    def dequeue(self, queue: Queue[Codel], now_ns: int) -> tuple[list[Told], Packet | None]:
        """Lets CoDel pull."""
        measured = self.waiting if self.is_linux else queue.waiting
        return queue.law.dequeue(lambda: self.pull(queue), lambda: measured.bytes, now_ns)

    def _evict(self) -> list[Told]:
        """Drops from the fattest queue, of equals from any."""
        most = max(queue.waiting.bytes for queue in self.queues.values())
        tied = {at: queue.held[0] for at, queue in self.queues.items() if queue.held and queue.waiting.bytes == most}
        fattest = self.queues[self.any_of(tied)]
        packets, size = fattest.waiting.packets, fattest.waiting.bytes
        lost: list[Told] = []
        is_half = False
        while not is_half and len(lost) < self.drop_batch:
            packet = self.pull(fattest)
            assert packet is not None
            lost.append(Told("drop", "tail", packet.number))
            # sch_fq_codel's threshold is the whole part of half the bytes.
            lost_bytes = size - fattest.waiting.bytes
            is_half = lost_bytes >= size // 2 if self.is_linux else 2 * len(lost) >= packets
        if self.is_linux:
            fattest.law.count += len(lost)
        return lost
