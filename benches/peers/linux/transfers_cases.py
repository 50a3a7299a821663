"""The cases of the packet-by-packet comparison: paths, sizes, and what becomes of which packet.

A client connects, asks with one small segment, and a server answers with a number of full segments and closes. A rule
says what becomes of one packet, in words: `DO WHAT NUMBER [ATTEMPT [AMOUNT]]`.

WHAT and NUMBER: `data K`, a packet with segment K of the answer, counted from 1 (ATTEMPT says which transmission of
it, 1 unless said; `K,L` both); `payload N`, the Nth packet with any of the answer; `syn`, `synack`, `request`, `fin`
(one of the server without data), `ack` (one of the client without data, SYN or FIN): the Nth of those; `acked K`, one
that acknowledges K full segments of the answer, rounded up (ATTEMPT says which).

DO: `lose`; `mark` (CE, if it is ECN-capable); `late` (AMOUNT ms later than the others, which overtake it); `hold`
(until AMOUNT more packets of its direction have arrived); `stall` (the link stands still for AMOUNT ms before it, so
that whatever comes later waits too); `not-ect`, `ect0`, `ect1` and `ce` (its ECN field says this, whatever it said
before); `strip` and `zero` (its AccECN option is gone, or its counters are zero). The last six may be said of every
packet of a side: `DO server *`, `DO client *`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

RECORDS = Path(__file__).resolve().parents[3] / "testdata" / "linux"

MSS = 1448
REQUEST = 300
"""Bytes of the request."""

SIZES = (1, 3, 10, 100, 1000)
SEEDS = 30
"""Lists of random losses for each path and size."""


@dataclass(frozen=True)
class Route:
    """What is between the hosts: a link of `rate_bps` each way with an endless queue, and the rest of `rtt_ms`."""

    name: str
    rate_bps: int
    rtt_ms: int


FAST = Route("100m-20ms", 100_000_000, 20)
NEAR = Route("10m-40ms", 10_000_000, 40)
FAR = Route("10m-100ms", 10_000_000, 100)
ROUTES = (FAST, NEAR, FAR)


@dataclass(frozen=True)
class Case:
    """One transfer."""

    group: str
    """Cases whose figures are summed up together."""
    name: str
    route: Route
    cc: str
    segments: int
    rules: tuple[str, ...] = ()
    ecn: bool = False
    accurate: bool = False
    """Whether ECN is accurate (RFC 9768): Linux 7.3 has that."""
    option: int = 0
    """When the AccECN option is sent (tcp_ecn_option)."""
    peers: tuple[int, int] = (3, 3)
    """What client and server do about ECN (tcp_ecn), where the option is looked at."""
    parts: tuple[int, ...] = ()
    """Segments of each part of the answer, where it has several."""
    pause_ms: int = 0
    """How long the client has had all of a part before the server has the next."""

    @property
    def file(self) -> str:
        """The record that it is kept in."""
        if self.group == "rules":
            return f"rules/{self.cc}{'-ecn' if self.ecn and self.cc != 'dctcp' else ''}-{self.route.name}"
        if self.parts:
            return f"pauses/{self.cc}-{self.route.name}"
        if self.option:
            return f"options/{self.cc}-{self.option}-{self.route.name}"
        kind = "-accecn" if self.accurate else "-ecn" if self.ecn and self.cc != "dctcp" else ""
        return f"transfers/{self.cc}{kind}-{self.route.name}"

    @property
    def sends_bursts(self) -> bool:
        """Whether segments are sent in bursts (GSO): a paced sender's pace is one of bursts."""
        return self.cc == "bbr"

    @property
    def controller(self) -> str:
        """Linux's name of it: NewReno is Reno without SACK."""
        return "reno" if self.cc == "newreno" else self.cc

    @property
    def has_sack(self) -> bool:
        """Whether the hosts report what they hold."""
        return self.cc != "newreno"

    @property
    def is_told(self) -> bool:
        """Whether every packet is kept."""
        return self.segments <= (600 if self.parts else 100) and "random" not in self.group


