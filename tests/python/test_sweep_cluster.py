"""Runs on a Dask cluster on this machine: as without one, and whatever happens to its scheduler and workers.

Tests that take something away from the cluster stand last, in this order.
"""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from aqmlab import cli, engine, sweep
from aqmlab.errors import AqmlabError, CannotRun, Misbehaved
from aqmlab.laws import brought
from aqmlab.progress import Silent, Size
from aqmlab.sweep import cluster, cluster_worker, grid, local, plan
from aqmlab.sweep.maker import sources_sha256
from conftest import NATIVE, ROOT
from own_laws import own
from processes import children, is_alive
from watcher import Watcher, until

pytest.importorskip("distributed", reason="needs the package distributed")

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
values = [800, 1200]
"""

SHORT, LONG = "6s", "600s"
"""Long enough for several reports of progress, which come ten times a second."""

PACKAGE = ROOT / "python"


class Site:
    """A scheduler and its workers, as one starts them by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        about = folder / "scheduler.json"
        self.scheduler = self._dask("scheduler", "--port", "0", "--scheduler-file", str(about))
        until(lambda: about.exists() and about.read_text().endswith("}"))
        self.address = json.loads(about.read_text())["address"]

    def worker(self, name: str, package: Path = PACKAGE) -> None:
        """Starts a worker that has aqmlab from `package`."""
        own = ("--no-nanny", "--nthreads", "1", "--local-directory", str(self.folder / name))
        self.workers[name] = self._dask("worker", self.address, "--name", name, *own, package=package)

    def close(self) -> None:
        """Kills everybody; what workers had started must end by itself."""
        started = [child for worker in self.workers.values() for child in children(worker.pid)]
        for process in (*self.workers.values(), self.scheduler):
            process.kill()
            process.wait()
        until(lambda: not any(map(is_alive, started)))

    def _dask(self, *arguments: str, package: Path = PACKAGE) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "dask", *arguments, "--host", "127.0.0.1", "--no-dashboard"]
        environment = {**os.environ, "PYTHONPATH": str(package), "DASK_TEMPORARY_DIRECTORY": str(self.folder)}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=log, stderr=log)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    try:
        site.worker("one")
        site.worker("two")
        yield site
    finally:
        site.close()


