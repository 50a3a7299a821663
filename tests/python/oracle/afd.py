"""AFD: signals the part of a fast flow's packets that exceeds a fair share, by a sample of recent packets.

Source: Pan, Breslau, Prabhakar and Shenker 2003; Le, Aikat, Jeffay and Smith 2004 for the random replacement.

One in ``sample`` arriving packets, lost or not, enters the shadow buffer of ``buffer`` packets in place of another. A
flow with m packets there is signalled with probability 1 - m_fair / m. ``w`` times a second

    m_fair := m_fair + alpha (q_old - q_ref) - beta (q - q_ref), within [0, buffer];  q_old := q

In byte mode m is in mean packets, as the queue is. By default the shadow buffer remembers a second at the link's rate.

Readings: the packet is judged before it is sampled. A packet lost by the limit is sampled like any other. The share
begins at the size of the shadow buffer, where it signals nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Measure, Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "dialect": "paper",
    "limit": "10000p",
    "ecn": False,
    "qref": "50p",
    "alpha": 1.7,
    "beta": 1.8,
    "w": "160hz",
    "buffer": 1000,
    "sample": "",
    "replace": "random",
    "mode": "packet",
    "mean_packet": "500b",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """AFD before a link of ``rate_bps``."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Afd(parameters, rate_bps, uniform), parameters.length("limit"))


class Afd(Law):
    """The law."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        self.mean_packet = parameters.size("mean_packet")
        self.in_byte_mode = parameters.word("mode") == "byte"
        if parameters.is_time("qref"):
            self.measure = Measure(True, self.mean_packet)
            self.qref = rate_bps * parameters.time_ns("qref") / 8e9 / self.mean_packet
        else:
            qref = parameters.length("qref")
            self.measure = Measure(self.in_byte_mode or qref.in_bytes, self.mean_packet)
            self.qref = self.measure.packets(qref)
        self.alpha = parameters.number("alpha")
        self.beta = parameters.number("beta")
        self.period_ns = 10**9 / parameters.hertz("w")
        self.size = int(parameters.number("buffer"))
        if parameters.has("sample"):
            self.one_in = parameters.number("sample")
        else:
            self.one_in = max(1.0, rate_bps / (8.0 * self.mean_packet) / self.size)
        self.replaces_oldest = parameters.word("replace") == "oldest"
        self.marks = parameters.flag("ecn")
        self.uniform = uniform

        self.shadow: list[Packet] = []
        self.oldest = 0
        self.share = float(self.size)
        self.before = 0.0

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Judges, then samples."""
        samples = self.samples_of(packet.flow)
        signalled = samples > self.share and chance(1.0 - self.share / samples, self.uniform)
        self.sample(packet)
        if not signalled:
            return None
        return Signal("mark" if self.marks and packet.has_ect else "drop", "early")

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """It arrived, too."""
        self.sample(packet)

    def samples_of(self, flow: int) -> float:
        """What the shadow buffer holds of a flow, in packets or mean packets."""
        held = [packet for packet in self.shadow if packet.flow == flow]
        return sum(packet.size for packet in held) / self.mean_packet if self.in_byte_mode else len(held)

    def sample(self, packet: Packet) -> None:
        """Puts one in ``sample`` packets into the shadow buffer."""
        if not chance(1.0 / self.one_in, self.uniform):
            return
        if len(self.shadow) < self.size:
            self.shadow.append(packet)
        elif self.replaces_oldest:
            self.shadow[self.oldest] = packet
            self.oldest = (self.oldest + 1) % self.size
        else:
            self.shadow[int(self.uniform.unit() * self.size)] = packet

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """One step of the controller."""
        queue = self.measure.queue(waiting)
        share = self.share + self.alpha * (self.before - self.qref) - self.beta * (queue - self.qref)
        self.share = min(float(self.size), max(0.0, share))
        self.before = queue

    def control(self) -> float:
        """The fair share."""
        return self.share
