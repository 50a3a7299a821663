"""Measures every discipline with its defaults under one scenario, and draws the figure of its page.

    python tools/discipline_figures.py              all of them
    python tools/discipline_figures.py pi rem       these alone; the others' figures stay

Reads docs/disciplines/measured.toml. Writes docs/img/disciplines/NAME.svg and the numbers into
docs/disciplines/measured.json, from where `make docs` takes them into the pages.
"""

from __future__ import annotations

import datetime
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

import aqmlab
from aqmlab import engine, statistics, units
from aqmlab.figures import coinciding
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.looks import HUES, INK, MUTED, REFERENCE, Look
from aqmlab.figures.sheet import PAGE
from aqmlab.results import times
from aqmlab.results.run import Run

ROOT = Path(__file__).parents[1]
SCENARIO = ROOT / "docs/disciplines/measured.toml"
NUMBERS = ROOT / "docs/disciplines/measured.json"
PICTURES = ROOT / "docs/img/disciplines"

REFERENCE_KIND = "pfifo"
PHASES = {"four_flows": (20.0, 40.0), "twenty_flows": (50.0, 80.0), "unresponsive": (90.0, 120.0)}
"""Parts of the run with one load each, seconds; the first ten after a change of load are left out."""
STEP_S = 0.5
"""What the curve of the waiting time averages over."""


def main(names: list[str]) -> int:
    """Measures and draws."""
    rows = {row["name"]: row for row in engine.disciplines() if row["law"] is None}
    unknown = sorted(set(names) - set(rows))
    if unknown:
        print(f"{unknown[0]}: expected one of {', '.join(rows)}", file=sys.stderr)
        return 2
    numbers: dict[str, Any] = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        reference = measured(rows[REFERENCE_KIND], Path(folder))
        for name in names or list(rows):
            run = reference if name == REFERENCE_KIND else measured(rows[name], Path(folder))
            numbers[name] = figures_of(run)
            drawn = Drawn(name, name, "", lambda _, run=run: picture(run, reference))  # type: ignore[misc]
            PICTURES.mkdir(parents=True, exist_ok=True)
            # A tenth of a point is finer than a screen.
            (PICTURES / f"{name}.svg").write_text(re.sub(r"(\d\.\d)\d+", r"\1", drawn.svg), encoding="utf-8")
            print(f"{name}: {numbers[name]}", flush=True)
    kept = {name: numbers[name] for name in rows if name in numbers}
    NUMBERS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


def measured(row: dict[str, Any], folder: Path) -> Run:
    """Runs the scenario with a discipline; hosts use ECN where the discipline's default is to mark."""
    marks = next(param["default"] == "true" for param in row["params"] if param["name"] == "ecn")
    changes = {"link.qdisc": {"kind": row["name"]}, "tcp.ecn": "on" if marks else "off"}
    return aqmlab.run(SCENARIO, set=changes, out=folder / row["name"]).runs[0]


def figures_of(run: Run) -> dict[str, Any]:
    """What the page says in numbers: each phase, forward direction; the web users' exchanges, the whole window."""
    queue = run.queue.filter(pl.col("direction") == 0)
    rate_bps = units.rate_bps(run.scenario["link"]["rate"], "link.rate")
    phases = {}
    for name, (start, end) in PHASES.items():
        part, _ = times.in_window(queue, (start, end))
        sums = part.select(pl.sum("offered_packets", "delivered_bytes", "dropped_packets", "marked_packets")).row(
            0, named=True
        )
        wait = waits(part)
        phases[name] = {
            "utilisation": round(8 * sums["delivered_bytes"] / rate_bps / (end - start), 4),
            "loss_ratio": round(sums["dropped_packets"] / sums["offered_packets"], 5),
            "mark_ratio": round(sums["marked_packets"] / sums["offered_packets"], 5),
            "wait_mean_ms": round(1e3 * wait, 2),
        }
    responses = run.exchanges.filter(pl.col("traffic") == 0)["response_time_s"].to_numpy()
    p50, p90 = statistics.quantiles(responses, [0.5, 0.9])
    stream = {"loss_ratio": round(run.summary["udp"]["loss_ratio"], 4)}
    web = {"p50_s": round(float(p50), 4), "p90_s": round(float(p90), 4)}
    today = datetime.date.today()
    return {**phases, "web": web, "stream": stream, "seed": run.scenario["seed"], "date": f"{today:%-d %B %Y}"}


def waits(rows: pl.DataFrame) -> float:
    """Mean wait of the packets that left in these intervals, seconds."""
    return times.seconds(int(rows["queue_delay_sum_ns"].sum())) / max(int(rows["delivered_packets"].sum()), 1)


def picture(run: Run, reference: Run) -> Figure:
    """Waiting time over time, and the distribution of response times, beside drop-tail's."""
    figure = Figure(figsize=(7.6, 2.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    curves = [(run, Look(INK if run is reference else HUES[0], "-", 1.6, 3))]
    if run is not reference:
        curves.insert(0, (reference, Look(REFERENCE, "-", 1.4, 2)))
    delays, shares = [], []
    grid = np.geomspace(0.02, 20, 160)
    for shown, look in curves:
        queue = shown.queue.filter(pl.col("direction") == 0)
        step = times.middle_of_step(queue.columns, STEP_S)
        curve = [(float(middle[0]), 1e3 * waits(part)) for middle, part in queue.group_by(step, maintain_order=True)]
        at, values = np.array(curve).T
        delays.append((look, at, np.maximum(values, 0.1)))
        responses = np.sort(shown.exchanges.filter(pl.col("traffic") == 0)["response_time_s"].to_numpy())
        shares.append((look, np.log(grid), 100 * np.searchsorted(responses, grid, side="right") / responses.size))
    # Of curves that lie upon each other the lower one is wider.
    for (shown, _), (look, at, values), wider in zip(
        curves, delays, coinciding.widths_along(delays, True), strict=True
    ):
        label = str(shown.scenario["link"]["qdisc"]["kind"])
        left.plot(at, values, color=look.color, linewidth=wider * look.width, label=label)
    for (look, _, values), wider in zip(shares, coinciding.widths_along(shares), strict=True):
        right.plot(grid, values, color=look.color, linewidth=wider * look.width)
    left.set_yscale("log")
    left.set(xlim=(0, 120), ylim=(0.1, 1000), xlabel="time (s)", ylabel="wait (ms)", title="Queueing delay")
    left.set_yticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1000"])
    left.set_xticks([0, 20, 40, 60, 80, 100, 120])
    for since_s, said in ((40, "+16 flows"), (80, "+4 Mb/s unresponsive")):
        left.axvline(since_s, color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
        left.text(since_s + 1, 0.13, said, color=MUTED, fontsize=8)
    right.set_xscale("log")
    right.set(
        xlim=(0.02, 20), ylim=(0, 100), xlabel="response time (s)", ylabel="web exchanges (%)", title="Response times"
    )
    right.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    handles, labels = left.get_legend_handles_labels()
    keys = [coinciding.key(line, look, PAGE) for line, (_, look) in zip(handles, curves, strict=True)]
    right.legend(keys, labels, loc="lower right", fontsize=8.5, handlelength=1.6)
    return figure


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
