"""A race of candidates on the same seeds: runs go to those that may still be the best.

It is a blocked race (Maron and Moore 1997, "The racing algorithm"; the blocks: Moore and Lee 1994). In each round, all
candidates that are left run under the same seed. One that is worse than another with 95 % confidence leaves the race.

Whether it is, is a test of the claim that this candidate is the best. If the claim holds, no other one is better in the
mean, and what the others are ahead by in a round is as likely to have the opposite sign. So the largest of their
advantages is compared with the largest ones that the same rounds have with other signs: every choice of signs, which is
one for all candidates of a round, up to `MOST_SIGNS` of them. This is Fisher's randomisation test (1935), with the
maximum over comparisons of Westfall and Young (1993). An advantage is measured by its sum over the root of its squares,
which orders as Student's t does. Because the maximum is taken under the same signs, candidates that resemble each other
count hardly more than one: a bound for each pair, after Bonferroni, would be wider.

The guarantee holds for looks that are fixed in advance, and an error of 5 %. Let B be the candidate that is best in the
mean. Only tests of B can be wrong, one a look, each at 5 % / looks. So B stays in all of the race with 95 %, however
many candidates there are. The shortfall is the most that a candidate which is left may be ahead of the first, by the
same test, so that the choice is no further below B, whichever was chosen and after whichever look.

The guarantee needs differences that are distributed symmetrically about their mean; they need not be normal. Rounds in
which two have the same score, as where few pages were asked for, say nothing about the others: symmetric are then those
that differ, about the mean that they have if the rest is nothing. Candidates that left are not compared at later looks,
whose error is then 5 % / looks nearly, not exactly. Where so few rounds differ that no choice of their signs is rare
enough, a bound is that of a share of runs of which none was seen, which may each be off by all of the score; it holds
of those that were never ahead.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

ERROR = 0.05
"""Of all tests of a race together."""

FIRST_LOOK = 8
"""Rounds before anybody is judged in a long race. Fewer have so few choices of signs that none is as rare as the error
of a look."""

MOST_SIGNS = 1024
"""Choices of signs that are tried; where there are more, they are drawn."""


def looks(rounds: int) -> tuple[int, ...]:
    """After which rounds the race is judged: each half again as late as the one before, and at the end."""
    found, at = [], FIRST_LOOK
    while at * 1.25 <= rounds:
        found.append(at)
        at = math.ceil(at * 1.5)
    return (*found, rounds)


SAME = 1e-9
"""Differences that spread less are all the same, as those of shares of few pages often are: no reason to be sure."""

STEPS = 12
"""Halvings of the whole score in which a bound is looked for; what remains is added to it."""


@cache
def _signs(rounds: int) -> Array:
    """Choices of a sign for each round, the first of them the one that was seen. They are the same on all machines."""
    if 2**rounds <= MOST_SIGNS:
        return np.array(list(product((1.0, -1.0), repeat=rounds)))
    drawn = np.random.default_rng(rounds).choice((1.0, -1.0), (MOST_SIGNS, rounds))
    drawn[0] = 1.0
    return drawn


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
    compared: list[str] = field(init=False)
    """Those whom the last look compared: they were running before it."""

    def __post_init__(self) -> None:
        self.scores = {name: [] for name in self.names}
        self.running = list(self.names)
        self.left = {}
        self.compared = list(self.names)

    @property
    def rounds(self) -> int:
        """Rounds that those who are left have run."""
        return len(self.scores[self.running[0]])

    def add(self, name: str, score: float) -> None:
        """The next round of one candidate; rounds come in the same order for all."""
        self.scores[name].append(score)

    @property
    def error(self) -> float:
        """Of one look."""
        return ERROR / len(self.looks)

    def judge(self) -> bool:
        """Takes out who cannot be the best; the answer is whether it is decided."""
        self.compared = list(self.running)
        # The first is never among them: no other one is ahead of it in the mean.
        lost = [name for name in self.running if self._is_refuted(name)]
        self.left |= dict.fromkeys(lost, self.rounds)
        self.running = [name for name in self.running if name not in lost]
        return all(self._lead(name)(self.close) for name in self._others())

    def mean(self, name: str) -> float:
        """Mean score of one over the rounds it ran."""
        return float(np.mean(self.scores[name]))

    def lead(self, name: str, over: str) -> float:
        """By how much one is ahead of another, in the mean over the rounds that both ran."""
        return float(self._ahead([name], over).mean())

    @property
    def first(self) -> str:
        """The best mean of those left; of equals the one named first."""
        return max(self.running, key=self.mean)

    def is_same(self, name: str) -> bool:
        """Whether one has had the score of the first in every round so far: more of them would hardly tell them apart.

        What a share of runs may be of which none was seen falls with the rounds so slowly that 500 are too few.
        """
        return bool((np.abs(self._ahead([name], self.first)) < SAME).all())

    @property
    def is_undecided(self) -> bool:
        """Whether one that differs from the first may be ahead of it by what matters: more rounds tell."""
        return any(not self._lead(name)(self.close) for name in self._others() if not self.is_same(name))

    def _ahead(self, names: Sequence[str], of: str) -> Array:
        """By how much each is ahead of one, a row for each round that this one ran."""
        rounds = min(len(self.scores[name]) for name in (*names, of))
        return np.array([np.subtract(self.scores[name][:rounds], self.scores[of][:rounds]) for name in names]).T

    def _sizes(self, ahead: Array) -> tuple[Array, Array]:
        """Each advantage under the signs that were seen, and the largest of them under each choice of signs."""
        length = np.sqrt((ahead**2).sum(axis=0))
        under = _signs(len(ahead)) @ (ahead / np.where(length > 0, length, np.inf))
        is_nothing = (ahead.std(axis=0) < SAME) & (ahead.mean(axis=0) <= self._unseen(len(ahead)))
        return np.where(is_nothing, -np.inf, under[0]), under.max(axis=1)

    def _unseen(self, rounds: int) -> float:
        """The most that a share of all runs may be of which none was seen; each may be off by all of the score."""
        return float(1 - (self.error / (len(self.names) - 1)) ** (1 / rounds))

    def _more(self, ahead: Array, by: float) -> tuple[Array, Array]:
        """The same of advantages that are by so much more in the mean. The first of them is the one that is asked of.

        Rounds in which nothing differs stay as they are, and the others have all of it.
        """
        differs = np.abs(ahead) >= SAME
        count = differs.sum(axis=0)
        shifted = np.where(differs, ahead + by * len(ahead) / np.maximum(count, 1), np.where(count == 0, by, 0.0))
        seen, largest = self._sizes(shifted)
        if 0 < count[0] < len(ahead) and 0.5 ** count[0] > self.error:
            is_unseen = bool((ahead[:, 0] > -SAME).all()) and by > self._unseen(len(ahead))
            seen[0] = np.inf if is_unseen else -np.inf
        return seen, largest

    def _is_refuted(self, name: str) -> bool:
        """Whether one cannot be the best: some other one is ahead of it, as the signs say."""
        others = [other for other in self.running if other != name]
        if not others:
            return False
        seen, largest = self._sizes(self._ahead(others, name))
        return self._is_rare(float(seen.max()), largest)

    def _is_rare(self, seen: float, largest: Array) -> bool:
        return bool((largest >= seen - SAME).mean() <= self.error)

    def _others(self) -> list[str]:
        return [name for name in self.running if name != self.first]

    def _lead(self, name: str) -> Callable[[float], bool]:
        """Whether it is refuted that one is the best, and ahead of the first by so much."""
        others = [other for other in self.running if other not in (name, self.first)]
        first = self._ahead([self.first], name)
        seen, largest = -math.inf, np.full(len(_signs(len(first))), -np.inf)
        if others:
            sizes, largest = self._sizes(self._ahead(others, name))
            seen = float(sizes.max())

        def refuted(by: float) -> bool:
            own, under = self._more(first, by)
            return self._is_rare(max(seen, float(own[0])), np.maximum(largest, under))

        return refuted

    def gain(self, name: str, over: str) -> tuple[float, float]:
        """The least and the most by which one is better than another, each with 95 %.

        The least allows for a choice among all that the last look compared, as that of the first is. The look tests
        with the same ones whether the other can be the best. So what is ahead by more than nothing is ahead of one
        that leaves.
        """
        names = [name, *(other for other in self.compared if other not in (name, over))]
        ahead, behind = self._ahead(names, over), self._ahead([over], name)

        def no_more(by: float) -> bool:
            return self._is_refuted_by_first_of(ahead, by)

        def no_less(by: float) -> bool:
            return self._is_refuted_by_first_of(behind, by)

        return -_least_refuted(no_more, -1.0), _least_refuted(no_less, -1.0)

    def _is_refuted_by_first_of(self, ahead: Array, by: float) -> bool:
        """Whether the first is refuted to be ahead by so little, be it shared by the rounds that differ or by all.

        The former alone says nothing of chance in how many differ: they may all do so by the same.
        """
        both = (self._more(ahead, by), self._sizes(ahead + by))
        return all(self._is_rare(float(seen[0]), largest) for seen, largest in both)

    def shortfall(self) -> float:
        """How far the first may be below the best, at most; 1, which is all of the score, where nothing is known."""
        return max((_least_refuted(self._lead(name)) for name in self._others()), default=0.0)


def _least_refuted(refuted: Callable[[float], bool], low: float = 0.0) -> float:
    """From where on claims are refuted, between `low` and 1, the whole score; 1 where none is."""
    high = 1.0
    if not refuted(high):
        return high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high
