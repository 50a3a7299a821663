"""What is kept of a run, and that keeping it changes no number and takes no more memory than a slice of its tables."""

import math
import tracemalloc
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import aqmlab
from aqmlab.results import exchanges, times
from aqmlab.results.window import COUNTS, Counts, condense
from aqmlab.statistics import BATCHES
from aqmlab.sweep import condensed
from aqmlab.sweep.condensed import Condensed
from conftest import BASE

START, END = 10.0, 110.0


def table(rows: int, seed: int = 1, coarse: bool = False) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    start = rng.uniform(START, END, rows)
    response = np.minimum(np.exp(rng.normal(-1.5, 1.4, rows)), END - start)
    if coarse:  # many exchanges that took exactly as long
        response = np.round(response, 1)
    # Whole nanoseconds, as a run's clock has them.
    start, response = (times.seconds(np.rint(item * times.PER_S)) for item in (start, response))
    return pl.DataFrame(
        {
            "start_s": start,
            "response_time_s": response,
            "response_bytes": pl.Series((300 * rng.random(rows) ** (-1 / 1.1)).clip(1, 1e10).astype(np.uint64)),
            "traffic": pl.Series(rng.integers(0, 3, rows), dtype=pl.UInt16),
        }
    )


def quantiles(times: np.ndarray) -> np.ndarray:
    """The least times that the shares do not exceed: what the engine's summary gives."""
    return np.quantile(times, exchanges.QUANTILES, method="inverted_cdf")


@pytest.fixture
def small_slices(monkeypatch):
    monkeypatch.setattr(exchanges, "SLICE_ROWS", 1000)
    monkeypatch.setattr(exchanges, "COLLECTED_MOST", 2000)


@pytest.mark.parametrize(("rows", "coarse"), [(20_000, False), (20_000, True), (1_100, False), (1, False), (0, False)])
def test_slices_change_no_number(tmp_path, small_slices, rows, coarse):
    path = tmp_path / "exchanges.parquet"
    whole = table(rows, coarse=coarse)
    whole.write_parquet(path)
    found = exchanges.parts(path, START, END, 4)

    # The same in one piece, by the definitions alone.
    response, size = whole["response_time_s"].to_numpy(), whole["response_bytes"].to_numpy()
    done = whole["start_s"].to_numpy() + response
    part = ((done - START) / (END - START) * BATCHES).clip(0, BATCHES - 1).astype(int)
    groups = [response[part == k] for k in range(BATCHES)]
    assert found["completed"].tolist() == [group.size for group in groups]
    for k, group in enumerate(groups):
        assert found["cdf_counts"][k].tolist() == [(group <= time).sum() for time in exchanges.CDF_TIMES]
        assert found["tail_counts"][k].tolist() == [(group > time).sum() for time in exchanges.TAIL_TIMES]
        # At least 50 of them, and ten beyond the quantile: 100 for that of 90 %, 1000 for that of 99 %.
        enough = [group.size >= least for least in (50, 100, 1000)]
        expected = np.where(enough, quantiles(group), np.nan) if group.size else [np.nan] * 3
        np.testing.assert_array_equal(found["quantiles"][:, k], expected)  # to the bit
    np.testing.assert_array_equal(found["whole_quantiles"], quantiles(response) if rows else [np.nan] * 3)
    block = whole["traffic"].to_numpy()
    for k in range(4):
        counted = found["block_cdf_counts"][k].sum(axis=0)
        assert counted.tolist() == [(response[block == k] <= time).sum() for time in exchanges.CDF_TIMES]
        assert found["block_completed"][k].sum() == (block == k).sum()
        late = found["block_tail_counts"][k].sum(axis=0)
        assert late.tolist() == [(response[block == k] > time).sum() for time in exchanges.LATE_TIMES]
    edges = [0, *exchanges.SIZE_EDGES, np.inf]
    for k, (low, high) in enumerate(pairwise(edges)):
        inside = (size > low) & (size <= high)
        assert found["size_completed"][k].sum() == inside.sum()
        assert found["size_cdf_counts"][k].sum(axis=0)[-1] == (response[inside] <= 2.0).sum()
        late = found["size_tail_counts"][k].sum(axis=0)
        assert late.tolist() == [(response[inside] > time).sum() for time in exchanges.LATE_TIMES]
    fast = size / np.maximum(response, 1e-300) > exchanges.FAST_BYTES_PER_S
    for k, wanted in enumerate((np.ones(rows, dtype=bool), fast)):
        assert found["size_counts"][k].sum() == wanted.sum() and found["size_bytes"][k].sum() == size[wanted].sum()
    up_to = np.searchsorted(exchanges.SIZE_BINS, 3_000)
    assert found["size_counts"][0][: up_to + 1].sum() == (size <= 3_000).sum()


@pytest.mark.parametrize(("count", "known"), [(49, 0), (50, 1), (99, 1), (100, 2), (999, 2), (1000, 3)])
def test_a_part_has_the_quantiles_that_ten_of_its_exchanges_lie_beyond(tmp_path, count, known):
    response = np.arange(1, count + 1) / 10_000
    path = tmp_path / "exchanges.parquet"
    table(count).with_columns(start_s=pl.lit(START), response_time_s=response).write_parquet(path)
    found = exchanges.parts(path, START, END, 3)["quantiles"][:, 0]
    assert np.isfinite(found).tolist() == [k < known for k in range(3)]
    np.testing.assert_array_equal(found[:known], quantiles(response)[:known])


