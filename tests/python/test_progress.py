import io
import tomllib

import pytest
from rich.console import Console

from aqmlab.bars import Bars
from aqmlab.command import verbs
from aqmlab.engine import Load
from aqmlab.progress import Both, Foreseen, Silent, Size, announce
from aqmlab.remaining import Remaining
from aqmlab.runs.cost import expected_bits
from aqmlab.runs.progress_lines import Lines


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


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_number_of_a_bar_is_cut(width):
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    with Bars(console) as bars:
        bars.expect(72, Size(8640.0, 8640.0))
        run = bars.begin("rtt/peering/560ms/drop-tail, seed 2", Size(4320.0, 4320.0))
        bars.tick(run, {"time_s": 2160.0, "duration_s": 4320.0, "bottleneck_packets": 3e6, "wall_s": 1.0})
        bars._bars.refresh()
        bars.end(run)
    shown = console.file.getvalue()
    assert "…" not in shown and "2,160/4,320 s" in shown and "2,160/8,640 s" in shown and "25 %" in shown


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


@pytest.mark.parametrize("slots", [1, 2, 5])
@pytest.mark.parametrize("dearest_first", [True, False])
def test_the_time_left_is_right_all_along(monkeypatch, slots, dearest_first):
    """Two searches for loads, then runs of 1 to 40 s of work: what is left is told from the beginning, whatever comes
    first."""
    clock = Clock(monkeypatch)
    runs = sorted((float(1 + k * 7 % 40) for k in range(60)), reverse=dearest_first)
    first, after = Foreseen(clock.remaining), Foreseen(clock.remaining)
    first.foresee(10, Size(162.0, 162.0))
    after.foresee(len(runs), Size(sum(runs), sum(runs)))
    for stage in ([1.0, 1.0], [20.0] * 6, [20.0] * 2):
        clock.make(first, stage, slots)
    first.all_announced()
    clock.make(after, runs, slots)
    told = [(at, left_s) for at, left_s in clock.told if left_s is not None]
    assert len(told) > 0.9 * len(clock.told)
    for at, left_s in told:
        # A stage of a search leaves processors idle at its end, and so do the last runs.
        assert left_s == pytest.approx(clock.now - at, rel=0.15, abs=0.05 * clock.now), at


def test_runs_that_are_foreseen_and_do_not_come_are_taken_back(monkeypatch):
    clock = Clock(monkeypatch)
    after = Foreseen(clock.remaining)
    after.foresee(3, Size(30.0, 30.0))
    announce(after, 2, Size(20.0, 20.0))
    known = clock.remaining.remaining
    assert (known.runs, known.size) == (2, Size(20.0, 20.0))
    announce(after, 1, Size(5.0, 5.0))  # a run that is made once more
    assert (known.runs, known.size) == (3, Size(25.0, 25.0))


class Clock:
    """Makes runs on so many processors, each as long as its cost, and notes at every change what is said to be left."""

    def __init__(self, monkeypatch) -> None:
        self.now = 0.0
        self.told: list[tuple[float, float | None]] = []
        self.remaining = Reckoned()
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def make(self, monitor: Foreseen, costs: list[float], slots: int) -> None:
        monitor.expect(len(costs), Size(sum(costs), sum(costs)))
        monitor.share(slots)
        waiting, going = list(costs), dict[int, tuple[float, float]]()
        while waiting or going:
            while waiting and len(going) < slots:
                cost = waiting.pop(0)
                going[monitor.begin("", Size(cost, cost))] = self.now + cost, self.now
            self.told.append((self.now, self.remaining.remaining.left_s))
            run = min(going, key=going.__getitem__)
            self.now, _ = going.pop(run)
            monitor.end(run)
            for other, (_, began) in going.items():
                monitor.tick(other, {"time_s": self.now - began})


class Reckoned(Silent):
    """A monitor that does nothing but reckon."""

    def __init__(self) -> None:
        self.remaining = Remaining()
        self.next = 0

    def expect(self, runs, size):
        self.remaining.expect(runs, size)

    def share(self, at_once):
        self.remaining.share(at_once)

    def tick(self, run, tick):
        self.remaining.tick(run, tick["time_s"])

    def begin(self, label, size):
        self.next += 1
        self.remaining.begin(self.next, size)
        return self.next

    def end(self, run):
        self.remaining.end(run)


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


@pytest.mark.parametrize(
    ("as_json", "are_several", "is_said"), [(False, True, True), (False, False, False), (True, True, False)]
)
def test_of_several_runs_a_line_says_each_minute_how_far_they_are(as_json, are_several, is_said, capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with verbs.watched(as_json, are_several) as monitor:
        monitor.expect(4, Size(40.0, 4.0))
        for k in range(2):
            run = monitor.begin(f"run {k}", Size(10.0, 1.0))
            now[0] += 61.0
            monitor.end(run)
    said = capsys.readouterr().err
    assert said.count("\n") == (2 if is_said else 0)
    if is_said:
        assert said.splitlines()[0] == "aqmlab: 1 of 4 runs, 3:03 left"
