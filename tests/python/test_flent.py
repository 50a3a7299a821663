"""Runs as data files of flent: what is in them, and that flent reads them."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aqmlab import engine
from aqmlab.cli import invoke
from aqmlab.errors import Doubt
from aqmlab.results import flent
from aqmlab.results.flent import Series
from aqmlab.results.run import Run
from conftest import NATIVE, ROOT

FLENT = shutil.which("flent")

PINGS = [f"Ping (ms) {kind}" for kind in ("UDP BE", "UDP BK", "UDP EF", "ICMP", "avg")]
TRANSFERS = [f"TCP {way} {what}" for way in ("download", "upload") for what in ("BE", "BK", "CS5", "EF", "avg", "sum")]


@pytest.fixture(autouse=True)
def real_engine(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if NATIVE is None:
        pytest.skip("left out: the engine is not built")
    monkeypatch.setattr(engine, "native", NATIVE)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """RRUL over fq_codel, 20 seconds of it."""
    text = (ROOT / "examples/rrul.toml").read_text().partition("[[variant]]")[0].replace('"66s"', '"26s"')
    scenario = tmp_path / "rrul.toml"
    scenario.write_text(text.replace("[path]", '[link.qdisc]\nkind = "fq_codel"\n[path]'))
    assert invoke(["run", str(scenario), "-o", str(tmp_path / "made")]) == 0
    return tmp_path / "made"


def test_a_file_has_the_series_of_rrul(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fq_codel.flent.gz"
    capsys.readouterr()
    assert invoke(["flent", str(made), "-o", str(file), "--title", "at home", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(file)}
    found = json.loads(gzip.decompress(file.read_bytes()))
    assert (found["version"], found["metadata"]["NAME"], found["metadata"]["TITLE"]) == (4, "rrul", "at home")
    assert found["metadata"]["LENGTH"] == 20
    results, x_values = found["results"], found["x_values"]
    assert set(results) == {*PINGS, *TRANSFERS, "TCP totals"} and x_values[:3] == [0.0, 0.2, 0.4]
    assert all(len(values) == len(x_values) for values in results.values())
    late = [k for k, at in enumerate(x_values) if 15 <= at <= 24]
    mean = {name: np.mean([values[k] for k in late]) for name, values in results.items()}
    # Goodput of full links of 50 and 10 Mb/s: headers and acknowledgements have the rest.
    assert 44 < mean["TCP download sum"] < 49 and 7 < mean["TCP upload sum"] < 9.7
    assert mean["TCP download avg"] == pytest.approx(mean["TCP download sum"] / 4)
    assert mean["TCP totals"] == pytest.approx(mean["TCP download sum"] + mean["TCP upload sum"])
    # Before the load the ping is the path's round trip of 40 ms and some serializations; behind fq_codel hardly more.
    idle = [value for at, value in zip(x_values, results["Ping (ms) ICMP"], strict=True) if 0.5 < at < 4.5]
    assert all(40 < value < 40.5 for value in idle) and 40 < mean["Ping (ms) ICMP"] < 60
    raw = found["raw_values"]["Ping (ms) ICMP"]
    assert np.diff([one["t"] for one in raw]) == pytest.approx(0.2, abs=1e-3)


def test_flows_in_both_directions_are_in_the_series_of_the_way_that_each_goes(tmp_path: Path) -> None:
    (tmp_path / "both.toml").write_text(
        """
