import pytest

import aqmlab
from aqmlab import claims
from aqmlab.claims import FAILS, HOLDS, OPEN, Claim, Finding
from aqmlab.statistics import Interval
from conftest import ROOT


def finding(value, width, low, high):
    return Finding("x", Interval(value, width, 20, "parts"), low, high, "points")


@pytest.mark.parametrize(
    ("value", "width", "low", "high", "verdict"),
    [
        (0.05, 0.01, 0.0, 1.0, HOLDS),
        (0.05, 0.06, 0.0, 1.0, OPEN),
        (-0.05, 0.01, 0.0, 1.0, FAILS),
        (0.0, 0.0, 0.0, 1.0, FAILS),
        (0.05, None, 0.0, 1.0, OPEN),
        (float("nan"), None, 0.0, 1.0, OPEN),
        (0.02, 0.005, -0.03, 0.03, HOLDS),
        (0.04, 0.005, -0.03, 0.03, FAILS),
        (0.03, 0.005, -0.03, 0.03, OPEN),
    ],
)
def test_the_interval_alone_decides(value, width, low, high, verdict):
    assert finding(value, width, low, high).verdict == verdict


def test_a_claim_needs_all_its_findings_and_fails_with_one():
    good, bad, unclear = finding(1, 0.1, 0, 9), finding(-1, 0.1, 0, 9), finding(0, 0.1, 0, 9)
    for findings, verdict in (((good, good), HOLDS), ((good, unclear), OPEN), ((good, unclear, bad), FAILS)):
        assert Claim("", "", "", "", "", "", findings).verdict == verdict


@pytest.fixture(scope="module")
def settings():
    return {"duration": "60s", "warmup": "10s"}


def test_the_demo_answers_the_claims_of_both_studies(settings):
    asked = {claim.id: claim for claim in claims.claims(aqmlab.compare(ROOT / "examples/demo.toml", set=settings))}
    assert len(asked) >= 25
    assert {claim.source for claim in asked.values()} == {claims.LE2003, claims.LE2007}
    for claim in asked.values():
        assert claim.text and claim.measure and claim.bound and claim.reason and claim.findings
        assert claim.as_dict()["holds"] is {HOLDS: True, FAILS: False, OPEN: None}[claim.verdict]
    # What the stand-in was made to do: ECN spares PI four of five timeouts, ARED in packet mode suffers most,
    # and REM's dropping is worse than drop-tail, also in loss.
    assert asked["le2007-6a"].verdict == HOLDS
    assert asked["le2007-5a"].verdict == HOLDS
    assert asked["le2007-3b"].verdict == FAILS
    # A minute cannot show who is slower than 50 s.
    assert asked["le2007-4b"].verdict == OPEN


def test_at_90_percent_other_claims_are_asked(settings):
    found = aqmlab.compare(ROOT / "examples/demo.toml", set={**settings, "traffic.0.load": "90mbit"})
    assert {claim.id for claim in claims.claims(found)} == {"le2007-1a", "le2007-1b", "le2007-1c", "le2007-11c"}


def test_claims_speak_of_their_load_only(base):
    assert claims.claims(aqmlab.compare(base, "pfifo", "pi", set={"traffic.0.load": "60mbit"})) == []
