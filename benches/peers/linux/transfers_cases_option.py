"""The cases of the AccECN option (RFC 9768 §3.2.3), and of peers and paths that change what is negotiated.

Segments may have several sizes here, because an option takes room of the data beside it: rules count packets
(`payload N`), and the record counts bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from transfers_cases import FAST, NEAR, ROWS, Case, Route, marking, numbers

FIELDS = ("ce", "ect0", "ect1")
MIXED = ((3, 1), (1, 3), (3, 0), (0, 3), (3, 2), (3, 5), (4, 3))
"""tcp_ecn of a client and of its server: 3 is AccECN, 1 and 2 classic ECN, 4 and 5 AccECN for servers only."""


def cases() -> Iterator[Case]:
    """All cases, in order."""
    for cc, option, route in (("reno", 2, NEAR), ("cubic", 2, FAST), ("reno", 1, NEAR), ("dctcp", 2, NEAR)):
        yield from marks(cc, option, route)
    yield from losses("reno", 2, NEAR)
    yield from losses("reno", 1, NEAR)
    for option in (1, 2, 3):
        yield from paths("reno", option, NEAR)
    yield from handshakes("reno", 2, NEAR)
    yield from handshakes("dctcp", 2, NEAR)
    for cc, option, route in (("reno", 2, NEAR), ("cubic", 2, FAST), ("dctcp", 2, NEAR)):
        yield from wraps(cc, option, route)


def marks(cc: str, option: int, route: Route) -> Iterator[Case]:
    """Marks one by one, in rows, beyond what three bits count."""

    def case(name: str, segments: int, *rules: str) -> Case:
        return Case("marks", f"{name}, {segments}", route, cc, segments, rules, True, True, option)

    yield case("no mark", 10)
    yield case("no mark", 100)
    for marked in (1, 5, 10):
        yield case(f"mark {marked}", 10, f"mark payload {marked}")
    yield case("mark 3 and 4", 10, "mark payload 3,4")
    yield case("mark 30 to 40", 100, numbers("mark payload", range(30, 41)))
    yield case("mark all of 11 to 90", 100, numbers("mark payload", range(11, 91)))
    yield case("mark every other of 20 to 60", 100, numbers("mark payload", range(20, 61, 2)))


def losses(cc: str, option: int, route: Route) -> Iterator[Case]:
    """Losses and marks at once: reports of what is held leave less room for an option, or none."""

    def case(name: str, segments: int, *rules: str) -> Case:
        return Case("losses", f"{name}, {segments}", route, cc, segments, rules, True, True, option)

    yield case("lose 3, mark 7", 10, "lose payload 3", "mark payload 7")
    yield case("lose 2, 5 and 8, mark the others", 10, "lose payload 2,5,8", "mark payload 3,4,6,7,9,10")
    yield case(
        "lose 31, 33, 35, 37, 39, mark 40 to 50",
        100,
        "lose payload 31,33,35,37,39",
        numbers("mark payload", range(40, 51)),
    )
    yield case("lose 40 to 42, mark 50 and 60", 100, "lose payload 40,41,42", "mark payload 50,60")
    yield case(
        "acknowledgements 3 to 7, mark 11 to 40", 100, "lose ack 3,4,5,6,7", numbers("mark payload", range(11, 41))
    )
    yield case("delay spike of 300 ms at 5, mark 6", 10, "stall payload 5 1 300", "mark payload 6")


def paths(cc: str, option: int, route: Route) -> Iterator[Case]:
    """Paths that take options off, or zero their counters."""

    def case(name: str, *rules: str, segments: int = 30) -> Case:
        more = ("mark payload 5,6,7",)
        return Case("paths", f"{name}, {segments}", route, cc, segments, (*rules, *more), True, True, option)

    yield case("no option of the server", "strip server *")
    yield case("no option of the client", "strip client *")
    yield case("no option at all", "strip server *", "strip client *")
    yield case("no option on the SYN/ACK", "strip synack 1")
    yield case("zeroed counters of the client", "zero client *")
    yield case("zeroed counters on the SYN/ACK", "zero synack 1")
    yield case("SYN/ACK lost", "lose synack 1")
    yield case("SYN/ACK lost twice", "lose synack 1,2")
    yield case("third packet of the handshake lost", "lose ack 1")
    yield case("third packet and request lost", "lose ack 1", "lose request 1")


def handshakes(cc: str, option: int, route: Route) -> Iterator[Case]:
    """Fields of the handshake that somebody changes, peers of other kinds, and a path that bleaches."""

    def case(name: str, *rules: str, peers: tuple[int, int] = (3, 3)) -> Case:
        return Case("handshakes", f"{name}, 10", route, cc, 10, rules, True, True, option, peers)

    for what, name in (("syn", "SYN"), ("synack", "SYN/ACK")):
        for field in ("not-ect", *FIELDS) if cc == "dctcp" else FIELDS:
            yield case(f"{name} with {field}", f"{field} {what} 1", "mark payload 5")
    if cc == "reno":
        yield case("third packet of the handshake with ce", "ce ack 1", "mark payload 5")
        yield case("request with ce", "ce request 1", "mark payload 5")
        yield case("server bleached", "not-ect server *")
        yield case("client bleached", "not-ect client *", "mark payload 5")
        yield case("all of the server with ce", "ce server *")
        yield case("all of the client marked", "mark client *")
        yield case("all of the server with ect1", "ect1 server *", "mark payload 5")
        yield case("SYN lost", "lose syn 1", "mark payload 5")
        yield case("SYN lost twice", "lose syn 1,2", "mark payload 5")
    for peers in MIXED:
        yield case(f"tcp_ecn {peers[0]} and {peers[1]}", "mark payload 5", peers=peers)


def wraps(cc: str, option: int, route: Route) -> Iterator[Case]:
    """Acknowledgements lost in rows, so that one covers more packets than three bits count marks of, with an option
    and without.
    """

    def case(name: str, lost: Iterable[int], marked: Iterable[int], segments: int, *rules: str) -> Case:
        rules = (numbers("lose acked", lost), *rules, *marking("payload", marked))
        name = f"{name}, {segments}"
        return Case("acknowledgements lost", name, route, cc, segments, rules, True, True, option)

    for name, lost, marked, segments in ROWS:
        yield case(name, lost, marked, segments)
    yield case("15 at once, mark the last", range(11, 25), (25,), 60)
    for name, marked in (("20", (20,)), ("all", tuple(range(11, 31)))):
        yield case(f"10 and 20 at once, mark {name}", [*range(1, 10), *range(11, 30)], marked, 60)
    rows = (*range(11, 25), *range(31, 39))
    for name, marked in (
        ("none", ()),
        ("20 and 35", (20, 35)),
        ("all of 11 to 39", tuple(range(11, 40))),
        ("35", (35,)),
    ):
        yield case(f"15 without an option and 9 at once, mark {name}", rows, marked, 60, "strip acked 25")
    yield case("15 and 9 at once, 12 and 35 with ect1, mark 20", rows, (20,), 60, "ect1 payload 12,35")
    yield case("15 and 9 at once, 12 with ect1, mark 20 and 35", rows, (20, 35), 60, "ect1 payload 12")
