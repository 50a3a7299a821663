"""Puts intervals on means over independent runs, or over parts of one run.

Across runs the unit is the run: n independent seeds, Student's t with n - 1 degrees of freedom. Within one run the
unit is a part of its window ("batch means"), and what neighbouring parts have in common makes the interval wider. It is
always labelled as coming from within one run, and there is none of a run that is not known to be settled.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from aqmlab.stationarity import autoregression

Array = npt.NDArray[np.float64]

BATCHES = 20
"""Parts of a window: the usual compromise between many parts and parts long enough to be nearly independent
(Schmeiser 1982, "Batch size effects in the analysis of simulation output": 10 to 30)."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A value with the half width of its 95 % interval; `None` where there is none."""

    value: float
    half_width: float | None
    n: int
    """Number of runs, or of parts of the one run."""
    basis: str
    """`runs`: across independent runs; `parts`: within one run; `none`."""
    freedom: float | None = None
    """Degrees of freedom where they are fewer than `n` - 1: parts resemble their neighbours."""

    @property
    def low(self) -> float:
        """Lower end; minus infinity without an interval."""
        return -math.inf if self.half_width is None else self.value - self.half_width

    @property
    def high(self) -> float:
        """Upper end; infinity without an interval."""
        return math.inf if self.half_width is None else self.value + self.half_width

    def as_dict(self) -> dict[str, float | int | str | None]:
        """For JSON; what is not a number becomes null."""
        width = self.half_width
        return {
            "value": self.value if math.isfinite(self.value) else None,
            "half_width_95": width if width is not None and math.isfinite(width) else None,
            "n": self.n,
            "basis": self.basis,
        }


def student(probability: float, freedom: float) -> float:
    """The quantile of Student's t with so many degrees of freedom."""
    from scipy.special import stdtrit  # takes long to load, which commands without an interval are spared

    return float(stdtrit(freedom, probability))


def quantiles(values: npt.ArrayLike, shares: Sequence[float]) -> Array:
    """For each share the least value that so many do not exceed: one that occurred, never one between two."""
    return np.asarray(np.quantile(np.asarray(values, dtype=float), shares, method="inverted_cdf"), dtype=float)


def distribution_of_waits(waited: npt.ArrayLike, is_over: npt.ArrayLike) -> tuple[Array, Array]:
    """The times after which waits were over, ascending, and the share that is over by then, from 0 to 1.

    One that was not over when it was last seen took longer than it is known for, and nobody knows by how much. Of
    Kaplan and Meier 1958, "Nonparametric estimation from incomplete observations", J. Am. Stat. Assoc. 53. Where all
    are over it is the empirical distribution function; where the longest wait is not, it does not reach 1.
    """
    times, over = np.asarray(waited, dtype=float), np.asarray(is_over, dtype=bool)
    order = np.lexsort((~over, times))  # a wait that is over comes before one that goes on after as long
    times, over = times[order], over[order]
    at_risk = np.arange(times.size, 0, -1)
    return times[over], 1 - np.cumprod(1 - over / at_risk)[over]


def median_of_waits(waited: npt.ArrayLike, is_over: npt.ArrayLike) -> float | None:
    """The median of their distribution, in the middle of two where exactly half are over by the first of them.

    None where so few were over that they do not tell.
    """
    times, shares = distribution_of_waits(waited, is_over)
    low, high = np.searchsorted(shares, (0.5 - EXACT, 0.5 + EXACT), side="left")
    return float((times[low] + times[high]) / 2) if high < times.size else None


EXACT = 1e-9
"""What a share may be off that was multiplied up."""


def half_width(values: Sequence[float] | Array) -> float | None:
    """Half width of the 95 % t-interval of a mean; `None` with fewer than two values or a value that is missing."""
    sample = np.asarray(values, dtype=float)
    if sample.size < 2 or not np.isfinite(sample).all():
        return None
    quantile = student(0.5 + CONFIDENCE / 2, sample.size - 1)
    return quantile * float(sample.std(ddof=1)) / math.sqrt(sample.size)


def half_widths(values: Array) -> Array:
    """The half width for each column of a table that has a row for each run."""
    quantile = student(0.5 + CONFIDENCE / 2, values.shape[0] - 1)
    return np.asarray(quantile * values.std(axis=0, ddof=1) / math.sqrt(values.shape[0]))


def across_runs(values: Sequence[float]) -> Interval:
    """The mean over independent runs."""
    width = half_width(values)
    return Interval(float(np.mean(values)), width, len(values), "none" if width is None else "runs")


FEWEST_INDEPENDENT = 4.0
"""Parts that the parts of a window must be worth for an interval: those of a run of its own would be as many seeds."""

MOST_UNSEEN = 0.5
"""Share of the parts that may see nothing of what is counted: none lost, or all in time. Of what happens seldom their
spread says less than it seems to: with 5 events in 20 parts, each event being of three, intervals held 70 %. What this
leaves held 94 % and more, with bursts of 1, 3 and 10 and of 2 to 200 events, wherever it left one in forty."""


