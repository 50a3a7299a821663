"""Times in nanoseconds and in seconds, and what is within a time. Needs the compiled engine."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import aqmlab
from aqmlab import engine
from aqmlab.measures import catalogue
from aqmlab.measures.subject import Seen
from aqmlab.results import named, times
from aqmlab.results.window import condense, quotient
from aqmlab.statistics import BATCHES
from conftest import NATIVE

SCENARIO = """
duration = "20s"
warmup = "2s"
record = { drops = true, flows = "500ms" }

[link]
rate = "5mbit"
qdisc = "codel"

[[traffic]]
kind = "web"
users = 200

[[traffic]]
kind = "bulk"

[[traffic]]
kind = "probe"
"""

TABLES = ("exchanges", "queue", "drops", "probes", "tcp")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run, which no test changes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "native", NATIVE)
        return aqmlab.run(SCENARIO, out=tmp_path_factory.mktemp("times") / "run").runs[0]


def test_seconds_are_the_nearest_number():
    """Text is read as the nearest number, so nanoseconds with a decimal point say what has to come out."""
    rng = np.random.default_rng(1)
    ns = np.concatenate([rng.integers(0, 10**digits, 1000) for digits in range(1, 16)])
    nearest = [float(f"{one // times.PER_S}.{one % times.PER_S:09}") for one in map(int, ns)]
    assert times.seconds(ns).tolist() == nearest
    assert [times.seconds(one) for one in map(int, ns)] == nearest
    assert [times.nanoseconds(one) for one in nearest] == ns.tolist()


@pytest.mark.parametrize("name", TABLES)
def test_the_engine_writes_the_same_seconds_to_the_bit(run, name):
    table = pl.read_parquet(run.folder / f"{name}.parquet")
    pairs = [(f"{column.removesuffix('_ns')}_s", column) for column in table.columns if column.endswith("_ns")]
    pairs = [pair for pair in pairs if pair[0] in table.columns]
    assert pairs and table.height
    for in_s, in_ns in pairs:
        assert table[in_ns].dtype == pl.Int64
        assert table[in_ns].is_null().equals(table[in_s].is_null(), check_names=False)
        there = table.drop_nulls(in_ns)
        np.testing.assert_array_equal(times.seconds(there[in_ns].to_numpy()), there[in_s].to_numpy())


def test_the_mean_wait_of_an_interval_is_its_sum_over_its_packets(run):
    queue = run.queue.filter(pl.col("delivered_packets") > 0)
    waited = times.seconds(queue["queue_delay_sum_ns"].to_numpy()) / queue["delivered_packets"].to_numpy()
    np.testing.assert_array_equal(waited, queue["queue_delay_mean_s"].to_numpy())


def test_results_of_older_versions_say_the_same(run, tmp_path, monkeypatch):
    """Their tables have seconds alone, each of them nanoseconds times 1e-9 instead of over 1e9."""
    for path in run.folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for name in TABLES:
        table = pl.read_parquet(run.folder / f"{name}.parquet")
        pairs = [column for column in table.columns if f"{column.removesuffix('_s')}_ns" in table.columns]
        older = table.with_columns((pl.col(f"{column.removesuffix('_s')}_ns") * 1e-9).alias(column) for column in pairs)
        older.select(pl.exclude("^.*_ns$")).write_parquet(tmp_path / f"{name}.parquet")
    found, expected = condense(aqmlab.Run(tmp_path)), condense(run)
    for older, item in ((found, expected), (found.link, expected.link)):
        for name, values in vars(item).items():
            if isinstance(values, np.ndarray):
                np.testing.assert_allclose(vars(older)[name], values, rtol=1e-12 if name == "delay_sum_s" else 0)
    loaded = aqmlab.load(tmp_path)
    for name in ("share_under_500ms", "p50", "utilisation"):
        assert loaded.estimate(name) == aqmlab.load(run.folder).estimate(name)


@pytest.mark.parametrize("seconds", [5, 6, 28])
def test_a_constant_rate_has_no_spread_over_parts_of_a_window(tmp_path, monkeypatch, seconds):
    """Rows are 100 ms: parts of 250, 300 and 1400 ms have 2 or 3, 3, and 14 of them."""
    monkeypatch.setattr(engine, "native", NATIVE)
    text = f"""
        duration = "{seconds + 4}s"
        warmup = "4s"
        [link]
        rate = "10mbit"
        qdisc = "pfifo"
        [path]
        rtt = "20ms"
        [[traffic]]
        kind = "bulk"
        flows = 4
        stack = "linux"
    """
    (run,) = aqmlab.run(text, out=tmp_path / "run").runs
    window = condense(run)
    assert window.link.covered_s.sum(axis=1) == pytest.approx([seconds, seconds])
    for measure in ("utilisation", "throughput_bps"):
        sent, could = quotient(window.link, measure, (0,))
        # A packet of 1500 bytes at either end is the most that a part may have more or less: 1.2 ms of it.
        assert sent / could == pytest.approx(
            np.full(BATCHES, sent.sum() / could.sum()), rel=0.0012 / (seconds / BATCHES)
        )
    even = replace(window, link=replace(window.link, sent_bits=0.97e7 * window.link.covered_s), settled=None)
    assert named.estimate([named.Numbers(run, lambda: even)], "utilisation").half_width == pytest.approx(0, abs=1e-9)


def test_percentiles_of_few_exchanges_are_those_of_the_summary(tmp_path, monkeypatch):
    """Nothing is interpolated: of 21 exchanges the 99th percentile is the longest."""
    monkeypatch.setattr(engine, "native", NATIVE)
    run = aqmlab.run(SCENARIO.replace("users = 200", "users = 12"), out=tmp_path / "run").runs[0]
    assert 10 < run.summary["exchanges"]["completed"] < 60
    window = condense(run)
    for name in ("p50", "p90", "p99"):
        assert window.measure(name) == pytest.approx(run.summary["exchanges"]["response_time_s"][name], rel=1e-3)
    assert window.measure("p99") == run.exchanges["response_time_s"].max()


def _one_exchange(folder, rtt_ns):
    """Results of a run in which one packet of data is all there is."""
    text = f"""
        duration = "3s"
        warmup = "0s"
        [link]
        rate = "10mbit"
        [path]
        rtt = "{rtt_ns}ns"
        [[traffic]]
        kind = "bulk"
        size = "1002b"
        start = "1s"
    """
    run = aqmlab.run(text, out=folder).runs[0]
    assert run.exchanges.height == 1
    return run, int(run.exchanges["response_time_ns"][0])


def test_an_exchange_of_half_a_second_is_within_half_a_second(tmp_path, monkeypatch):
    """By the simulator, the summary, a window, a measure of a claim, and a distribution function."""
    monkeypatch.setattr(engine, "native", NATIVE)
    at = {rtt_ms: _one_exchange(tmp_path / str(rtt_ms), rtt_ms * 1_000_000)[1] for rtt_ms in (100, 200)}
    # One and a half round trips and what serialization takes, of so many bytes that thirds of the rest are whole.
    assert at[200] - at[100] == 150_000_000
    serialization = at[100] - 150_000_000
    assert (500_000_000 - serialization) % 3 == 0
    for beyond, share in ((0, 1.0), (3, 0.0)):
        rtt_ns = 2 * (500_000_000 + beyond - serialization) // 3
        run, response = _one_exchange(tmp_path / f"half-{beyond}", rtt_ns)
        assert response == 500_000_000 + beyond
        window = condense(run)
        assert run.summary["exchanges"]["share_under_500ms"] == window.measure("share_under_500ms") == share
        assert window.cdf[100] == share
        [within] = catalogue.read({"measure": "within", "time_s": 0.5}, "a test")
        assert within.formula.whole(Seen(window, run.summary, run.scenario)) == share
