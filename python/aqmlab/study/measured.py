"""A measure of the catalogue, asked of a cell: its number with an interval, as figures and tables show it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from aqmlab.claims.verdict import check_unit, scale_of
from aqmlab.errors import BadInput
from aqmlab.measures import catalogue
from aqmlab.measures.measure import Reading
from aqmlab.statistics import Interval

if TYPE_CHECKING:  # what draws figures measures
    from aqmlab.study.figures.cell import Cell

NAMED = 5
"""Things that are named one by one in a caption."""


@dataclass(frozen=True)
class Asked:
    """A measure with its parameters, and what it is called."""

    reading: Reading
    title: str
    said_unit: str = ""
    """The unit in which it is to be shown, where that is not the measure's."""

    @property
    def factor(self) -> float:
        """From bits, bytes, seconds and shares to the unit that is shown."""
        return scale_of(self.said_unit or self.reading.unit)

    @property
    def unit(self) -> str:
        """The unit that is shown; empty of a plain number."""
        unit = self.said_unit or self.reading.unit
        return "%" if unit.startswith("%") else unit

    def of(self, cell: "Cell") -> Interval:
        """The number of a cell in that unit, with the best interval that its runs allow."""
        found = self.reading.estimate(cell)
        width = None if found.half_width is None else self.factor * found.half_width
        return replace(found, value=self.factor * found.value, half_width=width)


def asked_of(table: Any, where: str, others: Sequence[str] = ()) -> list[Asked]:
    """What `measure` and the keys beside it ask for, one for each value of a parameter that is a list.

    `table` may be a measure's name alone; `title` is what it is called here, `unit` what it is shown in; `others` are
    keys of something else.
    """
    keys = {"measure": table} if isinstance(table, str) else table
    if not isinstance(keys, Mapping):
        raise BadInput(
            f'{where}: {table!r}: expected a measure, as in "loss_ratio" or {{ measure = "within", time_s = 0.5 }}'
        )
    readings = catalogue.read(keys, where, ("title", "unit", *others))
    unit = str(keys.get("unit", ""))
    if unit:
        check_unit(unit, readings[0].unit, where)
    title = keys.get("title") if "measure" in keys else None
    named = str(title) if title and len(readings) == 1 else None
    return [Asked(reading, named or _called(reading.title), unit) for reading in readings]


def _called(title: str) -> str:
    """A quantile is headed `90 %` where all columns are quantiles; beside others it says of what."""
    return f"{title} within" if title.endswith(" %") and title[:1].isdigit() else title


MOST_DIGITS = 4
"""Of a number: more of them are not read, and the CSV beside has them. Whole numbers are not cut."""


def with_width(found: Interval) -> tuple[str, str]:
    """A number and its half width as texts, with as many decimals as the width is worth, but few digits."""
    value, width = found.value, found.half_width
    if not math.isfinite(value):
        return "–", ""
    at_most = _decimals(abs(value), MOST_DIGITS)
    if width is None or not math.isfinite(width):
        return said(value, _decimals(abs(value) / 50)), ""
    if width <= 1e-9 * abs(value):  # a number of the scenario, or none in any run; but for the rounding of a mean
        if abs(value) < 1e-4:
            return f"{value:.{MOST_DIGITS}g}".replace("-", "−"), ""
        text = said(value, at_most)
        return text.rstrip("0").rstrip(".") if "." in text else text, ""
    places = _decimals(width)
    if value == 0 or places <= at_most:
        return said(value, places), f"± {said(width, places)}"
    # A width that is less than the last of these digits has one of its own.
    return said(value, at_most), f"± {said(width, max(at_most, _decimals(width, 1)))}"


def has_interval(found: Interval) -> bool:
    """Whether there is one around a value."""
    return found.half_width is not None and math.isfinite(found.half_width)


def bases_said(found: Sequence[tuple[str, Interval]], where: str = "") -> str:
    """Where intervals come from, as in `95 % t-intervals across runs; no interval: REM 24`, for what is drawn.

    `found` are values with what they are called; most of them give the words, and what differs is named. `where` is
    what shows that a value has none: `open marks`.
    """
    of_basis: dict[str, list[str]] = {}
    parts: set[int] = set()
    for name, one in found:
        if math.isfinite(one.value):
            basis = one.basis if has_interval(one) else "none"
            of_basis.setdefault(basis, []).append(name)
            if basis == "parts":
                parts.add(one.n)
    if not of_basis:
        return "no values"
    within = f"from {' or '.join(map(str, sorted(parts)))} parts within the one run"
    words = {"runs": "95 % t-intervals across runs", "parts": f"95 % intervals {within}", "none": "no intervals"}
    most = max(of_basis, key=lambda basis: len(of_basis[basis]))
    said = [words.get(most, "95 % intervals")]
    beside = {"runs": "across runs", "parts": within, "none": f"no interval{f' ({where})' if where else ''}"}
    said += [f"{beside.get(basis, basis)}: {named(names)}" for basis, names in of_basis.items() if basis != most]
    return "; ".join(said)


def named(names: Sequence[str]) -> str:
    """Each of some names once, and of many the first."""
    each = list(dict.fromkeys(names))
    return "; ".join(each) if len(each) <= NAMED else f"{'; '.join(each[: NAMED - 1])} and {len(each) - NAMED + 1} more"


def _decimals(size: float, digits: int = 2) -> int:
    """Places after the point that show so many digits of a size."""
    return 0 if size <= 0 else max(0, min(6, digits - 1 - math.floor(math.log10(size))))


def said(value: float, places: int) -> str:
    """A number with thousands told apart."""
    return f"{value:,.{places}f}".replace("-", "−")
