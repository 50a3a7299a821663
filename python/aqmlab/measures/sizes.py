"""Measures of what the users asked for: how responses and their bytes are spread over sizes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from aqmlab.json_files import is_number
from aqmlab.measures.measure import Formula, Measure, Parameter, Params
from aqmlab.measures.subject import Seen
from aqmlab.results.window import SIZE_BINS, Window
from aqmlab.statistics import Array
from aqmlab.units import say_bytes

ALL, FAST = 0, 1
"""First index of the kept counts: all responses, and those faster than 10 kB/s."""


def _is_edge(item: Any) -> bool:
    return type(item) is int and bool(np.isclose(SIZE_BINS, item, rtol=1e-9).any())


_SAID = "a size that counts are kept at: 2000, 2500, 3000 or ten a decade (1000, 10000, ...)"
_PARAMETERS = (
    Parameter("from_bytes", _SAID, _is_edge),
    Parameter("to_bytes", _SAID, _is_edge),
    Parameter("fast", "true or false", lambda item: isinstance(item, bool), False),
)


def _edge(size: int) -> int:
    return int(np.abs(SIZE_BINS - size).argmin())


def _shares(counts: Callable[[Window], Array], what: str) -> Callable[[Params], Formula]:
    def formula(params: Params) -> Formula:
        low, high, is_fast = params["from_bytes"], params["to_bytes"], params["fast"]
        if low is not None and high is not None and low >= high:
            raise ValueError(f"from_bytes = {low}: expected less than to_bytes = {high}")
        # Bin k holds what is larger than edge k - 1 and at most edge k.
        first = 0 if low is None else _edge(low) + 1
        end = len(SIZE_BINS) + 1 if high is None else _edge(high) + 1

        def whole(seen: Seen) -> float:
            found = counts(seen.window)
            if not found.size or not found[ALL].sum():
                return float("nan")
            return float(found[FAST if is_fast else ALL, first:end].sum() / found[ALL].sum())

        bounds = [f"over {say_bytes(low)}"] if low is not None else []
        bounds += [f"up to {say_bytes(high)}"] if high is not None else []
        which = f"responses {' and '.join(bounds) or 'of any size'}"
        speed = ", faster than 10 kB/s" if is_fast else ""
        words = f"share of {which}{speed}" if what == "responses" else f"share of {what} in {which}{speed}"
        return Formula(whole, None, words, which + speed)

    return formula


def _largest(params: Params) -> Formula:
    share = params["share"]

    def whole(seen: Seen) -> float:
        counts, sizes = seen.window.size_counts, seen.window.size_bytes
        if not counts.size or not counts[ALL].sum():
            return float("nan")
        # From the largest down; the bin in which the share ends gives bytes in proportion.
        asked = np.concatenate(([0.0], np.cumsum(counts[ALL][::-1])))
        bytes_ = np.concatenate(([0.0], np.cumsum(sizes[ALL][::-1])))
        return float(np.interp(share * asked[-1], asked, bytes_) / bytes_[-1])

    return Formula(
        whole, None, f"share of bytes in the largest {100 * share:g} % of responses", f"largest {100 * share:g} %"
    )


def _mean(_: Params) -> Formula:
    def whole(seen: Seen) -> float:
        counts, sizes = seen.window.size_counts, seen.window.size_bytes
        return float(sizes[ALL].sum() / counts[ALL].sum()) if counts.size and counts[ALL].sum() else float("nan")

    return Formula(whole, None, "mean size of a response", "mean size")


_of_exchanges = partial(Measure, of_exchanges=True)

MEASURES = (
    _of_exchanges("size_share", _PARAMETERS, _shares(lambda w: w.size_counts, "responses")),
    _of_exchanges("bytes_share", _PARAMETERS, _shares(lambda w: w.size_bytes, "bytes")),
    _of_exchanges(
        "largest_share",
        (Parameter("share", "a share between 0 and 1", lambda x: is_number(x) and 0 < x < 1, is_needed=True),),
        _largest,
    ),
    _of_exchanges("size_mean", (), _mean),
)
