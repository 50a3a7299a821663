"""A claim of a study put as numbers with bounds, and the verdict that follows from intervals alone.

A claim holds when all of its numbers lie within their bounds, each with its interval of 95 %: to claim falsely that
all do is no likelier than that one does (the intersection-union test: Berger 1982, "Multiparameter hypothesis testing
and acceptance sampling"). It does not hold when one of them lies outside, and of many numbers one does by chance alone:
of k numbers one fails the claim only if its interval of 1 - 0.05/k lies outside as a whole (Bonferroni, which is the
first step of Holm 1979, "A simple sequentially rejective multiple test procedure", and that is the one which counts).
A curve is one of these numbers: it fails by the band that holds all of it (`spread`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from aqmlab.claims.spread import among
from aqmlab.errors import BadInput
from aqmlab.stationarity import NO, UNKNOWN
from aqmlab.statistics import CONFIDENCE, Interval

ROUNDING = 1e-12
"""Relative to the numbers that it comes from, an interval that is narrower than this is none, and a number that is
nearer to a bound than this is equal to it: some thousands of roundings of a double."""

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be decided"
NOT_RUN = "not run in this profile"
"""Of a number whose points were not run, and of a claim that has no others."""
VERDICTS = (HOLDS, FAILS, OPEN, NOT_RUN)
UNEXPLAINED = "not reproduced, cause unknown"
"""What a claim is called that does not hold, where no run shows why. Its verdict is the same."""
SHOWN = 2
"""Numbers of the published scale that are shown beside a verdict."""

FULL_SCALE = "at the published scale:"
"""Begins what is said of these in a remark."""

TOO_SHORT = "this window is too short: it cuts off what it should count"
UNSETTLED = "not settled"
SHORT = "too short to tell whether it is settled"
UNCHECKED = "not known whether it is settled"
WHY_NOT_BELIEVED = {NO: UNSETTLED, None: UNCHECKED, UNKNOWN: SHORT}
"""What is said of runs shorter than the published ones whose window does not stand for the long run, by the answer to
whether it was settled; the gravest first."""
ALIKE = "the same in every run"
"""Of measured numbers: that seeds did not change them says nothing about how much they might have; of six runs or more
it says on which side of a bound most are."""

SAME = "the very same runs"
"""Of points that differ in nothing but their name under all seeds: they are no better and no worse than each other."""

EQUAL = 0.03
"""Curves that are called equal lie within 3 points of each other: 2 mm in a printed figure 6 cm high, about what two
drawn lines need to be told apart."""
CLEAR = 0.05
"""A significant or large gain is 5 points or more: half the distance between two grid lines of the figures."""
MUCH = 0.10
"""Much worse or better is 10 points or more: one grid line of the figures."""
SLIGHT = 0.01
"""An order `at least as good` may be missed by one point: the width of a drawn line."""
SIMILAR = 0.02
"""Utilisation and completed exchanges are called similar within 2 %: the least by which the studies' loads differ
noticeably (90, 98 and 105 % are 8 % apart)."""

WORDS = {"equal": EQUAL, "clear": CLEAR, "much": MUCH, "slight": SLIGHT, "similar": SIMILAR}
"""The sizes that words were given, as bounds are written: `clear`, `-clear`."""

POINTS, PERCENT, SHARE = "points", "%", "% of exchanges"
"""Units of differences between shares, of relative differences, and of shares of exchanges."""

UNITS: dict[str, float] = {
    "ms": 1e3,
    "s": 1.0,
    "Mb/s": 1e-6,
    "kb/s": 1e-3,
    "kB": 1e-3,
    "bytes": 1.0,
    "packets": 1.0,
    "exchanges": 1.0,
    "flows": 1.0,
    "times": 1.0,
    "": 1.0,
}
"""Units that findings are read in -> what a number in bits, bytes and seconds is multiplied by. Any unit that begins
with % stands for a hundredth, as points do."""


KINDS = (("ms", "s"), ("Mb/s", "kb/s"), ("kB", "bytes"))
"""Units of times, rates and sizes; shares are the other kind with scales of their own."""


def units_of_kind(unit: str) -> tuple[str, ...]:
    """The units in which what has this one can be read; all, of what may be anything."""
    if not unit:
        return (PERCENT, POINTS, *filter(None, UNITS))
    if unit == POINTS or unit.startswith(PERCENT):
        return (PERCENT, POINTS)
    scaled = {name for kind in KINDS for name in kind}
    return next((kind for kind in KINDS if unit in kind), tuple(name for name in UNITS if name and name not in scaled))


def check_unit(given: object, own: str, where: str) -> None:
    """Refuses a unit that there is not, or in which a quantity that has `own` cannot be read."""
    known = units_of_kind(own)
    if not isinstance(given, str) or (PERCENT if given.startswith(PERCENT) else given) not in known:
        more = ", or % of something" if PERCENT in known else ""
        raise BadInput(f"{where}: unit: {given!r}: expected one of {', '.join(known)}{more}")


def scale_of(unit: str) -> float:
    """What a number is multiplied by to be read in a unit."""
    return 100.0 if unit == POINTS or unit.startswith(PERCENT) else UNITS[unit]


@dataclass(frozen=True)
class Doubt:
    """Whether runs of a point that are shorter than the published ones stand for the long run."""

    why: str
    """Why they do not; empty where they do."""
    runs: int
    """How many of them say so by themselves. None may: a trend that all have in common shows in all together."""
    of: int


def doubted(doubts: Sequence[Doubt]) -> str:
    """Why a number of several points says nothing of the long run: `not settled in 3 of 6 runs`; the gravest alone."""
    return next(iter(_reasons(doubts)), "")


def _reasons(doubts: Sequence[Doubt]) -> list[str]:
    """Each reason with the runs that it was found in, or with the points that show it in all of their runs together."""
    said = []
    for why, (runs, of) in _by_reason(doubts).items():
        alike = [doubt for doubt in doubts if doubt.why == why]
        together = f"its {alike[0].of} runs" if len(alike) == 1 else f"the runs of each of {len(alike)} points"
        said.append(f"{why} in {runs} of {of} runs" if runs else f"{why}, by {together} together")
    return said


def _by_reason(doubts: Sequence[Doubt]) -> dict[str, tuple[int, int]]:
    """Of each reason in how many runs it was found, of all; in none where it shows in several together alone."""
    of = sum(doubt.of for doubt in doubts)
    found = {why: [doubt.runs for doubt in doubts if doubt.why == why] for why in WHY_NOT_BELIEVED.values()}
    return {why: (sum(runs), of) for why, runs in found.items() if runs}


@dataclass(frozen=True)
class Abscissa:
    """One number of a curve."""

    at: str
    """Where, in words: `at 300 ms`."""
    interval: Interval
    """Of this number by itself."""
    band: float
    """Half width of the band that holds the whole curve 95 % of the time."""

    def margin(self, low: float, high: float) -> float:
        """How far within its bounds the number lies; negative outside."""
        value = self.interval.value
        return min(value - low, high - value) if math.isfinite(value) else -math.inf

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "at": self.at,
            "value": self.interval.value if math.isfinite(self.interval.value) else None,
            "half_width_95": self.interval.half_width,
            "band_95": self.band if math.isfinite(self.band) else None,
        }


@dataclass(frozen=True)
class Finding:
    """One measured number of a claim and the bounds it was given."""

    label: str
    interval: Interval
    """Of a curve that of the number which is nearest to a bound, or farthest outside."""
    low: float
    high: float
    """Both bounds are exclusive; infinite ones are none."""
    unit: str
    is_difference: bool = False
    """Differences are shown with their sign."""
    published: float | None = None
    """The number that the study's text has."""
    note: str = ""
    """Why there is no verdict, if not for its interval."""
    is_exact: bool = False
    """Whether it is a number that no seed can change: a setting of the scenario."""
    among: int = 1
    """How many numbers of the claim have an interval: one of many lies outside its bounds by chance."""
    freedom: float = math.nan
    """Degrees of freedom of the intervals; n - 1 if it is not said."""
    curve: tuple[Abscissa, ...] = ()
    """All numbers of a curve, which are judged together."""
    is_same: bool = False
    """Whether it compares runs that are the same in everything: two names of what does the same."""
    stretch: float | None = None
    """Of a curve that is to pass `low` on a share of it: that share."""
    elsewhere: float = -math.inf
    """The bound for all of such a curve."""
    words: tuple[tuple[str, str], ...] = ()
    """Its bounds that were written as words: `("low", "-equal")`."""

    @property
    def verdict(self) -> str:
        """What the intervals say about the bounds: within if each is, outside if the band is anywhere."""
        if self.note == NOT_RUN:
            return NOT_RUN
        if self.note or not self.has_interval:
            return OPEN
        if self._is_without_width and not self.is_exact:
            is_within = all(_is_within(one.value, one.value, self.low, self.high) for one in self._all)
            if is_within and (self.is_same or self._is_told_by_sign):
                return HOLDS
            # What is at a bound is not within it: no packets are not more than none.
            return FAILS if not is_within and self._is_told_by_sign else OPEN
        if self.stretch is not None:
            return self._on_a_share
        if all(_is_within(one.low, one.high, self.low, self.high) for one in self._all):
            return HOLDS
        return FAILS if self._is_outside(self.among) else OPEN

    @property
    def _is_told_by_sign(self) -> bool:
        """Whether so many runs have the same number that their median is known to lie on its side of a bound.

        By a sign test of two sides, of `among` such numbers together: six runs tell of one, seven of two.
        """
        chance = 2.0 ** (1 - self.interval.n)
        return not self.curve and self.interval.basis == "runs" and chance <= (1 - CONFIDENCE) / self.among

    @property
    def _on_a_share(self) -> str:
        """Whether the band passes `low` on the share of the curve, and the other bound on all of it.

        That it does so on some part of the curve, whichever, is said of many numbers: all of them by the band.
        """
        if self._passed(-1.0) >= self._needed and self._passed(-1.0, self.elsewhere) == len(self.curve):
            return HOLDS
        return FAILS if self._is_outside(self.among) else OPEN

    @property
    def _needed(self) -> int:
        return needed(self.stretch or 1.0, len(self.curve))

    def _passed(self, side: float, bound: float | None = None, count: int = 1) -> int:
        """How many numbers of the curve are above a bound with the lower (-1) or upper (+1) edge of the band."""
        bound = self.low if bound is None else bound
        edges = [one.interval.value + side * among(one.band, self._freedom, count) for one in self.curve]
        return sum(_is_above(edge, bound) for edge in edges)

    @property
    def _freedom(self) -> float:
        return self.freedom if math.isfinite(self.freedom) else float(max(self.interval.n - 1, 1))

    @property
    def _all(self) -> list[Interval]:
        return [one.interval for one in self.curve] or [self.interval]

    @property
    def has_interval(self) -> bool:
        """Whether there is a number with an interval; of a curve, whether all are."""
        return all(one.half_width is not None and math.isfinite(one.value) for one in self._all)

    @property
    def is_missing(self) -> bool:
        """Whether it was run and there is no number all the same."""
        return not math.isfinite(self.interval.value) and self.note not in (NOT_RUN, TOO_SHORT)

    @property
    def remark(self) -> str:
        """Why the number alone does not say the verdict."""
        if self.note:
            return self.note
        if not self.has_interval:
            return ""
        if self._is_without_width:
            return "" if self.is_exact else SAME if self.is_same else ALIKE
        if self.verdict == OPEN and self._is_outside(1):
            return f"outside at 95 % by itself, not as one of {self.among} numbers"
        return ""

    @property
    def number(self) -> str:
        """`+3.10 ± 0.40 points`."""
        if not math.isfinite(self.interval.value):
            return self.note or "no data"
        width = self.interval.half_width
        around = "" if width is None or self._is_without_width else f" ± {self._text(width)}"
        why = f" ({self.remark})" if self.remark else ""
        return f"{self._text(self.interval.value, self._is_signed)}{around} {self.unit}".rstrip() + self._where + why

    @property
    def _where(self) -> str:
        """Which number of a curve it is: `, at 300 ms, the worst of 4`; `or more on 5 of 20, +0.1 ± 0.3 at least`."""
        if self.stretch is not None and self.curve:
            least = min((one.interval for one in self.curve), key=lambda one: one.value)
            around = "" if least.half_width is None else f" ± {self._text(least.half_width, of=least)}"
            least_text = f"{self._text(least.value, self._is_signed, least)}{around}"
            return f" or more on {self._needed} of {len(self.curve)}, {least_text} at least"
        at = next((one.at for one in self.curve if one.interval is self.interval), None)
        return f", {at}, the worst of {len(self.curve)}" if at else ""

    @property
    def published_number(self) -> str | None:
        """`8.4 Mb/s`, with the digits that the study has."""
        if self.published is None:
            return None
        sign = "+" if self._is_signed and self.published > 0 else ""
        return f"{sign}{_plain(scale_of(self.unit) * self.published)} {self.unit}".rstrip()

    @property
    def bound(self) -> str:
        """`above 5 points`."""
        return bound_words(self.low, self.high, self.unit, self.stretch, self.elsewhere)

    @property
    def said(self) -> str:
        """`PI 24: +3.10 ± 0.40 points`."""
        return f"{self.label}: {self.number}"

    @property
    def _is_signed(self) -> bool:
        return self.is_difference or self.unit in (POINTS, PERCENT)

    @property
    def _is_without_width(self) -> bool:
        return all(one.half_width is not None and one.half_width <= ROUNDING * abs(one.value) for one in self._all)

    def _is_outside(self, count: int) -> bool:
        """Whether the band lies outside the bounds somewhere as a whole, wide enough for one of so many numbers."""
        if not self.has_interval:
            return False
        if self.stretch is not None:
            is_nowhere_behind = self._passed(1.0, self.elsewhere, count) == len(self.curve)
            return self._passed(1.0, count=count) < self._needed or not is_nowhere_behind
        # Of a curve what is the same in every run is no number to fail by.
        bands = [(one.interval.value, one.band) for one in self.curve if self.is_exact or one.band > 0]
        bands = bands if self.curve else [(self.interval.value, self.interval.half_width or 0.0)]
        if not self._is_without_width:
            bands = [(value, among(width, self._freedom, count)) for value, width in bands]
        return any(
            not _is_above(value + width, self.low) or not _is_above(self.high, value - width) for value, width in bands
        )

    def _text(self, value: float, is_signed: bool = False, of: Interval | None = None) -> str:
        """With two digits of the interval; without one four, of shares two decimals as tables have them."""
        scale, interval = scale_of(self.unit), of or self.interval
        around = 0.0 if self._is_without_width else scale * abs(interval.half_width or 0.0)
        decimals = 2
        if 0 < around < math.inf:
            decimals = min(max(1 - math.floor(math.log10(around)), 0), 12)
        elif scale != 100.0 and (size := scale * abs(interval.value or value)) > 0:
            decimals = min(max(3 - math.floor(math.log10(size)), 0), 6)
        return f"{scale * value:{'+' if is_signed else ''},.{decimals}f}".replace("-", "−")


