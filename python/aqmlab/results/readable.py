"""Results as people read them on a terminal and on a page: numbers with their half widths, and what they rest on."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from aqmlab import units

if TYPE_CHECKING:  # results take a second to load, and a list of disciplines shows none
    from aqmlab.results.result import Result
    from aqmlab.statistics import Interval


POSSIBLE = {"share": (0.0, 1.0), "mos": (1.0, 4.5)}
"""The least and the most that numbers of a unit can be, where there are such; opinions are those of G.107, annex B."""

TOO_FEW = "(too few runs)"
"""Stands for an interval that is longer, from end to end, than all that its number can be."""

ALIKE = "Without ±: the same in every run, as shares and counts of few exchanges can be by chance."
"""Why a share or count has no interval across runs."""

SHORT_S = 1e-4
"""Times below it are said in whole microseconds: more digits of them tell nothing, unless their width does."""


def say(value: float | None, unit: str, signed: bool = False, decimals: int | None = None) -> str:
    """A number in the unit in which people read it: shares in per cent, times in milliseconds."""
    if value is None or not math.isfinite(value):
        return "–"
    sign = "+" if signed and value > 0 else ""
    text = sign + _unsigned(value, unit, decimals)
    # What rounds to nothing is neither more nor less.
    return text.lstrip("-+") if not text.strip("-+0.,") else text


def _unsigned(value: float, unit: str, decimals: int | None) -> str:
    match unit:
        case "share":
            return f"{100 * value:.{2 if decimals is None else decimals}f}"
        case "count" | "number" if decimals is not None:
            return f"{value:,.{decimals}f}"
        case "count":
            return units.say_count(value)
        case "s" if decimals is not None:
            return f"{1000 * value:,.{decimals}f}"
        case "s" if abs(value) < SHORT_S:
            return f"{1000 * value:.3f}"
        case "s":
            return units.significant(1000 * value, 3) if abs(value) < 1 else f"{1000 * value:,.0f}"
        case "mos":
            return f"{value:.{2 if decimals is None else decimals}f}"
        case "bps":
            return units.say_rate(value)
        case _ if unit in units.RATES:
            return _small_rate(value / units.RATES[unit])
    return units.significant(value, 4)


def _small_rate(rate: float) -> str:
    """A rate in the unit of its column, with four digits, or two of one that is next to nothing there."""
    if not 0 < abs(rate) < SMALL_RATE:
        return units.significant(rate, 4)
    return f"{rate:.{min(1 - math.floor(math.log10(abs(rate))), FINEST)}f}"


def of_column(unit: str, numbers: Iterable[Interval | None]) -> str:
    """The unit in which all numbers of a column are read: of rates that of the largest, which the column's head says.

    `difference_bps` becomes `difference_Mb/s`.
    """
    if not unit.endswith("bps"):
        return unit
    there = [one for one in numbers if one is not None and math.isfinite(one.value)]
    largest = max((abs(one.value) for one in there), default=0.0)
    widest = max((one.half_width or 0.0 for one in there), default=0.0)
    return unit.replace("bps", units.rate_unit(largest or widest)[0])


def headed(title: str, unit: str) -> str:
    """The head of a column with the unit of its rates; of all else the title has it."""
    rate = unit.removeprefix(DIFFERENCE)
    if rate not in units.RATES:
        return title
    return title + ("" if title.endswith("\n") else ", ") + rate


DIFFERENCE = "difference_"
"""Before the unit of a difference."""


def listed(names: Sequence[str]) -> str:
    """`a, b and c`; nothing where there are none."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def with_width(interval: Interval, unit: str, signed: bool = False) -> tuple[str, str]:
    """A number and its half width as two texts, `97.41` and `± 0.12`, with as many decimals as the width is worth.

    Both are in the same unit; that of a rate stands behind the two, `37.84` and `± 0.17 Mb/s`, unless it is that of
    the column. An interval that is longer than all that the number can be is `TOO_FEW`; a difference (`signed`) can be
    that much to either side.
    """

    def said(decimals: int | None) -> str:
        return say(interval.value, unit, signed, decimals).replace("-", "−")

    width = interval.half_width
    if interval.value == 0 and not width:  # as it is of all runs: no digits of nothing
        return "0", ""
    if width is None or not math.isfinite(width):
        return said(None), ""
    if unit in POSSIBLE and is_too_wide(width / 2 if signed else width, POSSIBLE[unit]):
        return said(0 if unit == "share" else None), TOO_FEW
    if unit == "bps":
        of_rate, size = units.rate_unit(max(abs(interval.value), width))
        value, wide = _rate_with_width(interval.value / size, width / size, signed)
        return value, f"{wide} {of_rate}"
    if unit in units.RATES:
        return _rate_with_width(interval.value / units.RATES[unit], width / units.RATES[unit], signed)
    decimals = _decimals(interval.value, width, unit)
    if unit == "share" and decimals is not None and _NEXT_TO_NOTHING <= width < 0.01 * 10**-decimals:
        width = 0.01 * 10**-decimals  # no width is said to be nothing
    return said(decimals), f"± {say(width, unit, decimals=decimals)}"


FEW_CASES = 1000
"""Of so few a share has no decimals where no interval says how many it is worth."""
FEWEST_CASES = 20
"""Of fewer a share is said as what it is: some of so many."""


