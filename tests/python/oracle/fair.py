"""What the disciplines with a queue for each flow have in common: turns after deficit round robin, new queues first.

Source: Hoeiland-Joergensen et al. 2018 (RFC 8290 §4), Linux net/sched/sch_fq_codel.c. A queue has a credit of bytes.
One without any is given a quantum and goes behind the old queues; otherwise a packet leaves and is charged. A new queue
found empty goes behind the old ones, so that it cannot come back as new at once; an old one leaves the list.

Which of the ``flows`` queues is a flow's says the engine's hash, which is taken over: any would do.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from oracle.frame import Discipline, Law, Packet, Told
from oracle.parameters import Length, Waiting
from oracle.stream import flow_hash, place

L = TypeVar("L", bound=Law)


class Queue(Generic[L]):
    """One flow's queue with its law."""

    def __init__(self, law: L) -> None:
        self.law = law
        self.held: deque[Packet] = deque()
        self.waiting = Waiting()
        self.credit = 0


class FairQueueing(Discipline, Generic[L]):
    """Queues in turns; the disciplines say what a limit and a law do.

    ``keeps_new`` is the RFC's way with an emptied new queue: it becomes old in any case. Linux lets it go if no queue
    is old, though others are new.
    """

    def __init__(self, limit: Length, quantum: int, flows: int, salt: int, keeps_new: bool) -> None:
        super().__init__(Law(), limit)
        self.quantum = quantum
        self.flows = flows
        self.salt = salt
        self.keeps_new = keeps_new
        self.queues: dict[int, Queue[L]] = {}
        self.new: deque[Queue[L]] = deque()
        self.old: deque[Queue[L]] = deque()

    def make_law(self, place: int) -> L:
        """The law of the queue at a place."""
        raise NotImplementedError

    def dequeue(self, queue: Queue[L], now_ns: int) -> tuple[list[Told], Packet | None]:
        """Takes the next packet out of a queue, as its law allows."""
        raise NotImplementedError

    def queue_of(self, packet: Packet) -> Queue[L]:
        """The queue of a packet's flow."""
        at = place(flow_hash(packet.flow, self.salt), self.flows)
        if at not in self.queues:
            self.queues[at] = Queue(self.make_law(at))
        return self.queues[at]

    def append(self, queue: Queue[L], packet: Packet) -> None:
        """Puts a packet at the end of its queue; one that is on no list is new."""
        queue.held.append(packet)
        for waiting in (queue.waiting, self.waiting):
            waiting.packets += 1
            waiting.bytes += packet.size
        if queue not in self.new and queue not in self.old:
            queue.credit = self.quantum
            self.new.append(queue)

    def is_over(self) -> bool:
        """Whether more waits than the limit allows."""
        return self.limit.of(self.waiting) > self.limit.amount

    def pull(self, queue: Queue[L]) -> Packet | None:
        """Removes the packet at a queue's head."""
        if not queue.held:
            return None
        packet = queue.held.popleft()
        for waiting in (queue.waiting, self.waiting):
            waiting.packets -= 1
            waiting.bytes -= packet.size
        return packet

    def take(self, now_ns: int) -> list[Told]:
        """The link asks for a packet; what is told."""
        told: list[Told] = []
        while self.new or self.old:
            is_new = bool(self.new)
            chosen = self.new if is_new else self.old
            queue = chosen[0]
            if queue.credit <= 0:
                queue.credit += self.quantum
                self.old.append(chosen.popleft())
                continue
            lost, packet = self.dequeue(queue, now_ns)
            told += lost
            if packet is not None:
                queue.credit -= packet.size
                return [*told, Told("send", number=packet.number)]
            chosen.popleft()
            if is_new and (self.keeps_new or self.old):
                self.old.append(queue)
        return [*told, Told("none")]
