"""A sweep from a file to its rows, on the stand-in engine and in this process."""

import contextlib
import itertools
import json
import re
import resource
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import aqmlab
import fake_native
from aqmlab import checks, cli, sweep
from aqmlab.errors import AqmlabError, BadInput, Interrupted
from aqmlab.progress import NOTHING, Foreseen, Silent, Size
from aqmlab.results import store
from aqmlab.sweep import axes, condensed, offered, plan, sweeps, table
from aqmlab.sweep.kept import Kept
from grids import GRID, calibrating, file, in_process, planned, runs_made

__all__ = ["file", "in_process"]


def test_a_row_a_run(file, tmp_path):
    found = sweeps.run(sweeps.read(file), tmp_path / "out")
    assert runs_made() == 12
    rows = pl.read_parquet(found.table)
    assert rows.height == 12 and rows["point"].n_unique() == 6
    assert rows.columns[:6] == ["grid", "point", "aqm", "load", "load_number", "seed"]
    assert rows["load_number"].unique().sort().to_list() == [90e6, 98e6]
    row = rows.row(0, named=True)
    assert row["exchanges_completed"] > 0 and row["forward_utilisation"] > 0.8 and row["peak_rss_bytes"] > 0
    assert row["tcp_jain_index"] is None and "engine_wall_s" not in row
    facts = json.loads((tmp_path / "out/sweep.json").read_text())
    assert facts["complete"] and facts["runs_made"] == 12 and len(facts["plan"]) == 12
    assert (tmp_path / "out/sweep.toml").read_text() == GRID


def test_a_load_is_calibrated_once_for_all_points_that_ask_for_it():
    tasks = planned()
    # One population for each load: discipline, seed and the uncongested reference share it.
    users = {task.point.rpartition("/")[2]: set() for task in tasks}
    for task in tasks:
        (block,) = tomllib.loads(task.toml)["traffic"]
        users[task.point.rpartition("/")[2]].add(block["users"])
    assert all(len(found) == 1 for found in users.values()) and users["90mbit"] != users["98mbit"]
    first = calibrating()
    planned()
    assert calibrating() == first, "what was found is kept"
    reference = next(task for task in tasks if "uncongested" in task.point)
    assert tomllib.loads(reference.toml)["link"]["rate"] == "1gbit"


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_table_that_the_disk_has_no_room_for_fails_as_other_files_do(tmp_path):
    found = pl.DataFrame({"seed": range(10_000)})
    table.save(found, tmp_path / "runs.parquet")
    whole = (tmp_path / "runs.parquet").read_bytes()
    with files_of_at_most(1000), pytest.raises(OSError, match="File too large"):
        table.save(found.head(5000), tmp_path / "runs.parquet")
    assert (tmp_path / "runs.parquet").read_bytes() == whole and len(list(tmp_path.iterdir())) == 1


def test_a_table_that_takes_long_to_write_is_written_seldom(file, tmp_path, monkeypatch):
    writes, now = [], itertools.count(0.0)  # a second later at each look

    def save(rows: pl.DataFrame, path: Path) -> None:
        writes.append(rows.height)

    monkeypatch.setattr(table, "save", save)
    monkeypatch.setattr(table, "time", SimpleNamespace(monotonic=lambda: next(now)))
    monkeypatch.setattr(table, "WRITE_EVERY_S", 0.0)
    monkeypatch.setattr(table, "WRITING", 1e-5)
    sweeps.run(sweeps.read(file), tmp_path / "out")
    assert writes == [1, 12]


def test_rows_of_another_engine_do_not_stay_beside_a_plan_of_this_one(file, tmp_path, monkeypatch):
    out = tmp_path / "out"
    sweeps.run(sweeps.read(file), out)
    facts = json.loads((out / "sweep.json").read_text())

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeps.making, "run", stopped)
    with pytest.raises(Interrupted):
        sweeps.run(sweeps.read(file), out, resume=True)
    assert pl.read_parquet(out / "runs.parquet").height == 12
    (out / "sweep.json").write_text(json.dumps({**facts, "engine_sha256": "another"}))
    with pytest.raises(Interrupted):
        sweeps.run(sweeps.read(file), out, resume=True)
    assert not (out / "runs.parquet").exists()


