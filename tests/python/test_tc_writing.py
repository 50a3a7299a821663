"""What `aqmlab tc` writes for a scenario, and what it says of what has no line."""

import os
import subprocess

import pytest

from aqmlab import engine, scenario
from aqmlab.errors import BadInput
from aqmlab.tc import quantities as q
from aqmlab.tc import red, table
from aqmlab.tc.write import unshaped
from tc_lines import BASE, written

pytestmark = pytest.mark.usefixtures("compiled")

WRITABLE = ["pfifo", "bfifo", "red", "ared", "choke", "codel", "fq_codel", "pie", "fq_pie", "dualpi2", "cake", "sfb"]
WRITABLE += ["sfq", "drr", "redopt"]


def test_every_discipline_is_written_or_refused_with_the_nearest_ones():
    for row in engine.disciplines():
        if row["name"] in WRITABLE:
            assert any(line.startswith("tc qdisc add dev eth0") for line in written({"kind": row["name"]}).lines)
        else:
            with pytest.raises(BadInput, match=f"'{row['name']}'.*Linux has no such qdisc; nearest: [a-z]"):
                written({"kind": row["name"]})
    own = {row["name"] for row in engine.disciplines() if not row["name"].startswith("fq_")}
    assert own - set(WRITABLE) == set(table.NEAREST)


def test_no_parameter_of_a_discipline_is_forgotten():
    """Each is a word of tc, or fixed there, or stands for words together with others."""
    for row in engine.disciplines():
        for known in [each for each in table.ROWS if each.ours == row["name"]]:
            said = {word.ours for word in known.words} | set(known.fixed) | set(known.sets) | set(known.by_classes)
            said |= set(red.COMPUTED) if known.is_red else set()
            said |= (
                {
                    *("max_rtt", "min_th", "range", "th_len", "capacity"),
                    *("critical_delay", "critical_score", "aging"),
                }
                if row["name"] == "dualpi2"
                else set()
            )  # of the gains, the ramp, the limit
            # The target follows from rtt, and numbers say what the words do.
            said |= {"target", "rtt_keyword", "overhead_keyword"} if row["name"] == "cake" else set()
            assert {param["name"] for param in row["params"]} <= said | {"dialect"}, row["name"]


