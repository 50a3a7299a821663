"""Numbers of one direction: by name in Python and JSON, and first in the tables of a comparison."""

import io
import re

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

import aqmlab
from aqmlab import engine, report
from aqmlab.command import terminal
from aqmlab.errors import BadInput
from aqmlab.results import coarse, readable, ways
from aqmlab.results.window import OF_LINK, OF_WAY
from conftest import NATIVE
from page_cells import BeautifulSoup, text

BULK = """
name = "two flows"
duration = "12s"
warmup = "2s"
link = { rate = "5mbit" }
[[traffic]]
kind = "bulk"
flows = 2
"""
"""Data flow forward, and acknowledgements alone in reverse, where nobody waits."""


@pytest.fixture(scope="module")
def bulk(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "native", NATIVE)
        yield aqmlab.compare(BULK, "pie", "codel", reps=3, jobs=1, out=tmp_path_factory.mktemp("bulk") / "out")


def shown(found, width=200):
    out = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, **terminal.PLAIN)
    terminal.comparison(out, found)
    return out.file.getvalue()


@pytest.mark.parametrize("width", [60, 200])
def test_what_hosts_have_is_not_below_the_title_of_the_link(bulk, width):
    lines = [line.strip() for line in shown(bulk, width).splitlines()]
    title = lines.index("Hosts")
    assert lines.count("Hosts") == 1 and "goodput" in " ".join(lines[title : title + 4])


def test_every_number_of_a_direction_can_be_asked_for_with_its_interval(bulk):
    for column in bulk.columns:
        named = ways.figures(column.result.summary)
        asked = 0
        for name in (name for name in named if not name.startswith("links.")):
            each = [below(summary, name) for summary in column.summaries]
            interval = column.estimate(name)
            if None in each:
                assert np.isnan(interval.value)
                continue
            half = max(stats.t.ppf(0.975, 2) * np.std(each, ddof=1) / np.sqrt(3), coarse.widest_s(name, each))
            assert interval.value == pytest.approx(np.mean(each), rel=1e-9), name
            assert interval.half_width == pytest.approx(half, rel=1e-6, abs=1e-12), name
            assert column.result.estimate(name) == interval
            asked += 1
        assert asked > 30
    assert {"forward.queue_delay_p99_s", "reverse.dropped_by_cause.early"} <= set(named)
    one, other = bulk.columns
    difference = bulk.difference(one, other, "forward.queue_delay_p99_s")
    pairs = zip(one.summaries, other.summaries, strict=True)
    each = [a["forward"]["queue_delay_p99_s"] - b["forward"]["queue_delay_p99_s"] for a, b in pairs]
    assert difference.value == pytest.approx(np.mean(each)) and difference.half_width > 0


def below(tree, name):
    for step in name.split("."):
        tree = tree[step]
    return tree


def test_a_run_has_intervals_of_what_its_parts_tell(base):
    found = aqmlab.run(base)
    (window,) = found.windows
    parts = window.parts("forward.loss_ratio")
    assert parts.size == 20 and np.isfinite(parts).all()
    assert window.measure("forward.loss_ratio") == pytest.approx(found.summary["forward"]["loss_ratio"])
    assert np.isnan(window.parts("forward.queue_delay_p99_s")).all()
    assert found.estimate("forward.queue_delay_p99_s").basis == "none"


def test_what_no_direction_has_is_told_what_there_is(bulk):
    asks = (bulk.columns[0].estimate, bulk["codel"].estimate, lambda name: bulk.difference("pie", "codel", name))
    for ask in asks:
        with pytest.raises(
            BadInput, match=r"^'forward.delay': no number of a direction; expected forward\. before one "
        ):
            ask("forward.delay")
        with pytest.raises(BadInput, match=r"did you mean queue_delay_p9\d_s\? expected reverse\. .*queue_delay_p95_s"):
            ask("reverse.queue_delay_p90_s")
        with pytest.raises(
            BadInput, match=r"'queue_delay_p99_s': no measure; did you mean forward.queue_delay_p99_s\?"
        ):
            ask("queue_delay_p99_s")
        with pytest.raises(BadInput, match="elsewhere: no such link; expected one of none, for there is one link"):
            ask("links.elsewhere.forward.loss_ratio")


def test_a_comparison_shows_the_way_of_the_data_first(bulk):
    column = bulk.column("pie")
    forward, both = (column.estimate(f"{way}queue_delay_mean_s").value for way in ("forward.", ""))
    assert forward > 1.3 * both  # half of the packets are acknowledgements, which do not wait
    said = shown(bulk)
    head = said[: said.index("───")]
    assert re.search(r"used +loss +marked +delay, mean +delay, 99 %", head)
    assert head.count("forward") == 1 and head.startswith("two flows: the link forward\n")
    assert "both" not in said and "in reverse" not in said
    (line,) = [line for line in said[: said.index("goodput")].splitlines() if line.split()[:1] == ["pie"]]
    for measure in ("queue_delay_mean_s", "queue_delay_p99_s"):
        # With the digits that their width is worth, as in every other table.
        assert " ".join(readable.with_width(column.estimate(f"forward.{measure}"), "s")) in line


