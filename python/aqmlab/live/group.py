"""Runs a program as a group with all that it starts, which ends with whoever wanted it.

    python -I group.py PARENT PROGRAM [ARGUMENT ...]

A program of many processes, as make is, does not end as a whole where its first process does. This one leads a session
of its own. When its parent goes, or asks it to end, it kills all that is in there. This file stands alone: isolated
Python starts it without the rest of aqmlab.
"""

import ctypes
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, words: list[str]) -> int:
    """Runs it to its end; the answer is its exit code."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.killpg(0, signal.SIGKILL))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # A parent that was gone before the line above is not told of.
    return subprocess.call(words) if os.getppid() == parent else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
