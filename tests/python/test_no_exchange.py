"""Runs with few exchanges or none: what is missing, or the same in every run, has its reason beside it."""

import pytest

import aqmlab
from aqmlab import engine, lead, report
from aqmlab.command import terminal
from aqmlab.results.readable import ALIKE
from conftest import NATIVE

SELDOM = """
duration = "5s"
warmup = "1s"
link.rate = "4mbit"
[[traffic]]
kind = "poisson"
arrivals = "0.15hz"
size = "20000b"
"""
NOBODY = "no exchange was completed"

pytestmark = pytest.mark.filterwarnings("ignore:.*less than one in the mean")


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def test_a_run_says_in_how_many_none_was_completed(tmp_path, capsys, undrawn):
    found = aqmlab.run(SELDOM, reps=3, jobs=1, out=tmp_path / "out")
    assert [run.summary["exchanges"]["completed"] == 0 for run in found.runs].count(True) == 1
    terminal.result(terminal.console(), found)
    said = f"–: in 1 of 3 runs {NOBODY}."
    assert said in capsys.readouterr().out.splitlines()
    assert said in report.write(found).read_text(encoding="utf-8")


def test_a_comparison_says_of_whom(tmp_path, capsys, undrawn):
    found = aqmlab.compare(SELDOM, "pfifo", "codel", reps=3, jobs=1, out=tmp_path / "out")
    terminal.comparison(terminal.console(), found)
    said = f"–: {NOBODY} under pfifo (in 1 of 3 runs), codel (in 1 of 3 runs)."
    assert said in capsys.readouterr().out.splitlines()
    assert said in report.write(found).read_text(encoding="utf-8")


def test_nothing_is_said_where_each_run_completes_one(tmp_path, capsys):
    found = aqmlab.run(SELDOM.replace("0.15", "2"), reps=2, jobs=1, out=tmp_path / "out")
    terminal.result(terminal.console(), found)
    assert NOBODY not in capsys.readouterr().out


FEW = SELDOM.replace("0.15", "0.5")


def test_a_share_that_is_the_same_in_every_run_has_no_width(tmp_path, capsys, undrawn):
    found = aqmlab.compare(FEW, "pfifo", "codel", reps=2, jobs=1, out=tmp_path / "out")
    for name in ("share_under_500ms", "completed", "traffic.0.share_under_500ms"):
        one = found.difference("codel", "pfifo", name)
        assert (one.value, one.half_width) == (0.0, None)
    share = found["codel"].estimate("share_under_500ms")
    assert (share.value, share.half_width) == (1.0, None)
    # A delay is a mean over packets: of it the same is no chance.
    assert found.difference("codel", "pfifo", "queue_delay_mean_s").half_width == 0.0
    terminal.comparison(terminal.console(), found)
    shown = capsys.readouterr().out
    against = shown.partition("Against")[2]
    # What is nothing in every run has neither digits nor a width, though a wait is read off bins.
    assert against.split("codel", 1)[1].splitlines()[0].split() == [*"000000", "0.00", "±", "0.41"]
    assert ALIKE in shown and ALIKE in report.write(found).read_text(encoding="utf-8")
    assert lead.of(found).startswith("Exchanges completed within half a second: 100.0 % under each of them.")


def test_where_shares_vary_nothing_is_said_of_those_that_do_not(tmp_path, capsys):
    often = SELDOM.replace("0.15", "40").replace("4mbit", "6mbit")
    found = aqmlab.compare(often, "pfifo limit 200p", "pfifo limit 5p", reps=2, jobs=1, out=tmp_path / "out")
    assert found.difference("pfifo limit 5p", "pfifo limit 200p", "share_under_500ms").half_width > 0
    terminal.comparison(terminal.console(), found)
    assert ALIKE not in capsys.readouterr().out
