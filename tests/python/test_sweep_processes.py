"""Runs in processes of their own, on the compiled engine: as in one process, and whatever happens to a worker."""

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from aqmlab import engine, sweep
from aqmlab.errors import AqmlabError, CannotRun
from aqmlab.progress import Silent
from aqmlab.sweep import grid, local, plan, sweeps
from conftest import NATIVE, ROOT, hears_signals
from processes import children, is_alive
from watcher import Watcher, until

GRID = """
name = "small"
seeds = 2
[scenario]
duration = "{duration}"
warmup = "2s"
link.rate = "10mbit"
link.qdisc = {{ kind = "pfifo", limit = "24p" }}
[[scenario.traffic]]
kind = "web"
[[grid]]
[[grid.axis]]
name = "users"
key = "traffic.0.users"
values = [800, 1200, 1600]
"""


PROGRAM = "from aqmlab.cli import main; main()"
LONG = "2500s"
"""Long enough to be killed twice in: reports of progress come ten times a second, and this takes seconds."""

SOME = "800s"
"""Long enough for some reports of progress."""

SHORT = "600s"
"""Long enough to be stopped in, as one of several."""


@pytest.fixture(autouse=True)
def compiled(stand_in, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def tasks(duration: str = "6s") -> list[plan.Task]:
    (one,) = grid.read({**tomllib.loads(GRID.format(duration=duration)), "seeds": 2}, "grid.toml")
    return plan.plan([(point, seed) for point in one.points for seed in (1, 2)])


class Killer(Watcher):
    """Kills the worker of the first run that has begun, as often as it is told to."""

    def __init__(self, kills: int, pool: list[local._Worker]) -> None:
        super().__init__()
        self.kills, self.pool = kills, pool

    def tick(self, run, tick) -> None:
        super().tick(run, tick)
        if self.kills:
            self.kills -= 1
            victim = next(worker for worker in self.pool if worker.run == run and worker.task is not None)
            victim.process.send_signal(signal.SIGKILL)


@pytest.fixture
def workers(monkeypatch) -> Iterator[list[local._Worker]]:
    """Every worker that was started; all must be gone at the end."""
    started: list[local._Worker] = []
    start = local._Worker.start

    def noted() -> local._Worker:
        started.append(start())
        return started[-1]

    monkeypatch.setattr(local._Worker, "start", noted)
    yield started
    assert all(worker.process.returncode is not None for worker in started)


def test_processes_find_what_one_process_finds(workers):
    wanted = tasks(SOME)[:3]
    watcher = Watcher()
    there = dict(sweep.run(wanted, jobs=2, monitor=watcher, fresh=True))
    here = dict(sweep.run(wanted, fresh=True, executor=sweep.InProcess()))
    assert there.keys() == here.keys() == {task.key for task in wanted}
    assert {key: found.digest for key, found in there.items()} == {key: found.digest for key, found in here.items()}
    assert len(workers) == 2 and watcher.expected == watcher.begun == watcher.ended == 3 and watcher.ticks >= 3
    assert all(50e6 < found.peak_rss_bytes < 1e9 for found in there.values())


def test_a_run_whose_worker_was_killed_is_made_once_more(workers):
    wanted = tasks(SOME)[:2]
    watcher = Killer(kills=1, pool=workers)
    found = dict(sweep.run(wanted, jobs=2, monitor=watcher, fresh=True))
    assert found.keys() == {task.key for task in wanted}
    assert len(workers) == 3 and workers[0].process.returncode is not None
    assert watcher.begun == watcher.ended == watcher.expected == 3


def test_a_run_that_kills_every_worker_ends_with_a_line(workers):
    watcher = Killer(kills=2, pool=workers)
    with pytest.raises(CannotRun) as refused:
        list(sweep.run(tasks(LONG)[:1], jobs=1, monitor=watcher))
    said = str(refused.value)
    assert "grid/800, seed 1: 2 workers that ran it were lost, the last killed by signal 9 (SIGKILL)" in said
    assert "fewer --jobs" in said and "\n" not in said


def test_a_run_that_needs_too_much_memory_is_ended_with_a_line(workers):
    with pytest.raises(
        CannotRun, match=r"grid/800, seed 1: needs more than the 10 MiB of memory that a worker may have"
    ):
        list(sweep.run(tasks(LONG)[:1], executor=sweep.Processes(1, most_bytes=10 * 2**20)))


def test_a_worker_that_stays_large_is_replaced(workers, monkeypatch):
    monkeypatch.setattr(local, "LARGE_BYTES", 1)
    assert len(list(sweep.run(tasks()[:2], jobs=1))) == 2
    assert len(workers) == 2


def test_a_complaint_of_a_worker_keeps_its_kind(workers):
    with pytest.raises(AqmlabError, match="its scenario has another digest here"):
        list(sweep.run([replace(tasks()[0], digest="0" * 64)], jobs=1))


def test_an_engine_built_anew_meanwhile_ends_everything(workers, monkeypatch):
    wanted = tasks()[:1]
    monkeypatch.setattr(engine, "file_sha256", lambda: "another build")
    with pytest.raises(AqmlabError, match=r"a worker has another engine \(.*changed while runs were under way"):
        list(sweep.run(wanted, jobs=1, fresh=True))


def test_who_stops_asking_ends_the_workers(workers):
    asked = sweep.run([*tasks()[:1], *tasks(LONG)[:2]], jobs=2)
    next(asked)
    asked.close()
    assert workers and all(worker.process.returncode is not None for worker in workers)


def command(file: Path, out: Path, *more: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, "sweep", str(file), "-o", str(out), "--jobs", "2", *more]


HOW = {"ctrl-c": signal.SIGINT, "told to end": signal.SIGTERM, "killed": signal.SIGKILL}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see processes")
def test_stopped_in_the_middle_nothing_is_left_behind_and_resume_finds_the_same(tmp_path, monkeypatch):
    whole = {task.key: found.digest for task, found in sweep.InProcess().each(tasks(SHORT), Silent())}
    running = {}
    for name in HOW:  # side by side, for most of the time goes into starting
        (tmp_path / name / "scratch").mkdir(parents=True)
        (tmp_path / name / "grid.toml").write_text(GRID.format(duration=SHORT))
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(tmp_path / name / "scratch")}
        environment["AQMLAB_CACHE"] = str(tmp_path / name / "cache")
        running[name] = subprocess.Popen(
            command(tmp_path / name / "grid.toml", tmp_path / name / "out"),
            preexec_fn=hears_signals,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kept(name: str) -> int:
        return len(list((tmp_path / name / "cache/runs").glob("[!.]*")))

    def stop() -> bool:
        for name in running.keys() - workers.keys():
            if kept(name) >= 2 or running[name].poll() is not None:
                workers[name] = children(running[name].pid)
                running[name].send_signal(HOW[name])
        return len(workers) == len(running)

    workers: dict[str, list[int]] = {}
    until(stop, 300.0)
    for name, how in HOW.items():
        said = running[name].communicate(timeout=60)[1]
        until(lambda: not any(map(is_alive, workers[name])))  # noqa: B023
        if how != signal.SIGKILL:
            assert running[name].returncode == 130 and said.count("\n") == 1 and "--resume goes on" in said
            assert not list((tmp_path / name / "scratch").iterdir())
        finished = kept(name)
        assert 2 <= finished < 6 and len(workers[name]) == 2

        monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path / name / "cache"))
        asked = sweeps.read(tmp_path / name / "grid.toml")
        resumed = sweeps.run(asked, tmp_path / name / "out", resume=True, executor=sweep.InProcess())
        assert resumed.facts["runs_kept"] == finished and resumed.facts["runs_made"] == 6 - finished
        assert {row["digest"] for row in resumed.rows} == set(whole.values())
        assert pl.read_parquet(resumed.table).height == 6
