import io
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import fake_native
from aqmlab import cli, engine, stopping
from aqmlab.command import explanations, terminal


def answer(capsys, *arguments):
    code = cli.invoke([str(item) for item in arguments])
    captured = capsys.readouterr()
    assert captured.err == ""
    assert code == 0
    return captured.out


def test_json_stands_alone_on_standard_output(capsys, base, tmp_path, undrawn):
    summary = json.loads(answer(capsys, "run", base, "-o", tmp_path / "a", "--json"))
    assert summary == json.loads((tmp_path / "a/summary.json").read_text())
    compared = json.loads(answer(capsys, "compare", base, "pfifo", "pi ecn", "-o", tmp_path / "b", "--json"))
    assert compared["baseline"] == "pfifo"
    assert compared["variants"][1]["difference_to_baseline"]["p50"]["basis"] == "none"  # too short a window
    calibrated = json.loads(answer(capsys, "calibrate", base, "--json"))
    assert calibrated["calibrations"][0]["cached"] is True
    report = json.loads(answer(capsys, "report", tmp_path / "b", "--json"))
    assert report["report"] == str(tmp_path / "b/report.html")
    assert {row["name"] for row in json.loads(answer(capsys, "list", "disciplines", "--json"))["disciplines"]} >= {"pi"}
    assert json.loads(answer(capsys, "explain", "droptail", "--json"))["name"] == "pfifo"


def test_tables_for_people(capsys, base, tmp_path, undrawn):
    said = answer(capsys, "run", base, "--reps", "2", "-o", tmp_path / "a")
    assert "utilisation" in said and "±" in said and str(tmp_path / "a") in said
    said = answer(capsys, "compare", base, "pfifo", "pi ecn", "uncongested", "-o", tmp_path / "b", "--report")
    assert "pi ecn" in said and "One run: no interval across runs" in said and "report.html" in said
    # So short a run is not known to be settled; that on the uncongested link is.
    assert "± 95 % from 20 parts of its window" in " ".join(said.split())
    assert [bool(re.search(rf"^ {name} .*±", said, re.MULTILINE)) for name in ("pi ecn", "uncongested")] == [
        False,
        True,
    ]
    said = answer(capsys, "compare", base, "pfifo", "pi ecn", "--reps", "2", "-o", tmp_path / "c")
    above, _, footnote = said.partition("± 95 % t-interval across 2 independent runs.")
    assert "±" in above and footnote
    said = answer(capsys, "compare", base, "pfifo", "--reps", "2", "-o", tmp_path / "d")
    assert re.search("^ pfifo .*±", said, re.MULTILINE) and "± 95 % t-interval across 2 independent runs." in said
    assert "users" in answer(capsys, "calibrate", base)
    said = answer(capsys, "list")
    assert re.search(r"^ *pi +2001 +law +marks +A proportional-integral", said, re.MULTILINE)
    assert re.search(r"^ *pfifo +1970 +discipline +– ", said, re.MULTILINE) and "freebsd4" in said and "unc2001" in said
    assert "qref" in answer(capsys, "explain", "pi")
    assert "min_rto" in answer(capsys, "explain", "freebsd4")


