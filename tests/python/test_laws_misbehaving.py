"""A law that misbehaves, breaks or never ends while it runs is named, and no finished run is lost. Needs the compiled
engine."""

import json
import pickle

import polars as pl
import pytest

import aqmlab
from aqmlab import cli, comparison, sweep
from aqmlab.comparison import Incomplete
from aqmlab.errors import Interrupted, Misbehaved
from aqmlab.progress import Silent
from aqmlab.runs import apart
from aqmlab.sweep import making, sweeps
from own_laws import of_a_sweep, own, run

pytestmark = pytest.mark.usefixtures("nothing_allowed")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("packet.chance(2.0)", "the law mine drew with probability 2: expected one from 0 to 1"),
        ("packet.chance(float('nan'))", "the law mine drew with probability NaN"),
        ("return 77", "the law mine answered 77, which is no verdict"),
        ("return aqmlab.MARK", "the law mine marked a packet that may not be marked"),
        ("self.seen = self.seen // (packet.size - packet.size)", "the law mine failed"),
    ],
)
@pytest.mark.parametrize("how", ["", "(compiled=False)"])
def test_a_law_that_misbehaves_is_named_and_loses_no_finished_run(link, tmp_path, body, said, how):
    out = tmp_path / "out"
    with pytest.raises(Misbehaved) as failed:
        aqmlab.compare(link, "pfifo", str(own(tmp_path, body, how)), set={"duration": "3s"}, out=out, jobs=1)
    assert said in str(failed.value)
    if how and "//" in body:
        assert "ZeroDivisionError" in str(failed.value) and "mine.py:14" in str(failed.value)
    assert (out / "pfifo/manifest.json").exists()
    assert list(failed.value.comparison) == ["pfifo"]
    again = pickle.loads(pickle.dumps(failed.value))
    assert str(again) == str(failed.value) and list(again.comparison) == ["pfifo"]


