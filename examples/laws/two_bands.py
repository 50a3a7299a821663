"""A discipline to begin with: `aqmlab check two_bands.py`, then `aqmlab compare web-pi.toml two_bands.py pie`."""

from collections import deque

import aqmlab


@aqmlab.discipline(gauges={"waiting_small": "Small packets that wait."})
class TwoBands:
    """Sends small packets first, and signals to large ones that have waited for long."""

    small = aqmlab.parameter("200b", "A packet up to this size goes first.")
    target = aqmlab.parameter("50ms", "A large packet that waited for longer is marked or dropped.")
    waiting_small = 0

    def __init__(self):
        self.bands = deque(), deque()

    def offer(self, packet, queue):
        if queue.is_full:
            queue.drop(packet, aqmlab.TAIL)
            return
        self.bands[packet.size > self.small].append(packet)
        self.waiting_small = len(self.bands[0])

    def take(self, queue):
        small, large = self.bands
        if small:
            self.waiting_small = len(small) - 1
            return small.popleft()
        while large:
            packet = large.popleft()
            if queue.now_ns - packet.arrived_ns <= self.target or not large:
                return packet
            if packet.may_mark:
                queue.mark(packet)
                return packet
            queue.drop(packet)
        return None
