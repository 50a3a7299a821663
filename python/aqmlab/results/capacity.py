"""What a link whose rate changes could carry."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from aqmlab import links, units
from aqmlab.statistics import Array

NAN = float("nan")
LAST_DIGITS = 1e-14
"""As a share of a sum of bits, what rounding may come to."""


def bits_between(link: Mapping[str, Any], way: str, since_s: Array, until_s: Array) -> Array:
    """How many bits one direction of a link with a schedule could have carried between each two of these times."""
    by = _bits_by(link, way, np.append(since_s, until_s))
    before, after = by[: since_s.size], by[since_s.size :]
    # In an outage it is none, to the last digit of both.
    return np.where(after - before > LAST_DIGITS * after, after - before, 0.0)


def _bits_by(link: Mapping[str, Any], way: str, at_s: Array) -> Array:
    """How many bits one direction of a link with a schedule could have carried from the start of the run to each of
    these times.

    Of a schedule with a period two are unrolled, for an outage of one may last into the next, and never longer: an
    outage is shorter than the period. All periods from the second on are alike.
    """
    end_s = float(at_s.max(initial=0.0))
    period_s = units.seconds(link["period"], "period") if "period" in link else math.inf
    if end_s <= 2 * period_s:
        return _unrolled(link, way, at_s, end_s)
    # Each time is put into one of the first two; this is how many periods like the second it is put back by.
    whole = np.maximum(np.floor(at_s / period_s) - 1.0, 0.0)
    ends = _unrolled(link, way, np.array([period_s, 2 * period_s]), 2 * period_s)
    more = float(ends[1] - ends[0])
    return _unrolled(link, way, at_s - whole * period_s, 2 * period_s) + whole * more


def _unrolled(link: Mapping[str, Any], way: str, at_s: Array, end_s: float) -> Array:
    """The same, of times up to an end, with every entry of every period until then."""
    since, rates = np.array(links.rates_over_time(link, way, end_s) or [(0.0, 0.0)]).T
    edges = np.append(since, max(end_s, since[-1]))
    bits = np.append(0.0, np.cumsum(rates * np.diff(edges)))
    return np.asarray(np.interp(at_s, edges, bits), dtype=np.float64)


def means_bps(link: Mapping[str, Any], figures: Mapping[str, Any], window: tuple[float, float]) -> tuple[float, float]:
    """The rates of a link with a schedule or states, forward and in reverse, in the mean over the window.

    Those of a schedule follow from it. Those of states are in the utilisation of the summary, and where a direction
    sent nothing, in that of the other one if the rates of all states are in one proportion; else they are not known.
    """
    start, end = window
    if "schedule" in link:
        edges = np.array([start]), np.array([end])
        forward, reverse = (float(bits_between(link, way, *edges)[0]) / (end - start) for way in links.WAYS)
        return forward, reverse
    forward, reverse = (_of_states(link, figures[way], way) for way in links.WAYS)
    rates = [[units.rate_bps(state[key], key) for key in ("rate", "reverse_rate")] for state in link["states"]]
    proportions = {back / there for there, back in rates}
    if len(proportions) == 1:
        (proportion,) = proportions
        forward, reverse = (
            reverse / proportion if np.isnan(forward) else forward,
            forward * proportion if np.isnan(reverse) else reverse,
        )
    return forward, reverse


def _of_states(link: Mapping[str, Any], figures: Mapping[str, Any], way: str) -> float:
    if links.is_told(link, way):
        key = "rate" if way == links.WAYS[0] else "reverse_rate"
        return units.rate_bps(link[key], key)
    return float(figures["throughput_bps"]) / float(figures["utilisation"]) if figures["utilisation"] else NAN
