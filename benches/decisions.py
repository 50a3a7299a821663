"""What the decisions of every discipline cost: runs crates/aqm/examples/decisions.rs, and counts its instructions.

Time is of the least of many short stretches, drop-tail's beside each, so that what else runs on the machine falls out;
it is of one thread that never waits. Instructions are callgrind's, of one stretch after the same warm-up.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ns2_reference import RunError, output_of, progress

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "decisions.json"
DROPTAIL = "pfifo"
# Packets in a stretch, as in decisions.rs.
STRETCH = 40_000

USUAL = {"standing": "standing", "light": "light", "flows-1000": "1,000 flows", "mixed": "mixed"}
REGIMES = {**USUAL, "overload": "overload"}
SCALES = {
    "flows-10": "10 flows",
    "flows-10000": "10,000 flows",
    "queue-10": "queue of 10",
    "queue-100000": "queue of 100,000",
}
FLOODS = ("flood_100000", "flood_1000000")

LAW_NS = 30.0
FQ_CODEL_NS = 60.0
DUALPI2_NS = 60.0
CAKE_NS = 120.0
# A search would cost 1000 times as much with 10,000 flows as with 10; a logarithm four times as much.
GROWTH = 4.0
# A flow table that has not been as full as it gets is less than half of what it then is.
FLOOD_GROWTH = 1.1


@dataclass
class Cost:
    """One discipline."""

    ns: dict[str, float]
    """Nanoseconds a packet over drop-tail, by regime."""
    instructions: dict[str, int]
    """Instructions a packet over drop-tail, by regime; empty if they were not counted."""
    mean_queue: dict[str, float]
    signalled: dict[str, float]
    memory_bytes: dict[str, int]

    def worst_ns(self) -> float:
        """The most of the usual regimes."""
        return max(self.ns[regime] for regime in USUAL)


@dataclass
class Costs:
    """The costs of all disciplines."""

    droptail_ns: dict[str, float]
    """Of drop-tail itself, the link included."""
    droptail_instructions: dict[str, int]
    disciplines: dict[str, Cost]
    rounds: int

    def values(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "what": "What a packet costs over drop-tail: ns, the least of many stretches; instructions, by callgrind.",
            "rounds": self.rounds,
            "droptail_ns": self.droptail_ns,
            "droptail_instructions": self.droptail_instructions,
            "disciplines": {
                name: {"ns_per_packet": round(cost.worst_ns(), 1), **vars(cost)}
                for name, cost in self.disciplines.items()
            },
        }

    def growth(self, few: str, many: str) -> tuple[str, float] | None:
        """The discipline whose instructions, the link's included, grow most from one scale to the other."""
        link = self.droptail_instructions
        grown = {
            name: (cost.instructions[many] + link[many]) / (cost.instructions[few] + link[few])
            for name, cost in self.disciplines.items()
            if cost.instructions
        }
        return max(grown.items(), key=lambda item: item[1]) if grown else None


@dataclass(frozen=True)
class Bound:
    """A bound on a figure, and whose it is."""

    title: str
    bound: float
    unit: str
    figure: Callable[[Costs], tuple[str, float] | None]


def dearest_law(costs: Costs) -> tuple[str, float]:
    """The law that costs most in the usual regimes."""
    laws = {name: cost.worst_ns() for name, cost in costs.disciplines.items() if is_law(name)}
    return max(laws.items(), key=lambda item: item[1])


def with_1000_flows(name: str) -> Callable[[Costs], tuple[str, float]]:
    """Reads a discipline's cost with 1,000 active flows."""
    return lambda costs: (name, costs.disciplines[name].ns["flows-1000"])


def of_discipline(name: str) -> Callable[[Costs], tuple[str, float]]:
    """Reads what a discipline costs at most in the usual regimes."""
    return lambda costs: (name, costs.disciplines[name].worst_ns())


def flood_growth(costs: Costs) -> tuple[str, float]:
    """The discipline whose memory grows most from a flood of 100,000 flows to one of ten times as many."""
    few, many = FLOODS
    grown = {name: cost.memory_bytes[many] / cost.memory_bytes[few] for name, cost in costs.disciplines.items()}
    return max(grown.items(), key=lambda item: item[1])


BOUNDS = (
    Bound("dearest law over drop-tail", LAW_NS, "ns", dearest_law),
    Bound("FQ-CoDel over drop-tail, 1,000 flows", FQ_CODEL_NS, "ns", with_1000_flows("fq_codel")),
    Bound("DualPI2 over drop-tail", DUALPI2_NS, "ns", of_discipline("dualpi2")),
    Bound("CAKE over drop-tail, 1,000 flows", CAKE_NS, "ns", with_1000_flows("cake")),
    Bound("instructions, 10,000 flows by 10", GROWTH, "x", lambda c: c.growth("flows-10", "flows-10000")),
    Bound("instructions, queue of 100,000 by 10", GROWTH, "x", lambda c: c.growth("queue-10", "queue-100000")),
    Bound("memory, 1,000,000 flows gone by, by 100,000", FLOOD_GROWTH, "x", flood_growth),
)


def is_law(name: str) -> bool:
    """Whether a discipline is a law in a FIFO, as its page says."""
    page = ROOT / "docs" / "disciplines" / f"{name}.md"
    return "\n- Kind: law in a FIFO" in page.read_text()


