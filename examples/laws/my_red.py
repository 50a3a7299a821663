"""RED as ns-2 has it (Floyd and Jacobson 1993) as a law of one's own.

`aqmlab compare web-pi.toml my_red.py "red dialect ns2"` has the same numbers twice.
"""

import math

import aqmlab

BUSY = -1
OUTSIDE = -1
LEAST = 2.2250738585072014e-308
"""The least normal number. An average below it is as good as 0, and processors are slow with such numbers."""


def decayed(value, keep, slots):
    """The average after so many slots of idle: each leaves `keep` of it."""
    result, square = 1.0, keep
    while slots > 0:
        if slots % 2 == 1:
            result *= square
        square *= square
        slots //= 2
    return value * result


@aqmlab.law(gauges={"average": "The average queue, in packets."})
class MyRed:
    """Signals arriving packets with a probability that rises with a slow average of the queue."""

    low = aqmlab.parameter(5.0, "Below this average nothing is signalled.", unit="packets", low=0.0)
    high = aqmlab.parameter(15.0, "From this average on everything is lost.", unit="packets", low=0.0)
    max_p = aqmlab.parameter(0.02, "Probability at the upper threshold.", low=0.0, high=1.0)
    wq = aqmlab.parameter(0.002, "Weight of a packet's queue in the average.", low=0.0, high=1.0)
    mean_packet = aqmlab.parameter("500b", "What the average decays by, one a slot of the idle link.", low="1b")
    average = 0.0
    probability = 0.0
    count = OUTSIDE
    idle_since = 0
    slot = 0.0
    spell = 0
    slope = 0.0

    def prepare(self, link):
        self.slot = 1.0 / (link.rate_bps / (8.0 * self.mean_packet))
        self.spell = max(math.floor(self.slot * 1e9), 1) - 1
        self.slope = self.max_p / (self.high - self.low)

    def observe(self, packet):
        if self.idle_since != BUSY and self.idle_since <= max(packet.now_ns - self.spell, 0):
            idle = (packet.now_ns - self.idle_since) * 1e-9
            if idle > 0.0 and self.average != 0.0:
                self.average = decayed(self.average, 1.0 - self.wq, int(idle / self.slot * (1.0 + 1e-12)))
                if self.average < LEAST and self.low > 0.0:
                    self.average = 0.0
        self.idle_since = BUSY
        self.average += self.wq * (float(packet.backlog_packets) - self.average)
        if self.average < self.low:
            self.probability = 0.0
        else:
            self.probability = self.slope * (self.average - self.low) if self.average < self.high else 1.0

    def is_outside(self, packet):
        return self.average < self.low or packet.backlog_packets <= 1

    def on_arrival(self, packet):
        self.observe(packet)
        if self.is_outside(packet):
            self.count = OUTSIDE
            return aqmlab.PASS
        if self.count == OUTSIDE:
            self.count = 1
            return aqmlab.PASS
        self.count += 1
        spent = self.count * self.probability
        if spent < 1.0:
            return aqmlab.PASS
        room = 2.0 - spent
        if self.probability < room and packet.uniform() * room >= self.probability:
            return aqmlab.PASS
        self.count = 0
        if self.average >= self.high:
            return aqmlab.DROP + (aqmlab.OVERLOAD if packet.may_mark else aqmlab.FORCED)
        return aqmlab.SIGNAL

    def on_overflow(self, packet):
        self.observe(packet)
        self.count = OUTSIDE if self.is_outside(packet) else 0

    def on_idle(self, queue):
        if self.idle_since == BUSY:
            self.idle_since = queue.now_ns
