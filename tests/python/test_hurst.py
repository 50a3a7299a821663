"""The Hurst estimators on fractional Gaussian noise, whose H is known."""

from __future__ import annotations

import numpy as np
import pytest

import hurst

BINS = 2**15
TRACES = 60


def fractional_gaussian_noise(h: float, bins: int, generator: np.random.Generator) -> np.ndarray:
    """Exact noise of unit variance by circulant embedding (Davies and Harte 1987)."""
    lag = np.arange(bins + 1, dtype=np.float64)
    covariance = 0.5 * (np.abs(lag + 1) ** (2 * h) - 2 * lag ** (2 * h) + np.abs(lag - 1) ** (2 * h))
    spectrum = np.fft.fft(np.concatenate([covariance, covariance[-2:0:-1]])).real
    assert spectrum.min() > -1e-9, "the circulant matrix is a covariance matrix"
    size = len(spectrum)
    white = generator.standard_normal(size) + 1j * generator.standard_normal(size)
    return np.fft.fft(np.sqrt(np.maximum(spectrum, 0.0) / size) * white).real[:bins]


def estimates(method: str, h: float) -> list[hurst.Estimate]:
    generator = np.random.default_rng(20)
    estimator = {
        "wavelet": hurst.wavelet,
        "unweighted": lambda x: hurst.wavelet(x, weighted=False),
        "variance": hurst.aggregated_variance,
        "whittle": hurst.local_whittle,
    }[method]
    return [estimator(fractional_gaussian_noise(h, BINS, generator)) for _ in range(TRACES)]


@pytest.mark.parametrize("h", [0.5, 0.7, 0.85])
@pytest.mark.parametrize("method", ["wavelet", "unweighted", "variance", "whittle"])
def test_the_estimate_is_h_and_the_error_is_what_it_says(method: str, h: float) -> None:
    found = estimates(method, h)
    values = np.array([e.h for e in found])
    claimed = float(np.mean([e.standard_error for e in found]))
    # The mean over the traces: four of its standard errors, and what bias the method has. Octave 3 of counts is not
    # yet a wavelet scale (below 0.005 in H); replacing E[log] by log E costs the block variances their skewness,
    # of the order of the squared standard error.
    bias = 0.005 if method != "variance" else 0.005 + 4 * claimed**2
    assert abs(values.mean() - h) < 4 * claimed / np.sqrt(TRACES) + bias
    # The spread over the traces is chi-distributed: relative error 1/sqrt(2 (n - 1)), four of them.
    assert abs(values.std(ddof=1) / claimed - 1) < 4 / np.sqrt(2 * (TRACES - 1))


@pytest.mark.parametrize("method", ["wavelet", "variance", "whittle"])
def test_the_interval_holds_h(method: str) -> None:
    found = estimates(method, 0.7)
    held = sum(e.interval[0] <= 0.7 <= e.interval[1] for e in found)
    # Binomial with 0.95: four standard deviations below.
    assert held >= TRACES * 0.95 - 4 * np.sqrt(TRACES * 0.95 * 0.05)


def test_level_and_scale_do_not_matter() -> None:
    noise = fractional_gaussian_noise(0.7, BINS, np.random.default_rng(1))
    for estimator in (hurst.wavelet, hurst.aggregated_variance):
        assert estimator(1000 + 7 * noise).h == pytest.approx(estimator(noise).h, abs=1e-9)


def test_the_misfit_shows_where_there_is_no_law() -> None:
    generator = np.random.default_rng(2)
    noise = fractional_gaussian_noise(0.7, BINS, generator)
    # A period of 64 bins puts energy into the octaves below 6 and none above.
    periodic = noise + 2 * np.sin(np.arange(BINS) * 2 * np.pi / 64)
    # The misfit is chi-square over its degrees of freedom, 7 here: beyond 5 is one in 100,000.
    assert hurst.wavelet(noise).misfit < 5
    assert hurst.wavelet(periodic).misfit > 5


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="at least 64 bins"):
        hurst.wavelet(np.ones(10))
    with pytest.raises(ValueError, match="at least 64 bins"):
        hurst.aggregated_variance(np.ones((64, 2)))
    with pytest.raises(ValueError, match="at least 3"):
        hurst.wavelet(np.arange(100.0), 3, 4)
    with pytest.raises(ValueError, match="at least 128 bins"):
        hurst.local_whittle(np.arange(100.0))
    for estimator in (hurst.wavelet, hurst.aggregated_variance, hurst.local_whittle):
        with pytest.raises(ValueError, match="varies"):
            estimator(np.ones(4096))
