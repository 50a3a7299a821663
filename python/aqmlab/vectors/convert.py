"""A capture becomes connection vectors, in one pass; what is kept is what of the open connections is needed."""

import heapq
import ipaddress
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from aqmlab import units
from aqmlab.errors import BadInput
from aqmlab.vectors import cvec
from aqmlab.vectors.capture import Frame, frames
from aqmlab.vectors.conversation import Conversation
from aqmlab.vectors.model import ACCEPTOR, INITIATOR, Vector
from aqmlab.vectors.segments import ACK, LINK_TYPES, SYN, Segment, Unreadable, segment

QUIET_NS = 500_000_000
"""A pause in one direction that ends a unit (Hernandez-Campos 2006)."""

# How long segments of a connection that is over, or whose beginning is missing, are told apart from new ones: twice
# the maximum segment lifetime of RFC 9293. A SYN without an answer is given up as long after it.
_LINGER_NS = 240_000_000_000
_SWEEP_NS = 60_000_000_000

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Key = tuple[tuple[bytes, int], tuple[bytes, int]]


@dataclass
class Converted:
    """What became of a capture."""

    capture: Path
    vectors: Path
    counts: Counter[str] = field(default_factory=Counter)
    """Of frames, segments, connections and bytes; what is absent is 0."""
    duration_s: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        names = (
            *("frames", "tcp_segments", "other_frames", "unreadable_frames"),
            *("sequential", "concurrent", "unfinished", "without_beginning", "without_answer", "without_data"),
            *("elsewhere", "initiator_bytes", "acceptor_bytes", "missed_bytes"),
        )
        return {
            "capture": str(self.capture),
            "vectors": str(self.vectors),
            "duration_s": self.duration_s,
            **{name: self.counts[name] for name in names},
        }


def convert(
    capture: Path,
    vectors: Path,
    form: str = "original",
    quiet_ns: int = QUIET_NS,
    network: Network | None = None,
) -> Converted:
    """Writes the connections of a capture as vectors; with `network`, those that begin there.

    Raises `BadInput` if the file is no capture, of another link type, cut off, or without a connection.
    """
    if form not in cvec.FORMATS:
        raise BadInput(f"--format {form}: expected one of {', '.join(cvec.FORMATS)}")
    found = Converted(capture, vectors)
    unfinished = vectors.with_name(vectors.name + ".part")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as out:
            _Conversion(found, out, form, quiet_ns, network).run(frames(capture))
        if found.counts["written"] == 0:
            raise BadInput(f"{capture}: expected a TCP connection with its SYN and data, {_instead(found)}")
        unfinished.replace(vectors)
    finally:
        unfinished.unlink(missing_ok=True)
    return found


def capture_to_vectors(capture: Path, vectors: Path, form: str, quiet_time: str, network: str | None) -> Converted:
    """`convert` with its options as texts."""
    quiet_ns = round(units.seconds(quiet_time, "--quiet-time") * 1e9)
    try:
        inside = None if network is None else ipaddress.ip_network(network)
    except ValueError:
        raise BadInput(f"--from {network}: expected a network such as 10.0.0.0/8") from None
    return convert(capture, vectors, form, quiet_ns, inside)


def _instead(found: Converted) -> str:
    counts = found.counts
    return (
        f"found {counts['frames']} frames, {counts['tcp_segments']} TCP segments, of connections "
        f"{counts['without_beginning']} without beginning, {counts['without_answer']} without answer, "
        f"{counts['without_data']} without data, {counts['elsewhere']} from elsewhere"
    )


