import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from aqmlab.claims import FAILS, HOLDS, OPEN, reading
from aqmlab.claims.asked import NOT_RUN, ask
from aqmlab.statistics import BATCHES
from subjects import GRID, Runs, losing, points, window

POINTS = points()
OTHER = ("other", (1, 2, 3))


def read(*checks, **claim):
    """A claim about the grid of `subjects`."""
    table = {"id": "x-1", "says": "so", "reason": "because", "check": list(checks), **claim}
    (text,) = reading.of_tables({"claim": [table]}, "claims.toml", "A paper", POINTS)
    return text


def asked(subjects, *checks, **claim):
    return ask(read(*checks, **claim), subjects)


def loss(**keys):
    """A check of the loss ratio of PI against drop-tail at 98 %."""
    return {"measure": "loss_ratio", "of": {"aqm": "pi", "ecn": "off", "load": "98"}, **keys}


AGAINST = {"than": {"aqm": "tail"}}
PI, TAIL, RED = "web/pi/off/98", "web/tail/off/98", "web/red/off/98"


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [
        ((0.01, 0.011, 0.012), HOLDS),
        ((0.05, 0.051, 0.052), FAILS),
        ((0.01, 0.03, 0.05), OPEN),
        ((0.01, 0.011), OPEN),
        ((0.01,), OPEN),
    ],
)
def test_a_value_is_judged_by_the_interval_over_its_runs(lost, verdict):
    claim = asked({PI: losing(*lost)}, loss(high=0.02))
    assert claim.verdict == verdict
    (finding,) = claim.findings
    assert finding.interval.value == pytest.approx(np.mean(lost))
    assert (finding.interval.n, finding.interval.basis) == ((20, "parts") if len(lost) == 1 else (len(lost), "runs"))
    if len(lost) == 3:
        assert finding.interval.half_width == pytest.approx(stats.t.ppf(0.975, 2) * np.std(lost, ddof=1) / 3**0.5)


def test_the_same_demands_are_compared_seed_by_seed():
    # Runs differ much between seeds, and hardly between disciplines under a seed.
    pi, tail = (0.01, 0.05, 0.09), (0.012, 0.0521, 0.092)
    paired = asked({PI: losing(*pi), TAIL: losing(*tail)}, loss(**AGAINST, high=0.0))
    assert paired.verdict == HOLDS
    assert paired.findings[0].interval.value == pytest.approx(-0.0061 / 3)
    apart = asked({PI: losing(*pi), TAIL: losing(*tail, demand=OTHER)}, loss(**AGAINST, high=0.0))
    assert apart.verdict == OPEN
    welch = stats.ttest_ind(pi, tail, equal_var=False).confidence_interval()
    assert apart.findings[0].interval.low == pytest.approx(welch.low)
    assert apart.findings[0].interval.high == pytest.approx(welch.high)
    assert asked({PI: losing(*tail), TAIL: losing(*pi)}, loss(**AGAINST, high=0.0)).verdict == FAILS


def test_a_demand_that_is_not_known_is_nobodys():
    unknown = (None, (1, 2, 3))
    subjects = {PI: losing(0.01, 0.05, 0.09, demand=unknown), TAIL: losing(0.012, 0.052, 0.092, demand=unknown)}
    assert asked(subjects, loss(**AGAINST, high=0.0)).verdict == OPEN


def test_differences_relative_and_ratios():
    nearly = {PI: losing(0.02, 0.04, 0.06), TAIL: losing(0.01, 0.0201, 0.03)}
    (finding,) = asked(nearly, loss(**AGAINST, relative=True, low=0.9)).findings
    assert (finding.interval.value, finding.unit, finding.verdict) == (pytest.approx(0.12 / 0.0601 - 1), "%", HOLDS)
    subjects = {PI: losing(0.02, 0.04, 0.06), TAIL: losing(0.01, 0.02, 0.03)}
    (finding,) = asked(subjects, loss(**AGAINST, ratio=True, low=2.0)).findings
    # Twice as much under every seed of three, which may be chance.
    assert finding.interval.value == pytest.approx(2)
    assert finding.interval.half_width == 0
    assert (finding.number, finding.verdict) == ("2.000 times (the same in every run)", OPEN)
    nothing = {PI: losing(0.02, 0.04, 0.06), TAIL: losing(0, 0, 0)}
    claim = asked(nothing, loss(**AGAINST, ratio=True, low=2.0))
    assert claim.verdict == OPEN and claim.findings[0].number == "no data"


