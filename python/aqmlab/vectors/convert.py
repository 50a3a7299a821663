"""A capture becomes connection vectors, in one pass.

In memory is what of the open connections is needed, and segments of the last seconds, which are put into the order of
their times; connections that are over wait in a temporary file for being written in the order of their starts.
"""

import ipaddress
import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqmlab import files, units
from aqmlab.errors import BadInput
from aqmlab.vectors import cvec
from aqmlab.vectors.capture import FALLS_NS, Frame, frames
from aqmlab.vectors.conversation import Conversation
from aqmlab.vectors.model import ACCEPTOR, INITIATOR
from aqmlab.vectors.order import Numbered, by_time
from aqmlab.vectors.points import BEFORE, DROPPED, POINTS
from aqmlab.vectors.segments import ACK, LINK_TYPES, SYN, Segment, Unreadable, segment
from aqmlab.vectors.spool import Spool
from aqmlab.vectors.twice import Copies

QUIET_NS = 500_000_000
"""A pause in one direction that ends a unit (Hernandez-Campos 2006)."""

# How long segments of a connection that is over, or whose beginning is missing, are told apart from new ones: twice
# the maximum segment lifetime of RFC 9293. A SYN without an answer is given up as long after it.
_LINGER_NS = 240_000_000_000
_SWEEP_NS = 60_000_000_000

SILENT_NS = 7_440_000_000_000
"""A connection of which nothing was seen for longer is taken as left by both ends: 2 h 4 min, after which translators
and firewalls forget it (RFC 5382, REQ-5) and which keep-alives stay below (RFC 1122 §4.2.3.6: every two hours)."""

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
            *("elsewhere", "initiator_bytes", "acceptor_bytes", "missed_bytes", "earlier_frames", "unsorted_segments"),
            *("copies", "stray_resets", "without_scale", "beyond_limits"),
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

    Raises `BadInput` if the file is no capture, of another link type, cut off, out of order or without a connection,
    or if `vectors` is not the name of a new file.
    """
    if form not in cvec.FORMATS:
        raise BadInput(f"--format {form}: expected one of {', '.join(cvec.FORMATS)}")
    claim(vectors)
    found = Converted(capture, vectors)
    with Spool(vectors.parent) as spool:
        conversion = _Conversion(found, spool, quiet_ns, network)
        conversion.run(frames(capture))
        if found.counts["written"] == 0:
            raise BadInput(f"{capture}: expected a TCP connection with its SYN and data, {_instead(found)}")
        _write(spool, conversion.earliest_ns - conversion.first_ns, vectors, form)
    return found


def claim(out: Path) -> None:
    """Makes sure that vectors can go to `out`, before anything is read."""
    if not out.name:
        raise BadInput(f"{out}: expected the name of a new file, such as campus.cvec")
    if out.exists() or out.is_symlink():
        raise BadInput(f"{out}: exists; expected the name of a new file")
    files.check_folder_of(out)


def capture_to_vectors(capture: Path, vectors: Path, form: str, quiet_time: str, network: str | None) -> Converted:
    """`convert` with its options as texts."""
    quiet_ns = units.seconds(quiet_time, "--quiet-time") * 1e9
    if not math.isfinite(quiet_ns):
        raise BadInput(f"--quiet-time {quiet_time}: expected a finite time such as 500ms")
    try:
        inside = None if network is None else ipaddress.ip_network(network)
    except ValueError:
        raise BadInput(f"--from {network}: expected a network such as 10.0.0.0/8") from None
    return convert(capture, vectors, form, round(quiet_ns), inside)


def _write(spool: Spool, origin_ns: int, vectors: Path, form: str) -> None:
    """The file appears when all of it is there, and takes nobody's place."""
    unfinished = vectors.with_name(f".{vectors.name}.{os.getpid()}.partial")
    out = unfinished.open("x", encoding="utf-8", newline="\n")
    try:
        with out:
            for number, vector in enumerate(spool.in_order(origin_ns), 1):
                out.write(cvec.write(vector, number, form))
        claim(vectors)
        unfinished.replace(vectors)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(vectors)) from None
    finally:
        unfinished.unlink(missing_ok=True)


def _instead(found: Converted) -> str:
    counts = found.counts
    if counts["unreadable_frames"] > counts["tcp_segments"]:
        return (
            f"found {counts['frames']} frames, {counts['unreadable_frames']} of them without a whole TCP header: were "
            "more bytes of each kept (tcpdump -s 128), they could be read"
        )
    return (
        f"found {counts['frames']} frames, {counts['tcp_segments']} TCP segments, {counts['other_frames']} that are "
        "not of TCP over IP, of connections "
        f"{counts['without_beginning']} without beginning, {counts['without_answer']} without answer, "
        f"{counts['without_data']} without data, {counts['elsewhere']} from elsewhere"
    )