def test_a_seed_that_is_set_is_the_first_where_their_number_is_given_and_refused_elsewhere(file):
    assert sweeps.read(file, changes={"seed": 7}).seeds == {"web": (7, 8)}
    assert sweeps.read(file, seeds=3, changes={"seed": 7}).seeds == {"web": (7, 8, 9)}
    with pytest.raises(BadInput, match=r"grid web: seed: 'few': expected a whole number, 0 or more"):
        sweeps.read(file, changes={"seed": "few"})
    file.write_text(GRID.replace("seeds = 2", "seeds = [1, 2]"))
    with pytest.raises(BadInput, match=r'changes=\{"seed": 7\}: .*grid.toml: does nothing beside the seeds \[1, 2\];'):
        sweeps.read(file, changes={"seed": 7})
    assert sweeps.read(file, seeds=2, changes={"seed": 7}).seeds == {"web": (7, 8)}
    file.write_text(GRID.replace('name = "web"', 'name = "web"\nset = { seed = 7 }\nseeds = [3]', 1))
    with pytest.raises(BadInput, match=r"grid.toml: grid.0.set.seed: 7: does nothing beside the seeds \[3\]; expected"):
        sweeps.read(file)


def test_a_load_is_calibrated_with_each_seed_where_the_grid_says_so():
    tasks = planned(GRID.replace('name = "web"\n[[grid.axis]]', 'name = "web"\ncalibrate = "each-seed"\n[[grid.axis]]'))
    assert len(tasks) == 12
    calibrated: dict[tuple[str, int], set[str]] = {}
    for task in tasks:
        (note,) = task.calibrations
        assert note["seed"] == task.seed
        calibrated.setdefault((task.point.rpartition("/")[2], task.seed), set()).add(note["key"])
    # Still shared between disciplines: two loads under two seeds.
    assert all(len(keys) == 1 for keys in calibrated.values()) and len(set().union(*calibrated.values())) == 4
    (over,) = {
        (note["seed"], note["users"], tuple(note["confirmed_by_seed_bps"]))
        for task in planned(
            GRID.replace('name = "web"\n[[grid.axis]]', 'name = "web"\ncalibrate = "over-seeds"\n[[grid.axis]]')
        )
        for note in task.calibrations
        if "98mbit" in task.point
    }
    assert over[0] == 1 and over[2] == ("1", "2")
    with pytest.raises(BadInput, match="calibrate: 'twice': expected one of once, over-seeds, each-seed"):
        planned(GRID.replace('name = "web"\n[[grid.axis]]', 'name = "web"\ncalibrate = "twice"\n[[grid.axis]]'))


def test_what_was_made_once_is_not_made_again(file, tmp_path):
    first = sweeps.run(sweeps.read(file), tmp_path / "a")
    made = runs_made()
    second = sweeps.run(sweeps.read(file), tmp_path / "b")
    assert runs_made() == made and second.facts["runs_kept"] == 12
    assert [row["digest"] for row in second.rows] == [row["digest"] for row in first.rows]
    more = sweeps.run(sweeps.read(file, seeds=3), tmp_path / "c")
    assert more.facts["runs_made"] == 6
    sweeps.run(sweeps.read(file), tmp_path / "d", fresh=True)
    assert runs_made() == made + 6 + 12


def test_fresh_calibrates_anew_too_and_each_load_once(file, tmp_path):
    sweeps.run(sweeps.read(file), tmp_path / "a")
    first = calibrating()
    sweeps.run(sweeps.read(file), tmp_path / "b", fresh=True)
    assert calibrating() == 2 * first
    runs = sweeps.read(file).runs
    both = plan.together([runs, runs], monitor=Foreseen(Silent()), fresh=True)  # as two studies of one command
    assert calibrating() == 3 * first and both[0] == both[1]


HOME = """
seeds = 1
[scenario]
duration = "12s"
warmup = "2s"
link = { rate = "10mbit", reverse_rate = "2mbit" }
path.rtt = "20ms"
[[scenario.traffic]]
kind = "web"
users = 100
direction = "forward"
[[scenario.traffic]]
kind = "bulk"
flows = 2
direction = "reverse"
application = "backups"
[[scenario.traffic]]
kind = "probe"
flows = 2
direction = "both"
application = "calls"
[[scenario.traffic]]
kind = "probe"
flows = 1
interval = "33ms"
direction = "both"
application = "games"
[[grid]]
[[grid.axis]]
name = "aqm"
key = "link.qdisc.kind"
values = ["pfifo", "fq_codel"]
"""


