"""Long TCP flows over two bottlenecks in a row, in a Linux kernel and in aqmlab, side by side.

The kernel's figures are kept in two_hops_reference.json, run by run; two_hops_kernel.py measures them. Installs
nothing.

    python benches/peers/linux/two_hops.py                  aqmlab beside the kept figures, pass or fail
    python benches/peers/linux/two_hops.py --update-docs    and put the table into docs/validation.md

Exit codes: 0 all within tolerance, 1 something is not, 2 bad input or a run failed, 3 aqmlab is missing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from closed_loop import reading, toml
from closed_loop_cases import FRAME, SETTLE_S, START_S
from hops import Comparison, Places, summary_of
from ns2_reference import Measure, Run, RunError, guarded
from two_hops_cases import CASES, GROUPS, HOPS_OF, OURS, REFERENCE, Case, Hop
from two_hops_kernel import links

NAMES = ("one", "two")
MEASURES = (
    Measure("utilisation", "utilisation", 0.01, "{:.4f}"),
    Measure("signal_ratio", "lost or marked", 0.10, "{:.5f}"),
    Measure("queue_delay_s", "queueing delay, s", 0.07, "{:.5f}"),
)
KEYS = [measure.key for measure in MEASURES]
BY_NAME = {case.name: case for case in CASES}


def scenario_of(case: Case) -> str:
    """The kernel's network as a scenario of aqmlab; what closed_loop.py says of one link holds for each hop."""
    text = f"""name = "{case.name}"
duration = "{case.seconds:g}s"
warmup = "{SETTLE_S:g}s"
[path]
access_rate = "100gbit"
[tcp]
stack = "linux"
window = "60mb"
receive_buffer = "0b"
pacing_burst = 1
ecn_fallback = false
cc = "{case.cc}"
ecn = "{"on" if case.ecn else "off"}"
"""
    for group in GROUPS:
        on_links_ms = sum(FRAME * 8 / case.hops[hop].rate_bps * 1e3 for hop in HOPS_OF[group])
        route = ", ".join(f'"{NAMES[hop]}"' for hop in HOPS_OF[group])
        for rtt_ms in case.rtts_ms[group]:
            text += f"""[[traffic]]
kind = "bulk"
direction = "forward"
route = [{route}]
flows = 1
rtt = "{rtt_ms - on_links_ms:.6f}ms"
start = {{ uniform = ["0s", "{START_S:g}s"] }}
"""
    for name, hop in zip(NAMES, case.hops, strict=True):
        qdisc = "\n".join(f"{key} = {toml(value)}" for key, value in OURS[hop.qdisc].items())
        text += f"""[links.{name}]
rate = "{hop.rate}"
reverse_rate = "100gbit"
overhead = "14b"
[links.{name}.qdisc]
{qdisc}
"""
    return text


def figures_of(hop: Hop, forward: dict[str, Any], seconds: float) -> Run:
    """What the kernel's side measures of a hop, out of a summary of aqmlab."""
    frames = forward["delivered_packets"] * (forward["packet_mean_bytes"] + FRAME - 1500)
    return {
        "utilisation": frames * 8 / seconds / hop.rate_bps,
        "signal_ratio": (forward["dropped_packets"] + forward["marked_packets"]) / forward["offered_packets"],
        "queue_delay_s": forward["queue_mean_packets"] * FRAME * 8 / hop.rate_bps,
    }


def place(hop: int, case: Case) -> str:
    """What a hop is called in the table."""
    return f"hop {hop + 1}: {case.hops[hop].qdisc}"


def kept(name: str) -> list[Places]:
    """The kernel's runs of a case."""
    case = BY_NAME[name]
    stored = json.loads(REFERENCE.read_text())[name]
    if stored["tc"] != [words for hop in case.hops for words in links(hop)]:
        raise RunError(f"{name}: the kept figures are of other links; measure them anew: two_hops_kernel.py")
    return [
        {place(hop, case): {key: reading(figures, key) for key in KEYS} for hop, figures in enumerate(one["hops"])}
        for one in stored["runs"]
    ]


def run(aqmlab: Sequence[str], name: str, seed: int) -> Places:
    """One run of aqmlab."""
    case = BY_NAME[name]
    summary = summary_of(aqmlab, scenario_of(case), seed)
    return {
        place(number, case): figures_of(hop, summary["links"][link]["forward"], summary["measured_s"])
        for number, (link, hop) in enumerate(zip(NAMES, case.hops, strict=True))
    }


def main(words: Sequence[str]) -> int:
    """The comparison."""
    release = next(iter(json.loads(REFERENCE.read_text()).values()))["kernel"]
    return Comparison(
        program="two-hops",
        peer=f"Linux {release} ({CASES[0].runs} runs a case)",
        titles={case.name: case.title for case in CASES},
        measures=MEASURES,
        kept=kept,
        run=run,
        runs=20,
    ).main(words)


if __name__ == "__main__":
    sys.exit(guarded("two-hops", main))
