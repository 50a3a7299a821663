"""How far apart two quantiles of a summary are at least that it can tell apart: it reads them off histograms."""

import math
import re
from collections.abc import Iterable
from dataclasses import replace

from aqmlab.statistics import Interval

_BINS_OF_WAITS, _BINS = 128, 1024
"""Bins of each octave: two and three significant digits."""
_HISTOGRAMS = (
    (re.compile(r"(.*[._])?queue_delay_p\d+_s"), 1e-7, _BINS_OF_WAITS),
    (re.compile(r"(probes[._]one_way_delay_s|frames[._]delay_s)[._]p\d+"), 1e-7, _BINS),
    (re.compile(r"exchanges[._]response_time_s[._]p\d+"), 1e-6, _BINS),
)
"""Names of numbers, with dots or flat, the unit of their histogram in seconds, and its bins."""


def bin_s(name: str, value_s: float | None) -> float:
    """How wide the bin is that a number of a summary is read off: one unit, or a share of the value's octave.

    It is nothing of a number that only rounding makes coarse.
    """
    if value_s is None or not math.isfinite(value_s):
        return 0.0
    for names, unit_s, bins in _HISTOGRAMS:
        if names.fullmatch(name):
            return unit_s * max(2.0 ** math.floor(math.log2(max(value_s / unit_s, 1.0))) / bins, 1.0)
    return 0.0


def widest_s(name: str, values: Iterable[float | None]) -> float:
    """The widest bin of some runs."""
    return max((bin_s(name, value) for value in values), default=0.0)


def no_finer(found: Interval, step: float) -> Interval:
    """An interval across runs that is no narrower than what its number tells apart."""
    if found.half_width is None or found.basis != "runs":
        return found
    return replace(found, half_width=max(found.half_width, step))
