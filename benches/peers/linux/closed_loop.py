"""Long TCP flows over one bottleneck in a Linux kernel and in aqmlab, side by side.

The kernel's figures are kept in closed_loop_reference.json, run by run; closed_loop_kernel.py measures them. aqmlab
runs the same network with the stack `linux`, and the means over the runs are compared. Installs nothing.

    python benches/peers/linux/closed_loop.py                   aqmlab beside the kept figures, pass or fail
    python benches/peers/linux/closed_loop.py --update-docs     and put the table into docs/validation.md
    python benches/peers/linux/closed_loop.py --kernel KERNEL   measure the kernel's side anew first
    ... --of newer                                              the cases with DualPI2, which are of Linux 7.3
    ... --of prague                                             those with Prague, which are of the L4S team's Linux
    ... --of draft                                              the same, beside Prague as the draft has it

Exit codes: 0 all within tolerance but what is known to differ, 1 something else is not, or agrees now, 2 bad input or a
run failed, 3 aqmlab is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import marked  # noqa: E402
from closed_loop_cases import (  # noqa: E402
    CASES,
    CASES_7_3,
    CASES_DRAFT,
    CASES_PRAGUE,
    FRAME,
    NEWER,
    PRAGUE,
    REFERENCE,
    SETTLE_S,
    START_S,
    Case,
)
from closed_loop_kernel import bottleneck, measure_all  # noqa: E402
from compare_ns2 import T95, UNDECIDED, aligned, aqmlab_version, find_aqmlab, verdict  # noqa: E402
from ns2_reference import RunError, guarded, markdown, output_of, progress, today  # noqa: E402

DOCS = HERE.parents[2] / "docs" / "validation.md"
RUNS = 10
"""Of aqmlab, or twice as many as the kernel's if these are more."""


@dataclass(frozen=True)
class Group:
    """Cases whose figures of the kernel are in one file, and in one table of the page."""

    cases: tuple[Case, ...]
    kept: Path
    mark: str
    """Of the table's place in docs/validation.md."""


GROUPS = {
    "": Group(CASES, REFERENCE, "closed-loop"),
    "newer": Group(CASES_7_3, NEWER, "closed-loop-newer"),
    "prague": Group(CASES_PRAGUE, PRAGUE, "closed-loop-prague"),
    "draft": Group(CASES_DRAFT, PRAGUE, "closed-loop-draft"),
}
"""As `--of` names them."""


@dataclass(frozen=True)
class Measure:
    """A quantity of the comparison, and how far the means may differ."""

    key: str
    title: str
    tolerance: float
    form: str
    least: float = 0.0
    """A difference that is always allowed, in the quantity's unit."""


MEASURES = (
    Measure("utilisation", "utilisation", 0.01, "{:.4f}"),
    Measure("signal_ratio", "lost or marked", 0.10, "{:.5f}"),
    Measure("queue_delay_s", "queueing delay, s", 0.07, "{:.5f}"),
)
BESIDE = Measure("rate_ratio", "rate of the second kind over the first's", math.inf, "{:.3f}")
"""Of flows of two kinds: shown, and not judged."""


def toml(value: Any) -> str:
    """A value as TOML has it."""
    return json.dumps(value) if not isinstance(value, float) else repr(value)


def scenario_of(case: Case) -> str:
    """The kernel's network as a scenario of aqmlab.

    A round trip takes as long as there: HTB lets a packet go when its transmission would begin, and it arrives at once,
    so the time that a packet takes on the link here comes off the propagation delay. Windows are offered from the
    start; segments leave one at a time, also where they are paced (gso_max_segs 1), and no SYN gives up ECN.
    """
    on_link_ms = FRAME * 8 / case.rate_bps * 1e3
    share, left = divmod(case.flows, len(case.rtts_ms))
    lines = [
        f'name = "{case.name}"',
        f'duration = "{case.seconds:g}s"',
        f'warmup = "{SETTLE_S:g}s"',
        "[path]",
        'access_rate = "100gbit"',
        "[tcp]",
        'stack = "linux"',
        *(['ect = "ect1"'] if "dctcp" in case.cc and case in CASES_7_3 else []),
        'window = "60mb"',
        'receive_buffer = "0b"',
        "pacing_burst = 1",
        "ecn_fallback = false",
    ]
    for number, rtt_ms in enumerate(case.rtts_ms):
        lines += [
            "[[traffic]]",
            'kind = "bulk"',
            'direction = "forward"',
            f'cc = "{case.cc_here(number)}"',
            f'ecn = "{ecn_words(case, number)}"',
            f"flows = {share + (number < left)}",
            f'rtt = "{rtt_ms - on_link_ms:.6f}ms"',
            f'start = {{ uniform = ["0s", "{START_S:g}s"] }}',
        ]
    lines += [
        "[link]",
        f'rate = "{case.rate}"',
        'reverse_rate = "100gbit"',
        'overhead = "14b"',
        "[link.qdisc]",
        *(f"{key} = {toml(value)}" for key, value in case.ours.items()),
    ]
    return "\n".join(lines) + "\n"


