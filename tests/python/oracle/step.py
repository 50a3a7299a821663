"""A step: everything beyond one threshold is marked, nothing below.

Source: RFC 8257 §3.1 (DCTCP: the packet that makes the queue longer than K is marked as it arrives); RFC 9332 and
Linux's dualpi2 for the threshold in time (a packet that stayed longer is marked as it leaves, if at least
``min_qlen_step`` packets wait behind it). What cannot be marked is forwarded, or dropped with ``not_ect = "drop"``.
"""

from __future__ import annotations

from collections.abc import Mapping

from oracle.frame import Discipline, Law, Packet, Signal, Uniform
from oracle.parameters import Length, Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "dialect": "paper",
    "limit": "1000p",
    "ecn": True,
    "threshold": "1ms",
    "not_ect": "",
    "min_qlen_step": 0,
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """A step; neither rate nor chance matters."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Step(parameters), parameters.length("limit"))


class Step(Law):
    """The law."""

    def __init__(self, parameters: Parameters) -> None:
        is_time = parameters.is_time("threshold")
        self.longest_ns: int | None = parameters.time_ns("threshold") if is_time else None
        self.longest: Length | None = None if is_time else parameters.length("threshold")
        self.marks = parameters.flag("ecn")
        # Where nothing can be marked, a step that forwards is none.
        self.drops_not_ect = parameters.word("not_ect") == "drop" if parameters.has("not_ect") else not self.marks
        self.min_qlen_step = parameters.number("min_qlen_step")

        self.is_beyond = False
        self.judged_by = 0.0

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Judges by the length that the packet would make."""
        if self.longest is None:
            return None
        self.judged_by = self.longest.of(waiting) + self.longest.of(Waiting(1, packet.size))
        self.is_beyond = self.judged_by > self.longest.amount
        return self.signal(packet)

    def departure(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Judges by how long the packet stayed."""
        if self.longest_ns is None:
            return None
        stayed_ns = now_ns - packet.arrived_ns
        self.judged_by = stayed_ns / 1e9
        self.is_beyond = stayed_ns > self.longest_ns and waiting.packets >= self.min_qlen_step
        return self.signal(packet)

    def vain_request(self, now_ns: int) -> None:
        """Nothing waits, so nothing is long."""
        self.judged_by = 0.0
        self.is_beyond = False

    def probability(self) -> float:
        """1 beyond the threshold, 0 below."""
        return 1.0 if self.is_beyond else 0.0

    def control(self) -> float:
        """Packets, bytes or seconds that the last packet was judged by."""
        return self.judged_by

    def signal(self, packet: Packet) -> Signal | None:
        """What becomes of a packet."""
        if not self.is_beyond:
            return None
        if self.marks and packet.has_ect:
            return Signal("mark", "forced")
        return Signal("drop", "forced") if self.drops_not_ect else None
