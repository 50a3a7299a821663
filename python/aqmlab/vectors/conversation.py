"""Takes TCP out of one connection: from its segments at one point of the path to what its applications did.

The method is that of Hernandez-Campos' thesis (University of North Carolina, 2006, chapters 3 and 4) and of
Hernandez-Campos, Jeffay and Smith (Broadnets 2007), in one pass:

- **Sizes** are differences of sequence numbers, so that neither retransmissions nor reordering nor the way data were
  cut into segments change them.
- **Concurrent** is a connection of which two data segments, one each way, cross: neither acknowledges the other.
  Without such a pair the ends take turns, and a unit ends when the other end speaks.
- **Quiet times** of more than 500 ms also end a unit, if all sent before is acknowledged and the window open: else it
  was TCP that kept the sender.
- A quiet time is told from the first segment of the unit before, which is when that was written: players count from
  there (tmix.cc of ns-2.35, `TmixApp::timeout`), and a writer may have taken its time.
- **Transit** from the vantage point to either end and back is the smallest time from a segment to its acknowledgement,
  of segments sent once (Karn's rule) and of the handshake; the round-trip time is the sum of both. A think time is
  what remains of the time between two units here without the transit to the end that thinks, at least 1 us.
- **Losses** are the segments seen twice (lost behind the vantage point) and those that fill a gap later than reordering
  would (lost before it), as a share of all data segments that were sent: those seen and those lost before. What a host
  hands to its network card in one, or takes from it, counts as the segments that it is cut into.

What cannot be told from here: a spurious retransmission counts as a loss, and a delayed acknowledgement of every single
segment adds to the transit (the handshake's are not delayed).
"""

from collections import deque

from aqmlab.vectors.model import ACCEPTOR, INITIATOR, Unit, Vector
from aqmlab.vectors.segments import ACK, FIN, RST, SYN, Segment

_HALF_SPACE, _SPACE = 1 << 31, 1 << 32

REORDERED_NS = 3_000_000
"""What fills a gap sooner was reordered: parallel queues and paths are off by less, a retransmission takes a
round-trip time (Jaiswal et al., IEEE/ACM ToN 15(1), 2007). Of paths shorter than that, half their round-trip time."""

# The largest segment of ends of which neither says one: that of IPv4 over Ethernet.
_USUAL_MSS = 1460
# Linux takes less for this (tcp_min_snd_mss).
_LEAST_MSS = 48

_MOST_GAPS = 256
# More acknowledged data than this that the capture has not: somebody else's acknowledgement.
_MOST_MISSED = 1 << 26
# The largest window without a scale, which one has that was not heard of yet.
_UNSCALED = (1 << 16) - 1
# RFC 7323 §2.3.
_LARGEST_SHIFT = 14


class _Burst:
    """What one end sent without the other speaking, or a pause."""

    __slots__ = ("first_ns", "last_ns", "side", "size")

    def __init__(self, side: int, now: int) -> None:
        self.side = side
        self.first_ns = self.last_ns = now
        self.size = 0


