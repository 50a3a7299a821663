"""Live runs in virtual time: the same test bed, as the only program of a kernel whose clock waits for it.

What runs inside is what runs outside (`child.py`), with the same files in and out; `machine.py` is the process around
the kernel. See `kernel` for where that comes from.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

from aqmlab.errors import CannotRun
from aqmlab.live import kernel, preflight
from aqmlab.live.machine import hidden
from aqmlab.results import store

HERE = Path(__file__).parent

MEMORY_MB = 1024
"""Of every kernel: its own tables, the interpreter, packets under way, a program of the user's."""

CONNECTION_KB = 64
"""More for each user or flow: both sockets of a connection and what waits in them; a busy connection with a megabyte in
its send buffer takes it from those that are idle."""

PATIENCE_S = 540
"""How long a run may say nothing, in real seconds: it says something each virtual second, which at 100 Mb/s in both
directions takes about half a minute."""


def check(name: str | None = None) -> None:
    """Raises CannotRun, in a line, where there is no kernel for virtual time, or not what it runs."""
    kernel.needed(name)
    preflight.check_programs()
    # A program inside works where the caller does.
    if unseen := hidden(Path.cwd()):
        raise CannotRun(f"virtual time: working in {unseen}")


def check_place(folder: Path) -> None:
    """Raises CannotRun, in a line, where a result cannot become this folder from within."""
    if unseen := hidden(folder):
        raise CannotRun(f"virtual time: results in {unseen}")


def command(directory: Path, name: str | None = None) -> list[str]:
    """The words of the one process that runs child.py over `directory` in virtual time, to be started after the
    scenario lies there.

    Its exit code is the child's, or 3 with an error.json. Killing it ends the kernel and all that runs in it.
    """
    tree = tomllib.loads((directory / "scenario.toml").read_text(encoding="utf-8"))
    return machine(directory, [sys.executable, "-I", str(HERE / "child.py"), str(directory)], tree, name)


def machine(directory: Path, program: list[str], tree: dict[str, Any], name: str | None = None) -> list[str]:
    """A kernel of virtual time for any program whose first word is a Python interpreter; this process starts it."""
    asked = {
        "kernel": str(Path(kernel.needed(name).path).absolute()),
        "memory_mb": memory_mb(tree),
        "seed": int(tree.get("seed", 1)),
        "program": program,
        "patience_s": PATIENCE_S,
        "parent": os.getpid(),
    }
    store.write_json(directory / "machine.json", asked)
    return [sys.executable, "-I", str(HERE / "machine.py"), str(directory)]


def memory_mb(tree: dict[str, Any]) -> int:
    """How much memory the kernel is given: the same for the same scenario, for Linux sizes its tables by it."""
    blocks = tree.get("traffic", [])
    most = sum(max(int(block.get(key, 0)) for key in ("users", "flows", "connections")) for block in blocks)
    return MEMORY_MB + most * CONNECTION_KB // 1024


def facts(directory: Path) -> dict[str, Any]:
    """What DIR/machine.json says a run was made with."""
    found: dict[str, Any] = json.loads((directory / "machine.json").read_text(encoding="utf-8"))
    return found
