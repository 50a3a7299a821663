"""What a packet costs: processor time of aqmlab, and of ns-2 beside it where it is installed.

    python benches/bench.py                  all cases, the table, benches/results.json
    python benches/bench.py --full           the web run at its published length of 120 minutes as well
    python benches/bench.py --commands       only what aqmlab run costs beyond the engine, and two runs at a time
    python benches/bench.py --decisions      only what the decisions of each discipline cost, benches/decisions.json
    python benches/bench.py --instructions   instructions a packet as well, counted by valgrind
    python benches/bench.py --update-docs    and put the tables into docs/performance.md
    python benches/bench.py --against OTHER  another engine on the same cases in turn, such as one of an older commit
    python benches/bench.py --check          exit code 1 if a target is missed

A packet is one departure from the bottleneck, in either direction, data or acknowledgement. Time is user CPU time of
the whole process from its start to its end, set-up included, as the kernel reports it for that process; of ns-2 the
set-up, which builds the network in an interpreter, is measured by itself and taken off, in ns-2's favour. Every
repetition runs every case once, so that a busy moment of the machine touches all of them alike. Costs are medians;
ratios are of the quietest repetitions, because what else runs on a machine only ever adds, and not to both sides alike.
The engine's bounds in us and s are of one machine on one day. Where ns-2 is measured, what is held against them is the
time of that day: the time here by what ns-2 takes here, times what it took then. Installs nothing.

Exit codes: 0 done, 1 a target was missed (with --check), 2 bad input or a run failed, 3 something is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import commands  # noqa: E402
import decisions  # noqa: E402
import marked  # noqa: E402
import workloads  # noqa: E402
from cases import WEB_SHORT_S, Case, cases  # noqa: E402
from ns2_reference import HERE as PEERS  # noqa: E402
from ns2_reference import MissingError, RunError, guarded, ns2_version, output_of, progress, today  # noqa: E402
from targets import TARGETS, Results, Runs  # noqa: E402

ROOT = HERE.parent
RESULTS = HERE / "results.json"
DOCS = ROOT / "docs" / "performance.md"

# ns-2's form of a run that ends after 10 ms: all it does is build the network.
NS2_SETUP = ("warmup=0", "time=0.01")
NS2_DURATION_S = 120
# Stretches of each discipline's decisions for each repetition asked for.
DECISION_ROUNDS = 6
VALGRIND_MISSING = "valgrind is missing: apt-get install --no-install-recommends valgrind"


def build() -> Path:
    """Builds the engine for release; returns the program."""
    command = ["cargo", "build", "--release", "--locked", "-p", "aqmlab-sim", "--example", "engine"]
    if shutil.which("cargo") is None:
        raise MissingError("cargo is missing: https://rustup.rs")
    said = subprocess.run(
        [*command, "--message-format=json-render-diagnostics"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if said.returncode != 0:
        raise RunError(f"{' '.join(command)}: exit code {said.returncode}")
    programs = [
        message["executable"]
        for message in map(json.loads, said.stdout.splitlines())
        if message.get("reason") == "compiler-artifact" and message["target"]["name"] == "engine"
    ]
    if not programs:
        raise RunError(f"{' '.join(command)}: built no program")
    return Path(programs[-1])


def timed(command: Sequence[str]) -> tuple[float, str, str]:
    """User CPU seconds, standard output and the last line on standard error of a command."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            said = err.read().strip().splitlines()
            raise RunError(f"{' '.join(command)}: exit code {child.returncode}: {said[-1] if said else 'no output'}")
        return usage.ru_utime, out.read(), (err.read().strip().splitlines() or [""])[-1]


def peak_mib(said: str) -> float:
    """The peak memory in the engine's last line: the kernel's figure for a child counts its parent's before exec."""
    found = re.search(r"([0-9.]+) MiB", said)
    return float(found.group(1)) if found else math.nan


