"""What was kept of the witnesses, laid side by side: by the tolerances that were fixed before any run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aqmlab import statistics
from aqmlab.agreement import verdicts
from aqmlab.agreement.verdicts import DELAY_RELATIVE, DELAY_S, DISTANCE, LEAST_SHARE, RELATIVE
from aqmlab.agreement.words import counted
from aqmlab.statistics import Array, Interval

OTHERS = ("virtual", "kernel", "live")


@dataclass(frozen=True)
class Quantity:
    """What is compared."""

    key: str
    title: str
    scale: float
    digits: int
    relative: float
    least: float = 0.0
    """Tolerance below which none is asked, in the quantity's own unit."""


QUANTITIES = (
    Quantity("utilisation", "utilisation, %", 100, 2, RELATIVE["utilisation"]),
    Quantity("queue_delay_mean_s", "queueing delay, ms", 1000, 2, DELAY_RELATIVE, DELAY_S),
    Quantity("loss_ratio", "lost, %", 100, 3, RELATIVE["loss_ratio"], LEAST_SHARE),
    Quantity("mark_ratio", "marked, %", 100, 3, RELATIVE["mark_ratio"], LEAST_SHARE),
)


@dataclass(frozen=True)
class Found:
    """One quantity of one case, as the simulator and another witness have it."""

    case: str
    title: str
    witness: str
    quantity: str
    simulated: str
    other: str
    difference: str
    allowed: str
    verdict: str


def findings(kept: dict[str, Any]) -> list[Found]:
    """All quantities of a case, witness by witness."""
    runs = {name: _counting(one["runs"]) for name, one in kept["witnesses"].items()}
    found = []
    for witness in OTHERS:
        base, other = runs.get("simulated", []), runs.get(witness, [])
        if not base or not other:
            continue
        # Of web users a seed has the same ones in both; flows that always have data have nothing of it in common.
        seeds = [[run["seed"] for run in one] for one in (base, other)]
        pairs = verdicts.pairs(seeds[0], seeds[1], same_demands=kept.get("kind") == "web")
        few = _Few.of(base, runs.get("twin", []), other)
        for quantity in QUANTITIES:
            values = [[float(run[quantity.key] or 0.0) for run in one] for one in (base, other)]
            if quantity.key.endswith("ratio") and not any(map(sum, values)):
                continue
            gap = few.gap(quantity.key) if few else verdicts.gap(values[0], values[1], pairs)
            found.append(_compared(kept, witness, quantity, values[0], values[1], gap))
        if all("response_time_s" in run for run in (*base, *other)):
            found.append(_distance(kept, witness, base, other, few, pairs))
    return found


@dataclass(frozen=True)
class _Few:
    """A few runs of a witness beside the simulator's under the same seeds, and the simulator's twins."""

    twins: list[tuple[dict[str, Any], dict[str, Any]]]
    """A simulated run and its twin."""
    pairs: list[tuple[dict[str, Any], dict[str, Any]]]
    """A simulated run and the witness's."""

    @staticmethod
    def of(
        base: Sequence[dict[str, Any]], twins: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]
    ) -> _Few | None:
        """`None` where there are no twins, or pairs enough to do without."""
        found = _Few(*([(a, b) for a in base for b in those if a["seed"] == b["seed"]] for those in (twins, other)))
        is_few = 0 < len(found.pairs) < verdicts.FEW <= len(found.twins)
        return found if is_few else None

    def gap(self, key: str) -> Interval:
        """The gap of a quantity."""
        ones, others = zip(*((float(a[key] or 0.0), float(b[key] or 0.0)) for a, b in self.twins), strict=True)
        return verdicts.twin_gap(ones, others, [float(b[key] or 0.0) - float(a[key] or 0.0) for a, b in self.pairs])

    def distance_gap(self) -> Interval:
        """The gap of the response times."""
        ones, others = zip(*((_times(a), _times(b)) for a, b in self.twins), strict=True)
        return verdicts.twin_distance_gap(ones, others, [(_times(a), _times(b)) for a, b in self.pairs])