duration = "4s"
warmup = "1s"
link = { rate = "4mbit", reverse_rate = "1mbit" }
path = { rtt = "40ms" }
record.flows = "200ms"
[[traffic]]
kind = "bulk"
flows = 3
direction = "both"
[[traffic]]
kind = "bulk"
flows = 1
direction = "forward"
dscp = "CS1"
"""
    )
    assert invoke(["run", str(tmp_path / "both.toml"), "-o", str(tmp_path / "made")]) == 0
    run = Run(tmp_path / "made")
    found = {one.name: one for one in flent._transfers(run)}
    assert set(found) == {"TCP download BE", "TCP download BK", "TCP upload BE"}
    rows = run.tcp.to_dicts()
    of_way = {"download": 0, "upload": 1}
    for name, series in found.items():
        # All that was acknowledged from the first row to the last, over the same time.
        side, block = of_way[name.split()[1]], int(name.endswith("BK"))
        got = [row for row in rows if (row["side"], row["traffic"]) == (side, block)]
        at = [row["time_s"] for row in got]
        sources = {row["source"] for row in got}
        ends = [[row["acknowledged_bytes"] for row in got if row["source"] == one] for one in sources]
        mean = 8e-6 * sum(each[-1] - each[0] for each in ends) / (max(at) - min(at))
        assert np.mean(series.values) == pytest.approx(mean, rel=1e-6), name


def test_a_second_block_of_probes_of_a_class_is_left_out_in_a_line(tmp_path: Path) -> None:
    probe = '[[traffic]]\nkind = "probe"\nflows = 2\ndirection = "both"\ninterval = "200ms"\npacket = "{}b"\n'
    text = 'duration = "2s"\nwarmup = "0s"\nlink = { rate = "1mbit" }\n'
    (tmp_path / "two.toml").write_text(text + "".join(probe.format(size) for size in (100, 200, 84)))
    assert invoke(["run", str(tmp_path / "two.toml"), "-o", str(tmp_path / "made")]) == 0
    with pytest.warns(Doubt, match=r"made: traffic\.1: is left out, as flent has one series 'Ping \(ms\) UDP BE'"):
        found = flent._pings(Run(tmp_path / "made"))
    assert [one.name for one in found] == ["Ping (ms) UDP BE", "Ping (ms) ICMP"]


def test_values_stand_between_samples_and_nowhere_else() -> None:
    series = Series("x", "ms", np.array([1.0, 2.0]), np.array([10.0, 20.0]))
    assert flent._at(series, np.array([0.5, 1.0, 1.5, 2.0, 2.5])) == [None, 10.0, 15.0, 20.0, None]
    assert flent._over([[1.0, None, None], [3.0, 5.0, None]], "avg") == [2.0, 5.0, None]


def test_what_flent_cannot_show_is_one_line(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], base: Path
) -> None:
    (tmp_path / "bare.toml").write_text('duration = "2s"\nlink.rate = "1mbit"\n[[traffic]]\nkind = "bulk"\n')
    assert invoke(["run", str(tmp_path / "bare.toml"), "-o", str(tmp_path / "bare")]) == 0
    there = tmp_path / "there.flent.gz"
    there.write_text("")
    for words, said in (
        ([str(tmp_path / "bare"), "-o", str(tmp_path / "x.flent.gz")], "has nothing that flent shows"),
        ([str(made), "-o", str(tmp_path / "x.json")], "expected a name that ends in .flent.gz"),
        ([str(made), "-o", str(there)], "is there already"),
        ([str(made), "-o", str(tmp_path / "none/x.flent.gz")], "cannot be written"),
        ([str(tmp_path / "none"), "-o", str(tmp_path / "x.flent.gz")], "no such folder"),
    ):
        capsys.readouterr()
        assert invoke(["flent", *words]) == 2
        shown = capsys.readouterr().err
        assert said in shown and shown.count("\n") == 1


@pytest.mark.skipif(FLENT is None, reason="left out: no flent to read its data files with")
def test_flent_reads_it(made: Path, tmp_path: Path) -> None:
    file = flent.write(Run(made), tmp_path / "fq_codel.flent.gz", "at home")
    words = [str(FLENT), "-i", str(file), "-f"]
    told = subprocess.run([*words, "summary"], capture_output=True, text=True, check=True, timeout=120).stdout
    assert "Summary of rrul test run" in told and "at home" in told
    for name in (*PINGS, *TRANSFERS):
        assert name in told, told
    rows = subprocess.run([*words, "csv"], capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
    ours = json.loads(gzip.decompress(file.read_bytes()))
    assert len([row for row in rows if row and row[0].isdigit()]) == len(ours["x_values"])
