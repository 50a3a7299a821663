"""The files that repeat a comparison and a sweep: they name copies of laws and data, and take no other content."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

import aqmlab
from aqmlab import cli, engine
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.sweep import repeatable, sweeps
from conftest import NATIVE
from grids import in_process
from own_laws import SCENARIO, command, own

__all__ = ["in_process"]

VARIANTS = """
[[variant]]
name = "kind"
link.qdisc = { kind = "./mine.py", every = 30 }
[[variant]]
name = "fair"
link.qdisc = "fq_mine.py"
[[variant]]
name = "set"
set = { "link.qdisc.kind" = "mine.py" }
[[variant]]
name = "law"
link.qdisc = { kind = "mine", law = "mine.py", every = 70 }
[[variant]]
name = "none"
link.qdisc.limit = "50p"
"""

GRID = """
seeds = 1
scenario = "link.toml"
[[grid]]
name = "written"
[[grid.axis]]
name = "aqm"
[[grid.axis.value]]
name = "mine"
link.qdisc = { kind = "mine", law = "./laws/mine.py", every = 30 }
[[grid.axis.value]]
name = "fair"
link.qdisc = "./laws/fq_mine.py"
[[grid]]
name = "short"
[[grid.axis]]
name = "aqm"
key = "link.qdisc"
values = ["laws/mine.py", "pie"]
names = ["mine", "pie"]
[[grid.axis]]
name = "limit"
key = "link.qdisc.limit"
values = ["50p", "60p"]
[[grid]]
name = "kinds"
[[grid.axis]]
name = "aqm"
key = "link.qdisc.kind"
values = ["laws/mine.py", "laws/fq_mine.py", "codel"]
names = ["mine", "fair", "codel"]
labels = ["Mine", "Mine, fair", "CoDel"]
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    monkeypatch.chdir(tmp_path)
    Path("link.toml").write_text(SCENARIO.replace('"12s"', '"3s"'))
    return tmp_path


def laws_of(item):
    """Every value of a key `law`, and every text that names the file of a law elsewhere."""
    if isinstance(item, list):
        return [law for entry in item for law in laws_of(entry)]
    if not isinstance(item, dict):
        return [item] if str(item).endswith(".py") else []
    own = [entry for key, entry in item.items() if key.endswith("law")]
    return own + [law for key, entry in item.items() if not key.endswith("law") for law in laws_of(entry)]


def same_law(laws, path):
    (one,) = {json.dumps(law) for law in laws}
    law = json.loads(one)
    assert law.keys() == {"file", "sha256"} and law["file"] == f"files/{law['sha256'][:12]}-mine.py"
    return path / law["file"]


def test_a_comparison_is_repeated_with_the_law_that_it_had_and_no_other(here):
    own(here)
    Path("link.toml").write_text(Path("link.toml").read_text() + VARIANTS)
    found = aqmlab.compare("link.toml", out="out", allow_code=True)
    tree = tomllib.loads(Path("out/comparison.toml").read_text())
    kept = same_law(laws_of(tree), Path("out"))
    assert len(laws_of(tree)) == 4 and tree["variant"][1]["link"]["qdisc"]["kind"] == "fq_mine"
    shutil.rmtree(here / "__pycache__", ignore_errors=True)
    Path("mine.py").unlink()
    # Again in the same words, and again from the copy of the copy.
    assert command("compare", "out/comparison.toml", "--allow-code", "-o", "again") == ""
    assert aqmlab.load("again").digest == found.digest
    assert Path("again/comparison.toml").read_text() == Path("out/comparison.toml").read_text()
    kept.write_text(kept.read_text().replace("self.seen += 1", "self.seen += 2"))
    said = command("compare", "out/comparison.toml", "--allow-code", "-o", "third")
    assert "law.file: files/" in said and "has other content than the law that is asked for; expected the file" in said
    assert not Path("third").exists()


def test_data_beside_a_comparison_is_the_data_that_it_had(here):
    Path("data").mkdir()
    Path("data/trace.txt").write_text("time_s,bytes\n0.1,500\n0.2,500\n")
    Path("data/link.up").write_text("".join(f"{k}\n" for k in range(1, 100)))
    Path("link.toml").write_text(
        SCENARIO.replace('"12s"', '"3s"').replace('rate = "20mbit"', 'trace = "data/link.up"')
        + '[[traffic]]\nkind = "udp-trace"\npackets = "data/trace.txt"\n'
    )
    found = aqmlab.compare("link.toml", "pfifo", "pie", out="out")
    tree = tomllib.loads(Path("out/comparison.toml").read_text())
    named = (tree["link"]["trace"], tree["traffic"][-1]["packets"])
    assert all((Path("out") / one["file"]).is_file() for one in named)
    shutil.rmtree("data")
    assert aqmlab.compare("out/comparison.toml").digest == found.digest
    kept = Path("out") / named[1]["file"]
    kept.chmod(0o644)
    kept.write_text(kept.read_text() + "0.3,500\n")
    with pytest.raises(BadInput, match=r"comparison.toml.*packets.sha256.*has other content than it had"):
        aqmlab.compare("out/comparison.toml")


