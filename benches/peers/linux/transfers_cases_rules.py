"""Transfers for rules that others seldom meet: what a probe repaired, segments sent a third time, a loss right behind
a mark's reduction, timeouts after one that was taken back, marks on what came twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from transfers_cases import FAR, FAST, NEAR, Case, Route

SPACE = Route("10m-300ms", 10_000_000, 300)
"""A round trip that is longer than the least timeout, which then is little more than a round trip."""


def cases() -> Iterator[Case]:
    """All cases, in order."""
    for cc in ("dctcp", "cubic"):
        yield from probed(cc)
    for cc in ("reno", "cubic"):
        yield from thirdly(cc)
        for ecn in (True, False):
            yield from behind(cc, ecn)
        yield from timed_out_again(cc)
    yield from marked_twice("dctcp")


def parted(name: str, route: Route, cc: str, parts: tuple[int, ...], rules: tuple[str, ...], ecn: bool = False) -> Case:
    """Parts of an answer, 60 ms apart."""
    return Case("rules", name, route, cc, sum(parts), rules, ecn=ecn, parts=parts, pause_ms=60)


def probed(cc: str) -> Iterator[Case]:
    """The last segment of a part is lost, and a probe brings it; the first of the next tells that."""
    for number in (2, 8):
        rule = f"lose data {20 * number}"
        yield parted(f"the last of part {number}", FAST, cc, (20,) * 12, (rule,), ecn=cc == "dctcp")


def thirdly(cc: str) -> Iterator[Case]:
    """A segment and one behind it are lost, and the first of both again whenever it is sent again. What went before has
    brought the timeout down."""
    parts = (40,) * 8
    for first, second in ((281, 285), (281, 284), (283, 290)):
        for times in (2, 3):
            rules = (
                f"lose data {first},{second}",
                *(f"lose data {first} {attempt}" for attempt in range(2, times + 1)),
            )
            yield parted(f"{first} lost {times} times, {second} once", SPACE, cc, parts, rules)


def behind(cc: str, ecn: bool) -> Iterator[Case]:
    """The last window of a part is marked, and nothing follows; the first segment of the next part is lost."""
    for first, marked in ((30, 25), (70, 60), (70, 68), (100, 90)):
        for lost in ((first + 1,), (first + 1, first + 4), (first + 3,)):
            rules = (*([f"mark data {marked}"] if ecn else []), f"lose data {','.join(map(str, lost))}")
            name = f"{marked} marked, {' and '.join(map(str, lost))} lost"
            yield parted(name, NEAR, cc, (first, 80, 20), rules, ecn=ecn)


def timed_out_again(cc: str) -> Iterator[Case]:
    """The link stands still, the timer expires for that, and what it sent again is lost together with the probe."""
    for first, last in ((5, 10), (25, 40), (30, 60)):
        for attempts in (2, 3):
            rules = (
                *(f"lose data {first} {attempt}" for attempt in range(1, attempts + 1)),
                f"stall data {first + 1} 1 700",
                *(f"lose data {last} {attempt}" for attempt in (2, 3)),
            )
            yield Case("rules", f"{first} of {last} lost {attempts} times behind 700 ms", FAR, cc, last, rules)


def marked_twice(cc: str) -> Iterator[Case]:
    """A segment is late, so that it is sent again, and that is marked: it comes when the first is there already."""
    for late in (5, 15, 40):
        for late_ms in (12, 18):
            rules = (f"late data {late} 1 {late_ms}", f"mark data {late} 2")
            yield Case("rules", f"{late} late by {late_ms} ms", FAST, cc, 100, rules, ecn=True)
