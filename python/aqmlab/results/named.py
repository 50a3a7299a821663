"""Numbers by their names: `p90`, `forward.loss_ratio`, and as `numbers.csv` has them those of a part of the traffic.

Such are `traffic.0.p90` of a block, `probes.reverse.one_way_delay_s.p99` of probes one way, and
`applications.calls.mos_mean` of an application.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import polars as pl

from aqmlab import links, near, statistics
from aqmlab.errors import BadInput
from aqmlab.results import by_application, coarse, exchanges, held_back, round_trips, ways
from aqmlab.results.run import Run
from aqmlab.results.window import MEASURES, OF_WAY, QUOTIENTS, Window
from aqmlab.statistics import Array, Interval

WITHIN_S = 0.5
AT = exchanges.index(WITHIN_S)

TRAFFIC, PROBES, APPLICATIONS = APART = ("traffic", "probes", "applications")
"""What names of numbers begin with that are of a part of the traffic."""

ROUND_TRIP = f"{PROBES}.round_trip"
"""The same of probes there and back."""


class Numbers:
    """The numbers of one run."""

    def __init__(self, run: Run, window: Callable[[], Window]) -> None:
        """`window` gives the run's condensed window, once a number of it is asked for."""
        self.run = run
        self._window = window

    @cached_property
    def window(self) -> Window:
        """The condensed window of the run."""
        return self._window()

    def measure(self, name: str) -> float | None:
        """A number over the whole window: not a number where the run has none, nothing where nobody asked for anything
        that it would be of.
        """
        return self._family(name).get(name, math.nan) if _is_apart(name) else self.window.measure(name)

    def parts(self, name: str) -> Array | None:
        """The number in each part of the window, as far as that can be trusted; nothing where there is no such."""
        if not _is_apart(name):
            return self.window.trusted(self.window.parts(name))
        _, block, what = [*name.split(".", 2), "", ""][:3]
        found = _PARTS.get(what) if name.startswith(f"{TRAFFIC}.") else None
        return None if found is None else self.window.trusted(found(self.window, int(block)))

    def has(self, name: str) -> bool:
        """Whether a name of a part of the traffic is one of this run."""
        return name in self._family(name)

    @property
    def of_parts(self) -> dict[str, float | None]:
        """Every number of a part of the traffic, by its name: of blocks, of probes each way, of applications."""
        return {name: value for own in APART for name, value in self._family(own).items()}

    @property
    def names(self) -> list[str]:
        """All names that its numbers have."""
        of_ways = [f"{way}.{what}" for way in links.WAYS for what in QUOTIENTS]
        return [*MEASURES, *of_ways, *self.window.figures, *self.of_parts]

    def _family(self, name: str) -> Mapping[str, float | None]:
        match name.partition(".")[0]:
            case "traffic":
                return self._of_blocks
            case "probes":
                return self._of_probes
        return self._of_applications

    @cached_property
    def applications(self) -> Mapping[str, Mapping[str, float | None]]:
        """The figures of each application."""
        return by_application.figures(self.run)

    @cached_property
    def _of_applications(self) -> Mapping[str, float | None]:
        return {
            f"{APPLICATIONS}.{application}.{name}": self._or_none(application, name, value)
            for application, found in self.applications.items()
            for name, value in found.items()
        }

    def _or_none(self, application: str, name: str, value: float | None) -> float | None:
        """A figure is missing where it went worst, as where every frame was lost: a mean over other runs is none."""
        if value is None and not by_application.is_unused(self.run, application, name):
            return math.nan
        return value

    @cached_property
    def _of_blocks(self) -> Mapping[str, float | None]:
        """Of blocks that complete exchanges, and of those of endless flows what one of these got."""
        found: dict[str, float | None] = {}
        times = _quantiles(self.run) if self.run.has_exchanges else {}
        for k, counts in enumerate(self.window.block_completed):
            if not self.run.has_exchanges or not exchanges.completes(self.run.scenario, self.run.summary, k):
                continue
            done, within = counts.sum(), self.window.block_cdf_counts[k, :, AT].sum()
            median, ninety = times.get(k, (float("nan"),) * 2)
            share = float(within / done) if done > 0 else float("nan")
            of_block = {"completed": float(done), "p50": median, "p90": ninety, "share_under_500ms": share}
            found |= {f"{TRAFFIC}.{k}.{name}": value for name, value in of_block.items()}
        for key, held in held_back.blocks(self.run.summary).items():
            flows = int(self.run.scenario["traffic"][int(key)]["flows"])
            found[f"{TRAFFIC}.{key}.goodput_flow_bps"] = float(held["goodput_bps"]) / flows
        return found

    @cached_property
    def _of_probes(self) -> Mapping[str, float | None]:
        """The share of packets lost in each direction, median and 99 % of the others' one-way delays; round trips."""
        if not (self.run.folder / "probes.parquet").exists():
            return {}
        delay = pl.col("delay_s")
        rows = (
            pl.scan_parquet(self.run.folder / "probes.parquet")
            .group_by("direction")
            .agg(
                (delay.null_count() / pl.len()).alias("loss_ratio"),
                delay.quantile(0.5, "equiprobable").alias("one_way_delay_s.p50"),
                delay.quantile(0.99, "equiprobable").alias("one_way_delay_s.p99"),
            )
            .collect()
        )
        one_way = {
            f"{PROBES}.{links.WAYS[row['direction']]}.{name}": float("nan") if value is None else float(value)
            for row in rows.sort("direction").iter_rows(named=True)
            for name, value in row.items()
            if name != "direction"
        }
        there_and_back = round_trips.figures(self.run.probes) if rows.height > 1 else {}
        return one_way | {f"{ROUND_TRIP}.{name}": value for name, value in there_and_back.items()}


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


