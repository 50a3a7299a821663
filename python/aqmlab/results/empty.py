"""Says of a run in whose measured window no packet left that its figures are of nothing, and what to change."""

from collections.abc import Mapping
from typing import Any

from aqmlab import links, units
from aqmlab.json_files import Json
from aqmlab.scenario import measured_window


def seen(tree: Mapping[str, Any], summary: Json) -> list[str]:
    """The line; nothing where any link sent a packet in either direction, or where nothing was measured at all.

    `tree` is a resolved scenario, `summary` what its runs came to. Live runs that ended before their window are void,
    which says more.
    """
    if summary.get("measured_s") == 0:
        return []
    ports = [links.figures(summary, link).get(way) or {} for link in links.of(tree) for way in links.WAYS]
    if any(port.get("delivered_packets") for port in ports):
        return []
    which = "any link" if links.are_several(tree) else "the link"
    ends = " to ".join(map(units.say_seconds, measured_window(tree)))
    return [
        f"no packet left {which} in the measured window, from {ends}, so that no figure says anything: have traffic "
        "start before its end (start), or change duration, warmup or cooldown"
    ]
