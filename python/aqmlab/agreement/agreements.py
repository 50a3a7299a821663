"""Do two witnesses agree? Quantities of a simulated result beside those of a live one, each with its own noise.

Tolerances and the rule for a verdict are those of `verdicts`. Intervals come from independent runs. Of one run each,
those of its parts are shown and decide nothing: beside the open verdict stands on which
side of the tolerance the difference itself lies. Void runs are left out; where all are, the verdict is `void`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from aqmlab import links, statistics
from aqmlab.agreement import verdicts
from aqmlab.agreement.verdicts import DELAY_RELATIVE, DELAY_S, DISTANCE, LEAST_SHARE, RELATIVE, VOID
from aqmlab.json_files import Json, at
from aqmlab.links import WAYS
from aqmlab.results import store
from aqmlab.results.result import Result
from aqmlab.results.run import Run
from aqmlab.results.window import Counts, Window, condense, in_parts
from aqmlab.statistics import Array, Interval

if TYPE_CHECKING:
    from aqmlab.comparison import Comparison

FILE = "agreement.json"
LOADED = 0.10
"""Utilisation from which a direction is compared: below it, it carries acknowledgements."""


@dataclass(frozen=True)
class Finding:
    """One quantity as both witnesses have it."""

    key: str
    title: str
    unit: str
    simulated: Interval | None
    """`None` of a distance, which both have together."""
    live: Interval | None
    difference: Interval
    tolerance: float
    """In the quantity's unit, whatever it is relative to."""
    tolerance_text: str
    noise: dict[str, float | None] = field(default_factory=dict)
    """Of a distance: that between repetitions of each witness, mean over pairs; `None` with one run."""
    median_s: dict[str, float] = field(default_factory=dict)
    """Of the response times that a distance is between: their medians."""
    is_void: bool = False
    """Whether it was found by void runs alone."""

    @property
    def within(self) -> bool | None:
        """Whether the difference, as it stands, is within the tolerance."""
        if not math.isfinite(self.difference.value):
            return None
        return abs(self.difference.value) <= self.tolerance

    @property
    def verdict(self) -> str:
        """`agrees`, `differs`, `undecided` or `void`."""
        return VOID if self.is_void else verdicts.verdict(self.difference, self.tolerance)

    def as_dict(self) -> Json:
        """For JSON."""
        return {
            "key": self.key,
            "title": self.title,
            "unit": self.unit,
            "simulated": None if self.simulated is None else self.simulated.as_dict(),
            "live": None if self.live is None else self.live.as_dict(),
            "difference": self.difference.as_dict(),
            "tolerance": self.tolerance if math.isfinite(self.tolerance) else None,
            "tolerance_text": self.tolerance_text,
            "noise": self.noise or None,
            "median_s": self.median_s or None,
            "within": self.within,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Agreement:
    """How one witness agrees with the simulator about one variant."""

    name: str
    witness: str
    void: str | None
    """Why runs of the witness do not count, if some broke their budget."""
    findings: list[Finding]
    runs: dict[str, int] = field(default_factory=dict)
    """How many of each the findings are of, and how many void ones were left out."""

    @property
    def note(self) -> str:
        """What is to be said of void runs beside its name."""
        if not self.void:
            return ""
        left_out = self.runs["left_out"]
        return f"{left_out} of {left_out + self.runs['live']} runs void, left out" if left_out else "void"

    def count(self, verdict: str) -> int:
        """How many findings have a verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)

    def as_dict(self) -> Json:
        """For JSON."""
        return {
            "name": self.name,
            "witness": self.witness,
            "void": self.void,
            "runs": self.runs,
            "findings": [finding.as_dict() for finding in self.findings],
        }


class _Seen:
    """A result as one witness has it: of its runs those that count, or all where none does."""

    def __init__(self, result: Result) -> None:
        self.result = result
        counting = [run for run in result.runs if not run.void]
        self.is_void = not counting
        self.runs = counting or result.runs

    @cached_property
    def windows(self) -> list[Window]:
        return [condense(run) for run in self.runs]

    @cached_property
    def responses(self) -> list[Array]:
        """Response times of each run, in order."""
        return [_sorted(run) for run in self.runs if run.has_exchanges]

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]

    def values(self, read: Callable[[Json], float | None]) -> list[float]:
        """A figure of the summary, run by run."""
        return [_number(read(run.summary)) for run in self.runs]

    def figure(self, read: Callable[[Json], float | None], parts: Callable[[Window], Array] | None) -> Interval:
        """A figure of the summary: its mean over runs, with the interval across them or within the one."""
        values = self.values(read)
        if len(values) > 1:
            return statistics.across_runs(values)
        if parts is None:
            return Interval(values[0], None, 1, "none")
        return _of_parts(values[0], self.windows[0].trusted(parts(self.windows[0])))


class _Both:
    """Simulator and witness, and which of their runs belong together."""

    def __init__(self, simulated: Result, live: Result) -> None:
        self.simulated, self.live = self.each = _Seen(simulated), _Seen(live)
        demands = [result.manifest["demand_digest"] for result in (simulated, live)]
        self.same_demands = demands[0] is not None and demands[0] == demands[1]
        self.paired = verdicts.pairs(self.simulated.seeds, self.live.seeds, same_demands=self.same_demands)

    def difference(self, key: str, parts: Callable[[Window], Array] | None) -> Interval:
        """live - simulated."""
        read = _reader(key)
        ours, theirs = self.simulated.values(read), self.live.values(read)
        if self.same_demands and parts is not None and self.simulated.seeds == self.live.seeds and len(ours) == 1:
            a, b = (one.windows[0].trusted(parts(one.windows[0])) for one in (self.live, self.simulated))
            return _of_parts(theirs[0] - ours[0], a - b)
        return verdicts.gap(ours, theirs, self.paired)


def agreement(simulated: Result, live: Result, name: str = "", witness: str = "live") -> Agreement:
    """Lays a live result beside the simulated one of the same scenario."""
    both = _Both(simulated, live)
    findings: list[Finding] = []
    several = links.are_several(simulated.scenario)
    for link, (way, title) in product(links.of(simulated.scenario), enumerate(WAYS)):
        key = f"{links.MANY}.{link}.{title}" if several else title
        used = [one.figure(_reader(f"{key}.utilisation"), None).value for one in both.each]
        if max(used) >= LOADED:
            findings += _of_direction(both, way, key, link if several else "")
    findings += _of_transport(both)
    if (distance := _responses(both)) is not None:
        findings.append(distance)
    runs = {
        "simulated": len(both.simulated.runs),
        "live": len(both.live.runs),
        "left_out": len(live.runs) - len(both.live.runs),
    }
    findings = [replace(finding, is_void=both.live.is_void) for finding in findings]
    return Agreement(name or simulated.name, witness, live.void, findings, runs)


def of_comparison(found: "Comparison") -> list[Agreement]:
    """Every witness of a comparison beside the simulator, variant by variant."""
    simulated = {column.subject: column for column in found.columns if column.witness == "simulated"}
    return [
        agreement(simulated[column.subject].result, column.result, column.subject, column.witness)
        for column in found.columns
        if column.witness != "simulated" and column.subject in simulated
    ]


def write(found: "Comparison") -> list[Agreement]:
    """Writes `agreement.json` into a comparison's folder."""
    agreements = of_comparison(found)
    facts = {"comparison": found.name, "agreements": [item.as_dict() for item in agreements]}
    store.write_json(found.folder / FILE, facts)
    return agreements


def _of_direction(both: _Both, way: int, name: str, link: str) -> list[Finding]:
    """The quantities of the one link, or of a link of several; `name` is where its figures are in summaries."""
    said = f"{link} {WAYS[way]}".strip()

    def own(window: Window) -> Counts:
        return window.links[link] if link else window.link

    def ratio(top: str, bottom: str) -> Callable[[Window], Array]:
        def parts(window: Window) -> Array:
            a, b = getattr(own(window), top)[way], getattr(own(window), bottom)[way]
            return np.asarray(np.divide(a, b, out=np.full_like(a, np.nan), where=b > 0))

        return parts

    def busy(window: Window) -> Array:
        return in_parts(own(window), "utilisation", (way,))

    found = [
        _relative(both, f"{name}.utilisation", f"utilisation, {said}", "share", "utilisation", busy),
        _delay(both, name, said, ratio("delay_sum_s", "delivered")),
    ]
    for key, top, title in (("loss_ratio", "dropped", "loss"), ("mark_ratio", "marked", "marks")):
        read = _reader(f"{name}.{key}")
        if any((read(run.summary) or 0) > 0 for one in both.each for run in one.runs):
            parts = ratio(top, "offered")
            found.append(_relative(both, f"{name}.{key}", f"{title}, {said}", "share", key, parts, LEAST_SHARE))
    return found


def _of_transport(both: _Both) -> list[Finding]:
    offered = [sum(run.summary[way]["offered_packets"] or 0 for way in WAYS) for run in both.simulated.runs]
    least = LEAST_SHARE * float(np.mean(offered))
    found = [
        _relative(both, "tcp.goodput_bps", "goodput", "bps", "goodput"),
        _relative(both, "tcp.retransmitted_segments", "retransmitted", "count", "retransmitted", least=least),
    ]
    return [finding for finding in found if math.isfinite(finding.difference.value)]


def _reader(key: str) -> Callable[[Json], float | None]:
    def read(summary: Json) -> float | None:
        value = at(summary, key)
        return None if value is None else float(value)

    return read


def _relative(
    both: _Both,
    key: str,
    title: str,
    unit: str,
    kind: str,
    parts: Callable[[Window], Array] | None = None,
    least: float = 0.0,
) -> Finding:
    a, b = (one.figure(_reader(key), parts) for one in both.each)
    share = RELATIVE[kind] * abs(a.value)
    said = f"{100 * RELATIVE[kind]:g} %"
    if least > share:
        said = f"{100 * least:g} points" if unit == "share" else f"{least:.3g}"
    return Finding(key, title, unit, a, b, both.difference(key, parts), max(share, least), said)


def _delay(both: _Both, name: str, title: str, parts: Callable[[Window], Array]) -> Finding:
    key = f"{name}.queue_delay_mean_s"
    a, b = (one.figure(_reader(key), parts) for one in both.each)
    tolerance = max(DELAY_RELATIVE * abs(a.value), DELAY_S)
    said = f"{100 * DELAY_RELATIVE:g} % or {1000 * DELAY_S:g} ms"
    return Finding(key, f"mean queueing delay, {title}", "s", a, b, both.difference(key, parts), tolerance, said)


def _responses(both: _Both) -> Finding | None:
    samples = [one.responses for one in both.each]
    if any(len(one.responses) != len(one.runs) or not all(r.size for r in one.responses) for one in both.each):
        return None
    names = ("simulated", "live")
    return Finding(
        "response_distance",
        "response times, largest distance",
        "distance",
        None,
        None,
        verdicts.distance_gap(samples[0], samples[1], both.paired),
        DISTANCE,
        f"{DISTANCE:g}",
        {name: verdicts.repeated(one) for name, one in zip(names, samples, strict=True)},
        {name: float(np.median(np.concatenate(one))) for name, one in zip(names, samples, strict=True)},
    )


def _of_parts(value: float, parts: Array) -> Interval:
    """A part of the window without packets has neither delay nor shares."""
    return statistics.within_run(value, parts[np.isfinite(parts)])


def _sorted(run: Run) -> Array:
    return np.sort(run.exchanges["response_time_s"].to_numpy()).astype(np.float64)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
