"""What `aqmlab tc --read` makes of lines and dumps: whole ones, those cut off, and those that are not understood."""

import json
import re
from random import Random

import pytest

from aqmlab.errors import BadInput
from aqmlab.tc import quantities as q
from aqmlab.tc.dump import parse
from tc_lines import DATA, link_of, written

pytestmark = pytest.mark.usefixtures("compiled")

GOOD = """qdisc htb 1: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000
qdisc codel 10: parent 1:1 limit 500p target 4ms interval 70ms ecn
class htb 1:1 root leaf 10: prio 0 rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b
"""


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


@pytest.mark.parametrize(
    "shown",
    [
        *("[{" + '"a":[' * depth for depth in (900, 950, 980, 990, 100_000)),
        '[{"a":' * 100_000,
        '[{"kind": "pie", "limit": ' + "9" * 5000 + "}]",
    ],
    ids=["900", "950", "980", "990", "lists", "objects", "number"],
)
def test_json_that_no_parser_takes_is_noted(shown):
    """Those of some 900 lists are read, and mended, at the edge of what Python's stack holds."""
    (note,) = [note for note in parse(GOOD + shown).notes if "without a kind" not in note]
    assert re.match("line 4: .*JSON (that is cut off or broken|of which a number is too long, or that is nested)", note)
    assert len(parse(GOOD + shown).nodes) >= 3


def test_a_cut_off_dump_is_parsed_a_few_times_and_not_at_every_mark(monkeypatch):
    one = {"kind": "fq_codel", "handle": "10:", "root": True, "options": {"limit": 10240, "target": 4999}}
    tried = []
    decode = json.JSONDecoder.decode
    monkeypatch.setattr(json.JSONDecoder, "decode", lambda self, text: tried.append(text) or decode(self, text))
    found = parse(json.dumps([one | {"dev": f"eth{k}"} for k in range(100)])[:-30])
    assert len(found.nodes) == 100 and 1 <= len(tried) <= 3


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
    again = "# lo\n" + first + later
    assert "that is 200 packets, of which 50.5 % were lost" in link_of(again)[1].text


@pytest.mark.parametrize(
    ("port", "overhead"), [("eth0", 14), ("ppp0", 0), ("pppoe-wan", 0), ("ifb4pppoe-wan", 0), ("wg0", 0)]
)
def test_a_port_of_packets_without_an_ethernet_header_counts_none(port, overhead):
    shaper = f"qdisc tbf 1: dev {port} root refcnt 2 rate 10Mbit burst 5Kb limit 100Kb"
    cake = f"qdisc cake 1: dev {port} root refcnt 2 bandwidth 10Mbit besteffort triple-isolate rtt 100ms raw overhead 0"
    for dump, is_told in ((shaper, overhead > 0), (cake, False)):
        link, found = link_of(dump)
        assert link.get("overhead", "0b") == f"{overhead}b", dump
        assert ("Ethernet's header" in found.text) == is_told


@pytest.mark.parametrize(
    "text",
    [
        "tc qdisc add dev {port} root tbf rate 1mbit burst 5kb latency 50ms overhead 32 linklayer atm",
        "qdisc tbf 8001: dev {port} root refcnt 2 rate 1Mbit burst 5Kb/8 mpu 0b lat 50ms linklayer atm overhead 32b",
    ],
)
@pytest.mark.parametrize(("port", "header"), [("ppp0", 0), ("eth0", 14)])
def test_a_tbf_at_the_root_has_its_own_overhead_and_cells(text, port, header):
    link, found = link_of(text.format(port=port))
    assert (link["overhead"], link["framing"]) == (f"{header + 32}b", "atm") and not found.notes
    # With a stab, that takes or adds bytes before.
    stab = text.format(port=port).replace("root tbf", "root stab overhead -10 linklayer ethernet tbf")
    if stab != text.format(port=port):
        assert link_of(stab)[0]["overhead"] == f"{header + 22}b"


def test_what_of_a_shaper_no_link_has_is_noted():
    tbf = "tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb limit 9kb mpu 64 peakrate 2mbit mtu 1540"
    htb = (
        "tc qdisc add dev eth0 root handle 1: stab overhead 4 mpu 84 htb default 1\n"
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit mpu 60"
    )
    for text, words in ((tbf, ["1: 'mpu 64'", "1: 'peakrate 2mbit'"]), (htb, ["1: 'mpu 84'", "2: 'mpu 60'"])):
        notes = link_of(text)[1].notes
        assert [note.removeprefix("line ").split("'")[:2] for note in notes] == [word.split("'")[:2] for word in words]


