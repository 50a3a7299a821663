"""Links that agents learn on, and what they do there."""

import os

import numpy as np

from aqmlab.live import kernel
from aqmlab.runs import calibration

SCENARIO = """
duration = "12s"
warmup = "2s"
[link]
rate = "20mbit"
qdisc = { kind = "pie", limit = "200p", ecn = true }
reverse_qdisc = "pfifo"
[path]
rtt = { uniform = ["20ms", "60ms"] }
[tcp]
ecn = "on"
[[traffic]]
kind = "bulk"
flows = 6
[[traffic]]
kind = "cbr"
rate = "4mbit"
packet = "1200b"
"""
WEB = SCENARIO.replace('kind = "bulk"\nflows = 6', 'kind = "poisson"\narrivals = "40hz"\nsize = "30kb"')
NAME = "aqmlab/Link-v0"

KERNEL = os.environ.get(kernel.VARIABLE) or str(calibration.cache_folder() / "kernel/linux")
"""Looked for before tests have a cache of their own."""


def random_actions(env, steps: int, seed: int = 1) -> list:
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(steps)]


def episode(env, seed: int, actions) -> list:
    seen = [env.reset(seed=seed)[0]]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append((observation, reward, terminated, truncated, info))
    return seen


def are_equal(one, other) -> bool:
    return all(
        np.array_equal(a[0], b[0]) and a[1:] == b[1:] if isinstance(a, tuple) else np.array_equal(a, b)
        for a, b in zip(one, other, strict=True)
    )
