"""The overlaps of overlaps.toml with both numbers read, and whether they agree by the rule that was set."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import places
import theory
from places import HERE, ROOT, Number

sys.path[:0] = [str(ROOT / one) for one in ("benches/peers", "benches/peers/linux")]

import json  # noqa: E402

import closed_loop  # noqa: E402
import ns2_reference  # noqa: E402
from closed_loop_cases import NEWER, REFERENCE  # noqa: E402
from ns2_reference import REFERENCE as NS2  # noqa: E402

from aqmlab.evaluation import template  # noqa: E402
from aqmlab.statistics import half_width  # noqa: E402

AGREES, DIFFERS, UNDECIDED = "agrees", "differs", "undecided"
IN_LINUX = {
    "utilisation": "utilisation",
    "signals": "signal_ratio",
    "delay": "queue_delay_s",
    "queue": "queue_mean_packets",
}
IN_NS2 = {"utilisation": "utilisation", "loss": "loss_ratio", "queue": "queue_mean_packets"}
RATES = {"access": "20 Mb/s", "peering": "100 Mb/s", "data-centre": "10 Gb/s"}
DROP_TAIL = {"pfifo": "drop-tail"}
WORDS = {
    "signals": "lost or marked",
    "loss": "loss",
    "delay": "delay",
    "queue": "mean queue",
    "ratio": "ratio of rates",
    "jain": "Jain's index",
    "90 %": "short flows, 90 %",
    "short flows' drops": "signals to short flows",
}


@dataclass(frozen=True)
class Line:
    """One comparison."""

    id: str
    group: str
    says: str
    kind: str
    """Of the number: `delay`, `goodput`, ..."""
    here: Number
    there: Number
    rule: str
    """`within`, `sign` or `between`."""
    allowed: float
    """The largest difference, of `within`."""
    low: float
    high: float
    """The bounds, of `between`."""
    verdict: str
    said: str
    """The other number in the words of its study; empty where it is shown as ours is."""


def plan() -> dict[str, Any]:
    """What overlaps.toml says."""
    return tomllib.loads((HERE / "overlaps.toml").read_text(encoding="utf-8"))


@cache
def bridges() -> Mapping[str, Mapping[str, Any]]:
    """The bridges of runs.toml by name."""
    asked = tomllib.loads((HERE / "runs.toml").read_text(encoding="utf-8"))["bridge"]
    return {one["name"]: one for entry in asked for one in places.expanded(entry)}


def lines() -> list[Line]:
    """All comparisons, in the order of the file."""
    return [_line(one) for entry in plan()["overlap"] for one in places.expanded(entry)]


def _line(asked: Mapping[str, Any]) -> Line:
    here = number(asked["here"])
    if "minus" in asked:
        here = here.minus(number(asked["minus"]))
    there = number(asked["there"])
    kind = asked["here"]["number"]
    rate = asked["here"].get("at", {}).get("rate", "access")
    least = theory.least(asked["least"], rate) if "least" in asked else 0.0
    low = high = 0.0
    if "sign" in asked:
        rule, allowed, verdict = "sign", 0.0, same_side(here, there)
    elif "between" in asked:
        low, high = (share * there.value for share in asked["between"])
        low, high = low - least, high + least
        rule, allowed, verdict = "between", 0.0, between(here, low, high)
    else:
        share = asked["within"][kind] if isinstance(asked["within"], Mapping) else asked["within"]
        rule, allowed = "within", max(share * abs(there.value), least)
        apart = here.minus(there)
        verdict = between(apart, -allowed, allowed)
    return Line(
        id=_id(asked),
        group=asked["group"],
        says=_says(asked),
        kind=kind,
        here=here,
        there=there,
        rule=rule,
        allowed=allowed,
        low=low,
        high=high,
        verdict=verdict,
        said=_said_there(asked["there"]),
    )


def _id(asked: Mapping[str, Any]) -> str:
    parts = [asked["group"]]
    for where in ("here", "minus"):
        place = asked.get(where, {})
        parts += [str(place[key]) for key in ("bridge", "run", "of", "section", "number") if key in place]
        parts += [str(item) for item in place.get("at", {}).values()]
    there = asked["there"]
    parts += [str(there[key]) for key in ("claim", "label", "row") if key in there]
    return "/".join(dict.fromkeys(parts))


def _says(asked: Mapping[str, Any]) -> str:
    """What a line compares, in words."""
    place, there = asked["here"], asked["there"]
    number = WORDS.get(place["number"], place["number"])
    if "reference" in there:
        return f"{title(place['bridge'])}: {number}"
    subject = place.get("of") or asked.get("of") or place.get("bridge") or place["run"]
    words = asked.get("says") or f"{DROP_TAIL.get(subject, subject)}: {number}"
    at = [RATES[place["at"]["rate"]]] if "rate" in place.get("at", {}) else []
    section = [_section(place["section"])] if "section" in place else []
    other = there.get("row") or there.get("label", "")
    beside = f"; there: {other}" if other else ""
    where = f" ({', '.join([*section, *at])})" if section or at else ""
    return f"{words}{where}{beside}"


@cache
def _titles() -> Mapping[str, str]:
    """What the other sides call the cases that bridges lead to."""
    return {one.name: one.title for one in (*closed_loop.CASES, *closed_loop.CASES_7_3, *ns2_reference.CASES)}


def title(bridge: str) -> str:
    """What the other side calls the case that a bridge leads to."""
    return _titles()[bridges()[bridge]["case"]]


@cache
def _sections() -> Mapping[str, str]:
    return {template.id_of(one): str(one["section"]) for one in template.template()["requirement"]}


def _section(id: str) -> str:
    return _sections()[id]


def _said_there(there: Mapping[str, Any]) -> str:
    """What a study says of its number; that a sign or a bound is all that is asked of ours."""
    if "study" in there:
        return str(places.finding(there["study"], there["claim"], there["label"])["number"]).split(" (")[0]
    return {"one": "a sign"}.get(there.get("theory", ""), "")


def number(place: Mapping[str, Any]) -> Number:
    """The number that stands at a place."""
    if "reference" in place:
        return _reference(place)
    if "bridge" in place:
        return places.of_bridge(place["bridge"], place["number"])
    if "run" in place:
        return places.of_run(place["run"], place["number"])
    if "queue" in place:
        return places.of_queue(place["queue"], place["number"])
    if "validation" in place:
        return places.of_validation(place["validation"], place["row"], place["quantity"], place["column"])
    if "study" in place:
        return places.of_study(place["study"], place["claim"], place["label"])
    if "theory" in place:
        return theory.of_theory(place)
    return places.of_evaluation(place["of"], place["section"], place["number"], place.get("at", {}))


@cache
def _kept(path: Any) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _reference(place: Mapping[str, Any]) -> Number:
    """What a kernel or ns-2 had in the case that a bridge leads to."""
    case = bridges()[place["bridge"]]["case"]
    if place["reference"] == "ns-2":
        runs = _kept(NS2)["cases"][case]["runs"]
        values = [run[IN_NS2[place["number"]]] for run in runs]
    else:
        kept = _kept(REFERENCE) if case in _kept(REFERENCE) else _kept(NEWER)
        values = [closed_loop.reading(run, IN_LINUX[place["number"]]) for run in kept[case]["runs"]]
    return Number(sum(values) / len(values), half_width(values), len(values))


def between(found: Number, low: float, high: float) -> str:
    """Whether a number is between two bounds with its whole interval, or with no part of it."""
    width = found.half_width or 0.0
    if low <= found.value - width and found.value + width <= high:
        return AGREES
    return DIFFERS if found.value + width < low or found.value - width > high else UNDECIDED


def same_side(one: Number, other: Number) -> str:
    """Whether two numbers are on the same side of 0, each with its whole interval."""
    sides = [
        0 if abs(found.value) <= (found.half_width or 0.0) else 1 if found.value > 0 else -1 for found in (one, other)
    ]
    if 0 in sides:
        return UNDECIDED
    return AGREES if sides[0] == sides[1] else DIFFERS


def reasons() -> Mapping[str, str]:
    """Why lines do not agree, by their ids."""
    return {id: one["says"] for one in plan().get("reason", []) for id in one["lines"]}


def counted(found: Sequence[Line]) -> dict[str, int]:
    """How many agree, differ and are undecided."""
    return {verdict: sum(line.verdict == verdict for line in found) for verdict in (AGREES, DIFFERS, UNDECIDED)}
