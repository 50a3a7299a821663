"""Recording and replay through the command line, with the compiled engine."""

import json

import polars as pl
import pytest

import aqmlab
from aqmlab import cli, engine, variants
from aqmlab import scenario as scenarios
from aqmlab.errors import BadInput, Interrupted
from aqmlab.results import store
from conftest import NATIVE

SCENARIO = """
duration = "40s"
warmup = "0s"
seed = 5

[link]
rate = "2mbit"
qdisc = { kind = "pi", qref = "10p", ecn = true }

[[traffic]]
kind = "web"
users = 300
ecn = "on"
hosts = 50

[[traffic]]
kind = "bulk"
flows = 2
size = { pareto = { mean = "30000b", shape = 1.5 } }

[[traffic]]
kind = "probe"
"""

EXCHANGE = ("traffic", "source", "start_s", "request_bytes", "response_bytes", "direction")


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    path = tmp_path / "web.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def recorded(scenario, tmp_path):
    return aqmlab.record(scenario, tmp_path / "demands.csv")


def test_what_asks_is_recorded_and_all_else_stays(scenario, recorded, tmp_path, capsys):
    assert cli.invoke(["record", str(scenario), "-o", str(tmp_path / "again.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["uncongested_rate_bps"] == 20e6
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "demands.csv").read_bytes()
    lines = pl.read_csv(tmp_path / "demands.csv")
    (demands,) = recorded.demands
    assert demands.traffic == 0
    assert demands.exchanges == lines["request_bytes"].is_not_null().sum() > 300
    assert demands.connections == lines["connection"].n_unique()
    before = engine.resolve(SCENARIO, "s.toml").scenario
    after = scenarios.read(tmp_path / "demands.toml").tree
    assert after["link"]["qdisc"] == before["link"]["qdisc"]
    assert after["traffic"][0] == {
        "kind": "replay",
        "demands": "demands.csv",
        "hosts": 50,
        "dscp": "CS0",
        "ecn": "on",
    }
    # A key that is one of TCP's too stands only where the author gave it: here that of the probe is the default.
    assert before["traffic"][2].pop("ect") == "not-ect"
    assert after["traffic"][1:] == before["traffic"][1:]
    assert "tcp" not in after


def test_the_replays_hosts_are_the_authors_and_can_be_changed(scenario, tmp_path):
    (tmp_path / "mine.toml").write_text('base = "linux"\ncc = "reno"\n')
    (tmp_path / "out").mkdir()
    text = SCENARIO.replace("users = 300", 'users = 300\nstack = "mine.toml"\ncc = "cubic"').replace("40s", "8s")
    variant = '[[variant]]\nname = "{}"\ntcp.cc = "{}"\n'
    scenario.write_text(
        text + '[tcp]\nstack = "linux"\ncc = "reno"\n' + variant.format("a", "bbr") + variant.format("b", "cubic")
    )
    aqmlab.record(scenario, tmp_path / "out/demands.csv")
    written = scenarios.read(tmp_path / "out/demands.toml")
    assert written.tree["tcp"] == {"stack": "linux", "cc": "reno"}
    replay = written.tree["traffic"][0]
    assert replay["stack"] == "../mine.toml" and replay["cc"] == "cubic" and "hystart" not in replay
    alone = variants.without_variants(written)
    assert alone.with_changes({"tcp": {"stack": "ns2"}}).resolve() != alone.resolve()
    a, b = (variant.source.resolve().scenario for variant in variants.from_file(written))
    assert (a["tcp"]["cc"], b["tcp"]["cc"]) == ("bbr", "cubic")
    assert aqmlab.compare(tmp_path / "out/demands.toml", jobs=1).reps == 1


@pytest.mark.parametrize("taken", ["demands-0.csv", "demands-2.csv", "demands.csv", "demands.toml"])
def test_every_name_is_claimed_before_anything_runs(scenario, tmp_path, taken, monkeypatch):
    poisson = '[[traffic]]\nkind = "poisson"\narrivals = "10hz"\nsize = "9kb"\n'
    scenario.write_text(SCENARIO[: SCENARIO.index('[[traffic]]\nkind = "probe"')] + poisson)
    (tmp_path / taken).write_text("mine")
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(engine, "simulate", lambda *_: pytest.fail("it ran"))
    with pytest.raises(BadInput, match=rf"{taken}: exists"):
        aqmlab.record(scenario, tmp_path / "demands.csv")
    assert sorted(tmp_path.iterdir()) == before


def test_a_recording_that_cannot_be_finished_leaves_nothing(scenario, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(store, "write_text", stopped)
    with pytest.raises(Interrupted, match="nothing was written"):
        aqmlab.record(scenario, tmp_path / "demands.csv", set={"duration": "5s"})
    assert sorted(tmp_path.iterdir()) == before


def test_disciplines_meet_the_same_demands(recorded, tmp_path):
    # Time to answer everything.
    compared = aqmlab.compare(
        tmp_path / "demands.toml", "pfifo limit 20p", "pi qref 10p", set={"duration": "200s"}, out=tmp_path / "out"
    )
    one, other = (column.result for column in compared.columns)
    assert one.manifest["demand_digest"] == other.manifest["demand_digest"]
    asked = [result.exchanges.filter(pl.col("traffic") == 0).select(EXCHANGE).sort(EXCHANGE) for result in (one, other)]
    assert asked[0].equals(asked[1])
    assert asked[0].height == recorded.demands[0].exchanges
    assert one.digest != other.digest
    # The demands travel with the results, which run again by themselves.
    (tmp_path / "demands.csv").unlink()
    assert aqmlab.run(one.folder / "scenario.toml").digest == one.digest


def test_on_the_uncongested_link_answers_come_as_recorded(scenario, recorded, tmp_path):
    link = {"rate": "20mbit", "qdisc": {"kind": "pfifo", "limit": "100000p"}}
    original = aqmlab.run(scenario, set={"link": link}).exchanges
    again = aqmlab.run(tmp_path / "demands.toml", set={"link": link}).exchanges
    times = ("start_s", "response_time_s")
    original, again = (frame.select(*times).sort(times) for frame in (original, again))
    assert original.equals(again)


def test_probes_are_in_the_table_and_in_the_summary(recorded, tmp_path):
    result = aqmlab.run(tmp_path / "demands.toml", out=tmp_path / "out")
    probes = result.probes
    summary = result.summary["probes"]
    assert summary["sent_packets"] == probes.height
    assert summary["lost_packets"] == probes["delay_s"].null_count()
    assert summary["one_way_delay_s"]["p50"] == pytest.approx(probes["delay_s"].quantile(0.5), rel=2e-3)
    assert "probes.parquet" in result.manifest["tables"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("demands.csv", "demands.csv: exists; expected the name of a new file"),
        ("web.csv", "web.toml: exists; expected the name of a new file"),
        ("other.toml", "other.toml: expected the name of a file of demands"),
        ("no/demands.csv", "no is no folder"),
    ],
)
def test_nothing_is_overwritten(scenario, recorded, tmp_path, name, said):
    with pytest.raises(BadInput, match=said):
        aqmlab.record(scenario, tmp_path / name)


@pytest.mark.parametrize(
    "block",
    [
        'kind = "cbr"\nrate = "1mbit"',
        'kind = "poisson"\narrivals = "9hz"\nsize = "9kb"\nrequest = "0b"',
        'kind = "video"',
    ],
)
def test_traffic_that_asks_for_nothing_is_refused_before_anything_runs(scenario, tmp_path, block, monkeypatch):
    scenario.write_text(f"[[traffic]]\n{block}\n")
    monkeypatch.setattr(engine, "simulate", lambda *_: pytest.fail("it ran"))
    with pytest.raises(BadInput, match=r"traffic: nothing to record; .*: web or poisson, with a request above 0b"):
        aqmlab.record(scenario, tmp_path / "demands.csv")
    assert not (tmp_path / "demands.toml").exists()


def test_homes_are_recorded_but_for_their_films(scenario, tmp_path):
    homes = '[[traffic]]\nkind = "homes"\nhomes = 20\ngames = 0\ncc = "reno"\n'
    web = SCENARIO.index('[[traffic]]\nkind = "web"')
    scenario.write_text((SCENARIO[:web] + homes + SCENARIO[web:]).replace("40s", "10s"))
    found = aqmlab.record(scenario, tmp_path / "demands.csv")
    # Pages, video, calls, downloads and backups; then the author's own.
    assert [demands.traffic for demands in found.demands] == [0, 5]
    written = scenarios.read(tmp_path / "demands.toml")
    kinds = [block["kind"] for block in written.tree["traffic"]]
    assert kinds == ["replay", "video", "probe", "bulk", "bulk", "replay", "bulk", "probe"]
    assert [block.get("cc") for block in written.tree["traffic"]] == ["reno"] * 2 + [None] + ["reno"] * 2 + [None] * 3
    assert not (tmp_path / "demands-1.csv").exists()
    before = engine.resolve(scenario.read_text(), "s.toml").scenario
    assert written.resolve().scenario["traffic"][1] == before["traffic"][1]


def test_variants_of_another_discipline_run_after_recording(scenario, tmp_path):
    scenario.write_text(
        SCENARIO.replace('qdisc = { kind = "pi", qref = "10p", ecn = true }\n', "").replace(
            'duration = "40s', 'duration = "4s'
        )
        + '[[variant]]\nname = "tail"\n[[variant]]\nname = "codel"\nset = { "link.qdisc.kind" = "codel" }\n'
    )
    aqmlab.record(scenario, tmp_path / "both.csv")
    found = aqmlab.compare(tmp_path / "both.toml", out=tmp_path / "both")
    assert [column.name for column in found.columns] == ["tail", "codel"]


def test_a_link_slower_than_the_scenarios_is_not_uncongested(scenario, tmp_path, capsys):
    words = ["record", str(scenario), "-o", str(tmp_path / "slow.csv"), "--uncongested-rate", "1mbit"]
    assert cli.invoke(words) == 2
    assert "--uncongested-rate 1mbit: expected at least the link's own rate, 2 Mb/s" in capsys.readouterr().err
