"""Files of a result that were damaged: every command that reads it says so in one line, with the file."""

import json
import os

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
            f"aqmlab: {path}: is damaged; expected the table that the run wrote, so make the run again"
        )


def test_a_table_that_is_damaged_in_its_middle_is_named(base, tmp_path):
    path = tmp_path / "one/queue.parquet"
    aqmlab.run(base, out=path.parent)
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"queue\.parquet: is damaged"):
        print(aqmlab.load(path.parent).queue)


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
