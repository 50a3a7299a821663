from dataclasses import replace

import pytest
from scipy import stats

import aqmlab
from aqmlab.claims import FAILS, HOLDS, NOT_RUN, OPEN, Claim, Finding
from aqmlab.claims.verdict import bound_words
from aqmlab.statistics import Interval
from aqmlab.study import compared
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("settled_runs")


def finding(value, width, low, high):
    return Finding("x", Interval(value, width, 20, "parts"), low, high, "points")


@pytest.mark.parametrize(
    ("value", "width", "low", "high", "verdict"),
    [
        (0.05, 0.01, 0.0, 1.0, HOLDS),
        (0.05, 0.06, 0.0, 1.0, OPEN),
        (-0.05, 0.01, 0.0, 1.0, FAILS),
        # That a measured number was the same in every run may be chance.
        (0.5, 0.0, 0.0, 1.0, OPEN),
        (0.0, 0.0, 0.0, 1.0, OPEN),
        (0.05, None, 0.0, 1.0, OPEN),
        (float("nan"), None, 0.0, 1.0, OPEN),
        (0.02, 0.005, -0.03, 0.03, HOLDS),
        (0.04, 0.005, -0.03, 0.03, FAILS),
        (0.03, 0.005, -0.03, 0.03, OPEN),
    ],
)
def test_the_interval_alone_decides(value, width, low, high, verdict):
    assert finding(value, width, low, high).verdict == verdict


@pytest.mark.parametrize(
    ("runs", "among", "verdicts"),
    [
        # Of n runs all are on one side of the median by chance 2^(1 - n) of the time.
        (5, 1, (OPEN, OPEN, OPEN)),
        # At a bound is not within it: no packets are not more than none.
        (6, 1, (HOLDS, FAILS, FAILS)),
        (6, 2, (OPEN, OPEN, OPEN)),
        (7, 2, (HOLDS, FAILS, FAILS)),
    ],
)
def test_what_is_the_same_in_many_runs_is_on_its_side_of_a_bound(runs, among, verdicts):
    for low, verdict in zip((-1.0, 1.0, 0.0), verdicts, strict=True):
        same = Finding("x", Interval(0.0, 0.0, runs, "runs"), low, float("inf"), "points", among=among)
        assert same.verdict == verdict
        assert "the same in every run" in same.number
        # Parts of a run are not runs.
        assert replace(same, interval=Interval(0.0, 0.0, runs, "parts")).verdict == OPEN


@pytest.mark.parametrize(
    ("value", "width", "verdict"),
    [(3.0, 0.0, FAILS), (3.0 + 1e-15, 0.0, FAILS), (3.0 + 1e-15, 1e-16, FAILS), (3.001, 0.0, HOLDS), (2.9, 0.0, FAILS)],
)
def test_settings_are_sure_and_equal_to_a_bound_whatever_they_were_rounded_to(value, width, verdict):
    exact = Finding("x", Interval(value, width, 3, "runs"), 3.0, float("inf"), "", is_exact=True)
    assert exact.verdict == verdict


def test_one_of_many_numbers_is_outside_by_chance_more_often():
    # Three runs, 1.2 half widths below the bound: outside at 95 %, and at 98 %, no more.
    alone = Finding("x", Interval(-0.06, 0.05, 3, "runs"), 0.0, float("inf"), "points")
    assert alone.verdict == FAILS
    widths = stats.t.isf([0.025 / k for k in range(1, 9)], 2) / stats.t.isf(0.025, 2)
    most = max(k for k in range(1, 9) if widths[k - 1] <= 1.2)
    assert [replace(alone, among=k).verdict for k in range(1, 9)] == [FAILS] * most + [OPEN] * (8 - most)
    assert 1 <= most < 8
    open_now = replace(alone, among=8)
    assert (
        open_now.remark == "outside at 95 % by itself, not as one of 8 numbers" and open_now.remark in open_now.number
    )
    # Within the bounds it needs no more than by itself: a claim holds only if all of its numbers do.
    assert replace(alone, interval=Interval(0.06, 0.05, 3, "runs"), among=8).verdict == HOLDS


