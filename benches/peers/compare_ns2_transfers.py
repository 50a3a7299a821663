"""Transfers that arrive at random, one way, in ns-2 and in aqmlab: the same ones at the same times, side by side.

Ten processes of arrivals, one for each round-trip time, offer a share of the link. aqmlab draws them, on a link that is
never full; what it drew, a list of instants, paths and sizes, is handed to ns2_transfers.tcl, and drawn once more by
aqmlab on the link in question. So both simulators have the same to do, and a difference is one of TCP or of the queue.

    python benches/peers/compare_ns2_transfers.py                  both simulators, both columns, pass or fail
    python benches/peers/compare_ns2_transfers.py --stored         ns-2 from ns2_reference.json, no run
    python benches/peers/compare_ns2_transfers.py --store          and keep there what is not yet
    python benches/peers/compare_ns2_transfers.py --update-docs    and put the table into docs/validation.md

Exit codes: 0 all within tolerance, 1 something is not, 2 bad input or a run failed, 3 a simulator is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import marked
import polars as pl
from compare_ns2 import DOCS, T95, aligned, aqmlab_version, find_aqmlab
from ns2_reference import (
    HERE,
    REFERENCE,
    RunError,
    find_ns2,
    guarded,
    markdown,
    ns2_version,
    output_of,
    progress,
    today,
)

RATE_MBIT = 20
LIMIT = 100
DURATION_S = 80
WARMUP_S = 10
LAST_S = 70
"""What begins later is not measured: it might not be through when the run ends."""
PATHS = 10
RTT_MS = (10.0, 150.0)
MSS = 1460
PACKET = 1500
OPENING = 40
TOLERANCE = 0.03


@dataclass(frozen=True)
class Case:
    """One discipline and TCP at one load."""

    name: str
    title: str
    load: float
    ns2: str
    """Arguments of ns2_transfers.tcl."""
    qdisc: str
    """The scenario's [link.qdisc]."""
    cc: str = "sack"


# ns-2's DropTail with a limit of 100 holds 99 packets.
DROPTAIL = ("aqm=DropTail", 'kind = "pfifo"\nlimit = "99p"\n')
RED = (
    "aqm=RED th=25 maxth=75 gentle=1 wq=0.002 linterm=10 wait=1 mean=1500",
    """kind = "red"
dialect = "ns2"
limit = "100p"
mode = "packet"
mean_packet = "1500b"
min = "25p"
max = "75p"
probability = 0.1
wq = 0.002
gentle = true
""",
)
PI = (
    "aqm=PI qref=40 a=0.00001822 b=0.00001816 w=170",
    """kind = "pi"
limit = "100p"
mode = "packet"
qref = "40p"
a = 0.00001822
b = 0.00001816
w = "170hz"
""",
)
NEWRENO = "cc=Newreno "
CASES = (
    Case("droptail50", "Sack1, drop-tail, 50 %", 0.5, *DROPTAIL),
    Case("droptail80", "Sack1, drop-tail, 80 %", 0.8, *DROPTAIL),
    Case("droptail95", "Sack1, drop-tail, 95 %", 0.95, *DROPTAIL),
    Case("red80", "Sack1, RED 25/75, 80 %", 0.8, *RED),
    Case("pi80", "Sack1, PI 40, 80 %", 0.8, *PI),
    Case("newreno80", "Newreno, drop-tail, 80 %", 0.8, NEWRENO + DROPTAIL[0], DROPTAIL[1], "newreno"),
    Case("newreno_red80", "Newreno, RED 25/75, 80 %", 0.8, NEWRENO + RED[0], RED[1], "newreno"),
)

# Packets from, to; quantiles in percent.
GROUPS: tuple[tuple[str, int, int, tuple[int, ...]], ...] = (
    ("all", 1, 10**6, (10, 25, 50, 75, 90, 95, 99)),
    ("1 or 2 packets", 1, 2, (50, 90)),
    ("3 to 10", 3, 10, (50, 90)),
    ("11 to 100", 11, 100, (50, 90)),
)

Transfer = tuple[float, int, int]
"""When it begins, its path, its packets."""
Figures = dict[str, float]


