"""Says of a discipline with a law that lost nearly all at its limit that it was a drop-tail queue."""

from collections.abc import Mapping
from typing import Any

from aqmlab import engine, links
from aqmlab.json_files import Json

FEWEST = 50
"""Losses in a run below which nothing is said."""

NEARLY_ALL = 0.95
"""Share of the losses at the limit from which on it is said."""

QUEUES = {"forward": "qdisc", "reverse": "reverse_qdisc"}
"""The key of a link's discipline each way."""


def seen(tree: Mapping[str, Any], summary: Json) -> list[str]:
    """A line for each direction of a link where it was so.

    `tree` is a resolved scenario, `summary` what its runs came to.
    """
    lawful = {row["name"] for row in engine.disciplines() if row["marks"]}
    found = [
        _said(f"{name} {way}" if links.are_several(tree) else way, link[queue], links.figures(summary, name).get(way))
        for name, link in links.of(tree).items()
        for way, queue in QUEUES.items()
        if link.get(queue, {}).get("kind") in lawful
    ]
    return [line for line in found if line is not None]


def _said(where: str, qdisc: Mapping[str, Any], port: Mapping[str, Any] | None) -> str | None:
    port = port or {}
    lost, marked = port.get("dropped_packets") or 0, port.get("marked_packets") or 0
    tail = (port.get("dropped_by_cause") or {}).get("tail", 0)
    by_law = lost - tail + marked
    if lost < FEWEST or tail < NEARLY_ALL * lost or by_law > (1 - NEARLY_ALL) * lost:
        return None
    limit, law = f"{qdisc['kind']}'s limit of {qdisc['limit']}", f"{by_law:,.0f}" if by_law else "none"
    return (
        f"{where}, {tail:,.0f} of {lost:,.0f} lost packets were lost at {limit}, and {law} "
        f"{'was' if by_law == 1 else 'were'} signalled by its law: it was a drop-tail queue"
    )
