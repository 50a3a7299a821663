"""One TCP flow of ns-2, packet by packet, while packets are lost and marked by number: drawn cases.

    python benches/peers/ns2_packets.py        measure testdata/ns2/packets.json anew

`cargo test -p aqmlab-tcp --test all ns2_packets` sends the same flows with the stack `ns2` and compares every packet.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
from typing import Any

from ns2_reference import HERE, find_ns2, ns2_version, progress, today

REFERENCE = HERE.parents[1] / "testdata/ns2/packets.json"
CASES = 200
MOST_PACKETS = 200
"""So many of a flow are kept."""
SPARED = 3
"""So many packets at first are not touched: the very first is not ECN-capable, and no duplicates repair its loss."""


def drawn(number: int) -> dict[str, Any]:
    """A case: who repairs losses, the windows, and what becomes of which packet."""
    draw = random.Random(number)

    def some(share: float) -> list[int]:
        return [packet for packet in range(SPARED, 2 * MOST_PACKETS) if draw.random() < share]

    return {
        "cc": draw.choice(["Sack1", "Newreno"]),
        "window": draw.choice([2, 4, 7, 12, 20, 40]),
        "initial": draw.choice([1, 2, 4, 10]),
        "segments": draw.choice([20, 60, 1000]),
        "lost": some(draw.choice([0, 0.01, 0.02, 0.05, 0.15])),
        "marked": some(draw.choice([0, 0.01, 0.05, 0.2, 0.5, 0.8])),
        "acks": some(draw.choice([0, 0, 0.05, 0.2])),
    }


def sent(case: dict[str, Any], ns2: str) -> list[tuple[int, int]]:
    """When (ms) ns-2 sends which segment (from 1)."""
    words = [f"{key}={' '.join(map(str, value)) if isinstance(value, list) else value}" for key, value in case.items()]
    command = [ns2, "ns2_packets.tcl", *words]
    lines = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout.splitlines()
    packets = [line.split() for line in lines]
    return [(int(float(at) * 1e3 + 0.5), int(number) + 1) for at, number in packets[:MOST_PACKETS]]


def told(packets: list[tuple[int, int]]) -> str:
    """`WHEN:SEGMENTS`, one an instant; segments in a row are FIRST-LAST."""
    flights = []
    for at, group in itertools.groupby(packets, key=lambda packet: packet[0]):
        runs: list[list[int]] = []
        for _, segment in group:
            if runs and runs[-1][-1] + 1 == segment:
                runs[-1].append(segment)
            else:
                runs.append([segment])
        flights.append(f"{at}:" + ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs))
    return " ".join(flights)


def measure() -> None:
    """Writes the reference anew."""
    ns2 = find_ns2()
    cases = []
    for number in range(CASES):
        case = drawn(number)
        packets = sent(case, ns2)
        touched = {key: [n for n in case[key] if n < len(packets)] for key in ("lost", "marked", "acks")}
        cases.append(json.dumps({**case, **touched, "sent": told(packets)}))
        progress(f"{number + 1} of {CASES}")
    REFERENCE.parent.mkdir(parents=True, exist_ok=True)
    head = f'{{"ns2": {json.dumps(ns2_version())}, "measured": "{today()}", "cases": [\n'
    REFERENCE.write_text(head + ",\n".join(cases) + "\n]}\n")


if __name__ == "__main__":
    measure()
