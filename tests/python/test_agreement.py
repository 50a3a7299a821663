import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import aqmlab
from aqmlab import cli, report
from aqmlab.agreement import agreements, verdicts
from aqmlab.agreement.agreements import Finding
from aqmlab.agreement.verdicts import AGREES, DIFFERS, UNDECIDED, VOID
from aqmlab.errors import BadInput
from aqmlab.statistics import Interval
from aqmlab.study import witnessed


def finding(difference, tolerance):
    value = Interval(1.0, 0.1, 3, "runs")
    return Finding("k", "t", "share", value, value, difference, tolerance, "5 %")


@pytest.mark.parametrize(
    ("value", "width", "verdict", "within"),
    [
        (0.01, 0.03, AGREES, True),
        (-0.01, 0.03, AGREES, True),
        (0.01, 0.05, UNDECIDED, True),
        (0.08, 0.05, UNDECIDED, False),
        (0.12, 0.05, DIFFERS, False),
        (-0.12, 0.05, DIFFERS, False),
        (0.01, None, UNDECIDED, True),
        (math.nan, 0.1, UNDECIDED, None),
    ],
)
def test_a_verdict_follows_from_the_interval(value, width, verdict, within):
    found = finding(Interval(value, width, 3, "runs"), 0.05)
    assert found.verdict == verdict and found.within is within


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    rng = np.random.default_rng(1)
    for sizes in ((1, 1), (50, 7), (400, 300)):
        # Whole numbers: ties too.
        one, other = (np.sort(rng.integers(0, 40, size).astype(float)) for size in sizes)
        assert verdicts.distance(one, other) == pytest.approx(stats.ks_2samp(one, other).statistic, abs=1e-12)
    assert verdicts.distance(one, one) == 0
    assert math.isnan(verdicts.distance(one, np.empty(0)))


def test_what_one_run_says_of_itself_decides_nothing():
    assert finding(Interval(0.0, 0.01, 20, "parts"), 0.05).verdict == UNDECIDED
    assert replace(finding(Interval(0.0, 0.01, 3, "runs"), 0.05), is_void=True).verdict == VOID


def test_runs_are_pairs_where_there_are_enough_or_no_more_to_be_had():
    few, many = [1, 2, 3], list(range(1, 11))
    assert verdicts.pairs(few, few, same_demands=True) == [(0, 0), (1, 1), (2, 2)]
    assert verdicts.pairs(many, [3, 4, 5, 6, 7, 99], same_demands=True) == [(2, 0), (3, 1), (4, 2), (5, 3), (6, 4)]
    assert verdicts.pairs(many, few, same_demands=True) is None
    assert verdicts.pairs(few, few, same_demands=False) is None and verdicts.pairs([1], [1], same_demands=True) is None


def test_few_runs_have_the_spread_of_the_many():
    many = [1.0, 2.0, 3.0, 4.0, 5.0]  # standard deviation sqrt(2.5), Student's quantile of 4 degrees of freedom 2.776
    alone = verdicts.gap(many, [3.5], None)
    assert alone.value == 0.5 and alone.basis == "runs"
    assert alone.half_width == pytest.approx(stats.t.ppf(0.975, 4) * math.sqrt(2.5 * (1 / 5 + 1)))
    # Two runs: as scipy's test with equal variances has it.
    both = stats.ttest_ind([3.0, 4.0], many, equal_var=True).confidence_interval()
    assert verdicts.gap(many, [3.0, 4.0], None).half_width == pytest.approx((both.high - both.low) / 2)
    # Two that scatter visibly more, and two large sets: Welch's.
    for live in ([0.0, 9.0], [2.0, 2.5, 4.0, 4.5, 8.0]):
        welch = stats.ttest_ind(live, many, equal_var=False).confidence_interval()
        assert verdicts.gap(many, live, None).half_width == pytest.approx((welch.high - welch.low) / 2)
    assert verdicts.gap(many[:4], [3.5], None).half_width is None


def test_the_interval_of_a_distance_is_student_s_at_a_single_time():
    """Exchanges of two lengths only: the distance is the difference of a share, and that is a mean over runs."""

    def shares(values):
        return [np.repeat([1.0, 2.0], [round(1000 * p), round(1000 * (1 - p))]) for p in values]

    ours, theirs = [0.40, 0.42, 0.44, 0.41, 0.43, 0.45], [0.50, 0.51, 0.47, 0.52, 0.49, 0.53]
    for live, paired in ((theirs, None), (theirs[:1], None), (theirs, [(k, k) for k in range(6)])):
        found = verdicts.distance_gap(shares(ours), shares(live), paired)
        assert found.value == pytest.approx(np.mean(live) - np.mean(ours), abs=1e-12)
        wanted = verdicts.gap(ours, live, paired).half_width
        if live is theirs and not paired:  # by the fewest degrees of freedom that Welch's may have
            wanted *= stats.t.ppf(0.975, 5) / stats.t.ppf(0.975, stats.ttest_ind(live, ours, equal_var=False).df)
        # The 95 % quantile of 4,000 draws is known to 2 % (standard error sqrt(0.05 * 0.95 / 4000) over the density).
        assert found.half_width == pytest.approx(wanted, rel=0.06)
    assert verdicts.distance_gap(shares(ours[:1]), shares(theirs[:1]), None).half_width is None


