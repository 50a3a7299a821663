"""Files that a scenario names and that stay files: a result keeps them, and they are what they were. Needs the compiled
engine."""

import shutil
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import aqmlab
from aqmlab import checks, engine, scenario
from aqmlab.errors import BadInput
from conftest import NATIVE

VECTOR = "SEQ {start} 1 0 0\nw 8760 8760\nr 30000\nl 0 0\n> 300\nt 1000\n< 9000\nt 0\n"
SCENARIO = """
duration = "3s"
warmup = "0s"
link.rate = "10mbit"

[[traffic]]
kind = "tmix"
vectors = "data/campus.cvec"
"""


@pytest.fixture(autouse=True)
def compiled(stand_in, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


@pytest.fixture
def campus(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "campus.toml").write_text(SCENARIO)
    (tmp_path / "data/campus.cvec").write_text("".join(VECTOR.format(start=20_000 * i) for i in range(100)))
    return tmp_path / "campus.toml"


def test_a_result_runs_again_from_its_own_copies(campus, tmp_path):
    first = aqmlab.run(campus, out=tmp_path / "out", reps=2, jobs=1)
    block = tomllib.loads((tmp_path / "out/scenario.toml").read_text())["traffic"][0]
    kept = tmp_path / "out" / block["vectors"]["file"]
    assert kept.read_text() == (tmp_path / "data/campus.cvec").read_text()
    # The second run's copy is the first one's.
    assert kept.samefile(tmp_path / "out/rep-2/files" / kept.name)
    (tmp_path / "data/campus.cvec").unlink()
    again = aqmlab.run(tmp_path / "out/rep-1/scenario.toml", out=tmp_path / "again")
    assert again.digest == first.runs[0].digest
    assert [path.name for path in (tmp_path / "again/files").iterdir()] == [kept.name]
    assert aqmlab.run(tmp_path / "out/scenario.toml", out=tmp_path / "third").digest == again.digest


def test_an_experiment_is_what_is_in_its_files(campus, tmp_path):
    before = scenario.read(campus).resolve()
    (tmp_path / "data/campus.cvec").rename(tmp_path / "data/moved.cvec")
    moved = scenario.read(campus).with_changes({"traffic.0.vectors": "data/moved.cvec"}).resolve()
    assert moved.digest == before.digest and moved.toml != before.toml
    assert scenario.demand_digest(moved.scenario) == scenario.demand_digest(before.scenario)
    with (tmp_path / "data/moved.cvec").open("a") as file:
        file.write(VECTOR.format(start=3_000_000))
    changed = scenario.read(campus).with_changes({"traffic.0.vectors": "data/moved.cvec"}).resolve()
    assert changed.digest != moved.digest
    assert scenario.demand_digest(changed.scenario) != scenario.demand_digest(moved.scenario)
    with pytest.raises(BadInput, match=r"vectors\.sha256.*moved\.cvec has other content"):
        engine.resolve(moved.toml, moved.origin)


def test_a_file_that_cannot_be_used_starts_nothing(campus, tmp_path):
    (tmp_path / "data/campus.cvec").write_text(VECTOR.format(start=5).replace("> 300", "> -300"))
    with pytest.raises(BadInput, match=r"data/campus\.cvec:5: traffic\.0\.vectors = > -300: found -300") as refused:
        aqmlab.run(campus, out=tmp_path / "out")
    assert "\n" not in str(refused.value) and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, r"here/data/campus\.cvec:5: traffic\.0\.vectors = > -300: found -300"),
        ({"path.rtt": {"table": "data/campus.cvec"}}, r"here/data/campus\.cvec:1: path\.rtt\.table = "),
        ({"link.trace": "x.csv"}, r"link\.trace = \"x\.csv\": here/x\.csv cannot be read: No such file"),
        ({"path.rtt": {"table": "x.csv"}}, r"path\.rtt\.table = \"x\.csv\": here/x\.csv cannot be read: No such"),
        ({"tcp.stack": "x.toml"}, r"tcp\.stack = \"x\.toml\": here/x\.toml cannot be read: No such file"),
        ({"traffic.0.vectors": ["y.cvec"]}, r"vectors\.0 = \"y\.cvec\": here/y\.cvec cannot be read: No such file"),
    ],
)
def test_a_file_beside_a_scenario_is_named_as_its_reader_finds_it(campus, tmp_path, monkeypatch, changes, said):
    monkeypatch.chdir(tmp_path.parent)
    here = Path(tmp_path.name)
    (tmp_path / "data/campus.cvec").write_text(VECTOR.format(start=5).replace("> 300", "> -300"))
    with pytest.raises(BadInput, match=said.replace("here/", f"{here}/")):
        scenario.read(here / "campus.toml").with_changes(changes).resolve()
    campus.write_text(SCENARIO.replace("data/campus.cvec", "x.cvec"))
    with pytest.raises(BadInput, match=rf"{here}/campus\.toml:8: .*: {here}/x\.cvec cannot be read: No such file"):
        scenario.read(here / "campus.toml").resolve()


