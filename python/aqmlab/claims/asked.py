"""Asks a claim: measures its points, and lets the intervals decide."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aqmlab import units
from aqmlab.claims.asking import Called, Question, label
from aqmlab.claims.reading import ClaimText
from aqmlab.claims.samples import Sample, contrast, relative, sample
from aqmlab.claims.verdict import NOT_RUN, ROUNDING, TOO_SHORT, WHY_NOT_BELIEVED, Claim, Doubt, Finding, doubted
from aqmlab.json_files import Json
from aqmlab.measures.subject import Subject
from aqmlab.results.settled import pooled
from aqmlab.statistics import Interval
from aqmlab.sweep.grid import Point

__all__ = ["NOT_RUN", "TOO_FEW", "ask"]

TOO_FEW = "runs that a verdict needs"
"""Ends the note of a number that fewer runs were made of than its claim asks for."""


def ask(
    text: ClaimText,
    subjects: Mapping[str, Subject],
    called: Called | None = None,
    lenient: bool = False,
) -> Claim:
    """The claim with what was found, and its verdict.

    `subjects` are by the names of the points; numbers of points that are missing say that they were not run, and leave
    the claim open. So do numbers of runs that are shorter than the published ones and not known to be settled: their
    window does not stand for the long run that the claim is about. `lenient` takes what runs there are, and asks the
    numbers whose points are there alone: the verdict stands on these, and the claim says how many of all they are.
    """
    asked = [q for q in text.questions if not lenient or q.points <= subjects.keys()]
    doubts = _doubts(asked, subjects)
    found = [_finding(text, question, asked, subjects, doubts, called, lenient) for question in asked]
    among = sum(finding.has_interval and not finding.is_exact for finding in found)
    findings = tuple(replace(finding, among=max(among, 1)) for finding in found)
    return Claim(
        id=text.id,
        paper=text.paper,
        text=text.says,
        source=text.source,
        measure=_measured(asked),
        bound=_bounds(findings, among),
        reason=text.reason,
        findings=findings,
        known_outcome=text.known_outcome,
        explained=text.explained,
        evidence=text.evidence,
        digest=text.digest,
        of=len(text.questions),
        doubts=tuple(doubts.values()),
    )


def _finding(
    text: ClaimText,
    question: Question,
    every: Sequence[Question],
    subjects: Mapping[str, Subject],
    doubts: Mapping[str, Doubt],
    called: Called | None,
    lenient: bool,
) -> Finding:
    interval, note = Interval(math.nan, None, 0, "none"), NOT_RUN
    if question.points <= set(subjects):
        samples = [
            (weight, sample(question.reading, [subjects[point.name] for point in group.points], group.each))
            for weight, group in question.terms
        ]
        interval = _without_rounding(_interval(question.how, samples), question.how, samples)
        note = "" if lenient else _too_few(text, min(found.n for _, found in samples))
        if min(w.measured_s for name in question.points for w in subjects[name].windows) < question.window_s:
            note = TOO_SHORT
            interval = Interval(interval.value, None, interval.n, "none")
        if not question.reading.measure.is_exact:
            note = note or doubted([doubts[name] for name in question.points if name in doubts])
    return Finding(
        label=label(question, every, called),
        interval=interval,
        low=question.low,
        high=question.high,
        unit=question.unit,
        is_difference=question.how in ("difference", "relative", "contrast"),
        published=question.published,
        note=note,
        is_exact=question.reading.measure.is_exact,
    )


def _interval(how: str, samples: list[tuple[float, Sample]]) -> Interval:
    if how in ("relative", "ratio"):
        (_, one), (_, other) = samples
        return relative(one, other, is_ratio=how == "ratio")
    return contrast(samples)


def _without_rounding(interval: Interval, how: str, samples: list[tuple[float, Sample]]) -> Interval:
    """What is nothing but the rounding of the numbers that it was made of is 0."""
    sizes = [abs(weight * found.mean) for weight, found in samples]
    scale = max(sizes, default=0.0) if how not in ("relative", "ratio") else max(1.0, abs(interval.value))
    if not math.isfinite(scale) or not math.isfinite(interval.value):
        return interval
    value = 0.0 if abs(interval.value) <= ROUNDING * scale else interval.value
    width = interval.half_width
    return replace(interval, value=value, half_width=0.0 if width is not None and width <= ROUNDING * scale else width)


def _too_few(text: ClaimText, n: int) -> str:
    """Why there is no verdict with so few runs."""
    return "" if n >= text.seeds or text.parts else f"{n} of the {text.seeds} {TOO_FEW}"


def _doubts(asked: Sequence[Question], subjects: Mapping[str, Subject]) -> dict[str, Doubt]:
    """Of each point whose runs are shorter than the published ones, whether they say anything of the long run."""
    points = {
        point.name: point
        for question in asked
        for _, group in question.terms
        for point in group.points
        if point.name in subjects and not question.reading.measure.is_exact
    }
    shorter = {name: subjects[name] for name, point in points.items() if not _is_as_long(subjects[name], point)}
    found = {}
    for name, subject in shorter.items():
        settled = [window.settled for window in subject.windows]
        # Of many points one shows a trend by chance alone.
        answer = pooled(settled, len(points))[0]
        runs = [None if one is None else one["answer"] for one in settled].count(answer)
        why = WHY_NOT_BELIEVED.get(answer, "")
        found[name] = Doubt(why, runs if why else 0, len(settled))
    return found


def _is_as_long(subject: Subject, point: Point) -> bool:
    """Whether runs have the warm-up and the window of the published ones, or more: they are what the claim is about."""
    published = point.source.tree
    if "duration" not in published:
        return False
    ours, theirs = _lengths(subject.scenario), _lengths(published)
    return all(own >= asked for own, asked in zip(ours, theirs, strict=True))


def _lengths(scenario: Json) -> tuple[float, float]:
    """The lengths of warm-up and measured window, seconds."""
    duration, warmup, cooldown = (
        units.seconds(str(scenario.get(key, "0s")), key) for key in ("duration", "warmup", "cooldown")
    )
    return warmup, duration - cooldown - warmup


def _measured(asked: Sequence[Question]) -> str:
    """What is measured, in words."""
    said = {
        "value": "{}",
        "difference": "{}, difference",
        "relative": "{}, relative difference",
        "ratio": "{}, ratio",
        "contrast": "{}, weighted sum",
    }
    return "; ".join(dict.fromkeys(said[q.how].format(q.reading.formula.words) for q in asked))


def _bounds(findings: tuple[Finding, ...], among: int) -> str:
    """The bounds in words, once if all have the same; and at what level one number of many fails the claim."""
    words = list(dict.fromkeys(finding.bound for finding in findings))
    together = f" ({among} numbers: failing at 95 % of all together)" if among > 1 else ""
    return "; ".join(words) + (" for each" if len(words) == 1 and len(findings) > 1 else "") + together
