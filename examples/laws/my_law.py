"""A law to begin with: `aqmlab check my_law.py`, then `aqmlab compare web-pi.toml my_law.py pie`."""

import aqmlab


@aqmlab.law(tick="update")
class MyLaw:
    """Loses arriving packets with a probability that follows the waiting time."""

    target = aqmlab.parameter("20ms", "The waiting time to settle at.")
    update = aqmlab.parameter("10ms", "How often the probability is computed.", low="1ms")
    gain = aqmlab.parameter(0.05, "Step of the probability for a second beyond the target.", low=0.0)
    probability = 0.0
    waited = 0

    def on_arrival(self, packet):
        return aqmlab.SIGNAL if packet.chance(self.probability) else aqmlab.PASS

    def on_departure(self, packet):
        self.waited = packet.sojourn_ns
        return aqmlab.PASS

    def on_idle(self, queue):
        self.waited = 0

    def tick(self, queue):
        step = self.gain * (self.waited - self.target) * 1e-9
        self.probability = min(max(self.probability + step, 0.0), 1.0)
