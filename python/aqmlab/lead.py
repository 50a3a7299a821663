"""The answer of a comparison in a sentence or two: who is ahead, or that nobody can be said to be.

It is asked of response times; where blocks of traffic say what they are to people, of what these get in its place: a
sentence for calls, one for real-time video, and so on, and one for transfers, which may pay for it.

Who is ahead is said of the data, so that several columns are compared at once. The best one is ahead
if each of the others is behind by more than its interval, widened for as many comparisons as there are pairs: which of
them is the best is of the data, too. Whoever is not behind it by that much is its equal. Of such sets 95 %
hold the one that is best in truth (Gupta, Technometrics 7(2), 1965; Hsu, Annals of Statistics 9(5), 1981), and of
sentences that say who is behind 5 % at most are wrong where all are equal. That holds of each sentence by itself.

Such a set may hold a column whose figure is worse than that of one which is behind, as its differences vary more. It is
named by itself: these runs cannot say whether it is behind.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aqmlab import statistics
from aqmlab.comparison import Column, Comparison
from aqmlab.results import readable
from aqmlab.results.by_application import MOS
from aqmlab.statistics import Interval


@dataclass(frozen=True)
class Question:
    """What an answer is of."""

    measure: str
    words: str
    """With what its sentence begins."""
    unit: str
    """As `readable` has it."""
    shown: str
    """How a value is shown with its unit."""
    gap: str
    """How a difference is."""
    better: int = 1
    """1 where more is better, -1 where less is."""

    @property
    def application(self) -> str:
        """The application of whose figures it is one."""
        return self.measure.split(".")[1]


OF_ALL = Question("share_under_500ms", "Exchanges completed within half a second", "share", "{} %", "{} points")
OF_APPLICATIONS = (
    Question("applications.calls.mos_mean", f"Calls each way, {MOS}", "mos", "{}", "{}"),
    Question("applications.live.delay_p99_s", "Real-time video, 99 % of frames within", "s", "{} ms", "{} ms", -1),
    Question("applications.games.p99_mean_s", "Games, 99 % of packets within", "s", "{} ms", "{} ms", -1),
    Question("applications.pages.share_in_2s", "Pages loaded in two seconds", "share", "{} %", "{} points"),
    Question(
        "applications.exchanges.share_under_2s", "Exchanges completed within two seconds", "share", "{} %", "{} points"
    ),
    Question(
        "applications.video.stalled_share", "Films, share of time they stood still", "share", "{} %", "{} points", -1
    ),
)
OF_BULK = (
    Question("applications.downloads.goodput_bps", "Downloads, goodput of all", "bps", "{}", "{}"),
    Question("applications.backups.goodput_bps", "Uploads (backups), goodput of all", "bps", "{}", "{}"),
)
"""What may pay for what others gain; nobody waits for it, so that it answers for no exchanges."""


def of(found: Comparison) -> str:
    """The sentences, a line for each question; none where there is nothing to compare."""
    base = found.baseline
    # As one witness has them; and what does not count is no answer.
    columns = [c for c in found.congested if c.witness == base.witness and not c.void]
    if len(columns) < 2 or base.void:
        return ""
    there = [set(numbers.applications) for column in columns for numbers in column.result.numbers]
    asked, bulk = (
        [one for one in questions if there and all(one.application in each for each in there)]
        for questions in (OF_APPLICATIONS, OF_BULK)
    )
    questions = [*(asked or [OF_ALL]), *bulk]
    return "\n".join(filter(None, (_answer(found, columns, question) for question in questions)))


def _answer(found: Comparison, columns: Sequence[Column], question: Question) -> str:
    if any(math.isnan(_value(column, question)) for column in columns):
        return _of_lacking(columns, question)
    if len({_value(column, question) for column in columns}) == 1:
        value = question.shown.format(_said(columns[0], question))
        return f"{question.words}: {value} under each of them.{_of_reference(found, columns, question)}"
    columns = sorted(columns, key=lambda column: -question.better * _value(column, question))
    best = _among_the_best(found, columns, question)
    if best is None:
        widths = [found.difference(columns[0], column, question.measure).half_width for column in columns[1:]]
        whose = "their" if all(width is None for width in widths) else "some of their"
        said = f"{readable.listed([_shown(column, question) for column in columns])}. {_WITHOUT.format(whose)}"
    else:
        behind = [column for column in columns if column not in best]
        worst = columns.index(behind[0]) if behind else len(columns)
        near, unplaced = ([c for c in best if (columns.index(c) < worst) is is_near] for is_near in (True, False))
        if len(near) == 1:
            said = _of_one_ahead(found, near[0], behind, unplaced, question)
        else:
            said = _of_equals(found, near, behind, unplaced, question)
    return f"{question.words}: {said}{_of_reference(found, columns, question)}"


def _of_lacking(columns: Sequence[Column], question: Question) -> str:
    """Who has no such figure, and that nobody is ahead then; nothing where it is not asked of an application."""
    if question is OF_ALL:
        return ""
    lacking = []
    for column in columns:
        values = [numbers.measure(question.measure) for numbers in column.result.numbers]
        none = sum(value is not None and math.isnan(value) for value in values)
        if none:
            lacking.append(f"{column.name}{f' in {none} of {len(values)} runs' if len(values) > 1 else ''}")
    if not lacking:
        return ""
    return f"{question.words}: there is no such number under {readable.listed(lacking)}, so nobody is said to be ahead."


_WITHOUT = "Which of them is ahead cannot be said: there is no interval for {} differences."


def _among_the_best(found: Comparison, columns: Sequence[Column], question: Question) -> list[Column] | None:
    """The first of the columns, which has the best figure, and those it is not beyond doubt ahead of.

    `None` where a difference has no interval.
    """
    first, *others = columns
    best, pairs = [first], math.comb(len(columns), 2)
    for column in others:
        lead = _lead(found, first, column, question)
        if lead.half_width is None and not readable.is_alike(lead):
            return None
        # Differences that are alike in all of a few runs are so by chance, as where hardly anything happens.
        if not lead.half_width or statistics.simultaneous(lead, pairs).low <= 0:
            best.append(column)
    return best


def _lead(found: Comparison, one: Column, other: Column, question: Question) -> Interval:
    """By how much one is ahead of the other."""
    difference = found.difference(one, other, question.measure)
    return replace(difference, value=question.better * difference.value)


def _of_one_ahead(
    found: Comparison, ahead: Column, behind: Sequence[Column], unplaced: Sequence[Column], question: Question
) -> str:
    base = found.baseline
    other = base if base in behind else behind[0]
    said = f"{_shown(ahead, question)} is ahead of {_shown(other, question)} by {_gap(found, ahead, other, question)}"
    if unplaced and len(behind) == 1:
        return f"{said}; {_of_unplaced(found, ahead, unplaced, question)}."
    if unplaced:
        rest = readable.listed([column.name for column in behind if column is not other])
        return f"{said}, and of {rest}; {_of_unplaced(found, ahead, unplaced, question)}."
    return f"{said}{', and of every other' if len(behind) > 1 else ''}."


def _of_equals(
    found: Comparison, near: Sequence[Column], behind: Sequence[Column], unplaced: Sequence[Column], question: Question
) -> str:
    base = found.baseline
    told = "these runs" if found.reps > 1 else "this run"
    said = f"{readable.listed([_shown(column, question) for column in near])} cannot be told apart by {told}"
    if base in behind:
        # That the first is ahead of the baseline does not say it of its equals.
        first = near[0]
        said += f"; {first.name} is ahead of {_shown(base, question)} by {_gap(found, first, base, question)}"
        others = [_shown(column, question) for column in behind if column is not base]
        said += f", and of {readable.listed(others)}" if others else ""
    elif behind:
        said += f"; {readable.listed([_shown(column, question) for column in behind])} {_are(behind)} behind"
    return f"{said}{f'; {_of_unplaced(found, near[0], unplaced, question)}' if unplaced else ''}."


def _of_unplaced(found: Comparison, first: Column, unplaced: Sequence[Column], question: Question) -> str:
    """Of columns that look worse than one which is behind, and cannot be said to be behind themselves."""
    names = readable.listed([_shown(column, question, is_wide=True) for column in unplaced])
    leads = [_lead(found, first, column, question) for column in unplaced]
    if not all(lead.half_width for lead in leads):
        return f"{names} cannot be placed"
    varies = "varies" if len(unplaced) == 1 else "vary"
    where = "from run to run" if all(lead.basis == "runs" for lead in leads) else "within the run"
    return f"{names} {varies} too much {where} to be placed"


def _are(columns: Sequence[Column]) -> str:
    return "is" if len(columns) == 1 else "are"


def _of_reference(found: Comparison, columns: Sequence[Column], question: Question) -> str:
    reference = found.uncongested
    if reference is None or math.isnan(_value(reference, question)):
        return ""
    value = question.shown.format(_said(reference, question))
    if reference.congestion is not None:
        return (
            f" On the link that was to be uncongested it is {value}; but that link was congested itself "
            f"({reference.congestion}), and does not tell what could be had."
        )
    over = [column.name for column in columns if _lead(found, column, reference, question).low > 0]
    than = "less" if question.better > 0 else "more"
    return f" On the uncongested link it is {value}{f', {than} than under {readable.listed(over)}' if over else ''}."


def _value(column: Column, question: Question) -> float:
    return column.estimate(question.measure).value


def _said(column: Column, question: Question) -> str:
    value = _value(column, question)
    return f"{100 * value:.1f}" if question.unit == "share" else readable.say(value, question.unit)


def _shown(column: Column, question: Question, is_wide: bool = False) -> str:
    said = _said(column, question)
    if is_wide:
        said = _with_width(column.estimate(question.measure), question)
    return f"{column.name} ({question.shown.format(said)})"


def _gap(found: Comparison, one: Column, other: Column, question: Question) -> str:
    lead = _lead(found, one, other, question)
    if question.unit != "bps":
        return question.gap.format(_with_width(lead, question))
    unit = readable.of_column(question.unit, [column.estimate(question.measure) for column in (one, other)])
    return question.gap.format(f"{_with_width(lead, replace(question, unit=unit))} {unit}")


def _with_width(found: Interval, question: Question) -> str:
    value, width = readable.with_width(found, question.unit)
    return f"{value} {width}" if width not in ("", readable.TOO_FEW) else value