def test_a_ratio_of_independent_samples_has_the_interval_of_its_linearization():
    one, other = np.array([0.02, 0.03, 0.04]), np.array([0.01, 0.011, 0.012])
    subjects = {PI: losing(*one), TAIL: losing(*other, demand=OTHER)}
    (finding,) = asked(subjects, loss(**AGAINST, ratio=True, low=1.0)).findings
    ratio = one.mean() / other.mean()
    interval = stats.ttest_ind(one, ratio * other, equal_var=False).confidence_interval()
    assert finding.interval.value == pytest.approx(ratio)
    assert finding.interval.half_width == pytest.approx((interval.high - interval.low) / 2 / other.mean())


def test_every_point_of_of_against_every_point_of_than_but_none_against_itself():
    subjects = {name: losing(0.01 + k / 1000, 0.02, 0.03) for k, name in enumerate((PI, RED, TAIL))}
    check = loss(than={"aqm": ["tail", "red"]}, high="similar") | {
        "of": {"aqm": ["pi", "red"], "ecn": "off", "load": 98}
    }
    claim = asked(subjects, check)
    assert [f.label for f in claim.findings] == ["PI − drop-tail", "PI − RED", "RED − drop-tail"]
    assert claim.verdict == HOLDS and claim.bound.startswith("below 2 points for each (3 numbers")


def test_one_finding_that_fails_is_a_claim_that_fails_and_one_left_open_leaves_it_open():
    good, bad, unsure = losing(0.01, 0.01, 0.011), losing(0.05, 0.05, 0.051), losing(0.0, 0.02, 0.04)
    check = loss(high=0.02) | {"of": {"aqm": ["pi", "red"], "ecn": "off", "load": "98"}}
    assert asked({PI: good, RED: good}, check).verdict == HOLDS
    assert asked({PI: good, RED: unsure}, check).verdict == OPEN
    assert asked({PI: unsure, RED: bad}, check).verdict == FAILS


def test_what_was_not_run_cannot_be_decided_and_says_so():
    check = loss(high=0.02) | {"of": {"aqm": ["pi", "red"], "ecn": "off", "load": "98"}}
    claim = asked({PI: losing(0.01, 0.01, 0.011)}, check)
    assert claim.verdict == OPEN
    assert [f.verdict for f in claim.findings] == [HOLDS, NOT_RUN]
    assert [f.number for f in claim.findings][1] == NOT_RUN
    assert claim.number.startswith("1 of 2 numbers asked: ")
    assert asked({}, check).verdict == NOT_RUN
    bad = losing(0.05, 0.05, 0.051)
    assert asked({PI: bad}, check).verdict == FAILS
    assert claim.as_dict()["findings"][1]["note"] == NOT_RUN


def test_a_verdict_needs_its_runs_or_the_parts_of_one():
    two = {PI: losing(0.01, 0.01)}
    assert asked(two, loss(high=0.02)).verdict == OPEN
    assert "2 of the 3 runs" in asked(two, loss(high=0.02)).number
    assert asked({PI: losing(0.01, 0.0101)}, loss(high=0.02), seeds=2).verdict == HOLDS

    def one_run(*shares):
        lost = np.resize(1000.0 * np.array(shares), (2, BATCHES))
        return Runs([window([0.1] * 60, dropped=lost)], demand=("the same", (1,)))

    one = {PI: one_run(0.010, 0.011, 0.012), TAIL: one_run(0.030, 0.032, 0.034)}
    assert asked(one, loss(high=0.02)).verdict == OPEN
    assert asked(one, loss(high=0.02), parts=True).verdict == HOLDS
    assert asked(one, loss(**AGAINST, high=0.0), parts=True).verdict == HOLDS
    assert asked(one, loss(**AGAINST, low=0.0), parts=True).verdict == FAILS
    # A number of the summary has no parts.
    summed = {PI: Runs([window([0.1])], [{"tcp": {"timeouts": 3}}])}
    check = {"measure": "timeouts", "of": {"load": 98, "aqm": "pi", "ecn": "off"}, "high": 9}
    assert asked(summed, check, parts=True).verdict == OPEN


