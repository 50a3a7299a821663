import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup

import aqmlab
import fake_native
from aqmlab import engine, lead, report
from aqmlab.command import terminal
from aqmlab.errors import BadInput, Doubt
from aqmlab.results import readable
from aqmlab.results.window import CDF_TIMES
from conftest import BASE, ROOT

SPECS = ("pfifo limit 240p", "pi qref 24p", "pi qref 24p ecn", "uncongested")


@pytest.fixture
def found(base, tmp_path):
    return aqmlab.compare(base, *SPECS, out=tmp_path / "out")


def test_all_variants_meet_the_same_demands(found):
    assert [column.name for column in found.columns] == list(SPECS)
    assert found.baseline.name == "pfifo limit 240p"
    assert all(found.are_paired(column, found.baseline) for column in found.columns)
    assert {run.seed for column in found.columns for run in column.result.runs} == {7}
    assert found.uncongested.result.scenario["link"]["rate"] == "1gbit"
    assert found["pi qref 24p ecn"].scenario["tcp"]["ecn"] == "on"
    assert found.load == pytest.approx(0.98)


def test_differences_are_those_of_the_tables(found):
    one, base = found.column("pi qref 24p ecn"), found.baseline
    shares = [(column.result.exchanges["response_time_s"] <= 0.5).mean() for column in (one, base)]
    difference = found.difference(one, base, "share_under_500ms")
    assert difference.value == pytest.approx(shares[0] - shares[1])
    # The stand-in gives ECN a fifth of the timeouts. But the window is too short to tell whether it is settled, so
    # that its parts give no interval.
    assert {column.result.runs[0].settled["answer"] for column in (one, base)} == {"cannot tell"}
    assert difference.value > 0.05 and (difference.basis, difference.half_width) == ("none", None)


@pytest.mark.parametrize("reps", [1, 2])
def test_the_screen_has_the_response_times_of_the_page(base, tmp_path, capsys, monkeypatch, reps):
    run = aqmlab.run(base, reps=reps, out=tmp_path / "run")
    for key in ("p50", "p90", "p99"):
        monkeypatch.setitem(run.summary["exchanges"]["response_time_s"], key, 77.0)
    terminal.result(terminal.console(), run)
    lines = capsys.readouterr().out.splitlines()
    line = lines[next(number for number, one in enumerate(lines) if one.split()[:2] == ["exchanges", "median"]) + 3]
    for key in ("p50", "p90", "p99"):
        assert f" {readable.with_width(run.estimate(key), 's')[0]} " in line
    assert line.count("±") == (6 if reps > 1 else 0) and "77,000" not in line


def test_screen_and_page_say_what_their_intervals_are_of(found, capsys, undrawn):
    terminal.comparison(terminal.console(), found, lead=lead.of(found))
    assert terminal.ONE_BY_ONE.split(";")[0] in capsys.readouterr().out
    page = report.write(found).read_text()
    assert "interval of the one comparison" in page and "allows for all comparisons of its measure at once" in page


def test_where_no_run_is_known_to_be_settled_nothing_is_said_of_intervals_within_one(found, tmp_path, undrawn):
    (run,) = found.columns[0].result.runs
    assert run.settled["answer"] == "cannot tell"
    page = report.write(aqmlab.load(shutil.copytree(run.folder, tmp_path / "one"))).read_text()
    assert "One run: no interval across runs, nor within one that is not known to be settled." in page
    assert "20 parts of its window, wider" not in page and "<small>±" not in page


@pytest.mark.parametrize("own", [(), SPECS[1:2], SPECS[1:3], SPECS[1:]])
def test_a_page_says_of_those_alone_that_they_are_paired_that_are(found, monkeypatch, own, undrawn):
    """Those with users of their own have other demands than the baseline, and intervals of two sets of runs."""
    monkeypatch.setattr(type(found), "are_paired", lambda self, one, other: one.name not in own)
    monkeypatch.setattr(type(found), "unlike", lambda self, one, other: "other demands" * (one.name in own))
    page = BeautifulSoup(report.write(found).read_text(encoding="utf-8"), "html.parser")
    (said,) = [note.text for note in page.find_all("p", class_="note") if "does not hold 0" in note.text]
    assert ("Paired differences: the same users" in said) == (len(own) < len(SPECS) - 1)
    others = f"{', '.join(own)}: under other demands than {SPECS[0]}, so that differences are those of the means. "
    assert (others in said) == bool(own) == ("other demands" in said)
    below = [note.text for note in page.find_all("p", class_="note") if note.text.endswith(f" to {SPECS[0]}.")]
    assert {text.split()[0] for text in below} <= {"Differences" if own else "Paired"}


