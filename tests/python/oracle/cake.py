"""CAKE: a shaper, a queue for each flow, in turns, and COBALT on each.

Source: Linux net/sched/sch_cake.c; Hoeiland-Joergensen, Taht and Morton 2018.

The packets here have no codepoints, no addresses and nothing acknowledged: all are best effort, so that one tin is in
use, each flow is between hosts of its own, so that no turn is shortened, and the ACK filter finds nothing. There remain

- the shaper: a packet may go once the clock has been reached, or a second one that runs at two thirds of the rate; both
  advance by the time of what goes, framing included, and start from now when a packet comes to an empty CAKE and the
  clock lies behind. With ``ingress`` what is lost is charged to the first clock and to its flow's turn, which then
  ends, and two full packets of each bulk flow may stand;
- turns of a quantum, framed bytes: sparse flows first, and one decaying flow before all at each request. A flow without
  credit joins the old ones with another quantum. One found empty decays while its COBALT is not at rest;
- the limit: the queue with the most bytes loses its head until the limit is kept.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from fractions import Fraction

from oracle.cobalt import Cobalt
from oracle.frame import Discipline, Law, Packet, Told, Uniform
from oracle.parameters import Length, Parameters, Waiting, Written
from oracle.stream import flow_hash

DEFAULTS: dict[str, Written] = {
    "limit": "",
    "ecn": True,
    "bandwidth": "",
    "rtt_keyword": "internet",
    "rtt": "",
    "target": "",
    "mtu": "1514b",
    "isolation": "triple-isolate",
    "diffserv": "diffserv3",
    "overhead_keyword": "raw",
    "framing": "",
    "overhead": "",
    "mpu": "",
    "ingress": False,
    "ack_filter": "off",
    "dialect": "paper",
}

QUANTUM = 1514
PACKETS = 10240
PLACES = 1024
WAYS = 8

RTTS = {
    "datacentre": "100us",
    "lan": "1ms",
    "metro": "10ms",
    "regional": "30ms",
    "internet": "100ms",
    "oceanic": "300ms",
    "satellite": "1s",
    "interplanetary": "1000s",
}
OVERHEADS: dict[str, tuple[int, int, str]] = {
    "raw": (0, 0, "noatm"),
    "conservative": (48, 0, "atm"),
    "ethernet": (38, 84, "noatm"),
    "docsis": (18, 64, "noatm"),
    "pppoe-ptm": (30, 0, "ptm"),
    "bridged-ptm": (22, 0, "ptm"),
    "pppoa-vcmux": (10, 0, "atm"),
    "pppoa-llc": (14, 0, "atm"),
    "pppoe-vcmux": (32, 0, "atm"),
    "pppoe-llcsnap": (40, 0, "atm"),
    "bridged-vcmux": (24, 0, "atm"),
    "bridged-llcsnap": (32, 0, "atm"),
    "ipoa-vcmux": (8, 0, "atm"),
    "ipoa-llcsnap": (16, 0, "atm"),
}
"""tc-cake(8): overhead, mpu, framing."""


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """CAKE; the link's rate does not matter to it."""
    chosen = Parameters(DEFAULTS, given)
    overhead, mpu, framing = OVERHEADS[chosen.word("overhead_keyword")]
    words: dict[str, Written] = {"overhead": overhead, "mpu": mpu, "framing": framing}
    parameters = Parameters(DEFAULTS | words | {"rtt": RTTS[chosen.word("rtt_keyword")]}, given)
    bandwidth = parameters.rate_bps("bandwidth") if parameters.has("bandwidth") else None
    return Cake(parameters, bandwidth, uniform)


class Flow:
    """A flow's queue."""

    def __init__(self, law: Cobalt) -> None:
        self.law = law
        self.held: deque[Packet] = deque()
        self.waiting = Waiting()
        self.credit = 0
        # "sparse" or "bulk"; "waiting": ran empty after its turn; "decaying": empty, but its law is not at rest.
        self.state = "none"


class Bulk(Law):
    """What CAKE shows of itself: how many flows are bulk."""

    def __init__(self, flows: dict[int, Flow]) -> None:
        self.flows = flows

    def flows_count(self) -> int:
        """How many."""
        return sum(flow.state == "bulk" for flow in self.flows.values())

    def control(self) -> float:
        """The same."""
        return self.flows_count()