def test_the_interval_of_a_distance_has_the_true_one_in_it():
    """Runs of exponential times whose mean is the run's own: 95 times of 100, and by the triangle inequality more."""
    rng = np.random.default_rng(3)
    at = np.linspace(0.01, 8, 800)

    def runs(mean, n):
        return [np.sort(rng.exponential(mean * rng.lognormal(0, 0.05), 400)) for _ in range(n)]

    whole = [
        np.mean([1 - np.exp(-at / (mean * s)) for s in rng.lognormal(0, 0.05, 2000)], axis=0) for mean in (1, 1.17)
    ]
    true = float(np.max(np.abs(whole[0] - whole[1])))
    found = [verdicts.distance_gap(runs(1.0, 5), runs(1.17, 5), None) for _ in range(60)]
    # Of 60 at 5 %, more than 8 outside has a probability below 0.5 % (binomial).
    assert sum(not each.low <= true <= each.high for each in found) <= 8
    # What truly is further apart than the tolerance is not found to agree but by such a chance.
    assert true > 0.05 and sum(verdicts.verdict(each, 0.05) == AGREES for each in found) <= 3


def test_a_result_agrees_with_itself(small, tmp_path):
    found = aqmlab.run(small, reps=3, out=tmp_path / "s")
    same = agreements.agreement(found, found)
    by_key = {item.key: item for item in same.findings}
    assert {"forward.utilisation", "reverse.utilisation", "forward.queue_delay_mean_s"} <= set(by_key)
    assert {"forward.loss_ratio", "tcp.goodput_bps", "response_distance"} <= set(by_key)
    assert all(item.difference.value == 0 and item.within for item in same.findings)
    assert by_key["response_distance"].verdict == AGREES
    assert 0 < by_key["response_distance"].noise["live"] < 0.05
    # The stand-in marks nothing without ECN.
    assert "forward.mark_ratio" not in by_key
    json.dumps(same.as_dict(), allow_nan=False)


def test_what_differs_is_seen(small, tmp_path):
    one = aqmlab.run(small, reps=3, out=tmp_path / "a")
    other = aqmlab.run(
        small, reps=3, out=tmp_path / "b", set={"link.qdisc": {"kind": "pi", "ecn": True}, "tcp.ecn": "on"}
    )
    by_key = {item.key: item for item in agreements.agreement(one, other).findings}
    delay, spread = by_key["forward.queue_delay_mean_s"], by_key["response_distance"]
    assert delay.verdict == DIFFERS and delay.difference.value < -delay.tolerance
    assert delay.tolerance == pytest.approx(max(0.1 * delay.simulated.value, 1e-3))
    assert spread.verdict == DIFFERS and spread.difference.value > 0.05
    assert by_key["forward.utilisation"].within


def test_one_run_of_each_leaves_figures_without_parts_undecided(small, tmp_path):
    one = aqmlab.run(small, out=tmp_path / "a")
    other = aqmlab.run(small, out=tmp_path / "b", set={"link.qdisc.kind": "pi"})
    by_key = {item.key: item for item in agreements.agreement(one, other).findings}
    assert by_key["tcp.goodput_bps"].verdict == UNDECIDED
    # The window is too short to tell whether it is settled.
    assert by_key["forward.utilisation"].difference.basis == "none"
    assert by_key["response_distance"].noise == {"simulated": None, "live": None}
    assert {item.verdict for item in by_key.values()} == {UNDECIDED}
    facts = by_key["response_distance"].as_dict()
    assert facts["simulated"] is None and set(facts["median_s"]) == {"simulated", "live"}
    assert facts["difference"]["half_width_95"] is None
    # Under other demands the parts of two windows have nothing in common.
    other = aqmlab.run(small, seed=99, out=tmp_path / "c")
    by_key = {item.key: item for item in agreements.agreement(one, other).findings}
    assert by_key["forward.utilisation"].verdict == UNDECIDED