def test_what_only_comes_near_is_said():
    said = written({"kind": "red", "gentle": True, "ecn": True, "mark_until": "end", "wq": 0.002}).text
    said = " ".join(said.replace("#", "").split())
    for remark in (
        'the kernel does what dialect = "linux" does, not "paper"',
        "a packet counts as mean_packet, 500 bytes",
        "wq 0.002: Linux has powers of 1/2",
        "gentle true: Linux signals every packet above max",
        "mark_until end: Linux marks always, or with harddrop up to max",
        "Linux has no setting for",
        "rto_initial 3s (Linux 1s)",
    ):
        assert remark in said
    assert "alpha 0.13: tc takes alpha 2" in written({"kind": "pie", "alpha": 0.13}).text
    for queue, remark, words in (
        # tc takes 0 to 32 sixteenths of a hertz, and passes 0 on as little as a share of 0 or a limit of 0.
        ({"kind": "pie", "alpha": 0.03}, "alpha 0.03: tc takes alpha 1", "alpha 1 "),
        ({"kind": "pie", "alpha": 0}, "alpha 0.0: tc takes alpha 1", "alpha 1 "),
        ({"kind": "fq_pie", "beta": 2.5}, "beta 2.5: tc takes beta 32", "beta 32 "),
        ({"kind": "fq_pie", "ecn_prob": 1.0}, "ecn_prob 1.0: tc takes ecn_prob 99", "ecn_prob 99"),
        ({"kind": "fq_pie", "ecn_prob": 0}, "ecn_prob 0.0: tc takes ecn_prob 1", "ecn_prob 1\n"),
        ({"kind": "fq_codel", "limit": "0p"}, "limit 0p: tc does not pass limit 0 on", "limit 0 "),
        # The kernel has bounds that tc does not know.
        ({"kind": "fq_pie", "quantum": "100b"}, "'quantum 100' of fq_pie: the kernel takes 256", "quantum 100 "),
        ({"kind": "sfq", "depth": 1000}, "'depth 1000' of sfq: the kernel takes 127", "depth 1000"),
        ({"kind": "drr", "quantum": "100b"}, "'quantum 100' of drr: the kernel takes 256", "quantum 100;"),
        # It refuses these.
        ({"kind": "sfq", "limit": "0p"}, "limit 0p: tc takes limit 2", "sfq limit 2 "),
        ({"kind": "red", "limit": "0b"}, "limit 0b: tc takes limit 1", "red limit 1 "),
        # (7500 - 2500) bytes by 2^31.
        ({"kind": "red", "probability": 0}, "probability 0.0: tc takes probability 2.33e-06", "probability 2.33e-06 "),
        ({"kind": "choke", "probability": 0}, "probability 0.0: tc takes probability 3.89e-05", "choke "),
        # Its 32 bits hold less than 1.
        ({"kind": "red", "probability": 1}, "probability 1.0: tc takes probability 0.999999999", "y 0.999999999 "),
        ({"kind": "choke", "probability": 1}, "probability 1.0: tc takes probability 0.999999999", "y 0.999999999 "),
        ({"kind": "cake", "overhead": 250}, "and tc takes no more than 256", "overhead 256 "),
        ({"kind": "cake", "limit": "0p"}, "limit 0p: tc does not pass memlimit 0 on", ""),
        ({"kind": "cake", "limit": "0b"}, "limit 0b: tc does not pass memlimit 0 on", ""),
        ({"kind": "sfb", "limit": "0p"}, "limit 0p: the kernel takes the port's txqueuelen for limit 0", ""),
        ({"kind": "dualpi2", "step_thresh": "0ms"}, "step_thresh 0s: tc does not pass step_thresh 0s on", ""),
    ):
        said = written(queue).text
        assert remark in " ".join(said.replace("#", "").split()) and words in said, queue
    assert "max_burst 10ms: Linux has 150 ms" in written({"kind": "pie", "max_burst": "10ms"}).text
    own = written(path={"rtt": {"uniform": ["10ms", "150ms"]}}, traffic=[{"kind": "bulk", "rtt": "9ms", "cc": "cubic"}])
    assert "netem delay 40ms" in own.text and "uniform from 10ms to 150ms is each connection's own" in own.text
    assert "not expressed: the rtt of traffic.0 (bulk): 9ms" in own.text and "cc = cubic" in own.text


@pytest.mark.parametrize("kind", ["red", "ared", "choke"])
def test_red_below_a_shaper_has_no_idle_time_and_on_a_port_of_its_own_it_has(kind):
    setup = written({"kind": kind, "dialect": "linux"})
    line = next(line for section in setup.sections for line in section.lines if "dev eth0 parent 1:1" in line.text)
    name = "choke" if kind == "choke" else "red"
    assert f"htb never asks an empty class, so no idle time of {name} begins" in " ".join(line.remarks)
    tree = {**BASE, "link": {"rate": "10mbit", "qdisc": {"kind": kind, "dialect": "linux"}}}
    alone, _ = unshaped(scenario.read(tree).resolve())
    assert "htb" not in " ".join(alone.remarks)


def test_an_emulator_at_the_clients_and_links_that_hosts_share_have_no_line():
    traffic = [{"kind": "bulk", "rtt_at": "clients"}]
    own = written(path={"rtt": "80ms", "access": "host"}, traffic=traffic)
    assert "not expressed: traffic.0.rtt_at, path.access; half of the delay lies on each way here" in own.text


def test_a_device_queue_has_no_line():
    link = {**BASE["link"], "device_queue": "64p", "qdisc": {"kind": "pfifo"}}
    assert "not expressed: link.device_queue; htb keeps the port's own ring short" in written(link=link).text


def test_a_scenario_as_linux_does_it_needs_no_remark_on_its_queue_and_hosts():
    setup = written({"kind": "fq_codel", "dialect": "linux"}, tcp={"stack": "linux"})
    remarks = [remark for section in setup.sections for line in section.lines for remark in line.remarks]
    assert not [remark for remark in remarks if "dialect" in remark or "tc takes" in remark]
    assert not [remark for section in setup.sections for remark in section.remarks if "no setting" in remark]
    assert "sysctl -w net.ipv4.tcp_timestamps=1" in setup.lines and " advmss" not in setup.text


