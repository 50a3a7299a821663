import math

import numpy as np
import pytest

from aqmlab import statistics


def test_the_t_interval_of_one_to_five():
    # sd = sqrt(2.5), standard error = sqrt(0.5), t(0.975; 4) = 2.77645 (tables).
    assert statistics.half_width([1, 2, 3, 4, 5]) == pytest.approx(2.77645 * math.sqrt(0.5), rel=1e-5)


def test_there_is_no_interval_where_there_can_be_none():
    assert statistics.half_width([1.0]) is None
    assert statistics.half_width([1.0, math.nan]) is None
    assert statistics.across_runs([3.0]).basis == "none"


def test_the_interval_covers_the_truth_as_often_as_it_says():
    # 2000 samples of 5 normal values: coverage 0.95 with a standard error of 0.0049, so 0.93 to 0.97 is 4 of them.
    rng = np.random.default_rng(1)
    hits = 0
    for sample in rng.normal(10, 3, (2000, 5)):
        interval = statistics.across_runs(list(sample))
        hits += interval.low <= 10 <= interval.high
    assert 0.93 <= hits / 2000 <= 0.97


def test_pairing_takes_out_what_both_have_in_common():
    rng = np.random.default_rng(2)
    common = rng.normal(0, 10, 8)
    one, other = common + 1 + rng.normal(0, 0.1, 8), common
    nothing = [np.empty(0)] * 8
    paired = statistics.paired(list(one), nothing, list(other), nothing)
    unpaired = statistics.unpaired(list(one), list(other))
    assert paired.basis == "runs"
    assert paired.half_width < 0.2 < 5 < unpaired.half_width
    assert paired.low <= 1 <= paired.high


def test_one_run_is_judged_by_its_parts_and_says_so():
    parts, base = np.array([2.0, 3.0, 4.0]), np.array([1.0, 2.25, 3.5])
    interval = statistics.paired([3.0], [parts], [2.0], [base])
    assert (interval.value, interval.basis, interval.n) == (1.0, "parts", 3)


def test_what_most_parts_do_not_see_has_no_interval():
    """Bursts of three events, few of them, in 20 parts: the spread of parts that are mostly empty tells too little."""
    streams, held = np.random.default_rng(7), []
    for _ in range(400):
        bursts = streams.poisson(30 / 3 / 20, 20)
        shares = np.array([streams.geometric(1 / 3, n).sum() for n in bursts]) / 500
        interval = statistics.within_run(float(shares.mean()), shares)
        if (shares == 0).sum() > 10:
            assert (interval.half_width, interval.basis) == (None, "none")
        else:
            held.append(interval.low <= 30 / 20 / 500 <= interval.high)
    assert len(held) > 50
    assert np.mean(held) > 0.9
    assert statistics.within_run(1.0, np.ones(20)).half_width is None
    # A link that is full carries as many packets in one part as in another.
    assert statistics.within_run(1.00005, np.full(20, 1.00005)).half_width == pytest.approx(0, abs=1e-12)


def test_only_the_very_same_run_differs_by_nothing():
    streams = np.random.default_rng(5)
    parts, none = streams.uniform(0.1, 0.2, 20), np.zeros(20)
    same = statistics.paired([0.15], [parts], [0.15], [parts])
    assert (same.value, same.half_width, same.basis) == (0.0, 0.0, "parts")
    # Two runs that both lose nothing may differ in what happens seldom.
    assert statistics.paired([0.0], [none], [0.0], [none]).half_width is None


def test_a_quantile_is_a_value_that_occurred():
    assert statistics.quantiles([4.0, 1.0, 3.0, 2.0], (0.1, 0.5, 0.51, 0.75, 0.99, 1.0)).tolist() == [1, 2, 3, 3, 4, 4]


def test_the_median_of_waits_is_that_of_all_where_the_end_cuts_some_off():
    """Waits of a mean of 4 s that begin at any time of 20 s: a fifth of them goes on at the end."""
    streams = np.random.default_rng(3)
    begun, took = streams.uniform(0, 20, 40_000), streams.exponential(4, 40_000)
    left = 20 - begun
    is_over = took <= left
    assert 0.15 < 1 - is_over.mean() < 0.25
    found = statistics.median_of_waits(np.minimum(took, left), is_over)
    assert found == pytest.approx(4 * np.log(2), rel=0.02)
    assert np.median(took[is_over]) < 0.9 * found < 0.9 * np.median(np.where(is_over, took, np.inf))
    times, shares = statistics.distribution_of_waits(np.minimum(took, left), is_over)
    for at in (1, 4, 8, 12):
        assert shares[np.searchsorted(times, at)] == pytest.approx(1 - np.exp(-at / 4), abs=0.01)


def test_the_distribution_of_a_few_waits():
    times, shares = statistics.distribution_of_waits([5.0, 1.0, 2.0, 3.0, 9.0], [1, 1, 0, 1, 0])
    # By hand: four of five are left after 1 s, two thirds of these after 3 s, half of these after 5 s.
    assert times.tolist() == [1, 3, 5]
    assert shares == pytest.approx([1 / 5, 1 - 8 / 15, 1 - 4 / 15])
    times, shares = statistics.distribution_of_waits([2.0, 1.0], [1, 1])
    assert (times.tolist(), shares.tolist()) == ([1, 2], [0.5, 1])
    assert [found.size for found in statistics.distribution_of_waits([1.0], [0])] == [0, 0]


@pytest.mark.parametrize(
    ("waited", "is_over", "median"),
    [
        ([3.0, 1.0, 2.0], [1, 1, 1], 2.0),
        ([4.0, 1.0, 2.0, 3.0], [1, 1, 1, 1], 2.5),
        # By hand: 4/5 are left after 1 s; 2/3 of these after 3 s, as three were still waited for; half of these then.
        ([1.0, 2.0, 3.0, 4.0, 5.0], [1, 0, 1, 1, 1], 4.0),
        ([1.0, 2.0, 3.0, 5.0, 9.0], [1, 0, 1, 1, 0], 5.0),
        ([1.0, 2.0], [1, 0], None),
        ([1.0, 2.0, 2.0], [0, 0, 0], None),
        ([], [], None),
        # One that goes on after 2 s was still waited for when another was over after 2 s.
        ([2.0, 2.0, 2.0], [0, 1, 1], 2.0),
    ],
)
def test_the_median_of_a_few_waits(waited, is_over, median):
    assert statistics.median_of_waits(waited, is_over) == median


def test_a_straight_line_is_found_exactly():
    line = statistics.fit_line([1, 2, 4], [5, 7, 11])
    assert (line.slope, line.intercept, line.at(10)) == (2, 3, 23)
    assert line.residual_rms == 0