def test_without_a_shaper_the_rate_is_asked_for():
    text = GOOD.splitlines()[1].replace("parent 1:1", "root refcnt 2")
    with pytest.raises(BadInput, match="no shaper says the link's rate; expected --rate"):
        link_of(text)
    assert link_of(text, rate="1gbit")[0]["rate"] == "1gbit"
    with pytest.raises(BadInput, match=f"htb shapes at a rate that its classes say; {re.escape(RECIPE)}"):
        link_of("\n".join(GOOD.splitlines()[:2]))


RECIPE = (
    'expected them too: for port in lan wan; do echo "# $port"; tc -s -d qdisc show dev $port; '
    "tc class show dev $port; done > now.txt"
)


def shown_of(rate):
    """What `tc ... show dev PORT` prints of a port, as iproute2 6.1 does: nothing names the port."""
    return (
        "qdisc htb 1: root refcnt 3 r2q 10 default 0x1 direct_packets_stat 0 ver 3.17 direct_qlen 1000\n"
        " linklayer ethernet overhead -14 \n"
        f"qdisc bfifo 10: parent 1:1 limit {rate * 5}b\n"
        " Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n"
        f"class htb 1:1 root leaf 10: prio 0 rate {rate}Kbit overhead 38 ceil {rate}Kbit burst 1599b cburst 1599b \n"
    )


def both_ways(found):
    link = found.tree["link"]
    return link["rate"], link["reverse_rate"], link["qdisc"]["limit"], link["reverse_qdisc"]["limit"]


@pytest.mark.parametrize("above", ["# {}", "#{}:", "root@box:~# tc -s -d qdisc show dev {}"])
def test_lines_of_a_port_go_to_the_one_that_is_named_above_them(above):
    first, second = ([f"{above.format(port)}\n", shown_of(rate)] for port, rate in (("lan", 950), ("wan", 256)))
    _, found = link_of("".join(first + second))
    assert both_ways(found) == ("950kbit", "256kbit", "4750b", "1280b") and not found.notes
    assert "# lan: forward\n# wan: reverse\n" in found.text
    _, turned = link_of("".join(second + first), dev="lan", reverse_dev="wan")
    assert turned.tree == found.tree


def test_qdiscs_of_all_ports_and_classes_of_each_are_read_in_any_order():
    named = [shown_of(rate).replace(": ", f": dev {port} ", 1) for port, rate in (("lan", 950), ("wan", 256))]
    qdiscs = "".join(re.sub("bfifo 10:", "bfifo 10: dev ?", each.rsplit("class", 1)[0]) for each in named)
    qdiscs = qdiscs.replace("?", "lan", 1).replace("?", "wan", 1)
    lan, wan = ("class" + each.rsplit("class", 1)[1] for each in named)
    lan, wan = (each.replace(f"dev {port} ", "") for each, port in ((lan, "lan"), (wan, "wan")))
    _, found = link_of(qdiscs + "# wan\n" + wan + "# lan\n" + lan)
    assert both_ways(found) == ("950kbit", "256kbit", "4750b", "1280b")
    # Handles that tc gave itself are different at each port, so that a leaf tells it.
    own = qdiscs.replace("10: dev lan", "8001: dev lan").replace("10: dev wan", "8002: dev wan")
    _, told = link_of(own + wan.replace("10:", "8002:") + lan.replace("10:", "8001:"))
    assert told.tree == found.tree
    with pytest.raises(BadInput, match="class htb 1:1 is of a port not named: lan or wan; expected the ports' names"):
        link_of(qdiscs + wan + lan)
    with pytest.raises(BadInput, match=f"htb shapes on wan at a rate that its classes say; {re.escape(RECIPE)}"):
        link_of(qdiscs + "# lan\n" + lan)
    assert link_of(qdiscs + "# lan\n" + lan, rate="2mbit")[0]["rate"] == "2mbit"


