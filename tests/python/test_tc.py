"""`aqmlab tc` in both directions, on dumps that a real kernel made of the lines it writes (testdata/tc)."""

import json
import math
import re
import sys
import tomllib
from random import Random

import pytest

from aqmlab import cli, engine, scenario, toml_text
from aqmlab.errors import BadInput
from aqmlab.tc import quantities as q
from aqmlab.tc import red, table
from aqmlab.tc.dump import parse
from aqmlab.tc.read import read
from aqmlab.tc.write import write
from conftest import NATIVE, ROOT

DATA = ROOT / "testdata" / "tc"
sys.path.insert(0, str(DATA))
import record  # noqa: E402

CASES = tomllib.loads((DATA / "cases.toml").read_text())
WRITABLE = ["pfifo", "bfifo", "red", "ared", "choke", "codel", "fq_codel", "pie", "fq_pie", "dualpi2", "cake", "sfb"]
WRITABLE += ["sfq", "drr", "redopt"]


@pytest.fixture(autouse=True)
def compiled(stand_in, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def session(name):
    """What each command of a recorded session printed."""
    parts = re.split(rf"^{re.escape(record.PROMPT)}(.*)\n", (DATA / f"{name}.txt").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def dumps(name):
    """One recorded state in all of its forms, and whether a form shows the classes and all details."""
    shown = session(name)
    classes = shown["tc class show dev eth0"] + shown["tc class show dev eth1"]
    plain, detailed = shown["tc -s qdisc show"], shown["tc -s -d qdisc show"]
    whole = (DATA / f"{name}.txt").read_text()
    commands = whole.split(f"{record.PROMPT}tc -s qdisc show")[0]
    return {
        "session": whole,
        "text": detailed + classes,
        "brief": plain + classes,
        "json": (DATA / f"{name}.json").read_text() + classes,
        "brief json": shown["tc -s -j qdisc show"] + classes,
        "commands": commands,
        "with carriage returns": whole.replace("\n", "\r\n"),
    }


FORMS = list(dumps("pie"))


def resolved(name):
    return scenario.read(record.scenario_of(CASES[name])).resolve()


def in_bytes(value, packet):
    return f"{round(q.split(value)[0] * packet)}b" if isinstance(value, str) and value.endswith("p") else value


def expected(tree, form):
    """A queue's parameters as a dump of this form can show them."""
    values = dict(tree)
    if values["kind"] in ("red", "ared", "choke"):
        packet = q.size(values.pop("mean_packet"))
        if values["kind"] != "choke":
            values |= {key: in_bytes(values[key], packet) for key in ("limit", "min", "max", "gentle_end")}
        else:
            values["min"] = f"{round(q.split(values['min'])[0])}p"
        # tc has powers of 1/2 and takes the nearest.
        values["wq"] = 2.0 ** round(math.log2(values["wq"]))
        if form.startswith("brief"):
            values.pop("wq"), values.pop("probability")
        values.pop("target_delay", None)
    if values["kind"] == "sfq" and form.startswith("brief"):
        values.pop("flows")
    elif values["kind"] == "sfq" and form != "commands":
        # sch_sfq.c: no more flows than packets in a limit that is written, and so it is in aqmlab.
        values["flows"] = min(values["flows"], q.packets(values["limit"]))
    return values


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_what_a_kernel_shows_of_the_lines_is_the_scenario_again(name, form):
    wanted = resolved(name).scenario["link"]
    found = read(dumps(name)[form], "dump", None, None, None)
    link = engine.resolve(found.text, "dump").scenario["link"]
    assert q.same(link["rate"], wanted["rate"]) and q.same(link["reverse_rate"], wanted["reverse_rate"])
    shows_stab = not form.startswith("brief") or name == "cake-alone"
    if shows_stab:
        assert link["overhead"] == wanted["overhead"]
    for queue in ("qdisc", "reverse_qdisc"):
        values = expected(wanted[queue], form)
        if name in ("cake", "cake-under") and not shows_stab:
            values.pop("overhead")  # an Ethernet header more or less, without stab
        if (name.startswith("cake") and form == "brief") or (name.startswith("cake") and "text" in form):
            values.pop("limit")  # only in statistics
        for key, value in values.items():
            assert q.same(link[queue][key], value), (queue, key)
    assert found.tree["path"]["rtt"] == "40ms"


@pytest.mark.parametrize("name", CASES)
def test_recorded_lines_are_the_ones_written_now(name):
    ran = [line for line in session(name) if line.startswith(("tc qdisc add", "tc class add", "for "))]
    setup = write(resolved(name), "eth0", "eth1")
    assert [line for line in setup.lines if line.startswith(("tc qdisc add", "tc class add", "for "))] == ran


# ---- writing ----

BASE = {
    "link": {"rate": "10mbit", "qdisc": {"kind": "pfifo"}},
    "path": {"rtt": "40ms"},
    "tcp": {"stack": "freebsd4"},
    "traffic": [{"kind": "bulk"}],
}


def written(qdisc=None, **tables):
    tree = {**BASE, **tables}
    tree["link"] = {**tree["link"], **({"qdisc": qdisc} if qdisc else {})}
    return write(scenario.read(tree).resolve(), "eth0", "eth1")


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
    assert "max_burst 10ms: Linux has 150 ms" in written({"kind": "pie", "max_burst": "10ms"}).text
    own = written(path={"rtt": {"uniform": ["10ms", "150ms"]}}, traffic=[{"kind": "bulk", "rtt": "9ms", "cc": "cubic"}])
    assert "netem delay 40ms" in own.text and "uniform from 10ms to 150ms is each connection's own" in own.text
    assert "not expressed: the rtt of traffic.0 (bulk): 9ms" in own.text and "cc = cubic" in own.text


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
    assert "sysctl -w net.ipv4.tcp_timestamps=1" in setup.lines and "advmss" not in setup.text


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
    "repair, sack, recovery, early", [("rack", 1, 1, 3), ("sack", 1, 0, 0), ("newreno", 0, 0, 0), ("reno", 0, 0, 0)]
)
def test_window_and_repair_are_settings_of_their_own(repair, sack, recovery, early):
    # ip-sysctl: tcp_recovery, 0x1 is RACK; tcp_early_retrans, 3 is a probe of the tail.
    setup = written(tcp={"stack": "linux", "cc": "reno", "repair": repair})
    values = {"congestion_control": "reno", "sack": sack, "recovery": recovery, "early_retrans": early}
    assert {f"sysctl -w net.ipv4.tcp_{name}={value}" for name, value in values.items()} <= set(setup.lines)
    assert ("repair = reno: Linux repairs as newreno" in setup.text) == (repair == "reno")


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


# ---- reading ----

GOOD = """qdisc htb 1: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000
qdisc codel 10: parent 1:1 limit 500p target 4ms interval 70ms ecn
class htb 1:1 root leaf 10: prio 0 rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b
"""


def link_of(text, **options):
    found = read(text, "dump", options.get("dev"), options.get("reverse_dev"), options.get("rate"))
    engine.resolve(found.text, "dump")
    return found.tree["link"], found


@pytest.mark.parametrize("name", ["fq_codel-all.json", "red-ecn.txt", "cake-alone.json", "drr.txt"])
def test_a_dump_cut_off_anywhere_keeps_the_rest(name):
    whole = (DATA / name).read_text()
    if name.endswith("txt"):
        whole = re.split(r"root@router:~# tc -s -d qdisc show\n", whole)[1]
    step = max(1, len(whole) // 150)
    complete = link_of(whole, rate="10mbit")[0]["qdisc"]
    for end in range(0, len(whole), step):
        try:
            link, found = link_of(whole[:end], rate="10mbit")
        except BadInput as error:
            assert "no qdisc in it" in str(error) and "\n" not in str(error)
            continue
        qdisc = link.get("qdisc", {})
        if qdisc.get("kind") == complete["kind"]:
            wrong = {key for key in qdisc if key in complete and not q.same(qdisc[key], complete[key])}
            # A number may be cut in two, and a word that stands alone may be beyond the cut.
            assert len(wrong - {"ecn", "mark_until"}) <= 1 or found.notes, (end, wrong)


def test_a_json_dump_that_is_cut_off_says_so():
    whole = (DATA / "fq_codel-all.json").read_text()
    link, found = link_of(whole[: whole.index('"flows"')], rate="10mbit")
    assert link["qdisc"]["limit"] == "1000p" and "flows" not in link["qdisc"]
    assert found.notes[0].startswith("line 1:") and "cut off" in found.notes[0]


@pytest.mark.parametrize(
    ("dump", "word"),
    [
        ("qdisc choke 10: dev lo root refcnt 2 limit m min 5p max 15p ewma 5\n", "limit"),
        ("qdisc red 10: dev lo root refcnt 2 limit m min 5Kb max 15Kb ewma 5\n", "limit"),
        ("tc qdisc add dev lo root handle 10: choke limit m\n", "limit"),
        ('[{"kind": "netem", "dev": "lo", "root": true, "options": {"delay": {"delay": {}}}}]', "delay"),
        ('[{"kind": "fq_codel", "dev": "lo", "root": true, "options": {"limit": Infinity}}]', "limit"),
        ('[{"kind": "fq_codel", "dev": "lo", "root": true, "options": {"limit": 1%s}}]' % ("0" * 400), "limit"),
        ('[{"kind": "tbf", "dev": "lo", "root": true, "options": {"rate": NaN, "limit": NaN}}]', "limit"),
    ],
)
def test_what_is_no_number_is_named(dump, word):
    _, found = link_of(dump, rate="10mbit")
    assert any(word in note and "expected" in note for note in found.notes), found.notes


def test_framing_that_is_no_table_says_nothing():
    link, _ = link_of('[{"kind": "codel", "dev": "lo", "root": true, "stab": 7, "options": {}}]', rate="10mbit")
    assert link["qdisc"]["kind"] == "codel"


def test_what_is_not_understood_is_named_with_line_and_word():
    text = GOOD.replace("ecn", "ecn fancy 7").replace("limit 500p", "limit many")
    link, found = link_of(text + "qdisc hfsc 5: dev lo root refcnt 2 default 1\n")
    assert link["qdisc"] == {"kind": "codel", "target": "4ms", "interval": "70ms", "ecn": True, "dialect": "linux"}
    assert found.notes[:2] == (
        "line 2: 'fancy 7': not a word of codel that aqmlab knows",
        "line 4: 'hfsc': a qdisc that aqmlab does not know",
    )
    assert any("line 2: limit 'many'" in note for note in found.notes)


def test_prompts_wrapped_lines_and_other_commands_are_passed_over():
    text = (
        "[me@box ~]$ uptime\n 10:00 up 3 days\n[me@box ~]$ sudo -n /usr/sbin/tc -d qdisc show dev eth7\n"
        + GOOD.replace(" interval", "\ninterval")
        + "[me@box ~]$ exit\n"
    )
    link, found = link_of(text)
    assert link["qdisc"]["interval"] == "70ms" and found.notes == ()


def test_the_port_with_a_shaper_is_forward_and_the_next_one_back():
    two = "".join(
        f"qdisc {kind} {number}: dev {dev} root refcnt 2 {words}\n"
        for kind, number, dev, words in (
            ("noqueue", 0, "lo", ""),
            ("fq_codel", 0, "wlan0", "limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms"),
            ("tbf", 1, "eth0", "rate 20Mbit burst 5Kb lat 70ms"),
            ("cake", 2, "eth1", "bandwidth 5Mbit besteffort rtt 100ms noatm overhead 18"),
        )
    )
    link, _ = link_of(two)
    assert (link["rate"], link["reverse_rate"]) == ("20mbit", "5mbit")
    # tc-tbf(8): what 70 ms send, and the bucket.
    assert link["qdisc"] == {"kind": "bfifo", "limit": f"{20_000_000 // 8 * 70 // 1000 + 5120}b"}
    assert link["reverse_qdisc"]["bandwidth"] == "5mbit"
    assert link_of(two, dev="eth1")[0]["overhead"] == "18b"
    assert link_of(two, dev="wlan0", rate="9mbit")[0]["qdisc"]["kind"] == "fq_codel"
    with pytest.raises(BadInput, match="--dev eth9: expected one of lo, wlan0, eth0, eth1"):
        link_of(two, dev="eth9")


def test_of_classes_the_default_one_is_taken_and_it_borrows_from_the_outermost():
    text = (
        "qdisc htb 1: root refcnt 2 r2q 10 default 0x20 direct_packets_stat 0 direct_qlen 1000\n"
        "qdisc sfq 10: parent 1:10 limit 127p quantum 1514b depth 127 divisor 1024 \n"
        "qdisc pie 20: parent 1:20 limit 1000p target 15ms tupdate 15ms alpha 2 beta 20 \n"
        "class htb 1:1 root rate 100Mbit ceil 100Mbit burst 1600b cburst 1600b \n"
        "class htb 1:10 parent 1:1 leaf 10: prio 0 rate 80Mbit ceil 100Mbit burst 1600b cburst 1600b \n"
        "class htb 1:20 parent 1:1 leaf 20: prio 0 rate 20Mbit ceil 100Mbit burst 1600b cburst 1600b \n"
    )
    link, found = link_of(text)
    assert link["rate"] == "100mbit" and link["qdisc"]["kind"] == "pie"
    assert found.notes == ("line 2: sfq 10: below 1:10 is a further queue, left aside",)


def test_statistics_are_comments():
    first = GOOD.replace("ecn\n", "ecn\n Sent 9000 bytes 90 pkt (dropped 10, overlimits 0 requeues 0)\n")
    found = link_of(first)[1]
    assert "#   that is 100 packets, of which 10 % were lost\n[link.qdisc]" in found.text
    later = GOOD.replace("ecn\n", "ecn\n Sent 9900 bytes 99 pkt (dropped 101, overlimits 0 requeues 0)\n")
    assert "that is 200 packets, of which 50.5 % were lost" in link_of(first + later)[1].text


def test_without_a_shaper_the_rate_is_asked_for():
    text = GOOD.splitlines()[1].replace("parent 1:1", "root refcnt 2")
    with pytest.raises(BadInput, match="no shaper says the link's rate; expected --rate"):
        link_of(text)
    assert link_of(text, rate="1gbit")[0]["rate"] == "1gbit"
    with pytest.raises(BadInput, match="tc class show"):
        link_of("\n".join(GOOD.splitlines()[:2]))


@pytest.mark.parametrize(
    "line, qdisc",
    [
        ("tc qdisc add dev eth0 root fq_codel limit 800 noecn", {"limit": "800p", "ecn": False}),
        ("tc qdisc replace dev eth0 root pie target 20000", {"target": "20ms"}),
        ("# tc qdisc add dev eth0 root sfq perturb 10", {"perturb": "10s"}),
        ("$ sudo tc qdisc change dev eth0 root \\\n  red limit 400kb min 30k max 90k avpkt 1000 burst 55 \\\n ecn",
         {"limit": "409600b", "min": "30720b", "wq": 2**-5, "mean_packet": "1000b", "ecn": True}),
        ("tc qdisc add dev eth0 root red limit 400000 avpkt 1000 adaptive",
         {"kind": "ared", "max": "100000b", "min": "33333b", "probability": 0.02, "wq": 2.0**-5}),
        # As the kernel showed of these lines: ewma 4, ewma 6.
        ("tc qdisc add dev eth0 root red limit 60000 avpkt 500 min 5000 max 15000 burst 20", {"wq": 2.0**-4}),
        ("tc qdisc add dev eth0 root choke limit 1000 bandwidth 10mbit", {"max": "250p", "min": "83p", "wq": 2.0**-6}),
        ("tc qdisc add dev eth0 root cake bandwidth 5mbit metro docsis",
         {"rtt_keyword": "metro", "overhead_keyword": "docsis", "overhead": 18}),
        ("tc qdisc add dev eth0 root cake bandwidth 5mbit", {"overhead": 14}),
        ("tc qdisc add dev eth0 root fq", {"kind": "drr", "dialect": "linux"}),
        ("tc qdisc add dev eth0 root red limit 1Mb min 30k max 90k avpkt 1000 burst 55 adaptive", {"kind": "ared"}),
    ],
)  # fmt: skip
def test_command_lines_are_read(line, qdisc):
    found = link_of(line, rate="10mbit")[0]["qdisc"]
    assert {key: found.get(key) for key in qdisc} == qdisc


def test_dualpi2_as_its_tc_prints_it():
    """No kernel with it was at hand: text and JSON as iproute2's q_dualpi2.c prints them."""
    text = (
        "qdisc dualpi2 1: root refcnt 2 limit 10000p memlimit 1500000000B target 15ms tupdate 16ms alpha 0.156250 "
        "beta 3.195312 step_thresh 1ms min_qlen_step 0p coupling_factor 2 drop_on_overload drop_dequeue "
        "classic_protection 10% l4s_ect split_gso \n"
    )
    options = {"limit": 10000, "memory-limit": 1500000000, "target": 15000, "tupdate": 16000, "alpha": 0.15625}
    options |= {"beta": 3.195312, "step-thresh-us": 1000, "min-qlen-step": 0, "coupling": 2, "drop-overload": "drop"}
    options |= {"drop-early": "drop-dequeue", "c-protection": 10, "ecn-mask": "l4s-ect", "split-gso": None}
    shown = json.dumps([{"kind": "dualpi2", "handle": "1:", "root": True, "refcnt": 2, "options": options}])
    by_text, one = link_of(text, rate="10mbit")
    by_json, other = link_of(shown, rate="10mbit")
    assert by_text["qdisc"] == by_json["qdisc"] and one.notes == other.notes == ()
    assert by_text["qdisc"]["step_thresh"] == "1ms" and by_text["qdisc"]["drop_on_overload"] is True


def test_a_selector_of_fq_codel_as_its_tc_prints_it():
    """No kernel's dump with one was at hand: text and JSON as iproute2's q_fq_codel.c prints them."""
    text = (
        "qdisc fq_codel 8001: root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms ce_threshold 1ms "
        "ce_threshold_selector 0x1/0x3 interval 100ms memory_limit 32Mb ecn drop_batch 64 \n"
    )
    options = {"limit": 10240, "flows": 1024, "quantum": 1514, "target": 4999, "ce_threshold": 999}
    options |= {"ce_threshold_selector": 1, "ce_threshold_mask": 3, "interval": 99999, "memory_limit": 33554432}
    options |= {"ecn": True, "drop_batch": 64}
    shown = json.dumps([{"kind": "fq_codel", "handle": "8001:", "root": True, "refcnt": 2, "options": options}])
    by_text, one = link_of(text, rate="10mbit")
    by_json, other = link_of(shown, rate="10mbit")
    assert by_text["qdisc"] == by_json["qdisc"] and one.notes == other.notes == ()
    assert by_text["qdisc"]["ce_threshold_selector"] == "0x01/0x03" and by_text["qdisc"]["ce_threshold"] == "1ms"
    _, wrong = link_of(text.replace("0x1/0x3", "1"), rate="10mbit")
    assert "ce_threshold_selector '1': expected VALUE/MASK of a byte such as 0x01/0x03" in " ".join(wrong.notes)


def test_mutilated_dumps_are_read_or_refused_in_one_line():
    whole = [path.read_text() for path in sorted(DATA.glob("*.*")) if path.suffix in (".txt", ".json")]
    insert = ["\0", "{", "}", "[", "]", '"', ":", ",", "\n", "-1", "1e400", "NaN", "9" * 30, "%", "b"]
    random = Random(1)
    for _ in range(150):
        lines = random.choice(whole).split("\n")
        start = random.randrange(len(lines))
        text = "\n".join(lines[start : start + random.randrange(1, 25)])
        for _ in range(random.randrange(1, 6)):
            at = random.randrange(len(text) + 1)
            text = random.choice(
                [
                    text[:at],
                    text[:at] + random.choice(insert) + text[at:],
                    text[:at] + text[at + random.randrange(1, 9) :],
                    re.sub(r"\d+", lambda m: random.choice([m[0], m[0], "0", "-5", "4294967296", "x"]), text),
                ]
            )
        try:
            link_of(text, rate=random.choice(["10mbit", None]))
        except BadInput as error:
            assert "\n" not in str(error), text


def test_garbage_is_refused_in_one_line():
    for text in ("", "hello\nworld\n", "[{", "[]", "\0\1\2", "qdisc", "qdisc fq", '[{"a":1}]', "{" * 3000):
        with pytest.raises(BadInput) as refused:
            link_of(text, rate="1mbit")
        assert "no qdisc in it" in str(refused.value) and "\n" not in str(refused.value)


# ---- the verb ----


def answer(capsys, *arguments):
    code = cli.invoke([str(item) for item in arguments])
    return code, capsys.readouterr()


def test_the_verb_writes_and_reads_its_own_lines(capsys, tmp_path):
    (tmp_path / "a.toml").write_text(toml_text.dumps({**BASE, "link": {"rate": "5mbit", "qdisc": {"kind": "codel"}}}))
    code, said = answer(capsys, "tc", tmp_path / "a.toml", "--dev", "wan0", "--set", "link.qdisc.target=7ms")
    assert code == 0 and said.err == "" and "tc qdisc add dev wan0 parent 1:1 handle 10: codel limit 1000" in said.out
    (tmp_path / "lines.sh").write_text(said.out)
    code, said = answer(capsys, "tc", "--read", tmp_path / "lines.sh")
    assert code == 0 and said.err == "" and 'target = "7ms"' in said.out
    (tmp_path / "b.toml").write_text(said.out)
    code, said = answer(capsys, "run", tmp_path / "b.toml", "--set", "duration=2s", "--json", "-o", tmp_path / "out")
    assert code == 0 and json.loads(said.out)["forward"]["utilisation"] > 0
    code, said = answer(capsys, "tc", "--read", tmp_path / "lines.sh", "--json")
    assert json.loads(said.out)["scenario"]["link"]["qdisc"]["target"] == "7ms"
    code, said = answer(capsys, "tc", tmp_path / "a.toml", "--json")
    assert code == 0 and [section["title"].split(":")[0] for section in json.loads(said.out)["sections"]] == [
        "router", "forward", "reverse", "delay", "hosts"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments, named",
    [
        (["tc"], "expected either a scenario, or --read"),
        (["tc", "{a}", "--read", "{a}"], "expected either a scenario, or --read"),
        (["tc", "{a}", "--dev", "eth0; reboot"], "--dev 'eth0; reboot'"),
        (["tc", "{a}", "--dev", "eth1"], "--reverse-dev eth1"),
        (["tc", "{a}", "--set", "link.qdisc.kind=pi"], "nearest: pie"),
        (["tc", "{a}", "--variant", "x"], "no [[variant]] tables"),
        (["tc", "{demo}"], "expected --variant with one of 'uncongested link', 'drop-tail 240'"),
        (["tc", "--read", "{a}.no"], "no such file"),
        (["tc", "--read", "{a}", "--rate", "fast"], "--rate 'fast'"),
        (["tc", "--read", "{a}"], "no qdisc in it"),
        (["tc", "{a}", "--only", "queue"], "--only queue: expected one of ports, qdisc, delay, hosts"),
        (["tc", "--read", "{a}", "--only", "qdisc"], "--only qdisc: expected no --only beside --read"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, tmp_path, arguments, named):
    (tmp_path / "a.toml").write_text(toml_text.dumps(BASE))
    places = {"a": tmp_path / "a.toml", "demo": ROOT / "examples/demo.toml"}
    code, said = answer(capsys, *(argument.format(**places) for argument in arguments))
    assert code == 2 and said.out == "" and len(said.err.splitlines()) == 1 and named in said.err


def test_a_shaper_beyond_its_link_is_no_silent_line(capsys, tmp_path):
    link = {"rate": "50mbit", "reverse_rate": "10mbit", "qdisc": {"kind": "cake", "bandwidth": "48mbit"}}
    (tmp_path / "a.toml").write_text(toml_text.dumps({**BASE, "link": link}))
    code, said = answer(capsys, "tc", tmp_path / "a.toml")
    excess = "bandwidth 48mbit exceeds link.reverse_rate 10mbit in reverse, where it never shapes"
    assert code == 0 and f"#   - {excess}\ntc qdisc add dev eth1" in said.out and said.out.count("exceeds") == 1
    assert said.err == f"aqmlab: warning: {tmp_path / 'a.toml'}: link.reverse_qdisc.{excess}\n"


def test_a_part_of_the_lines_is_written_alone(capsys, tmp_path):
    (tmp_path / "a.toml").write_text(toml_text.dumps(BASE))
    whole, queues = (answer(capsys, "tc", tmp_path / "a.toml", *more)[1].out for more in ([], ["--only", "qdisc"]))
    lines = [line for line in queues.splitlines() if line and not line.startswith("#")]
    assert len(lines) == 6 and all(re.match(r"tc (qdisc|class) add dev eth[01] ", line) for line in lines)
    assert set(lines) < set(whole.splitlines())
    both = answer(capsys, "tc", tmp_path / "a.toml", "--only", "qdisc", "--only", "hosts")[1].out
    assert "sysctl" in both and "ethtool" not in both and "netem" not in both


def test_a_variant_is_written(capsys):
    code, said = answer(capsys, "tc", ROOT / "examples/demo.toml", "--variant", "drop-tail 240")
    assert code == 0 and "pfifo limit 240" in said.out and "htb rate 100mbit overhead 38" in said.out


@pytest.mark.parametrize(("overhead", "told"), [(-4, 1), (0, 0), (1001, 1)])
def test_an_overhead_of_cake_that_no_link_has_is_said(overhead, told):
    link, found = link_of(f"tc qdisc add dev eth0 root cake bandwidth 50mbit overhead {overhead}")
    notes = [note for note in found.notes if f"overhead {overhead}: expected 0 to 1000 bytes" in note]
    assert "overhead" not in link["qdisc"] and len(notes) == told


def test_parse_alone_never_fails():
    for text in ("qdisc htb 1: dev", "tc qdisc add dev", "tc qdisc add dev eth0 root", "class", "tc", "sudo tc qdisc"):
        assert parse(text).nodes == [] or parse(text).nodes[0].kind == "htb"


def test_what_netem_does_besides_delaying_is_remarked():
    _, found = link_of(GOOD + "qdisc netem 8: dev eth9 root refcnt 2 limit 1000 delay 10ms loss 3% duplicate 2%\n")
    notes = [note for note in found.notes if "netem" in note]
    assert [note.split(": ")[1] for note in notes] == ["'duplicate 2%'", "'loss 3%'"]


def netem(*ports):
    return "".join(
        f"qdisc netem 8{k}: dev {port} root refcnt 2 limit 1000 {said}\n" for k, (port, said) in enumerate(ports)
    )


def test_losses_of_netem_that_both_ways_have_are_those_of_the_path():
    _, found = link_of(GOOD + netem(("ifb0", "delay 10ms loss 3%"), ("ifb1", "delay 10ms loss 3%")))
    assert found.tree["path"] == {"rtt": "20ms", "loss": 0.03} and not any("netem" in note for note in found.notes)
    assert "the losses of netem (ifb0, ifb1), taken for one each way" in found.text
    own = written(path={"rtt": "40ms", "loss": 0.015}).text
    assert link_of(own)[1].tree["path"] == {"rtt": "40ms", "loss": 0.015}
    ports = [
        {
            "kind": "netem",
            "handle": "1:",
            "dev": dev,
            "root": True,
            "options": {"limit": 9, "loss-random": {"loss": 0.02}},
        }
        for dev in ("ifb0", "ifb1")
    ]
    assert link_of(json.dumps(ports), rate="1mbit")[1].tree["path"] == {"loss": 0.02}


@pytest.mark.parametrize(
    "ports",
    [
        [("ifb0", "loss 3%"), ("ifb1", "loss 2%")],
        [("ifb0", "loss 3%")],
        [("ifb0", "loss 300%"), ("ifb1", "loss 300%")],
        [("ifb0", "loss 3% 25%"), ("ifb1", "loss 3% 25%")],
        [("ifb0", "loss gemodel 1%"), ("ifb1", "loss gemodel 1%")],
    ],
)
def test_other_losses_of_netem_are_remarked(ports):
    _, found = link_of(GOOD + netem(*ports))
    assert "path" not in found.tree
    assert len([note for note in found.notes if "'loss " in note]) == len(ports)


@pytest.mark.parametrize(("limit", "is_said"), [("32Mb", False), ("64Mb", False), ("3000b", True), ("0", False)])
def test_a_limit_of_memory_that_bites_is_remarked(limit, is_said):
    text = f"qdisc fq_codel 1: dev eth0 root refcnt 2 limit 10240p flows 1024 memory_limit {limit} ecn\n"
    _, found = link_of(text, rate="10mbit")
    assert [note for note in found.notes if "memory_limit" in note] == (
        ["line 1: 'memory_limit' of fq_codel: aqmlab limits packets alone"] if is_said else []
    )


def test_lines_for_namespaces_are_named():
    with pytest.raises(BadInput, match=r"has lines for namespaces \(tc -n\), a router each; expected the lines of one"):
        link_of("tc -n place-0 qdisc add dev l0 root handle 1: codel\n", rate="10mbit")