def test_hosts_get_their_stack():
    lines = written(
        tcp={"stack": "freebsd4", "cc": "sack", "ecn": "plus", "window": "64kb", "mss": "536b", "delayed_ack": "off"}
    ).lines
    for name, value in (("congestion_control", "reno"), ("sack", "1"), ("ecn", "1"), ("timestamps", "0")):
        assert f"sysctl -w net.ipv4.tcp_{name}={value}" in lines
    assert lines[-1].endswith("window 65536 initcwnd 2 rto_min 1s advmss 536 quickack 1")
    assert "window 1024" not in written(tcp={"stack": "ns2"}).lines[-1]
    counting = written(tcp={"stack": "linux", "ecn": "accurate", "ecn_option": "linux-persist"})
    assert {f"sysctl -w net.ipv4.tcp_{said}" for said in ("ecn=3", "ecn_option=3")} <= set(counting.lines)
    assert "no setting" not in counting.text and "ecn_option" not in written(tcp={"stack": "linux"}).text


@pytest.mark.parametrize(
    ("cc", "said"),
    [
        ("bbr3", "cc = bbr3: Linux has BBR v1 alone"),
        ("ledbat", "cc = ledbat: Linux has no LEDBAT"),
        ("prague", "cc = prague: Linux has no Prague"),
        ("prague-linux", "cc = prague-linux: Linux has no Prague"),
        ("bbr", ""),
        ("dctcp", ""),
    ],
)
def test_a_controller_that_linux_has_not_is_remarked(cc, said):
    setup = written(tcp={"stack": "linux", "cc": cc})
    (line,) = [line for section in setup.sections for line in section.lines if "tcp_congestion_control" in line.text]
    assert [remark[: len(said)] for remark in line.remarks] == [said] * bool(said)
    # Google's tree calls its BBR v3 what Linux calls its BBR v1.
    assert line.text.endswith("=bbr") == cc.startswith("bbr")
    otherwise = "; without that tree this is BBR v1" if cc == "bbr3" else "; without it this line fails"
    assert all(remark.endswith(otherwise) for remark in line.remarks)
    # That of a block is set on its own hosts.
    setup = written(tcp={"stack": "linux"}, traffic=[{"kind": "bulk", "cc": cc}])
    assert (f"traffic.0: {said}" in " ".join(setup.text.replace("#", "").split())) == bool(said)


SHOWN = """#!/bin/sh
if [ "$*" = "route show default" ]; then
    echo 'default via 10.0.0.1 dev eth0 proto dhcp metric 100 onlink mtu lock 1400 SET'
    echo 'default via 10.9.9.9 dev eth1 metric 200'
else
    echo "$*"
fi
"""


def test_the_line_for_the_route_may_be_run_again(tmp_path):
    """ip shows `rto_min lock 1s`, and takes no lock there."""
    own = {"stack": "freebsd4", "window": "64kb", "mss": "536b", "delayed_ack": "off", "rto_min": "1s"}
    line = written(tcp=own).lines[-1]
    set_before = "window 1 initcwnd 4 rto_min lock 1s advmss 9 quickack 1"
    for before in ("", set_before, "rto_min lock 200ms"):
        (tmp_path / "ip").write_text(SHOWN.replace("SET", before))
        (tmp_path / "ip").chmod(0o755)
        path = f"{tmp_path}:{os.environ['PATH']}"
        done = subprocess.run(["sh", "-c", line], env={"PATH": path}, capture_output=True, text=True)
        assert done.stdout == (
            "route change default via 10.0.0.1 dev eth0 proto dhcp metric 100 onlink mtu lock 1400 "
            "window 65536 initcwnd 2 rto_min 1s advmss 536 quickack 1\n"
        ), done.stderr


@pytest.mark.parametrize(
    ("rto_min", "word", "is_remarked"),
    [("500us", "1ms", True), ("1500us", "2ms", True), ("5ms", "5ms", False), ("200ms", "200ms", False)],
)
def test_the_least_timeout_of_a_route_is_in_whole_milliseconds(rto_min, word, is_remarked):
    """ip(8) takes s and ms, and rounds up."""
    setup = written(tcp={"stack": "linux", "rto_min": rto_min})
    assert setup.lines[-1].endswith(f" rto_min {word}")
    assert (f"rto_min {rto_min}: ip takes whole milliseconds, {word[:-2]} here" in setup.text) == is_remarked


