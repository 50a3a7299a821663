"""The `aqmlab` command, which knows what to do when it is told to end before it imports anything that takes time."""

import gc
import os

from aqmlab import stopping

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "1")
"""NumPy's algebra would start a thread for each core, which takes a tenth of a second. Runs have threads of their own,
and no matrix here is large. Who has said a number keeps it."""

GARBAGE = (50_000, 20, 100)
"""How many new objects garbage is looked for after. What is imported makes a hundred thousand that all stay: to look
through them again and again takes a tenth of the start."""


def main() -> None:
    """Entry point."""
    stopping.before_anything_runs()
    stopping.named_output()
    gc.set_threshold(*GARBAGE)
    os.environ.setdefault(*BLAS_THREADS)
    from aqmlab.cli import main as command

    command()


if __name__ == "__main__":
    main()