def test_what_was_not_run_is_a_verdict_of_its_own():
    good = finding(1, 0.1, 0, 9)
    unrun = Finding("x", Interval(float("nan"), None, 0, "none"), 0.0, 9.0, "points", note=NOT_RUN)
    missing = replace(unrun, note="")
    asked = Claim("", "", "", "", "", "", (unrun, unrun))
    assert (asked.verdict, asked.remark, asked.as_dict()["holds"]) == (NOT_RUN, "", None)
    some = Claim("", "", "", "", "", "", (good, unrun))
    assert (some.verdict, some.remark, some.no_data) == (OPEN, "1 of 2 numbers asked", 0)
    assert some.number.startswith("1 of 2 numbers asked: ")
    gone = Claim("", "", "", "", "", "", (good, missing))
    assert (gone.verdict, gone.remark, gone.no_data) == (OPEN, "", 1) and "no data" in gone.number


def test_a_claim_needs_all_its_findings_and_fails_with_one():
    good, bad, unclear = finding(1, 0.1, 0, 9), finding(-1, 0.1, 0, 9), finding(0, 0.1, 0, 9)
    for findings, verdict in (((good, good), HOLDS), ((good, unclear), OPEN), ((good, unclear, bad), FAILS)):
        assert Claim("", "", "", "", "", "", findings).verdict == verdict


@pytest.fixture(scope="module")
def settings():
    return {"duration": "60s", "warmup": "10s"}


def test_the_demo_answers_the_claims_of_both_studies(settings):
    asked = {claim.id: claim for claim in compared.claims(aqmlab.compare(ROOT / "examples/demo.toml", set=settings))}
    assert len(asked) >= 25
    assert {claim.paper for claim in asked.values()} == {
        "Le et al., SIGCOMM 2003",
        "Le et al., IEEE/ACM ToN 15(6), 2007",
    }
    for claim in asked.values():
        assert claim.text and claim.measure and claim.bound and claim.reason and claim.findings
        assert claim.as_dict()["holds"] is {HOLDS: True, FAILS: False}.get(claim.verdict)
    # What the stand-in was made to do: ECN spares PI four of five timeouts, ARED in packet mode suffers most, though
    # not by the ten points that are "much", and REM's dropping is worse than drop-tail, also in loss.
    assert asked["le2007-6a"].verdict == HOLDS
    assert asked["le2007-5a"].verdict == FAILS and all(f.interval.low > 0 for f in asked["le2007-5a"].findings)
    assert asked["le2007-3b"].verdict == FAILS
    # A minute cannot show who is slower than 50 s.
    assert asked["le2007-4b"].verdict == OPEN


def test_claims_speak_of_their_load_only(base):
    assert compared.claims(aqmlab.compare(base, "pfifo", "pi", set={"traffic.0.load": "60mbit"})) == []


@pytest.mark.parametrize(
    ("low", "high", "unit", "words"),
    [
        (0.0, float("inf"), "points", "above 0"),
        (0.05, float("inf"), "points", "above 5 points"),
        (-0.01, float("inf"), "points", "above −1 point"),
        (float("-inf"), 0.01, "points", "below 1 point"),
        (-0.03, 0.03, "points", "within 3 points"),
        (0.85, 0.95, "% of exchanges", "between 85 and 95 % of exchanges"),
        (8e6, 9e6, "Mb/s", "between 8 and 9 Mb/s"),
        (0.0, 0.02, "ms", "between 0 and 20 ms"),
        (2.0, float("inf"), "", "above 2"),
        (-0.05, 0.0, "points", "between −5 and 0 points"),
    ],
)
def test_bounds_in_words(low, high, unit, words):
    assert bound_words(low, high, unit) == words


@pytest.mark.parametrize(
    ("value", "width", "unit", "text"),
    [
        (0.031, 0.004, "points", "+3.10 ± 0.40 points"),
        (-0.031, 0.004, "%", "−3.10 ± 0.40 %"),
        (0.93, 0.004, "% of exchanges", "93.00 ± 0.40 % of exchanges"),
        (8.41e6, 1.2e4, "Mb/s", "8.410 ± 0.012 Mb/s"),
        (0.1234, 0.02, "ms", "123 ± 20 ms"),
        (2000.0, 130.0, "flows", "2,000 ± 130 flows"),
        (2.6, 0.0, "times", "2.600 times (the same in every run)"),
        (0.00013, 0.000045, "points", "+0.0130 ± 0.0045 points"),
        (0.3, 0.12, "points", "+30 ± 12 points"),
        (0.93, 2e-9, "% of exchanges", "93.00000000 ± 0.00000020 % of exchanges"),
        (0.3, None, "points", "+30.00 points"),
        (16.7, None, "times", "16.70 times"),
        (float("nan"), None, "times", "no data"),
    ],
)
def test_numbers_have_as_many_decimals_as_they_are_worth(value, width, unit, text):
    assert Finding("x", Interval(value, width, 3, "runs"), 0.0, 1.0, unit).number == text