def ecn_words(case: Case, number: int) -> str:
    """How a scenario says what ECN the flows of a round-trip time have."""
    return ("accurate" if case.is_accurate else "on") if case.ecn_at(number) else "off"


def figures_of(case: Case, summary: dict[str, Any]) -> dict[str, float]:
    """What the kernel's side measures, out of a summary of aqmlab."""
    forward = summary["forward"]
    seconds = summary["measured_s"]
    frames = forward["delivered_packets"] * (forward["packet_mean_bytes"] + 14)
    lost, marked, offered = forward["dropped_packets"], forward["marked_packets"], forward["offered_packets"]
    return {
        "utilisation": frames * 8 / seconds / case.rate_bps,
        "loss_ratio": lost / offered,
        "mark_ratio": marked / offered,
        "signal_ratio": (lost + marked) / offered,
        "queue_mean_packets": forward["queue_mean_packets"],
        "queue_delay_s": forward["queue_mean_packets"] * FRAME * 8 / case.rate_bps,
        "retransmits": summary["tcp"]["retransmitted_segments"],
        **rates_of(case, [summary["tcp"]["held_back"][str(n)]["goodput_bps"] for n in range(len(case.rtts_ms))]),
    }


def rates_of(case: Case, rates: Sequence[float]) -> dict[str, float]:
    """Of two kinds of flows, as many of each: how much more the second kind has."""
    return {"rate_ratio": rates[1] / rates[0]} if "+" in case.cc else {}


def run_aqmlab(aqmlab: Sequence[str], case: Case, seed: int) -> dict[str, float]:
    """One run of aqmlab."""
    with tempfile.TemporaryDirectory(prefix="closed-loop-") as name:
        folder = Path(name)
        scenario = folder / f"{case.name}.toml"
        scenario.write_text(scenario_of(case))
        words = [*aqmlab, "run", str(scenario), "--seed", str(seed), "-o", str(folder / "result"), "--json"]
        return figures_of(case, json.loads(output_of(words)))


KNOWN = {("bbr4-fq_codel", "queue_delay_s")}
"""Cases and quantities that differ for a reason that nobody knows: docs/validation.md says by how much."""


@dataclass(frozen=True)
class Line:
    """One quantity of one case: both means, the difference between them, and its 95 % uncertainty."""

    case: Case
    measure: Measure
    kernel: float
    ours: float
    difference: float
    uncertainty: float

    @property
    def is_known(self) -> bool:
        """Whether it is one that is known to differ."""
        return (self.case.name, self.measure.key) in KNOWN

    @property
    def tolerance(self) -> float:
        """How large the difference may be, relative to what differences are."""
        return max(self.measure.tolerance, self.measure.least / (self.kernel or self.ours or 1.0))

    @property
    def passed(self) -> bool:
        """Whether the means differ by no more than the tolerance."""
        return abs(self.difference) <= self.tolerance

    @property
    def verdict(self) -> str:
        """In a word; none of what is shown and not judged."""
        if math.isinf(self.measure.tolerance):
            return ""
        if self.is_known:
            return "agrees now" if self.passed else "known to differ"
        return verdict(self.difference, self.uncertainty, self.tolerance)


def compare(case: Case, kernel: Sequence[dict[str, Any]], ours: Sequence[dict[str, float]]) -> list[Line]:
    """The lines of a case. Differences and uncertainties are relative to the kernel's mean."""
    lines = []
    for measure in (*MEASURES, *([BESIDE] if "+" in case.cc else [])):
        if case not in CASES and measure.key == "queue_delay_s":
            measure = replace(measure, least=0.0002)
        theirs = [value_of(case, run, measure.key) for run in kernel]
        values = [run[measure.key] for run in ours]
        base, other = statistics.fmean(theirs), statistics.fmean(values)
        error = math.sqrt(statistics.variance(theirs) / len(theirs) + statistics.variance(values) / len(values))
        # Welch's degrees of freedom are at least those of the smaller sample, which errs on the wide side.
        half = T95[min(len(theirs), len(values)) - 1] * error
        scale = base or other or 1.0
        lines.append(Line(case, measure, base, other, (other - base) / scale, half / scale))
    return lines


