"""The links of a scenario: `[link]` is one, called `link`; of `[links.NAME]` there are as many as there are names.

Figures of "the link" are those of the first link of the file. A block of traffic has a route of its own each way.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from aqmlab import units
from aqmlab.engine import Tree

ONE, MANY = "link", "links"
"""The key of one link, which is also its name, and that of several."""

WAYS = ("forward", "reverse")
ROUTES = {"forward": "route", "reverse": "reverse_route"}
"""The key of a block's route each way."""

VARYING = ("schedule", "states", "period", "told_rate")
"""The keys of a link that say how it changes, and what disciplines are told of that."""

TRACES = {"forward": "trace", "reverse": "reverse_trace"}


def of(tree: Mapping[str, Any]) -> dict[str, Tree]:
    """Every link by its name, in the order of the file."""
    found = tree.get(MANY)
    return dict(found) if isinstance(found, Mapping) else {ONE: tree.get(ONE, {})}


def first(tree: Mapping[str, Any]) -> Tree:
    """The link that is meant where none is named."""
    return next(iter(of(tree).values()))


def in_cells(framed: int, framing: str) -> int:
    """Bytes on the wire for so many that are framed, as `link.framing` has it.

    ATM has cells of 48 bytes in 53 (ITU-T I.363.5), PTM a byte more for each 64 (IEEE 802.3 §61.3.3).
    """
    if framing == "atm":
        return 53 * -(-framed // 48)
    return framed + -(-framed // 64) if framing == "ptm" else framed


def wire_bytes(link: Mapping[str, Any], size: int) -> int:
    """What an IP packet of `size` bytes takes of a resolved link."""
    overhead, _ = units.quantity(str(link.get("overhead", "0b"))) or (0.0, "")
    return in_cells(size + round(overhead), str(link.get("framing", "noatm")))


def are_several(tree: Mapping[str, Any]) -> bool:
    """Whether there is more than one."""
    return len(tree.get(MANY, ())) > 1


def are_several_in(trees: Iterable[Mapping[str, Any]]) -> bool:
    """Whether scenarios side by side have several links: one of them has, or theirs have different names."""
    return len({name for tree in trees for name in of(tree)}) > 1


def are_alike(trees: Iterable[Mapping[str, Any]]) -> bool:
    """Whether scenarios have the same links in the same order, so that the first of each is the same one."""
    return len({tuple(of(tree)) for tree in trees}) <= 1


def key(tree: Mapping[str, Any], name: str) -> str:
    """The dotted key of a link: `link` or `links.core`."""
    return f"{MANY}.{name}" if MANY in tree else name


def rates_bps(tree: Mapping[str, Any], name: str, origin: str) -> tuple[float, float]:
    """The nominal rates of a link, forward and in reverse."""
    link, where = of(tree)[name], f"{origin}: {key(tree, name)}"
    forward = units.rate_bps(link.get("rate"), f"{where}.rate")
    return forward, units.rate_bps(link.get("reverse_rate", link.get("rate")), f"{where}.reverse_rate")


def changes(link: Mapping[str, Any]) -> bool:
    """Whether its rate or its delay changes with time."""
    return any(name in link for name in ("schedule", "states", *TRACES.values()))


def is_told(link: Mapping[str, Any], way: str) -> bool:
    """Whether a scenario tells the rate of one direction at any time: it follows no trace, and no states that are
    drawn."""
    name = "rate" if way == WAYS[0] else "reverse_rate"
    return TRACES[way] not in link and len({link[name], *(state[name] for state in link.get("states", ()))}) == 1


def route(tree: Mapping[str, Any], block: Mapping[str, Any], way: str) -> list[str]:
    """The names of the links that packets of a block cross one way, in their order."""
    names = list(of(tree))
    own = block.get("route", names[:1])
    return list(own if way == "forward" else block.get("reverse_route", own[::-1]))


def figures(summary: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What a summary says of a link: `forward` and `reverse`. A summary of one link may say it of that one alone."""
    found: Mapping[str, Any] = (summary.get(MANY) or {}).get(name, summary)
    return found


def rates_over_time(link: Mapping[str, Any], way: str, duration_s: float) -> list[tuple[float, float]]:
    """When one direction of a link that a schedule changes has which rate, bit/s; nothing where none does.

    At the end of each of its periods the link is as it was at the start, and the schedule begins again. An outage lasts
    as long as it says, whatever changes meanwhile.
    """
    name = "rate" if way == WAYS[0] else "reverse_rate"
    schedule = link.get("schedule", [])
    if not schedule:
        return []
    period_s = units.seconds(link["period"], "period") if "period" in link else math.inf
    start_bps = units.rate_bps(link[name], name)
    found = [(0.0, start_bps)]
    begins_s = 0.0
    while begins_s < duration_s:
        if found[-1][1] != start_bps:
            found.append((max(begins_s, found[-1][0]), start_bps))
        for change in schedule:
            at_s = begins_s + units.seconds(change["at"], "at")
            back_s = at_s + units.seconds(change.get("outage", "0s"), "outage")
            if at_s < duration_s:
                since_s = found[-1][0]
                found += [(max(at_s, since_s), 0.0)] * (back_s > max(at_s, since_s))
                found.append((max(back_s, since_s), units.rate_bps(change[name], name)))
        begins_s += period_s
    return [(at_s, bps) for at_s, bps in found if at_s < duration_s]


def block_title(scenario: Mapping[str, Any], number: int) -> str:
    """What a block of traffic is called wherever people read of it: by its kind, and where several are of a kind by the
    number that `--set` and tables have for it, too: `traffic.1 (bulk)`.
    """
    blocks = scenario["traffic"]
    kind = str(blocks[number]["kind"])
    return kind if sum(block["kind"] == kind for block in blocks) == 1 else f"traffic.{number} ({kind})"
