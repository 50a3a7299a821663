import json

import pytest

import fake_native
from aqmlab import cli


def answer(capsys, *arguments):
    code = cli.invoke([str(item) for item in arguments])
    captured = capsys.readouterr()
    assert captured.err == ""
    assert code == 0
    return captured.out


def test_json_stands_alone_on_standard_output(capsys, base, tmp_path):
    summary = json.loads(answer(capsys, "run", base, "-o", tmp_path / "a", "--json"))
    assert summary == json.loads((tmp_path / "a/summary.json").read_text())
    compared = json.loads(answer(capsys, "compare", base, "pfifo", "pi ecn", "-o", tmp_path / "b", "--json"))
    assert compared["baseline"] == "pfifo"
    assert compared["variants"][1]["difference_to_baseline"]["p50"]["basis"] == "parts"
    calibrated = json.loads(answer(capsys, "calibrate", base, "--json"))
    assert calibrated["calibrations"][0]["cached"] is True
    report = json.loads(answer(capsys, "report", tmp_path / "b", "--json"))
    assert report["report"] == str(tmp_path / "b/report.html")
    assert {row["name"] for row in json.loads(answer(capsys, "list", "disciplines", "--json"))["disciplines"]} >= {"pi"}
    assert json.loads(answer(capsys, "explain", "droptail", "--json"))["name"] == "pfifo"


def test_tables_for_people(capsys, base, tmp_path):
    said = answer(capsys, "run", base, "--reps", "2", "-o", tmp_path / "a")
    assert "utilisation" in said and "±" in said and str(tmp_path / "a") in said
    said = answer(capsys, "compare", base, "pfifo", "pi ecn", "uncongested", "-o", tmp_path / "b", "--report")
    assert "pi ecn" in said and "One run: no interval across runs" in said and "report.html" in said
    assert "users" in answer(capsys, "calibrate", base)
    assert "a test" in answer(capsys, "list")
    assert "qref" in answer(capsys, "explain", "pi")
    assert "min_rto" in answer(capsys, "explain", "freebsd4")


def test_settings_change_the_scenario(capsys, base, tmp_path):
    answer(capsys, "run", base, "--set", "traffic.0.load=60mbit", "--set", "name=x", "-o", tmp_path / "a")
    text = (tmp_path / "a/scenario.toml").read_text()
    assert 'name = "x"' in text
    assert json.loads((tmp_path / "a/manifest.json").read_text())["calibration"][0]["load_bps"] == 60e6


def test_without_a_name_results_never_overwrite_each_other(capsys, base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer(capsys, "run", base)
    answer(capsys, "run", base)
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["web-users", "web-users-2"]


def test_a_run_that_is_not_what_it_claims_to_be_says_so(capsys, base, tmp_path, monkeypatch):
    original = fake_native._exchanges

    def losing_rows(*arguments):
        return original(*arguments).head(100)

    def summary_of_all(tree, exchanges, *rest):
        found = summary(tree, exchanges, *rest)
        found["exchanges"]["completed"] = 101
        return found

    summary = fake_native._summary
    monkeypatch.setattr(fake_native, "_exchanges", losing_rows)
    monkeypatch.setattr(fake_native, "_summary", summary_of_all)
    assert cli.invoke(["run", str(base), "-o", str(tmp_path / "a")]) == 1
    said = capsys.readouterr().err
    assert said.splitlines() == [
        "aqmlab: self-check failed: every completed exchange is in the table: 100 rows, 101 completed in the summary"
    ]


def test_the_version(capsys):
    assert answer(capsys, "--version") == "aqmlab 0.0.test\n"


@pytest.mark.parametrize("verb", ["run", "compare", "calibrate", "report", "list", "explain"])
def test_every_verb_explains_itself(capsys, verb):
    assert "--json" in answer(capsys, verb, "--help")
