"""Whether runs are settled: what is followed of their tables, and what is said of it."""

import json
import re

import numpy as np
import polars as pl
import pytest

import aqmlab
from aqmlab import report
from aqmlab.results import settled
from aqmlab.stationarity import NO, UNKNOWN, YES
from conftest import NATIVE, engine

WINDOW = (100.0, 200.0)
WEB = [{"kind": "web", "users": 3}]


def queue(probability, interval=0.1, **columns):
    """The queue table of a run of 200 s, whose probability over the window is given."""
    steps = np.arange(1, round(200 / interval) + 1) * interval
    values = np.zeros(steps.size)
    values[-len(probability) :] = probability
    rows = {"time_s": steps, "probability": values, "queue_packets": np.zeros(steps.size, dtype=np.uint32), **columns}
    return pl.concat([pl.DataFrame(rows).with_columns(direction=pl.lit(way, pl.UInt8)) for way in (0, 1)])


def noise(n=1000, seed=1):
    return np.abs(np.random.default_rng(seed).normal(1, 0.1, n))


def test_a_window_without_a_trend_is_settled_and_one_with_it_is_not():
    steady = settled.of_run(queue(noise()), None, WINDOW, [])
    assert (steady.answer, steady.p > 0.05) == (YES, True)
    # Both directions' probability and queue are followed; the queue, which is always empty, too.
    assert [one.name for one in steady.series] == [
        f"{what}, {way}" for what in ("probability", "queue") for way in ("forward", "reverse")
    ]
    settling = 0.3 * (1 - np.exp(-5 * np.linspace(0, 1, 1000)))
    climbing = settled.of_run(queue(noise() + settling), None, WINDOW, [])
    assert climbing.answer == NO and climbing.cut_s > 5
    worst = climbing.series[0]
    # 1 and 0.3 (1 - 2 (1 - e^-0.5)) = 0.064 more in the first tenth, 0.297 in the last; 100 values of deviation 0.1.
    assert worst.answer == NO and (worst.begins, worst.ends) == pytest.approx((1.064, 1.297), abs=0.04)
    for height in (1, 10, 1000):
        assert settled.of_run(queue(noise() + np.linspace(0, height, 1000)), None, WINDOW, []).answer == NO


def test_what_goes_on_before_the_window_does_not_count():
    table = queue(np.concatenate([np.linspace(9, 1, 1000), noise()]))
    assert settled.of_run(table, None, WINDOW, []).answer == YES
    assert settled.of_run(table, None, (0.0, 200.0), []).answer == NO


def test_a_window_that_is_too_short_or_too_slow_says_so():
    assert settled.of_run(queue(noise(10), interval=10.0), None, WINDOW, []).answer == UNKNOWN
    slow = np.sin(np.linspace(0, 4 * np.pi, 1000))  # two swings: as good as two observations
    assert settled.of_run(queue(1 + slow), None, WINDOW, []).answer == UNKNOWN
    assert settled.of_run(queue(noise()).clear(), None, WINDOW, []).answer == UNKNOWN


def test_a_discipline_without_a_probability_is_followed_by_its_queue():
    table = queue(noise()).with_columns(probability=pl.lit(None, pl.Float64))
    assert [one.name for one in settled.of_run(table, None, WINDOW, []).series] == ["queue, forward", "queue, reverse"]


def exchanges(path, rows):
    """A table of start, response time, block and user."""
    start, response, block, source = zip(*rows, strict=True)
    table = {"start_s": start, "response_time_s": response, "traffic": block, "source": source}
    types = {"traffic": pl.UInt16, "source": pl.UInt32}
    pl.DataFrame(table, schema_overrides=types).write_parquet(path)
    return path


def test_exchanges_under_way_and_users_who_wait_are_counted(tmp_path):
    # Cells of 0.25 s, their middles at 100.125 and so on: the first exchange spans 8 of them, the other two 4 each.
    rows = [(100.0, 2.0, 0, 0), (101.0, 1.0, 0, 0), (101.0, 1.0, 0, 2)]
    found = dict(settled.series(queue(noise()), exchanges(tmp_path / "e.parquet", rows), WINDOW, WEB))
    assert found[settled.UNDER_WAY][:9].tolist() == [1, 1, 1, 1, 3, 3, 3, 3, 0]
    assert found[settled.WAITING][:9].tolist() == [1, 1, 1, 1, 2, 2, 2, 2, 0]
    # The last tenth of the window is left out: of what is under way there the table may not know.
    assert found[settled.UNDER_WAY].size == 360


