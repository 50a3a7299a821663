"""FQ: packets leave in the order in which a link would finish them that serves all flows at once.

Source: Demers, Keshav and Shenker 1989; ns-2.35 (queue/fq.cc) for its dialect. The imagined link serves a bit, here a
byte, of each of its flows in a round. A packet starts in the round in which its flow's last one finishes, or in the
present one if that is later, and finishes its size in rounds later; the least finish leaves first, of equals what came
first. A flow is active on the imagined link until the round in which its last packet finishes.

What the imagined link has served is what the real one has sent: a packet at the link's rate from when it was taken, and
all of it when the next is taken.

ns-2: a packet's start is when it comes to the head of its flow, or when the flow's last one finished if that is later;
its finish is its size, in time on the link, times the number of flows that wait, later. That is reckoned anew at each
choice. Of equals what was accepted first leaves, as the page says; in ns-2 the lowest flow's.

At the limit, the arriving packet counted, the flow with the most bytes loses its newest packet, and with it the rounds
that it was promised. Of a tie it is the arriving packet; if that is not of a flow in the tie, the paper does not say,
and any flow of it may lose. A packet that does not fit into an empty buffer is lost alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from oracle.frame import Packet, Told, Uniform
from oracle.parameters import Parameters, Written
from oracle.queues import FlowQueues, told_of

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "dialect": "paper",
}


ROUNDING = Fraction(1, 10**12)
"""Part of a finish, by which it may come out otherwise where numbers are rounded."""


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> FlowQueues:
    """FQ before a link of ``rate_bps``."""
    parameters = Parameters(DEFAULTS, given)
    if parameters.word("dialect") == "ns2":
        return AsNs2(parameters, rate_bps)
    return InRounds(parameters, rate_bps)


class Fq(FlowQueues):
    """Losses at the limit, and the choice of the next packet, for both dialects."""

    def __init__(self, parameters: Parameters, rate_bps: int) -> None:
        super().__init__(parameters.length("limit"))
        self.bytes_per_ns = Fraction(rate_bps, 8 * 10**9)

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Makes room as the paper says, and accepts if that was possible."""
        self.pass_time(now_ns)
        if not self.can_ever_hold(packet):
            return told_of(packet, [packet])
        lost: list[Packet] = []
        while self.would_be_over(packet):
            sizes = {flow: self.bytes_of(flow) for flow in sorted(self.queues)}
            own = sizes.get(packet.flow, 0) + packet.size
            if own >= max(sizes.values(), default=0):
                return told_of(packet, [*lost, packet])
            most = max(sizes.values())
            tied = {flow: self.queues[flow][-1] for flow, size in sizes.items() if size == most}
            victim = self.remove_newest(self.any_of(tied))
            self.forget(victim)
            lost.append(victim)
        is_head = packet.flow not in self.queues
        self.put(packet)
        self.promise(packet, is_head, now_ns)
        return told_of(packet, lost)

    def take(self, now_ns: int) -> list[Told]:
        """The packet of the least finish."""
        self.finish_transmission(now_ns)
        if not self.queues:
            return [Told("none")]
        heads = sorted((self.rank(queue[0]), flow) for flow, queue in self.queues.items())
        least = heads[0][0][0]
        # A tie is not one to who rounds: what is as good as equal may leave in any order.
        tied = {flow: self.queues[flow][0] for (finish, _), flow in heads if finish - least <= ROUNDING * (least + 1)}
        flow = self.any_of(tied)
        packet = self.remove_oldest(flow)
        self.leave(packet, now_ns)
        return [Told("send", number=packet.number)]

    def would_be_over(self, packet: Packet) -> bool:
        """Whether the limit does not allow a packet."""
        more = packet.size if self.limit.in_bytes else 1
        return self.limit.of(self.waiting) + more > self.limit.amount

    def pass_time(self, now_ns: int) -> None:
        """Lets time pass."""

    def finish_transmission(self, now_ns: int) -> None:
        """The link asks: what it was sending is sent."""

    def promise(self, packet: Packet, is_head: bool, now_ns: int) -> None:
        """A packet was accepted."""

    def forget(self, packet: Packet) -> None:
        """A packet that was accepted, the newest of its flow, is lost."""

    def rank(self, packet: Packet) -> tuple[Fraction, int]:
        """What decides which head leaves; the least does."""
        raise NotImplementedError

    def leave(self, packet: Packet, now_ns: int) -> None:
        """A packet was chosen and is out of its queue."""


