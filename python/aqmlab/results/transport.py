"""What TCP, UDP, probes and real-time video came to: figures of the summary, in tables where a run has them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from aqmlab import links, reference, statistics, units
from aqmlab.json_files import Json, at, is_number
from aqmlab.results import coarse, readable
from aqmlab.results.result import Result
from aqmlab.results.run import Run
from aqmlab.statistics import Interval


@dataclass(frozen=True)
class Figure:
    """One figure of a summary."""

    key: str
    """Where it is, dotted."""
    title: str
    heading: str
    """The same, short: two lines for the head of a column."""
    unit: str

    def of(self, summary: Json) -> float | None:
        """Its value, if the run has it."""
        found = at(summary, self.key)
        return float(found) if is_number(found) else None

    def over(self, result: Result) -> Interval | None:
        """Its mean over runs with the interval across them, no finer than the bin of a histogram that it is read off;
        `None` where a run has it not."""
        values = [self.of(run.summary) for run in result.runs]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        return coarse.no_finer(statistics.across_runs(known), coarse.widest_s(self.key, known))


JAIN = "tcp.jain_index"
FIGURES = (
    Figure("tcp.forward_goodput_bps", "TCP goodput, forward", "goodput\nforward", "bps"),
    Figure("tcp.reverse_goodput_bps", "TCP goodput, in reverse", "goodput\nreverse", "bps"),
    Figure("tcp.retransmitted_segments", "segments sent again", "sent\nagain", "count"),
    Figure("tcp.timeouts", "timeouts", "timeouts\n", "count"),
    Figure(JAIN, "Jain's index of endless flows", "Jain's\nindex", "number"),
    Figure("udp.loss_ratio", "UDP loss (%)", "UDP\nloss %", "share"),
    Figure("probes.loss_ratio", "probe loss (%)", "probe\nloss %", "share"),
    Figure("probes.one_way_delay_s.p50", "probe one-way delay, median (ms)", "probe delay,\nmedian, ms", "s"),
    Figure("probes.one_way_delay_s.p99", "probe one-way delay, 99 % (ms)", "probe delay,\n99 %, ms", "s"),
    Figure("probes.jitter_mean_s", "probe jitter, mean (ms)", "probe\njitter, ms", "s"),
    Figure("frames.bitrate_bps", "real-time video, rate", "video\nrate", "bps"),
    Figure("frames.delay_s.p50", "frame delay, median (ms)", "frame delay,\nmedian, ms", "s"),
    Figure("frames.delay_s.p99", "frame delay, 99 % (ms)", "frame delay,\n99 %, ms", "s"),
    Figure("frames.loss_ratio", "frames lost (%)", "frames\nlost %", "share"),
)


def _share_links(scenario: Json) -> bool:
    """Whether all endless flows cross the same links in the same direction: only then can one get another's share."""
    crossed = set()
    for block in filter(reference.is_endless, scenario["traffic"]):
        for number, way in enumerate(links.WAYS):
            # Half of the flows of both directions run each way, the first of them forward.
            if block["direction"] == way or (block["direction"] == "both" and number < int(block["flows"])):
                crossed.add((way, tuple(links.route(scenario, block, way))))
    return len(crossed) == 1


def shown(results: Sequence[Result], are_apart: bool = False) -> list[Figure]:
    """The figures that some of the results have; TCP's where there was any of it.

    A delay of probes both ways together is that of neither. It says what it is, and is left out where probes of each
    way have a table of their own (`are_apart`).
    """
    found = [figure for figure in FIGURES if any(_says_something(figure, result) for result in results)]
    if not any(figure.key in ONE_WAY for figure in found):
        return found
    if are_apart:
        return [figure for figure in found if figure.key not in ONE_WAY]
    if any(len(ways_of_probes(run)) > 1 for result in results for run in result.runs):
        return [_pooled(figure) if figure.key in ONE_WAY else figure for figure in found]
    return found


ONE_WAY = ("probes.one_way_delay_s.p50", "probes.one_way_delay_s.p99", "probes.jitter_mean_s")
"""Figures that probes have in one direction."""


def _pooled(figure: Figure) -> Figure:
    return replace(
        figure,
        title=figure.title.replace(" (", ", both ways together ("),
        heading=figure.heading.replace("\n", "\nboth ways, "),
    )


def ways_of_probes(run: Run) -> set[int]:
    """The directions in which a run has probes, if it has any."""
    if not (run.folder / "probes.parquet").exists():
        return set()
    return set(pl.read_parquet(run.folder / "probes.parquet", columns=["direction"])["direction"])


@dataclass(frozen=True)
class Shown:
    """A figure of several results as a column of a table."""

    figure: Figure
    numbers: tuple[Interval | None, ...]
    """Of each result; none where it has it not."""
    unit: str
    """As it is read: rates have one unit in the column."""

    @property
    def title(self) -> str:
        """Its title with the unit."""
        return f"{self.figure.title} ({self.unit})" if self.unit in units.RATES else self.figure.title

    @property
    def heading(self) -> str:
        """The same, short: two lines for the head of a column."""
        return readable.headed(self.figure.heading, self.unit)


def columns(results: Sequence[Result], are_apart: bool) -> list[Shown]:
    """The figures that are shown of some results; `are_apart` as `shown` has it."""
    found = []
    for figure in shown(results, are_apart):
        numbers = tuple(figure.over(result) for result in results)
        found.append(Shown(figure, numbers, readable.of_column(figure.unit, numbers)))
    return found


def _says_something(figure: Figure, result: Result) -> bool:
    if figure.key == JAIN and not _share_links(result.scenario):
        return False
    interval = figure.over(result)
    return interval is not None and (interval.value > 0 or not figure.key.startswith("tcp."))
