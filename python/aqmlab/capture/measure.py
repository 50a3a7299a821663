"""Reads a capture of the queue once, from the first packet to the last, and works out what it says."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aqmlab import statistics
from aqmlab.capture.connections import Connections, Exchange
from aqmlab.capture.queue import Queue
from aqmlab.errors import BadInput, doubt
from aqmlab.links import WAYS
from aqmlab.vectors import capture
from aqmlab.vectors.points import AFTER, BEFORE, DROPPED, POINTS
from aqmlab.vectors.segments import Unreadable, has_header, segment

_QUANTILES = (10, 25, 50, 75, 90, 95, 99)
_NS = 1_000_000_000
_LATE_NS = 10_000_000
"""What a host's clock and its work may put between an instant of its own and that of the queue."""
MOST_SILENCE_S = 1.0
"""Between the last packet of a capture and the end of what is asked for, without a word."""


@dataclass(frozen=True)
class Measured:
    """What a capture says of the time from `start_s` until before `end_s`."""

    path: Path
    start_s: float
    end_s: float
    is_to_the_end: bool
    """Whether the capture's end is the end: then what arrives after its last packet counts as well."""
    packets: int
    """In the file."""
    ways: tuple[int, ...]
    """The directions that were captured, 0 for forward and 1 for reverse: with several links each file has one."""
    queues: tuple[Queue, Queue]
    connections: Connections

    @property
    def measured_s(self) -> float:
        """How long that is."""
        return self.end_s - self.start_s

    def exchanges(self, way: int | None = None) -> list[Exchange]:
        """The exchanges that were completed in that time, of one direction or of both."""
        first, last = self.start_s * _NS, math.inf if self.is_to_the_end else self.end_s * _NS
        return [
            exchange
            for exchange in self.connections.exchanges
            if first <= exchange.completed_ns < last and way in (None, exchange.way)
        ]

    def response_times_s(self) -> npt.NDArray[np.float64]:
        """In order."""
        return np.sort(np.array([exchange.response_time_s for exchange in self.exchanges()], dtype=np.float64))

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "capture": str(self.path),
            "packets": self.packets,
            "start_s": self.start_s,
            "end_s": self.end_s,
            **{WAYS[way]: self._direction(way) for way in self.ways},
            "connections": self.connections.counts["connections"],
            # A request goes one way and its response the other.
            "exchanges": self._exchanges() if len(self.ways) == len(WAYS) else None,
        }

    def _exchanges(self) -> dict[str, Any]:
        return {
            "completed": len(self.exchanges()),
            "unfinished": self.connections.unfinished,
            "at_queue_s": _quantiles(np.array([exchange.at_queue_s for exchange in self.exchanges()])),
            "response_time_s": _quantiles(self.response_times_s()),
        }

    def _direction(self, way: int) -> dict[str, Any]:
        queue = self.queues[way]
        dropped = queue.dropped.total()
        waits = self.waits_s(way)
        return {
            "offered_packets": queue.offered if queue.has_before else None,
            "delivered_packets": queue.delivered if queue.has_after else None,
            "dropped_packets": dropped,
            "dropped": dict(sorted(queue.dropped.items())),
            "marked_packets": queue.marked.total() if queue.has_after else None,
            "marked": dict(sorted(queue.marked.items())),
            "loss_ratio": dropped / queue.offered if queue.offered else None,
            "mark_ratio": queue.marked.total() / queue.offered if queue.offered and queue.has_after else None,
            "throughput_bps": queue.delivered_bytes * 8 / self.measured_s if queue.has_after else None,
            "queue_delay_mean_s": float(waits.mean()) if waits.size else None,
            "queue_delay_p99_s": float(statistics.quantiles(waits, [0.99])[0]) if waits.size else None,
            # Where packets were lost before the first place at which they are seen, what comes again is not known.
            "retransmitted_segments": self._sent_again(way) if queue.has_before else None,
            "unmatched_packets": queue.unmatched,
        }

    def _sent_again(self, way: int) -> int:
        first, last = self.start_s * _NS, math.inf if self.is_to_the_end else self.end_s * _NS
        return sum(first <= time < last for time, _ in self.connections.again_ns[way])

    def exchanges_at_edges(self) -> int:
        """Exchanges that the hosts may have on the other side of an edge of the window."""
        ends = ((exchange.completed_ns, exchange.missing_ns or 0) for exchange in self.connections.exchanges)
        return self._at_edges(ends)

    def sent_again_at_edges(self) -> int:
        """Segments sent again that the hosts may have on the other side of an edge of the window."""
        return sum(self._at_edges(times) for times in self.connections.again_ns)

    def _at_edges(self, times: Iterable[tuple[int, int]]) -> int:
        """How many times are no further from an edge than their host is from the queue, or may be late."""
        edges = (self.start_s * _NS, self.end_s * _NS)
        return sum(any(abs(time - edge) <= max(far, _LATE_NS) for edge in edges) for time, far in times)

    def waits_s(self, way: int) -> npt.NDArray[np.float64]:
        """How long each packet that left waited."""
        return np.frombuffer(self.queues[way].waits_ns, dtype=np.int64) / 1e9


