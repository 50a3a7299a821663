"""What came out of an evaluation, requirement by requirement: the case that stands for all, and every case beside
drop-tail.

Differences to drop-tail are taken seed by seed where both met the same demands, and between independent samples where
they did not; each is less or more if its 95 % interval says so, else undecided.
"""

import math
from collections.abc import Mapping, Sequence

from aqmlab.claims.samples import contrast, sample
from aqmlab.evaluation import template
from aqmlab.evaluation.template import BASELINE
from aqmlab.json_files import Json
from aqmlab.statistics import Interval
from aqmlab.study.cells import Cell, Cells
from aqmlab.study.definition import Study
from aqmlab.study.measured import Asked, asked_of

RUN, NOT_RUN, MISSING, NOTHING = "run", "not run", "not there", "nothing to vary"
"""What became of a requirement: `nothing to vary` where the discipline has no such setting, or no such scheduler."""
LESS, MORE, UNDECIDED = "less", "more", "undecided"


def requirements(study: Study, cells: Cells) -> list[Json]:
    """All that the RFC asks to be run, in its order."""
    return [_requirement(one, study, cells) for one in template.template()["requirement"]]


def _requirement(asked: Mapping[str, object], study: Study, cells: Cells) -> Json:
    facts: Json = {key: asked.get(key, "") for key in ("section", "title", "asks", "remark", "missing")}
    grid = str(asked.get("grid", ""))
    known = {point.grid for point in study.everything}
    there = [cell for cell in cells if cell.grid == grid]
    if not there:
        status = MISSING if not grid else NOTHING if grid not in known else NOT_RUN
        return {**facts, "id": template.id_of(asked), "status": status, "grid": grid or None}
    goodput, delay = (asked_of(one, grid)[0] for one in (template.goodput_of(asked), template.delay_of(asked)))
    title = next(one.title for one in study.grids if one.name == grid)
    return {
        **facts,
        "id": template.id_of(asked),
        "status": RUN,
        "grid": grid,
        "what_was_run": title,
        "is_again": bool(asked.get("is_again", False)),
        "command": f"{study.command} --only '{grid}/*'" if not study.only else study.command,
        "shown": _shown(there, asked.get("shown", {}), goodput, delay),
        "beside_drop_tail": {
            "cases": len(_pairs(study, there)),
            "delay": _counted(delay, _pairs(study, there)),
            "goodput": _counted(goodput, _pairs(study, there)),
            "goodput_is": goodput.title,
        },
    }


def _place(cell: Cell) -> dict[str, str]:
    return {axis: value for axis, value in cell.at.items() if axis != "aqm"}


def _shown(cells: Sequence[Cell], case: object, goodput: Asked, delay: Asked) -> list[Json]:
    """The chosen case at each rate, the discipline that is evaluated first; the first case where none is chosen."""
    wanted = case if isinstance(case, Mapping) else {}
    fit = [cell for cell in cells if all(cell.at.get(axis) == value for axis, value in wanted.items())] or list(cells)
    first = {axis: value for axis, value in _place(fit[0]).items() if axis != "rate"}
    found: dict[tuple[str, ...], Json] = {}
    for cell in fit:
        place = _place(cell)
        if any(place[axis] != value for axis, value in first.items()):
            continue
        label = ", ".join(cell.labels[axis] for axis in place) or "as it is"
        row = found.setdefault(tuple(place.values()), {"at": place, "label": label, "disciplines": []})
        row["disciplines"].append(
            {
                "name": cell.at["aqm"],
                "label": cell.labels["aqm"],
                "goodput": as_json(goodput, cell),
                "delay": as_json(delay, cell),
            }
        )
    return list(found.values())


def as_json(asked: Asked, cell: Cell) -> Json:
    """A number with its interval, as it is read and with every digit; null where there is none."""
    found = asked.of(cell)
    return number(_finite(found.value), _finite(found.half_width), found.n, asked.unit)


def number(value: float | None, half_width_95: float | None, n: int, unit: str) -> Json:
    """A mean over `n` runs with the half width of its interval, in words beside."""
    width = half_width_95
    return {
        "text": "–" if value is None else f"{_brief(value)} {unit}".strip(),
        "width_text": "" if value is None or width is None or _is_alike(value, width) else f"± {_brief(width, 2)}",
        "value": value,
        "half_width_95": width,
        "n": n,
        "unit": unit,
    }


def _is_alike(value: float, width: float) -> bool:
    """Whether a number is the same in every run, but for the rounding of a mean."""
    return width <= 1e-9 * abs(value)


def _brief(value: float, digits: int = 3) -> str:
    """A number of few digits, without an exponent."""
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(places, 0)}f}" if places < 5 else f"{value:.{digits}g}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _pairs(study: Study, cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """The discipline that is evaluated and drop-tail, in each case that both have."""
    subject = str(study.id).removeprefix(f"{template.template()['id']}-")
    of = {name: [cell for cell in cells if cell.at["aqm"] == name] for name in (subject, BASELINE)}
    return [(one, other) for one in of[subject] for other in of[BASELINE] if _place(one) == _place(other)]


def _counted(asked: Asked, pairs: Sequence[tuple[Cell, Cell]]) -> dict[str, int]:
    verdicts = [verdict(_difference(asked, one, other)) for one, other in pairs]
    return {word: verdicts.count(word) for word in (LESS, MORE, UNDECIDED)}


def _difference(asked: Asked, one: Cell, other: Cell) -> Interval:
    return contrast([(1.0, sample(asked.reading, [one], None)), (-1.0, sample(asked.reading, [other], None))])


def verdict(found: Interval) -> str:
    """Whether a difference is less or more than nothing, by its interval."""
    width = found.half_width
    if width is None or not math.isfinite(width) or not math.isfinite(found.value) or abs(found.value) <= width:
        return UNDECIDED
    if _is_alike(found.value, width):  # it says nothing of how much it might have varied
        return UNDECIDED
    return LESS if found.value < 0 else MORE
