"""The scenarios of RFC 7928 with a discipline filled in, and those that it is held against: a study.

Every queue of a grid has the same limit, unless the words of a discipline give it one.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from aqmlab import engine, scenario, toml_text, units
from aqmlab.engine import disciplines
from aqmlab.errors import BadInput
from aqmlab.evaluation import template
from aqmlab.evaluation.template import Compared, Form
from aqmlab.json_files import Json
from aqmlab.laws import brought, forms
from aqmlab.shaping import SHAPER
from aqmlab.tc import words

AGAINST = ("codel", "fq_codel")
"""What a discipline is held against besides drop-tail, unless somebody says otherwise."""
BASELINE = "drop-tail"
TARGETS = ("target", "qref")
"""Parameters that are what a discipline controls the queue to."""
FACTORS = ((0.5, "half"), (2.0, "twice"), (4.0, "4 times"))
FAST = "100gbit"
"""Of a link before which any shaper is slow."""
KNOWN = "one of aqmlab list disciplines"
"""What is expected in place of a name that nobody knows."""
SCALED = "scaled"
"""What is added to the name of a discipline that is set for the round trips of a grid."""
OWN, TWICE = "own", "twice"
"""What may stand at a link of a grid with several, beside drop-tail and another scheme."""
OTHER = "other"
"""Another scheme, the same whatever it stands beside."""
OTHERS = ("codel", "pie")
"""The other scheme: the first of these that is not what is evaluated."""
_OWN = ("rates", "buffer", "links", "with", "ecn", "marks")


@dataclass(frozen=True)
class Discipline(Compared):
    """One that is evaluated, or held against the one that is."""

    qdisc: Json
    form: ClassVar[Form] = template.DISCIPLINES

    @property
    def row(self) -> Json:
        """What the registry says of it."""
        return next(row for row in _registered() if row["name"] == self.qdisc["kind"])

    @property
    def marks(self) -> bool:
        """Whether it can mark instead of dropping, and nobody said that it does not."""
        return bool(self.row["marks"]) and self.qdisc.get("ecn") is not False

    @property
    def unmarked(self) -> str:
        """What is to be said where it cannot be compared with ECN."""
        return "" if self.marks else f"{self.label} does not mark, and is run without ECN alone."

    @property
    def target(self) -> tuple[str, str] | None:
        """The parameter that says to what it controls the queue, and its value; None where there is none."""
        for param in self.row["params"]:
            value = self.qdisc.get(param["name"], param["default"])
            if param["name"] in TARGETS and re.fullmatch(r"[\d.]+[a-z]+", str(value)):
                return str(param["name"]), str(value)
        return None

    def with_reference(self, factor: float, said: str) -> "Discipline":
        """The same with another reference, so many times its own; as it is where it has none."""
        if self.target is None:
            return self
        key, value = self.target
        number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", value).groups()  # type: ignore[union-attr]
        changed = f"{factor * float(number):.15g}{unit}"
        name = f"{self.name}-{scenario.slug(said)}"
        return Discipline(name, f"{self._label_without(key)}, {key} {changed}", {**self.qdisc, key: changed})

    @property
    def with_own_reference(self) -> "Discipline":
        """The same, with its reference in the label."""
        if self.target is None:
            return self
        key, value = self.target
        return Discipline(self.name, f"{self._label_without(key)}, {key} {value}", self.qdisc)

    def _label_without(self, key: str) -> str:
        """Its words without a parameter, which is said behind them: two values would contradict each other."""
        said = self.label.split()
        at = said.index(key) if key in said else len(said)
        return " ".join([*said[:at], *said[at + 2 :]])

    @property
    def scaled(self) -> "Discipline | None":
        """The same as its authors set it for a data centre, if they say and nobody else has said."""
        for rule in template.template()["scaling"]:
            if self.qdisc["kind"] in rule["kinds"] and not {*rule["set"], *rule.get("unless", ())} & self.qdisc.keys():
                said = " ".join(f"{key} {value}" for key, value in rule["set"].items())
                return Discipline(f"{self.name}-{SCALED}", f"{self.label} {said}", {**self.qdisc, **rule["set"]})
        return None


def _registered() -> list[Json]:
    """Every discipline, those of one's own too."""
    return [*disciplines(), *brought.disciplines()]


