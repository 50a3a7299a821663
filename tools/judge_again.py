"""Judges kept answers anew, whose claims were changed since, from the numbers that are kept: without runs.

    python tools/judge_again.py le2003 FOLDER

FOLDER holds the study's files as they were when the answers were kept. A number of the changed claim is taken from
the answer if it was asked of the same points in the same way, be its bounds others; a curve if it was kept with all of
the times that are asked now, with the band that it had, which is wider than it need be for fewer. A curve that lies
outside at the times that are kept does so at more of them: if a band of 97.5 % is outside there, which leaves as much
to the other times. What is not there is not run. Degrees of freedom are not kept: the verdict must be the same with
the fewest and the most that a difference has, and is left alone otherwise. Nothing is taken from an answer that this
does not reproduce as it stands.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from aqmlab.claims.asking import Question, label
from aqmlab.claims.reading import ClaimText
from aqmlab.claims.spread import FURTHER_RUNS, among
from aqmlab.claims.verdict import FAILS, NOT_RUN, SAME, Abscissa, Finding, needed, verdict_of
from aqmlab.claims.words import turns
from aqmlab.errors import AqmlabError, BadInput
from aqmlab.json_files import Json, read_json
from aqmlab.results import store
from aqmlab.statistics import Interval
from aqmlab.study import definition
from aqmlab.study.definition import FULL
from aqmlab.study.found import BEDS, KEPT

ROOT = Path(__file__).resolve().parents[1]
REMARK = "judged anew from the numbers that were kept"


def _asked(question: Question) -> Any:
    said = question.said
    return said["how"], said["terms"], said["window_s"], question.readings[0].measure.name


def _times(question: Question) -> list[Any]:
    return [tuple(reading.given) for reading in question.readings]


def _is_told(question: Question, was: Question) -> bool:
    """Whether the times of one are among those of the other; of curves that are to lie within bounds, either way."""
    now, then = set(_times(question)), set(_times(was))
    return now <= then or (then < now and len(then) > 1 and question.stretch is None)


def _number(kept: Json) -> Interval:
    return Interval(kept["value"], kept["half_width_95"], kept.get("n", 0), kept.get("basis", "none"))


def _finding(question: Question, was: Question | None, kept: Json | None, said: str, freedom: float) -> Finding | None:
    """A number of the claim as it reads now, from what is kept of it as it was."""
    nothing = Interval(float("nan"), None, 0, "none")
    common: dict[str, Any] = {
        "label": said,
        "low": question.low,
        "high": question.high,
        "unit": question.unit,
        "is_difference": question.how in ("difference", "relative", "contrast"),
        "published": question.published,
        "is_exact": question.reading.measure.is_exact,
        "stretch": question.stretch,
        "elsewhere": question.elsewhere,
        "words": question.words,
    }
    if was is None or kept is None or kept["verdict"] == NOT_RUN:
        return Finding(interval=nothing, note=NOT_RUN, **common)
    if kept["value"] is None:
        return None
    rows = kept.get("curve") or []
    if len(was.readings) != max(len(rows), 1):
        return None
    same = SAME in kept["number"]
    if not rows:
        number = _number(kept)
        return Finding(interval=number, freedom=number.n - 1 + freedom, is_same=same, **common)
    n, basis = kept["n"], kept["basis"]
    there = [row for time, row in zip(_times(was), rows, strict=True) if time in _times(question)]
    if any(row["value"] is None or row["band_95"] is None for row in there):
        return None
    parts = 1 if len(there) == len(question.readings) else 2
    curve = tuple(
        Abscissa(row["at"], _number({**row, "n": n, "basis": basis}), among(row["band_95"], n - 1 + freedom, parts))
        for row in there
    )
    ranked = sorted(curve, key=lambda one: one.margin(question.low, question.high))
    telling = ranked[0] if question.stretch is None else ranked[-needed(question.stretch, len(ranked))]
    shown = curve if len(curve) > 1 else ()
    found = Finding(interval=telling.interval, curve=shown, freedom=n - 1 + freedom, is_same=same, **common)
    return found if parts == 1 or found.verdict == FAILS else Finding(interval=nothing, note=NOT_RUN, **common)


def _findings(now: ClaimText, was: ClaimText, answer: Json, freedom: float) -> list[Finding] | None:
    """All numbers of a claim; None if what is kept says none of them, or not how."""
    if len(was.questions) != len(answer["findings"]):
        return None
    pairs = list(zip(was.questions, answer["findings"], strict=True))
    found = []
    for question in now.questions:
        old, kept = next(
            (pair for pair in pairs if _asked(pair[0]) == _asked(question) and _is_told(question, pair[0])),
            (None, None),
        )
        one = _finding(question, old, kept, label(question, now.questions), freedom)
        if one is None:
            return None
        found.append(one)
    count = max(sum(one.has_interval and not one.is_exact for one in found), 1)
    judged = [replace(one, among=count) for one in found]
    return judged if any(one.verdict != NOT_RUN for one in judged) else None


def again(now: ClaimText, was: ClaimText, answer: Json) -> Json | None:
    """The answer to the claim as it reads now; None where what is kept does not say it."""
    few, many = (_findings(now, was, answer, freedom) for freedom in (0.0, FURTHER_RUNS))
    as_it_was = [_findings(was, was, answer, freedom) for freedom in (0.0, FURTHER_RUNS)]
    if few is None or many is None or any(old is None or verdict_of(old) != answer["verdict"] for old in as_it_was):
        return None
    if verdict_of(few) != verdict_of(many):
        return None
    asked = sum(one.verdict != NOT_RUN for one in few)
    remarks = [f"{asked} of {len(few)} numbers asked"] if asked < len(few) else []
    return {
        **answer,
        "verdict": verdict_of(few),
        "digest": now.digest,
        "remark": "; ".join([*remarks, REMARK]),
        "hangs_on": [turn.as_dict() for turn in turns(few)],
        "findings": [_kept(one) for one in few],
    }


def _kept(finding: Finding) -> Json:
    """As `found.json` has a number."""
    return {
        "label": finding.label,
        "value": finding.interval.value if isfinite(finding.interval.value) else None,
        "half_width_95": finding.interval.half_width,
        "n": finding.interval.n,
        "basis": finding.interval.basis,
        "low": finding.low if isfinite(finding.low) else None,
        "high": finding.high if isfinite(finding.high) else None,
        "verdict": finding.verdict,
        "number": finding.number,
        "bound": finding.bound,
        "published_number": finding.published_number,
        "curve": [one.as_dict() for one in finding.curve] or None,
    }


def main(arguments: Sequence[str]) -> None:
    """Judges what can be judged, and says what came out."""
    if len(arguments) != 2:
        raise BadInput("expected the study's name and the folder of its files as they were")
    folder, before = ROOT / "studies" / arguments[0], Path(arguments[1])
    texts = {text.id: text for text in definition.read(before).claims}
    path = folder / KEPT
    kept = read_json(path)
    for name, profiles in [("", kept), *kept.get(BEDS, {}).items()]:
        answers = profiles.get(FULL, {}).get("claims", {})
        for now in definition.read(folder).claims:
            was, answer = texts.get(now.id), answers.get(now.id)
            if was is None or answer is None or now.digest == answer["digest"] or answer["digest"] != was.digest:
                continue
            said = f"{now.id}{name and ', '}{name}: {answer['verdict']}"
            judged = again(now, was, answer)
            if judged is None:
                print(f"{said}: what is kept does not say it of the claim as it reads now")
                continue
            print(f"{said} -> {judged['verdict']} ({judged['remark']})")
            answers[now.id] = judged
    store.write_json(path, kept)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except AqmlabError as error:
        sys.exit(f"judge_again: {error}")
