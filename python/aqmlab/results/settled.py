"""Was a run settled? What of its measured window is still on its way from the beginning to where it will stay.

Followed are the gauges of the discipline, the queue, the exchanges under way and the users who wait for one: users who
are slowed down ask less, so that load and queue settle on each other, which at a load of 98 % takes ten minutes and
more. Each series is tested by itself (`stationarity`); all of them together fail a settled run one time in twenty.

It is a finding and no self-check: a run that is not settled is just what its scenario asked for, but its window is not
the long run that it is often taken for.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from aqmlab import links, stationarity, units
from aqmlab.results import times
from aqmlab.results.exchanges import SLICE_ROWS
from aqmlab.results.run import of_link
from aqmlab.stationarity import FEWEST_CELLS, FEWEST_FREEDOM, LEVEL, NO, UNKNOWN, YES, Array

CELLS = 400
"""Cells that a window is cut into, if its tables are as fine: of eight minutes 1.2 s, of 90 minutes 14 s."""

FOLLOWED = 0.1
"""Share of the window up to which exchanges are followed: of those that take longer, one that is under way near the end
of the window may not be in the table, and what is only in the earlier part of it would look like a trend."""

MOST_MARKS = 1 << 27
"""Users times cells up to which it is noted who waits when: bytes."""

BLOCK_ROWS = 1 << 14
"""Exchanges that are worked on at a time: an array of them has 128 kB."""

GAUGES = {"probability": "probability", "queue_packets": "queue"}
"""Columns of the queue table that are followed, and what they are called."""

SAID = 2
"""Series that are named of a run that is not settled."""

UNDER_WAY, WAITING = "exchanges under way", "users waiting"


@dataclass(frozen=True)
class Followed:
    """One series of a run, and whether it was settled."""

    name: str
    answer: str
    statistic: float
    freedom: float
    p: float
    """As one among all series of the run."""
    begins: float
    """Its mean over the first tenth of the window."""
    ends: float
    """Over the last tenth of what was followed."""
    cut_s: float | None
    """What MSER-5 would cut off the window; none where that is more than half of it."""
    climb: float = 0.0
    """The normal score of how far it goes one way."""


@dataclass(frozen=True)
class Finding:
    """Whether a run was settled in its measured window."""

    answer: str
    """`yes`, `no`, or `cannot tell`: its window is too short for one of its series."""
    p: float
    """How likely a settled run shows a trend like that of its worst series, or more of one."""
    cut_s: float | None
    """What MSER-5 would cut off the window for all of its series; none where one of them wants more than half of it."""
    series: tuple[Followed, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "series": [asdict(one) for one in self.series]}


def of_run(
    queue: pl.DataFrame, exchanges: Path | None, window: tuple[float, float], traffic: Sequence[Mapping[str, Any]]
) -> Finding:
    """Judges a run by its tables; that of exchanges is read in passing, for it may be large."""
    return judge(dict(series(queue, exchanges, window, traffic)), window[1] - window[0])


def judge(followed: Mapping[str, Array], window_s: float) -> Finding:
    """The finding on some series, whose cells cover the window from its beginning on."""
    long_enough = {name: values for name, values in followed.items() if values.size >= FEWEST_CELLS}
    trends = {name: stationarity.trend(values) for name, values in long_enough.items()}
    adjusted = dict(zip(trends, stationarity.holm([trend.p for trend in trends.values()]), strict=True))
    found = []
    for name, values in long_enough.items():
        trend, p, tenth = trends[name], adjusted[name], max(values.size // 10, 1)
        answer = NO if p < LEVEL else YES if trend.freedom >= FEWEST_FREEDOM else UNKNOWN
        share = stationarity.mser5(values)
        begins, ends = float(values[:tenth].mean()), float(values[-tenth:].mean())
        cut_s = None if share is None else share * window_s * _covered(name)
        climb = stationarity.climb(values)
        score = stationarity.score(climb.statistic, climb.freedom)
        found.append(Followed(name, answer, trend.statistic, trend.freedom, p, begins, ends, cut_s, score))
    answers = {one.answer for one in found} | ({UNKNOWN} if len(long_enough) < len(followed) or not followed else set())
    cuts = [one.cut_s for one in found]
    return Finding(
        answer=NO if NO in answers else UNKNOWN if UNKNOWN in answers else YES,
        p=min(adjusted.values(), default=1.0),
        cut_s=None if None in cuts else max((cut for cut in cuts if cut is not None), default=None),
        series=tuple(found),
    )


def series(
    queue: pl.DataFrame, exchanges: Path | None, window: tuple[float, float], traffic: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Array]]:
    """What is followed of a run, by its name: means over cells, or numbers at their middle."""
    yield from _gauges(queue, window)
    if exchanges is None:
        return
    under_way, waiting = _demand(exchanges, window, traffic)
    if under_way.any():
        yield UNDER_WAY, under_way
    if waiting is not None and waiting.any():
        yield WAITING, waiting


def _gauges(queue: pl.DataFrame, window: tuple[float, float]) -> Iterator[tuple[str, Array]]:
    rows, _ = times.in_window(queue, window)
    names = list(dict.fromkeys(rows["link"])) if "link" in rows.columns else [links.ONE]
    for name, (column, title), (direction, way) in product(names, GAUGES.items(), enumerate(links.WAYS)):
        own = of_link(rows, name).filter(pl.col("direction") == direction)
        values = own[column].cast(pl.Float64).to_numpy()
        if not values.size or not np.isfinite(values).all():
            continue  # a discipline without such a gauge
        cells = min(CELLS, values.size)
        # Intervals are equally long but at the edges; a cell has as many of them as another, or one more.
        edges = np.linspace(0, values.size, cells + 1).astype(np.int64)
        where = f"{name} {way}" if len(names) > 1 else way
        yield f"{title}, {where}", np.add.reduceat(values, edges[:-1]) / np.diff(edges)


def _covered(name: str) -> float:
    """Share of the window that a series reaches over."""
    return 1 - FOLLOWED if name in (UNDER_WAY, WAITING) else 1.0


def _demand(
    exchanges: Path, window: tuple[float, float], traffic: Sequence[Mapping[str, Any]]
) -> tuple[Array, Array | None]:
    """Exchanges under way and users waiting at the middle of each cell, as far as they can be followed."""
    start, end = window
    step = (end - start) / CELLS
    cells = round(CELLS * (1 - FOLLOWED))
    users = [int(block.get("users") or 0) for block in traffic]
    first_of = np.concatenate(([0], np.cumsum(users)))
    total = int(first_of[-1])
    waits = np.zeros((cells, total), dtype=bool) if 0 < total * cells <= MOST_MARKS else None
    has_users = np.array(users, dtype=np.int64)
    change = np.zeros(cells + 1, dtype=np.int64)
    for asked, response, block, source in _blocks(exchanges):
        # The middles of cells from the first at or after it was asked for to the last before it was done.
        begins = np.ceil((asked - start) / step - 0.5).clip(0, cells)
        done = np.ceil((asked + response - start) / step - 0.5).clip(0, cells)
        is_seen = (done > begins) & (response <= FOLLOWED * (end - start))
        begins, done = begins[is_seen].astype(np.int64), done[is_seen].astype(np.int64)
        change += np.bincount(begins, minlength=cells + 1) - np.bincount(done, minlength=cells + 1)
        if waits is None:
            continue
        block, source = block[is_seen].astype(np.int64), source[is_seen].astype(np.int64)
        is_user = source < has_users[block]
        begins, lasts, who = begins[is_user], (done - begins)[is_user], (first_of[block] + source)[is_user]
        at = np.repeat(begins - np.concatenate(([0], lasts.cumsum()[:-1])), lasts) + np.arange(lasts.sum())
        waits[at, np.repeat(who, lasts)] = True
    under_way = change.cumsum()[:cells].astype(np.float64)
    return under_way, None if waits is None else waits.sum(axis=1).astype(np.float64)


def _blocks(exchanges: Path) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Start, response time, block of traffic and source of exchanges, so many at a time that work on them stays in the
    processor's cache."""
    table = pl.scan_parquet(exchanges).select("start_s", "response_time_s", "traffic", "source")
    first, rows = 0, SLICE_ROWS
    while rows == SLICE_ROWS:
        piece = table.slice(first, SLICE_ROWS).collect()
        columns, rows = [piece[name].to_numpy() for name in piece.columns], piece.height
        for at in range(0, rows, BLOCK_ROWS):
            yield tuple(column[at : at + BLOCK_ROWS] for column in columns)
        first += rows


