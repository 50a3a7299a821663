"""Numbers of several points put together: differences, ratios and contrasts, with their intervals.

Points under the same demands and seeds are compared seed by seed (or, of one run each, part by part of the window);
others as independent samples, Welch's way. A ratio is judged by its linearization, one - ratio x other, whose interval
is divided by the mean of the other (Cochran, Sampling Techniques, 3rd ed., 6.3).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aqmlab.measures.measure import Reading
from aqmlab.measures.subject import Subject
from aqmlab.statistics import CONFIDENCE, Array, Interval, across_runs, difference_within, student, within_run

EACH: dict[str, Callable[[Array], Array]] = {
    "mean": lambda values: np.asarray(values.mean(axis=0)),
    "max": lambda values: np.asarray(values.max(axis=0)),
    "min": lambda values: np.asarray(values.min(axis=0)),
    "spread": lambda values: np.asarray(values.max(axis=0) - values.min(axis=0)),
}
"""How several points become one number a run."""

LINEAR = ("mean",)
"""Of these the parts of a window say something; the greatest of several noisy numbers is above the greatest of their
means, and the noisier they are the more so."""

Demand = tuple[tuple[str | None, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Sample:
    """One number a run, and where there are such, one for each part of it."""

    values: Array
    parts: tuple[Array, ...] | None
    demand: Demand
    """Of each of the points: samples with the same are compared seed by seed."""

    @property
    def n(self) -> int:
        """How many runs."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Over the runs."""
        return float(self.values.mean())


def sample(reading: Reading, subjects: Sequence[Subject], each: str | None) -> Sample:
    """A measure of one point, or of several put together seed by seed."""
    rows = [reading.values(subject) for subject in subjects]
    n = min(len(row) for row in rows)
    values = np.array([row[:n] for row in rows], dtype=np.float64)
    inner = [reading.parts(subject) for subject in subjects]
    demand = tuple(subject.demand for subject in subjects)
    if each is None:
        assert len(subjects) == 1, "several points become one number by `each` alone"
        return Sample(values[0], None if inner[0] is None else tuple(inner[0]), demand)
    put_together = EACH[each]
    parts = None
    if each in LINEAR and all(found is not None for found in inner):
        parts = tuple(put_together(np.array([found[k] for found in inner if found is not None])) for k in range(n))
    return Sample(put_together(values), parts, demand)


def contrast(terms: Sequence[tuple[float, Sample]]) -> Interval:
    """The sum of weighted samples."""
    value = math.fsum(weight * found.mean for weight, found in terms)
    groups: list[list[tuple[float, Sample]]] = []
    for term in terms:
        group = next((group for group in groups if are_paired(group[0][1], term[1])), None)
        if group is None:
            groups.append([term])
        else:
            group.append(term)
    totals = [_total(group) for group in groups]
    if len(totals) == 1:
        values, parts = totals[0]
        if len(values) > 1:
            return across_runs(list(values))
        if parts is None:
            return Interval(value, None, 1, "none")
        one = terms[-1][1].parts
        return within_run(value, parts) if len(terms) == 1 or one is None else difference_within(value, parts, one[0])
    return _welch(value, [values for values, _ in totals])


def relative(one: Sample, other: Sample, *, is_ratio: bool) -> Interval:
    """(one - other) / other, or one / other."""
    base = other.mean
    if not base or not math.isfinite(base) or not math.isfinite(one.mean):
        return Interval(math.nan, None, min(one.n, other.n), "none")
    ratio = one.mean / base
    found = contrast([(1.0, one), (-ratio, other)])
    width = None if found.half_width is None else found.half_width / abs(base)
    return replace(found, value=ratio if is_ratio else ratio - 1, half_width=width)


def are_paired(one: Sample, other: Sample) -> bool:
    """Whether two samples were made under the same demands, which are known."""
    return one is other or (one.demand == other.demand and all(digest is not None for digest, _ in one.demand))


def _total(group: Sequence[tuple[float, Sample]]) -> tuple[Array, Array | None]:
    """The sum run by run; and part by part of the first run, if all have parts."""
    values = np.asarray(sum(weight * found.values for weight, found in group))
    if any(found.parts is None for _, found in group):
        return values, None
    return values, np.asarray(sum(weight * found.parts[0] for weight, found in group if found.parts is not None))


def _welch(value: float, groups: Sequence[Array]) -> Interval:
    """The sum of independent samples: Welch and Satterthwaite."""
    n = min(len(values) for values in groups)
    if n < 2 or not all(np.isfinite(values).all() for values in groups):
        return Interval(value, None, n, "none")
    variances = [float(values.var(ddof=1)) / len(values) for values in groups]
    total = sum(variances)
    if total == 0:
        return Interval(value, 0.0, n, "runs")
    freedom = total**2 / sum(v**2 / (len(x) - 1) for v, x in zip(variances, groups, strict=True))
    return Interval(value, student(0.5 + CONFIDENCE / 2, freedom) * math.sqrt(total), n, "runs")
