"""The measured window of a run, condensed: counts per part of the window, from which every measure is a quotient.

The window is cut into equal parts. An exchange belongs to the part in which it was completed, so that every part sees
the same censoring as the window as a whole. Sums over the parts are the figures of the run; the spread between the
parts is what one run can say about its own precision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from aqmlab import links
from aqmlab.results import capacity, exchanges, times, ways
from aqmlab.results.defined import SHARE, Defined, asked, every
from aqmlab.results.exchanges import CDF_TIMES, FEWEST, LATE_TIMES, QUANTILES, SIZE_BINS, SIZE_EDGES, TAIL_TIMES
from aqmlab.results.run import Run, of_link
from aqmlab.stationarity import YES
from aqmlab.statistics import BATCHES, Array

__all__ = [
    "CDF_TIMES",
    "FEWEST",
    "LATE_TIMES",
    "MEASURES",
    "QUANTILES",
    "SIZE_BINS",
    "SIZE_EDGES",
    "STATISTICS",
    "TAIL_TIMES",
    "Window",
    "condense",
    "described",
]

COUNTS = ("offered_packets", "delivered_packets", "delivered_bytes", "dropped_packets", "marked_packets")
"""Columns of the queue table that count what happened in an interval; the others are states of the queue."""

STATISTICS = ("mean", "sd", "min", "max")
"""What is kept of a state over the intervals of a part; `sd` is that of these intervals, not an estimate."""

COMPARED = (
    *("utilisation", "loss_ratio", "mark_ratio", "completed", "p50", "p90", "p99"),
    *("share_under_500ms", "share_under_1s", "share_under_2s", "queue_delay_mean_s"),
)
"""What is compared. Link figures are those of both directions of the first link together."""


def _unit(row: Defined) -> str:
    """The unit in which numbers are read: `share`, `s`, `count`."""
    return "share" if row.unit.startswith(SHARE) else "count" if row.unit == "exchanges" else row.unit


MEASURES: dict[str, tuple[str, str]] = {name: (asked()[name].title, _unit(asked()[name])) for name in COMPARED}
"""Name -> (title, unit) of what is compared."""


def described(name: str) -> tuple[str, str]:
    """Title and unit of a measure of `MEASURES`, or of a direction as in `forward.loss_ratio`."""
    place = ways.place(name)
    if place is None:
        return MEASURES[name]
    row = next(row for row in every() if row.key == f"{links.WAYS[0]}.{place.what}")
    return row.title, _unit(row)


OF_LINK = ("utilisation", "loss_ratio", "mark_ratio", "queue_delay_mean_s")
"""Those of a link, both of its directions together."""

TOGETHER = OF_LINK[1:]
"""What tables show of both directions together: a share of both rates says of neither direction how full it is."""

OF_WAY = (*OF_LINK, "queue_delay_p99_s")
"""What is compared of one direction: `forward.queue_delay_p99_s`, of several links `links.core.forward.utilisation`."""

QUOTIENTS = (*OF_LINK, "throughput_bps")
"""What the parts of a window tell of a direction; its other numbers only the summary has, one a run."""


def _steady() -> Array:
    return np.ones((2, BATCHES))


@dataclass(frozen=True)
class Counts:
    """What was counted at a link."""

    rate_bps: tuple[float, float]
    """Of each direction, in the mean over the window; not a number where that is not known."""
    covered_s: Array  # [direction, part]: the time of the intervals that end in it
    sent_bits: Array  # [direction, part]
    offered: Array  # [direction, part]: packets, as in the next three
    dropped: Array
    marked: Array
    delivered: Array
    delay_sum_s: Array  # [direction, part]: of the delivered packets
    relative_rate: Array = field(default_factory=_steady)  # [direction, part]
    """The rate in the time that a part covers, of the mean over the window; not a number where it is not known."""
    state: Mapping[str, Array] = field(default_factory=dict)  # column -> [statistic, direction, part]


@dataclass(frozen=True)
class Window:
    """One run, condensed."""

    measured_s: float
    link: Counts
    """Of several links the first."""
    completed: Array  # [part]
    quantiles: Array  # [quantile of QUANTILES, part]: seconds
    whole_quantiles: Array  # [quantile of QUANTILES]: seconds
    cdf_counts: Array  # [part, time]: completed within CDF_TIMES
    tail_counts: Array  # [part, time]: taking longer than TAIL_TIMES
    summarised: dict[str, float]
    """Measures from the summary, where the run has not written every exchange down, or nobody could complete one."""
    block_completed: Array = field(default_factory=lambda: np.zeros((0, BATCHES)))  # [block of traffic, part]
    block_cdf_counts: Array = field(  # [block of traffic, part, time]
        default_factory=lambda: np.zeros((0, BATCHES, CDF_TIMES.size))
    )
    block_tail_counts: Array = field(  # [block of traffic, part, time]: taking longer than LATE_TIMES
        default_factory=lambda: np.zeros((0, BATCHES, LATE_TIMES.size))
    )
    size_completed: Array = field(default_factory=lambda: np.zeros((0, BATCHES)))  # [class between SIZE_EDGES, part]
    size_cdf_counts: Array = field(  # [class between SIZE_EDGES, part, time]
        default_factory=lambda: np.zeros((0, BATCHES, CDF_TIMES.size))
    )
    size_tail_counts: Array = field(  # [class between SIZE_EDGES, part, time]: taking longer than LATE_TIMES
        default_factory=lambda: np.zeros((0, BATCHES, LATE_TIMES.size))
    )
    size_counts: Array = field(default_factory=lambda: np.zeros((2, SIZE_BINS.size + 1)))  # [all or fast, bin]
    size_bytes: Array = field(default_factory=lambda: np.zeros((2, SIZE_BINS.size + 1)))  # [all or fast, bin]
    links: Mapping[str, Counts] = field(default_factory=dict)
    """Of several links each by its name; empty where there is one."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Numbers of each direction that the summary has, by their names there: `forward.queue_delay_p99_s`."""
    settled: Mapping[str, Any] | None = None
    """What was found about whether the run was settled, as in its manifest; none where that was not asked."""

    def at(self, link: str) -> "Window":
        """The same run with the figures of a link of several in place of the first one's."""
        return replace(self, link=self.links[link])

    @property
    def measures_of_ways(self) -> list[str]:
        """What is compared of each direction, of several links also by link."""
        places = ["", *(f"links.{link}." for link in self.links)]
        return [f"{place}{way}.{what}" for place in places for way in links.WAYS for what in OF_WAY]

    def trusted(self, parts: Array) -> Array:
        """Numbers of its parts; none of a run that is not known to be settled: their spread says too little.

        Of runs that are too short to tell, intervals of 95 % would hold 84, 72 and 55 %, where neighbours of 400 cells
        have correlations of 0.98, 0.99 and 0.995.
        """
        return parts if self.is_trusted else np.full_like(parts, np.nan)

    @property
    def is_trusted(self) -> bool:
        """Whether the run is known to be settled, or was not asked."""
        return self.settled is None or self.settled["answer"] == YES

    @cached_property
    def cdf(self) -> Array:
        """Share of exchanges within each of `CDF_TIMES`, [time]; not a number where there are none."""
        return _floats(self.cdf_counts.sum(axis=0) / self._exchanges)

    @cached_property
    def cdf_parts(self) -> Array:
        """The distribution function in each part of the window: [part, time]."""
        with np.errstate(invalid="ignore"):
            return _floats(self.cdf_counts / np.where(self.completed > 0, self.completed, np.nan)[:, None])

    @cached_property
    def tail(self) -> Array:
        """Share of exchanges that take longer than each of `TAIL_TIMES`, [time]; not a number where there are none."""
        return _floats(self.tail_counts.sum(axis=0) / self._exchanges)

    @property
    def _exchanges(self) -> float:
        return float(self.completed.sum()) or float("nan")

    def measure(self, name: str) -> float:
        """A measure over the whole window."""
        if name in self.summarised:
            return self.summarised[name]
        if name.startswith("p"):
            return float(self.whole_quantiles[_QUANTILE[name]])
        if name == "completed":
            return float(self.completed.sum())
        if self._is_summed_up(name):
            return self.figures.get(name, float("nan"))
        top, bottom = self._share(name) or quotient(*self._of_link(name))
        return float(top.sum() / bottom.sum()) if bottom.sum() > 0 else float("nan")

    def parts(self, name: str) -> Array:
        """A measure in each part, [part], where the exchanges of parts are known. A count is scaled to the window."""
        if name in self.summarised:
            return np.full(self.completed.size, np.nan)
        if name.startswith("p"):
            return _floats(self.quantiles[_QUANTILE[name]])
        if name == "completed":
            return self.completed * len(self.completed)
        if self._is_summed_up(name):
            return np.full(self.completed.size, np.nan)
        share = self._share(name)
        return in_parts(*self._of_link(name)) if share is None else _divided(*share)

    def _is_summed_up(self, name: str) -> bool:
        """Whether a number of a direction is one of the run as a whole, which parts do not have."""
        place = ways.place(name)
        return place is not None and place.what not in QUOTIENTS

    def _of_link(self, name: str) -> tuple[Counts, str, tuple[int, ...]]:
        """What was counted at a link, which of its figures, and in which directions."""
        if (place := ways.place(name)) is not None:
            own = self.links[place.link] if place.link else self.link
            return own, place.what, (links.WAYS.index(place.way),)
        return self.link, name, (0, 1)

    def _share(self, name: str) -> tuple[Array, Array] | None:
        """Of a share of exchanges, how many those are and how many all are, in each part."""
        time_s = _UNDER_S.get(name)
        return None if time_s is None else (self.cdf_counts[:, exchanges.index(time_s)], self.completed)


