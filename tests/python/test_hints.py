"""What is asked for in another way than here: the line says how, and leads somewhere."""

import re

import pytest

from aqmlab import cli
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("compiled")

PLAIN = """
duration = "3s"
warmup = "1s"
link.rate = "10mbit"
[[traffic]]
kind = "bulk"
"""
VARIANTS = """
[[variant]]
name = "PI"
link.qdisc = "pi"
"""


def said_of(capsys, *words):
    """The one line that is said of words that cannot be done."""
    assert cli.invoke(list(map(str, words))) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return err.removeprefix("aqmlab: ").rstrip("\n")


@pytest.mark.parametrize("words", [["run"], ["live"], ["calibrate"], ["compare"], ["compare", "pi"], ["tc"], ["shell"]])
def test_a_sweep_that_is_asked_of_another_verb_is_called_one(words, capsys):
    file = ROOT / "examples/sweep.toml"
    verb, *rest = words
    assert said_of(capsys, verb, file, *rest) == (
        f"{file}: grid: this is a sweep; expected `aqmlab sweep {file}`, which makes all of its runs"
    )


def test_a_study_that_is_run_is_called_one(capsys):
    file = ROOT / "studies/le2003/study.toml"
    assert f"grid: this is a study; expected `aqmlab study {file.parent}`" in said_of(capsys, "run", file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLAIN, "grid: missing; this is a scenario; expected `run` instead of `sweep`"),
        (PLAIN + VARIANTS, "grid: missing; this is a comparison; expected `compare` instead of `sweep`"),
    ],
)
def test_a_scenario_that_is_swept_is_called_one(text, said, tmp_path, capsys):
    file = tmp_path / "s.toml"
    file.write_text(text)
    assert said_of(capsys, "sweep", file) == f"{file}: {said}"


@pytest.mark.parametrize(
    ("words", "table"),
    [
        ("pie target 5ms", '{ kind = "pie", target = "5ms" }'),
        ("red ecn gentle min 5p", '{ kind = "red", ecn = true, gentle = true, min = "5p" }'),
        ("fq_codel quantum 300 ecn false", '{ kind = "fq_codel", quantum = 300, ecn = false }'),
        ("droptail limit", '{ kind = "droptail", limit = "..." }'),
    ],
)
def test_a_discipline_in_words_is_told_how_it_is_written_in_a_scenario(words, table, tmp_path, capsys):
    file = tmp_path / "s.toml"
    file.write_text(PLAIN.replace("link.rate", f'link.qdisc = "{words}"\nlink.rate'))
    expected = f'link.qdisc.kind = "{words}": expected its name alone, or a table: {table}'
    assert said_of(capsys, "run", file, "-o", tmp_path / "out") == f"{file}:4: {expected}"


def test_a_model_without_its_own_name_is_told_the_models(capsys):
    assert re.match(r"explain web: expected one of its models: web/unc2001, web/", said_of(capsys, "explain", "web"))


def test_a_controller_is_explained_as_evaluations_name_it(capsys):
    assert cli.invoke(["explain", "cc:bbr"]) == 0
    named = capsys.readouterr().out
    assert cli.invoke(["explain", "bbr"]) == 0
    assert capsys.readouterr().out == named


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["help"], ["--help"]),
        (["-h"], ["--help"]),
        (["help", "run"], ["run", "--help"]),
        (["kernel", "build", "-h"], ["kernel", "build", "--help"]),
        (["version"], ["--version"]),
        (["-V"], ["--version"]),
    ],
    ids=" ".join,
)
def test_help_and_version_are_there_under_the_names_that_others_give_them(words, same, capsys):
    assert cli.invoke(same) == 0
    said = capsys.readouterr().out
    assert cli.invoke(words) == 0
    assert capsys.readouterr().out == said


def test_the_word_of_a_program_within_a_live_run_is_its_own():
    words = ["live", "s.toml", "--", "df", "-h"]
    assert cli._as_here(words) == words


def test_what_begins_here_is_new(capsys):
    assert said_of(capsys, "init") == "init: expected new, which writes an example to begin with, as in aqmlab new web"


def test_a_scenario_is_no_output_of_tc(tmp_path, capsys):
    file = tmp_path / "s.toml"
    file.write_text(PLAIN)
    assert said_of(capsys, "tc", "--read", file) == (
        f"{file}: is a scenario; expected what tc says or is told: `aqmlab tc {file}` writes a scenario's lines"
    )


def test_a_mark_of_the_byte_order_is_skipped(tmp_path, capsys):
    file = tmp_path / "s.toml"
    file.write_bytes(b"\xef\xbb\xbf" + PLAIN.encode())
    assert cli.invoke(["run", str(file), "-o", str(tmp_path / "out"), "--json"]) == 0
    file.write_bytes(b"\xef\xbb\xbf" + PLAIN.replace("10mbit", "10mbps").encode())
    capsys.readouterr()
    assert said_of(capsys, "run", file).startswith(f'{file}:4: link.rate = "10mbps": ')


def test_an_empty_name_and_none_are_told_apart(tmp_path, capsys):
    file = tmp_path / "s.toml"
    file.write_text('name = ""\n' + PLAIN)
    assert said_of(capsys, "run", file) == f"{file}: name: '': expected a text that is not empty, or no name"
    file.write_text(PLAIN + VARIANTS.replace('name = "PI"', ""))
    assert said_of(capsys, "compare", file).startswith(f"{file}: variant.0.name: missing; expected what the variant")
