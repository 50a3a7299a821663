"""DualQ Coupled Curvy RED: a short queue for Scalable flows and a long one for Classic flows, whose signals follow how
long Classic packets wait.

Source: De Schepper, Briscoe and White 2023 (RFC 9332 appendix B), Figures 9 and 10, line by line.

=========  ==========================================================================
Q_C        moving average of what Classic packets waited, by ``gamma``, in seconds
Classic    signalled where (Q_C - minTh) / range_C is above each of 2 U random numbers
Scalable   marked above ``T``, or where (Q_C - minTh) / range_L is above each of U
scheduler  TS-FIFO: the L-queue, unless the Classic head waited ``tshift`` longer
=========  ==========================================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from oracle.frame import Discipline, Law, Packet, Told, Uniform, chance
from oracle.parameters import Length, Parameters, Written
from oracle.pi2 import is_scalable

DEFAULTS: dict[str, Written] = {
    "limit": "",
    "ecn": True,
    "dialect": "rfc",
    "coupling_factor": 2.0,
    "range": "500ms",
    "min_th": "500us",
    "gamma": 0.03125,
    "curviness": 1,
    "step_thresh": "1ms",
    "tshift": "50ms",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """Curvy RED before a link of ``rate_bps``."""
    quarter_second = Length(rate_bps // 32, True)
    return CurvyRed(Parameters({**DEFAULTS, "limit": quarter_second}, given), uniform)


class CurvyRed(Discipline):
    """The discipline."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        self.k = parameters.number("coupling_factor")
        self.range_c = parameters.time_ns("range") / 1e9
        self.range_l = self.range_c / self.k
        self.min_th = parameters.time_ns("min_th") / 1e9
        self.gamma = parameters.number("gamma")
        self.curviness = int(parameters.number("curviness"))
        self.t_ns = parameters.time_ns("step_thresh")
        self.tshift_ns = parameters.time_ns("tshift")
        self.marks = parameters.flag("ecn")
        self.uniform = uniform
        self.lq: deque[Packet] = deque()
        self.cq: deque[Packet] = deque()
        self.q_c = 0.0
        super().__init__(_Shown(self), parameters.length("limit"))

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Offers a packet; what is told of it."""
        packet.arrived_ns = now_ns
        if self._is_full(packet):
            return [Told("drop", "tail", packet.number)]
        (self.lq if self.marks and is_scalable(packet) else self.cq).append(packet)
        self.waiting.packets += 1
        self.waiting.bytes += packet.size
        return [Told("accept", number=packet.number)]

    def take(self, now_ns: int) -> list[Told]:
        """cred_dequeue."""
        told: list[Told] = []
        while self.lq or self.cq:
            queue = self.scheduler(now_ns)
            packet = queue.popleft()
            self.waiting.packets -= 1
            self.waiting.bytes -= packet.size
            time_ns = now_ns - packet.arrived_ns
            if queue is self.lq:
                if time_ns > self.t_ns:
                    told.append(Told("mark", "forced", packet.number))
                elif self.is_above_maxrand((self.q_c - self.min_th) / self.range_l, self.curviness):
                    told.append(Told("mark", "early", packet.number))
            else:
                self.q_c = self.gamma * (time_ns / 1e9) + (1 - self.gamma) * self.q_c
                if self.is_above_maxrand(self.sqrt_p_c(), 2 * self.curviness):
                    if not self.marks or not packet.has_ect:
                        told.append(Told("drop", "early", packet.number))
                        continue
                    told.append(Told("mark", "early", packet.number))
            return [*told, Told("send", number=packet.number)]
        return [*told, Told("none")]

    def scheduler(self, now_ns: int) -> deque[Packet]:
        """The queue to serve; one that is not empty."""
        if not self.lq or not self.cq:
            return self.lq or self.cq
        lq_time_ns, cq_time_ns = (now_ns - queue[0].arrived_ns for queue in (self.lq, self.cq))
        return self.lq if lq_time_ns + self.tshift_ns >= cq_time_ns else self.cq

    def sqrt_p_c(self) -> float:
        """Line 10a."""
        return (self.q_c - self.min_th) / self.range_c

    def is_above_maxrand(self, p: float, count: int) -> bool:
        """Whether ``p`` is more than the greatest of ``count`` random numbers, of which the first not below decides."""
        return all(chance(p, self.uniform) for _ in range(count))


class _Shown(Law):
    """Shows the averaged waiting time and what follows from it."""

    def __init__(self, discipline: CurvyRed) -> None:
        self._discipline = discipline

    def probability(self) -> float:
        """That of a Classic signal."""
        return float(min(1.0, max(0.0, self._discipline.sqrt_p_c())) ** (2 * self._discipline.curviness))

    def control(self) -> float:
        """Q_C, in seconds."""
        return self._discipline.q_c
