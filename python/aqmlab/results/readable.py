"""Results as people read them on a terminal and on a page: numbers with their half widths, and what they rest on."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aqmlab import units

if TYPE_CHECKING:  # results take a second to load, and a list of disciplines shows none
    from aqmlab.results.result import Result
    from aqmlab.statistics import Interval


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
        case "count":
            return units.say_count(value)
        case "s" if decimals is not None:
            return f"{1000 * value:,.{decimals}f}"
        case "s" if abs(value) < SHORT_S:
            return f"{1000 * value:.3f}"
        case "s":
            return units.significant(1000 * value, 3) if abs(value) < 1 else f"{1000 * value:,.0f}"
        case "mos":
            return f"{value:.2f}"
        case "bps":
            return units.say_rate(value)
    return units.significant(value, 4)


def listed(names: Sequence[str]) -> str:
    """`a, b and c`; nothing where there are none."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def with_width(interval: Interval, unit: str, signed: bool = False) -> tuple[str, str]:
    """A number and its half width as two texts, `97.41` and `± 0.12`, with as many decimals as the width is worth.

    Both are in the same unit; that of a rate stands behind the two: `37.84` and `± 0.17 Mb/s`.
    """

    def said(decimals: int | None) -> str:
        return say(interval.value, unit, signed, decimals).replace("-", "−")

    width = interval.half_width
    if width is None or not math.isfinite(width):
        return said(None), ""
    if unit == "bps":
        return _rate_with_width(interval.value, width, signed)
    decimals = None
    if unit == "s":
        decimals = _decimals_of_ms(interval.value, 1000 * width)
    elif unit == "share" and width > 0:
        decimals = min(max(-math.floor(math.log10(width)) - 1, 0), 4)  # two digits of a width in per cent
    return said(decimals), f"± {say(width, unit, decimals=decimals)}"


def _decimals_of_ms(value_s: float, width_ms: float) -> int:
    """Two digits of a width down to whole microseconds, one of what is less, down to whole nanoseconds."""
    if width_ms < 1e-6:
        return 3 if abs(value_s) < SHORT_S else 2
    first = -math.floor(math.log10(width_ms))
    return max(min(first + 1, 3), first, 0)


MOST_DECIMALS = 3
"""Of a rate: less than a thousandth of its unit tells nothing."""


def _rate_with_width(bps: float, width_bps: float, signed: bool) -> tuple[str, str]:
    """A rate and its half width in the unit of the larger, with two digits of the width as far as decimals go."""
    unit, size = units.rate_unit(max(abs(bps), width_bps))
    wide = width_bps / size
    decimals = min(max(1 - math.floor(math.log10(wide)), 0), MOST_DECIMALS) if wide > 0 else MOST_DECIMALS
    value = f"{bps / size:{'+' if signed else ''},.{decimals}f}"
    # What rounds to nothing is neither more nor less.
    value = value.lstrip("-+") if not value.strip("-+0.,") else value
    return value.replace("-", "−"), f"± {wide:,.{decimals}f} {unit}"


def basis(reps: int, are_shown: bool = True) -> str:
    """Where the intervals of a comparison or result come from; `are_shown` where any stands in what is above."""
    if not are_shown:
        page = "on the page of aqmlab report"
        if reps > 1:
            return f"{reps} independent runs. Intervals across them are {page}."
        return f"One run: no interval across runs. Those within it, where it is known to be settled, are {page}."
    if reps > 1:
        return f"± 95 % t-interval across {reps} independent runs."
    return (
        "One run: no interval across runs. ± 95 % from 20 parts of its window, wider by what neighbours have in "
        "common; none where the run is not known to be settled, hardly four of its parts are independent, or most "
        "parts see none of what is counted."
    )


def said_apart(interval: Interval | None, unit: str) -> tuple[str, str]:
    """A number of a table of `separately`, and its half width; a difference has its sign."""
    if interval is None:
        return "–", ""
    units_of = {
        "difference": "share",
        "difference_s": "s",
        "difference_number": "number",
        "difference_mos": "mos",
        "difference_bps": "bps",
    }
    return with_width(interval, units_of.get(unit, unit), signed=unit in units_of)


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