@pytest.fixture(autouse=True)
def compiled(stand_in, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


@pytest.fixture
def reached(site) -> Iterator[cluster.Cluster]:
    """The cluster, with both workers there."""
    with cluster.connected(site.address, 60.0) as executor:
        assert isinstance(executor, cluster.Cluster)
        until(lambda: len(executor.workers()) == 2)
        yield executor


def tasks(duration: str = SHORT) -> list[plan.Task]:
    (one,) = grid.read({**tomllib.loads(GRID.format(duration=duration)), "seeds": 2}, "grid.toml")
    return plan.plan([(point, seed) for point in one.points for seed in (1, 2)])


def same(found: sweep.Condensed, expected: sweep.Condensed) -> bool:
    return (
        found.digest == expected.digest
        and found.demand_digest == expected.demand_digest
        and found.scenario_toml == expected.scenario_toml
        and found.queue.equals(expected.queue)
    )


@pytest.fixture(scope="module")
def here() -> dict[str, sweep.Condensed]:
    """What is found without a cluster."""
    before, engine.native = engine.native, NATIVE
    try:
        return {task.key: found for task, found in sweep.InProcess().each(tasks(LONG), Silent())}
    finally:
        engine.native = before


def test_a_cluster_finds_what_one_process_finds(reached, here):
    watcher = Watcher()
    there = dict(sweep.run(tasks(LONG), monitor=watcher, executor=reached))
    assert there.keys() == here.keys() and all(same(there[key], here[key]) for key in here)
    assert watcher.expected == watcher.begun == watcher.ended == 4 and watcher.ticks >= 4
    assert all(sweep.Kept().has(key) for key in there)
    assert dict(sweep.run(tasks(LONG), executor=SimpleNamespace(each=None))).keys() == there.keys(), "kept here"


def test_files_that_a_scenario_names_are_sent_along(reached, tmp_path):
    (tmp_path / "below").mkdir()
    shutil.copy(ROOT / "examples/vectors/internet2-like.cvec", tmp_path / "sample.cvec")
    tree = tomllib.loads(GRID.format(duration="30s"))
    tree["scenario"]["traffic"] = [{"kind": "tmix", "vectors": "../sample.cvec"}]
    tree["grid"] = [{"axis": [{"name": "limit", "key": "link.qdisc.limit", "values": ["12p", "24p"]}]}]
    (one,) = grid.read(tree, str(tmp_path / "below/grid.toml"))
    wanted = plan.plan([(point, 1) for point in one.points])
    assert all(task.files for task in wanted)
    there = dict(sweep.run(wanted, executor=reached))
    alone = {task.key: found for task, found in sweep.InProcess().each(wanted, Silent())}
    assert there.keys() == alone.keys() and all(same(there[key], alone[key]) for key in alone)
    (tmp_path / "sample.cvec").unlink()
    assert len(list(reached.each(wanted, Silent()))) == 2, "sent to each worker once"


def test_a_law_is_sent_along(reached, tmp_path, monkeypatch):
    """Workers have no law of this process; they run the file that it sent, which is its user's."""
    monkeypatch.setattr(brought, "_ALLOWED", ContextVar("allowed", default=frozenset()))
    shutil.copy(ROOT / "examples/laws/my_codel.py", tmp_path / "my_codel.py")
    brought.allow(tmp_path / "my_codel.py")
    tree = tomllib.loads(GRID.format(duration="12s"))
    tree["scenario"]["link"]["qdisc"] = {"kind": "./my_codel.py"}
    tree["scenario"]["traffic"] = [{"kind": "bulk", "flows": 4}]
    tree["grid"] = [{"axis": [{"name": "target", "key": "link.qdisc.target", "values": ["2ms", "9ms"]}]}]
    (one,) = grid.read(tree, str(tmp_path / "grid.toml"))
    wanted = plan.plan([(point, 1) for point in one.points])
    there = dict(sweep.run(wanted, executor=reached))
    alone = {task.key: found for task, found in sweep.InProcess().each(wanted, Silent())}
    assert len(there) == 2 and there.keys() == alone.keys() and all(same(there[key], alone[key]) for key in alone)


def test_of_a_law_that_fails_there_is_told_and_the_others_go_on(reached, tmp_path, monkeypatch):
    monkeypatch.setattr(brought, "_ALLOWED", ContextVar("allowed", default=frozenset()))
    brought.allow(own(tmp_path, 'return "x" if self.every == 7 else 0', "(compiled=False)"))
    tree = tomllib.loads(GRID.format(duration=SHORT))
    tree["scenario"] |= {"link": {"rate": "10mbit", "qdisc": {"kind": "./mine.py"}}, "traffic": [{"kind": "bulk"}]}
    tree["grid"] = [{"axis": [{"name": "every", "key": "link.qdisc.every", "values": [50, 7]}]}]
    (one,) = grid.read(tree, str(tmp_path / "grid.toml"))
    wanted = plan.plan([(point, 1) for point in one.points])
    failed = []
    (found,) = sweep.run(wanted, executor=reached, spare=lambda task, error: failed.append((task.point, str(error))))
    assert found[0] == wanted[0].key
    ((point, message),) = failed
    assert point == "grid/7" and message.startswith("worker tcp://") and "the law mine failed" in message
    with pytest.raises(Misbehaved, match="the law mine failed"):
        list(sweep.run(wanted[1:], executor=reached))


def test_a_complaint_of_a_worker_names_it_and_keeps_its_kind(reached):
    with pytest.raises(AqmlabError, match=r"^worker tcp://127\.0\.0\.1:\d+: grid/800, seed 1: .* another digest here"):
        list(reached.each([replace(tasks()[0], digest="0" * 64)], Silent()))


def test_who_stops_asking_ends_what_is_under_way(reached, site):
    asked = sweep.run(tasks("20000s"), executor=reached, monitor=(watcher := Watcher()))
    with pytest.raises(KeyboardInterrupt):
        watcher.tick = interrupt
        next(asked)
    # Some twenty seconds of simulation each, at best: what ends now was told to.
    at_work = lambda dask_worker: len(dask_worker.active_threads)  # noqa: E731 - a named one would have to be there
    until(lambda: not any(reached.client.run(at_work).values()), 10.0)
    assert watcher.begun == watcher.ended >= 1
    assert len(list(reached.each(tasks()[:1], Silent()))) == 1, "and workers are free again"


def interrupt(run, tick) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("address", "code", "complaint"),
    [
        ("tcp://127.0.0.1:{free}", 3, "no Dask scheduler answers within 1 s"),
        ("tcp://nowhere.invalid:8786", 3, "no Dask scheduler answers within 1 s"),
        ("tcp://127.0.0.1", 2, "expected the address of a Dask scheduler: tcp://HOST:8786"),
        ("laboratory", 2, "'laboratory': expected the address of a Dask scheduler"),
    ],
)
@pytest.mark.parametrize("verb", ["sweep", "study"])
def test_who_cannot_be_reached_is_said_in_a_line(tmp_path, capsys, monkeypatch, verb, address, code, complaint):
    monkeypatch.setattr(cluster, "CONNECT_S", 1.0)
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(GRID.format(duration=SHORT))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        where = address.format(free=unused.getsockname()[1])
        started = time.monotonic()
        assert cli.invoke([verb, "grid.toml" if verb == "sweep" else "le2003", "--scheduler", where]) == code
    said = capsys.readouterr().err
    assert said.startswith("aqmlab: --scheduler: ") and complaint in said and said.count("\n") == 1
    assert time.monotonic() - started < 20.0 and not Path("results").exists()


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CannotRun, match=r"needs the Python package distributed .* pip install 'aqmlab\[cluster\]'"):
        cluster.Cluster("tcp://127.0.0.1:8786")


