"""Long-range dependence of the web models' packets on an uncongested link, against what their sizes promise.

Transfers whose sizes have a tail of shape a make traffic with H = (3 - a) / 2; without a heavy tail H is one half
(Willinger, Taqqu, Sherman and Wilson 1997). Estimates with all three estimators: docs/validation.md.
"""

import json

import polars as pl
import pytest

import hurst
from conftest import NATIVE

SCENARIO = """
name = "{model}"
duration = "2000s"
warmup = "200s"
[link]
rate = "10gbit"
[link.qdisc]
kind = "pfifo"
limit = "100000p"
[path]
rtt = {{ uniform = ["10ms", "150ms"] }}
[tcp]
stack = "freebsd4"
[[traffic]]
kind = "web"
model = "{model}"
{how_many}
direction = "forward"
[record]
exchanges = false
interval = "40ms"
"""

FIRST_OCTAVE = 6
"""2.56 s: below, round trips and the gaps within a page shape the counts."""


@pytest.mark.parametrize(
    ("model", "how_many", "least", "most"),
    [
        # Shape 1.2 promises 0.9 in the limit of long times and many sessions.
        ("feldmann-pareto1", "users = 3000", 0.9, 0.9),
        ("feldmann-exp2", "users = 1500", 0.5, 0.5),
        # Kuzmanovic (SIGCOMM 2005): between 0.8 and 0.9.
        ("kuzmanovic2005", "users = 3000", 0.8, 0.9),
        # Requests are fractional noise of order 0.31, downloads have a tail of shape 1.23.
        ("packmime", 'arrivals = "150hz"', 0.81, 0.885),
    ],
)
def test_the_interval_meets_what_the_sizes_promise(tmp_path, model, how_many, least, most):
    resolved = json.loads(NATIVE.resolve(SCENARIO.format(model=model, how_many=how_many), "long.toml", []))
    NATIVE.simulate(resolved["toml"], str(tmp_path), None)
    rows = pl.read_parquet(tmp_path / "queue.parquet").filter(pl.col("time_s") > 200)
    counts = rows.filter(pl.col("direction") == 0)["offered_packets"].to_numpy()
    estimate = hurst.local_whittle(counts, FIRST_OCTAVE)
    low, high = estimate.interval
    print(f"\n{model}: wanted {least} to {most}, found {estimate.h:.3f} ({low:.3f} to {high:.3f})")
    # Half the interval more: 95 % becomes 99.7 %, for this is one trace of each of four models.
    margin = (high - low) / 4
    assert low - margin <= most
    assert high + margin >= least
