"""The oracle: its vectors, its random numbers, and the traces it left for the engine."""

from pathlib import Path

import pytest

from aqmlab.oracle import DISCIPLINES, conformance, traces, vectors
from aqmlab.oracle.stream import Stream

ROOT = Path(__file__).resolve().parents[2]
VECTORS = [path for path in vectors.find(ROOT / "testdata/vectors") if path.relative_to(ROOT).parts[2] in DISCIPLINES]


def test_streams_are_those_of_the_engine() -> None:
    # The number that crates/base/src/stream.rs freezes, and the first draws of a vector.
    assert Stream(1, "traffic/0/user/0").bits() == 12_387_327_676_498_594_317
    stream = Stream(1, "vector")
    assert [stream.unit(), stream.unit()] == [0.746233759972225, 0.6587682799249596]


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_vector(path: Path) -> None:
    outcome = vectors.run(vectors.read(path))
    assert outcome.disagreement is None, "\n".join([*outcome.story, outcome.disagreement or ""])


def test_every_discipline_has_vectors() -> None:
    assert {path.parent.name for path in VECTORS} == set(DISCIPLINES)


def test_a_wrong_decision_is_found(tmp_path: Path) -> None:
    right = (ROOT / "testdata/vectors/pfifo/limit_zero.toml").read_text()
    assert 'expect = "drop tail"' in right
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(right.replace('expect = "drop tail"', 'expect = "accept"', 1))
    outcome = vectors.run(vectors.read(wrong))
    assert outcome.disagreement == "step 1, repetition 1: the vector expects: accept"
    assert outcome.story == ["step 1: 0 ns: offer 500 not-ect: drop tail #1"]


def test_a_wrong_state_is_found(tmp_path: Path) -> None:
    right = (ROOT / "testdata/vectors/pi/step.toml").read_text()
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(right.replace("0.003632", "0.0036320001", 1))
    outcome = vectors.run(vectors.read(wrong))
    assert outcome.disagreement is not None and outcome.disagreement.startswith("step 2: probability")


@pytest.mark.parametrize("family", traces.FAMILIES)
def test_kept_traces_are_what_the_oracle_says(family: str) -> None:
    kept = ROOT / "testdata/traces" / conformance.file_name(family)
    assert kept.read_text() == conformance.kept(family), "write them with python -m aqmlab.oracle.conformance write"


@pytest.mark.parametrize("family", traces.FAMILIES)
def test_kept_traces_do_something(family: str) -> None:
    # A trace in which nothing is decided would show nothing: every family accepts, sends, idles and loses or marks.
    decisions = [
        decision
        for number in range(1, conformance.KEPT + 1)
        for decision in traces.decide(traces.trace(family, number, conformance.KEPT_OPERATIONS))["decisions"]
        if isinstance(decision, str)
    ]
    words = {word for decision in decisions for word in decision.replace(",", "").split() if "#" not in word}
    expected = {"accept", "send", "none", "drop", "tail"}
    if family not in ("pfifo", "bfifo"):
        expected |= {"mark", "early"}
    if family.startswith(("red", "ared")):
        expected |= {"forced", "overload"}
    assert expected <= words
