"""Measures the Hurst parameter of every web model's packets on an uncongested link, for docs/validation.md.

    python tools/traffic_statistics.py

Half an hour of each model, both directions, packets counted every 40 ms. Estimates are read from 2.56 s up: below,
round trips and the gaps within a page shape the counts, and there is no scaling law to read.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import aqmlab

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "benches/peers")]

import marked  # noqa: E402

import hurst  # noqa: E402 - it lies with the tests

DOCS = ROOT / "docs/validation.md"

WARMUP_S = 300
FIRST_OCTAVE = 6
"""2.56 s: 2 ** 6 bins."""

SCENARIO = """
name = "{model}"
duration = "2100s"
warmup = "{warmup_s}s"
[link]
rate = "10gbit"
[link.qdisc]
kind = "pfifo"
limit = "100000p"
[path]
rtt = {{ uniform = ["10ms", "150ms"] }}
[[traffic]]
kind = "web"
model = "{model}"
{how_many}
direction = "both"
[record]
exchanges = false
interval = "40ms"
"""


@dataclass(frozen=True)
class Model:
    """A model, how much of it, and the Hurst parameter that is expected of it."""

    name: str
    how_many: str
    expected: str


# Transfers with a tail of shape a make traffic with H = (3 - a) / 2 (Willinger, Taqqu, Sherman and Wilson 1997).
MODELS = (
    Model("unc2001", "users = 8000", "0.8 to 0.9 (kuzmanovic2005 of its sizes)"),
    Model("kuzmanovic2005", "users = 8000", "0.8 to 0.9 (kuzmanovic2005)"),
    Model("feldmann-pareto1", "users = 8000", "0.9: sizes of shape 1.2"),
    Model("feldmann-pareto2", "users = 3000", "0.9: sizes of shape 1.2"),
    Model("feldmann-exp1", "users = 8000", "0.5: no heavy tail but of the pauses"),
    Model("feldmann-exp2", "users = 8000", "0.5: no heavy tail"),
    Model("packmime", 'arrivals = "400hz"', "0.81 to 0.89: requests of d = 0.31, sizes of shape 1.23"),
)


def counts(model: Model) -> list[list[float]]:
    """Packets in each bin of 40 ms, forward and reverse."""
    text = SCENARIO.format(model=model.name, how_many=model.how_many, warmup_s=WARMUP_S)
    with tempfile.TemporaryDirectory() as folder:
        aqmlab.run(text, out=Path(folder) / "run")
        rows = pl.read_parquet(Path(folder) / "run/queue.parquet").filter(pl.col("time_s") > WARMUP_S)
    return [rows.filter(pl.col("direction") == side)["offered_packets"].to_list() for side in (0, 1)]


def shown(estimate: hurst.Estimate) -> str:
    """An estimate with its interval."""
    low, high = estimate.interval
    return f"{estimate.h:.2f} ({low:.2f} to {high:.2f})"


def row(model: Model) -> str:
    """A line of the table."""
    cells = [f"`{model.name}`", model.expected]
    found = counts(model)
    cells += [
        "<br>".join(shown(estimator(side, FIRST_OCTAVE)) for side in found)
        for estimator in (hurst.wavelet, hurst.local_whittle, hurst.aggregated_variance)
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Measures all and writes the table."""
    lines = [
        "| model | expected | wavelet | local Whittle | aggregated variance |",
        "|---|---|---|---|---|",
    ]
    for model in MODELS:
        lines.append(row(model))
        print(lines[-1], flush=True)
    marked.put(DOCS, "hurst", "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
