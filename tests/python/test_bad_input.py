"""Each bad input: one clear line on standard error, exit code 2, nothing started, nothing written."""

import pytest

import fake_native
from aqmlab import cli
from conftest import BASE

WRONG_SCENARIOS = {
    "unknown key": (BASE + "\n[links]\nx = 1\n", "links"),
    "unknown parameter": (BASE.replace('kind = "pfifo"', 'kind = "pfifo"\nlimti = "240p"'), "limti"),
    "wrong unit": (BASE.replace("100mbit", "100mbps"), "100mbps"),
    "no unit": (BASE.replace('"100mbit"', "24"), "24"),
    "a rate of zero": (BASE.replace("100mbit", "0mbit"), "link.rate"),
    "an unreachable load": (BASE.replace("98mbit", "5gbit"), "5gbit"),
    "a warm-up longer than the run": (BASE.replace('warmup = "10s"', 'warmup = "40s"'), "warmup"),
    "no traffic": (BASE[: BASE.index("[[traffic]]")], "traffic"),
    "a truncated file": (BASE[: BASE.index("98mbit")], "not valid TOML"),
}


def complaint(capsys, arguments):
    code = cli.invoke([str(item) for item in arguments])
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1, captured.err
    assert fake_native.calls == []
    return captured.err


# `compare` replaces the discipline, so a wrong parameter of it is no error there.
TRIALS = [
    (what, verb)
    for what in WRONG_SCENARIOS
    for verb in ("run", "calibrate", "compare")
    if (what, verb) != ("unknown parameter", "compare")
]


@pytest.mark.parametrize(("what", "verb"), TRIALS)
def test_wrong_scenarios(what, verb, tmp_path, capsys):
    text, named = WRONG_SCENARIOS[what]
    path = tmp_path / "bad.toml"
    path.write_text(text)
    arguments = {
        "run": ["run", path, "-o", tmp_path / "out"],
        "calibrate": ["calibrate", path],
        "compare": ["compare", path, "pfifo", "pi", "-o", tmp_path / "out"],
    }[verb]
    said = complaint(capsys, arguments)
    assert named in said
    assert "bad.toml" in said
    assert not (tmp_path / "out").exists()


def test_a_scenario_that_is_not_there(capsys, tmp_path):
    assert "no such file" in complaint(capsys, ["run", tmp_path / "none.toml"])


def test_a_scenario_that_is_not_text(capsys, tmp_path):
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in complaint(capsys, ["run", tmp_path / "bad.toml"])


def test_a_result_folder_that_exists(capsys, base, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/x").write_text("")
    assert "exists" in complaint(capsys, ["run", base, "-o", tmp_path / "out"])
    assert "exists" in complaint(capsys, ["compare", base, "pi", "-o", tmp_path / "out"])


def test_a_result_folder_that_is_a_file(capsys, base, tmp_path):
    (tmp_path / "out").write_text("")
    assert "not a folder" in complaint(capsys, ["run", base, "-o", tmp_path / "out"])


def test_an_unwritable_result_folder(capsys, base, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written" in complaint(capsys, ["run", base, "-o", tmp_path / "file/out"])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "WEB", "--reps", "0"], "--reps"),
        (["run", "WEB", "--jobs", "-1"], "--jobs"),
        (["run", "WEB", "--set", "seed"], "key=value"),
        (["run", "WEB", "--set", "link.qdisc.qrf=24p"], "qrf"),
        (["run", "WEB", "--uncongested-rate", "1gbps"], "uncongested_rate"),
        (["run", "WEB", "--resume"], "-o"),
        (["run", "WEB", "--frobnicate"], "--frobnicate"),
        (["run"], "SCENARIO.toml"),
        (["compare", "WEB"], "variant"),
        (["compare", "WEB", "pie"], "pie"),
        (["compare", "WEB", "pi", "pi"], "is there twice"),
        (["compare", "WEB", "pi", "--baseline", "rem"], "--baseline rem"),
        (["report", "nowhere"], "nowhere"),
        (["list", "kernels"], "kernels"),
        (["explain", "pie"], "pie"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_wrong_arguments(arguments, named, capsys, base, tmp_path):
    arguments = [str(base) if item == "WEB" else item for item in arguments]
    if arguments[0] in ("run", "compare") and "--resume" not in arguments:
        arguments += ["-o", str(tmp_path / "out")]
    assert named in complaint(capsys, arguments)


def test_a_folder_that_holds_no_result(capsys, tmp_path):
    assert "manifest.json" in complaint(capsys, ["report", tmp_path])
    (tmp_path / "manifest.json").write_text("{")
    assert "JSON" in complaint(capsys, ["report", tmp_path])
