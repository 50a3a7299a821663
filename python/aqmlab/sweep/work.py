"""Makes one run: simulates into a folder that goes away again, and condenses it."""

import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aqmlab import engine, scratch, toml_text
from aqmlab.errors import AqmlabError, CannotRun, Misbehaved
from aqmlab.laws import brought
from aqmlab.results import store
from aqmlab.results.run import Run
from aqmlab.runs import apart
from aqmlab.runs.watchdog import Watchdog
from aqmlab.sweep import condensed
from aqmlab.sweep.condensed import Condensed
from aqmlab.sweep.plan import Task

Tell = Callable[[Mapping[str, Any]], None]
"""Hears how far a run is, as `Monitor.tick` does; what it raises ends the run."""


class TooLarge(CannotRun):
    """A run that needs more memory than a worker may have."""


def do(task: Task, tell: Tell = lambda _: None, within: Path | None = None, most_bytes: int | None = None) -> Condensed:
    """Makes a run, in whatever process it is called.

    Its tables lie in `within` meanwhile, or where temporary files lie. A run whose process comes to more than
    `most_bytes` of memory is ended.
    """
    started = time.monotonic()
    if "\nlaw = " in task.toml:
        brought.bring(toml_text.loads(task.toml, task.origin), task.origin, is_own=True)
    resolved = engine.resolve(task.toml, task.origin)
    if resolved.digest != task.digest:
        raise AqmlabError(
            f"{task.name}: its scenario has another digest here ({resolved.digest[:12]}, not {task.digest[:12]}); "
            f"expected the same version of aqmlab everywhere, and the same files"
        )
    if brought.modules_sha256(resolved.scenario) != task.modules:
        laws = brought.said(brought.of(resolved.scenario))
        raise AqmlabError(f"{task.name}: {laws} imports other modules here; expected the same files everywhere")
    forget_peak()
    watchdog = Watchdog(task.name)

    def heard(tick: Mapping[str, Any]) -> None:
        if most_bytes is not None and (used := resident_bytes()) > most_bytes:
            raise TooLarge(
                f"{task.name}: needs more than the {most_bytes / 2**20:,.0f} MiB of memory that a worker may have "
                f"({used / 2**20:,.0f} MiB after {tick['time_s']:.0f} s); expected a smaller run, or fewer --jobs"
            )
        watchdog.heard(tick)
        tell(tick)

    with scratch.folder("run", within) as place:
        folder = place / "run"
        with store.making(folder) as partial:
            make = apart.simulate if brought.runs_apart(resolved) else engine.simulate
            try:
                summary = make(resolved, partial, heard)
            except Misbehaved as error:
                raise Misbehaved(f"{task.name}: {error}") from None
            store.finish_run(partial, folder, resolved, summary, task.calibrations, time.monotonic() - started)
        found = condensed.of_run(Run(folder), task.key, {"simulated_s": task.size.simulated_s})
    found.facts["wall_s"] = time.monotonic() - started
    found.facts["peak_rss_bytes"] = peak_bytes()
    return found


def resident_bytes() -> int:
    """Memory that this process has now; 0 where that cannot be told."""
    return _status("VmRSS") or 0


def peak_bytes() -> int:
    """Most memory that this process has had since `forget_peak`."""
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def forget_peak() -> None:
    """Starts the peak anew where the system can (proc(5), clear_refs: 5 resets the peak resident set size)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _status(name: str) -> int | None:
    """A size in /proc/self/status."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None
