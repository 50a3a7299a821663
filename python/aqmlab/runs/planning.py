"""What lets plans of thousands of runs begin soon."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import partial
from itertools import chain
from threading import Event

from aqmlab.engine import Resolved
from aqmlab.runs import runner
from aqmlab.scenario import Source

AT_ONCE = 200
"""Scenarios that a thread checks before it takes the next ones; fewer than this are not worth a second thread."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Nothing of a plan that is being built is garbage, and Python does not look for any among ever more of it.

    What is there at the end counts as old to Python's collector, which then leaves it alone for long.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        gc.enable()


def resolved(sources: Sequence[Source]) -> list[Resolved]:
    """Has the engine check every scenario, of many several at a time; the first that is wrong is complained of."""

    def check(allowed: Context, start: int, stop: Event) -> list[Resolved]:
        return allowed.run(lambda: [source.resolve() for source in sources[start : start + AT_ONCE]])

    # A thread begins without what the caller allows.
    pieces = [partial(check, copy_context(), start) for start in range(0, len(sources), AT_ONCE)]
    return list(chain.from_iterable(runner.in_parallel(pieces, runner.default_jobs())))
