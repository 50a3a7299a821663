"""What verdicts owe to the sizes that words were given: each is swept over half to twice its size.

Papers say `much` and `slightly`, hardly ever how much. A verdict that is another one with a word a little wider or
narrower is one about the word.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab.claims.verdict import WORDS, Finding, bound_words, verdict_of

STEPS = 16
"""Sizes that are tried to either side, equally far apart by their ratio: 4.4 %."""
FACTORS = [2 ** (k / STEPS) for k in range(1, STEPS + 1)]


@dataclass(frozen=True)
class Turn:
    """A size of a word at which a verdict becomes another one."""

    word: str
    size: float
    """That it was given."""
    at: float
    """Nearest to which the verdict is another."""
    verdict: str
    """Which one it is there."""
    unit: str

    @property
    def said(self) -> str:
        """`much at 8.4 instead of 10 points: cannot be decided`."""
        at, given = (bound_words(size, float("inf"), self.unit).removeprefix("above ") for size in (self.at, self.size))
        return f"`{self.word}` at {at.partition(' ')[0]} instead of {given}: {self.verdict}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"word": self.word, "size": self.size, "at": self.at, "verdict": self.verdict, "said": self.said}


def turns(findings: Sequence[Finding]) -> list[Turn]:
    """For each word of a claim the nearest smaller and the nearest larger size with another verdict, if there are."""
    verdict, found = verdict_of(findings), []
    for word in WORDS:
        units = [finding.unit for finding in findings if any(one.lstrip("-") == word for _, one in finding.words)]
        for sizes in ([1 / factor for factor in FACTORS], FACTORS) if units else ():
            # Sizes as they are said: of two digits.
            tried = (float(f"{WORDS[word] * factor:.2g}") for factor in sizes)
            at = ((size, verdict_of([_resized(one, word, size) for one in findings])) for size in tried)
            other = next(((size, one) for size, one in at if one != verdict), None)
            if other is not None:
                found.append(Turn(word, WORDS[word], other[0], other[1], units[0]))
    return found


def _resized(finding: Finding, word: str, size: float) -> Finding:
    """The finding with another size of a word in all bounds that were written as it."""
    changed: dict[str, Any] = {
        bound: -size if one.startswith("-") else size for bound, one in finding.words if one.lstrip("-") == word
    }
    return replace(finding, **changed)
