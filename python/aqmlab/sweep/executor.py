"""An executor makes runs: in this process here, in processes or on a cluster in other modules."""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Protocol

from aqmlab.errors import Misbehaved
from aqmlab.progress import Monitor, told_of_the_end
from aqmlab.sweep.condensed import Condensed
from aqmlab.sweep.plan import Task
from aqmlab.sweep.work import do

Spare = Callable[[Task, Misbehaved], None]
"""Is told of a run in which a law of one's own has broken its promises, so that the others go on."""


class Executor(Protocol):
    """Makes runs somewhere."""

    def each(
        self, tasks: Sequence[Task], monitor: Monitor, spare: Spare | None = None
    ) -> Generator[tuple[Task, Condensed]]:
        """Every task with what it found, as they finish.

        A task whose worker is lost is given to another one once more; lost again, or failing by itself, it ends
        everything with an error of one line. Of a law that has broken its promises `spare` is told instead, where there
        is one. Whoever stops iterating (and Ctrl-C) ends what is under way.
        """


class InProcess:
    """Makes runs one after the other, in this process."""

    def each(
        self, tasks: Sequence[Task], monitor: Monitor, spare: Spare | None = None
    ) -> Generator[tuple[Task, Condensed]]:
        """Makes tasks, and yields each result when it is there."""
        for task in tasks:
            run = monitor.begin(task.label, task.size)
            try:
                with told_of_the_end(monitor, run):
                    found = do(task, partial(monitor.tick, run))
            except Misbehaved as error:
                if spare is None:
                    raise
                spare(task, error)
                continue
            yield task, found
