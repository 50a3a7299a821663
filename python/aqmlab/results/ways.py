"""Numbers of one direction by their names: `forward.loss_ratio`, of several links `links.core.reverse.loss_ratio`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from aqmlab import links
from aqmlab.json_files import Json, is_number

WORDS = {"forward": "forward", "reverse": "in reverse"}
"""Directions in a sentence."""
CARRYING = 0.1
"""Share of the other direction's throughput: what carries less carries acknowledgements."""
CLEARLY = 1.2
"""How many times as long the queue of a direction is that is shown before the other for it."""


@dataclass(frozen=True)
class Place:
    """Where a number of a direction is."""

    link: str
    """Empty of the first link."""
    way: str
    what: str
    """The number itself: `loss_ratio`, `dropped_by_cause.early`."""

    @property
    def before(self) -> str:
        """What stands before the number in its name."""
        return f"{links.MANY}.{self.link}.{self.way}." if self.link else f"{self.way}."


def place(name: str) -> Place | None:
    """The direction that a name begins with; none where it begins otherwise."""
    match name.split(".", 3):
        case [links.MANY, link, way, what] if way in links.WAYS:
            return Place(link, way, what)
    way, dot, what = name.partition(".")
    return Place("", way, what) if dot and way in links.WAYS else None


def figures(summary: Json) -> dict[str, float]:
    """Every number of a direction that a summary has, by its name there; one that is null is not a number."""
    each = {way: summary.get(way) for way in links.WAYS} | {links.MANY: summary.get(links.MANY)}
    return dict(_numbers(each, ""))


def _numbers(tree: Mapping[str, Any], before: str) -> Iterator[tuple[str, float]]:
    for key, item in tree.items():
        if isinstance(item, Mapping):
            yield from _numbers(item, f"{before}{key}.")
        elif item is None or is_number(item):
            yield f"{before}{key}", float("nan") if item is None else float(item)


def of_data(summaries: Sequence[Json], base: Sequence[Json] = ()) -> list[str]:
    """The directions in which data flows in any of these runs; in the others acknowledgements do.

    Forward is first, unless the queue is clearly longer in reverse, as that of a home where somebody uploads: in the
    mean over the runs of the baseline, if there is one, for who is compared with it may have no queue anywhere.
    """
    most = {way: max(_each(summaries, way, "throughput_bps")) for way in links.WAYS}
    found = [way for way, bps in most.items() if bps >= CARRYING * max(most.values())]
    queue = {way: fmean(_each(base or summaries, way, "queue_mean_packets")) for way in found}
    is_turned = len(found) == 2 and queue[found[1]] > CLEARLY * queue[found[0]]
    return found[::-1] if is_turned else found


def _each(summaries: Sequence[Json], way: str, number: str) -> list[float]:
    return [float(summary[way].get(number) or 0.0) for summary in summaries]
