"""What the first is worth beside today's queue: rows of a table, and the sentences that an advice leads with."""

import math
from typing import Any

from aqmlab.advice import cells, scores
from aqmlab.advice.advising import FEWEST_JUDGED, Advice
from aqmlab.advice.applications import Figure
from aqmlab.advice.candidates import TODAY
from aqmlab.statistics import Interval, simultaneous

OPINION = "how a call sounds: 1 bad to 5 excellent"
"""What a mean opinion score is (ITU-T P.800)."""


def sentences(advice: Advice) -> list[str]:
    """What each application gets, in units of its own, and then what that is as a score."""
    return [*_in_units(advice), f"{_score(advice)} {scores.definition(advice.question)}"]


def _in_units(advice: Advice) -> list[str]:
    """From what to what each figure goes: those that get better, those that get worse, and the others."""
    found: dict[str, list[str]] = {"better": [], "worse": [], "": [], "same": []}
    is_first_today = advice.race.first == TODAY
    for figure, row in zip(advice.figures, rows(advice), strict=True):
        today, first = cells.bare(row["today"]), cells.bare(row["first"])
        if "–" in (today, first):
            continue
        difference = advice.worth(figure).difference
        is_same = difference is not None and difference.value == 0 and difference.half_width is None
        of = today if is_same else f"{today} → {first}"
        found["same" if is_same else row["judged"]].append(f"{figure.in_prose} {of}{_unit(figure)}")
    if is_first_today:
        heads = {"same": "As it is"}
    elif found["better"]:
        heads = {"better": "Better than today, each with 95 %", "worse": "Worse", "": "Not sure", "same": "The same"}
    else:
        heads = {"worse": "Worse than today, each with 95 %", "": "Not surely another than today", "same": "As today"}
    said = " ".join(f"{head}: {', '.join(found[how])}." for how, head in heads.items() if found[how])
    return [said] if said else []


def _unit(figure: Figure) -> str:
    if figure.unit == "mos":
        return f" MOS ({OPINION})"
    unit = cells.SCALES[figure.unit][1]
    return f" {unit}" if unit else ""


def _score(advice: Advice) -> str:
    """By how much the first's score is better than today's."""
    race = advice.race
    if race.first == TODAY:
        of_all = len(advice.same) == len(race.running) - 1 > 0
        best = "no lower than any other one's" if of_all else "the best in the mean"
        return f"Its score is {race.mean(TODAY):.3f}, {best}."
    of_first, of_today = race.mean(race.first), race.mean(TODAY)
    said = f"Its score is {of_first:.3f}, today's {of_today:.3f}: better by {apart(of_first, of_today)}"
    least, _ = race.gain(race.first, TODAY)
    if least > 0:
        by = f"{least_said} at least" if float(least_said := _down(least)) else "more than nothing"
        return f"{said}; with 95 %, by {by}."
    sure = "not sure of it. It is sure that another one is better than today" if TODAY in race.left else "not sure"
    return f"{said} in the mean, which is {sure}."


def apart(more: float, less: float) -> str:
    """How far two scores are apart, as they are shown: rounded before, so that the numbers fit each other."""
    difference = round(more, 3) - round(less, 3)
    return f"{difference:.3f}" if abs(difference) >= 0.0005 else "less than 0.001"


def _down(bound: float) -> str:
    """A lower bound of a score, rounded down."""
    digits = 2 if bound >= 0.01 else 3
    return f"{math.floor(bound * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def judged(figure: Figure, difference: Interval | None, among: int = 2) -> str:
    """`better`, `worse`, or nothing where the interval leaves a doubt, or is of too few rounds to be relied on.

    The interval is widened for a first that was chosen `among` so many candidates, today's queue being one of them: the
    best of several equals is ahead by chance.
    """
    if difference is None:
        return ""
    widened = simultaneous(difference, among - 1)
    if widened.low <= 0 <= widened.high:
        return ""
    if difference.n < FEWEST_JUDGED or cells.is_wide(figure, difference):
        return ""
    return "better" if (difference.value > 0) == (figure.better > 0) else "worse"


def rows(advice: Advice) -> list[dict[str, Any]]:
    """A row for each figure; `of` and `harm_of` say of which rounds, where not of all."""
    found = []
    for one in advice.figures:
        here, harm = advice.worth(one), advice.harm(one)
        digits = cells.together(one, (here.today, here.first, here.difference, harm))
        found.append(
            {
                "key": one.key,
                "title": cells.title(one),
                "of": _of_rounds(here.rounds, advice.race.rounds),
                "today": cells.cell(one, here.today, digits=digits),
                "first": cells.cell(one, here.first, digits=digits),
                "difference": cells.cell(one, here.difference, signed=True, digits=digits),
                "judged": judged(one, here.difference, among=len(advice.candidates)),
                "harm": cells.cell(one, harm, signed=True, digits=digits),
                "harm_of": "" if harm is None else _of_rounds(harm.n, len(advice.too_fast)),
                "harm_judged": judged(one, harm),
            }
        )
    return found


def _of_rounds(number: int, every: int) -> str:
    return "" if number in (0, every) else f"in {number} of {every} rounds"
