"""CAKE: a shaper, a queue for each flow, in turns, and COBALT on each.

Source: Linux net/sched/sch_cake.c; Hoeiland-Joergensen, Taht and Morton 2018.

The packets here have no codepoints, no addresses and nothing acknowledged: all are best effort, so that one tin is in
use, each flow is between hosts of its own, so that no turn is shortened, and the ACK filter finds nothing. There remain

- the shaper: a packet may go once the clock has been reached, or a second one that runs at two thirds of the rate; both
  advance by the time of what goes, framing included, and start from now when a packet comes to an empty CAKE and the
  clock lies behind;
- turns of a quantum, framed bytes: sparse flows first, and one decaying flow before all at each request. A flow without
  credit joins the old ones with another quantum. One found empty decays while its COBALT is not at rest;
- the limit: the queue with the most bytes loses its head until the limit is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from aqmlab.oracle.cobalt import Cobalt
from aqmlab.oracle.frame import Discipline, Law, Packet, Told, Uniform
from aqmlab.oracle.parameters import Length, Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "limit": "",
    "bandwidth": "",
    "rtt": "100ms",
    "target": "",
    "isolation": "triple-isolate",
    "diffserv": "diffserv3",
    "framing": "noatm",
    "overhead": 0,
    "mpu": 0,
}

MTU = 1514
PACKETS = 10240


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """CAKE; the link's rate does not matter to it."""
    parameters = Parameters(DEFAULTS, given)
    bandwidth = parameters.rate_bps("bandwidth") if parameters.has("bandwidth") else None
    return Cake(parameters, bandwidth, uniform)


class Flow:
    """A flow's queue."""

    def __init__(self, law: Cobalt) -> None:
        self.law = law
        self.held: deque[Packet] = deque()
        self.waiting = Waiting()
        self.credit = 0
        self.state = "none"  # or "listed", or "decaying": empty, but its law is not at rest


class Cake(Discipline):
    """The discipline."""

    def __init__(self, parameters: Parameters, bandwidth_bps: int | None, uniform: Uniform) -> None:
        rtt_ns = parameters.time_ns("rtt")
        super().__init__(
            Law(),
            parameters.length("limit") if parameters.has("limit") else default_limit(bandwidth_bps, rtt_ns),
        )
        self.bandwidth_bps = bandwidth_bps
        self.framing = parameters.word("framing")
        self.overhead = int(parameters.number("overhead"))
        self.mpu = int(parameters.number("mpu"))
        self.is_flowblind = parameters.word("isolation") == "flowblind"
        self.uniform = uniform
        # cake_set_rate, for the best-effort tin; in diffserv8 that is the third, of 49/64 of the rate.
        tin_bps = bandwidth_bps
        if tin_bps is not None and parameters.word("diffserv") == "diffserv8":
            tin_bps = tin_bps * 49 // 64
        target_ns = parameters.time_ns("target") if parameters.has("target") else rtt_ns // 20
        self.mtu_ns = 0 if tin_bps is None else MTU * 8 * 10**9 // tin_bps
        self.target_ns = max(self.mtu_ns * 3 // 2, target_ns)
        self.interval_ns = max(rtt_ns + self.target_ns - target_ns, 2 * self.target_ns)
        self.quantum = MTU if tin_bps is None else max(300, min(MTU, tin_bps // 8 >> 12))

        self.flows: dict[int, Flow] = {}
        self.new: deque[Flow] = deque()
        self.old: deque[Flow] = deque()
        self.decaying: deque[Flow] = deque()
        self.next_ns = 0
        self.failsafe_ns = 0

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Offers a packet; what is told of it and of those that make room."""
        packet.arrived_ns = now_ns
        if self.waiting.packets == 0 and self.next_ns < now_ns:
            self.next_ns = now_ns
            self.failsafe_ns = now_ns
        flow = self._flow_of(packet)
        flow.held.append(packet)
        for waiting in (flow.waiting, self.waiting):
            waiting.packets += 1
            waiting.bytes += packet.size
        if flow.state != "listed":
            if flow.state == "decaying":
                self.decaying.remove(flow)
            flow.state = "listed"
            flow.credit = self.quantum
            self.new.append(flow)
        told = [Told("accept", number=packet.number)]
        while (self.waiting.bytes if self.limit.in_bytes else self.waiting.packets) > self.limit.amount:
            longest = max(self.flows.values(), key=lambda one: one.waiting.bytes)
            lost = self._pull(longest)
            assert lost is not None
            longest.law.lost_at_limit(now_ns)
            told.append(Told("drop", "tail", lost.number))
        return told

    def take(self, now_ns: int) -> list[Told]:
        """The link asks for a packet; what is told."""
        told: list[Told] = []
        is_first = True
        while self.waiting.packets > 0:
            if self.next_ns > now_ns and self.failsafe_ns > now_ns:
                break
            chosen = self._chosen_list(is_first)
            is_first = False
            flow = chosen[0]
            if flow.credit <= 0:
                flow.credit += self.quantum
                self.old.append(chosen.popleft())
                continue
            lost, packet = self._dequeue(flow, now_ns)
            told += lost
            if packet is None:
                chosen.popleft()
                law = flow.law
                if law.blue > 0.0 or law.count > 0 or now_ns < law.drop_next_ns:
                    flow.state = "decaying"
                    self.decaying.append(flow)
                else:
                    flow.state = "none"
                continue
            flow.credit -= self.framed(packet.size)
            self._charge(packet)
            return [*told, Told("send", number=packet.number)]
        return [*told, Told("none")]

    def framed(self, size: int) -> int:
        """Bytes that a packet takes on the link that is shaped for (cake_calc_overhead)."""
        size = max(size + self.overhead, self.mpu)
        if self.framing == "atm":
            return (size + 47) // 48 * 53
        return size + (size + 63) // 64 if self.framing == "ptm" else size

    def _chosen_list(self, is_first: bool) -> deque[Flow]:
        if is_first and self.decaying:
            return self.decaying
        return self.new or self.old or self.decaying

    def _dequeue(self, flow: Flow, now_ns: int) -> tuple[list[Told], Packet | None]:
        return flow.law.dequeue(lambda: self._pull(flow), lambda: flow.waiting.packets, now_ns)

    def _charge(self, packet: Packet) -> None:
        if self.bandwidth_bps is not None:
            time_ns = self.framed(packet.size) * 8 * 10**9 // self.bandwidth_bps
            self.next_ns += time_ns
            self.failsafe_ns += time_ns + time_ns // 2

    def _flow_of(self, packet: Packet) -> Flow:
        key = 0 if self.is_flowblind else packet.flow
        if key not in self.flows:
            law = Cobalt(self.target_ns, self.interval_ns, self.mtu_ns, True, self.uniform)
            self.flows[key] = Flow(law)
        return self.flows[key]

    def _pull(self, flow: Flow) -> Packet | None:
        if not flow.held:
            return None
        packet = flow.held.popleft()
        for waiting in (flow.waiting, self.waiting):
            waiting.packets -= 1
            waiting.bytes -= packet.size
        return packet


def default_limit(bandwidth_bps: int | None, rtt_ns: int) -> Length:
    """cake_reconfigure: what is sent in four ``rtt``, 4 MiB at least, at most ``PACKETS`` full packets."""
    largest = PACKETS * MTU
    if bandwidth_bps is None:
        return Length(largest, True)
    return Length(min(largest, max(4 << 20, bandwidth_bps // 8 * rtt_ns * 4 // 10**9)), True)
