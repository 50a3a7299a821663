"""SFQ: queues take turns, and who takes more than a share loses.

Source: McKenney 1990 for the idea; Linux (net/sched/sch_sfq.c) and ns-2.35 (queue/sfq.cc) for everything else.

Linux: a queue sends while its allotment is above 0; at or below, it gets a ``quantum`` more and goes to the end. The
allotment is a quantum when the queue joins, at the end. A queue of ``depth`` packets refuses an arrival or, with
``headdrop``, loses its oldest for it. Of at most ``flows`` queues each has a slot; a flow that finds none is refused.
Above the limit the longest queue loses its newest packet, or its oldest; of equals the one whose length changed last;
if all hold a single packet, the next in turn. ``perturb`` empties all queues in the order of their slots, each from
its oldest packet, and fills the packets into new queues. Free slots are a stack with the highest number on top.

There are no more queues than packets in the limit (sfq_change: maxflows := min(maxflows, limit)); Linux spares its
default of 127 packets that, which is left out: a limit does the same whether it is written or not. A limit in bytes,
which Linux does not have, bounds no queues, may cost more after an exchange at ``depth`` too, and refuses at once a
packet that can never fit.

ns-2: queues send a packet a turn. An arrival is refused if its queue holds at least half, rounded down, of what is
free, or if less than ``flows`` is free and it holds more than limit / flows, or if nothing is free. With a limit in
bytes the same in bytes, where less than ``flows`` packets of the arriving one's size may be free, or less than one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from oracle.frame import Packet, Told, Uniform
from oracle.parameters import Length, Parameters, Written
from oracle.queues import FlowQueues, told_of
from oracle.stream import flow_hash, place

DEFAULTS: dict[str, Written] = {
    "limit": "",
    "ecn": False,
    "dialect": "linux",
    "flows": "",
    "depth": 127,
    "divisor": 1024,
    "quantum": "1514b",
    "perturb": "0s",
    "headdrop": False,
}
BY_DIALECT: dict[str, dict[str, Written]] = {
    "linux": {"limit": "127p", "flows": 128},
    "ns2": {"limit": "127p", "flows": 16},
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> FlowQueues:
    """SFQ in the dialect that is given; the rate does not matter."""
    dialect = Parameters(DEFAULTS, given).word("dialect")
    parameters = Parameters({**DEFAULTS, **BY_DIALECT[dialect]}, given)
    return AsNs2(parameters, uniform) if dialect == "ns2" else AsLinux(parameters, uniform)


class Hashed(FlowQueues):
    """Queues of flows by hash."""

    def __init__(self, limit: Length, places: int, uniform: Uniform) -> None:
        super().__init__(limit)
        self.places = places
        self.uniform = uniform
        self.salt = uniform.bits()

    def key(self, packet: Packet) -> int:
        """The place that the flow is hashed to."""
        return place(flow_hash(packet.flow, self.salt), self.places)


class AsLinux(Hashed):
    """sch_sfq."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        super().__init__(parameters.length("limit"), int(parameters.number("divisor")), uniform)
        self.depth = parameters.number("depth")
        self.quantum = parameters.size("quantum")
        self.period_ns = parameters.time_ns("perturb")
        self.drops_oldest = parameters.flag("headdrop")
        slots = int(parameters.number("flows"))
        if not self.limit.in_bytes:
            slots = min(slots, int(self.limit.amount))

        self.free_slots = list(range(slots))
        """Taken from the end, and given back there."""
        self.slot: dict[int, int] = {}
        self.turns: deque[int] = deque()
        self.allotment: dict[int, int] = {}
        self.changes = 0
        self.changed: dict[int, int] = {}
        """When a flow's queue last changed its length."""
        self.perturbed = 0
        """Changes of hash so far, those that found nothing waiting among them."""

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """The order of tests is that of sfq_enqueue."""
        lost = self.perturb(now_ns)
        is_without_slot = self.key(packet) not in self.queues and not self.free_slots
        if is_without_slot or not self.can_ever_hold(packet):
            return told_of(packet, [*lost, packet])
        if len(self.queues.get(self.key(packet), ())) >= self.depth:
            if not self.drops_oldest:
                return told_of(packet, [*lost, packet])
            # Put first, so that a queue of one does not lose its place; its length does not change.
            self.put(packet)
            lost.append(self.remove_oldest(self.key(packet)))
        else:
            self.join(packet)
        while self.is_over():
            lost.append(self.lose())
        return told_of(packet, lost)

    def take(self, now_ns: int) -> list[Told]:
        """sfq_dequeue."""
        told = [Told("drop", "tail", one.number) for one in self.perturb(now_ns)]
        if not self.turns:
            return [*told, Told("none")]
        while self.allotment[self.turns[0]] <= 0:
            self.allotment[self.turns[0]] += self.quantum
            self.turns.rotate(-1)
        flow = self.turns[0]
        packet = self.remove_oldest(flow)
        self.shortened(flow)
        if flow in self.queues:
            self.allotment[flow] -= packet.size
        return [*told, Told("send", number=packet.number)]

    def join(self, packet: Packet) -> None:
        """Adds a packet to its queue; a new queue needs a slot and goes to the end."""
        if self.key(packet) not in self.queues:
            self.slot[self.key(packet)] = self.free_slots.pop()
            self.allotment[self.key(packet)] = self.quantum
            self.turns.append(self.key(packet))
        self.put(packet)
        self.note_change(self.key(packet))

    def lose(self) -> Packet:
        """sfq_drop: a packet of the longest queue."""
        longest = max(len(queue) for queue in self.queues.values())
        if longest == 1:
            flow = self.turns[0]
        else:
            flow = max((one for one in self.queues if len(self.queues[one]) == longest), key=self.changed.__getitem__)
        packet = self.remove_oldest(flow) if self.drops_oldest else self.remove_newest(flow)
        self.shortened(flow)
        return packet

    def note_change(self, flow: int) -> None:
        """The queue is now the latest of its length."""
        self.changes += 1
        self.changed[flow] = self.changes

    def shortened(self, flow: int) -> None:
        """A packet has left a queue, which may now be empty."""
        self.note_change(flow)
        if flow not in self.queues:
            self.turns.remove(flow)
            self.free_slots.append(self.slot.pop(flow))

    def perturb(self, now_ns: int) -> list[Packet]:
        """sfq_rehash, once for however many changes are due; what finds no place is lost."""
        if self.period_ns == 0 or now_ns // self.period_ns <= self.perturbed:
            return []
        self.perturbed = now_ns // self.period_ns
        emptied: list[Packet] = []
        for flow in sorted(self.queues, key=self.slot.__getitem__):
            while flow in self.queues:
                emptied.append(self.remove_oldest(flow))
            self.shortened(flow)
        self.salt = self.uniform.bits()
        lost: list[Packet] = []
        for packet in emptied:
            has_place = self.key(packet) in self.queues or bool(self.free_slots)
            if has_place and len(self.queues.get(self.key(packet), ())) < self.depth:
                self.join(packet)
            else:
                lost.append(packet)
        return lost


class AsNs2(Hashed):
    """sfq.cc."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        super().__init__(parameters.length("limit"), int(parameters.number("flows")), uniform)
        self.flows = int(parameters.number("flows"))
        self.turns: deque[int] = deque()

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Refused if its queue or all of them hold too much."""
        mine = self.queues.get(self.key(packet), ())
        in_bytes = self.limit.in_bytes
        used, one = (self.bytes_of(self.key(packet)), packet.size) if in_bytes else (len(mine), 1)
        free = int(self.limit.amount) - self.limit.of(self.waiting)
        share = int(self.limit.amount) // self.flows
        if used >= free // 2 or (free < self.flows * one and used > share) or free < one:
            return told_of(packet, [packet])
        if not mine:
            self.turns.append(self.key(packet))
        self.put(packet)
        return told_of(packet, [])

    def take(self, now_ns: int) -> list[Told]:
        """A packet of the next queue."""
        if not self.turns:
            return [Told("none")]
        flow = self.turns.popleft()
        packet = self.remove_oldest(flow)
        if flow in self.queues:
            self.turns.append(flow)
        return [Told("send", number=packet.number)]
