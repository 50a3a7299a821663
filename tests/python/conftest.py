"""Most tests of the Python side run on a stand-in for the compiled engine; those that need the engine say so."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(Path(__file__).parent))

import fake_native  # noqa: E402
from aqmlab import _native as native  # noqa: E402
from aqmlab import engine  # noqa: E402

NATIVE = native
"""The compiled engine, for the tests that need it."""

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


def hears_ctrl_c() -> None:
    """For `preexec_fn`: what a shell starts in the background, and all it starts, ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
