"""Processes of this machine, as /proc tells of them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


def children(of: int) -> list[int]:
    """Processes whose parent this is."""
    return [process for process, state, parent, _ in _all() if parent == of and state != "Z"]


def session(of: int) -> list[int]:
    """Processes of a session that are alive."""
    return [process for process, state, _, leader in _all() if leader == of and state not in "ZX"]


def threads(name: str) -> int:
    """How many threads of this process have a name."""
    found = 0
    for place in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):
            found += place.read_text() == f"{name}\n"
    return found


def _all() -> Iterator[tuple[int, str, int, int]]:
    """Each process with its state, its parent and the leader of its session, as in proc_pid_stat(5)."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, _, leader, *_ = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        yield int(place.parent.name), state, int(parent), int(leader)


def is_alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
