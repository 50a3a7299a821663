"""The frame of all disciplines: a first-in first-out queue with a limit, and a law that may signal packets.

What happens to an arriving packet: the limit is tested first, and the law only told of a packet that it refuses;
otherwise the law passes, marks or drops it. A law may also signal a packet on its way out, has the times at which it
wants to act, and hears when the link asks in vain.

Random numbers follow the rule of the vectors: one is drawn only where chance decides, and signals if it is less than
the probability.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeVar

from oracle.parameters import Length, Waiting

T = TypeVar("T")


class Uniform(Protocol):
    """Where uniform numbers on [0, 1) come from."""

    def unit(self) -> float:
        """The next one."""
        ...

    def bits(self) -> int:
        """The sixty-four random bits that the next one would be made of."""
        ...

    def fork(self) -> Uniform:
        """The same numbers once more, from here on."""
        ...


class DrawsUsedUpError(Exception):
    """A law wanted a random number and the list was empty."""


class Counted:
    """The first so many random numbers of a stream."""

    def __init__(self, stream: Uniform, count: int) -> None:
        self._stream = stream
        self._left = count

    def unit(self) -> float:
        """The next one."""
        self._take()
        return self._stream.unit()

    def bits(self) -> int:
        """The next one as bits."""
        self._take()
        return self._stream.bits()

    def fork(self) -> Uniform:
        """The stream from here on; who reads a copy uses up nothing."""
        return self._stream.fork()

    def _take(self) -> None:
        if self._left == 0:
            raise DrawsUsedUpError("chance decides here, but the draws are used up")
        self._left -= 1


def chance(probability: float, uniform: Uniform) -> bool:
    """True with this probability."""
    if probability <= 0.0:
        return False
    if probability >= 1.0:
        return True
    return uniform.unit() < probability


@dataclass
class Packet:
    """A packet; ``number`` counts offers from 1, ``arrived_ns`` is when it was offered."""

    number: int
    size: int
    ecn: str = "not-ect"
    flow: int = 1
    arrived_ns: int = 0

    @property
    def has_ect(self) -> bool:
        """Whether it may be marked. One that comes marked may: marking it again changes nothing."""
        return self.ecn != "not-ect"


@dataclass(frozen=True)
class Told:
    """Something a discipline tells: ``accept``, ``mark``, ``drop``, ``send`` or ``none``."""

    word: str
    cause: str = ""
    number: int = 0

    def __str__(self) -> str:
        text = f"{self.word} {self.cause}" if self.cause else self.word
        return f"{text} #{self.number}" if self.number else text


@dataclass(frozen=True)
class Signal:
    """A law's wish to tell a sender of congestion: mark or drop its packet, and why."""

    word: str
    cause: str


class Law:
    """A law that never signals; the others say where they differ."""

    period_ns: Fraction | None = None
    """Time between two ticks, the first one period after the start; ``None`` for no ticks. Instants are whole
    nanoseconds: each tick is due at the one nearest to its multiple of the period."""

    def due_ns(self, ticks_done: int) -> int | None:
        """When the next tick is due, after so many; a law whose ticks are not evenly spaced says so here."""
        if self.period_ns is None:
            return None
        return math.floor((ticks_done + 1) * self.period_ns + Fraction(1, 2))

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Judges a packet that the limit allows; ``waiting`` is without it."""
        return None

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """Hears of a packet that the limit refuses."""

    def departure(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Judges a packet that leaves; one that it drops makes room for the next. ``waiting`` is without it."""
        return None

    def vain_request(self, now_ns: int) -> None:
        """Hears that the link asked and there was nothing: it is idle."""

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """Does periodic work."""

    def probability(self) -> float | None:
        """Probability with which a packet of mean size would be signalled."""
        return None

    def control(self) -> float | None:
        """The law's control variable."""
        return None


class Discipline:
    """A queue with a limit around a law; ``drops_head`` loses the oldest packets at the limit, not the arriving one."""

    def __init__(self, law: Law, limit: Length, drops_head: bool = False) -> None:
        self.law = law
        self.limit = limit
        self.drops_head = drops_head
        self.waiting = Waiting()
        self._held: deque[Packet] = deque()
        self._ticks_done = 0
        self.theirs: Sequence[str] = ()
        """What another implementation told of the operation at hand: for choices that a specification leaves open."""

    def advance(self, now_ns: int) -> None:
        """Does all periodic work due at or before ``now_ns``, each tick at its own time."""
        while (due_ns := self.due_ns(self._ticks_done)) is not None and due_ns <= now_ns:
            self._ticks_done += 1
            self.tick(due_ns)

    def any_of(self, open_to: Mapping[T, Packet]) -> T:
        """One of several that a specification does not tell apart, each with the packet it would lose or send: the one
        that the other implementation chose, or the first."""
        named = {packet.number: one for one, packet in open_to.items()}
        told = (int(item.rpartition("#")[2]) for item in self.theirs if item.startswith(("drop", "send")))
        return next((named[number] for number in told if number in named), next(iter(open_to)))

    def due_ns(self, ticks_done: int) -> int | None:
        """When the next periodic work is due, after so much of it."""
        return self.law.due_ns(ticks_done)

    def tick(self, now_ns: int) -> None:
        """Does the periodic work that is due."""
        self.law.tick(self.waiting, now_ns)

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Offers a packet; what is told of it."""
        packet.arrived_ns = now_ns
        lost = self._make_room(packet) if self.drops_head else []
        if self._is_full(packet):
            self.law.refusal(packet, self.waiting, now_ns)
            return [Told("drop", "tail", packet.number)]
        signal = self.law.arrival(packet, self.waiting, now_ns)
        if signal is not None and signal.word == "drop":
            return [Told("drop", signal.cause, packet.number)]
        self._held.append(packet)
        self.waiting.packets += 1
        self.waiting.bytes += packet.size
        accepted = Told("accept", number=packet.number)
        return lost + ([accepted] if signal is None else [Told("mark", signal.cause, packet.number), accepted])

    def take(self, now_ns: int) -> list[Told]:
        """The link asks for a packet; what is told."""
        told: list[Told] = []
        while self._held:
            packet = self._remove_head()
            signal = self.law.departure(packet, self.waiting, now_ns)
            if signal is not None:
                told.append(Told(signal.word, signal.cause, packet.number))
            if signal is None or signal.word != "drop":
                return [*told, Told("send", number=packet.number)]
        self.law.vain_request(now_ns)
        return [*told, Told("none")]

    def _remove_head(self) -> Packet:
        packet = self._held.popleft()
        self.waiting.packets -= 1
        self.waiting.bytes -= packet.size
        return packet

    def _make_room(self, packet: Packet) -> list[Told]:
        """Drops from the head until ``packet`` fits; nothing if it does not fit into an empty queue."""
        lost: list[Told] = []
        if (packet.size if self.limit.in_bytes else 1) <= self.limit.amount:
            while self._is_full(packet):
                lost.append(Told("drop", "tail", self._remove_head().number))
        return lost

    def _is_full(self, packet: Packet) -> bool:
        if self.limit.in_bytes:
            return self.waiting.bytes + packet.size > self.limit.amount
        return self.waiting.packets + 1 > self.limit.amount
