import io

import pytest
from rich.console import Console

from aqmlab.bars import Bars


def test_bars_show_percent_time_rate_and_time_left():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=140, color_system=None)
    with Bars(console) as bars:
        bars.expect(2, 200.0)
        run = bars.begin("PI 24", 100.0)
        bars.tick(run, {"time_s": 25.0, "duration_s": 100.0, "bottleneck_packets": 3e6, "wall_s": 1.0})
        bars._bars.refresh()
        bars.end(run)
    shown = out.getvalue()
    for word in ("PI 24", "25 %", "25/100 s simulated", "3.00 M packets/s", "0:03 left", "0 of 2 runs", "12 %"):
        assert word in shown, word


def test_what_calibration_adds_is_added():
    bars = Bars(Console(file=io.StringIO(), force_terminal=True))
    bars.expect(1, 100.0)
    bars.expect(3, 300.0)
    bars.end(bars.begin("one", 100.0))
    (overall,) = bars._bars.tasks
    assert (overall.total, overall.completed) == (400.0, 100.0)
    assert overall.percentage == pytest.approx(25)
