"""Networks of several links: what is measured, said and drawn of each of them."""

import io
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import aqmlab
from aqmlab import checks, engine, figures, links, reference, report, scenario, subject, variants
from aqmlab.command import live_view, terminal
from aqmlab.command import sweep as sweep_command
from aqmlab.errors import BadInput
from aqmlab.figures import topology
from aqmlab.measures.catalogue import read
from aqmlab.measures.subject import Seen
from aqmlab.results import by_link, capacity, held_back, named, transport, ways
from aqmlab.results.run import of_link
from aqmlab.results.window import condense
from aqmlab.statistics import Interval
from aqmlab.sweep import condensed, table
from conftest import NATIVE

NETWORK = """
name = "home and core"
duration = "5s"
warmup = "1s"

[links.home]
rate = "20mbit"
reverse_rate = "5mbit"
delay = "5ms"

[links.core]
rate = "12mbit"
qdisc = { kind = "codel" }
schedule = [{ at = "3s", rate = "6mbit" }]

[path]
rtt = "20ms"

[[traffic]]
kind = "bulk"
flows = 2
route = ["home", "core"]

[[traffic]]
kind = "cbr"
rate = "1mbit"
route = ["core"]
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """One run, which no test changes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "native", NATIVE)
        return aqmlab.run(NETWORK, out=tmp_path_factory.mktemp("links") / "run")


def window(result):
    return condense(result.runs[0])


def test_each_link_is_counted_by_itself(result):
    found, summary = window(result), result.summary
    assert list(found.links) == list(links.of(result.scenario)) == ["home", "core"]
    for port in by_link.ports(result.scenario, summary):
        for name in ("utilisation", "loss_ratio", "queue_delay_mean_s"):
            expected = port.figures[name]
            assert result.estimate(f"{port.key}.{name}").value == pytest.approx(expected, rel=1e-6, abs=1e-12)
    # 12 Mb/s for two of the four seconds that are measured, 6 Mb/s for the others: 9 Mb/s.
    assert found.links["core"].rate_bps[0] == pytest.approx(9e6, rel=1e-3)
    assert found.link.rate_bps == (20e6, 5e6) and found.link is found.at("home").link
    # What queues is what the slower link holds back, and its counts are no part of the first one's.
    core = found.at("core").link
    assert core.dropped.sum() + core.marked.sum() > 0 == found.link.dropped.sum()


def test_queues_of_two_links_are_never_added_up(result):
    queue = result.queue
    assert sum(of_link(queue, name).height for name in ("home", "core")) == queue.height
    told = of_link(queue, "core").filter(pl.col("direction") == 0)["delivered_bytes"].sum()
    assert told < queue["delivered_bytes"].sum() and of_link(queue.drop("link"), "core").height == queue.height


def test_packets_are_conserved_on_each_link(result):
    names = {"packets are conserved", "no more is sent than the link carries"}
    found = [check for check in result.manifest["self_checks"] if check["name"] in names]
    assert len(found) == 2
    assert all(check["holds"] and "core forward" in check["detail"] for check in found)
    # A row of one link that is gone is seen, though the other one's books are in order.
    queue = result.queue.with_columns(
        pl.when(pl.col("link") == "core").then(0).otherwise(pl.col("delivered_packets")).alias("delivered_packets")
    )
    assert not checks._conservation(queue, result.scenario).holds
    assert not checks._conservation(of_link(queue, "home"), result.scenario).holds