def measure(path: Path, start_s: float = 0.0, end_s: float | None = None) -> Measured:
    """Works out what a capture of the queue says of the time from `start_s` until before `end_s`.

    Raises `BadInput` where the file is no such capture.
    """
    names = capture.interfaces(path)
    places = {POINTS[name] for name in names if name in POINTS}
    if not places:
        raise BadInput(
            f"{path}: interfaces {', '.join(filter(None, names)) or 'without names'}: expected a capture of the queue, "
            'as aqmlab live writes with live.capture = "both"'
        )
    first, last = round(start_s * _NS), 2**63 if end_s is None else round(end_s * _NS)
    queues = (Queue(first, last), Queue(first, last))
    connections = Connections()
    packets = latest = headless = 0
    # Where one side of the queue was captured, what is seen there stands for both.
    has = {place: any(point.place == place for point in places) for place in (BEFORE, AFTER)}
    for frame in capture.frames(path):
        point = POINTS.get(frame.interface)
        packets += 1
        latest = frame.time_ns
        if point is None:
            continue
        if point not in places:
            raise BadInput(
                f"{path}: packet {packets} is of interface {frame.interface!r}, which stands after the first packet: "
                "expected one that is described before, as each section of a capture describes all of its own"
            )
        if not has_header(frame):
            connections.counts["unreadable"] += 1
            headless += 1
            continue
        queue = queues[point.way]
        if point.place == DROPPED:
            queue.is_lost(frame)
            continue
        is_before = point.place == BEFORE
        (queue.comes if is_before else queue.leaves)(frame)
        try:
            tcp = segment(frame)
        except Unreadable:
            connections.counts["unreadable"] += 1
            continue
        if tcp is None:
            continue
        if is_before or not has[BEFORE]:
            payload = frame.data[len(frame.data) - _kept(frame, tcp.payload) :] if tcp.payload else b""
            connections.before(tcp, payload, point.way)
        if not is_before or not has[AFTER]:
            connections.after(tcp, point.way)
    for queue in queues:
        queue.ends()
    if packets == 0:
        raise BadInput(f"{path}: expected packets, found none")
    if headless:
        doubt(f"{path}: {headless:,} of {packets:,} packets have less than their IP header captured and are left out")
    seen_s = latest / _NS
    end = seen_s if end_s is None else end_s
    if min(end, seen_s) <= start_s:
        raise BadInput(f"{path}: ends at {seen_s:g} s: expected packets after {start_s:g} s")
    if end > seen_s + MOST_SILENCE_S:
        doubt(f"{path}: its last packet is at {seen_s:g} s, figures are of the time to {end:g} s: rates are the lower")
    ways = tuple(sorted({point.way for point in places}))
    return Measured(path, start_s, end, end_s is None, packets, ways, queues, connections)


def _kept(frame: capture.Frame, payload: int) -> int:
    """How many bytes of a segment's payload were captured, which end the packet."""
    return max(len(frame.data) - (frame.length - payload), 0)


def _quantiles(values: npt.NDArray[np.float64]) -> dict[str, float] | None:
    if not values.size:
        return None
    found = statistics.quantiles(values, [share / 100 for share in _QUANTILES])
    return {f"p{share}": float(value) for share, value in zip(_QUANTILES, found, strict=True)}