def measure(program: Path, rounds: int, valgrind: str | None) -> Costs:
    """Times every discipline, and counts its instructions if `valgrind` is given."""
    progress("decisions of every discipline")
    droptail_ns: dict[str, float] = {}
    disciplines: dict[str, Cost] = {}
    for line in output_of([str(program), "time", str(rounds)]).splitlines():
        seen = json.loads(line)
        name, regime = seen.pop("discipline"), seen.pop("regime")
        cost = disciplines.setdefault(name, Cost({}, {}, {}, {}, {}))
        if regime == "memory":
            cost.memory_bytes = seen
            continue
        cost.ns[regime] = round(seen["ns"] - seen["droptail_ns"], 1)
        cost.mean_queue[regime] = seen["mean_queue"]
        cost.signalled[regime] = seen["signalled"]
        droptail_ns[regime] = min(droptail_ns.get(regime, 1e9), seen["droptail_ns"])
    costs = Costs(droptail_ns, {}, disciplines, rounds)
    if valgrind:
        counts = count(valgrind, program)
        costs.droptail_instructions = counts[DROPTAIL]
        for name, cost in disciplines.items():
            cost.instructions = {
                regime: number - costs.droptail_instructions[regime] for regime, number in counts[name].items()
            }
    progress("")
    return costs


def count(valgrind: str, program: Path) -> dict[str, dict[str, int]]:
    """Instructions a packet of every discipline in every regime, the link's included."""
    stretches: dict[str, list[str]] = {}
    for line in output_of([str(program), "list"]).splitlines():
        name, regime = line.split()
        stretches.setdefault(name, []).append(regime)
    counts = {}
    for name, regimes in stretches.items():
        progress(f"instructions of {name}")
        with tempfile.TemporaryDirectory(prefix="aqmlab-bench-") as folder:
            # Collecting in the stretches alone; what one of them cost is dumped when the next begins, and at the end.
            tool = [valgrind, "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
            collect = ["--toggle-collect=decisions::stretch*", "--dump-before=*decisions::stretch*"]
            output_of([*tool, *collect, str(program), "count", name])
            dumps = [Path(folder, f"out.{number}") for number in range(2, len(regimes) + 1)] + [Path(folder, "out")]
            totals = [re.search(r"^totals: (\d+)", dump.read_text(), re.MULTILINE) for dump in dumps]
            counts[name] = {
                regime: round(int(total[1]) / STRETCH) for regime, total in zip(regimes, totals, strict=True) if total
            }
        if len(counts[name]) != len(regimes):
            raise RunError(f"callgrind counted nothing for {name}")
    return counts


def bounds_table(costs: Costs) -> list[list[str]]:
    """All bounds as rows of text."""
    rows = [["target", "bound", "measured", "whose", "verdict"]]
    for bound in BOUNDS:
        found = bound.figure(costs)
        head = [bound.title, f"at most {bound.bound:g} {bound.unit}"]
        if found is None:
            rows.append([*head, "not measured", "", ""])
            continue
        name, figure = found
        verdict = "met" if figure <= bound.bound else "MISSED"
        rows.append([*head, f"{figure:.3g} {bound.unit}", f"`{name}`", verdict])
    return rows


def is_missed(costs: Costs) -> bool:
    """Whether a bound is missed."""
    figures = [(bound.figure(costs), bound.bound) for bound in BOUNDS]
    return any(figure is not None and figure[1] > bound for figure, bound in figures)


def cost_table(costs: Costs) -> list[list[str]]:
    """Nanoseconds, and instructions where they were counted, over drop-tail."""
    rows = [["discipline", *REGIMES.values(), "queue", "signalled"]]
    link = [f"{costs.droptail_ns[regime]:.1f}" for regime in REGIMES]
    if costs.droptail_instructions:
        link = [f"{ns} ({costs.droptail_instructions[regime]})" for ns, regime in zip(link, REGIMES, strict=True)]
    rows.append(["*drop-tail and the link*", *link, "", ""])
    for name, cost in costs.disciplines.items():
        cells = []
        for regime in REGIMES:
            counted = f" ({cost.instructions[regime]})" if cost.instructions else ""
            cells.append(f"{cost.ns[regime]:.1f}{counted}")
        queue, signalled = cost.mean_queue["standing"], cost.signalled["standing"]
        rows.append([f"`{name}`", *cells, f"{queue:.0f}", f"{100 * signalled:.1f} %"])
    return rows


def scale_table(costs: Costs) -> list[list[str]]:
    """How costs and memory grow with flows and with the queue."""
    heads = [*SCALES.values(), "KiB, 10 flows", "10,000 flows", "100,000 gone by", "1,000,000 gone by"]
    rows = [["discipline", *heads]]
    for name, cost in costs.disciplines.items():
        cells = [str(cost.instructions[scale]) if cost.instructions else f"{cost.ns[scale]:.1f} ns" for scale in SCALES]
        memory = [f"{cost.memory_bytes[key] / 1024:.0f}" for key in ("flows_10", "flows_10000", *FLOODS)]
        rows.append([f"`{name}`", *cells, *memory])
    return rows


def example(cargo: str) -> Path:
    """Builds the program; returns it."""
    command = [cargo, "build", "--release", "--locked", "-p", "aqmlab-aqm", "--example", "decisions"]
    said = subprocess.run(
        [*command, "--message-format=json-render-diagnostics"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    built = [json.loads(line) for line in said.stdout.splitlines()]
    programs = [m["executable"] for m in built if m.get("reason") == "compiler-artifact" and m.get("executable")]
    if said.returncode != 0 or not programs:
        raise RunError(f"{' '.join(command)}: exit code {said.returncode}")
    return Path(programs[-1])


def tables(costs: Costs) -> Sequence[Sequence[Sequence[str]]]:
    """All tables, in their order."""
    return [bounds_table(costs), cost_table(costs), scale_table(costs)]