def test_a_window_condenses_what_the_tables_hold(found):
    column = found.baseline
    (window,), result = column.windows, column.result
    times = result.exchanges["response_time_s"].to_numpy()
    for t in (0.1, 0.5, 2.0):
        assert window.cdf[np.searchsorted(CDF_TIMES, t - 1e-9)] == pytest.approx((times <= t).mean())
    assert window.measure("p90") == pytest.approx(np.quantile(times, 0.9, method="inverted_cdf"))
    summary = result.summary
    offered = sum(summary[way]["offered_packets"] for way in ("forward", "reverse"))
    dropped = sum(summary[way]["dropped_packets"] for way in ("forward", "reverse"))
    assert window.measure("loss_ratio") == pytest.approx(dropped / offered)
    assert window.measure("utilisation") == pytest.approx(
        (summary["forward"]["utilisation"] + summary["reverse"]["utilisation"]) / 2
    )
    assert window.completed.sum() == times.size


def test_several_runs_are_paired_seed_by_seed(base):
    found = aqmlab.compare(base, *SPECS[:2], reps=3)
    interval = found.difference(found.columns[1], found.columns[0], "share_under_1s")
    each = [
        (a.exchanges["response_time_s"] <= 1).mean() - (b.exchanges["response_time_s"] <= 1).mean()
        for a, b in zip(found.columns[1].result.runs, found.columns[0].result.runs, strict=True)
    ]
    assert (interval.n, interval.basis) == (3, "runs")
    assert interval.value == pytest.approx(np.mean(each))


def test_folders_compare_as_the_runs_they_hold(found, tmp_path):
    folders = [column.result.folder for column in found.columns]
    fake_native.calls.clear()
    again = aqmlab.compare(*folders, out=tmp_path / "again")
    assert fake_native.calls == []
    assert again.digest == found.digest
    assert again.uncongested.name == "uncongested"
    for one, other in zip(again.columns, found.columns, strict=True):
        assert one.estimate("p50") == other.estimate("p50")
    assert aqmlab.load(tmp_path / "again").digest == found.digest


def test_a_result_is_not_compared_with_itself(found, tmp_path):
    first, other, *_ = (column.result.folder for column in found.columns)
    (tmp_path / "link").symlink_to(first)
    for same in (first, tmp_path / "link"):
        with pytest.raises(BadInput, match=f"^{same}: is there twice; expected different results"):
            aqmlab.compare(first, other, same)


def test_folders_with_other_demands_are_not_paired(base):
    one, other = aqmlab.run(base), aqmlab.run(base, seed=8, set={"name": "other"})
    found = aqmlab.compare(one, other)
    assert not found.are_paired(*found.columns)
    assert found.difference(*found.columns, "p50").half_width is None


def test_folders_with_other_seeds_are_not_paired_and_the_page_says_why(base, tmp_path, undrawn):
    base.write_text(base.read_text().replace('load = "98mbit"', "users = 18000"))
    short, long = (aqmlab.run(base, reps=reps, out=tmp_path / str(reps)) for reps in (2, 3))
    found = aqmlab.compare(long, short)
    assert found.unlike(*found.columns) == "other seeds" and not found.are_paired(*found.columns)
    said = report.write(found).read_text(encoding="utf-8")
    assert "under other seeds than" in said and "other seeds: not paired" in said and "other demands" not in said


def test_several_scenarios_share_the_first_ones_seed(base, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(BASE.replace('"pfifo"', '"pi"').replace("web users", "over PI").replace("seed = 7", "seed = 9"))
    found = aqmlab.compare(base, str(other))
    assert [column.name for column in found.columns] == ["web users", "over PI"]
    assert found.are_paired(*found.columns)


def test_the_folder_holds_a_file_that_repeats_the_comparison(found, tmp_path):
    again = aqmlab.compare(tmp_path / "out/comparison.toml")
    assert again.digest == found.digest


def test_scenarios_and_results_do_not_mix(base, found):
    with pytest.raises(BadInput, match="expected folders only, or a scenario and disciplines"):
        aqmlab.compare(base, found.columns[0].result.folder)
    with pytest.raises(BadInput, match="two or more"):
        aqmlab.compare(found.columns[0].result.folder)
    with pytest.raises(BadInput, match="a comparison already"):
        aqmlab.compare(found.folder, found.folder)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"reps": 2}, "reps: 2"),
        ({"seed": 3}, "seed: 3"),
        ({"set": {"link.rate": "1mbit"}}, "set: {'link.rate': '1mbit'}"),
    ],
)
def test_results_are_what_they_are(found, given, said):
    folders = [column.result.folder for column in found.columns]
    with pytest.raises(BadInput, match=rf"{said}: expected a scenario, which results are not"):
        aqmlab.compare(*folders, **given)


