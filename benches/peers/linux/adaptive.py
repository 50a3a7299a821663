"""Adaptive RED, set up without tc.

sch_red.c starts the timer that adapts the probability if TC_RED_ADAPTATIVE is among the flags of TCA_RED_PARMS. tc of
iproute2 6.1 names it in TCA_RED_FLAGS alone: `tc qdisc add ... red ... adaptive` shows `adaptive` and never adapts.
"""

from __future__ import annotations

import socket
import struct

RTM_NEWQDISC, NLM_F_REQUEST, NLM_F_ACK = 36, 1, 4
TCA_KIND, TCA_OPTIONS = 1, 2
TCA_RED_PARMS, TCA_RED_STAB, TCA_RED_MAX_P = 1, 2, 3
TC_RED_ADAPTATIVE = 4
SCELL_LOG = 13


def start(device: str, parent: int, handle: int, limit: int, least: int, most: int, weight_log: int, p: float) -> None:
    """Makes the red at `handle` what it was, adapting: limit and thresholds in bytes, the weight 2^-weight_log.

    What tells it how fast to forget in idle times is left zero: below HTB it never hears of any.
    """
    shares = (weight_log, 0, SCELL_LOG, TC_RED_ADAPTATIVE)
    options = [
        (TCA_RED_PARMS, struct.pack("=III4B", limit, least, most, *shares)),
        (TCA_RED_STAB, bytes(256)),
        (TCA_RED_MAX_P, struct.pack("=I", round(p * 2**32))),
    ]
    message = struct.pack("=BxxxiIII", socket.AF_UNSPEC, socket.if_nametoindex(device), handle, parent, 0)
    message += attribute(TCA_KIND, b"red\0") + attribute(TCA_OPTIONS, b"".join(attribute(*each) for each in options))
    head = struct.pack("=IHHII", 16 + len(message), RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(head + message)
        answer = kernel.recv(4096)
    if error := struct.unpack_from("=i", answer, 16)[0]:
        raise SystemExit(f"red on {device}: the kernel says {error}")


def attribute(kind: int, value: bytes) -> bytes:
    """An attribute of a netlink message, padded."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