class _Conversion:
    def __init__(self, found: Converted, out: TextIO, form: str, quiet_ns: int, network: Network | None) -> None:
        self.found = found
        self.counts = found.counts
        self.out = out
        self.form = form
        self.quiet_ns = quiet_ns
        self.network = network
        # In the order of their SYNs, so that the first of them tells which vectors may be written.
        self.open: OrderedDict[_Key, Conversation] = OrderedDict()
        # Connections that are over or are left out, with the time of their last segment.
        self.ignored: dict[_Key, int] = {}
        # Vectors that wait for an earlier connection to end: files of vectors are in the order of their starts.
        self.waiting: list[tuple[int, int, Vector]] = []
        self.origin_ns = 0

    def run(self, captured: Iterator[Frame]) -> None:
        last_ns = swept_ns = 0
        for frame in captured:
            if self.counts["frames"] == 0:
                self.origin_ns = last_ns = swept_ns = frame.time_ns
            self.counts["frames"] += 1
            last_ns = max(last_ns, frame.time_ns)
            if frame.link_type not in LINK_TYPES:
                raise BadInput(
                    f"{self.found.capture}: link type {frame.link_type}: expected Ethernet (1), raw IP (101), "
                    "loopback (0) or Linux cooked (113, 276)"
                )
            try:
                tcp = segment(frame)
            except Unreadable:
                self.counts["unreadable_frames"] += 1
                continue
            if tcp is None:
                self.counts["other_frames"] += 1
                continue
            self.counts["tcp_segments"] += 1
            self.take(tcp)
            if last_ns - swept_ns > _SWEEP_NS:
                swept_ns = last_ns
                self.sweep(last_ns)
        for key in list(self.open):
            self.close(key, is_end=True)
        self.found.duration_s = (last_ns - self.origin_ns) / 1e9

    def take(self, tcp: Segment) -> None:
        key = (tcp.source, tcp.target) if tcp.source < tcp.target else (tcp.target, tcp.source)
        conversation = self.open.get(key)
        is_syn = tcp.flags & (SYN | ACK) == SYN
        if conversation is not None and is_syn and (conversation.is_over or conversation.is_anew(tcp)):
            self.close(key)
            conversation = None
        if conversation is None:
            if not is_syn:
                if key not in self.ignored:
                    self.counts["without_beginning"] += 1
                self.ignored[key] = tcp.time_ns
                return
            self.ignored.pop(key, None)
            if self.network is not None and not _is_in(tcp.source[0], self.network):
                self.counts["elsewhere"] += 1
                self.ignored[key] = tcp.time_ns
                return
            self.open[key] = Conversation(tcp, self.quiet_ns)
            return
        if not conversation.take(tcp):
            # The acceptor speaks, and its SYN is not in the capture.
            del self.open[key]
            self.counts["without_beginning"] += 1
            self.ignored[key] = tcp.time_ns
            self.release()
        elif conversation.is_over:
            self.close(key)
            self.ignored[key] = tcp.time_ns

    def close(self, key: _Key, is_end: bool = False) -> None:
        conversation = self.open.pop(key)
        counts = self.counts
        vector = conversation.vector(self.origin_ns)
        if vector is not None:
            counts["written"] += 1
            counts["concurrent" if vector.is_concurrent else "sequential"] += 1
            counts["unfinished"] += is_end and not conversation.is_over
            counts["initiator_bytes"] += vector.bytes_from(INITIATOR)
            counts["acceptor_bytes"] += vector.bytes_from(ACCEPTOR)
            counts["missed_bytes"] += conversation.missed_bytes
            heapq.heappush(self.waiting, (vector.start_us, counts["written"], vector))
        else:
            counts["without_data" if conversation.is_answered or conversation.was_reset else "without_answer"] += 1
        self.release()

    def release(self) -> None:
        """Writes what no connection under way can come before."""
        first = next(iter(self.open.values()), None)
        limit = None if first is None else (first.start_ns - self.origin_ns) // 1000
        while self.waiting and (limit is None or self.waiting[0][0] < limit):
            vector = heapq.heappop(self.waiting)[2]
            self.counts["numbered"] += 1
            self.out.write(cvec.write(vector, self.counts["numbered"], self.form))

    def sweep(self, now: int) -> None:
        self.ignored = {key: last for key, last in self.ignored.items() if now - last < _LINGER_NS}
        for key, conversation in list(self.open.items()):
            if not conversation.is_answered and now - conversation.last_ns > _LINGER_NS:
                self.close(key)


def _is_in(address: bytes, network: Network) -> bool:
    return ipaddress.ip_address(address) in network
