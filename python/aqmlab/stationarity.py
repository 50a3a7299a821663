"""Is a series settled? Tests for what a run has left of its beginning, and for how much its parts have in common.

All work on one realization, cut into cells of equal length. None of them knows what the series is of.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

YES, NO, UNKNOWN = "yes", "no", "cannot tell"
"""Answers to whether something is settled."""

LEVEL = 0.05
"""Of all tests of a run together: how often one that is settled is said not to be."""

TESTED = 100
"""Stretches of a series whose means are tested."""

CLIMBED = 20
"""Stretches between whose means a climb is looked for."""

FEWEST_CELLS = 40
"""Cells below which nothing is said: half of them are what correlation is estimated from."""

PRIOR_RUNS = 3
"""Runs that what is known of the scatter of scores stands for."""

TERMS = 100
"""Pairs of terms of a continued fraction that converges to the last digit in about the root of its larger parameter."""

SKIPPED = 5
"""Cuts that leave fewer means than this are none: few vary little by chance alone (Hoad, Robinson and Davies 2010,
"Automating warm-up length estimation", Journal of the Operational Research Society 61)."""

FEWEST_FREEDOM = 5.0
"""Degrees of freedom of the variance below which a series that shows no trend is not called settled either: its window
has room for fewer than 20 independent observations, and the test would miss what is there."""


@dataclass(frozen=True)
class Autoregression:
    """A series as one of first order: how it is correlated, and what its mean is worth."""

    coefficient: float
    long_run_variance: float
    """Of n observations, n times the variance of their mean for large n."""


@dataclass(frozen=True)
class Trend:
    """What Schruben's test says of a series."""

    statistic: float
    """Positive where the series begins too low."""
    freedom: float
    """Degrees of freedom."""
    p: float


def autoregression(values: Array) -> Autoregression:
    """The coefficient by least squares, freed of its bias in short series; not below 0.

    The bias is -(1 + 3 a)/n about a mean that is estimated too (Marriott and Pope 1954, "Bias in the estimation of
    autocorrelations", Biometrika 41; Kendall 1954, ibid.).
    """
    n = values.size
    rest = values - values.mean()
    square = float(rest @ rest)
    if n < 4 or square <= _rounding(values):
        return Autoregression(0.0, 0.0)
    found = float(rest[1:] @ rest[:-1]) / square
    found = min(max(found + (1 + 3 * found) / n, 0.0), 0.9999)
    shocks = rest[1:] - found * rest[:-1]
    variance = float(shocks @ shocks) / (n - 2)
    return Autoregression(found, variance / (1 - found) ** 2)


def freedom_of(coefficient: float, n: int) -> float:
    """Degrees of freedom of a long-run variance from an autoregression: n (1 - a)/(2 (1 + a)).

    Fishman 1978, Principles of Discrete Event Simulation, as used by Schruben 1982: half the number of independent
    observations that are worth as much as the n.
    """
    return n * (1 - coefficient) / (2 * (1 + coefficient))


