"""CoDel (RFC 8289) as a law of one's own: `aqmlab compare web-pi.toml my_codel.py codel`."""

import math

import aqmlab

NOTHING, FIRST, FURTHER = 0, 1, 2
"""What the packet before was, if it was lost at this same instant."""


@aqmlab.law(gauges={"signals": "Signals in this dropping state; 0 outside of one."})
class MyCodel:
    """Signals packets at the head of a queue whose waiting time stays above a target, at a rising rate."""

    target = aqmlab.parameter("5ms", "Waiting time that may stand.")
    interval = aqmlab.parameter("100ms", "How long the target must be exceeded before the first signal.")
    mtu = aqmlab.parameter("1500b", "A queue of at most so many bytes is never signalled.")
    first_above = -1
    dropping = False
    drop_next = -1
    count = 0
    last_count = 0
    root = 1.0
    lost = NOTHING
    signals = 0.0

    def is_standing(self, packet):
        if packet.sojourn_ns < self.target or packet.backlog_bytes <= self.mtu:
            self.first_above = -1
            return False
        if self.first_above < 0:
            self.first_above = packet.now_ns + self.interval
            return False
        return packet.now_ns >= self.first_above

    def after(self, time_ns):
        return time_ns + int(self.interval * self.root + 0.5)

    def set_count(self, count):
        self.count = count
        self.root = 1.0 / math.sqrt(float(count))

    def begin(self, now_ns):
        self.dropping = True
        delta = self.count - self.last_count
        if delta > 1 and self.drop_next >= 0 and now_ns - self.drop_next < 16 * self.interval:
            self.set_count(delta)
        else:
            self.set_count(1)
        self.last_count = self.count
        self.drop_next = self.after(now_ns)

    def decide(self, packet):
        is_standing = self.is_standing(packet)
        was = self.lost
        self.lost = NOTHING
        if was == FIRST:
            return aqmlab.PASS
        if was == FURTHER and is_standing:
            self.drop_next = self.after(self.drop_next)
        if not is_standing:
            self.dropping = False
            return aqmlab.PASS
        if self.dropping and packet.now_ns < self.drop_next:
            return aqmlab.PASS
        if self.dropping:
            self.set_count(self.count + 1)
            if packet.may_mark:
                self.drop_next = self.after(self.drop_next)
            else:
                self.lost = FURTHER
        else:
            self.begin(packet.now_ns)
            if not packet.may_mark:
                self.lost = FIRST
        return aqmlab.SIGNAL

    def on_departure(self, packet):
        verdict = self.decide(packet)
        self.signals = float(self.count) if self.dropping else 0.0
        return verdict

    def on_idle(self, queue):
        if self.lost != FIRST:
            self.dropping = False
        self.lost = NOTHING
        self.first_above = -1
        self.signals = float(self.count) if self.dropping else 0.0
