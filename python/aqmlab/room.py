"""How long a full queue takes to leave at a link's rate, beside the queue that its discipline aims at."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab import engine, links, shaping, units
from aqmlab.engine import Tree
from aqmlab.errors import doubt

AIMS = ("target", "qref", "threshold", "max", "max_out")
"""Parameters that say which queue a discipline aims at, or up to which its signals grow: a time or a length."""

FAIR = "fq_"
"""What stands before the name of a law under fair queueing."""

EVENTS = ("blue",)
"""Laws that take a full queue for a signal, so that their `threshold` need not be within the limit."""

ROUND_TRIPS = ("rtt", "max_rtt")
"""Parameters that say which round trip is the longest usual one."""
INTERVALS = ("codel", "cobalt")
"""Laws whose `interval` says so."""
PACKETS = 1.5
"""Full packets whose time the target of these is at least, on a slow link: RFC 8289 §4.3, RFC 8290 §5.2.1."""
USUAL_S = 0.1
"""The longest usual round trip where no parameter says one: RFC 8289 §4.3."""

MTU = 1500
"""Bytes of a full IP packet where no hosts speak TCP."""


@dataclass(frozen=True)
class Room:
    """What a limit holds, and what is aimed at."""

    limit: str
    rate_bps: float
    """At which the queue leaves: the link's, or that of a slower shaper."""
    holds_s: float
    """Of full packets, in the time in which the link sends them."""
    aim: str | None
    """The parameter; `None` where nothing is aimed at."""
    aimed: str
    """Its value."""
    aim_s: float
    enough: str
    """A limit that leaves the aim room, and for a time a round trip besides, in the unit of the limit."""
    round_trip_s: float | None
    """The round trip of `enough`; `None` where the aim is a length."""
    least_s: float = 0.0
    """The target that the law has to have at least at this rate; nothing of laws that do without."""

    @property
    def is_slow(self) -> bool:
        """Whether the target is over while a packet or hardly a second one is sent."""
        return self.aim_s < self.least_s

    @property
    def slow(self) -> str:
        """That the target is too short for the rate, and one that is not."""
        rate, packet_s = units.say_rate(self.rate_bps), self.least_s / PACKETS
        return (
            f"{self.aim} = {self.aimed} is less than {PACKETS:g} full packets take at {rate}, where one takes "
            f"{units.say_seconds(packet_s)}: the law signals though hardly anything waits; expected "
            f"{units.say_seconds(self.least_s)} or more"
        )

    @property
    def is_short(self) -> bool:
        """Whether the queue is full before it is what is aimed at."""
        if self.aim is None:
            return False
        return self.holds_s < self.aim_s or (self.round_trip_s is None and self.holds_s == self.aim_s)

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"holds_s": self.holds_s, "aim": self.aim, "aim_s": self.aim_s if self.aim else None}

    @property
    def said(self) -> str:
        """What the limit holds, beside the aim."""
        holds = f"holds {units.say_seconds(self.holds_s)} of full packets at {units.say_rate(self.rate_bps)}"
        if self.aim is None or (self.round_trip_s is None and not self.is_short):
            return holds
        if self.round_trip_s is None:
            return f"is no more than {self.aim} = {self.aimed}"
        return f"{holds}, {'less' if self.is_short else 'no less'} than {self.aim} = {self.aimed}"

    @property
    def wanted(self) -> str:
        """A limit that would do, and what it is made of."""
        if self.round_trip_s is None:
            return f"{self.enough} or so (twice {self.aim})"
        return f"{self.enough} or more ({self.aim} and a round trip of {units.say_seconds(self.round_trip_s)})"


