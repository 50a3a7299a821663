"""The studies' claims, asked of a comparison: its columns stand for the points of the studies that they are equal to.

A column stands for a point with the same discipline, parameter for parameter, the same ECN, the same kinds of traffic
at the same load, and a link of the same rate. Of several such points it stands for those that have everything else in
common with it too, or else for the one that has most: a comparison may ask whether a claim holds under other round-trip
times or other hosts, and the claim then says so. Of several columns the one with fewest differences stands for a point.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab import links, reference, toml_text
from aqmlab.claims.asked import ask
from aqmlab.claims.reading import ClaimText
from aqmlab.claims.verdict import Claim
from aqmlab.comparison import Column, Comparison
from aqmlab.json_files import Json
from aqmlab.live.witnesses import SIMULATED
from aqmlab.study import definition, folders, found
from aqmlab.sweep.grid import Point
from aqmlab.variants import UNCONGESTED_WORD

LENGTHS = ("name", "duration", "warmup", "cooldown", "seed", "record", "live")
"""Keys of a scenario that leave the experiment what it is."""


def claims(comparison: Comparison) -> list[Claim]:
    """Every claim of the studies that ask it of comparisons, and that this one's data can answer.

    A claim is asked only if the comparison has the disciplines and the load that it speaks of.
    """
    load = comparison.load
    # The claims are judged on one witness, which nothing makes void.
    columns = [column for column in comparison.columns if column.witness == SIMULATED]
    if load is None:
        return []
    answers: list[Claim] = []
    rate = _rate(comparison.baseline.result.scenario)
    for name in folders.known():
        folder = folders.find(name)
        if not folders.title(folder).get(definition.ASKED_OF_COMPARISONS):
            continue
        study = definition.read(folder)
        asked_of = {name for text in study.claims for name in text.points}
        points = [point for point in study.everything if point.name in asked_of]
        standing = _standing(columns, load, rate, points)
        texts = [text for text in study.claims if text.is_answerable(set(standing))]
        answers += found.at_full_scale(study.folder, [_asked(text, standing) for text in texts])
    return answers


@dataclass(frozen=True)
class Stand:
    """A column in place of a point."""

    column: Column
    differences: tuple[str, ...]
    """Settings of the column that the point has otherwise: `path.rtt "50ms"`."""


def _asked(text: ClaimText, standing: Mapping[str, Stand]) -> Claim:
    columns = {name: stand.column for name, stand in standing.items()}
    claim = ask(text, columns, _Called(columns), lenient=True)
    points = {name for question in text.questions if question.points <= columns.keys() for name in question.points}
    used = {standing[name].column.name: standing[name].differences for name in sorted(points)}
    common = [what for what in next(iter(used.values())) if all(what in others for others in used.values())]
    own = [
        f"{name}: {', '.join(rest)}"
        for name, differences in used.items()
        if (rest := [what for what in differences if what not in common])
    ]
    return replace(claim, conditions=(*common, *own))


class _Called:
    """Names points as the columns that stand for them."""

    def __init__(self, standing: Mapping[str, Column]) -> None:
        self._standing = standing

    def __call__(self, point: Point) -> str:
        """The column's name."""
        return self._standing[point.name].name


def _standing(columns: Sequence[Column], load: float, rate: float, points: Sequence[Point]) -> dict[str, Stand]:
    """The points that columns stand for: of all pairs that can be, those with fewest differences first."""
    there = [(point, found) for point in points if (found := _resolved(point, columns, load, rate)) is not None]
    pairs: list[tuple[int, int, Point, Stand]] = []
    for k, column in enumerate(columns):
        own = _essence(column.result.scenario, column.uncongested)
        fit = [
            (_differences(column.result.scenario, scenario, column.uncongested), point)
            for point, scenario in there
            if _essence(scenario, point.uncongested) == own
            and (column.uncongested or _rate(column.result.scenario) == _rate(scenario))
        ]
        least = min((len(differences) for differences, _ in fit), default=0)
        nearest = [(differences, point) for differences, point in fit if len(differences) == least]
        # What is the same in everything stands for all names that it has; what is not, for one.
        chosen = nearest if least == 0 else nearest[:1]
        pairs += [(least, k, point, Stand(column, differences)) for differences, point in chosen]
    standing: dict[str, Stand] = {}
    for _, _, point, stand in sorted(pairs, key=lambda pair: pair[:2]):
        standing.setdefault(point.name, stand)
    return standing