@pytest.mark.parametrize("reps", [1, 2])
def test_the_others_of_a_comparison_are_finished_and_a_repaired_law_is_resumed(link, tmp_path, capsys, undrawn, reps):
    fails = own(tmp_path, "return 77 if self.every == 7 and self.seen > 99 else aqmlab.PASS", "(compiled=False)")
    out = tmp_path / "out"
    words = ["compare", str(link), f"{fails} every 7", "mine every 9", "fq_mine", "pie", "--set", "duration=3s"]
    words += ["-o", str(out), "--reps", str(reps), "--jobs", "1"]
    assert cli.invoke([*words, "--json", "--report"]) == 1
    said = capsys.readouterr()
    answer, run = json.loads(said.out), ", run 1" if reps > 1 else ""
    message = f"mine every 7{run}: the law mine answered 77, which is no verdict"
    assert said.err.startswith(f"aqmlab: {message}") and said.err.count("\n") == 1
    assert [one["name"] for one in answer["variants"]] == ["mine every 9", "fq_mine", "pie"]
    assert answer["baseline"] == "mine every 9" and [one["name"] for one in answer["failed"]] == ["mine every 7"]
    page = (out / "report.html").read_text()
    assert "<b>Failed: mine every 7.</b>" in page and message in page
    assert [one.name for one in aqmlab.load(out).failed] == ["mine every 7"]
    runs = [path for path in out.rglob("manifest.json") if reps == 1 or path.parent.name.startswith("rep-")]
    made = {path: path.stat().st_mtime_ns for path in runs}
    assert len(made) == 3 * reps
    # What is not repaired fails again, and another comparison is refused.
    assert cli.invoke([*words, "--resume"]) == 1
    assert cli.invoke([*words, "--resume", "--set", "duration=4s"]) == 2
    assert "holds another comparison" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in made} == made
    fails.write_text(fails.read_text().replace("return 77", "return aqmlab.DROP"))
    assert cli.invoke([*words, "--resume", "--json", "--report"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in answer["variants"]] == ["mine every 7", "mine every 9", "fq_mine", "pie"]
    assert answer["failed"] == [] and "Failed:" not in (out / "report.html").read_text()
    kept = [path for path in made if path.stat().st_mtime_ns == made[path]]
    assert len(kept) == reps and all("pie" in path.parts for path in kept)


def test_a_law_is_repaired_again_after_its_comparison_was_interrupted(link, tmp_path, monkeypatch):
    law = own(tmp_path, "return 77 if self.seen > 99 else aqmlab.PASS", "(compiled=False)")
    out = tmp_path / "out"

    def compare(**words):
        return aqmlab.compare(link, f"{law}", "pie", set={"duration": "3s"}, out=out, jobs=1, **words)

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(comparison, "settle_failures", interrupted)
        compare()
    law.write_text(law.read_text().replace("return 77", "return 78"))
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(comparison, "note_failure", interrupted)
        compare(resume=True)
    law.write_text(law.read_text().replace("return 78", "return aqmlab.DROP"))
    found = compare(resume=True)
    assert list(found) == ["mine", "pie"] and found.failed == []


def interrupted(*_):
    raise KeyboardInterrupt


def test_the_baseline_that_fails_is_said_to_be_another(link, tmp_path):
    law = own(tmp_path, "return 77 if self.seen > 99 else aqmlab.PASS", "(compiled=False)")
    with pytest.raises(
        Incomplete, match=r"which is no verdict .*; the others are compared with pfifo instead$"
    ) as failed:
        aqmlab.compare(link, "pfifo", f"{law}", "pie", set={"duration": "3s"}, baseline="mine", jobs=1)
    assert failed.value.comparison.baseline.name == "pfifo"


def test_a_law_that_fails_is_named_with_the_run(link, tmp_path, capsys):
    path = own(tmp_path, "math.sqrt(-1.0 - self.seen) if self.every == 7 else 0", "(compiled=False)")
    path.write_text(path.read_text().replace("import aqmlab", "import math\n\nimport aqmlab"))
    with pytest.raises(Misbehaved, match=r"^mine every 7: the law mine failed"):
        aqmlab.compare(link, f"{path}", "mine every 7", set={"duration": "3s"})
    file = tmp_path / "sweep.toml"
    file.write_text(
        f'[scenario]\nduration = "3s"\nlink.qdisc = {{ kind = "{path}" }}\ntraffic = [{{ kind = "bulk" }}]\n'
        '[[grid]]\nname = "all"\n[[grid.axis]]\nname = "every"\nkey = "link.qdisc.every"\nvalues = [50, 7]\n'
    )
    capsys.readouterr()
    assert cli.invoke(["sweep", str(file), "--allow-code", "-o", str(tmp_path / "out")]) != 0
    assert "aqmlab: all/7, seed 1: the law mine failed" in capsys.readouterr().err


GRID_OF_A_LAW = """
name = "mine"
seeds = 2
[scenario]
duration = "3s"
traffic = [{{ kind = "bulk" }}]
[[grid]]
[[grid.axis]]
name = "aqm"
value = [
    {{ name = "mine", link.qdisc = {{ kind = "{law}" }} }},
    {{ name = "pie", link.qdisc = {{ kind = "pie" }} }},
]
[[grid.axis]]
name = "rate"
key = "link.rate"
values = ["5mbit", "10mbit"]
"""


@pytest.mark.parametrize("jobs", ["in this process", "1"])
def test_the_others_of_a_sweep_are_finished_and_a_repaired_law_is_resumed(link, tmp_path, capsys, monkeypatch, jobs):
    if jobs != "1":
        monkeypatch.setattr(making, "Processes", lambda jobs: sweep.InProcess())
    law = own(tmp_path, "return math.sqrt(-1.0)", "(compiled=False)")
    broken = law.read_text().replace("import aqmlab", "import math\n\nimport aqmlab")
    law.write_text(broken)
    grid_file, out = tmp_path / "grid.toml", tmp_path / "out"
    grid_file.write_text(GRID_OF_A_LAW.format(law=law))
    words = ["sweep", str(grid_file), "--allow-code", "-o", str(out), "--jobs", "1"]
    assert cli.invoke(words) == 1
    shown, said = capsys.readouterr()
    assert said.startswith("aqmlab: all 4 runs at mine, the first: the law mine failed") and said.count("\n") == 1
    assert "mine: 4 runs of 4 points" in shown
    assert set(pl.read_parquet(out / "runs.parquet")["aqm"]) == {"pie"}
    facts = json.loads((out / "sweep.json").read_text())
    assert not facts["complete"] and (facts["runs_made"], facts["runs_kept"]) == (4, 0)
    assert {(one["point"], one["seed"]) for one in facts["failed"]} == {
        (f"grid/mine/{rate}", seed) for rate in ("5mbit", "10mbit") for seed in (1, 2)
    }
    # What has failed is made again, and nothing else.
    assert cli.invoke([*words, "--resume", "--json"]) == 1
    again = json.loads(capsys.readouterr().out)
    assert (again["runs_made"], again["runs_kept"], len(again["failed"])) == (0, 4, 4)
    with pytest.raises(sweeps.Incomplete, match=r"^grid/mine/5mbit, seed 1: the law mine failed") as failed:
        sweeps.run(sweeps.read(grid_file), out, resume=True, jobs=1, allow_code=True)
    assert len(failed.value.found.rows) == 4
    # No run of another scenario comes in with the repaired law.
    law.write_text(broken.replace("return math.sqrt(-1.0)", "pass"))
    assert cli.invoke([*words, "--resume", "--set", "duration=4s"]) == 2
    assert "holds a sweep of other runs" in capsys.readouterr().err
    assert cli.invoke([*words, "--resume", "--json"]) == 0
    repaired = json.loads(capsys.readouterr().out)
    assert (repaired["runs_made"], repaired["runs_kept"], repaired["failed"]) == (4, 4, [])
    assert repaired["complete"] and len(repaired["rows"]) == 8


def test_a_sweep_of_which_every_run_fails_has_no_rows(link, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(making, "Processes", lambda jobs: sweep.InProcess())
    law, grid_file = own(tmp_path, 'return "x"', "(compiled=False)"), tmp_path / "grid.toml"
    text = GRID_OF_A_LAW.format(law=law)
    grid_file.write_text("".join(line for line in text.splitlines(keepends=True) if 'name = "pie"' not in line))
    assert cli.invoke(["sweep", str(grid_file), "--allow-code", "-o", str(tmp_path / "out")]) == 1
    shown, said = capsys.readouterr()
    assert "Rows in" not in shown and said.startswith("aqmlab: all 4 runs, the first: the law mine failed")


def test_a_wrong_answer_is_placed_in_the_file_of_the_law(link, tmp_path):
    path = own(tmp_path, 'return "x"', "(compiled=False)")
    begins = path.read_text()[: path.read_text().index("def on_arrival")].count("\n") + 1
    with pytest.raises(Misbehaved, match=rf"on_arrival answered 'x', .* \({path}:{begins}\)$"):
        run(link, str(path))


def test_a_gauge_that_begins_as_a_whole_number_shows_no_fraction(link, tmp_path):
    path = own(tmp_path, "self.seen = self.seen + 0.5", '(compiled=False, gauges={"seen": "Packets."})')
    with pytest.raises(Misbehaved, match=r"seen begins as a whole number and is 1\.5; expected .* seen = 0\.0"):
        run(link, str(path))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "self.seen = self.seen + 0.5",
            r"seen begins as a whole number and is 1\.5; expected .* seen = 0\.0, or .* int",
        ),
        ("self.every += 0.5", r"every begins as a whole number and is \d+\.5; expected"),
        ("self.seen = float('nan')", r"seen begins as a whole number and is nan; expected"),
    ],
)
def test_a_whole_field_takes_no_fraction_in_the_interpreter_either(link, tmp_path, body, said):
    path = own(tmp_path, body, "(compiled=False)")
    with pytest.raises(Misbehaved, match=said):
        run(link, str(path))


@pytest.mark.parametrize("body", ["self.seen = 4.0", "self.seen = True", "self.seen = 10**20"])
def test_a_whole_field_takes_whole_numbers_however_they_are_written(link, tmp_path, body):
    assert run(link, str(own(tmp_path, body, "(compiled=False)")))


@pytest.mark.parametrize("how", ["", "(compiled=False)"])
def test_a_law_that_never_ends_is_named(link, tmp_path, monkeypatch, how):
    monkeypatch.setattr(apart, "SILENCE_S", 1.5)
    path = own(tmp_path, "while self.seen > 500: pass", how)
    with pytest.raises(Misbehaved, match=r"gave no sign of life for 1.5 s after .* it ran the code of mine \("):
        aqmlab.compare(link, "pfifo", str(path), set={"duration": "3s"}, out=tmp_path / "out", jobs=1)
    assert (tmp_path / "out/pfifo/manifest.json").exists()
    with pytest.raises(Misbehaved, match=r"gave no sign of life for 1.5 s after .* it ran the code of mine \("):
        list(sweep.InProcess().each(of_a_sweep(link, path), Silent()))
