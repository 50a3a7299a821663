"""Rates of Classic and Scalable flows that share a link under PI2 and DualPI2.

As many Reno or CUBIC flows as DCTCP flows, one each and five each, over 4 to 200 Mb/s and 5 to 100 ms: the grid of De
Schepper et al. 2016. For each point the rate of a DCTCP flow over that of a Classic one, and how far the marks of one
are from k times the root of the losses of the other, which is what the discipline itself promises (RFC 9332 §2.1).

    python benches/coupling.py                  run the grid and print the tables
    python benches/coupling.py --update-docs    and put them into docs/validation.md
    python benches/coupling.py --program PATH   a built example `shares` instead of building one

Exit codes: 0 done, 1 the coupling is off where it must hold, 2 a run failed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import marked  # noqa: E402

ROOT = HERE.parent
DOCS = ROOT / "docs" / "validation.md"

RATES = (4, 12, 40, 120, 200)
RTTS = (5, 10, 20, 50, 100)
FLOWS = (5, 1)
COUPLING_FACTOR = 2.0
# Where the coupling must hold: windows of ten segments and more, and as many flows as keep p' from swinging.
MUST_HOLD = [(rate, rtt) for rate in (120, 200) for rtt in (5, 10)]
# Marks over k times the root of losses: some 2000 losses are known within 7 % (three standard errors), their root
# within half of that; and a p' that swings by 30 % has a mean square 9 % above the square of its mean, the root 4 %.
TOLERANCE = 0.08


class FailedError(Exception):
    """A program did not do its work."""


@dataclass(frozen=True)
class Pair:
    """A discipline and two kinds of TCP."""

    title: str
    settings: tuple[str, ...]
    # Bytes of a full segment's packet, and of its payload.
    packet: int
    payload: int


NS2, LINUX = (1500, 1460), (1500, 1448)
PI2 = ("link.qdisc.kind=pi2", "link.qdisc.ecn=true")
PAIRS = (
    Pair("`pi2`, Reno and DCTCP, stack `ns2`", PI2, *NS2),
    Pair("`dualpi2`, Reno and DCTCP, stack `ns2`", (), *NS2),
    Pair("`pi2`, CUBIC and DCTCP, stack `linux`", (*PI2, "tcp.stack=linux", "traffic.0.cc=cubic"), *LINUX),
    Pair("`dualpi2`, CUBIC and DCTCP, stack `linux`", ("tcp.stack=linux", "traffic.0.cc=cubic"), *LINUX),
)


@dataclass(frozen=True)
class Found:
    """What a run gave."""

    # Rate of a Scalable flow over that of a Classic one.
    ratio: float
    # Share of marks over k times the root of the share of losses.
    coupling: float


def settings_of(pair: Pair, rate: int, rtt: int, flows: int) -> list[str]:
    """The settings of one run."""
    each = [f"traffic.{block}.flows={flows}" for block in (0, 1)]
    return [f"link.rate={rate}mbit", f"path.rtt={rtt}ms", *each, *pair.settings]


def program_built() -> Path:
    """Builds the example and finds it."""
    command = ["cargo", "build", "--locked", "--release", "--package", "aqmlab-sim", "--example", "shares"]
    done = subprocess.run([*command, "--message-format=json"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FailedError(f"{' '.join(command)}: {done.stderr.strip()}")
    built = [json.loads(line) for line in done.stdout.splitlines()]
    paths = [one["executable"] for one in built if one.get("executable") and one["target"]["name"] == "shares"]
    return Path(paths[-1])


def run(program: Path, pair: Pair, flows: int) -> dict[tuple[int, int], Found]:
    """Runs the grid of a pair."""
    points = [(rate, rtt) for rate in RATES for rtt in RTTS]
    arguments: list[str] = []
    for rate, rtt in points:
        arguments += ["--", *settings_of(pair, rate, rtt, flows)]
    command = [str(program), str(HERE / "coupling.toml"), *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FailedError(f"{program}: {done.stderr.strip()}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {point: found(pair, flows, line) for point, line in zip(points, lines, strict=True)}


def found(pair: Pair, flows: int, line: dict[str, object]) -> Found:
    """Reads one run's line."""
    rates, summary = line["flows_bps"], line["summary"]
    assert isinstance(rates, list) and isinstance(summary, dict)
    forward, seconds = summary["forward"], float(summary["measured_s"])
    classic, scalable = sum(rates[:flows]), sum(rates[flows:])
    # Goodput is what was delivered but for repairs; all losses are the Classic flows', all marks the others'.
    delivered, marked = (rate * seconds / (8 * pair.payload) for rate in (classic, scalable))
    lost_share = forward["dropped_packets"] / max(1.0, delivered + forward["dropped_packets"])
    marked_share = forward["marked_packets"] / max(1.0, marked)
    coupling = marked_share / (COUPLING_FACTOR * math.sqrt(lost_share)) if lost_share > 0.0 else math.nan
    return Found(scalable / classic, coupling)


def table(grids: dict[int, dict[tuple[int, int], Found]], what: str) -> list[str]:
    """A table of five flows each, one each in brackets."""
    lines = ["| Mb/s | " + " | ".join(f"{rtt} ms" for rtt in RTTS) + " |", "|--:|" + "--:|" * len(RTTS)]
    for rate in RATES:
        cells = []
        for rtt in RTTS:
            many, one = (getattr(grids[flows][rate, rtt], what) for flows in FLOWS)
            cells.append(f"{many:.2f} ({one:.2f})")
        lines.append(f"| {rate} | " + " | ".join(cells) + " |")
    return lines


def within(grids: dict[int, dict[tuple[int, int], Found]], share: float) -> str:
    """How many points have equal rates within a share."""
    counts = []
    for flows in FLOWS:
        count = sum(1.0 / (1.0 + share) <= one.ratio <= 1.0 + share for one in grids[flows].values())
        counts.append(f"{count} of {len(RATES) * len(RTTS)}")
    return f"{counts[0]} with five flows each, {counts[1]} with one"


def main() -> int:
    """Runs, prints, and writes if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, help="a built example `shares`")
    parser.add_argument("--update-docs", action="store_true", help="write the tables into docs/validation.md")
    args = parser.parse_args()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    lines = [f"Run on {today}, one run of 160 s measured at each point. Classic flows are without ECN.", ""]
    off: list[str] = []
    try:
        program = args.program or program_built()
        for pair in PAIRS:
            grids = {flows: run(program, pair, flows) for flows in FLOWS}
            lines += [f"**{pair.title}.** Rate of a DCTCP flow over that of a Classic one, five flows of each (one of"]
            lines += [f"each in brackets). Equal within 10 %: {within(grids, 0.1)}.", "", *table(grids, "ratio"), ""]
            lines += ["Share of marks over k times the root of the share of losses:", "", *table(grids, "coupling"), ""]
            for rate, rtt in MUST_HOLD:
                coupling = grids[FLOWS[0]][rate, rtt].coupling
                if pair.title.startswith("`dualpi2`, Reno") and abs(coupling - 1.0) > TOLERANCE:
                    off.append(f"{pair.title}, {rate} Mb/s and {rtt} ms: {coupling:.3f}, expected 1 ± {TOLERANCE}")
    except FailedError as error:
        print(f"coupling: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    if args.update_docs:
        marked.put(DOCS, "coupling", "\n".join(lines))
    for line in off:
        print(f"coupling: {line}", file=sys.stderr)
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
