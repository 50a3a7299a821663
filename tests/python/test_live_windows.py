"""A limited window is kept between kernels as it is in simulation, in virtual time; left out where no kernel is."""

import os

import pytest

import aqmlab
from aqmlab import engine
from aqmlab.live import kernel
from aqmlab.runs import calibration
from conftest import NATIVE

KERNEL = os.environ.get(kernel.VARIABLE) or str(calibration.cache_folder() / "kernel/linux")
"""Looked for before tests have a cache of their own."""

SCENARIO = """
duration = "{seconds}s"
warmup = "0s"
[link]
rate = "40mbit"
qdisc = {{ kind = "pfifo", limit = "1000p" }}
[path]
rtt = "{rtt}ms"
[tcp]
stack = "linux"
window = "{window}"
[[traffic]]
kind = "bulk"
size = "{size}"
start = "1s"
"""

pytestmark = [
    pytest.mark.skipif(not hasattr(NATIVE, "live"), reason="left out: this build has no test bed"),
    pytest.mark.skipif(
        not os.access(KERNEL, os.X_OK), reason="left out: no kernel of virtual time (aqmlab kernel build)"
    ),
]


@pytest.mark.parametrize(
    ("window", "rtt", "size", "seconds"), [("64kb", 100, "4mb", 10), ("200kb", 20, "20mb", 8), ("128kb", 40, "4mb", 6)]
)
def test_a_window_lets_as_much_out_as_in_simulation(monkeypatch, tmp_path, window, rtt, size, seconds):
    monkeypatch.setattr(engine, "native", NATIVE)
    monkeypatch.setenv(kernel.VARIABLE, KERNEL)
    text = SCENARIO.format(window=window, rtt=rtt, size=size, seconds=seconds)
    took = [
        found.exchanges["response_time_s"][0]
        for found in (
            aqmlab.run(text, out=tmp_path / "r"),
            aqmlab.live(text, out=tmp_path / "l", virtual=True),
        )
    ]
    # A window a round trip, whatever the first round trips do.
    assert took[1] == pytest.approx(took[0], rel=0.03)