@dataclass(frozen=True)
class Together:
    """One series of several runs of a scenario."""

    name: str
    p: float
    """How likely settled runs have so much of a trend in common; as one among all series."""
    freedom: float
    """Mean of the runs' degrees of freedom: of one run it is hardly known."""
    begins: float
    ends: float


def together(runs: Sequence[Mapping[str, Any]]) -> list[Together]:
    """What several runs show in common. Of runs that are settled one has a score above 0 here, another one below."""
    names = dict.fromkeys(one["name"] for run in runs for one in run.get("series", ()))
    of = {name: [one for run in runs for one in run.get("series", ()) if one["name"] == name] for name in names}
    several = {name: found for name, found in of.items() if len(found) > 1}
    p = {
        name: min(
            1.0,
            2
            * min(
                stationarity.in_common([stationarity.score(one["statistic"], one["freedom"]) for one in found]),
                stationarity.in_common([float(one.get("climb", 0.0)) for one in found]),
            ),
        )
        for name, found in several.items()
    }
    return [
        Together(name, adjusted, *(_mean(several[name], key) for key in ("freedom", "begins", "ends")))
        for name, adjusted in zip(p, stationarity.holm(list(p.values())), strict=True)
    ]


def _mean(found: Sequence[Mapping[str, Any]], key: str) -> float:
    return math.fsum(float(one[key]) for one in found) / len(found)


