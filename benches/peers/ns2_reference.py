"""The ns-2 side of the comparison: the cases, how one is run, and the figures kept in ns2_reference.json.

    python benches/peers/ns2_reference.py [SEEDS]        measure ns2_reference.json anew: all cases and their CPU time
    python benches/peers/ns2_reference.py missing        measure only the cases that are new or have other arguments

compare_ns2.py sets aqmlab beside it. Every case is the network of ns2_bulk.tcl and bulk.toml under another discipline.
"""

from __future__ import annotations

import datetime
import json
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
REFERENCE = HERE / "ns2_reference.json"

DURATION_S = 120
WARMUP_S = 20


@dataclass(frozen=True)
class Case:
    """One discipline with the same parameters for both simulators."""

    name: str
    title: str
    ns2: str
    """Arguments of ns2_bulk.tcl."""
    qdisc: str
    """The scenario's [link.qdisc]."""
    hosts: str = ""
    """More of the scenario's [tcp]."""


def pi(qref: int) -> tuple[str, str]:
    """PI with the published gains: ns-2's arguments and the scenario's table."""
    return (
        f"aqm=PI qref={qref} a=0.00001822 b=0.00001816 w=170",
        f"""kind = "pi"
limit = "240p"
mode = "packet"
qref = "{qref}p"
a = 0.00001822
b = 0.00001816
w = "170hz"
""",
    )


def rem(target: int) -> tuple[str, str]:
    """REM with its authors' constants: ns-2's arguments and the scenario's table."""
    return (
        f"aqm=REM pbo={target} gamma=0.001 phi=1.001 inw=1 pupd=0.002 mean=1500",
        f"""kind = "rem"
dialect = "ns2"
limit = "239p"
mode = "packet"
mean_packet = "1500b"
target = "{target}p"
gamma = 0.001
alpha = 0.1
phi = 1.001
inw = 1
interval = "2ms"
""",
    )


def ared(ns2: str, scenario: str) -> tuple[str, str]:
    """Adaptive RED: ns-2's arguments and the scenario's table, where only thresholds and weight are the case's."""
    return (
        f"aqm=RED adaptive=1 {ns2} gentle=1 linterm=10 wait=1 mean=1500",
        f"""kind = "ared"
dialect = "ns2"
limit = "240p"
mode = "packet"
mean_packet = "1500b"
gentle = true
{scenario}""",
    )


def sfq(buckets: int) -> tuple[str, str]:
    """SFQ: chance decides in both simulators which flows share a queue."""
    return (
        f"aqm=SFQ buckets={buckets} shuffle=1",
        f"""kind = "sfq"
dialect = "ns2"
limit = "240p"
flows = {buckets}
""",
    )


def drr(quantum: int) -> tuple[str, str]:
    """DRR with a queue for each flow: ns-2's hash puts no two of them together, nor does ours, but rarely."""
    return (
        f"aqm=DRR buckets=1024 quantum={quantum}",
        f"""kind = "drr"
limit = "360000b"
flows = 65536
quantum = "{quantum}b"
drop = "head"
""",
    )


def rio(mode: str, dialect: str, low: int, high: int, probability: float) -> tuple[str, str]:
    """RIO in ns-2's Diffserv module: a time sliding window at each sender, two REDs on the bottleneck.

    The profiles are half of the link; of what is within them nothing is lost before what is beyond.
    """
    return (
        f"aqm=dsRED mred={mode} profile=0.5 inmin=120 inmax=210 inp=0.02 outmin={low} outmax={high} outp={probability}",
        f"""kind = "rio"
dialect = "{dialect}"
limit = "240p"
mode = "packet"
mean_packet = "1500b"
profile = "500kbit"
window = "1s"
min_in = "120p"
max_in = "210p"
probability_in = 0.02
min_out = "{low}p"
max_out = "{high}p"
probability_out = {probability}
wq = 0.002
""",
    )


