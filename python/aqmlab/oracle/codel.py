"""CoDel: signals packets at the head when the waiting time has stayed above a target for an interval.

Source: Nichols, Jacobson, McGregor and Iyengar 2018 (RFC 8289 §5), written as its loop that pulls packets. The dialects
are those of Linux (include/net/codel_impl.h) and ns-3 (codel-queue-disc.cc).

=============  ==============================================================================================
first_above    when the waiting time will have been above the target for an interval; ``None``: it is below
drop_next      when the next signal is due in the dropping state
count          signals in this dropping state
last_count     count when it was entered
inverse_root   1/sqrt(count): exact, or by one step of Newton's method a signal (Linux, and ns-3 after it)
=============  ==============================================================================================

Marks are those of Linux, for the RFC leaves them open: a mark ends the pull. ``ce_threshold`` is Linux's as well: what
leaves after a longer wait is marked, whatever ``ecn`` says; ns-3 wants it set. A packet is told marked once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from aqmlab.oracle.frame import Discipline, Law, Packet, Told, Uniform
from aqmlab.oracle.parameters import Parameters, Written

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "dialect": "rfc",
    "target": "5ms",
    "interval": "100ms",
    "mtu": "1500b",
    "ce_threshold": "",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """CoDel over one queue."""
    parameters = Parameters(DEFAULTS, given)
    return _Queue(Codel(parameters), parameters)


class Codel(Law):
    """The law over one queue."""

    def __init__(self, parameters: Parameters) -> None:
        self.dialect = parameters.word("dialect")
        self.target_ns = parameters.time_ns("target")
        self.interval_ns = parameters.time_ns("interval")
        self.mtu = parameters.size("mtu")
        self.marks = parameters.flag("ecn")
        self.ce_threshold_ns = parameters.time_ns("ce_threshold") if parameters.has("ce_threshold") else None

        self.first_above_ns: int | None = None
        self.drop_next_ns = 0
        self.count = 0
        self.last_count = 0
        self.inverse_root = 1.0
        self.is_dropping = False

    def control(self) -> float:
        """Signals in this dropping state, 0 outside."""
        return self.count if self.is_dropping else 0

    def dequeue(
        self, pull: Callable[[], Packet | None], backlog: Callable[[], int], now_ns: int
    ) -> tuple[list[Told], Packet | None]:
        """Pulls packets until one may go: what is told of those that may not and of marks, and the packet."""
        told: list[Told] = []
        packet = pull()
        is_marked = False
        ok_to_drop = self.ok_to_drop(packet, backlog(), now_ns)
        if self.is_dropping:
            if not ok_to_drop:
                self.is_dropping = False
            while self.is_dropping and now_ns >= self.drop_next_ns:
                assert packet is not None
                self.count += 1
                self.improve_root()
                if self.may_mark(packet):
                    is_marked = True
                    told.append(Told("mark", "early", packet.number))
                    self.drop_next_ns = self.control_law(now_ns if self.dialect == "ns3" else self.drop_next_ns)
                    break
                told.append(Told("drop", "early", packet.number))
                packet = pull()
                if self.ok_to_drop(packet, backlog(), now_ns):
                    self.drop_next_ns = self.control_law(self.drop_next_ns)
                else:
                    self.is_dropping = False
        elif ok_to_drop:
            assert packet is not None
            if self.may_mark(packet):
                is_marked = True
                told.append(Told("mark", "early", packet.number))
            else:
                told.append(Told("drop", "early", packet.number))
                packet = pull()
                self.ok_to_drop(packet, backlog(), now_ns)
            self.is_dropping = True
            # If the last dropping state was not long ago, its rate is a good one to begin with.
            delta = self.count - self.last_count
            if delta > 1 and now_ns - self.drop_next_ns < 16 * self.interval_ns:
                self.count = delta
                self.improve_root()
            else:
                self.count = 1
                self.inverse_root = 1.0
            self.last_count = self.count
            self.drop_next_ns = self.control_law(now_ns)
        if packet is not None and not is_marked and self.is_above_ce_threshold(packet, now_ns):
            told.append(Told("mark", "forced", packet.number))
        return told, packet

    def ok_to_drop(self, packet: Packet | None, backlog: int, now_ns: int) -> bool:
        """Whether the waiting time has been above the target for an interval; ``backlog`` is without the packet."""
        if packet is None or now_ns - packet.arrived_ns < self.target_ns or self.is_short(backlog):
            self.first_above_ns = None
            return False
        if self.first_above_ns is None:
            self.first_above_ns = now_ns + self.interval_ns
            return False
        return now_ns >= self.first_above_ns if self.dialect == "rfc" else now_ns > self.first_above_ns

    def is_short(self, backlog: int) -> bool:
        """Whether the queue is too short to signal."""
        return backlog < self.mtu if self.dialect == "ns3" else backlog <= self.mtu

    def improve_root(self) -> None:
        """The inverse root of a new count."""
        if self.dialect == "rfc":
            self.inverse_root = 1.0 / math.sqrt(self.count)
        else:
            # Evictions raise count by more than the method can follow. Linux's integers then wrap around at 1, and what
            # would be 0 is a few times 2^-16.
            x = self.inverse_root
            self.inverse_root = max(2.0**-16, x * (3.0 - self.count * x * x) / 2.0 % 1.0)

    def control_law(self, from_ns: int) -> int:
        """When the next signal is due, to the nearest nanosecond."""
        return from_ns + math.floor(self.interval_ns * self.inverse_root + 0.5)

    def may_mark(self, packet: Packet) -> bool:
        """Whether a mark will do."""
        return self.marks and packet.has_ect

    def is_above_ce_threshold(self, packet: Packet, now_ns: int) -> bool:
        """Whether a packet that leaves is marked for its own waiting time."""
        if self.ce_threshold_ns is None or not packet.has_ect or (self.dialect == "ns3" and not self.marks):
            return False
        return now_ns - packet.arrived_ns > self.ce_threshold_ns


class _Queue(Discipline):
    """One queue that CoDel pulls from."""

    def __init__(self, law: Codel, parameters: Parameters) -> None:
        super().__init__(law, parameters.length("limit"))
        self._codel = law

    def take(self, now_ns: int) -> list[Told]:
        """The link asks for a packet; what is told."""
        told, packet = self._codel.dequeue(self._pull, lambda: self.waiting.bytes, now_ns)
        return [*told, Told("send", number=packet.number) if packet is not None else Told("none")]

    def _pull(self) -> Packet | None:
        return self._remove_head() if self._held else None
