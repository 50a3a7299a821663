"""The compiled engine keeps what it promises to the Python side. Needs it built, as `make test` does."""

import json
from dataclasses import replace
from functools import partial

import pytest

import aqmlab
import fake_native
from aqmlab import cli, engine, scenario, toml_text, variants
from aqmlab.errors import BadInput
from aqmlab.tc import words
from conftest import NATIVE, ROOT
from test_bad_input import WRONG_SCENARIOS

SHORT = """
duration = "12s"
warmup = "2s"

[link]
rate = "10mbit"
[link.qdisc]
kind = "pfifo"

[[traffic]]
kind = "web"
users = 400
"""


@pytest.fixture(autouse=True)
def compiled(stand_in, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


@pytest.mark.parametrize("name", ["demo.toml", "web-pi.toml"])
def test_examples_resolve_and_resolve_to_themselves(name):
    source = scenario.read(ROOT / "examples" / name)
    sources = [v.source for v in variants.from_file(source)] if variants.has_variants(source) else [source]
    for each in sources:
        resolved = each.resolve()
        assert engine.resolve(resolved.toml, "again").digest == resolved.digest
        assert [(load.traffic, load.direction) for load in resolved.loads] == [(0, "both")]


@pytest.mark.parametrize("what", WRONG_SCENARIOS)
def test_bad_input_is_one_line_that_names_it(what, tmp_path, capsys):
    text, named = WRONG_SCENARIOS[what]
    (tmp_path / "bad.toml").write_text(text)
    assert cli.invoke(["run", str(tmp_path / "bad.toml"), "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1
    assert "bad.toml" in said.err and named in said.err
    assert not (tmp_path / "out").exists()


LINES = """# What is congested
# is the link
name = "lines"

duration = "3s"
[link]
rate = "10mbit"

[[variant]]  # the first
name = "tail"

[variant.link.qdisc]
kind = "pfifo"

[[traffic]]
# many of them
kind = "bulk"
flws = 3

[[variant]]
name = "a law"
link.qdisc = { kind = "pi" }
"""


@pytest.mark.parametrize("verb", ["run", "compare", "words"])
@pytest.mark.parametrize("settings", [[], ["--set", "traffic.0.kind=poisson"], ["--set", "seed=5", "--set", "name=a"]])
def test_complaints_name_the_authors_line(verb, settings, tmp_path, capsys):
    alone = LINES.replace("[[variant]]  # the first\nname", "# x\n# x").replace("[variant.link.qdisc]", "[link.qdisc]")
    text = LINES if verb == "compare" else alone[: alone.index("[[variant]]")]
    path = tmp_path / "lines.toml"
    path.write_text(text)
    words = ["compare", str(path), "red", "pi"] if verb == "words" else [verb, str(path)]
    line = text.split("\n").index("flws = 3") + 1
    assert cli.invoke([*words, *settings, "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"aqmlab: {path}:{line}: traffic.0.flws = 3: unknown key"), said


@pytest.mark.parametrize("changes", [{"link.qdisc": {"kind": "pi", "qrf": "24p"}}, {"link.rate": "10"}])
def test_no_line_is_named_for_what_stands_in_none(changes, tmp_path):
    key, item = max((f"{k}.qrf", v["qrf"]) if isinstance(v, dict) else (k, v) for k, v in changes.items())
    path = tmp_path / "lines.toml"
    path.write_text(SHORT)
    with pytest.raises(BadInput, match=rf'^{path}: {key} = "{item}": '):
        aqmlab.run(path, set=changes)
    path.write_text(SHORT + f'[[variant]]\nname = "B 1"\nset = {toml_text.value(changes)}\n')
    with pytest.raises(BadInput, match=rf'^{path} \[b-1\]: {key} = "{item}": '):
        aqmlab.compare(path)
    # Keys that no setting can name leave tables without a text, which have no lines.
    path.write_text(SHORT + '[[variant]]\nname = "b"\n[variant."a.b"]\nx = 1\n')
    with pytest.raises(BadInput, match=rf"^{path} \[b\]: a\.b = .*: unknown key"):
        aqmlab.compare(path)


def test_a_text_and_its_tables_are_the_same_scenario():
    text = (
        SHORT
        + '[link.reverse_qdisc]\nkind = "red"\n'
        + "".join(
            f'[[variant]]\nname = "{name}"\n{change}\n'
            for name, change in (
                ("a", 'link.qdisc.kind = "pi"'),
                ("b", 'link.qdisc = { kind = "pi", qref = "10p" }\nset = { "link.reverse_qdisc.kind" = "pfifo" }'),
                ("c", '[variant.tcp]\nstack = "linux"\ncc = "cubic"\n[variant.path]\nrtt = "20ms"'),
                ("d", 'traffic = [ { kind = "bulk" } ]\nset = { "traffic.0.flows" = 3 }\nuncongested = true'),
            )
        )
    )
    for variant in variants.from_file(scenario.read(text).with_changes({"seed": 4})):
        # What no setting of keys can say has no text, and no lines.
        assert (variant.source.text is None) == (variant.name == "b")
        assert variant.source.resolve() == replace(variant.source, text=None).resolve()


@pytest.mark.parametrize("entries", ["0.1,-5\n1,10\n", "0.1,five\n1,ten\n"])
def test_a_bad_distribution_file_is_named(entries, tmp_path, capsys):
    (tmp_path / "rtt.csv").write_text(entries)
    text = SHORT + '[path]\nrtt = { table = "rtt.csv" }\n'
    (tmp_path / "bad.toml").write_text(text)
    assert cli.invoke(["run", str(tmp_path / "bad.toml"), "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "rtt.csv" in said


PINNED = """
name = "pinned"
duration = "4s"
warmup = "1s"
seed = 5
[link]
rate = "2mbit"
[link.qdisc]
kind = "pfifo"
limit = "20p"
[path]
rtt = "30ms"
[[traffic]]
kind = "cbr"
rate = "2500kbit"
"""


def test_a_digest_stays_what_it_was():
    """Datagrams alone, so that no change of TCP is a change of this one; what is new in results stays out of it."""
    found = aqmlab.run(PINNED)
    assert found.summary["live"] is None and found.summary["udp"]["lost_before_link_packets"] == 0
    assert found.digest == "84c8e74259cd4128438c21023c55730620d3274bc339283e149f3d811d60a15e"


def test_the_same_scenario_gives_the_same_digest_on_any_number_of_threads(tmp_path):
    one = aqmlab.compare(SHORT, "pfifo limit 50p", "pi qref 10p ecn", "red", jobs=1, out=tmp_path / "one")
    two = aqmlab.compare(SHORT, "pfifo limit 50p", "pi qref 10p ecn", "red", jobs=3, out=tmp_path / "two")
    assert one.digest == two.digest
    assert one.baseline.completed > 100
    for column in one.columns:
        assert [check for check in column.result.manifest["self_checks"] if not check["holds"]] == []


def test_runs_behind_a_device_queue_hold_their_self_checks():
    delays, waiting = {}, {}
    for ring in ("1p", "64p", "30kb"):
        result = aqmlab.run(SHORT, set={"link.device_queue": ring, "link.qdisc.limit": "50p"})
        assert [check for check in result.manifest["self_checks"] if not check["holds"]] == []
        delays[ring] = result.summary["forward"]["queue_delay_mean_s"]
        waiting[ring] = result.summary["forward"]["queue_mean_packets"]
    none = aqmlab.run(SHORT, set={"link.qdisc.limit": "50p"})
    assert delays["1p"] == none.summary["forward"]["queue_delay_mean_s"], "the packet in transmission is the ring's"
    assert delays["64p"] >= delays["1p"], "the time in the ring is in it"
    assert waiting["64p"] < waiting["1p"], "what is in the ring is not"


def test_tables_and_summary_have_the_keys_of_the_contract():
    result = aqmlab.run(SHORT)
    expected = json.loads(fake_native.simulate(_small(), str(result.folder), None))

    def keys(value, path=()):
        if not isinstance(value, dict):
            return {path}
        return set().union(*(keys(item, (*path, name)) for name, item in value.items()))

    assert keys(expected) <= keys(result.summary)


def test_redopt_is_a_calculator(capsys):
    words = ["explain", "redopt", "--rate", "10mbit", "--set", "flows=64", "--set", "rtt=150ms"]
    assert cli.invoke([*words, "--set", "udp_rate=1mbit", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    values, at = found["values"], found["equilibrium"]
    assert found["given"] == ["flows", "rtt", "udp_rate"]
    assert {"min", "max", "limit", "probability", "wq"} <= set(found["computed"])
    low, high = (float(values[key].removesuffix("p")) for key in ("min", "max"))
    # What the model says of these numbers, to the roundings of their text: the queue in the middle, the probability
    # there half of the greatest without its factor of 1.1, UDP off the link, the flows' windows what the path holds.
    near = partial(pytest.approx, rel=1e-9)
    assert at["queue_packets"] == near((low + high) / 2)
    assert values["probability"] == near(2 * 1.1 * at["drop_probability"])
    assert at["tcp_bps"] == near(10e6 - 1e6 * (1 - at["drop_probability"]))
    assert at["rtt_s"] == near(0.150 + at["queue_packets"] * 1500 * 8 / at["tcp_bps"])
    assert at["window_packets"] * 64 == near(at["tcp_bps"] / 8 / 1500 * at["rtt_s"])
    assert cli.invoke([*words, "--set", "udp_rate=5mbit"]) == 0
    # 104 packets of 1500 bytes leave a link of 10 Mb/s in 125 ms, whoever sent them.
    assert "104.1 packets, 125 ms" in capsys.readouterr().out
    assert cli.invoke([*words, "--set", "min=30p"]) == 0
    said = capsys.readouterr().out
    assert "Equilibrium" in said and "min was given" in said


def test_whatever_is_computed_is_shown_before_a_link(capsys):
    for row in engine.disciplines():
        assert cli.invoke(["explain", row["name"], "--rate", "100mbit", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        named = {param["name"] for param in row["params"]}
        computed = {param["name"] for param in row["params"] if param["computed"]}
        assert set(found["values"]) <= named and set(found["computed"]) <= computed, row["name"]
        assert (found["equilibrium"] is None) == (row["name"] != "redopt")


def _small():
    tree = {"traffic": [{"kind": "web", "users": 50}], "duration": "4s", "link": {"rate": "1mbit"}}
    return json.loads(fake_native.resolve(toml_text.dumps(tree), "x", []))["toml"]


def test_what_progress_raises_ends_the_run(tmp_path):
    class EnoughError(Exception):
        pass

    def enough(tick):
        assert set(tick) >= {"time_s", "duration_s", "bottleneck_packets", "wall_s"}
        raise EnoughError

    long = scenario.read(SHORT).with_changes({"duration": "3600s"}).resolve()
    with pytest.raises(EnoughError):
        engine.simulate(long, tmp_path, enough)


def test_the_registries_say_all_there_is_to_say():
    for row in engine.disciplines():
        assert {"name", "doc", "source", "year", "marks", "params", "aliases"} <= row.keys()
        for param in row["params"]:
            assert {"name", "kind", "default", "range", "unit", "doc", "source"} <= param.keys()
            assert param["source"], (row["name"], param["name"])
    for row in engine.stacks() + engine.controllers() + engine.traffic_models():
        assert row["name"] and row["doc"]
    assert words.parse("pi qref 24p ecn")["ecn"] is True