def test_memory_does_not_grow_with_the_number_of_exchanges(tmp_path):
    """Measured in numpy's and Python's own allocations, while tables of one and of four slices are condensed."""
    peaks = []
    for slices in (1, 4):
        path = tmp_path / f"{slices}.parquet"
        table(slices * exchanges.SLICE_ROWS).write_parquet(path, row_group_size=1 << 16)
        tracemalloc.start()
        exchanges.parts(path, START, END, 3)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # What is collected for order statistics grows until equal values are counted: two millions of three numbers.
    assert peaks[1] < peaks[0] + 3 * 8 * 2 * exchanges.COLLECTED_MOST / 10


def one(folder) -> tuple[aqmlab.Run, Condensed]:
    result = aqmlab.run(BASE, out=folder)
    run = result.runs[0]
    return run, condensed.of_run(run, "key", {"simulated_s": 30.0, "wall_s": 1.0, "peak_rss_bytes": 5})


def same(a, b) -> bool:
    if isinstance(a, Counts):
        return same(vars(a), vars(b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b, equal_nan=True)) if isinstance(a, np.ndarray | float) else a == b


def test_a_condensed_run_says_the_same_as_the_run(tmp_path):
    run, kept = one(tmp_path / "run")
    (tmp_path / "kept").mkdir()
    kept.save(tmp_path / "kept")
    for again in (kept, Condensed.load(tmp_path / "kept"), Condensed.from_bytes(kept.to_bytes())):
        assert same(vars(again.window), {**vars(condense(run))})
        assert again.summary == run.summary and again.scenario == run.scenario
        assert (again.seed, again.digest, again.key) == (run.seed, run.digest, "key")
        assert again.demand_digest == run.manifest["demand_digest"] and again.self_checks == run.manifest["self_checks"]
        assert again.queue.equals(run.queue)


@pytest.mark.parametrize("lost", condensed.FILES)
def test_what_is_not_whole_cannot_be_loaded(tmp_path, lost):
    _, kept = one(tmp_path / "run")
    (tmp_path / "kept").mkdir()
    kept.save(tmp_path / "kept")
    (tmp_path / "kept" / lost).unlink()
    with pytest.raises(OSError, match=lost):
        Condensed.load(tmp_path / "kept")


def test_the_queue_table_is_thinned_without_losing_a_packet(tmp_path):
    run, _ = one(tmp_path / "run")
    whole = run.queue
    thin = condensed.thinned(whole, 50)
    assert thin.columns[: whole.width] == whole.columns and 40 <= thin.height <= 50
    for name in ("offered_packets", "delivered_packets", "delivered_bytes", "dropped_packets", "marked_packets"):
        assert thin[name].sum() == whole[name].sum()
    assert thin["queue_delay_max_s"].max() == whole["queue_delay_max_s"].max()
    for direction in (0, 1):
        a, b = (t.filter(pl.col("direction") == direction) for t in (thin, whole))
        waits = [(t["queue_delay_mean_s"] * t["delivered_packets"]).sum() for t in (a, b)]
        assert waits[0] == pytest.approx(waits[1], rel=1e-12)  # rounding of sums alone
        assert a["time_s"].is_sorted() and a["time_s"][-1] == b["time_s"][-1]


def test_thinning_does_not_narrow_the_range_of_a_state(tmp_path):
    """The published runs have 72,000 intervals a direction; this one has 500 for each row that is kept."""
    rng = np.random.default_rng(5)
    intervals, rows = 50_000, 200
    held = rng.exponential(20.0, (intervals, 2))
    queue = pl.DataFrame(
        {
            "time_s": np.repeat(np.arange(1, intervals + 1) / 10, 2),
            "direction": pl.Series(np.tile([0, 1], intervals), dtype=pl.UInt8),
            **{name: pl.Series(np.ones(2 * intervals, dtype=np.uint64)) for name in COUNTS},
            "queue_packets": held.ravel(),
            "queue_delay_mean_s": held.ravel() / 1e3,
            "queue_delay_max_s": held.ravel() / 500,
            "probability": pl.Series([None] * (2 * intervals), dtype=pl.Float64),
        }
    )
    thin = condensed.thinned(queue, rows)
    assert thin.height == rows and thin["probability_max"].null_count() == rows
    of_each = held[:, 1].reshape(-1, 500)
    backward = thin.filter(pl.col("direction") == 1)
    for name, expected in (("min", of_each.min(axis=1)), ("max", of_each.max(axis=1))):
        # Kept in single precision.
        np.testing.assert_allclose(backward[f"queue_packets_{name}"], expected, rtol=1e-6)
        np.testing.assert_allclose(backward[f"queue_delay_mean_s_{name}"], expected / 1e3, rtol=1e-6)
    # The largest of 500 values of an exponential distribution is at 20 (ln 500 + 0.577), give or take 20 pi / sqrt 6
    # for one row, over 100 rows a tenth of that; means of 500 hardly vary.
    spread = (backward["queue_packets_max"] - backward["queue_packets_min"]).mean()
    assert spread == pytest.approx(20 * (math.log(500) + 0.577), abs=4 * 20 * math.pi / math.sqrt(6) / 10)
    assert np.ptp(backward["queue_packets"].to_numpy()) < spread / 10


def test_states_are_those_of_the_intervals_of_each_part(tmp_path):
    run, kept = one(tmp_path / "run")
    start, end = run.window
    part = (end - start) / BATCHES
    rows = run.queue.filter(
        (pl.col("direction") == 1)
        & (pl.col("time_s") > start + 3 * part + 1e-6)
        & (pl.col("time_s") <= start + 4 * part + 1e-6)
    )
    held = rows["queue_packets"].to_numpy().astype(float)
    state = kept.window.link.state["queue_packets"][:, 1, 3]
    assert state == pytest.approx([held.mean(), held.std(), held.min(), held.max()], rel=1e-12)
    assert "delivered_packets" not in kept.window.link.state
