"""DualPI2, set up without tc: that of iproute2 before 6.17 knows the discipline, but none of its options.

The options are those of tc-dualpi2(8), in its words: `dualpi2 limit 1000 target 15ms step_thresh 5p drop_enqueue`. They
are attributes of an rtnetlink message (linux/pkt_sched.h, TCA_DUALPI2_*): 32 or 8 bits each.
"""

from __future__ import annotations

import re
import socket
import struct

from adaptive import attribute

RTM_NEWQDISC, RTM_GETQDISC = 36, 38
NLM_F_REQUEST, NLM_F_ACK, NLM_F_ECHO, NLM_F_CREATE = 1, 4, 8, 0x400
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
NESTED = 0x8000
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP = 1, 3, 4
TCA_LIMIT, TCA_MEMORY_LIMIT, TCA_TARGET, TCA_TUPDATE, TCA_ALPHA, TCA_BETA = range(1, 7)
TCA_STEP_PACKETS, TCA_STEP_US, TCA_MIN_QLEN_STEP, TCA_COUPLING = range(7, 11)
TCA_DROP_OVERLOAD, TCA_DROP_EARLY, TCA_CLASSIC_PROTECTION, TCA_ECN_MASK, TCA_SPLIT_GSO = range(11, 16)

_FLAGS = {
    "drop_on_overload": (TCA_DROP_OVERLOAD, 1),
    "overflow": (TCA_DROP_OVERLOAD, 0),
    "drop_enqueue": (TCA_DROP_EARLY, 1),
    "drop_dequeue": (TCA_DROP_EARLY, 0),
    "l4s_ect": (TCA_ECN_MASK, 1),
    "any_ect": (TCA_ECN_MASK, 3),
    "split_gso": (TCA_SPLIT_GSO, 1),
    "no_split_gso": (TCA_SPLIT_GSO, 0),
}
_COUNTS = {
    "limit": (TCA_LIMIT, "=I"),
    "memlimit": (TCA_MEMORY_LIMIT, "=I"),
    "min_qlen_step": (TCA_MIN_QLEN_STEP, "=I"),
    "coupling_factor": (TCA_COUPLING, "=B"),
    "classic_protection": (TCA_CLASSIC_PROTECTION, "=B"),
}
_TIMES = {"target": TCA_TARGET, "tupdate": TCA_TUPDATE}
_GAINS = {"alpha": TCA_ALPHA, "beta": TCA_BETA}
_GAIN_STEPS = 256
"""Of a hertz."""

XSTATS = ("prob", "delay_c", "delay_l", "packets_in_c", "packets_in_l", "maxq", "ecn_mark", "step_marks", "credit")
"""The first of the discipline's own counters (struct tc_dualpi2_xstats), 32 bits each."""


def is_one(words: str) -> bool:
    """Whether a line of `tc qdisc add` makes a DualPI2."""
    return " dualpi2" in words and words.startswith("tc qdisc add ")


def add(words: str) -> None:
    """Does what `tc qdisc add dev DEV parent P:N handle H: dualpi2 ...` says, in the namespace of this process."""
    place, _, options = words.partition(" dualpi2")
    told = place.split()
    device, handle = told[told.index("dev") + 1], told[told.index("handle") + 1]
    parent = 0xFFFFFFFF if "root" in told else _handle(told[told.index("parent") + 1])
    given = b"".join(attribute(kind, value) for kind, value in attributes(options))
    # An attribute at least must be there.
    given = given or attribute(TCA_COUPLING, b"\2")
    body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(device), _handle(handle), parent, 0)
    body += attribute(TCA_KIND, b"dualpi2\0") + attribute(TCA_OPTIONS | NESTED, given)
    answer = _ask(RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, body)
    if error := struct.unpack_from("=i", answer, 16)[0]:
        raise SystemExit(f"{words}: the kernel says {error}")


def attributes(options: str) -> list[tuple[int, bytes]]:
    """The attributes that words of tc-dualpi2(8) stand for."""
    found: list[tuple[int, bytes]] = []
    words = iter(options.split())
    for word in words:
        if word in _FLAGS:
            kind, value = _FLAGS[word]
            found.append((kind, struct.pack("=B", value)))
            continue
        value_of = next(words)
        if word in _COUNTS:
            kind, form = _COUNTS[word]
            found.append((kind, struct.pack(form, int(value_of.rstrip("p%")))))
        elif word in _TIMES:
            found.append((_TIMES[word], struct.pack("=I", _us(value_of))))
        elif word in _GAINS:
            found.append((_GAINS[word], struct.pack("=I", round(float(value_of) * _GAIN_STEPS))))
        elif word == "step_thresh" and value_of.endswith("p"):
            found.append((TCA_STEP_PACKETS, struct.pack("=I", int(value_of[:-1]))))
        elif word == "step_thresh":
            found.append((TCA_STEP_US, struct.pack("=I", _us(value_of))))
        else:
            raise SystemExit(f"dualpi2 {word}: expected an option of tc-dualpi2(8)")
    return found


def stats(device: str, handle: str = "10:") -> dict[str, int | str]:
    """What `tc -s -j qdisc show` says of the discipline, under the same names."""
    body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(device), _handle(handle), 0, 0)
    data = _ask(RTM_GETQDISC, NLM_F_REQUEST | NLM_F_ECHO, body)
    parts = dict(_parts(dict(_parts(data[36:]))[TCA_STATS2]))
    size, packets = struct.unpack_from("=QI", parts[TCA_STATS_BASIC])
    names = ("qlen", "backlog", "drops", "requeues", "overlimits")
    queue = dict(zip(names, struct.unpack_from("=5I", parts[TCA_STATS_QUEUE]), strict=True))
    # The last one is signed.
    own = struct.unpack_from(f"={len(XSTATS) - 1}Ii", parts[TCA_STATS_APP])
    told = dict(zip(XSTATS, own, strict=True))
    return {"kind": "dualpi2", "handle": handle, "bytes": size, "packets": packets, **queue, **told}


def _parts(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found.append((kind & 0x3FFF, data[4:length]))
        data = data[(length + 3) & ~3 :]
    return found


def _ask(kind: int, flags: int, body: bytes) -> bytes:
    head = struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(head + body)
        return kernel.recv(65_536)


def _handle(text: str) -> int:
    major, _, minor = text.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


def _us(text: str) -> int:
    number, unit = re.fullmatch(r"([0-9.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    return round(float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit])
