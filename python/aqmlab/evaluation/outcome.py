"""What came out of an evaluation, requirement by requirement: the case that stands for all, and every case beside
the baseline, which is drop-tail or a congestion controller.

Differences to the baseline are taken seed by seed where both met the same demands, and between independent samples
where they did not; each is less or more if its 95 % interval says so, else undecided.
"""

import fnmatch
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aqmlab.claims.samples import contrast, sample
from aqmlab.evaluation import template
from aqmlab.evaluation.template import Compared, Form
from aqmlab.json_files import Json
from aqmlab.measures import catalogue
from aqmlab.measures.measure import Formula, Reading
from aqmlab.measures.subject import Seen
from aqmlab.results import coarse
from aqmlab.statistics import Interval
from aqmlab.study.cells import Cell, Cells
from aqmlab.study.definition import Study
from aqmlab.study.measured import Asked, asked_of

RUN, NOT_RUN, MISSING, NOTHING, FAILED = "run", "not run", "not there", "nothing to vary", "failed"
"""What became of a requirement: `nothing to vary` where the discipline has no such setting, or no such scheduler;
`failed` where a law broke its promises in every case."""
TITLE = "title"
"""What counts beside another value of an axis are called; the other keys of `without` are axes."""
LESS, MORE, UNDECIDED = "less", "more", "undecided"


def requirements(
    study: Study, cells: Cells, among: Sequence[Compared], failed: Collection[str] = frozenset()
) -> list[Json]:
    """All that the RFC asks to be run, in its order; `failed` are grids in which a law broke its promises."""
    return [_requirement(one, study, cells, among, failed) for one in template.template(among[0].form)["requirement"]]


def _requirement(
    asked: Mapping[str, Any], study: Study, cells: Cells, among: Sequence[Compared], failed: Collection[str]
) -> Json:
    facts: Json = {key: asked.get(key, "") for key in ("section", "title", "asks", "remark", "missing")}
    grid = str(asked.get("grid", ""))
    known = {point.grid for point in study.everything}
    there = [cell for cell in cells if cell.grid == grid]
    if not there:
        status = MISSING if not grid else NOTHING if grid not in known else FAILED if grid in failed else NOT_RUN
        return {**facts, "id": template.id_of(asked), "status": status, "grid": grid or None}
    goodput, delay = (asked_of(one, grid)[0] for one in (template.goodput_of(asked), template.delay_of(asked)))
    also = _also(asked, grid)
    numbers = {"goodput": goodput, "delay": delay, **({"also": also} if also else {})}
    pairs, form = _pairs(among, there), among[0].form
    without = {key: value for key, value in asked.get("without", {}).items() if key != TITLE}
    is_without = f" {among[0].unmarked}" if without else ""
    title = next(one.title for one in study.grids if one.name == grid)
    return {
        **facts,
        "remark": f"{facts['remark']}{is_without}".strip(),
        "id": template.id_of(asked),
        "status": RUN,
        "grid": grid,
        "has_failed": grid in failed,
        "what_was_run": title,
        "is_again": bool(asked.get("is_again", False)),
        "is_whole": len(there) == sum(point.grid == grid for point in study.everything),
        "command": replace(study, only=_alone(study, grid)).command,
        "shown": _cases(there, asked.get("shown", {}), without, numbers, among),
        form.beside: {
            "cases": len(pairs),
            **{kind: _counted(one, pairs) for kind, one in numbers.items()},
            "goodput_is": goodput.title,
            **({"also_is": also.title} if also else {}),
        },
        **({"beside_without": _beside_without(asked, among[0], there, without, numbers)} if without else {}),
    }


