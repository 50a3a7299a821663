"""Figures of each of several links, and what packets waited at each link of their route, as summaries have them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from aqmlab import links
from aqmlab.results.result import Result
from aqmlab.statistics import Interval, across_runs


@dataclass(frozen=True)
class Port:
    """One direction of a link."""

    link: str
    way: str
    key: str
    """Where its figures are in a summary: `forward`, or of several links `links.core.forward`."""
    figures: Mapping[str, Any]
    widths: Mapping[str, Any]
    """Half widths of their intervals, where there are several runs."""


@dataclass(frozen=True)
class Wait:
    """What packets of a block waited at one link, going one way."""

    link: str
    key: str
    """Where it is in a summary: `routes.0.forward.1.queue_delay_mean_s`."""
    mean_s: Interval
    """The mean over packets, and over runs."""


@dataclass(frozen=True)
class Crossing:
    """A block of traffic going one way, with its waits in the order of the route."""

    block: int
    title: str
    way: str
    waits: tuple[Wait, ...]
    together_s: Interval
    """What a packet waits from end to end, in the mean; none where a run has no packets at one of the links."""


def ports(scenario: Mapping[str, Any], summary: Mapping[str, Any]) -> list[Port]:
    """Each direction of each link, in the order of the file."""
    widths = summary.get("half_width_95") or {}
    several = links.are_several(scenario)
    return [
        Port(
            name,
            way,
            f"{links.MANY}.{name}.{way}" if several else way,
            links.figures(summary, name)[way],
            links.figures(widths, name).get(way) or {},
        )
        for name in links.of(scenario)
        for way in links.WAYS
    ]


FULL = 1.00005
"""A utilisation that is read as more than 100.00 %."""


def over_full(results: Sequence[Result]) -> str:
    """How a link can be used by more than 100 %, where a table says so; nothing where none does."""
    traced = set()
    for result in results:
        for port in ports(result.scenario, result.summary):
            if (port.figures.get("utilisation") or 0.0) >= FULL:
                link, first = links.of(result.scenario)[port.link], port.way == links.WAYS[0]
                traced.add("trace" in link if first else "reverse_trace" in link)
    said = {
        False: "Above 100 %: a packet that began before the window or an outage counts where it ends.",
        True: "Above 100 %: the window holds more than the mean of the trace.",
    }
    return " ".join(said[one] for one in sorted(traced))


def crossings(result: Result) -> list[Crossing]:
    """Each block and direction with packets; none where there is one link, whose waits are its own."""
    found = []
    blocks = result.summary.get("routes") or {}
    for number, way in product(sorted(map(int, blocks)), links.WAYS):
        runs = [_means_s(run.summary, number, way) for run in result.runs]
        steps = (blocks[str(number)] or {}).get(way) or ()
        waits = tuple(
            Wait(step["link"], f"routes.{number}.{way}.{k}.queue_delay_mean_s", _across([run.get(k) for run in runs]))
            for k, step in enumerate(steps)
            if step is not None
        )
        if waits:
            crossed = len(links.route(result.scenario, result.scenario["traffic"][number], way))
            together = _across([_sum_s(run, crossed) for run in runs])
            found.append(Crossing(number, links.block_title(result.scenario, number), way, waits, together))
    return found


def _means_s(summary: Mapping[str, Any], number: int, way: str) -> dict[int, float | None]:
    """The mean waits of a block in one run, by the place of the link on its route."""
    steps = ((summary.get("routes") or {}).get(str(number)) or {}).get(way) or ()
    return {k: step["queue_delay_mean_s"] for k, step in enumerate(steps) if step is not None}


def _sum_s(means_s: Mapping[int, float | None], crossed: int) -> float | None:
    """What packets waited at so many links together; none where there were none at one of them."""
    known = [mean for mean in means_s.values() if mean is not None]
    return math.fsum(known) if len(known) == crossed else None


def _across(values: Sequence[float | None]) -> Interval:
    """The mean over runs; none where a run has no such number, as in summaries."""
    known = [value for value in values if value is not None]
    return across_runs(known) if len(known) == len(values) else Interval(math.nan, None, len(values), "none")
