"""Cells of an imagined study, with runs whose numbers are known: what figures, tables and pages are drawn from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from aqmlab.results.exchanges import CDF_TIMES, SIZE_BINS, TAIL_TIMES
from aqmlab.results.window import Counts, Window
from aqmlab.statistics import BATCHES
from aqmlab.study.figures.curves import curves_of


@dataclass
class Imagined:
    """A cell made by hand."""

    name: str
    label: str
    grid: str
    at: dict[str, str]
    labels: dict[str, str]
    numbers: dict[str, float]
    uncongested: bool
    scenario: dict[str, Any]
    windows: list[Window]
    summaries: list[dict[str, Any]]
    queue: pl.DataFrame
    demand: tuple[str | None, tuple[int, ...]] = field(default=("same", (1, 2, 3)))

    def of_parts(self, run: int) -> dict[str, float | None]:
        return {}


def window(times: Sequence[float], loss: float = 0.01, sizes: Sequence[int] = ()) -> Window:
    """A run with one exchange of each of these response times in every part; what is lost varies a little."""
    ordered, each = np.sort(np.asarray(times, dtype=float)), np.ones(BATCHES)
    ways = np.ones((2, BATCHES))
    around = 1 + 0.001 * np.array([k // 2 * (-1) ** k for k in range(BATCHES)])
    counts = np.zeros((2, SIZE_BINS.size + 1))
    amounts = np.zeros_like(counts)
    for size in sizes:
        place = int(np.searchsorted(SIZE_BINS, size))
        counts[0, place] += 1
        amounts[0, place] += size
    return Window(
        measured_s=60.0,
        link=Counts(
            rate_bps=(1e7, 1e7),
            covered_s=ways * 60 / BATCHES,
            sent_bits=ways * 9e6 * 60 / BATCHES,
            offered=ways * 1000,
            dropped=ways * 1000 * loss * around,
            marked=ways * 0,
            delivered=ways * 1000 * (1 - loss),
            delay_sum_s=ways * 10,
        ),
        completed=each * ordered.size,
        quantiles=np.quantile(ordered, (0.5, 0.9, 0.99))[:, None] * each,
        whole_quantiles=np.quantile(ordered, (0.5, 0.9, 0.99)),
        cdf_counts=each[:, None] * np.searchsorted(ordered, CDF_TIMES, side="right"),
        tail_counts=each[:, None] * (ordered.size - np.searchsorted(ordered, TAIL_TIMES, side="right")),
        summarised={},
        size_counts=counts,
        size_bytes=amounts,
        settled={"answer": "yes", "p": 1.0},
    )


def cell(
    aqm: str,
    ecn: str = "off",
    load: str = "98",
    *,
    grid: str = "web",
    losses: Sequence[float] = (0.01, 0.02, 0.03),
    times: Sequence[float] = (0.1, 0.3, 0.7, 1.4),
    sizes: Sequence[int] = (),
    runs: Sequence[int] = (8, 1, 1),
) -> Imagined:
    """A cell of a study of the web: `aqm` is the kind, then `-` and a parameter."""
    kind, _, parameter = aqm.partition("-")
    uncongested = kind == "uncongested"
    qdisc: dict[str, Any] = {"kind": "pfifo" if uncongested else kind, "limit": f"{parameter or 240}p"}
    if kind not in ("pfifo", "uncongested"):
        qdisc["ecn"] = ecn == "on"
    steps = np.arange(0.1, 80.0001, 0.1)
    queue = pl.DataFrame(
        {
            "time_s": np.repeat(steps, 2),
            "direction": np.tile([0, 1], steps.size).astype(np.int64),
            "queue_packets": np.tile([24.0, 3.0], steps.size),
        }
    )
    return Imagined(
        name=f"{grid}/{aqm}/{ecn}/{load}",
        label=f"{aqm}, {ecn}, {load}",
        grid=grid,
        at={"aqm": aqm, "ecn": ecn, "load": load},
        labels={"aqm": aqm.upper().replace("-", " "), "ecn": ecn, "load": f"{load} %"},
        numbers={"load": float(load)},
        uncongested=uncongested,
        scenario={"link": {"qdisc": qdisc}, "tcp": {"ecn": ecn}, "duration": "80s", "warmup": "20s"},
        windows=[window(times, loss, sizes) for loss in losses],
        summaries=[{"seed": k + 1, "forward": {"loss_runs": list(runs)}} for k in range(len(losses))],
        queue=queue,
    )


def finder(cells: Sequence[Imagined]) -> Callable[[dict[str, Any]], list[Imagined]]:
    """Finds cells as a study does."""

    def find(selector: dict[str, Any]) -> list[Imagined]:
        def fits(one: Imagined) -> bool:
            places = {**one.at, "grid": one.grid}
            return all(places[key] in (item if isinstance(item, list) else [item]) for key, item in selector.items())

        return [one for one in cells if fits(one)]

    return find


def spec(kind="cdf", curves=({},), **keys):
    """A figure as `study.toml` asks for it."""
    return {"id": "1", "title": "One", "kind": kind, "curves": [dict(one) for one in curves], **keys}


def drawn_curves(cells, **keys):
    """The curves of a figure of these cells, by their labels."""
    return {curve.label: curve for curve in curves_of(spec(**keys), finder(cells))}
