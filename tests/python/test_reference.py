"""The uncongested reference: what a scenario becomes there, and that nobody waits."""

import copy
import re
import tomllib

import pytest

import aqmlab
from aqmlab import cli, engine, lead, reference, scenario, toml_text, units
from aqmlab.live import plan
from aqmlab.runs import calibration
from conftest import BASE, NATIVE

TREE = tomllib.loads(BASE)

BESIDE_BULK = """
name = "web beside endless flows"
duration = "40s"
warmup = "20s"
link = { rate = "10mbit", qdisc = { kind = "pfifo", limit = "100p" } }
tcp = { stack = "linux" }
[[traffic]]
kind = "web"
users = 300
direction = "forward"
"""
ENDLESS = '[[traffic]]\nkind = "bulk"\nflows = 2\n'


def engine_tree(text):
    return calibration.engine_tree(engine.resolve(text, "x.toml"))


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def test_each_direction_is_ten_times_as_fast_and_never_full():
    link = {**TREE["link"], "reverse_qdisc": {"kind": "pi"}, "device_queue": "64p"}
    tree = {**TREE, "link": link}
    found = reference.uncongested(tree, reference.rates(tree, "x"))
    assert found["link"] == {"rate": "1gbit", "reverse_rate": "1gbit", "qdisc": {"kind": "pfifo", "limit": "100000p"}}
    tree["link"] = {**link, "rate": "50mbit", "reverse_rate": "10mbit"}
    assert reference.rates(tree, "x") == (500e6, 100e6)
    assert reference.rates(tree, "x", 2e9) == (2e9, 2e9), "what is asked for counts both ways"
    found = reference.uncongested(tree, (500e6, 100e6))
    assert (found["link"]["rate"], found["link"]["reverse_rate"]) == ("500mbit", "100mbit")


def test_endless_flows_are_held_to_their_share_of_the_real_link(compiled):
    text = 'link = { rate = "50mbit", reverse_rate = "10mbit" }\n[tcp]\nstack = "linux"\n' + "".join(
        f"[[traffic]]\nkind = 'bulk'\n{keys}\n"
        for keys in (
            "flows = 3",
            "flows = 2\ndirection = 'reverse'",
            "flows = 4\ndirection = 'both'",
            "flows = 5\nsize = '1mb'",
            "flows = 5\nmax_pacing_rate = '2mbit'\nstack = 'linux'",
        )
    )
    tree = engine_tree(text)
    found = reference.uncongested(tree, reference.rates(tree, "x"))
    # Forward run 3 + 2 + 5 endless flows, in reverse 2 + 2: 5 Mb/s and 2.5 Mb/s each; both ways, the smaller.
    assert [block.get("max_pacing_rate") for block in found["traffic"]] == [
        *("5mbit", "2.5mbit", "2.5mbit"),
        *(None, "2mbit"),
    ]
    # They ask for the same as on the link itself, and can be compared pair by pair.
    assert scenario.demand_digest(found) == scenario.demand_digest(tree)
    again = engine.resolve(toml_text.dumps(found), "x.toml")
    assert engine.resolve(again.toml, "x.toml") == again


def test_a_stack_that_does_not_pace_is_held_too(compiled):
    text = '[tcp]\nstack = "ns2"\n[[traffic]]\nkind = "bulk"\n[[traffic]]\nkind = "bulk"\nsize = "1mb"\n'
    tree = engine_tree(text)
    found = reference.uncongested(tree, reference.rates(tree, "x"))
    assert engine.resolve(toml_text.dumps(found), "x.toml").scenario["traffic"][0]["repair"] == "sack"
    assert found["traffic"][1] == tree["traffic"][1], "a transfer that ends is what it was"


def test_without_endless_flows_only_the_link_is_another():
    tree = copy.deepcopy(TREE)
    tree["traffic"].append({"kind": "bulk", "size": "1mb", "flows": 2, "direction": "forward"})
    found = reference.uncongested(tree, (1e9, 1e9))
    assert {**found, "link": None} == {**tree, "link": None}


def test_beside_endless_flows_users_wait_for_nobody(compiled):
    """Held as they are, endless flows take a tenth of the link, and users are served as without them."""
    alone = aqmlab.compare(BESIDE_BULK, "pfifo limit 100p", "uncongested")
    found = aqmlab.compare(BESIDE_BULK + ENDLESS, "pfifo limit 100p", "fq_codel", "uncongested")
    link = found.uncongested
    assert link.congestion is None
    (check,) = (c for c in link.result.manifest["self_checks"] if c["name"] == reference.UNCONGESTED)
    assert check["holds"]
    # Two halves of the real link, as IP packets, and what 300 users ask for.
    goodput = (
        link.result.summary["forward"]["throughput_bps"] - alone.uncongested.result.summary["forward"]["throughput_bps"]
    )
    assert goodput == pytest.approx(10e6, rel=0.02)
    # At a tenth of use a packet meets another one now and then: 0.1 / (2 * 0.9) packet times a round trip (M/D/1).
    for quantile in ("p50", "p90"):
        one, other = (c.uncongested.estimate(quantile).value for c in (alone, found))
        assert one == pytest.approx(other, rel=0.01)
    assert link.estimate("p50").value < found.column("fq_codel").estimate("p50").value


def test_a_reference_that_was_congested_says_so_and_is_none(compiled):
    """Transfers of a stated size are served as fast as the link can, so that enough of them fill any link."""
    crowd = '[[traffic]]\nkind = "bulk"\nflows = 20\nsize = "100mb"\n'
    found = aqmlab.compare(BESIDE_BULK + crowd, "pfifo limit 100p", "fq_codel", "uncongested")
    assert found.uncongested.label == "uncongested (congested)"
    said = lead.of(found)
    assert "was congested itself (forward 100.0 % busy" in said and "does not tell what could be had" in said
    assert not all(check["holds"] for check in found.uncongested.result.manifest["self_checks"])