UNDENIABLE = 1e-6
"""A run that shows a trend as rare as this, counted as one among all runs, is not settled, whatever the others show.
Less rare ones are no sign: scores of settled queues at 90 % load scatter by 1.6, not by 1."""


def pooled(findings: Sequence[Mapping[str, Any] | None], level: float = LEVEL) -> tuple[str | None, float]:
    """The answer for several runs together, each as its manifest has it, and how likely they show so much of a trend.

    Settled runs are called unsettled with a probability of `level`. None where it is not known of one of the runs.
    """
    known = [one for one in findings if one]
    if not known or len(known) < len(findings):
        return None, math.nan
    series = together(known)
    rarest = min(1.0, len(known) * min(float(one["p"]) for one in known))
    if len(known) == 1 or not series:
        p = rarest
        unknown = any(one["answer"] == UNKNOWN for one in known)
    else:
        p = min(one.p for one in series)
        unknown = any(map(_is_short, series)) or any(one["answer"] == UNKNOWN and _is_unexplained(one) for one in known)
    if rarest < UNDENIABLE:  # one run that rises and one that falls have nothing in common, and neither is settled
        p = min(p, rarest)
    return (NO if p < level or p < UNDENIABLE else UNKNOWN if unknown else YES), p


def _is_short(series: Together) -> bool:
    """Whether windows have no room for what would have to be seen in them."""
    return series.freedom < FEWEST_FREEDOM


def _is_unexplained(run: Mapping[str, Any]) -> bool:
    """Whether it is for want of cells, not of freedom, that nothing can be told of a run."""
    return all(one["answer"] != UNKNOWN for one in run.get("series", ()))


def said(findings: Sequence[Mapping[str, Any] | None]) -> str:
    """What is to be known of runs of one scenario, in words; nothing where they are settled or were not asked.

    `not settled: probability, forward, went from 4.7 % to 76 %; the usual rule for cutting off a start-up (MSER-5)
    would take away more than half of the window`.
    """
    answer, _ = pooled(findings)
    if answer not in (NO, UNKNOWN):
        return ""
    known = [one for one in findings if one]
    series = together(known)
    if answer == UNKNOWN:
        slow = (
            [one.name for one in series if _is_short(one)]
            if series
            else [one["name"] for found in known for one in found.get("series", ()) if one["answer"] == UNKNOWN]
        )
        which = "; ".join(dict.fromkeys(slow))
        return f"too short to tell whether it is settled{f': {which}' if which else ''}"
    trends = [(one.p, one.name, one.begins, one.ends) for one in series if one.p < LEVEL]
    where = ""
    if not trends:
        trends = [
            (float(one["p"]), one["name"], one["begins"], one["ends"])
            for one in min(known, key=lambda one: one["p"])["series"]
            if one["answer"] == NO
        ]
        if len(known) > 1:
            where = f" in {sum(one['answer'] == NO for one in known)} of {len(known)} runs"
    moved = [f"{name}, went from {_between(name, begins, ends)}" for _, name, begins, ends in sorted(trends)[:SAID]]
    cuts = sorted(math.inf if one["cut_s"] is None else float(one["cut_s"]) for one in known)
    cut_s = cuts[len(cuts) // 2]  # of an even number the longer of the two in the middle
    cut = "more than half of the window" if math.isinf(cut_s) else f"{cut_s:.3g} s"
    return f"not settled{where}: {'; '.join(moved)}; {RULE} would take away {cut}"


RULE = "the usual rule for cutting off a start-up (MSER-5)"


def counted(answers: Sequence[str | None], measured_s: float) -> str:
    """How many of some variants, or whether a run alone, had not settled, in a sentence; nothing where all had.

    `answers` are those of `pooled`, one a variant. `2 of 3 variants had not settled: their numbers are of these 150 s
    only.`
    """
    unsettled, unknown = answers.count(NO), answers.count(UNKNOWN)
    if unsettled:
        who = f"{unsettled} of {len(answers)} variants" if len(answers) > 1 else "What was run"
        whose = "their" if unsettled > 1 else "its"
        return f"{who} had not settled: {whose} numbers are of these {measured_s:g} s only."
    if not unknown:
        return ""
    who = f" of {unknown} of {len(answers)} variants" if len(answers) > 1 else ""
    return f"These {measured_s:g} s are too short to tell{who} whether the numbers stay so."


def read(name: str, value: float) -> tuple[str, str]:
    """A mean of a series to be read, and its unit; what is counted is in the names of the others."""
    match name.split(", ")[0]:
        case "probability":
            return f"{100 * value:.3g}", " %"
        case "queue":
            return _said(value), " packets"
    return _said(value), ""


def _between(name: str, begins: float, ends: float) -> str:
    (first, unit), (last, _) = read(name, begins), read(name, ends)
    return f"{first}{unit if unit == ' %' else ''} to {last}{unit}"


def _said(value: float) -> str:
    """A mean of a series to be read: three digits, and no powers of ten."""
    return units.say_count(value) if abs(value) >= 999.5 else f"{value:.3g}"
