"""The measured window of a run, condensed: counts per part of the window, from which every measure is a quotient.

The window is cut into equal parts. An exchange belongs to the part in which it was completed, so that every part sees
the same censoring as the window as a whole. Sums over the parts are the figures of the run; the spread between the
parts is what one run can say about its own precision.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from aqmlab import units
from aqmlab.results import Json, Run
from aqmlab.statistics import BATCHES, Array

CDF_TIMES = np.arange(0, 2.0005, 0.005)
"""Response times at which distribution functions are kept, seconds: to 2 s as in the studies' figures, in steps finer
than a figure can show."""

TAIL_TIMES = np.geomspace(0.01, 3000.0, 220)
"""Response times at which the tail is kept, seconds: 40 a decade."""

FEWEST = 50
"""Exchanges below which a part of the window says nothing about its quantiles: fewer than one lies above the 99th
percentile."""

QUANTILES = (0.5, 0.9, 0.99)
MEASURES: dict[str, tuple[str, str]] = {
    "utilisation": ("utilisation", "share"),
    "loss_ratio": ("loss", "share"),
    "mark_ratio": ("marked", "share"),
    "completed": ("completed exchanges", "count"),
    "p50": ("median response time", "s"),
    "p90": ("90th percentile", "s"),
    "p99": ("99th percentile", "s"),
    "share_under_500ms": ("within 0.5 s", "share"),
    "share_under_1s": ("within 1 s", "share"),
    "share_under_2s": ("within 2 s", "share"),
    "queue_delay_mean_s": ("mean queueing delay", "s"),
}
"""What is compared: name -> (title, unit). Link figures are those of both directions together."""


@dataclass(frozen=True)
class Window:
    """One run, condensed."""

    measured_s: float
    rate_bps: tuple[float, float]
    sent_bits: Array  # [direction, part]
    offered: Array
    dropped: Array
    marked: Array
    delivered: Array
    delay_sum_s: Array
    completed: Array  # [part]
    quantiles: Array  # [quantile, part]
    whole_quantiles: Array  # [quantile]
    cdf_counts: Array  # [part, time]: completed within CDF_TIMES
    tail_counts: Array  # [part, time]: taking longer than TAIL_TIMES
    summarised: dict[str, float]
    """Measures from the summary, where the run has not written every exchange down."""

    @cached_property
    def cdf(self) -> Array:
        """Share of exchanges within each of `CDF_TIMES`."""
        return _floats(self.cdf_counts.sum(axis=0) / max(float(self.completed.sum()), 1.0))

    @cached_property
    def cdf_parts(self) -> Array:
        """The same for each part of the window: [part, time]."""
        with np.errstate(invalid="ignore"):
            return _floats(self.cdf_counts / np.where(self.completed > 0, self.completed, np.nan)[:, None])

    @cached_property
    def tail(self) -> Array:
        """Share of exchanges that take longer than each of `TAIL_TIMES`."""
        return _floats(self.tail_counts.sum(axis=0) / max(float(self.completed.sum()), 1.0))

    def measure(self, name: str) -> float:
        """A measure over the whole window."""
        if name in self.summarised:
            return self.summarised[name]
        if name.startswith("p"):
            return float(self.whole_quantiles[_QUANTILE[name]])
        if name == "completed":
            return float(self.completed.sum())
        top, bottom = self._quotient(name)
        return float(top.sum() / bottom.sum()) if bottom.sum() > 0 else float("nan")

    def parts(self, name: str) -> Array:
        """The same measure in each part; a count is scaled to the whole window."""
        if name.startswith("p"):
            return _floats(self.quantiles[_QUANTILE[name]])
        if name == "completed":
            return self.completed * len(self.completed)
        top, bottom = self._quotient(name)
        return _floats(np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0))

    def _quotient(self, name: str) -> tuple[Array, Array]:
        parts = self.completed.size
        match name:
            case "utilisation":
                return self.sent_bits.sum(axis=0), np.full(parts, sum(self.rate_bps) * self.measured_s / parts)
            case "loss_ratio":
                return self.dropped.sum(axis=0), self.offered.sum(axis=0)
            case "mark_ratio":
                return self.marked.sum(axis=0), self.offered.sum(axis=0)
            case "queue_delay_mean_s":
                return self.delay_sum_s.sum(axis=0), self.delivered.sum(axis=0)
        column = {"share_under_500ms": 100, "share_under_1s": 200, "share_under_2s": 400}[name]
        return self.cdf_counts[:, column], self.completed


def _floats(values: npt.ArrayLike) -> Array:
    return np.asarray(values, dtype=np.float64)


_QUANTILE = {"p50": 0, "p90": 1, "p99": 2}


def condense(run: Run) -> Window:
    """Reads a run's tables once."""
    start, end = run.window
    link = run.scenario["link"]
    rates = (
        units.rate_bps(link["rate"], f"{run.folder}: link.rate"),
        units.rate_bps(link.get("reverse_rate", link["rate"]), f"{run.folder}: link.reverse_rate"),
    )
    return Window(
        measured_s=end - start,
        rate_bps=rates,
        **_queue_parts(run.queue, start, end),
        **_exchange_parts(run.folder, start, end),
        summarised={} if run.has_exchanges else _summarised(run.summary["exchanges"]),
    )


