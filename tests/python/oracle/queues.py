"""What disciplines with several queues share: a queue for each flow, one limit for all.

Where a discipline hashes flows to queues, the engine's hash says which: any would do. Flows that meet are one.
"""

from __future__ import annotations

from collections import deque

from oracle.frame import Discipline, Law, Packet, Told
from oracle.parameters import Length


class FlowQueues(Discipline):
    """Queues by flow, without a law: what waits in which, and what is told of losses."""

    def __init__(self, limit: Length) -> None:
        super().__init__(Law(), limit)
        self.queues: dict[int, deque[Packet]] = {}
        """The flows that wait, each with its packets from the oldest to the newest; never an empty queue."""

    def key(self, packet: Packet) -> int:
        """What tells a packet's queue from others: its flow, or the place that it is hashed to."""
        return packet.flow

    def put(self, packet: Packet) -> None:
        """Adds a packet to the queue of its flow."""
        self.queues.setdefault(self.key(packet), deque()).append(packet)
        self.waiting.packets += 1
        self.waiting.bytes += packet.size

    def remove_oldest(self, flow: int) -> Packet:
        """Takes a flow's oldest packet out."""
        return self._removed(flow, self.queues[flow].popleft())

    def remove_newest(self, flow: int) -> Packet:
        """Takes a flow's newest packet out."""
        return self._removed(flow, self.queues[flow].pop())

    def bytes_of(self, flow: int) -> int:
        """Bytes that wait for a flow."""
        return sum(packet.size for packet in self.queues.get(flow, ()))

    def is_over(self) -> bool:
        """Whether more waits than the limit allows."""
        return self.limit.of(self.waiting) > self.limit.amount

    def can_ever_hold(self, packet: Packet) -> bool:
        """Whether a packet fits where nothing waits."""
        return (packet.size if self.limit.in_bytes else 1) <= self.limit.amount

    def _removed(self, flow: int, packet: Packet) -> Packet:
        if not self.queues[flow]:
            del self.queues[flow]
        self.waiting.packets -= 1
        self.waiting.bytes -= packet.size
        return packet


def told_of(packet: Packet, lost: list[Packet]) -> list[Told]:
    """What is told of an arrival: every loss, and that it was accepted unless it is among them."""
    drops = [Told("drop", "tail", one.number) for one in lost]
    return drops if packet in lost else [*drops, Told("accept", number=packet.number)]
