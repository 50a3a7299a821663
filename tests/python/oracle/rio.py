"""RIO: two REDs on one queue; what a flow sends beyond its profile is tagged OUT, and lost first.

Source: Clark and Fang 1998. IN packets are judged by the average queue of IN packets, sampled at IN arrivals; OUT
packets by the average of the whole queue, sampled at all arrivals (coupled), or by that of OUT packets, sampled at OUT
arrivals (decoupled, RIO-D).

The tags come from a time sliding window for each flow, ``window`` long, that begins at the profile R_T:

    rate := (rate window + size) / (window + time since the last packet)

and a packet is OUT with probability (rate - R_T) / rate. A flow that was silent for ten windows is new.

Readings: the link's idle time ends with any arrival. Both averages have then decayed for that time, and in place of
this arrival's sample, as RED's does. Meters see what the limit refuses, and draw; so do the averages.

Dialects ``ns2`` and ``ns2_decoupled``: the two REDs of ns-2.35's Diffserv module (diffserv/dsredq.cc, RIO-C and RIO-D),
which are told from the above by :class:`AsDsred`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from oracle import red
from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Parameters, Waiting, Written

COMMON: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "dialect": "coupled",
    "min_in": "40p",
    "max_in": "70p",
    "probability_in": 0.02,
    "min_out": "10p",
    "max_out": "30p",
    "probability_out": 0.2,
    "wq": 0.002,
    **{name: red.DEFAULTS[name] for name in ("gentle", "mode", "mean_packet", "wait", "mark_until", "mark_p")},
}
DEFAULTS: dict[str, Written] = {**COMMON, "profile": "", "window": "1s"}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """RIO before a link of ``rate_bps``."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Rio(parameters, rate_bps, uniform), parameters.length("limit"))