def _summarised(exchanges: Json) -> dict[str, float]:
    times = exchanges["response_time_s"]
    found = {name: times[name] for name in ("p50", "p90", "p99")} | {
        name: exchanges[name] for name in ("completed", "share_under_500ms", "share_under_1s", "share_under_2s")
    }
    return {name: float("nan") if value is None else float(value) for name, value in found.items()}


def _queue_parts(queue: pl.DataFrame, start: float, end: float) -> dict[str, Array]:
    """Sums per direction and part. An interval belongs to the part in which it ends; the tolerance is for its decimal
    fractions, which are no exact binary ones."""
    near = 1e-6
    rows = queue.filter((pl.col("time_s") > start + near) & (pl.col("time_s") <= end + near))
    part = ((rows["time_s"].to_numpy() - near - start) / (end - start) * BATCHES).clip(0, BATCHES - 1).astype(int)
    cell = rows["direction"].to_numpy().astype(int) * BATCHES + part

    def sums(column: pl.Series) -> Array:
        values = column.cast(pl.Float64).fill_null(0.0).to_numpy()
        return _floats(np.bincount(cell, values, 2 * BATCHES).reshape(2, BATCHES))

    delays = rows["queue_delay_mean_s"].fill_null(0.0) * rows["delivered_packets"].cast(pl.Float64)
    return {
        "sent_bits": sums(rows["delivered_bytes"]) * 8.0,
        "offered": sums(rows["offered_packets"]),
        "dropped": sums(rows["dropped_packets"]),
        "marked": sums(rows["marked_packets"]),
        "delivered": sums(rows["delivered_packets"]),
        "delay_sum_s": sums(delays),
    }


def _exchange_parts(folder: Path, start: float, end: float) -> dict[str, Array]:
    path = folder / "exchanges.parquet"
    if path.exists():
        table = pl.read_parquet(path, columns=["start_s", "response_time_s"])
        response = table["response_time_s"].to_numpy()
        done = table["start_s"].to_numpy() + response
    else:
        response = done = np.empty(0)
    part = ((done - start) / (end - start) * BATCHES).clip(0, BATCHES - 1).astype(int)
    order = np.argsort(part, kind="stable")
    groups = np.split(response[order], np.searchsorted(part[order], np.arange(1, BATCHES)))
    ordered = [np.sort(group) for group in groups]
    quantiles = np.array(
        [[np.quantile(g, q) if g.size >= FEWEST else np.nan for g in ordered] for q in QUANTILES], dtype=float
    )
    whole = np.quantile(response, QUANTILES) if response.size else np.full(len(QUANTILES), np.nan)
    return {
        "completed": np.array([group.size for group in ordered], dtype=float),
        "quantiles": quantiles,
        "whole_quantiles": whole,
        "cdf_counts": np.array([np.searchsorted(g, CDF_TIMES, side="right") for g in ordered], dtype=float),
        "tail_counts": np.array([g.size - np.searchsorted(g, TAIL_TIMES, side="right") for g in ordered], dtype=float),
    }
