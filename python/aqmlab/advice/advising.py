"""The advice itself: a race of what a platform can do, and what its first is worth to each application."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from aqmlab import scratch
from aqmlab.advice import applications, candidates, situation
from aqmlab.advice.applications import Figure, Row
from aqmlab.advice.candidates import TODAY, Candidate
from aqmlab.advice.question import DURATION_S, Question
from aqmlab.advice.race import Race, looks
from aqmlab.engine import Resolved
from aqmlab.progress import Monitor, Silent, Size
from aqmlab.runs import runner
from aqmlab.statistics import Interval, across_runs

BUDGET_BITS = 3.6e11
"""What links may carry in all runs together: 250 runs of 50 and 10 Mb/s. Counted instead of time, so that the same
question has the same answer on every machine."""

FEWEST_ROUNDS, MOST_ROUNDS = 6, 40

CLOSE = 0.01
"""A hundredth of the score is nothing that somebody would notice."""

NEAR = 0.02
"""What is less of the score hardly matters: two hundredths."""

STATES = ("first", "tie", "near", "open", "out")
"""Of a candidate, in the order of tables. A tie is as good in the mean as the first. Near is surely worse, but hardly.
An open one is behind in the mean, and differs too much from run to run to be surely worse. Out is surely worse."""

RATE_ERROR = 0.1
"""The wrong setting that is tried: by how much a shaper's rates exceed the line's."""

WRONG_ROUNDS = 6

FEWEST_JUDGED = 6
"""Rounds of which a difference is said to be for better or worse. Five are all of one sign once in 16 times by chance
alone, whatever they are distributed like."""

SILENT = Silent()


@dataclass(frozen=True)
class Worth:
    """A figure of today and of the first, and how far apart they are: all three of the same rounds."""

    today: Interval | None
    first: Interval | None
    difference: Interval | None
    rounds: int
    """Those in which both have the figure."""

    def as_dict(self) -> dict[str, Any]:
        """For a program."""
        found = {"today": self.today, "first": self.first, "difference": self.difference}
        return {**{key: one and one.as_dict() for key, one in found.items()}, "rounds": self.rounds}


@dataclass
class Advice:
    """What came out."""

    question: Question
    candidates: Sequence[Candidate]
    race: Race
    rows: dict[str, list[Row]]
    """Figures of each candidate, round by round: round k of all has the same demands."""
    too_fast: list[Row] = field(default_factory=list)
    """Those of the first with its shaper too fast, in the first rounds."""
    runs: int = 0
    rate_error: float = RATE_ERROR
    """How much too fast that is, as a share of the line's rates."""
    has_waited: bool = False
    """Whether nobody began a page under a queue in a round in which somebody did under another."""
    took_s: float = 0.0
    """How long all runs took on this machine."""
    stopped: str = ""
    """Where Ctrl-C came, in words; what was finished before it is here."""

    @property
    def figures(self) -> Sequence[Figure]:
        """What is said of each candidate."""
        return applications.figures(self.question)

    @property
    def first(self) -> Candidate:
        """What is recommended."""
        return self.candidate(self.race.first)

    def candidate(self, name: str) -> Candidate:
        """The candidate of a name."""
        return next(one for one in self.candidates if one.name == name)

    @property
    def is_shaped(self) -> bool:
        """Whether a shaper is to be set: not in the modem, nor in a port, and what is set now has rates of its own."""
        first = self.first
        is_set = first.settings is not None and first.router is None
        return is_set and not first.in_modem and not self.question.access.is_port

    @property
    def ties(self) -> list[str]:
        """Those that cannot be told from it, the better mean first."""
        others = [name for name in self.race.running if name != self.race.first]
        return sorted(others, key=self.race.mean, reverse=True)

    @property
    def same(self) -> list[str]:
        """Those of them that have had its score in every round."""
        return [name for name in self.ties if self.race.is_same(name)]

    @property
    def failing(self) -> list[str]:
        """What does not work even under the first, where the score says of the whole mix that it does not."""
        name = self.race.first
        if self.race.mean(name) >= applications.WORKS:
            return []
        return applications.failing(self.question, self.rows[name])

    def state(self, name: str) -> str:
        """What a candidate is beside the first: one of `STATES`."""
        race = self.race
        if name == race.first:
            return "first"
        if name in race.left:
            return "near" if race.gain(race.first, name)[1] <= NEAR else "out"
        return "tie" if race.mean(race.first) - race.mean(name) <= NEAR else "open"

    @property
    def ranking(self) -> list[str]:
        """All, by what they are beside the first, and by their mean."""
        return sorted(self.rows, key=lambda name: (STATES.index(self.state(name)), -self.race.mean(name)))

    def those(self, state: str) -> list[str]:
        """The candidates that are so beside the first, the better mean first."""
        return [name for name in self.ranking if self.state(name) == state]

    def value(self, name: str, figure: Figure) -> Interval | None:
        """A figure of a candidate over its runs; nothing where it has none."""
        return over([row.get(figure.key) for row in self.rows[name]])

    def difference(self, name: str, figure: Figure) -> Interval | None:
        """Its difference to what there is today, run by run."""
        return _difference(self.rows[name], self.rows[TODAY], figure)

    def worth(self, figure: Figure) -> Worth:
        """What the first is worth beside today, of the rounds in which both have the figure.

        The mean of each over rounds of its own would compare different evenings.
        """
        rows = zip(self.rows[TODAY], self.rows[self.race.first], strict=False)
        pairs = [(row.get(figure.key), other.get(figure.key)) for row, other in rows]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        today, first = [a for a, _ in both], [b for _, b in both]
        return Worth(over(today), over(first), over([b - a for a, b in both]), len(both))

    @property
    def too_fast_bps(self) -> tuple[int, int]:
        """The rates down and up of the shaper that is too fast: above the line's, however far below it is advised."""
        above = 1 + self.rate_error
        return round(self.question.down_bps * above), round(self.question.up_bps * above)

    def harm(self, figure: Figure) -> Interval | None:
        """What a shaper set too fast changes of the first."""
        return _difference(self.too_fast, self.rows[self.race.first], figure)


