"""The exchanges of TCP connections, as they pass the queue.

An exchange begins with the first byte of its request, before the queue, and ends when all bytes of its response have
been after it: at the first instant at which no byte of the response is missing there, so that retransmissions count.
The first exchange of a connection begins with the connection's first SYN: that is when it was asked for.

Where a response ends is told by the request if its first line was captured and is one of the test bed's own
(`GET /<bytes of the response>`); else by what follows: the next request, or the server's FIN. Of a connection on which
only the client sends, all that it sends is a transfer, which ends with its last byte.

What is missing to what the hosts see is the way between them and the queue. That is told by the handshake: a client is
as far as it takes from the SYN+ACK after the queue to the segment that answers it, a server as far as it takes from the
SYN to the SYN+ACK. On the test bed the propagation delay lies on the left: hosts on the right are next to the queue.
"""

import re
from bisect import insort
from collections import Counter
from dataclasses import dataclass

from aqmlab.vectors.segments import ACK, FIN, SYN, Segment

_HALF, _SPACE = 1 << 31, 1 << 32
_MOST_GAPS = 256
"""Places of a stream whose data have not come yet, and are kept; of more the first ones count as having come."""
_REQUEST = re.compile(rb"(?:GET|POST) /(\d+)[ ?]")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its response."""

    way: int
    """Which way the response flowed: 0 forward, 1 in reverse."""
    start_ns: int
    """When it was asked for, as seen at the queue."""
    setup_ns: int
    """The part of it until the connection was open; 0 on one that was open already."""
    end_ns: int
    missing_ns: int | None
    """What passed before and after that between the queue and the hosts; `None` if the handshake does not tell."""
    completed_ns: int
    """When its last byte was where it was to be, as far as can be told."""
    request_bytes: int
    """0 of a transfer."""
    response_bytes: int

    @property
    def at_queue_s(self) -> float:
        """From its beginning to its end at the queue."""
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def response_time_s(self) -> float:
        """What the hosts see of it, as far as can be told from here."""
        return (self.end_ns - self.start_ns + (self.missing_ns or 0)) / 1e9


class _Stream:
    """The data of one direction of a connection, as positions that begin with the SYN at 0."""

    __slots__ = ("_gaps", "_islands", "first", "passed", "sent")

    def __init__(self, sequence: int) -> None:
        self.first = sequence
        self.sent = 1
        """Up to where it was seen before the queue, but for the gaps."""
        self.passed = 1
        """Up to where no byte is missing after it."""
        self._islands: list[tuple[int, int]] = []
        self._gaps: list[tuple[int, int]] = []

    def position(self, sequence: int) -> int:
        """A sequence number as a position near what was sent last."""
        return self.sent + (sequence - self.first - self.sent + _HALF) % _SPACE - _HALF

    def comes(self, begin: int, end: int) -> bool:
        """Data are before the queue; whether any of them were there already."""
        if begin >= self.sent:
            if begin > self.sent:
                self._gaps = [*self._gaps, (self.sent, begin)][-_MOST_GAPS:]
            self.sent = end
            return False
        is_first = any(low <= begin and end <= high for low, high in self._gaps)
        left = [part for low, high in self._gaps for part in ((low, min(high, begin)), (max(low, end), high))]
        self._gaps = [(low, high) for low, high in left if low < high]
        self.sent = max(self.sent, end)
        return not is_first

    def passes(self, begin: int, end: int) -> bool:
        """Data are after the queue; whether less is missing than before."""
        if end <= self.passed:
            return False
        if begin > self.passed:
            insort(self._islands, (begin, end))
            return False
        self.passed = end
        while self._islands and self._islands[0][0] <= self.passed:
            self.passed = max(self.passed, self._islands.pop(0)[1])
        return True


class _Handshake:
    """How far both ends are from the queue, there and back."""

    __slots__ = ("client_ns", "opened_ns", "server_ns", "syn_ns", "synack_ns", "synacks", "syns")

    def __init__(self, syn_ns: int) -> None:
        self.syn_ns = syn_ns
        self.syns = self.synacks = self.synack_ns = 0
        self.opened_ns: int | None = None
        self.server_ns: int | None = None
        self.client_ns: int | None = None

    def answered(self, now: int, syn_ns: int) -> None:
        """The SYN+ACK is before the queue."""
        if self.server_ns is None and self.syns == 1:
            self.server_ns = now - syn_ns

    def opened(self, now: int) -> None:
        """The client's answer to the SYN+ACK is before the queue."""
        self.opened_ns = now
        if self.synacks == 1:
            # Sent once: it is known which one was answered (Karn).
            self.client_ns = now - self.synack_ns


