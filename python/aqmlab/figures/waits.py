"""The distribution of queueing delay over the packets of the measured window, a panel for each link and direction."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl

from aqmlab import links
from aqmlab.comparison import Column, ways_of_data
from aqmlab.figures.apart import POINTS, Panel, bands_said, panels_drawn
from aqmlab.figures.delay import SHORTEST_MS
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.looks import Look, void_note
from aqmlab.figures.responses import FEWEST_FOR_A_BAND, band
from aqmlab.results.run import of_link
from aqmlab.statistics import Array


def delay_distribution(columns: Sequence[Column], looks: dict[str, Look]) -> Drawn | None:
    """Distributions of the queueing delay of packets where data flow; None where no run has any."""
    shown = [
        column for column in columns if not column.uncongested and all(run.has_delays for run in column.result.runs)
    ]
    directions = ways_of_data(shown, on_every_link=True)
    every = {column.name: [run.delays for run in column.result.runs] for column in shown}
    several = links.are_several_in(column.scenario for column in shown)
    panels = []
    for link in dict.fromkeys(link for column in shown for link in links.of(column.scenario)):
        for way in directions:
            title = f"{link}, {way}" if several else way
            of_runs = {
                column.name: [_waits(delays, link, links.WAYS.index(way)) for delays in every[column.name]]
                for column in shown
            }
            panel = _panel(title, shown, looks, of_runs)
            panels += [panel] if panel.curves else []
    if not panels:
        return None
    several = {len(column.result.runs) for column in shown} != {1}
    caption = (
        "Share of packets that waited in the queue no longer than the time on the horizontal axis, which is "
        "logarithmic; further left is better. A curve that begins above nothing has packets that waited less than "
        f"the axis shows. Delays are told apart to two digits.{' All runs of a variant together.' * several}"
        f"{bands_said(panels)}{void_note(shown)}"
    )
    draw = partial(panels_drawn, panels, ("queueing delay (ms)", "packets (%)"), False)
    return Drawn("delay-cdf", "Distribution of queueing delay", caption, draw)


def _waits(delays: pl.DataFrame, link: str, direction: int) -> tuple[Array, Array]:
    """Lengths in milliseconds, the shortest first, and how many packets waited for about so long."""
    rows = of_link(delays, link).filter(pl.col("direction") == direction)
    return 1e3 * rows["queue_delay_s"].to_numpy(), rows["packets"].to_numpy().astype(np.float64)


def _panel(
    title: str, columns: Sequence[Column], looks: dict[str, Look], of_runs: dict[str, list[tuple[Array, Array]]]
) -> Panel:
    """A curve for each column in which a packet left."""
    each = {name: [waits for waits in runs if waits[1].sum()] for name, runs in of_runs.items()}
    longest = max((lengths[-1] for runs in each.values() for lengths, _ in runs), default=1.0)
    shortest = min((_quantile(*waits, 0.005) for runs in each.values() for waits in runs), default=longest)
    low = max(min(shortest / 1.3, longest / 2), SHORTEST_MS)
    at = np.geomspace(low, max(1.1 * longest, 2 * low), POINTS)
    curves, bands = [], {}
    for column in columns:
        runs = each[column.name]
        if not runs:
            continue
        sums = [
            np.concatenate([[0.0], np.cumsum(packets)])[np.searchsorted(lengths, at, side="right")]
            for lengths, packets in runs
        ]
        sizes = [packets.sum() for _, packets in runs]
        curves.append((column.label, looks[column.name], at, 100 * np.sum(sums, axis=0) / sum(sizes)))
        if len(runs) >= FEWEST_FOR_A_BAND:
            shares = np.array([100 * one / size for one, size in zip(sums, sizes, strict=True)])
            bands[column.label] = band(shares)
    return Panel(title, tuple(curves), bands)


def _quantile(lengths: Array, packets: Array, share: float) -> float:
    """The length that the share of packets did not exceed."""
    return float(lengths[np.searchsorted(np.cumsum(packets), share * packets.sum())])
