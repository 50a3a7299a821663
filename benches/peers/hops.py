"""What the comparisons over several links share: the figures of each hop, a table of them, and the command line."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import marked
from compare_ns2 import DOCS, FAIL, T95, aligned, aqmlab_version, counted, find_aqmlab, verdict
from ns2_reference import Measure, Run, RunError, markdown, output_of, progress, today

HEADINGS = ["quantity", "{peer}", "(sd)", "aqmlab", "(sd)", "difference", "allowed", "verdict"]


@dataclass(frozen=True)
class Series:
    """One quantity at one place, run by run, in the peer and in aqmlab."""

    case: str
    place: str
    measure: Measure
    peer: list[float]
    ours: list[float]

    @property
    def difference(self) -> float:
        """The difference of the means, relative to the peer's."""
        base, other = statistics.fmean(self.peer), statistics.fmean(self.ours)
        return (other - base) / (abs(base) or abs(other) or 1.0)

    @property
    def uncertainty(self) -> float:
        """Half the 95 % interval of the difference."""
        variance = sum(statistics.variance(values) / len(values) for values in (self.peer, self.ours))
        # Welch's degrees of freedom are at least those of the smaller sample, which errs on the wide side.
        quantile = T95[min(len(self.peer), len(self.ours)) - 1]
        return quantile * math.sqrt(variance) / (abs(statistics.fmean(self.peer)) or 1.0)

    @property
    def verdict(self) -> str:
        """Whether the difference is within the tolerance, as `compare_ns2.verdict` has it."""
        return verdict(self.difference, self.uncertainty, self.measure.tolerance)

    def cells(self) -> list[str]:
        """A row of the table."""
        form, tolerance = self.measure.form.format, self.measure.tolerance
        columns = [form(of(values)) for values in (self.peer, self.ours) for of in (statistics.fmean, statistics.stdev)]
        return [
            f"{self.case}; {self.place}",
            self.measure.title,
            columns[0],
            f"({columns[1]})",
            columns[2],
            f"({columns[3]})",
            f"{self.difference * 100:+.1f} ± {self.uncertainty * 100:.1f} %",
            "" if tolerance is None else f"{tolerance * 100:g} %",
            self.verdict,
        ]


def series(case: str, measures: Sequence[Measure], peer: Sequence[Places], ours: Sequence[Places]) -> list[Series]:
    """All that both sides say of a case, place by place."""
    return [
        Series(
            case, place, measure, [run[place][measure.key] for run in peer], [run[place][measure.key] for run in ours]
        )
        for place in peer[0]
        for measure in measures
        if measure.key in peer[0][place]
    ]


Places = dict[str, Run]
"""The figures of a run by the place where they were taken."""


def summary_of(aqmlab: Sequence[str], scenario: str, seed: int) -> dict[str, Any]:
    """The summary of one run of aqmlab."""
    with tempfile.TemporaryDirectory(prefix="hops-") as name:
        folder = Path(name)
        file = folder / "scenario.toml"
        file.write_text(scenario)
        words = [*aqmlab, "run", str(file), "--seed", str(seed), "-o", str(folder / "result"), "--json"]
        summary: dict[str, Any] = json.loads(output_of(words))
        return summary


@dataclass(frozen=True)
class Comparison:
    """A peer's kept figures and how the same are got from aqmlab."""

    program: str
    """Its own name, and that of its table in docs/validation.md."""
    peer: str
    """Its name and version, and of when its figures are."""
    titles: dict[str, str]
    """The title of each case, by its name."""
    measures: Sequence[Measure]
    kept: Callable[[str], list[Places]]
    """The peer's runs of a case."""
    run: Callable[[Sequence[str], str, int], Places]
    """One run of aqmlab of a case, with a seed."""
    runs: int
    """Of aqmlab, unless said otherwise."""

    def main(self, words: Sequence[str]) -> int:
        """Runs, prints, and returns the exit code."""
        args = self.arguments(words)
        aqmlab = find_aqmlab()
        lines: list[Series] = []
        for name in [name for name in self.titles if not args.case or name in args.case]:
            ours = []
            for seed in range(1, args.seeds + 1):
                progress(f"{name}, seed {seed}")
                ours.append(self.run(aqmlab, name, seed))
            lines += series(self.titles[name], self.measures, self.kept(name), ours)
        progress("")
        rows = [["case and place", *(word.format(peer=self.peer.split()[0]) for word in HEADINGS)]]
        rows += [line.cells() for line in lines]
        heading = f"{self.peer} and {aqmlab_version(aqmlab)}, {today()}, {args.seeds} runs of aqmlab"
        print(f"{heading}\n\n{aligned(rows)}\n\n{counted([line.verdict for line in lines])}")
        if args.update_docs:
            text = f"{heading}. Differences with their 95 % uncertainty.\n\n{markdown(rows)}"
            marked.put(DOCS, self.program, text)
        return 1 if any(line.verdict == FAIL for line in lines) else 0

    def arguments(self, words: Sequence[str]) -> argparse.Namespace:
        """The command line."""
        parser = argparse.ArgumentParser(prog=f"{self.program}.py")
        parser.add_argument("--case", action="append", choices=[*self.titles], help="only this case (may be repeated)")
        parser.add_argument("--seeds", type=int, default=self.runs, metavar="N", help=f"runs (default {self.runs})")
        parser.add_argument("--update-docs", action="store_true", help="write the table into docs/validation.md")
        args = parser.parse_args(words)
        if not 2 <= args.seeds <= len(T95):
            raise RunError(f"--seeds {args.seeds}: expected 2 to {len(T95)}")
        if args.update_docs and args.case:
            raise RunError("--update-docs with --case: expected all cases")
        return args