def of(qdisc: Mapping[str, Any], link: Mapping[str, Any], rate_bps: float, full: int = MTU) -> Room | None:
    """The room in a resolved discipline before a resolved link of a rate; `full` is the size of a full IP packet.

    Nothing is known of what has no limit.
    """
    number, unit = _quantity(qdisc.get("limit"))
    if not unit:
        return None
    shaped = qdisc.get(shaping.SHAPER)
    rate_bps = rate_bps if shaped is None else min(rate_bps, units.rate_bps(shaped, shaping.SHAPER))
    second_of = 8 * links.wire_bytes(link, full) / full / rate_bps
    holds_s = number * (full if unit == "packets" else 1) * second_of
    aim = _aim(qdisc)
    if aim is None or (qdisc.get("ce_threshold") and units.seconds(qdisc["ce_threshold"], "ce_threshold") < holds_s):
        return Room(str(qdisc["limit"]), rate_bps, holds_s, None, "", 0.0, "", None)
    size, aim_unit = _quantity(qdisc[aim])
    each = _quantity(qdisc.get("mean_packet", f"{full}b"))[0] if qdisc.get("mode") == "byte" else full
    aim_s = size if aim_unit == "s" else size * (each if aim_unit == "packets" else 1) * second_of
    round_trip_s = _round_trip_s(qdisc) if aim_unit == "s" else None
    enough_s = 2 * aim_s if round_trip_s is None else aim_s + round_trip_s
    enough = enough_s / second_of / (full if unit == "packets" else 1)
    return Room(
        limit=str(qdisc["limit"]),
        rate_bps=rate_bps,
        holds_s=holds_s,
        aim=aim,
        aimed=str(qdisc[aim]) + (f" of {each:g}b" if aim_unit == "packets" and each != full else ""),
        aim_s=aim_s,
        enough=f"{_rounded_up(enough)}{'p' if unit == 'packets' else 'b'}",
        round_trip_s=round_trip_s,
        least_s=PACKETS * full * second_of if aim == "target" and _law(qdisc) in INTERVALS else 0.0,
    )


def doubts(scenario: Tree, origin: str) -> None:
    """Says of a resolved scenario which disciplines lose at their limit before their law has what it aims at."""
    full = _full_packet(scenario)
    for name, link in links.of(scenario).items():
        if links.changes(link):
            continue  # at which rate is not known
        rates = dict(zip(shaping.RATES, links.rates_bps(scenario, name, origin), strict=True))
        forward: Tree = {}
        for queue, rate_bps in rates.items():
            qdisc = link.get(queue, {})
            if "law" in qdisc:
                continue
            room = of(qdisc, link, rate_bps, full)
            # Both directions have the same discipline unless somebody says otherwise: once is enough.
            if room is None or not room.holds_s or not room.is_short or qdisc == forward:
                continue
            forward = qdisc
            doubt(
                f"{origin}: {links.key(scenario, name)}.{queue}.limit = {room.limit} of {qdisc['kind']} "
                f"{room.said}: it is full before its law has what it aims at, and then loses packets as "
                f"drop-tail does; expected {room.wanted}"
            )


def _aim(qdisc: Mapping[str, Any]) -> str | None:
    if "law" in qdisc or _law(qdisc) in EVENTS:
        return None
    return next((key for key in AIMS if _quantity(qdisc.get(key))[1] in ("s", "packets", "bytes")), None)


def _law(qdisc: Mapping[str, Any]) -> str:
    return str(qdisc["kind"]).removeprefix(FAIR)


def _quantity(value: Any) -> tuple[float, str]:
    return units.quantity(str(value)) or (0.0, "")


def _round_trip_s(qdisc: Mapping[str, Any]) -> float:
    keys = ("interval",) if _law(qdisc) in INTERVALS else ROUND_TRIPS
    return next((units.seconds(qdisc[key], key) for key in keys if key in qdisc), USUAL_S)


def _full_packet(scenario: Tree) -> int:
    """The largest full IP packet of any hosts that speak TCP."""
    common = scenario.get("tcp", {})
    hosts = [{**common, **block} for block in scenario.get("traffic", []) if engine.speaks_tcp(block)]
    sizes = (sum(_quantity(one.get(key))[0] for key in ("mss", "header")) for one in hosts)
    return round(max(sizes, default=0.0)) or MTU


def _rounded_up(number: float) -> int:
    """With three digits: what is reckoned is no more exact."""
    step: int = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 2)
    return math.ceil(number / step - 1e-9) * step