def test_a_number_that_no_seed_changes_is_sure():
    runs = Runs([window([0.1])] * 3, scenario={"link": {"qdisc": {"probability": 0.1}}})
    check = {"measure": "parameter", "key": "link.qdisc.probability", "of": {"aqm": "red", "ecn": "off", "load": 98}}
    assert asked({RED: runs}, check | {"low": 0.09, "high": 0.11}).verdict == HOLDS
    assert asked({RED: runs}, check | {"low": 0.11}).verdict == FAILS
    # Nor is the ratio of two such numbers unsure because their demands were different.
    other = Runs([window([0.1])] * 3, scenario={"link": {"qdisc": {"probability": 0.04}}}, demand=OTHER)
    ratio = check | {"than": {"load": "90"}, "ratio": True, "low": 2.4, "high": 2.6}
    claim = asked({RED: runs, "web/red/off/90": other}, ratio)
    assert claim.verdict == HOLDS and claim.findings[0].interval.half_width == pytest.approx(0, abs=1e-9)
    half, quarter = (
        Runs([window([0.1])] * 3, scenario={"link": {"qdisc": {"probability": p}}}, demand=demand)
        for p, demand in ((0.5, OTHER), (0.25, ("the same", (1, 2, 3))))
    )
    claim = asked({RED: half, "web/red/off/90": quarter}, check | {"than": {"load": "90"}, "low": 0.2})
    assert claim.verdict == HOLDS and claim.findings[0].interval.half_width == 0


def test_nothing_at_all_in_every_run_decides_nothing():
    # None lost a packet, so that all differences are 0 without any width.
    none = {PI: losing(0, 0, 0), TAIL: losing(0, 0, 0)}
    claim = asked(none, loss(**AGAINST, low=0.0))
    assert claim.verdict == OPEN
    assert claim.findings[0].number == "+0.00 points (the same in every run)"
    # Differences that are the same but for rounding: 0.1 + 0.2 - 0.3 is 5.6e-17.
    same = {PI: losing(0.1, 0.2, 0.7), TAIL: losing(0.1 + 1e-17, 0.3 - 0.1, 0.7 + 1e-16)}
    (finding,) = asked(same, loss(**AGAINST, low=0.0)).findings
    assert (finding.interval.value, finding.interval.half_width, finding.verdict) == (0.0, 0.0, OPEN)


def test_many_numbers_fail_a_claim_at_95_percent_of_all_together():
    outside = losing(0.0190, 0.0195, 0.0199)
    every = {
        f"web/{aqm}/{ecn}/{load}": outside for aqm in ("pi", "red") for ecn in ("off", "on") for load in (80, 90, 98)
    }
    alone = asked(every, loss(low=0.021))
    assert alone.verdict == FAILS and alone.bound == "above 2.1 % of packets"
    together = asked(every, loss(low=0.021) | {"of": {"aqm": ["pi", "red"]}})
    assert len(together.findings) == 12 and together.verdict == OPEN
    assert together.bound == "above 2.1 % of packets for each (12 numbers: failing at 95 % of all together)"
    far = asked(every, loss(low=0.1) | {"of": {"aqm": ["pi", "red"]}})
    assert far.verdict == FAILS


def test_a_comparison_that_has_some_of_the_points_is_judged_by_them_and_says_so():
    text = read(loss(high=0.02) | {"of": {"aqm": ["pi", "red"], "ecn": "off", "load": "98"}})
    some = {PI: losing(0.01, 0.01, 0.011)}
    strict, lenient = ask(text, some), ask(text, some, lenient=True)
    assert (strict.verdict, strict.remark) == (OPEN, "1 of 2 numbers asked")
    assert (lenient.verdict, lenient.remark, len(lenient.findings)) == (HOLDS, "1 of 2 numbers asked", 1)
    assert lenient.as_dict()["asked"] == 1 and lenient.as_dict()["of"] == 2


def test_a_window_that_is_too_short_gives_no_verdict():
    short = {PI: losing(0.01, 0.01, 0.011)}
    assert asked(short, loss(high=0.02, window_s=100)).verdict == HOLDS
    claim = asked(short, loss(high=0.02, window_s=101))
    assert claim.verdict == OPEN and "too short" in claim.number


