"""The loads that a plan asks for: each different one is looked for once, and several searches go on side by side.

A search is a few runs of which some wait for the answer of others. So searches share the processors run by run, and the
last of them has them to itself.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from aqmlab import forks
from aqmlab.engine import Load, Resolved
from aqmlab.progress import Foreseen, Monitor
from aqmlab.runs import calibration, runner
from aqmlab.runs.calibration import Calibration, Wanted
from aqmlab.runs.runner import Slots

Asked = Sequence[tuple[str, Load]]
"""The loads of one scenario, each with the key of its calibration."""


class Loads:
    """Calibrations by their keys: those that are kept from before, and those that are found here.

    `fresh`: what is kept is not read.
    """

    def __init__(self, fresh: bool = False) -> None:
        self._fresh = fresh
        self._known: dict[str, Calibration] = {}
        self._wanted: dict[str, Wanted] = {}

    def ask(
        self,
        resolved: Resolved,
        uncongested_rate_bps: float | None = None,
        seeds: Sequence[int] = (),
        seed_is_said: bool = False,
    ) -> Asked:
        """Asks for all loads of a scenario, over these seeds if they are not its own alone, or with its own said."""
        asked = []
        for load in resolved.loads:
            wanted = calibration.wanted(resolved, load, uncongested_rate_bps, seeds, seed_is_said)
            asked.append((wanted.key, load))
            if wanted.key in self._known or wanted.key in self._wanted:
                continue
            kept = None if self._fresh else calibration.recall(wanted)
            if kept is None:
                self._wanted[wanted.key] = wanted
            else:
                self._known[wanted.key] = kept
        return asked

    @property
    def are_known(self) -> bool:
        """Whether nothing has to be looked for."""
        return not self._wanted

    def has(self, asked: Asked) -> bool:
        """Whether all of these are known."""
        return all(key in self._known for key, _ in asked)

    def of(self, asked: Asked) -> list[Calibration]:
        """The populations of one scenario, which are known."""
        return [replace(self._known[key], traffic=load.traffic) for key, load in asked]

    def find(self, at_once: int, monitor: Monitor) -> None:
        """Looks for those that are not known, with so many runs at a time; what is found is kept.

        All that the searches are expected to take is told to the monitor before the first.
        """
        forks.check()
        slots = Slots(at_once)
        monitor.share(at_once)
        coming = {key: Foreseen(monitor) for key in self._wanted}
        for key, wanted in self._wanted.items():
            coming[key].foresee(*wanted.expected)

        def look(wanted: Wanted, stop: threading.Event) -> None:
            found = calibration.search(wanted, slots, coming[wanted.key], stop)
            coming[wanted.key].all_announced()
            self._known[wanted.key] = found

        runner.in_parallel([partial(look, wanted) for wanted in self._wanted.values()], at_once)
        self._wanted.clear()
