"""The columns of a comparison by the roles they have in the studies, and the ways to measure them."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from aqmlab.claims.verdict import POINTS, Finding
from aqmlab.comparison import Column, Comparison
from aqmlab.live.witnesses import SIMULATED
from aqmlab.statistics import Interval
from aqmlab.window import CDF_TIMES, TAIL_TIMES


class Bench:
    """The columns by the roles they have in the studies, and the ways to measure them."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.uncongested = comparison.uncongested
        self.drop_tail = self._find("pfifo", limit="240p")
        self.pi = self._find("pi", ecn=False, qref="24p")
        self.pi_ecn = self._find("pi", ecn=True, qref="24p")
        self.rem = self._find("rem", ecn=False, target="24p")
        self.rem_ecn = self._find("rem", ecn=True, target="24p")
        self.ared_byte = self._find("ared", ecn=False, mode="byte", min="12p")
        self.ared_packet = self._find("ared", ecn=False, mode="packet", min="12p")

    def _find(self, kind: str, ecn: bool | None = None, **wanted: str) -> Column | None:
        for column in self.comparison.congested:
            if column.witness != SIMULATED:
                continue  # the studies' claims are judged on one witness, which nothing makes void
            qdisc = column.qdisc
            if qdisc["kind"] != kind or (ecn is not None and column.ecn is not ecn):
                continue
            if all(str(qdisc.get(key)) == value for key, value in wanted.items()):
                return column
        return None

    @cached_property
    def load_percent(self) -> int | None:
        """The load in whole per cent, as the studies speak of it."""
        load = self.comparison.load
        return None if load is None else round(100 * load)

    def ahead(self, one: Column, other: Column, start: float, end: float) -> Interval:
        """How many more exchanges of one are done than of the other, on average over a stretch of response times."""
        i, j = index(start), index(end) + 1
        return self.comparison.contrast(
            one, other, lambda w: float(w.cdf[i:j].mean()), lambda w: w.cdf_parts[:, i:j].mean(axis=1)
        )

    def ahead_at(self, one: Column, other: Column, time: float) -> Interval:
        """The same at one response time."""
        return self.ahead(one, other, time, time)

    def done_within(self, column: Column, time: float) -> Interval:
        """Share of exchanges done within a time."""
        k = index(time)
        return column.statistic(lambda w: float(w.cdf[k]), lambda w: w.cdf_parts[:, k])

    def more(self, one: Column, other: Column, measure: str) -> Interval:
        """Difference of a measure."""
        return self.comparison.difference(one, other, measure)

    def relatively_more(self, one: Column, other: Column, measure: str) -> Interval:
        """Difference of a measure relative to the other's value."""
        base = other.estimate(measure).value
        found = self.more(one, other, measure)
        if not base:
            return Interval(math.nan, None, found.n, "none")
        width = None if found.half_width is None else found.half_width / base
        return Interval(found.value / base, width, found.n, found.basis)

    def slower_than(self, one: Column, other: Column, time: float) -> Interval:
        """How many more exchanges of one than of the other take longer than a time."""
        k = int(np.searchsorted(TAIL_TIMES, time))
        return self.comparison.contrast(
            one,
            other,
            lambda w: float(w.tail[k]),
            lambda w: w.tail_counts[:, k] / np.where(w.completed > 0, w.completed, np.nan),
        )


def index(time: float) -> int:
    """Where a response time stands in `CDF_TIMES`."""
    return int(np.searchsorted(CDF_TIMES, time - 1e-9))


def pairs(
    ones: Sequence[Column],
    others: Sequence[Column],
    measure: Callable[[Column, Column], Interval],
    low: float,
    high: float,
    unit: str = POINTS,
) -> tuple[Finding, ...]:
    """Each of the ones against each of the others."""
    return tuple(
        Finding(f"{one.name} − {other.name}", measure(one, other), low, high, unit)
        for one in ones
        for other in others
        if one is not other
    )


def present(*columns: Column | None) -> list[Column]:
    """Those that the comparison has."""
    return [column for column in columns if column is not None]
