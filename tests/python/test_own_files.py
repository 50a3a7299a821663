"""Folders that hold other things than results: no command goes on with one, and none of its files is touched."""

import pytest

import aqmlab
from aqmlab import cli
from aqmlab.errors import BadInput
from aqmlab.results import store
from aqmlab.sweep import sweeps

SWEEP = """name = "a sweep"
seeds = 1
scenario = { duration = "2s", traffic = [{ kind = "bulk", flows = 1 }] }
[[grid]]
name = "all"
[[grid.axis]]
name = "rate"
key = "link.rate"
values = ["1mbit", "2mbit"]
"""


@pytest.fixture
def mine(tmp_path):
    """A folder with a file and a folder of somebody's own."""
    (tmp_path / "mine/inner").mkdir(parents=True)
    (tmp_path / "mine/thesis.tex").write_text("years of work")
    (tmp_path / "mine/inner/data").write_text("more of it")
    yield tmp_path / "mine"
    assert (tmp_path / "mine/thesis.tex").read_text() == "years of work"
    assert (tmp_path / "mine/inner/data").read_text() == "more of it"
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {"thesis.tex", "inner"}


@pytest.mark.parametrize("reps", [1, 2])
def test_a_run_is_not_resumed_where_there_is_none(base, mine, reps):
    with pytest.raises(BadInput, match="mine: holds no run; expected the folder of the one to be resumed"):
        aqmlab.run(base, reps=reps, out=mine, resume=True)


def test_runs_are_not_resumed_above_a_folder_that_is_none_of_them(base, tmp_path):
    (tmp_path / "out/rep-1").mkdir(parents=True)
    (tmp_path / "out/rep-1/data").write_text("mine")
    with pytest.raises(BadInput, match="rep-1: holds no run"):
        aqmlab.run(base, reps=2, out=tmp_path / "out", resume=True)
    assert (tmp_path / "out/rep-1/data").read_text() == "mine"


def test_a_folder_of_results_is_not_taken_for_one_of_them(base, tmp_path):
    aqmlab.run(base, out=tmp_path / "results/first")
    with pytest.raises(BadInput, match="results: holds no run"):
        aqmlab.run(base, out=tmp_path / "results", resume=True)
    assert aqmlab.load(tmp_path / "results/first").summary["exchanges"]["completed"] > 0


def test_a_sweep_is_not_resumed_where_there_is_none(mine, tmp_path):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    with pytest.raises(BadInput, match="mine: holds no sweep"):
        sweeps.run(sweeps.read(tmp_path / "sweep.toml"), mine, resume=True)


@pytest.mark.parametrize("place", [".", "..", "../.."])
@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_run_does_not_become_the_folder_it_is_made_in(base, mine, place, resume, monkeypatch, capsys):
    monkeypatch.chdir(mine / "inner")
    assert cli.invoke(["run", str(base), "-o", place, *resume]) == 2
    said = capsys.readouterr().err
    assert said == f"aqmlab: {place}: is the folder that aqmlab works in, or around it; expected a new result folder\n"


def test_what_appears_while_a_run_is_made_stays(mine):
    # Nobody had seen it when the run began.
    with pytest.raises(BadInput, match="mine: holds what is no run"):
        store._make_way(mine)