def test_a_discipline_is_worked_out_before_a_link(capsys):
    said = answer(capsys, "explain", "pi", "--rate", "10mbit", "--set", "qref=30p")
    assert "before a link of 10 Mb/s" in said
    assert re.search(r"^given +qref +30p *$", said, re.MULTILINE)
    assert re.search(r"^default +mode +packet *$", said, re.MULTILINE)
    assert "Equilibrium" not in said
    found = json.loads(answer(capsys, "explain", "pi", "--rate", "10mbit", "--set", "qref=30p", "--json"))
    assert found["rate_bps"] == 10e6 and found["given"] == ["qref"] and found["values"]["qref"] == "30p"
    # Defaults of the stand-in that are no parameters in its table stay out.
    assert set(found["values"]) == set(fake_native.PARAMS["pi"]) and found["equilibrium"] is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["pi", "--set", "qref=30p"], "--set qref=30p: expected --rate with it"),
        (["freebsd4", "--rate", "10mbit"], "expected a discipline"),
        (["pi", "--rate", "10"], "link.rate: '10'"),
        (["pi", "--rate", "10mbit", "--set", "qeref=30p"], "link.qdisc.qeref: unknown key"),
        (["pi", "--rate", "10mbit", "--set", "kind=red"], "--set kind"),
        (["pi", "--rate", "10mbit", "--set", "qref"], "expected key=value"),
        (["pie", "--rate", "10mbit"], "explain pie: unknown; did you mean pi"),
        (["weather"], "explain weather: expected what aqmlab list names"),
        (["x.csv", "--rate", "10mbit"], "explain x.csv: --rate 10mbit: expected a discipline"),
        (["x.cvec", "--set", "a=1"], "explain x.cvec: --set a=1: expected a discipline"),
    ],
)
def test_what_cannot_be_worked_out_is_named_in_one_line(capsys, arguments, named):
    assert cli.invoke(["explain", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1 and named in said.err


@pytest.mark.parametrize("width", [80, 100, 120])
def test_explanations_fit_the_terminal(capsys, width):
    for row in engine.disciplines():
        out = Console(file=io.StringIO(), width=width)
        explanations.explanation(out, row)
        explanations.registry(out, "disciplines", [row])
        lines = out.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width and "…" not in out.file.getvalue()
        assert "0 to 1e9" in out.file.getvalue()


@pytest.mark.parametrize(
    ("param", "said"),
    [
        ({"range": [1e-6, 10.0], "unit": "s", "words": []}, "1us to 10s"),
        ({"range": [0.0, 1e6], "unit": "s", "words": []}, "0s to 1e6s"),
        ({"range": [0.0, 4e9], "unit": "packets or bytes", "words": []}, "0 to 4e9 packets or bytes"),
        ({"range": [1.0, 1048576.0], "unit": "bytes", "words": []}, "1 byte to 1 MiB"),
        ({"range": [256.0, 2097152.0], "unit": "bytes", "words": []}, "256 bytes to 2 MiB"),
        ({"range": [1.0, 65535.0], "unit": "bytes", "words": []}, "1 to 65535 bytes"),
        ({"range": [1.0, 1e15], "unit": "bit/s", "words": []}, "1bit to 1000tbit"),
        ({"range": [1.0, None], "unit": "hz", "words": []}, "at least 1 hz"),
        ({"range": [None, None], "unit": "", "words": ["packet", "byte"]}, "packet, byte"),
        ({"range": [1.0, 65535.0], "unit": "", "words": []}, "1 to 65535"),
    ],
)
def test_ranges_are_said_as_people_write_them(param, said):
    assert explanations.range_text(param) == said


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


@pytest.mark.parametrize(
    ("words", "shown", "said"),
    [
        (["run"], "result", "1 run is"),
        (["run", "--reps", "2"], "result", "2 runs are"),
        (["compare", "pfifo", "pi", "--reps", "2"], "comparison", "4 runs are"),
        (["live"], "result", "1 run is"),
    ],
)
def test_ctrl_c_when_runs_are_over_says_that_they_are_kept(small, tmp_path, capsys, monkeypatch, words, shown, said):
    def stopping(*_):
        raise KeyboardInterrupt

    (verb, *others), out = words, tmp_path / "out"
    monkeypatch.setattr(terminal, shown, stopping)
    assert cli.invoke([verb, str(small), *others, "-o", str(out)]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"aqmlab: stopped: {said} finished in {out}; the same command with --resume goes on"
    )


def test_ctrl_c_when_nothing_was_run_says_that_it_stopped(small, tmp_path, capsys, monkeypatch):
    from aqmlab import api

    def stopping(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "run", stopping)
    assert cli.invoke(["run", str(small), "-o", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == "aqmlab: stopped\n"


DEMO = """
duration = "2s"
warmup = "1s"
link = {rate = "1mbit", qdisc = {kind = "pfifo"}}
traffic = [{kind = "bulk"}]
"""


def ended_with(words, output, unbuffered, **options):
    """The exit code of the command, and what it complained of."""
    done = subprocess.run(
        [sys.executable, "-m", "aqmlab", *words],
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        timeout=120,
        **options,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--version"], ["run", "--help"], ["run", "demo.toml", "-o", "out"]])
def test_who_goes_away_before_all_is_printed_is_no_failed_check(words, unbuffered, tmp_path):
    (tmp_path / "demo.toml").write_text(DEMO)
    read, write = os.pipe()
    os.close(read)
    try:
        assert ended_with(words, write, unbuffered, cwd=tmp_path) == (141, "")
    finally:
        os.close(write)
    if words[0] == "run" and "-o" in words:
        assert (tmp_path / "out/summary.json").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="left out: a disk that is full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--version"], ["list", "stacks"], ["explain", "pi", "--json"], ["run", "--help"]])
def test_a_full_disk_is_said_in_a_line_whenever_it_is_noticed(words, unbuffered):
    with Path("/dev/full").open("w") as full:
        code, said = ended_with(words, full, unbuffered)
    assert (code, said) == (3, "aqmlab: standard output: No space left on device\n")


SHORT = """
duration = "3s"
warmup = "1s"
link.rate = "10mbit"
[[traffic]]
kind = "bulk"
"""


@pytest.mark.parametrize(
    ("words", "named"),
    [(["run", "short.toml", "-o", "out"], "out"), (["new", "web"], "web.toml")],
    ids=["run", "new"],
)
def test_what_has_no_room_is_named_and_not_left_behind(words, named, tmp_path):
    """As a full disk, a file that must not grow."""
    (tmp_path / "short.toml").write_text(SHORT)

    def short_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))

    code, said = ended_with(words, subprocess.DEVNULL, "", cwd=tmp_path, preexec_fn=short_files)
    assert (code, said) == (3, f"aqmlab: {named}: File too large\n")
    assert [path.name for path in tmp_path.iterdir()] == ["short.toml"]


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
@pytest.mark.parametrize("words", [["explain", "pi"], ["list"], ["compare", "--help"], ["list", "--json"]])
def test_a_character_that_output_has_not_is_replaced(words, encoding):
    done = subprocess.run(
        [sys.executable, "-m", "aqmlab", *words],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if "--json" in words:
        assert done.stdout.isascii() and b"\\u" in done.stdout and json.loads(done.stdout)["disciplines"]


def test_another_broken_pipe_than_that_of_the_output_is_said(small, tmp_path, capsys, monkeypatch):
    from aqmlab import api

    def breaking(*_, **__):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(api, "run", breaking)
    words = ["run", str(small), "-o", str(tmp_path / "out")]
    assert cli.invoke(words) == 3
    assert capsys.readouterr().err == "aqmlab: Broken pipe\n"
    monkeypatch.setattr(stopping, "nobody_reads", lambda: True)
    assert cli.invoke(words) == stopping.UNREAD == 141
