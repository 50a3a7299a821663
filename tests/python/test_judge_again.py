"""Kept answers judged anew, from the numbers that are kept: `tools/judge_again.py`."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from aqmlab.claims import FAILS, HOLDS, NOT_RUN, OPEN
from aqmlab.json_files import read_json
from aqmlab.study import definition, folders
from aqmlab.study.definition import FULL
from aqmlab.study.found import KEPT, asked

PLACE = Path(__file__).resolve().parents[2] / "tools" / "judge_again.py"
spec = importlib.util.spec_from_file_location("judge_again", PLACE)
judge_again = importlib.util.module_from_spec(spec)
spec.loader.exec_module(judge_again)


def kept_as_they_stand():
    """Claims that are answered at the published scale as they read now."""
    for name in folders.known():
        folder = folders.find(name)
        answers = read_json(folder / KEPT).get(FULL, {}).get("claims", {})
        for text in definition.read(folder).claims:
            answer = answers.get(text.id)
            if answer is not None and answer["digest"] == text.digest and asked(answer):
                yield text, answer


EVERY = list(kept_as_they_stand())


def claim(key):
    return next((text, answer) for text, answer in EVERY if text.id == key)


def with_bounds(text, **bounds):
    return replace(text, questions=tuple(replace(question, words=(), **bounds) for question in text.questions))


def test_an_unchanged_claim_is_answered_as_it_was():
    told = [(answer, judge_again.again(text, text, answer)) for text, answer in EVERY]
    # Of some the verdict hangs on degrees of freedom that are not kept.
    assert sum(new is not None for _, new in told) > 0.9 * len(told) > 50
    for answer, new in told:
        assert new is None or new["verdict"] == answer["verdict"]
        assert new is None or [one["value"] for one in new["findings"]] == [one["value"] for one in answer["findings"]]


@pytest.mark.parametrize(("low", "high", "verdict"), [(-0.03, -0.01, HOLDS), (-0.01, 0.0, FAILS), (-0.017, 0.0, OPEN)])
def test_other_bounds_have_the_verdict_of_the_number_that_is_kept(low, high, verdict):
    text, answer = claim("le2003-9a")
    # −1.67 ± 0.51 points.
    assert answer["findings"][0]["value"] == pytest.approx(-0.0167, abs=1e-4)
    now = with_bounds(text, low=low, high=high)
    new = judge_again.again(now, text, answer)
    assert new["verdict"] == verdict and new["digest"] == now.digest != text.digest
    assert judge_again.REMARK in new["remark"]


def test_fewer_times_of_a_curve_are_judged_by_themselves():
    text, answer = claim("le2003-1a")
    # 1.4, 3.4, 4.3 and 4.8 points apart at 0.1, 0.3, 0.5 and 1 s: within 3 at the first.
    first = replace(text.questions[0], readings=text.questions[0].readings[:1])
    assert answer["verdict"] == FAILS
    assert judge_again.again(replace(text, questions=(first,)), text, answer)["verdict"] == HOLDS


def test_more_times_of_a_curve_can_fail_and_nothing_else():
    for key, verdict in (("le2003-1a", FAILS), ("le2003-4a", None)):
        text, answer = claim(key)
        (question,), (finding,) = text.questions, answer["findings"]
        was = replace(text, questions=(replace(question, readings=question.readings[:3]),))
        kept = {**answer, "findings": [{**finding, "curve": finding["curve"][:3]}]}
        new = judge_again.again(text, was, kept)
        assert (new and new["verdict"]) == verdict


def test_a_number_of_other_points_is_not_run():
    text, answer = claim("le2003-9d")
    kept = {**answer, "findings": answer["findings"][:2], "verdict": HOLDS}
    new = judge_again.again(text, replace(text, questions=text.questions[:2]), kept)
    assert [one["verdict"] for one in new["findings"][:3]] == [HOLDS, HOLDS, NOT_RUN]
    assert new["verdict"] == OPEN and new["remark"].startswith(f"2 of {len(text.questions)} numbers asked")