def discipline(spec: str, expected: str = KNOWN) -> Discipline:
    """What words stand for: a discipline and its parameters, as `aqmlab compare` takes them."""
    said = " ".join(spec.split())
    if "/" in said and not forms.is_file(said.split()[0]):
        raise BadInput(f"{said!r}: expected one discipline, which is that of both directions")
    spelled = brought.spelled(said)
    qdisc = words.parse(spelled, expected)
    if "law" not in qdisc:  # what a law of one's own takes is looked at where it is loaded
        _check(said, qdisc)
    return Discipline(scenario.slug(spelled), spelled, qdisc)


def _check(said: str, qdisc: Json) -> None:
    """Refuses a value that no link could take, by the words that say it: no file has them."""
    try:
        engine.resolve(toml_text.dumps({"link": {"rate": FAST, "qdisc": qdisc}, "traffic": [{"kind": "bulk"}]}), said)
    except BadInput as error:
        found = re.search(r"link\.qdisc\.(\w+)( = .*)", str(error))
        if found is not None and (found[1] in qdisc or "(the default)" in found[2]):
            raise BadInput(f"{said!r}: {found[1]}{found[2]}") from None
    slowest = min((rate["set"]["link.rate"] for rate in template.template()["rates"].values()), key=_bps)
    if SHAPER in qdisc and _bps(qdisc[SHAPER]) > _bps(slowest):
        raise BadInput(
            f"{said!r}: {SHAPER} {qdisc[SHAPER]} exceeds {slowest}, a link of the scenarios, where it would never "
            f"shape; expected at most {slowest}, or words without it"
        )


def _bps(rate: object) -> float:
    return units.rate_bps(rate, SHAPER)


def chosen(subject: str, against: Sequence[str] | None) -> list[Discipline]:
    """The discipline that is evaluated, drop-tail, and the others that it is held against."""
    others = list(AGAINST if against is None else against)
    brought.bring_all([subject, *others])
    first = discipline(subject, f"{KNOWN}, or cc: before a congestion controller")
    if first.qdisc == {"kind": "pfifo"}:
        raise BadInput(f"{subject!r}: is the baseline of every evaluation; expected another discipline")
    beside = [one for one in map(discipline, others) if one.qdisc not in (first.qdisc, {"kind": "pfifo"})]
    found = [first, Discipline(BASELINE, BASELINE, {"kind": "pfifo"}), *beside]
    for one, other in itertools.combinations(found, 2):
        if one.name == other.name:
            files = [item.qdisc["law"] for item in (one, other) if "law" in item.qdisc]
            if len(set(files)) == 2:
                raise BadInput(
                    f"--against {other.label!r}: is there twice, of {files[0]} and of {files[1]}; expected laws of "
                    "different names, which are those of their classes"
                )
            raise BadInput(f"--against {other.label!r}: is there twice; expected different disciplines")
    return found


def _grid(table: Json, rates: Mapping[str, Json], among: Sequence[Discipline]) -> Json | None:
    """A grid with the axes of rates and of disciplines; None where there is nothing to run in it."""
    own = {key: table.pop(key) for key in _OWN if key in table}
    run = list(_run(own.get("with"), among))
    if not run:
        return None
    names = own.get("rates", [])
    given = own.get("buffer", {name: rates[name]["buffer"] for name in names} or rates["peering"]["buffer"])
    buffers: dict[str, str] = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names or [""], str(given))
    if "links" in own:
        other = _other(run[0])
        cells = _over_links(own["links"], buffers[""], run, other)
        table["skip"] = [*_without_reference(own["links"], run), *_beside_itself(own["links"], run, other)]
        of_aqm: list[Json] = [{"name": one.name, "label": one.label} for one in run]
    else:
        cells = _limits(buffers, run)
        of_aqm = [{"name": one.name, "label": one.label, "link": {"qdisc": one.qdisc}} for one in run]
    if own.get("ecn"):
        marking = [one.name for one in run if one.marks]
        others = [one.name for one in run if not one.marks]
        cells += [{"at": {"aqm": marking, "ecn": "on"}, "set": {"link.qdisc.ecn": True}}] if marking else []
        table["skip"] = [{"aqm": others, "ecn": "on"}] if others else []
    if own.get("marks"):
        marking = [one.name for one in run if one.marks]
        cells += [{"at": {"aqm": marking}, "set": {"link.qdisc.ecn": True}}] if marking else []
    return {
        **table,
        "axis": [*template.axis_of_rates(names, rates), *table.get("axis", []), {"name": "aqm", "value": of_aqm}],
        "cell": [*cells, *table.get("cell", [])],
    }