def sizes() -> tuple[list[tuple[int, float]], float]:
    """Points of the distribution of packets, a staircase, and its mean.

    Pareto with a mean of 7000 bytes and shape 1.2, in whole packets and no more than 1000 of them: ns-2's one-way
    agents know no others, and one transfer of a hundred thousand would be the whole of a run.
    """
    shape, most = 1.2, 1000
    scale = 7000 * (shape - 1) / shape
    steps = [*range(1, 21)]
    while steps[-1] * 1.15 < most:
        steps.append(round(steps[-1] * 1.15))
    steps.append(most)
    points: list[tuple[int, float]] = []
    below = mean = 0.0
    for step in steps:
        up_to = 1.0 if step == most else 1 - (scale / (MSS * step)) ** shape
        points += [(step, below), (step, up_to)]
        mean += step * (up_to - below)
        below = up_to
    return points, mean


def scenario_of(load: float, rate: str, qdisc: str, cc: str, window: tuple[int, int]) -> str:
    """The scenario of aqmlab."""
    points, mean = sizes()
    per_s = load * RATE_MBIT * 1e6 / 8 / (mean * PACKET + OPENING) / PATHS
    table = ", ".join(f'["{packets * MSS}b", {probability!r}]' for packets, probability in points)
    blocks = "".join(
        f"""
[[traffic]]
kind = "poisson"
arrivals = "{per_s!r}hz"
request = "0b"
rtt = "{RTT_MS[0] + (RTT_MS[1] - RTT_MS[0]) * path / (PATHS - 1)!r}ms"
size = {{ table = [{table}] }}
"""
        for path in range(PATHS)
    )
    return f"""name = "transfers"
duration = "{window[1]}s"
warmup = "{window[0]}s"

[path]
access_rate = "1gbit"
rtt = "80ms"

[tcp]
stack = "ns2"
mss = "{MSS}b"
handshake = true
one_way = true
cc = "{cc}"
{blocks}
[link]
rate = "{rate}"

[link.qdisc]
{qdisc}"""


def run_aqmlab(aqmlab: Sequence[str], text: str, seed: int) -> tuple[dict[str, Any], pl.DataFrame]:
    """The summary and the exchanges of a run."""
    with tempfile.TemporaryDirectory(prefix="compare-ns2-") as folder:
        scenario = Path(folder) / "transfers.toml"
        scenario.write_text(text)
        out = Path(folder) / "result"
        said = output_of([*aqmlab, "run", str(scenario), "--seed", str(seed), "-o", str(out), "--json"])
        return json.loads(said), pl.read_parquet(out / "exchanges.parquet")


