"""The scenarios of RFC 7928 with a discipline filled in, and those that it is held against: a study.

`rfc7928.toml` has the grids without their axis of disciplines. Every queue of a grid has the same limit, unless the
words of a discipline give it one.
"""

import copy
import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aqmlab import files, scenario, toml_text
from aqmlab.engine import disciplines
from aqmlab.errors import BadInput
from aqmlab.json_files import Json
from aqmlab.laws import brought
from aqmlab.study import definition
from aqmlab.study.definition import FULL, QUICK, Study
from aqmlab.tc import words

FILE = Path(__file__).with_name("rfc7928.toml")
AGAINST = ("codel", "fq_codel")
"""What a discipline is held against besides drop-tail, unless somebody says otherwise."""
BASELINE = "drop-tail"
TARGETS = ("target", "qref")
"""Parameters that are what a discipline controls the queue to."""
FACTORS = ((0.5, "half"), (2.0, "twice"), (4.0, "4 times"))
GOODPUT = "goodput_bps"
DELAY: Json = {"measure": "queue_delay_mean_s", "direction": "forward", "title": "delay, mean"}
MEASURES: tuple[Json, ...] = (
    DELAY,
    {"measure": "queue_delay_quantile_s", "q": 0.99, "direction": "forward", "title": "delay, 99 %"},
    {"measure": "loss_ratio", "direction": "forward", "title": "loss"},
)
"""Of every requirement, after its goodput and before its own."""
_OWN = ("rates", "buffer", "links", "with", "ecn")


@dataclass(frozen=True)
class Discipline:
    """One that is evaluated, or held against the one that is."""

    name: str
    """Its value on the axis: `pie-target-5ms`."""
    label: str
    qdisc: Json

    @property
    def row(self) -> Json:
        """What the registry says of it."""
        every: list[Json] = [*disciplines(), *brought.disciplines()]
        return next(row for row in every if row["name"] == self.qdisc["kind"])

    @property
    def marks(self) -> bool:
        """Whether it can mark instead of dropping."""
        return bool(self.row["marks"])

    @property
    def target(self) -> tuple[str, str] | None:
        """The parameter that says to what it controls the queue, and its value; None where there is none."""
        for param in self.row["params"]:
            value = self.qdisc.get(param["name"], param["default"])
            if param["name"] in TARGETS and re.fullmatch(r"[\d.]+[a-z]+", str(value)):
                return str(param["name"]), str(value)
        return None


@cache
def template() -> Json:
    """The tables of `rfc7928.toml`."""
    return toml_text.read(FILE, files.STUDY)


def discipline(spec: str) -> Discipline:
    """What words stand for: a discipline and its parameters, as `aqmlab compare` takes them."""
    said = " ".join(spec.split())
    if "/" in said and not brought.is_file(said.split()[0]):
        raise BadInput(f"{said!r}: expected one discipline, which is that of both directions")
    spelled = brought.spelled(said)
    return Discipline(scenario.slug(spelled), spelled, words.parse(spelled))


def chosen(subject: str, against: Sequence[str] | None) -> list[Discipline]:
    """The discipline that is evaluated, drop-tail, and the others that it is held against."""
    first = discipline(subject)
    if first.qdisc == {"kind": "pfifo"}:
        raise BadInput(f"{subject!r}: is the baseline of every evaluation; expected another discipline")
    others = [discipline(spec) for spec in (AGAINST if against is None else against)]
    others = [one for one in others if one.qdisc not in (first.qdisc, {"kind": "pfifo"})]
    found = [first, Discipline(BASELINE, BASELINE, {"kind": "pfifo"}), *others]
    for one, other in itertools.combinations(found, 2):
        if one.name == other.name:
            raise BadInput(f"--against {other.label!r}: is there twice; expected different disciplines")
    return found


def study(
    folder: Path,
    subject: str,
    against: Sequence[str] | None = None,
    *,
    quick: bool = False,
    seeds: int | None = None,
    only: Sequence[str] = (),
) -> Study:
    """The evaluation of a discipline as a study, whose results go to `folder`."""
    return definition.of_tree(
        folder,
        filled(chosen(subject, against)),
        QUICK if quick else FULL,
        seeds,
        only,
        asked_as=command(subject, against),
    )


def command(subject: str, against: Sequence[str] | None) -> str:
    """What evaluates it in full."""
    beside = [] if against is None else ["--against", ",".join(against)]
    return shlex.join(["aqmlab", "evaluate", subject, *beside])


def filled(among: Sequence[Discipline]) -> Json:
    """The tables of the study: grids with their disciplines, a figure and a table for each requirement."""
    tree = copy.deepcopy(template())
    rates, requirements = tree.pop("rates"), tree.pop("requirement")
    tree.pop("question")
    found = [_grid(table, rates, among) for table in tree["grid"]]
    grids = {grid["name"]: grid for grid in found if grid is not None}
    shown = [one for one in requirements if one.get("grid") in grids]
    return {
        **tree,
        "id": f"{tree['id']}-{among[0].name}",
        "title": f"{among[0].label} after RFC 7928",
        "grid": list(grids.values()),
        "figure": [_figure(one, grids[one["grid"]]) for one in shown if not one.get("is_again")],
        "table": [_table(one) for one in shown],
    }


