"""The parking lot for ns-2 and for aqmlab: the cases, how ns-2 runs one, and the figures kept in
parking_reference.json.

    python benches/peers/parking_cases.py [SEEDS]        measure parking_reference.json anew
    python benches/peers/parking_cases.py missing        measure only the cases that are new or have other arguments

parking.py sets aqmlab beside it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ns2_reference import HERE, RunError, find_ns2, guarded, ns2_version, output_of, progress, today

REFERENCE = HERE / "parking_reference.json"
DURATION_S = 220
WARMUP_S = 20
SEEDS = 10
LIMIT = 100
HOPS = ("one", "two", "three")


@dataclass(frozen=True)
class Discipline:
    """A discipline in the words of both simulators."""

    ns2: str
    """ns-2's class."""
    qdisc: str
    """A scenario's [links.NAME.qdisc]."""


# ns-2's DropTail with a limit of 100 holds 99 packets.
DROPTAIL = Discipline("DropTail", f'kind = "pfifo"\nlimit = "{LIMIT - 1}p"\n')
RED_ARGUMENTS = "th=25 maxth=75 gentle=1 wq=0.002 linterm=10 wait=1 mean=1500"
RED = Discipline(
    "RED",
    f"""kind = "red"
dialect = "ns2"
limit = "{LIMIT}p"
mode = "packet"
mean_packet = "1500b"
min = "25p"
max = "75p"
probability = 0.1
wq = 0.002
gentle = true
""",
)
REVERSE = DROPTAIL
TRANSFER_PACKETS = 20
TRANSFER_RTT_MS = 30
RTT_MS = (10, 50)
"""Of the flows of a group, beside what the hops take."""
HOP_DELAY_MS = 10


@dataclass(frozen=True)
class Case:
    """Three hops in a row and the flows over them."""

    name: str
    title: str
    disciplines: tuple[Discipline, Discipline, Discipline]
    rates: tuple[int, int, int] = (20, 20, 20)
    """Mb/s."""
    long: int = 10
    """Flows over all three."""
    cross: tuple[int, int, int] = (10, 10, 10)
    """Over each alone, forward."""
    back: tuple[int, int, int] = (0, 0, 0)
    """Over each alone, in reverse."""
    transfers: tuple[int, int, int] = (0, 0, 0)
    """Over each alone, forward, a second."""

    @property
    def ns2(self) -> str:
        """Arguments of ns2_parking.tcl."""
        lists = {
            "hops": [one.ns2 for one in self.disciplines],
            "rates": self.rates,
            "limits": [LIMIT] * 3,
            "cross": self.cross,
            "back": self.back,
            "transfers": self.transfers,
        }
        words = [f"{key}={','.join(map(str, values))}" for key, values in lists.items()]
        return " ".join([*words, f"long={self.long}", RED_ARGUMENTS])

    @property
    def places(self) -> list[tuple[int, str]]:
        """The hops and directions that carry data."""
        forward = [(hop, "forward") for hop in range(3)]
        return [*forward, *((hop, "reverse") for hop in range(3) if self.back[hop])]


CASES = (
    Case("droptail", "drop-tail", (DROPTAIL,) * 3),
    Case("red", "RED 25/75", (RED,) * 3),
    Case(
        "mixed", "drop-tail, RED, drop-tail; 20, 12, 16 Mb/s", (DROPTAIL, RED, DROPTAIL), (20, 12, 16), 10, (10, 4, 8)
    ),
    Case("transfers", "RED, transfers", (RED,) * 3, cross=(5, 5, 5), transfers=(20, 30, 20)),
    Case("two_way", "RED, both ways", (RED,) * 3, back=(5, 5, 5)),
    Case("many", "RED, 30 and 30 flows", (RED,) * 3, long=30, cross=(30, 30, 30)),
)

Run = dict[str, Any]


def run_ns2(ns: str, case: Case, seed: int) -> Run:
    """One run of ns2_parking.tcl."""
    window = [f"time={DURATION_S}", f"warmup={WARMUP_S}", f"seed={seed}"]
    run: Run = json.loads(output_of([ns, str(HERE / "ns2_parking.tcl"), *case.ns2.split(), *window]))
    return run


