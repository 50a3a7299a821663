"""Figures of queueing delay: what stands in them is what runs have kept of single packets."""

import json

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest

import aqmlab
from aqmlab import engine, figures
from aqmlab.command import pages
from aqmlab.figures import delay
from aqmlab.figures.drawn import COLOURS
from aqmlab.figures.looks import looks_of
from aqmlab.figures.queue import _in_steps, with_throughput
from aqmlab.figures.sheet import PAGE, PHONE
from conftest import NATIVE
from test_directions import BULK


@pytest.fixture(scope="module")
def bulk(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "native", NATIVE)
        words = ("pfifo limit 60p", "pie", "fq_codel", "uncongested")
        yield aqmlab.compare(BULK, *words, reps=2, jobs=1, out=tmp_path_factory.mktemp("bulk") / "out")


def test_marks_stand_where_summaries_and_tables_say(bulk):
    drawn = figures.of(bulk)["delay"]
    rows, directions = drawn.draw.args
    assert directions == ["forward"] and "in reverse" not in drawn.caption
    assert [row.label for row in rows] == ["pfifo limit 60p", "pie", "fq_codel"]
    for row in rows:
        column, waits = bulk.column(row.label), row.waits["forward"]
        for mark in (delay.MEDIAN, delay.MEAN, delay.P95, delay.P99):
            each = [1e3 * one["forward"][f"queue_delay_{mark}_s"] for one in column.summaries]
            assert waits[mark].value == pytest.approx(np.mean(each), rel=1e-9), mark
            assert waits[mark].half_width is not None
        table = column.result.queue.filter(pl.col("time_s") > 2.0, direction=0)
        assert waits[delay.LONGEST].value == pytest.approx(1e3 * table["queue_delay_max_s"].max())
        # What is drawn is in order, for all of it is of the same packets.
        in_order = [waits[mark].value for mark in (delay.MEDIAN, delay.P95, delay.P99, delay.LONGEST)]
        assert in_order == sorted(in_order)


@pytest.mark.parametrize("sheet", [PAGE, PHONE])
def test_a_discipline_has_its_colour_and_its_intervals_are_drawn(bulk, sheet):
    drawn = figures.of(bulk)["delay"]
    with mpl.rc_context(sheet.style(COLOURS)):
        figure = drawn.draw(sheet)
        (axes,) = figure.axes
        marks = {float(one.get_ydata()[0]): one.get_color() for one in axes.lines if one.get_marker() == "s"}
        looks = looks_of(bulk.columns)
        names = [row.label for row in drawn.draw.args[0]]
        assert marks == {float(place): looks[name].color for place, name in enumerate(names)}
        assert axes.get_xscale() == "log" and axes.get_xlabel() == "queueing delay (ms)"
        assert [tick.get_text().replace("\n", " ") for tick in axes.get_yticklabels()] == names
        pie = drawn.draw.args[0][1].waits["forward"][delay.P99]
        line = [one for one in axes.lines if list(one.get_ydata()) == [1 + delay.BESIDE[delay.P99]] * 2]
        low, high = line[0].get_xdata()
        ends = axes.get_xlim()
        assert low == pytest.approx(max(pie.value - pie.half_width, 1.02 * ends[0]))
        assert high == pytest.approx(min(pie.value + pie.half_width, ends[1]))
    assert "95 % t-intervals across runs" in drawn.caption


def test_both_directions_are_drawn_where_both_carry_data(base):
    drawn = figures.of(aqmlab.compare(base, "pfifo limit 240p", "pi ecn"))["delay"]
    assert drawn.draw.args[1] == ["forward", "reverse"] and "forward and in reverse" in drawn.caption
    svg = drawn.svg
    assert svg.count(">forward<") == svg.count(">reverse<") == 1
    assert "across runs" not in drawn.caption


def test_what_waits_hardly_at_all_stands_at_the_edge(bulk):
    rows, directions = figures.of(bulk)["delay"].draw.args
    nobody = {mark: delay.Interval(0.0, None, 1, "none") for mark in delay.MARKS}
    low, high = delay._ends([*rows, delay.Row("idle", "#000000", {"forward": nobody})], directions)
    assert 0 < low < delay.SHORTEST_MS < high
    low, high = delay._ends([delay.Row("idle", "#000000", {"forward": nobody})], directions)
    assert 0 < low < delay.SHORTEST_MS < high


