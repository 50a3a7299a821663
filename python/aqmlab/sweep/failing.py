"""Which runs of a sweep are not what they claim to be, or say less than they seem to, by what their points share."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from aqmlab.sweep.grid import Point
from aqmlab.sweep.sweeps import Finished

LISTED = 5
"""Points that are named at most where they have nothing in common that others have not."""

Row = Mapping[str, Any]


def points(rows: Sequence[Row]) -> dict[str, int]:
    """How many runs of each point failed a self-check, of points of which any did."""
    found: dict[str, int] = {}
    for row in rows:
        if not row["self_checks_hold"]:
            found[row["point"]] = found.get(row["point"], 0) + 1
    return found


def said(rows: Sequence[Row], asked: Sequence[Point]) -> list[str]:
    """For each thing that went wrong, where and what: `all 15 runs at 45mbit/10ms: the offered load ...`."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if not row["self_checks_hold"]:
            found.setdefault(row["self_checks_failed"], []).append(row)
    at = {point.name: dict(point.at) for point in asked}
    return [f"{where(failed, rows, at)}: {detail}" for detail, failed in found.items()]


def not_made(found: Finished) -> list[str]:
    """The same of runs that were not made because a law broke its promises.

    What differs by its numbers alone, as by the time at which it happened, is one thing, in the words of the first run.
    """
    return of_laws([asdict(one) for one in found.failed], found.sweep.runs)


def of_laws(failed: Sequence[Row], runs: Sequence[tuple[Point, int]]) -> list[str]:
    """The same of runs by `grid`, `point` and `seed`, each with its `message`, among all that were asked for."""
    every: list[Row] = [{"grid": point.grid, "point": point.name, "seed": seed} for point, seed in runs]
    return _by_kind([(one, one["message"]) for one in failed], every, list({p.name: p for p, _ in runs}.values()))


def findings(rows: Sequence[Row], asked: Sequence[Point]) -> list[str]:
    """The same of what is to be known before figures of runs are taken for those of links and disciplines."""
    return _by_kind([(row, row["findings"]) for row in rows if row.get("findings")], rows, asked)


def _by_kind(each: Sequence[tuple[Row, str]], rows: Sequence[Row], asked: Sequence[Point]) -> list[str]:
    at = {point.name: dict(point.at) for point in asked}
    kinds: dict[str, list[tuple[Row, str]]] = {}
    for row, words in each:
        kinds.setdefault(_NUMBER.sub("", words), []).append((row, words))
    return [
        f"{where([row for row, _ in own], rows, at)}"
        f"{', the first' if len({words for _, words in own}) > 1 else ''}: {own[0][1]}"
        for own in kinds.values()
    ]


_NUMBER = re.compile(r"\d[\d.,]*")


def where(some: Sequence[Row], rows: Sequence[Row], at: Mapping[str, Mapping[str, str]]) -> str:
    """Some runs among the rows of a table, by what only they have in common, or else by their points.

    `at` is where each point lies on its axes.
    """
    if len(some) == len(rows) > 1:
        return f"all {len(rows)} runs"
    names = {row["point"] for row in some}
    grids = {row["grid"] for row in some}
    of_first = at[some[0]["point"]]
    common = {axis: value for axis, value in of_first.items() if all(at[name].get(axis) == value for name in names)}
    alike = [row for row in rows if row["grid"] in grids and common.items() <= at[row["point"]].items()]
    if len(grids) == 1 and len(names) > 1 and len(alike) == len(some):
        grid = "/".join([*grids, *common.values()] if len({row["grid"] for row in rows}) > 1 else common.values())
        return f"all {len(some)} runs at {grid}"
    return _by_point(some, rows)


def _by_point(some: Sequence[Row], rows: Sequence[Row]) -> str:
    seeds: dict[str, list[int]] = {}
    for row in some:
        seeds.setdefault(row["point"], []).append(row["seed"])
    said = []
    for point, own in list(seeds.items())[:LISTED]:
        others = sum(row["point"] == point for row in rows) - len(own)
        if others or len(own) == 1:
            said.append(f"{point}, seed{'s' * (len(own) > 1)} {', '.join(map(str, own))}")
        else:
            said.append(f"all {len(own)} runs of {point}")
    more, beyond = sum(map(len, list(seeds.values())[LISTED:])), len(seeds) - LISTED
    rest = f"; and {more} more run{'s' * (more > 1)} of {beyond} more point{'s' * (beyond > 1)}" if more else ""
    return "; ".join(said) + rest
