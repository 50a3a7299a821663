"""The cases of the comparison over two hops: the same network for the kernel and for aqmlab."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from closed_loop_cases import CODEL, FQ_CODEL, PIE

REFERENCE = Path(__file__).resolve().parent / "two_hops_reference.json"

BUCKET = 10
"""Of HTB, bytes: after a pause packets leave one after the other, as from a link."""
GROUPS = ("long", "first", "second")
"""Flows over both hops, over the first alone, over the second alone."""
HOPS_OF = {"long": (0, 1), "first": (0,), "second": (1,)}


@dataclass(frozen=True)
class Hop:
    """A link with a discipline."""

    rate: str
    qdisc: str
    """As in `tc qdisc add ... handle 10: QDISC`."""

    @property
    def rate_bps(self) -> float:
        """The rate in bits a second."""
        return float(self.rate.removesuffix("mbit")) * 1e6


@dataclass(frozen=True)
class Case:
    """Flows over two links in a row."""

    name: str
    title: str
    hops: list[Hop]
    rtts_ms: dict[str, list[float]]
    """A flow each, by group."""
    cc: str
    ecn: bool = False
    seconds: float = 70.0
    runs: int = 10
    """Of the kernel: each has its own times of start, and whatever the disciplines draw."""


OURS: dict[str, dict[str, Any]] = {
    "codel": CODEL,
    "pie": PIE,
    "fq_codel": FQ_CODEL,
    "codel ecn": CODEL | {"ecn": True},
}
"""The kernel's disciplines as `[links.NAME.qdisc]` of a scenario. Under tc's `fq_codel` ECN is on already."""

SPREAD: dict[str, list[float]] = {
    "long": [40, 60, 80, 100],
    "first": [20, 50, 80],
    "second": [30, 60, 90],
}
"""Round-trip times that keep flows from falling in step."""


def case(first: str, second: str, rates: tuple[int, int], cc: str, **more: Any) -> Case:
    """Four flows over both hops and three over each."""
    name = f"{first}-{second}-{cc}".replace(" ", "-")
    title = f"{cc}, {rates[0]} and {rates[1]} Mb/s: {first}, {second}"
    hops = [Hop(f"{rate}mbit", qdisc) for rate, qdisc in zip(rates, (first, second), strict=True)]
    return Case(name, title, hops, SPREAD, cc, **more)


CASES = (
    case("codel", "pie", (20, 15), "cubic"),
    case("fq_codel", "codel", (20, 15), "cubic"),
    case("pie", "fq_codel", (15, 20), "cubic"),
    case("codel", "codel", (20, 20), "reno"),
    case("pie", "pie", (20, 20), "reno"),
    case("codel ecn", "fq_codel", (20, 15), "reno", ecn=True),
)
