"""What was found at each point of a study, as claims, figures and tables see it."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from aqmlab.json_files import Json
from aqmlab.results.window import Window
from aqmlab.sweep.condensed import Condensed
from aqmlab.sweep.grid import Point
from aqmlab.sweep.selectors import select

MEMORY = 512e6
"""Bytes of windows in memory at a time: some 2,000 of short runs, 1,200 of long ones."""

BY_CLASS = ("block_cdf_counts", "block_tail_counts", "size_cdf_counts", "size_tail_counts")
"""The largest counts of a window, which few measures ask of: kept as small whole numbers."""


class Cell:
    """A point with its runs, in the order of their seeds."""

    def __init__(self, point: Point, runs: Sequence[Condensed]) -> None:
        self.point = point
        self.runs = tuple(runs)

    def __repr__(self) -> str:
        """Name and how many runs."""
        return f"<Cell {self.name}: {len(self.runs)} run(s)>"

    @property
    def name(self) -> str:
        """The grid and the names of the values: `web/pi-24/off/98`."""
        return self.point.name

    @property
    def grid(self) -> str:
        """Name of the grid."""
        return self.point.grid

    @property
    def at(self) -> Mapping[str, str]:
        """Where in the grid: axis -> name of the value."""
        return self.point.at

    @property
    def labels(self) -> Mapping[str, str]:
        """The coordinates in words: axis -> label of the value."""
        return self.point.labels

    @property
    def numbers(self) -> Mapping[str, float]:
        """The coordinates on axes whose values are numbers."""
        return self.point.numbers

    @property
    def label(self) -> str:
        """What people read."""
        return self.point.label

    @property
    def uncongested(self) -> bool:
        """Whether it is the reference on the uncongested link."""
        return self.point.uncongested

    @property
    def windows(self) -> list[Window]:
        """The condensed window of each run."""
        return _recent.of(self)

    @property
    def summaries(self) -> list[Json]:
        """The summary of each run."""
        return [run.summary for run in self.runs]

    def of_parts(self, run: int) -> Mapping[str, float | None]:
        """What one of its runs has of parts of the traffic, by names such as `applications.calls.mos_mean`."""
        return self.runs[run].of_parts

    @property
    def demand(self) -> tuple[str | None, tuple[int, ...]]:
        """What was demanded: two cells with the same are compared pair by pair."""
        return self.runs[0].demand_digest, tuple(run.seed for run in self.runs)

    @property
    def scenario(self) -> Json:
        """The resolved scenario of the first run."""
        return self.runs[0].scenario

    @property
    def queue(self) -> pl.DataFrame:
        """The thinned queue table of the first run."""
        return self.runs[0].queue


class Recent:
    """The windows that were asked for last: those of all runs of a large study would fill the memory."""

    def __init__(self, memory: float = MEMORY) -> None:
        self._memory = memory
        self._windows: OrderedDict[Cell, list[Window]] = OrderedDict()
        self._bytes: dict[Cell, int] = {}

    def of(self, cell: Cell) -> list[Window]:
        """The windows of the runs of a cell."""
        if cell not in self._windows:
            # A copy, for a run holds on to its window once it was asked for it.
            self._windows[cell] = [_narrowed(replace(run).window) for run in cell.runs]
            self._bytes[cell] = sum(map(_size, self._windows[cell]))
        self._windows.move_to_end(cell)
        while len(self._windows) > 1 and sum(self._bytes.values()) > self._memory:
            del self._bytes[self._windows.popitem(last=False)[0]]
        return self._windows[cell]


def _narrowed(window: Window) -> Window:
    """The same window with its largest counts in as few bytes each as hold them."""
    counts = {name: getattr(window, name) for name in BY_CLASS}
    return replace(window, **{n: c.astype(np.min_scalar_type(int(c.max()))) for n, c in counts.items() if c.size})


def _size(window: Window) -> int:
    """Bytes of its arrays, without those of several links."""
    return sum(item.nbytes for item in vars(window).values() if isinstance(item, np.ndarray))


_recent = Recent()


class Cells:
    """All cells of a study that have runs in this profile."""

    def __init__(self, everything: Sequence[Point], cells: Sequence[Cell]) -> None:
        self._everything = everything
        self._cells = {cell.name: cell for cell in cells}

    def __iter__(self) -> Iterator[Cell]:
        """In the order of the study."""
        return iter(self._cells.values())

    @property
    def by_name(self) -> dict[str, Cell]:
        """Every cell by the name of its point."""
        return dict(self._cells)

    @property
    def names(self) -> list[str]:
        """The names of all points that have runs."""
        return list(self._cells)

    def find(self, selector: Json) -> list[Cell]:
        """What a selector names, in its order, without points that this profile leaves out."""
        there = [cell.point for cell in self._cells.values()]
        return [self._cells[point.name] for point in select(there, selector, "selector", self._everything)]

    def left_out(self, selector: Json) -> list[Point]:
        """What a selector names and this profile does not run."""
        return [p for p in select(self._everything, selector, "selector") if p.name not in self._cells]