def test_results_have_no_runs_that_could_be_missing(found, tmp_path):
    folders = [column.result.folder for column in found.columns]
    with pytest.raises(BadInput, match="resume=True: expected a scenario, of which runs can be missing"):
        aqmlab.compare(*folders, out=tmp_path / "out", resume=True)


def test_a_result_of_another_engine_is_paired_with_a_doubt_and_the_page_names_its_version(found, undrawn):
    one, other = (column.result.folder for column in found.columns[:2])
    facts = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps({**facts, "version": "0.0.9", "engine_sha256": "0" * 64}))
    with pytest.warns(Doubt, match=r"^pi qref 24p: is of another engine than pfifo limit 240p and is compared with it"):
        again = aqmlab.compare(one, other)
    assert again.are_paired(*again.columns)
    assert f"aqmlab {engine.version()} and 0.0.9; seed 7" in report.write(again).read_text()


def test_resuming_something_else_is_refused(base, tmp_path, found):
    with pytest.raises(BadInput, match="another comparison"):
        aqmlab.compare(base, *SPECS[:2], out=tmp_path / "out", resume=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/x").write_text("")
    with pytest.raises(BadInput, match="holds no comparison"):
        aqmlab.compare(base, *SPECS, out=tmp_path / "mine", resume=True)


def test_ctrl_c_keeps_what_is_finished_and_resume_completes_it(base, tmp_path, found):
    out = tmp_path / "stopped"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, str(Path(__file__).with_name("with_stand_in.py"))]
    arguments = ["compare", str(base), *SPECS, "-o", str(out), "--jobs", "1"]
    process = subprocess.Popen(
        [*command, "0.08", *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list(out.glob("*/manifest.json")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stdout == ""
    assert "--resume" in stderr and len(stderr.strip().splitlines()) == 1
    finished = {path.parent for path in out.glob("*/manifest.json")}
    assert 1 <= len(finished) < len(SPECS)
    assert not list(out.glob(".*partial*"))
    with pytest.raises(BadInput, match="not finished"):
        aqmlab.load(out)

    subprocess.run(
        [*command, "0", *arguments, "--resume"], env=environment, check=True, capture_output=True, timeout=60
    )
    assert aqmlab.load(out).digest == found.digest


def test_columns_of_another_build_of_the_engine_are_made_anew(base, tmp_path, found, monkeypatch):
    fake_native.calls.clear()
    aqmlab.compare(base, *SPECS, out=tmp_path / "out", resume=True)
    assert fake_native.calls == []
    monkeypatch.setattr(engine, "file_sha256", lambda: "another build")
    again = aqmlab.compare(base, *SPECS, out=tmp_path / "out", resume=True)
    assert {run.manifest["engine_sha256"] for column in again.columns for run in column.result.runs} == {
        "another build"
    }


def test_an_estimate_of_what_is_no_measure_names_those_there_are(base):
    found = aqmlab.compare(base, "pfifo", "pi")
    one, other = found.columns
    for ask in (one.estimate, found["pi"].estimate, lambda name: found.difference(one, other, name)):
        with pytest.raises(BadInput, match=r"'los_ratio': no measure; did you mean loss_ratio\?"):
            ask("los_ratio")


def test_a_result_has_the_estimates_of_its_column(base):
    found = aqmlab.compare(base, "pfifo", "pi", reps=2)
    for column in found.columns:
        assert found[column.name].estimate("p90") == column.estimate("p90")
        assert column.windows is column.result.windows
    assert aqmlab.run(base).estimate("utilisation").value > 0


def test_runs_are_condensed_beside_each_other(base, tmp_path, monkeypatch):
    found = aqmlab.compare(base, "pfifo", "pi ecn", "uncongested", reps=2, out=tmp_path / "out")
    anew = [column.windows for column in aqmlab.load(tmp_path / "out").columns]
    monkeypatch.setattr("aqmlab.results.window.condense", lambda run: pytest.fail("condensed once more"))
    for column, windows in zip(found.columns, anew, strict=True):
        assert [one.cdf.tolist() for one in column.windows] == [one.cdf.tolist() for one in windows]
        assert [one.measure("p99") for one in column.windows] == [one.measure("p99") for one in windows]


def test_what_a_notebook_shows_of_a_comparison_says_what_it_is(base, tmp_path):
    found = aqmlab.compare(base, "pi", "uncongested", reps=2, out=tmp_path / "out")
    pi, reference = found.columns
    assert repr(pi) == f"<Column 'pi': 2 run(s) in {pi.result.folder}>"
    assert repr(reference) == f"<Column 'uncongested', uncongested: 2 run(s) in {reference.result.folder}>"
    assert repr(pi.result.runs[0]) == f"<Run of seed 7 in {pi.result.runs[0].folder}>"
