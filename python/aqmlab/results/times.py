"""Times of a run: in nanoseconds, as its clock counts them, and in seconds, as people read them.

What is compared is compared in nanoseconds, which are whole numbers: an exchange of half a second is within half a
second. Tables have both, `start_ns` beside `start_s`; those of older runs have seconds alone, from which nanoseconds
come back exactly, for a number in seconds is off by far less than half of one.
"""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from aqmlab.statistics import BATCHES, Array

PER_S = 1_000_000_000

Ns = npt.NDArray[np.int64]


@overload
def seconds(ns: float) -> float: ...
@overload
def seconds(ns: npt.NDArray[Any]) -> Array: ...
def seconds(ns: Any) -> Any:
    """Seconds of nanoseconds: the nearest number there is, to the bit what `crates/record/src/seconds.rs` writes.

    Not of a column of polars, which multiplies where it is asked to divide, and misses the nearest number.
    """
    return ns / 1e9


def nanoseconds(time_s: float) -> int:
    """The whole number of nanoseconds nearest to a time in seconds."""
    return round(time_s * PER_S)


def column(names: Sequence[str], name: str) -> pl.Expr:
    """The nanoseconds of a time, `start`, of a table with columns of these names."""
    if f"{name}_ns" in names:
        return pl.col(f"{name}_ns")
    return (pl.col(f"{name}_s") * PER_S).round().cast(pl.Int64).alias(f"{name}_ns")


def with_covered(queue: pl.DataFrame) -> pl.DataFrame:
    """A queue table with the time that each of its intervals covers, `covered_ns`."""
    time = column(queue.columns, "time")
    port = [name for name in ("link", "direction") if name in queue.columns]
    return queue.with_columns((time - time.shift(fill_value=0).over(port)).alias("covered_ns"))


def in_window(queue: pl.DataFrame, window: tuple[float, float]) -> tuple[pl.DataFrame, Ns]:
    """The intervals of a queue table that end in the window, and the part of the window in which each ends."""
    start, end = (nanoseconds(edge) for edge in window)
    time = column(queue.columns, "time")
    rows = queue.filter((time > start) & (time <= end))
    # What ends as a part does still belongs to it.
    done = rows.select(time).to_series().to_numpy() - start - 1
    return rows, np.asarray(done * BATCHES // (end - start), dtype=np.int64)


def middle_of_step(names: Sequence[str], step_s: float) -> pl.Expr:
    """The middle, seconds, of the step in which an interval of a queue table ends; one that ends as a step does still
    belongs to it."""
    step = max(nanoseconds(step_s), 1)
    return ((column(names, "time") - 1) // step + 0.5) * seconds(step)
