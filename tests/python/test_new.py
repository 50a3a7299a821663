"""`aqmlab new`: what it writes is what lies in examples/, and every one of them runs, on the compiled engine."""

import json
import re
import shlex

import pytest

from aqmlab import cli, engine
from aqmlab.command import beginnings
from conftest import NATIVE, ROOT

NAMES = tuple(beginnings.VERBS)


def test_every_example_that_needs_no_other_file_is_offered(capsys):
    assert {path.stem for path in (ROOT / "examples").glob("*.toml")} == {*NAMES, "tmix"}
    assert cli.invoke(["new"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in NAMES)
    assert cli.invoke(["new", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["examples"]
    assert [row["name"] for row in rows] == [*NAMES, *beginnings.CODE] and all(len(row["doc"]) > 20 for row in rows)


def test_what_is_there_is_not_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["new", "web"]) == 0
    assert "aqmlab compare web.toml" in capsys.readouterr().out
    (tmp_path / "web.toml").write_text("mine")
    assert cli.invoke(["new", "web"]) == 2
    assert "web.toml: is there already; expected -o" in capsys.readouterr().err
    assert (tmp_path / "web.toml").read_text() == "mine"


def test_what_decides_something_is_what_is_said_to_be_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["new", "home-cable"]) == 0
    assert "Run it: aqmlab compare home-cable.toml --reps 5 --report\n" in capsys.readouterr().out


def test_its_comments_name_the_file_that_was_written(tmp_path, capsys):
    target = tmp_path / "a link.toml"
    assert cli.invoke(["new", "web-pi", "-o", str(target), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"file": str(target), "command": f"aqmlab run {shlex.quote(str(target))}"}
    assert f"aqmlab run {shlex.quote(str(target))}\n" in target.read_text()
    assert "examples/" not in target.read_text()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nonsense"], "new nonsense: expected one of home-cable, web"),
        (["-o", "x.toml"], "new -o x.toml: expected the name of an example"),
        (["web", "-o", "no/such/folder/x.toml"], "x.toml: cannot be written"),
    ],
)
def test_what_cannot_be_written_is_named(arguments, named, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["new", *arguments]) == 2
    assert named in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_every_example_runs(name, tmp_path, monkeypatch, capsys):
    """For three seconds, with users in the place of loads: to look for their number takes longer than that."""
    monkeypatch.setattr(engine, "native", NATIVE)
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["new", name]) == 0
    file = tmp_path / f"{name}.toml"
    text = re.sub(r'^load = "(\d+)mbit"', r"users = \1", file.read_text(), flags=re.MULTILINE)
    file.write_text(
        text.replace("traffic.0.load", "traffic.0.users")
        .replace('["5mbit", "9mbit"]', "[50, 90]")
        .replace('start = "5s"', 'start = "1s"')
    )
    # Between real hosts an example runs where those can be; as a simulation everywhere.
    verb = "run" if beginnings.VERBS[name] == "live" else beginnings.VERBS[name]
    few = ["--seeds", "1"] if verb == "sweep" else []
    short = ["--set", "duration=3s", "--set", "warmup=1s"]
    assert cli.invoke([verb, file.name, "-o", "out", "--json", "--jobs", "1", *few, *short]) == 0
    found = json.loads(capsys.readouterr().out.partition("\n{")[2].join(("{", "")))
    assert found and (tmp_path / "out").is_dir()


@pytest.mark.parametrize(("name", "guide"), [("law", "laws"), ("discipline", "own-disciplines")])
def test_the_law_and_the_discipline_to_begin_with_are_those_of_the_guides(name, guide, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["new", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"file": beginnings.CODE[name], "command": f"aqmlab check {beginnings.CODE[name]}"}
    shown = re.findall(
        r"^```python\n(.*?)^```", (ROOT / f"docs/guide/{guide}.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert (tmp_path / found["file"]).read_text().endswith(shown[0])