def test_a_measure_is_that_of_the_link_that_it_names(result):
    run = Seen(window(result), result.summary, result.scenario)

    def of(name, link, **others):
        (reading,) = read({"measure": name, "direction": "forward", "link": link, **others}, "claim")
        return reading.formula.whole(run)

    for link, facts in result.summary["links"].items():
        assert of("utilisation", link) == pytest.approx(facts["forward"]["utilisation"], rel=1e-6)
        assert of("queue_mean_packets", link) == facts["forward"]["queue_mean_packets"]
        assert of("queue_delay_quantile_s", link, q=0.99) == facts["forward"]["queue_delay_p99_s"]
    assert str(of("utilisation", "elsewhere")) == "nan"
    (reading,) = read({"measure": "summary", "key": "links.core.forward.utilisation"}, "claim")
    assert reading.formula.whole(run) == result.summary["links"]["core"]["forward"]["utilisation"]
    with pytest.raises(BadInput, match="elsewhere: no such link; expected one of home, core"):
        result.estimate("links.elsewhere.forward.utilisation")


def test_a_run_of_several_links_is_kept_without_its_tables(result):
    facts = {"wall_s": 1.0, "simulated_s": 5.0, "peak_rss_bytes": 0}
    kept = condensed.Condensed.from_bytes(condensed.of_run(result.runs[0], "key", facts).to_bytes())
    name = "links.core.forward.queue_delay_mean_s"
    assert kept.window.measure(name) == window(result).measure(name)
    assert kept.window.at("core").link.state.keys() == window(result).at("core").link.state.keys()
    thin = condensed.thinned(result.queue, 12)
    assert (
        thin.group_by("link", "direction")
        .agg(pl.col("offered_packets").sum())
        .sort("link", "direction")
        .equals(
            result.queue.group_by("link", "direction")
            .agg(pl.col("offered_packets").cast(pl.UInt64).sum())
            .sort("link", "direction")
        )
    )
    row = table.measures(result.summary)
    assert row["links_core_forward_utilisation"] == result.summary["links"]["core"]["forward"]["utilisation"]
    assert not [name for name in table.measures({"links": {"link": {"forward": {"a": 1}}}}) if "link" in name]


def test_waits_are_those_of_the_route(result):
    crossings = by_link.crossings(result)
    found = {(one.block, one.way): one for one in crossings}
    assert [wait.link for wait in found[0, "forward"].waits] == ["home", "core"]
    assert [wait.link for wait in found[0, "reverse"].waits] == ["core", "home"]
    assert [wait.link for wait in found[1, "forward"].waits] == ["core"] and (1, "reverse") not in found
    one = found[0, "forward"]
    assert one.together_s.value == pytest.approx(sum(wait.mean_s.value for wait in one.waits))
    summary = result.summary
    step = summary["routes"]["0"]["forward"][1]
    assert one.waits[1].mean_s.value == step["queue_delay_mean_s"] > 0 and one.waits[1].mean_s.half_width is None


def test_waits_of_several_runs_have_intervals(monkeypatch, tmp_path, undrawn):
    monkeypatch.setattr(engine, "native", NATIVE)
    found = aqmlab.run(NETWORK, reps=2, jobs=1, out=tmp_path / "run")
    one = next(one for one in by_link.crossings(found) if (one.block, one.way) == (0, "forward"))
    each = [[step["queue_delay_mean_s"] for step in run.summary["routes"]["0"]["forward"]] for run in found.runs]
    # Two runs: Student's t with one degree of freedom, 12.706 at 95 %; the spread of two is their distance.
    for k, wait in enumerate(one.waits):
        width = 12.706 * abs(each[0][k] - each[1][k]) / 2
        assert wait.mean_s.half_width == pytest.approx(width, rel=1e-3)
        of_summary = found.summary["half_width_95"]["routes"]["0"]["forward"][k]["queue_delay_mean_s"]
        assert of_summary == pytest.approx(wait.mean_s.half_width)
    assert one.together_s.half_width == pytest.approx(12.706 * abs(sum(each[0]) - sum(each[1])) / 2, rel=1e-3)
    console = Console(width=110, file=io.StringIO())
    terminal.result(console, found)
    (line,) = [line for line in console.file.getvalue().splitlines() if line.split()[:2] == ["bulk", "forward"]]
    assert line.count("±") == 3
    page = report.write(found).read_text(encoding="utf-8")
    table = page[page.index("<h2>Waits by link</h2>") :].partition("</table>")[0]
    # Each wait, and all of a route together.
    assert table.count("<small>±\xa0") == sum(len(one.waits) + 1 for one in by_link.crossings(found))
    assert "together" in table and "Both directions of home, the first link, together" in page