def of_cases(interval: Interval, unit: str, cases: float, is_counted: bool = True) -> tuple[str, str]:
    """As `with_width`; but a share of few cases without an interval is in whole per cent: `57`.

    Of very few of one run it is `4 of 7` where it `is_counted`.
    """
    if unit != "share" or interval.half_width is not None or not math.isfinite(interval.value) or cases >= FEW_CASES:
        return with_width(interval, unit)
    if is_counted and interval.n == 1 and cases < FEWEST_CASES:
        return f"{round(interval.value * cases)} of {cases:.0f}", ""
    return say(interval.value, unit, decimals=0), ""


def is_too_wide(half_width: float, possible: tuple[float, float]) -> bool:
    """Whether an interval is longer, from end to end, than all that its number can be."""
    least, most = possible
    return 2 * half_width > most - least


_NEXT_TO_NOTHING = 5e-7
"""Of a share: what is less is what sums of floating-point numbers leave behind."""


def _decimals(value: float, width: float, unit: str) -> int | None:
    """Of a number that is `width` wide: as a rule so many that two digits of the width are seen."""
    if unit == "s":
        return _decimals_of_ms(value, 1000 * width)
    if width <= 0:
        return None
    usual, first = _usual_decimals(value, width, unit), _of_first_digit(value, width)
    shown = {"count": 0, "mos": 2}.get(unit) if usual is None else usual
    is_hidden = unit != "share" and shown is not None and 2 * width < 10.0**-shown
    return first if is_hidden and first is not None else usual


def _of_first_digit(value: float, width: float) -> int | None:
    """Decimals with which a width has one digit; none of one that sums of floating-point numbers leave behind."""
    first = -math.floor(math.log10(width))
    return first if width > ROUNDING * abs(value) and first <= FINEST else None


def _usual_decimals(value: float, width: float, unit: str) -> int | None:
    two = max(1 - math.floor(math.log10(width)), 0)
    match unit:
        case "share":
            # In per cent. What is one or more of them has no digits that packets at the window's ends could change.
            return min(max(two - 2, 0), 2 if abs(value) >= 0.01 else 4)
        case "number":
            return min(two, 4)
        case "count" if max(abs(value), width) < 10:
            return 1
    return None


def _decimals_of_ms(value_s: float, width_ms: float) -> int:
    """Two digits of a width down to whole microseconds, one of what is less, down to whole nanoseconds."""
    if width_ms < 1e-6:
        return 3 if abs(value_s) < SHORT_S else 2
    first = -math.floor(math.log10(width_ms))
    return max(min(first + 1, 3), first, 0)


MOST_DECIMALS = 3
"""Of a rate: less than a thousandth of its unit tells nothing, unless the rate is hardly more."""
SMALL_RATE = 0.01
"""Of its unit: a rate below it has as many decimals as it needs."""
FINEST = 9
"""Decimals at most: those of a bit of the largest unit."""
ROUNDING = 1e-9
"""Of a number: a width that is no more of it is one of rounding."""


def _rate_with_width(rate: float, wide: float, signed: bool) -> tuple[str, str]:
    """A rate and its half width, both in the same unit, with two digits of the width as far as decimals go."""
    most = MOST_DECIMALS if max(abs(rate), wide) >= SMALL_RATE else FINEST
    decimals = min(max(1 - math.floor(math.log10(wide)), 0), most) if wide > 0 else MOST_DECIMALS
    value = f"{rate:{'+' if signed else ''},.{decimals}f}"
    # What rounds to nothing is neither more nor less.
    value = value.lstrip("-+") if not value.strip("-+0.,") else value
    return value.replace("-", "−"), f"± {wide:,.{decimals}f}"


def is_alike(found: Interval) -> bool:
    """Whether a number has no interval because it is the same in every run, which says nothing of chance."""
    return found.half_width is None and found.basis == "runs" and math.isfinite(found.value)


def basis(reps: int, are_shown: bool = True, are_settled: bool = True, are_alike: bool = False) -> str:
    """Where the intervals of a comparison or result come from.

    `are_shown` where any stands in what is above, `are_settled` where any of the runs is known to be settled,
    `are_alike` where any number has none because it `is_alike`.
    """
    page = "on the page of aqmlab report"
    if reps > 1:
        if not are_shown:
            return f"{reps} independent runs. Intervals across them are {page}."
        return f"± 95 % t-interval across {reps} independent runs.{f' {ALIKE}' if are_alike else ''}"
    if not are_settled:
        return "One run: no interval across runs, nor within one that is not known to be settled."
    if not are_shown:
        return f"One run: no interval across runs. Those within it, where it is known to be settled, are {page}."
    return (
        "One run: no interval across runs. ± 95 % from 20 parts of its window, wider by what neighbours have in "
        "common; none where the run is not known to be settled, hardly four of its parts are independent, or most "
        "parts see none of what is counted."
    )


def said_apart(interval: Interval | None, unit: str) -> tuple[str, str]:
    """A number of a table of `separately`, and its half width; a difference has its sign."""
    if interval is None:
        return "–", ""
    if unit == "difference":
        return with_width(interval, "share", signed=True)
    return with_width(interval, unit.removeprefix(DIFFERENCE), signed=unit.startswith(DIFFERENCE))


def program(found: Result) -> str:
    """What ran inside a live result beside the scenario's traffic, or instead of it, and how it ended."""
    said = []
    if command := found.live.get("command"):
        ends = list(dict.fromkeys(run.live.get("command_status") for run in found.runs))
        how = ", ".join(f"exit status {end}" if isinstance(end, int) else str(end) for end in ends if end is not None)
        where = f"on the {found.live.get('side') or 'left'} side"
        said.append(f"Inside ran, {where}: {shlex.join(command)}" + (f" ({how})." if how else "."))
    if not found.live.get("traffic", True):
        said.append("The scenario's own traffic did not run.")
    return " ".join(said)
