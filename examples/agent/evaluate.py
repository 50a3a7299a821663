"""Compares a policy with other disciplines on links that it has not seen, and writes the tables.

    python examples/agent/evaluate.py examples/agent/policy.onnx
    python examples/agent/evaluate.py policy.onnx --reps 1 --duration 20s      a first look

Each link has the discipline in its forward direction, and drop-tail in reverse. All disciplines have the buffer that
is named, and else their default parameters. Intervals are of 95 %, over runs with seeds of their own.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import aqmlab
from aqmlab.comparison import Column
from aqmlab.statistics import across_runs

BULK = """
[link]
rate = "{rate}"
qdisc = {{ kind = "pfifo", limit = "{limit}" }}
[path]
rtt = {{ uniform = ["{low}", "{high}"] }}
[tcp]
ecn = "{ecn}"
[[traffic]]
kind = "bulk"
flows = {flows}
"""
WEB = """
[link]
rate = "{rate}"
qdisc = {{ kind = "pfifo", limit = "{limit}" }}
[path]
rtt = {{ uniform = ["10ms", "150ms"] }}
[[traffic]]
kind = "web"
model = "unc2001"
users = {users}
"""


def bulk(rate: str, limit: str, low: str, high: str, flows: int, ecn: str = "off") -> str:
    """A scenario of long flows."""
    return BULK.format(rate=rate, limit=limit, low=low, high=high, flows=flows, ecn=ecn)


LINKS = {
    "8 Mb/s, 80 ms, 4 flows": bulk("8mbit", "300p", "75ms", "85ms", 4),
    "15 Mb/s, 15 to 45 ms, 10 flows": bulk("15mbit", "500p", "15ms", "45ms", 10),
    "15 Mb/s, 15 to 45 ms, 10 flows, ECN": bulk("15mbit", "500p", "15ms", "45ms", 10, "on"),
    "10 Mb/s, 40 ms, 100 flows": bulk("10mbit", "400p", "35ms", "45ms", 100),
    "10 Mb/s, 300 ms, 10 flows": bulk("10mbit", "400p", "290ms", "310ms", 10),
    "2 Mb/s, 30 ms, 3 flows": bulk("2mbit", "100p", "25ms", "35ms", 3),
    "50 Mb/s, 50 ms, 1 flow": bulk("50mbit", "1000p", "45ms", "55ms", 1),
    "100 Mb/s, 20 ms, 50 flows": bulk("100mbit", "1000p", "15ms", "25ms", 50),
}
"""Rates and times within the range of the training links, then beyond it."""
FRESH = {
    "20 Mb/s, 60 ms, 8 flows": bulk("20mbit", "400p", "55ms", "65ms", 8),
    "6 Mb/s, 25 ms, 2 flows": bulk("6mbit", "150p", "20ms", "30ms", 2),
    "30 Mb/s, 100 ms, 30 flows": bulk("30mbit", "800p", "90ms", "110ms", 30),
    "12 Mb/s, 20 to 120 ms, 50 flows": bulk("12mbit", "400p", "20ms", "120ms", 50),
}
"""Links that were first looked at when the policy had been chosen."""
PAGES = {
    "10 Mb/s, 1,600 web users": WEB.format(rate="10mbit", limit="400p", users=1600),
    "10 Mb/s, 1,900 web users": WEB.format(rate="10mbit", limit="400p", users=1900),
}

OTHERS = ("pi2", "codel", "pie", "fq_codel")
OF_LINKS = (
    ("utilisation", "Utilisation, %", 100.0),
    ("queue_delay_mean_s", "Mean wait, ms", 1e3),
    ("queue_delay_p99_s", "99 % of packets waited less than, ms", 1e3),
    ("loss_ratio", "Loss, %", 100.0),
)
OF_PAGES = (("p50", "Median response time, ms", 1e3), ("p99", "99th percentile of response times, ms", 1e3))


def compared(text: str, policy: Path, reps: int, duration: str) -> aqmlab.Comparison:
    """All disciplines on a link."""
    limit = re.search(r'limit = "(\w+)"', text)
    assert limit is not None
    marks = " ecn" if 'ecn = "on"' in text else ""
    words = ["pfifo", *(f"{name}{marks}" for name in (*OTHERS, str(policy)))]
    keys = {"duration": duration, "warmup": "10s"}
    return aqmlab.compare(text, *(f"{word} limit {limit[1]} / pfifo" for word in words), set=keys, reps=reps, seed=2001)


def readable(value: float, digits: int) -> str:
    """A number to so many digits, and what is less than a thousandth as none."""
    return f"{0 if abs(value) < 1e-3 else float(f'{value:.{digits}g}'):g}"


def table(found: dict[str, aqmlab.Comparison], measure: str, title: str, scale: float) -> list[str]:
    """A table: a row for each link, a column for each discipline."""

    def cell(column: Column) -> str:
        runs = column.result.runs
        forward = [run.summary["forward"] for run in runs]
        it = column.estimate(measure) if measure in ("p50", "p99") else across_runs([one[measure] for one in forward])
        width = "" if it.half_width is None else f" ± {readable(it.half_width * scale, 2)}"
        return f"{readable(it.value * scale, 3)}{width}"

    head: Sequence[str] = ("drop-tail", *OTHERS, "learnt")
    rows = [f"| {title} | {' | '.join(head)} |", f"|---|{'--:|' * len(head)}"]
    return [*rows, *(f"| {link} | {' | '.join(map(cell, one.columns))} |" for link, one in found.items()), ""]


def main() -> None:
    """Compares, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", type=Path)
    parser.add_argument("--reps", type=int, default=8)
    parser.add_argument("--duration", default="60s")
    chosen = parser.parse_args()
    for links, measures in ((FRESH, OF_LINKS), (LINKS, OF_LINKS), (PAGES, OF_PAGES)):
        found = {name: compared(text, chosen.policy, chosen.reps, chosen.duration) for name, text in links.items()}
        for each in measures:
            print("\n".join(table(found, *each)))


if __name__ == "__main__":
    main()
