"""What a link whose rate changes could carry."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from aqmlab import links, units
from aqmlab.statistics import Array

NAN = float("nan")


def bits_by(link: Mapping[str, Any], way: str, at_s: Array) -> Array:
    """How many bits one direction of a link with a schedule could have carried from the start of the run to each of
    these times."""
    end_s = float(at_s.max(initial=0.0))
    since, rates = np.array(links.rates_over_time(link, way, end_s) or [(0.0, 0.0)]).T
    edges = np.append(since, max(end_s, since[-1]))
    return np.asarray(np.interp(at_s, edges, np.append(0.0, np.cumsum(rates * np.diff(edges)))), dtype=np.float64)


def means_bps(link: Mapping[str, Any], figures: Mapping[str, Any], window: tuple[float, float]) -> tuple[float, float]:
    """The rates of a link with a schedule or states, forward and in reverse, in the mean over the window.

    Those of a schedule follow from it. Those of states are in the utilisation of the summary, and where a direction
    sent nothing, in that of the other one if the rates of all states are in one proportion; else they are not known.
    """
    start, end = window
    if "schedule" in link:
        forward, reverse = (np.diff(bits_by(link, way, np.array(window)))[0] / (end - start) for way in links.WAYS)
        return float(forward), float(reverse)
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