def test_what_is_never_completed_is_no_trend(tmp_path):
    # A steady stream, of which one in five takes 30 s: those of the last 30 s of the window are not in its table.
    rng = np.random.default_rng(5)
    start = np.sort(rng.uniform(0, 200, 20_000))
    response = np.where(rng.random(20_000) < 0.2, 30.0, 0.2)
    done = start + response
    rows = [(s, r, 0, 0) for s, r, d in zip(start, response, done, strict=True) if 100 <= d <= 200]
    path = exchanges(tmp_path / "e.parquet", rows)
    assert settled.of_run(queue(noise()), path, WINDOW, WEB).answer == YES


def test_more_demand_than_can_be_served_is_found(tmp_path):
    # A hundred a second, which take 0.2 s in the mean at first and 0.4 s from half a minute on.
    rng = np.random.default_rng(6)
    start = np.sort(rng.uniform(90, 200, 11_000))
    response = rng.exponential(0.4 - 0.2 * np.exp(-(start - 100) / 15).clip(0, 1))
    rows = [(s, r, 0, 0) for s, r in zip(start, response, strict=True) if 100 <= s + r <= 200]
    found = settled.of_run(queue(noise()), exchanges(tmp_path / "e.parquet", rows), WINDOW, WEB)
    assert found.answer == NO and {one.name for one in found.series if one.answer == NO} == {settled.UNDER_WAY}


def test_blocks_without_users_have_nobody_who_waits(tmp_path):
    path = exchanges(tmp_path / "e.parquet", [(100.0, 2.0, 0, 7)])
    assert settled.WAITING not in dict(settled.series(queue(noise()), path, WINDOW, [{"kind": "bulk"}]))


def test_runs_are_judged_together():
    yes, no, short = ({"answer": a, "p": p} for a, p in ((YES, 0.5), (NO, 0.01), (UNKNOWN, 0.5)))
    assert settled.pooled([yes, yes])[0] == YES
    assert settled.pooled([yes, short])[0] == UNKNOWN
    assert settled.pooled([yes, no])[0] == NO
    # One in a hundred of six runs is chance.
    assert settled.pooled([no, *[yes] * 5])[0] == YES
    assert settled.pooled([no], level=0.0)[0] == YES
    assert settled.pooled([yes, None])[0] is None and settled.pooled([])[0] is None


def followed(z: float, freedom: float = 9.0, climb: float = 0.0) -> dict:
    """A run with one series, whose statistic is the normal deviate z."""
    from scipy import stats

    statistic = float(stats.t.ppf(stats.norm.cdf(z), freedom))
    p = 2 * stats.norm.sf(abs(z))
    answer = NO if p < 0.05 else YES if freedom >= 5 else UNKNOWN
    one = {"name": "queue, forward", "answer": answer, "statistic": statistic, "freedom": freedom, "p": p}
    one |= {"begins": 10.0 + z, "ends": 10.0 - z, "cut_s": 1.0, "climb": climb}
    return {"answer": answer, "p": p, "cut_s": 1.0, "series": [one]}


def test_several_runs_are_asked_what_they_have_in_common():
    # Scores of settled runs scatter by more than they should, and the rarest of many is rare: that is no trend of all.
    assert settled.pooled([followed(z) for z in (3.2, -2.4, 0.3, -1.9, 1.1)])[0] == YES
    # A trend that none of them shows for certain is one of all.
    weak = [followed(z) for z in (1.7, 1.5, 1.9, 1.6, 1.8, 1.4)]
    assert all(one["answer"] == YES for one in weak) and settled.pooled(weak)[0] == NO
    assert "queue, forward, went from 11.7 to 8.35 packets" in settled.said(weak)
    assert settled.pooled([followed(0.0, climb=3.0)] * 4)[0] == NO
    assert settled.pooled(weak, level=0.0)[0] == YES
    # What one run cannot tell several can, where their windows have room for it in the mean.
    room = [followed(0.1, freedom) for freedom in (4.0, 9.0, 8.0)]
    assert [one["answer"] for one in room] == [UNKNOWN, YES, YES] and settled.pooled(room)[0] == YES
    assert settled.pooled([followed(0.1, 3.0), followed(0.2, 6.0)])[0] == UNKNOWN
    assert settled.said([followed(0.1, 3.0), followed(0.2, 6.0)]).endswith("settled: queue, forward")


