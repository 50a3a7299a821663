"""Runs that make no progress are ended with a line, long ones are not, and how long those take is said early."""

import pytest

import aqmlab
from aqmlab import engine
from aqmlab.errors import CannotRun
from aqmlab.progress import Size
from aqmlab.runs import watchdog
from aqmlab.runs.watchdog import Forecast, Watchdog
from conftest import NATIVE


def told(wall_s: float, time_s: float, events: int, ticks: int = 0, duration_s: float = 7200.0) -> dict[str, float]:
    return {
        **{"wall_s": wall_s, "time_s": time_s, "duration_s": duration_s},
        **{"events": events, "ticks": ticks, "bottleneck_packets": 0},
    }


def test_time_that_stands_still_ends_a_run():
    dog = Watchdog("pi")
    dog.heard(told(1, 3.0, 10**6))
    dog.heard(told(2, 3.0, 10**8))
    with pytest.raises(
        CannotRun, match=r"pi: makes no progress: 1\d\d,\d{3},\d{3} events at 3 s, and simulated time"
    ) as ended:
        dog.heard(told(3, 3.0, 2 * 10**8))
    assert "\n" not in str(ended.value)


def test_many_events_at_one_instant_after_the_other_do_not():
    dog = Watchdog("bulk")
    for k in range(1, 1000):
        dog.heard(told(k / 10, 1e-6 * k, 90_000_000 * k))


def test_ticks_that_would_take_more_than_a_day_end_a_run():
    """As `fq_afd w=1e6hz` on an idle link: a simulated millisecond a second, of which every event is a tick."""
    dog = Watchdog("afd")
    for second in range(60):
        dog.heard(told(second, 1e-3 * second, 10**6 * second, 10**6 * second))
    with pytest.raises(
        CannotRun, match=r"0\.06 s simulated in 60 s, the rest would take 83 days; 60,000,000 of 60,0"
    ) as ended:
        dog.heard(told(60, 0.06, 60_000_000, 60_000_000))
    assert "ticks of a discipline; expected one that updates less often" in str(ended.value)


def test_a_run_that_is_merely_long_goes_on():
    """The same pace, of packets: ten thousand flows that start at once may have passed their worst a minute later."""
    dog = Watchdog("bulk")
    for second in range(200):
        dog.heard(told(second, 1e-3 * second, 10**6 * second, 10**5 * second))


def test_an_idle_link_of_a_year_goes_on():
    """Nothing but ticks, at ten million a second: PI at 170 Hz does a year in nine minutes."""
    dog = Watchdog("idle")
    for second in range(200):
        dog.heard(told(second, second * 1e7 / 170, 10**7 * second, 10**7 * second, duration_s=3.15e7))


def test_how_long_a_run_will_take_is_said_once():
    said: list[str] = []
    monitor = Forecast(said.append)
    quick, slow, other = (monitor.begin(name, Size(7200.0, 7200.0)) for name in ("quick", "slow", "other"))
    monitor.tick(quick, told(6, 720.0, 1))
    monitor.tick(slow, told(4.9, 1.0, 1))
    assert said == []
    monitor.tick(slow, told(6.0, 4.0, 1))
    monitor.tick(other, told(6.0, 4.0, 1))
    assert said == ["slow: will take about 3 hours at this pace (4 of 7200 s simulated so far)"]


CRAWLING = """
duration = "7200s"
warmup = "0s"
record.interval = "7200s"
link = { rate = "3kbit", qdisc = { kind = "fq_afd", w = "1000000hz" } }
[[traffic]]
kind = "poisson"
arrivals = "50hz"
size = "30000b"
"""


def test_a_clock_far_finer_than_a_packet_is_found_within_an_interval(monkeypatch, tmp_path):
    """A packet takes 4 s, a tick a microsecond: 7.2e9 ticks in each direction, and more than a thousand queues."""
    monkeypatch.setattr(engine, "native", NATIVE)
    monkeypatch.setattr(watchdog, "LOOK_S", 0.1)
    monkeypatch.setattr(watchdog, "LONGEST_TICKING_S", 60.0)
    with pytest.raises(CannotRun, match=r"makes no progress: .* events were ticks of a discipline"):
        aqmlab.run(CRAWLING, out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