def needed(stretch: float, abscissae: int) -> int:
    """How many abscissae a share of a curve is, rounded up."""
    return max(math.ceil(stretch * abscissae - ROUNDING), 1)


def _is_within(smallest: float, greatest: float, low: float, high: float) -> bool:
    return _is_above(smallest, low) and _is_above(high, greatest)


def _is_above(value: float, bound: float) -> bool:
    """Whether it is, and not by rounding alone."""
    if math.isinf(value) or math.isinf(bound):
        return value > bound
    return value - bound > ROUNDING * max(abs(value), abs(bound))


def _plain(value: float) -> str:
    """A number as people write it, in up to six digits: `10,000,000`, `0.05`."""
    return f"{Decimal(f'{value:.6g}').normalize():,f}".replace("-", "−")


def bound_words(low: float, high: float, unit: str, stretch: float | None = None, elsewhere: float = -math.inf) -> str:
    """Bounds in words: `above 0`, `within 3 points`, `between 85 and 95 % of exchanges`."""
    if stretch is not None:
        words, behind = bound_words(low, high, unit), bound_words(elsewhere, math.inf, unit)
        return f"{words} on {100 * stretch:g} % of the curve, {behind} on all of it"

    def said(value: float, with_unit: bool = True) -> str:
        number = _plain(scale_of(unit) * value)
        if not with_unit or not unit:
            return number
        return f"{number} {'point' if unit == POINTS and number in ('1', '−1') else unit}"

    if math.isinf(low) and math.isinf(high):
        return "none"
    if math.isinf(high):
        return f"above {said(low, low != 0)}"
    if math.isinf(low):
        return f"below {said(high, high != 0)}"
    if low == -high:
        return f"within {said(high)}"
    return f"between {said(low, False)} and {said(high)}"


