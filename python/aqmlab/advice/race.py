"""A race of candidates on the same seeds: runs go to those that may still be the best.

It is a blocked race (Maron and Moore 1997, "The racing algorithm"; the blocks: Moore and Lee 1994). In each round, all
candidates that are left run under the same seed. A candidate that is worse than another beyond doubt leaves the race.
The bound is Student's t on the differences of pairs.

The guarantee holds for K candidates, looks that are fixed in advance, and an error of 5 %. Let B be the candidate that
is best in the mean. Each look has K - 1 one-sided bounds, on the difference between B and another candidate. If each is
taken at 5 % / ((K - 1) looks), all of them hold together with 95 % (Bonferroni). While they hold, B never leaves, and
no choice is further below B than its stated shortfall, whichever was chosen and after whichever look.

The guarantee needs differences whose mean is nearly normal. Scores lie between 0 and 1, and with few pairs this is an
assumption. If all differences are equal, Student's bound would have no width. The bound is then that of a share of runs
of which none was seen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from aqmlab.statistics import student

ERROR = 0.05
"""Of all bounds of a race together."""

FIRST_LOOK = 4
"""Rounds before anybody is judged: of fewer, no bound is narrow enough to say anything."""


def looks(rounds: int) -> tuple[int, ...]:
    """After which rounds the race is judged: each half again as late as the one before, and at the end."""
    found, at = [], FIRST_LOOK
    while at < rounds:
        found.append(at)
        at = math.ceil(at * 1.5)
    return (*found, rounds)


SAME = 1e-9
"""Differences that spread less are all the same, as those of shares of few pages often are: no reason to be sure."""


@dataclass
class Race:
    """Scores of candidates, round by round; more is better."""

    names: Sequence[str]
    looks: Sequence[int]
    close: float = 0.0
    """A shortfall that is not worth a further run."""
    scores: dict[str, list[float]] = field(init=False)
    running: list[str] = field(init=False)
    """Those who may be the best."""
    left: dict[str, int] = field(init=False)
    """The others, and after which round they left."""

    def __post_init__(self) -> None:
        self.scores = {name: [] for name in self.names}
        self.running = list(self.names)
        self.left = {}

    @property
    def rounds(self) -> int:
        """Rounds that those who are left have run."""
        return len(self.scores[self.running[0]])

    def add(self, name: str, score: float) -> None:
        """The next round of one candidate; rounds come in the same order for all."""
        self.scores[name].append(score)

    def judge(self) -> bool:
        """Takes out who cannot be the best; the answer is whether it is decided."""
        lost = [
            name
            for name in self.running
            if any(self.advantage(other, name)[0] > 0 for other in self.running if other != name)
        ]
        self.left |= dict.fromkeys(lost, self.rounds)
        self.running = [name for name in self.running if name not in lost]
        return len(self.running) == 1 or self.shortfall() <= self.close

    def mean(self, name: str) -> float:
        """Mean score of one over the rounds it ran."""
        return float(np.mean(self.scores[name]))

    @property
    def first(self) -> str:
        """The best mean of those left; of equals the one named first."""
        return max(self.running, key=self.mean)

    def advantage(self, name: str, over: str) -> tuple[float, float]:
        """The least and the most by which one may be better than another, over the rounds that both ran."""
        pairs = min(len(self.scores[name]), len(self.scores[over]))
        if pairs < 2:
            return -math.inf, math.inf
        differences = np.subtract(self.scores[name][:pairs], self.scores[over][:pairs])
        error = ERROR / ((len(self.names) - 1) * len(self.looks))
        spread = float(differences.std(ddof=1))
        # What was never seen may yet have a share of all runs, and be off by all of the score.
        unseen = 1 - error ** (1 / pairs)
        width = unseen if spread < SAME else student(1 - error, pairs - 1) * spread / math.sqrt(pairs)
        return float(differences.mean()) - width, float(differences.mean()) + width

    def shortfall(self) -> float:
        """How far the first may be below the best, at most; 1, which is all of the score, where nothing is known."""
        others = [name for name in self.running if name != self.first]
        return min(1.0, max((max(0.0, self.advantage(name, self.first)[1]) for name in others), default=0.0))
