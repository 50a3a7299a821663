"""What a run will cost, before it begins: the bits that its links are expected to carry.

A simulated packet costs about as much wherever it flows. So bits tell runs apart well enough to say how long what is
left will take: a run at ten times the rate takes ten times as long, and so does one that lasts ten times as long.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from aqmlab import links, units
from aqmlab.engine import Load, Tree

MOST_DEMANDED = 1.2
"""A load may be above the link's rate: what is sent again and refused costs, too."""


def expected_bits(tree: Tree, origin: str, loads: Sequence[Load] = ()) -> float:
    """The bits that all links of a resolved scenario carry together, both ways.

    A block of traffic that asks for a load carries that; of any other it is taken that it fills its route.
    """
    asked = {load.traffic: load.load_bps for load in loads}
    on_link: dict[tuple[str, int], float] = defaultdict(float)
    for number, block in enumerate(tree.get("traffic", ())):
        for way, side in _ways(block):
            for name in links.route(tree, block, way):
                on_link[name, side] += asked.get(number, links.rates_bps(tree, name, origin)[side])
    carried = (
        min(bps, MOST_DEMANDED * links.rates_bps(tree, name, origin)[side]) for (name, side), bps in on_link.items()
    )
    return sum(carried) * units.seconds(tree.get("duration"), "duration")


def _ways(block: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The directions in which a block's data flow, each with its number."""
    direction = block.get("direction", links.WAYS[0])
    return [(way, side) for side, way in enumerate(links.WAYS) if direction in (way, "both")]
