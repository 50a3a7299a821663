"""Strict priority by codepoint, with CoDel (RFC 8289) in each band."""

from collections import deque

import aqmlab


class Codel:
    """Says of the packets of one band which are signalled, when they are about to leave."""

    def __init__(self):
        self.above_since = None
        self.is_dropping = False
        self.next_ns = self.count = self.last_count = 0

    def signals(self, packet, waits, discipline, now):
        """Whether this packet is signalled, with `waits` bytes behind it."""
        is_above = now - packet.arrived_ns >= discipline.target and waits > 0
        if not is_above:
            self.above_since, self.is_dropping = None, False
            return False
        if self.above_since is None:
            self.above_since = now
        if self.is_dropping:
            if now < self.next_ns:
                return False
            self.count += 1
            self.next_ns += discipline.interval / self.count**0.5
            return True
        if now < self.above_since + discipline.interval:
            return False
        self.is_dropping = True
        grown = self.count - self.last_count
        was_short_ago = now - self.next_ns < 16 * discipline.interval
        self.count = self.last_count = grown if grown > 1 and was_short_ago else 1
        self.next_ns = now + discipline.interval / self.count**0.5
        return True


@aqmlab.discipline(gauges={"waiting_first": "Packets of the first band."})
class MyPriority:
    """Expedited packets go first, then those of the background and the rest; each band has a CoDel."""

    target = aqmlab.parameter("5ms", "The waiting time that a band may have for long.")
    interval = aqmlab.parameter("100ms", "How long a band may be above it.", low="1ms")
    waiting_first = 0

    def __init__(self):
        self.bands = [(deque(), Codel()) for _ in range(3)]

    def band(self, packet):
        return 0 if packet.dscp in (46, 48) else 2 if packet.dscp == 8 else 1

    def offer(self, packet, queue):
        self.bands[self.band(packet)][0].append(packet)
        while queue.is_full:
            # The least important band loses its newest packet, be it the one that arrives.
            lowest = next(waiting for waiting, _ in reversed(self.bands) if waiting)
            queue.drop(lowest.pop(), aqmlab.TAIL)
        self.waiting_first = len(self.bands[0][0])

    def take(self, queue):
        for waiting, codel in self.bands:
            while waiting:
                packet = waiting.popleft()
                self.waiting_first = len(self.bands[0][0])
                if not codel.signals(packet, len(waiting), self, queue.now_ns):
                    return packet
                if packet.may_mark:
                    queue.mark(packet)
                    return packet
                queue.drop(packet)
        return None
