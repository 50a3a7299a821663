"""The process of a live run: `python -I child.py DIRECTORY`.

It loads the compiled engine and, where the scenario has laws of one's own, what these need; nothing else: a process
that is not root has to have a single thread when it makes a user namespace for itself, and ends with all that it made,
whatever ends it.
"""

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

MACHINE = 3
"""The exit code for what this machine cannot do."""


def main() -> None:
    """Makes the run in the folder that the command line names and ends with its exit code."""
    # Whoever asks this process to end wants it to: Python would go on until the engine comes back.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Where a program inside has the terminal, Ctrl-C is meant for that, and ignored here.
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    place = Path(sys.argv[1])
    laws = json.loads((place / "live.json").read_text(encoding="utf-8")).get("laws")
    code = engine_with(laws, place).live(str(place)) if laws else engine().live(str(place))
    if laws and code:
        explain(place)
    sys.stdout.flush()
    sys.stderr.flush()
    # A thread that did not end when it was told to is not waited for.
    os._exit(code)


def engine() -> Any:
    """The compiled engine alone."""
    name = "_native"
    folder = Path(__file__).resolve().parent.parent
    found = importlib.machinery.PathFinder.find_spec(name, [str(folder)])
    if found is None or found.loader is None:
        sys.stderr.write(f"{folder}: the compiled engine is missing\n")
        os._exit(MACHINE)
    loaded = importlib.util.module_from_spec(found)
    found.loader.exec_module(loaded)
    return loaded


def engine_with(laws: list[dict[str, str]], place: Path) -> Any:
    """The compiled engine, with laws in it."""
    # What reckons with threads would have some before the process has a namespace of its own.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from aqmlab import _native
    from aqmlab.errors import AqmlabError
    from aqmlab.laws import brought

    try:
        brought.take_over(laws)
    except AqmlabError as error:
        fail(place, str(error), error.exit_code)
    return _native


def explain(place: Path) -> None:
    """Adds to what went wrong what a law has raised, and which threads did not end."""
    from aqmlab.laws import interpreted

    error = place / "error.json"
    if error.exists():
        said = json.loads(error.read_text(encoding="utf-8"))
        said["message"] = "; ".join([said["message"], *interpreted.FAILURES.values()])
        said["left"] = left()
        error.write_text(json.dumps(said), encoding="utf-8")


def left() -> list[str]:
    """The names of the threads that there still are, beside this one."""
    names = []
    for thread in Path("/proc/self/task").iterdir():
        # One of them may end meanwhile.
        with contextlib.suppress(OSError):
            names += [(thread / "comm").read_text().strip()] if thread.name != str(os.getpid()) else []
    return names


def fail(place: Path, message: str, code: int) -> None:
    """Leaves what went wrong and ends."""
    (place / "error.json").write_text(json.dumps({"message": message, "exit_code": code}), encoding="utf-8")
    os._exit(code)


if __name__ == "__main__":
    main()