class Connection:
    """A connection from its SYN on, and the exchange under way."""

    __slots__ = (
        *(
            "_asked_ns",
            "_asked_to",
            "_begins",
            "_client",
            "_expected",
            "_handshake",
            "_is_first",
            "_last_ns",
            "_pushed_ns",
        ),
        *("_request", "_server", "_syn_passed_ns", "_way"),
    )

    def __init__(self, syn: Segment, way: int) -> None:
        self._way = way
        self._client = _Stream(syn.sequence)
        self._server: _Stream | None = None
        self._handshake = _Handshake(syn.time_ns)
        self._is_first = True
        # Of the exchange under way: when its first byte came, where its request begins and ends and its response
        # begins, how long that is to be; when a byte that was missing last passed, of the response and of the request.
        self._asked_ns: int | None = None
        self._request = self._asked_to = self._begins = self._last_ns = self._pushed_ns = self._syn_passed_ns = 0
        self._expected: int | None = None

    def is_anew(self, syn: Segment) -> bool:
        """Whether a SYN is that of another connection."""
        return syn.sequence != self._client.first

    @property
    def is_asking(self) -> bool:
        """Whether an exchange is under way."""
        return self._asked_ns is not None

    def before(self, segment: Segment, payload: bytes, way: int) -> tuple[bool, Exchange | None]:
        """A segment is before the queue: whether it was there already, and the exchange that it shows to be over."""
        now, is_client = segment.time_ns, way == self._way
        if segment.flags & SYN:
            if is_client:
                return now != self._handshake.syn_ns, None
            is_again = self._server is not None
            self._server = self._server or _Stream(segment.sequence)
            self._handshake.answered(now, self._syn_passed_ns)
            return is_again, None
        stream = self._client if is_client else self._server
        if stream is None or self._server is None:
            return False, None
        if is_client and self._handshake.opened_ns is None and segment.flags & ACK and self._handshake.synacks:
            self._handshake.opened(now)
        # A FIN takes room as a byte does, and is sent again as one is.
        size = segment.payload + bool(segment.flags & FIN)
        if not size:
            return False, None
        begin = stream.position(segment.sequence)
        is_late = begin < stream.sent
        is_again = stream.comes(begin, begin + size)
        if is_late:
            return is_again, None
        over = None
        if is_client and segment.payload:
            if self._asked_ns is not None and self._server.sent > self._begins:
                over = self._finish()
            if self._asked_ns is None:
                line = _REQUEST.match(payload)
                self._asked_ns, self._request, self._begins = now, begin, self._server.passed
                self._expected = int(line[1]) if line else None
            self._asked_to = begin + segment.payload
        return False, over

    def far_ns(self, way: int) -> int:
        """How far the sender of what flows that way is from the queue, there and back; 0 if it is not known."""
        return (self._handshake.client_ns if way == self._way else self._handshake.server_ns) or 0

    def after(self, segment: Segment, way: int) -> Exchange | None:
        """A segment is after the queue; the exchange that is over with it."""
        now, is_client = segment.time_ns, way == self._way
        if segment.flags & SYN:
            if is_client:
                self._handshake.syns += 1
                self._syn_passed_ns = now
            else:
                self._handshake.synacks += 1
                self._handshake.synack_ns = now
            return None
        stream = self._client if is_client else self._server
        if stream is None or self._server is None:
            return None
        begin = stream.position(segment.sequence)
        end = begin + segment.payload
        if segment.payload and stream.passes(begin, end):
            if is_client:
                self._pushed_ns = now
            else:
                self._last_ns = now
        if self._asked_ns is None:
            return None
        is_end = bool(segment.flags & FIN) and stream.passed >= end
        has_answer = self._server.passed > self._begins
        if is_client:
            return self._finish_transfer() if is_end and not has_answer and self._expected is None else None
        if self._expected is None:
            return self._finish() if is_end and has_answer else None
        return self._finish() if has_answer and self._server.passed >= self._begins + self._expected else None

    def _finish(self) -> Exchange:
        assert self._server is not None
        client_ns = self._handshake.client_ns
        start, setup = self._begun()
        return Exchange(
            1 - self._way,
            start,
            setup,
            self._last_ns,
            client_ns,
            self._last_ns + (client_ns or 0) // 2,
            self._asked_to - self._request,
            self._server.passed - self._begins,
        )

    def _finish_transfer(self) -> Exchange:
        ways = (self._handshake.client_ns, self._handshake.server_ns)
        missing = None if ways[0] is None or ways[1] is None else (ways[0] + ways[1]) // 2
        start, setup = self._begun()
        completed = self._pushed_ns + (ways[1] or 0) // 2
        size = self._client.passed - self._request
        return Exchange(self._way, start, setup, self._pushed_ns, missing, completed, 0, size)

    def _begun(self) -> tuple[int, int]:
        """When the exchange was asked for, and how long its connection took to open; it is under way no more."""
        assert self._asked_ns is not None
        start, setup = self._asked_ns, 0
        if self._is_first:
            start = self._handshake.syn_ns
            setup = (self._handshake.opened_ns or self._asked_ns) - start
        self._is_first = False
        self._asked_ns = None
        return start, setup


class Connections:
    """Follows all connections of a capture."""

    def __init__(self) -> None:
        self._open: dict[frozenset[tuple[bytes, int]], Connection] = {}
        self.exchanges: list[Exchange] = []
        self.counts: Counter[str] = Counter()
        self.again_ns: tuple[list[tuple[int, int]], ...] = ([], [])
        """Of segments that came to the queue again, by direction: when, and how far their sender is."""

    def before(self, segment: Segment, payload: bytes, way: int) -> None:
        """A segment is before the queue."""
        ends = frozenset((segment.source, segment.target))
        connection = self._open.get(ends)
        if segment.flags & (SYN | ACK) == SYN and (connection is None or connection.is_anew(segment)):
            connection = self._open[ends] = Connection(segment, way)
            self.counts["connections"] += 1
            return
        if connection is None:
            self.counts["without_beginning"] += 1
            return
        again, over = connection.before(segment, payload, way)
        if again:
            self.again_ns[way].append((segment.time_ns, connection.far_ns(way)))
        if over is not None:
            self.exchanges.append(over)

    def after(self, segment: Segment, way: int) -> None:
        """A segment is after the queue."""
        connection = self._open.get(frozenset((segment.source, segment.target)))
        over = connection.after(segment, way) if connection is not None else None
        if over is not None:
            self.exchanges.append(over)

    @property
    def unfinished(self) -> int:
        """Exchanges that were under way when the capture ended, or whose connection gave up."""
        return sum(connection.is_asking for connection in self._open.values())
