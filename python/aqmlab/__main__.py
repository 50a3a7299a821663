"""The `aqmlab` command, which knows what to do when it is told to end before it imports anything that takes time."""

import os

from aqmlab import stopping

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "1")
"""NumPy's algebra would start a thread for each core, which takes a tenth of a second. Runs have threads of their own,
and no matrix here is large. Who has said a number keeps it."""


def main() -> None:
    """Entry point."""
    stopping.before_anything_runs()
    os.environ.setdefault(*BLAS_THREADS)
    from aqmlab.cli import main as command

    command()


if __name__ == "__main__":
    main()