study = partial(template.study, chosen, _grid)
"""The evaluation of a discipline as a study: see `template.study`."""


def _limits(buffers: Mapping[str, str], run: Sequence[Discipline]) -> list[Json]:
    """The limit of a rate's queues, but of those that have one of their own."""
    names = [one.name for one in run if "limit" not in one.qdisc]
    return [
        {"at": {"aqm": names, **({"rate": rate} if rate else {})}, "set": {"link.qdisc.limit": limit}}
        for rate, limit in buffers.items()
        if names
    ]


def _over_links(
    at: Mapping[str, Mapping[str, str]], limit: str, run: Sequence[Discipline], other: Discipline
) -> list[Json]:
    """Each discipline, or what goes with it, at the links that a place names."""
    cells = []
    for one in run:
        stands = {OWN: one, TWICE: one.with_reference(2.0, TWICE), OTHER: other}
        for place, links in at.items():
            if (TWICE in links.values() and not _has_reference(one)) or (OTHER in links.values() and _is(one, other)):
                continue
            queues = {name: stands[what].qdisc for name, what in links.items()}
            found = {name: {"qdisc": {**qdisc, "limit": qdisc.get("limit", limit)}} for name, qdisc in queues.items()}
            cells.append({"at": {"aqm": one.name, "at": place}, "links": found})
    return cells


def _has_reference(one: Discipline) -> bool:
    """Whether it can stand with another reference; the baseline does as it is."""
    return one.name == BASELINE or one.target is not None


def _other(subject: Discipline) -> Discipline:
    """Another scheme than what is evaluated; all that are compared stand beside this one."""
    return discipline(next(kind for kind in OTHERS if kind != subject.qdisc["kind"]))


def _is(one: Discipline, other: Discipline) -> bool:
    return bool(one.qdisc["kind"] == other.qdisc["kind"])


def _without_reference(at: Mapping[str, Mapping[str, str]], run: Sequence[Discipline]) -> list[Json]:
    """Places with another reference for disciplines that have none."""
    names = [one.name for one in run if not _has_reference(one)]
    places = [place for place, links in at.items() if TWICE in links.values()]
    return [{"aqm": names, "at": places}] if names and places else []


def _beside_itself(at: Mapping[str, Mapping[str, str]], run: Sequence[Discipline], other: Discipline) -> list[Json]:
    """Places with another scheme for disciplines that are this scheme."""
    names = [one.name for one in run if _is(one, other)]
    places = [place for place, links in at.items() if OTHER in links.values()]
    return [{"aqm": names, "at": places}] if names and places else []


def _run(beside: str | None, among: Sequence[Discipline]) -> Iterator[Discipline]:
    """What a grid runs: all that are compared, or the one that is evaluated in several forms."""
    subject = among[0]
    match beside:
        case "settings":
            if subject.target is None:
                return
            yield subject.with_own_reference
            for factor, said in FACTORS:
                yield subject.with_reference(factor, said)
            yield among[1]
        case "fair queueing":
            kind = f"{forms.FAIR}{subject.qdisc['kind']}"
            if kind not in {row["name"] for row in _registered()}:
                return
            label = f"{forms.FAIR}{subject.label}"
            yield subject
            # Its words are not read again: tc's of RED stand for lengths that only RED's own row works out.
            yield Discipline(scenario.slug(label), label, {**subject.qdisc, "kind": kind})
            yield among[1]
        case "scaling":
            yield from among
            if subject.scaled is not None:
                yield subject.scaled
        case _:
            yield from among
