"""Long TCP flows over one bottleneck in ns-2 and in aqmlab, side by side.

Runs ns2_bulk.tcl and bulk.toml, which describe the same network, under each discipline with several seeds and compares
the means over the seeds with the tolerances of ns2_reference.py. Installs nothing.

    python benches/peers/compare_ns2.py                  both simulators, both columns, pass or fail
    python benches/peers/compare_ns2.py --update-docs    and put the table into docs/validation.md
    python benches/peers/compare_ns2.py --stored         ns-2's column from ns2_reference.json instead of a run

Exit codes: 0 all within tolerance, 1 something is not, 2 bad input or a run failed, 3 a simulator is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import marked
from ns2_reference import (
    CASES,
    HERE,
    MEASURES,
    REFERENCE,
    Case,
    Columns,
    Measure,
    MissingError,
    Run,
    RunError,
    every_run,
    find_ns2,
    guarded,
    markdown,
    mean,
    ns2_version,
    numbers,
    output_of,
    run_ns2,
    sd,
    today,
)

DOCS = HERE.parent.parent / "docs" / "validation.md"
HOSTS = "[tcp]\n"


def find_aqmlab() -> list[str]:
    """The `aqmlab` of the environment this runs in."""
    beside = Path(sys.executable).parent / "aqmlab"
    if beside.is_file():
        return [str(beside)]
    found = shutil.which("aqmlab")
    if found is None:
        raise MissingError("aqmlab is missing: make build")
    return [found]


def scenario_of(case: Case) -> str:
    """bulk.toml with the hosts and, in its last table, the discipline of `case`."""
    before, found, _ = (HERE / "bulk.toml").read_text().partition("[link.qdisc]\n")
    if not found or HOSTS not in before:
        raise RunError("bulk.toml: expected [link.qdisc] as its last table, and [tcp]")
    return f"{before.replace(HOSTS, HOSTS + case.hosts)}[link.qdisc]\n{case.qdisc}"


def run_aqmlab(aqmlab: Sequence[str], case: Case, seed: int) -> Run:
    """One run of aqmlab on the same network; the figures under the names ns2_bulk.tcl gives them."""
    with tempfile.TemporaryDirectory(prefix="compare-ns2-") as folder:
        scenario = Path(folder) / f"{case.name}.toml"
        scenario.write_text(scenario_of(case))
        out = Path(folder) / "result"
        text = output_of([*aqmlab, "run", str(scenario), "--seed", str(seed), "-o", str(out), "--json"])
    summary = json.loads(text)
    forward, tcp, engine = summary["forward"], summary["tcp"], summary["engine"]
    return numbers(
        {
            **{m.key: forward[m.key] for m in MEASURES if m.key in forward},
            "timeouts": tcp["timeouts"],
            "retransmits": tcp["retransmitted_segments"],
            "goodput_bps": tcp["goodput_bps"],
            "run_departures": engine["bottleneck_packets"],
            "cpu_s": engine["cpu_s"],
        }
    )


def aqmlab_version(aqmlab: Sequence[str]) -> str:
    """What `aqmlab --version` says."""
    text = output_of([*aqmlab, "--version"]).strip()
    return text if text.startswith("aqmlab") else f"aqmlab {text}"


# Two-sided 95 % points of Student's t by degrees of freedom (the first is not used); beyond the table 1.96 is 5 % short
# at most.
T95: tuple[float, ...] = (
    *(math.inf, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26),
    *(2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09),
    *(2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05),
)


PASS, FAIL, UNDECIDED = "pass", "FAIL", "undecided"


def verdict(difference: float, uncertainty: float, tolerance: float | None) -> str:
    """What is said of a difference; nothing where there is no tolerance.

    `pass` where its whole interval is within the tolerance, `FAIL` where it is beyond it itself, `undecided` where runs
    were too few to tell.
    """
    if tolerance is None:
        return ""
    if abs(difference) > tolerance:
        return FAIL
    return PASS if abs(difference) + uncertainty <= tolerance else UNDECIDED


def counted(verdicts: Sequence[str]) -> str:
    """How many passed, and how many are undecided."""
    judged = [one for one in verdicts if one]
    said = f"{judged.count(PASS)} of {len(judged)} quantities within tolerance"
    return said if UNDECIDED not in judged else f"{said}, {judged.count(UNDECIDED)} undecided"


@dataclass(frozen=True)
class Line:
    """One quantity under one discipline."""

    case: Case
    measure: Measure
    ns2: float
    ns2_sd: float
    ours: float
    ours_sd: float
    difference: float
    uncertainty: float

    @property
    def verdict(self) -> str:
        """In a word, as `verdict` has it."""
        return verdict(self.difference, self.uncertainty, self.measure.tolerance)

    def values(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "case": self.case.name,
            "quantity": self.measure.key,
            "ns2": self.ns2,
            "ns2_sd": self.ns2_sd,
            "aqmlab": self.ours,
            "aqmlab_sd": self.ours_sd,
            "difference": self.difference,
            "uncertainty": None if math.isnan(self.uncertainty) else self.uncertainty,
            "verdict": self.verdict,
        }


def compare(cases: Sequence[Case], ns2: Columns, ours: Columns) -> list[Line]:
    """All lines of the table. Differences and their 95 % uncertainty are relative to ns-2's mean."""
    lines = []
    for case in cases:
        a, b = ns2[case.name], ours[case.name]
        for measure in MEASURES:
            if not all(measure.key in run for run in (*a, *b)):
                raise RunError(f"{case.name}: a run without {measure.key}")
            base, other = mean(a, measure.key), mean(b, measure.key)
            sds = sd(a, measure.key), sd(b, measure.key)
            error = math.sqrt(sds[0] ** 2 / len(a) + sds[1] ** 2 / len(b))
            # Welch's degrees of freedom are at least those of the smaller sample, which errs on the wide side.
            freedom = min(len(a), len(b)) - 1
            half = (T95[freedom] if freedom < len(T95) else 1.96) * error if freedom > 0 else math.nan
            # Against a mean of 0 only 0 is no difference.
            scale = abs(base) if base else (abs(other) or 1.0)
            lines.append(Line(case, measure, base, sds[0], other, sds[1], (other - base) / scale, half / scale))
    return lines


