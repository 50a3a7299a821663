"""CoDel: signals packets at the head when the waiting time has stayed above a target for an interval.

Source: Nichols, Jacobson, McGregor and Iyengar 2018 (RFC 8289 §5), written as its loop that pulls packets. The dialects
are those of Linux (include/net/codel_impl.h) and ns-3 (codel-queue-disc.cc).

Linux counts time in units of 1024 ns, and so does ns-3; all that is written in nanoseconds is rounded down to them.
Linux rounds the time of arrival and that of departure, ns-3 the time between.

=============  ==============================================================================================
first_above    when the waiting time will have been above the target for an interval; ``None``: it is below
drop_next      when the next signal is due in the dropping state
count          signals in this dropping state
last_count     count when it was entered
inverse_root   1/sqrt(count): exact, or in 16 bits by one step of Newton's method a signal (Linux, and ns-3)
=============  ==============================================================================================

Marks are those of Linux, for the RFC leaves them open: a mark ends the pull. ``ce_threshold`` is Linux's as well: what
leaves after a longer wait is marked, whatever ``ecn`` says; ns-3 wants it set. A packet is told marked once. Where
there is a selector, only packets are marked so whose DS field, of which the vectors have the ECN bits alone, has its
value under its mask (``ce_threshold_selector``, ``ce_threshold_mask`` in Linux).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from oracle.frame import Discipline, Law, Packet, Told, Uniform
from oracle.parameters import Parameters, Written

ECN_BITS = {"not-ect": 0b00, "ect1": 0b01, "ect0": 0b10, "ce": 0b11}
"""RFC 3168 §5: the two low bits of the DS field."""

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "dialect": "rfc",
    "target": "5ms",
    "interval": "100ms",
    "mtu": "1500b",
    "ce_threshold": "",
    "ce_threshold_selector": "",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """CoDel over one queue."""
    parameters = Parameters(DEFAULTS, given)
    return _Queue(Codel(parameters), parameters)


class Codel(Law):
    """The law over one queue."""

    def __init__(self, parameters: Parameters) -> None:
        self.dialect = parameters.word("dialect")
        self.unit_ns = 1 if self.dialect == "rfc" else 1024
        self.target = parameters.time_ns("target") // self.unit_ns
        self.interval = parameters.time_ns("interval") // self.unit_ns
        self.mtu = parameters.size("mtu")
        self.marks = parameters.flag("ecn")
        has_threshold = parameters.has("ce_threshold")
        self.ce_threshold = parameters.time_ns("ce_threshold") // self.unit_ns if has_threshold else None
        self.selected = {0, 1, 2, 3}
        if parameters.has("ce_threshold_selector"):
            value, mask = (int(number, 0) for number in parameters.word("ce_threshold_selector").split("/"))
            self.selected = {field for field in self.selected if field & mask == value}

        self.first_above: int | None = None
        self.drop_next: int | None = None
        self.count = 0
        self.last_count = 0
        self.inverse_root: float | int = self.root_of_one()
        self.is_dropping = False

    def control(self) -> float:
        """Signals in this dropping state, 0 outside."""
        return self.count if self.is_dropping else 0

    def dequeue(
        self, pull: Callable[[], Packet | None], backlog: Callable[[], int], now_ns: int
    ) -> tuple[list[Told], Packet | None]:
        """Pulls packets until one may go: what is told of those that may not and of marks, and the packet."""
        told: list[Told] = []
        now = now_ns // self.unit_ns
        packet = pull()
        is_marked = False
        ok_to_drop = self.ok_to_drop(packet, backlog(), now_ns)
        if self.is_dropping:
            if not ok_to_drop:
                self.is_dropping = False
            while self.is_dropping:
                assert self.drop_next is not None
                if now < self.drop_next:
                    break
                assert packet is not None
                self.count += 1
                self.improve_root()
                if self.may_mark(packet):
                    is_marked = True
                    told.append(Told("mark", "early", packet.number))
                    self.drop_next = self.control_law(now if self.dialect == "ns3" else self.drop_next)
                    break
                told.append(Told("drop", "early", packet.number))
                packet = pull()
                if self.ok_to_drop(packet, backlog(), now_ns):
                    self.drop_next = self.control_law(self.drop_next)
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
            was_recent = self.drop_next is not None and now - self.drop_next < 16 * self.interval
            if delta > 1 and was_recent:
                self.count = delta
                self.improve_root()
            else:
                self.count = 1
                self.inverse_root = self.root_of_one()
            self.last_count = self.count
            self.drop_next = self.control_law(now)
        if packet is not None and not is_marked and self.is_above_ce_threshold(packet, now_ns):
            told.append(Told("mark", "forced", packet.number))
        return told, packet

    def waited(self, packet: Packet, now_ns: int) -> int:
        """How long, in the dialect's units."""
        if self.dialect == "linux":
            return now_ns // self.unit_ns - packet.arrived_ns // self.unit_ns
        return (now_ns - packet.arrived_ns) // self.unit_ns

    def ok_to_drop(self, packet: Packet | None, backlog: int, now_ns: int) -> bool:
        """Whether the waiting time has been above the target for an interval; ``backlog`` is without the packet."""
        now = now_ns // self.unit_ns
        if packet is None or self.waited(packet, now_ns) < self.target or self.is_short(backlog):
            self.first_above = None
            return False
        if self.first_above is None:
            self.first_above = now + self.interval
            return False
        return now >= self.first_above if self.dialect == "rfc" else now > self.first_above

    def is_short(self, backlog: int) -> bool:
        """Whether the queue is too short to signal."""
        return backlog < self.mtu if self.dialect == "ns3" else backlog <= self.mtu

    def root_of_one(self) -> float | int:
        """The inverse root of 1."""
        return 1.0 if self.dialect == "rfc" else 0xFFFF

    def improve_root(self) -> None:
        """The inverse root of a new count."""
        if self.dialect == "rfc":
            self.inverse_root = 1.0 / math.sqrt(self.count)
        else:
            # codel_Newton_step: the root has 16 bits, what it computes with 32 below the point; words of 64 bits
            # wrap around, and two bits are shifted out before the product and given back after it.
            root = int(self.inverse_root) << 16
            rest = ((3 << 32) - self.count * (root * root >> 32)) % 2**64 >> 2
            self.inverse_root = (rest * root % 2**64 >> 31 >> 16) % 2**16

    def control_law(self, since: int) -> int:
        """When the next signal is due: to the nearest nanosecond, or the unit before."""
        if self.dialect == "rfc":
            return since + math.floor(self.interval * self.inverse_root + 0.5)
        return since + (self.interval * int(self.inverse_root) >> 16)

    def may_mark(self, packet: Packet) -> bool:
        """Whether a mark will do."""
        return self.marks and packet.has_ect

    def is_above_ce_threshold(self, packet: Packet, now_ns: int) -> bool:
        """Whether a packet that leaves is marked for its own waiting time."""
        if ECN_BITS[packet.ecn] not in self.selected:
            return False
        if self.ce_threshold is None or not packet.has_ect or (self.dialect == "ns3" and not self.marks):
            return False
        return self.waited(packet, now_ns) > self.ce_threshold


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
