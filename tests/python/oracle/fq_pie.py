"""FQ-PIE: a queue for each flow, in turns, with PIE on each.

Source: Ramakrishnan et al. 2019, Linux net/sched/sch_fq_pie.c, with the turns of FQ-CoDel. An arriving packet beyond
the limit on all queues together is lost; otherwise the PIE of its queue judges it. All PIEs take their steps at once.

Each queue's PIE has random numbers of its own, from a seed: the bits that follow the hash's and one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from oracle import pie
from oracle.fair import FairQueueing, Queue
from oracle.frame import Discipline, Packet, Told, Uniform
from oracle.parameters import Parameters, Written
from oracle.pie import Pie
from oracle.stream import Stream

DEFAULTS: dict[str, Written] = {
    **pie.DEFAULTS,
    "limit": "10240p",
    "flows": 1024,
    "quantum": "1514b",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """FQ-PIE."""
    return FqPie(Parameters(DEFAULTS, given), uniform)


class FqPie(FairQueueing[Pie]):
    """The discipline."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        super().__init__(
            parameters.length("limit"),
            parameters.size("quantum"),
            int(parameters.number("flows")),
            uniform.bits(),
            keeps_new=parameters.word("dialect") != "linux",
        )
        self.parameters = parameters
        self.uniform = uniform
        uniform.bits()  # the engine's first law is none of a queue
        self.seeds: list[int] = []
        self.law.period_ns = Fraction(parameters.time_ns("tupdate"))

    def make_law(self, place: int) -> Pie:
        """Another queue's PIE."""
        while len(self.seeds) <= place:
            self.seeds.append(self.uniform.bits())
        return Pie(self.parameters, Stream(self.seeds[place], "queue"))

    def tick(self, now_ns: int) -> None:
        """A step of each."""
        for queue in self.queues.values():
            queue.law.tick(queue.waiting, now_ns)

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Offers a packet; what is told of it."""
        packet.arrived_ns = now_ns
        queue = self.queue_of(packet)
        if self._is_full(packet):
            queue.law.refusal(packet, queue.waiting, now_ns)
            return [Told("drop", "tail", packet.number)]
        signal = queue.law.arrival(packet, queue.waiting, now_ns)
        if signal is not None and signal.word == "drop":
            return [Told("drop", signal.cause, packet.number)]
        self.append(queue, packet)
        told = [] if signal is None else [Told("mark", signal.cause, packet.number)]
        return [*told, Told("accept", number=packet.number)]

    def dequeue(self, queue: Queue[Pie], now_ns: int) -> tuple[list[Told], Packet | None]:
        """The packet at the head, of which PIE hears."""
        packet = self.pull(queue)
        if packet is not None:
            queue.law.departure(packet, queue.waiting, now_ns)
        return [], packet
