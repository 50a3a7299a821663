"""The Hurst parameter of a traffic trace: how its burstiness survives aggregation.

Packets or bytes are counted in bins of equal length. For long-range dependent traffic the variance of the counts,
averaged over blocks of ``m`` bins, falls as ``m ** (2 H - 2)`` with ``H`` between 0.5 (independent bins, Poisson) and 1
(Leland, Taqqu, Willinger and Wilson 1994). Two estimators regress that law on a log-log scale, one fits it to the
spectrum:

* :func:`wavelet` (Abry and Veitch 1998; Veitch and Abry 1999) uses the energy of Haar wavelet coefficients. They are
  nearly independent across scales even for strongly dependent traffic, so its confidence interval can be trusted. A
  Haar wavelet removes a constant level but not a trend: give it stationary traffic, after the warm-up. Prefer this one.
* :func:`aggregated_variance` uses the block variances themselves. It is the classical one, easy to picture and less
  precise; its interval comes from the covariance that fractional Gaussian noise has between scales.
* :func:`local_whittle` (Kuensch 1987; Robinson 1995) fits ``frequency ** (1 - 2 H)`` to the lowest frequencies of the
  periodogram. It assumes nothing of the others, and its interval is the narrowest that can be had from them.

All take the range of scales as octaves: octave ``j`` means blocks of ``2 ** j`` bins. Traffic of short TCP transfers
has no scaling law below a few round-trip times, where windows arrive as bursts, so either the range begins above, or a
regression that counts every octave alike reads the average slope over all. :attr:`Line.misfit` tells how straight
the log-log plot is. Intervals assume Gaussian counts that obey the law; with few active flows, or where the misfit is
far above 1, they are too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import digamma, polygamma

Floats = NDArray[np.float64]

# Two-sided 95 % of a normal distribution.
_Z95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A Hurst parameter and how sure it is."""

    h: float
    """The estimate."""
    standard_error: float
    """Its standard error for Gaussian traffic."""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval."""
        return self.h - _Z95 * self.standard_error, self.h + _Z95 * self.standard_error


@dataclass(frozen=True)
class Line(Estimate):
    """A Hurst parameter and the log-log plot it was read from."""

    octaves: NDArray[np.int64]
    """The octaves used."""
    log2_energy: Floats
    """The base-2 logarithm of the energy or variance at each octave, corrected for bias."""
    fitted: Floats
    """The straight line at each octave."""
    misfit: float
    """Mean squared distance from the line in units of its expected size: about 1 where the scaling law holds."""


def wavelet(counts: ArrayLike, first_octave: int = 3, last_octave: int | None = None, *, weighted: bool = True) -> Line:
    """Estimates H from the Haar wavelet energies of ``counts`` (one number a bin, equal bins, at least 64).

    ``weighted`` gives every octave the weight of its many or few coefficients, the estimator of least variance where
    the law holds; without, every octave counts alike.

    Octaves below 3 are distorted because counts are not wavelet coefficients at scale 0; the default begins there
    and ends where 8 coefficients are left. Raises ``ValueError`` when fewer than 3 octaves remain.
    """
    approximation = _series(counts)
    octaves, energies, sizes = [], [], []
    octave = 0
    while len(approximation) >= 2:
        octave += 1
        even, odd = _pairs(approximation)
        detail = (even - odd) / np.sqrt(2.0)
        approximation = (even + odd) / np.sqrt(2.0)
        enough = len(detail) >= 8 if last_octave is None else octave <= last_octave
        if octave >= first_octave and enough:
            octaves.append(octave)
            energies.append(float(np.mean(detail**2)))
            sizes.append(len(detail))
    _check(octaves, energies)
    # Were the n coefficients of an octave independent and Gaussian, the logarithm of their mean square had the bias
    # digamma(n/2) - ln(n/2) and the variance trigamma(n/2), in natural units (Veitch and Abry 1999, eqs 10 and 11).
    half = np.asarray(sizes, dtype=np.float64) / 2.0
    log2_energy = np.log2(energies) - (digamma(half) - np.log(half)) / np.log(2.0)
    covariance = np.diag(polygamma(1, half)) / np.log(2.0) ** 2
    # The energy grows as 2^(j (2 H - 1)).
    return _regress(np.asarray(octaves), log2_energy, covariance, offset=1.0, weighted=weighted)


def aggregated_variance(counts: ArrayLike, first_octave: int = 3, last_octave: int | None = None) -> Line:
    """Estimates H from the variance of block means of ``counts`` (one number a bin, equal bins, at least 64).

    Every octave counts alike, as in the variance-time plots of the literature. The default range begins at blocks of
    8 bins and ends where 32 blocks are left. Raises ``ValueError`` when fewer than 3 octaves remain.
    """
    means = _series(counts)
    total = len(means)
    octaves, variances = [], []
    octave = 0
    while True:
        enough = len(means) >= 32 if last_octave is None else octave <= last_octave
        if not enough or len(means) < 4:
            break
        if octave >= first_octave:
            octaves.append(octave)
            variances.append(float(np.var(means)))
        even, odd = _pairs(means)
        means = (even + odd) / 2.0
        octave += 1
    _check(octaves, variances)
    used = np.asarray(octaves)
    # The sample mean follows the traffic, and takes N^(2H-2) out of m^(2H-2) with it (Beran 1994 §1.1): put it back
    # at the H found so far, until H settles.
    h = 0.5
    for _ in range(50):
        values = np.log2(variances) - np.log2(1.0 - (2.0**used / total) ** (2.0 - 2.0 * h))
        slope = float(np.polyfit(used, values, 1)[0])
        # Beyond these bounds the correction has no meaning; the estimate itself is not bounded.
        before, h = h, min(max(1.0 + slope / 2.0, 0.05), 0.98)
        if abs(h - before) < 1e-6:
            break
    return _regress(used, values, _log2_covariance(h, used, total), offset=2.0, weighted=False)


def local_whittle(counts: ArrayLike, first_octave: int = 3) -> Estimate:
    """Estimates H from the periodogram of ``counts`` (one number a bin, equal bins, at least 64).

    The frequencies used are those of periods of ``2 ** (first_octave + 1)`` bins and more, the octaves that
    :func:`wavelet` uses. Raises ``ValueError`` when fewer than 8 are left.
    """
    series = _series(counts)
    highest = len(series) >> (first_octave + 1)
    if highest < 8:
        raise ValueError(f"counts: expected at least {8 << (first_octave + 1)} bins, got {len(series)}")
    power = np.abs(np.fft.rfft(series - series.mean())[1 : highest + 1]) ** 2
    if not power.max() > 0.0:
        raise ValueError("counts: expected traffic that varies at every octave, got a constant one")
    frequency = np.arange(1, highest + 1) / highest
    mean_log = float(np.mean(np.log(frequency)))

    # Robinson 1995, eq. 3.2: minus the likelihood, with the scale of the spectrum solved for.
    def contrast(h: float) -> float:
        return float(np.log(np.mean(frequency ** (2.0 * h - 1.0) * power)) - (2.0 * h - 1.0) * mean_log)

    found = minimize_scalar(contrast, bounds=(0.0, 1.5), method="bounded", options={"xatol": 1e-6})
    return Estimate(h=float(found.x), standard_error=0.5 / np.sqrt(highest))


def _series(counts: ArrayLike) -> Floats:
    series = np.asarray(counts, dtype=np.float64)
    if series.ndim != 1 or len(series) < 64:
        raise ValueError(f"counts: expected one dimension and at least 64 bins, got shape {series.shape}")
    return series


def _pairs(series: Floats) -> tuple[Floats, Floats]:
    end = len(series) // 2 * 2
    return series[0:end:2], series[1:end:2]


def _check(octaves: list[int], energies: list[float]) -> None:
    if len(octaves) < 3:
        raise ValueError(f"octaves: expected at least 3 in range, got {octaves}: too few bins or too narrow a range")
    if min(energies) <= 0.0:
        raise ValueError("counts: expected traffic that varies at every octave, got a constant one")


def _regress(octaves: NDArray[np.int64], values: Floats, covariance: Floats, *, offset: float, weighted: bool) -> Line:
    """Least squares of ``values`` on the octave, generalised if ``weighted``; the slope is ``2 H - offset``."""
    design = np.column_stack([np.ones(len(octaves)), octaves.astype(np.float64)])
    weights = np.linalg.inv(covariance) if weighted else np.eye(len(octaves))
    solve = np.linalg.inv(design.T @ weights @ design) @ design.T @ weights
    parameters = solve @ values
    fitted = design @ parameters
    residual = values - fitted
    leaves = np.eye(len(octaves)) - design @ solve
    expected = float(np.trace(weights @ leaves @ covariance @ leaves.T))
    return Line(
        h=float((parameters[1] + offset) / 2.0),
        standard_error=float(np.sqrt((solve @ covariance @ solve.T)[1, 1]) / 2.0),
        octaves=octaves,
        log2_energy=values,
        fitted=fitted,
        misfit=float(residual @ weights @ residual) / expected,
    )


def _log2_covariance(h: float, octaves: NDArray[np.int64], total: int) -> Floats:
    """Covariance between octaves of the log2 block variances of fractional Gaussian noise of ``total`` bins.

    For Gaussian variables cov(x^2, y^2) = 2 cov(x, y)^2, summed here over all pairs of blocks.
    """
    covariance = np.empty((len(octaves), len(octaves)))
    for i, small in enumerate(2.0**octaves):
        for k, large in enumerate(2.0**octaves):
            if small > large:
                continue
            # Distance from the end of the large block to the start of each small one, on both sides.
            reach = total - total % large
            lags = np.arange(-reach + small, reach, small) - large
            blocks = _block_covariance(h, small, large, lags)
            # How many large blocks have a small block at this distance: the triangle of a stationary double sum.
            pairs = np.maximum(reach / large - np.abs(lags + large / 2.0 + small / 2.0) / large, 0.0)
            counts = (total / small) * (total / large)
            relative = 2.0 * np.sum(pairs * blocks**2) / counts / (small * large) ** (2.0 * h - 2.0)
            covariance[i, k] = covariance[k, i] = relative
    return np.asarray(covariance / np.log(2.0) ** 2)


def _block_covariance(h: float, small: float, large: float, lag: Floats) -> Floats:
    """Covariance of two block means of fractional Gaussian noise, one block starting ``lag`` after the other's end."""

    def power(x: Floats) -> Floats:
        return np.abs(x) ** (2.0 * h)

    return (power(lag + small + large) - power(lag + small) - power(lag + large) + power(lag)) / (2.0 * small * large)
