"""Asks a claim: measures its points, and lets the intervals decide."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from aqmlab.claims.asking import Called, Question, label
from aqmlab.claims.reading import ClaimText
from aqmlab.claims.samples import Sample, are_paired, contrast, relative, sample
from aqmlab.claims.spread import Spread, among, kin, spread
from aqmlab.claims.verdict import (
    NOT_RUN,
    ROUNDING,
    TOO_SHORT,
    WHY_NOT_BELIEVED,
    Abscissa,
    Claim,
    Doubt,
    Finding,
    doubted,
    needed,
)
from aqmlab.claims.words import turns
from aqmlab.json_files import Json
from aqmlab.measures.measure import Reading
from aqmlab.measures.subject import Subject
from aqmlab.results.settled import pooled
from aqmlab.scenario import measured_window
from aqmlab.stationarity import LEVEL, harmonic_mean
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
    count = sum(finding.has_interval and not finding.is_exact for finding in found)
    findings = tuple(replace(finding, among=max(count, 1)) for finding in found)
    return Claim(
        id=text.id,
        paper=text.paper,
        text=text.says,
        source=text.source,
        measure=_measured(asked),
        bound=_bounds(findings, count),
        reason=text.reason,
        findings=findings,
        known_outcome=text.known_outcome,
        explained=text.explained,
        evidence=text.evidence,
        cause_unknown=text.cause_unknown,
        digest=text.digest,
        of=len(text.questions),
        doubts=tuple(doubts.values()),
        hangs_on=tuple(turn.as_dict() for turn in turns(findings)),
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
    numbers = [(Interval(math.nan, None, 0, "none"), math.nan)] * len(question.readings)
    freedom, note, same = math.nan, NOT_RUN, False
    if question.points <= set(subjects):
        samples = [_samples(question, reading, subjects) for reading in question.readings]
        points = [subjects[name] for name in sorted(question.points)]
        same = question.how in ("difference", "relative", "ratio") and _are_the_same(points)
        numbers, freedom = _numbers(question, samples, {} if same else subjects)
        numbers = numbers if same else _no_finer(question, samples, subjects, numbers)
        note = "" if lenient else _too_few(text, min(found.n for _, found in samples[0]))
        if min(window.measured_s for point in points for window in point.windows) < question.window_s:
            note = TOO_SHORT
            numbers = [(Interval(number.value, None, number.n, "none"), math.nan) for number, _ in numbers]
        if not question.reading.measure.is_exact:
            note = note or doubted([doubts[name] for name in question.points if name in doubts])
    abscissae = tuple(
        Abscissa(reading.formula.brief, number, band)
        for reading, (number, band) in zip(question.readings, numbers, strict=True)
    )
    ranked = sorted(abscissae, key=lambda one: one.margin(question.low, question.high))
    # On a share of the curve: what the largest numbers, as many as that is, are at least.
    telling = ranked[0] if question.stretch is None else ranked[-needed(question.stretch, len(ranked))]
    return Finding(
        label=label(question, every, called),
        interval=telling.interval,
        low=question.low,
        high=question.high,
        unit=question.unit,
        is_difference=question.how in ("difference", "relative", "contrast"),
        published=question.published,
        note=note,
        is_exact=question.reading.measure.is_exact,
        freedom=freedom,
        curve=abscissae if len(abscissae) > 1 else (),
        is_same=same,
        stretch=question.stretch,
        elsewhere=question.elsewhere,
        words=question.words,
    )


Samples = list[tuple[float, Sample]]


def _samples(question: Question, reading: Reading, subjects: Mapping[str, Subject]) -> Samples:
    """The weighted samples that make a number."""
    return [
        (weight, sample(reading, [subjects[point.name] for point in group.points], group.each))
        for weight, group in question.terms
    ]


def _numbers(
    question: Question, samples: Sequence[Samples], subjects: Mapping[str, Subject]
) -> tuple[list[tuple[Interval, float]], float]:
    """The number at each abscissa with its interval and the half width of the band; and their degrees of freedom."""
    alone = [_without_rounding(_interval(question.how, each), question.how, each) for each in samples]
    found = _spread(question, samples, subjects) if all(one.basis == "runs" for one in alone) else None
    if found is None:
        freedom = float(min(max(one.n - 1, 1) if one.freedom is None else one.freedom for one in alone))
        wide = among(1.0, freedom, len(alone))
        return [(one, math.nan if one.half_width is None else wide * one.half_width) for one in alone], freedom
    widths = zip(alone, found.half_widths, found.bands, strict=True)
    numbers = [(replace(one, half_width=float(width)), float(band)) for one, width, band in widths]
    return numbers, found.freedom


def _no_finer(
    question: Question,
    samples: Sequence[Samples],
    subjects: Mapping[str, Subject],
    numbers: Sequence[tuple[Interval, float]],
) -> list[tuple[Interval, float]]:
    """The numbers with intervals across runs, and bands, that are no narrower than what their measure tells apart.

    A quantile that is read off a histogram can be the same in every run though the runs differ. Differences and ratios
    of such are as coarse as their terms together.
    """
    is_relative = question.how in ("relative", "ratio")
    found = []
    for reading, each, (interval, band) in zip(question.readings, samples, numbers, strict=True):
        steps = [_step(reading, group.points, subjects) for _, group in question.terms]
        if any(steps) and interval.half_width is not None and interval.basis == "runs":
            means = [one.mean for _, one in each]
            if is_relative:
                step = abs(steps[0] / means[1]) + abs(means[0] * steps[1] / means[1] ** 2)
            else:
                step = math.fsum(abs(weight) * s for s, (weight, _) in zip(steps, each, strict=True))
            interval, band = replace(interval, half_width=max(interval.half_width, step)), max(band, step)
        found.append((interval, band))
    return found


def _step(reading: Reading, points: Sequence[Point], subjects: Mapping[str, Subject]) -> float:
    return max(reading.resolution(subjects[point.name]) for point in points)


def _spread(question: Question, samples: Sequence[Samples], subjects: Mapping[str, Subject]) -> Spread | None:
    """The spread that the points of the same grid under the same demands suggest; None of what is no difference of
    such, or has too few of them."""
    weights = [weight for weight, _ in question.terms]
    is_relative = question.how in ("relative", "ratio")
    if any(group.each is not None for _, group in question.terms) or abs(math.fsum(weights)) > ROUNDING:
        return None
    if not all(are_paired(samples[0][0][1], other) for _, other in samples[0]):
        return None
    demand = samples[0][0][1].demand[0]
    grids = {name.partition("/")[0] for name in question.points}
    alike = {
        id(subject): subject
        for name, subject in subjects.items()
        if name.partition("/")[0] in grids and subject.demand == demand
    }
    values = [np.array([reading.values(one) for reading in question.readings]).T for one in alike.values()]
    if is_relative:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = [each / each.mean(axis=0) for each in values]
    kin_of = kin(values)
    if kin_of is None:
        return None
    places = {each: place for place, each in enumerate(alike)}
    is_wild = any(places[id(subjects[name])] in kin_of.wild for name in question.points)
    totals, squares = [], []
    for each in samples:
        ratio = each[0][1].mean / each[1][1].mean if is_relative else 1.0
        scale = 1 / each[1][1].mean if is_relative else 1.0
        signed = [1.0, -ratio] if is_relative else weights
        totals.append(scale * sum(weight * found.values for weight, (_, found) in zip(signed, each, strict=True)))
        squares.append(2 * ratio**2 if is_relative else math.fsum(weight**2 for weight in weights))
    return spread(np.array(totals).T, np.array(squares), kin_of, is_wild)


def _interval(how: str, samples: Samples) -> Interval:
    if how in ("relative", "ratio"):
        (_, one), (_, other) = samples
        return relative(one, other, is_ratio=how == "ratio")
    return contrast(samples)


def _are_the_same(subjects: Sequence[Subject]) -> bool:
    """Whether points have the very same runs, as two disciplines have that are one as long as a bound is not passed."""
    first, *others = subjects
    outcomes = _outcomes(first)
    return bool(others) and all(
        other.demand == first.demand and all(outcomes) and _outcomes(other) == outcomes for other in others
    )


def _outcomes(subject: Subject) -> list[Json]:
    """What came out of each run, without how long the engine took for it."""
    return [{key: value for key, value in summary.items() if key != "engine"} for summary in subject.summaries]


def _without_rounding(interval: Interval, how: str, samples: Samples) -> Interval:
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
    windows = {name: [window.settled for window in subject.windows] for name, subject in shorter.items()}
    # Of many points one shows a trend by chance alone. Some that do each say as much as one that does undeniably.
    rarity = [p for _, p in map(pooled, windows.values()) if not math.isnan(p)]
    level = LEVEL if harmonic_mean(rarity) < LEVEL else 0.0
    found = {}
    for name, settled in windows.items():
        answer = pooled(settled, level)[0]
        runs = [None if one is None else one["answer"] for one in settled].count(answer)
        why = WHY_NOT_BELIEVED.get(answer, "")
        found[name] = Doubt(why, runs if why else 0, len(settled))
    return found


def _is_as_long(subject: Subject, point: Point) -> bool:
    """Whether runs have the warm-up and the window of the published ones, or more: they are what the claim is about."""
    ours, theirs = _lengths(subject.scenario), _lengths(point.source.tree)
    return all(own >= asked for own, asked in zip(ours, theirs, strict=True))


def _lengths(scenario: Json) -> tuple[float, float]:
    """The lengths of warm-up and measured window, seconds."""
    start, end = measured_window(scenario)
    return round(start, 9), round(end - start, 9)  # the engine's nanoseconds


def _measured(asked: Sequence[Question]) -> str:
    """What is measured, in words."""
    said = {
        "value": "{}",
        "difference": "{}, difference",
        "relative": "{}, relative difference",
        "ratio": "{}, ratio",
        "contrast": "{}, weighted sum",
    }
    return "; ".join(dict.fromkeys(said[q.how].format(q.measured) for q in asked))


def _bounds(findings: tuple[Finding, ...], among: int) -> str:
    """The bounds in words, once if all have the same; and at what level one number of many fails the claim."""
    words = list(dict.fromkeys(finding.bound for finding in findings))
    together = f" ({among} numbers: failing at 95 % of all together)" if among > 1 else ""
    return "; ".join(words) + (" for each" if len(words) == 1 and len(findings) > 1 else "") + together
