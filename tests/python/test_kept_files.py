"""Files that a scenario names and that stay files: a result keeps them, and they are what they were. Needs the compiled
engine."""

import tomllib

import pytest

import aqmlab
from aqmlab import engine, scenario
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


def test_variants_play_the_same_connections(campus, tmp_path):
    found = aqmlab.compare(campus, "pfifo", "codel", out=tmp_path / "both", jobs=1)
    assert len({column.result.manifest["demand_digest"] for column in found.columns}) == 1