def test_a_row_has_the_numbers_of_applications_and_blocks_as_a_comparison_has_them(compiled, tmp_path):
    (tmp_path / "home.toml").write_text(HOME)
    found = sweeps.run(sweeps.read(tmp_path / "home.toml"), tmp_path / "out")
    tree = tomllib.loads(HOME)["scenario"]
    compared = aqmlab.compare(tree, "pfifo", "fq_codel", set={"seed": found.rows[0]["seed"]})
    names = {
        f"{family}_{name}".replace(".", "_"): f"{family}.{name}"
        for family, names in {
            "applications.calls": ("mos_mean", "mos_least", "satisfied"),
            "applications.games": ("p99_mean_s", "p99_most_s"),
            "applications.backups": ("goodput_bps", "goodput_flow_bps"),
            "traffic.0": ("completed", "p50", "p90", "share_under_500ms"),
            "traffic.1": ("goodput_flow_bps",),
            "probes.forward": ("loss_ratio", "one_way_delay_s.p50", "one_way_delay_s.p99"),
            "probes.reverse": ("loss_ratio", "one_way_delay_s.p50", "one_way_delay_s.p99"),
        }.items()
        for name in names
    }
    table = pl.read_parquet(found.table)
    for row in table.iter_rows(named=True):
        column = compared.column(row["aqm"])
        assert {ours: row[ours] for ours in names} == {
            ours: column.estimate(theirs).value for ours, theirs in names.items()
        }
    begun = ("applications_", "traffic_", "probes_forward_", "probes_reverse_")
    assert {name for name in table.columns if name.startswith(begun)} == names.keys()


def test_tables_are_not_read_for_applications_that_nobody_named(compiled, tmp_path, monkeypatch):
    def unwanted(*_: Any) -> None:
        raise AssertionError("the tables are read")

    monkeypatch.setattr(condensed, "Numbers", unwanted)
    (tmp_path / "home.toml").write_text(re.sub(r"application = .*\n", "", HOME))
    found = sweeps.run(sweeps.read(tmp_path / "home.toml"), tmp_path / "out")
    assert not [name for name in found.rows[0] if name.startswith(("applications_", "traffic_"))]


def test_a_sweep_of_an_older_version_is_resumed(file, tmp_path):
    whole = sweeps.run(sweeps.read(file, seeds=1), tmp_path / "out")
    older = json.loads((tmp_path / "out/sweep.json").read_text())
    del older["offered"]
    (tmp_path / "out/sweep.json").write_text(json.dumps(older))
    frame = pl.read_parquet(whole.table).drop("asked_load_bps")
    frame.write_parquet(whole.table)
    for entry in Kept().folder.iterdir():
        facts = json.loads((entry / "run.json").read_text())
        del facts["facts"]["of_parts"]
        (entry / "run.json").write_text(json.dumps(facts | {"format": condensed.FORMAT - 1}))
    again = sweeps.run(sweeps.read(file, seeds=1), tmp_path / "out", resume=True)
    assert [row["digest"] for row in again.rows] == [row["digest"] for row in whole.rows]
    assert again.facts["runs_made"] == 6 and "asked_load_bps" in pl.read_parquet(again.table).columns


@dataclass
class Heard(Silent):
    """Adds up what is expected and what begins."""

    runs: int = 0
    size: Size = NOTHING
    begun: list[Size] = field(default_factory=list)
    at_first: tuple[int, Size] | None = None
    """What was expected when the first run began."""

    def expect(self, runs: int, size: Size) -> None:
        self.runs += runs
        self.size += size

    def begin(self, label: str, size: Size) -> int:
        self.at_first = self.at_first or (self.runs, self.size)
        self.begun.append(size)
        return 0


