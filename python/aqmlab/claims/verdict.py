"""A claim of a study put as numbers with bounds, and the verdict that follows from intervals alone."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from aqmlab.statistics import Interval

LE2003 = "Le et al., SIGCOMM 2003"
LE2007 = "Le et al., IEEE/ACM ToN 15(6), 2007"

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be decided"

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

POINTS, PERCENT, SHARE = "points", "%", "% of exchanges"


@dataclass(frozen=True)
class Finding:
    """One measured number of a claim and the bounds it was given."""

    label: str
    interval: Interval
    low: float
    high: float
    """Both bounds are exclusive; infinite ones are none."""
    unit: str

    @property
    def verdict(self) -> str:
        """What the interval says about the bounds."""
        if self.interval.half_width is None or not math.isfinite(self.interval.value):
            return OPEN
        if self.low < self.interval.low and self.interval.high < self.high:
            return HOLDS
        if self.interval.high <= self.low or self.interval.low >= self.high:
            return FAILS
        return OPEN

    @property
    def number(self) -> str:
        """`+3.10 ± 0.40 points`."""
        if not math.isfinite(self.interval.value):
            return "no data"
        sign = "" if self.unit == SHARE else "+"
        width = self.interval.half_width
        around = "" if width is None else f" ± {100 * width:.2f}"
        return f"{100 * self.interval.value:{sign}.2f}".replace("-", "−") + f"{around} {self.unit}"

    @property
    def said(self) -> str:
        """`PI 24: +3.10 ± 0.40 points`."""
        return f"{self.label}: {self.number}"


@dataclass(frozen=True)
class Claim:
    """One claim of a study, and what this comparison's data say to it."""

    id: str
    source: str
    text: str
    measure: str
    bound: str
    reason: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """`holds`, `does not hold` or `cannot be decided`."""
        verdicts = {finding.verdict for finding in self.findings}
        if FAILS in verdicts:
            return FAILS
        return HOLDS if verdicts == {HOLDS} else OPEN

    @property
    def number(self) -> str:
        """All findings, in words."""
        return "; ".join(finding.said for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `holds` is true, false or null."""
        facts = {key: item for key, item in asdict(self).items() if key != "findings"}
        return {
            **facts,
            "verdict": self.verdict,
            "holds": {HOLDS: True, FAILS: False, OPEN: None}[self.verdict],
            "number": self.number,
            "findings": [
                {
                    "label": f.label,
                    **f.interval.as_dict(),
                    "low": f.low if math.isfinite(f.low) else None,
                    "high": f.high if math.isfinite(f.high) else None,
                    "verdict": f.verdict,
                }
                for f in self.findings
            ],
        }