def quotient(counts: Counts, name: str, directions: Sequence[int] = (0, 1)) -> tuple[Array, Array]:
    """A measure of the link in some directions together: numerator and denominator, whose sums over the parts are those
    of the counts.

    The rate of a link that changes is its mean there: what a part itself comes to, `in_parts` has.
    """
    rows = list(directions)
    match name:
        case "utilisation":
            rates = np.array(counts.rate_bps)[rows, None]
            # A direction that sent nothing has used nothing of its rate, whatever that was.
            rates = np.where(np.isnan(rates), 1.0, rates) if len(rows) == 1 else rates
            carried = rates * counts.covered_s[rows]
            return counts.sent_bits[rows].sum(axis=0), carried.sum(axis=0)
        case "throughput_bps":
            return counts.sent_bits[rows].sum(axis=0), counts.covered_s[rows].mean(axis=0)
    top, bottom = {
        "loss_ratio": (counts.dropped, counts.offered),
        "mark_ratio": (counts.marked, counts.offered),
        "queue_delay_mean_s": (counts.delay_sum_s, counts.delivered),
    }[name]
    return top[rows].sum(axis=0), bottom[rows].sum(axis=0)


def in_parts(counts: Counts, name: str, directions: Sequence[int] = (0, 1)) -> Array:
    """A measure of the link in some directions together in each part; not a number where that is not known."""
    top, bottom = quotient(counts, name, directions)
    if name == "utilisation":
        rows = list(directions)
        rates = np.array(counts.rate_bps)[rows, None] * counts.relative_rate[rows]
        bottom = (rates * counts.covered_s[rows]).sum(axis=0)
    return _divided(top, bottom)


