import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import fake_native
import studies
from aqmlab import cli, scenario, study
from aqmlab.command import study as study_command
from aqmlab.errors import BadInput
from aqmlab.json_files import read_json
from aqmlab.study import definition, folders, found, outcome, overview, runs
from aqmlab.sweep.kept import Kept
from conftest import ROOT, hears_signals

pytestmark = pytest.mark.usefixtures("settled_runs", "here", "undrawn")


def test_a_study_of_ones_own_is_run_judged_and_reported(folder, capsys, undrawn):
    undrawn.undo()
    assert cli.invoke(["study", "tiny"]) == 0
    answer = capsys.readouterr()
    assert "tiny-1  holds" in answer.out and "tiny-2  does not hold" in answer.out
    assert "Verdicts: 1 holds, 1 does not hold.\n" in answer.out
    # Four points and one of another grid under three seeds; the sixth point is the same as one of the first.
    assert "tiny: 15 runs of 6 points" in answer.err
    assert len(fake_native.calls) == 15
    out = Path("results/study-tiny")
    facts = read_json(out / "study.json")
    assert facts["command"] == "aqmlab study tiny"
    assert facts["complete"] and facts["runs"] == 15 and facts["runs_kept"] == 0
    assert [claim["as_known"] for claim in facts["claims"]] == [True, True]
    assert facts["claims"][0]["findings"][0]["basis"] == "runs"
    # The stand-in says that a run takes between 1.5 and 2.5 s.
    assert 15 * 1.5 <= facts["cpu_h"] * 3600 <= 15 * 2.5
    assert facts["simulated_h"] == pytest.approx(15 * 30 / 3600)
    assert (out / "report.html").exists()
    svgs = [path.read_text() for path in (out / "figures").glob("*.svg")]
    assert svgs and all("<path" in svg for svg in svgs)
    table = pl.read_parquet(out / "runs.parquet")
    assert table.height == 18 and table["seed"].unique().sort().to_list() == [1, 2, 3]


def test_runs_that_are_kept_are_not_made_again(folder):
    assert cli.invoke(["study", "tiny", "--json"]) == 0
    first = read_json(Path("results/study-tiny/study.json"))
    fake_native.calls.clear()
    assert cli.invoke(["study", "tiny", "--resume"]) == 0
    assert fake_native.calls == []
    again = read_json(Path("results/study-tiny/study.json"))
    assert again["runs_kept"] == again["runs"] and again["digest"] == first["digest"]
    assert again["cpu_h"] == first["cpu_h"], "what kept runs took counts too"
    assert cli.invoke(["study", "tiny", "--fresh"]) == 0
    assert len(fake_native.calls) == 15


def test_two_studies_share_the_runs_that_both_need(here):
    one = studies.write(here / "one", studies.STUDY.replace('"tiny"', '"one"'))
    other = studies.write(
        here / "other",
        studies.STUDY.replace('"tiny"', '"other"').replace("values = [1200, 1800]", "values = [1500, 1800]"),
    )
    said: list[str] = []
    both = {here / "results" / folder.name: definition.read(folder) for folder in (one, other)}
    done = study.run(both, say=said.append)
    # Of 15 runs each, those with 1200 and with 1500 users are one study's alone.
    assert len(fake_native.calls) == 18
    assert said == [
        "one: 15 runs of 6 points; 12 of them other needs too",
        "other: 15 runs of 6 points; 12 of them one needs too",
    ]
    assert [one.found["shared"] for one in done] == [{"other": 12}, {"one": 12}]
    base = here / "results"
    answer = overview.write(base, done)
    assert answer["runs"] == 18 and answer["claims"] == {
        "holds": 2,
        "does not hold": 2,
        "cannot be decided": 0,
        "not run in this profile": 0,
    }
    # What both need is counted once.
    assert answer["cpu_h"] < sum(one.found["cpu_h"] for one in done)
    assert (base / "index.html").exists() and read_json(base / "study.json")["studies"][1][
        "report"
    ] == "other/report.html"


