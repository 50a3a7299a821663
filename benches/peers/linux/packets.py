"""Timed packets for a queue discipline of a Linux kernel, and the case that asks for them."""

from __future__ import annotations

import random
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Phase:
    """Packets that arrive for a while in one manner, or nothing at all."""

    seconds: float
    load: float = 0.0
    """Of the rate; 0 is a quiet gap."""
    sizes: dict[int, float] = field(default_factory=lambda: {1500: 1.0})
    """Sizes of IP packets and how often they are."""
    flows: dict[int, float] = field(default_factory=lambda: {0: 1.0})
    """Flows and how often they send."""
    ecn: dict[int, float] = field(default_factory=lambda: {0: 1.0})
    """ECN fields and how often they are."""
    dscp: dict[int, float] = field(default_factory=lambda: {0: 1.0})
    """Differentiated Services codepoints and how often they are."""
    burst: int = 1
    """Packets that arrive one right behind the other: 256 ns to 2 us apart."""
    manner: str = "poisson"
    """`poisson` or `even`: the gaps between bursts."""


@dataclass(frozen=True)
class Case:
    """A discipline and the packets that it gets."""

    name: str
    """Begins with the name of the discipline and a hyphen."""
    qdisc: str
    """As in `tc qdisc add ... handle 10: QDISC`."""
    ours: dict[str, Any]
    """The same as `[link.qdisc]` of a scenario."""
    rate: str
    """Of HTB, in units of tc, or of the discipline's own shaper."""
    phases: tuple[Phase, ...]
    seed: int = 1
    shaped: bool = True
    """Below HTB; otherwise the discipline is the device's own and shapes itself."""
    more: tuple[str, ...] = ()
    """Further words for `tc`, DEV standing for the device: classes, and what is in them."""
    priority: bool = True
    """Flow n has the priority 10:n+1, which names its queue; otherwise it is told by its header alone."""
    headers: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Addresses and ports of flows where they matter: src, dst, sport, dport, proto; acks: see `acknowledgement`."""
    adapting: tuple[int, int, int, int, float] | None = None
    """For adaptive RED, which tc does not start: limit, min, max, the weight's logarithm and the probability."""
    drain_s: float = 0.0
    """Time for what waits in the end to leave; as a rule as long as the packets of all phases take."""


@dataclass(frozen=True)
class Sent:
    """One packet to send."""

    at_ns: int
    size: int
    flow: int
    ecn: int
    dscp: int


def rate_bps(text: str) -> int:
    """Bits per second of a rate as tc writes it."""
    number, unit = re.fullmatch(r"([0-9.]+)([kmg]?bit)", text).groups()  # type: ignore[union-attr]
    return round(float(number) * {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}[unit])


def packets(case: Case) -> Iterator[Sent]:
    """The packets of a case, always the same."""
    draw = random.Random(case.seed)

    def pick(shares: dict[int, float]) -> int:
        return draw.choices(list(shares), list(shares.values()))[0]

    start = 0.0
    for phase in case.phases:
        at, start = start, start + phase.seconds
        if phase.load == 0:
            continue
        mean = sum(size * share for size, share in phase.sizes.items()) / sum(phase.sizes.values())
        gap = phase.burst * mean * 8 / (rate_bps(case.rate) * phase.load)
        while True:
            at += gap if phase.manner == "even" else draw.expovariate(1 / gap)
            if at >= start:
                break
            for _ in range(phase.burst):
                yield Sent(round(at * 1e9), pick(phase.sizes), pick(phase.flows), pick(phase.ecn), pick(phase.dscp))


def frame(number: int, packet: Sent, header: dict[str, Any]) -> bytes:
    """An IPv4 packet, numbered in its identification field."""
    src, dst = header.get("src", f"10.1.{packet.flow >> 8}.{packet.flow & 255}"), header.get("dst", "10.2.0.1")
    proto = {"udp": 17, "tcp": 6}[header.get("proto", "udp")]
    tos = packet.dscp << 2 | packet.ecn
    if "acks" in header:
        return acknowledgement(number, packet, {**header, "src": src, "dst": dst, "tos": tos})
    parts = [0x4500 | tos, packet.size, number, 0, 64 << 8 | proto, 0, socket.inet_aton(src), socket.inet_aton(dst)]
    head = struct.pack("!6H4s4s", *parts)
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
    ports = struct.pack("!HHHH", header.get("sport", 1000 + packet.flow), header.get("dport", 9), packet.size - 20, 0)
    return (head + ports).ljust(packet.size, b"\0")[: packet.size]


def acknowledgement(number: int, packet: Sent, header: dict[str, Any]) -> bytes:
    """A TCP segment with the ACK flag; what is beyond 40 bytes and the option is data.

    `header["acks"]` is [first, step, repeat, echo, sack]. The packet's number, from 0, over `repeat`, rounded down,
    times `step` and from `first` on is acknowledged, so that `repeat` packets say the same. ECE is set in every other
    `echo` packets, 0 never. Of `sack` packets the last has a block of SACK, 0 none: 1000 bytes from 1000 above what is
    acknowledged.
    """
    first, step, repeat, echo, sack = header["acks"]
    acked = (first + number // repeat * step) % (1 << 32)
    option = b""
    if sack and number % sack == sack - 1:
        option = struct.pack("!BBBBII", 1, 1, 5, 10, (acked + 1000) % (1 << 32), (acked + 2000) % (1 << 32))
    flags = 0x10 | (0x40 if echo and number // echo % 2 else 0)
    parts = [0x4500 | header["tos"], packet.size, number, 0, 64 << 8 | 6, 0]
    head = struct.pack("!6H4s4s", *parts, socket.inet_aton(header["src"]), socket.inet_aton(header["dst"]))
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
    ports = (header.get("sport", 1000 + packet.flow), header.get("dport", 9))
    tcp = struct.pack("!HHIIBBHHH", *ports, 1, acked, (5 + len(option) // 4) << 4, flags, 65535, 0, 0) + option
    return (head + tcp).ljust(packet.size, b"\0")[: packet.size]
