"""What a sweep says on the terminal: its tables, what failed, and how far its loads are off."""

import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from aqmlab import cli, engine
from aqmlab.command import sweep as sweep_command
from aqmlab.sweep import failing, grid, offered, sweeps
from conftest import NATIVE
from grids import GRID, file, in_process

__all__ = ["file", "in_process"]


def test_heads_say_the_direction_of_a_figure():
    row = {f"{way}_{name}": 0.5 for way in ("forward", "reverse") for _, name, _ in sweep_command.OF_LINK}
    found = SimpleNamespace(rows=[row])
    for way, words in (("forward", "forward"), ("reverse", "in reverse")):
        columns = sweep_command._of_link(found, way)
        assert len(columns) == 3 and all(words in head and name.startswith(f"{way}_") for head, name, _ in columns)
    for head, name, _ in sweep_command.OF_USERS:
        assert ("both ways" in head) == (name == "tcp_goodput_bps")


def test_a_quantile_is_known_to_within_its_bin():
    """Three seeds in one bin do not make a number sure: what is counted exactly may be the same in every run."""
    columns = {
        "exchanges_response_time_s_p50": (0.3, 2**18 / 1024 * 1e-6),
        "forward_queue_delay_p99_s": (0.3, 2**21 / 128 * 1e-7),
        "links_core_reverse_queue_delay_p50_s": (1e-6, 1e-7),
        "probes_one_way_delay_s_p99": (0.3, 2**21 / 1024 * 1e-7),
        "frames_delay_s_p10": (0.3, 2**21 / 1024 * 1e-7),
        "probes_forward_one_way_delay_s_p99": (0.3, 0.0),  # of its table
        "traffic_0_p50": (0.3, 0.0),
        "forward_queue_delay_mean_s": (0.3, 0.0),
    }
    rows = [{"point": "one", **{name: value for name, (value, _) in columns.items()}} for _ in range(3)]
    found = sweeps.Finished(SimpleNamespace(), Path(), {}, rows)
    for name, (value, width) in columns.items():
        mean = found.mean("one", name)
        assert (mean.value, mean.half_width) == pytest.approx((value, width)), name
    assert sweep_command._cell(found, "one", "exchanges_response_time_s_p50", "s").plain == "300.00 ± 0.26"
    rows[0]["exchanges_response_time_s_p50"] = 0.31
    assert found.mean("one", "exchanges_response_time_s_p50").half_width > 0.01, "seeds that differ by more say so"
    alone = sweeps.Finished(SimpleNamespace(), Path(), {}, rows[:1])
    assert alone.mean("one", "exchanges_response_time_s_p50").half_width is None


def row_of(forward: float, reverse: float) -> dict[str, float]:
    used = {"forward": forward, "reverse": reverse}
    return {
        f"{way}_{name}": value
        for way, share in used.items()
        for name, value in (
            ("throughput_bps", 1e7 * share),
            ("queue_mean_packets", 50 * share),
            ("loss_ratio", share / 10),
        )
    }


def test_the_table_of_a_sweep_has_each_direction_in_which_data_flows_the_longer_queue_first():
    assert sweep_command._ways(SimpleNamespace(rows=[row_of(0.8, 0.01)])) == ["forward"]
    assert sweep_command._ways(SimpleNamespace(rows=[row_of(0.8, 0.7), row_of(0.1, 0.3)])) == ["forward", "reverse"]
    assert sweep_command._ways(SimpleNamespace(rows=[row_of(0.5, 0.9)])) == ["reverse", "forward"]
    assert sweep_command._ways(SimpleNamespace(rows=[])) == []