@pytest.mark.parametrize(("limit", "share"), [(8 * 2**30, 2 * 2**30), (None, local.memory_bytes() * local.SHARE / 4)])
def test_a_run_may_have_its_share_of_the_memory_of_its_worker(limit, share):
    worker = SimpleNamespace(memory_manager=SimpleNamespace(memory_limit=limit), state=SimpleNamespace(nthreads=4))
    assert cluster_worker.share_of(worker) == pytest.approx(share, abs=1.0)  # whole bytes


@pytest.mark.parametrize(
    ("state", "status", "goes_on"),
    [("executing", "running", True), ("cancelled", "running", False), ("executing", "closing", False)],
)
def test_a_worker_ends_what_nobody_wants_or_it_cannot_finish(state, status, goes_on):
    told = []
    worker = SimpleNamespace(
        address="tcp://127.0.0.1:1",
        state=SimpleNamespace(tasks={"key": SimpleNamespace(state=state)}),
        status=SimpleNamespace(name=status),
        get_current_task=lambda: "key",
        log_event=lambda topic, what: told.append(what["tick"]),
    )
    teller = cluster_worker._Teller(worker, cluster_worker.Order("session", tasks()[0], cluster_worker.own_engine()))
    run = teller.begin("a run", Size(6.0, 6.0))
    with contextlib.nullcontext() if goes_on else pytest.raises(cluster_worker._Left):
        teller.tick(run, {"time_s": 1.0})
        teller.tick(run, {"time_s": 2.0})  # too soon to be told
    assert told == ([None, {"time_s": 1.0}] if goes_on else [None])


def names_at(executor: cluster.Cluster) -> dict[str, str]:
    """What the test calls the workers."""
    workers = executor.client.scheduler_info()["workers"]
    return {address: facts["name"] for address, facts in workers.items()}


def test_a_run_whose_worker_is_killed_is_made_by_the_other(reached, site, here, monkeypatch):
    names = names_at(reached)
    told, killed = cluster._Session._tell, []

    def kill(session, what) -> None:
        told(session, what)
        if not killed and what["tick"] is not None and what["key"] in session.under_way:
            worker = site.workers.pop(names[what["worker"]])
            killed.extend(children(worker.pid))
            worker.send_signal(signal.SIGKILL)
            worker.wait()

    monkeypatch.setattr(cluster._Session, "_tell", kill)
    watcher = Watcher()
    there = dict(sweep.run(tasks(LONG), executor=reached, monitor=watcher))
    assert killed and there.keys() == here.keys() and all(same(there[key], here[key]) for key in here)
    # Everything it had is made again, be it that it ran or that it was about to.
    assert watcher.begun == watcher.ended == watcher.expected >= 5
    until(lambda: not any(map(is_alive, killed)), 10.0)


