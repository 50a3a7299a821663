"""Stands in for the process of the live test bed: the same files in and out, tables from the stand-in engine.

`FAKE_CHILD` in the environment chooses what becomes of it: void, void-SEED, refusing, refused, impossible, killed,
mute, stuck, babbling, slow, brief.
"""

import json
import os
import signal
import sys
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import fake_native

LATE = {"p50": 8e-6, "p90": 3e-5, "p99": 9e-5, "p999": 4e-4, "max": 1.1e-3}
REASON = "12.3 % of packets more than 200 us late, at most 1 % may be"
SLOW = "the link, checked before the run, forward: the rate was 34.687 Mb/s, expected 100.000 Mb/s within 0.5 %"


def progress(folder, at_s, duration_s, checks_link=False):
    step = {
        "time_s": at_s,
        "duration_s": duration_s,
        "bottleneck_packets": int(5000 * at_s),
        "wall_s": at_s / 1000,
        "rate_bps": [9.6e7, 3.1e6],
        "queue_packets": [24, 1],
        "queue_delay_s": [2.4e-3, 1e-4],
        "drops": [int(12 * at_s), 0],
        "marks": [0, 0],
        "exchanges": int(100 * at_s),
        "response_s": {"p50": 0.14, "p95": 0.9, "p99": 1.8},
        "lateness_s": {"p99": 9e-5, "max": 1.1e-3},
        "stalls": 0,
        "connections": 312,
        "checks_link": checks_link,
    }
    with (folder / "progress.jsonl").open("a") as file:
        file.write(json.dumps(step) + "\n")


def main():
    folder, fate = Path(sys.argv[1]), os.environ.get("FAKE_CHILD", "")
    plan = json.loads((folder / "live.json").read_text())
    text = (folder / "scenario.toml").read_text()
    duration_s = fake_native._quantity(tomllib.loads(text)["duration"], fake_native.SECONDS, "duration", "1s")
    if fate in ("refused", "impossible"):
        error = {"message": "live.qdisc: kernel has no pi", "exit_code": 2 if fate == "refused" else 3}
        (folder / "error.json").write_text(json.dumps(error))
        sys.exit(error["exit_code"])
    if fate == "babbling":
        print("thread 'router' panicked: a buffer is missing", file=sys.stderr)
        sys.exit(101)
    progress(folder, 0, duration_s, checks_link=True)
    for step in range(6):
        progress(folder, duration_s * step / 5, duration_s)
        if step == 2 and fate == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if step == 2 and fate == "stuck":
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            time.sleep(60)
    status = None
    if plan["command"]:
        status = os.spawnvp(os.P_WAIT, plan["command"][0], plan["command"])
    tree = tomllib.loads(text)
    # Another draw: what happens between real hosts is no function of the seed.
    tree["seed"] += 1000
    summary = json.loads(fake_native.simulate(fake_native.toml_text.dumps(tree), str(folder), None))
    summary["seed"] -= 1000
    summary["engine"]["kind"] = "live"
    summary["live"] = {
        "clock": "virtual" if plan["virtual"] else "real",
        "void": REASON if fate in ("void", f"void-{summary['seed']}") else SLOW if fate == "slow" else None,
        "lateness_s": LATE,
        "late_share": 0.002,
        "kernel": "6.1.0-test",
        "sysctls": plan["settings"]["sysctl"],
        "stalls": 0,
        "command": plan["command"],
        "command_status": status,
        "remarks": ["net.ipv4.tcp_recovery: this kernel will not have it"] if fate == "refusing" else [],
    }
    if fate == "brief":
        summary["measured_s"], summary["live"]["duration_s"] = 0.0, 1.012
        for way in ("forward", "reverse"):
            summary[way] = {key: 0 if key.endswith("_packets") else None for key in summary[way]}
    if fate != "mute":
        outcome = {"summary": summary, "readback": {"sysctls": plan["settings"]["sysctl"]}}
        (folder / "outcome.json").write_text(json.dumps(outcome))


main()
