"""COBALT: CoDel with one schedule for everything, and BLUE for flows that do not answer.

Source: Linux net/sched/sch_cake.c (cobalt_should_drop, cobalt_queue_full, cobalt_queue_empty); Hoeiland-Joergensen,
Taht and Morton 2018. In the dialect ``paper`` a queue's first interval is a whole one, as the comments there intend,
and 1/sqrt(count) is exact. In ``linux``, as in the code, 1/sqrt(count) is a whole number of 2^-32, from a table below
16 and one step of Newton's method from the one before otherwise; it is 0 until count first changes, which signals the
second packet above the target of a queue never signalled before; and of an interval the low 32 bits count.

=============  ==============================================================================================
drop_next      the schedule: when the next signal, or below the target the next step down of count, is due; while
               count is 0 it says until when the queue counts as in use
count          signals since the target was passed
is_dropping    the last packet was above the target
blue           p_drop: probability of a loss whatever the ECN field; 1/256 up when a packet is lost at the limit,
               1/4096 down when the queue is found empty, each at most once in more than a target
=============  ==============================================================================================

A packet is above the target if it waited longer than that and longer than four full packets take on the link. The last
packet of a queue may be marked but is not dropped; all else happens to it as to any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from oracle.frame import Discipline, Law, Packet, Told, Uniform, chance
from oracle.parameters import Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": True,
    "target": "5ms",
    "interval": "100ms",
    "mtu": "1500b",
    "dialect": "paper",
}

ROOTS = [4294967295, 4294967295, 3037000500, 2479700525, 2147483647, 1920767767, 1753413056, 1623345051]
ROOTS += [1518500250, 1431655765, 1358187914, 1294981364, 1239850263, 1191209601, 1147878294, 1108955788]

UP = 1.0 / 256.0
DOWN = 1.0 / 4096.0


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """COBALT over one queue before a link of ``rate_bps``."""
    parameters = Parameters(DEFAULTS, given)
    law = Cobalt(
        parameters.time_ns("target"),
        parameters.time_ns("interval"),
        parameters.size("mtu") * 8 * 10**9 / rate_bps,
        parameters.flag("ecn"),
        uniform,
        parameters.word("dialect") == "linux",
    )
    return _Queue(law, parameters)


class Cobalt(Law):
    """The law over one queue."""

    def __init__(
        self, target_ns: int, interval_ns: int, mtu_ns: float, marks: bool, uniform: Uniform, is_linux: bool = False
    ) -> None:
        self.target_ns = target_ns
        self.interval_ns = interval_ns
        self.mtu_ns = mtu_ns
        self.marks = marks
        self.uniform = uniform
        self.is_linux = is_linux

        self.root = 0
        self.drop_next_ns = 0
        self.count = 0
        self.is_dropping = False
        self.blue = 0.0
        self.blue_since_ns = 0

    def dequeue(
        self, pull: Callable[[], Packet | None], left: Callable[[], int], now_ns: int
    ) -> tuple[list[Told], Packet | None]:
        """Pulls packets until one may go; ``left`` says how many packets are behind it."""
        told: list[Told] = []
        while True:
            packet = pull()
            if packet is None:
                self.found_empty(now_ns)
                return told, None
            mark, loss = self.judge(packet, now_ns)
            if loss is not None and left() > 0:
                told.append(loss)
            else:
                return [*told, mark] if mark is not None else told, packet

    def judge(self, packet: Packet, now_ns: int, bulk_flows: int = 0) -> tuple[Told | None, Told | None]:
        """Whether a packet that leaves is to be marked, and whether lost. Two full packets of each of
        so many bulk flows may stand besides."""
        waited_ns = now_ns - packet.arrived_ns
        is_above = waited_ns > self.target_ns and waited_ns > max(4, 2 * bulk_flows) * self.mtu_ns
        late_ns = now_ns - self.drop_next_ns
        is_due = self.count > 0 and late_ns >= 0
        mark: Told | None = None
        loss: Told | None = None
        if is_above:
            if not self.is_dropping:
                self.is_dropping = True
                self.drop_next_ns = self.scheduled(now_ns)
            self.count = max(1, self.count)
        else:
            self.is_dropping = False
        if is_due and self.is_dropping:
            if self.may_mark(packet):
                mark = Told("mark", "early", packet.number)
            else:
                loss = Told("drop", "early", packet.number)
            self.change(self.count + 1)
            late_ns = now_ns - self.drop_next_ns
        else:
            while is_due:
                self.change(self.count - 1)
                late_ns = now_ns - self.drop_next_ns
                is_due = self.count > 0 and late_ns >= 0
        # The code draws whatever was decided before.
        if chance(self.blue, self.uniform) and loss is None:
            loss = Told("drop", "overload" if self.may_mark(packet) else "early", packet.number)
        if self.count == 0:
            self.drop_next_ns = now_ns + self.interval_ns
        elif late_ns > 0 and loss is None:
            self.drop_next_ns = now_ns
        return mark, loss

    def scheduled(self, from_ns: int) -> int:
        """When the next signal is due after one at ``from_ns``."""
        if self.is_linux:
            return from_ns + ((self.interval_ns % (1 << 32)) * self.root >> 32)
        return from_ns + math.floor(self.interval_ns / math.sqrt(max(1, self.count)) + 0.5)

    def change(self, count: int) -> None:
        """Another count; the schedule moves on by its step."""
        self.count = count
        if count < len(ROOTS):
            self.root = ROOTS[count]
        else:
            rest = ((3 << 32) - count * (self.root * self.root >> 32)) % (1 << 64)
            self.root = ((rest >> 2) * self.root % (1 << 64) >> 31) % (1 << 32)
        self.drop_next_ns = self.scheduled(self.drop_next_ns)

    def may_mark(self, packet: Packet) -> bool:
        """Whether a mark will do."""
        return self.marks and packet.has_ect

    def lost_at_limit(self, now_ns: int) -> None:
        """A packet was lost because the queue is full."""
        if now_ns - self.blue_since_ns > self.target_ns:
            self.blue = min(1.0, self.blue + UP)
            self.blue_since_ns = now_ns
        self.is_dropping = True
        self.drop_next_ns = now_ns
        self.count = max(1, self.count)

    def found_empty(self, now_ns: int) -> None:
        """The queue was served and is empty."""
        if self.blue > 0.0 and now_ns - self.blue_since_ns > self.target_ns:
            self.blue = max(0.0, self.blue - DOWN)
            self.blue_since_ns = now_ns
        self.is_dropping = False
        if self.count > 0 and now_ns >= self.drop_next_ns:
            self.change(self.count - 1)

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """The same as any loss at the limit."""
        self.lost_at_limit(now_ns)

    def probability(self) -> float:
        """BLUE's."""
        return self.blue

    def control(self) -> float:
        """count."""
        return self.count


class _Queue(Discipline):
    """One queue that COBALT pulls from."""

    def __init__(self, law: Cobalt, parameters: Parameters) -> None:
        super().__init__(law, parameters.length("limit"))
        self._cobalt = law

    def take(self, now_ns: int) -> list[Told]:
        """The link asks for a packet; what is told."""
        told, packet = self._cobalt.dequeue(self._pull, lambda: self.waiting.packets, now_ns)
        return [*told, Told("send", number=packet.number) if packet is not None else Told("none")]

    def _pull(self) -> Packet | None:
        return self._remove_head() if self._held else None
