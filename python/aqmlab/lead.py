"""The answer of a comparison in a sentence or two: who is ahead, or that nobody can be said to be.

Who is ahead is said of the data, so that several columns are compared at once. The one with the highest figure is ahead
if each of the others is behind by more than its interval, widened for as many comparisons as there are pairs: which of
them has the highest figure is of the data, too. Whoever is not behind it by that much is its equal. Of such sets 95 %
hold the one that is best in truth (Gupta, Technometrics 7(2), 1965; Hsu, Annals of Statistics 9(5), 1981), and of
sentences that say who is behind 5 % at most are wrong where all are equal.
"""

import math
from collections.abc import Sequence

from aqmlab import statistics
from aqmlab.comparison import Column, Comparison
from aqmlab.results import readable

MEASURE = "share_under_500ms"


def of(found: Comparison) -> str:
    """The sentences; none where there is nothing to compare."""
    base = found.baseline
    # As one witness has them; and what does not count is no answer.
    columns = [c for c in found.congested if c.witness == base.witness and not c.void]
    if len(columns) < 2 or base.void or any(math.isnan(_value(column)) for column in columns):
        return ""
    columns.sort(key=lambda column: -_value(column))
    best = among_the_best(found, columns)
    if best is None:
        widths = [found.difference(columns[0], column, MEASURE).half_width for column in columns[1:]]
        whose = "their" if all(width is None for width in widths) else "some of their"
        said = f"{_listed([_with_share(column) for column in columns])}. {_WITHOUT.format(whose)}"
    elif len(best) == 1:
        said = _of_one_ahead(found, best[0], columns)
    else:
        said = _of_equals(found, best, columns)
    return f"Exchanges completed within half a second: {said}{_of_reference(found, columns)}"


_WITHOUT = "Which of them is ahead cannot be said: there is no interval for {} differences."


def among_the_best(found: Comparison, columns: Sequence[Column]) -> list[Column] | None:
    """The first of the columns, which has the highest figure, and those it is not beyond doubt ahead of.

    `None` where a difference has no interval.
    """
    first, *others = columns
    best, pairs = [first], math.comb(len(columns), 2)
    for column in others:
        difference = found.difference(first, column, MEASURE)
        if difference.half_width is None:
            return None
        # Differences that are alike in all of a few runs are so by chance, as where hardly anything happens.
        if not difference.half_width or statistics.simultaneous(difference, pairs).low <= 0:
            best.append(column)
    return best


def _of_one_ahead(found: Comparison, ahead: Column, columns: Sequence[Column]) -> str:
    base = found.baseline
    others = [column for column in columns if column is not ahead]
    if ahead is base:
        said = f"{_with_share(ahead)} is ahead of {_with_share(others[0])} by {_points(found, ahead, others[0])}"
        return f"{said}{_and_of_all(others)}."
    said = f"{_with_share(ahead)} is ahead of {_with_share(base)} by {_points(found, ahead, base)}"
    return f"{said}{_and_of_all(others)}."


def _and_of_all(others: Sequence[Column]) -> str:
    return ", and of every other" if len(others) > 1 else ""


def _of_equals(found: Comparison, best: Sequence[Column], columns: Sequence[Column]) -> str:
    base = found.baseline
    told = "these runs" if found.reps > 1 else "this run"
    said = f"{_listed([_with_share(column) for column in best])} cannot be told apart by {told}"
    if base in best:
        others = [column for column in columns if column not in best]
        if others:
            said += (
                f"; {_listed([_with_share(column) for column in others])} {'is' if len(others) == 1 else 'are'} behind"
            )
        return f"{said}."
    # That the first is ahead of the baseline does not say it of its equals.
    first = best[0]
    return f"{said}; {first.name} is ahead of {_with_share(base)} by {_points(found, first, base)}."


def _of_reference(found: Comparison, columns: Sequence[Column]) -> str:
    reference = found.uncongested
    if reference is None or math.isnan(_value(reference)):
        return ""
    share = f"{100 * _value(reference):.1f} %"
    if reference.congestion is not None:
        return (
            f" On the link that was to be uncongested it is {share}; but that link was congested itself "
            f"({reference.congestion}), and does not tell what could be had."
        )
    over = [column.name for column in columns if _value(column) > _value(reference)]
    return f" On the uncongested link it is {share}{f', less than under {_listed(over)}' if over else ''}."


def _value(column: Column) -> float:
    return column.estimate(MEASURE).value


def _with_share(column: Column) -> str:
    return f"{column.name} ({100 * _value(column):.1f} %)"


def _points(found: Comparison, one: Column, other: Column) -> str:
    value, width = readable.with_width(found.difference(one, other, MEASURE), "share")
    return f"{' '.join(filter(None, (value, width)))} points"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