def run_all(engine: Path, ns: str | None, chosen: Sequence[Case], reps: int, against: Path | None = None) -> Results:
    """Every case, `reps` times, a repetition of all after the other; `against` is an engine that does each in turn."""
    results: Results = {}
    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-") as folder:
        for rep in range(reps):
            for case in chosen:
                if case.name == "web-full" and rep > 0:
                    continue
                progress(f"repetition {rep + 1} of {reps}: {case.title}")
                file = Path(folder) / f"{case.name}.toml"
                file.write_text(case.scenario)
                if case.vectors:
                    Path(folder, workloads.VECTORS).write_text(case.vectors)
                user_s, text, said = timed([str(engine), str(file)])
                if case.name not in results:
                    done = json.loads(text)["engine"]
                    packets, events = done["bottleneck_packets"], done["events"]
                    results[case.name] = Runs([], [], packets, events, simulated_s(case), [], [], 0)
                runs = results[case.name]
                runs.user_s.append(user_s)
                runs.rss_mib.append(peak_mib(said))
                if against is not None and (rep == 0 or runs.other_s):
                    time_other(against, file, runs)
                if ns and case.ns2:
                    time_ns2(ns, case, runs)
    progress("")
    return results


def time_other(against: Path, file: Path, runs: Runs) -> None:
    """Does the work in another engine, once. One that does not know a case's keys has no time for it."""
    try:
        user_s, text, _ = timed([str(against), str(file)])
    except RunError:
        return
    runs.other_s.append(user_s)
    runs.other_packets = int(json.loads(text)["engine"]["bottleneck_packets"])


def simulated_s(case: Case) -> float:
    """The simulated seconds of a case."""
    return float(case.scenario.partition('duration = "')[2].partition("s")[0])


def time_ns2(ns: str, case: Case, runs: Runs) -> None:
    """Does the work in ns-2, once: the packets counted once, the run, the set-up alone."""
    script, *more = case.ns2
    command = [ns, str(PEERS / script), *more, f"time={NS2_DURATION_S}", "warmup=20"]
    if not runs.ns2_packets:
        runs.ns2_packets = int(json.loads(output_of(command))["run_departures"])
    runs.ns2_s.append(timed([*command, "mon=0"])[0])
    runs.ns2_setup_s.append(timed([*command, "mon=0", *NS2_SETUP])[0])


def count_instructions(engine: Path, chosen: Sequence[Case], results: Results) -> None:
    """Instructions a packet: the difference of two runs, so that the set-up falls out."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise MissingError(VALGRIND_MISSING)
    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-") as folder:
        for case in chosen:
            if not case.shorter_s:
                continue
            progress(f"instructions: {case.title}")
            seen = []
            for duration_s in (case.shorter_s, 2 * case.shorter_s):
                file = Path(folder) / f"{case.name}.toml"
                file.write_text(case.scenario)
                set_to = [f"duration={duration_s}s", "warmup=2s"]
                tool = [valgrind, "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
                command = [*tool, str(engine), str(file), *set_to]
                packets = json.loads(output_of(command))["engine"]["bottleneck_packets"]
                totals = [line for line in Path(folder, "out").read_text().splitlines() if line.startswith("totals:")]
                seen.append((int(totals[0].split()[1]), packets))
            (less, fewer), (more, most) = seen
            results[case.name].instructions_per_packet = round((more - less) / (most - fewer))
    progress("")


def machine() -> dict[str, Any]:
    """What this ran on."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        name = names[0] if names else name
    # The version; what follows it names a build of one machine.
    version = ".".join(platform.release().split(".")[:2])
    return {"cpu": name, "cpus": os.cpu_count(), "system": f"{platform.system()} {version}"}


