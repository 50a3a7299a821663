"""Tests of round trips of probes against numbers that were reckoned by hand."""

import numpy as np
import polars as pl
import pytest

from aqmlab.results import round_trips


def probes(*rows: tuple[int, int, float, float | None]) -> pl.DataFrame:
    columns = {"traffic": pl.Int64, "direction": pl.Int64, "sent_s": pl.Float64, "delay_s": pl.Float64}
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_the_answer_leaves_when_the_probe_arrives():
    # The probe of 0.0 arrives at 0.1, half way between the answers of 0.0 (20 ms) and 0.2 (60 ms).
    sent, rtt = round_trips.of_block(
        probes((0, 0, 0.0, 0.1), (0, 0, 0.2, 0.2), (0, 1, 0.0, 0.02), (0, 1, 0.2, 0.06), (0, 1, 0.4, 0.1)), 0
    )
    np.testing.assert_allclose(sent, [0.0, 0.2])
    np.testing.assert_allclose(rtt, [0.14, 0.3])


def test_what_was_lost_either_way_is_no_round_trip():
    there = [(0, 0, 0.0, None), (0, 0, 0.2, 0.01), (0, 0, 0.6, 0.01)]
    back = [(0, 1, 0.0, 0.01), (0, 1, 0.2, 0.01), (0, 1, 0.4, None), (0, 1, 0.6, 0.03), (0, 1, 0.8, 0.03)]
    _, rtt = round_trips.of_block(probes(*there, *back), 0)
    assert list(np.isnan(rtt)) == [True, True, False]
    assert round_trips.figures(probes(*there, *back)) == pytest.approx(
        {"rtt_s.p50": 0.04, "rtt_s.p99": 0.04, "per_minute": 1500.0}
    )


def test_the_slowest_twentieth_is_not_in_the_mean_and_blocks_are_taken_together():
    back = [(0, 1, 0.1 * k, 0.0) for k in range(30)] + [(3, 1, 0.1 * k, 0.0) for k in range(30)]
    quick = [(0, 0, 0.1 * k, 0.05) for k in range(10)]
    slow = [(3, 0, 0.1 * k, 0.1 if k else 2.0) for k in range(10)]
    found = round_trips.figures(probes(*quick, *slow, *back))
    # Of 20 round trips the slowest, 2 s, is left out: 10 of 50 ms, 9 of 100 ms.
    assert found == pytest.approx({"rtt_s.p50": 0.05, "rtt_s.p99": 2.0, "per_minute": 60 / (1.4 / 19)})


def test_probes_one_way_and_probes_that_were_all_lost_have_none():
    assert round_trips.figures(probes((0, 0, 0.0, 0.1), (1, 1, 0.0, 0.1))) == {}
    assert round_trips.figures(probes((0, 0, 0.0, None), (0, 1, 0.0, 0.1))) == {}
    assert round_trips.figures(probes()) == {}
