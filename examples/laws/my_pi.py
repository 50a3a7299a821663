"""PI (Hollot, Misra, Towsley and Gong 2001) as a law of one's own: `aqmlab compare web-pi.toml my_pi.py pi`."""

import aqmlab


@aqmlab.law(tick="w", gauges={"error": "Distance of the queue from qref at the last tick."})
class MyPi:
    """Controls the queue to a reference length by an integrating controller."""

    qref = aqmlab.parameter(50.0, "The queue to settle at.", unit="packets", low=0.0)
    a = aqmlab.parameter(1.822e-5, "Gain on the queue now, per packet.", low=0.0, high=1.0)
    b = aqmlab.parameter(1.816e-5, "Gain on the queue one period ago, per packet.", low=0.0, high=1.0)
    w = aqmlab.parameter("170hz", "How often the probability is computed.")
    probability = 0.0
    before = 0.0
    error = 0.0

    def prepare(self, link):
        self.error = self.before - self.qref

    def on_arrival(self, packet):
        return aqmlab.SIGNAL if packet.chance(self.probability) else aqmlab.PASS

    def tick(self, queue):
        length = float(queue.backlog_packets)
        p = self.probability + (self.a * (length - self.qref) - self.b * (self.before - self.qref))
        self.probability = min(max(p, 0.0), 1.0)
        self.before = length
        self.error = length - self.qref