def versions(ns: str | None) -> dict[str, str]:
    """Versions of what was measured."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = {"aqmlab": commit.stdout.strip() or "unknown", "rustc": output_of(["rustc", "--version"]).split()[1]}
    if ns:
        found["ns-2"] = ns2_version().removeprefix("ns-2 ")
    return found


def table(chosen: Sequence[Case], results: Results) -> list[list[str]]:
    """All cases as rows of text."""
    is_against = any(runs.other_s for runs in results.values())
    head = ["case", "us a packet", "min", "max", "events", "instr.", "CPU s", "MiB", "ns-2 us", "ns-2 / ours"]
    rows = [head + (["ours / other"] if is_against else [])]
    for case in chosen:
        runs = results[case.name]
        ns2, ratio = runs.ns2_us(), runs.ns2_ratio()
        count = runs.instructions_per_packet
        rows.append(
            [
                case.title,
                f"{runs.us():.3f}",
                f"{runs.us(min):.3f}",
                f"{runs.us(max):.3f}",
                f"{runs.events / runs.packets:.2f}",
                "" if count is None else f"{count:.0f}",
                f"{statistics.median(runs.user_s):.2f}",
                f"{max(runs.rss_mib):.0f}",
                "" if ns2 is None else f"{ns2:.3f}",
                "" if ratio is None else f"{ratio:.1f}",
            ]
        )
        if is_against:
            of_other = runs.other_ratio()
            rows[-1].append("" if of_other is None else f"{of_other:.2f}")
    return rows


HEAD_OF_TARGETS = ["target", "bound", "measured", "on the goals' day", "verdict"]


def command_rows(found: commands.Commands) -> list[list[str]]:
    """Targets of the command around the engine, as rows of text."""
    return [
        [title, f"at most {most:g} {unit}", f"{figure:.3g} {unit}", "", "met" if figure <= most else "MISSED"]
        for title, most, unit, figure in found.targets()
    ]


def target_table(results: Results) -> list[list[str]]:
    """All targets as rows of text."""
    rows = [HEAD_OF_TARGETS]
    for target in TARGETS:
        figure, is_met = target.verdict(results)
        on_the_day = target.on_the_day(results)
        sign = "at least" if target.at_least else "at most"
        shown = "not measured" if figure is None else f"{figure:.3g} {target.unit}"
        if target.title.startswith("120 minutes") and figure is not None and "web-full" not in results:
            shown += f" (from {WEB_SHORT_S} s)"
        verdict = {True: "met", False: "MISSED", None: ""}[is_met]
        scaled = "" if on_the_day is None else f"{on_the_day:.3g} {target.unit}"
        rows.append([target.title, f"{sign} {target.bound:g} {target.unit}", shown, scaled, verdict])
    return rows


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows for a terminal."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    )


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table: text to the left, numbers to the right."""
    ruler = ["---", *["--:"] * (len(rows[0]) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ruler, *rows[1:]])


def of_tables(heading: str, tables: Iterable[Sequence[Sequence[str]]]) -> str:
    """The tables as a page has them, below their heading."""
    return "\n\n".join([heading, *(markdown(rows) for rows in tables)])


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench.py", description="What a packet costs, in aqmlab and in ns-2.")
    parser.add_argument("--reps", type=int, default=5, metavar="N", help="repetitions of every case (default 5)")
    parser.add_argument("--case", action="append", metavar="NAME", help="only cases whose name begins so (repeatable)")
    parser.add_argument("--full", action="store_true", help="also 120 simulated minutes of web users, once")
    parser.add_argument("--instructions", action="store_true", help="also instructions a packet, by valgrind")
    parser.add_argument("--commands", action="store_true", help="only what aqmlab run costs beyond the engine")
    parser.add_argument("--decisions", action="store_true", help="only the cost of decisions")
    parser.add_argument("--no-ns2", action="store_true", help="without ns-2, even if it is installed")
    parser.add_argument("--engine", type=Path, metavar="PROGRAM", help="an engine that is built already")
    parser.add_argument("--against", type=Path, metavar="PROGRAM", help="another engine, which does each case in turn")
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"default {RESULTS.name} here, if all cases ran")
    parser.add_argument("--update-docs", action="store_true", help="write the tables into docs/performance.md")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    args = parser.parse_args(words)
    if args.reps < 1:
        parser.error(f"--reps {args.reps}: expected at least 1")
    names = [case.name for case in cases(args.full)]
    for wanted in args.case or []:
        if not any(name.startswith(wanted) for name in names):
            parser.error(f"--case {wanted}: expected the beginning of one of {', '.join(names)}")
    if args.update_docs and args.case:
        parser.error("--update-docs with --case: expected all cases")
    if args.against is not None and not os.access(args.against, os.X_OK):
        parser.error(f"--against {args.against}: expected a program: target/release/examples/engine of another commit")
    if args.commands and (args.against or args.case or args.full or args.output or args.decisions or args.update_docs):
        parser.error("--commands: expected none of --against, --case, --full, --output, --decisions and --update-docs")
    if args.decisions and (args.against or args.case or args.engine or args.full or args.output):
        parser.error("--decisions: expected none of --against, --case, --engine, --full and --output beside it")
    return args


