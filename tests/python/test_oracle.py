"""The oracle: its vectors, its random numbers, and the traces it left for the engine."""

import json
from pathlib import Path

import pytest

from oracle import DISCIPLINES, conformance, traces, vectors
from oracle.stream import Stream

ROOT = Path(__file__).resolve().parents[2]
VECTORS = [path for path in vectors.find(ROOT / "testdata/vectors") if path.relative_to(ROOT).parts[2] in DISCIPLINES]

KEPT = sorted((ROOT / "testdata/traces").glob("*.jsonl"))


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


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_kept_traces_are_what_the_oracle_says(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) == conformance.KEPT
    for line in lines:
        trace = json.loads(line)
        decided = {**trace, **traces.decide(trace, trace["decisions"])}
        assert line == conformance.line(decided), "write them with python -m oracle.conformance write"


def test_every_discipline_has_kept_traces() -> None:
    assert {path.stem.partition("-")[0] for path in KEPT} == set(DISCIPLINES)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_kept_traces_show_what_vectors_show(discipline: str) -> None:
    # A trace in which nothing is decided would show nothing. What a discipline can tell at all, its vectors tell.
    told: set[str] = set()
    for path in KEPT:
        if path.stem.partition("-")[0] == discipline:
            for line in path.read_text().splitlines():
                told |= {
                    item.partition(" #")[0]
                    for decision in json.loads(line)["decisions"]
                    if isinstance(decision, str)
                    for item in decision.split(", ")
                }
    expected = {"accept", "send", "none"}
    for path in VECTORS:
        if path.parent.name == discipline:
            for step in vectors.read(path).steps:
                for text in (step.get("expect", ""), *step.get("except", {}).values()):
                    expected |= {item.strip().partition(" #")[0] for item in text.split(",") if item.strip()}
    assert expected <= told