def block(kind: str, route: Sequence[str], lines: Sequence[str], direction: str = "forward") -> str:
    """A block of traffic."""
    names = ", ".join(f'"{name}"' for name in route)
    head = ["[[traffic]]", f'kind = "{kind}"', f'direction = "{direction}"', f"route = [{names}]"]
    return "\n".join([*head, *lines]) + "\n\n"


def bulk(flows: int, route: Sequence[str], direction: str = "forward") -> str:
    """Long flows over a route."""
    if not flows:
        return ""
    rtt = f'rtt = {{ even = ["{RTT_MS[0]}ms", "{RTT_MS[1]}ms"] }}'
    return block("bulk", route, [f"flows = {flows}", rtt, 'start = { uniform = ["0s", "1s"] }'], direction)


def transfers(per_s: int, hop: str) -> str:
    """Transfers over a hop."""
    if not per_s:
        return ""
    size = f'size = "{TRANSFER_PACKETS * 1460}b"'
    return block("poisson", [hop], [f'arrivals = "{per_s}hz"', 'request = "0b"', size, f'rtt = "{TRANSFER_RTT_MS}ms"'])


def scenario_of(case: Case) -> str:
    """The case as a scenario of aqmlab."""
    text = f"""name = "parking lot: {case.title}"
duration = "{DURATION_S}s"
warmup = "{WARMUP_S}s"

[path]
access_rate = "1gbit"

[tcp]
stack = "ns2"
handshake = true
one_way = true
mss = "1460b"

"""
    text += bulk(case.long, HOPS)
    for number, hop in enumerate(HOPS):
        text += bulk(case.cross[number], [hop])
        text += bulk(case.back[number], [hop], "reverse")
        text += transfers(case.transfers[number], hop)
    for hop, rate, discipline in zip(HOPS, case.rates, case.disciplines, strict=True):
        text += f"""[links.{hop}]
rate = "{rate}mbit"
delay = "{HOP_DELAY_MS}ms"
[links.{hop}.qdisc]
{discipline.qdisc}[links.{hop}.reverse_qdisc]
{REVERSE.qdisc}
"""
    return text


def measure_reference(ns: str, seeds: Sequence[int], kept: dict[str, Any]) -> None:
    """ns-2 alone: every case with every seed; of `kept`, cases are taken over."""
    stored = kept.get("cases", {})
    cases = {case.name: stored[case.name] for case in CASES if stored.get(case.name, {}).get("arguments") == case.ns2}
    for case in CASES:
        if case.name in cases:
            continue
        runs = []
        for seed in seeds:
            progress(f"ns-2: {case.title}, seed {seed}")
            runs.append(run_ns2(ns, case, seed))
        cases[case.name] = {"title": case.title, "arguments": case.ns2, "runs": runs}
        write_reference(seeds, cases)
    progress("")


def write_reference(seeds: Sequence[int], cases: dict[str, Any]) -> None:
    """Writes parking_reference.json, its cases in their order."""
    reference = {
        "what": "Three hops in a row (ns2_parking.tcl); the packet in service is not counted in the queue.",
        "simulator": ns2_version(),
        "date": today(),
        "window_s": [WARMUP_S, DURATION_S],
        "seeds": list(seeds),
        "cases": {case.name: cases[case.name] for case in CASES if case.name in cases},
    }
    REFERENCE.write_text(json.dumps(reference, indent=1) + "\n")


def main(words: Sequence[str]) -> int:
    """Measures and writes the reference; returns the exit code."""
    is_missing = list(words) == ["missing"]
    if not is_missing and (len(words) > 1 or not all(word.isdecimal() and int(word) > 0 for word in words)):
        raise RunError(f"'{' '.join(words)}': expected nothing, a number of seeds, or missing")
    kept = json.loads(REFERENCE.read_text()) if is_missing else {}
    seeds = kept["seeds"] if is_missing else list(range(1, int(words[0]) + 1 if words else SEEDS + 1))
    measure_reference(find_ns2(), seeds, kept)
    return 0


if __name__ == "__main__":
    sys.exit(guarded("parking-cases", main))
