"""Where a packet was captured, as the names of a capture's interfaces say it."""

from typing import NamedTuple

from aqmlab.links import WAYS

BEFORE, DROPPED, AFTER = "before the queue", "dropped", "after the queue"


class Point(NamedTuple):
    """A point of the bottleneck."""

    way: int
    """0 forward, 1 in reverse."""
    place: str
    """`BEFORE`, `DROPPED` or `AFTER`."""


POINTS = {f"{name}, {place}": Point(way, place) for way, name in enumerate(WAYS) for place in (BEFORE, DROPPED, AFTER)}
"""By the names of their interfaces."""
