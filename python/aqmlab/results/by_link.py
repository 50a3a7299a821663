"""Figures of each of several links, and what packets waited at each link of their route, as summaries have them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab import links


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
    mean_s: float | None


@dataclass(frozen=True)
class Crossing:
    """A block of traffic going one way, with its waits in the order of the route."""

    block: int
    title: str
    way: str
    waits: tuple[Wait, ...]

    @property
    def together_s(self) -> float:
        """What a packet waits from end to end, in the mean."""
        return sum(wait.mean_s or 0.0 for wait in self.waits)


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


def crossings(scenario: Mapping[str, Any], summary: Mapping[str, Any]) -> list[Crossing]:
    """Each block and direction with packets; none where there is one link, whose waits are its own."""
    found = []
    for number, ways in sorted((summary.get("routes") or {}).items(), key=lambda item: int(item[0])):
        for way in links.WAYS:
            waits = tuple(
                Wait(each["link"], f"routes.{number}.{way}.{k}.queue_delay_mean_s", each["queue_delay_mean_s"])
                for k, each in enumerate((ways or {}).get(way) or ())
                if each is not None
            )
            if waits:
                found.append(Crossing(int(number), links.block_title(scenario, int(number)), way, waits))
    return found
