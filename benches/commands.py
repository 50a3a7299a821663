"""What `aqmlab run` costs beyond the bare engine, and what two runs at a time cost each.

The web users of the published experiment, by the engine alone, by the command, and by two engines side by side, in each
repetition one after the other; and a run of milliseconds, which is what the command takes to start. Figures are of the
least of all repetitions, because what else runs on a machine only ever adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import workloads
from ns2_reference import RunError, progress

WEB_S = 600
START_S = 0.5
BEYOND = 0.10
TWO_TIMES_ONE = 1.2


@dataclass
class Commands:
    """Processor time of every repetition, seconds, user and system."""

    engine_s: list[float] = field(default_factory=list)
    run_s: list[float] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)
    two_s: list[float] = field(default_factory=list)
    """Of each of two engines at a time, the mean of both."""

    @property
    def start(self) -> float:
        """Of a run that simulates for milliseconds."""
        return min(self.start_s)

    @property
    def beyond(self) -> float:
        """Tables, checks and summary of web users, by what the engine takes for them."""
        return (min(self.run_s) - self.start) / min(self.engine_s) - 1

    @property
    def two_times_one(self) -> float:
        """A run beside another, by the same run alone."""
        return min(self.two_s) / min(self.engine_s)

    def targets(self) -> list[tuple[str, float, str, float]]:
        """Title, the most that is asked for, unit and figure of each target."""
        return [
            ("aqmlab run, of a run of milliseconds, CPU", START_S, "s", self.start),
            ("web users by aqmlab run, beyond its start and the engine", 100 * BEYOND, "%", 100 * self.beyond),
            ("web users, two runs at a time, each, times one alone", TWO_TIMES_ONE, "x", self.two_times_one),
        ]

    def values(self) -> dict[str, Any]:
        """For JSON."""
        return {name: [round(s, 4) for s in getattr(self, name)] for name in ("engine_s", "run_s", "start_s", "two_s")}


def measure(engine: Path, reps: int) -> Commands:
    """All of it, `reps` times, one after the other."""
    found = Commands()
    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-") as held:
        web, short = Path(held, "web.toml"), Path(held, "short.toml")
        web.write_text(workloads.web(WEB_S))
        short.write_text(workloads.bulk(3, 'kind = "pi"', flows=4, mbit=10))
        for rep in range(reps):
            progress(f"repetition {rep + 1} of {reps}: aqmlab run beside the engine")
            alone, by_command, at_start = (
                spent([command])
                for command in (
                    [str(engine), str(web)],
                    run(web, Path(held, f"web-{rep}")),
                    run(short, Path(held, f"short-{rep}")),
                )
            )
            found.engine_s += alone
            found.run_s += by_command
            found.start_s += at_start
            found.two_s.append(sum(spent([[str(engine), str(web)]] * 2)) / 2)
    progress("")
    return found


def run(scenario: Path, out: Path) -> list[str]:
    """The command that runs a scenario into a folder."""
    return [sys.executable, "-m", "aqmlab", "run", str(scenario), "-o", str(out)]


def spent(commands: Sequence[Sequence[str]]) -> list[float]:
    """Processor time, user and system, of each of some commands that run side by side."""
    children = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
    seconds = []
    for child, command in zip(children, commands, strict=True):
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise RunError(f"{' '.join(command)}: exit code {child.returncode}")
        seconds.append(usage.ru_utime + usage.ru_stime)
    return seconds