def test_all_studies_are_one_plan(here, monkeypatch, capsys):
    for name in ("one", "other"):
        studies.write(here / "studies" / name, studies.STUDY.replace('"tiny"', f'"{name}"'))
    monkeypatch.setattr(folders, "folder_of_all", lambda: here / "studies")
    assert cli.invoke(["study", "all", "--quick", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    # Two seeds of four points; the last grid's one point is among them.
    assert len(fake_native.calls) == 8 and [one["id"] for one in answer["studies"]] == ["one", "other"]
    out = Path("results/studies-quick")
    assert (out / "index.html").exists() and (out / "other" / "report.html").exists()
    assert cli.invoke(["list", "studies"]) == 0
    assert "Web users over short queues" in capsys.readouterr().out


def test_of_all_studies_those_run_that_have_the_scale(here, monkeypatch, capsys):
    medium = '\n[profiles.medium]\nseeds = 1\nset = { duration = "20s", warmup = "10s" }\n'
    for name, more in (("one", ""), ("other", medium)):
        studies.write(here / "studies" / name, studies.STUDY.replace('"tiny"', f'"{name}"') + more)
    monkeypatch.setattr(folders, "folder_of_all", lambda: here / "studies")
    assert cli.invoke(["study", "all", "--medium"]) == 0
    assert "one: left out, for want of the profile medium" in "".join(capsys.readouterr())
    assert Path("results/studies-medium/other/report.html").exists()
    assert not Path("results/studies-medium/one").exists()
    studies.write(here / "studies" / "other", studies.STUDY.replace('"tiny"', '"other"'))
    assert cli.invoke(["study", "all", "--medium"]) == 2
    assert "no study has a table profiles.medium" in capsys.readouterr().err


def test_a_verdict_that_is_not_the_known_one_ends_with_one(here, capsys):
    wrong = studies.WRONG.replace('known_outcome = "does not hold"\n', "").replace("explained", "# explained")
    studies.write(here / "tiny", claims=studies.CLAIMS + wrong)
    assert cli.invoke(["study", "tiny", "--quick"]) == 1
    answer = capsys.readouterr()
    assert "tiny-2  does not hold (known: holds)" in answer.out
    complaint = answer.err.strip().splitlines()[-1]
    assert complaint.startswith("aqmlab: not the known outcome: tiny-2: does not hold, known outcome: holds")


@pytest.mark.parametrize(
    ("verdict", "known", "is_whole", "answer"),
    [
        ("holds", "holds", True, True),
        ("cannot be decided", "holds", True, False),
        ("cannot be decided", "holds", False, True),
        ("does not hold", "holds", False, False),
        ("holds", "does not hold", False, False),
        ("holds", "cannot be decided", False, True),
        ("holds", "cannot be decided", True, False),
    ],
)
def test_shorter_runs_are_judged_by_the_opposite_alone(verdict, known, is_whole, answer):
    assert outcome.as_known(verdict, known, is_whole) is answer


def test_a_number_that_is_missing_though_it_was_run_is_not_the_known_outcome_of_any_profile():
    assert not outcome.as_known("cannot be decided", "holds", is_whole=False, no_data=1)
    assert not outcome.as_known("cannot be decided", "does not hold", is_whole=False, no_data=1)
    assert outcome.as_known("cannot be decided", "cannot be decided", is_whole=False, no_data=1)
    assert outcome.as_known("not run in this profile", "holds", is_whole=False)
    assert not outcome.as_known("not run in this profile", "holds", is_whole=True)


def test_a_part_lists_its_points_before_it_runs_and_folds_what_is_not_asked(here, capsys):
    studies.write(here / "tiny")
    kept = {"takes": {"abc": {"cpu_h": 0.5, "simulated_h": 10.0}}, "claims": {}}
    (here / "tiny" / found.KEPT).write_text(json.dumps({"quick": kept}))
    assert cli.invoke(["study", "tiny", "--quick", "--only", "web/pi/*"]) == 0
    answer = capsys.readouterr()
    # Two points, two seeds of 20 s each, at a twentieth of that in processor time.
    cost = "1:20 simulated, about 0:04 of processor time by the runs that are kept with the study:"
    assert answer.err.splitlines()[:3] == [
        f"aqmlab: tiny: 2 points, 4 runs, {cost}",
        "aqmlab:   web/pi/off",
        "aqmlab:   web/pi/on",
    ]
    asked = [line for line in answer.out.splitlines() if line.startswith("tiny-")]
    unrun = [claim["id"] for claim in read_json(Path("results/study-tiny-quick-part/study.json"))["claims"]]
    assert len(unrun) > len(asked) and f"{len(unrun) - len(asked)} not run in this profile" in answer.out
    page = Path("results/study-tiny-quick-part/report.html").read_text(encoding="utf-8")
    assert page.count('<details class="unrun">') == 1
    assert page.index('<details class="unrun">') < page.index('data-verdict="unrun"', page.index("<article"))


def test_of_a_part_of_many_points_a_few_are_named(here, capsys, monkeypatch):
    studies.write(here / "tiny")
    assert runs.LISTED == 5
    monkeypatch.setattr(runs, "LISTED", 1)
    assert cli.invoke(["study", "tiny", "--quick", "--only", "web/*"]) == 0
    first, *named = capsys.readouterr().err.splitlines()[:3]
    assert first.startswith("aqmlab: tiny: 4 points, 8 runs, ")
    assert named == ["aqmlab:   web/uncongested/off", "aqmlab:   and 3 more"]


def test_no_data_of_points_that_were_run_ends_with_one(here, capsys):
    # The stand-in's queue keeps no number of flows.
    claims = studies.CLAIMS.replace('measure = "ahead"\nat_s = 0.5', 'measure = "state"\ncolumn = "tracked_flows"')
    assert claims != studies.CLAIMS
    studies.write(here / "tiny", claims=claims)
    assert cli.invoke(["study", "tiny", "--quick"]) == 1
    complaint = capsys.readouterr().err.strip().splitlines()[-1]
    assert complaint.startswith("aqmlab: not the known outcome: tiny-1: cannot be decided") and "no data" in complaint


def test_a_point_left_out_of_a_profile_decides_nothing(here, capsys):
    claims = studies.CLAIMS.replace('{ grid = "web", aqm = "pi", ecn = "on" }', '{ grid = "again", users = "1200" }')
    studies.write(
        here / "tiny", claims=claims.replace('{ grid = "web", aqm = "pfifo", ecn = "off" }', '{ users = "1800" }')
    )
    assert cli.invoke(["study", "tiny", "--quick"]) == 0
    assert "1 not run in this profile" in capsys.readouterr().out
    facts = read_json(Path("results/study-tiny-quick/study.json"))
    assert facts["claims"][0]["findings"][0]["number"] == "not run in this profile"
    assert facts["claims"][0]["verdict"] == "not run in this profile"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["le2002"], "study le2002: expected one of brandauer2001"),
        (["empty"], "empty: holds no study.toml; expected the folder of a study"),
        (["tiny", "--resume", "--fresh"], "--fresh: makes every run anew; expected it without --resume"),
        (["tiny", "--live"], "tiny/study.toml: live: missing; expected a comparison file"),
        (["tiny", "-o", "mine"], "mine: holds something else than results of the study tiny"),
        (["tiny", "-o", "tiny/study.toml"], "tiny/study.toml: exists and is not a folder"),
        (["tiny", "--seeds", "0"], "--seeds"),
        (
            ["tiny", "--set", "link.qdisc.kind=red", "--live"],
            "--set link.qdisc.kind=red: changes simulated runs; expected",
        ),
        (
            ["tiny", "--only", "web/*", "--set", "link.rate=10mbit"],
            "--set link.rate=10mbit: changes none of the points asked for (4), whose axes say otherwise or",
        ),
        (
            ["tiny", "--only", "web/*", "--set", "path.access_rate=50mbit", "--set", "link.rate=10mbit"],
            "--set link.rate=10mbit: changes none of the points asked for (4), whose axes say otherwise or",
        ),
        (["tiny", "--only", "web/pie/*"], "study tiny: --only 'web/pie/*': matches none of its 6 points; expected a"),
        (["tiny", "--bed", "lab"], "study tiny: --bed lab: expected none: this study has no other test bed"),
        (["all", "--bed", "lab"], "--bed lab: names a test bed of one study; expected its id in the place of all"),
        (["all", "--only", "web/*"], "--only 'web/*': names points of one study; expected its id in the place of all"),
    ],
)
def test_bad_input_is_one_line(folder, here, capsys, arguments, complaint):
    (here / "empty").mkdir()
    (here / "mine").mkdir()
    (here / "mine" / "notes").write_text("")
    assert cli.invoke(["study", *arguments]) == 2
    answer = capsys.readouterr()
    assert answer.out == "" and answer.err.count("\n") == 1 and complaint in answer.err
    assert fake_native.calls == [], "nothing has run"


