"""One direction of the bottleneck, from its packets before and after the queue.

A packet is known again by its bytes, without those that a router changes: the ECN field, the time to live and, of
IPv4, the header checksum. Of packets that are the same to the last byte that was captured (duplicate acknowledgements
over IPv6, which has no identification) the first that went in counts as the first that came out; the mean wait does
not depend on that.

How long a packet waited is told without knowing the rate of the link: its transmission begins when that of the packet
before it ends, or, where the link was idle, when it came. A link that pauses between packets, as a shaper in the
kernel may, so adds its pauses to the waits.
"""

from array import array
from collections import Counter, deque

from aqmlab.vectors.capture import Frame

DROPPED, MARKED = "dropped: ", "marked: "
_UNKNOWN = "unknown"


class Queue:
    """Counts what happened from `start_ns` until before `end_ns`."""

    def __init__(self, start_ns: int, end_ns: int) -> None:
        self._start_ns = start_ns
        self._end_ns = end_ns
        self._waiting: dict[bytes, deque[int]] = {}
        self._last_out_ns = 0
        self.has_before = self.has_after = False
        self.offered = self.offered_bytes = self.delivered = self.delivered_bytes = 0
        self.dropped: Counter[str] = Counter()
        self.marked: Counter[str] = Counter()
        self.marked_over_an_edge = 0
        """Packets that were marked before the window and left in it, or the other way round, or may have been."""
        self.marks_seen = 0
        """Packets that came with one ECN field and left with congestion experienced."""
        self.waits_ns = array("q")
        self.unmatched = 0
        """Packets that left and were not seen to come."""

    def comes(self, frame: Frame) -> None:
        """A packet is offered to the discipline."""
        self.has_before = True
        self._waiting.setdefault(_identity(frame.data), deque()).append((frame.time_ns << 1) | _is_ce(frame.data))
        if self._counts(frame):
            self.offered += 1
            self.offered_bytes += frame.length

    def is_lost(self, frame: Frame) -> None:
        """A packet is dropped."""
        self._came(frame)
        if self._counts(frame):
            self.dropped[_reason(frame, DROPPED)] += 1

    def leaves(self, frame: Frame) -> None:
        """The last bit of a packet has left."""
        self.has_after = True
        came = self._came(frame)
        begun_ns, self._last_out_ns = self._last_out_ns, frame.time_ns
        if came is not None and frame.comment.startswith(MARKED):
            self.marked_over_an_edge += self._edges_between(came >> 1, frame.time_ns) > 0
        if not self._counts(frame):
            return
        self.delivered += 1
        self.delivered_bytes += frame.length
        if frame.comment.startswith(MARKED):
            self.marked[_reason(frame, MARKED)] += 1
        if came is not None:
            self.waits_ns.append(max(begun_ns - (came >> 1), 0))
            self.marks_seen += _is_ce(frame.data) and not came & 1
        elif self.has_before:
            self.unmatched += 1

    def ends(self) -> None:
        """No packet follows: what waits may have been marked."""
        waiting = (came >> 1 for times in self._waiting.values() for came in times)
        self.marked_over_an_edge += sum(came < self._end_ns for came in waiting)

    def _edges_between(self, came_ns: int, left_ns: int) -> int:
        return sum(came_ns < edge <= left_ns for edge in (self._start_ns, self._end_ns))

    def _came(self, frame: Frame) -> int | None:
        """When a packet came, times two, and whether it was marked already."""
        key = _identity(frame.data)
        times = self._waiting.get(key)
        if times is None:
            return None
        came = times.popleft()
        if not times:
            del self._waiting[key]
        return came

    def _counts(self, frame: Frame) -> bool:
        return self._start_ns <= frame.time_ns < self._end_ns


def _identity(data: bytes) -> bytes:
    # IPv4: traffic class, time to live, protocol and checksum left out; IPv6: version to flow label, hop limit.
    return data[2:8] + data[12:] if data[0] >> 4 == 4 else data[4:7] + data[8:]


def _is_ce(data: bytes) -> bool:
    return (data[1] & 3 if data[0] >> 4 == 4 else data[1] >> 4 & 3) == 3


def _reason(frame: Frame, what: str) -> str:
    """`early` of `dropped: early (pie)`."""
    return frame.comment.removeprefix(what).partition(" ")[0] if frame.comment.startswith(what) else _UNKNOWN