def _steps(*means_s):
    steps = [{"link": link, "queue_delay_mean_s": mean} for link, mean in zip(("home", "core"), means_s, strict=False)]
    return {"routes": {"0": {"forward": steps}}}


@pytest.mark.parametrize("other", [_steps(None, None), _steps(0.012), {"routes": {}}])
def test_waits_from_end_to_end_are_none_where_a_run_has_no_packets_at_a_link(result, other):
    """Once they were counted as nothing: 15 ms in the mean of 30 ms and none."""
    runs = [SimpleNamespace(summary=_steps(0.010, 0.020)), SimpleNamespace(summary=other)]
    found = SimpleNamespace(summary=_steps(0.010, 0.020), runs=runs, scenario=result.scenario)
    (one,) = by_link.crossings(found)
    assert math.isnan(one.waits[1].mean_s.value) and math.isnan(one.together_s.value)
    both = SimpleNamespace(summary=_steps(0.010, 0.020), runs=[runs[0], runs[0]], scenario=result.scenario)
    (one,) = by_link.crossings(both)
    assert one.together_s.value == pytest.approx(0.030)


BULK = {"kind": "bulk", "flows": 2, "direction": "forward", "route": ["home", "core"]}


@pytest.mark.parametrize(
    ("other", "is_shown"),
    [
        ({}, True),
        ({"kind": "cbr", "direction": "reverse"}, True),
        ({"size": "1mb", "direction": "reverse"}, True),
        ({"direction": "reverse"}, False),
        ({"direction": "both"}, False),
        ({"direction": "both", "flows": 1}, True),
        ({"route": ["core"]}, False),
    ],
)
def test_jains_index_is_shown_of_flows_that_share_their_links(other, is_shown):
    tree = {"links": {"home": {}, "core": {}}, "traffic": [BULK, BULK | other]}
    run = SimpleNamespace(summary={"tcp": {"jain_index": 0.73}})
    shown = transport.shown([SimpleNamespace(scenario=tree, runs=[run, run])])
    assert [figure.key for figure in shown] == ["tcp.jain_index"] * is_shown


def test_what_is_said_names_links_and_routes(result):
    said = subject.link(result.scenario)
    assert said == "20 Mb/s forward and 5 Mb/s in reverse (home); 6 Mb/s to 12 Mb/s each way (core)"
    assert subject.blocks(result.scenario)[0] == "2 endless transfers forward, over home and core"
    held_back.seen(result.scenario, result.summary)
    assert held_back.foreseen(result.scenario) == []


def resolved(text=NETWORK, monkeypatch=None):
    monkeypatch.setattr(engine, "native", NATIVE)
    return scenario.read(text).resolve()


def test_in_the_reference_every_link_is_faster_and_none_changes(monkeypatch):
    found = resolved(monkeypatch=monkeypatch)
    fast = reference.uncongested(found.scenario, reference.rates(found.scenario, "x"), "x")
    assert [fast["links"][name]["rate"] for name in ("home", "core")] == ["200mbit", "120mbit"]
    assert fast["links"]["home"]["reverse_rate"] == "50mbit" and fast["links"]["home"]["delay"] == "5ms"
    assert not {"schedule", "told_rate"} & fast["links"]["core"].keys()
    # Two flows share the slower link of their route.
    assert fast["traffic"][0]["max_pacing_rate"] == "6mbit"
    assert engine.resolve(aqmlab.toml_text.dumps(fast), "x").scenario["links"].keys() == {"home", "core"}


