"""Finds packets of which a capture has a copy, as of all interfaces of a router, or of a port mirrored both ways."""

from aqmlab.vectors.segments import FIN, SYN, Segment

COPIED_NS = 3_000_000
"""A copy comes when the host or the switch has passed the packet on, which takes microseconds, behind a queue some
milliseconds. A sender repeats nothing so soon: a SYN after 1 s (RFC 6298 §2.1), data after a timeout of 200 ms or more
(Linux; 1 s in the RFC), or a round-trip time after they left, when duplicate acknowledgements say that they are lost.
Of paths shorter than twice this time, the limit is half their round-trip time."""

_FORGET_NS = 10 * COPIED_NS


class Copies:
    """What came last, of all connections."""

    def __init__(self) -> None:
        # All that a segment is but its time, and when it came first; when those were forgotten that came long ago.
        self._recent: dict[tuple[object, ...], int] = {}
        self._forgot_ns = 0
        self.found = 0

    def is_copy(self, segment: Segment, rtt_ns: int | None) -> bool:
        """Whether the same packet came just before, on a connection of this round-trip time, if it is known.

        Two of one IP identification are the same. Where there is none, a sender may have sent both: two pure
        acknowledgements at any time, for which it does not matter, others after a round-trip time.
        """
        if not (segment.identification or segment.payload or segment.flags & (SYN | FIN)):
            return False
        now = segment.time_ns
        if now - self._forgot_ns > _FORGET_NS:
            self._recent = {packet: since for packet, since in self._recent.items() if now - since <= COPIED_NS}
            self._forgot_ns = now
        packet = segment[1:]
        count = len(self._recent)
        first_ns = self._recent.setdefault(packet, now)
        if len(self._recent) > count:
            return False
        since_ns = now - first_ns
        is_repeated = not segment.identification and rtt_ns is not None and 2 * since_ns > rtt_ns
        if since_ns > COPIED_NS or is_repeated:
            self._recent[packet] = now
            return False
        self.found += 1
        return True