def test_a_run_that_loses_every_worker_ends_with_a_line(site, monkeypatch):
    site.worker("three")
    with cluster.connected(site.address, 60.0) as executor:
        until(lambda: len(executor.workers()) == 2)
        names = names_at(executor)
        # The scheduler gives it to no other worker by itself, so that it is handed in again from here.
        executor.client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        told = cluster._Session._tell

        def kill(session, what) -> None:
            told(session, what)
            worker = site.workers.pop(names[what["worker"]], None) if what["tick"] is not None else None
            if worker is not None:
                worker.send_signal(signal.SIGKILL)
                worker.wait()

        monkeypatch.setattr(cluster._Session, "_tell", kill)
        with pytest.raises(CannotRun) as refused:
            list(executor.each(tasks("20000s")[:1], watcher := Watcher()))
    said = str(refused.value)
    assert said.startswith("grid/800, seed 1: 2 workers that had it were lost, the last tcp://127.0.0.1:")
    assert watcher.begun == watcher.ended == 2 and not site.workers


def test_a_cluster_that_stays_without_workers_ends_with_a_line(site):
    with pytest.raises(CannotRun, match=r"no worker for 0 s; expected some: dask worker tcp://127\.0\.0\.1"):
        cluster.Cluster(site.address, 0.1)


@pytest.fixture(scope="module")
def other(site) -> str:
    """The SHA-256 of the engine of a worker that has another build: the same with a byte more at its end."""
    package = site.folder / "package/aqmlab"
    shutil.copytree(PACKAGE / "aqmlab", package, copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__"))
    engine_file = package / Path(NATIVE.__file__).name
    engine_file.unlink()
    content = Path(NATIVE.__file__).read_bytes() + b"\0"
    engine_file.write_bytes(content)
    site.worker("other", package.parent)
    return hashlib.sha256(content).hexdigest()


def test_a_worker_with_another_engine_is_refused(site, other):
    with pytest.raises(
        CannotRun, match=rf"^worker tcp://127.*: has another engine \(version .*, SHA-256 {other[:12]};"
    ):
        cluster.Cluster(site.address, 60.0)


def test_a_worker_with_another_engine_that_comes_later_is_refused(site, other, monkeypatch):
    monkeypatch.setattr(cluster.Cluster, "check", lambda _: None)  # as if it had not been there
    with (
        cluster.connected(site.address, 60.0) as executor,
        pytest.raises(CannotRun, match=rf"^worker tcp://127.*: has another engine \(version .*, SHA-256 {other[:12]};"),
    ):
        list(executor.each(tasks()[:1], Silent()))


def test_other_sources_of_the_same_engine_are_said_so():
    version, sha256, sources = cluster.own_engine()
    said = cluster._differs((version, sha256, "0" * 64))
    assert said.startswith(
        f"other Python sources of the same engine (SHA-256 000000000000; here {sources[:12]}); expected"
    )
    assert cluster._differs((version, "0" * 64, sources)).startswith(f"another engine (version {version}, SHA-256 000")


def test_a_scheduler_that_goes_away_ends_with_a_line(site, other, monkeypatch):
    monkeypatch.setattr(cluster, "own_engine", lambda: (engine.version(), other, sources_sha256()))  # as if it was here
    with cluster.connected(site.address, 60.0) as executor:
        watcher = Watcher()
        watcher.tick = lambda run, tick: site.scheduler.kill()
        with pytest.raises(CannotRun, match=r"the connection is lost; what is finished is kept: start again to go on"):
            list(executor.each(tasks("20000s")[:1], watcher))
    until(lambda: not any(children(worker.pid) for worker in site.workers.values()), 30.0)
