"""Puts agreement between witnesses into words, for tables on a terminal and on a page."""

from collections.abc import Sequence

from aqmlab.agreement.agreements import Finding
from aqmlab.agreement.verdicts import AGREES, DIFFERS, UNDECIDED, VOID
from aqmlab.results import readable
from aqmlab.statistics import Interval

WORDS = {AGREES: "agree", DIFFERS: "differ", UNDECIDED: "undecided"}
NOTE = (
    "± 95 % across runs. Undecided: the interval of the difference crosses the tolerance, or there is none, or it is "
    "from 20 parts of the one run, too narrow to decide; the difference itself is within the tolerance or beyond. "
    "Distance: the largest between the distributions of all runs; under each witness, that between its own runs."
)
UNIT_WORDS = {"share": " (%)", "s": " (ms)", "bps": " (Mb/s)"}


def counted(found: Sequence[str]) -> str:
    """How many verdicts there are of each kind; void ones count for nothing, and are told where there are any."""
    words = [f"{sum(verdict == each for verdict in found)} {word}" for each, word in WORDS.items()]
    void = sum(verdict == VOID for verdict in found)
    return ", ".join(words + ([f"{void} void"] if void else []))


def said_verdict(finding: Finding) -> str:
    """The verdict; of one that is open, on which side of the tolerance the difference itself lies."""
    if finding.verdict != UNDECIDED or finding.within is None:
        return finding.verdict
    return f"{UNDECIDED}, {'within' if finding.within else 'beyond'}"


def unit(finding: Finding) -> str:
    """The unit of a row, as far as its numbers do not say it."""
    return UNIT_WORDS.get(finding.unit, "")


def cells(finding: Finding) -> tuple[str, str, str, str]:
    """Both values, their difference, and the tolerance."""
    if finding.unit == "distance":
        noise = [_distance(finding.noise.get(name)) for name in ("simulated", "live")]
        width = finding.difference.half_width
        apart = _distance(finding.difference.value) + ("" if width is None else f" ± {width:.3f}")
        return noise[0], noise[1], apart, finding.tolerance_text
    return (
        _said(finding.simulated, finding.unit),
        _said(finding.live, finding.unit),
        _said(finding.difference, finding.unit, signed=True),
        finding.tolerance_text,
    )


def names(finding: Finding) -> tuple[str, str, str, str]:
    """What these are called in `agreement.json`."""
    own = ("noise.simulated", "noise.live") if finding.unit == "distance" else ("simulated", "live")
    return *own, "difference", "tolerance_text"


def _said(interval: Interval | None, unit: str, signed: bool = False) -> str:
    if interval is None:
        return "–"
    if unit == "bps":  # all three in the unit of the row, with as many decimals
        value, width = interval.value / 1e6, interval.half_width
        text = f"{value:+.3f}" if signed else f"{value:.3f}"
        return text.replace("-", "−") + ("" if width is None else f" ± {width / 1e6:.3f}")
    return " ".join(filter(None, readable.with_width(interval, unit, signed)))


def _distance(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
