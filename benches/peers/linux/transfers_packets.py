"""Packets of a transfer: what one says, and what a path may do to it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

FIN, SYN, ACK, ECE, CWR, AE = 0x01, 0x02, 0x10, 0x40, 0x80, 0x100
ACCECN = (0xAC, 0xAE)
FIELDS = ("not-ect", "ect1", "ect0", "ce")
"""What a rule may set the ECN field to, by its bits."""


@dataclass
class Packet:
    """A TCP packet, with sequence numbers that count from its connection's SYNs."""

    raw: bytes
    seq: int
    ack: int
    flags: int
    payload: int
    window: int
    ecn: int
    counts: str
    """Kind and counters of the AccECN option, if it has one."""
    blocks: list[tuple[int, int]] = field(default_factory=list)


class Numbers:
    """Makes sequence numbers count from the SYNs."""

    def __init__(self) -> None:
        self.first = [0, 0]

    def read(self, raw: bytes, sender: int) -> Packet | None:
        """What a packet says; none if it is not TCP."""
        if raw[0] >> 4 != 4 or raw[9] != socket.IPPROTO_TCP:
            return None
        at = (raw[0] & 15) * 4
        seq, ack = struct.unpack_from("!II", raw, at + 4)
        end, flags = at + (raw[at + 12] >> 4) * 4, raw[at + 13] | (raw[at + 12] & 1) << 8
        if flags & SYN:
            self.first[sender] = seq
        base = self.first[1 - sender]
        blocks = [((a - base) & 0xFFFFFFFF, (b - base) & 0xFFFFFFFF) for a, b in sack_blocks(raw, at + 20, end)]
        return Packet(
            raw=raw,
            seq=(seq - self.first[sender]) & 0xFFFFFFFF,
            ack=(ack - base) & 0xFFFFFFFF if flags & ACK else 0,
            flags=flags,
            payload=len(raw) - end,
            window=struct.unpack_from("!H", raw, at + 14)[0],
            ecn=raw[1] & 3,
            counts=counts(raw, at + 20, end),
            blocks=blocks,
        )


def options(raw: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Kind, place and length of each TCP option."""
    while start < end and raw[start] != 0:
        length = 1 if raw[start] == 1 else raw[start + 1]
        yield raw[start], start, length
        start += length


def sack_blocks(raw: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The blocks of a SACK option (RFC 2018)."""
    for kind, place, length in options(raw, start, end):
        if kind == 5:
            for at in range(place + 2, place + length, 8):
                yield struct.unpack_from("!II", raw, at)


def counts(raw: bytes, start: int, end: int) -> str:
    """The AccECN option, if there is one: 0 or 1, which is its order, and its counters."""
    for kind, place, length in options(raw, start, end):
        if kind in ACCECN:
            fields = (raw[at : at + 3] for at in range(place + 2, place + length, 3))
            return f"{ACCECN.index(kind)}:" + ".".join(str(int.from_bytes(field)) for field in fields)
    return ""


def ones_sum(words: bytes) -> int:
    """The checksum of the Internet (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(words) // 2}H", words[: len(words) // 2 * 2]))
    total += words[-1] << 8 if len(words) % 2 else 0
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def with_field(raw: bytes, ecn: int) -> bytes:
    """The packet with this ECN field."""
    packet, end = bytearray(raw), (raw[0] & 15) * 4
    packet[1] = packet[1] & ~3 | ecn
    packet[10:12] = b"\0\0"
    packet[10:12] = struct.pack("!H", ones_sum(packet[:end]))
    return bytes(packet)


def with_mark(raw: bytes) -> bytes:
    """The packet with CE, if it is ECN-capable."""
    return with_field(raw, 3) if raw[1] & 3 else raw


def without_counts(raw: bytes, only_zeroed: bool) -> bytes:
    """The packet with an AccECN option whose counters are zero, or without one."""
    packet, at = bytearray(raw), (raw[0] & 15) * 4
    for kind, place, length in options(raw, at + 20, at + (raw[at + 12] >> 4) * 4):
        if kind in ACCECN and only_zeroed:
            packet[place + 2 : place + length] = bytes(length - 2)
        elif kind in ACCECN:
            packet[place : place + length] = b"\1" * length
    packet[at + 16 : at + 18] = b"\0\0"
    pseudo = raw[12:20] + struct.pack("!HH", socket.IPPROTO_TCP, len(raw) - at)
    packet[at + 16 : at + 18] = struct.pack("!H", ones_sum(pseudo + bytes(packet[at:])))
    return bytes(packet)


def changed(raw: bytes, do: str) -> bytes:
    """The packet after what the path does to it."""
    if do == "mark":
        return with_mark(raw)
    if do in FIELDS:
        return with_field(raw, FIELDS.index(do))
    return without_counts(raw, do == "zero") if do in ("strip", "zero") else raw