class _Conversion:
    def __init__(self, found: Converted, spool: Spool, quiet_ns: int, network: Network | None) -> None:
        self.found = found
        self.counts = found.counts
        self.spool = spool
        self.quiet_ns = quiet_ns
        self.network = network
        self.copies = Copies()
        self.open: dict[_Key, Conversation] = {}
        # Connections that are over or are left out: the time of their last segment, and of those from elsewhere the
        # sequence number of the SYN.
        self.ignored: dict[_Key, tuple[int, int | None]] = {}
        # Times of the first frame, of the earliest, which starts are counted from, and of the latest so far.
        self.first_ns = self.earliest_ns = self.latest_ns = 0

    def run(self, captured: Iterator[Frame]) -> None:
        before_ns = swept_ns = None
        for time_ns, number, tcp in by_time(self.segments(captured)):
            if before_ns is None or swept_ns is None:
                before_ns = swept_ns = time_ns
            self.counts["unsorted_segments"] += time_ns < before_ns
            before_ns = max(before_ns, time_ns)
            self.take(tcp, number)
            if time_ns - swept_ns > _SWEEP_NS:
                swept_ns = time_ns
                self.sweep(swept_ns)
        for key in list(self.open):
            self.close(key)
        self.counts["copies"] = self.copies.found
        self.found.duration_s = (self.latest_ns - self.earliest_ns) / 1e9

    def segments(self, captured: Iterator[Frame]) -> Iterator[Numbered]:
        """Those of TCP, in the order of the file."""
        for frame in _once(captured):
            if self.counts["frames"] == 0:
                self.first_ns = self.earliest_ns = self.latest_ns = frame.time_ns
            self.counts["frames"] += 1
            self.keep_time(frame)
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
            yield tcp.time_ns, self.counts["frames"], tcp

    def keep_time(self, frame: Frame) -> None:
        if frame.time_ns >= self.latest_ns:
            self.latest_ns = frame.time_ns
            return
        self.counts["earlier_frames"] += 1
        back = self.latest_ns - frame.time_ns
        if back > FALLS_NS:
            raise BadInput(
                f"{self.found.capture}: frame {self.counts['frames']} is {back / 1e9:,.6g} s earlier than one before: "
                f"expected frames in the order of their times, up to {FALLS_NS // 10**9} s; reordercap sorts them"
            )
        self.earliest_ns = min(self.earliest_ns, frame.time_ns)

    def take(self, tcp: Segment, number: int) -> None:
        key = (tcp.source, tcp.target) if tcp.source < tcp.target else (tcp.target, tcp.source)
        conversation = self.open.get(key)
        if self.copies.is_copy(tcp, None if conversation is None else conversation.rtt_ns):
            return
        is_syn = tcp.flags & (SYN | ACK) == SYN
        if conversation is not None and (
            tcp.time_ns - conversation.last_ns > SILENT_NS
            or (is_syn and (conversation.is_over or conversation.is_anew(tcp)))
        ):
            self.close(key)
            conversation = None
        if conversation is None:
            last_ns, left_out = self.ignored.pop(key, (None, None))
            if not is_syn:
                self.counts["without_beginning"] += last_ns is None
                self.ignored[key] = (tcp.time_ns, left_out)
            elif self.network is not None and not _is_in(tcp.source[0], self.network):
                # The same SYN again is the same connection.
                self.counts["elsewhere"] += tcp.sequence != left_out
                self.ignored[key] = (tcp.time_ns, tcp.sequence)
            else:
                self.begin(key, tcp, number)
            return
        if not conversation.take(tcp):
            # The acceptor speaks, and its SYN is not in the capture.
            del self.open[key]
            self.counts["without_beginning"] += 1
            self.ignored[key] = (tcp.time_ns, None)
        elif conversation.is_over:
            self.close(key)
            self.ignored[key] = (tcp.time_ns, None)

    def begin(self, key: _Key, syn: Segment, number: int) -> None:
        # Times fall by 10 s at most: where a frame is as late as this, the earliest one has come.
        since = syn.time_ns - self.earliest_ns
        if since // 1000 >= cvec.LIMIT:
            raise BadInput(
                f"{self.found.capture}: frame {number} begins a connection {since / 86_400e9:,.4g} days "
                f"after the first frame: expected at most {cvec.LIMIT / 86_400e6:.4g}; editcap cuts captures by time"
            )
        self.open[key] = Conversation(syn, self.quiet_ns)

    def close(self, key: _Key) -> None:
        conversation = self.open.pop(key)
        counts = self.counts
        counts["stray_resets"] += conversation.stray_resets
        vector = conversation.vector()
        if vector is None:
            counts["without_data" if conversation.is_answered or conversation.was_reset else "without_answer"] += 1
            return
        kept = cvec.within_limits(vector)
        counts["written"] += 1
        counts["concurrent" if kept.is_concurrent else "sequential"] += 1
        counts["unfinished"] += not conversation.is_over
        counts["without_scale"] += conversation.is_scale_cut_off
        counts["beyond_limits"] += kept != vector
        counts["initiator_bytes"] += kept.bytes_from(INITIATOR)
        counts["acceptor_bytes"] += kept.bytes_from(ACCEPTOR)
        counts["missed_bytes"] += conversation.missed_bytes
        self.spool.add(conversation.start_ns - self.first_ns, kept)

    def sweep(self, now: int) -> None:
        self.ignored = {key: kept for key, kept in self.ignored.items() if now - kept[0] < _LINGER_NS}
        for key, conversation in list(self.open.items()):
            if now - conversation.last_ns > (SILENT_NS if conversation.is_answered else _LINGER_NS):
                self.close(key)


def _once(captured: Iterator[Frame]) -> Iterator[Frame]:
    """Each packet once, where a capture at the queue has it before the queue and after it or dropped."""
    has_before = False
    for frame in captured:
        point = POINTS.get(frame.interface)
        if point is not None and point.place != BEFORE and (has_before or point.place == DROPPED):
            continue
        has_before |= point is not None and point.place == BEFORE
        yield frame


def _is_in(address: bytes, network: Network) -> bool:
    return ipaddress.ip_address(address) in network
