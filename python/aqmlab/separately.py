"""The parts of a comparison, each by itself: links, blocks of exchanges and of endless flows, probes by their ways.

A mean over blocks of different kinds is that of none of them: what is good for web users may be paid by transfers.
Where there is one link, one block, or probes one way only, the tables of the whole show it already.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from aqmlab import links, subject
from aqmlab.comparison import Column, Comparison
from aqmlab.results import held_back, named, readable, transport
from aqmlab.results.by_application import Heading
from aqmlab.results.ways import WORDS, of_data
from aqmlab.statistics import Interval

AGAINST = "difference_to_baseline."
"""Before the name of a number, its difference to that of the baseline."""

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
ROUND_TRIPS: tuple[Heading, ...] = (
    ("median\nms", "s", "rtt_s.p50"),
    ("99 %\nms", "s", "rtt_s.p99"),
    ("round trips\na minute", "count", "per_minute"),
    ("99 % against\nbaseline, ms", "difference_s", "difference_to_baseline.rtt_s.p99"),
)
OF_ROUND_TRIPS = (
    "A round trip is a probe's delay forward and that of the probe sent back when it arrived. Round trips a minute: "
    "60 s ÷ the mean round trip, the slowest 5 % left out."
)


SHARES_OF_CASES = ("share_in_2s", "share_under_2s", "unstarted_share", "satisfied", "lost")
"""Of applications: what is so many of all their pages, films, frames or calls."""


@dataclass(frozen=True)
class Part:
    """One table: a row a column of the comparison; `None` where it has no such number."""

    table: str
    """Its name in `numbers.csv`: `links.core.forward`, `traffic.0`, `probes.forward`."""
    title: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Column, tuple[Interval | None, ...]], ...]
    note: str = ""
    """What is to be said of it: why numbers are missing, or how little they say."""
    cases: tuple[float, ...] = ()
    """Of how many pages, films or calls the shares of each row are; of parts of the traffic that is not told."""

    def said(self, row: int, is_counted: bool) -> list[tuple[str, str]]:
        """The numbers of a row, with their half widths; `is_counted` as `readable.of_cases` has it."""
        found = zip(self.rows[row][1], self.columns, strict=True)
        return [self._said(row, one, unit, name, is_counted) for one, (_, unit, name) in found]

    def _said(self, row: int, one: Interval | None, unit: str, name: str, is_counted: bool) -> tuple[str, str]:
        if one is not None and self.cases and name in SHARES_OF_CASES:
            # Of pages those that were begun too late are in no share.
            return readable.of_cases(one, unit, self.cases[row], is_counted and name != "share_in_2s")
        return readable.said_apart(one, unit)

    @property
    def columns(self) -> tuple[Heading, ...]:
        """Its headings as they are read: all rates have one unit, and the heads say it."""
        rates = [
            number
            for _, numbers in self.rows
            for number, (_, unit, _) in zip(numbers, self.headings, strict=True)
            if unit.endswith("bps")
        ]
        read = [(title, readable.of_column(unit, rates), name) for title, unit, name in self.headings]
        return tuple((readable.headed(title, unit), unit, name) for title, unit, name in read)


def of(found: Comparison) -> list[Part]:
    """The tables of a comparison: links, blocks, who got what, probes."""
    return [*_links(found), *_blocks(found), *goodputs(found.columns), *_probes(found)]


def _links(found: Comparison) -> list[Part]:
    """A table for each direction in which data flow of each of several links that all columns have."""
    windows = [window for column in found.columns for window in column.windows]
    names = [name for name in windows[0].links if all(name in window.links for window in windows)]
    summaries = [summary for column in found.columns for summary in column.summaries]
    base = found.baseline.summaries
    return [
        # The uncongested network is another one: its links do not compare.
        _part(found, f"links.{name}.{way}", f"Link {name}, {WORDS[way]}", LINK, compares_reference=False)
        for name in names
        for way in of_data(*([dict(links.figures(one, name)) for one in each] for each in (summaries, base)))
    ]


def _part(
    found: Comparison,
    table: str,
    title: str,
    headings: tuple[Heading, ...],
    note: str = "",
    compares_reference: bool = True,
) -> Part:
    """A table of numbers that are asked for by its name and theirs."""
    rows = []
    for column in found.columns:
        has_difference = column is not found.base_of(column) and (compares_reference or not column.uncongested)
        cells = [number(found, column, table, name, has_difference) for _, _, name in headings]
        rows.append((column, tuple(cells)))
    return Part(table, title, headings, tuple(rows), note)


def number(found: Comparison, column: Column, table: str, name: str, has_difference: bool) -> Interval | None:
    """A number of a column, by its name in a table, or the difference to that of the baseline; none where there is no
    difference, or where a column has no such number."""
    what = f"{table}.{name.removeprefix(AGAINST)}"
    if not name.startswith(AGAINST):
        return column.estimate(what) if _has(column, what) else None
    base = found.base_of(column)
    is_one = has_difference and all(_has(one, what) for one in (column, base)) and _are_alike(column, base, table)
    return found.difference(column, base, what) if is_one else None


def _are_alike(column: Column, base: Column, table: str) -> bool:
    """Whether a table is of blocks of one kind, if it is of a block: what users get is not compared with transfers."""
    family, _, block = table.partition(".")
    return family != named.TRAFFIC or _kind(column, int(block)) == _kind(base, int(block))


def _has(column: Column, what: str) -> bool:
    """Whether a column has a number of a part of its traffic; those of links all have."""
    is_apart = what.partition(".")[0] in named.APART
    return not is_apart or any(run.has(what) for run in column.result.numbers)


def blocks(found: Comparison) -> dict[int, str]:
    """The blocks of traffic that complete exchanges, with what they are called; none where there is one only."""
    if not all(run.has_exchanges for column in found.columns for run in column.result.runs):
        return {}
    counts = [len(w.block_completed) for column in found.columns for w in column.windows]
    there = [k for k in range(min(counts, default=0)) if any(_completed(c, k) for c in found.columns)]
    traffic = found.baseline.scenario["traffic"]
    if len(there) < 2 or any(len(column.scenario["traffic"]) != len(traffic) for column in found.columns):
        return {}
    return {k: _called(found, k) for k in there}


def _owner(found: Comparison, block: int) -> Column:
    """The column whose block a table is called after: the baseline, unless the block completes no exchanges there."""
    return next((c for c in (found.baseline, *found.columns) if _has(c, _count_of(block))), found.baseline)


def _count_of(block: int) -> str:
    return f"traffic.{block}.completed"


def _called(found: Comparison, block: int) -> str:
    """Its number is said, too, where others have another kind of block in its place."""
    owner = _owner(found, block)
    title = (
        f"traffic.{block} ({_kind(owner, block)})" if others(found, block) else links.block_title(owner.scenario, block)
    )
    return f"Block {title}: {_said(owner, block)}"


def ways(found: Comparison) -> dict[int, str]:
    """The directions of probes, with what they are called; none where they run one way only."""
    runs = [run for column in found.columns for run in column.result.runs]
    sent = [transport.ways_of_probes(run) for run in runs]
    there = [way for way in (0, 1) if all(way in each for each in sent)]
    return {way: f"Probes {('forward', 'in reverse')[way]}" for way in there} if len(there) == 2 else {}


def _blocks(found: Comparison) -> list[Part]:
    """A table for each block that completes exchanges."""
    return [_part(found, f"traffic.{k}", title, BLOCK, _block_note(found, k)) for k, title in blocks(found).items()]


def _block_note(found: Comparison, block: int) -> str:
    return " ".join(filter(None, (_without(found, block), others(found, block))))


def others(found: Comparison, block: int) -> str:
    """Which columns have a block of another kind in its place, and what it is."""
    return " ".join(
        f"{column.label} has another in its place: {_said(column, block)}."
        for column in found.columns
        if _kind(column, block) != _kind(_owner(found, block), block)
    )


def _kind(column: Column, block: int) -> str:
    return str(column.scenario["traffic"][block]["kind"])


def _said(column: Column, block: int) -> str:
    return subject.blocks(column.scenario)[block]


def _without(found: Comparison, block: int) -> str:
    """Which columns have no times of a block, and why."""
    said = []
    for column in (column for column in found.columns if _has(column, _count_of(block))):
        none = sum(w.block_completed[block].sum() == 0 for w in column.windows)
        said += [_in_runs(column, none)] if none else []
    return f"–: no exchange of the block was completed under {', '.join(said)}." if said else ""


def _in_runs(column: Column, count: int) -> str:
    """A column, and of how many of its runs something is said."""
    return column.label + (f" (in {count} of {len(column.windows)} runs)" if len(column.windows) > 1 else "")


def without_exchanges(columns: Sequence[Column]) -> str:
    """Why columns have no response times, although exchanges are completed: there is no mean over the other runs."""
    counts = [sum(window.measure("completed") == 0 for window in column.windows) for column in columns]
    if not any(counts) or not any(column.completed > 0 for column in columns):
        return ""
    if len(columns) == 1:
        return f"–: in {counts[0]} of {len(columns[0].windows)} runs no exchange was completed."
    said = [_in_runs(column, count) for column, count in zip(columns, counts, strict=True) if count]
    return f"–: no exchange was completed under {', '.join(said)}."


def goodputs(columns: Sequence[Column]) -> list[Part]:
    """What each of several blocks of endless flows got; nothing where there is one block of them, or none."""
    traffic = columns[0].scenario["traffic"]
    runs = [run for column in columns for run in column.result.runs]
    there = [k for k in range(len(traffic)) if all(str(k) in held_back.blocks(run.summary) for run in runs)]
    if len(there) < 2 or any(len(column.scenario["traffic"]) != len(traffic) for column in columns):
        return []
    scenario = columns[0].scenario
    words, titles = subject.blocks(scenario), {k: links.block_title(scenario, k) for k in there}
    apart = [subject.told_apart(column.scenario, there) for column in columns]
    # What tells blocks apart under one variant may be another thing under the next.
    named = apart[0] if all(marks == apart[0] for marks in apart) else [[titles[k]] for k in there]
    headings = tuple(
        (",\n".join(marks), "bps", f"traffic.{k}.goodput_flow_bps") for k, marks in zip(there, named, strict=True)
    )
    rows = [(column, tuple(column.estimate(name) for _, _, name in headings)) for column in columns]
    note = f"Goodput in the mean over the flows of a block; {'; '.join(f'{titles[k]}: {words[k]}' for k in there)}."
    return [Part("goodput", "Who gets what: goodput of an endless flow", headings, tuple(rows), note)]


def _completed(column: Column, block: int) -> float:
    return float(sum(w.block_completed[block].sum() for w in column.windows))


def _probes(found: Comparison) -> list[Part]:
    """A table for each direction of probes, and one there and back."""
    titles = ways(found)
    if not titles:
        return []
    note = together(found)
    parts = [_part(found, f"probes.{links.WAYS[way]}", title, PROBES, note) for way, title in titles.items()]
    if not any(_has(column, f"{named.ROUND_TRIP}.per_minute") for column in found.columns):
        return parts
    note = " ".join(filter(None, (note, OF_ROUND_TRIPS)))
    return [*parts, _part(found, named.ROUND_TRIP, "Probes there and back", ROUND_TRIPS, note)]


def together(found: Comparison) -> str:
    """Which blocks of probes are taken together, where there are several."""
    each = {column.label: _probing(column) for column in found.columns}
    listed = {label: readable.listed(names) for label, names in each.items()}
    if all(len(names) < 2 for names in each.values()):
        return ""
    first = next(iter(listed.values()))
    if all(one == first for one in listed.values()):
        return f"{first} together."
    return f"{'; '.join(f'{label}: {names}' for label, names in listed.items())}; of each variant together."


def _probing(column: Column) -> list[str]:
    """The blocks that sent probes."""
    tables = [pl.scan_parquet(run.folder / "probes.parquet").select("traffic") for run in column.result.runs]
    there = pl.concat(tables).unique().collect()["traffic"].sort()
    return [links.block_title(column.scenario, k) for k in there]