def bench_decisions(args: argparse.Namespace) -> bool:
    """Measures and prints what decisions cost; whether a bound was missed."""
    cargo, valgrind = shutil.which("cargo"), shutil.which("valgrind")
    if cargo is None:
        raise MissingError("cargo is missing: https://rustup.rs")
    if args.instructions and valgrind is None:
        raise MissingError(VALGRIND_MISSING)
    rounds = DECISION_ROUNDS * args.reps
    costs = decisions.measure(decisions.example(cargo), rounds, valgrind if args.instructions else None)
    about = {"date": today(), "machine": machine(), "versions": versions(None)}
    heading = headline(about, f"the least of {rounds} stretches of {decisions.STRETCH:,} packets")
    print(f"Decisions, over drop-tail\n{heading}\n")
    print("\n\n".join(aligned(table) for table in decisions.tables(costs)))
    if args.update_docs:
        marked.put(DOCS, "decisions", of_tables(heading, decisions.tables(costs)))
        decisions.RESULTS.write_text(json.dumps({**about, **costs.values()}, indent=1) + "\n")
    return decisions.is_missed(costs)


def headline(about: dict[str, Any], how: str) -> str:
    """When, on what and of what the figures are."""
    said = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    cpu = about["machine"]
    return f"{about['date']}; {cpu['cpu']}, {cpu['cpus']} CPUs, {cpu['system']}; {said}; {how}."


def main(words: Sequence[str]) -> int:
    """Measures, prints, and returns the exit code."""
    args = arguments(words)
    if args.decisions:
        return 1 if bench_decisions(args) and args.check else 0
    engine: Path = args.engine or build()
    if args.commands:
        alone = commands.measure(engine, args.reps)
        print(aligned([HEAD_OF_TARGETS, *command_rows(alone)]))
        return 1 if args.check and any(figure > most for _, most, _, figure in alone.targets()) else 0
    ns = None if args.no_ns2 else shutil.which("ns")
    chosen = [c for c in cases(args.full) if not args.case or any(c.name.startswith(name) for name in args.case)]
    results = run_all(engine, ns, chosen, args.reps, args.against)
    if args.instructions:
        count_instructions(engine, chosen, results)

    about: dict[str, Any] = {"date": today(), "machine": machine(), "versions": versions(ns), "repetitions": args.reps}
    targets = [(t, *t.verdict(results)) for t in TARGETS]
    around = None if args.case else commands.measure(engine, args.reps)
    of_commands = [] if around is None else around.targets()
    document = {
        **about,
        "what": "User CPU time a packet that left the bottleneck, either direction; set-up included, of ns-2 excluded.",
        "cases": {name: runs.values() for name, runs in results.items()},
        "targets": [
            {
                "target": t.title,
                "bound": t.bound,
                "at_least": t.at_least,
                "unit": t.unit,
                "measured": f,
                "on_the_day_of_goals": t.on_the_day(results),
                "met": met,
            }
            for t, f, met in targets
        ]
        + [
            {"target": title, "bound": most, "at_least": False, "unit": unit, "measured": f, "met": f <= most}
            for title, most, unit, f in of_commands
        ],
        **({} if around is None else {"commands": around.values()}),
    }
    if output := args.output or (None if args.case else RESULTS):
        output.write_text(json.dumps(document, indent=1) + "\n")

    heading = headline(about, f"{args.reps} repetitions")
    bounds = target_table(results) + ([] if around is None else command_rows(around))
    print(f"{heading}\n\n{aligned(table(chosen, results))}\n\n{aligned(bounds)}")
    if ns is None:
        print("\nns-2 was not measured: apt-get install --no-install-recommends ns2")
    if args.update_docs:
        marked.put(DOCS, "bench", of_tables(heading, [bounds, table(chosen, results)]))
    is_missed = any(met is False for _, _, met in targets) or any(f > most for _, most, _, f in of_commands)
    if not args.case:
        print()
        is_missed |= bench_decisions(args)
    return 1 if args.check and is_missed else 0


if __name__ == "__main__":
    sys.exit(guarded("bench", main))
