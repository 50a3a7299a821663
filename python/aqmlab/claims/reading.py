"""Claims as data: reads `claims.toml`, checks every key of it and every point that it names, before anything runs.

```toml
paper = "Le et al., SIGCOMM 2003"     # optional: what the claims are of, if not as study.toml says it
[[claim]]
id = "le2003-9a"                      # letters, digits and . _ -: files and places on pages are called by it
says = "..."                          # the claim, in our words
source = "section 4.1"                # where the paper says it: a section, a figure, "abstract"; or "inferred"
reason = "..."                        # where its bounds come from
seeds = 3                             # fewest runs of a point for a verdict
parts = false                         # whether the parts of one run's window will do
known_outcome = "holds"               # what comes out; { quick = "does not hold" }: what comes out in that profile
explained = "..."                     # why, where that is not that it holds
cause = "unknown"                     # where no run shows why it does not hold; explained says what was tried
evidence = [{ grid = "...", ... }]    # the points whose runs show it
[[claim.check]]                       # a claim holds when all of its checks do
measure = "ahead"                     # with its parameters beside it; one that is a list makes a curve, one number
from_s = 0.0
to_s = 2.0
of = { aqm = "pi-24", load = "98" }   # a selector, or a list of them: one finding for each point
than = { aqm = "pfifo-240" }          # difference of - than; coordinates that are not named are those of `of`
relative = true                       # the difference as a share of `than`;  ratio = true: of / than
low = 0.0                             # bounds, exclusive, in SI units, or one of the words of `verdict.WORDS`
high = "much"
stretch = 0.25                        # of a curve: above low on such a share of it, and above `elsewhere` on all of it
elsewhere = "-equal"
published = 0.05                      # the number that the study's text has
unit = "points"                       # what the finding is read in
label = "..."                         # in front of the findings
window_s = 3600                       # shortest measured window for a verdict
```

Instead of `than`, `terms = [{ weight = 1, at = {...} }, ...]` is a sum of weighted points, `at` laid over those of `of`
if there is one. `each = "mean"` (`max`, `min`, `spread`) makes one number of several points, along the axis `over` or
of all of them.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aqmlab import files, near, toml_text
from aqmlab.claims import settings
from aqmlab.claims.asking import HOWS, Group, Question, questions
from aqmlab.claims.samples import EACH
from aqmlab.claims.verdict import EQUAL, FAILS, HOLDS, OPEN, PERCENT, POINTS, WORDS, check_unit
from aqmlab.errors import BadInput, shown
from aqmlab.json_files import Json, is_number
from aqmlab.measures import catalogue
from aqmlab.measures.measure import Reading
from aqmlab.scenario import digest, kinds_without_exchanges
from aqmlab.sweep.grid import Point
from aqmlab.sweep.selectors import select

FILE_KEYS = ("paper", "claim")
CLAIM_KEYS = (
    *("id", "says", "number_of", "source", "reason", "seeds", "parts"),
    *("known_outcome", "explained", "cause", "evidence", "check"),
)
CHECK_KEYS = (
    "of",
    "than",
    "terms",
    "relative",
    "ratio",
    "each",
    "over",
    "low",
    "high",
    "stretch",
    "elsewhere",
    "published",
    "unit",
    "label",
    "window_s",
)
TERM_KEYS = ("weight", "at")
UNKNOWN_CAUSE = "unknown"
"""Of a claim that does not hold and that no run explains."""
FEWEST_SEEDS = 3
"""Two runs have an interval as well, but one that is 12.7 standard errors to either side."""

FEWEST_ABSCISSAE = 4
"""Of fewer a share says little."""

LONGEST_ID = 100
ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_ID - 1}}}", re.ASCII)

Selector = Mapping[str, Any]


@dataclass(frozen=True)
class ClaimText:
    """A claim of a study and what it asks, not yet answered."""

    id: str
    paper: str
    says: str
    number_of: str
    """What the published number is of, for a table that has the number alone: what the claim says, if nothing else."""
    source: str | None
    """Where the paper says it."""
    reason: str
    seeds: int
    parts: bool
    known_outcome: str
    known_outcome_in: Mapping[str, str]
    """What comes out in profiles where it is something else."""
    explained: str | None
    cause_unknown: bool
    """Whether no run shows why it does not hold."""
    evidence: tuple[str, ...]
    """Names of points."""
    questions: tuple[Question, ...] = field(repr=False)

    def in_profile(self, profile: str) -> "ClaimText":
        """This claim, with what is known to come out of runs of this profile."""
        return replace(self, known_outcome=self.known_outcome_in.get(profile, self.known_outcome))

    @property
    def points(self) -> set[str]:
        """Names of all the points that it asks about."""
        return {name for question in self.questions for name in question.points}

    def is_answerable(self, names: set[str]) -> bool:
        """Whether every check of it can ask at least one of its questions of these points."""
        asked = {question.check for question in self.questions if question.points <= names}
        return asked == {question.check for question in self.questions}

    @property
    def digest(self) -> str:
        """The digest of what is asked and of the bounds: with another one it is another claim, whatever its words."""
        return digest([self.seeds, self.parts, [question.said for question in self.questions]])


def read(path: Path, paper: str, points: Sequence[Point]) -> list[ClaimText]:
    """The claims of a file; `points` are all points of its study, `paper` is what they are of if it does not say so."""
    tree = toml_text.read(path, files.CLAIMS)
    return of_tables(tree, str(path), paper, points)


def of_tables(tree: Json, origin: str, paper: str, points: Sequence[Point]) -> list[ClaimText]:
    """Reads claims from tables that were parsed already."""
    _known(tree, FILE_KEYS, origin)
    paper = _text(tree, "paper", origin, paper)
    found = [
        _claim(table, f"{origin}: claim.{k}", paper, points) for k, table in enumerate(_tables(tree, "claim", origin))
    ]
    seen: set[str] = set()
    for claim in found:
        if claim.id in seen:
            raise BadInput(f"{origin}: {claim.id}: id: {claim.id!r}: expected another id for every claim")
        seen.add(claim.id)
    return found


def _claim(table: Json, where: str, paper: str, points: Sequence[Point]) -> ClaimText:
    claim_id = _text(table, "id", where)
    if not ID.fullmatch(claim_id):
        raise BadInput(
            f"{where}: id: {claim_id!r}: expected up to {LONGEST_ID} letters, digits and . _ - only, the first no "
            'sign, as in id = "le2003-9a": files and places on pages are called by it'
        )
    where = f"{where.partition(': claim.')[0]}: {claim_id}"
    _known(table, CLAIM_KEYS, where)
    says, reason = _text(table, "says", where), _text(table, "reason", where)
    seeds = table.get("seeds", FEWEST_SEEDS)
    if type(seeds) is not int or seeds < 1:
        raise BadInput(f"{where}: seeds: {seeds!r}: expected the fewest runs for a verdict, 1 or more")
    given = table.get("known_outcome", HOLDS)
    known_in = dict(given) if isinstance(given, Mapping) else {}
    known = HOLDS if known_in else given
    for verdict in (known, *known_in.values()):
        if verdict not in (HOLDS, FAILS, OPEN):
            raise BadInput(f"{where}: known_outcome: {verdict!r}: expected one of {HOLDS!r}, {FAILS!r}, {OPEN!r}")
    explained = _text(table, "explained", where) if "explained" in table else None
    if explained is None and {known, *known_in.values()} != {HOLDS}:
        raise BadInput(f"{where}: explained: missing; expected what explains it, as it is known not to hold")
    cause_unknown = _cause(table, where, {known, *known_in.values()}, explained)
    evidence = _selectors(table.get("evidence", []), f"{where}: evidence")
    shown = [point.name for k, one in enumerate(evidence) for point in select(points, one, f"{where}: evidence.{k}")]
    checks = _tables(table, "check", where)
    asked = [q for k, check in enumerate(checks) for q in _check(check, f"{where}: check.{k}", k, points)]
    return ClaimText(
        id=claim_id,
        paper=paper,
        says=" ".join(says.split()),
        number_of=" ".join(_text(table, "number_of", where, says).split()),
        source=" ".join(_text(table, "source", where).split()) if "source" in table else None,
        reason=" ".join(reason.split()),
        seeds=seeds,
        parts=_flag(table, "parts", where),
        known_outcome=known,
        known_outcome_in=known_in,
        explained=None if explained is None else " ".join(explained.split()),
        cause_unknown=cause_unknown,
        evidence=tuple(dict.fromkeys(shown)),
        questions=tuple(asked),
    )


def _cause(table: Json, where: str, known: set[str], explained: str | None) -> bool:
    """Whether no run shows why the claim does not hold."""
    if "cause" not in table:
        return False
    if table["cause"] != UNKNOWN_CAUSE:
        raise BadInput(f"{where}: cause: {table['cause']!r}: expected {UNKNOWN_CAUSE!r}, or no such key")
    if FAILS not in known or explained is None:
        raise BadInput(
            f"{where}: cause: {table['cause']!r}: expected beside known_outcome = {FAILS!r} and explained, which says "
            "what was tried"
        )
    return True


def _check(table: Json, where: str, position: int, points: Sequence[Point]) -> list[Question]:
    readings = catalogue.read(table, where, CHECK_KEYS)
    how = _how(table, where)
    groups = _groups(table, where, points)
    _check_exchanges(readings[0], groups, where)
    settings.check(readings, list(_points(groups).values()), where)
    low, high = _bound(table, "low", where), _bound(table, "high", where)
    if low is None and high is None:
        raise BadInput(f"{where}: low: missing; expected low or high or both")
    stretch, elsewhere = _better(table, where, readings, low)
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if not low < high:
        raise BadInput(f"{where}: low: {table['low']!r}: expected less than high, {table['high']!r}")
    published = table.get("published")
    if published is not None and not is_number(published):
        raise BadInput(f"{where}: published: {published!r}: expected the number that the study's text has, in SI units")
    window_s = table.get("window_s", 0.0)
    if not is_number(window_s) or window_s < 0:
        raise BadInput(f"{where}: window_s: {window_s!r}: expected the shortest window for a verdict, in seconds")
    own = _unit(readings[0].unit, how)
    unit = table.get("unit", own)
    if "unit" in table:
        check_unit(unit, own, where)
    if how in HOWS[:2] and readings[0].unit.startswith(PERCENT):
        _check_share(table, where, (low, high))
    return [
        Question(
            check=position,
            readings=tuple(readings),
            how=how,
            terms=terms,
            low=low,
            high=high,
            stretch=stretch,
            elsewhere=elsewhere,
            words=_words(table),
            unit=unit,
            published=None if published is None else float(published),
            window_s=float(window_s),
            label=_text(table, "label", where) if "label" in table else None,
        )
        for terms in groups
    ]


def _check_exchanges(reading: Reading, groups: Sequence[tuple[tuple[float, Group], ...]], where: str) -> None:
    """Refuses a measure of exchanges at points whose traffic completes none."""
    if not reading.measure.of_exchanges:
        return
    block = dict(reading.given).get("block")
    for name, point in _points(groups).items():
        kinds = kinds_without_exchanges(point.source.tree, block)
        if kinds is not None:
            there = f"traffic there is {', '.join(kinds)}" if kinds else f"there is no traffic block {block}"
            raise BadInput(
                f"{where}: measure: {reading.measure.name!r}: {name} completes no exchanges, as {there}; expected "
                "points with exchanges, or a measure of the link or of packets"
            )


def _points(groups: Sequence[tuple[tuple[float, Group], ...]]) -> dict[str, Point]:
    return {point.name: point for terms in groups for _, group in terms for point in group.points}


def _check_share(table: Json, where: str, bounds: tuple[float, float]) -> None:
    """Refuses bounds that no share, or no difference of two, can reach, as percentages are."""
    for key, bound in zip(("low", "high"), bounds, strict=True):
        if math.isfinite(bound) and abs(bound) > 1.0:
            raise BadInput(
                f"{where}: {key}: {table[key]!r}: expected a share, from -1 to 1, as 0.05 for five of a hundred"
            )


def _better(table: Json, where: str, readings: Sequence[Reading], low: float | None) -> tuple[float | None, float]:
    """On what share of a curve `low` has to be passed, and the bound for all of it."""
    elsewhere = _bound(table, "elsewhere", where)
    if "stretch" not in table:
        if elsewhere is not None:
            raise BadInput(f"{where}: elsewhere: {table['elsewhere']!r}: expected stretch beside it")
        return None, -math.inf
    stretch = table["stretch"]
    if not is_number(stretch) or not 0 < stretch <= 1:
        raise BadInput(f"{where}: stretch: {stretch!r}: expected what part of the curve, above 0 and at most 1")
    if len(readings) < FEWEST_ABSCISSAE:
        raise BadInput(
            f"{where}: stretch: {stretch!r}: expected a list of {FEWEST_ABSCISSAE} or more as a parameter of the "
            "measure, which makes a curve"
        )
    if low is None or "high" in table:
        raise BadInput(f"{where}: stretch: {stretch!r}: expected low beside it, and no high")
    elsewhere = -EQUAL if elsewhere is None else elsewhere
    if not elsewhere < low:
        raise BadInput(f"{where}: elsewhere: {table.get('elsewhere', elsewhere)!r}: expected less than low, {low:g}")
    return float(stretch), elsewhere


def _how(table: Json, where: str) -> str:
    """What is made of the points: one of `HOWS`."""
    chosen = [key for key in ("relative", "ratio") if _flag(table, key, where)]
    if len(chosen) > 1:
        raise BadInput(f"{where}: ratio: True: expected either relative or ratio")
    if "terms" in table:
        for key in ("than", *chosen):
            if key in table:
                raise BadInput(f"{where}: {key}: {table[key]!r}: expected no {key} beside terms")
        return HOWS[4]
    if "than" not in table:
        if chosen:
            raise BadInput(f"{where}: than: missing; expected a selector of what it is {chosen[0]} to")
        return HOWS[0]
    return chosen[0] if chosen else HOWS[1]


def _unit(unit: str, how: str) -> str:
    if how == "relative":
        return PERCENT
    if how == "ratio":
        return "times"
    return POINTS if how != "value" and unit.startswith(PERCENT) else unit


def _groups(table: Json, where: str, points: Sequence[Point]) -> list[tuple[tuple[float, Group], ...]]:
    """The weighted points of each finding."""
    each, over = table.get("each"), table.get("over")
    if each is not None and each not in EACH:
        raise BadInput(f"{where}: each: {each!r}: expected one of {', '.join(EACH)}")
    if over is not None and (each is None or not isinstance(over, str)):
        raise BadInput(f"{where}: over: {over!r}: expected an axis, beside each")
    of = _selectors(table["of"], f"{where}: of") if "of" in table else None
    than = _selectors(table["than"], f"{where}: than") if "than" in table else None
    terms = None
    if "terms" in table:
        terms = [_term(term, f"{where}: terms.{k}") for k, term in enumerate(_tables(table, "terms", where))]
    elif of is None:
        raise BadInput(f'{where}: of: missing; expected a selector, as in {{ aqm = "pi-24" }}')
    return questions(points, of, than, terms, each, over, where)


def _term(table: Json, where: str) -> tuple[float, Selector]:
    _known(table, TERM_KEYS, where)
    weight, at = table.get("weight"), table.get("at")
    if not is_number(weight) or not weight:
        raise BadInput(f"{where}.weight: {weight!r}: expected a number other than 0")
    if not isinstance(at, Mapping):
        raise BadInput(f'{where}.at: {at!r}: expected a selector, as in {{ load = "98" }}')
    return float(weight), at


def _bound(table: Json, key: str, where: str) -> float | None:
    given = table.get(key)
    if given is None:
        return None
    if is_number(given) and math.isfinite(given):
        return float(given)
    word = given.removeprefix("-") if isinstance(given, str) else None
    if word not in WORDS:
        said = ", ".join(f"{name} ({size:g})" for name, size in WORDS.items())
        raise BadInput(f"{where}: {key}: {given!r}: expected a number, or one of {said}, with - before it or without")
    return -WORDS[word] if given.startswith("-") else WORDS[word]


def _words(table: Json) -> tuple[tuple[str, str], ...]:
    """The bounds of a check that are words."""
    given = {key: table[key] for key in ("low", "high", "elsewhere") if key in table}
    if "stretch" in table:
        given = {"elsewhere": "-equal", **given}
    return tuple((key, one) for key, one in given.items() if isinstance(one, str))


def _selectors(given: Any, where: str) -> list[Selector]:
    """A selector, or a list of them."""
    listed = [given] if isinstance(given, Mapping) else given
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise BadInput(f'{where}: {given!r}: expected a selector, as in {{ aqm = "pi-24" }}, or a list of them')
    return listed


def _tables(table: Json, key: str, where: str) -> list[Json]:
    found = table.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(item, Mapping) for item in found):
        raise BadInput(f"{where}: {key}: {shown(found)}expected one or more tables")
    return [dict(item) for item in found]


def _known(table: Json, keys: Sequence[str], where: str) -> None:
    for key in table:
        if key == "expected":
            raise BadInput(
                f"{where}: expected: {table[key]!r}: unknown key; what is known to come out is known_outcome"
            )
        if key not in keys:
            raise BadInput(f"{where}: {key}: {table[key]!r}: unknown key; {near.expected(key, keys)}")


def _text(table: Json, key: str, where: str, default: str | None = None) -> str:
    found = table.get(key, default)
    if not isinstance(found, str) or not found.strip():
        raise BadInput(f"{where}: {key}: {shown(found)}expected a text")
    return found


def _flag(table: Json, key: str, where: str) -> bool:
    found = table.get(key, False)
    if not isinstance(found, bool):
        raise BadInput(f"{where}: {key}: {found!r}: expected true or false")
    return found