def test_a_folder_of_a_sweep_says_what_it_is_and_what_to_do_instead(file, tmp_path, capsys):
    sweeps.run(sweeps.read(file, seeds=1), tmp_path / "out")
    for verb in ("report", "figures"):
        assert cli.invoke([verb, str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"aqmlab: {tmp_path / 'out'}: is a sweep, which keeps no tables for a page or figures; ")
        assert f"in {tmp_path / 'out/runs.parquet'}, a row a run" in said and said.count("\n") == 1
        assert said.endswith(
            "expected a result or comparison folder, such as aqmlab compare makes of one of its points\n"
        )


def test_the_verb(file, tmp_path, capsys, monkeypatch):
    assert cli.invoke(["sweep", str(file), "-o", str(tmp_path / "a")]) == 0
    said = capsys.readouterr().out
    assert "used in reverse" in " ".join(said.split()) or "The link, in reverse" in said, "web users load both ways"
    assert "web/pi/98mbit" in said and "±" in said and "MiB of memory a worker" in said
    assert str(tmp_path / "a/runs.parquet") in said
    assert cli.invoke(["sweep", str(file), "-o", str(tmp_path / "a"), "--resume", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["runs_kept"] == 12 and len(answer["rows"]) == 12
    assert cli.invoke(["sweep", str(file), "-o", str(tmp_path / "b"), "--set", "duration=20s", "--seeds", "1"]) == 0
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert cli.invoke(["sweep", str(file)]) == 0
    assert (tmp_path / "results/web-users-2/runs.parquet").exists()
    assert cli.invoke(["sweep", str(file), "--resume"]) == 0
    assert not (tmp_path / "results/web-users-3").exists()


def test_a_failed_self_check_is_said_once_for_what_failed_and_marks_its_points(file, tmp_path, capsys, monkeypatch):
    from aqmlab.runs import calibration

    monkeypatch.setattr(calibration, "GOAL", 1.0)
    monkeypatch.setattr("aqmlab.checks.LOAD_TOLERANCE", 1e-9)
    assert cli.invoke(["sweep", str(file), "-o", str(tmp_path / "out")]) == 1
    out, said = capsys.readouterr()
    assert said.count("\n") == 2
    for load in ("90mbit", "98mbit"):
        failed = "; ".join(f"web/{aqm}/{load}, seed 1" for aqm in ("pfifo", "pi", "uncongested"))
        assert f"self-check failed: {failed}: the offered load" in said
    assert re.search(r"web/pi/98mbit !  ", out) and "6 runs of the points with ! failed a self-check" in out


def failing_rows(*failed: tuple[str, int, str]) -> list[dict[str, Any]]:
    why = {(point, seed): text for point, seed, text in failed}
    return [
        {
            "grid": point.grid,
            "point": point.name,
            "seed": seed,
            "self_checks_hold": (point.name, seed) not in why,
            "self_checks_failed": why.get((point.name, seed)),
        }
        for point in points_of(GRID)
        for seed in (1, 2)
    ]


def points_of(text: str) -> list[grid.Point]:
    return [point for one in grid.read(tomllib.loads(text) | {"seeds": 2}, "grid.toml") for point in one.points]


def test_what_failed_is_named_by_what_its_points_have_in_common():
    def said(*failed: tuple[str, int, str]) -> list[str]:
        return failing.said(failing_rows(*failed), points_of(GRID))

    assert said() == []
    one, two = ("web/pi/90mbit", 1, "late"), ("web/pi/90mbit", 2, "late")
    assert said(one) == ["web/pi/90mbit, seed 1: late"]
    assert said(one, two) == ["all 2 runs of web/pi/90mbit: late"]
    other = ("web/pi/98mbit", 1, "late"), ("web/pi/98mbit", 2, "late")
    assert said(one, two, *other) == ["all 4 runs at pi: late"]
    assert said(one, two, other[1]) == ["all 2 runs of web/pi/90mbit; web/pi/98mbit, seed 2: late"]
    assert said(one, ("web/pi/90mbit", 2, "lost")) == [
        "web/pi/90mbit, seed 1: late",
        "web/pi/90mbit, seed 2: lost",
    ]
    every = [(point.name, seed, "late") for point in points_of(GRID) for seed in (1, 2)]
    assert said(*every) == ["all 12 runs: late"]
    (line,) = said(*[each for each in every if each[:2] != ("web/pfifo/90mbit", 1)])
    assert line.startswith("web/pfifo/90mbit, seed 2; all 2 runs of web/pfifo/98mbit; ")
    assert line.endswith("; and 2 more runs of 1 more point: late")
    assert failing.points(failing_rows(one, other[1])) == {"web/pi/90mbit": 1, "web/pi/98mbit": 1}


def test_findings_of_runs_are_said_by_what_their_points_have_in_common():
    asked = points_of(GRID)
    lost = "forward, {} of 60 lost packets were lost at pi's limit of 100p, and none were signalled by its law"
    rows = [
        {**row, "findings": lost.format(60 - row["seed"]) if "/pi/" in row["point"] else None} for row in failing_rows()
    ]
    assert failing.findings(rows, asked) == [f"all 4 runs at pi, the first: {lost.format(59)}"]
    rows[0]["findings"] = "bulk: windows of 16 kB limit its 2 flows"
    first, second = failing.findings(rows, asked)
    assert first.startswith(f"{rows[0]['point']}, seed 1: bulk") and second.startswith("all 4 runs at pi")
    assert failing.findings(failing_rows(), asked) == [], "as of a sweep of an older version"


def test_a_sweep_says_that_a_discipline_was_a_drop_tail_queue(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    path = tmp_path / "short.toml"
    path.write_text(SHORT)
    assert cli.invoke(["sweep", str(path), "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"short/pie, seed 1: forward, [\d,]+ of [\d,]+ lost packets were lost at pie's limit of 5p", said)
    assert "it was a drop-tail queue." in said and "short/pfifo, seed" not in said
    found = pl.read_parquet(tmp_path / "out" / "runs.parquet")
    assert [row["findings"] is None for row in found.to_dicts()] == [True, False]


SHORT = """
name = "short"
seeds = [1]
[scenario]
duration = "6s"
warmup = "1s"
link.rate = "20mbit"
[[scenario.traffic]]
kind = "bulk"
flows = 10
[[grid]]
name = "short"
[[grid.axis]]
name = "aqm"
value = [
    { name = "pfifo", link.qdisc = { kind = "pfifo", limit = "5p" } },
    { name = "pie", link.qdisc = { kind = "pie", limit = "5p" } },
]
"""


def load_row(point: str, seed: int, offered_bps: float | None, error: float | None, demands: str) -> dict[str, Any]:
    return {
        "grid": "web",
        "point": point,
        "seed": seed,
        "calibration_seed": 1,
        "calibration_window_error": error,
        "asked_load_bps": 20e6,
        "offered_load_bps": offered_bps,
        "demand_digest": demands,
    }


def test_a_sweep_says_how_far_its_loads_are_off():
    near = [load_row("web/a", 1, 19.9e6, 0.004, "A"), load_row("web/a", 2, None, 0.004, "A")]
    assert offered.off(near) is None and offered.off_said(None) == "" and offered.off([]) is None
    none = [{**row, "calibration_seed": None, "asked_load_bps": None, "offered_load_bps": None} for row in near]
    assert offered.off(none) is None
    rows = [
        *(load_row("web/a", seed, bps, 0.155, "A") for seed, bps in ((1, 19.9e6), (2, None), (3, None))),
        *(load_row("web/b", seed, bps, 0.54, "B") for seed, bps in ((1, 20.1e6), (2, None), (3, None))),
    ]
    assert offered.off_said(offered.off(rows)) == (
        "Offered load: 99.5 to 100.5 % of what was asked for in the 2 runs where it is known (farthest off: web/a, "
        "seed 1); in 4 runs of seeds that were not calibrated it may be off by about ± 54.0 % or more (widest: web/b). "
        "Differences between points of other demands, as of another load or round trip, are of offered load too. "
        'A longer duration helps, or calibrate = "over-seeds" or "each-seed" in [[grid]].'
    )
    alone = offered.off([row for row in rows if row["point"] == "web/a"])
    assert "Runs of a point differ in offered load too, which widens the intervals" in offered.off_said(alone)
    over = offered.off_said(offered.off(rows, {"web"}))
    assert over.endswith('A longer duration helps, or calibrate = "each-seed" in [[grid]].')
    over = offered.off_said(offered.off([row for row in rows if row["point"] == "web/a"], {"web"}))
    assert "which widens the intervals. A longer" in over
    # As the reference on the uncongested link tells.
    known = [{**row, "offered_load_bps": 20e6 if row["seed"] < 3 else 25.1e6} for row in rows]
    said = offered.off_said(offered.off(known))
    assert "Offered load: 100.0 to 125.5 % of what was asked for in all 6 runs (farthest off: web/a, seed 3)." in said
    # With a population for each seed nothing is off but what a self-check says.
    each = [{**row, "calibration_seed": row["seed"], "offered_load_bps": 20e6} for row in rows]
    assert offered.off(each) is None
    missed = offered.off_said(offered.off([{**each[0], "offered_load_bps": 19e6}]))
    assert missed.endswith("A longer duration helps.") and "95.0 % of what was asked for in all 1 run (" in missed


def test_what_is_said_of_loads_stands_below_the_table_and_in_the_facts(file, tmp_path, capsys):
    file.write_text(GRID.replace('    { name = "uncongested", uncongested = true },\n', ""))
    assert cli.invoke(["sweep", str(file), "-o", str(tmp_path / "out")]) == 0
    facts = json.loads((tmp_path / "out/sweep.json").read_text())["offered"]
    assert facts["known"] == facts["unknown"] == 4
    rows = pl.read_parquet(tmp_path / "out/runs.parquet")
    # Of the stand-in's windows the parts resemble each other too much.
    assert facts["window_error"] is None and rows["calibration_window_error"].null_count() == 8
    assert rows["asked_load_bps"].unique().sort().to_list() == [90e6, 98e6]
    line = offered.off_said(facts)
    assert "in 4 runs of seeds that were not calibrated it may be off by an amount that is not known. " in line
    assert line in capsys.readouterr().out
    assert cli.invoke(["sweep", str(file), "-o", str(tmp_path / "out"), "--resume"]) == 0
    assert line in capsys.readouterr().out, "wherever the table is shown"
