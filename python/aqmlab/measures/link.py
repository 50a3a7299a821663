"""Measures of the link and its queues over the measured window."""

from collections.abc import Callable

import numpy as np

from aqmlab.links import WAYS
from aqmlab.measures.measure import (
    BOTH,
    LINK,
    ONE_WAY,
    WINDOW_WAY,
    Formula,
    Measure,
    Parameter,
    Params,
    at_link,
    choice,
)
from aqmlab.measures.subject import Seen
from aqmlab.results.window import STATISTICS, in_parts, quotient
from aqmlab.statistics import Array

_WORDS = {
    "utilisation": "utilisation",
    "throughput_bps": "throughput",
    "loss_ratio": "loss ratio",
    "mark_ratio": "share of packets marked",
    "queue_delay_mean_s": "mean queueing delay",
}


def _quotient(name: str) -> Callable[[Params], Formula]:
    def formula(params: Params) -> Formula:
        way = params["direction"]
        directions = range(len(WAYS)) if way == BOTH else (WAYS.index(way),)

        def parts(seen: Seen) -> Array:
            return in_parts(seen.window.link, name, directions)

        def whole(seen: Seen) -> float:
            top, bottom = (each.sum() for each in quotient(seen.window.link, name, directions))
            return float(top / bottom) if bottom > 0 else float("nan")

        ways = "both directions" if way == BOTH else way
        return Formula(
            whole,
            parts,
            f"{_WORDS[name]}, {ways}",
            _WORDS[name] + ("" if way == BOTH else f", {way}"),
        )

    return formula


def _state(params: Params) -> Formula:
    """Statistics of a column of queue.parquet."""
    column, statistic, way = params["column"], params["statistic"], params["direction"]
    row, direction = STATISTICS.index(statistic), WAYS.index(way)

    def parts(seen: Seen) -> Array:
        found = seen.window.link.state.get(column)
        return np.full(seen.window.completed.size, np.nan) if found is None else found[row, direction]

    def whole(seen: Seen) -> float:
        found = seen.window.link.state.get(column)
        if found is None:
            return float("nan")
        means, deviations, least, most = (each[direction] for each in found)
        if np.isnan(found[:, direction]).all():
            return float("nan")
        match statistic:
            case "mean":
                return float(np.nanmean(means))
            case "sd":
                # Parts are equally long: the variance is the mean of theirs and that of their means.
                return float(np.sqrt(np.nanmean(deviations**2) + np.nanvar(means)))
            case "min":
                return float(np.nanmin(least))
        return float(np.nanmax(most))

    said = {"mean": "mean", "sd": "standard deviation", "min": "least", "max": "greatest"}[statistic]
    words = f"{said} of `{column}` at the ends of intervals, {way}"
    return Formula(whole, parts, words, f"{said} of {column}")


MEASURES = (
    Measure("utilisation", (WINDOW_WAY, LINK), at_link(_quotient("utilisation"))),
    Measure("throughput_bps", (WINDOW_WAY, LINK), at_link(_quotient("throughput_bps"))),
    Measure("loss_ratio", (WINDOW_WAY, LINK), at_link(_quotient("loss_ratio"))),
    Measure("mark_ratio", (WINDOW_WAY, LINK), at_link(_quotient("mark_ratio"))),
    Measure("queue_delay_mean_s", (WINDOW_WAY, LINK), at_link(_quotient("queue_delay_mean_s"))),
    Measure(
        "state",
        (
            Parameter("column", "a column of queue.parquet", lambda item: isinstance(item, str), is_needed=True),
            choice("statistic", STATISTICS, "mean"),
            ONE_WAY,
            LINK,
        ),
        at_link(_state),
    ),
)