# ns-2 has a limit of 240 packets everywhere (DRR: of 240 packets' bytes), but its DropTail and REM refuse the packet
# that would reach the limit and so hold 239; the others hold 240. In neither simulator is the packet in transmission
# counted.
RED = (
    "aqm=RED th=60 maxth=180 gentle=1 wq=0.002 linterm=10 wait=1 mean=1500",
    """kind = "red"
dialect = "ns2"
limit = "240p"
mode = "packet"
mean_packet = "1500b"
min = "60p"
max = "180p"
probability = 0.1
wq = 0.002
gentle = true
""",
)
DROPTAIL = ("aqm=DropTail", 'kind = "pfifo"\nlimit = "239p"\n')


def newreno(ns2: str, qdisc: str, *, delack: bool = False) -> tuple[str, str, str]:
    """The reference under Newreno, with one ACK a packet or one for two."""
    arguments = f"cc=Newreno {'delack=1 ' if delack else ''}{ns2}"
    return arguments, qdisc, f'cc = "newreno"\n{"delayed_ack = 2" if delack else ""}\n'


CASES = (
    Case("droptail", "drop-tail", *DROPTAIL),
    Case("red", "RED 60/180", *RED),
    Case("pi120", "PI 120", *pi(120)),
    Case("rem120", "REM 120", *rem(120)),
    Case("ared60", "ARED 60/180", *ared("th=60 maxth=180 wq=0.002", 'min = "60p"\nmax = "180p"\nwq = 0.002\n')),
    # Thresholds and weight computed from the link's rate and a target delay of 5 ms.
    Case("ared", "ARED automatic", *ared("th=0 maxth=0 wq=0", "")),
    Case("sfq16", "SFQ, 16 queues", *sfq(16)),
    Case("sfq64", "SFQ, 64 queues", *sfq(64)),
    Case("drr", "DRR, quantum 1500", *drr(1500)),
    Case("rio_c", "RIO-C 60/180", *rio("RIO-C", "ns2", 60, 180, 0.1)),
    Case("rio_d", "RIO-D 60/180", *rio("RIO-D", "ns2_decoupled", 60, 180, 0.1)),
    # Targets too short for a full link: the queue runs empty, and how TCP gets up again after a timeout shows.
    Case("pi24", "PI 24", *pi(24)),
    Case("rem24", "REM 24", *rem(24)),
    Case("rio_c30", "RIO-C 30/90", *rio("RIO-C", "ns2", 30, 90, 0.2)),
    Case("rio_d30", "RIO-D 30/90", *rio("RIO-D", "ns2_decoupled", 30, 90, 0.2)),
    Case("newreno", "drop-tail, Newreno", *newreno(*DROPTAIL)),
    Case("newreno_red", "RED 60/180, Newreno", *newreno(*RED)),
    Case("newreno_pi24", "PI 24, Newreno", *newreno(*pi(24))),
    Case("newreno_delack", "RED 60/180, Newreno, delayed ACKs", *newreno(*RED, delack=True)),
)


@dataclass(frozen=True)
class Measure:
    """A quantity of the comparison; `tolerance` is relative to ns-2's mean, None where it is only shown."""

    key: str
    title: str
    tolerance: float | None
    form: str


# Queues are of waiting packets in both: the packet in transmission is not counted.
MEASURES = (
    Measure("utilisation", "utilisation", 0.01, "{:.4f}"),
    Measure("loss_ratio", "loss ratio", 0.10, "{:.5f}"),
    Measure("queue_mean_packets", "mean queue, packets", 0.10, "{:.1f}"),
    Measure("queue_delay_mean_s", "mean wait, s", None, "{:.5f}"),
    Measure("timeouts", "timeouts", None, "{:.0f}"),
    Measure("retransmits", "retransmissions", None, "{:.0f}"),
)

Run = dict[str, float]
Columns = dict[str, list[Run]]


class MissingError(Exception):
    """Something this machine lacks (exit code 3)."""