def curve(*values):
    """PI at 80, 90 and 98 %, each of three runs under demands of its own."""
    return {
        f"web/pi/off/{load}": losing(v - 0.001, v, v + 0.001, demand=(load, (1, 2, 3)))
        for load, v in zip((80, 90, 98), values, strict=True)
    }


BENT = {
    "measure": "loss_ratio",
    "terms": [
        {"weight": 1, "at": {"aqm": "pi", "ecn": "off", "load": "80"}},
        {"weight": -2, "at": {"aqm": "pi", "ecn": "off", "load": "90"}},
        {"weight": 1, "at": {"aqm": "pi", "ecn": "off", "load": "98"}},
    ],
    "low": 0.0,
}


def test_terms_tell_a_curve_that_bends_up_from_one_that_bends_down():
    convex = asked(curve(0.01, 0.02, 0.08), BENT)
    assert convex.verdict == HOLDS
    assert asked(curve(0.01, 0.07, 0.08), BENT).verdict == FAILS
    assert asked(curve(0.01, 0.045, 0.08), BENT).verdict == OPEN
    (finding,) = convex.findings
    assert finding.interval.value == pytest.approx(0.05)
    # Three independent samples of variance s²/3 with weights 1, 4, 1; Welch's degrees of freedom.
    each = 0.001**2 / 3
    freedom = (6 * each) ** 2 / ((each**2 + (4 * each) ** 2 + each**2) / 2)
    assert finding.interval.half_width == pytest.approx(stats.t.ppf(0.975, freedom) * math.sqrt(6 * each))


def test_terms_are_laid_over_the_points_of_of():
    terms = [{"weight": 1, "at": {"load": "98"}}, {"weight": -1, "at": {"load": "80"}}]
    of = {"aqm": ["pi", "red"], "ecn": "off", "load": "80"}
    text = read({"measure": "loss_ratio", "of": of, "terms": terms, "low": 0.0})
    assert [sorted(question.points) for question in text.questions] == [
        ["web/pi/off/80", "web/pi/off/98"],
        ["web/red/off/80", "web/red/off/98"],
    ]


def test_several_points_become_one_number_along_an_axis():
    steady = {f"web/pi/off/{load}": losing(0.02, 0.021, 0.022) for load in (80, 90, 98)}
    wild = {f"web/red/off/{load}": losing(v, v, v + 0.001) for load, v in ((80, 0.01), (90, 0.05), (98, 0.03))}
    wild["web/red/off/90"] = losing(0.05, 0.0502, 0.051)
    check = {
        "measure": "loss_ratio",
        "each": "spread",
        "over": "load",
        "of": {"aqm": "pi", "ecn": "off"},
        "than": {"aqm": "red"},
        "high": 0.0,
    }
    claim = asked({**steady, **wild}, check)
    assert claim.verdict == HOLDS
    (finding,) = claim.findings
    assert finding.interval.value == pytest.approx(-0.04 - 0.0002 / 3)
    swapped = check | {"of": {"aqm": "red", "ecn": "off"}, "than": {"aqm": "pi"}}
    assert asked({**steady, **wild}, swapped).verdict == FAILS
    for each, value in (("mean", 0.03 + 0.0002 / 9), ("max", 0.05 + 0.0002 / 3), ("min", 0.01)):
        over = {"measure": "loss_ratio", "each": each, "of": {"aqm": "red", "ecn": "off"}, "high": 1.0}
        (finding,) = asked({**steady, **wild}, over).findings
        assert finding.interval.value == pytest.approx(value + 0.001 / 3)


def test_findings_are_told_apart_by_what_differs():
    check = loss(than={"ecn": "off"}, high=1.0) | {"of": {"aqm": ["pi", "red"], "ecn": "on", "load": ["90", "98"]}}
    labels = [finding.label for finding in asked({}, check).findings]
    assert labels == [f"ECN − off ({aqm}, {load})" for aqm in ("PI", "RED") for load in ("90", "98")]
    both = asked({}, loss(high=1.0), {**loss(high=1.0), "measure": "completed"})
    assert [finding.label for finding in both.findings] == ["loss ratio, PI", "completed exchanges, PI"]


