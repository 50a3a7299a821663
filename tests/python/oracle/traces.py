"""Random traces: parameters, offers, takes and quiet gaps drawn from a seed, and what the oracle decides of them.

A trace is a request of the protocol in README.md. The same number gives the same trace on every machine, for it is
drawn from the project's own stream. Every discipline that the engine lists is a family, and every dialect of one:
:mod:`oracle.settings` draws its parameters by their kinds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from typing import Any

from oracle import build, settings
from oracle.frame import Discipline, Packet
from oracle.settings import Dice, Row, Site
from oracle.stream import Stream

Request = dict[str, Any]
Reply = dict[str, Any]

MOST_TICKS = 1500
"""Ticks that a trace may take, so that a law with a short period does not spend it on them."""


def trace(
    row: Row, dialect: str, number: int, operations: int, attempt: int = 0, left_out: Collection[str] = ()
) -> Request:
    """The trace of this number: parameters, and about so many operations; another attempt, perhaps with some parameters
    ``left_out``, if the one before was refused."""
    dice = Dice(number, f"trace/{row.name}/{dialect}/{attempt}")
    site = Site.draw(dice)
    drawn = settings.draw(dice, site, row, dialect, left_out)
    request = {
        "kind": row.name,
        "params": drawn.written,
        "rate_bps": site.rate_bps,
        "seed": number,
    }
    return {**request, "ops": Story(dice, site, drawn.times_ns, latest_ns(request)).ops(operations)}


def decide(request: Request, theirs: Sequence[Any] = ()) -> Reply:
    """What the oracle decides; in what a specification leaves open, as was decided there."""
    discipline = start(request)
    decisions: list[Any] = []
    offers = 0
    for (word, at_ns, *rest), their in itertools.zip_longest(request["ops"], theirs):
        discipline.theirs = their.split(", ") if isinstance(their, str) else ()
        discipline.advance(at_ns)
        if word == "look":
            law, waiting = discipline.law, discipline.waiting
            state = {"packets": waiting.packets, "bytes": waiting.bytes}
            decisions.append({**state, "probability": law.probability(), "control": law.control()})
            continue
        if word == "offer":
            offers += 1
            told = discipline.offer(Packet(offers, *rest), at_ns)
        else:
            told = discipline.take(at_ns)
        decisions.append(", ".join(map(str, told)))
    return {"decisions": decisions}


def start(request: Request) -> Discipline:
    """The discipline of a request, before its first operation."""
    stream = Stream(request["seed"], "vector")
    return build(request["kind"], request["params"], request["rate_bps"], stream)


def latest_ns(request: Request) -> float:
    """The end of a trace in which not too much is periodic. The law says when it first ticks."""
    try:
        due_ns = start(request).due_ns(0)
    except Exception:  # parameters that do not go together; the engine has to refuse them
        due_ns = None
    return math.inf if due_ns is None else float(MOST_TICKS * due_ns)


class Story:
    """Phases in which the queue fills, drains, holds or rests, and looks at the state in between."""

    def __init__(self, dice: Dice, site: Site, times_ns: Sequence[float], latest_ns: float) -> None:
        self.dice = dice
        self.site = site
        self.times_ns = [time for time in times_ns if time >= 1.0]
        self.latest_ns = latest_ns
        self.now = 0

    def ops(self, count: int) -> list[list[Any]]:
        """About so many operations."""
        dice, slot = self.dice, self.site.slot_ns
        ops: list[list[Any]] = []
        while len(ops) < count:
            offers = dice.one_of([0.95, 0.75, 0.55, 0.5, 0.5, 0.1])
            pace = dice.one_of([0.0, 0.1, 0.5, 1.0])
            for _ in range(dice.whole(3, 25)):
                if not dice.flip(0.3):
                    self.pass_time(dice.between(0.0, 2.0) * pace * slot)
                if dice.flip(offers):
                    ops.append(["offer", self.now, self.size(), *self.label()])
                else:
                    ops.append(["take", self.now])
                if dice.flip(0.08):
                    ops.append(["look", self.now])
            self.rest()
            ops.append(["look", self.now])
        return ops

    def pass_time(self, ns: float) -> None:
        """Lets time pass, while there are ticks left for it."""
        self.now = max(self.now, round(min(self.now + ns, self.latest_ns)))

    def rest(self) -> None:
        """A quiet gap: any time, or just before or at a multiple of a time of the discipline's, or well beyond it."""
        dice = self.dice
        if self.times_ns and dice.flip(0.6):
            time = dice.one_of(self.times_ns)
            gap = time * dice.whole(1, 5) - (self.now % time if dice.flip(0.7) else 0.0) - dice.whole(0, 1)
            self.pass_time(gap if dice.flip(0.8) else time * dice.between(0.0, 10.0))
        else:
            self.pass_time(dice.one_of([0.0, 1.0, 10.0, 100.0]) * dice.between(0.0, 1.0) * self.site.slot_ns)

    def size(self) -> int:
        """Of a packet: from 38 to 1500 bytes, seldom anything."""
        dice, mean = self.dice, self.site.mean_packet
        return dice.one_of([mean, mean, 38, 1500, dice.whole(38, 1500), dice.whole(1, 3000)])

    def label(self) -> tuple[str, int]:
        """ECN field and flow."""
        field = self.dice.one_of(["not-ect", "not-ect", "ect0", "ect0", "ect1", "ce"])
        return field, self.dice.whole(1, self.site.flows)
