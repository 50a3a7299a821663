"""The parts of a comparison, each by itself: links, blocks of exchanges and of endless flows, probes each way.

A mean over blocks of different kinds is that of none of them: what is good for web users may be paid by transfers.
Where there is one link, one block, or probes one way only, the tables of the whole show it already.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from aqmlab import statistics, subject
from aqmlab.comparison import Column, Comparison
from aqmlab.json_files import Json
from aqmlab.results.run import Run
from aqmlab.results.window import CDF_TIMES, Window
from aqmlab.statistics import Interval

WITHIN_S = 0.5
AT = int(np.searchsorted(CDF_TIMES, WITHIN_S))

WAYS = ("forward", "reverse")

Heading = tuple[str, str, str]
"""Title, in two lines for a terminal, unit, and the name of the number."""

LINK: tuple[Heading, ...] = (
    ("used\n%", "share", "utilisation"),
    ("loss\n%", "share", "loss_ratio"),
    ("marked\n%", "share", "mark_ratio"),
    ("queueing\ndelay, ms", "s", "queue_delay_mean_s"),
    ("loss against\nbaseline, points", "difference", "difference_to_baseline.loss_ratio"),
    ("delay against\nbaseline, ms", "difference_s", "difference_to_baseline.queue_delay_mean_s"),
)
BLOCK: tuple[Heading, ...] = (
    ("completed\n", "count", "completed"),
    ("median\nms", "s", "p50"),
    ("90 %\nms", "s", "p90"),
    ("in 0.5 s\n%", "share", "share_under_500ms"),
    ("against the\nbaseline, points", "difference", "difference_to_baseline.share_under_500ms"),
)
PROBES: tuple[Heading, ...] = (
    ("loss\n%", "share", "loss_ratio"),
    ("delay, median\nms", "s", "one_way_delay_s.p50"),
    ("delay, 99 %\nms", "s", "one_way_delay_s.p99"),
    ("loss against\nbaseline, points", "difference", "difference_to_baseline.loss_ratio"),
    ("99 % against\nbaseline, ms", "difference_s", "difference_to_baseline.one_way_delay_s.p99"),
)


@dataclass(frozen=True)
class Part:
    """One table: a row a column of the comparison; `None` where it has no such number."""

    table: str
    """Its name in `numbers.csv`: `links.core`, `traffic.0`, `probes.forward`."""
    title: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Column, tuple[Interval | None, ...]], ...]
    note: str = ""
    """What is to be said of it: why numbers are missing, or how little they say."""


def of(found: Comparison) -> list[Part]:
    """The tables of a comparison: links, blocks, who got what, probes."""
    return [*_links(found), *_blocks(found), *goodputs(found.columns), *_probes(found)]


def _links(found: Comparison) -> list[Part]:
    """A table for each of several links that all columns have, both of its directions together."""
    windows = [window for column in found.columns for window in column.windows]
    names = [name for name in windows[0].links if all(name in window.links for window in windows)]
    return [
        Part(
            f"links.{name}",
            f"Link {name}, both directions together",
            LINK,
            tuple((column, (*_link(found, column, name),)) for column in found.columns),
        )
        for name in names
    ]


def _link(found: Comparison, column: Column, link: str) -> list[Interval | None]:
    def whole(measure: str) -> Callable[[Window], float]:
        return lambda window: window.at(link).measure(measure)

    def parts(measure: str) -> Callable[[Window], statistics.Array]:
        return lambda window: window.at(link).parts(measure)

    base = found.base_of(column)
    # The uncongested network is another one: its links do not compare.
    has_none = column is base or column.uncongested
    return [
        *(column.statistic(whole(measure), parts(measure)) for _, _, measure in LINK[:4]),
        *(
            None if has_none else found.contrast(column, base, whole(measure), parts(measure))
            for measure in ("loss_ratio", "queue_delay_mean_s")
        ),
    ]


def blocks(found: Comparison) -> dict[int, str]:
    """The blocks of traffic that complete exchanges, with what they are called; none where there is one only."""
    if not all(run.has_exchanges for column in found.columns for run in column.result.runs):
        return {}
    counts = [len(w.block_completed) for column in found.columns for w in column.windows]
    there = [k for k in range(min(counts, default=0)) if any(_completed(c, k) for c in found.columns)]
    traffic = found.baseline.scenario["traffic"]
    if len(there) < 2 or any(len(column.scenario["traffic"]) != len(traffic) for column in found.columns):
        return {}
    words = subject.blocks(found.baseline.scenario)
    return {k: f"Block {k + 1} of the traffic: {words[k]}" for k in there}


def ways(found: Comparison) -> dict[int, str]:
    """The directions of probes, with what they are called; none where they run one way only."""
    runs = [run for column in found.columns for run in column.result.runs]
    if not all((run.folder / "probes.parquet").exists() for run in runs):
        return {}
    sent = [set(pl.read_parquet(run.folder / "probes.parquet", columns=["direction"])["direction"]) for run in runs]
    there = [way for way in (0, 1) if all(way in each for each in sent)]
    return {way: f"Probes {('forward', 'in reverse')[way]}" for way in there} if len(there) == 2 else {}


def _blocks(found: Comparison) -> list[Part]:
    named = blocks(found)
    if not named:
        return []
    quantiles = {column.name: [_quantiles(run) for run in column.result.runs] for column in found.columns}
    return [
        Part(
            f"traffic.{k}",
            title,
            BLOCK,
            tuple((column, (*_block(found, column, k, quantiles[column.name]),)) for column in found.columns),
            _without(found, k),
        )
        for k, title in named.items()
    ]


def _without(found: Comparison, block: int) -> str:
    """Which columns have no times of a block, and why."""
    said = []
    for column in found.columns:
        none = sum(w.block_completed[block].sum() == 0 for w in column.windows)
        if none:
            said.append(
                column.label + (f" (in {none} of {len(column.windows)} runs)" if len(column.windows) > 1 else "")
            )
    return f"–: no exchange of the block was completed under {', '.join(said)}." if said else ""


def goodputs(columns: Sequence[Column]) -> list[Part]:
    """What each of several blocks of endless flows got; nothing where there is one block of them, or none."""
    traffic = columns[0].scenario["traffic"]
    each = {column.name: [_held_back(run) for run in column.result.runs] for column in columns}
    there = [k for k in range(len(traffic)) if all(str(k) in run for runs in each.values() for run in runs)]
    if len(there) < 2 or any(len(column.scenario["traffic"]) != len(traffic) for column in columns):
        return []
    words = subject.blocks(columns[0].scenario)
    headings = tuple((f"a flow of\nblock {k + 1}", "bps", f"traffic.{k}.goodput_flow_bps") for k in there)
    rows = []
    for column in columns:
        flows = {k: int(column.scenario["traffic"][k]["flows"]) for k in there}
        found = [[float(run[str(k)]["goodput_bps"]) / flows[k] for run in each[column.name]] for k in there]
        rows.append((column, tuple(map(statistics.across_runs, found))))
    note = f"Goodput in the mean over the flows of a block; {'; '.join(f'block {k + 1}: {words[k]}' for k in there)}."
    return [Part("goodput", "Who gets what: goodput of an endless flow", headings, tuple(rows), note)]


def _held_back(run: Run) -> Json:
    found: Json = (run.summary.get("tcp") or {}).get("held_back") or {}
    return found


def _completed(column: Column, block: int) -> float:
    return float(sum(w.block_completed[block].sum() for w in column.windows))


def _block(
    found: Comparison, column: Column, block: int, quantiles: Sequence[dict[int, tuple[float, float]]]
) -> list[Interval | None]:
    def share(w: Window) -> float:
        done = w.block_completed[block].sum()
        return float(w.block_cdf_counts[block, :, AT].sum() / done) if done > 0 else float("nan")

    def shares(w: Window) -> statistics.Array:
        counts, done = w.block_cdf_counts[block, :, AT], w.block_completed[block]
        return np.asarray(np.divide(counts, done, out=np.full_like(counts, np.nan), where=done > 0))

    def count(w: Window) -> float:
        return float(w.block_completed[block].sum())

    def counts(w: Window) -> statistics.Array:
        return np.asarray(w.block_completed[block] * len(w.block_completed[block]))

    base = found.base_of(column)
    each = [run.get(block, (float("nan"),) * 2) for run in quantiles]
    return [
        column.statistic(count, counts),
        statistics.across_runs([median for median, _ in each]),
        statistics.across_runs([ninety for _, ninety in each]),
        column.statistic(share, shares),
        None if column is base else found.contrast(column, base, share, shares),
    ]


def _quantiles(run: Run) -> dict[int, tuple[float, float]]:
    """Median and 90 % of the response times of each block, values that occurred, as in the summary."""
    time = pl.col("response_time_s")
    rows = (
        pl.scan_parquet(run.folder / "exchanges.parquet")
        .group_by("traffic")
        .agg(time.quantile(0.5, "equiprobable").alias("p50"), time.quantile(0.9, "equiprobable").alias("p90"))
        .collect()
    )
    return {int(block): (float(p50), float(p90)) for block, p50, p90 in rows.iter_rows()}


def _probes(found: Comparison) -> list[Part]:
    named = ways(found)
    seen = {column.name: [_probed(run) for run in column.result.runs] for column in found.columns} if named else {}
    return [
        Part(
            f"probes.{WAYS[way]}",
            title,
            PROBES,
            tuple((column, (*_probe(found, column, way, seen),)) for column in found.columns),
            together(found),
        )
        for way, title in named.items()
    ]


def together(found: Comparison) -> str:
    """Which blocks of probes are taken together, where there are several."""
    runs = [run for column in found.columns for run in column.result.runs]
    tables = [pl.scan_parquet(run.folder / "probes.parquet").select(pl.col("traffic").unique()) for run in runs]
    there = sorted(pl.concat(tables).unique().collect()["traffic"])
    names = [str(k + 1) for k in there]
    return f"Blocks {', '.join(names[:-1])} and {names[-1]} of the traffic together." if len(names) > 1 else ""


def _probed(run: Run) -> dict[int, tuple[float, float, float]]:
    """The share of packets lost in each direction, with median and 99 % of the others' one-way delays."""
    delay = pl.col("delay_s")
    rows = (
        pl.scan_parquet(run.folder / "probes.parquet")
        .group_by("direction")
        .agg(
            (delay.null_count() / pl.len()).alias("loss"),
            delay.quantile(0.5, "equiprobable").alias("p50"),
            delay.quantile(0.99, "equiprobable").alias("p99"),
        )
        .collect()
    )
    return {int(way): (loss, _number(p50), _number(p99)) for way, loss, p50, p99 in rows.iter_rows()}


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _probe(
    found: Comparison, column: Column, way: int, seen: dict[str, list[dict[int, tuple[float, float, float]]]]
) -> list[Interval | None]:
    base = found.base_of(column)
    own, others = ([run[way] for run in seen[each.name]] for each in (column, base))

    def difference(k: int) -> Interval | None:
        """Run by run under the same demands; a probe's packets are sent at the same instants then."""
        if column is base:
            return None
        if found.are_paired(column, base):
            return statistics.across_runs([one[k] - other[k] for one, other in zip(own, others, strict=True)])
        return statistics.unpaired([one[k] for one in own], [other[k] for other in others])

    loss, median, late = (statistics.across_runs([run[k] for run in own]) for k in range(3))
    return [_told_by_spread(loss), median, late, _told_by_spread(difference(0)), difference(2)]


def _told_by_spread(interval: Interval | None) -> Interval | None:
    """Without a width where runs lost as many packets each: so few losses that their spread says nothing of chance."""
    return interval if interval is None or interval.half_width else replace(interval, half_width=None)
