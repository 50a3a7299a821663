"""A sweep that is stopped keeps what is finished, and says how it goes on."""

import json

import polars as pl
import pytest

from aqmlab import cli
from aqmlab.command import sweep as sweep_command
from aqmlab.errors import BadInput, Interrupted
from aqmlab.sweep import offered, sweeps, table
from grids import file, in_process, stopped_after

__all__ = ["file", "in_process"]


def test_interrupted_what_is_finished_stays_and_resume_goes_on(file, tmp_path, monkeypatch):
    whole = sweeps.run(sweeps.read(file), tmp_path / "whole")
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path / "other"))
    said = r"stopped: 5 of 12 runs are finished in .*; the same call with resume=True goes on"
    with stopped_after(5), pytest.raises(Interrupted, match=said):
        sweeps.run(sweeps.read(file), tmp_path / "out")
    rows = pl.read_parquet(tmp_path / "out/runs.parquet")
    assert rows.height == 5 and not json.loads((tmp_path / "out/sweep.json").read_text())["complete"]
    with pytest.raises(BadInput, match="the result folder exists"):
        sweeps.run(sweeps.read(file), tmp_path / "out")
    with pytest.raises(BadInput, match="holds a sweep of other runs"):
        sweeps.run(sweeps.read(file, seeds=3), tmp_path / "out", resume=True)
    resumed = sweeps.run(sweeps.read(file), tmp_path / "out", resume=True)
    assert resumed.facts["runs_kept"] == rows.height
    assert [row["digest"] for row in resumed.rows] == [row["digest"] for row in whole.rows]


def test_what_was_to_be_made_anew_goes_on_without_that(file, tmp_path):
    sweeps.run(sweeps.read(file), tmp_path / "first")
    said = (
        "the same call with resume=True in place of fresh=True goes on, with runs from before where none was made anew "
        "yet$"
    )
    with stopped_after(5), pytest.raises(Interrupted, match=said):
        sweeps.run(sweeps.read(file), tmp_path / "out", fresh=True)
    assert sweeps.run(sweeps.read(file), tmp_path / "out", resume=True).facts["runs_made"] == 0


def test_ctrl_c_when_runs_are_over_says_that_they_are_kept(file, tmp_path, capsys, monkeypatch):
    def stopping(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep_command, "show", stopping)
    assert cli.invoke(["sweep", str(file), "-o", str(tmp_path / "out")]) == 130
    said = f"stopped: 12 runs are finished in {tmp_path / 'out'}; the same command with --resume goes on"
    assert said in capsys.readouterr().err
    assert cli.invoke(["sweep", str(file), "-o", str(tmp_path / "anew"), "--fresh"]) == 130
    assert "the same command with --resume in place of --fresh goes on, with runs from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (sweeps, "together", "stopped before the first run"),
        (table.Table, "write", "stopped: 12 of 12 runs are finished"),
        (offered, "off", "stopped: all runs are finished"),
    ],
)
def test_ctrl_c_before_and_after_the_runs_says_how_they_go_on(file, tmp_path, monkeypatch, owner, name, said):
    def stopping(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, stopping)
    monkeypatch.setattr(table, "WRITE_EVERY_S", 3600.0)  # no table is written before the last run is over
    with pytest.raises(Interrupted, match=f"{said}.*; the same call with resume=True goes on"):
        sweeps.run(sweeps.read(file), tmp_path / "out")
