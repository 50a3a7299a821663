"""PIE (RFC 8033) as a law of one's own: `aqmlab compare web-pi.toml my_pie.py pie`."""

import aqmlab


def divisor(p):
    """By what a step is divided: a light probability moves in small steps (RFC 8033 §4.2)."""
    if p < 1e-6:
        return 2048.0
    if p < 1e-5:
        return 512.0
    if p < 1e-4:
        return 128.0
    if p < 1e-3:
        return 32.0
    if p < 1e-2:
        return 8.0
    return 2.0 if p < 0.1 else 1.0


@aqmlab.law(tick="tupdate", gauges={"delay_old": "Waiting time at the last step, in seconds."})
class MyPie:
    """Controls the waiting time to a target by an integrating controller whose steps grow with its output."""

    target = aqmlab.parameter("15ms", "The waiting time to settle at.")
    tupdate = aqmlab.parameter("15ms", "How often the probability is computed.", low="1us")
    alpha = aqmlab.parameter(0.125, "Gain on the distance of the waiting time from its target, in Hz.")
    beta = aqmlab.parameter(1.25, "Gain on the change of the waiting time, in Hz.")
    max_burst = aqmlab.parameter("150ms", "How long nothing is signalled when congestion begins.")
    ecn_prob = aqmlab.parameter(0.1, "Probability from which on packets are dropped that could be marked.")
    mean_packet = aqmlab.parameter("1500b", "Nothing is signalled while two such packets wait or less.")
    probability = 0.0
    delay = 0.0
    delay_old = 0.0
    burst = -1

    def prepare(self, link):
        if self.burst < 0:
            self.burst = self.max_burst

    def is_short(self, delay):
        return delay < self.target * 1e-9 / 2.0

    def on_arrival(self, packet):
        if self.burst > 0 or packet.backlog_bytes <= 2 * self.mean_packet:
            return aqmlab.PASS
        if (self.is_short(self.delay_old) and self.probability < 0.2) or not packet.chance(self.probability):
            return aqmlab.PASS
        if packet.may_mark and self.probability >= self.ecn_prob:
            return aqmlab.DROP + aqmlab.OVERLOAD
        return aqmlab.SIGNAL

    def on_departure(self, packet):
        self.delay = packet.sojourn_ns * 1e-9 if packet.backlog_packets > 0 else 0.0
        return aqmlab.PASS

    def tick(self, queue):
        now, old, target = self.delay, self.delay_old, self.target * 1e-9
        step = (self.alpha * (now - target) + self.beta * (now - old)) / divisor(self.probability)
        if self.probability >= 0.1:
            step = min(step, 0.02)
        self.probability = min(max(self.probability + step, 0.0), 1.0)
        if now == 0.0 and old == 0.0:
            self.probability *= 0.98
        self.delay_old = now
        self.burst = max(self.burst - self.tupdate, 0)
        if self.probability == 0.0 and self.is_short(now) and self.is_short(old):
            self.burst = self.max_burst
