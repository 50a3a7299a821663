"""The anchors of the web model that only a network can show: load, packet size, long-range dependence.

Le et al. (ICNP 2004): 20,000 users in all make some 105 Mb/s in one direction of the uncongested link. Le et al. (ToN
2007): the mean frame there is a little over 500 bytes. Kuzmanovic (SIGCOMM 2005): the traffic of that size
distribution has a Hurst parameter between 0.8 and 0.9. The anchors of the model alone are in crates/traffic/tests.
"""

import json

import polars as pl
import pytest

import hurst
from conftest import NATIVE

UNCONGESTED = """
name = "20,000 web users, nothing in their way"
duration = "1500s"
warmup = "300s"

[link]
rate = "1gbit"
[link.qdisc]
kind = "pfifo"
limit = "100000p"

[path]
rtt = { uniform = ["10ms", "150ms"], step = "1ms" }

[tcp]
stack = "freebsd4"
window = "16kb"

[[traffic]]
kind = "web"
model = "unc2001"
users = 20000
direction = "both"

[record]
exchanges = false
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uncongested")
    resolved = json.loads(NATIVE.resolve(UNCONGESTED, "uncongested.toml", []))
    summary = json.loads(NATIVE.simulate(resolved["toml"], str(folder), None))
    rows = pl.read_parquet(folder / "queue.parquet").filter(pl.col("time_s") > 300)
    return summary, rows


def test_load_and_packet_size(run):
    summary, _ = run
    directions = [summary["forward"], summary["reverse"]]
    throughput = sum(d["throughput_bps"] for d in directions) / 2 / 1e6
    size = sum(d["packet_mean_bytes"] for d in directions) / 2
    print(f"\nthroughput one way: wanted 105 Mb/s within 3 %, found {throughput:.1f}")
    print(f"mean packet: wanted a little over 500 bytes, found {size:.0f}")
    assert abs(throughput / 105 - 1) < 0.03
    # "a little over": beyond 600 nobody would say 500 any more.
    assert 500 < size < 600


@pytest.mark.parametrize("direction", [0, 1])
def test_long_range_dependence(run, direction):
    counts = run[1].filter(pl.col("direction") == direction)["offered_packets"].to_numpy()
    # The variance-time plot, as the studies of the day read it, from a round-trip time up.
    estimate = hurst.aggregated_variance(counts)
    print(f"\nHurst parameter, direction {direction}: wanted 0.8 to 0.9, found {estimate.h:.3f}")
    assert 0.8 <= estimate.h <= 0.9


def test_nothing_is_lost_or_late(run):
    summary, _ = run
    for direction in ("forward", "reverse"):
        assert summary[direction]["dropped_packets"] == 0
        assert summary[direction]["queue_delay_p99_s"] < 0.001
    assert summary["tcp"]["timeouts"] == 0