def _times(run: dict[str, Any]) -> Array:
    return np.asarray(run["response_time_s"], dtype=np.float64)


def _counting(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [run for run in runs if "void" not in run]


def _compared(
    kept: dict[str, Any],
    witness: str,
    quantity: Quantity,
    ours: Sequence[float],
    theirs: Sequence[float],
    gap: Interval,
) -> Found:
    one, other = statistics.across_runs(ours), statistics.across_runs(theirs)
    tolerance = max(quantity.relative * abs(one.value), quantity.least)
    allowed = f"{100 * quantity.relative:g} %"
    if quantity.least and tolerance == quantity.least:
        allowed = f"{quantity.least * quantity.scale:g} {'ms' if quantity.key.endswith('_s') else 'points'}"
    size = abs(one.value) or math.nan
    width = "" if gap.half_width is None else f" ± {100 * gap.half_width / size:.1f}"
    said = f"{100 * gap.value / size:+.1f}{width} %"
    shown = (_said(one, quantity), _said(other, quantity))
    verdict = verdicts.verdict(gap, tolerance)
    return Found(kept["case"], kept["title"], witness, quantity.title, *shown, said, allowed, verdict)


def _said(interval: Interval, quantity: Quantity) -> str:
    value = f"{interval.value * quantity.scale:.{quantity.digits}f}"
    if interval.half_width is None:
        return value
    return f"{value} ± {interval.half_width * quantity.scale:.{quantity.digits}f}"


def _distance(
    kept: dict[str, Any],
    witness: str,
    base: Sequence[dict[str, Any]],
    other: Sequence[dict[str, Any]],
    few: _Few | None,
    pairs: list[tuple[int, int]] | None,
) -> Found:
    """Distributions of all runs, and how far repetitions of the same witness are from each other."""
    samples = [[_times(run) for run in one] for one in (base, other)]
    gap = few.distance_gap() if few else verdicts.distance_gap(samples[0], samples[1], pairs)
    width = "" if gap.half_width is None else f" ± {gap.half_width:.3f}"
    shown = [_or_dash(verdicts.repeated(one)) for one in samples]
    return Found(
        kept["case"],
        kept["title"],
        witness,
        "response times, distance",
        shown[0],
        shown[1],
        f"{gap.value:.3f}{width}",
        f"{DISTANCE:g}",
        verdicts.verdict(gap, DISTANCE),
    )


def _or_dash(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


HEAD = ("case", "witness", "quantity", "simulator", "witness's", "difference", "allowed", "")


def rows(kept: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Rows of the table."""
    return [
        (f.title, f.witness, f.quantity, f.simulated, f.other, f.difference, f.allowed, f.verdict)
        for one in kept
        for f in findings(one)
    ]


def print_table(kept: Sequence[dict[str, Any]]) -> None:
    """The table, in columns."""
    table = [HEAD, *rows(kept)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEAD))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(_counts(kept, table[1:]))


def markdown(kept: Sequence[dict[str, Any]]) -> str:
    """The table as docs/validation.md has it, with what it was measured with."""
    versions = sorted(
        {
            f"{name}: " + ", ".join(filter(None, (f"aqmlab {run['aqmlab']}", _kernel(run), run["date"])))
            for case in kept
            for name, one in case["witnesses"].items()
            for run in _counting(one["runs"])
        }
    )
    table = rows(kept)
    lines = [f"{'; '.join(versions)}.", "", f"{_counts(kept, table)}.", ""]
    lines += ["| " + " | ".join(HEAD) + " |", "| --- | --- | --- | --: | --: | --: | --: | --- |"]
    lines += ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join(lines)


def _counts(kept: Sequence[dict[str, Any]], table: Sequence[tuple[str, ...]]) -> str:
    """How many verdicts of each kind, and how many runs were left out because they were void."""
    void = sum("void" in run for one in kept for each in one["witnesses"].values() for run in each["runs"])
    return counted([row[-1] for row in table]) + (f"; {void} void runs left out" if void else "")


def _kernel(run: dict[str, Any]) -> str:
    return f"Linux {run['kernel']}" if "kernel" in run else ""
