"""The cases whose packets are counted: each a scenario, with the same work in ns-2 where it has it."""

from __future__ import annotations

from dataclasses import dataclass

import workloads
from ns2_reference import CASES as DISCIPLINES
from workloads import arrivals, bulk, idle, idle_vectors, low_latency, mix, packmime, transfers, web, wide

# The published length of the web experiment.
WEB_FULL_S = 7200
WEB_SHORT_S = 600

SCALE_FLOWS = (10, 100, 1000, 10_000)
# Megabits a second, and simulated seconds that make five to ten million packets.
SCALE_RATES = ((100, 300), (1000, 40), (10_000, 6))
IDLE = (10_000, 100_000)
BULK = {"droptail": "drop-tail", "red": "RED", "pi120": "PI", "rem120": "REM"}

LOW_LATENCY = {"linux": "CUBIC with ECN", "accurate": "accurate ECN", "pacing": "and pacing", "prague": "Prague"}


@dataclass(frozen=True)
class Case:
    """One scenario."""

    name: str
    title: str
    scenario: str
    ns2: tuple[str, ...] = ()
    """Script and arguments of the same work in ns-2; empty if there is none."""
    vectors: str = ""
    """Connection vectors that the scenario reads beside it."""
    shorter_s: int = 0
    """Simulated seconds of a run short enough for valgrind; 0 if the instructions of this case are not counted."""


def cases(full: bool) -> list[Case]:
    """All cases, in the order of the table."""
    found = [
        Case(
            f"bulk-{d.name}",
            f"100 long flows, {BULK[d.name]}",
            bulk(600, d.qdisc),
            ("ns2_bulk.tcl", *d.ns2.split()),
            shorter_s=10,
        )
        for d in DISCIPLINES
        if d.name in BULK
    ]
    for stack in ("freebsd4", "linux"):
        ns2 = ("ns2_web.tcl", "gen=pool") if stack == "linux" else ()
        found.append(
            Case(f"transfers-{stack}", f"1480 connections/s, {stack}", transfers(300, stack), ns2, shorter_s=30)
        )
    found.append(Case("web", f"18,670 web users, PI, {WEB_SHORT_S} s", web(WEB_SHORT_S), shorter_s=30))
    found.append(Case("packmime", "700 connections/s of PackMime", packmime(300), shorter_s=30))
    found.append(Case("tmix", "connection vectors, 90 Mb/s", mix(300), shorter_s=40))
    for seconds in (10, 100):
        title = f"{seconds * 10_000:,} connections in one run"
        found.append(Case(f"arrivals-{seconds}", title, arrivals(seconds)))
    for stack in ("freebsd4", "linux"):
        for count in IDLE:
            title = f"{count:,} open connections, mostly idle, {stack}"
            found.append(Case(f"idle-{stack}-{count}", title, idle(stack), vectors=idle_vectors(count)))
    for hosts, title in LOW_LATENCY.items():
        case = Case(f"l4s-{hosts}", f"4 long flows, DualPI2, {title}", low_latency(300, hosts), shorter_s=6)
        found.append(case)
    for mbit, duration_s in workloads.WIDE_RATES:
        found.append(Case(f"wide-{mbit}", f"10 long flows on {mbit:,} Mb/s, 100 ms", wide(mbit, duration_s)))
    if full:
        found.append(Case("web-full", f"18,670 web users, PI, {WEB_FULL_S} s", web(WEB_FULL_S)))
    for mbit, duration_s in SCALE_RATES:
        # Drop-tail with room for 29 ms at every rate, as 240 packets are on 100 Mb/s.
        qdisc = f'kind = "pfifo"\nlimit = "{mbit * 240 // 100 - 1}p"\n'
        for flows in SCALE_FLOWS:
            title = f"{flows:,} long flows on {mbit:,} Mb/s"
            found.append(Case(scale_name(flows, mbit), title, bulk(duration_s, qdisc, flows, mbit)))
    return found


def scale_name(flows: int, mbit: int) -> str:
    """Name of a case of the scaling matrix."""
    return f"scale-{mbit}-{flows}"