def test_calibrations_and_the_runs_after_them_are_expected_from_the_beginning(file, tmp_path):
    sweeps.run(sweeps.read(file), tmp_path / "a", monitor=(heard := Heard()))
    runs, size = heard.at_first
    assert runs == 2 * 5 + 12, "a pilot, three points and a confirmation of each load, and the runs"
    more = len(heard.begun) - runs  # confirmations that had to be made again, or were none
    assert abs(more) <= 4
    assert heard.runs == len(heard.begun), "what does not come is not expected any more"
    assert heard.size.cost == pytest.approx(sum(size.cost for size in heard.begun))
    assert size.cost == pytest.approx(heard.size.cost, rel=0.15)
    # With seeds more, the calibrations and half of the runs are there.
    sweeps.run(sweeps.read(file, seeds=4), tmp_path / "b", monitor=(heard := Heard()))
    assert heard.at_first == (12, heard.size) and len(heard.begun) == 12


def test_runs_that_are_kept_are_not_foreseen(file, tmp_path):
    text = GRID.replace('values = ["90mbit", "98mbit"]', 'values = ["90mbit"]')
    (tmp_path / "first.toml").write_text(text)
    sweeps.run(sweeps.read(tmp_path / "first.toml"), tmp_path / "a")
    sweeps.run(sweeps.read(file), tmp_path / "b", monitor=(heard := Heard()))
    assert heard.at_first[0] == 5 + 6


def test_grids_that_need_the_same_run_share_it(file, tmp_path):
    text = (
        GRID
        + """
[[grid]]
name = "drop-tail"
[[grid.axis]]
name = "load"
key = "traffic.0.load"
values = ["90mbit", "98mbit"]
"""
    )
    # The stand-in's digest, unlike the engine's, covers the scenario's name.
    file.write_text(text.replace("[scenario]", '[scenario]\nname = "same"'))
    found = sweeps.run(sweeps.read(file), tmp_path / "out")
    assert (found.facts["runs"], len(found.rows), runs_made()) == (12, 16, 12)
    digests = {(row["grid"], row["load"], row["seed"]): row["digest"] for row in found.rows if row.get("aqm") != "pi"}
    assert digests["drop-tail", "98mbit", 2] in {
        row["digest"] for row in found.rows if row["point"] == "web/pfifo/98mbit"
    }


def test_points_that_are_the_same_run_are_refused_unless_that_is_meant():
    # The uncongested reference has no queue whose mode could matter.
    modes = """
[[grid.axis]]
name = "mode"
key = "link.qdisc.mode"
values = ["packet", "byte"]
"""
    text = GRID.replace('    { name = "pfifo", label = "drop-tail" },\n', "")
    text = text.replace("[scenario]", '[scenario]\nlink.qdisc.kind = "pi"') + modes
    said = r"grid.toml: grid web: web/uncongested/90mbit/packet and web/.*/byte are the same run; expected .*skip"
    with pytest.raises(BadInput, match=said):
        planned(text)
    assert fake_native.calls == []
    assert len(planned(text.replace('name = "web"', 'name = "web"\nsame = true', 1))) == 16
    assert len(planned(text + '[[grid.skip]]\naqm = "uncongested"\nmode = "byte"\n')) == 12
    with pytest.raises(BadInput, match="same: 1: expected true or false"):
        planned(GRID.replace('name = "web"', 'name = "web"\nsame = 1', 1))


def test_what_is_said_of_a_load_is_the_points_own(file, tmp_path, monkeypatch):
    """A run that somebody made with a population of their own serves whoever comes to it by a load, and back."""
    at = next(task for task in planned() if task.point == "web/pfifo/98mbit" and task.seed == 1)
    (users,) = (block["users"] for block in tomllib.loads(at.toml)["traffic"])
    given = GRID.replace('load = "98mbit"', f"users = {users}", 1).replace("traffic.0.load", "warmup")
    given = given.replace('["90mbit", "98mbit"]', '["10s"]').replace("seeds = 2", "seeds = 1")
    named = [text.replace("[scenario]", '[scenario]\nname = "same"') for text in (given, GRID)]  # as above
    file.write_text(named[0])
    by_users = sweeps.run(sweeps.read(file), tmp_path / "a")
    assert all(row["calibration_seed"] is None and row["offered_load_bps"] is None for row in by_users.rows)
    file.write_text(named[1])
    by_load = sweeps.run(sweeps.read(file), tmp_path / "b")
    assert by_load.facts["runs_kept"] == 3
    (row,) = (row for row in by_load.rows if (row["point"], row["seed"]) == (at.point, 1))
    assert row["calibration_seed"] == 1
    # A run that was kept is judged by what is asked of it today.
    monkeypatch.setattr(checks, "LOAD_TOLERANCE", 1e-9)
    again = sweeps.run(sweeps.read(file), tmp_path / "c")
    assert again.facts["runs_made"] == 0
    # Only the seed of the calibration is known to offer the load or not to.
    assert [checks.LOAD in (row["self_checks_failed"] or "") for row in again.rows] == [
        row["seed"] == row["calibration_seed"] for row in again.rows
    ]
    file.write_text(named[0])
    assert all(row["self_checks_hold"] for row in sweeps.run(sweeps.read(file), tmp_path / "d").rows)