def test_what_the_paper_says_stands_beside_what_was_found():
    claim = asked({PI: losing(0.01, 0.01, 0.011)}, loss(high=0.02, published=0.012))
    facts = claim.as_dict()["findings"][0]
    assert (facts["published"], facts["published_number"]) == (0.012, "1.2 % of packets")
    rate = Runs([window([0.1])] * 3, [{"tcp": {"forward_goodput_bps": bps}} for bps in (8.3e6, 8.4e6, 8.5e6)])
    check = {"measure": "goodput_bps", "of": {"aqm": "pi", "ecn": "off", "load": 98}, "low": 8e6, "published": 8.4e6}
    (finding,) = asked({PI: rate}, check).findings
    assert finding.number == "8.40 ± 0.25 Mb/s"
    assert finding.published_number == "8.4 Mb/s"
    assert finding.bound == "above 8 Mb/s"


def test_parts_pair_within_one_run():
    # Both runs lose more and more; the difference of the parts stays what it is, nearly.
    rising, more = np.linspace(10, 60, BATCHES), 1 + 1e-9 * np.random.default_rng(1).permutation(BATCHES)
    lost = [np.vstack([rising, rising]), np.vstack([rising, rising]) + more]
    subjects = {
        name: Runs([window([0.1], dropped=each)], demand=("the same", (1,)))
        for name, each in zip((PI, TAIL), lost, strict=True)
    }
    (finding,) = asked(subjects, loss(**AGAINST, high=0.0), parts=True).findings
    assert finding.interval.value == pytest.approx(-0.001)
    assert finding.interval.half_width == pytest.approx(0, abs=1e-9)
    assert finding.interval.basis == "parts"


@pytest.mark.parametrize("how", [{}, {"relative": True}, {"ratio": True}])
def test_parts_that_resemble_their_neighbours_leave_fewer_degrees_of_freedom(how):
    # A wave over the window beside a little noise: each part is much like the one before.
    noise = np.random.default_rng(3).normal(size=BATCHES)
    waving = 30 + 8 * np.sin(np.arange(BATCHES) * 2 * np.pi / 7) + 6 * noise
    lost = [np.vstack([waving, waving]), np.full((2, BATCHES), 10.0)]
    subjects = {
        name: Runs([window([0.1], dropped=each)], demand=("the same", (1,)))
        for name, each in zip((PI, TAIL), lost, strict=True)
    }
    (finding,) = asked(subjects, loss(**AGAINST, **how, high=0.0), parts=True).findings
    assert finding.freedom == finding.interval.freedom
    assert 3 <= finding.freedom < BATCHES - 2


SETTLED, MOVED, SHORT = (
    {"answer": "yes", "p": 0.6},
    {"answer": "no", "p": 1e-5},
    {"answer": "cannot tell", "p": 0.3},
)


def answered(*settled, lost=(0.010, 0.0101, 0.0102)):
    """Runs shorter than the published ones, whose windows were found to be settled or not."""
    runs = losing(*lost)
    windows = [replace(one, settled=found) for one, found in zip(runs.windows, settled, strict=True)]
    return Runs(windows, runs.summaries, demand=runs.demand, scenario={"duration": "200s", "warmup": "60s"})


@pytest.mark.parametrize("high", [0.02, 0.005])  # which settled runs hold, and do not
@pytest.mark.parametrize(
    ("settled", "why"),
    [
        ((MOVED, MOVED, MOVED), "not settled in 3 of 3 runs"),
        ((SETTLED, MOVED, SHORT), "not settled in 1 of 3 runs"),
        ((SETTLED, SHORT, SHORT), "too short to tell whether it is settled in 2 of 3 runs"),
        ((SETTLED, SETTLED, None), "not known whether it is settled in 1 of 3 runs"),
    ],
)
def test_shorter_runs_that_are_not_known_to_be_settled_decide_nothing_and_say_why(settled, why, high):
    claim = asked({PI: answered(*settled)}, loss(high=high))
    assert claim.verdict == OPEN and claim.as_dict()["holds"] is None
    assert claim.remark == f"the window was {why}"
    assert claim.findings[0].number == f"1.010 ± 0.025 % of packets ({why})"
    carried = asked({PI: answered(SETTLED, SETTLED, SETTLED)}, loss(high=high))
    assert carried.verdict == (HOLDS if high == 0.02 else FAILS) and not carried.remark