def test_a_mean_over_time_counts_packets(bulk):
    assert "mean over the packets" in figures.of(bulk)["delay-time"].caption
    rows = {
        "direction": [0, 0],
        "time_s": [0.1, 0.2],
        "queue_delay_mean_s": [0.01, 0.04],
        "delivered_packets": [30, 10],
    }
    found = _in_steps(pl.DataFrame(rows), "queue_delay_mean_s", 1e3, 1.0)["forward"]
    assert found.mean.tolist() == pytest.approx([17.5])
    rows |= {"queue_delay_mean_s": [0.01, None], "delivered_packets": [30, 0]}
    assert _in_steps(pl.DataFrame(rows), "queue_delay_mean_s", 1e3, 1.0)["forward"].mean.tolist() == [10.0]


def test_a_constant_throughput_is_constant_at_the_edges_of_the_window():
    # 8 Mb/s in intervals of 100 ms, with rows that also end at 1.05 s and at 1.23 s.
    ends = [*range(100, 1100, 100), 1050, 1100, 1200, 1230, 1300]
    covered = [100] * 10 + [50, 50, 100, 30, 70]
    rows = {"direction": 0, "time_ns": [10**6 * end for end in ends], "delivered_bytes": [1000 * ms for ms in covered]}
    found = _in_steps(with_throughput(pl.DataFrame(rows)), "throughput_bps", 1e-6, 1.0)["forward"]
    for one in (found.mean, found.low, found.high):
        assert one.tolist() == pytest.approx([8.0, 8.0])
    # A short row counts by what it covers: 0.03 s of 300 ms send 40 Mb/s.
    rows["delivered_bytes"][13] *= 5
    found = _in_steps(with_throughput(pl.DataFrame(rows)), "throughput_bps", 1e-6, 1.0)["forward"]
    assert found.mean.tolist() == pytest.approx([8.0, (8 * 0.27 + 40 * 0.03) / 0.3])


def test_the_distribution_is_that_of_which_summaries_have_percentiles(bulk):
    drawn = figures.of(bulk)["delay-cdf"]
    panels, labels, is_tail = drawn.draw.args
    assert [panel.title for panel in panels] == ["forward"] and labels[0] == "queueing delay (ms)" and not is_tail
    assert [label for label, *_ in panels[0].curves] == ["pfifo limit 60p", "pie", "fq_codel"]
    for label, _, at, shares in panels[0].curves:
        assert (np.diff(shares) >= 0).all() and shares[-1] == pytest.approx(100.0)
        runs = bulk.column(label).result.runs
        tables = [run.delays.filter(direction=0) for run in runs]
        for run, table in zip(runs, tables, strict=True):
            counted = table["packets"].cum_sum() / table["packets"].sum()
            assert table["packets"].sum() == run.summary["forward"]["delivered_packets"]
            for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
                told = table["queue_delay_s"].filter(counted >= q)[0]
                assert told == pytest.approx(run.summary["forward"][f"queue_delay_{name}_s"], abs=1e-12)
        within = sum(int(one.filter(pl.col("queue_delay_s") * 1e3 <= at[150])["packets"].sum()) for one in tables)
        everything = sum(int(one["packets"].sum()) for one in tables)
        assert shares[150] == pytest.approx(100 * within / everything)


def test_results_without_the_table_have_no_such_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    found = aqmlab.run(BULK, set={"duration": "4s"}, out=tmp_path / "out")
    digest = found.manifest["digest"]
    (tmp_path / "out" / "delays.parquet").unlink()
    manifest = tmp_path / "out" / "manifest.json"
    facts = json.loads(manifest.read_text())
    assert facts["tables"].pop("delays.parquet")["rows"] > 0 and facts["digest"] == digest
    manifest.write_text(json.dumps(facts))
    older = aqmlab.load(tmp_path / "out")
    assert {"delay", "delay-time"} <= figures.of(older).keys() and "delay-cdf" not in figures.of(older)
    with pytest.raises(aqmlab.BadInput, match="the run did not write this table"):
        _ = older.runs[0].delays


def test_a_link_at_which_nobody_waits_is_drawn_and_is_on_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    quiet = {"kind": "onoff", "rate": "4mbit", "flows": 1}
    found = aqmlab.run(BULK, set={"duration": "4s", "link.rate": "5mbit", "traffic": [quiet]}, out=tmp_path / "out")
    assert found.delays["queue_delay_s"].max() == 0 and "delay-cdf" in figures.of(found)
    page = pages.write(found).read_text()
    assert all(f"<h3>{drawn.title}" in page or drawn.title in page for drawn in figures.of(found).values())
