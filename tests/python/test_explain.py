"""What `aqmlab explain` tells of what is drawn: models, distributions in files."""

import json
import re
from pathlib import Path

import pytest

from aqmlab import cli, engine
from aqmlab.errors import BadInput
from aqmlab.tc.words import parse
from aqmlab.vectors import reading
from conftest import NATIVE, ROOT


@pytest.fixture(autouse=True)
def compiled(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "native", NATIVE)


def test_a_model_tells_what_it_draws(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["explain", "web/unc2001", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["quantities"]}
    response = rows["response"]
    # The studies' figures: mean 7.2 kB; about 90 % up to 10 kB with under a quarter of the bytes (docs/validation.md).
    assert response["mean"] == pytest.approx(7_200, rel=0.005)
    assert response["up_to"]["10kb"]["of_values"] == pytest.approx(0.895, abs=1e-6)
    assert response["up_to"]["10kb"]["of_bytes"] == pytest.approx(0.248, abs=5e-4)
    assert rows["think time"]["unit"] == "s"
    assert cli.invoke(["explain", "web/unc2001"]) == 0
    shown = capsys.readouterr().out
    assert "think time" in shown and "89.5 % are up to 10 kB and have 24.8 % of the bytes" in shown


def test_every_web_model_draws_something_and_bulk_nothing() -> None:
    for row in engine.traffic_models():
        assert bool(engine.quantities(row["name"])) == row["name"].startswith("web/"), row["name"]


def test_a_pareto_is_as_its_formula(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["explain", "web/feldmann-pareto1", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["quantities"]}
    # Scale 2 kB, shape 1.2: the largest 1 % carry 0.01^(1 - 1/1.2) of the bytes.
    assert rows["object"]["mean"] == pytest.approx(12_000)
    assert rows["object"]["quantiles"]["p90"] == pytest.approx(2_000 * 0.1 ** (-1 / 1.2))
    assert rows["object"]["share_of_largest"]["1%"] == pytest.approx(0.01 ** (1 - 1 / 1.2))


def test_a_table_tells_its_mean_and_quantiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rtts.csv"
    path.write_text("# measured\nrtt_ms,probability\n10,0\n50,0.5\n300,1\n")
    assert cli.invoke(["explain", str(path), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["unit"] == "s"
    assert row["mean"] == pytest.approx((0.030 + 0.175) / 2)
    assert row["quantiles"]["p25"] == pytest.approx(0.030)
    assert row["quantiles"]["p75"] == pytest.approx(0.175)
    # From 250 to 300 ms, a tenth of all.
    assert row["share_of_largest"]["10%"] == pytest.approx(0.1 * 0.275 / 0.1025)
    path.write_text("size_bytes,probability\n1000,0.5\n3000,1\n")
    assert cli.invoke(["explain", str(path), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    # Half are an atom at 1000.
    assert (row["unit"], row["mean"]) == ("bytes", pytest.approx(1_500))


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("rtt_ms,probability\n10,0\n50,0.5\n30,1\n", 4, "30,1: expected values and probabilities that do not fall"),
        ("10,0\n50,0.5\n60,0.4\n", 3, "60,0.4: expected values and probabilities that do not fall"),
        ("size_bytes,p\n-10,0\n", 2, "-10,0: expected value,cumulative probability, neither negative"),
        ("size_bytes,p\n10,0\n20,0.9\n", 3, "20,0.9: expected 1 as the last cumulative probability"),
        ("size_bytes,p\n10,1.5\n", 2, "10,1.5: expected a cumulative probability from 0 to 1"),
        ("10\n", 1, "10: expected value,cumulative probability"),
        ("", 1, "expected lines of value,cumulative probability"),
    ],
)
def test_a_bad_table_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: int, problem: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert cli.invoke(["explain", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith(f"aqmlab: {path}:{line}: {problem}")


def test_a_measure_shows_its_unit_formula_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["explain", "utilisation"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "share of the link" in shown and "bits of IP packets sent ÷ (rate × window)" in shown
    assert "Worked out of: delivered_bytes × 8" in shown
    assert "summary.json: forward.utilisation and reverse.utilisation" in shown
    assert "direction both one of forward, reverse, both" in shown


def test_a_name_of_several_measures_shows_each_and_a_key_of_the_summary_one(capsys: pytest.CaptureFixture[str]) -> None:
    def keys(name: str) -> list[str]:
        assert cli.invoke(["explain", name, "--json"]) == 0
        return [row["key"] for row in json.loads(capsys.readouterr().out)["measures"]]

    assert keys("loss_ratio") == [*("forward.loss_ratio", "udp.loss_ratio", "probes.loss_ratio", "frames.loss_ratio")]
    assert keys("udp.loss_ratio") == ["udp.loss_ratio"]
    assert keys("reverse.loss_ratio") == ["forward.loss_ratio"]


def test_every_measure_is_listed_and_explained_in_words_of_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["list", "measures", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["measures"]
    assert rows == engine.measures()
    assert cli.invoke(["list", "measures"]) == 0
    listed = capsys.readouterr().out
    # A measure must not hide behind a discipline, a stack or a model of its name.
    kinds = (engine.disciplines, engine.stacks, engine.controllers, engine.traffic_models)
    others = {row["name"] for read in kinds for row in read()}
    for row in rows:
        assert row["name"] not in others
        assert row["name"] in listed
        assert cli.invoke(["explain", row["name"]]) == 0
        shown = capsys.readouterr().out
        assert row["title"] in shown and "`" not in shown and "](" not in shown
        if row["parameters"] is not None:
            assert all(f"\n{name} " in shown for name in row["parameters"])


def test_a_controller_is_explained_by_what_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    for name in (row["name"] for row in engine.controllers()):
        assert cli.invoke(["explain", name, "--json"]) == 0
        values = {one["name"]: one["value"] for one in json.loads(capsys.readouterr().out)["values"]}
        assert ("cc" in values) == (name not in ("cubic", "cubic-linux"))
        # L4S: RFC 9331 section 4 wants ECT(1), and feedback of more than one mark in a round trip.
        assert (values.get("ect") == '"ect1"') == (values.get("ecn") == '"accurate"') == name.startswith("prague")
    assert cli.invoke(["explain", "ledbat"]) == 0
    assert "ledbat_target" in capsys.readouterr().out
    assert cli.invoke(["explain", "prague", "--rate", "10mbit"]) == 2
    assert "expected a discipline, which prague is not" in capsys.readouterr().err


def test_every_word_that_a_scenario_takes_for_a_controller_is_listed_and_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(BadInput) as refused:
        engine.resolve('[tcp]\ncc = "none"\n[[traffic]]\nkind = "bulk"\n', "x")
    words = str(refused.value).partition("expected one of ")[2].split(", ")
    assert {"reno", "newreno", "sack", "cubic-rfc", "cubic-linux"} <= set(words)
    assert {row["name"] for row in engine.controllers()} == set(words)
    assert cli.invoke(["list", "controllers"]) == 0
    listed = capsys.readouterr().out
    for word in words:
        assert f" {word} " in listed
        assert cli.invoke(["explain", word]) == 0


def test_laws_that_have_no_form_under_fair_queueing_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["list", "disciplines"]) == 0
    assert "Any law but redopt also runs under fair queueing" in capsys.readouterr().out


def test_a_measure_stands_before_no_link(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--rate", "10mbit"], ["--set", "flows=64"]):
        assert cli.invoke(["explain", "utilisation", *words]) == 2
        said = capsys.readouterr().err
        assert (
            said == f"aqmlab: explain utilisation: {' '.join(words)}: expected a discipline, which a measure is not\n"
        )


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.csv"
    assert cli.invoke(["explain", str(path)]) == 2
    assert capsys.readouterr().err == f"aqmlab: {path}: no such file; expected a distribution\n"
    path.write_bytes(b"\xff\xfe1,2\n")
    assert cli.invoke(["explain", str(path)]) == 2
    assert "byte 0 is not UTF-8 text; expected a distribution" in capsys.readouterr().err


def test_the_set_in_the_tree_is_what_the_tool_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import synthetic_vectors

    written = tmp_path / "x.cvec"
    assert synthetic_vectors.main([str(written)]) == 0
    assert written.read_bytes() == synthetic_vectors.TARGET.read_bytes()
    # The shares are those aimed at, but for what FTP's control connections and the draws of turns add.
    drawn = synthetic_vectors.connections()
    total = sum(unit.size_bytes for _, vector in drawn for unit in vector.units)
    for name, share in synthetic_vectors.SHARES.items():
        found = sum(unit.size_bytes for other, vector in drawn if other == name for unit in vector.units) / total
        assert found == pytest.approx(share, abs=0.015), name
    assert len(reading.read(written)) == len(drawn)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("wred", "Weighted RED of routers, which Linux has as gred, is not here: nearest is rio"),
        ("GRED", "the WRED of routers, is not here: nearest is rio, with thresholds for each of two classes"),
        ("sqm", "expected cake or fq_codel"),
        ("L4S", "expected dualpi2, and prague"),
        ("htb", "expected link.rate, or bandwidth of cake"),
        ("tail-drop", "expected droptail"),
        ("drop_tail", "expected droptail"),
    ],
)
def test_what_the_field_calls_so_is_said(name: str, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["explain", name]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"aqmlab: explain {name}: ") and part in said and "did you mean" not in said
    with pytest.raises(BadInput, match=re.escape(part)):
        parse(f"{name} limit 20")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("MOS", "MOS: mean opinion score: what people would say of a call or a film, from 1, bad, to 5, excellent"),
        ("mser-5", "MSER-5: a rule that says how much of the beginning of a series to leave out"),
        ("exchange", "exchange: a request and its response; a transfer of a finite flow counts as one."),
        ("goodput", "goodput: bytes that reach applications in order, per unit of time."),
        ("forward", "forward, reverse: the two directions of a link"),
        ("block", "block (of traffic): one [[traffic]] table of a scenario"),
    ],
)
def test_a_word_of_the_glossary_is_explained(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["explain", word]) == 0
    assert capsys.readouterr().out.startswith(said)
    assert cli.invoke(["explain", word, "--rate", "10mbit"]) == 2
    assert "expected a discipline, which a word of the glossary is not" in capsys.readouterr().err


def test_a_package_without_its_glossary_explains_all_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aqmlab.command.glossary.PLACE", tmp_path / "none.md")
    assert cli.invoke(["explain", "MOS"]) == 2
    assert "expected what aqmlab list names" in capsys.readouterr().err
