"""Real-time video: the table of its frames, its figures in results and reports, and what a live run says of it."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from aqmlab import api, applications, engine
from aqmlab.comparison import Comparison
from aqmlab.errors import BadInput
from conftest import NATIVE

LINK = """
name = "calls"
duration = "25s"
warmup = "5s"
[link]
rate = "10mbit"
reverse_rate = "100mbit"
[path]
rtt = "20ms"
[[traffic]]
kind = "rtp_video"
flows = 2
max_rate = "8mbit"
ect = "ect1"
start = "0s"
[[traffic]]
kind = "bulk"
cc = "prague"
[[variant]]
name = "coupled"
link.qdisc = "dualpi2"
[[variant]]
name = "long"
link.qdisc = { kind = "bfifo", limit = "200kb" }
"""


@pytest.fixture(autouse=True)
def real_engine(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "native", NATIVE)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("calls")
    (folder / "calls.toml").write_text(LINK, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "native", NATIVE)
        return api.compare(folder / "calls.toml", out=folder / "out", reps=2)


def test_the_summary_is_what_the_table_says(compared: Comparison) -> None:
    for column in compared.columns:
        for run in column.result.runs:
            frames, said = run.frames, run.summary["frames"]
            assert frames["encoded_s"].min() >= 5 and frames["encoded_s"].max() < 25
            assert frames.group_by("source").len()["len"].to_list() == pytest.approx([600, 600], abs=8)
            came = frames.filter(pl.col("delay_s").is_not_null())
            assert said["encoded_frames"] == frames.height
            assert said["lost_frames"] == frames.height - came.height
            assert said["bitrate_bps"] == pytest.approx(came["bytes"].sum() * 8 / 20)
            for q in (10, 50, 99):
                # Three digits, and the next value above.
                exact = np.quantile(came["delay_s"].to_numpy(), q / 100, method="inverted_cdf")
                assert said["delay_s"][f"p{q}"] == pytest.approx(exact, rel=2e-3)
            assert came["delay_s"].min() > 0.01


def test_reports_have_a_table_of_it_and_curves(compared: Comparison) -> None:
    (part,) = [part for part in applications.of(compared.columns, compared) if part.table == "applications.live"]
    assert [column.name for column, _ in part.rows] == ["coupled", "long"]
    for column, row in part.rows:
        found = dict(zip([key for _, _, key in part.headings], row, strict=True))
        runs = column.result.runs
        rate = np.mean([run.summary["frames"]["bitrate_bps"] / 2 for run in runs])
        assert found["bitrate_source_bps"].value == pytest.approx(rate)
        assert found["delay_p99_s"].value == pytest.approx(
            np.mean([run.summary["frames"]["delay_s"]["p99"] for run in runs]), rel=0.02
        )
        samples = applications.samples(runs[0])["live"]
        assert samples.size == runs[0].frames.height
    waits = [dict(zip([key for _, _, key in part.headings], row, strict=True))["delay_p99_s"] for _, row in part.rows]
    assert waits[0].value < waits[1].value, "a queue of 160 ms makes frames late"


def test_runs_without_frames_have_none(tmp_path: Path) -> None:
    text = 'duration = "2s"\n[link]\nrate = "10mbit"\nqdisc = "pfifo"\n[[traffic]]\nkind = "bulk"\n'
    (tmp_path / "bulk.toml").write_text(text, encoding="utf-8")
    run = api.run(tmp_path / "bulk.toml", out=tmp_path / "out").runs[0]
    assert set(run.summary["frames"]) == {"encoded_frames", "lost_frames", "loss_ratio", "bitrate_bps", "delay_s"}
    assert run.summary["frames"]["bitrate_bps"] is None
    assert not (run.folder / "frames.parquet").exists()


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", "max_rate: missing, expected a rate such as 10mbit"),
        ('max_rate = "100kbit"', "expected at least min_rate of 150kbit"),
        ('max_rate = "2gbit"', "what the source's access link carries"),
        ('max_rate = "1mbit"\nframe_rate = "0.5hz"', "expected a frequency from 1hz to 1000hz"),
        ('max_rate = "1mbit"\nkey_frames = "100ms"', "in which more frames lie than a key frame is large"),
        ('max_rate = "1mbit"\ncc = "gcc"', "expected"),
        ('max_rate = "1mbit"\npacket = "100b"', "expected"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(keys: str, expected: str, tmp_path: Path) -> None:
    text = f'duration = "2s"\n[link]\nrate = "10mbit"\nqdisc = "pfifo"\n[[traffic]]\nkind = "rtp_video"\n{keys}\n'
    (tmp_path / "bad.toml").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as refused:
        api.run(tmp_path / "bad.toml", out=tmp_path / "out")
    said = str(refused.value)
    assert expected in said and "\n" not in said and "traffic.0" in said
