"""Code that a scenario names runs where somebody asked for it, and nowhere else. Needs the compiled engine."""

import subprocess
import sys
from pathlib import Path

import pytest

import aqmlab
import studies
from aqmlab import cli, study
from aqmlab.errors import BadInput
from aqmlab.sweep import sweeps
from own_laws import COUNTS, ENVIRONMENT, SCENARIO, own

pytestmark = pytest.mark.usefixtures("nothing_allowed")


def test_code_that_a_scenario_names_is_not_run_unasked(link, tmp_path, capsys):
    own(tmp_path, body="open('ran', 'w')", how="(compiled=False)")
    link.write_text(SCENARIO.replace('"pfifo"', '"./mine.py"'))
    with pytest.raises(BadInput, match="names code, which is not run unasked: expected --allow-code"):
        aqmlab.run(link)
    assert cli.invoke(["run", str(link), "-o", str(tmp_path / "out")]) == 2
    assert "link.toml:6: link.qdisc" in capsys.readouterr().err
    own(tmp_path)
    assert cli.invoke(["run", str(link), "--set", "duration=3s", "--allow-code", "-o", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["run", "link.toml"],
        ["live", "link.toml"],
        ["compare", "link.toml", "pie"],
        ["calibrate", "link.toml"],
        ["record", "link.toml", "-o", "recorded"],
        ["tc", "link.toml"],
        ["shell", "link.toml"],
        ["sweep", "grid.toml"],
        ["study", "own"],
    ],
    ids=lambda words: words[0],
)
def test_no_verb_runs_code_that_a_scenario_names(link, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    own(tmp_path).write_text("open('ran', 'w')\n" + COUNTS.format(body="pass", how="(compiled=False)"))
    link.write_text(SCENARIO.replace('"pfifo"', '"./mine.py"'))
    (tmp_path / "grid.toml").write_text(
        'scenario = "link.toml"\n[[grid]]\nname = "n"\n[[grid.axis]]\nname = "s"\nkey = "path.rtt"\nvalues = ["9ms"]\n'
    )
    content = (tmp_path / "mine.py").read_text()
    studies.write(tmp_path / "own", studies.STUDY.replace('kind = "pi", qref = "24p"', 'kind = "./mine.py"'))
    (tmp_path / "own/mine.py").write_text(content)
    assert cli.invoke(words) == 2
    said = capsys.readouterr().err
    assert "names code, which is not run unasked: expected --allow-code" in said and said.count("\n") == 1
    assert not (tmp_path / "ran").exists()


def test_a_study_from_python_may_be_given_permission(link, tmp_path):
    folder = tmp_path / "own"
    studies.write(folder, studies.STUDY.replace('kind = "pi", qref = "24p"', 'kind = "./mine.py"'))
    own(folder)
    asked = {"quick": True, "seeds": 1, "only": "web/pi/off", "changes": {"duration": "3s", "warmup": "1s"}}
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        study.read(folder, **asked)
    (one,) = study.read(folder, **asked, allow_code=True)
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        study.run({tmp_path / "no": one})
    assert study.run({tmp_path / "yes": one}, allow_code=True)[0].found["complete"]


def test_results_are_read_without_their_code(link, tmp_path, capsys):
    """Reports and figures of a result that somebody else sent."""
    path = own(tmp_path, how="(compiled=False)")
    sent = tmp_path / "sent"
    aqmlab.run(link, set={"link.qdisc.kind": str(path), "duration": "3s"}, out=sent)
    (kept,) = sent.glob("**/*.py")
    kept.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + kept.read_text())
    both = f"from aqmlab import cli; print([cli.invoke([word, {str(sent)!r}]) for word in ('report', 'figures')])"
    program = [sys.executable, "-c", both]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout.endswith("[0, 0]\n"), done.stderr
    assert not (tmp_path / "ran").exists()


