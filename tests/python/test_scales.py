"""Runs of minutes never decide otherwise than the published scale: from the numbers that are kept with each study."""

import json
import sys
from pathlib import Path

import pytest

import aqmlab
from aqmlab.claims import FAILS, HOLDS, NOT_RUN, OPEN
from aqmlab.json_files import read_json
from aqmlab.study import compared, folders, found
from aqmlab.study.definition import FULL, QUICK


def answers():
    """Every claim that both scales answer as it stands now."""
    for name in folders.known():
        kept = read_json(folders.find(name) / found.KEPT)
        full = kept.get(FULL, {}).get("claims", {})
        for key, answer in kept.get(QUICK, {}).get("claims", {}).items():
            if key in full and full[key]["digest"] == answer["digest"]:
                yield key, answer, full[key]


@pytest.mark.parametrize(("answer", "full"), [(a, f) for _, a, f in answers()], ids=[key for key, _, _ in answers()])
def test_both_scales_agree_or_the_quick_one_cannot_decide(answer, full):
    verdict = found.believed(answer, QUICK)
    if verdict != OPEN:
        assert found.contradictions(answer, full) == []


DEMO = Path(__file__).resolve().parents[2] / "testdata" / "demo-verdicts.json"
"""What `make demo` says to each claim: `python tests/python/test_scales.py results/demo` writes it anew."""


@pytest.mark.parametrize("key", json.loads(DEMO.read_text()))
def test_the_demo_never_contradicts_the_published_scale(key):
    answer = json.loads(DEMO.read_text())[key]
    full = read_json(folders.find(key.partition("-")[0]) / found.KEPT)[FULL]["claims"].get(key)
    if full is not None and full["digest"] == answer["digest"]:
        assert found.contradictions({**answer, "findings": []}, full) == []
    # Whatever it cannot decide for want of a settled run, it says why.
    assert answer["verdict"] == OPEN or not answer["unbelieved"]


def kept(verdict, *numbers, **facts):
    findings = [{"label": str(k), "verdict": one} for k, one in enumerate(numbers)]
    return {"verdict": verdict, "findings": findings, **facts}


def test_what_is_known_to_be_settled_and_contradicts_is_found():
    yes, no = kept(HOLDS, HOLDS), kept(FAILS, FAILS)
    assert found.contradictions(no, yes) == ["the claim", "0"] and found.contradictions(yes, yes) == []
    # A claim may be open with a number that is decided otherwise.
    assert found.contradictions(kept(OPEN, OPEN, FAILS), kept(OPEN, HOLDS, HOLDS)) == ["1"]


def test_shorter_runs_of_which_nobody_knows_whether_they_were_settled_decide_nothing():
    for answer in (kept(HOLDS, HOLDS), kept(FAILS, FAILS)):
        assert found.believed(answer, QUICK) == OPEN
        # Nothing is hidden of runs that say they are settled, nor of the published scale.
        assert found.believed({**answer, "unbelieved": {}}, QUICK) == answer["verdict"]
        assert found.believed(answer, FULL) == answer["verdict"]
    assert found.believed(kept(NOT_RUN, NOT_RUN), QUICK) == NOT_RUN


if __name__ == "__main__":
    asked = compared.claims(aqmlab.load(sys.argv[1]))
    verdicts = {one.id: {key: one.as_dict()[key] for key in ("verdict", "digest", "unbelieved")} for one in asked}
    DEMO.write_text(json.dumps(verdicts, indent=1) + "\n")