def test_a_direction_that_carries_data_too_has_a_table_of_its_own(base, undrawn):
    found = aqmlab.compare(base, "pfifo limit 240p", "pi ecn")
    assert found.ways_of_data == ["forward", "reverse"]
    assert "The link, in reverse" in shown(found)
    page = BeautifulSoup(report.write(found).read_text(), "html.parser")
    assert [text(one) for one in page.select("h3")].count("The link, in reverse") == 2


def test_data_in_reverse_alone_are_first():
    summaries = [{"forward": {"throughput_bps": 1e5}, "reverse": {"throughput_bps": 5e6}}]
    assert ways.of_data(summaries) == ["reverse"]
    assert ways.of_data([*summaries, {"forward": {"throughput_bps": 6e5}, "reverse": summaries[0]["reverse"]}]) == [
        "forward",
        "reverse",
    ]


def test_the_direction_whose_queue_is_longer_is_first():
    def queued(forward: float, reverse: float, throughput_bps: float = 1e7) -> dict:
        return {
            "forward": {"throughput_bps": 1e7, "queue_mean_packets": forward},
            "reverse": {"throughput_bps": throughput_bps, "queue_mean_packets": reverse},
        }

    assert ways.of_data([queued(3, 40)]) == ["reverse", "forward"]
    assert ways.of_data([queued(40, 41)]) == ["forward", "reverse"]
    assert ways.of_data([queued(3, 40, throughput_bps=1e5)]) == ["forward"]
    # One run of many does not turn it, nor do those without a queue, which are compared with the baseline.
    assert ways.of_data([queued(30, 10), queued(30, 50), queued(30, 10)]) == ["forward", "reverse"]
    assert ways.of_data([queued(3, 40), queued(5, 1), queued(90, 1)], [queued(3, 40)]) == ["reverse", "forward"]


def test_runs_and_comparisons_put_the_same_direction_first(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    (tmp_path / "up.toml").write_text(
        'name = "up"\nduration = "8s"\nwarmup = "2s"\nlink.rate = "5mbit"\nlink.qdisc.kind = "pfifo"\n'
        '[[traffic]]\nkind = "bulk"\ndirection = "reverse"\n[[traffic]]\nkind = "cbr"\nrate = "4mbit"\n'
    )
    both, alone = aqmlab.compare(tmp_path / "up.toml", "pfifo", "fq_codel"), aqmlab.run(tmp_path / "up.toml")
    assert both.ways_of_data == ["reverse", "forward"]
    for found, shows in ((both, terminal.comparison), (alone, terminal.result)):
        out = Console(file=io.StringIO(), width=120, **terminal.PLAIN)
        shows(out, found)
        said = out.file.getvalue().partition("Hosts")[0]
        assert said.index("reverse") < said.index("forward")


def test_a_table_whose_link_is_turned_says_so(tmp_path, monkeypatch, undrawn):
    monkeypatch.setattr(engine, "native", NATIVE)
    (tmp_path / "home.toml").write_text(
        'name = "home"\nduration = "8s"\nwarmup = "2s"\nlink.rate = "50mbit"\nlink.reverse_rate = "5mbit"\n'
        '[[traffic]]\nkind = "bulk"\ndirection = "reverse"\n'
        '[[traffic]]\nkind = "poisson"\narrivals = "20hz"\nsize = "50kb"\n'
    )
    found = aqmlab.compare(tmp_path / "home.toml", "pfifo limit 100p", "pie")
    assert found.ways_of_data == ["reverse", "forward"]
    said = " ".join(shown(found).split())
    assert said.startswith("home: exchanges ") and "The link, in reverse, whose queue is longer" in said
    page = report.write(found).read_text()
    assert "those of the reverse direction, whose queue is longer; the other direction carries data too" in page


def test_json_and_the_page_have_both_directions_by_themselves_and_together(bulk, undrawn):
    names = [f"{way}.{name}" for way in ("forward", "reverse") for name in OF_WAY]
    for facts in bulk.as_dict()["variants"]:
        assert {*names, *OF_LINK, "p99"} <= facts["measures"].keys()
    difference = bulk.as_dict()["variants"][1]["difference_to_baseline"]["forward.queue_delay_p99_s"]
    assert difference["value"] == bulk.difference("codel", "pie", "forward.queue_delay_p99_s").value
    page = BeautifulSoup(report.write(bulk).read_text(), "html.parser")
    first = page.select_one('table[data-table="measures"]')
    titles = [head.get("title") for head in first.select("thead th")]
    assert titles[:5] == [f"forward.{name}" for name in OF_WAY]
    assert all("forward" in head.small.get_text() for head in first.select("thead th")[:5])
    assert "Both directions of the link together" in [text(one) for one in page.select("details h3")]
    # Of a full link and one with acknowledgements alone it would be half full.
    assert not page.select('table[data-file="numbers.csv"] [data-measure="utilisation"]')
