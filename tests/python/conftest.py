"""Most tests of the Python side run on a stand-in for the compiled engine; those that need the engine say so."""

import signal
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(Path(__file__).parent))

import fake_native  # noqa: E402
import studies  # noqa: E402
from aqmlab import _native as native  # noqa: E402
from aqmlab import engine, sweep  # noqa: E402
from aqmlab.errors import CannotRun  # noqa: E402
from aqmlab.laws import brought  # noqa: E402
from aqmlab.live import plan, preflight, process, runs  # noqa: E402
from aqmlab.live.settings import Settings  # noqa: E402
from aqmlab.results import settled  # noqa: E402
from aqmlab.sweep import making  # noqa: E402

NATIVE = native
"""The compiled engine, for the tests that need it."""

CHILD = Path(__file__).with_name("fake_child.py")

BLANK = {"svg": b'<svg viewBox="0 0 1 1"></svg>', "png": b"\x89PNG"}
"""What `undrawn` has in the place of each figure."""

BASE = """
name = "web users"
duration = "30s"
warmup = "10s"
seed = 7

[link]
rate = "100mbit"
[link.qdisc]
kind = "pfifo"

[tcp]
stack = "freebsd4"

[[traffic]]
kind = "web"
model = "unc2001"
load = "98mbit"
"""


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(engine, "native", fake_native)
    monkeypatch.setattr(fake_native, "calls", [])
    monkeypatch.setattr(fake_native, "delay_per_tick_s", 0.0)
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path / "cache"))
    yield


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "web.toml"
    path.write_text(BASE)
    return path


@pytest.fixture
def small(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario whose live runs a stand-in for the test bed makes."""
    base.write_text(base.read_text().replace('load = "98mbit"', "users = 18000"))
    for module in (plan, runs):
        monkeypatch.setattr(
            module, "settings", lambda resolved: Settings({"net.ipv4.tcp_congestion_control": "reno"}, "", (), ())
        )
    monkeypatch.setattr(preflight, "check", lambda: None)
    monkeypatch.setattr(preflight, "beside", list)  # other tests run beside this one
    monkeypatch.setattr(preflight, "controllers", lambda: ["reno"])
    monkeypatch.setattr(plan.virtual, "check", lambda kernel: None)
    # Which disciplines a kernel has, and how they are set up there, is not the stand-in's to know.
    monkeypatch.setattr(plan.kernel_qdisc, "check", lambda resolved: None)
    monkeypatch.setattr(plan, "_said_inside", lambda kernel: {"failed": "a stand-in"})
    monkeypatch.setattr(plan.kernel_qdisc, "settings", lambda resolved, is_virtual: None)
    monkeypatch.setattr(plan.kernel_qdisc, "remarks", lambda resolved: [])
    monkeypatch.setattr(
        process, "arguments", lambda folder, is_virtual, kernel=None: [sys.executable, str(CHILD), str(folder)]
    )
    monkeypatch.delenv("FAKE_CHILD", raising=False)
    return base


@pytest.fixture
def undrawn() -> Iterator[pytest.MonkeyPatch]:
    """Figures are made up, but neither laid out nor written, which takes longer than the runs of a short test.

    A test that looks at them says `undrawn.undo()`.
    """
    from aqmlab.figures import drawers, drawn

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(drawers, "MOST", 0)  # in this process
        patched.setattr(drawn, "_lay_out", lambda *_: None)
        patched.setattr(drawn, "_saved", lambda figure, format, dpi=0.0: BLANK[format])
        yield patched


@pytest.fixture
def settled_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is found to be settled: those of seconds that tests make are too short to tell."""
    monkeypatch.setattr(settled, "of_run", lambda *_: settled.Finding("yes", 1.0, 0.0))


def hears_signals() -> None:
    """For `preexec_fn`: what a shell starts in the background ignores Ctrl-C, and what nohup starts SIGHUP."""
    numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    for number in numbers:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


@pytest.fixture
def compiled(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled engine in the place of the stand-in."""
    monkeypatch.setattr(engine, "native", NATIVE)


@pytest.fixture
def real_hosts(compiled: None) -> None:
    """Skips where this machine cannot make live runs."""
    try:
        preflight.check()
    except CannotRun as reason:
        pytest.skip(str(reason))


@pytest.fixture
def nothing_allowed(compiled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled engine, in a process that was allowed to run no code of a scenario's yet."""
    monkeypatch.setattr(brought, "_ALLOWED", ContextVar("allowed", default=frozenset()))


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A scenario for laws of tests' own: `own_laws.SCENARIO` in a file."""
    from own_laws import SCENARIO

    path = tmp_path / "link.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Runs are made in this process, which has the stand-in; results go below its folder."""
    monkeypatch.setattr(making, "Processes", lambda jobs: sweep.InProcess())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(here: Path) -> Path:
    """A study of few points, which `aqmlab study tiny` finds."""
    return studies.write(here / "tiny")
