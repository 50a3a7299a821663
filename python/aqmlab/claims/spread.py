"""How far numbers of few runs are believed: variances pooled over the points of a grid, and bands about whole curves.

Points of a grid under the same demands and seeds are a table of runs times points, and what is left of it without the
means of both is what chance does (the residuals of a two-way layout: Scheffe 1959, The Analysis of Variance, 4.2). Of
three runs a difference has a variance of its own with two degrees of freedom, which is by chance alone a tenth of what
it should be one time in ten, so that the residuals of all points together are taken into account:

    s2 = (d0 w2 m + d s2_own) / (d0 + d),    w2 = sum of the squared weights,    m = residual mean square,

with d = n - 1 and d0 = 2: all of them count as much as two further runs, for points are not equally noisy. That is the
moderated variance of Smyth 2004, "Linear models and empirical Bayes methods for assessing differential expression in
microarray experiments", Statistical Applications in Genetics and Molecular Biology 3(1), with a prior whose weight is
given. It has d0 + d degrees of freedom, and at most d times the number of points that are independent: where all
points follow the seeds alike, many of them are worth no more than one. That number is (tr S)^2 / tr(S^2) of their
covariance S, the second trace freed of its bias as by Bai and Saranadasa 1996, "Effect of high dimension: by an
example of a two sample problem", Statistica Sinica 6.

A point that is far noisier than most is no help to the others, nor they to it: with it the mean of all points would be
its own. Numbers of such a point stand on their own runs alone, and the others are pooled without it, as in Phipson,
Lee, Majewski, Alexander and Smyth 2016, "Robust hyperparameter estimation protects against hypervariable genes and
improves power to detect differential expression", Annals of Applied Statistics 10(2).

A band that holds a whole curve 95 % of the time is as many standard errors wide as the greatest |t| along it is at
most: a quantile of the multivariate t of the residuals' correlation (Hothorn, Bretz and Westfall 2008, "Simultaneous
inference in general parametric models", Biometrical Journal 50(3)), found by drawing from it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aqmlab.statistics import CONFIDENCE, Array, student

FURTHER_RUNS = 2.0
"""What the residuals of all points count beside a number's own runs: simulated with points whose standard deviations
differ by a factor of e and that follow the seeds unlike each other, intervals hold 93 to 97 %; with more, fewer."""

WILD = 0.95
"""A point is left out whose variance is above this quantile of what such a prior, F with d and d0 degrees of freedom,
says of variances beside their median: 19 times the median of three runs. Simulated with three of 22 points 30 times as
noisy as the rest, of three runs each: intervals of the rest are an eighth as wide as with all points pooled, and hold
98 %; those between two noisy points hold 95 % in place of 88. Where none is that noisy, nothing changes."""

FEWEST_POINTS = 4
"""Of fewer points nothing is pooled: two thirds of their residuals would be the number's own."""

FEWEST_INDEPENDENT = 3.0
"""Of residuals worth fewer independent points how abscissae vary together is not learnt: the band is Bonferroni's."""

DRAWS = 20_000
"""From the multivariate t: the share that its quantile leaves is known to 3 % of itself."""

SEED = 20040301
"""Of these draws, so that the same data give the same band."""


@dataclass(frozen=True, eq=False)
class Kin:
    """What chance does to points under the same demands: residuals [point, run, abscissa] of those not wild."""

    residuals: Array
    wild: frozenset[int] = frozenset()
    """Which of the points that were asked for are left out, by their places: they are far noisier than most."""

    @cached_property
    def mean_square(self) -> Array:
        """The variance of one point's number, at each abscissa."""
        points, runs, _ = self.residuals.shape
        return np.asarray((self.residuals**2).sum(axis=(0, 1)) / ((points - 1) * (runs - 1)))

    @cached_property
    def independent(self) -> float:
        """How many independent points the points are worth."""
        points, runs, _ = self.residuals.shape
        freedom = runs - 1
        varies = self.mean_square > 0
        if freedom < 2 or not varies.any():
            return 1.0
        scaled = self.residuals[:, :, varies] / np.sqrt(self.mean_square[varies])
        covariances = np.einsum("ijk,ljk->kil", scaled, scaled) / freedom
        traces = float((np.einsum("kii->k", covariances) ** 2).sum())
        squares = float((covariances**2).sum()) - traces / freedom
        squares *= freedom**2 / ((freedom - 1) * (freedom + 2))
        traces -= 2 * squares / freedom
        return min(max(traces / squares, 1.0), points) if squares > 0 < traces else 1.0


