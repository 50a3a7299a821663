"""A comparison: several results under the same demands, and what differs between them."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from aqmlab import arguments, engine, links, reference, statistics, variants
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.json_files import Json, read_json
from aqmlab.live.witnesses import SIMULATED
from aqmlab.results import named, store, ways
from aqmlab.results.result import Result, Temporary
from aqmlab.results.window import MEASURES, OF_LINK, Window
from aqmlab.scenario import digest
from aqmlab.statistics import Array, Interval

FILE = "comparison.json"
SOURCE = "comparison.toml"
"""The comparison as a file that can be given to `compare` again."""


@dataclass(frozen=True)
class Entry:
    """One result of a comparison and where it lies, relative to the comparison's folder."""

    name: str
    folder: str
    uncongested: bool
    witness: str = SIMULATED
    """Who says so: the simulator, or a test bed, by the names of `live.witnesses`."""
    subject: str = ""
    """The variant that a witness speaks of, if it is not called so itself."""


class Column:
    """One result as the comparison sees it."""

    def __init__(self, entry: Entry, result: Result, is_baseline: bool = True) -> None:
        """`is_baseline` of what the others are measured against, as a result by itself is."""
        self.is_baseline = is_baseline
        self.name = entry.name
        self.uncongested = entry.uncongested
        self.witness = entry.witness
        self.subject = entry.subject or entry.name
        self.result = result

    def __repr__(self) -> str:
        """Name, runs and where they lie."""
        reference = ", uncongested" if self.uncongested else ""
        return f"<Column {self.name!r}{reference}: {len(self.result.runs)} run(s) in {self.result.folder}>"

    @property
    def label(self) -> str:
        """What it is called in tables and figures: one that does not count says so."""
        if self.void:
            return f"{self.name} (void)"
        return f"{self.name} (congested)" if self.congestion else self.name

    @property
    def void(self) -> str | None:
        """Why it does not count, if a live run of it broke its budget."""
        return self.result.void

    @cached_property
    def congestion(self) -> str | None:
        """What was found on a link that was to be uncongested and was not, in the first of its runs that says so."""
        if not self.uncongested:
            return None
        checks = [reference.check(summary, self.scenario, self.name) for summary in self.summaries]
        return next((check.detail for check in checks if not check.holds), None)

    @cached_property
    def windows(self) -> list[Window]:
        """The condensed window of each run."""
        return self.result.windows

    @property
    def summaries(self) -> list[Json]:
        """The summary of each run."""
        return [run.summary for run in self.result.runs]

    def of_parts(self, run: int) -> Mapping[str, float | None]:
        """What one of its runs has of parts of the traffic, by names such as `applications.calls.mos_mean`."""
        return self.result.numbers[run].of_parts

    @property
    def scenario(self) -> Json:
        """The resolved scenario, with the seed of the first run."""
        return self.result.scenario

    @property
    def qdisc(self) -> Json:
        """The forward discipline with all its parameters; of several links that of the first."""
        return dict(links.first(self.scenario)["qdisc"])

    @property
    def ecn(self) -> bool:
        """Whether the discipline of a link marks and the hosts understand it."""
        marks = any(link["qdisc"].get("ecn", False) for link in links.of(self.scenario).values())
        return marks and self.scenario.get("tcp", {}).get("ecn", "off") != "off"

    @cached_property
    def demand(self) -> tuple[str | None, tuple[int, ...]]:
        """What was demanded: two columns with the same are compared pair by pair."""
        return self.result.manifest["demand_digest"], tuple(run.seed for run in self.result.runs)

    def estimate(self, measure: str) -> Interval:
        """A measure with the best interval these runs allow: `p90`, or of one direction `forward.queue_delay_p99_s`.

        Of a direction that is every number that the summary has. `loss_ratio` alone is of both directions together.
        `applications.calls.mos_mean` and every other name of `numbers.csv` can be asked for, too. Raises `BadInput`
        where these runs have no such number.
        """
        return self.result.estimate(measure)

    def statistic(self, whole: Callable[[Window], float], parts: Callable[[Window], Array]) -> Interval:
        """The mean of any function of a window, with an interval from its parts: `parts` gives an array [part]."""
        return statistics.estimate([whole(w) for w in self.windows], self.each(parts))

    def each(self, parts: Callable[[Window], Array]) -> list[Array]:
        """A function of the parts of each window, [part], as far as they can be trusted."""
        return [w.trusted(parts(w)) for w in self.windows]

    @cached_property
    def cdf(self) -> Array:
        """Distribution function of response times at `CDF_TIMES`, mean over runs: [time]."""
        return np.asarray(np.mean([w.cdf for w in self.windows], axis=0))

    @cached_property
    def tail(self) -> Array:
        """Share of exchanges slower than `TAIL_TIMES`, mean over runs: [time]."""
        return np.asarray(np.mean([w.tail for w in self.windows], axis=0))

    @cached_property
    def completed(self) -> float:
        """Exchanges completed in all runs."""
        return float(sum(w.completed.sum() for w in self.windows))