def test_differences_are_taken_run_by_run_under_the_same_demands(small, tmp_path):
    one = aqmlab.run(small, reps=4, out=tmp_path / "a")
    other = aqmlab.run(small, reps=4, out=tmp_path / "b", set={"link.qdisc.kind": "pi"})
    apart = aqmlab.run(small, reps=4, seed=50, out=tmp_path / "c", set={"link.qdisc.kind": "pi"})
    # The stand-in's traffic is the seed's alone, whatever the discipline.
    key = "forward.utilisation"
    paired = next(item for item in agreements.agreement(one, other).findings if item.key == key)
    unpaired = next(item for item in agreements.agreement(one, apart).findings if item.key == key)
    assert paired.difference.value == 0 and paired.difference.half_width == 0 and paired.verdict == AGREES
    assert unpaired.difference.half_width > 0


def test_a_comparison_with_witnesses(small, tmp_path, capsys):
    words = ["compare", str(small), "pfifo", "pi ecn", "uncongested", "--live", "--virtual", "--kernel-qdisc"]
    assert cli.invoke([*words, "-o", str(tmp_path / "c"), "--reps", "2", "--report"]) == 0
    said = capsys.readouterr().out
    for text in ("pi ecn, live", "pfifo, kernel", "pi ecn: simulated and virtual", "Simulator and test bed: "):
        assert text in said
    assert "uncongested, live" not in said
    found = aqmlab.load(tmp_path / "c")
    names = [column.name for column in found.columns]
    each = ["", ", live", ", virtual", ", kernel"]
    assert names == [f"{name}{who}" for name in ("pfifo", "pi ecn") for who in each] + ["uncongested"]
    assert found.witnesses == ["live", "virtual", "kernel"]
    assert 'qdisc = "kernel"' in (tmp_path / "c/pi-ecn-kernel/scenario.toml").read_text()
    clocks = {name: found[name].live.get("clock") for name in names}
    assert clocks["pi ecn"] is None and clocks["pi ecn, live"] == "real" and clocks["pi ecn, kernel"] == "virtual"
    # Each witness is measured against the baseline as it has seen it.
    assert found.base_of(found.column("pi ecn, live")).name == "pfifo, live"
    written = json.loads((tmp_path / "c/agreement.json").read_text())["agreements"]
    assert [(item["name"], item["witness"]) for item in written] == [
        (name, who) for name in ("pfifo", "pi ecn") for who in ("live", "virtual", "kernel")
    ]
    page = (tmp_path / "c/report.html").read_text()
    assert "Simulated and live" in page and "The test bed" in page and (tmp_path / "c/figures/agreement.png").exists()
    assert "comparison.toml --live --virtual --kernel-qdisc --reps 2" in page
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "c").glob("*/rep-1/manifest.json")}
    assert cli.invoke([*words, "-o", str(tmp_path / "c"), "--reps", "2", "--resume", "--json"]) == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["agreements"]) == 6 and answer["variants"][1]["witness"] == "live"


def test_what_a_study_s_witnesses_found_is_kept_with_it(small, tmp_path):
    result, study = tmp_path / "result", tmp_path / "mine"
    study.mkdir()
    (study / "study.toml").write_text('[live]\nfile = "live.toml"\n')
    (study / "live.toml").write_text('name = "mine"\n')
    assert witnessed.keep(result, study) is None and witnessed.markdown(study, "Between") == ""
    words = ["compare", str(small), "pfifo", "pi ecn", "uncongested", "--virtual", "--reps", "2"]
    assert cli.invoke([*words, "-o", str(result / "virtual")]) == 0
    kept = witnessed.keep(result, study)
    assert kept == study / "witnessed.json"
    found = json.loads(kept.read_text())["virtual"]
    assert found["runs"] == 2 and "agree" in found["counts"]
    who = [("pfifo", "simulator"), ("pfifo", "real stacks"), ("pi ecn", "simulator"), ("pi ecn", "real stacks")]
    assert [tuple(row[:2]) for row in found["responses"]] == who, "the uncongested link is simulated alone"
    page = witnessed.markdown(study, "Between")
    assert page.startswith("### Between\n") and "in virtual time" in page and "in real time" not in page
    rows = [line for line in page.splitlines() if line.startswith("| pi ecn | utilisation, forward")]
    assert len(rows) == 1 and rows[0].count("|") == 8
    assert "changed since" not in page
    (study / "live.toml").write_text('name = "another"\n')
    assert "The comparison was changed since." in witnessed.markdown(study, "Between")
    # Another witness is kept beside it.
    assert cli.invoke([*words[:5], "--live", "--reps", "2", "-o", str(tmp_path / "other" / "live")]) == 0
    witnessed.keep(tmp_path / "other", study)
    assert set(json.loads(kept.read_text())) == {"virtual", "live"}