def test_what_the_users_of_each_seed_offer_is_said_where_it_is_known(file, tmp_path):
    found = sweeps.run(sweeps.read(file), tmp_path / "out")
    rows = pl.read_parquet(found.table)
    assert rows["calibration_seed"].unique().to_list() == [1] and rows["offered_load_bps"].null_count() == 0
    for load in (90e6, 98e6):
        of_seed = {
            seed: rows.filter((pl.col("load_number") == load) & (pl.col("seed") == seed))["offered_load_bps"].unique()
            for seed in (1, 2)
        }
        # All points of a seed have the same demands: the first's are calibrated to the load, the second's are not.
        assert of_seed[1].len() == of_seed[2].len() == 1
        assert of_seed[1][0] == pytest.approx(load, rel=checks.LOAD_TOLERANCE)
        # What the link of the reference carried.
        reference = rows.filter(
            (pl.col("aqm") == "uncongested") & (pl.col("load_number") == load) & (pl.col("seed") == 2)
        ).row(0, named=True)
        carried = (reference["forward_throughput_bps"] + reference["reverse_throughput_bps"]) / 2
        assert of_seed[2][0] == carried != of_seed[1][0]
    alone = sweeps.run(sweeps.read(without_reference(file)), tmp_path / "alone")
    assert [row["offered_load_bps"] is None for row in alone.rows] == [row["seed"] == 2 for row in alone.rows]


def test_a_study_says_which_populations_it_had_and_what_the_seeds_offer():
    tasks = planned()
    found = dict(sweep.run(tasks))
    runs = [(found[task.key].as_asked(task.calibrations), "uncongested" in task.point) for task in tasks]
    facts = offered.of_runs(runs)
    assert [population["load_bps"] for population in facts["populations"]] == [90e6, 98e6]
    for population in facts["populations"]:
        assert population["seed"] == 1 and population["offered_bps"].keys() == {"1", "2"}
        assert population["offered_bps"]["1"] == population["confirmed_bps"]
    known = [it["window_error"] for it in facts["populations"] if it["window_error"] is not None]
    assert facts["window_error"] == max(known, default=None)
    alone = offered.of_runs([(run, False) for run, uncongested in runs if not uncongested])
    assert [population["offered_bps"].keys() for population in alone["populations"]] == [{"1"}, {"1"}]
    assert offered.of_runs([(run.as_asked([]), False) for run, _ in runs]) is None


def test_a_set_of_runs_says_what_was_offered_as_far_as_it_is_known():
    tasks = planned()
    found = dict(sweep.run(tasks))
    runs = [(found[task.key].as_asked(task.calibrations), "uncongested" in task.point) for task in tasks]
    both, first = offered.Offered(), offered.Offered()
    for run, uncongested in runs:
        both.add(run, uncongested)
        first.add(run, False)
    asked = [run for run, uncongested in runs if not uncongested]
    shares = both.shares(asked)
    assert (shares.known, shares.of) == (len(asked), len(asked))
    # The first seed was calibrated; the other offers what it does, which only the uncongested link tells.
    of_first = first.shares(asked)
    assert (of_first.known, of_first.of) == (sum(run.seed == 1 for run in asked), len(asked))
    assert shares.least <= of_first.least <= of_first.most <= shares.most and shares.least < shares.most
    assert of_first.least == pytest.approx(1, rel=checks.LOAD_TOLERANCE)
    assert both.shares([run.as_asked([]) for run in asked]) is None and both.shares([]) is None
    assert offered.said(None) == ""
    assert offered.said(offered.Shares(None, None, 0, 4).as_dict()) == "not known of these 4 runs"
    some = offered.Shares(0.9917, 1.0143, 10, 20).as_dict()
    assert offered.said(some) == "99.2 to 101.4 % of what was asked for in the 10 of 20 runs of which it is known"
    assert offered.said(offered.Shares(1.0, 1.0, 4, 4).as_dict()) == "100.0 % of what was asked for in all 4 runs"