def test_runs_of_all_points_count_once_however_many_numbers_are_of_them():
    subjects = {PI: answered(MOVED, MOVED, SETTLED), TAIL: answered(SETTLED, SETTLED, SETTLED, lost=(0.05, 0.06, 0.07))}
    claim = asked(subjects, loss(**AGAINST, high=0.0), loss(high=0.02))
    assert [finding.note for finding in claim.findings] == [
        "not settled in 2 of 6 runs",
        "not settled in 2 of 3 runs",
    ]
    assert claim.remark == "the window was not settled in 2 of 6 runs"
    assert claim.as_dict()["unbelieved"] == {"not settled": (2, 6)}
    # A number that the settled point has alone is decided, and fails the claim.
    other = loss(high=0.02) | {"of": {"aqm": "tail", "ecn": "off", "load": "98"}}
    assert asked(subjects, loss(**AGAINST, high=0.0), other).verdict == FAILS


def drifting(*statistics):
    """What runs show whose one series goes up by so many standard errors, which none of them is sure of by itself."""
    facts = {"name": "queue, forward", "answer": "yes", "freedom": 40.0, "p": 0.06, "begins": 10.0, "ends": 12.0}
    series = [{**facts, "statistic": statistic, "climb": 0.0} for statistic in statistics]
    return [{"answer": "yes", "p": 0.06, "cut_s": None, "series": [one]} for one in series]


def test_a_trend_that_no_run_shows_by_itself_and_all_together_do_leaves_the_claim_open():
    apart, common = drifting(2.0, -2.0, 0.5), drifting(2.0, 2.0, 1.9)
    assert asked({PI: answered(*apart)}, loss(high=0.02)).verdict == HOLDS
    claim = asked({PI: answered(*common)}, loss(high=0.02))
    assert claim.verdict == OPEN
    assert claim.findings[0].note == "not settled, by its 3 runs together"
    assert claim.remark == "the window was not settled, by its 3 runs together"
    assert claim.as_dict()["unbelieved"] == {"not settled": (0, 3)}
    # Beside a settled point, one like it, and one whose runs show it by themselves.
    beside = [
        (answered(*apart), "not settled, by its 3 runs together"),
        (answered(*common), "not settled, by the runs of each of 2 points together"),
        (answered(MOVED, MOVED, SETTLED), "not settled in 2 of 6 runs"),
    ]
    for other, why in beside:
        claim = asked({PI: answered(*common), TAIL: other}, loss(**AGAINST, high=0.02))
        assert (claim.verdict, claim.findings[0].note, claim.remark) == (OPEN, why, f"the window was {why}")


def test_runs_as_long_as_the_published_ones_are_what_the_claim_is_about():
    tree = {**GRID, "scenario": {**GRID["scenario"], "duration": "300s", "warmup": "60s"}}
    table = {"id": "x-1", "says": "so", "reason": "because", "check": [loss(high=0.02)]}
    (text,) = reading.of_tables({"claim": [table]}, "claims.toml", "A paper", points(tree))
    moved = answered(MOVED, MOVED, MOVED)
    for duration, warmup, verdict in (("300s", "60s", HOLDS), ("300s", "30s", OPEN), ("200s", "60s", OPEN)):
        moved.scenario = {"duration": duration, "warmup": warmup}
        assert ask(text, {PI: moved}).verdict == verdict
        # So does a study that leaves these lengths to the engine.
        assert asked({PI: moved}, loss(high=0.02)).verdict == verdict


def test_points_that_all_drift_a_little_are_not_settled_and_one_among_others_is():
    # Of a point alone it is a trend (p = 0.04), and of two alike; of one beside a calm one (p = 1) it is chance.
    weak, calm = answered(*drifting(1.6, 1.55, 1.5)), answered(*drifting(0.3, -0.2, 0.1))
    questions = [loss(high=0.02), loss(high=0.02) | {"of": {"aqm": "tail", "ecn": "off", "load": "98"}}]
    assert asked({PI: weak}, loss(high=0.02)).verdict == OPEN
    both = asked({PI: weak, TAIL: weak}, *questions)
    assert both.verdict == OPEN and all("together" in finding.note for finding in both.findings)
    assert asked({PI: weak, TAIL: calm}, *questions).verdict == HOLDS