def _divided(top: Array, bottom: Array) -> Array:
    return _floats(np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0))


def _floats(values: npt.ArrayLike) -> Array:
    return np.asarray(values, dtype=np.float64)


_QUANTILE = {"p50": 0, "p90": 1, "p99": 2}
_UNDER_S = {"share_under_500ms": 0.5, "share_under_1s": 1.0, "share_under_2s": 2.0}


def condense(run: Run) -> Window:
    """Reads a run's tables; the table of exchanges in slices, for it may be larger than memory."""
    start, end = run.window
    counts = {name: _counts(run, name) for name in links.of(run.scenario)}
    return Window(
        measured_s=end - start,
        link=next(iter(counts.values())),
        links=counts if len(counts) > 1 else {},
        **exchanges.parts(run.folder / "exchanges.parquet", start, end, len(run.scenario["traffic"])),
        summarised=_summarised(run),
        figures=ways.figures(run.summary),
        settled=run.settled,
    )


def _counts(run: Run, link: str) -> Counts:
    queue = of_link(run.queue, link)
    rates = _rates(run, link)
    parts = _queue_parts(queue, run.window)
    carried = np.array([_carried(run, link, way, queue, parts["covered_s"][k]) for k, way in enumerate(links.WAYS)])
    even = np.array(rates)[:, None] * parts["covered_s"]
    relative = np.divide(carried, even, out=np.ones_like(even), where=even > 0)
    return Counts(rates, **parts, relative_rate=relative, state=_states(queue, run.window))


