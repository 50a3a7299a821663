"""Measures of the link and its queues over the measured window."""

from collections.abc import Callable

import numpy as np

from aqmlab.measures.measure import (
    BOTH,
    LINK,
    ONE_WAY,
    WAYS,
    WINDOW_WAY,
    Formula,
    Measure,
    Parameter,
    Params,
    at_link,
    choice,
)
from aqmlab.measures.subject import Seen
from aqmlab.results.window import Window
from aqmlab.statistics import Array

STATISTICS = ("mean", "sd", "min", "max")

Quotient = Callable[[Window], tuple[Array, Array]]
"""Numerator and denominator, both [direction, part]."""


def _capacity(w: Window) -> Array:
    """Bits that the link could send in each part."""
    parts = w.completed.size
    return np.repeat(np.array(w.rate_bps)[:, None] * w.measured_s / parts, parts, axis=1)


def _seconds(w: Window) -> Array:
    """Length of each part; half for each direction, so that the sum of both is a rate."""
    return np.full_like(w.sent_bits, w.measured_s / w.completed.size)


_QUOTIENTS: dict[str, Quotient] = {
    "utilisation": lambda w: (w.sent_bits, _capacity(w)),
    "throughput_bps": lambda w: (w.sent_bits, _seconds(w)),
    "loss_ratio": lambda w: (w.dropped, w.offered),
    "mark_ratio": lambda w: (w.marked, w.offered),
    "queue_delay_mean_s": lambda w: (w.delay_sum_s, w.delivered),
}
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
        rows = slice(None) if way == BOTH else slice(WAYS.index(way), WAYS.index(way) + 1)

        def quotient(seen: Seen, axes: tuple[int, ...]) -> Array:
            top, bottom = (each[rows].sum(axis=axes) for each in _QUOTIENTS[name](seen.window))
            if name == "throughput_bps" and way == BOTH:
                bottom = bottom / len(WAYS)  # what both directions send in a second, together
            return np.asarray(np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0))

        ways = "both directions" if way == BOTH else way
        return Formula(
            lambda seen: float(quotient(seen, (0, 1))) if seen.window.sent_bits.size else float("nan"),
            lambda seen: quotient(seen, (0,)),
            f"{_WORDS[name]}, {ways}",
            _WORDS[name] + ("" if way == BOTH else f", {way}"),
        )

    return formula


def _state(params: Params) -> Formula:
    """Statistics of a column of queue.parquet."""
    column, statistic, way = params["column"], params["statistic"], params["direction"]
    row, direction = STATISTICS.index(statistic), WAYS.index(way)

    def parts(seen: Seen) -> Array:
        found = seen.window.state.get(column)
        return np.full(seen.window.completed.size, np.nan) if found is None else found[row, direction]

    def whole(seen: Seen) -> float:
        found = seen.window.state.get(column)
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
    Measure("utilisation", "utilisation", "% of the link", (WINDOW_WAY, LINK), at_link(_quotient("utilisation"))),
    Measure("throughput_bps", "throughput", "Mb/s", (WINDOW_WAY, LINK), at_link(_quotient("throughput_bps"))),
    Measure("loss_ratio", "loss", "% of packets", (WINDOW_WAY, LINK), at_link(_quotient("loss_ratio"))),
    Measure("mark_ratio", "marked", "% of packets", (WINDOW_WAY, LINK), at_link(_quotient("mark_ratio"))),
    Measure(
        "queue_delay_mean_s", "mean queueing delay", "ms", (WINDOW_WAY, LINK), at_link(_quotient("queue_delay_mean_s"))
    ),
    Measure(
        "state",
        "state",
        "",
        (
            Parameter("column", "a column of queue.parquet", lambda item: isinstance(item, str), is_needed=True),
            choice("statistic", STATISTICS, "mean"),
            ONE_WAY,
            LINK,
        ),
        at_link(_state),
    ),
)
