"""Measures of response times: how many exchanges are done by when, of all or of a block of traffic or of some sizes."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from aqmlab.json_files import is_number
from aqmlab.measures.measure import Formula, Measure, Parameter, Params
from aqmlab.measures.subject import Seen
from aqmlab.results.exchanges import TAIL_MARKS, completes, index
from aqmlab.results.window import CDF_TIMES, FEWEST, LATE_TIMES, SIZE_EDGES, TAIL_TIMES, Window
from aqmlab.statistics import Array
from aqmlab.units import say_bytes, say_seconds

LONGEST_S = float(CDF_TIMES[-1])
"""Up to here distribution functions are kept in fine steps."""
STEP_S = float(CDF_TIMES[1])

Curves = Callable[[Window], tuple[Array, Array, Array]]
"""Counts at `CDF_TIMES`, [part, time], of completed exchanges, [part], and of those beyond `LATE_TIMES`, [part, time].
"""


def _is_curve_time(item: Any) -> bool:
    """Whether counts are kept at this very time."""
    return is_number(item) and 0 <= item <= LONGEST_S and bool(np.isclose(CDF_TIMES, item, rtol=0, atol=1e-9).any())


def _is_time(item: Any) -> bool:
    return is_number(item) and item > 0 and (_is_curve_time(item) or item in TAIL_MARKS)


_EDGES = ", ".join(str(edge) for edge in SIZE_EDGES)
SCOPE = (
    Parameter("block", "a traffic block, from 0", lambda item: type(item) is int and item >= 0),
    Parameter("from_bytes", f"one of {_EDGES}: responses larger than that", lambda item: item in SIZE_EDGES),
    Parameter("to_bytes", f"one of {_EDGES}: responses up to that", lambda item: item in SIZE_EDGES),
)
"""Of which exchanges: all without any of these."""


def _scope(params: Params) -> tuple[Curves, str]:
    """Which exchanges are meant: their counts, and what they are called."""
    block, low, high = params["block"], params["from_bytes"], params["to_bytes"]
    if block is not None and (low is not None or high is not None):
        raise ValueError("expected either block or from_bytes and to_bytes")
    if low is not None and high is not None and low >= high:
        raise ValueError(f"from_bytes = {low}: expected less than to_bytes = {high}")
    if block is not None:
        return lambda w: _of_block(w, block), f" of traffic block {block}"
    if low is not None or high is not None:
        first = 0 if low is None else SIZE_EDGES.index(low) + 1
        last = len(SIZE_EDGES) if high is None else SIZE_EDGES.index(high)
        bounds = [f"over {say_bytes(low)}"] if low is not None else []
        bounds += [f"up to {say_bytes(high)}"] if high is not None else []
        return lambda w: _of_sizes(w, first, last), f" with responses {' and '.join(bounds)}"
    return lambda w: (w.cdf_counts, w.completed, w.tail_counts[:, -LATE_TIMES.size :]), ""


def _of_block(w: Window, block: int) -> tuple[Array, Array, Array]:
    if block >= len(w.block_completed) or w.summarised:
        return _of_nothing(w)
    counts, tail = w.block_cdf_counts[block].astype(float), w.block_tail_counts[block].astype(float)
    return counts, w.block_completed[block], tail


def _of_sizes(w: Window, first: int, last: int) -> tuple[Array, Array, Array]:
    if not w.size_completed.size:
        return _of_nothing(w)
    chosen = slice(first, last + 1)
    counts, tail = (c[chosen].sum(axis=0, dtype=float) for c in (w.size_cdf_counts, w.size_tail_counts))
    return counts, w.size_completed[chosen].sum(axis=0), tail


def _of_nothing(w: Window) -> tuple[Array, Array, Array]:
    """The counts of what is not known."""
    parts = w.completed.size
    return np.full((parts, CDF_TIMES.size), np.nan), np.full(parts, np.nan), np.full((parts, LATE_TIMES.size), np.nan)


def _share(counts: Array, completed: Array) -> Array:
    """A count over that of completed exchanges, not a number where there are none."""
    with np.errstate(invalid="ignore"):
        shares = counts / np.where(completed > 0, completed, np.nan)
    return np.asarray(shares, dtype=np.float64)


def _mean_share(curves: Curves, i: int, j: int) -> tuple[Callable[[Seen], float], Callable[[Seen], Array]]:
    """Mean of the distribution function from index i up to j."""

    def whole(seen: Seen) -> float:
        counts, completed, _ = curves(seen.window)
        return float(_share(counts[:, i:j].sum(axis=0), completed.sum()).mean())

    def parts(seen: Seen) -> Array:
        counts, completed, _ = curves(seen.window)
        return _share(counts[:, i:j].mean(axis=1), completed)

    return whole, parts


def _ahead(params: Params) -> Formula:
    start, end, at = params["from_s"], params["to_s"], params["at_s"]
    if at is not None and (start is not None or end is not None):
        raise ValueError("expected either at_s or from_s and to_s")
    if at is None and (start is None or end is None or start >= end):
        raise ValueError("expected at_s, or from_s and a later to_s")
    curves, whose = _scope(params)
    first, last = (at, at) if at is not None else (start, end)
    whole, parts = _mean_share(curves, index(first), index(last) + 1)
    if at is not None:
        return Formula(
            whole, parts, f"share of exchanges{whose} done at {say_seconds(at)}", f"at {say_seconds(at)}{whose}"
        )
    stretch = f"from {say_seconds(first)} to {say_seconds(last)}" if first else f"from 0 to {say_seconds(last)}"
    return Formula(whole, parts, f"share of exchanges{whose} done, averaged {stretch}", f"{stretch}{whose}")


def _within(params: Params) -> Formula:
    time = params["time_s"]
    curves, whose = _scope(params)
    whole, parts = _mean_share(curves, index(time), index(time) + 1)
    said = f"within {say_seconds(time)}"
    return Formula(whole, parts, f"share of exchanges{whose} done {said}", f"{said}{whose}")


def _slower(params: Params) -> Formula:
    time = params["time_s"]
    curves, whose = _scope(params)
    said = f"slower than {say_seconds(time)}"
    words = f"share of exchanges{whose} {said}"
    if time <= LONGEST_S:
        whole, parts = _mean_share(curves, index(time), index(time) + 1)
        return Formula(lambda s: 1 - whole(s), lambda s: 1 - parts(s), words, said + whose)
    if whose:
        raise ValueError(f"time_s = {time:g}: expected at most {LONGEST_S:g} for a part of the exchanges")
    k = int(np.searchsorted(TAIL_TIMES, time))
    return Formula(
        lambda s: float(_share(s.window.tail_counts[:, k].sum(), s.window.completed.sum())),
        lambda s: _share(s.window.tail_counts[:, k], s.window.completed),
        words,
        said,
    )


def _quantile(params: Params) -> Formula:
    q = params["q"]
    curves, whose = _scope(params)
    name = {0.5: "p50", 0.9: "p90", 0.99: "p99"}.get(q)
    words = f"{100 * q:g}th percentile of the response times{f' of exchanges{whose}' if whose else ''}"
    brief = f"{100 * q:g}th percentile{whose}"
    if name is not None and not whose:
        return Formula(lambda s: s.window.measure(name), lambda s: s.window.parts(name), words, brief)

    def whole(seen: Seen) -> float:
        counts, completed, tail = curves(seen.window)
        return _read_off(counts.sum(axis=0), tail.sum(axis=0), float(completed.sum()), q)

    def parts(seen: Seen) -> Array:
        counts, completed, tails = curves(seen.window)
        rows = zip(counts, tails, completed, strict=True)
        return np.array([_read_off(count, tail, float(n), q) for count, tail, n in rows])

    return Formula(whole, parts, words, brief)


def _read_off(counts: Array, tail: Array, completed: float, q: float) -> float:
    """A quantile between the times at which counts are kept: in fine steps to 2 s, then 40 a decade."""
    if not completed >= FEWEST:
        return float("nan")
    wanted = q * completed
    if counts[-1] >= wanted:
        return float(np.interp(wanted, counts, CDF_TIMES))
    if completed - tail[-1] >= wanted:
        within, times = np.append(counts[-1], completed - tail), np.append(LONGEST_S, LATE_TIMES)
        return float(np.exp(np.interp(wanted, within, np.log(times))))
    return float("nan")


def _plateau(params: Params) -> Formula:
    times = (params["from_s"], params["step_s"], params["to_s"])
    if not times[0] < times[1] < times[2]:
        raise ValueError("expected from_s before step_s before to_s")
    curves, whose = _scope(params)
    i, j, k = (index(time) for time in times)

    def step(counts: Array, completed: Array) -> Array:
        after, before = counts[..., k] - counts[..., j], counts[..., j] - counts[..., i]
        return _share(after - before, completed)

    def whole(seen: Seen) -> float:
        counts, completed, _ = curves(seen.window)
        return float(step(counts.sum(axis=0), completed.sum()))

    said = [f"{time:.1f}" for time in times]
    return Formula(
        whole,
        lambda seen: step(*curves(seen.window)[:2]),
        f"exchanges{whose} that end between {said[1]} and {said[2]} s less those between {said[0]} and {said[1]} s",
        f"step at {said[1]} s{whose}",
    )


def _kept(name: str) -> Callable[[Params], Formula]:
    """A measure that windows have under a name of their own."""
    words = {
        "p50": "median response time",
        "p90": "90th percentile of the response times",
        "p99": "99th percentile of the response times",
        "share_under_500ms": "share of exchanges done within 0.5 s",
        "share_under_1s": "share of exchanges done within 1 s",
        "share_under_2s": "share of exchanges done within 2 s",
    }[name]
    return lambda _: Formula(lambda s: s.window.measure(name), lambda s: s.window.parts(name), words, words)


def _completed(params: Mapping[str, Any]) -> Formula:
    block = params["block"]
    if block is None:
        words = "completed exchanges"
        return Formula(lambda s: s.window.measure("completed"), lambda s: s.window.parts("completed"), words, words)
    words = f"completed exchanges of traffic block {block}"

    def parts(seen: Seen) -> Array:
        is_there = block < len(seen.scenario.get("traffic", ()))
        if is_there and not completes(seen.scenario, seen.summary, block):
            return np.full_like(seen.window.completed, np.nan)
        return _of_block(seen.window, block)[1]

    return Formula(lambda s: float(parts(s).sum()), lambda s: parts(s) * len(s.window.completed), words, words)


_TIME = Parameter(
    "time_s",
    f"seconds above 0, at most {LONGEST_S:g}, a multiple of {STEP_S:g}",
    lambda item: _is_curve_time(item) and item > 0,
    is_needed=True,
)


def _at(name: str, default: float | None = None) -> Parameter:
    return Parameter(name, f"seconds from 0 to {LONGEST_S:g}, a multiple of {STEP_S:g}", _is_curve_time, default)


_of_exchanges = partial(Measure, of_exchanges=True)

MEASURES = (
    _of_exchanges("ahead", (_at("from_s"), _at("to_s"), _at("at_s"), *SCOPE), _ahead),
    _of_exchanges("within", (_TIME, *SCOPE), _within),
    _of_exchanges(
        "slower",
        (
            Parameter(
                "time_s",
                f"seconds above 0: up to {LONGEST_S:g} a multiple of {STEP_S:g}, beyond one of "
                f"{', '.join(f'{time:g}' for time in TAIL_MARKS if time > LONGEST_S)}",
                _is_time,
                is_needed=True,
            ),
            *SCOPE,
        ),
        _slower,
    ),
    _of_exchanges(
        "quantile",
        (Parameter("q", "a number between 0 and 1", lambda q: is_number(q) and 0 < q < 1, is_needed=True), *SCOPE),
        _quantile,
    ),
    _of_exchanges("plateau", (_at("from_s", 0.7), _at("step_s", 1.0), _at("to_s", 1.3), *SCOPE), _plateau),
    _of_exchanges("p50", (), _kept("p50")),
    _of_exchanges("p90", (), _kept("p90")),
    _of_exchanges("p99", (), _kept("p99")),
    _of_exchanges("share_under_500ms", (), _kept("share_under_500ms")),
    _of_exchanges("share_under_1s", (), _kept("share_under_1s")),
    _of_exchanges("share_under_2s", (), _kept("share_under_2s")),
    Measure("completed", SCOPE[:1], _completed),
)