def test_another_file_of_the_name_that_was_asked_for_does_not_run(link, tmp_path, monkeypatch):
    """The user names ./mine.py of this folder; the scenario of another folder names its own."""
    (tmp_path / "theirs").mkdir()
    theirs = tmp_path / "theirs/link.toml"
    theirs.write_text(SCENARIO.replace('"pfifo"', '"./mine.py"'))
    own(tmp_path / "theirs", body="open('ran', 'w')", how="(compiled=False)")
    own(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        aqmlab.compare(theirs, "./mine.py", "pfifo")


@pytest.mark.parametrize(
    "verb", ["tc", "shell", "run", "record", "calibrate", "compare", "live", "study", "sweep", "evaluate"]
)
def test_every_verb_that_reads_scenarios_can_be_allowed_to_run_their_code(verb, capsys):
    cli.invoke([verb, "--help"])
    assert "--allow-code" in capsys.readouterr().out


def test_tc_loads_no_code_unasked(link, tmp_path, capsys):
    path = own(tmp_path, how="(compiled=False)")
    path.write_text(f"__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()\n" + path.read_text())
    link.write_text(SCENARIO.replace('"pfifo"', '"./mine.py"'))
    assert cli.invoke(["tc", str(link)]) == 2
    assert "expected --allow-code" in capsys.readouterr().err and not (tmp_path / "ran").exists()
    cli.invoke(["tc", str(link), "--allow-code"])
    assert "--allow-code" not in capsys.readouterr().err and (tmp_path / "ran").exists()


def naming(folder: Path) -> Path:
    """A scenario that names a law beside it."""
    own(folder, "return aqmlab.PASS", "(compiled=False)")
    scenario = folder / "named.toml"
    scenario.write_text('duration = "1s"\nlink = { rate = "1mbit", qdisc = "mine.py" }\n[[traffic]]\nkind = "bulk"\n')
    return scenario


def test_permission_to_run_code_is_that_of_one_call(link, tmp_path):
    scenario = naming(tmp_path)
    refused = pytest.raises(BadInput, match=r"mine\.py\": names code, which is not run unasked")
    with refused:
        aqmlab.run(scenario)
    assert aqmlab.run(scenario, allow_code=True).summary["forward"]
    # The law is loaded by now, and may not run for somebody who does not ask for it.
    for call in (aqmlab.run, lambda file: aqmlab.compare(file, "pfifo"), aqmlab.calibrate):
        with refused:
            call(scenario)
    assert aqmlab.run(scenario, set={"link.qdisc": "mine.py"}).summary["forward"]
    with refused:
        aqmlab.run(scenario)


def test_permission_ends_with_a_call_that_fails_and_with_a_command(link, tmp_path, capsys):
    scenario = naming(tmp_path)
    with pytest.raises(BadInput, match="reps"):
        aqmlab.run(scenario, allow_code=True, reps=0)
    with pytest.raises(BadInput, match="allow_code: 1: expected True or False"):
        aqmlab.run(scenario, allow_code=1)
    assert cli.invoke(["run", str(scenario), "--allow-code", "-o", str(tmp_path / "out")]) == 0
    assert cli.invoke(["run", str(scenario), "-o", str(tmp_path / "again")]) == 2
    assert "names code, which is not run unasked" in capsys.readouterr().err


def test_a_sweep_from_python_may_be_given_permission(link, tmp_path):
    naming(tmp_path)
    (tmp_path / "grid.toml").write_text(
        'scenario = "named.toml"\n[[grid]]\n[[grid.axis]]\nname = "rate"\nkey = "link.rate"\n'
        'values = ["1mbit", "2mbit"]\n'
    )
    asked = sweeps.read(tmp_path / "grid.toml")
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        sweeps.run(asked, tmp_path / "no")
    assert len(sweeps.run(asked, tmp_path / "yes", allow_code=True).rows) == 2
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        sweeps.run(asked, tmp_path / "again")


@pytest.mark.parametrize("key", ["link.qdisc=mine.py", "link.qdisc=fq_mine.py", "name=mine.py"])
def test_a_name_that_is_set_is_not_that_of_somebody_elses_file(link, tmp_path, monkeypatch, capsys, key):
    here, theirs = tmp_path / "here", tmp_path / "theirs"
    here.mkdir()
    theirs.mkdir()
    own(here)
    ran = own(theirs)
    ran.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + ran.read_text())
    there = theirs / "link.toml"
    there.write_text(SCENARIO.replace('"pfifo"', '"./mine.py"') if key.startswith("name") else SCENARIO)
    monkeypatch.chdir(here)
    assert cli.invoke(["run", str(there), "--set", key, "--set", "duration=3s"]) == 2
    assert "not run unasked" in capsys.readouterr().err and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["mine.py", "./mine.py"])
def test_a_name_that_is_set_and_is_not_beside_the_scenario_is_told_the_way(link, tmp_path, monkeypatch, capsys, name):
    here = tmp_path / "here"
    here.mkdir()
    own(here)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "link.toml").write_text(SCENARIO)
    monkeypatch.chdir(here)
    command = ["run", "../there/link.toml", "--set", "duration=3s", "--set"]
    assert cli.invoke([*command, f"link.qdisc={name}"]) == 2
    said = capsys.readouterr().err
    assert (
        "is looked for beside the scenario, where it is no file; expected ../here/mine.py for the one that is" in said
    )
    assert cli.invoke([*command, "link.qdisc=../here/mine.py"]) == 0