def test_a_sweep_is_repeated_from_its_folder_alone(here, in_process):
    (here / "laws").mkdir()
    own(here / "laws")
    Path("grid.toml").write_text(GRID)
    words = ["sweep", "grid.toml", "--allow-code", "--set", "tcp.cc=reno", "--seeds", "2", "-o", "out", "--json"]
    assert cli.invoke(words) == 0
    tree = tomllib.loads(Path("out/sweep.toml").read_text())
    kept = same_law(laws_of(tree), Path("out"))
    assert (tree["name"], tree["seeds"], tree["scenario"]["duration"]) == ("grid", 2, "3s")
    shutil.rmtree("laws")
    Path("link.toml").unlink()
    Path("out").rename("moved")
    again = sweeps.run(sweeps.read("moved/sweep.toml"), "again", allow_code=True)
    facts = json.loads(Path("moved/sweep.json").read_text())
    assert again.facts["runs_made"] == 0 and again.facts["runs_kept"] == facts["runs"] == 16
    for key in ("name", "grids", "plan"):
        assert again.facts[key] == facts[key]
    assert Path("again/sweep.toml").read_text() == Path("moved/sweep.toml").read_text()
    # In the words of the command, by somebody who has not run the law yet.
    moved = Path("moved") / kept.relative_to("out")
    moved.write_text(moved.read_text() + "# edited\n")
    said = command("sweep", "moved/sweep.toml", "--allow-code", "-o", "third")
    assert "law.file: files/" in said and "has other content than the law that is asked for" in said


def test_a_sweep_without_files_is_kept_in_its_authors_words(here, in_process):
    text = f"# Why.\n{GRID[: GRID.index('[[grid]]')]}[[grid]]\nname = 'one'\nset = {{ duration = '2s' }}\n"
    text = text.replace('"link.toml"', '{ duration = "3s", traffic = [{ kind = "bulk", flows = 1 }] }')
    Path("grid.toml").write_text(text)
    sweeps.run(sweeps.read("grid.toml"), "out")
    assert Path("out/sweep.toml").read_text() == text and not Path("out/files").exists()


def test_a_repaired_law_of_a_sweep_is_resumed_and_a_changed_one_is_another_sweep(here, in_process):
    path = own(here, "return 77 if self.every == 7 and self.seen > 99 else aqmlab.PASS", "(compiled=False)")
    Path("grid.toml").write_text(
        'name = "g"\nscenario = "link.toml"\n[[grid]]\nname = "g"\nset = { "link.qdisc.kind" = "./mine.py" }\n'
        '[[grid.axis]]\nname = "n"\nkey = "link.qdisc.every"\nvalues = [7, 200]\n'
    )
    with pytest.raises(Misbehaved):
        sweeps.run(sweeps.read("grid.toml"), "out", allow_code=True)
    before = same_law(laws_of(tomllib.loads(Path("out/sweep.toml").read_text())), Path("out"))
    path.write_text(path.read_text().replace("return 77", "return aqmlab.DROP"))
    found = sweeps.run(sweeps.read("grid.toml"), "out", allow_code=True, resume=True)
    # What has the repaired law is another run.
    assert found.facts["complete"] and found.facts["runs_made"] == 2
    now = same_law(laws_of(tomllib.loads(Path("out/sweep.toml").read_text())), Path("out"))
    assert now != before and now.read_text() == path.read_text()
    again = sweeps.run(sweeps.read("out/sweep.toml"), "out", allow_code=True, resume=True)
    assert again.facts["runs_made"] == 0
    path.write_text(path.read_text() + "# changed\n")
    with pytest.raises(BadInput, match="holds a sweep of other runs"):
        sweeps.run(sweeps.read("grid.toml"), "out", allow_code=True, resume=True)


def test_a_kind_that_is_set_over_a_law_is_still_what_is_run(here):
    own(here)
    Path("link.toml").write_text(
        SCENARIO.replace('"12s"', '"3s"').replace('"pfifo"', '{ kind = "mine.py", limit = "40p" }')
        + '[[variant]]\nname = "mine"\n[[variant]]\nname = "pie"\nset = { "link.qdisc.kind" = "pie" }\n'
    )
    found = aqmlab.compare("link.toml", out="out", allow_code=True)
    assert aqmlab.compare("out/comparison.toml", allow_code=True).digest == found.digest


def test_an_axis_keeps_names_and_labels_of_values_that_are_files(here):
    own(here)
    Path("a.toml").write_text('base = "linux"\n')
    axis = {"name": "x", "title": "X", "key": "tcp.stack", "values": ["a.toml", "linux"], "zip": "A"}
    (kept,) = repeatable.keep_named_files({"axis": [axis]}, "grid.toml", here / "out")["axis"]
    assert (kept["name"], kept["title"], kept["zip"]) == ("x", "X", "A") and "values" not in kept
    first, second = kept["value"]
    assert (first["name"], first["label"], second["set"]) == ("a.toml", "a.toml", {"tcp.stack": "linux"})
    assert (here / "out" / first["set"]["tcp.stack"]).name == "a.toml"
    # What names no file stays in short.
    plain = {"name": "x", "key": "tcp.cc", "values": ["reno", "cubic"]}
    assert repeatable.keep_named_files({"axis": [plain]}, "grid.toml", here / "out") == {"axis": [plain]}
