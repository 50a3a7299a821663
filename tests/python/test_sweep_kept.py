"""Tests of what is kept of runs."""

import errno
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import fake_native
import studies
from aqmlab import sweep
from aqmlab.errors import Doubt, Interrupted
from aqmlab.study import definition, runs
from aqmlab.sweep import kept, sweeps
from aqmlab.sweep.kept import Kept
from grids import file, in_process, planned, runs_made

__all__ = ["file", "in_process"]


def test_what_is_kept_is_whole_or_not_there(tmp_path):
    task = planned()[0]
    ((key, found),) = sweep.run([task])
    cache = Kept(tmp_path / "runs")
    assert cache.get(key) is None and not cache.has(key)
    assert cache.put(found) and cache.put(found)  # again, as another process might
    assert cache.get(key).digest == found.digest and cache.size()[0] == 1
    (tmp_path / "runs" / key / "window.npz").unlink()
    assert cache.get(key) is None
    assert cache.put(found) and cache.get(key).digest == found.digest
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [key]


def test_what_is_no_run_is_not_counted_among_those_that_are_kept(tmp_path):
    ((_, found),) = sweep.run([planned()[0]])
    cache = Kept(tmp_path / "runs")
    assert cache.put(found)
    size = cache.size()
    (tmp_path / "runs/README").write_text("no run")
    assert cache.size() == size and size[0] == 1 and size[1] > 0


@pytest.mark.parametrize("torn", ["scenario.toml", "window.npz", "queue.parquet", "run.json"])
def test_a_run_that_is_torn_is_made_again(file, tmp_path, torn):
    first = sweeps.run(sweeps.read(file), tmp_path / "a")
    made = runs_made()
    victim = min(Kept().folder.iterdir()) / torn
    victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    again = sweeps.run(sweeps.read(file), tmp_path / "b")
    assert runs_made() == made + 1 and (again.facts["runs_made"], again.facts["runs_kept"]) == (1, 11)
    assert [row["digest"] for row in again.rows] == [row["digest"] for row in first.rows]
    sweeps.run(sweeps.read(file), tmp_path / "c")
    assert runs_made() == made + 1


def test_a_cache_that_can_only_be_read_is_read(tmp_path, monkeypatch):
    ((key, found),) = sweep.run([planned()[0]])
    cache = Kept(tmp_path / "runs")
    assert cache.put(found)

    def refuse(*given):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert cache.get(key).digest == found.digest


def test_what_cannot_be_kept_is_held_before_anything_older(tmp_path):
    ((key, found),) = sweep.run([planned()[0]])
    (tmp_path / "file").write_text("")
    nowhere = Kept(tmp_path / "file")
    assert not nowhere.put(found), "a file is no folder"
    assert nowhere.has(key) and nowhere.load(key) is found and not Kept(tmp_path / "file").has(key)

    cache = Kept(tmp_path / "runs")
    assert cache.put(found)
    newer = replace(found, facts={**found.facts, "digest": "newer"})
    cache._write = lambda _: False  # as on a disk that is full
    assert not cache.put(newer)
    assert cache.get(key).digest == cache.load(key).digest == "newer"
    del cache._write
    assert cache.put(newer) and cache._held == {} and cache.get(key).digest == "newer"


def test_two_may_keep_the_same_run_at_once_while_a_third_reads_it(tmp_path):
    ((key, found),) = sweep.run([planned()[0]])
    caches = [Kept(tmp_path / "runs") for _ in range(3)]
    assert caches[0].put(found)
    stop = threading.Event()

    def keep(cache: Kept) -> bool:
        return all(cache.put(found) for _ in range(50))

    def read() -> int:
        times = 0
        while not stop.is_set():
            again = caches[2].get(key)
            # Between two names it may not be there, and is then made again; it is never something else.
            times += again is not None and again.digest == found.digest and again.window.completed.size > 0
        return times

    with ThreadPoolExecutor(3) as pool:
        reader = pool.submit(read)
        kept_all = list(pool.map(keep, caches[:2]))
        stop.set()
        assert all(kept_all) and reader.result() > 0
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [key]


def test_old_leftovers_are_tidied_away(tmp_path, monkeypatch):
    (tmp_path / ".half-written").mkdir()
    (tmp_path / "in-use").mkdir()
    monkeypatch.setattr(kept, "STALE_S", -1.0)
    Kept(tmp_path).tidy()
    assert [path.name for path in tmp_path.iterdir()] == ["in-use"]
    monkeypatch.setattr(kept, "UNUSED_S", -1.0)
    Kept(tmp_path).tidy()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def unusable(tmp_path, monkeypatch):
    """The folder of runs below a cache that is a file."""
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "runs"


def stopped_after(monkeypatch, count):
    """Ctrl-C once so many runs are made."""
    simulate, before = fake_native.simulate, runs_made()

    def stopping(*given):
        if runs_made() == before + count:
            raise KeyboardInterrupt
        return simulate(*given)

    monkeypatch.setattr(fake_native, "simulate", stopping)


def test_a_sweep_that_cannot_keep_its_runs_says_so_and_promises_nothing(file, tmp_path, unusable, monkeypatch):
    stopped_after(monkeypatch, 5)
    said = f"{unusable}: runs cannot be kept there (Not a directory), and are made again if this is stopped; expected "
    with (
        pytest.warns(Doubt, match=re.escape(said)),
        pytest.raises(
            Interrupted, match=f"stopped: 5 of 12 runs .*; runs cannot be kept in {unusable}, and are made again$"
        ),
    ):
        sweeps.run(sweeps.read(file), tmp_path / "out")


def test_loads_that_cannot_be_kept_are_not_said_to_be(file, tmp_path, unusable, monkeypatch):
    stopped_after(monkeypatch, 0)
    with (
        pytest.warns(Doubt, match="runs cannot be kept"),
        pytest.raises(Interrupted, match=f"calibrating; nothing can be kept in {unusable.parent} [(]Not a directory"),
    ):
        sweeps.run(sweeps.read(file), tmp_path / "out")


def test_a_study_that_cannot_keep_its_runs_says_so_and_promises_nothing(tmp_path, unusable, monkeypatch):
    folder = studies.write(tmp_path / "tiny")
    stopped_after(monkeypatch, 3)
    with (
        pytest.warns(Doubt, match="runs cannot be kept there"),
        pytest.raises(Interrupted, match=r"stopped: 3 of 8 runs are finished; runs cannot be kept in .*again$"),
    ):
        runs.run({tmp_path / "out": definition.read(folder, "quick")})


def test_what_can_be_kept_goes_on(tmp_path, recwarn):
    cache = Kept(tmp_path / "runs")
    cache.check()
    assert not recwarn.list and cache.again() == "the same call with resume=True goes on"
    assert list((tmp_path / "runs").iterdir()) == []