def test_a_comparison_has_the_figures_of_each_link(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    other = '[[variant]]\nname = "a"\n[[variant]]\nname = "b"\n[variant.links.core]\nqdisc = "pie"\n'
    found = aqmlab.compare(NETWORK + other, jobs=1)
    name = "links.core.forward.queue_delay_mean_s"
    for column, facts in zip(found.columns, found.as_dict()["variants"], strict=True):
        expected = column.summaries[0]["links"]["core"]["forward"]["queue_delay_mean_s"]
        assert facts["measures"][name]["value"] == pytest.approx(expected, rel=1e-6)
        assert column.qdisc["kind"] == "pfifo" and column.scenario["links"]["core"]["qdisc"]["kind"] != "pfifo"
    assert found.as_dict()["variants"][1]["difference_to_baseline"][name]["value"] != 0
    assert {"topology", "queue", "throughput"} <= figures.of(found).keys()


def test_the_drawing_has_links_from_left_to_right_and_every_block(monkeypatch):
    text = NETWORK.replace('route = ["core"]', 'route = ["core"]\nrtt_at = "left"')
    text = text.replace("[links.home]", '[links.far]\nrate = "1gbit"\n\n[links.home]', 1)
    text += '[[traffic]]\nkind = "bulk"\nroute = ["core", "far"]\n'
    tree = resolved(text, monkeypatch).scenario
    order = topology._in_order(tree)
    assert order == ["home", "core", "far"]
    assert list(topology._said("core", [tree])) == ["6 Mb/s to 12 Mb/s", "by schedule", "codel"]
    assert list(topology._said("home", [tree])) == ["20 Mb/s\u00a0→", "5 Mb/s\u00a0←", "pfifo", "delay 5 ms"]
    lanes = [topology._lane(tree, number, order) for number in range(3)]
    assert [lane.routes["forward"] for lane in lanes] == [(0, 1), (1,), (1, 2)]
    assert [lane.routes["reverse"] for lane in lanes] == [(1, 0), (1,), (2, 1)]
    assert lanes[1].words == "cbr: 1 UDP source of a constant rate (1 Mb/s) forward; RTT of its paths 20 ms at its left"
    # Links that routes cross in both orders stand as the file has them.
    around = {**tree, "traffic": [*tree["traffic"], {**tree["traffic"][0], "route": ["far", "home"]}]}
    assert topology._in_order(around) == ["far", "home", "core"]


def test_a_schedule_with_a_period_begins_again():
    link = {"rate": "10mbit", "reverse_rate": "1mbit", "period": "4s"}
    change = {"rate": "5mbit", "reverse_rate": "1mbit", "outage": "500ms"}
    link["schedule"] = [{**change, "at": "1s"}, {**change, "at": "2s", "rate": "10mbit", "outage": "0s"}]
    found = links.rates_over_time(link, "forward", 6.0)
    expected = [(0, 10e6), (1, 0), (1.5, 5e6), (2, 10e6), (5, 0), (5.5, 5e6)]
    assert found == expected
    assert {rate for _, rate in links.rates_over_time(link, "reverse", 6.0)} == {1e6, 0.0}
    assert links.rates_over_time({"rate": "1mbit"}, "forward", 6.0) == []
    # At the end of a period the link is as it was at the start.
    link["schedule"] = [{**change, "at": "3s"}]
    found = links.rates_over_time(link, "forward", 8.0)
    assert found == [(0, 10e6), (3, 0), (3.5, 5e6), (4, 10e6), (7, 0), (7.5, 5e6)]
    # An outage lasts, whatever changes meanwhile, and also past the end of a period.
    link["schedule"] = [
        {**change, "at": "3s", "outage": "2s"},
        {**change, "at": "3500ms", "rate": "2mbit", "outage": "0s"},
    ]
    found = links.rates_over_time(link, "forward", 8.0)
    assert found == [(0, 10e6), (3, 0), (5, 5e6), (5, 2e6), (5, 10e6), (7, 0)]


def test_what_is_for_one_link_says_so(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    with pytest.raises(BadInput, match=r"'codel': a discipline of which link\? .*variant.links.core.qdisc"):
        variants.written_out(scenario.read(NETWORK), ["codel"])
    changed = variants.from_file(
        scenario.read(NETWORK + '[[variant]]\nname = "pie"\n[variant.links.core]\nqdisc = "pie"\n')
    )
    tree = changed[0].source.resolve().scenario["links"]
    assert [tree["core"][key]["kind"] for key in variants.QUEUES] == ["pie", "pie"]
    assert tree["home"]["qdisc"]["kind"] == "pfifo"


def test_a_live_network_is_no_share_of_its_first_link(monkeypatch):
    state = live_view._State("net", 5.0, 1, resolved(monkeypatch=monkeypatch).scenario)
    state.hear({"time_s": 1.0, "duration_s": 5.0, "rate_bps": [12e6, 2e5], "queue_packets": [206, 0]})
    console = Console(width=110, file=io.StringIO())
    console.print(live_view.picture(state, "net"))
    shown = console.file.getvalue()
    assert "12 Mb/s" in shown and "home and core" in shown and "% of" not in shown


@pytest.mark.parametrize(
    ("link", "used", "said"),
    [
        ({"rate": "1mbit"}, (1.00004, 0.2), ""),
        ({"rate": "1mbit"}, (1.0000711, None), "Above 100 %: a packet that began before the window"),
        ({"rate": "1mbit", "reverse_trace": {}}, (0.9, 1.3), "Above 100 %: the window holds more than the mean"),
    ],
)
def test_what_is_used_by_more_than_all_is_explained(link, used, said):
    summary = {way: {"utilisation": share} for way, share in zip(links.WAYS, used, strict=True)}
    found = by_link.over_full([SimpleNamespace(scenario={"link": link}, summary=summary)])
    assert found.startswith(said) and bool(found) == bool(said)


def test_a_terminal_shows_each_link_and_the_waits_at_each(result):
    console = Console(width=110, file=io.StringIO())
    terminal.result(console, result)
    shown = console.file.getvalue()
    for link, facts in result.summary["links"].items():
        (line,) = [line for line in shown.splitlines() if line.split()[:2] == [link, "forward"]]
        assert f"{100 * facts['forward']['utilisation']:.2f}" in line
    assert "together" in shown and "bulk" in shown


def test_a_sweep_has_a_line_for_each_link(result):
    found = table.measures(result.summary)
    sweep = SimpleNamespace(points=[SimpleNamespace(name="a")])
    finished = SimpleNamespace(sweep=sweep, rows=[found], mean=lambda _, name: Interval(found[name], None, 1, "none"))
    console = Console(width=110, file=io.StringIO())
    console.print(sweep_command._by_link(finished, ["home", "core"], {}))
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    figures = result.summary["links"]
    flowing = [(name, way) for name in ("home", "core") for way in ways.of_data([figures[name]])]
    used = [[name, way, f"{100 * figures[name][way]['utilisation']:.2f}"] for name, way in flowing]
    assert [line[1:4] for line in lines if line[:1] == ["a"]] == used and len(used) >= 2


CHANGING = """
duration = "6s"
warmup = "1s"
link = { rate = "4mbit", qdisc = { kind = "pfifo", limit = "20p" } }
path = { rtt = "20ms" }
[[traffic]]
kind = "cbr"
rate = "5mbit"
"""


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": [{"at": "3s", "rate": "1mbit"}]},
        {"schedule": [{"at": "700ms", "rate": "2mbit", "outage": "150ms"}], "period": "1100ms"},
        {"schedule": [{"at": "2s", "rate": "2mbit", "outage": "1s"}, {"at": "2500ms", "rate": "3mbit"}]},
    ],
)
def test_a_part_of_the_window_has_the_rate_of_its_time(changes, tmp_path, monkeypatch):
    """A link that is always full is so in every part, whatever its rate is then."""
    monkeypatch.setattr(engine, "native", NATIVE)
    edits = {f"link.{key}": item for key, item in changes.items()}
    (run,) = aqmlab.run(CHANGING, set=edits, out=tmp_path / "run").runs
    found = condense(run)
    parts = found.parts("forward.utilisation")
    was_open = found.link.relative_rate[0] > 0
    assert was_open.sum() > 15 and np.isnan(parts[~was_open]).all()
    # Parts of 250 ms; a packet of 12,000 bits at either end is the most that one has more or less.
    bits = found.link.relative_rate[0] * found.link.rate_bps[0] * found.link.covered_s[0]
    assert np.abs(parts - 1)[was_open] == pytest.approx(0, abs=12_001 / bits[was_open].min())
    assert bits.sum() == pytest.approx(found.link.rate_bps[0] * 5, rel=1e-6)
    assert found.measure("forward.utilisation") == pytest.approx(run.summary["forward"]["utilisation"])
    seen = SimpleNamespace(window=found)
    (formula,) = read({"measure": "utilisation", "direction": "forward"}, "here", ())
    assert formula.formula.parts(seen) == pytest.approx(parts, nan_ok=True)


