"""Files of a result that were damaged: every command that reads it says so in one line, with the file."""

import json
import os
import shutil

import polars as pl
import pytest

import aqmlab
from aqmlab import cli
from aqmlab.errors import BadInput
from aqmlab.results import digests

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


def test_a_summary_that_is_damaged_is_told_as_a_table_is(base, tmp_path, capsys):
    aqmlab.run(base, out=tmp_path / "one")
    path = tmp_path / "one/summary.json"
    path.write_text(path.read_text()[:-10])
    capsys.readouterr()
    assert cli.invoke(["report", str(path.parent)]) == 2
    assert capsys.readouterr().err.startswith(f"aqmlab: {path}: is damaged; expected what the run wrote: remove ")


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


def test_a_table_that_was_changed_and_can_be_read_is_named(base, tmp_path, capsys):
    """Compressed otherwise it is the same table; a copy is younger than its manifest and the same as well."""
    for name in ("one", "other"):
        aqmlab.run(base, out=tmp_path / name)
    path = tmp_path / "one/exchanges.parquet"
    table = pl.read_parquet(path)
    table.write_parquet(path, compression="uncompressed")
    one, other, both, drawn = (str(tmp_path / name) for name in ("one", "other", "both", "drawn"))
    commands = [["report", one], ["figures", one, "-o", drawn], ["compare", one, other, "-o", both]]
    capsys.readouterr()
    for words in commands[:2]:
        assert cli.invoke(words) == 0 and "changed" not in capsys.readouterr().err
    table.with_columns(pl.col("response_time_s") + 1).write_parquet(path)
    for words in commands:
        assert cli.invoke(words) == 0
        (line,) = [one for one in capsys.readouterr().err.splitlines() if "was changed after the run" in one]
        assert line.startswith(f"aqmlab: warning: {path}: ") and f"says {table.height:,} rows with digest" in line
    assert cli.invoke(["report", both]) == 0
    assert capsys.readouterr().err.count("was changed after the run") == 1


def test_of_many_rows_those_are_looked_at_that_are_younger_or_fewer(base, tmp_path, monkeypatch):
    found = aqmlab.run(base, out=tmp_path / "one")
    monkeypatch.setattr(digests, "MOST_ROWS", 0)
    queue, exchanges = (tmp_path / f"one/{name}.parquet" for name in ("queue", "exchanges"))
    for path, change in (
        (queue, lambda rows: rows.with_columns(queue_packets=pl.col("queue_packets") + 1)),
        (exchanges, lambda rows: rows.head(5)),
    ):
        change(pl.read_parquet(path)).write_parquet(path)
        os.utime(path, (1e9, 1e9))
    (line,) = digests.changed(found.runs)
    assert line.startswith(f"{exchanges}: ") and "it has 5 with" in line
    os.utime(queue)
    assert len(digests.changed(found.runs)) == 2


def test_of_many_changed_tables_three_are_named(base, tmp_path):
    found = aqmlab.run(base, reps=3, out=tmp_path / "out")
    for path in tmp_path.glob("out/rep-*/*.parquet"):
        pl.read_parquet(path).head(3).write_parquet(path)
    said = digests.changed(found.runs)
    assert len(said) == 4 and said[-1] == "and 3 more tables were changed or removed"


@pytest.mark.parametrize("table", ["exchanges", "delays"])
def test_a_table_that_was_removed_is_named(base, tmp_path, table, capsys):
    for name in ("one", "other"):
        aqmlab.run(base, out=tmp_path / name)
    path = tmp_path / f"one/{table}.parquet"
    path.unlink(missing_ok=True)
    manifest = tmp_path / "one/manifest.json"
    facts = json.loads(manifest.read_text())
    facts["tables"].setdefault(path.name, {"rows": 3, "sha256": "0"})  # the stand-in writes no delays
    manifest.write_text(json.dumps({**facts, "version": "0.0.1"}))
    one, other, both, drawn = (str(tmp_path / name) for name in ("one", "other", "both", "drawn"))
    commands = [["report", one], ["figures", one, "-o", drawn], ["compare", one, other, "-o", both], ["report", both]]
    capsys.readouterr()
    for words in commands:
        assert cli.invoke(words) == 0
        (line,) = [one for one in capsys.readouterr().err.splitlines() if "was removed after the run" in one]
        said = f"manifest.json says {facts['tables'][path.name]['rows']:,} rows"
        assert f"/one/{path.name}: was removed after the run: {said}; what is shown does without" in line


def test_of_digests_of_another_version_nothing_is_said(base, tmp_path):
    found = aqmlab.run(base, out=tmp_path / "one")
    path = tmp_path / "one/queue.parquet"
    pl.read_parquet(path).head(3).write_parquet(path)
    assert len(digests.changed(found.runs)) == 1
    found.runs[0].manifest["version"] = "0.0.1"
    assert digests.changed(found.runs) == []