def cases() -> Iterator[Case]:
    """All cases, in order."""
    for cc in ("reno", "cubic"):
        for route in ROUTES:
            for segments in SIZES:
                yield from losses(route, cc, segments)
            yield from disorder(route, cc)
    for cc in ("reno", "cubic", "dctcp"):
        for route in (FAST, NEAR):
            yield from marks(route, cc)
            yield from marks(route, cc, accurate=True)
        yield from wraps(NEAR, cc)
    for route in ROUTES:
        for segments in SIZES:
            yield from losses(route, "bbr", segments)
    for route in (FAST, NEAR):
        for segments in SIZES:
            yield from losses(route, "newreno", segments)
        yield from disorder(route, "newreno")


def numbers(rule: str, of: Iterable[int]) -> str:
    """One rule for several packets."""
    return f"{rule} {','.join(map(str, of))}"


def losses(route: Route, cc: str, segments: int) -> Iterator[Case]:
    """No loss, one, several in a window, one again, and 1 % at random."""

    def case(group: str, name: str, *rules: str) -> Case:
        return Case(f"{group}, {segments}", f"{name}, {segments}", route, cc, segments, rules)

    yield case("no loss", "no loss")
    for lost in range(1, min(segments, 10) + 1):
        yield case("one of the first ten", f"segment {lost}", f"lose data {lost}")
    yield case("handshake and close", "SYN", "lose syn 1")
    yield case("handshake and close", "SYN/ACK", "lose synack 1")
    yield case("handshake and close", "request", "lose request 1")
    yield case("handshake and close", "third packet of the handshake", "lose ack 1")
    if segments <= 10:
        yield case("handshake and close", "FIN", "lose fin 1")
    if segments > 10:
        yield case("the end", "last segment", f"lose data {segments}")
        yield case("the end", "last two", numbers("lose data", (segments - 1, segments)))
        yield case("the end", "last but one", f"lose data {segments - 1}")
        yield case("the end", "last twice", f"lose data {segments}", f"lose data {segments} 2")
    if segments >= 10:
        yield case("several in a window", "2 and 3", "lose data 2,3")
        yield case("several in a window", "2, 5 and 8", "lose data 2,5,8")
        yield case("several in a window", "all but the first", numbers("lose data", range(2, 11)))
        yield case("several in a window", "all", numbers("lose data", range(1, 11)))
        yield case("lost again", "segment 2 twice", "lose data 2", "lose data 2 2")
        yield case("lost again", "segment 5 three times", *(f"lose data 5 {n}" for n in (1, 2, 3)))
    if segments >= 100:
        yield case("several in a window", "20 to 30", numbers("lose data", range(20, 31)))
        yield case("several in a window", "every other of 30 to 48", numbers("lose data", range(30, 49, 2)))
        yield case("lost again", "segment 40 twice", "lose data 40", "lose data 40 2")
    for seed in range(1, SEEDS + 1):
        draw = random.Random(f"{segments} {seed}")
        drawn = [n for n in range(1, 2 * segments + 20) if draw.random() < 0.01]
        yield case("1 % at random", f"seed {seed}", *([numbers("lose payload", drawn)] if drawn else []))


def disorder(route: Route, cc: str) -> Iterator[Case]:
    """Packets that are overtaken, or come late all together."""
    for segments in (10, 100):

        def case(group: str, name: str, *rules: str, segments: int = segments) -> Case:
            return Case(f"{group}, {segments}", f"{name}, {segments}", route, cc, segments, rules)

        for held in (1, 2, 3, 5):
            yield case("reordering", f"segment 3 overtaken by {held}", f"hold data 3 1 {held}")
        if segments > 10:
            yield case("reordering", "segment 40 overtaken by 10", "hold data 40 1 10")
            yield case("reordering", "two overtaken", "hold data 20 1 4", "hold data 60 1 4")
        for ms in (50, 300, 700):
            yield case("delay spike", f"{ms} ms at segment 5", f"stall data 5 1 {ms}")
        if segments > 10:
            yield case("delay spike", "400 ms at segment 50", "stall data 50 1 400")
        for lost in (2, 3, 4):
            yield case("lost acknowledgement", f"acknowledgement {lost}", f"lose ack {lost}")
        yield case("lost acknowledgement", "2 to 5", "lose ack 2,3,4,5")