def test_variants_play_the_same_connections(campus, tmp_path):
    found = aqmlab.compare(campus, "pfifo", "codel", out=tmp_path / "both", jobs=1)
    assert len({column.result.manifest["demand_digest"] for column in found.columns}) == 1


@pytest.mark.parametrize("reps", [1, 2])
def test_a_comparison_is_repeated_from_its_folder_alone(campus, tmp_path, reps):
    (tmp_path / "data/rtts.csv").write_text("rtt_ms,probability\n10,0\n50,1\n")
    (tmp_path / "data/trace.txt").write_text("time_s,bytes\n0.1,500\n0.2,500\n")
    (tmp_path / "data/mine.toml").write_text('base = "linux"\nwindow = "20kb"\n')
    campus.write_text(
        SCENARIO
        + '[path]\nrtt = { table = "data/rtts.csv" }\n'
        + '[[traffic]]\nkind = "udp-trace"\npackets = "data/trace.txt"\n'
        + '[[traffic]]\nkind = "bulk"\nflows = 2\n'
        + '[[variant]]\nname = "a"\ntcp.stack = "data/mine.toml"\n'
        + '[[variant]]\nname = "b"\nset = { "traffic.2.stack" = "data/mine.toml", "traffic.2.cc" = "cubic" }\n'
        + '[[variant]]\nname = "c"\nset = { "path.rtt" = { table = "data/rtts.csv" } }\n'
    )
    found = aqmlab.compare(campus, out=tmp_path / "out", jobs=1, reps=reps)
    assert found.column("a").result.scenario["tcp"]["stack"] == "mine"
    shutil.rmtree(tmp_path / "data")
    campus.unlink()
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    again = aqmlab.compare(tmp_path / "elsewhere/comparison.toml", jobs=1, reps=reps)
    assert again.digest == found.digest
    # One copy of the vectors, however many runs there are.
    copies = list((tmp_path / "elsewhere").rglob("*-campus.cvec"))
    assert len(copies) == 1 + 3 * reps and all(path.samefile(copies[0]) for path in copies)


def test_hosts_of_any_kind_meet_the_same_demands(campus):
    def of(**tcp):
        changes = {f"tcp.{key}": item for key, item in tcp.items()}
        web = {"kind": "web", "users": 5}
        source = scenario.read(campus).with_changes({**changes, "traffic": [web, {**web, **tcp}]})
        return scenario.demand_digest(source.resolve().scenario)

    same = of()
    assert of(stack="linux", cc="reno") == of(stack="linux", cc="cubic") == same
    assert of(stack="linux", cc="bbr") == of(stack="linux", cc="dctcp", ecn="on") == same
    assert of(stack="ns2", mss="536b") == same


def test_what_was_chosen_for_a_load_is_told_and_is_the_demand(campus, tmp_path):
    changes = {"duration": "12s", "traffic.0.load": "60kbit"}
    found = aqmlab.run(campus, set=changes, out=tmp_path / "out", reps=2, jobs=1)
    resolved = scenario.read(campus).with_changes(changes).resolve()
    (chosen,) = found.runs[0].manifest["reached"]
    assert chosen == asdict(resolved.reached[0])
    assert (chosen["traffic"], chosen["load_bps"]) == (0, 60e3)
    assert chosen["offered_bps"] == pytest.approx(60e3, rel=checks.CHOSEN_TOLERANCE)
    assert [each["run"] for each in found.manifest["reached"]] == ["rep-1", "rep-2"]
    checked = [check for check in found.manifest["self_checks"] if "chosen connections" in check["name"]]
    assert len(checked) == 2 and all(check["holds"] for check in checked)
    off = replace(resolved.reached[0], offered_bps=70e3)
    assert not checks._reached(off).holds

    def demand(**tcp):
        source = scenario.read(campus).with_changes({**changes, **{f"tcp.{key}": item for key, item in tcp.items()}})
        return scenario.demand_digest(source.resolve().scenario)

    assert demand(stack="linux", cc="reno") == demand(stack="linux", cc="bbr") != demand(stack="linux", mss="536b")


def test_a_copy_that_was_changed_is_not_shared(campus, tmp_path):
    aqmlab.run(campus, out=tmp_path / "out/first")
    (kept,) = (tmp_path / "out/first/files").iterdir()
    assert kept.stat().st_mode & 0o222 == 0
    kept.chmod(0o644)
    kept.write_text(kept.read_text() + "# changed\n")
    aqmlab.run(campus, out=tmp_path / "out/second")
    assert (tmp_path / "out/second/files" / kept.name).read_text() == (tmp_path / "data/campus.cvec").read_text()
