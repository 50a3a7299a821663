"""Grids of runs on all cores and beyond.

`grid` reads grids, `plan` makes tasks of points and seeds, `run` has those made that are not kept from before; `table`
and `commands` are the `aqmlab sweep` that stands on them. Studies stand on the same.
"""

from typing import TYPE_CHECKING

from aqmlab import deferred

if TYPE_CHECKING:
    from aqmlab.sweep import sweeps as sweeps
    from aqmlab.sweep.condensed import Condensed
    from aqmlab.sweep.executor import Executor, InProcess
    from aqmlab.sweep.kept import Kept
    from aqmlab.sweep.local import Processes
    from aqmlab.sweep.making import run
    from aqmlab.sweep.plan import Task
else:
    __getattr__, __dir__ = deferred.names(
        __name__,
        {
            "Condensed": "aqmlab.sweep.condensed",
            **dict.fromkeys(("Executor", "InProcess"), "aqmlab.sweep.executor"),
            "Kept": "aqmlab.sweep.kept",
            "Processes": "aqmlab.sweep.local",
            "Task": "aqmlab.sweep.plan",
            "sweeps": "aqmlab.sweep.sweeps",
            "run": "aqmlab.sweep.making",
        },
    )

__all__ = ["Condensed", "Executor", "InProcess", "Kept", "Processes", "Task", "run"]