def within_run(value: float, parts: Sequence[float] | Array) -> Interval:
    """The value of one run, with the interval that the spread of its parts suggests; without one where most parts see
    nothing of what it counts."""
    width, freedom = _of_neighbours(parts)
    if width is not None and _unseen(parts) > MOST_UNSEEN:
        width, freedom = None, None
    return Interval(value, width, len(parts), "none" if width is None else "parts", freedom)


def _unseen(parts: Sequence[float] | Array) -> float:
    """The share of the parts in which a share is none or all, and a difference none."""
    sample = np.asarray(parts, dtype=float)
    return max(float((sample == end).mean()) for end in (0.0, 1.0))


def _of_neighbours(parts: Sequence[float] | Array) -> tuple[float | None, float | None]:
    """Half width of the interval of a mean over parts that may resemble their neighbours, with its degrees of freedom;
    none where they do so much that hardly any are left that are independent.

    The parts are taken as an autoregression of first order, as in Steiger, Lada, Wilson, Joines, Alexopoulos and
    Goldsman 2005, "ASAP3: a batch means procedure for steady-state simulation analysis", ACM TOMACS 15(1). It is always
    done: of 20 parts, a test before it (von Neumann's ratio) misses one correlation of 0.4 in two.
    """
    plain = half_width(parts)
    sample = np.asarray(parts, dtype=float)
    if plain is None or sample.size < FEWEST_INDEPENDENT:
        return plain, None
    found = autoregression(sample)
    independent = sample.size * (1 - found.coefficient) / (1 + found.coefficient)
    if independent < FEWEST_INDEPENDENT:
        return None, None
    quantile = student(0.5 + CONFIDENCE / 2, independent - 1)
    return max(plain, quantile * math.sqrt(found.long_run_variance / sample.size)), independent - 1


def estimate(values: Sequence[float], parts: Sequence[Array]) -> Interval:
    """Across runs where there are several; else within the one run. `parts` holds the parts of each run."""
    return across_runs(values) if len(values) > 1 else within_run(values[0], parts[0])


def paired(
    values: Sequence[float], parts: Sequence[Array], base_values: Sequence[float], base_parts: Sequence[Array]
) -> Interval:
    """The difference to a baseline, pair by pair: run by run under the same seed, or part by part of the one run."""
    differences = [value - base for value, base in zip(values, base_values, strict=True)]
    if len(differences) > 1:
        return across_runs(differences)
    return difference_within(differences[0], parts[0] - base_parts[0], base_parts[0])


def difference_within(value: float, differences: Array, base: Array) -> Interval:
    """The difference of two columns of one run each, of its parts and those of the baseline.

    Where these differ among themselves and the other's are the very same, both are one run: the difference is 0.
    """
    if value == 0 and not differences.any() and _unseen(base) <= MOST_UNSEEN and np.unique(base).size > 1:
        return Interval(0.0, 0.0, differences.size, "parts")
    return within_run(value, differences)


def simultaneous(interval: Interval, comparisons: int) -> Interval:
    """The interval, widened so that this many of them hold together with 95 % (Bonferroni).

    Of an interval by Welch the degrees of freedom are at least those of the fewer runs, which are taken here: it comes
    out too wide rather than too narrow.
    """
    if interval.half_width is None or interval.n < 2 or comparisons < 2:
        return interval
    freedom = interval.n - 1 if interval.freedom is None else interval.freedom
    one, all_of_them = (student(1 - (1 - CONFIDENCE) / 2 / k, freedom) for k in (1, comparisons))
    return replace(interval, half_width=interval.half_width * all_of_them / one)


def unpaired(values: Sequence[float], base_values: Sequence[float]) -> Interval:
    """The difference to a baseline whose demands were others: Welch's interval, which needs several runs of each."""
    a, b = np.asarray(values, dtype=float), np.asarray(base_values, dtype=float)
    difference = float(a.mean() - b.mean())
    if a.size < 2 or b.size < 2 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return Interval(difference, None, min(a.size, b.size), "none")
    va, vb = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    if va + vb == 0:
        return Interval(difference, 0.0, min(a.size, b.size), "runs")
    freedom = (va + vb) ** 2 / (va**2 / (a.size - 1) + vb**2 / (b.size - 1))
    width = student(0.5 + CONFIDENCE / 2, freedom) * math.sqrt(va + vb)
    return Interval(difference, width, min(a.size, b.size), "runs")


@dataclass(frozen=True)
class Line:
    """A least-squares line y = intercept + slope x."""

    slope: float
    intercept: float
    residual_rms: float

    def at(self, x: float) -> float:
        """Its value at x."""
        return self.intercept + self.slope * x


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line:
    """Least squares, in closed form so that the same points give the same bits."""
    n = len(x)
    mean_x, mean_y = math.fsum(x) / n, math.fsum(y) / n
    sxx = math.fsum((a - mean_x) ** 2 for a in x)
    sxy = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    slope = sxy / sxx
    intercept = mean_y - slope * mean_x
    rest = math.fsum((b - intercept - slope * a) ** 2 for a, b in zip(x, y, strict=True))
    return Line(slope, intercept, math.sqrt(rest / n))