def _difference(rows: Sequence[Row], base: Sequence[Row], figure: Figure) -> Interval | None:
    pairs = [(row.get(figure.key), other.get(figure.key)) for row, other in zip(rows, base, strict=False)]
    return over([None if a is None or b is None else a - b for a, b in pairs])


def over(values: Sequence[float | None]) -> Interval | None:
    """Mean and interval over runs, of those in which somebody asked; nothing if one of these has no number.

    Runs that are all alike, as shares of a few pages can be, do not say how far others would be from them: no interval.
    """
    known = [value for value in values if value is not None]
    if not known or any(map(math.isnan, known)):
        return None
    found = across_runs(known)
    return replace(found, half_width=None, basis="none") if len(set(known)) == 1 else found


def rounds_for(question: Question, number: int) -> int:
    """How many rounds the budget has for so many candidates."""
    bits = (question.down_bps + question.up_bps) * DURATION_S * number
    return max(FEWEST_ROUNDS, min(MOST_ROUNDS, int(BUDGET_BITS / bits)))


def advise(
    question: Question,
    jobs: int | None = None,
    rounds: int | None = None,
    monitor: Monitor = SILENT,
    told: Callable[[Race], None] = lambda race: None,
    rate_error: float = RATE_ERROR,
) -> Advice:
    """Races the candidates; `told` hears of the race after each look. Ctrl-C later than the first look ends it there.

    The first is tried once more with its shaper too fast by `rate_error`, a share of the line's rates; 0 leaves that
    out, and of a port it is left out.
    """
    field_of = candidates.of(question.platform, question.access.name, question.rtt_s[1])
    if question.access.is_port:
        rate_error = 0.0  # nothing shapes there
    if question.configured is not None:
        field_of.append(question.configured.candidate())
    most = rounds_for(question, len(field_of)) if rounds is None else rounds
    race = Race([one.name for one in field_of], looks(most), CLOSE)
    found = Advice(question, field_of, race, {one.name: [] for one in field_of}, rate_error=rate_error)
    at_once = jobs or runner.default_jobs()
    since, begun_s = 0, time.monotonic()
    for look in race.looks:
        # What there is today runs on when it has lost: all are measured against it.
        running = [one for one in field_of if one.name in race.running or one.name == TODAY]
        asked = [(one, seed) for seed in range(since, look) for one in running]
        try:
            rows = made([(one, seed, None) for one, seed in asked], question, at_once, monitor)
        except KeyboardInterrupt:
            if not since:
                raise
            found.stopped = f"after {since} of {race.looks[-1]} rounds"
            break
        for begin in range(0, len(rows), len(running)):
            as_measured = rows[begin : begin + len(running)]
            of_round = applications.beside_each_other(as_measured)
            found.has_waited = found.has_waited or of_round != as_measured
            for one, row in zip(running, of_round, strict=True):
                found.rows[one.name].append(row)
                race.add(one.name, applications.score(question, row))
        found.runs += len(rows)
        since = look
        decided = race.judge()
        told(race)
        if decided:
            break
    if rate_error and found.is_shaped and not found.stopped:
        try:
            _set_too_fast(found, min(WRONG_ROUNDS, since), at_once, monitor)
        except KeyboardInterrupt:
            found.stopped = "before a shaper that is too fast was tried"
    found.took_s = time.monotonic() - begun_s
    return found


def _set_too_fast(found: Advice, rounds: int, at_once: int, monitor: Monitor) -> None:
    """Tries the first once more in so many rounds, with its shaper too fast."""
    wrong = [(found.first, seed, 1 + found.rate_error) for seed in range(rounds)]
    tried = made(wrong, found.question, at_once, monitor)
    pairs = zip(tried, found.rows[found.race.first], strict=False)
    found.too_fast = [applications.beside_each_other([row, advised])[0] for row, advised in pairs]
    found.has_waited = found.has_waited or found.too_fast != tried
    found.runs += len(tried)


def made(
    work: Sequence[tuple[Candidate, int, float | None]], question: Question, at_once: int, monitor: Monitor
) -> list[Row]:
    """Figures of candidates under seeds, each with how fast its shaper is where that is wrong, in the same order."""
    size = Size(DURATION_S, (question.down_bps + question.up_bps) * DURATION_S)
    monitor.expect(len(work), size * len(work))
    monitor.share(at_once)
    with scratch.folder("advice") as above:
        return runner.in_parallel(
            [
                partial(_run, question, candidate, seed, too_fast, above / str(position), monitor, size)
                for position, (candidate, seed, too_fast) in enumerate(work)
            ],
            at_once,
        )


def _run(
    question: Question,
    candidate: Candidate,
    seed: int,
    too_fast: float | None,
    folder: Path,
    monitor: Monitor,
    size: Size,
    stop: Event,
) -> Row:
    drawn = situation.draw(question, seed)
    resolved: Resolved = situation.scenario(question, drawn, candidate, too_fast)
    folder.mkdir()
    summary: dict[str, Any]
    summary, _ = runner.observed(resolved, folder, candidate.name, [stop], monitor, size)
    return applications.of_run(folder, summary, resolved.scenario["traffic"], drawn.piece)