class TwoReds(Law):
    """Two REDs on one queue, for packets that ``is_in`` tells apart."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        self.is_coupled = parameters.word("dialect") == "coupled"
        self.uniform = uniform
        self.ns2 = AsDsred(parameters, rate_bps) if parameters.word("dialect").startswith("ns2") else None
        self.for_in = _red(parameters, "in", rate_bps, uniform)
        self.for_out = _red(parameters, "out", rate_bps, uniform)
        self.waiting_in = Waiting()
        self.in_numbers: set[int] = set()

    def is_in(self, packet: Packet, now_ns: int) -> bool:
        """Tags an arriving packet."""
        raise NotImplementedError

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Tags, samples and judges."""
        is_in = self.is_in(packet, now_ns)
        if self.ns2 is not None:
            return self.ns2.arrival(packet, is_in, now_ns, self.uniform)
        self.sample(is_in, waiting, now_ns)
        half = self.for_in if is_in else self.for_out
        cause = half.judge(packet)
        signal = None if cause is None else half.signal(packet, cause)
        if is_in and (signal is None or signal.word == "mark"):
            self.in_numbers.add(packet.number)
            self.waiting_in.packets += 1
            self.waiting_in.bytes += packet.size
        return signal

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """As RED: a sample, and the spacing starts again."""
        is_in = self.is_in(packet, now_ns)
        if self.ns2 is not None:
            return  # The first thing that redQueue::enque asks is whether there is room.
        self.sample(is_in, waiting, now_ns)
        half = self.for_in if is_in else self.for_out
        half.count = -1 if half.avg < half.min else 0

    def departure(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Keeps count of the IN packets that wait."""
        if self.ns2 is not None:
            self.ns2.departure(packet, now_ns)
            return None
        if packet.number in self.in_numbers:
            self.in_numbers.remove(packet.number)
            self.waiting_in.packets -= 1
            self.waiting_in.bytes -= packet.size
        return None

    def vain_request(self, now_ns: int) -> None:
        """The link is idle."""
        self.for_in.vain_request(now_ns)
        self.for_out.vain_request(now_ns)

    def sample(self, is_in: bool, waiting: Waiting, now_ns: int) -> None:
        """Samples the averages that this arrival concerns, or ends the idle time of both."""
        if self.for_in.idle_since_ns is not None:
            self.for_in.sample(waiting, now_ns)
            self.for_out.sample(waiting, now_ns)
            return
        if is_in:
            self.for_in.sample(self.waiting_in, now_ns)
        if self.is_coupled:
            self.for_out.sample(waiting, now_ns)
        elif not is_in:
            bytes_out = waiting.bytes - self.waiting_in.bytes
            self.for_out.sample(Waiting(waiting.packets - self.waiting_in.packets, bytes_out), now_ns)

    def probability(self) -> float:
        """That of OUT packets."""
        if self.ns2 is not None:
            return self.ns2.out.probability()
        return self.for_out.probability()

    def control(self) -> float:
        """The average by which OUT packets are judged."""
        return self.for_out.avg if self.ns2 is None else self.ns2.out.avg


@dataclass
class Precedence:
    """A virtual queue of dsredq.cc."""

    min: float
    max: float
    max_p: float
    avg: float = 0.0
    count: int = -1
    waiting: int = 0
    idle_since_ns: int | None = 0

    def probability(self) -> float:
        """pb; 0 not above min, 1 above max."""
        if self.avg <= self.min:
            return 0.0
        if self.avg > self.max:
            return 1.0
        return self.max_p * (self.avg - self.min) / (self.max - self.min)

    def judge(self, uniform: Uniform) -> str | None:
        """The end of redQueue::enque."""
        if self.avg <= self.min:
            self.count = -1
            return None
        if self.avg > self.max:
            self.count = 0
            return "forced"
        self.count += 1
        p = self.probability()
        left = 1.0 - self.count * p
        # Of p / left a negative one is never reached by a draw, an infinite one always.
        if left < 0.0 or not chance(p / left if left > 0.0 else 1.0, uniform):
            return None
        self.count = 0
        return "early"


class AsDsred:
    """diffserv/dsredq.cc with two precedences, IN and OUT.

    In RIO-C an IN packet samples both averages, and that of OUT is of all packets; in RIO-D each class has its own. A
    class turns idle when a packet that its average counts begins to be sent and none such is left, and busy when one
    is accepted. While it is idle a sample is preceded by a decay for every whole packet that could have been sent.
    """

    def __init__(self, parameters: Parameters, rate_bps: int) -> None:
        self.is_coupled = parameters.word("dialect") == "ns2"
        self.wq = parameters.number("wq")
        self.marks = parameters.flag("ecn")
        self.slot = Fraction(8 * parameters.size("mean_packet") * 10**9, rate_bps)
        self.inside, self.out = (
            Precedence(
                parameters.length(f"min_{half}").amount,
                parameters.length(f"max_{half}").amount,
                parameters.number(f"probability_{half}"),
            )
            for half in ("in", "out")
        )
        self.in_numbers: set[int] = set()

    def arrival(self, packet: Packet, is_in: bool, now_ns: int, uniform: Uniform) -> Signal | None:
        """Samples, judges by the packet's own class, and counts it if it stays."""
        own = self.inside if is_in else self.out
        for half in self.counting(is_in):
            if half.idle_since_ns is not None:
                half.avg *= (1.0 - self.wq) ** int((now_ns - half.idle_since_ns) / self.slot)
            half.avg = (1.0 - self.wq) * half.avg + self.wq * self.length(half)
        cause = own.judge(uniform)
        if cause is not None and not (self.marks and packet.has_ect):
            return Signal("drop", cause)
        own.waiting += 1
        if is_in:
            self.in_numbers.add(packet.number)
        for half in self.counting(is_in):
            half.idle_since_ns = None
        return None if cause is None else Signal("mark", cause)

    def departure(self, packet: Packet, now_ns: int) -> None:
        """Those that count the packet are idle from here on if they have no other."""
        is_in = packet.number in self.in_numbers
        self.in_numbers.discard(packet.number)
        (self.inside if is_in else self.out).waiting -= 1
        for half in self.counting(is_in):
            if self.length(half) == 0:
                half.idle_since_ns = now_ns

    def counting(self, is_in: bool) -> list[Precedence]:
        """The classes whose averages count an IN or an OUT packet."""
        if not is_in:
            return [self.out]
        return [self.inside, self.out] if self.is_coupled else [self.inside]

    def length(self, half: Precedence) -> int:
        """The packets that the average of a class counts."""
        return half.waiting + (self.inside.waiting if self.is_coupled and half is self.out else 0)


def _red(parameters: Parameters, half: str, rate_bps: int, uniform: Uniform) -> red.Red:
    given: dict[str, Written] = {
        "min": parameters.length(f"min_{half}"),
        "max": parameters.length(f"max_{half}"),
        "probability": parameters.number(f"probability_{half}"),
        "wq": parameters.number("wq"),
        "gentle": parameters.flag("gentle"),
        "mode": parameters.word("mode"),
        "mean_packet": parameters.word("mean_packet"),
        "mark_p": parameters.number("mark_p"),
        "ecn": parameters.flag("ecn"),
    }
    if parameters.has("wait"):
        given["wait"] = parameters.flag("wait")
    if parameters.has("mark_until"):
        given["mark_until"] = parameters.word("mark_until")
    return red.Red(Parameters({**red.DEFAULTS, **red.computed(red.DEFAULTS, given)}, given), rate_bps, uniform)


@dataclass
class Meter:
    """A flow's time sliding window."""

    rate: float
    last_ns: int


class Rio(TwoReds):
    """The law, with meters that tag."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        super().__init__(parameters, rate_bps, uniform)
        self.window_ns = parameters.time_ns("window")
        rate = parameters.bits_per_second("profile") if parameters.has("profile") else rate_bps / 100.0
        self.profile = rate / 8e9  # bytes a nanosecond
        self.meters: dict[int, Meter] = {}

    def is_in(self, packet: Packet, now_ns: int) -> bool:
        """By chance, with the flow's excess over its profile."""
        meter = self.meters.get(packet.flow)
        if meter is None or now_ns - meter.last_ns >= 10 * self.window_ns:
            meter = self.meters[packet.flow] = Meter(self.profile, now_ns)
        meter.rate = (meter.rate * self.window_ns + packet.size) / (self.window_ns + now_ns - meter.last_ns)
        meter.last_ns = now_ns
        return not chance(1.0 - self.profile / meter.rate, self.uniform)
