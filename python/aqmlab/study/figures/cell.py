"""What a figure or table needs to know of a point of a study."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import polars as pl

from aqmlab import links
from aqmlab.json_files import Json
from aqmlab.measures.subject import Subject


class Place(Protocol):
    """Where in a grid something is."""

    @property
    def name(self) -> str:
        """Its grid and the values of its axes, `web/pi-24/off/98`."""
        ...

    @property
    def at(self) -> Mapping[str, str]:
        """Axis to the name of its value."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """Axis to its value for people."""
        ...

    @property
    def numbers(self) -> Mapping[str, float]:
        """Axis to its value as a number, where it is one."""
        ...

    @property
    def uncongested(self) -> bool:
        """Whether it is the reference on the uncongested link."""
        ...


class Cell(Subject, Protocol):
    """A point of a grid with its finished runs: what claims ask of it, and where in the grid it is."""

    @property
    def grid(self) -> str:
        """The grid that it is of."""
        ...

    @property
    def at(self) -> Mapping[str, str]:
        """Axis to the name of its value."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """Axis to its value for people."""
        ...

    @property
    def numbers(self) -> Mapping[str, float]:
        """Axis to its value as a number, where it is one."""
        ...

    @property
    def uncongested(self) -> bool:
        """Whether it ran on the uncongested link."""
        ...

    @property
    def queue(self) -> pl.DataFrame:
        """What the link did over time in the first run."""
        ...


Selector = Json
"""Axis to the name of a value, or to several; `grid` too; `label` is what a figure or table calls it."""

Find = Callable[[Selector], Sequence[Cell]]
"""The cells that a selector means, in the order of the study."""

LeftOut = Callable[[Selector], Sequence[Place]]
"""The points that a selector means and that were not run."""


def without_label(selector: Selector) -> Selector:
    """What of it chooses points."""
    return {key: item for key, item in selector.items() if key != "label"}


def nothing(_: Selector) -> Sequence[Place]:
    """Leaves nothing out: for a study that is run as a whole."""
    return ()


def qdisc_of(cell: Cell) -> Json:
    """The forward discipline with all its parameters."""
    return dict(links.first(cell.scenario)["qdisc"])


def ecn_of(cell: Cell) -> str:
    """How ECN is used: `off` unless both the discipline marks and hosts understand it; then as the hosts have it."""
    common = cell.scenario.get("tcp", {}).get("ecn", "off")
    blocks = cell.scenario.get("traffic", [])
    hosts = sorted({_word(block.get("ecn", common)) for block in blocks} or {_word(common)})
    return " and ".join(hosts) if qdisc_of(cell).get("ecn", False) else "off"


def _word(ecn: object) -> str:
    return "off" if ecn is False else str(ecn)