class _End:
    """One end of a connection, and the data it sends."""

    __slots__ = (
        "acked",
        "burst",
        "data_segments",
        "first_ns",
        "gaps",
        "highest",
        "is_shift_cut_off",
        "is_shut",
        "largest",
        "last_finish",
        "last_ns",
        "losses",
        "opened_ns",
        "said",
        "shift",
        "start",
        "timed",
        "timed_ns",
        "transit_is_sure",
        "transit_ns",
        "window",
        "window_in_syn",
    )

    def __init__(self, sequence: int) -> None:
        # Positions are sequence numbers that do not wrap; data begin behind the SYN.
        self.start = self.highest = self.acked = sequence + 1
        self.data_segments = self.losses = 0
        # Ranges not seen though later ones were: begin, end, and when the later one came.
        self.gaps: list[tuple[int, int, int]] = []
        # What this end had acknowledged when it sent up to a position: (acknowledged, position), while outstanding.
        self.said: deque[tuple[int, int]] = deque()
        # The position whose acknowledgement is waited for, with the time of sending.
        self.timed = -1
        self.timed_ns = 0
        # From here to the other end and back.
        self.transit_ns: int | None = None
        self.transit_is_sure = False
        self.window = self.window_in_syn = 0
        self.shift: int | None = None
        self.is_shift_cut_off = False
        # The largest segment that it takes, of its SYN.
        self.largest: int | None = None
        # The peer's window is closed; when it last opened.
        self.is_shut = False
        self.opened_ns = 0
        self.first_ns = self.last_ns = -1
        # Position behind the FIN, and when it first came.
        self.last_finish: tuple[int, int] | None = None
        # Of a concurrent connection, the unit under way.
        self.burst: _Burst | None = None

    def position(self, number: int) -> int:
        """The sequence number `number` without wrapping, near what was sent last."""
        return self.highest + ((number - self.highest + _HALF_SPACE) % _SPACE) - _HALF_SPACE