def test_parts_have_no_utilisation_where_the_rate_at_a_time_is_not_told(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    states = [{"rate": rate, "stay": "500ms", "to": to} for rate, to in (("4mbit", [0, 1]), ("1mbit", [1, 0]))]
    (run,) = aqmlab.run(CHANGING, set={"link.states": states}, out=tmp_path / "states").runs
    found = condense(run)
    assert np.isnan(found.parts("forward.utilisation")).all() and np.isnan(found.parts("utilisation")).all()
    assert np.isfinite(found.parts("forward.throughput_bps")).all()
    assert found.measure("forward.utilisation") == pytest.approx(run.summary["forward"]["utilisation"])
    trusted = named.Numbers(run, lambda: replace(found, settled=None))
    assert named.estimate([trusted], "forward.utilisation").half_width is None
    alike = [state | {"rate": "4mbit", "delay": f"{k}ms"} for k, state in enumerate(states)]
    (run,) = aqmlab.run(CHANGING, set={"link.states": alike}, out=tmp_path / "alike").runs
    assert condense(run).parts("forward.utilisation") == pytest.approx(1, abs=0.02)


IN_STATE = {"rate": "2mbit", "reverse_rate": "1mbit", "stay": "1s", "to": [1, 0]}


@pytest.mark.parametrize(
    ("changes", "both"),
    [
        # Nine tenths of a second of 1 Mb/s are sent, 900 kb/s of them: of one second of 10 Mb/s and nine of 1 Mb/s.
        ({"schedule": [{"at": "1s", "rate": "1mbit"}]}, 9 / 19 / 2),
        ({"schedule": [{"at": "1s", "rate": "1mbit", "reverse_rate": "2mbit"}], "reverse_rate": "4mbit"}, 9 / 41),
        (
            {"states": [{"rate": "1mbit", "stay": "1s", "to": [0, 1]}, {"rate": "2mbit", "stay": "1s", "to": [1, 0]}]},
            0.3,
        ),
        ({"states": [{"rate": "1mbit", "reverse_rate": "2mbit", "stay": "1s", "to": [0, 1]}, IN_STATE]}, None),
    ],
)
def test_a_direction_that_sends_nothing_has_its_rate_of_then(changes, both, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    text = CHANGING.replace('duration = "6s"\nwarmup = "1s"', 'duration = "10s"\nwarmup = "0s"')
    text = text.replace('rate = "4mbit", ', "" if "states" in changes else 'rate = "10mbit", ')
    text = text.replace("5mbit", "900kbit").replace("20ms", "10ms") + 'start = "0s"\n'
    (run,) = aqmlab.run(text, set={f"link.{key}": item for key, item in changes.items()}, out=tmp_path / "run").runs
    found = condense(run)
    assert run.summary["reverse"]["delivered_packets"] == 0
    assert found.measure("forward.utilisation") == pytest.approx(run.summary["forward"]["utilisation"], rel=1e-9)
    assert found.measure("reverse.utilisation") == 0
    if both is None:
        assert np.isnan(found.measure("utilisation")), "what it could have sent is not told"
    else:
        assert found.measure("utilisation") == pytest.approx(both, rel=0.01)


def test_a_window_that_is_an_outage_has_no_utilisation(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    edits = {"link.schedule": [{"at": "1ms", "outage": "20s"}]}
    (run,) = aqmlab.run(CHANGING, set=edits, out=tmp_path / "run").runs
    found = condense(run)
    assert run.summary["forward"]["utilisation"] is None
    for name in ("utilisation", "forward.utilisation", "reverse.utilisation"):
        assert np.isnan(found.measure(name)), name


@pytest.mark.parametrize("seed", range(20))
def test_what_a_schedule_could_carry_is_that_of_every_entry_of_every_period(seed):
    draw = np.random.default_rng(seed)
    period_ms = int(draw.integers(5, 400))
    at_ms = sorted(draw.choice(period_ms, size=draw.integers(1, 5), replace=False))
    rates = draw.integers(1, 50, size=(len(at_ms) + 1, 2))
    outages_ms = np.where(draw.random(len(at_ms)) < 0.5, draw.integers(0, period_ms, len(at_ms)), 0)
    link = {"rate": f"{rates[0][0]}mbit", "reverse_rate": f"{rates[0][1]}mbit", "period": f"{period_ms}ms"}
    link["schedule"] = [
        {"at": f"{at}ms", "rate": f"{there}mbit", "reverse_rate": f"{back}mbit", "outage": f"{outage}ms"}
        for at, (there, back), outage in zip(at_ms, rates[1:], outages_ms, strict=True)
    ]
    since, until = np.sort(np.append(draw.random((500, 2)) * 9, [[0.0, 0.1], [0.0, 9.0]], axis=0)).T
    for way in links.WAYS:
        at, bps = np.array([*links.rates_over_time(link, way, 9.0), (9.0, 0.0)]).T
        whole = np.append(0.0, np.cumsum(bps[:-1] * np.diff(at)))
        expected = np.interp(until, at, whole) - np.interp(since, at, whole)
        assert capacity.bits_between(link, way, since, until) == pytest.approx(expected, rel=1e-9, abs=1e-3)


def test_of_a_schedule_with_many_periods_few_are_unrolled(monkeypatch):
    asked = []
    rates_over_time = links.rates_over_time
    monkeypatch.setattr(links, "rates_over_time", lambda *args: asked.append(args[2]) or rates_over_time(*args))
    change = {"rate": "5mbit", "reverse_rate": "5mbit", "outage": "500us"}
    link = {"rate": "10mbit", "reverse_rate": "10mbit", "period": "1ms", "schedule": [change | {"at": "700us"}]}
    # From 0.7 ms of a period to 0.2 ms of the next one nothing is sent, then 0.5 ms at 10 Mb/s.
    since, until = np.array([60.0, 100.0007, 100.0007]), np.array([300.0, 100.0012, 100.0017])
    found = capacity.bits_between(link, "forward", since, until)
    assert found == pytest.approx([240 * 5e6, 0, 5e3]) and found[1] == 0
    assert max(asked) <= 0.002


def test_another_way_to_the_same_hosts_is_no_other_demand(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    one = {"links": {"modem": {"rate": "50mbit"}}, "traffic": [{"kind": "bulk", "flows": 2}]}
    behind = {
        "links": {"modem": {"rate": "50mbit"}, "router": {"rate": "40mbit"}},
        "traffic": [
            {"kind": "bulk", "flows": 2, "route": ["modem", "router"], "reverse_route": ["router", "modem"]},
        ],
    }
    more = {**behind, "traffic": [{**behind["traffic"][0], "flows": 3}]}
    digests = [scenario.demand_digest(scenario.read(tree).resolve().scenario) for tree in (one, behind, more)]
    assert digests[0] == digests[1] != digests[2]
