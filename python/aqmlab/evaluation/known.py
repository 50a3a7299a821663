"""What came out for the disciplines that come along, and how one stands among them.

`known/NAME.json` has what a quick evaluation of each found, with its defaults: one case of each requirement at each
rate, and the counts beside drop-tail. Where its authors set it otherwise at some rate, those cases follow. Requirements
that were run later, by `--only`, are listed as `parts`. `tools/evaluation_pages.py` writes these files and
`docs/evaluations`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aqmlab import engine
from aqmlab.errors import BadInput
from aqmlab.evaluation import outcome, template
from aqmlab.evaluation.disciplines import BASELINE, SCALED
from aqmlab.json_files import Json, read_json

PLACE = Path(__file__).with_name("known")
AGAINST = ("pie", "codel", "fq_codel")
"""What all of them were held against, besides drop-tail."""
AMONG = ("5-1-1", "6-2", "8-2-2-to-8-2-4", "9-1")
"""The requirements by which a discipline is placed among the others."""
KINDS = ("goodput", "delay")
PART = ("version", "engine", "date", "command", "digest", "runs", "cpu_h")
"""What is kept of an evaluation beside its subject, its profile and its numbers."""
BESIDE = ("beside_drop_tail", "beside_without")
"""The counts of a requirement."""
ALIKE = ("name", "seeds", "set")
"""What the profiles of evaluations have in common whose numbers stand side by side; what they say is of each."""


@dataclass(frozen=True)
class Standing:
    """A discipline in one case."""

    name: str
    label: str
    goodput: Json
    delay: Json


@dataclass(frozen=True)
class Field:
    """All disciplines in one case of a requirement, the shortest delay first."""

    id: str
    section: str
    title: str
    case: str
    standings: Sequence[Standing]

    def place(self, name: str) -> int:
        """The place of a discipline by its mean delay, from 1; 0 if it is not there."""
        return next((at for at, one in enumerate(self.standings, 1) if one.name == name), 0)

    def places(self, name: str) -> tuple[int, int]:
        """The first and the last place that it may have, by intervals that do not meet; zeros if it is not there."""
        own = next((one.delay for one in self.standings if one.name == name), None)
        if own is None:
            return 0, 0
        others = [one.delay for one in self.standings if one.name != name]
        before = sum(_high(other) < _low(own) for other in others)
        return 1 + before, len(others) + 1 - sum(_low(other) > _high(own) for other in others)


def _low(number: Json) -> float:
    return float(number["value"]) - _half_width(number)


def _high(number: Json) -> float:
    return float(number["value"]) + _half_width(number)


def _half_width(number: Json) -> float:
    """Of the interval; without one nothing is known."""
    return math.inf if number["half_width_95"] is None else float(number["half_width_95"])


@cache
def every() -> Mapping[str, Json]:
    """What is kept of each discipline, by its kind, in the order of the registry."""
    names = [str(row["name"]) for row in engine.disciplines()]
    return {name: read_json(path) for name in names if (path := PLACE / f"{name}.json").is_file()}


def condensed(found: Json) -> Json:
    """What is kept of an evaluation's `study.json`: the discipline's own numbers.

    Those of the others are in files of their own.
    """
    evaluation = found["evaluation"]
    name = evaluation["subject"]["name"]
    facts = {key: found[key] for key in (*PART, "profile")}
    return {
        **facts,
        "subject": evaluation["subject"],
        "requirements": [_kept(one, name) for one in evaluation["requirements"]],
    }


def baseline(found: Json) -> Json:
    """Drop-tail's own numbers in an evaluation, in the form of `condensed`."""
    facts = {key: found[key] for key in ("version", "engine", "date", "profile")}
    kept = [_kept(one, BASELINE) for one in found["evaluation"]["requirements"]]
    for one in kept:
        for key in BESIDE:
            one.pop(key, None)
    subject = {"name": BASELINE, "label": BASELINE, "parameters": []}
    return {**facts, "subject": subject, "requirements": kept}


