"""How long expected runs will still take: by what each is expected to cost, and what those before it took."""

import time

from aqmlab.progress import NOTHING, Size


class Remaining:
    """Follows runs from their announcement on, and reckons the time that is left.

    Work is what runs are expected to cost, so that it does not matter in which order dear and cheap ones come. What a
    unit of it takes is the time that runs were under way, each for itself, by the work that they have done: a moment in
    which only one goes on tells the same of it as one in which all processors are busy. What is left is shared among as
    many as may be made at a time, or were seen so. Times are read from `time.monotonic`.
    """

    def __init__(self) -> None:
        self.runs = self.ended = 0
        self.size = NOTHING
        """Of all runs that are expected."""
        self._sizes: dict[int, Size] = {}
        """Of runs under way."""
        self._shares: dict[int, float] = {}
        self._over = NOTHING
        """The size of runs that have ended."""
        self._spent_s = 0.0
        """Time under way, of all runs together."""
        self._told = self._most_seen = 1
        self._seen = 0.0

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming, or that so many will not."""
        self.runs += runs
        self.size += size

    def share(self, at_once: int) -> None:
        """Hears how many runs may be made at a time."""
        self._told = max(1, at_once)

    def begin(self, run: int, size: Size) -> None:
        """Hears that a run begins."""
        self._pass()
        self._sizes[run], self._shares[run] = size, 0.0
        self._most_seen = max(self._most_seen, len(self._sizes))

    def tick(self, run: int, time_s: float) -> None:
        """Hears how far a run is, in simulated seconds."""
        self._pass()
        self._shares[run] = min(time_s / max(self._sizes[run].simulated_s, 1e-9), 1.0)

    def end(self, run: int) -> None:
        """Hears that a run has ended, well or not."""
        self._pass()
        self.ended += 1
        self._over += self._sizes.pop(run)
        del self._shares[run]

    @property
    def done(self) -> Size:
        """The work that is done, that of runs under way as far as they are."""
        return sum((size * self._shares[run] for run, size in self._sizes.items()), self._over)

    @property
    def left_s(self) -> float | None:
        """The time that is left, seconds; None as long as nothing is known of it."""
        self._pass()
        done = self.done.cost
        if done <= 0 or self._spent_s <= 0:
            return None
        # The last run takes its time, however many could be made beside it.
        longest = max((size.cost * (1 - self._shares[run]) for run, size in self._sizes.items()), default=0.0)
        shared = (self.size.cost - done) / max(self._told, self._most_seen)
        return max(shared, longest, 0.0) * self._spent_s / done

    def _pass(self) -> None:
        now = time.monotonic()
        self._spent_s += (now - self._seen) * len(self._sizes)
        self._seen = now
