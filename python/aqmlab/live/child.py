"""The process of a live run: `python -I child.py DIRECTORY`.

It loads the compiled engine and nothing else: a process that is not root has to have a single thread when it makes a
user namespace for itself, and ends with all that it made, whatever ends it.
"""

import importlib.machinery
import importlib.util
import os
import signal
import sys
from pathlib import Path

MACHINE = 3
"""The exit code for what this machine cannot do."""


def main() -> None:
    """Makes the run in the folder that the command line names and ends with its exit code."""
    # Whoever asks this process to end wants it to: Python would go on until the engine comes back.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    name = "_native"
    folder = Path(__file__).resolve().parent.parent
    found = importlib.machinery.PathFinder.find_spec(name, [str(folder)])
    if found is None or found.loader is None:
        sys.stderr.write(f"{folder}: the compiled engine is missing\n")
        os._exit(MACHINE)
    engine = importlib.util.module_from_spec(found)
    found.loader.exec_module(engine)
    code = engine.live(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    # A thread that did not end when it was told to is not waited for.
    os._exit(code)


if __name__ == "__main__":
    main()