def id_of(requirement: Mapping[str, Any]) -> str:
    """What its figure and table are called."""
    return scenario.slug(str(requirement["section"]))


def _figure(requirement: Json, grid: Json) -> Json:
    axes = [axis["name"] for axis in grid["axis"]]
    along = [name for name in axes if name not in ("rate", "aqm", "ecn")]
    return {
        "id": id_of(requirement),
        "title": f"{requirement['section']}: {requirement['title']}",
        "kind": "tradeoff",
        "curves": [{"grid": grid["name"]}],
        **({"panels": "rate"} if "rate" in axes else {}),
        **({"along": along[0]} if along else {}),
        **({"link": requirement["link"]} if "link" in requirement else {}),
        **({"y": requirement["goodput"]} if "goodput" in requirement else {}),
    }


def _table(requirement: Json) -> Json:
    return {
        "id": id_of(requirement),
        "title": f"{requirement['section']}: {requirement['title']}",
        "rows": [{"grid": requirement["grid"]}],
        "measures": [goodput_of(requirement), *_at(requirement, MEASURES), *requirement.get("measures", [])],
    }


def delay_of(requirement: Mapping[str, Any]) -> Json:
    """The measure of the delay at the link that is meant."""
    (found,) = _at(requirement, [DELAY])
    return found


def _at(requirement: Mapping[str, Any], measures: Sequence[Json]) -> list[Json]:
    link = {"link": requirement["link"]} if "link" in requirement else {}
    return [{**one, **link} for one in measures]


def goodput_of(requirement: Mapping[str, Any]) -> Json:
    """The measure of what comes through; that of what the link sends where all of it is UDP."""
    name = requirement.get("goodput", GOODPUT)
    return {"measure": name, "direction": "forward", "title": "goodput" if name == GOODPUT else "throughput"}


def _grid(table: Json, rates: Mapping[str, Json], among: Sequence[Discipline]) -> Json | None:
    """A grid with the axes of rates and of disciplines; None where there is nothing to run in it."""
    own = {key: table.pop(key) for key in _OWN if key in table}
    run = list(_run(own.get("with"), among))
    if not run:
        return None
    names = own.get("rates", [])
    axis = [{"name": "rate", "value": [_rate(name, rates[name]) for name in names]}] if names else []
    given = own.get("buffer", {name: rates[name]["buffer"] for name in names} or rates["peering"]["buffer"])
    buffers: dict[str, str] = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names or [""], str(given))
    if "links" in own:
        cells = _over_links(own["links"], buffers[""], run)
        of_aqm: list[Json] = [{"name": one.name, "label": one.label} for one in run]
    else:
        cells = _limits(buffers, run)
        of_aqm = [{"name": one.name, "label": one.label, "link": {"qdisc": one.qdisc}} for one in run]
    if own.get("ecn"):
        marking = [one.name for one in run if one.marks]
        others = [one.name for one in run if not one.marks]
        cells += [{"at": {"aqm": marking, "ecn": "on"}, "set": {"link.qdisc.ecn": True}}] if marking else []
        table["skip"] = [{"aqm": others, "ecn": "on"}] if others else []
    return {
        **table,
        "axis": [*axis, *table.get("axis", []), {"name": "aqm", "value": of_aqm}],
        "cell": [*cells, *table.get("cell", [])],
    }


def _rate(name: str, table: Json) -> Json:
    return {"name": name, "label": table["label"], "set": table["set"]}


def _limits(buffers: Mapping[str, str], run: Sequence[Discipline]) -> list[Json]:
    """The limit of a rate's queues, but of those that have one of their own."""
    names = [one.name for one in run if "limit" not in one.qdisc]
    return [
        {"at": {"aqm": names, **({"rate": rate} if rate else {})}, "set": {"link.qdisc.limit": limit}}
        for rate, limit in buffers.items()
        if names
    ]


def _over_links(at: Mapping[str, Sequence[str]], limit: str, run: Sequence[Discipline]) -> list[Json]:
    """Each discipline at the links that a place names."""
    return [
        {
            "at": {"aqm": one.name, "at": place},
            "links": {name: {"qdisc": {**one.qdisc, "limit": one.qdisc.get("limit", limit)}} for name in names},
        }
        for one in run
        for place, names in at.items()
    ]


def _run(beside: str | None, among: Sequence[Discipline]) -> Iterator[Discipline]:
    """What a grid runs: all that are compared, or the one that is evaluated in several forms."""
    subject = among[0]
    match beside:
        case "settings":
            if subject.target is None:
                return
            key, value = subject.target
            yield Discipline(subject.name, f"{subject.label}, {key} {value}", subject.qdisc)
            number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", value).groups()  # type: ignore[union-attr]
            for factor, said in FACTORS:
                changed = f"{factor * float(number):g}{unit}"
                name = f"{subject.name}-{scenario.slug(said)}"
                yield Discipline(name, f"{subject.label}, {key} {changed}", {**subject.qdisc, key: changed})
            yield among[1]
        case "fair queueing":
            kind = f"fq_{subject.qdisc['kind']}"
            if kind not in {row["name"] for row in disciplines()}:
                return
            rest = subject.label.split()[1:]
            yield subject
            yield discipline(" ".join([kind, *rest]))
            yield among[1]
        case _:
            yield from among