def without_reference(file):
    file.write_text(GRID.replace('    { name = "uncongested", uncongested = true },\n', ""))
    return file


def test_who_comes_second_into_a_folder_is_told_so(file, tmp_path):
    asked = sweeps.read(file)
    (tmp_path / "out").mkdir()
    with store.alone(tmp_path / "out"), pytest.raises(BadInput, match="out: another aqmlab is writing into it"):
        sweeps.run(asked, tmp_path / "out")
    sweeps.run(asked, tmp_path / "out")


def test_two_may_write_one_file_at_once(tmp_path):
    def write(k: int) -> None:
        for _ in range(200):
            store.write_text(tmp_path / "file", str(k) * 1000)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (1, 2)))
    assert (tmp_path / "file").read_text() in ("1" * 1000, "2" * 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_scenario_that_is_another_one_where_it_runs_is_refused():
    task = replace(planned()[0], digest="0" * 64)
    with pytest.raises(AqmlabError, match="its scenario has another digest here"):
        list(sweep.run([task]))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("seeds = 2", "seed = 2", "seed: 2: unknown key; did you mean seeds?"),
        ("seeds = 2", "seeds = 0", "grid.toml: seeds: 0: expected how many (3), or a list"),
        ('kind = "pi"', 'kind = "pie"', "[web, pi, 90mbit]: link.qdisc.kind: 'pie': expected one of"),
        ("[[grid]]", "[[grids]]", "grids: unknown key; did you mean grid?"),
        ("[scenario]", "[scenario", "not valid TOML"),
        ("[scenario]", "[profiles]\n[scenario]", "grid.toml: is a study; expected aqmlab study"),
    ],
)
def test_bad_input_is_one_line_before_anything_runs(file, tmp_path, capsys, old, new, complaint):
    file.write_text(GRID.replace(old, new, 1).replace("[[grids.axis]]", "[[grid.axis]]"))
    assert cli.invoke(["sweep", str(file), "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert complaint in said and said.count("\n") == 1
    assert fake_native.calls == [] and not (tmp_path / "out").exists()


SHORT = """
[scenario]
duration = "6s"
warmup = "1s"
LINK
[[scenario.traffic]]
kind = "probe"
application = "calls"
[[grid]]
name = "short"
"""


@pytest.mark.parametrize(
    ("link", "has"),
    [
        ('link.rate = "10mbit"', {"routes", "measured_s", "applications_calls_mos_mean"}),
        ('links = { a = { rate = "10mbit" }, b = { rate = "20mbit" } }', {"links_b_forward_loss_ratio"}),
    ],
)
def test_no_axis_is_called_as_a_column_of_the_table_is(compiled, tmp_path, link, has):
    (tmp_path / "grid.toml").write_text(SHORT.replace("LINK", link))
    routes = {"traffic.0.route": ["a", "b"]} if "links" in link else {}
    found = sweeps.run(sweeps.read(tmp_path / "grid.toml", changes=routes), tmp_path / "out")
    columns = pl.read_parquet(found.table).columns
    assert has <= set(columns)
    for name in columns:
        with pytest.raises(BadInput, match=r"is what a column of runs\.parquet is called"):
            axes.read({"name": name, "key": "link.rate", "values": ["5mbit"]}, "here")


def test_tables_of_sweeps_are_put_below_each_other(file, tmp_path):
    found = sweeps.run(sweeps.read(file, seeds=1), tmp_path / "out")
    said = [{**row, "findings": "no packet left", "self_checks_failed": "load: off"} for row in found.rows]
    one, other = table.frame(found.rows), table.frame(said)
    assert one["findings"].null_count() == one.height
    assert pl.concat([one, other]).height == 2 * one.height