def _resolved(point: Point, columns: Sequence[Column], load: float, rate: float) -> Json | None:
    """A point's scenario with all its parameters; none if no column can stand for it."""
    if not any(_may_stand(column, point) for column in columns):
        return None
    found = point.source.resolve()
    # That of an uncongested point has the link that its load is of.
    if _rate(found.scenario) != rate:
        return None
    loads = {round(100 * one.load_bps / rate) for one in found.loads}
    return found.scenario if loads == {round(100 * load)} else None


def _rate(scenario: Json) -> float:
    return reference.rates_of(scenario, "scenario")[0]


def _may_stand(column: Column, point: Point) -> bool:
    """By what is written, which costs nothing to see."""
    if point.uncongested or column.uncongested:
        return point.uncongested and column.uncongested
    given = links.first(point.source.tree).get("qdisc", {})
    return bool(column.qdisc["kind"] == given.get("kind") and given.keys() <= column.qdisc.keys())


def _essence(scenario: Json, uncongested: bool) -> Any:
    """Kinds of traffic, discipline and ECN; on the uncongested link the last two say nothing."""
    traffic = [(block["kind"], block.get("model")) for block in scenario["traffic"]]
    if uncongested:
        return UNCONGESTED_WORD, traffic
    link = links.first(scenario)
    qdisc = dict(link["qdisc"])
    reverse = dict(link.get("reverse_qdisc", qdisc))
    can_mark = bool(qdisc.pop("ecn", False))
    reverse.pop("ecn", None)
    return (
        (qdisc, reverse),
        traffic,
        [ecn if can_mark else "off" for ecn in _ecn_of_blocks(scenario)],
    )


def _ecn_of_blocks(scenario: Json) -> list[Any]:
    """What the hosts of each block say of ECN: a block may have its own settings of TCP."""
    common = scenario.get("tcp", {}).get("ecn", "off")
    return [block.get("ecn", common) for block in scenario["traffic"]]


def _differences(one: Json, other: Json, uncongested: bool) -> tuple[str, ...]:
    """Settings of the first that the other has otherwise, of those that are not the discipline's, the load's or the
    run's."""
    a, b = dict(_settings(one, uncongested)), dict(_settings(other, uncongested))
    keys = dict.fromkeys((*a, *b))
    return tuple(f"{key} {a[key]}" if key in a else f"no {key}" for key in keys if a.get(key) != b.get(key))


DELAYS = ("delay", "reverse_delay")
"""The keys of the delay behind a link."""


def _settings(scenario: Json, uncongested: bool) -> Iterator[tuple[str, str]]:
    """Dotted keys with their values as text; lists count as one value."""
    for key, item in scenario.items():
        if key in (links.ONE, links.MANY):
            link = links.first(scenario)
            # The uncongested link has no device queue, and is fast enough both ways.
            said = ("overhead", *DELAYS) if uncongested else ("overhead", *DELAYS, "device_queue", *links.VARYING)
            yield from _table("link", {key: one for key, one in link.items() if key in said})
            if not uncongested:
                yield "link.reverse_rate", _said(link.get("reverse_rate", link["rate"]))
        elif key == "traffic":
            for position, block in enumerate(item):
                # Everything but how many users there are, which the load says.
                yield from _table(f"traffic.{position}", block, ("load", "users", "kind", "model", "ecn"))
        elif key not in LENGTHS:
            yield from _table(key, item, ("ecn",) if key == "tcp" else ())


def _table(where: str, item: Any, without: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    if not isinstance(item, Mapping):
        yield where, _said(item)
        return
    for key, one in item.items():
        if key not in without:
            yield f"{where}.{key}", _said(one)


def _said(item: Any) -> str:
    return item if isinstance(item, str) else toml_text.value(_in_order(item))


def _in_order(item: Any) -> Any:
    """The value with the keys of tables in the order of their names: how a scenario was read is no difference."""
    if isinstance(item, Mapping):
        return {key: _in_order(item[key]) for key in sorted(item)}
    return [_in_order(one) for one in item] if isinstance(item, list) else item