def _completed(window: Window, block: int) -> Array:
    return np.asarray(window.block_completed[block] * len(window.block_completed[block]))


def _shares(window: Window, block: int) -> Array:
    counts, done = window.block_cdf_counts[block, :, AT], window.block_completed[block]
    return np.asarray(np.divide(counts, done, out=np.full_like(counts, np.nan), where=done > 0))


_PARTS: Mapping[str, Callable[[Window, int], Array]] = {"completed": _completed, "share_under_500ms": _shares}
"""Numbers of a block that the parts of a window tell."""


def _is_apart(name: str) -> bool:
    return name.partition(".")[0] in APART


def estimate(runs: Sequence[Numbers], name: str) -> Interval:
    """A number of independent runs with the best interval that they allow; none where one of them has it not.

    Runs in which nobody asked for what it is of are left out.
    """
    check(name, runs)
    parts = [run.parts(name) for run in runs]
    known = [part for part in parts if part is not None]
    values = [value for run in runs if (value := run.measure(name)) is not None]
    found = statistics.estimate(values, known) if known else _across_runs(values)
    return coarse.no_finer(_told_by_spread(name, found), coarse.widest_s(name, values))


def difference(one: Sequence[Numbers], other: Sequence[Numbers], name: str, are_paired: bool) -> Interval:
    """The difference one - other: run by run under the same demands, part by part of single runs, else of both means.

    It is none where a run has no such number. Runs in which nobody asked for what it is of are left out.
    """
    check(name, [*one, *other])
    own, others = ([value for run in runs if (value := run.measure(name)) is not None] for runs in (one, other))
    found = _difference(one, other, name, are_paired, own, others)
    return coarse.no_finer(_told_by_spread(name, found), coarse.widest_s(name, own) + coarse.widest_s(name, others))


def _difference(
    one: Sequence[Numbers],
    other: Sequence[Numbers],
    name: str,
    are_paired: bool,
    own: Sequence[float],
    others: Sequence[float],
) -> Interval:
    if not are_paired:
        return statistics.unpaired(own, others) if own and others else _across_runs([])
    pairs = [(a.measure(name), b.measure(name)) for a, b in zip(one, other, strict=True)]
    parts = [(a.parts(name), b.parts(name)) for a, b in zip(one, other, strict=True)]
    known = [(a, b) for a, b in parts if a is not None and b is not None]
    if known:
        return statistics.paired(own, [a for a, _ in known], others, [b for _, b in known])
    return _across_runs([a - b for a, b in pairs if a is not None and b is not None])