@pytest.mark.parametrize("second", [shown_of(256), shown_of(950), "qdisc cake 8002: root refcnt 2 bandwidth 1Mbit\n"])
def test_a_second_root_of_a_port_that_is_not_named_is_refused(second):
    with pytest.raises(BadInput, match=r"line 6: \w+ \d+: is a second root, of a port not named; expected") as refused:
        link_of(shown_of(950) + second)
    assert RECIPE.partition(": ")[2] in str(refused.value) and "\n" not in str(refused.value)
    pair = [{"kind": "tbf", "handle": "1:", "root": True, "options": {"rate": rate, "burst": 5000}} for rate in (9, 8)]
    with pytest.raises(BadInput, match="tbf 1: is a second root"):
        link_of(json.dumps(pair[:1]) + "\n" + json.dumps(pair[1:]) + "\n")


def test_of_two_ports_that_are_alike_each_is_said():
    both = "".join(f"# {port}\n" + shown_of(950) for port in ("lan", "wan"))
    assert "\n# wan has the same:\n#   Sent 0 bytes" in link_of(both, dev="lan", reverse_dev="wan")[1].text
    silent = re.sub(" Sent .*\n", "", both)
    assert "\n# wan has the same\n[link.qdisc]\n" in link_of(silent, dev="lan", reverse_dev="wan")[1].text


SCRIPT = """#!/bin/sh
set -eu
: "${LAN:=lan}" "${RATE:=2}"    # the port towards the users
WAN="wan0"; # that towards the line
TC=/sbin/tc
export UP=${RATE}mbit
frame() {    # of each packet
    if ip link show dev "$1" | grep -q ether; then echo stab overhead -14 linklayer ethernet; fi
}
undo() {
    for port in "$LAN" "$WAN"; do tc qdisc delete dev "$port" root 2>/dev/null || true; done
}
if [ "${1:-}" = undo ]; then undo; exit; fi
$TC qdisc add dev "$LAN" root handle 1: $(frame "$LAN") htb default 1
$TC class add dev "$LAN" parent 1: classid 1:1 htb rate "${DOWN:-20}mbit" overhead 18 || exit 1
$TC qdisc add dev "$LAN" parent 1:1 handle 10: fq_codel limit 900 >/dev/null 2>&1
tc qdisc add dev ${WAN} root handle 1: $(frame $WAN) tbf rate $UP burst 5kb limit 50kb
"""


def test_a_script_is_read_with_what_it_sets_its_variables_to():
    link, found = link_of(SCRIPT)
    assert (link["rate"], link["reverse_rate"], link["overhead"]) == ("20mbit", "2mbit", "18b")
    assert (link["qdisc"]["limit"], link["reverse_qdisc"]["kind"]) == ("900p", "bfifo")
    assert "# lan: forward\n# wan0: reverse\n" in found.text
    assert found.notes == ("wan0: its overhead of 0 bytes is left aside, for 18",)


def test_what_nobody_sets_in_a_script_stands_as_it_is_and_is_named():
    _, found = link_of("#!/bin/sh\ntc qdisc add dev $PORT root tbf rate $RATE burst 5kb limit 50kb\n", rate="1mbit")
    assert any("$RATE" in note for note in found.notes) and "rate $RATE" not in found.text
    loop = "for each in a b; do tc qdisc add dev $each root cake; done\n"
    _, found = link_of("#!/bin/sh\ntc qdisc add dev eth0 root cake bandwidth 1mbit\n" + loop)
    assert found.notes == ("line 3: 'for': expected lines of tc qdisc show, tc class show, or tc qdisc add",)


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


@pytest.mark.parametrize("said, taken", [("64", 256), ("4mb", 1 << 20)])
def test_a_quantum_of_drr_is_the_one_that_the_kernel_takes(said, taken):
    """Of a class, sch_drr.c."""
    text = (
        f"tc qdisc add dev eth0 root handle 10: drr\ntc class add dev eth0 parent 10: classid 10:1 drr quantum {said}\n"
    )
    link, found = link_of(text, rate="10mbit")
    assert link["qdisc"]["quantum"] == f"{taken}b"
    assert f"line 2: 'quantum {said}' of drr: the kernel takes {taken}" in found.notes


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


@pytest.mark.parametrize(("overhead", "told"), [(-4, 1), (0, 0), (1001, 1)])
def test_an_overhead_of_cake_that_no_link_has_is_said(overhead, told):
    link, found = link_of(f"qdisc cake 8001: dev eth0 root refcnt 2 bandwidth 50Mbit overhead {overhead}")
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
