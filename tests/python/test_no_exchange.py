"""Where one of several runs completes no exchange, a dash has its reason beside it."""

import pytest

import aqmlab
from aqmlab import engine, report
from aqmlab.command import terminal
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


def test_a_run_says_in_how_many_none_was_completed(tmp_path, capsys):
    found = aqmlab.run(SELDOM, reps=3, jobs=1, out=tmp_path / "out")
    assert [run.summary["exchanges"]["completed"] == 0 for run in found.runs].count(True) == 1
    terminal.result(terminal.console(), found)
    said = f"–: in 1 of 3 runs {NOBODY}."
    assert said in capsys.readouterr().out.splitlines()
    assert said in report.write(found).read_text(encoding="utf-8")


def test_a_comparison_says_of_whom(tmp_path, capsys):
    found = aqmlab.compare(SELDOM, "pfifo", "codel", reps=3, jobs=1, out=tmp_path / "out")
    terminal.comparison(terminal.console(), found)
    said = f"–: {NOBODY} under pfifo (in 1 of 3 runs), codel (in 1 of 3 runs)."
    assert said in capsys.readouterr().out.splitlines()
    assert said in report.write(found).read_text(encoding="utf-8")


def test_nothing_is_said_where_each_run_completes_one(tmp_path, capsys):
    found = aqmlab.run(SELDOM.replace("0.15", "2"), reps=2, jobs=1, out=tmp_path / "out")
    terminal.result(terminal.console(), found)
    assert NOBODY not in capsys.readouterr().out
