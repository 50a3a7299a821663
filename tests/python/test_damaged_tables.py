"""Files of a result that were damaged: every command that reads it says so in one line, with the file."""

import json
import os
import shutil

import pytest

import aqmlab
from aqmlab import cli
from aqmlab.errors import BadInput

CUTS = {"cut off": lambda path: os.truncate(path, path.stat().st_size - 10), "text": lambda path: path.write_text("x")}


@pytest.mark.parametrize("table", ["queue", "exchanges"])
@pytest.mark.parametrize("damage", [*CUTS.values(), lambda path: path.write_bytes(b"")], ids=[*CUTS, "empty"])
def test_a_table_that_is_damaged_is_named(base, tmp_path, table, damage, capsys):
    aqmlab.run(base, out=tmp_path / "one")
    path = tmp_path / f"one/{table}.parquet"
    damage(path)
    capsys.readouterr()
    for words in (["report", "one"], ["figures", "one"], ["run", str(base), "-o", "one", "--resume"]):
        words = [str(tmp_path / "one") if word == "one" else word for word in words]
        assert cli.invoke(words) == 2, words
        complaint = capsys.readouterr().err.splitlines()[-1]
        assert complaint == (
            f"aqmlab: {path}: is damaged; expected what the run wrote: remove {path.parent} and run again, "
            "with --resume where there are other runs beside it"
        )


def test_a_table_that_is_damaged_in_its_middle_is_named(base, tmp_path):
    path = tmp_path / "one/queue.parquet"
    aqmlab.run(base, out=path.parent)
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"queue\.parquet: is damaged"):
        print(aqmlab.load(path.parent).queue)


def test_what_is_said_of_a_damaged_repetition_mends_it(base, tmp_path):
    whole = aqmlab.run(base, reps=3, out=tmp_path / "out")
    CUTS["text"](tmp_path / "out/rep-2/queue.parquet")
    with pytest.raises(BadInput, match=rf"is damaged; expected .*: remove {tmp_path}/out/rep-2 and run again"):
        aqmlab.run(base, reps=3, out=tmp_path / "out", resume=True)
    shutil.rmtree(tmp_path / "out/rep-2")
    again = aqmlab.run(base, reps=3, out=tmp_path / "out", resume=True)
    assert again.digest == whole.digest and again.queue.equals(whole.queue)


def test_a_table_that_was_lost_is_told_from_one_that_was_not_written(base, tmp_path):
    found = aqmlab.run(base, out=tmp_path / "one")
    (tmp_path / "one/queue.parquet").unlink()
    with pytest.raises(BadInput, match=r"queue\.parquet: is missing; expected what the run wrote"):
        _ = found.queue
    with pytest.raises(BadInput, match=r"probes\.parquet: the run did not write this table"):
        _ = found.probes


@pytest.mark.parametrize("left", ["", 'name = "web users"\n'])
def test_a_scenario_of_which_nothing_is_left_is_damaged(base, tmp_path, left, capsys):
    aqmlab.run(base, out=tmp_path / "one")
    (tmp_path / "one/scenario.toml").write_text(left)
    assert cli.invoke(["report", str(tmp_path / "one")]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"aqmlab: {tmp_path}/one/scenario.toml: is damaged; expected what the run wrote")


@pytest.mark.parametrize("where", ["one", "one/rep-1"])
def test_a_quantity_that_became_a_text_is_named(base, tmp_path, where, capsys):
    aqmlab.run(base, reps=2, out=tmp_path / "one")
    path = tmp_path / where / "summary.json"
    summary = json.loads(path.read_text())
    summary["forward"]["loss_ratio"] = "none"
    path.write_text(json.dumps(summary))
    assert cli.invoke(["report", str(tmp_path / "one")]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"aqmlab: {path}: forward.loss_ratio: 'none': expected a number; make the run again"
    )
