"""Subjects of claims with numbers that are known: windows made of given response times, and points of a small grid."""

from dataclasses import dataclass, field, replace

import numpy as np

from aqmlab.results.window import (
    CDF_TIMES,
    LATE_TIMES,
    QUANTILES,
    SIZE_BINS,
    SIZE_EDGES,
    TAIL_TIMES,
    Counts,
    Window,
)
from aqmlab.statistics import BATCHES
from aqmlab.sweep import grid

GRID = {
    "scenario": {"link": {"rate": "10mbit"}, "traffic": [{"kind": "bulk", "flows": 1, "size": "20kb"}]},
    "grid": [
        {
            "name": "web",
            "axis": [
                {
                    "name": "aqm",
                    "value": [
                        {"name": "tail", "label": "drop-tail", "link": {"qdisc": {"kind": "pfifo"}}},
                        {"name": "pi", "label": "PI", "link": {"qdisc": {"kind": "pi"}}},
                        {"name": "red", "label": "RED", "link": {"qdisc": {"kind": "red"}}},
                    ],
                },
                {"name": "ecn", "value": [{"name": "off"}, {"name": "on", "label": "ECN"}]},
                {"name": "load", "key": "traffic.0.flows", "values": [80, 90, 98]},
            ],
            "skip": [{"aqm": "tail", "ecn": "on"}],
        }
    ],
}


def points(tree=GRID):
    return [point for one in grid.read(tree, "study.toml") for point in one.points]


LINK = Counts(
    rate_bps=(10e6, 10e6),
    covered_s=np.full((2, BATCHES), 100.0 / BATCHES),
    sent_bits=np.full((2, BATCHES), 2.5e7),
    offered=np.full((2, BATCHES), 1000.0),
    dropped=np.array([np.full(BATCHES, 10.0), np.full(BATCHES, 30.0)]),
    marked=np.zeros((2, BATCHES)),
    delivered=np.full((2, BATCHES), 990.0),
    delay_sum_s=np.full((2, BATCHES), 9.9),
)


def window(times, *, blocks=None, sizes=None, **changes):
    """A window in each of whose parts these response times were seen, of these traffic blocks and sizes.

    `changes` are of the window, or of what was counted at its link.
    """
    times = np.asarray(times, dtype=float)

    def counts(chosen):
        return np.tile(np.searchsorted(np.sort(times[chosen]), CDF_TIMES, side="right"), (BATCHES, 1)).astype(float)

    def tails(chosen, at):
        return np.tile((times[chosen][:, None] > at).sum(axis=0), (BATCHES, 1)).astype(float)

    def classes(name, key, count):
        key = np.asarray(key)
        return {
            f"{name}_completed": np.array([np.full(BATCHES, float((key == k).sum())) for k in range(count)]),
            f"{name}_cdf_counts": np.array([counts(key == k) for k in range(count)]),
            f"{name}_tail_counts": np.array([tails(key == k, LATE_TIMES) for k in range(count)]),
        }

    every = np.full(times.size, True)
    quantiles = np.quantile(times, QUANTILES) if times.size else np.full(len(QUANTILES), np.nan)
    facts = {
        "measured_s": 100.0,
        "link": replace(LINK, **{name: changes.pop(name) for name in list(changes) if hasattr(LINK, name)}),
        "completed": np.full(BATCHES, float(times.size)),
        "quantiles": np.tile(quantiles[:, None], (1, BATCHES)),
        "whole_quantiles": quantiles,
        "cdf_counts": counts(every),
        "tail_counts": tails(every, TAIL_TIMES),
        "summarised": {},
        "settled": {"answer": "yes", "p": 1.0},
    }
    if blocks is not None:
        facts |= classes("block", blocks, max(blocks) + 1)
    if sizes is not None:
        facts |= classes("size", np.searchsorted(SIZE_EDGES, sizes), len(SIZE_EDGES) + 1)
        sizes = np.asarray(sizes, dtype=float)
        cells = np.searchsorted(SIZE_BINS, sizes)
        fast = sizes / times > 10_000
        shape = SIZE_BINS.size + 1
        facts["size_counts"] = np.array([np.bincount(cells[chosen], minlength=shape) for chosen in (every, fast)])
        facts["size_bytes"] = np.array(
            [np.bincount(cells[chosen], sizes[chosen], shape) for chosen in (every, fast)], dtype=float
        )
    return Window(**{**facts, **changes})


@dataclass
class Runs:
    """A subject with a window and a summary a run."""

    windows: list
    summaries: list = None
    name: str = "runs"
    label: str = "runs"
    demand: tuple = ("the same", (1, 2, 3))
    scenario: dict = field(default_factory=dict)
    parts: list = None

    def of_parts(self, run):
        return self.parts[run] if self.parts else {}

    def __post_init__(self):
        if self.summaries is None:
            self.summaries = [{} for _ in self.windows]


def losing(*shares, demand=("the same", (1, 2, 3))):
    """A subject of one run for each of these loss ratios, which its parts have on average."""
    around = 1 + 0.001 * np.array([k // 2 * (-1) ** k for k in range(BATCHES)])
    lost = [np.tile(1000.0 * share * around, (2, 1)) for share in shares]
    return Runs([window([0.1] * 60, dropped=each) for each in lost], demand=demand)