def merged(before: Json, part: Json) -> Json:
    """What is kept of an evaluation and of one of some of its requirements, run later: the newer number of each.

    A requirement of which only some points were run cannot take the place of a whole one.
    """
    for one in part["requirements"]:
        if not one.get("is_whole", True):
            raise BadInput(f"{part['command']}: {one['id']} was run in part; expected all points of its grid")
    one, other = ({key: kept["profile"][key] for key in ALIKE} for kept in (before, part))
    if one != other:
        raise BadInput(f"{part['command']}: expected runs as of {before['command']}: {one}, not {other}")
    run = {one["id"]: one for one in part["requirements"] if one["status"] != outcome.NOT_RUN}
    there = {one["id"]: one for one in before["requirements"]}
    parts = [one for one in before.get("parts", []) if one["command"] != part["command"]]
    return {
        **{key: value for key, value in before.items() if key != "requirements"},
        "parts": [*parts, {key: part[key] for key in PART if key in part}],
        "requirements": [run.get(one["id"], there.get(one["id"], one)) for one in part["requirements"]],
    }


def _kept(one: Json, name: str) -> Json:
    kept = {"id": one["id"], "status": one["status"]}
    if one["status"] != outcome.RUN:
        return kept
    cases: list[Json] = []
    for own, also in ((name, {}), (f"{name}-{SCALED}", {"aqm": SCALED})):
        for case in one["shown"]:
            row = next((row for row in case["disciplines"] if row["name"] == own), None)
            if row is None:
                continue
            label = f"{case['label']}, {row['label']}" if also else case["label"]
            numbers = {kind: _bare(row[kind]) for kind in KINDS}
            cases.append({"at": {**case["at"], **also}, "label": label, **numbers})
    whole = {} if one.get("is_whole", True) else {"is_whole": False}
    beside = {key: one[key] for key in BESIDE if key in one}
    return {**kept, **whole, "cases": cases, **beside}


def _bare(number: Json) -> Json:
    return {key: number[key] for key in ("value", "half_width_95", "n", "unit")}


def standing(kept: Json, id: str, at: Json | None = None) -> Json | None:
    """The numbers of a discipline in a case of a requirement, the first if none is said; None where it was not run."""
    cases: list[Json] = next((one.get("cases", []) for one in kept["requirements"] if one["id"] == id), [])
    return next((case for case in cases if at in (None, case["at"])), None)


def fields(found: Json) -> list[Field]:
    """A discipline that was evaluated among those that come along, in the first case of each of `AMONG`.

    What it was held against stands there with its numbers of this evaluation, as they may have settings of their own.
    Requirements that were not run with it are left out.
    """
    requirements = {one["id"]: one for one in found["evaluation"]["requirements"]}
    subject = found["evaluation"]["subject"]["name"]
    made = []
    for asked in template.template()["requirement"]:
        one = requirements.get(template.id_of(asked), {})
        if one.get("id") not in AMONG or one["status"] != outcome.RUN:
            continue
        shown = (case for case in one["shown"] if any(row["name"] == subject for row in case["disciplines"]))
        if (case := next(shown, None)) is None:
            continue
        here = {
            row["label"]: Standing(row["name"], row["label"], row["goodput"], row["delay"])
            for row in case["disciplines"]
        }
        others = [
            Standing(name, kept["subject"]["label"], *(outcome.number(**there[kind]) for kind in KINDS))
            for name, kept in every().items()
            if (there := standing(kept, one["id"], case["at"])) and kept["subject"]["label"] not in here
        ]
        standings = [row for row in (*here.values(), *others) if row.delay["value"] is not None]
        standings.sort(key=lambda row: (row.delay["value"], row.name != subject))
        made.append(Field(one["id"], one["section"], one["title"], case["label"], standings))
    return made
