"""Disciplines that shape, and the link behind them: one that is slower holds packets back in a shaper's place."""

from aqmlab import links, units
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import doubt

SHAPER = "bandwidth"
"""The parameter of a discipline that is its own shaper."""

RATES = {"qdisc": ("rate", "trace", "forward"), "reverse_qdisc": ("reverse_rate", "reverse_trace", "in reverse")}
"""For each discipline of `[link]` the key of its direction's rate, that of its trace, and how the direction is said."""


def excess(link: Tree, queue: str, where: str = links.ONE) -> str | None:
    """What is to be said of a shaper that is faster than its direction of a resolved link, whose key is `where`."""
    key, trace, way = RATES[queue]
    shaped = link.get(queue, {}).get(SHAPER)
    # The rate of a trace is its mean, which a shaper may well exceed and yet act; a schedule's is the first of several.
    if shaped is None or trace in link or "schedule" in link or "states" in link:
        return None
    rate = link.get(key, link["rate"])
    if units.rate_bps(shaped, f"{where}.{queue}.{SHAPER}") <= units.rate_bps(rate, f"{where}.{key}"):
        return None
    return f"{SHAPER} {shaped} exceeds {where}.{key} {rate} {way}, where it never shapes"


def doubts(resolved: Resolved) -> None:
    """Says so of a scenario, where somebody may mean it."""
    for name, link in links.of(resolved.scenario).items():
        where = links.key(resolved.scenario, name)
        for queue in RATES:
            if queue in link and (said := excess(link, queue, where)) is not None:
                doubt(f"{resolved.origin}: {where}.{queue}.{said}")
