"""The figures of a study, as its `study.toml` names them, in the looks of all reports."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aqmlab import near
from aqmlab.errors import BadInput, shown
from aqmlab.figures.drawn import Drawn
from aqmlab.json_files import Json, is_number
from aqmlab.study.figures import left_out as left
from aqmlab.study.figures.against import against, measure_of
from aqmlab.study.figures.cell import Cell, Find, LeftOut, Place, nothing, without_label
from aqmlab.study.figures.curves import Curve, Hues, curves_of, hues_of, noted
from aqmlab.study.figures.losses import loss_runs
from aqmlab.study.figures.over_time import over_time
from aqmlab.study.figures.responses import as_printed, ccdf, cdf
from aqmlab.study.figures.sizes import sizes
from aqmlab.study.figures.tradeoff import tradeoff, upwards
from aqmlab.study.measured import asked_of

__all__ = ["KINDS", "Cell", "Find", "LeftOut", "check", "check_axes", "draw", "every", "name_of"]

Kind = Callable[[str, Json, Sequence[Curve]], Drawn | None]
"""Draws, unless the curves have nothing that it could show."""

KINDS: dict[str, Kind] = {
    "cdf": cdf,
    "ccdf": ccdf,
    "against": against,
    "loss_runs": loss_runs,
    "over_time": over_time,
    "sizes": sizes,
    "tradeoff": tradeoff,
}
"""What a `[[figure]]` may be."""

COMMON = ("id", "title", "kind", "curves", "caption")
PRINTED = "printed"
"""Of a distribution: whether it is also drawn on the axes that papers print."""
_KEYS: dict[str, tuple[str, ...]] = {
    "cdf": ("panels", "xmax", PRINTED),
    "ccdf": ("panels",),
    "loss_runs": ("panels", "direction"),
    "over_time": ("column", "direction", "ylabel"),
    "sizes": (),
    "tradeoff": ("panels", "along", "y", "link"),
}
_NEEDED: dict[str, tuple[str, ...]] = {"against": ("x", "measure"), "over_time": ("column",)}
_TEXTS = ("caption", "panels", "along", "x", "link", "xlabel", "ylabel", "column", "direction")


def check(spec: Mapping[str, Any], where: str) -> None:
    """Refuses a `[[figure]]` that cannot be drawn, before anything runs."""
    for key in ("id", "title", "kind"):
        if not isinstance(spec.get(key), str | int):
            raise BadInput(f"{where}: {key}: {shown(spec.get(key))}expected a text")
    kind = str(spec["kind"])
    if kind not in KINDS:
        raise BadInput(f"{where}: kind: {kind!r}: {near.expected(kind, KINDS)}")
    for key in (*_NEEDED.get(kind, ()), *(key for key in _TEXTS if key in spec)):
        if not isinstance(spec.get(key), str):
            raise BadInput(f"{where}: {key}: {shown(spec.get(key))}expected a text")
    curves = spec.get("curves")
    if not isinstance(curves, list) or not curves or not all(isinstance(one, Mapping) for one in curves):
        raise BadInput(f'{where}: curves: expected a list of selectors, as in [{{ aqm = "pi-24", ecn = "off" }}]')
    if kind == "against":
        measure_of(spec, where)  # refuses what is neither a key of the figure nor a parameter of its measure
        return
    accepted = (*COMMON, *_KEYS[kind])
    for key in spec:
        if key not in accepted:
            raise BadInput(f"{where}: {key}: {spec[key]!r}: unknown key; {near.expected(key, accepted)}")
    if kind == "tradeoff" and "y" in spec:
        asked_of(upwards(spec), f"{where}: y")
    if not isinstance(spec.get(PRINTED, False), bool):
        raise BadInput(f"{where}: {PRINTED}: {spec[PRINTED]!r}: expected true or false")
    end = spec.get("xmax", 2.0)
    if not is_number(end) or not 0 < end <= 2:
        raise BadInput(f"{where}: xmax: {end!r}: expected seconds above 0, up to 2")


def check_axes(spec: Mapping[str, Any], points: Sequence[Place], where: str) -> None:
    """Refuses axes that the points of a figure do not have."""
    for key in ("panels", "along", "x"):
        if key not in spec:
            continue
        axes = list(dict.fromkeys(axis for point in points for axis in point.at))
        if spec[key] not in axes:
            raise BadInput(f"{where}: {key}: {spec[key]!r}: expected one of {', '.join(axes) or 'no axis'}")
    without = [point.name for point in points if "x" in spec and spec["x"] not in point.numbers]
    if without:
        raise BadInput(f"{where}: x: {spec['x']!r}: expected an axis of numbers; {without[0]} has none there")


def every(specs: Sequence[Json]) -> list[Json]:
    """All figures that `[[figure]]` tables make: one with `printed = true` is followed by itself on a paper's axes."""
    found = []
    for spec in specs:
        found.append({key: item for key, item in spec.items() if key != PRINTED})
        if spec.get(PRINTED):
            found.append({**spec, "id": f"{spec['id']}, as printed"})
    return found


def draw(
    specs: Sequence[Json],
    find: Find,
    left_out: LeftOut = nothing,
    whole: Sequence[Json] | None = None,
    note_of: Callable[[Cell], str] | None = None,
) -> list[Drawn]:
    """All figures that have something to show, in the order of the study; captions say which points were not run.

    `whole` are all figures of the study where some are drawn: colours are the same in all of them. `note_of` says what
    stands behind the name of a point's curve, and often nothing.
    """
    for spec in specs:
        check(spec, f"figure {spec.get('id', '?')}")
    hues = hues_of(specs if whole is None else whole, find)
    found = [_drawn(spec, find, left_out, hues, note_of) for spec in specs]
    return [figure for figure in found if figure is not None]


def _has_lost_its_subjects(spec: Json, curves: Sequence[Curve], left_out: LeftOut) -> bool:
    """Whether nothing but references is left of a figure that has more to show."""
    missing = (place for selector in spec["curves"] for place in left_out(without_label(selector)))
    return all(curve.cell.uncongested for curve in curves) and not all(place.uncongested for place in missing)


def name_of(spec: Mapping[str, Any]) -> str:
    """Name of a figure's files, and of its place on the page."""
    return "figure-" + (re.sub(r"[^a-z0-9]+", "-", str(spec["id"]).lower()).strip("-") or "x")


def _drawn(
    spec: Json, find: Find, left_out: LeftOut, hues: Hues, note_of: Callable[[Cell], str] | None
) -> Drawn | None:
    curves = curves_of(spec, find, hues)
    if note_of is not None:
        curves = noted(curves, note_of)
    if not curves or _has_lost_its_subjects(spec, curves, left_out):
        return None
    kind = as_printed if spec.get(PRINTED) else KINDS[str(spec["kind"])]
    drawn = kind(name_of(spec), spec, curves)
    if drawn is None:
        return None
    lost = left.absent(spec, curves, left_out)
    draw = left.noted(drawn.draw, spec, curves, lost) if any(lost) else drawn.draw
    return replace(drawn, caption=drawn.caption + left.said(spec["curves"], find, left_out), draw=draw)
