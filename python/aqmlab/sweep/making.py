"""The one way to have runs made: what is kept is taken, the others are made and kept."""

from collections.abc import Generator, Sequence
from contextlib import closing

from aqmlab.progress import NOTHING, Monitor, Silent, announce
from aqmlab.sweep.condensed import Condensed
from aqmlab.sweep.executor import Executor, Spare
from aqmlab.sweep.kept import Kept
from aqmlab.sweep.local import Processes
from aqmlab.sweep.plan import Task


def run(
    tasks: Sequence[Task],
    *,
    jobs: int | None = None,
    monitor: Monitor | None = None,
    kept: Kept | None = None,
    fresh: bool = False,
    executor: Executor | None = None,
    made: set[str] | None = None,
    spare: Spare | None = None,
) -> Generator[tuple[str, Condensed]]:
    """Each different task's key and what it found: first those that are kept, then the others as they finish.

    What is said of its load is what the first task with the key says; for another, see `Condensed.as_asked`.
    Without an `executor` they run in processes on this machine, `jobs` at a time. `fresh` makes all of them anew. What
    has finished is kept before it is handed out, so that an interruption loses only what is under way. `made` gets the
    keys of those that were not kept, or could not be read. `spare` is told of runs in which a law has broken its
    promises; without it the first of these ends everything.
    """
    kept, monitor = kept or Kept(), monitor or Silent()
    waiting: list[Task] = []
    for task in {task.key: task for task in tasks}.values():
        found = None if fresh else kept.get(task.key)
        if found is None:
            waiting.append(task)
        else:
            yield task.key, found.as_asked(task.calibrations, task.is_reference)
    if made is not None:
        made.update(task.key for task in waiting)
    announce(monitor, len(waiting), sum((task.size for task in waiting), NOTHING))
    if not waiting:
        return
    # Closed when the caller stops asking, and not only when the interpreter gets round to it: processes are in it.
    with closing((executor or Processes(jobs)).each(waiting, monitor, spare)) as finished:
        for task, found in finished:
            kept.put(found)
            yield task.key, found
