"""Memory: what runs will need, and what there is; a run that needs more is refused before it begins.

What a run needs is reckoned by the engine from its scenario (`engine.Need`). What there is, is what the kernel calls
available, within the limit of the control group, or what the variable AQMLAB_MEMORY says.
"""

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from aqmlab import units
from aqmlab.engine import Need
from aqmlab.errors import BadInput, CannotRun

VARIABLE = "AQMLAB_MEMORY"
SIZES = {"mb": 2**20, "gb": 2**30}

SHARE = 0.8
"""Share of what is available that runs may be reckoned to need: the reckoning is of the large things only."""

PROCESS_BYTES = 150 * 2**20
"""What an interpreter with its libraries takes, beside any run."""

WORTH_SAYING = 2**28
"""Bytes that a run needs and that whoever starts it wants to know of."""

CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")


def limit() -> tuple[int, str]:
    """Bytes that runs may need together, and where that comes from; 0 where it cannot be told."""
    if (given := os.environ.get(VARIABLE)) is not None:
        match = re.fullmatch(r"\s*([0-9]{1,6}(?:\.[0-9]+)?)\s*(mb|gb)\s*", given, re.IGNORECASE)
        if match is None:
            raise BadInput(f"{VARIABLE}={given}: expected a size such as 8gb")
        return int(float(match[1]) * SIZES[match[2].lower()]), VARIABLE
    return int(
        SHARE * available_bytes()
    ), f"{units.say_share(SHARE)} of what is available here; {VARIABLE} sets another limit"


def available_bytes() -> int:
    """What could be had without swapping, in this control group; 0 where it cannot be told."""
    found = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        found.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]))
    with contextlib.suppress(OSError, ValueError):  # "max" where there is no limit
        most, held = ((CGROUP / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current"))
        found.append(int(most) - int(held) + _given_back())
    return max(min(found, default=0), 0)


def _given_back() -> int:
    """Pages of files that the control group holds and would give up."""
    lines = (CGROUP / "memory.stat").read_text(encoding="ascii").splitlines()
    return int(dict(line.split() for line in lines)["inactive_file"])


class Reckoned(Protocol):
    """A run whose memory was reckoned."""

    @property
    def origin(self) -> str:
        """Where its scenario comes from."""

    @property
    def memory(self) -> Sequence[Need]:
        """What it will need, beside the process that makes it."""


def needed(run: Reckoned) -> int:
    """Bytes that a run will need, beside the process that makes it."""
    return sum(need.bytes for need in run.memory)


def foreseen(run: Reckoned) -> list[str]:
    """What is to be known before a run that needs much."""
    if needed(run) < WORTH_SAYING:
        return []
    part = max(run.memory, key=lambda one: one.bytes)
    all_of_it, most = map(units.say_memory, (needed(run), part.bytes))
    return [f"A run needs about {all_of_it} of memory, {most} of it for {part.key}"]


def runs_at_once(runs: Sequence[Reckoned], wanted: int) -> int:
    """How many of these may be made at a time, `wanted` at most; raises `CannotRun` where there is not room for one."""
    if not runs:
        return wanted
    most, where = limit()
    largest = max(runs, key=needed)
    need = needed(largest)
    if not most or need + PROCESS_BYTES <= most / max(wanted, 1):
        return wanted
    if need > most:
        part = max(largest.memory, key=lambda one: one.bytes)
        raise CannotRun(
            f"{largest.origin}: needs about {units.say_memory(need)} of memory, "
            f"of which {part.key} {units.say_memory(part.bytes)}; expected at most {units.say_memory(most)} ({where})"
        )
    return max(1, min(wanted, int(most // (need + PROCESS_BYTES))))
