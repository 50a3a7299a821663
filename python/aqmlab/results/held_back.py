"""What holds long flows back when it is not the link: windows and access links, reckoned before a run and seen in it.

A host of 2002 offers 16 kB, which over 80 ms is 1.6 Mb/s, whatever the link carries and whatever its discipline does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from aqmlab import links, reference, units

if TYPE_CHECKING:
    from aqmlab.json_files import Json

MOSTLY = 0.5
"""Share of the time from which on something is said to hold flows back."""

FULL = 0.95
"""Share of the link from which on it is said to be full."""


def blocks(summary: Mapping[str, Any]) -> Mapping[str, Json]:
    """What a summary says of each block of endless flows, by its number."""
    found: Mapping[str, Json] = (summary.get("tcp") or {}).get("held_back") or {}
    return found


def seen(tree: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """A line for each block whose endless flows were mostly held back by something else than the link.

    `tree` is a resolved scenario, `summary` what its runs came to.
    """
    found = blocks(summary).items()
    return [line for key, shares in found if (line := _seen(tree, int(key), shares, summary)) is not None]


def foreseen(tree: Mapping[str, Any]) -> list[str]:
    """A line for each block of endless flows that cannot fill what is left of the link, where that can be reckoned.

    All that is asked for besides must be known: rates of UDP, loads. `tree` is a resolved scenario. Nothing is foreseen
    where there are several links, for what is left of one depends on the others, or where a link changes.
    """
    if links.are_several(tree) or links.changes(links.first(tree)):
        return []
    endless = list(_endless(tree))
    most = {number: _allowed_bps(tree, block) for number, block in endless}
    lines = []
    for direction in links.WAYS:
        asked = [_asked_bps(block, direction) for block in tree["traffic"] if not reference.is_endless(block)]
        here = {number: most[number] for number, block in endless if block["direction"] == direction}
        capacity = sum(_rates_bps(links.first(tree), direction))
        if not here or None in asked or None in here.values():
            continue
        carried = capacity * min(_without_framing(tree, block) for number, block in endless if number in here)
        left = carried - sum(each or 0.0 for each in asked)
        if sum(each or 0.0 for each in here.values()) >= FULL * left:
            continue
        for number, allowed in here.items():
            block, flows = tree["traffic"][number], tree["traffic"][number]["flows"]
            each, share = (allowed or 0.0) / flows, (allowed or 0.0) / capacity
            allow = f"allow{'s' if flows == 1 else ''} {_flows(flows)}"
            lines.append(
                f"{links.block_title(tree, number)}: {_what(tree, block, each)} {allow} "
                f"at most {_rate(each)}{'' if flows == 1 else ' each'}: {units.say_share(share)} of the link"
            )
    return lines


def _seen(tree: Mapping[str, Any], number: int, shares: Json, summary: Mapping[str, Any]) -> str | None:
    block = tree["traffic"][number]
    crossed = {way: links.route(tree, block, way) for way in links.WAYS if block["direction"] in (way, "both")}
    capacity = sum(min(_carried_bps(tree, summary, name, way) for name in crossed[way]) for way in crossed)
    access_bps = units.rate_bps(tree["path"]["access_rate"], "path.access_rate")
    slowest = min(_rates_bps(links.of(tree)[name], "forward")[0] for name in links.route(tree, block, "forward"))
    if shares["access_share"] >= MOSTLY and access_bps < slowest:
        share, what, over = shares["access_share"], _access(block, access_bps), ""
    elif shares["window_share"] >= MOSTLY:
        share, what, over = shares["window_share"], _window(tree, block), f" over {_round_trips(tree, block)}"
    else:
        return None
    flows = block["flows"]
    limits = f"limit{'s' if flows == 1 else ''} {_flows(flows)} for {units.say_share(share)} of the time"
    used = [max(links.figures(summary, name)[way]["busy_ratio"] or 0.0 for name in crossed[way]) for way in crossed]
    if min(used) >= FULL:
        fills = f"and fill{'s' if flows == 1 else ''} the link: losses and marks hardly do"
        return f"{links.block_title(tree, number)}: {what} {limits}, {fills}"
    rate = f"{_rate(shares['goodput_bps'] / flows)}{'' if flows == 1 else ' each'}{over}"
    part = units.say_share(shares["goodput_bps"] / capacity)
    return f"{links.block_title(tree, number)}: {what}, not the link, {limits}: {rate}, {part} of it"


def _endless(tree: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return ((number, block) for number, block in enumerate(tree["traffic"]) if reference.is_endless(block))


def _allowed_bps(tree: Mapping[str, Any], block: Mapping[str, Any]) -> float | None:
    """What windows and access links allow the flows of a block on an empty path, in IP packets."""
    window, mss, header = (_number(_of_block(tree, block, key)) for key in ("window", "mss", "header"))
    per_round_trip = 8 * window * (1 + header / mss)
    access = units.rate_bps(tree["path"]["access_rate"], "path.access_rate")
    inverse = _mean_inverse_s(_of_block(tree, block, "rtt"), _delays_s(tree, block))
    return None if inverse is None else block["flows"] * min(per_round_trip * inverse, access)


def _without_framing(tree: Mapping[str, Any], block: Mapping[str, Any]) -> float:
    """The share of the link that the block's full packets have, without what framing and cells add to them."""
    size = round(_number(_of_block(tree, block, "mss")) + _number(_of_block(tree, block, "header")))
    return size / links.wire_bytes(links.first(tree), size)