class RunError(Exception):
    """A simulator did not do what was asked (exit code 2)."""


def find_ns2() -> str:
    """The `ns` program."""
    ns = shutil.which("ns")
    if ns is None:
        raise MissingError(
            "ns-2 is missing: apt-get install --no-install-recommends ns2 (or compare with stored figures: --stored)"
        )
    return ns


def output_of(command: Sequence[str]) -> str:
    """Runs a command and returns its standard output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise RunError(f"{' '.join(command)}: exit code {done.returncode}: {said[-1] if said else 'no output'}")
    return done.stdout


def run_ns2(ns: str, case: Case, seed: int, *more: str) -> Run:
    """One run of ns2_bulk.tcl."""
    window = [f"time={DURATION_S}", f"warmup={WARMUP_S}", f"seed={seed}", "qlen=240"]
    text = output_of([ns, str(HERE / "ns2_bulk.tcl"), *case.ns2.split(), *window, *more])
    return numbers(json.loads(text))


def numbers(result: dict[str, Any]) -> Run:
    """The numeric entries of a result."""
    return {k: v for k, v in result.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}


def every_run(title: str, cases: Sequence[Case], seeds: Sequence[int], run: Callable[[Case, int], Run]) -> Columns:
    """Runs all cases with all seeds, one at a time."""
    columns: Columns = {}
    for case in cases:
        columns[case.name] = []
        for seed in seeds:
            progress(f"{title}: {case.title}, seed {seed}")
            columns[case.name].append(run(case, seed))
    progress("")
    return columns


def progress(text: str) -> None:
    """One line that overwrites itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def cpu_s_of(command: Sequence[str]) -> float:
    """User CPU time of a command, median of three."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        output_of(command)
        times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    return statistics.median(times)


def cost_of(ns: str, script: str, *args: str) -> dict[str, float]:
    """CPU time of ns-2 per packet that left the bottleneck, both directions, without measurement there.

    The set-up, which builds the network in an interpreter, is a run that ends after 10 ms.
    """
    command = [ns, str(HERE / script), f"time={DURATION_S}", f"warmup={WARMUP_S}", *args]
    packets = json.loads(output_of(command))["run_departures"]
    whole = cpu_s_of([*command, "mon=0"])
    setup = cpu_s_of([*command, "mon=0", "warmup=0", "time=0.01"])
    return {
        "packets": packets,
        "setup_s": round(setup, 3),
        "run_s": round(whole, 3),
        "us_per_packet": round((whole - setup) / packets * 1e6, 3),
        "us_per_packet_with_setup": round(whole / packets * 1e6, 3),
    }


def measure_reference(ns: str, seeds: Sequence[int], kept: dict[str, Any]) -> None:
    """ns-2 alone: every case with every seed, and what a packet costs. Of `kept`, a reference, cases are taken over.

    What is added to a reference has no costs, which would not be of the same machine in the same state. Each case is
    written when it is done, so that one that is broken off can go on with `missing`.
    """
    stored = kept.get("cases", {})
    cases = {case.name: stored[case.name] for case in CASES if stored.get(case.name, {}).get("arguments") == case.ns2}
    web = dict(kept.get("web_cost", {}))
    for case in CASES:
        if case.name in cases:
            continue
        runs = every_run("ns-2", [case], seeds, lambda case, seed: run_ns2(ns, case, seed))[case.name]
        cases[case.name] = {
            "title": case.title,
            "arguments": case.ns2,
            "mean": {m.key: mean(runs, m.key) for m in MEASURES},
            "sd": {m.key: sd(runs, m.key) for m in MEASURES},
            "runs": runs,
        }
        if not kept:
            progress(f"ns-2: {case.title}, CPU time")
            cases[case.name]["cost"] = cost_of(ns, "ns2_bulk.tcl", *case.ns2.split())
        write_reference(seeds, cases, web)
    for generator in ("pool", "packmime"):
        if generator not in web:
            progress(f"ns-2: web transfers, {generator}, CPU time")
            web[generator] = cost_of(ns, "ns2_web.tcl", f"gen={generator}")
    progress("")
    write_reference(seeds, cases, web)


def write_reference(seeds: Sequence[int], cases: dict[str, Any], web: dict[str, Any]) -> None:
    """Writes ns2_reference.json, its cases in their order."""
    reference = {
        "what": "bulk: 100 long SACK flows, RTT 10 to 150 ms evenly, 100 Mb/s, limit 240 packets, 1500-byte packets "
        "(ns2_bulk.tcl); the packet in service is not counted in the queue. web: 1480 transfers a second, Pareto sizes "
        "of mean 7000 bytes and shape 1.2, drop-tail (ns2_web.tcl). Costs are user CPU time of one machine and mean "
        "something only beside others of the same machine.",
        "simulator": ns2_version(),
        "date": today(),
        "window_s": [WARMUP_S, DURATION_S],
        "seeds": list(seeds),
        "cases": {case.name: cases[case.name] for case in CASES if case.name in cases},
        "web_cost": web,
        "transfers": json.loads(REFERENCE.read_text()).get("transfers", {}) if REFERENCE.exists() else {},
    }
    REFERENCE.write_text(json.dumps(reference, indent=1) + "\n")


def ns2_version() -> str:
    """Version of Debian's package."""
    done = subprocess.run(["dpkg-query", "-W", "-f=${Version}", "ns2"], capture_output=True, text=True, check=False)
    return f"ns-2 {done.stdout.strip() or '(version unknown)'}"