@pytest.mark.parametrize("runs", [2, 3, 5, 10, 20])
def test_settled_runs_are_wronged_once_in_twenty_times_however_many_they_are(runs):
    rng = np.random.default_rng(runs)
    for scatter in (1.0, 1.6):
        wronged = [settled.pooled([followed(z) for z in scatter * rng.normal(size=runs)])[0] == NO for _ in range(200)]
        # Of 200 times one in twenty are 10, and 17 or more one time in fifty.
        assert sum(wronged) <= 16, (scatter, sum(wronged))


def test_runs_that_jump_up_and_down_are_not_settled_though_they_have_nothing_in_common():
    jumps, calm = [followed(z) for z in (6.5, -6.0)], [followed(z) for z in (0.4, -0.9, 1.3)]
    assert settled.together([*jumps, *calm])[0].p > 0.05
    assert settled.pooled([*jumps, *calm])[0] == NO
    assert settled.said([*jumps, *calm]).startswith("not settled in 2 of 5 runs: queue, forward, went from 16.5 to 3.5")
    # One of them among many is enough, and what one run in a thousand shows by chance is not.
    assert settled.pooled([jumps[0], *calm])[0] == NO
    assert settled.pooled([followed(3.3), *calm])[0] == YES


def test_what_went_where_is_said_in_numbers_that_people_read():
    way = {"name": "exchanges under way", "answer": NO, "p": 0.001, "begins": 768.2, "ends": 1194.4}
    words = settled.said([{"answer": NO, "p": 0.001, "series": [way], "cut_s": None}])
    assert "exchanges under way, went from 768 to 1,194;" in words
    queue = {**way, "name": "queue, forward", "begins": 0.406, "ends": 274.0}
    words = settled.said([{"answer": NO, "p": 0.001, "series": [queue], "cut_s": None}])
    assert "queue, forward, went from 0.406 to 274 packets;" in words

    chance = {**way, "name": "probability, reverse", "begins": 0.000133, "ends": 0.0024}
    words = settled.said([{"answer": NO, "p": 0.001, "series": [chance], "cut_s": None}])
    assert "probability, reverse, went from 0.0133 % to 0.24 %; the usual rule for cutting off a start-up (" in words


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((NO, YES, NO), "2 of 3 variants had not settled: their numbers are of these 150 s only."),
        ((NO, YES, UNKNOWN), "1 of 3 variants had not settled: its numbers are of these 150 s only."),
        ((NO,), "What was run had not settled: its numbers are of these 150 s only."),
        ((UNKNOWN, YES), "These 150 s are too short to tell of 1 of 2 variants whether the numbers stay so."),
        ((UNKNOWN,), "These 150 s are too short to tell whether the numbers stay so."),
        ((YES, None), ""),
    ],
)
def test_how_many_had_not_settled_is_said_in_a_sentence(answers, said):
    assert settled.counted(answers, 150.0) == said


def test_the_top_of_a_page_leads_to_what_had_not_settled(base, tmp_path, undrawn):
    page = report.write(aqmlab.compare(base, "pfifo", "pi", out=tmp_path / "out")).read_text()
    said = re.search('<a href="#settled">(.*?)</a>', page)
    assert said is not None and said.start() < page.index("<svg") and '<section id="settled">' in page
    assert re.fullmatch(
        r"These \d+\xa0s are too short to tell of 2 of 2 variants whether the numbers stay so\.", said[1]
    )


def test_a_run_keeps_what_was_found(base, tmp_path):
    result = aqmlab.run(base, out=tmp_path / "out", reps=2)
    (one, other) = (run.settled for run in result.runs)
    assert one["answer"] in (YES, NO, UNKNOWN) and {"p", "cut_s", "series"} <= one.keys()
    assert [found["run"] for found in result.manifest["settled"]] == ["rep-1", "rep-2"]
    assert json.dumps(other, allow_nan=False)


SHARE = """
duration = "120s"
warmup = "{warmup}"
seed = 2
[link]
rate = "10mbit"
[link.qdisc]
kind = "pi"
qref = "24p"
[path]
rtt = "60ms"
[[traffic]]
kind = "web"
model = "unc2001"
users = {users}
"""


@pytest.mark.parametrize(("users", "warmup", "answer"), [(400, "20s", YES), (3500, "0s", NO)])
def test_on_the_engine(users, warmup, answer, monkeypatch, tmp_path):
    # 400 users ask for a fifth of the link; 3,500 for nearly twice of it, so that ever more of them wait.
    monkeypatch.setattr(engine, "native", NATIVE)
    (run,) = aqmlab.run(SHARE.format(users=users, warmup=warmup), out=tmp_path / "out").runs
    assert run.settled["answer"] == answer