def _mean_inverse_s(rtt: Any, more_s: float = 0.0) -> float | None:
    """The mean of 1 / RTT over flows, each with so much more; None of distributions that are not reckoned with."""
    if isinstance(rtt, str):
        return _inverse(_number(rtt) + more_s)
    ends = rtt.get("uniform") or rtt.get("even")
    if ends is None:
        return None
    low, high = (_number(end) + more_s for end in ends)
    if low == high or low == 0:
        return _inverse(low)
    return math.log(high / low) / (high - low)


def _inverse(seconds: float) -> float:
    """Without any delay a window holds nothing back."""
    return 1 / seconds if seconds > 0 else math.inf


def _asked_bps(block: Mapping[str, Any], direction: str) -> float | None:
    """What a block that is not endless takes of the link in a direction; None if that is not known."""
    if block["direction"] not in (direction, "both"):
        return 0.0
    if "load" in block:
        return units.rate_bps(block["load"], "load")
    # Of sources that are off at times it is what they take while they are on.
    return units.rate_bps(block["rate"], "rate") if "rate" in block and "off" not in block else None


def _rates_bps(link: Mapping[str, Any], direction: str) -> list[float]:
    """Of the directions that are meant."""
    rates = {"forward": link["rate"], "reverse": link["reverse_rate"]}
    return [units.rate_bps(rate, "rate") for way, rate in rates.items() if direction in (way, "both")]


def _carried_bps(tree: Mapping[str, Any], summary: Mapping[str, Any], name: str, way: str) -> float:
    """What a link carries one way; where it changes, in the mean over the window, as its utilisation has it."""
    link, figures = links.of(tree)[name], links.figures(summary, name)[way]
    if ("schedule" in link or "states" in link) and figures["utilisation"]:
        return float(figures["throughput_bps"]) / float(figures["utilisation"])
    return _rates_bps(link, way)[0]


def _delays_s(tree: Mapping[str, Any], block: Mapping[str, Any]) -> float:
    """What the delays behind the links of its route, there and back, add to each round trip."""
    keys = {"forward": "delay", "reverse": "reverse_delay"}
    return sum(
        _number(links.of(tree)[name].get(keys[way], "0s"))
        for way in links.WAYS
        for name in links.route(tree, block, way)
    )


def _of_block(tree: Mapping[str, Any], block: Mapping[str, Any], key: str) -> Any:
    return block.get(key, (tree["path"] if key == "rtt" else tree["tcp"]).get(key))


def _number(text: Any) -> float:
    found = units.quantity(str(text))
    assert found is not None, f"{text} is a quantity of a resolved scenario"
    return found[0]


def _flows(flows: int) -> str:
    return "its flow" if flows == 1 else f"its {flows:,} flows"


def _what(tree: Mapping[str, Any], block: Mapping[str, Any], each_bps: float) -> str:
    access = units.rate_bps(tree["path"]["access_rate"], "path.access_rate")
    if each_bps >= access:
        return _access(block, access)
    return f"{_window(tree, block)} over {_round_trips(tree, block)}"


def _window(tree: Mapping[str, Any], block: Mapping[str, Any]) -> str:
    window = _number(_of_block(tree, block, "window"))
    size = next((f"{window / by:.4g} {unit}" for by, unit in ((1 << 20, "MB"), (1 << 10, "kB")) if window >= by), None)
    words = size or f"{window:.0f} B"
    return f"a window of {words}" if block["flows"] == 1 else f"windows of {words}"


def _access(block: Mapping[str, Any], access_bps: float) -> str:
    rate = _rate(access_bps)
    return f"an access link of {rate}" if block["flows"] == 1 else f"access links of {rate}"


def _round_trips(tree: Mapping[str, Any], block: Mapping[str, Any]) -> str:
    rtt = _of_block(tree, block, "rtt")
    more_s = _delays_s(tree, block)
    if isinstance(rtt, str):
        return units.say_seconds(_number(rtt) + more_s)
    ends = rtt.get("uniform") or rtt.get("even")
    return (
        "their round trips" if ends is None else " to ".join(units.say_seconds(_number(end) + more_s) for end in ends)
    )


def _rate(bps: float) -> str:
    """With two digits: what is reckoned is no more exact."""
    size = next((by for by in (1e9, 1e6, 1e3) if bps >= by), 1.0)
    number = bps / size
    return units.say_rate(round(number, 1 if number < 9.95 else 0 if number < 99.5 else -1) * size)