@dataclass(frozen=True)
class Failure:
    """A variant that has no result, because a law of its own broke its promises."""

    name: str
    message: str
    """What it did, in a line."""
    laws: tuple[str, ...]
    """The laws of one's own in its scenario."""


class Incomplete(Misbehaved):
    """A law of a comparison has broken its promises; the other variants were run, and are `comparison`."""

    def __init__(self, comparison: "Comparison") -> None:
        """Says what every law did that failed."""
        super().__init__("; ".join(failure.message for failure in comparison.failed))
        self.comparison = comparison

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.comparison,)


class Comparison:
    """A finished comparison folder."""

    def __init__(
        self, folder: Path, keep: Temporary | None = None, condensed: Mapping[Path, Window] | None = None
    ) -> None:
        """`condensed` are the windows of runs that are known already, by folder."""
        self.folder = folder
        self._keep: list[Any] = [keep]
        self.facts = read_json(folder / FILE)
        if not self.facts.get("complete"):
            raise BadInput(f"{folder}: the comparison is not finished; expected {arguments.again()} first")
        self.failed = [_failure(facts) for facts in self.facts.get("failed", [])]
        self.columns: list[Column] = []
        for facts in self.facts["entries"]:
            entry = Entry(**facts)
            result = Result(folder / entry.folder, keep, condensed)
            self.columns.append(Column(entry, result, entry.name == self.facts["baseline"]))

    def __repr__(self) -> str:
        """Names and where it lies."""
        return f"<Comparison of {', '.join(c.name for c in self.columns)} in {self.folder}>"

    def __getitem__(self, name: str) -> Result:
        """The result of one variant. Raises `BadInput` where there is none of that name."""
        return self.column(name).result

    def __len__(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    def __iter__(self) -> Iterator[str]:
        """The names of the columns."""
        return (column.name for column in self.columns)

    @property
    def name(self) -> str:
        """What the comparison is called."""
        return str(self.facts.get("name") or self.folder.name)

    @property
    def digest(self) -> str:
        """SHA-256 over what all runs found."""
        return str(self.facts["digest"])

    @property
    def baseline(self) -> Column:
        """The one the others are measured against."""
        return self.column(self.facts["baseline"])

    @property
    def witnesses(self) -> list[str]:
        """The witnesses of the variants, beside the simulator."""
        names = [column.witness for column in self.columns if column.witness != SIMULATED]
        return list(dict.fromkeys(names))

    def base_of(self, column: Column) -> Column:
        """What a column is measured against: the baseline as seen by the same witness, where there is that."""
        base = self.baseline
        for other in self.columns:
            if (other.subject, other.witness) == (base.subject, column.witness):
                return other
        return base

    @property
    def uncongested(self) -> Column | None:
        """The reference on the uncongested link, if there is one."""
        return next((column for column in self.columns if column.uncongested), None)

    @property
    def congested(self) -> list[Column]:
        """All but the reference."""
        return [column for column in self.columns if not column.uncongested]

    @property
    def reps(self) -> int:
        """Independent runs of each variant (the fewest, where they differ)."""
        return min(len(column.result.runs) for column in self.columns)

    @cached_property
    def has_several_links(self) -> bool:
        """Whether figures of links are told link by link: a column has several, or their links have different names."""
        return links.are_several_in(column.scenario for column in self.columns)

    @cached_property
    def load(self) -> float | None:
        """The calibrated load as a share of the link's rate, if all have the same and there is one link."""
        if self.has_several_links:
            return None
        rate, _ = reference.rates_of(self.baseline.scenario, self.baseline.name)
        loads = {found["load_bps"] / rate for column in self.columns for found in column.result.calibration}
        return loads.pop() if len(loads) == 1 else None

    @cached_property
    def ways_of_data(self) -> list[str]:
        """The directions in which data flows on the first link: forward first, unless the queue is clearly longer in
        reverse."""
        return ways_of_data(self.columns)

    def column(self, name: str) -> Column:
        """A variant by its name. Raises `BadInput` where there is none of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise BadInput(f"{name!r}: expected one of {', '.join(column.name for column in self.columns)}")

    def hold(self, results: Sequence[Result]) -> None:
        """Keeps results alive that live in temporary folders."""
        self._keep.append(results)

    def are_paired(self, one: Column, other: Column) -> bool:
        """Whether two were put under the same demands."""
        return one.demand == other.demand and one.demand[0] is not None

    def unlike(self, one: Column, other: Column) -> str:
        """What keeps two from being compared pair by pair, in two words; nothing where they are."""
        if self.are_paired(one, other):
            return ""
        is_of_seeds = one.demand[0] == other.demand[0] is not None
        return "other seeds" if is_of_seeds else "other demands"

    def difference(self, one: Column | str, other: Column | str, measure: str) -> Interval:
        """The difference one - other of a measure, of two columns or their names.

        Raises `BadInput` where there is no such column, or one of the two has no such number.
        """
        one, other = (item if isinstance(item, Column) else self.column(item) for item in (one, other))
        return named.difference(one.result.numbers, other.result.numbers, measure, self.are_paired(one, other))

    def _compared(self, one: Column, other: Column, measure: str) -> Interval:
        """Their difference; not a number of the first link, where the two have not the same links."""
        place = ways.place(measure)
        is_of_first = measure in OF_LINK or (place is not None and not place.link)
        if is_of_first and not links.are_alike([one.scenario, other.scenario]):
            return Interval(math.nan, None, min(len(one.windows), len(other.windows)), "none")
        return self.difference(one, other, measure)

    def as_dict(self) -> Json:
        """Everything in numbers, for JSON."""
        base = self.baseline
        own = {column.name: [*MEASURES, *column.windows[0].measures_of_ways] for column in self.columns}
        return {
            "name": self.name,
            "folder": str(self.folder),
            "digest": self.digest,
            "baseline": base.name,
            "runs": self.reps,
            "load": self.load,
            "variants": [
                {
                    "name": column.name,
                    "folder": str(column.result.folder),
                    "uncongested": column.uncongested,
                    "witness": column.witness,
                    "void": column.void,
                    "paired": self.are_paired(column, self.base_of(column)),
                    "measures": {measure: column.estimate(measure).as_dict() for measure in own[column.name]},
                    "difference_to_baseline": None
                    if column is self.base_of(column)
                    else {
                        measure: self._compared(column, self.base_of(column), measure).as_dict()
                        for measure in own[column.name]
                        if measure in own[base.name]
                    },
                    "summary": column.result.summary,
                }
                for column in self.columns
            ],
            "failed": [{"name": failure.name, "message": failure.message} for failure in self.failed],
        }


def ways_of_data(columns: Sequence[Column], on_every_link: bool = False) -> list[str]:
    """The directions in which data flows on the first link or on any; in others acknowledgements do.

    Forward is first, unless the baseline's queue is clearly longer in reverse.
    """
    base = [column for column in columns if column.is_baseline]
    summaries = _figures_of(columns, on_every_link)
    return ways.of_data(summaries, _figures_of(base, on_every_link)) if summaries else []


def _figures_of(columns: Sequence[Column], on_every_link: bool) -> list[Json]:
    """Figures of the first link in each run, or of each link."""
    if not on_every_link:
        return [summary for column in columns for summary in column.summaries]
    return [
        dict(links.figures(summary, link))
        for column in columns
        for summary in column.summaries
        for link in links.of(column.scenario)
    ]


def _failure(facts: Json) -> Failure:
    return Failure(str(facts["name"]), str(facts["message"]), tuple(map(str, facts["laws"])))


def write_plan(
    folder: Path, name: str | None, entries: Sequence[Entry], baseline: str, plan: Mapping[str, Sequence[str]]
) -> None:
    """Says what the folder will hold, before anything runs; failures of before are kept until the runs are over."""
    path = folder / FILE
    facts = {
        "failed": read_json(path).get("failed", []) if path.exists() else [],
        "kind": "comparison",
        "version": engine.version(),
        "complete": False,
        "name": name,
        "baseline": baseline,
        "entries": [vars(entry) for entry in entries],
        "scenario_digests": {key: list(digests) for key, digests in plan.items()},
    }
    store.write_json(folder / FILE, facts)


def same_plan(folder: Path, plan: Mapping[str, Sequence[str]], laws: Mapping[str, Sequence[str]]) -> None:
    """Refuses to go on with a folder that holds another comparison.

    A law that failed may have been repaired: `laws` are those of one's own in each variant.
    """
    if not (folder / FILE).exists():
        raise BadInput(f"{folder}: holds no comparison; expected the folder of the one to be resumed")
    facts = read_json(folder / FILE)
    failed = {law for one in facts.get("failed", []) for law in one["laws"]}
    now = {name: list(digests) for name, digests in plan.items()}
    before = dict(facts.get("scenario_digests") or {})
    for name in before.keys() & now.keys():
        if not failed.isdisjoint(laws.get(name, ())):
            before[name] = now[name]  # with another file of the law it is another scenario
    if before != now:
        raise BadInput(f"{folder}: holds another comparison; expected the same scenario, variants, seed and reps")


def note_failure(folder: Path, name: str, message: str, laws: Mapping[str, Sequence[str]]) -> None:
    """Keeps that a variant has failed while others run, so that its law may be repaired although they never end.

    `laws` are those of one's own in each variant.
    """
    failure = Failure(name, message, tuple(laws[name]))
    facts = read_json(folder / FILE)
    others = [one for one in facts["failed"] if one["name"] != failure.name]
    store.write_json(folder / FILE, facts | {"failed": [*others, asdict(failure)]})


def settle_failures(
    folder: Path,
    failed: Mapping[str, str],
    laws: Mapping[str, Sequence[str]],
    rows: Sequence[tuple[str, bool, bool, str]],
    baseline: str,
) -> None:
    """Takes variants without a result out of a comparison, and says why.

    `failed` has what was wrong by the name of each, and `laws` those of one's own. Where the baseline failed, the
    others are measured against another of `rows`, as `variants.choose_baseline` has them. Raises `Misbehaved` where
    nothing is left but the uncongested reference.
    """
    rest = [row for row in rows if row[0] not in failed]
    is_left, said = any(not is_reference for _, is_reference, *_ in rest), dict(failed)
    if is_left and baseline in failed:
        instead = variants.choose_baseline(rest, None)
        said[baseline] += f"; the others are compared with {instead} instead"
        baseline = instead
    failures = [Failure(name, said[name], tuple(laws[name])) for name in laws if name in failed]
    facts = read_json(folder / FILE)
    facts["entries"] = [entry for entry in facts["entries"] if entry["name"] not in failed]
    facts |= {"baseline": baseline, "failed": [asdict(failure) for failure in failures]}
    store.write_json(folder / FILE, facts)
    if failures and not is_left:
        raise Misbehaved("; ".join(failure.message for failure in failures))


def finish(folder: Path, keep: Temporary | None = None, condensed: Mapping[Path, Window] | None = None) -> Comparison:
    """Marks a comparison as complete once all its runs are."""
    facts = read_json(folder / FILE)
    results = [Result(folder / entry["folder"]) for entry in facts["entries"]]
    facts["complete"] = True
    facts["digest"] = digest([result.digest for result in results])
    store.write_json(folder / FILE, facts)
    return Comparison(folder, keep, condensed)


def path_from(folder: Path, target: Path) -> str:
    """Where a result lies, seen from the comparison's folder."""
    return os.path.relpath(target.resolve(), folder.resolve())
