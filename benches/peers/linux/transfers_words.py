"""What a record says of packets: words, with the times between them."""

from __future__ import annotations

from transfers_cases import MSS
from transfers_packets import AE, CWR, ECE, FIN, SYN, Packet


def server_words(packets: list[tuple[int, Packet, str]]) -> str:
    """What the server sent: `SINCE:WHAT`, in microseconds after the word before; neighbours sent at once as a range."""
    words: list[tuple[int, int, int, str]] = []
    latest = 0
    for at_ns, packet, do in packets:
        at, tail = round(at_ns / 1e3), tail_of(packet, do)
        if packet.payload == 0 or packet.flags & SYN:
            kind = "S" if packet.flags & SYN else "" if packet.flags & FIN else "A"
            words.append((at, 0, 0, kind + tail))
        else:
            segment = (packet.seq - 1) // MSS + 1
            is_next = bool(words) and words[-1][1] > 0 and words[-1][2] == segment - 1 and words[-1][3] == tail
            # To read the clock moves it a little.
            if is_next and at - latest <= 3:
                words[-1] = (words[-1][0], words[-1][1], segment, tail)
            else:
                words.append((at, segment, segment, tail))
        latest = at
    return since_before(
        [
            (at, (f"{first}" if first else "") + (f"-{last}" if last > first else "") + tail)
            for at, first, last, tail in words
        ]
    )


def client_words(packets: list[tuple[int, Packet, str]]) -> str:
    """What the client sent: `SINCE:ACKNOWLEDGED`, the latter in segments, with the blocks that SACK reports."""
    words = []
    for at_ns, packet, do in packets:
        kind = "S" if packet.flags & SYN else "R" if packet.payload else f"{-(-(packet.ack - 1) // MSS)}"
        blocks = "".join(f",{(a - 1) // MSS + 1}-{-(-(b - 1) // MSS)}" for a, b in packet.blocks)
        words.append((round(at_ns / 1e3), kind + blocks + tail_of(packet, do)))
    return since_before(words)


def window_words(windows: list[tuple[int, str]]) -> str:
    """Congestion windows and, after a first reduction, thresholds: `SINCE:WINDOW/THRESHOLD`."""
    return since_before([(round(at_ns / 1e3), window) for at_ns, window in windows])


def since_before(words: list[tuple[int, str]]) -> str:
    """Times as differences."""
    times = [0, *(at for at, _ in words)]
    return " ".join(f"{at - before}:{what}" for before, (at, what) in zip(times, words, strict=False))


def tail_of(packet: Packet, do: str) -> str:
    """Flags and fate: FIN, E for ECE, W for CWR, A for AE, x for lost, m for marked, d for delayed."""
    flags = "".join(name for bit, name in ((FIN, "F"), (ECE, "E"), (CWR, "W"), (AE, "A")) if packet.flags & bit)
    return flags + {"lose": "x", "late": "d", "hold": "d", "stall": "d", "pass": ""}.get(do, "m")


def server_bytes(packets: list[tuple[int, Packet, str]]) -> str:
    """What the server sent, where segments have several sizes: `SINCE:FIRST+LENGTH*COUNT`, the first byte and the
    length of data, counted where neighbours are sent at once.
    """
    words: list[tuple[int, str, int, int, int, str]] = []
    latest = 0
    for at_ns, packet, do in packets:
        at, tail = round(at_ns / 1e3), exact_tail(packet, do)
        kind = "S" if packet.flags & SYN else "" if packet.payload or packet.flags & FIN else f"A{packet.ack - 1}"
        _, _, first, length, count, before = words[-1] if words else (0, "", 0, 0, 0, "")
        follows = (length, first + length * count, before) == (packet.payload, packet.seq, tail)
        # To read the clock moves it a little.
        if packet.payload and follows and at - latest <= 3:
            words[-1] = (*words[-1][:4], count + 1, tail)
        else:
            words.append((at, kind, packet.seq, packet.payload, 1, tail))
        latest = at
    return since_before(
        [
            (at, kind + (f"{first}+{length}" if length else "") + (f"*{count}" if count > 1 else "") + tail)
            for at, kind, first, length, count, tail in words
        ]
    )


def client_bytes(packets: list[tuple[int, Packet, str]]) -> str:
    """What the client sent: `SINCE:ACKNOWLEDGED`, in bytes, with the blocks that SACK reports."""
    words = []
    for at_ns, packet, do in packets:
        kind = "S" if packet.flags & SYN else "R" if packet.payload else str(packet.ack - 1)
        blocks = "".join(f",{a - 1}-{b - 1}" for a, b in packet.blocks)
        words.append((round(at_ns / 1e3), kind + blocks + exact_tail(packet, do)))
    return since_before(words)


def exact_tail(packet: Packet, do: str) -> str:
    """Flags and fate, the ECN field (`=0`, `=2` for ECT(0)), and the AccECN option: its order and its counters."""
    return f"{tail_of(packet, do)}={packet.ecn}" + (f"@{packet.counts}" if packet.counts else "")