def schruben(values: Array) -> Trend:
    """Tests whether a series has the same mean from its beginning to its end.

    The statistic is that of Schruben, Singh and Tierney 1983, "Optimal tests for initialization bias in simulation
    output", Operations Research 31(6): the partial sums of the deviations from the mean, weighted for a bias that dies
    away, in units of their standard deviation. That comes from an autoregression of the second half, as in Schruben
    1982, "Detecting initialization bias in simulation output", Operations Research 30(3).

    What is tested is the normal scores of means over 100 stretches. Over shorter ones the series of web traffic are
    correlated in more ways than one coefficient says; and of values that are as skewed as a queue's at a light load, a
    burst in the first half that the second has none of would be taken for a beginning.
    """
    scores = normal_scores(coarsened(values, TESTED))
    n = scores.size
    tail = scores[n // 2 :]
    found = autoregression(tail)
    freedom = freedom_of(found.coefficient, tail.size)
    if found.long_run_variance <= 0:  # nothing happens in it: the whole says how much can
        found = autoregression(scores)
        freedom = freedom_of(found.coefficient, n)
    if found.long_run_variance <= 0:
        return Trend(0.0, freedom, 1.0)
    k = np.arange(1, n + 1)
    sums = k * scores.mean() - scores.cumsum()
    statistic = math.sqrt(45 / found.long_run_variance) / n**1.5 * float(((1 - k / n) * sums).sum())
    return Trend(statistic, freedom, two_sided(statistic, freedom))


def climb(values: Array) -> Trend:
    """Tests whether a series goes farther one way than a random walk of its own steps would.

    Of a random walk the mean step between means of 20 stretches, divided by its standard error, is Student's t; each
    step has a correlation of 1/4 with the next (Working 1960, "Note on the correlation of first differences of averages
    in a random chain", Econometrica 28(4)), which makes the square of that error 1 + 2/4 times what it is otherwise.
    What returns to its mean stays below that by far, however slowly it does. So it finds what `schruben` cannot: a
    series that climbs to its end, which might as well be a slow one as far as its second half alone can say.
    """
    steps = np.diff(coarsened(values, CLIMBED))
    spread = float(steps.std(ddof=1)) if steps.size > 1 else 0.0
    if spread**2 <= _rounding(values):
        return Trend(0.0, float(max(steps.size - 1, 0)), 1.0)
    statistic = float(steps.mean()) / spread * math.sqrt(steps.size / 1.5)
    return Trend(statistic, float(steps.size - 1), two_sided(statistic, steps.size - 1))


def trend(values: Array) -> Trend:
    """Both tests of a series: the statistic and freedom of `schruben`, and a p-value for the two together."""
    found, other = schruben(values), climb(values)
    return replace(found, p=min(1.0, 2 * min(found.p, other.p)))


def score(statistic: float, freedom: float) -> float:
    """A value of Student's t as the normal deviate that is as rare, with its sign; at most 7."""
    from statistics import NormalDist

    p = max(two_sided(statistic, freedom), 2e-12)
    return math.copysign(-NormalDist().inv_cdf(p / 2), statistic)


def in_common(scores: Sequence[float]) -> float:
    """How likely the scores of independent settled runs have a mean as far from zero as these, two-sided.

    A score is a normal deviate if the variance that it was divided by is right, which of one run is hardly known: those
    of a queue at 90 % load scatter by 1.6, and the rarest of several runs is rare by chance. So their own scatter
    counts as well, beside the 1 that it should be, which stands for as much as three more runs: the moderated t of
    Smyth 2004, "Linear models and empirical Bayes methods", Statistical Applications in Genetics and Molecular
    Biology 3(1).
    """
    n, mean = len(scores), math.fsum(scores) / len(scores)
    freedom = PRIOR_RUNS + n - 1
    variance = (PRIOR_RUNS + math.fsum((one - mean) ** 2 for one in scores)) / freedom
    return two_sided(mean * math.sqrt(n / variance), freedom)


def harmonic_mean(p: Sequence[float]) -> float:
    """How likely so many p-values, of tests that may depend on each other, are as small as these, in all.

    Wilson 2019, "The harmonic mean p-value for combining dependent tests", Proceedings of the National Academy of
    Sciences 116(4). One small value among many says little, as after Bonferroni; many that are somewhat small say much.
    """
    return len(p) / math.fsum(1 / one if one > 0 else math.inf for one in p) if p else math.nan


def coarsened(values: Array, cells: int) -> Array:
    """Means over so many stretches of equal length, or fewer; what is left over at the end is left out."""
    together = -(-values.size // cells)
    count = values.size // together
    means: Array = values[: count * together].reshape(count, together).mean(axis=1)
    return means


def normal_scores(values: Array) -> Array:
    """Each value's rank as the normal deviate that one expects there (Blom 1958, Statistical Estimates and Transformed
    Beta-Variables); equal values have the mean of their ranks."""
    from statistics import NormalDist  # 10 ms, which commands that test nothing are spared

    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = counts.cumsum() - (counts - 1) / 2
    deviate = NormalDist().inv_cdf
    scores = np.array([deviate(p) for p in (ranks - 0.375) / (values.size + 0.25)])
    return scores[place]


def two_sided(statistic: float, freedom: float) -> float:
    """How likely Student's t is as far from zero: I_x(freedom/2, 1/2) at x = freedom/(freedom + t²).

    Worked out here, because scipy takes longer to load than a run of minutes takes to be tested.
    """
    freedom, square = max(freedom, 0.5), statistic * statistic
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square))


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularized incomplete beta function I_x(a, b), `rest` being 1 - x to more digits than x tells.

    Abramowitz and Stegun 1964, Handbook of Mathematical Functions, 26.5.8: a continued fraction, which converges fast
    up to the mean of the distribution; beyond it I_x(a, b) = 1 - I_(1-x)(b, a).
    """
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(b, a, rest, x)
    scale = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)) / a
    below = 0.0
    for m in range(TERMS, 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1))
        below = odd / (1 + even / (1 + below))
    return scale / (1 + below)


def holm(p: list[float]) -> list[float]:
    """Each p-value as that of one among all of them (Holm 1979, Scandinavian Journal of Statistics 6)."""
    order = sorted(range(len(p)), key=lambda k: p[k])
    adjusted, least = [0.0] * len(p), 0.0
    for rank, k in enumerate(order):
        least = max(least, min(1.0, (len(p) - rank) * p[k]))
        adjusted[k] = least
    return adjusted


def mser5(values: Array) -> float | None:
    """The share of a series to be cut off at its beginning; none where that is more than half of it.

    White 1997, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6), on means
    of five as in White, Cobb and Spratt 2000, "A comparison of five steady-state truncation heuristics for simulation",
    Proc. Winter Simulation Conference: the cut after which the standard error of the mean is least. One in the second
    half says that the run is too short.
    """
    count = values.size // 5
    if count < 2 * SKIPPED:
        return None
    backwards = (values - values.mean())[: 5 * count].reshape(count, 5).mean(axis=1)[::-1]
    left = np.arange(1, count + 1)
    squares = (backwards**2).cumsum() - backwards.cumsum() ** 2 / left
    errors = (squares / left**2)[::-1]  # of what a cut of 0, 1, 2, ... leaves
    cut = int(np.argmin(errors[:-SKIPPED]))
    return cut / count if 2 * cut <= count else None


def _rounding(values: Array) -> float:
    """Sums of squares that are nothing but the rounding of values of this size."""
    return values.size * (1e-12 * float(np.abs(values).max(initial=0.0))) ** 2
