import io
import tomllib

import pytest
from rich.console import Console

from aqmlab.bars import Bars
from aqmlab.engine import Load
from aqmlab.progress import Both, Size
from aqmlab.runs.cost import expected_bits
from aqmlab.study.lines import Lines


def test_bars_show_percent_time_rate_and_time_left():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=140, color_system=None)
    with Bars(console) as bars:
        bars.expect(2, Size(200.0, 200.0))
        run = bars.begin("PI 24", Size(100.0, 100.0))
        bars.tick(run, {"time_s": 25.0, "duration_s": 100.0, "bottleneck_packets": 3e6, "wall_s": 1.0})
        bars._bars.refresh()
        bars.end(run)
    shown = out.getvalue()
    for word in ("PI 24", "25 %", "25/100 s simulated", "3.00 M packets/s", "0:03 left", "0 of 2 runs", "12 %"):
        assert word in shown, word


def test_what_calibration_adds_is_added():
    bars = Bars(Console(file=io.StringIO(), force_terminal=True))
    bars.expect(1, Size(100.0, 100.0))
    bars.expect(3, Size(300.0, 300.0))
    bars.end(bars.begin("one", Size(100.0, 100.0)))
    (overall,) = bars._bars.tasks
    assert (overall.total, overall.completed) == (400.0, 100.0)
    assert overall.percentage == pytest.approx(25)


def test_time_left_is_reckoned_by_what_each_run_costs(monkeypatch):
    """The dearest run comes first: it is a third of the simulated time and nine tenths of the work."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    bars, said = Bars(Console(file=io.StringIO(), force_terminal=True)), list[str]()
    lines = Lines(said.append, "runs")
    both = Both(bars, lines)
    both.expect(1, Size(100.0, 900.0))
    both.expect(2, Size(200.0, 100.0))
    run = both.begin("dear", Size(100.0, 900.0))
    now = 90.0
    both.end(run)
    (overall,) = bars._bars.tasks
    assert overall.percentage == pytest.approx(90)
    assert (overall.fields["done_s"], overall.fields["of_s"]) == (100.0, 300.0)
    assert said == ["1 of 3 runs, 0:10 left"]


def test_a_cost_is_the_bits_that_links_carry():
    def cost(changes=(), load=None):
        tree = tomllib.loads(ONE)
        tree["traffic"][0].update(dict(changes))
        loads = [] if load is None else [Load(0, load, "forward")]
        return expected_bits(tree, "one.toml", loads)

    assert cost() == 1e7 * 20  # a block fills its link
    assert cost({"direction": "both"}) == 3e7 * 20
    assert cost({"direction": "both"}, 5e6) == 1e7 * 20
    assert cost(load=1e9) == pytest.approx(1.2e7 * 20)


ONE = """
duration = "20s"
[link]
rate = "10mbit"
reverse_rate = "20mbit"
[[traffic]]
kind = "bulk"
"""
