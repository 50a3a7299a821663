"""The table of exchanges, condensed: counts by response time, part of the window, block of traffic and size.

The exchanges of two hours on a 100 Mb/s link are ten millions of rows and more, so the file is read in slices and
memory does not grow with it. One pass counts in the cells of a fine histogram, whose edges include all times and sizes
that are asked for, so that counts at these are exact. Quantiles are exact as well: the histogram tells in which of its
cells the wanted order statistics lie, and a second pass collects what is in those few (after Munro and Paterson 1980,
"Selection and sorting with limited storage").
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from aqmlab import engine
from aqmlab.results import held_back
from aqmlab.results.times import PER_S, Ns, column, nanoseconds, seconds
from aqmlab.statistics import BATCHES, Array

CDF_TIMES_NS = np.arange(0, 2 * PER_S + 1, PER_S // 200)
CDF_TIMES = seconds(CDF_TIMES_NS)
"""Response times at which distribution functions are kept, seconds: to 2 s as in the studies' figures, in steps finer
than a figure can show."""


def index(time_s: float) -> int:
    """Where a response time stands in `CDF_TIMES`; of one between two of these the later."""
    return int(np.searchsorted(CDF_TIMES, time_s - 1e-9))


TAIL_MARKS = (3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 300.0, 500.0, 1000.0)
"""Response times that people speak of, seconds; counts are kept at them."""


def _tail_times() -> Ns:
    """40 a decade, evenly but for the nearest to each of `TAIL_MARKS`, which is that itself; nanoseconds."""
    times = np.geomspace(0.01, 3000.0, 220)
    for mark in TAIL_MARKS:
        times[np.abs(np.log(times / mark)).argmin()] = mark
    return np.rint(times * PER_S).astype(np.int64)


TAIL_TIMES_NS = _tail_times()
TAIL_TIMES = seconds(TAIL_TIMES_NS)
"""Response times at which the tail is kept, seconds."""

LATE_TIMES_NS = TAIL_TIMES_NS[np.searchsorted(TAIL_TIMES_NS, CDF_TIMES_NS[-1], side="right") :]
LATE_TIMES = seconds(LATE_TIMES_NS)
"""Those beyond the end of the distribution functions, where also the tails of parts of the exchanges are kept."""

SIZE_EDGES = (2_500, 10_000, 100_000, 1_000_000)
"""Bytes that separate the classes of responses: class k has those above edge k - 1 and up to edge k."""

SIZE_BINS = np.unique(np.concatenate([np.geomspace(1, 1e9, 91), [2_000, 3_000, *SIZE_EDGES]]))
"""Sizes of responses at which their distribution is kept, bytes: 10 a decade, and those that studies speak of."""

FAST_BYTES_PER_S = 10_000
"""Responses faster than this are counted by size once more: what was not held up."""

FEWEST = 50
"""Exchanges below which a part of the window says nothing about its quantiles."""

FEWEST_BEYOND = 10
"""Exchanges beyond a quantile below which that of a part says nothing about that of the window: it lies to one side of
it, and scatters otherwise. Intervals of 99 % quantiles from parts with two such held 89 %."""

QUANTILES = (0.5, 0.9, 0.99)

SLICE_ROWS = 1 << 19
"""Rows in memory at a time."""

COLLECTED_MOST = 1 << 21
"""Values collected for order statistics before equal ones are counted instead of kept."""

Whole = npt.NDArray[np.int64]

EDGES_NS = np.unique(np.concatenate([CDF_TIMES_NS, TAIL_TIMES_NS, np.geomspace(1e3, 1e14, 4401).astype(np.int64)]))
"""Edges of the histogram, nanoseconds: 400 a decade beside the times above. Cell k is above edge k - 1 and up to edge
k."""


def completes(scenario: Mapping[str, Any], summary: Mapping[str, Any], block: int) -> bool:
    """Whether a block of traffic of a run completes exchanges: over TCP, and not with endless flows."""
    return scenario["traffic"][block]["kind"] in _over_tcp() and str(block) not in held_back.blocks(summary)


@lru_cache
def _over_tcp() -> frozenset[str]:
    return frozenset(row["kind"] for row in engine.traffic_models() if row["speaks_tcp"])


def parts(path: Path, start: float, end: float, blocks: int) -> dict[str, Array]:
    """Everything `Window` holds of exchanges; without the table as of a run in which none was completed."""
    exists = path.exists()
    histogram = np.zeros((BATCHES, EDGES_NS.size + 1), dtype=np.int64)
    all_times_ns = np.concatenate([CDF_TIMES_NS, LATE_TIMES_NS])
    by_block = np.zeros((blocks, BATCHES, all_times_ns.size + 1), dtype=np.int64)
    by_class = np.zeros((len(SIZE_EDGES) + 1, BATCHES, all_times_ns.size + 1), dtype=np.int64)
    size_counts = np.zeros((2, SIZE_BINS.size + 1), dtype=np.int64)
    size_bytes = np.zeros((2, SIZE_BINS.size + 1))
    times_below = np.searchsorted(all_times_ns, np.append(-1, EDGES_NS), side="right")  # cell -> times below it
    window = nanoseconds(start), nanoseconds(end)
    for asked, response, size, block in _slices(path, ("response_bytes", "traffic")) if exists else ():
        part, cell = _part(asked + response, window), np.searchsorted(EDGES_NS, response)
        time = times_below[cell]
        _count(histogram, part, cell)
        _count(by_block, block, part, time)
        _count(by_class, np.searchsorted(SIZE_EDGES, size), part, time)
        at = np.searchsorted(SIZE_BINS, size)
        for k, wanted in enumerate((np.ones(size.size, dtype=bool), size > FAST_BYTES_PER_S * seconds(response))):
            size_counts[k] += np.bincount(at[wanted], minlength=SIZE_BINS.size + 1)
            size_bytes[k] += np.bincount(at[wanted], size[wanted], SIZE_BINS.size + 1)

    within = histogram.cumsum(axis=1)
    completed = histogram.sum(axis=1)
    quantiles, whole = _quantiles(path, histogram, window)
    return {
        "completed": _floats(completed),
        "quantiles": quantiles,
        "whole_quantiles": whole,
        "cdf_counts": _floats(within[:, np.searchsorted(EDGES_NS, CDF_TIMES_NS)]),
        "tail_counts": _floats(completed[:, None] - within[:, np.searchsorted(EDGES_NS, TAIL_TIMES_NS)]),
        **_of_classes("block", by_block),
        **_of_classes("size", by_class),
        "size_counts": _floats(size_counts),
        "size_bytes": size_bytes,
    }


def _of_classes(name: str, counts: Whole) -> dict[str, Array]:
    """What `Window` holds of parts of the exchanges, from their counts between times, [class, part, time]."""
    completed, within = counts.sum(axis=2), counts.cumsum(axis=2)[:, :, :-1]
    late = completed[:, :, None] - within[:, :, CDF_TIMES.size :]
    return {
        f"{name}_completed": _floats(completed),
        f"{name}_cdf_counts": _floats(within[:, :, : CDF_TIMES.size]),
        f"{name}_tail_counts": _floats(late),
    }


def _slices(path: Path, columns: Sequence[str] = ()) -> Iterator[list[npt.NDArray[Any]]]:
    """When exchanges were asked for and how long they took, nanoseconds, and other columns, as floats."""
    table = pl.scan_parquet(path)
    names = table.collect_schema().names()
    wanted = table.select(column(names, "start"), column(names, "response_time"), *columns)
    rows = int(table.select(pl.len()).collect().item())
    for first in range(0, rows, SLICE_ROWS):
        asked, response, *others = wanted.slice(first, SLICE_ROWS).collect().get_columns()
        yield [asked.to_numpy(), response.to_numpy(), *(_floats(other.to_numpy()) for other in others)]


def _part(done: Ns, window: tuple[int, int]) -> Whole:
    start, end = window
    found: Whole = ((done - start) * BATCHES // (end - start)).clip(0, BATCHES - 1)
    return found


def _count(cells: Whole, *places: npt.NDArray[Any]) -> None:
    """Adds one to the cell at each place."""
    flat = np.ravel_multi_index(tuple(place.astype(np.int64) for place in places), cells.shape)
    cells += np.bincount(flat, minlength=cells.size).reshape(cells.shape)


def _floats(values: npt.ArrayLike) -> Array:
    return np.asarray(values, dtype=np.float64)


def _quantiles(path: Path, histogram: Whole, window: tuple[int, int]) -> tuple[Array, Array]:
    """[quantile, part] and [quantile]: the least response time that the share does not exceed, as in the summary."""
    groups = [*histogram, histogram.sum(axis=0)]
    sizes = [int(group.sum()) for group in groups]
    ranks = [
        {
            j: _rank(q, size)
            for j, q in enumerate(QUANTILES)
            if (k == BATCHES and size) or (size >= FEWEST and size - _rank(q, size) - 1 >= FEWEST_BEYOND)
        }
        for k, size in enumerate(sizes)
    ]
    wanted = np.zeros(histogram.shape, dtype=bool)
    for k, (group, asked_for) in enumerate(zip(groups, ranks, strict=True)):
        cells = np.searchsorted(group.cumsum(), list(asked_for.values()), side="right")
        wanted[k if k < BATCHES else slice(None), cells] = True
    collected = _Collected()
    for asked, response in _slices(path) if wanted.any() else ():
        part, cell = _part(asked + response, window), np.searchsorted(EDGES_NS, response)
        keep = wanted[part, cell]
        collected.add(part[keep], response[keep])
    part, value, count = collected.sorted()
    cell = np.searchsorted(EDGES_NS, value)
    found = np.full((len(QUANTILES), BATCHES + 1), np.nan)
    for k, (group, asked_for) in enumerate(zip(groups, ranks, strict=True)):
        own = np.full(part.size, True) if k == BATCHES else part == k
        before = np.append(0, group.cumsum())
        for j, rank in asked_for.items():
            found[j, k] = _order_statistic(rank, before, cell[own], value[own], count[own])
    return found[:, :BATCHES], found[:, BATCHES]


def _rank(quantile: float, size: int) -> int:
    """The rank, from 0, of the value that is a quantile: none between two values is."""
    return max(math.ceil(quantile * size), 1) - 1


def _order_statistic(rank: int, before: Whole, cell: Whole, value: Ns, count: Whole) -> float:
    """Seconds."""
    k = int(np.searchsorted(before, rank, side="right")) - 1
    inside = cell == k
    return seconds(float(value[inside][np.searchsorted(count[inside].cumsum(), rank - before[k], side="right")]))


class _Collected:
    """Values with the part each belongs to; equal ones are counted where there are many."""

    def __init__(self) -> None:
        self._rows: list[tuple[Whole, Ns, Whole]] = []
        self._kept = 0
        self._most = COLLECTED_MOST

    def add(self, part: Whole, value: Ns) -> None:
        self._rows.append((part, value, np.ones(part.size, dtype=np.int64)))
        self._kept += part.size
        if self._kept > self._most:
            self._rows = [self.sorted()]
            self._kept = self._rows[0][0].size
            self._most = max(COLLECTED_MOST, 2 * self._kept)

    def sorted(self) -> tuple[Whole, Ns, Whole]:
        """By value; each pair of part and value once, with its count."""
        if not self._rows:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
        part, value, count = (np.concatenate(column) for column in zip(*self._rows, strict=True))
        order = np.lexsort((part, value))
        part, value, count = part[order], value[order], count[order]
        new = np.append(True, (np.diff(value) != 0) | (np.diff(part) != 0))
        return part[new], value[new], np.add.reduceat(count, np.flatnonzero(new)) if new.size else count
