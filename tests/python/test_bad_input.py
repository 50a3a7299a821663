"""Each bad input: one clear line on standard error, exit code 2, nothing started, nothing written."""

import errno
import os

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


@pytest.mark.parametrize("more", [[], ["--reps", "2"]])
@pytest.mark.parametrize("below", ["", "/out"])
@pytest.mark.parametrize("verb", [["run"], ["live"], ["compare", "pfifo"]])
def test_a_result_folder_of_links_in_a_circle(verb, below, more, capsys, base, tmp_path):
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")
    words = [verb[0], base, *verb[1:], *more, "-o", f"{tmp_path}/one{below}"]
    assert f"{tmp_path}/one{below}: " in complaint(capsys, words)


def test_a_law_of_links_in_a_circle(capsys, base, tmp_path):
    (tmp_path / "one.py").symlink_to(tmp_path / "one.py")
    words = ["run", base, "--set", f"link.qdisc={tmp_path}/one.py", "-o", tmp_path / "out"]
    assert f"{tmp_path}/one.py: cannot be read: " in complaint(capsys, words)


LONG = "x" * 300


@pytest.mark.parametrize(
    "words",
    [
        ["record", "WEB", "-o", f"{LONG}.csv"],
        ["report", LONG],
        ["figures", LONG],
        ["watch", LONG],
        ["study", LONG],
        ["evaluate", f"{LONG}.py"],
        ["advise", "--for", "calls", "--down", "10mbit", "--up", "1mbit", "-o", LONG],
    ],
)
def test_a_name_that_is_too_long_for_a_file(words, capsys, base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    said = complaint(capsys, [str(base) if word == "WEB" else word for word in words])
    assert "too long" in said and "Errno" not in said and "; expected " in said
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("words", [["report", "FILE"], ["figures", "FILE"], ["watch", "FILE"]])
def test_a_file_in_place_of_a_folder(words, capsys, base):
    assert f"{base}: is no folder; expected " in complaint(capsys, [base if word == "FILE" else word for word in words])


@pytest.mark.parametrize(
    "words", [["run", "\udcff"], ["run", "WEB", "-o", "a\udcff"], ["report", "\udcff"], ["\udcff"]]
)
def test_arguments_that_are_no_text(words, capsys, base):
    said = complaint(capsys, [base if word == "WEB" else word for word in words])
    assert "is not UTF-8; expected text in UTF-8" in said and "\\udcff" in said


@pytest.mark.parametrize("words", [["run", "WEB", "-o", "OUT"], ["live", "WEB", "-o", "OUT"], ["study", "OUT"]])
def test_a_place_without_permission(words, capsys, base, tmp_path, monkeypatch):
    place, stat = str(tmp_path / "closed/out"), os.stat

    def refused(path, *arguments, **options):
        if str(path).startswith(place):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", refused)
    said = complaint(capsys, [{"WEB": str(base), "OUT": place}.get(word, word) for word in words])
    assert place in said and "Permission denied; expected " in said and "Errno" not in said


def test_a_place_without_permission_that_nobody_named_is_no_bad_input(capsys, base, monkeypatch):
    from aqmlab import api

    def refused(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "/dev/net/tun")

    monkeypatch.setattr(api, "run", refused)
    monkeypatch.chdir(base.parent)
    assert cli.invoke(["run", str(base), "-o", "out"]) == 3
    assert capsys.readouterr().err == "aqmlab: /dev/net/tun: Permission denied\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "WEB", "--reps", "0"], "'--reps': '0': expected a whole number, 1 or more;"),
        (["run", "WEB", "--jobs", "-1"], "'--jobs': '-1': expected a whole number, 1 or more;"),
        (["run", "WEB", "--seed", "abc"], "'--seed': 'abc': expected a whole number, 0 or more;"),
        (["watch", "--port", "70000"], "'--port': '70000': expected a whole number, from 0 to 65535;"),
        (["advise", "--rate-error", "nan"], "'--rate-error': 'nan': expected a number, from 0 to 100;"),
        (["run", "WEB", "--seed", f"{2**63 - 1}", "--reps", "2"], f"would have the seed {2**63}; expected at most"),
        (["compare", "WEB", "pi", "--seed", f"{2**63 - 1}", "--reps", "2"], f"would have the seed {2**63}; expected"),
        (["run", "WEB", "--uncongested-rate", "0mbit"], "--uncongested-rate: '0mbit': expected a rate above zero"),
        (["study", "--quick"], "--quick: is of a study that is run; expected brandauer2001, "),
        (["study", "--only", "x", "-o", "st"], "--only: is of a study that is run; expected brandauer2001, "),
        (["study", "-o", "st"], "--out: is of a study that is run; expected brandauer2001, "),
        (["new", "law", "-o", "law.txt"], "-o law.txt: expected a name that ends in .py, as my_law.py"),
        (["kernel", "build", "--source", "WEB"], "is no archive; expected one of the Linux kernel's source"),
        (["run", "WEB", "--set", "seed"], "key=value"),
        (["run", "WEB", "--set", "link.qdisc.qrf=24p"], "qrf"),
        (["run", "WEB", "--uncongested-rate", "1gbps"], "--uncongested-rate: '1gbps'"),
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
