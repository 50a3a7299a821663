"""Draws what each model of traffic asks for, for the model's page.

    python tools/traffic_figures.py             all of them
    python tools/traffic_figures.py packmime    this alone

Web models are run on a link with room for all they ask for; connection vectors and the forms of a distribution are
drawn as they are. Writes docs/img/traffic/NAME.svg.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import NormalDist

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

import aqmlab
from aqmlab.figures import coinciding
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.legends import below as below_all
from aqmlab.figures.looks import HUES, INK, REFERENCE, Look
from aqmlab.figures.sheet import Sheet
from aqmlab.vectors import ACCEPTOR, INITIATOR, Vector, reading

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

SHEET = Sheet(7.6)
"""Narrower than a page's."""

TIMES = ((1e-3, 1, 1e3), ("0.001", "1", "1000"))
"""Ticks of an axis of times, seconds, and what they say."""

Values = NDArray[np.float64]


def main(names: list[str]) -> int:
    """Measures and draws."""
    unknown = sorted(set(names) - {*PAGES, *DRAWN})
    if unknown:
        print(f"{unknown[0]}: expected one of {', '.join([*PAGES, *DRAWN])}", file=sys.stderr)
        return 2
    measured: dict[str, tuple[Values, Values]] = {}
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names or [*PAGES, *DRAWN]:
            if name in DRAWN:
                save(name, DRAWN[name])
                continue
            for model in (REFERENCE_MODEL, *PAGES[name]):
                if model not in measured:
                    measured[model] = sizes_and_gaps(model, Path(folder))
            shown = {model: measured[model] for model in PAGES[name]}
            if REFERENCE_MODEL not in shown:
                shown = {REFERENCE_MODEL: measured[REFERENCE_MODEL], **shown}
            save(name, lambda shown=shown: picture(shown))  # type: ignore[misc]
    return 0


def save(name: str, draw: Callable[[], Figure]) -> None:
    """Writes a picture."""

    def as_drawn(_: Sheet) -> Figure:
        mpl.rcParams["text.parse_math"] = True  # for powers of ten at axes; what the style said comes back afterwards
        return draw()

    # A tenth of a point is finer than a screen; what stands between tags is to be read.
    svg = Drawn(name, name, "", as_drawn).svg
    text = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d)\d+", r"\1", tag[0]), svg)
    (PICTURES / f"{name}.svg").write_text(text, encoding="utf-8")
    print(name, flush=True)


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
    is_alone = len(shown) == 1
    figure = Figure(figsize=(SHEET.width, 2.7 if is_alone else 3.05), layout="constrained")
    sizes_at, bytes_at, gaps_at = figure.subplots(1, 3)
    hues = iter((INK, *HUES) if is_alone else HUES)
    looks = [
        Look(REFERENCE if model == REFERENCE_MODEL and not is_alone else next(hues), "-", 1.8, 3 + k)
        for k, model in enumerate(shown)
    ]
    grid, times = np.geomspace(50, 1e8, 200), np.geomspace(1e-3, 1e3, 200)
    larger, amounts, later = [], [], []
    for sizes, gaps in shown.values():
        below = np.searchsorted(sizes, grid, side="right")
        sums = np.concatenate(([0.0], np.cumsum(sizes)))
        larger.append(np.where(below < sizes.size, 1 - below / sizes.size, np.nan))
        amounts.append(100 * sums[below] / sums[-1])
        longer = 1 - np.searchsorted(gaps, times, side="right") / gaps.size
        later.append(np.where(longer > 0, longer, np.nan))
    lines = drawn(sizes_at, grid, larger, looks, is_log=True)
    drawn(bytes_at, grid, amounts, looks, is_log=False)
    drawn(gaps_at, times, later, looks, is_log=True)
    for axes in (sizes_at, gaps_at):
        axes.set(xscale="log", yscale="log", ylim=(1e-5, 1.3))
    bytes_at.set(xscale="log", ylim=(0, 100), xlabel="size (B)", ylabel="%", title="Bytes in responses up to")
    sizes_at.set(xlabel="size (B)", ylabel="share", title="Responses larger than")
    gaps_at.set(xlabel="time (s)", ylabel="share", title="Next request later than")
    for axes in (sizes_at, bytes_at):
        axes.set_xlim(50, 1e8)
        axes.set_xticks([1e2, 1e4, 1e6, 1e8], ["100", "10 k", "1 M", "100 M"])
    gaps_at.set_xticks(*TIMES)
    if not is_alone:
        # Below: models have curves in every corner of the panels.
        keys = [coinciding.key(line, look, SHEET) for line, look in zip(lines, looks, strict=True)]
        below_all(figure, list(zip(keys, shown, strict=True)), SHEET)
    return figure


def drawn(axes: Axes, x: Values, every: Sequence[Values], looks: Sequence[Look], *, is_log: bool) -> list[Line2D]:
    """One curve for each look; of those that lie upon each other the lower one is wider."""
    along = [(look, np.log(x), y) for look, y in zip(looks, every, strict=True)]
    return [
        axes.plot(x, y, **(look.line(SHEET) | {"linewidth": SHEET.points(wider * look.width)}))[0]
        for look, y, wider in zip(looks, every, coinciding.widths_along(along, is_log), strict=True)
    ]


VECTORS = ROOT / "examples/vectors/internet2-like.cvec"