def demands(aqmlab: Sequence[str], load: float, seed: int) -> tuple[list[Transfer], dict[tuple[int, int], int]]:
    """Every transfer of a run, and the line in the list of the n-th of each path."""
    # A run that is somewhat longer, so that what begins last is through as well.
    roomy = scenario_of(load, "400gbit", 'kind = "pfifo"\nlimit = "100000p"\n', "sack", (0, DURATION_S + 10))
    _, rows = run_aqmlab(aqmlab, roomy, seed)
    rows = rows.filter(pl.col("start_s") < DURATION_S).sort("start_s", "traffic")
    transfers = []
    lines = {}
    for line, row in enumerate(rows.iter_rows(named=True)):
        transfers.append((row["start_s"], row["traffic"], row["response_bytes"] // MSS))
        lines[row["traffic"], row["source"]] = line
    return transfers, lines


def text_of(transfers: Sequence[Transfer]) -> str:
    """The list as ns-2 reads it."""
    return "".join(f"{start:.9f} {path} {packets}\n" for start, path, packets in transfers)


def digest_of(transfers: Sequence[Transfer]) -> str:
    """What tells one list from another."""
    return hashlib.sha256(text_of(transfers).encode()).hexdigest()[:16]


def figures_of(transfers: Sequence[Transfer], times: dict[int, float], utilisation: float, loss: float) -> Figures:
    """What is compared, of the times of the transfers by their lines."""
    counted = [n for n, (start, _, _) in enumerate(transfers) if WARMUP_S <= start < LAST_S]
    figures = {
        "utilisation": utilisation,
        "loss_ratio": loss,
        "unfinished": float(sum(n not in times for n in counted)),
    }
    for title, least, most, percents in GROUPS:
        # One that is not through takes longer than any that is.
        group = sorted(times.get(n, math.inf) for n in counted if least <= transfers[n][2] <= most)
        for percent in percents:
            figures[f"{title}, p{percent}"] = quantile(group, percent / 100)
    return figures


def quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between the two values next to it."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def in_ns2(ns: str, case: Case, transfers: Sequence[Transfer], seed: int) -> Figures:
    """The figures of a run of ns-2."""
    with tempfile.TemporaryDirectory(prefix="compare-ns2-") as folder:
        path = Path(folder) / "list"
        path.write_text(text_of(transfers))
        window = [f"time={DURATION_S}", f"warmup={WARMUP_S}", f"rate={RATE_MBIT}", f"qlen={LIMIT}", f"seed={seed}"]
        paths = [f"pairs={PATHS}", f"rttmin={RTT_MS[0]}", f"rttmax={RTT_MS[1]}", f"list={path}"]
        said = json.loads(output_of([ns, str(HERE / "ns2_transfers.tcl"), *case.ns2.split(), *window, *paths]))
    times = dict(zip(said["times"][::2], said["times"][1::2], strict=True))
    return figures_of(transfers, times, said["utilisation"], said["loss_ratio"])


def in_aqmlab(
    aqmlab: Sequence[str], case: Case, transfers: Sequence[Transfer], lines: dict[tuple[int, int], int], seed: int
) -> Figures:
    """The figures of a run of aqmlab."""
    text = scenario_of(case.load, f"{RATE_MBIT}mbit", case.qdisc, case.cc, (WARMUP_S, DURATION_S))
    summary, rows = run_aqmlab(aqmlab, text, seed)
    columns = rows.select("traffic", "source", "response_time_s").iter_rows()
    times = {lines[path, number]: time for path, number, time in columns if (path, number) in lines}
    return figures_of(transfers, times, summary["forward"]["utilisation"], summary["forward"]["loss_ratio"])


@dataclass(frozen=True)
class Line:
    """One quantity of one case."""

    case: Case
    quantity: str
    ns2: float
    ours: float
    difference: float
    """Mean over the seeds of the relative difference."""
    uncertainty: float
    """Half its 95 % interval, from its spread over the seeds."""

    @property
    def tolerance(self) -> float | None:
        """None where the quantity is only shown: losses are a thousandth or so of the packets at small loads."""
        return None if self.quantity == "loss_ratio" else TOLERANCE

    @property
    def verdict(self) -> str:
        """`pass` where the whole interval is within the tolerance, `FAIL` where the difference is beyond it and not
        chance alone, `undecided` otherwise.
        """
        if self.tolerance is None:
            return ""
        if abs(self.difference) + self.uncertainty <= self.tolerance:
            return "pass"
        return "FAIL" if abs(self.difference) > max(self.tolerance, self.uncertainty) else "undecided"


def compare(case: Case, ns2: Sequence[Figures], ours: Sequence[Figures]) -> list[Line]:
    """All lines of a case; the runs of a seed have the same demands and are compared with each other."""
    lines = []
    for quantity in ns2[0]:
        a, b = [run[quantity] for run in ns2], [run[quantity] for run in ours]
        if not all(map(math.isfinite, (*a, *b))):
            raise RunError(f"{case.name}: {quantity} is of transfers that are not through when the run ends")
        if quantity == "unfinished":
            continue
        relative = [y / x - 1 if x else 0.0 for x, y in zip(a, b, strict=True)]
        n = len(relative)
        mean = math.fsum(relative) / n
        spread = math.sqrt(math.fsum((r - mean) ** 2 for r in relative) / (n - 1)) if n > 1 else math.nan
        half = (T95[n - 1] if n - 1 < len(T95) else 1.96) * spread / math.sqrt(n)
        lines.append(Line(case, quantity, math.fsum(a) / n, math.fsum(b) / n, mean, half))
    return lines


def table(lines: Sequence[Line]) -> list[list[str]]:
    """The table as rows of text."""
    rows = [["case", "quantity", "ns-2", "aqmlab", "difference", "allowed", "verdict"]]
    for line in lines:
        allowed = "" if line.tolerance is None else f"{line.tolerance * 100:.0f} %"
        spread = "" if math.isnan(line.uncertainty) else f" ± {line.uncertainty * 100:.1f}"
        unit = "" if line.quantity in ("utilisation", "loss_ratio") else " s"
        quantity = line.quantity.replace("_", " ")
        rows.append(
            [
                line.case.title,
                quantity,
                f"{line.ns2:.4f}{unit}",
                f"{line.ours:.4f}{unit}",
                f"{line.difference * 100:+.1f}{spread} %",
                allowed,
                line.verdict,
            ]
        )
    return rows


def store(kept: dict[str, Any], case: Case, digests: Sequence[str], runs: Sequence[Figures]) -> None:
    """Keeps ns-2's figures of a case."""
    kept[case.name] = {"arguments": case.ns2, "date": today(), "demands": list(digests), "runs": list(runs)}
    reference = json.loads(REFERENCE.read_text())
    reference["transfers"] = {case.name: kept[case.name] for case in CASES if case.name in kept}
    REFERENCE.write_text(json.dumps(reference, indent=1) + "\n")


def is_kept(kept: dict[str, Any], case: Case, digests: Sequence[str]) -> bool:
    """Whether ns-2's figures of these demands are kept."""
    entry = kept.get(case.name, {})
    demands: list[str] = entry.get("demands", [])
    return bool(entry.get("arguments") == case.ns2) and demands[: len(digests)] == list(digests)


def stored_figures(kept: dict[str, Any], case: Case, digests: Sequence[str]) -> list[Figures]:
    """ns-2's figures of these demands, if they are kept."""
    if not is_kept(kept, case, digests):
        raise RunError(f"{case.name}: no figures of ns-2 for these transfers are kept: run with --store where ns-2 is")
    runs: list[Figures] = kept[case.name]["runs"][: len(digests)]
    return runs


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="compare_ns2_transfers.py", description="The same transfers in ns-2 and in aqmlab, side by side."
    )
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds 1 to N (default 5)")
    names = [case.name for case in CASES]
    parser.add_argument("--case", action="append", choices=names, help="only this case (may be repeated)")
    parser.add_argument("--update-docs", action="store_true", help="write the table into docs/validation.md")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--stored", action="store_true", help="ns-2's figures from ns2_reference.json, no run")
    where.add_argument(
        "--store", action="store_true", help="write ns-2's figures into ns2_reference.json where it lacks them"
    )
    args = parser.parse_args(words)
    if args.seeds < 1:
        parser.error(f"--seeds {args.seeds}: expected at least 1")
    if args.update_docs and args.case:
        parser.error("--update-docs with --case: expected all cases")
    return args


def main(words: Sequence[str]) -> int:
    """Runs, prints, and returns the exit code."""
    args = arguments(words)
    seeds = range(1, args.seeds + 1)
    aqmlab = find_aqmlab()
    ns = "" if args.stored else find_ns2()
    kept: dict[str, Any] = json.loads(REFERENCE.read_text()).get("transfers", {})
    asked: dict[float, list[tuple[list[Transfer], dict[tuple[int, int], int]]]] = {}
    lines: list[Line] = []
    for case in CASES:
        if args.case and case.name not in args.case:
            continue
        if case.load not in asked:
            progress(f"{case.title}: transfers")
            asked[case.load] = [demands(aqmlab, case.load, seed) for seed in seeds]
        lists = asked[case.load]
        digests = [digest_of(transfers) for transfers, _ in lists]
        if args.stored or (args.store and is_kept(kept, case, digests)):
            ns2 = stored_figures(kept, case, digests)
        else:
            progress(f"ns-2: {case.title}")
            ns2 = [in_ns2(ns, case, transfers, seed) for seed, (transfers, _) in zip(seeds, lists, strict=True)]
            if args.store:
                store(kept, case, digests, ns2)
        progress(f"aqmlab: {case.title}")
        ours = [in_aqmlab(aqmlab, case, *both, seed) for seed, both in zip(seeds, lists, strict=True)]
        lines += compare(case, ns2, ours)
    progress("")
    failed = [line for line in lines if line.verdict == "FAIL"]
    undecided = [line for line in lines if line.verdict == "undecided"]
    judged = [line for line in lines if line.verdict]
    origin = "kept figures of ns-2" if args.stored else ns2_version()
    heading = f"{origin} and {aqmlab_version(aqmlab)}, {today()}, {len(seeds)} seeds"
    print(f"{heading}\n\n{aligned(table(lines))}\n")
    print(f"{len(judged) - len(failed) - len(undecided)} of {len(judged)} within tolerance, {len(undecided)} undecided")
    if args.update_docs:
        text = f"{heading}. Differences with their 95 % uncertainty.\n\n{markdown(table(lines))}"
        marked.put(DOCS, "compare-ns2-transfers", text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(guarded("compare-ns2-transfers", main))