def table(lines: Sequence[Line]) -> list[list[str]]:
    """The table as rows of text."""
    rows = [["discipline", "quantity", "ns-2", "(sd)", "aqmlab", "(sd)", "difference", "allowed", "verdict"]]
    for line in lines:
        form = line.measure.form.format
        tolerance = line.measure.tolerance
        spread = "" if math.isnan(line.uncertainty) else f" ± {line.uncertainty * 100:.1f}"
        rows.append(
            [
                line.case.title,
                line.measure.title,
                form(line.ns2),
                f"({form(line.ns2_sd)})",
                form(line.ours),
                f"({form(line.ours_sd)})",
                f"{line.difference * 100:+.1f}{spread} %",
                "" if tolerance is None else f"{tolerance * 100:.0f} %",
                line.verdict,
            ]
        )
    return rows


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows for a terminal."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    cells = [
        [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))] for row in rows
    ]
    return "\n".join("  ".join(row).rstrip() for row in cells)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(
        prog="compare_ns2.py", description="Long TCP flows over one bottleneck in ns-2 and in aqmlab, side by side."
    )
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds 1 to N of each (default 5)")
    parser.add_argument("--case", action="append", choices=names, help="only this discipline (may be repeated)")
    parser.add_argument("--update-docs", action="store_true", help="write the table into docs/validation.md")
    parser.add_argument("--stored", action="store_true", help="ns-2's figures from ns2_reference.json, no run")
    parser.add_argument("--json", action="store_true", help="print the lines as JSON")
    args = parser.parse_args(words)
    if args.seeds < 1:
        parser.error(f"--seeds {args.seeds}: expected at least 1")
    if args.update_docs and args.case:
        parser.error("--update-docs with --case: expected all disciplines")
    return args


def main(words: Sequence[str]) -> int:
    """Runs, prints, and returns the exit code."""
    args = arguments(words)
    seeds = range(1, args.seeds + 1)
    cases = [case for case in CASES if not args.case or case.name in args.case]
    if args.stored:
        stored = json.loads(REFERENCE.read_text())
        version = f"{stored['simulator']} (figures of {stored['date']})"
        ns2: Columns = {case.name: stored["cases"][case.name]["runs"] for case in cases}
        aqmlab = find_aqmlab()
    else:
        ns, aqmlab = find_ns2(), find_aqmlab()
        version = ns2_version()
        ns2 = every_run("ns-2", cases, seeds, lambda case, seed: run_ns2(ns, case, seed))
    ours = every_run("aqmlab", cases, seeds, lambda case, seed: run_aqmlab(aqmlab, case, seed))

    lines = compare(cases, ns2, ours)
    heading = f"{version} and {aqmlab_version(aqmlab)}, {today()}, {len(ns2[cases[0].name])} and {len(seeds)} seeds"
    if args.json:
        print(json.dumps([line.values() for line in lines]))
    else:
        print(f"{heading}\n\n{aligned(table(lines))}\n")
        print(counted([line.verdict for line in lines]))
    if args.update_docs:
        text = f"{heading}. Differences with their 95 % uncertainty.\n\n{markdown(table(lines))}"
        marked.put(DOCS, "compare-ns2", text)
    return 1 if any(line.verdict == FAIL for line in lines) else 0


if __name__ == "__main__":
    sys.exit(guarded("compare-ns2", main))