def test_a_live_run_that_could_not_hold_its_flows_is_refused(compiled):
    resolved = engine.resolve('[[traffic]]\nkind = "bulk"\nmax_pacing_rate = "1mbit"\n', "x.toml")
    with pytest.raises(aqmlab.errors.BadInput, match=r"traffic\.0\.max_pacing_rate = .*: is not set on real hosts"):
        plan.check(resolved, is_virtual=True)


def summary(used, waiting, median=0.1):
    way = {"busy_ratio": used, "queue_mean_packets": waiting}
    idle = {"busy_ratio": None, "queue_mean_packets": 0.0}
    return {"forward": idle, "reverse": way, "exchanges": {"response_time_s": {"p50": median}}}


@pytest.mark.parametrize(
    ("used", "waiting", "median", "holds"),
    [
        (0.1, 1.4, 0.1, True),
        (0.81, 1.4, 0.1, False),
        # Ten packets are as long as one on the real link; 20 on 100 Mb/s take 2.4 ms.
        (0.1, 10.0, None, True),
        (0.1, 11.0, None, False),
        (0.1, 20.0, 0.121, True),
        (0.1, 20.0, 0.119, False),
    ],
)
def test_the_bounds_of_the_check(used, waiting, median, holds):
    tree = {"link": {"rate": "500mbit", "reverse_rate": "100mbit"}}
    assert reference.check(summary(used, waiting, median), tree, "").holds is holds


def test_a_load_that_is_set_beside_the_file_is_refused_by_the_name_of_the_file(compiled, tmp_path, capsys):
    file = tmp_path / "web.toml"
    file.write_text(BASE)
    assert cli.invoke(["run", str(file), "--set", "traffic.0.load=5gbit", "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        f'aqmlab: {file}: traffic.0.load = "5gbit": cannot be offered on the uncongested link of 1gbit; '
        "expected at most 800mbit\n"
    )


def test_a_load_in_reverse_is_calibrated_on_ten_times_the_reverse_rate(compiled):
    text = BASE.replace('rate = "100mbit"', 'rate = "50mbit"\nreverse_rate = "1mbit"')
    resolved = scenario.read(text.replace('load = "98mbit"', 'load = "9mbit"\ndirection = "reverse"')).resolve()
    with pytest.raises(aqmlab.errors.BadInput, match="uncongested link of 10mbit; expected at most 8mbit"):
        calibration._asked(resolved, resolved.loads[0], None)
    _, rates, _ = calibration._asked(resolved, resolved.loads[0], 1e9)
    assert rates == (1e9, 1e9)
    assert units.say_rates((500e6, 10e6)) == "500 Mb/s forward and 10 Mb/s in reverse"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("path.access = 'host'\n[[traffic]]\nkind = 'bulk'", 'path.access = "host"'),
        ("[[traffic]]\nkind = 'bulk'\nrtt_at = 'clients'", 'traffic.0.rtt_at = "clients"'),
    ],
)
def test_hosts_that_only_the_simulator_has_are_refused_between_real_ones(compiled, text, said):
    with pytest.raises(aqmlab.errors.BadInput, match=f"{re.escape(said)}: is not made between real hosts"):
        plan.check(engine.resolve(text, "x.toml"), is_virtual=False)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            "kind = 'rtp_video'\nmax_rate = '1mbit'",
            '0.kind = "rtp_video": a live run has no real-time video yet; expected',
        ),
        ("kind = 'cbr'\nrate = '1mbit'\npacket = '1501b'", '0.packet = "1501b": expected packets of 28 to 1500 bytes'),
        ("kind = 'onoff'\nrate = '1mbit'\npacket = '40kb'", '0.packet = "40kb": expected packets of 28 to 1500 bytes'),
        ("kind = 'probe'\npacket = '37b'", '0.packet = "37b": expected packets of 38 to 1500 bytes'),
        ("kind = 'probe'\npacket = '57b'\n[live]\nfamily = 'ipv6'", '0.packet = "57b": expected packets of 58 to 1500'),
        (
            "kind = 'udp-poisson'\narrivals = '9hz'\npacket = { uniform = ['40b', '2kb'] }",
            '0.packet = { uniform = ["40b", "2kb"] }: expected packets of 28 to 1500 bytes',
        ),
        (
            "kind = 'udp-poisson'\narrivals = '9hz'\npacket = { exponential = '500b' }",
            '0.packet = { exponential = "500b" }: expected packets of 28 to 1500 bytes',
        ),
        (
            "kind = 'udp-trace'\npackets = 'x.csv'",
            '0.packets = "x.csv": line 4 says 1501, expected packets of 28 to 1500',
        ),
    ],
)
def test_traffic_that_real_hosts_cannot_send_is_refused_before_anything_runs(compiled, tmp_path, block, said):
    (tmp_path / "x.csv").write_text("# of a day\ntime_s,bytes\n0.5,1500\n0.6,1501\n")
    resolved = engine.resolve(f"[[traffic]]\n{block}\n", f"{tmp_path}/x.toml")
    with pytest.raises(aqmlab.errors.BadInput, match=re.escape(f"{tmp_path}/x.toml: traffic.{said}")):
        plan.check(resolved, is_virtual=True)


def test_hosts_that_only_carry_a_program_may_leave_out_what_they_cannot_send(compiled, monkeypatch):
    monkeypatch.setattr(plan.virtual, "check", lambda kernel: None)
    resolved = engine.resolve("[[traffic]]\nkind = 'rtp_video'\nmax_rate = '1mbit'\n", "x.toml")
    plan.check(resolved, is_virtual=True, has_traffic=False)