def value_of(case: Case, run: dict[str, Any], key: str) -> float:
    """A quantity of a run of the kernel."""
    if key == "rate_ratio":
        rates = run["goodput_bps"]
        return rates_of(case, [sum(rates[0::2]), sum(rates[1::2])])[key]
    return reading(run, key)


def reading(figures: dict[str, Any], key: str) -> float:
    """A quantity of a queue of the kernel: lost and marked packets together, or what is recorded under its name."""
    return float(figures["loss_ratio"] + figures["mark_ratio"] if key == "signal_ratio" else figures[key])


def table(lines: Sequence[Line]) -> list[list[str]]:
    """The table as rows of text."""
    rows = [["flows and discipline", "quantity", "Linux", "aqmlab", "difference", "allowed", "verdict"]]
    rows += [
        [
            line.case.title,
            line.measure.title,
            line.measure.form.format(line.kernel),
            line.measure.form.format(line.ours),
            f"{line.difference * 100:+.1f} ± {line.uncertainty * 100:.1f} %",
            allowed(line.measure),
            line.verdict,
        ]
        for line in lines
    ]
    return rows


def allowed(measure: Measure) -> str:
    """How far it may be off, in words."""
    if math.isinf(measure.tolerance):
        return ""
    return f"{measure.tolerance * 100:.0f} %" + (f" or {measure.least * 1e3:g} ms" if measure.least else "")


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    names = sorted({case.name for group in GROUPS.values() for case in group.cases})
    parser = argparse.ArgumentParser(
        prog="closed_loop.py", description="Long TCP flows in a Linux kernel and in aqmlab, side by side."
    )
    parser.add_argument("--case", action="append", choices=names, help="only this case (may be repeated)")
    parser.add_argument(
        "--of", choices=[name for name in GROUPS if name], default="", help="cases of Linux 7.3, or of the L4S team's"
    )
    parser.add_argument("--seeds", type=int, default=RUNS, metavar="N", help=f"runs of aqmlab (default {RUNS})")
    parser.add_argument("--kernel", metavar="KERNEL", help="measure the kernel's side anew with this program")
    parser.add_argument("--stored", action="store_true", help="the kept figures of the kernel, which is the default")
    parser.add_argument("--update-docs", action="store_true", help="write the table into docs/validation.md")
    args = parser.parse_args(words)
    if args.seeds < 2:
        parser.error(f"--seeds {args.seeds}: expected at least 2")
    if args.stored and args.kernel:
        parser.error("--stored with --kernel: expected one of them")
    if args.update_docs and args.case:
        parser.error("--update-docs with --case: expected all cases")
    return args


def main(words: Sequence[str]) -> int:
    """Runs, prints, and returns the exit code."""
    args = arguments(words)
    aqmlab = find_aqmlab()
    group = GROUPS[args.of]
    cases = [case for case in group.cases if not args.case or case.name in args.case]
    if args.kernel:
        measure_all(args.kernel, [case.name for case in cases])
    kept = json.loads(group.kept.read_text())
    lines = []
    for case in cases:
        ours = []
        for seed in range(1, max(args.seeds, 2 * case.runs) + 1):
            progress(f"{case.name}, seed {seed}")
            ours.append(run_aqmlab(aqmlab, case, seed))
        if kept[case.name]["tc"] != bottleneck(case):
            raise RunError(f"{case.name}: the kept figures are of another bottleneck; measure them anew: --kernel")
        lines += compare(case, kept[case.name]["runs"], ours)
    progress("")
    unexpected = [line for line in lines if line.passed == line.is_known]
    passed = sum(line.passed for line in lines)
    release = kept[cases[0].name]["kernel"]
    runs = f"at least {min(case.runs for case in cases)} and {args.seeds} runs a case, more where chance has a say"
    heading = f"Linux {release} and {aqmlab_version(aqmlab)}, {today()}, {runs}"
    print(f"{heading}\n\n{aligned(table(lines))}\n")
    undecided = sum(line.verdict == UNDECIDED for line in lines)
    print(
        f"{passed} of {len(lines)} quantities within tolerance, {undecided} of these with intervals that are not; "
        f"{len(unexpected)} of all not as known"
    )
    if args.update_docs:
        text = f"{heading}. Differences with their 95 % uncertainty.\n\n{markdown(table(lines))}"
        marked.put(DOCS, group.mark, text)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(guarded("closed-loop", main))
