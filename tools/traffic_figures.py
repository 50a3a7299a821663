"""Draws what each web model asks for, on a link with room for all of it, for the model's page.

    python tools/traffic_figures.py             all of them
    python tools/traffic_figures.py packmime    this alone

Writes docs/img/traffic/NAME.svg.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

import aqmlab
from aqmlab.figures.looks import HUES, INK, REFERENCE, finish

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs/img/traffic"

SCENARIO = """
name = "{model}"
duration = "1300s"
warmup = "{warmup_s}s"
[link]
rate = "10gbit"
[[traffic]]
kind = "web"
model = "{model}"
{how_many}
direction = "forward"
[record]
interval = "10s"
"""

WARMUP_S = 300

MODELS = {
    "unc2001": "users = 1500",
    "feldmann-pareto1": "users = 2500",
    "feldmann-pareto2": "users = 700",
    "feldmann-exp1": "users = 5000",
    "feldmann-exp2": "users = 2000",
    "kuzmanovic2005": "users = 2500",
    "packmime": 'arrivals = "150hz"',
}
"""Enough for some two hundred thousand exchanges each. A constant needs no picture."""

PAGES = {
    "unc2001": ("unc2001",),
    "feldmann": ("feldmann-pareto1", "feldmann-pareto2", "feldmann-exp1", "feldmann-exp2"),
    "kuzmanovic2005": ("kuzmanovic2005",),
    "packmime": ("packmime",),
}
"""What each picture shows, beside the reference."""

REFERENCE_MODEL = "unc2001"

Values = NDArray[np.float64]


def main(names: list[str]) -> int:
    """Measures and draws."""
    unknown = sorted(set(names) - set(PAGES))
    if unknown:
        print(f"{unknown[0]}: expected one of {', '.join(PAGES)}", file=sys.stderr)
        return 2
    measured: dict[str, tuple[Values, Values]] = {}
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names or list(PAGES):
            for model in (REFERENCE_MODEL, *PAGES[name]):
                if model not in measured:
                    measured[model] = sizes_and_gaps(model, Path(folder))
            shown = {model: measured[model] for model in PAGES[name]}
            if REFERENCE_MODEL not in shown:
                shown = {REFERENCE_MODEL: measured[REFERENCE_MODEL], **shown}
            drawn = finish(name, name, "", lambda shown=shown: picture(shown))  # type: ignore[misc]
            # A tenth of a point is finer than a screen.
            (PICTURES / f"{name}.svg").write_text(re.sub(r"(\d\.\d)\d+", r"\1", drawn.svg), encoding="utf-8")
            print(name, flush=True)
    return 0


def sizes_and_gaps(model: str, folder: Path) -> tuple[Values, Values]:
    """Sizes of responses, and times between the requests of one user, session or process; both sorted."""
    scenario = folder / f"{model}.toml"
    scenario.write_text(SCENARIO.format(model=model, how_many=MODELS[model], warmup_s=WARMUP_S), encoding="utf-8")
    exchanges = aqmlab.run(scenario, out=folder / model).runs[0].exchanges.sort("source", "start_s")
    # Of what was asked for in the warm-up only the slowest is there.
    exchanges = exchanges.filter(pl.col("start_s") >= WARMUP_S)
    gaps = exchanges.select(pl.col("start_s").diff().over("source").alias("gap"))["gap"].drop_nulls()
    return np.sort(exchanges["response_bytes"].to_numpy().astype(float)), np.sort(gaps.to_numpy())


def picture(shown: dict[str, tuple[Values, Values]]) -> Figure:
    """How many responses are larger, which share of the bytes smaller ones have, how often a user asks."""
    figure = Figure(figsize=(7.6, 2.7), layout="constrained")
    sizes_at, bytes_at, gaps_at = figure.subplots(1, 3)
    hues = iter((INK, *HUES) if len(shown) == 1 else HUES)
    grid, times = np.geomspace(50, 1e8, 200), np.geomspace(1e-3, 1e3, 200)
    for model, (sizes, gaps) in shown.items():
        color = REFERENCE if model == REFERENCE_MODEL and len(shown) > 1 else next(hues)
        below = np.searchsorted(sizes, grid, side="right")
        sums = np.concatenate(([0.0], np.cumsum(sizes)))
        sizes_at.plot(grid, np.where(below < sizes.size, 1 - below / sizes.size, np.nan), color=color, label=model)
        bytes_at.plot(grid, 100 * sums[below] / sums[-1], color=color)
        longer = 1 - np.searchsorted(gaps, times, side="right") / gaps.size
        gaps_at.plot(times, np.where(longer > 0, longer, np.nan), color=color)
    for axes in (sizes_at, gaps_at):
        axes.set(xscale="log", yscale="log", ylim=(1e-5, 1.3))
    bytes_at.set(xscale="log", ylim=(0, 100), xlabel="size (B)", ylabel="%", title="Bytes in responses up to")
    sizes_at.set(xlabel="size (B)", ylabel="share", title="Responses larger than")
    gaps_at.set(xlabel="time (s)", ylabel="share", title="Next request later than")
    for axes in (sizes_at, bytes_at):
        axes.set_xlim(50, 1e8)
        axes.set_xticks([1e2, 1e4, 1e6, 1e8], ["100", "10 k", "1 M", "100 M"])
    gaps_at.set_xticks([1e-3, 1, 1e3], ["1 ms", "1 s", "1000 s"])
    sizes_at.legend(loc="lower left", fontsize=7.5, handlelength=1.4)
    return figure


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