def today() -> str:
    """The date, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def mean(runs: Sequence[Run], key: str) -> float:
    """Mean over the seeds."""
    return statistics.fmean(run[key] for run in runs)


def sd(runs: Sequence[Run], key: str) -> float:
    """Standard deviation over the seeds; 0 for a single one."""
    return statistics.stdev(run[key] for run in runs) if len(runs) > 1 else 0.0


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table: text to the left, numbers to the right."""
    ruler = ["---", "---", *["--:"] * (len(rows[0]) - 3), "---"]
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ruler, *rows[1:]])


def reference_table(reference: dict[str, Any]) -> str:
    """ns-2's own figures as a Markdown table."""
    rows = [["discipline", "arguments", *(m.title for m in MEASURES), "us a packet"]]
    for case in reference["cases"].values():
        cells = [f"{m.form.format(case['mean'][m.key])} ± {m.form.format(case['sd'][m.key])}" for m in MEASURES]
        cost = f"{case['cost']['us_per_packet']:.2f}" if "cost" in case else ""
        rows.append([case["title"], f"`{case['arguments']}`", *cells, cost])
    return markdown(rows)


def main(words: Sequence[str]) -> int:
    """Measures and writes the reference; returns the exit code."""
    is_missing = list(words) == ["missing"]
    if not is_missing and (len(words) > 1 or not all(word.isdecimal() and int(word) > 0 for word in words)):
        raise RunError(f"'{' '.join(words)}': expected nothing, a number of seeds, or missing")
    kept = json.loads(REFERENCE.read_text()) if is_missing else {}
    seeds = kept["seeds"] if is_missing else list(range(1, int(words[0]) + 1 if words else 6))
    measure_reference(find_ns2(), seeds, kept)
    print(reference_table(json.loads(REFERENCE.read_text())))
    return 0


def guarded(program: str, main: Callable[[Sequence[str]], int]) -> int:
    """Runs `main`; a failure becomes one line and an exit code."""
    try:
        return main(sys.argv[1:])
    except MissingError as problem:
        print(f"{program}: {problem}", file=sys.stderr)
        return 3
    except KeyError as problem:
        print(f"{program}: a result without {problem}", file=sys.stderr)
        return 2
    except (RunError, OSError, json.JSONDecodeError) as problem:
        print(f"{program}: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(guarded("ns2-reference", main))
