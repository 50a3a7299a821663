"""The tests of a series on series whose nature is known."""

import numpy as np
import pytest

from aqmlab import stationarity


def correlated(coefficient, n, count, seed=1):
    """Autoregressions of first order in their steady state, with variance 1."""
    rng = np.random.default_rng(seed)
    values = np.empty((count, n))
    values[:, 0] = rng.normal(size=count)
    shocks = rng.normal(size=(count, n)) * np.sqrt(1 - coefficient**2)
    for k in range(1, n):
        values[:, k] = coefficient * values[:, k - 1] + shocks[:, k]
    return values


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.8, 0.95])
def test_a_steady_series_is_rarely_called_unsettled(coefficient):
    # 400 tests at 5 %: a standard error of 1.1 points; 8.3 % is three of them above.
    alarms = [stationarity.schruben(values).p < 0.05 for values in correlated(coefficient, 400, 400)]
    assert np.mean(alarms) <= 0.083


def test_a_beginning_that_dies_away_and_a_climb_are_found():
    time = np.linspace(0, 1, 400)
    for shape in (4 * (1 - np.exp(-5 * time)), 4 * time, -4 * time):
        found = [stationarity.schruben(values + shape) for values in correlated(0.5, 400, 50)]
        assert all(one.p < 0.05 for one in found)
        assert len({one.statistic > 0 for one in found}) == 1
        # It begins too low where it climbs.
        assert (found[0].statistic > 0) == (shape[-1] > shape[0])


def test_a_climb_is_found_that_schruben_takes_for_a_slow_series():
    climbing = [values + np.linspace(0, 60, 400) for values in correlated(0.9, 400, 20)]
    assert all(stationarity.climb(values).p < 0.01 for values in climbing)
    assert all(stationarity.trend(values).p < 0.05 for values in climbing)


@pytest.mark.parametrize("coefficient", [0.0, 0.9, 0.99])
def test_nothing_that_returns_to_its_mean_climbs(coefficient):
    values = correlated(coefficient, 400, 400)
    assert np.mean([stationarity.climb(one).p < 0.05 for one in values]) <= 0.02
    assert np.mean([stationarity.trend(one).p < 0.05 for one in values]) <= 0.083


def test_a_random_walk_climbs_as_often_as_the_level_says():
    # 1000 walks at 5 %: a standard error of 0.7 points, and three of them to either side.
    walks = np.random.default_rng(7).normal(size=(1000, 400)).cumsum(axis=1)
    assert 0.03 <= np.mean([stationarity.climb(walk).p < 0.05 for walk in walks]) <= 0.071


def test_a_burst_is_no_beginning():
    rng = np.random.default_rng(3)
    values = rng.pareto(1.5, (400, 400))  # of infinite variance: the largest is in the first half as often as not
    assert np.mean([stationarity.schruben(one).p < 0.05 for one in values]) <= 0.083


def test_slow_series_leave_few_degrees_of_freedom():
    # Of 100 stretches of 4 the coefficient is some 0.9^4 = 0.66 and 0.99^4 = 0.96: n (1 - a)/(2 (1 + a)) with n = 50 is
    # 5 and 0.5.
    found = [np.median([stationarity.schruben(v).freedom for v in correlated(a, 400, 50)]) for a in (0.0, 0.9, 0.99)]
    assert found[0] > 20 and 2 < found[1] < 8 and found[2] < 2


def test_nothing_that_happens_is_settled():
    assert stationarity.schruben(np.zeros(400)).p == 1.0
    assert stationarity.schruben(np.full(400, 0.1)).p == 1.0
    # Once and never again: chance, wherever it is, at the level of the test as far as the level of one value goes.
    alarms = [stationarity.schruben(np.eye(1, 400, at)[0]).p < 0.05 for at in range(400)]
    assert np.mean(alarms) <= 0.1


def test_the_variance_of_a_mean_is_found_from_its_autoregression():
    # sigma^2 (1 + a)/(1 - a) for variance sigma^2 = 1: 9 at a = 0.8; the estimate of 4000 values scatters by some 8 %.
    (values,) = correlated(0.8, 4000, 1)
    found = stationarity.autoregression(values)
    assert found.coefficient == pytest.approx(0.8, abs=0.04)
    assert found.long_run_variance == pytest.approx(9, rel=0.3)
    assert stationarity.autoregression(np.full(20, 0.3)).long_run_variance == 0.0


def test_mser5_cuts_where_a_step_is_and_nothing_else():
    rng = np.random.default_rng(4)
    values = rng.normal(size=400)
    assert stationarity.mser5(values) < 0.2
    stepped = values.copy()
    stepped[:100] += 20
    assert stationarity.mser5(stepped) == pytest.approx(0.25, abs=0.05)
    # What climbs to its end has no place to be cut at.
    assert stationarity.mser5(np.arange(400.0)) is None
    # The textbook's sum, written out.
    means = stepped.reshape(80, 5).mean(axis=1)
    errors = [((means[d:] - means[d:].mean()) ** 2).sum() / (80 - d) ** 2 for d in range(75)]
    assert stationarity.mser5(stepped) == int(np.argmin(errors)) / 80


def test_holm_steps_down():
    assert stationarity.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stationarity.holm([]) == []


def test_normal_scores_are_those_of_ranks():
    scores = stationarity.normal_scores(np.array([10.0, -1e9, 3.0, 3.0]))
    # Blom: Phi^-1((rank - 3/8)/(n + 1/4)) of the ranks 4, 1, 2.5, 2.5; Phi^-1(3.625/4.25) = 1.0491.
    assert scores == pytest.approx([1.0491, -1.0491, 0.0, 0.0], abs=1e-4)


@pytest.mark.parametrize("freedom", [0.5, 1.0, 2.7, 19.0, 49.3, 1000.0])
def test_probabilities_are_those_of_scipy(freedom):
    from scipy.special import stdtr

    for statistic in (0.0, 1e-3, 0.3, -1.0, 1.96, 3.0, 8.0, 30.0, 1e3):
        expected = 2 * stdtr(freedom, -abs(statistic))
        assert stationarity.two_sided(statistic, freedom) == pytest.approx(expected, rel=1e-10), statistic


def test_scores_are_the_deviates_of_scipy():
    from scipy.special import ndtri

    values = np.array([3.0, 1.0, 2.0, 2.0, 9.0])
    ranks = np.array([4.0, 1.0, 2.5, 2.5, 5.0])
    assert stationarity.normal_scores(values) == pytest.approx(ndtri((ranks - 0.375) / 5.25), rel=1e-12)
