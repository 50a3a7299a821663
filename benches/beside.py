"""What a run takes beside another process, by what that process uses: the cores, caches, or memory.

    python benches/beside.py [--reps N] [--engine PROGRAM]

Two processors of a machine share some of these: threads of one core share its units and first two caches, cores of one
die its third-level cache, all cores the memory. Each case of the engine is run alone and beside neighbours that use one
thing each, and beside itself, the run on one processor and the neighbour on another. What slows a run is what the two
processors share and the run needs. Arithmetic alone should be slowed only by what runs on the same core; what it shows
beyond that is noise. Figures are user time by that of the same run alone, of the least of all repetitions.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import workloads
from bench import build, progress

GATHER = """
import numpy
table = numpy.random.default_rng(1).permutation({words}).astype(numpy.uint32)
at = numpy.arange(1024, dtype=numpy.uint32) * ({words} // 1024)
while True:
    at = table[at]
"""
SHUFFLE = """
import numpy
while True:
    numpy.random.default_rng(1).permutation(1 << 26)
"""
COPY = """
import numpy
a, b = numpy.zeros(1 << 28, numpy.uint8), numpy.ones(1 << 28, numpy.uint8)
while True:
    numpy.copyto(a, b)
"""
HASH = """
import hashlib
while True:
    hashlib.pbkdf2_hmac("sha512", b"key", b"salt", 1_000_000)
"""
HASHES = """
import hashlib
hashlib.pbkdf2_hmac("sha512", b"key", b"salt", 2_000_000)
"""
NEIGHBOURS = {
    "arithmetic in registers (SHA-512)": HASH,
    "reads at random places of 256 KiB": GATHER.format(words=1 << 16),
    "reads at random places of 16 MiB": GATHER.format(words=1 << 22),
    "shuffling an array of 512 MiB": SHUFFLE,
    "copies of 256 MiB": COPY,
}
ARITHMETIC = "arithmetic, no engine"
SCENARIOS = {
    "100 long flows": workloads.bulk(600, 'kind = "pfifo"\nlimit = "239p"'),
    "18,670 web users": workloads.web(100),
    "10,000 flows on 10 Gb/s": workloads.bulk(4, 'kind = "pfifo"\nlimit = "23999p"', flows=10_000, mbit=10_000),
}


def on(processor: int, command: list[str]) -> list[str]:
    """The command, kept on the first (0) or the second (1) of the processors that this one may use."""
    return ["taskset", "--cpu-list", str(sorted(os.sched_getaffinity(0))[processor]), *command]


@contextmanager
def neighbour(command: list[str] | None) -> Iterator[None]:
    """Keeps a command running on the other processor, again and again if it ends well."""
    if command is None:
        yield
        return
    again = ["sh", "-c", 'while "$@"; do :; done', "sh", *command]
    with subprocess.Popen(
        on(1, again), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as child:
        try:
            time.sleep(1.5)  # until it has loaded what it needs
            yield
            if child.poll() is not None:
                raise SystemExit(f"{' '.join(command)[:60]}: ended while a run was measured beside it")
        finally:
            if child.poll() is None:
                os.killpg(child.pid, 9)


def user_s(command: list[str]) -> float:
    """User time of a command on the first processor."""
    child = subprocess.Popen(on(0, command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}")
    return usage.ru_utime


def main() -> None:
    """Prints a table: a row a neighbour, a column a case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=4)
    parser.add_argument("--engine", type=Path, help="a program that was built before; without it one is built")
    options = parser.parse_args()
    if options.reps < 1:
        raise SystemExit(f"beside.py: --reps {options.reps}: expected 1 or more")
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("beside.py: needs two processors")
    engine = options.engine or build()
    with tempfile.TemporaryDirectory(prefix="aqmlab-beside-") as held:
        commands = {ARITHMETIC: [sys.executable, "-c", HASHES]}
        for number, (case, scenario) in enumerate(SCENARIOS.items()):
            path = Path(held, f"{number}.toml")
            path.write_text(scenario)
            commands[case] = [str(engine), str(path)]
        beside = {"none": None, **{name: [sys.executable, "-c", text] for name, text in NEIGHBOURS.items()}}
        least: dict[tuple[str, str], float] = {}
        for rep, (case, command) in product(range(options.reps), commands.items()):
            for name, other in {**beside, "the same": command}.items():
                progress(f"repetition {rep + 1} of {options.reps}: {case}, beside: {name}")
                with neighbour(other):
                    took = user_s(command)
                least[case, name] = min(took, least.get((case, name), took))
    progress("")
    print(f"| beside | {' | '.join(commands)} |\n| --- |{' --: |' * len(commands)}")
    for name in ("none", *NEIGHBOURS, "the same"):
        shares = (
            f"{least[case, name]:.2f} s" if name == "none" else f"{least[case, name] / least[case, 'none']:.2f}"
            for case in commands
        )
        print(f"| {name} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