def _cases(
    cells: Sequence[Cell],
    case: Mapping[str, str],
    without: Mapping[str, str],
    numbers: Mapping[str, Asked],
    among: Sequence[Compared],
) -> list[Json]:
    """The chosen case at each rate, and beside each the same without what it has, where a requirement has such.

    The baseline stands without it in both.
    """
    form, baseline = among[0].form, among[1].name
    found = _shown(cells, case, numbers, form)
    if not without:
        return found
    others = [one for one in _shown(cells, {**case, **without}, numbers, form) if one not in found]
    for one in found:
        twin = next((other for other in others if other["at"] == {**one["at"], **without}), None)
        rows = [] if twin is None else [row for row in twin[form.kinds] if row["name"] == baseline]
        if not any(row["name"] == baseline for row in one[form.kinds]):
            one[form.kinds] += rows
    rates = [one["at"].get("rate") for one in (*found, *others)]
    return sorted((*found, *others), key=lambda one: rates.index(one["at"].get("rate")))


def _beside_without(
    asked: Mapping[str, Any],
    subject: Compared,
    cells: Sequence[Cell],
    without: Mapping[str, str],
    numbers: Mapping[str, Asked],
) -> Json:
    """How often what is evaluated has less or more with something than without it."""
    own = [(_place(cell, subject.form), cell) for cell in cells if cell.at[subject.form.axis] == subject.name]
    pairs = [
        (cell, other) for place, cell in own for there, other in own if there == {**place, **without} and there != place
    ]
    counted = {kind: _counted(one, pairs) for kind, one in numbers.items()}
    return {"title": asked["without"][TITLE], "cases": len(pairs), **counted}


def _alone(study: Study, grid: str) -> tuple[str, ...]:
    """Patterns that name what was run of a grid and nothing of others: as they were asked for, where they do."""
    names = [point.name for point in study.everything]
    whole = {point.name for point in study.everything if point.grid == grid}
    if not study.only:
        return (f"{grid}/*",)
    wanted = {name for pattern in study.only for name in fnmatch.filter(whole, pattern)}
    found = []
    for pattern in study.only:
        _, slash, rest = pattern.partition("/")
        here = set(fnmatch.filter(names, pattern)) & whole
        candidates = (pattern, f"{grid}{slash}{rest}", f"{grid}/*")
        exact = (one for one in candidates if set(fnmatch.filter(names, one)) == here)
        found += [next(exact, "")] if here else []
    if all(found):
        return tuple(dict.fromkeys(found))
    return (f"{grid}/*",) if wanted == whole else tuple(sorted(wanted))


class Quotient(Reading):
    """The goodput of one block of traffic divided by that of another, in each run."""

    @property
    def title(self) -> str:
        """For the head of a column."""
        return self.formula.words

    @property
    def unit(self) -> str:
        """None: it is a plain number."""
        return ""


def _also(asked: Mapping[str, Any], grid: str) -> Asked | None:
    """The third number of a requirement, beside goodput and delay."""
    table = asked.get("also")
    if table is None:
        return None
    if "quotient" not in table:
        return asked_of(table, grid)[0]
    one, other = (
        catalogue.read({"measure": "summary", "key": f"tcp.held_back.{block}.goodput_bps"}, grid)[0]
        for block in table["quotient"]
    )

    def whole(seen: Seen) -> float:
        divisor = other.formula.whole(seen)
        return one.formula.whole(seen) / divisor if divisor > 0 else math.nan

    return Asked(Quotient(one.measure, (), Formula(whole, None, str(table["title"]), "")), str(table["title"]))


def _place(cell: Cell, form: Form) -> dict[str, str]:
    return {axis: value for axis, value in cell.at.items() if axis != form.axis}


