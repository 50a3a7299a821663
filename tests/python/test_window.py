import numpy as np
import polars as pl
import pytest

import aqmlab
from aqmlab.results.window import condense
from conftest import BASE


def test_without_the_table_of_exchanges_the_summary_speaks(tmp_path):
    result = aqmlab.run(BASE, out=tmp_path / "out")
    whole = condense(result.runs[0])
    (tmp_path / "out/exchanges.parquet").unlink()
    without = condense(result.runs[0])
    for name in ("completed", "p50", "p90", "p99", "share_under_500ms", "share_under_2s", "loss_ratio"):
        assert without.measure(name) == pytest.approx(whole.measure(name), rel=1e-9)
    assert np.isnan(without.parts("p50")).all()


def test_an_exchange_belongs_to_the_part_in_which_it_ends(tmp_path):
    result = aqmlab.run(BASE, out=tmp_path / "out")
    # The window is 10 to 30 s, a part is 1 s: this one begins in the first and ends in the sixth.
    row = result.exchanges.head(1).with_columns(start_s=pl.lit(10.5), response_time_s=pl.lit(5.0))
    row.write_parquet(tmp_path / "out/exchanges.parquet")
    window = condense(result.runs[0])
    assert np.flatnonzero(window.completed).tolist() == [5]
    assert window.cdf[-1] == 0 and window.tail[0] == 1
