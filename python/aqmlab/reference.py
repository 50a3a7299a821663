"""The uncongested reference: the scenario where nobody waits for anybody, and whether it was that.

Each direction has ten times its own rate and an endless drop-tail queue. Whoever asks for a certain amount then gets it
as fast as hosts and paths allow. A bulk flow without an end asks for no amount: on a faster link it takes more, until
there is a queue again. So endless flows are held to what the real link would give them, in equal shares, paced
(docs/decisions/011-elastic-flows-in-the-reference.md).
"""

import copy
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from aqmlab import arguments, links, units
from aqmlab.checks import Check
from aqmlab.engine import Tree
from aqmlab.errors import BadInput
from aqmlab.json_files import Json

LIMIT = "100000p"
"""Length of the drop-tail queues: so long that nothing is ever lost there."""

FACTOR = 10
"""Each direction is this much faster than that of the link itself: 1 Gb/s for 100 Mb/s in Le et al. (2003, 2007)."""

HIGHEST_SHARE = 0.8
"""The share of the time that a link is busy, framing included, up to which it counts as uncongested: at 0.8 an M/D/1
queue waits 0.8 / (2 (1 - 0.8)) = two packet times in the mean (Kleinrock, Queueing Systems, vol. I, 1975)."""

MOST_WAITING_PACKETS = FACTOR
"""Packets that wait in the mean over time up to which a link counts as uncongested.

On a link ten times as fast ten full packets are gone in one packet time of the real link: as long as whoever comes
there second has to wait for whoever came first, under any discipline. The mean is that over time, which anybody meets
who comes at any time; over packets it would be longer where bursts follow themselves, which is no wait for others."""

LONGEST_WAIT_SHARE = 0.02
"""More may wait, such as the burst of one large response, as long as full packets so many take no more than this share
of the median response time in the mean. An exchange waits once in each of its round trips: two for most, one to open
the connection and one for request and response; its median is then 4 % or so longer than without waits."""

FULL_PACKET_BITS = 1500 * 8
UNCONGESTED = "the reference is uncongested"
"""What the self-check is called."""

Rates = tuple[float, float]
"""Of a link forward and in reverse, bit/s."""


def rates_of(tree: Tree, origin: str) -> Rates:
    """The rates of the scenario's own link, of several the first."""
    return links.rates_bps(tree, next(iter(links.of(tree))), origin)


def asked_rate_bps(text: str | None) -> float | None:
    """The rate of the uncongested link in bit/s, if one is asked for."""
    if text is None:
        return None
    rate_bps = units.rate_bps(text, arguments.called("uncongested_rate"))
    if rate_bps <= 0:
        raise BadInput(f"{arguments.called('uncongested_rate')}: {text!r}: expected a rate above zero")
    return rate_bps


def rates(tree: Tree, origin: str, asked_bps: float | None = None) -> Rates:
    """The rates of the uncongested link that stands in for this scenario's: each direction's own, or what was asked."""
    if asked_bps is not None:
        return asked_bps, asked_bps
    forward, reverse = rates_of(tree, origin)
    return FACTOR * forward, FACTOR * reverse


def in_direction(rates: Rates, direction: str) -> tuple[float, ...]:
    """The rates of the directions in which a block of traffic runs: forward, reverse or both."""
    return rates if direction == "both" else (rates[links.WAYS.index(direction)],)


def uncongested(tree: Tree, on: Rates, origin: str = "<scenario>") -> Tree:
    """The same resolved scenario on a link of these rates where nothing queues for long or is lost.

    Of several links the first has these rates, and each other one is as many times faster than its own.
    """
    own = {name: links.rates_bps(tree, name, origin) for name in links.of(tree)}
    factors = [fast / real for fast, real in zip(on, rates_of(tree, origin), strict=True)]
    result = copy.deepcopy(tree)
    for k, (name, link) in enumerate(links.of(result).items()):
        fast = on if k == 0 else [factor * real for factor, real in zip(factors, own[name], strict=True)]
        link["rate"], link["reverse_rate"] = map(units.rate_text, fast)
        link["qdisc"] = {"kind": "pfifo", "limit": LIMIT}
        for key in ("reverse_qdisc", "device_queue", *links.TRACES.values(), *links.VARYING):
            link.pop(key, None)
    _hold(result, own)
    return result


def is_endless(block: Mapping[str, Any]) -> bool:
    """Whether the flows of a block of traffic, resolved or not, send for as long as the run lasts."""
    return block.get("kind") == "bulk" and block.get("size", "endless") == "endless"


def _hold(tree: Tree, own: Mapping[str, Rates]) -> None:
    """Holds each endless flow to its share of the real link, packet by packet; of several links the least share."""
    endless = [(block, _flows(block)) for block in tree.get("traffic", ()) if is_endless(block)]
    together: Counter[tuple[str, str]] = Counter()
    for block, flows in endless:
        for way, number in flows.items():
            together.update({(link, way): number for link in links.route(tree, block, way)})
    for block, flows in endless:
        # One value serves a block: one that runs both ways has the smaller share.
        share_bps = min(
            own[link][links.WAYS.index(way)] / together[link, way]
            for way in flows
            for link in links.route(tree, block, way)
        )
        held = units.rate_text(max(1, math.floor(share_bps)))
        block["max_pacing_rate"] = min(held, block.get("max_pacing_rate", held), key=_bps)
        block["pacing_burst"] = 1
        if block.get("repair", tree.get("tcp", {}).get("repair")) == "ns2-sack1":
            block["repair"] = "sack"  # ns-2's does not pace; nothing is lost here that it could repair otherwise


def _bps(rate: str) -> float:
    return units.rate_bps(rate, "max_pacing_rate")


def _flows(block: Mapping[str, Any]) -> dict[str, int]:
    """How many flows of a block run each way."""
    flows, way = int(block.get("flows", 1)), block.get("direction", "forward")
    if way != "both":
        return {way: flows}
    return {each: n for each, n in zip(links.WAYS, (flows - flows // 2, flows // 2), strict=True) if n}


def rates_in(calibration: Json) -> Rates:
    """The rates of the link on which a load was calibrated."""
    forward = float(calibration["uncongested_rate_bps"])
    return forward, float(calibration.get("uncongested_reverse_rate_bps", forward))


def check(summary: Json, tree: Tree, origin: str) -> Check:
    """Whether a run of this resolved scenario was uncongested on each of its links, in both directions."""
    median_s = float(summary["exchanges"]["response_time_s"]["p50"] or 0.0)
    said, holds = [], True
    for name in links.of(tree):
        figures = links.figures(summary, name)
        for way, rate in zip(links.WAYS, links.rates_bps(tree, name, origin), strict=True):
            used, waiting = (float(figures[way][key] or 0.0) for key in ("busy_ratio", "queue_mean_packets"))
            wait_s = waiting * FULL_PACKET_BITS / rate
            holds &= used <= HIGHEST_SHARE
            holds &= waiting <= MOST_WAITING_PACKETS or wait_s <= LONGEST_WAIT_SHARE * median_s
            where = f"{name} {way}" if links.are_several(tree) else way
            packets = units.significant(waiting, 3)
            said.append(f"{where} {units.say_share(used, 1)} busy and {packets} packets waiting in the mean")
    bounds = f"at most {units.say_share(HIGHEST_SHARE)} and {MOST_WAITING_PACKETS} packets"
    if median_s:
        bounds += f", or as many as take {units.say_seconds(LONGEST_WAIT_SHARE * median_s)}"
    return Check(UNCONGESTED, holds, f"{'; '.join(said)}; {bounds}")