def vectors_picture() -> Figure:
    """The synthetic set, by application: sizes, bytes, exchanges, round-trip times, arrivals."""
    applications: dict[str, list[Vector]] = {}
    # A vector's first line tells its application.
    lines = re.findall(r"^(?:SEQ|CONC) .* # (\w+)$", VECTORS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    every = reading.read(VECTORS)
    for name, vector in zip(lines, every, strict=True):
        applications.setdefault(name, []).append(vector)
    figure = Figure(figsize=(7.6, 5.2), layout="constrained")
    (sizes_at, bytes_at, epochs_at), (rtts_at, thinks_at, arrivals_at) = figure.subplots(2, 3)
    labels = {"http": "web", "ftp": "FTP", "smtp": "mail", "nntp": "news", "p2p": "file sharing"}
    for (name, label), hue in zip(labels.items(), HUES, strict=False):
        of = applications[name]
        exceeding(sizes_at, [vector.bytes_from(INITIATOR) + vector.bytes_from(ACCEPTOR) for vector in of], hue, label)
        exceeding(epochs_at, [vector.epochs for vector in of if not vector.is_concurrent], hue)
        exceeding(
            thinks_at,
            [unit.wait_us / 1e6 for vector in of for unit in vector.units if unit.size_bytes and unit.wait_us],
            hue,
        )
    sizes = np.sort([vector.bytes_from(INITIATOR) + vector.bytes_from(ACCEPTOR) for vector in every])
    shown = np.searchsorted(sizes, np.geomspace(50, 1e8, 300), side="right").clip(1) - 1
    bytes_at.plot(sizes[shown], 100 * np.cumsum(sizes)[shown] / sizes.sum(), color=INK)
    rtts = np.sort([vector.rtt_us / 1e3 for vector in every])
    rtts_at.plot(rtts[::20], 100 * np.arange(1, rtts.size + 1, 20) / rtts.size, color=INK)
    per_second, _ = np.histogram([vector.start_us / 1e6 for vector in every], bins=np.arange(0, 301, 5))
    arrivals_at.stairs(per_second / 5, np.arange(0, 301, 5), color=INK)
    sizes_at.set(xlabel="size (B)", ylabel="share", title="Connections larger than", ylim=(1e-4, 1.3))
    bytes_at.set(xscale="log", xlabel="size (B)", ylabel="%", ylim=(0, 100), title="Bytes in connections up to")
    for axes in (sizes_at, bytes_at):
        axes.set_xlim(50, 1e8)
        axes.set_xticks([1e2, 1e4, 1e6, 1e8], ["100", "10 k", "1 M", "100 M"])
    epochs_at.set(xlabel="exchanges", ylabel="share", title="More exchanges than", ylim=(1e-4, 1.3))
    rtts_at.set(xscale="log", xlabel="round-trip time (ms)", ylabel="%", ylim=(0, 100), title="Round-trip times up to")
    rtts_at.set_xticks([10, 100, 1000], ["10", "100", "1000"])
    thinks_at.set(xlabel="time (s)", ylabel="share", title="Waits longer than", ylim=(1e-4, 1.3))
    thinks_at.set_xticks(*TIMES)
    arrivals_at.set(xlabel="time (s)", ylabel="1/s", ylim=(0, None), xlim=(0, 300), title="New connections a second")
    sizes_at.legend(loc="lower left", fontsize=7, handlelength=1.2)
    return figure


def exceeding(axes: Axes, values: list[float] | list[int], color: str, label: str | None = None) -> None:
    """The share of values above each, at a few hundred of them."""
    ordered = np.sort(np.asarray(values, dtype=float))
    at = np.unique(np.concatenate((ordered[:1], np.geomspace(ordered[0], ordered[-1], 200), ordered[-20:])))
    share = 1 - np.searchsorted(ordered, at, side="right") / ordered.size
    axes.step(at, share, where="post", color=color, label=label)
    axes.set(xscale="log", yscale="log")


def forms_picture() -> Figure:
    """Sizes of one mean in the forms that a scenario can state, and what of their bytes is in how large ones."""
    mean, u = 12_000.0, 1 - np.geomspace(1, 1e-7, 2_000)[1:]
    normal, sigma, shape = NormalDist(), 1.5, 0.5
    forms = {
        "exponential": -mean * np.log(1 - u),
        "lognormal": mean * np.exp(sigma * np.array([normal.inv_cdf(x) for x in u]) - sigma**2 / 2),
        # A Weibull of shape 1/2 has a mean of twice its scale.
        "weibull": mean / 2 * (-np.log(1 - u)) ** (1 / shape),
        "pareto": mean / 6 * (1 - u) ** (-1 / 1.2),
    }
    figure = Figure(figsize=(7.6, 2.7), layout="constrained")
    sizes_at, bytes_at, gaps_at = figure.subplots(1, 3)
    for (label, values), hue in zip(forms.items(), HUES, strict=False):
        sizes_at.loglog(values, 1 - u, color=hue, label=label)
        below = np.concatenate(([0.0], np.cumsum((values[1:] + values[:-1]) / 2 * np.diff(u))))
        bytes_at.semilogx(values, 100 * below / mean, color=hue)
    gaps = np.linspace(0, 8, 200)
    gaps_at.semilogy(gaps, np.exp(-gaps), color=INK)
    sizes_at.set(xlabel="size (B)", ylabel="share", title="Flows larger than", ylim=(1e-5, 1.3))
    bytes_at.set(xlabel="size (B)", ylabel="%", title="Bytes in flows up to", ylim=(0, 100))
    for axes in (sizes_at, bytes_at):
        axes.set_xlim(50, 1e8)
        axes.set_xticks([1e2, 1e4, 1e6, 1e8], ["100", "10 k", "1 M", "100 M"])
    gaps_at.set(xlabel="time / mean", ylabel="share", title="Next flow later than", ylim=(1e-3, 1.3), xlim=(0, 7))
    sizes_at.legend(loc="lower left", fontsize=7, handlelength=1.2)
    return figure


DRAWN = {"tmix": vectors_picture, "poisson": forms_picture}
"""Pictures for which nothing is run."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