class InRounds(Fq):
    """The paper's."""

    def __init__(self, parameters: Parameters, rate_bps: int) -> None:
        super().__init__(parameters, rate_bps)
        self.round = Fraction(0)
        self.last_finish: dict[int, Fraction] = {}
        self.promises: dict[int, tuple[Fraction, Fraction | None]] = {}
        """By packet: its finish, and that of its flow before it."""
        self.sending_since_ns = 0
        self.sending = Fraction(0)
        """Size of the packet on the link."""
        self.served = Fraction(0)
        """As much of it as the imagined link has served."""

    def pass_time(self, now_ns: int) -> None:
        """Serves what the link has sent by now."""
        self.serve_up_to(min(self.sending, (now_ns - self.sending_since_ns) * self.bytes_per_ns))

    def finish_transmission(self, now_ns: int) -> None:
        """Serves the packet on the link to its end."""
        self.serve_up_to(self.sending)
        if not self.queues:
            # A busy period is over: no promise is open.
            self.last_finish.clear()

    def promise(self, packet: Packet, is_head: bool, now_ns: int) -> None:
        """Reckons the finish."""
        before = self.last_finish.get(packet.flow)
        start = self.round if before is None else max(self.round, before)
        self.last_finish[packet.flow] = start + packet.size
        self.promises[packet.number] = (start + packet.size, before)

    def forget(self, packet: Packet) -> None:
        """The flow goes on where the lost packet would have."""
        before = self.promises.pop(packet.number)[1]
        if before is None:
            del self.last_finish[packet.flow]
        else:
            self.last_finish[packet.flow] = before

    def rank(self, packet: Packet) -> tuple[Fraction, int]:
        """Finish, then arrival."""
        return self.promises[packet.number][0], packet.number

    def leave(self, packet: Packet, now_ns: int) -> None:
        """The packet is on the link."""
        del self.promises[packet.number]
        self.sending_since_ns = now_ns
        self.sending = Fraction(packet.size)
        self.served = Fraction(0)

    def serve_up_to(self, sent: Fraction) -> None:
        """Serves bytes in rounds: the more slowly, the more flows are active."""
        work = sent - self.served
        self.served = max(sent, self.served)
        while work > 0:
            ends = [finish for finish in self.last_finish.values() if finish > self.round]
            if not ends:
                return
            rounds = min(min(ends) - self.round, work / len(ends))
            self.round += rounds
            work -= rounds * len(ends)


class AsNs2(Fq):
    """fq.cc."""

    def __init__(self, parameters: Parameters, rate_bps: int) -> None:
        super().__init__(parameters, rate_bps)
        self.start: dict[int, Fraction] = {}
        """When the head of a flow starts, in nanoseconds."""
        self.finished: dict[int, Fraction] = {}
        """When the last packet of a flow finished."""

    def promise(self, packet: Packet, is_head: bool, now_ns: int) -> None:
        """A head starts."""
        if is_head:
            self.begin(packet.flow, now_ns)

    def rank(self, packet: Packet) -> tuple[Fraction, int]:
        """The finish as of now, then arrival."""
        return self.finish(packet, len(self.queues)), packet.number

    def leave(self, packet: Packet, now_ns: int) -> None:
        """Keeps the finish; the next packet of the flow starts."""
        waiting = len(self.queues) + (packet.flow not in self.queues)
        self.finished[packet.flow] = self.finish(packet, waiting)
        if packet.flow in self.queues:
            self.begin(packet.flow, now_ns)

    def begin(self, flow: int, now_ns: int) -> None:
        """A packet comes to the head of its flow."""
        self.start[flow] = max(Fraction(now_ns), self.finished.get(flow, Fraction(0)))

    def finish(self, packet: Packet, flows: int) -> Fraction:
        """When a head would finish with so many flows waiting."""
        return self.start[packet.flow] + packet.size / self.bytes_per_ns * flows