def _across_runs(values: Sequence[float]) -> Interval:
    return statistics.across_runs(values) if values else Interval(float("nan"), None, 0, "none")


def _told_by_spread(name: str, found: Interval) -> Interval:
    """Of shares and counts of exchanges, and of probes' losses, no width where they are the same in every run: so few
    may there be that their spread says nothing of chance.
    """
    is_alike = found.basis == "runs" and (found.half_width or 0.0) <= statistics.EXACT
    return replace(found, half_width=None) if is_alike and _is_counted(name) else found


def _is_counted(name: str) -> bool:
    """Whether a number is a count of exchanges or the like, or a share of them, and no mean over many packets."""
    family, _, what = name.rpartition(".")
    if family.startswith(f"{PROBES}."):
        return what == "loss_ratio"
    if family.startswith(f"{APPLICATIONS}."):
        return what in _COUNTED
    return what == "completed" or what.startswith("share_under_")


_COUNTED = {what for one in by_application.APPLICATIONS for _, unit, what in one.headings if unit in ("share", "count")}
"""Of applications: shares and counts of pages, exchanges, films, frames and calls."""


def check(name: str, runs: Sequence[Numbers]) -> None:
    """Refuses what is no number of these runs, and names those that there are."""
    if isinstance(name, str) and (name in MEASURES or (_is_apart(name) and any(run.has(name) for run in runs))):
        return
    place = ways.place(name) if isinstance(name, str) else None
    if place is None:
        known = list(dict.fromkeys(one for run in runs for one in run.names))
        raise BadInput(f"{name!r}: no measure; {_meant(name, known) or _families(known)}")
    windows = [run.window for run in runs]
    if place.link and not all(place.link in window.links for window in windows):
        named = ", ".join(dict.fromkeys(link for window in windows for link in window.links))
        expected = named or "none, for there is one link"
        raise BadInput(f"{name!r}: {place.link}: no such link; expected one of {expected}")
    figures = [key for window in windows for key in window.figures if key.startswith(place.before)]
    there = list(dict.fromkeys((*QUOTIENTS, *(key.removeprefix(place.before) for key in figures))))
    if place.what not in there:
        meant = near.meant(place.what, there)
        raise BadInput(
            f"{name!r}: no number of a direction; {meant}{' ' * bool(meant)}expected {place.before} before one of "
            f"{', '.join(there)}"
        )


def _meant(name: object, known: Sequence[str]) -> str:
    """What has the name at its beginning or its end, or is near it."""
    if below := [one for one in known if one.startswith(f"{name}.")]:
        return f"expected one of {', '.join(below)}"
    longer = next((one for one in known if one.endswith(f".{name}")), "")
    return f"did you mean {longer}?" if longer else near.meant(name, known)


def _families(known: Sequence[str]) -> str:
    """The measures of the whole, and of each family of others how its names are made, with one that is there."""
    said = [
        f"one of {', '.join(MEASURES)}",
        f"forward. or reverse. before a number of one direction, as in forward.{OF_WAY[-1]}",
        "links.NAME.forward. or links.NAME.reverse. before that of one of several links",
    ]
    for family, words in _WORDS.items():
        own = next((one for one in known if one.startswith(f"{family}.")), "")
        said.append(f"{words}{f', as in {own}' if own else ', of which there are none here'}")
    return f"expected {'; '.join(said)}"


_WORDS = {
    TRAFFIC: "traffic.N. before a number of block N of the traffic",
    PROBES: "probes.forward., probes.reverse. or probes.round_trip. before one of probes that way",
    APPLICATIONS: "applications.NAME. before one of an application",
}
"""How the names are made of numbers that are of a part of the traffic."""
