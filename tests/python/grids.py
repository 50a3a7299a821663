"""A sweep for tests: two axes, one of them a load; its file, its tasks, and how many runs were made."""

import contextlib
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

import fake_native
from aqmlab import sweep
from aqmlab.sweep import grid, making, plan

GRID = """
name = "Web users"
seeds = 2
[scenario]
duration = "30s"
warmup = "10s"
link.rate = "100mbit"
[[scenario.traffic]]
kind = "web"
load = "98mbit"
[[grid]]
name = "web"
[[grid.axis]]
name = "aqm"
value = [
    { name = "pfifo", label = "drop-tail" },
    { name = "pi", link.qdisc = { kind = "pi", qref = "24p" } },
    { name = "uncongested", uncongested = true },
]
[[grid.axis]]
name = "load"
key = "traffic.0.load"
values = ["90mbit", "98mbit"]
"""


@pytest.fixture(autouse=True)
def in_process(monkeypatch):
    monkeypatch.setattr(making, "Processes", lambda jobs: sweep.InProcess())


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def runs_made() -> int:
    return sum(name != "calibration" for name in fake_native.calls)


def calibrating() -> int:
    return len(fake_native.calls) - runs_made()


@contextlib.contextmanager
def stopped_after(runs: int) -> Iterator[None]:
    """Ctrl-C comes when so many runs were made."""
    before = runs_made()

    def stopping(*arguments: Any) -> Any:
        if runs_made() == before + runs:
            raise KeyboardInterrupt
        return simulate(*arguments)

    simulate, fake_native.simulate = fake_native.simulate, stopping
    try:
        yield
    finally:
        fake_native.simulate = simulate


def planned(text: str = GRID, **options: Any) -> list[plan.Task]:
    points = [point for one in grid.read(tomllib.loads(text) | {"seeds": 2}, "grid.toml") for point in one.points]
    return plan.plan([(point, seed) for point in points for seed in (1, 2)], **options)
