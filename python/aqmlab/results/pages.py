"""Pages of readers and web users: each with how long it took until its last object was there.

A run's table of exchanges has a row for each object, or for all that a server sent of a wave, and for each greeting.
A reader has one page at a time, and thinks between two. What is asked for while something of a page is under way, or
when the last of that is there, belongs to the page; what is asked for later begins the next one. A page counts if it
began within the measured window, as all of its exchanges are then in the table that were complete at the end.

Where the run wrote its demands down, what was asked for and never came is known: such a page is not loaded. Elsewhere a
page is taken for loaded when what came of it is there.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl

from aqmlab import statistics
from aqmlab.statistics import Array

READERS = "archive2024"
"""The model whose blocks are pages without being called so."""

MODELS = (READERS, "unc2001")
"""Models whose users ask for the next object of a page when another is there, and for the next page later."""

COLUMNS = {
    "traffic": pl.Int64,
    "reader": pl.Int64,
    "begun_s": pl.Float64,
    "load_s": pl.Float64,
    "exchanges": pl.Int64,
}
"""Of `pages`: a page that was not loaded by the end has no `load_s`."""

LIVE_GAP_S = 0.02
"""What real hosts may take to ask for what an object names."""

NEVER = -1
"""The reader of a page of which nothing came."""


def blocks(traffic: Sequence[Mapping[str, Any]], models: Sequence[str] = MODELS) -> list[int]:
    """The blocks of these models: of all whose pages can be told apart if none are named."""
    return [k for k, block in enumerate(traffic) if block["kind"] == "web" and block.get("model") in models]


def are_answers(block: Mapping[str, Any]) -> bool:
    """Whether each answer of a block is a page by itself, if it is of pages at all.

    Of other models the tables do not tell which objects are of one page.
    """
    objects = block.get("objects")
    return block["kind"] != "web" or (isinstance(objects, int | float) and objects <= 1)


def pages(
    folder: Path,
    traffic: Sequence[Mapping[str, Any]],
    window: tuple[float, float],
    gap_s: float = 0.0,
    among: Sequence[int] | None = None,
) -> pl.DataFrame:
    """The pages of a run's readers, a row each, of its folder, its blocks, and the ends of its window in seconds.

    `gap_s` is what may pass between an object and the request that follows from it; next to nothing in a simulated run.
    `among` are the blocks that are asked for, all if none are named.
    """
    gap_ns = round(gap_s * 1e9)
    exchanges = pl.scan_parquet(folder / "exchanges.parquet")
    columns = ["source", "start_ns", "response_time_ns", "response_bytes"]
    rows: list[tuple[Any, ...]] = []
    for block in blocks(traffic):
        if among is not None and block not in among:
            continue
        found = exchanges.filter(pl.col("traffic") == block).select(columns).collect()
        demands = folder / f"demands-{block}.csv"
        missing = _missing(demands, found, window) if demands.exists() else []
        rows += _of_block(block, found, missing, round(window[0] * 1e9), gap_ns)
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def answers(folder: Path, block: int, window: tuple[float, float]) -> pl.DataFrame:
    """Pages that are one answer each, those of a block that were asked for within the window: `begun_s`, `load_s`.

    What was not there at the end has no `load_s`, and is known of where the run recorded demands alone.
    """
    rows = pl.scan_parquet(folder / "exchanges.parquet").filter(pl.col("traffic") == block)
    found = rows.select("start_ns", "response_time_ns", "response_bytes").collect()
    demands = folder / f"demands-{block}.csv"
    missing = _missing(demands, found, window) if demands.exists() else []
    came = found.filter(pl.col("start_ns") >= round(window[0] * 1e9))
    times = [(start / 1e9, took / 1e9) for start, took in came.select("start_ns", "response_time_ns").iter_rows()]
    never = [(at / 1e9, None) for at in missing]
    return pl.DataFrame([*times, *never], schema={"begun_s": pl.Float64, "load_s": pl.Float64}, orient="row")


def _missing(demands: Path, found: pl.DataFrame, window: tuple[float, float]) -> list[int]:
    """When those exchanges were asked for, in nanoseconds, that were not there at the end."""
    asked = pl.read_csv(demands, comment_prefix="#", schema_overrides={"at_s": pl.String, "response_bytes": pl.String})
    want = Counter(
        (nanoseconds(at), int(size))
        for at, size in asked.select("at_s", "response_bytes").iter_rows()
        if size is not None
    )
    have = Counter(found.select("start_ns", "response_bytes").iter_rows())
    first, last = (round(edge * 1e9) for edge in window)
    return sorted(at for at, _ in (want - have).elements() if first <= at <= last)


def nanoseconds(seconds: str) -> int:
    """Seconds as they are written, with nine digits after the point at most, as whole nanoseconds."""
    whole, _, rest = seconds.partition(".")
    return int(whole) * 10**9 + int(rest.ljust(9, "0")[:9] or "0")


@dataclass
class _Page:
    """What came of a page."""

    reader: int
    begun: int
    end: int
    instants: list[int]
    """When it began, and when each of its exchanges was there: something that follows is asked for then."""

    @property
    def count(self) -> int:
        return len(self.instants) - 1


def _of_block(
    block: int, found: pl.DataFrame, missing: Sequence[int], first_ns: int, gap_ns: int
) -> Iterator[tuple[Any, ...]]:
    rows = found.sort("source", "start_ns").select("source", "start_ns", "response_time_ns").iter_rows()
    pages = [page for reader, own in groupby(rows, itemgetter(0)) for page in _split(reader, own, gap_ns)]
    known: set[int] = set()
    for page in pages:
        late = [at for one in page.instants for at in _near(missing, one, gap_ns)]
        known.update(late)
        if page.begun >= first_ns:
            load_s = None if late else (page.end - page.begun) / 1e9
            yield block, page.reader, page.begun / 1e9, load_s, page.count
    for at in dict.fromkeys(missing):
        if at not in known:
            yield block, NEVER, at / 1e9, None, 0


def _near(sorted_ns: Sequence[int], at: int, gap_ns: int) -> Sequence[int]:
    """Those that follow an instant within so long."""
    return sorted_ns[bisect_left(sorted_ns, at) : bisect_right(sorted_ns, at + gap_ns)]


def _split(reader: int, own: Iterable[tuple[int, int, int]], gap_ns: int) -> Iterator[_Page]:
    """The pages of one reader, in their order."""
    page: _Page | None = None
    for _, start, took in own:
        if page is not None and start > page.end + gap_ns:
            yield page
            page = None
        if page is None:
            page = _Page(reader, start, start, [start])
        page.end = max(page.end, start + took)
        page.instants.append(start + took)
    if page is not None:
        yield page


def within(found: pl.DataFrame, limit_s: float, window: tuple[float, float]) -> float | None:
    """The share of pages that were loaded within so long, of those begun so long before the end of the window."""
    judged = found.filter(pl.col("begun_s") <= window[1] - limit_s)
    if not judged.height:
        return None
    return judged.filter(pl.col("load_s") <= limit_s).height / judged.height


def waits(found: pl.DataFrame, window: tuple[float, float]) -> tuple[Array, Array]:
    """How long each page took, or had been waited for by the end of the window, and whether it was loaded by then."""
    waited = found["load_s"].fill_null(window[1] - found["begun_s"])
    return waited.to_numpy(), found["load_s"].is_not_null().to_numpy()


def median_s(found: pl.DataFrame, window: tuple[float, float]) -> float | None:
    """The load time that half of the pages had. One that was not loaded by the end of the window took longer than that.

    Nothing where too few were loaded to tell.
    """
    return statistics.median_of_waits(*waits(found, window))
