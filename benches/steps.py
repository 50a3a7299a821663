"""How many steps a second an agent makes: a link of 100 Mb/s with 20 flows, steps of 10 ms, alone and many in threads.

    python benches/steps.py            the table
    python benches/steps.py --check    exit code 1 if one link makes fewer than 2,000 steps a second

Of each case the best of three stretches counts: what else runs on a machine only ever adds. Beside the steps a second
stands what a step takes of processor time, in all threads and in the one that asks for it: with enough cores, that one
alone is waited for.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable

import gymnasium
import numpy as np

import aqmlab.gym

LINK = """
[link]
rate = "100mbit"
qdisc = { kind = "pfifo", limit = "500p" }
[path]
rtt = "40ms"
[[traffic]]
kind = "bulk"
flows = 20
"""
STEPS = 3000
"""Of a stretch, in all links together."""
STRETCHES = 3
LEAST = 2000.0
"""Steps a second that one link is to make on one core."""
ACTION = -0.9
"""A probability of 0.0025, which keeps the link in use."""


def clocks() -> np.ndarray:
    """Seconds since some time: by the clock, of processor time in all threads, and in the one that asks."""
    return np.array([time.perf_counter(), time.process_time(), time.thread_time()])


def best(stretch: Callable[[], int]) -> np.ndarray:
    """The least seconds of a step, by each clock."""
    found = []
    for _ in range(STRETCHES):
        began = clocks()
        steps = stretch()
        found.append((clocks() - began) / steps)
    return np.min(found, axis=0)


def alone() -> np.ndarray:
    """One link, on the core of this thread."""
    env = aqmlab.gym.Link(LINK, duration="60s")
    action = np.array([ACTION], np.float32)

    def stretch() -> int:
        env.reset(seed=1)
        for _ in range(STEPS):
            env.step(action)
        return STEPS

    return best(stretch)


def together(links: int, threads: int) -> np.ndarray:
    """Several links."""
    vector = gymnasium.make_vec(aqmlab.gym.ID, num_envs=links, threads=threads, scenario=LINK, duration="60s")
    actions = np.full((links, 1), ACTION, np.float32)

    def stretch() -> int:
        vector.reset(seed=1)
        for _ in range(STEPS // links):
            vector.step(actions)
        return STEPS // links * links

    return best(stretch)


def row(links: int, threads: int, found: np.ndarray) -> str:
    """A row of the table."""
    return f"| {links} | {threads} | {1 / found[0]:,.0f} | {found[1] * 1e6:.0f} | {found[2] * 1e6:.0f} |"


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help=f"exit code 1 below {LEAST:g} steps a second")
    chosen = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    one = alone()
    print("| links | threads | steps a second | processor time a step, µs | of the asking thread, µs |")
    print("|--:|--:|--:|--:|--:|")
    print(row(1, 1, one))
    for threads in sorted({1, 2, cores} if cores > 1 else {1}):
        print(row(8, threads, together(8, threads)))
    if chosen.check and 1 / one[0] < LEAST:
        sys.exit(1)


if __name__ == "__main__":
    main()