def test_headers_that_no_linux_has_are_remarked():
    def said(**own):
        return " ".join(written(tcp={"stack": "linux", **own}).text.replace("#", "").split())

    assert "Linux has no setting for header 60b (Linux 52b), syn_header 40b (Linux 60b)" in said(
        header="60b", syn_header="40b"
    )
    without = {"header": "40b", "syn_header": "52b"}
    assert "header" not in said(**without, timestamps=False)
    assert "timestamps = true: hosts have none, for which there is no room in header = 40b" in said(**without)


def test_a_window_offered_whole_from_the_start_is_remarked():
    said = "receive_buffer = 0b: Linux offers 65536 bytes at first"
    assert said in written(tcp={"stack": "linux", "receive_buffer": "0b"}).text
    assert said not in written(tcp={"stack": "linux"}).text + written(tcp={"stack": "freebsd4"}).text


@pytest.mark.parametrize(
    "repair, sack, recovery, early", [("rack", 1, 1, 3), ("sack", 1, 0, 0), ("newreno", 0, 0, 0), ("reno", 0, 0, 0)]
)
def test_window_and_repair_are_settings_of_their_own(repair, sack, recovery, early):
    # ip-sysctl: tcp_recovery, 0x1 is RACK; tcp_early_retrans, 3 is a probe of the tail.
    setup = written(tcp={"stack": "linux", "cc": "reno", "repair": repair})
    values = {"congestion_control": "reno", "sack": sack, "recovery": recovery, "early_retrans": early}
    assert {f"sysctl -w net.ipv4.tcp_{name}={value}" for name, value in values.items()} <= set(setup.lines)
    assert ("repair = reno: Linux repairs as newreno" in setup.text) == (repair == "reno")


@pytest.mark.parametrize(
    "rtt",
    [
        {"pareto": {"scale": "10ms", "shape": 1.0}},
        {"pareto": {"scale": "10ms", "shape": 0.5}},
        {"weibull": {"scale": "10ms", "shape": 0.05}},
        {"lognormal": {"median": "10ms", "sigma": 50.0}},
    ],
)
def test_a_distribution_without_a_mean_is_refused(rtt):
    with pytest.raises(BadInput, match=r"^rtt \w+ of 10ms, [\d.]+: expected a distribution with a mean of at most"):
        written(path={"rtt": rtt})


@pytest.mark.parametrize(
    "rtt, mean_ms",
    [
        ("40ms", 40),
        ({"uniform": ["10ms", "150ms"]}, 80),
        ({"exponential": "50ms"}, 50),
        ({"pareto": {"scale": "10ms", "shape": 2.0}}, 20),
        ({"weibull": {"scale": "30ms", "shape": 1.0}}, 30),
        ({"lognormal": {"median": "20ms", "sigma": 0.0001}}, 20),
        ({"table": [["10ms", 0.0], ["20ms", 0.5], ["40ms", 1.0]]}, 22.5),
        ({"even": ["10ms", "30ms"]}, 20),
    ],
)
def test_the_delay_is_the_mean_of_the_round_trip_times(rtt, mean_ms):
    delays = [line for line in written(path={"rtt": rtt}).lines if "netem" in line]
    # sigma = 1e-4 moves a mean by 5e-9 of it.
    assert [q.microseconds(line.split()[10]) for line in delays] == pytest.approx([500 * mean_ms] * 2, rel=1e-8)


def test_a_name_cannot_become_a_command():
    with pytest.raises(BadInput, match=r"name: 'x\\nreboot\\n': expected a text without control characters"):
        written(name="x\nreboot\n")
    setup = written(name="x; reboot")
    assert all(line.startswith("#") or line in ("", *setup.lines) for line in setup.text.splitlines())
    assert not any("reboot" in line for line in setup.lines)


def test_a_burst_stands_for_each_weight_that_tc_has():
    for min_packets in (1.5, 5.0, 30.0, 333.3):
        # The steps from one burst to the next are too coarse for the largest weights.
        logs = [red.burst_for(min_packets, log) for log in range(3, 20)]
        assert [found and found[1] for found in logs] == list(range(3, 20))
        for found in filter(None, logs):
            assert red.weight_log(min_packets, found[0]) == found[1]