def kin(values: Sequence[Array]) -> Kin | None:
    """The residuals of points whose numbers are [run, abscissa]; None of too few, or of single runs."""
    known = [place for place, each in enumerate(values) if np.isfinite(each).all()]
    if len(known) < FEWEST_POINTS or len(values[known[0]]) < 2:
        return None
    table = np.array([values[place] for place in known], dtype=np.float64)
    centred = table - table.mean(axis=1, keepdims=True)
    calm = _calm(centred)
    if calm.sum() < FEWEST_POINTS:
        return None
    wild = frozenset(place for place, is_calm in zip(known, calm, strict=True) if not is_calm)
    return Kin(centred[calm] - centred[calm].mean(axis=0), wild)


def _calm(centred: Array) -> Array:
    """Which points, each less its own mean, are not far noisier than most: by their variances along the whole curve.

    What the seeds do to all is the median over points, which noisy ones do not move. Points that do not vary are not
    asked what is usual.
    """
    variances = ((centred - np.median(centred, axis=0)) ** 2).sum(axis=(1, 2))
    if not variances.any():
        return np.asarray(variances == 0)
    from scipy.special import fdtri  # takes long to load, which commands without an interval are spared

    median, most = fdtri(centred.shape[1] - 1, FURTHER_RUNS, [0.5, WILD])
    return np.asarray(variances <= most / median * np.median(variances[variances > 0]))


@dataclass(frozen=True)
class Spread:
    """Half widths of a number's intervals at each abscissa, one by one and for all of them together."""

    half_widths: Array
    bands: Array
    freedom: float


def spread(values: Array, weight_square: float | Array, kin_of: Kin | None, is_wild: bool = False) -> Spread:
    """Of the mean over runs of a number [run, abscissa] that is a weighted sum of points of `kin_of`.

    `is_wild`: some of them are among its wild ones, and only how abscissae vary together is learnt from the others.
    """
    runs, abscissae = values.shape
    own, freedom = values.var(axis=0, ddof=1), float(runs - 1)
    variances, rows = own, None
    if kin_of is not None:
        if not is_wild:
            pooled = weight_square * kin_of.mean_square
            variances = (FURTHER_RUNS * pooled + freedom * own) / (FURTHER_RUNS + freedom)
            freedom = min(FURTHER_RUNS + freedom, freedom * kin_of.independent)
        rows = kin_of.residuals.reshape(-1, abscissae) if kin_of.independent >= FEWEST_INDEPENDENT else None
    errors = np.sqrt(variances / runs)
    quantile = student(0.5 + CONFIDENCE / 2, freedom)
    return Spread(quantile * errors, max(together(rows, abscissae, freedom), quantile) * errors, freedom)


def together(rows: Array | None, abscissae: int, freedom: float) -> float:
    """How many standard errors wide a band is that holds all abscissae: by draws, or Bonferroni's without residuals."""
    if abscissae == 1:
        return student(0.5 + CONFIDENCE / 2, freedom)
    lengths = np.zeros(abscissae) if rows is None else np.sqrt((rows**2).sum(axis=0))
    if rows is None or not (lengths > 0).any():
        return student(1 - (1 - CONFIDENCE) / 2 / abscissae, freedom)
    directions = rows[:, lengths > 0] / lengths[lengths > 0]
    draw = np.random.default_rng(SEED)
    values, vectors = np.linalg.eigh(directions.T @ directions)
    normal = draw.standard_normal((DRAWS, len(values))) @ (vectors * np.sqrt(values.clip(0))).T
    scale = np.sqrt(draw.chisquare(freedom, DRAWS) / freedom)
    return float(np.quantile(np.abs(normal).max(axis=1) / scale, CONFIDENCE))


def among(bands: float, freedom: float, count: int) -> float:
    """A half width of 95 %, widened to one of so many (Bonferroni)."""
    if count < 2 or not math.isfinite(bands):
        return bands
    wide, usual = (student(1 - (1 - CONFIDENCE) / 2 / k, freedom) for k in (count, 1))
    return bands * wide / usual