class Cake(Discipline):
    """The discipline."""

    def __init__(self, parameters: Parameters, bandwidth_bps: int | None, uniform: Uniform) -> None:
        rtt_ns = parameters.time_ns("rtt")
        mtu = parameters.size("mtu")
        self.flows: dict[int, Flow] = {}
        self.bulk = bulk = Bulk(self.flows)
        super().__init__(
            bulk,
            parameters.length("limit") if parameters.has("limit") else default_limit(bandwidth_bps, rtt_ns, mtu),
        )
        self.bandwidth_bps = bandwidth_bps
        self.framing = parameters.word("framing")
        self.overhead = int(parameters.number("overhead"))
        self.mpu = int(parameters.number("mpu"))
        self.is_flowblind = parameters.word("isolation") == "flowblind"
        self.marks = parameters.flag("ecn")
        self.is_ingress = parameters.flag("ingress")
        self.is_linux = parameters.word("dialect") == "linux"
        self.uniform = uniform
        self.salt = uniform.bits()
        self.tags: dict[int, int] = {}
        """Whose queue a place is, or was last."""
        # cake_set_rate, for the best-effort tin; in diffserv8 that is the third, of 49/64 of the rate.
        tin_rate = None if bandwidth_bps is None else bandwidth_bps // 8
        if tin_rate is not None and parameters.word("diffserv") == "diffserv8":
            tin_rate = tin_rate * 7 // 8 * 7 // 8
        target_ns = parameters.time_ns("target") if parameters.has("target") else max(rtt_ns // 20, 1000)
        self.mtu_ns = 0 if tin_rate is None else math.floor(self.time_ns(mtu, 8 * max(tin_rate, 64)))
        self.target_ns = max(self.mtu_ns * 3 // 2, target_ns)
        self.interval_ns = max(rtt_ns + self.target_ns - target_ns, 2 * self.target_ns)
        self.quantum = QUANTUM if tin_rate is None else max(300, min(QUANTUM, tin_rate >> 12))

        self.new: deque[Flow] = deque()
        self.old: deque[Flow] = deque()
        self.decaying: deque[Flow] = deque()
        self.next_ns: Fraction | int = 0
        self.failsafe_ns: Fraction | int = 0

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
        if flow.state in ("none", "decaying"):
            if flow.state == "decaying":
                self.decaying.remove(flow)
            flow.state = "sparse"
            flow.credit = self.quantum
            self.new.append(flow)
        elif flow.state == "waiting":
            flow.state = "bulk"
        told = [Told("accept", number=packet.number)]
        while (self.waiting.bytes if self.limit.in_bytes else self.waiting.packets) > self.limit.amount:
            most = max(one.waiting.bytes for one in self.flows.values())
            # Of equals it depends on where the hash put them.
            longest = self.flows[
                self.any_of({key: one.held[0] for key, one in self.flows.items() if one.waiting.bytes == most})
            ]
            lost = self._pull(longest)
            assert lost is not None
            longest.law.lost_at_limit(now_ns)
            if self.is_ingress:
                self._charge(lost, False)
            told.append(Told("drop", "tail", lost.number))
        return told

    def take(self, now_ns: int) -> list[Told]:
        """The link asks for a packet; what is told."""
        told: list[Told] = []
        is_first = True
        while self.waiting.packets > 0 and not self._holds_back(now_ns):
            packet = self._serve(is_first, told, now_ns)
            is_first = False
            if packet is not None:
                return [*told, Told("send", number=packet.number)]
        return [*told, Told("none")]

    def _holds_back(self, now_ns: int) -> bool:
        return math.floor(self.next_ns) > now_ns and math.floor(self.failsafe_ns) > now_ns

    def _serve(self, is_first: bool, told: list[Told], now_ns: int) -> Packet | None:
        """The next packet, or None as soon as a flow is found empty; losses and marks are told."""
        while True:
            chosen = self._chosen_list(is_first)
            is_first = False
            flow = chosen[0]
            if flow.credit <= 0:
                if flow.state == "sparse":
                    flow.state = "bulk" if flow.held else "waiting"
                flow.credit += self.quantum
                self.old.append(chosen.popleft())
                continue
            bulk_flows = self.bulk.flows_count() if self.is_ingress else 0
            packet = self._pull(flow)
            if packet is None:
                self._retire(chosen.popleft(), now_ns)
                return None
            mark, loss = flow.law.judge(packet, now_ns, bulk_flows)
            is_lost = loss is not None and bool(flow.held)
            if not is_lost or self.is_ingress:
                flow.credit -= self.framed(packet.size)
                self._charge(packet, not is_lost)
            if loss is not None and is_lost:
                told.append(loss)
                continue
            if mark is not None:
                told.append(mark)
            return packet

    def _retire(self, flow: Flow, now_ns: int) -> None:
        law = flow.law
        law.found_empty(now_ns)
        flow.state = "none"
        if law.blue > 0.0 or law.count > 0 or now_ns < law.drop_next_ns:
            flow.state = "decaying"
            self.decaying.append(flow)

    def time_ns(self, size: int, bps: int) -> Fraction | int:
        """How long bytes take; in ``linux`` with what 34 bits hold of the time of one (cake_set_rate), cut off."""
        if not self.is_linux:
            return Fraction(size * 8 * 10**9, bps)
        scaled, shift = (10**9 << 34) // max(bps // 8, 64), 34
        while scaled >> 34:
            scaled, shift = scaled >> 1, shift - 1
        return size * scaled >> shift

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

    def _charge(self, packet: Packet, is_sent: bool) -> None:
        if self.bandwidth_bps is not None:
            time_ns = self.time_ns(self.framed(packet.size), self.bandwidth_bps)
            self.next_ns += time_ns
            if is_sent:
                self.failsafe_ns += time_ns + (time_ns // 2 if self.is_linux else Fraction(time_ns) / 2)

    def _place_of(self, flow: int) -> int:
        """cake_hash: the flow's place among ``PLACES``, or in its set of ``WAYS`` the one that is its own, or one
        that nothing waits in, whose COBALT is then taken over as it was left."""
        first = flow_hash(flow, self.salt) % PLACES
        start = first - first % WAYS
        ways = [start + (first + way) % WAYS for way in range(WAYS)]
        mine = [at for at in ways if self.tags.get(at) == flow]
        free = [at for at in ways if at not in self.flows or self.flows[at].state == "none"]
        at = [*mine, *free, first][0]
        self.tags[at] = flow
        return at

    def _flow_of(self, packet: Packet) -> Flow:
        key = 0 if self.is_flowblind else self._place_of(packet.flow)
        if key not in self.flows:
            law = Cobalt(self.target_ns, self.interval_ns, self.mtu_ns, self.marks, self.uniform, self.is_linux)
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


def default_limit(bandwidth_bps: int | None, rtt_ns: int, mtu: int) -> Length:
    """cake_reconfigure: what is sent in four ``rtt``, 4 MiB at least, at most ``PACKETS`` full packets."""
    largest = PACKETS * mtu
    if bandwidth_bps is None:
        return Length(largest, True)
    return Length(min(largest, max(4 << 20, bandwidth_bps * rtt_ns * 4 // (8 * 10**9))), True)