def _carried(run: Run, name: str, way: str, queue: pl.DataFrame, covered_s: Array) -> Array:
    """How many bits a link could have carried in the time that each part covers; not a number where its rate is drawn,
    or follows a trace."""
    link, nominal = links.of(run.scenario)[name], links.rates_bps(run.scenario, name, str(run.folder))
    which = links.WAYS.index(way)
    if "schedule" not in link:
        steady = nominal[which] * covered_s
        return steady if links.is_told(link, way) else np.full_like(steady, np.nan)
    rows, part = times.in_window(times.with_covered(queue), run.window)
    ours = (rows["direction"] == which).to_numpy()
    ends = times.seconds(rows.select(times.column(rows.columns, "time")).to_series().to_numpy()[ours])
    begins = ends - times.seconds(rows["covered_ns"].to_numpy()[ours])
    return _floats(np.bincount(part[ours], capacity.bits_between(link, way, begins, ends), BATCHES))


def _rates(run: Run, name: str) -> tuple[float, float]:
    """What a link carries; where it changes, in the mean over the window. Not a number where that is not known."""
    link = links.of(run.scenario)[name]
    if "schedule" in link or "states" in link:
        return capacity.means_bps(link, links.figures(run.summary, name), run.window)
    return links.rates_bps(run.scenario, name, str(run.folder))


def _summarised(run: Run) -> dict[str, float]:
    exchanges = run.summary["exchanges"]
    if run.has_exchanges:
        # No exchanges in the table are none of nobody's, too.
        return {"completed": float("nan")} if exchanges.get("completed", 0) is None else {}
    times = exchanges["response_time_s"]
    found = {name: times[name] for name in ("p50", "p90", "p99")} | {
        name: exchanges[name] for name in ("completed", "share_under_500ms", "share_under_1s", "share_under_2s")
    }
    return {name: float("nan") if value is None else float(value) for name, value in found.items()}


def _states(queue: pl.DataFrame, window: tuple[float, float]) -> dict[str, Array]:
    rows, part = times.in_window(queue, window)
    skipped = ("time_s", "direction", *COUNTS)
    states = [name for name, kind in rows.schema.items() if kind.is_numeric() and not name.endswith("_ns")]
    names = [name for name in states if name not in skipped]
    columns = [pl.col(name).cast(pl.Float64) for name in names]
    found = {name: np.full((len(STATISTICS), 2, BATCHES), np.nan) for name in names}
    grouped = rows.with_columns(*columns, pl.Series("part", part)).group_by("direction", "part")
    for row in grouped.agg(
        *(pl.col(name).mean().alias(f"{name}.0") for name in names),
        *(pl.col(name).std(ddof=0).alias(f"{name}.1") for name in names),
        *(pl.col(name).min().alias(f"{name}.2") for name in names),
        *(pl.col(name).max().alias(f"{name}.3") for name in names),
    ).iter_rows(named=True):
        for name, cells in found.items():
            values = [row[f"{name}.{k}"] for k in range(len(STATISTICS))]
            cells[:, row["direction"], row["part"]] = [np.nan if value is None else value for value in values]
    return found


def _queue_parts(queue: pl.DataFrame, window: tuple[float, float]) -> dict[str, Array]:
    """Sums per direction and part."""
    rows, part = times.in_window(times.with_covered(queue), window)
    cell = rows["direction"].to_numpy().astype(int) * BATCHES + part

    def sums(column: pl.Series) -> Array:
        values = column.cast(pl.Float64).fill_null(0.0).to_numpy()
        return _floats(np.bincount(cell, values, 2 * BATCHES).reshape(2, BATCHES))

    if "queue_delay_sum_ns" in rows.columns:
        waited = times.seconds(sums(rows["queue_delay_sum_ns"]))
    else:  # of an older run
        waited = sums(rows["queue_delay_mean_s"].fill_null(0.0) * rows["delivered_packets"].cast(pl.Float64))
    return {
        "covered_s": times.seconds(sums(rows["covered_ns"])),
        "sent_bits": sums(rows["delivered_bytes"]) * 8.0,
        "offered": sums(rows["offered_packets"]),
        "dropped": sums(rows["dropped_packets"]),
        "marked": sums(rows["marked_packets"]),
        "delivered": sums(rows["delivered_packets"]),
        "delay_sum_s": waited,
    }