def marks(route: Route, cc: str, accurate: bool = False) -> Iterator[Case]:
    """ECN: marks instead of losses, and losses of the packets that tell of them."""
    for segments in (10, 100, 1000):

        def case(group: str, name: str, *rules: str, segments: int = segments) -> Case:
            return Case(f"{group}, {segments}", f"{name}, {segments}", route, cc, segments, rules, True, accurate)

        yield case("ECN, no mark", "no mark")
        for marked in (1, 5, 10):
            yield case("ECN, marks", f"mark {marked}", f"mark data {marked}")
        yield case("ECN, marks", "mark 3 and 4", "mark data 3,4")
        yield case("ECN, handshake", "SYN", "lose syn 1")
        yield case("ECN, handshake", "SYN/ACK", "lose synack 1")
        yield case("ECN, losses", "lose 3, mark 7", "lose data 3", "mark data 7")
        yield case("ECN, losses", "mark 3, lose 7", "mark data 3", "lose data 7")
        if segments > 10:
            yield case("ECN, marks", "mark 30 to 40", numbers("mark data", range(30, 41)))
            yield case("ECN, marks", "mark 20 and 80", "mark data 20,80")
            yield case("ECN, marks", "mark all of 11 to 90", numbers("mark data", range(11, 91)))


def wraps(route: Route, cc: str) -> Iterator[Case]:
    """Acknowledgements lost in rows, so that one covers more packets than three bits count marks of."""

    def case(name: str, lost: Iterable[int], marked: Iterable[int], segments: int, *rules: str) -> Case:
        group = f"ECN, acknowledgements lost, {segments}"
        rules = (numbers("lose acked", lost), *rules, *marking("data", marked))
        return Case(group, f"{name}, {segments}", route, cc, segments, rules, True, True)

    for name, lost, marked, segments in ROWS:
        yield case(name, lost, marked, segments)
    # What acknowledgements usually cover is still above four packets when the row is over.
    for first in (11, 26, 31):
        yield case(f"5 and, from {first} on, 20 at once", [*range(1, 5), *range(first, first + 19)], (), 60)
    for name, marked in (("none", ()), ("20", (20,)), ("all", tuple(range(11, 31)))):
        yield case(f"10 and 20 at once, mark {name}", [*range(1, 10), *range(11, 30)], marked, 60)
    # It rises to three packets or to six. Every segment is acknowledged at once, its field is another than that before.
    for cover in (3, 6):
        thinned = [*(n for n in range(31, 421) if n % cover), *range(421, 460)]
        changing = numbers("ect1 data", range(31, 501, 2))
        yield case(f"{cover} at once from 31 on, 40 from 421 on", thinned, (), 1000, changing)


def rows() -> Iterator[tuple[str, range, tuple[int, ...], int]]:
    """Rows of acknowledgements that are lost, what is marked of what the next one covers, and of how many segments."""
    for first, last, segments in ((11, 18, 60), (11, 25, 60), (11, 30, 60), (31, 60, 70)):
        covered = range(first, last + 1)
        for name, marked in (("none", ()), ("every third", covered[::3]), ("all", covered)):
            yield f"{len(covered)} at once, mark {name}", range(first, last), tuple(marked), segments


def marking(what: str, marked: Iterable[int]) -> list[str]:
    """The rule for packets that are marked, if any are."""
    return [numbers(f"mark {what}", marked)] if marked else []


ROWS = tuple(rows())