def test_bad_scenarios_are_found_before_anything_runs(here, capsys):
    text = studies.STUDY.replace('{ kind = "pi", qref = "24p" }', '{ kind = "pi", wref = "24p" }')
    studies.write(here / "tiny", text)
    assert cli.invoke(["study", "tiny"]) == 2
    answer = capsys.readouterr().err
    assert answer.count("\n") == 1 and "wref" in answer and "study.toml" in answer
    assert fake_native.calls == []


def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(folder, here):
    program = [sys.executable, str(Path(__file__).with_name("with_stand_in.py"))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "AQMLAB_CACHE": str(here / "cache")}
    kept = here / "cache" / "runs"
    process = subprocess.Popen(
        [*program, "0.3", "study", "tiny"],
        preexec_fn=hears_signals,
        env=environment,
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(list(kept.glob("[!.]*"))) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and stdout == ""
    last = stderr.strip().splitlines()[-1]
    finished = len(list(kept.glob("[!.]*")))
    # Ctrl-C may come between keeping a run and counting it.
    assert last in [
        f"aqmlab: stopped: {count} of 15 runs are finished; the same command with --resume goes on"
        for count in (finished - 1, finished)
    ]
    assert read_json(here / "results/study-tiny/study.json")["complete"] is False
    assert pl.read_parquet(here / "results/study-tiny/runs.parquet").height >= finished - 1
    again = subprocess.run(
        [*program, "0", "study", "tiny", "--resume"],
        env=environment,
        cwd=here,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert again.returncode == 0, again.stderr
    assert f"{finished} are kept from before" in again.stderr
    assert read_json(here / "results/study-tiny/study.json")["runs_kept"] == finished


def test_a_part_of_a_study_answers_the_claims_that_it_can(folder, here, capsys):
    more = """
[[claim]]
id = "tiny-3"
says = "More users have longer responses."
reason = "the claim gives an order, no size"
seeds = 1
[[claim.check]]
measure = "ahead"
at_s = 0.5
of = { grid = "again", users = "1200" }
than = { grid = "again", users = "1800" }
low = 0.0
"""
    (folder / "claims.toml").write_text(studies.CLAIMS + studies.WRONG + more)
    assert cli.invoke(["study", "tiny", "--quick"]) == 0
    found.keep(Path("results/study-tiny-quick"), folder)
    assert cli.invoke(["study", "tiny", "--only", "web/*/off", "--only", "web/pi/*"]) == 0
    assert "4 of 6 points, those named `web/*/off` or `web/pi/*`." in " ".join(capsys.readouterr().out.split())
    facts = read_json(Path("results/study-tiny-part/study.json"))
    assert facts["command"] == "aqmlab study tiny --only 'web/*/off' --only 'web/pi/*'" and facts["runs"] == 12
    found.keep(Path("results/study-tiny-part"), folder)

    def scales() -> dict[str, str]:
        rows = [line for line in overview.markdown([folder]).splitlines() if line.startswith("| tiny-")]
        return {row.split(" | ")[0].removeprefix("| "): row.split(" | ")[-1].removesuffix(" |") for row in rows}

    assert scales() == {"tiny-1": "full", "tiny-2": "full", "tiny-3": "–"}, "quick leaves one of its points out"
    assert "Only a part of it was run: 4 of 6 points" in overview.markdown([folder])
    # Another part adds what it answers, and a smaller one takes nothing away.
    assert cli.invoke(["study", "tiny", "--only", "again/*"]) in (0, 1)
    found.keep(Path("results/study-tiny-part"), folder)
    assert scales() == {"tiny-1": "full", "tiny-2": "full", "tiny-3": "full"}
    kept = read_json(folder / "found.json")
    assert len(kept["full"]["takes"]) == 2
    assert {claim["take"] for claim in kept["full"]["claims"].values()} == set(kept["full"]["takes"])
    # One that asks other numbers of a claim, even if as many, does not answer it anew.
    before = kept["full"]["claims"]["tiny-1"]
    part = read_json(Path("results/study-tiny-part/study.json"))
    half = {**before["findings"][0], "label": "another number"}
    claims = [{**claim, "findings": [half]} if claim["id"] == "tiny-1" else claim for claim in part["claims"]]
    assert found.numbers({**part, "claims": claims}, kept["full"])["claims"]["tiny-1"] == before
    # Nor does one that asks the same of fewer runs; of as many it does.
    same = [{**claim, "findings": before["findings"]} if claim["id"] == "tiny-1" else claim for claim in part["claims"]]
    assert found.numbers({**part, "claims": same}, kept["full"])["claims"]["tiny-1"]["take"] != before["take"]
    once = [{**finding, "n": finding["n"] - 1} for finding in before["findings"]]
    less = [{**claim, "findings": once} if claim["id"] == "tiny-1" else claim for claim in part["claims"]]
    assert found.numbers({**part, "claims": less}, kept["full"])["claims"]["tiny-1"] == before
    fewer = [claim for claim in part["claims"] if claim["id"] != "tiny-1"]
    assert found.numbers({**part, "claims": fewer}, kept["full"])["claims"]["tiny-1"] == before
    # The whole of it is one take again.
    assert cli.invoke(["study", "tiny"]) in (0, 1)
    found.keep(Path("results/study-tiny"), folder)
    assert len(read_json(folder / "found.json")["full"]["takes"]) == 1


def test_numbers_that_are_too_long_for_a_line_leave_its_claim_readable(here, capsys):
    claims = studies.CLAIMS.replace("at_s = 0.5", f'at_s = 0.5\nlabel = "{"far ahead of it " * 12}"')
    assert claims != studies.CLAIMS
    studies.write(here / "tiny", claims=claims)
    assert cli.invoke(["study", "tiny", "--quick"]) in (0, 1)
    line = next(line for line in capsys.readouterr().out.splitlines() if "far ahead of it" in line)
    assert line.startswith("tiny-1  ") and line.rstrip().endswith("…")


@pytest.mark.parametrize(
    ("room", "said"),
    [
        (59, "15 of 20 asked; at the scale: holds (TD, 16: 8.613 ± 0.007)"),
        (50, "15 of 20 asked; at the scale: holds …"),
        (34, "15 of 20 asked; at the scale …"),
        (17, "15 of 20 asked …"),
    ],
)
def test_numbers_are_cut_between_words_and_not_in_brackets(room, said):
    found = study_command._beginning("15 of 20 asked; at the scale: holds (TD, 16: 8.613 ± 0.007)", room)
    assert found == said and len(found) <= room


REMARK = "8 of 20 numbers asked; the window was too short to tell whether it is settled in 39 of 40 runs"


@pytest.mark.parametrize(
    ("room", "said"),
    [
        (43, f"{REMARK}: TD, 16: 8.597 ± 0.048 Mb/s …"),
        (83, f"{REMARK}: TD, 16: 8.597 ± 0.048 Mb/s …"),
        (98, f"{REMARK} …"),
        (20, "8 of 20 numbers asked; the window was too short to tell whether it is …"),
    ],
)
def test_why_a_claim_is_as_it_is_has_lines_of_its_own(room, said):
    number = f"{REMARK}: TD, 16: 8.597 ± 0.048 Mb/s (too short to tell whether it is settled in 5 of 5 runs); TD, 32: 9"
    assert study_command._in_lines(number, room, REMARK) == said
    assert study_command._in_lines("TD: 8.597 ± 0.048 Mb/s", 30, "") == "TD: 8.597 ± 0.048 Mb/s"


def test_a_study_may_be_asked_with_other_settings(folder, here, capsys):
    words = ["study", "tiny", "--quick", "--set", "path.access_rate=50mbit", "--set", "traffic.0.users=1000"]
    assert cli.invoke(words) in (0, 1)
    out = Path("results/study-tiny-quick-changed")
    facts = read_json(out / "study.json")
    assert facts["changes"] == {"path.access_rate": "50mbit", "traffic.0.users": 1000}
    assert facts["command"] == "aqmlab study tiny --quick --set path.access_rate=50mbit --set traffic.0.users=1000"
    said = "path.access_rate = 50mbit, in 5 of 5 points; traffic.0.users = 1000, in 4 of 5 points."
    assert f"Not as the study was: {said}" in facts["profile"]["says"]
    assert "Not as the study was" in (out / "report.html").read_text(encoding="utf-8")
    runs = pl.read_parquet(out / "runs.parquet")
    kept = Kept()
    users = {run.scenario["traffic"][0]["users"] for run in map(kept.load, kept_keys(kept))}
    assert users == {1000, 1800}, "the axis that varies it stands above"
    assert runs.height == 9
    with pytest.raises(BadInput, match=r"made with path.access_rate, traffic.0.users in the place of what the study"):
        found.keep(out, folder)
    assert cli.invoke(["study", "tiny", "--quick", "--set", "link"]) == 2
    assert "expected key=value" in capsys.readouterr().err


BED = """
[[bed]]
name = "lab"
title = "the laboratory"
set = { "path.access_rate" = "50mbit" }
says = "On slower interfaces."
"""


def test_a_study_has_a_column_for_each_test_bed(folder, here, capsys):
    """The bare model and the bed are run and kept apart, and each page has the other's verdicts beside its own."""
    (folder / "study.toml").write_text(studies.STUDY + BED)
    assert cli.invoke(["study", "tiny", "--quick"]) == 0
    found.keep(Path("results/study-tiny-quick"), folder)
    bare = read_json(folder / "found.json")
    assert cli.invoke(["study", "tiny", "--quick", "--bed", "lab"]) == 0
    out = Path("results/study-tiny-lab-quick")
    facts = read_json(out / "study.json")
    assert (facts["bed"], facts["command"]) == ("lab", "aqmlab study tiny --quick --bed lab")
    assert "On slower interfaces." in facts["profile"]["says"]
    kept = Kept()
    rates = {run.scenario.get("path", {}).get("access_rate") for run in map(kept.load, kept_keys(kept))}
    assert "50mbit" in rates
    verdicts = {claim["id"]: claim["verdict"] for claim in facts["claims"]}
    of_bare = {name: answer["verdict"] for name, answer in bare["quick"]["claims"].items()}
    assert {name: column[0]["verdict"] for name, column in facts["columns"].items()} == of_bare
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Here: the laboratory. Beside it: <i>the bare model</i> (profile quick):" in page
    found.keep(out, folder)
    both = read_json(folder / "found.json")
    assert both["quick"] == bare["quick"]
    assert {name: item["verdict"] for name, item in both["beds"]["lab"]["quick"]["claims"].items()} == verdicts
    row = next(line for line in overview.markdown([folder]).splitlines() if line.startswith("| tiny-1 |"))
    assert f"<br>the laboratory: {verdicts['tiny-1']} (quick)" in row


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (BED.replace("title", "titel"), "bed.0: titel: 'the laboratory': unknown key; did you mean title?"),
        (
            BED.replace('{ "path.access_rate" = "50mbit" }', "{}"),
            "bed.0.set: missing; expected what is otherwise on this test bed, as set or point",
        ),
    ],
)
def test_a_test_bed_that_makes_no_sense_is_one_line(folder, here, capsys, text, complaint):
    (folder / "study.toml").write_text(studies.STUDY + text)
    assert cli.invoke(["study", "tiny", "--quick", "--bed", "lab"]) == 2
    assert complaint in capsys.readouterr().err
    assert fake_native.calls == [], "nothing has run"


def test_settings_are_written_as_they_are_read(folder):
    changes = {"path.rtt": {"uniform": ["10ms", "150ms"]}, "path.access_rate": "50mbit", "name": "5", "tcp.window": 0.1}
    words = shlex.split(definition.read(folder, "quick", changes=changes).command)
    settings = [after for word, after in itertools.pairwise(words) if word == "--set"]
    assert dict(map(scenario.parse_setting, settings)) == changes


def kept_keys(kept: Kept) -> list[str]:
    """Of all runs in a cache."""
    return sorted(entry.name for entry in kept.folder.iterdir() if not entry.name.startswith("."))