def _shown(cells: Sequence[Cell], case: object, numbers: Mapping[str, Asked], form: Form) -> list[Json]:
    """The chosen case at each rate, what is evaluated first; the first case where none is chosen."""
    wanted = case if isinstance(case, Mapping) else {}
    fit = [cell for cell in cells if all(cell.at.get(axis) == value for axis, value in wanted.items())] or list(cells)
    first = {axis: value for axis, value in _place(fit[0], form).items() if axis != "rate"}
    found: dict[tuple[str, ...], Json] = {}
    for cell in fit:
        place = _place(cell, form)
        if any(place[axis] != value for axis, value in first.items()):
            continue
        label = ", ".join(cell.labels[axis] for axis in place) or "as it is"
        row = found.setdefault(tuple(place.values()), {"at": place, "label": label, form.kinds: []})
        row[form.kinds].append(
            {
                "name": cell.at[form.axis],
                "label": cell.labels[form.axis],
                **{kind: as_json(one, cell) for kind, one in numbers.items()},
            }
        )
    return list(found.values())


def as_json(asked: Asked, cell: Cell) -> Json:
    """A number with its interval, as it is read and with every digit; null where there is none."""
    found = asked.of(cell)
    return number(_finite(found.value), _finite(found.half_width), found.n, asked.unit)


def number(value: float | None, half_width_95: float | None, n: int, unit: str) -> Json:
    """A mean over `n` runs with the half width of its interval, in words beside: as many decimals as that is worth."""
    width = half_width_95
    text, width_text = brief(value, unit), ""
    if value is not None and width is not None and not _is_alike(value, width):
        # A width far below the last digit of its number is nothing beside it.
        places = min(_places(width, 2), _places(value, 4) if value else MOST_PLACES)
        text, width_text = f"{value:,.{places}f} {unit}".strip(), f"± {width:,.{places}f}"
    return {
        "text": text,
        "width_text": width_text,
        "value": value,
        "half_width_95": width,
        "n": n,
        "unit": unit,
    }


def _is_alike(value: float, width: float) -> bool:
    """Whether a number is the same in every run, but for the rounding of a mean."""
    return width <= 1e-9 * abs(value)


MOST_PLACES = 6
"""Decimals of a number at most: of milliseconds, nanoseconds."""


def brief(value: float | None, unit: str) -> str:
    """A number that stands without its interval: three digits, and no exponent."""
    if value is None:
        return "–"
    return f"{f'{value:,.{_places(value, 3)}f}' if value else '0'} {unit}".strip()


def _places(value: float, digits: int) -> int:
    """Decimals with which a number has so many digits."""
    return min(max(digits - 1 - math.floor(math.log10(abs(value))), 0), MOST_PLACES)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _pairs(among: Sequence[Compared], cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """What is evaluated and the baseline, in each case that both have.

    A baseline that cannot mark is not run with ECN: its case without stands beside those with it, too.
    """
    form = among[0].form
    own, base = ([cell for cell in cells if cell.at[form.axis] == one.name] for one in among[:2])
    places = [(_place(cell, form), cell) for cell in base]
    found = []
    for one in own:
        place = _place(one, form)
        wanted = (place, {**place, "ecn": "off"}) if "ecn" in place else (place,)
        others = [cell for at in wanted for there, cell in places if there == at]
        found += [(one, other) for other in others[:1]]
    return found


def _counted(asked: Asked, pairs: Sequence[tuple[Cell, Cell]]) -> dict[str, int]:
    verdicts = [verdict(_difference(asked, one, other)) for one, other in pairs]
    return {word: verdicts.count(word) for word in (LESS, MORE, UNDECIDED)}


def _difference(asked: Asked, one: Cell, other: Cell) -> Interval:
    found = contrast([(1.0, sample(asked.reading, [one], None)), (-1.0, sample(asked.reading, [other], None))])
    return coarse.no_finer(found, sum(asked.reading.resolution(cell) for cell in (one, other)))


def verdict(found: Interval) -> str:
    """Whether a difference is less or more than nothing, by its interval."""
    width = found.half_width
    if width is None or not math.isfinite(width) or not math.isfinite(found.value) or abs(found.value) <= width:
        return UNDECIDED
    if _is_alike(found.value, width):  # it says nothing of how much it might have varied
        return UNDECIDED
    return LESS if found.value < 0 else MORE