def test_a_void_witness_is_marked_in_every_place(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FAKE_CHILD", "void")
    assert cli.invoke(["compare", str(small), "pfifo", "--live", "-o", str(tmp_path / "c"), "--report"]) == 1
    said = capsys.readouterr()
    assert "pfifo, live (void)" in said.out and "pfifo, live is void: 12.3 %" in said.out
    assert "simulated and live (void)" in said.out and "self-check failed: pfifo, live" in said.err
    page = (tmp_path / "c/report.html").read_text()
    assert "Void: pfifo, live." in page and page.count("(void)") >= 3
    for name in ("response-cdf", "agreement", "queue"):
        assert "(void)" in (tmp_path / f"c/figures/{name}.svg").read_text()
    report.write(aqmlab.load(tmp_path / "c"))


def test_folders_of_live_results_are_seen_for_what_they_are(small, tmp_path):
    for kind in ("pfifo", "pi"):
        aqmlab.live(small, out=tmp_path / f"{kind}-l", set={"link.qdisc.kind": kind}, reps=2)
        aqmlab.run(small, out=tmp_path / f"{kind}-s", set={"link.qdisc.kind": kind}, reps=2)
    aqmlab.live(small, out=tmp_path / "k", set={"live.qdisc": "kernel"}, reps=2, virtual=True)
    places = [tmp_path / name for name in ("pfifo-l", "pi-l", "pfifo-s", "pi-s", "k")]
    found = aqmlab.compare(*places, out=tmp_path / "c")
    assert [(c.name, c.witness, c.subject) for c in found.columns] == [
        ("web users, live", "live", "web users"),
        ("web users (pi-s), live", "live", "web users (pi-s)"),
        ("web users", "simulated", "web users"),
        ("web users (pi-s)", "simulated", "web users (pi-s)"),
        ("web users, kernel", "kernel", "web users"),
    ]
    assert found.baseline.name == "web users" and found.base_of(found.columns[1]).name == "web users, live"
    written = json.loads((tmp_path / "c/agreement.json").read_text())["agreements"]
    assert [(item["name"], item["witness"]) for item in written] == [
        ("web users", "live"),
        ("web users (pi-s)", "live"),
        ("web users", "kernel"),
    ]


def test_a_void_run_is_left_out_and_a_void_witness_decides_nothing(small, tmp_path, monkeypatch):
    simulated = aqmlab.run(small, reps=3, out=tmp_path / "s")
    monkeypatch.setenv("FAKE_CHILD", "void-8")  # the second seed
    some = agreements.agreement(simulated, aqmlab.live(small, reps=3, out=tmp_path / "l"))
    assert some.runs == {"simulated": 3, "live": 2, "left_out": 1} and some.note == "1 of 3 runs void, left out"
    assert some.void.startswith("rep-2: ") and some.count(VOID) == 0
    monkeypatch.setenv("FAKE_CHILD", "void")
    none = agreements.agreement(simulated, aqmlab.live(small, reps=3, out=tmp_path / "v"))
    assert none.note == "void" and none.count(VOID) == len(none.findings) > 0


def test_the_hosts_of_both_should_be_the_same(small, tmp_path, capsys):
    assert cli.invoke(["compare", str(small), "pfifo", "--live", "-o", str(tmp_path / "c")]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1 and "tcp.stack = freebsd4" in notes[0] and 'expected stack = "linux"' in notes[0]


def test_witnesses_in_virtual_time_have_the_kernel_that_was_named(small, tmp_path, undrawn):
    words = ["compare", str(small), "pfifo", "--live", "--virtual", "--kernel-qdisc", "--kernel", "7.3", "--report"]
    assert cli.invoke([*words, "-o", str(tmp_path / "c")]) == 0
    found = aqmlab.load(tmp_path / "c")
    named = {column.witness: column.result.live.get("kernel_name") for column in found.columns}
    assert named == {"simulated": None, "live": None, "virtual": "7.3", "kernel": "7.3"}
    page = (tmp_path / "c/report.html").read_text()
    assert "comparison.toml --live --virtual --kernel-qdisc --kernel 7.3 -o again" in page
    report.write(found["pfifo, virtual"])
    assert "--virtual --kernel 7.3 --seed" in (tmp_path / "c/pfifo-virtual/report.html").read_text()


def test_what_cannot_be_compared_live(small, tmp_path, capsys):
    assert cli.invoke(["compare", str(small), "pfifo", "--kernel-qdisc"]) == 2
    assert "--kernel-qdisc: expected --live or --virtual with it" in capsys.readouterr().err
    assert cli.invoke(["compare", str(small), "pfifo", "--live", "--kernel", "7.3"]) == 2
    assert "kernel: 7.3: expected a run in virtual time with it" in capsys.readouterr().err
    with pytest.raises(BadInput, match="kernel: True: expected the name of a kernel of virtual time"):
        aqmlab.compare(small, "pfifo", virtual=True, kernel=True)
    aqmlab.run(small, out=tmp_path / "a")
    aqmlab.run(small, seed=3, out=tmp_path / "b")
    assert cli.invoke(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--live"]) == 2
    assert "expected a scenario" in capsys.readouterr().err