def verdict_of(findings: Sequence[Finding]) -> str:
    """Of a claim with these findings."""
    verdicts = {finding.verdict for finding in findings}
    if FAILS in verdicts:
        return FAILS
    return verdicts.pop() if len(verdicts) == 1 else OPEN


def called(verdict: str, cause_unknown: bool) -> str:
    """What people read: a claim that does not hold is one that was not reproduced where no run shows why."""
    return UNEXPLAINED if verdict == FAILS and cause_unknown else verdict


def full_scale_said(answer: Mapping[str, Any]) -> str:
    """What is kept of runs at the published scale, in words: the verdict and the first of its numbers."""
    every = answer["findings"]
    asked = [finding for finding in every if finding["verdict"] != NOT_RUN]
    said = [f"{len(asked)} of {len(every)} numbers asked"] if len(asked) < len(every) else []
    said += [f"{finding['label']}: {finding['number']}" for finding in asked[:SHOWN]]
    said += [f"and {len(asked) - SHOWN} more"] if len(asked) > SHOWN else []
    return f"{FULL_SCALE} {answer['verdict']} ({'; '.join(said)})"


@dataclass(frozen=True)
class Claim:
    """One claim of a study, and what the data say to it."""

    id: str
    paper: str
    text: str
    measure: str
    bound: str
    reason: str
    findings: tuple[Finding, ...]
    source: str | None = None
    """Where the paper says it: a section, a figure, the abstract."""
    known_outcome: str = HOLDS
    """What comes out at the published scale."""
    explained: str | None = None
    """Why, where that is not that it holds."""
    evidence: tuple[str, ...] = ()
    """The points whose runs show it."""
    cause_unknown: bool = False
    """Whether no run shows why it does not hold."""
    digest: str = ""
    """Of what is asked and of the bounds: an answer with another one is that to another question."""
    of: int | None = None
    """How many numbers the claim has, where these are those of them that could be asked."""
    conditions: tuple[str, ...] = ()
    """Settings of the runs that are not those of the study's."""
    doubts: tuple[Doubt, ...] = ()
    """Of points whose runs are shorter than the published ones."""
    hangs_on: tuple[Mapping[str, Any], ...] = ()
    """Sizes of words with which it has another verdict."""
    at_full_scale: Mapping[str, Any] | None = None
    """What is kept with the study of runs at the published scale: verdict, numbers."""

    @property
    def verdict(self) -> str:
        """`holds`, `does not hold`, `cannot be decided`, or that nothing of it was run."""
        return verdict_of(self.findings)

    @property
    def called(self) -> str:
        """The verdict as people read it."""
        return called(self.verdict, self.cause_unknown)

    @property
    def asked(self) -> int:
        """How many of its numbers were asked."""
        return sum(finding.verdict != NOT_RUN for finding in self.findings)

    @property
    def remark(self) -> str:
        """What to know beside the verdict: numbers that were not asked, and other conditions; often nothing."""
        every = self.of or len(self.findings)
        said = [f"{self.asked} of {every} numbers asked"] if 0 < self.asked < every else []
        said += [f"the window was {why}" for why in _reasons(self.doubts)]
        if self.full_scale:
            said.append(self.full_scale)
        said += [f"asked under other conditions: {'; '.join(self.conditions)}"] if self.conditions else []
        return "; ".join(said)

    @property
    def unbelieved(self) -> dict[str, tuple[int, int]]:
        """In how many of its runs the window does not stand for the long run, of how many; by what is wrong with it."""
        return _by_reason(self.doubts)

    @property
    def full_scale(self) -> str:
        """What came out at the published scale, where these runs cannot decide; else nothing."""
        return "" if self.at_full_scale is None or self.verdict != OPEN else full_scale_said(self.at_full_scale)

    @property
    def number(self) -> str:
        """All findings, in words."""
        found = "; ".join(finding.said for finding in self.findings)
        return f"{self.remark}: {found}" if self.remark else found

    @property
    def no_data(self) -> int:
        """How many of its numbers are missing though their points were run."""
        return sum(finding.is_missing for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `holds` is true, false or null."""
        return {
            "id": self.id,
            "paper": self.paper,
            "text": self.text,
            "source": self.source,
            "measure": self.measure,
            "bound": self.bound,
            "reason": self.reason,
            "verdict": self.verdict,
            "called": self.called,
            "cause_unknown": self.cause_unknown,
            "holds": {HOLDS: True, FAILS: False}.get(self.verdict),
            "number": self.number,
            "remark": self.remark,
            "asked": self.asked,
            "of": self.of or len(self.findings),
            "no_data": self.no_data,
            "conditions": list(self.conditions),
            "digest": self.digest,
            "unbelieved": self.unbelieved,
            "full_scale": self.full_scale or None,
            "known_outcome": self.known_outcome,
            "explained": self.explained,
            "evidence": list(self.evidence),
            "hangs_on": list(self.hangs_on),
            "findings": [
                {
                    "label": f.label,
                    **f.interval.as_dict(),
                    "low": f.low if math.isfinite(f.low) else None,
                    "high": f.high if math.isfinite(f.high) else None,
                    "verdict": f.verdict,
                    "unit": f.unit,
                    "number": f.number,
                    "bound": f.bound,
                    "published": f.published,
                    "published_number": f.published_number,
                    "note": f.remark or None,
                    "curve": [one.as_dict() for one in f.curve] or None,
                }
                for f in self.findings
            ],
        }