class Conversation:
    """A connection under way, from its SYN on."""

    __slots__ = (
        "_bursts",
        "_ends",
        "_established_ns",
        "_quiet_ns",
        "_syn_ns",
        "_synack_ns",
        "_syns",
        "is_concurrent",
        "is_over",
        "last_ns",
        "missed_bytes",
        "opener",
        "start_ns",
        "stray_resets",
        "was_reset",
    )

    def __init__(self, syn: Segment, quiet_ns: int) -> None:
        self.opener = syn.source
        self.start_ns = self.last_ns = syn.time_ns
        self.is_concurrent = self.is_over = self.was_reset = False
        self.missed_bytes = self.stray_resets = 0
        self._quiet_ns = quiet_ns
        self._bursts: list[_Burst] = []
        self._established_ns: int | None = None
        # When the last SYN of either end came, and how many came.
        self._syn_ns = self._synack_ns = syn.time_ns
        self._syns = [1, 0]
        self._ends: list[_End | None] = [self._end(syn), None]
        if syn.payload:
            self._data(INITIATOR, syn, syn.sequence + 1)

    @property
    def is_answered(self) -> bool:
        """Whether the acceptor was heard of."""
        return self._ends[ACCEPTOR] is not None

    @property
    def is_scale_cut_off(self) -> bool:
        """Whether windows are scaled by what the capture has not; they are not if an end has no such option."""
        ends = [end for end in self._ends if end is not None]
        has_none = any(end.shift is None and not end.is_shift_cut_off for end in ends)
        return any(end.is_shift_cut_off for end in ends) and not has_none

    @property
    def rtt_ns(self) -> int | None:
        """The round-trip time, where both ways were seen."""
        opener, acceptor = self._ends
        if opener is None or acceptor is None or opener.transit_ns is None or acceptor.transit_ns is None:
            return None
        return opener.transit_ns + acceptor.transit_ns

    def is_anew(self, segment: Segment) -> bool:
        """Whether this SYN opens another connection between the same ports."""
        opener = self._ends[INITIATOR]
        assert opener is not None
        return segment.source != self.opener or (segment.sequence + 1) % _SPACE != opener.start % _SPACE

    def take(self, segment: Segment) -> bool:
        """The next segment. Whether it belongs here: nothing does whose beginning was not seen."""
        now = segment.time_ns
        side = INITIATOR if segment.source == self.opener else ACCEPTOR
        end, peer = self._ends[side], self._ends[1 - side]
        if segment.flags & RST:
            if not self._is_heeded(end, peer, segment):
                self.stray_resets += 1
                return True
            self.last_ns = now
            self.is_over = self.was_reset = True
            for each in self._ends:
                if each is not None and each.last_finish is None:
                    each.last_finish = (each.highest, now)
            return True
        self.last_ns = now
        if segment.flags & SYN:
            self._handshake(side, segment)
            return True
        if end is None or peer is None:
            return side == INITIATOR
        if segment.flags & ACK:
            if self._established_ns is None and side == INITIATOR:
                self._established_ns = now
                _shorten(peer, now - self._synack_ns, is_sure=self._syns[ACCEPTOR] == 1)
            self._acknowledged(end, peer, segment)
        if segment.payload:
            self._data(side, segment, segment.sequence)
        if segment.flags & FIN:
            finish = end.position(segment.sequence) + segment.payload + 1
            if end.last_finish is None:
                end.last_finish = (finish, now)
        self.is_over = all(
            each is not None and each.last_finish is not None and each.acked >= each.last_finish[0]
            for each in self._ends
        )
        return True

    def vector(self) -> Vector | None:
        """What the applications did, from a start of 0; nothing if nobody sent or nobody answered."""
        opener, acceptor = self._ends
        if opener is None or acceptor is None or not self._bursts:
            return None
        units = self._concurrent(opener, acceptor) if self.is_concurrent else self._sequential(opener, acceptor)
        rtt_ns = sum(end.transit_ns or 0 for end in (opener, acceptor))

        def lost(end: _End) -> float:
            return round(min(end.losses / end.data_segments, 1.0), 6) if end.data_segments else 0.0

        return Vector(
            start_us=0,
            is_concurrent=self.is_concurrent,
            units=tuple(units),
            windows=(self._window(opener), self._window(acceptor)),
            rtt_us=_us(rtt_ns),
            losses=(lost(opener), lost(acceptor)),
        )

    def _window(self, end: _End) -> int:
        """The largest that it offered."""
        both_scale = all(each is not None and each.shift is not None for each in self._ends)
        return max(end.window_in_syn, end.window << (end.shift or 0) if both_scale else end.window)

    def _is_heeded(self, end: _End | None, peer: _End | None, reset: Segment) -> bool:
        """Whether a reset ends the connection: the receiver drops one that is not in its window.

        RFC 9293 §3.10.7.4, RFC 5961 §3.2. Who waits for an answer to its SYN goes by what is acknowledged (§3.10.7.3).
        """
        if end is None:
            assert peer is not None
            return bool(reset.flags & ACK) and peer.start <= peer.position(reset.acknowledgement) <= peer.highest
        # What the receiver expects next is behind what it acknowledged; how far is not known from here.
        window = _UNSCALED if peer is None else self._window(peer)
        window <<= _LARGEST_SHIFT if self.is_scale_cut_off else 0
        return end.acked <= end.position(reset.sequence) <= max(end.highest, end.acked) + window

    def _end(self, syn: Segment) -> _End:
        end = _End(syn.sequence)
        end.window_in_syn = syn.window
        end.shift = syn.window_shift
        end.is_shift_cut_off = syn.is_cut and syn.window_shift is None
        end.largest = syn.largest
        return end

    def _handshake(self, side: int, segment: Segment) -> None:
        now = segment.time_ns
        self._syns[side] += 1
        if side == INITIATOR:
            self._syn_ns = now
            return
        self._synack_ns = now
        if self._ends[ACCEPTOR] is None:
            self._ends[ACCEPTOR] = self._end(segment)
            opener = self._ends[INITIATOR]
            assert opener is not None
            _shorten(opener, now - self._syn_ns, is_sure=self._syns[INITIATOR] == 1)

    def _acknowledged(self, end: _End, peer: _End, segment: Segment) -> None:
        now = segment.time_ns
        end.window = max(end.window, segment.window)
        if segment.window == 0:
            peer.is_shut = True
        elif peer.is_shut:
            peer.is_shut = False
            peer.opened_ns = now
        upto = peer.position(segment.acknowledgement)
        has_finish = peer.last_finish is not None and upto >= peer.last_finish[0]
        missed = upto - has_finish - peer.highest
        # One more may be a FIN that the capture has not.
        if 1 < missed <= _MOST_MISSED:
            self._missed(peer, missed, now)
        if upto > peer.acked:
            peer.acked = upto
            if peer.timed >= 0 and upto >= peer.timed:
                _shorten(peer, now - peer.timed_ns)
                peer.timed = -1
            while peer.said and peer.said[0][1] <= upto:
                peer.said.popleft()

    def _missed(self, end: _End, size: int, now: int) -> None:
        """Data that the capture has not, though they were acknowledged: part of the unit under way."""
        self.missed_bytes += size
        side = INITIATOR if end is self._ends[INITIATOR] else ACCEPTOR
        end.timed = -1
        self._grow(side, end, size, now)
        end.highest += size
        end.last_ns = now

    def _data(self, side: int, segment: Segment, sequence: int) -> None:
        now = segment.time_ns
        end, peer = self._ends[side], self._ends[1 - side]
        assert end is not None
        begin = end.position(sequence)
        finish = begin + segment.payload
        if finish <= end.highest:
            self._again(end, begin, finish, now)
            return
        end.data_segments += self._segments(segment.payload)
        if begin > end.highest and len(end.gaps) < _MOST_GAPS:
            end.gaps.append((end.highest, begin, now))
        if peer is not None:
            acknowledged = peer.position(segment.acknowledgement)
            self._cross(end, peer, acknowledged, finish)
        if self._is_pause(end, now):
            self._pause(side, end)
        self._grow(side, end, finish - end.highest, now)
        end.highest = finish
        end.last_ns = now
        if end.timed < 0 and begin >= end.acked:
            end.timed, end.timed_ns = finish, now

    def _segments(self, size: int) -> int:
        """How many of the path's segments so many bytes are, which a host may have as one."""
        if size <= _LEAST_MSS:
            return 1
        told = [end.largest for end in self._ends if end is not None and end.largest is not None]
        return -(-size // max(min(told, default=_USUAL_MSS), _LEAST_MSS))

    def _again(self, end: _End, begin: int, finish: int, now: int) -> None:
        """Data that were seen before, or that fill a gap."""
        is_keep_alive = finish == end.highest and end.acked >= finish
        if finish - begin == 1 and (is_keep_alive or end.is_shut):
            # RFC 1122 §4.2.3.6: a keep-alive repeats the last byte; §4.2.2.17: a probe of a closed window may, too.
            end.timed = end.timed if is_keep_alive else -1
            return
        sent = self._segments(finish - begin)
        end.data_segments += sent
        rtt_ns = end.transit_ns or 0
        limit = min(REORDERED_NS, rtt_ns // 2) if rtt_ns else REORDERED_NS
        filled = [gap for gap in end.gaps if begin < gap[1] and finish > gap[0]]
        if not filled or now - filled[0][2] > limit:
            end.losses += sent
            # What is here for the first time was sent once before.
            end.data_segments += sent if filled else 0
        if filled:
            kept = [gap for gap in end.gaps if gap not in filled]
            for low, high, when in filled:
                kept += [(low, begin, when)] if low < begin else []
                kept += [(finish, high, when)] if finish < high else []
            end.gaps = sorted(kept)[:_MOST_GAPS]
        # Karn: of what was sent twice it cannot be told which was acknowledged.
        end.timed = -1
        if end.acked < end.highest:
            end.last_ns = now
            burst = end.burst if self.is_concurrent else self._bursts[-1] if self._bursts else None
            if burst is not None and self._ends[burst.side] is end:
                burst.last_ns = now

    def _cross(self, end: _End, peer: _End, acknowledged: int, finish: int) -> None:
        """Whether this segment and one of the peer's are under way at once."""
        if self.is_concurrent:
            return
        while peer.said and peer.said[0][1] <= acknowledged:
            peer.said.popleft()
        # The first that is not acknowledged by this one is the one that acknowledges least.
        if peer.said and peer.said[0][0] < finish:
            self._become_concurrent()
            return
        if end.said and end.said[-1][0] == acknowledged:
            end.said[-1] = (acknowledged, finish)
        else:
            end.said.append((acknowledged, finish))

    def _become_concurrent(self) -> None:
        """Each end's units become its own: what it sent in turns is one unit, unless there was a pause."""
        self.is_concurrent = True
        merged: list[_Burst] = []
        last: dict[int, _Burst] = {}
        for burst in self._bursts:
            before = last.get(burst.side)
            if before is not None and burst.first_ns - before.last_ns <= self._quiet_ns:
                before.last_ns = burst.last_ns
                before.size += burst.size
            else:
                merged.append(burst)
                last[burst.side] = burst
        self._bursts = merged
        for side, end in enumerate(self._ends):
            if end is not None:
                end.burst = last.get(side)
                end.said.clear()

    def _is_pause(self, end: _End, now: int) -> bool:
        since = max(end.last_ns, end.opened_ns)
        return end.last_ns >= 0 and now - since > self._quiet_ns and end.acked >= end.highest and not end.is_shut

    def _pause(self, side: int, end: _End) -> None:
        if self.is_concurrent:
            end.burst = None
        elif self._bursts and self._bursts[-1].side == side:
            self._bursts.append(_Burst(side, -1))

    def _grow(self, side: int, end: _End, size: int, now: int) -> None:
        if self.is_concurrent:
            burst = end.burst
        else:
            burst = self._bursts[-1] if self._bursts and self._bursts[-1].side == side else None
        if burst is None:
            burst = _Burst(side, now)
            self._bursts.append(burst)
            end.burst = burst if self.is_concurrent else None
        if burst.first_ns < 0:
            burst.first_ns = now
        burst.size += size
        burst.last_ns = now
        if end.first_ns < 0:
            end.first_ns = now

    def _sequential(self, opener: _End, acceptor: _End) -> list[Unit]:
        # From here to the initiator and back is what the acceptor's segments take, and the other way round.
        to_side = (acceptor.transit_ns or 0, opener.transit_ns or 0)
        units: list[Unit] = []
        before: _Burst | None = None
        for burst in self._bursts:
            wait = 0
            if before is not None:
                # An answer waits from when the other's unit arrives, one's own next unit from writing the one before.
                is_answer = burst.side != before.side
                since = before.last_ns + to_side[burst.side] if is_answer else before.first_ns
                wait = max(_us(burst.first_ns - since), 1)
            units.append(Unit(burst.side, wait, burst.size))
            before = burst
        finishes = [
            (end.last_finish[1], side) for side, end in enumerate((opener, acceptor)) if end.last_finish is not None
        ]
        if finishes and before is not None:
            when, side = min(finishes)
            # The last to write closes: when it did, or when the other one has heard all and does.
            away = to_side[side] if side != before.side else 0
            units.append(Unit(before.side, max(_us(when - before.first_ns - away), 1), 0))
        return units

    def _concurrent(self, opener: _End, acceptor: _End) -> list[Unit]:
        began = self._established_ns if self._established_ns is not None else self.start_ns
        units: list[Unit] = []
        # The acceptor hears that the connection is open when the handshake's last segment gets there.
        for side, end, free in ((INITIATOR, opener, began), (ACCEPTOR, acceptor, began + (opener.transit_ns or 0))):
            is_first, since = True, free
            for burst in self._bursts:
                if burst.side == side:
                    wait = _us(burst.first_ns - since)
                    units.append(Unit(side, wait if is_first else max(wait, 1), burst.size))
                    is_first, since = False, burst.first_ns
            if end.last_finish is not None:
                units.append(Unit(side, max(_us(end.last_finish[1] - since), 1), 0))
        return units


def _shorten(end: _End, took_ns: int, is_sure: bool = True) -> None:
    """A transit was observed; of a segment sent twice, which was answered is not sure: better than nothing."""
    is_better = end.transit_ns is None or is_sure > end.transit_is_sure
    if is_better or (is_sure == end.transit_is_sure and end.transit_ns is not None and took_ns < end.transit_ns):
        end.transit_ns, end.transit_is_sure = max(took_ns, 0), is_sure


def _us(ns: int) -> int:
    return max(ns + 500, 0) // 1000
