"""What tc and the kernel make of words and classes, as `aqmlab tc --read` and `compare` take them.

Rules are those of iproute2's tc/q_*.c and of the kernel's net/sched; the numbers are worked out beside them.
"""

import os
import re
import shutil
import subprocess

import pytest

from aqmlab import engine, links, toml_text
from aqmlab.errors import BadInput, Doubt
from aqmlab.tc import table, words
from aqmlab.tc.read import read
from aqmlab.tc.write import bottlenecks
from conftest import NATIVE


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def link_of(text, rate=None):
    found = read(text, "dump", None, None, rate)
    engine.resolve(found.text, "dump")
    return found.tree["link"], found


# ---- classes of htb ----

HTB = "qdisc htb 1: root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000\n"
ADDED = "tc qdisc add dev eth0 root handle 1: htb default 10\n"


@pytest.mark.parametrize(
    ("classes", "rate"),
    [
        # Each class from the outermost to the default one, by its rate and its ceil.
        ([("900Mbit", "900Mbit"), ("45Mbit", "45Mbit")], "45mbit"),
        ([("50Mbit", "50Mbit"), ("1Mbit", "5Mbit")], "5mbit"),
        ([("50Mbit", None), ("1Mbit", None)], "1mbit"),
        ([("20Mbit", "20Mbit"), ("5Mbit", "10Mbit"), ("1Mbit", "100Mbit")], "10mbit"),
        # Who has no parent does not borrow; and what a class may send by itself it never borrows.
        ([("10Mbit", "50Mbit"), ("1Mbit", "50Mbit")], "10mbit"),
        ([("10Mbit", "10Mbit"), ("20Mbit", "30Mbit")], "20mbit"),
    ],
)
def test_a_class_of_htb_gets_what_it_can_borrow(classes, rate):
    handles = [f"1:{k}" for k in range(1, len(classes))] + ["1:10"]
    places = ["root", *(f"parent {handle}" for handle in handles[:-1])]
    words = [f"rate {own}" + (f" ceil {ceil}" if ceil else "") for own, ceil in classes]
    rows = list(zip(handles, places, words, strict=True))
    shown = HTB + "".join(f"class htb {handle} {place} {said}\n" for handle, place, said in rows)
    lines = ADDED + "".join(
        f"tc class add dev eth0 {place.replace('root', 'parent 1:')} classid {handle} htb {said.lower()}\n"
        for handle, place, said in rows
    )
    assert link_of(shown)[0]["rate"] == link_of(lines)[0]["rate"] == rate


def test_the_overhead_is_that_of_the_class_of_htb_that_bounds():
    text = HTB + "class htb 1:1 root rate 50Mbit ceil 50Mbit overhead 8\n"
    text += "class htb 1:10 parent 1:1 rate 5Mbit ceil 5Mbit overhead 24\n"
    assert link_of(text)[0]["overhead"] == f"{table.ETHERNET_HEADER + 24}b"


@pytest.mark.parametrize(
    ("bounding", "leaf", "said"),
    [
        ("overhead 8", "overhead 24 mpu 64", ["overhead 24", "mpu 64"]),
        ("overhead 8", "overhead 8 linklayer atm", ["linklayer atm"]),
        ("overhead 8", "overhead 8 mpu 0b", []),
        ("overhead 8", "", []),
    ],
)
def test_what_a_class_of_htb_counts_that_does_not_bound_is_noted(bounding, leaf, said):
    text = HTB + f"class htb 1:1 root rate 5Mbit ceil 5Mbit {bounding}\n"
    text += f"class htb 1:10 parent 1:1 rate 1Mbit ceil 50Mbit {leaf}\n"
    link, found = link_of(text)
    assert (link["rate"], link["overhead"]) == ("5mbit", f"{table.ETHERNET_HEADER + 8}b") and "framing" not in link
    why = "left aside, as class 1:1 bounds the rate"
    assert list(found.notes) == [f"line 3: '{word}' of class 1:10: {why}" for word in said]


# ---- words of a qdisc ----


def both(spec):
    """The parameters that a line and the words of `compare` stand for, where they say the same."""
    line = link_of(f"tc qdisc add dev eth0 root {spec}", "10mbit")[0]["qdisc"]
    found = words.parse(spec)
    assert {name: line.get(name) for name in found} == found
    return found


@pytest.mark.parametrize(
    ("said", "qdisc"),
    [
        ("overhead 22 docsis", {"overhead": 40, "mpu": 64, "framing": "noatm"}),
        ("docsis overhead 22", {"overhead_keyword": "docsis", "overhead": 22}),
        ("pppoe-ptm ether-vlan", {"overhead": 34, "framing": "ptm"}),
        ("ethernet ether-vlan ether-vlan", {"overhead": 46, "mpu": 84}),
        ("ether-vlan", {"overhead": 4}),
        ("overhead 22 conservative", {"overhead": 48, "framing": "atm"}),
        ("pppoa-vcmux atm docsis mpu 90", {"overhead": 28, "framing": "noatm", "mpu": 90}),
        ("ptm ethernet", {"overhead": 38, "framing": "ptm", "mpu": 84}),
        ("docsis atm", {"overhead_keyword": "docsis", "framing": "atm"}),
        ("rtt 50ms lan", {"rtt_keyword": "lan"}),
        ("lan rtt 50ms", {"rtt": "50ms"}),
        ("diffserv3 besteffort", {"diffserv": "besteffort"}),
        ("besteffort diffserv", {"diffserv": "diffserv4"}),
        ("flows flowblind", {"isolation": "flowblind"}),
        ("ack-filter no-ack-filter", {"ack_filter": "off"}),
        ("ingress egress", {"ingress": False}),
        ("wash nowash", {}),
    ],
)
def test_the_last_word_of_cake_counts_and_keywords_add_up(said, qdisc):
    """tc-cake(8) does not say so; tc/q_cake.c has each word in its turn: a keyword adds, a number sets."""
    assert both(f"cake {said}") == {"kind": "cake", **qdisc}


def test_cakes_raw_counts_the_ports_own_header():
    """With raw the kernel takes no header off, and adds what an overhead behind it says."""
    line = "tc qdisc add dev eth0 root cake bandwidth 5mbit docsis raw"
    assert link_of(line)[0]["overhead"] == f"{table.ETHERNET_HEADER}b"
    assert link_of(f"{line} overhead 5")[0]["overhead"] == f"{table.ETHERNET_HEADER + 5}b"


def test_cells_are_written_behind_raw_which_says_that_there_are_none():
    """A line for a wire of cells without an overhead once said `ptm raw`, which Linux takes for no cells."""
    tree = {"link": {"rate": "10mbit", "qdisc": {"kind": "cake", "overhead": 0, "framing": "ptm"}}}
    wanted = engine.resolve(toml_text.dumps({**tree, "traffic": [{"kind": "bulk"}]}), "<scenario>")
    line = bottlenecks(wanted, links.ONE, ("eth0", "eth1"), 1e-4)[0].lines[-1].text
    assert " raw ptm " in line
    assert words.parse(line[line.index("cake") :])["framing"] == "ptm"


def test_keywords_of_framing_are_the_engines():
    for word, (overhead, mpu, cells) in table.FRAMINGS.items():
        tree = {"link": {"qdisc": {"kind": "cake", "overhead_keyword": word}}, "traffic": [{"kind": "bulk"}]}
        found = engine.resolve(toml_text.dumps(tree), "<scenario>").scenario["link"]["qdisc"]
        assert [found[name] for name in ("overhead", "mpu", "framing")] == [overhead, mpu, cells or "noatm"]


@pytest.mark.parametrize(
    ("said", "qdisc"),
    [
        ("sfb target 40", {"target": 40, "max": 50}),
        ("sfb max 50", {"target": 40, "max": 50}),
        # (5 * 7 + 1) // 4 and (4 * 9 + 3) // 5.
        ("sfb target 7", {"target": 7, "max": 9}),
        ("sfb max 9", {"target": 7, "max": 9}),
        ("sfb max 60 target 10", {"target": 10, "max": 60}),
        ("sfb limit 500", {"limit": "500p"}),
    ],
)
def test_sfbs_lengths_follow_from_each_other(said, qdisc):
    assert both(said) == {"kind": "sfb", **qdisc}


@pytest.mark.parametrize(
    ("said", "target", "period", "alpha", "beta"),
    [
        # A sixth of 100 ms in whole microseconds; alpha 0.16666 is 42.7 and beta 3 is 768 multiples of 1/256.
        ("max_rtt 100ms", "16.666ms", "16.666ms", 42 / 256, 3),
        ("typical_rtt 15ms", "15ms", "15ms", 47 / 256, 853 / 256),
        # The period is at most a third of the longest: 0.1 * 20 ms / (60 ms)^2 = 0.5556 Hz, 142.2 / 256.
        ("max_rtt 60ms typical_rtt 50ms", "50ms", "20ms", 142 / 256, 5),
    ],
)
def test_round_trip_times_of_dualpi2_stand_for_its_target_and_gains(said, target, period, alpha, beta):
    """tc/q_dualpi2.c: as RFC 9332 has them."""
    values = {"target": target, "tupdate": period, "alpha": alpha, "beta": beta}
    assert both(f"dualpi2 {said}") == {"kind": "dualpi2", **values}


@pytest.mark.parametrize("said", ["max_rtt 10ms typical_rtt 20ms", "max_rtt 100s", "typical_rtt 1e305s"])
def test_round_trip_times_that_tc_refuses_are_named(said):
    with pytest.raises(BadInput, match="tc refuses"):
        words.parse(f"dualpi2 {said}")
    link, found = link_of(f"tc qdisc add dev eth0 root dualpi2 limit 500 {said}", "10mbit")
    assert link["qdisc"] == {"kind": "dualpi2", "limit": "500p", "dialect": "linux"}
    assert len(found.notes) == 1 and "tc refuses" in found.notes[0]


@pytest.mark.parametrize(
    ("kind", "said", "most"),
    [("pie", "alpha 48", 32), ("fq_pie", "beta 33", 32), ("fq_pie", "ecn_prob 100", 99)],
)
def test_numbers_that_tc_refuses_are_left_out_of_lines_and_refused_in_words(kind, said, most):
    """ALPHA_MAX and BETA_MAX of tc/q_pie.c and tc/q_fq_pie.c, which refuses an ecn_prob of 100 as well."""
    link, found = link_of(f"tc qdisc add dev eth0 root {kind} {said}", "10mbit")
    assert link["qdisc"] == {"kind": kind, "dialect": "linux"}
    assert found.notes == (f"line 1: {said}: tc refuses it; expected 0 to {most}",)
    with pytest.raises(BadInput, match=f"'{kind} {said}': {said}: tc refuses it; expected 0 to {most}"):
        words.parse(f"{kind} {said}")
    word = said.split()[0]
    assert both(f"{kind} {word} {most}") == {"kind": kind, word: most / (100 if most == 99 else 16)}


RED = "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55"
CHOKE = "choke limit 1000 min 83 max 250 burst 100 bandwidth 10mbit"

REFUSED = [
    ("sfq limit 1", "limit", "2 or more"),
    (RED.replace("400000", "0"), "limit", "1 or more"),
    # 60000 bytes of band by 2^31; 167 packets of 1000 bytes.
    (f"{RED} probability 0.0000279", "probability", "2.8e-05 or more"),
    (f"{CHOKE} probability 0.0000777", "probability", "7.78e-05 or more"),
    ("choke limit 1 min 1 max 2 burst 1 bandwidth 10mbit", "limit", "2 or more"),
    ("cake overhead 257", "overhead", "-64 to 256"),
    ("cake overhead -65", "overhead", "-64 to 256"),
    ("cake mpu 257", "mpu", "0 to 256"),
]
"""A word each that tc refuses by its number, and the numbers that it takes."""


@pytest.mark.parametrize(("said", "word", "expected"), REFUSED)
def test_a_number_that_tc_refuses_is_left_out_and_named(said, word, expected):
    number = re.search(rf"{word} (\S+)", said)[1]
    link, found = link_of(f"tc qdisc add dev eth0 root {said}", "10mbit")
    assert f"line 1: {word} {number}: tc refuses it; expected {expected}" in found.notes
    rest = link_of(f"tc qdisc add dev eth0 root {said.replace(f'{word} {number}', '')}", "10mbit")[0]
    assert link == rest
    with pytest.raises(BadInput, match=f"{word} {number}: tc refuses it; expected {expected}"):
        words.parse(said)


def test_tc_refuses_what_is_said_to_be_refused_and_takes_what_is_expected():
    """It ends with 1 where it refuses words itself, and with 2 where the kernel has no such discipline."""
    inside = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net"]
    if None in map(shutil.which, ("unshare", "tc")) or subprocess.call([*inside, "true"]) != 0:
        pytest.skip("left out: this machine gives no network namespace, or has no tc")

    def code(said):
        call = [*inside, "tc", "qdisc", "add", "dev", "lo", "root", *said.split()]
        return subprocess.run(call, capture_output=True, check=False).returncode

    for said, word, expected in REFUSED:
        assert code(said) == 1, said
        for end in re.findall(r"-?[0-9][0-9.e-]*", expected):
            assert code(re.sub(rf"{word} \S+", f"{word} {end}", said)) in (0, 2), (said, end)


def test_words_of_red_that_are_no_command_of_tcs_stay_as_they_are():
    assert words.parse("red probability 0 min 0")["probability"] == 0


def test_the_overhead_of_keywords_together_has_no_bounds_in_tc():
    """Only a number that is said has: what goes beyond those of a scenario is refused by it."""
    line = "tc qdisc add dev eth0 root cake bandwidth 5mbit overhead 250 docsis"
    link, found = link_of(line)
    assert link["overhead"] == "268b" and "overhead" not in link["qdisc"]
    assert [note[:26] for note in found.notes] == ["overhead 268 is left out: "]


def test_a_nought_that_tc_does_not_pass_on_is_the_default_in_words_too():
    for spec in ("fq_codel limit 0", "pie alpha 0", "dualpi2 step_thresh 0ms"):
        with pytest.warns(Doubt, match=f"'{spec}': '.* 0(ms)?' of .*: tc does not pass 0 on, and the default stands"):
            assert both(spec) == {"kind": spec.split()[0]}
    # This is no word of tc's, but a scenario's.
    assert words.parse("fq_codel limit 0p") == {"kind": "fq_codel", "limit": "0p"}


@pytest.mark.parametrize("unit", ["p", "pkt", "pkts", "packet", "packets"])
def test_a_step_in_packets_has_all_of_tcs_units(unit):
    assert both(f"dualpi2 step_thresh 5{unit}")["step_thresh"] == "5p"


@pytest.mark.parametrize(("said", "is_on"), [("ecn noecn", False), ("noecn ecn", True)])
@pytest.mark.parametrize("kind", ["codel", "fq_codel", "pie"])
def test_of_ecn_and_noecn_the_last_counts(kind, said, is_on):
    assert both(f"{kind} {said}") == {"kind": kind, "ecn": is_on}


@pytest.mark.parametrize(
    ("line", "said", "kept"),
    [
        ("sfq depth 1000", "depth 1000", {"depth": 127}),
        ("sfq flows 100000", "flows 100000", {"flows": 65408}),
        ("sfq flows 1000 divisor 256", "flows 1000", {"flows": 256, "divisor": 256}),
        # 128 flows of 127 packets; 8 of 10.
        ("sfq limit 100000", "limit 100000", {"limit": "16256p"}),
        ("sfq limit 100 flows 8 depth 10", "limit 100", {"limit": "80p", "flows": 8, "depth": 10}),
        ("sfq limit 100 flows 300", "", {"limit": "100p", "flows": 300}),
        ("fq_codel quantum 100", "quantum 100", {"quantum": "256b"}),
        ("fq_codel quantum 300", "", {"quantum": "300b"}),
        ("fq_pie quantum 100", "quantum 100", {"quantum": "256b"}),
        ("sfq quantum 200b", "quantum 200b", {"quantum": "256b"}),
        ("sfq quantum 1kb", "", {"quantum": "1024b"}),
        ("fq_codel limit 0", "limit 0", {}),
        ("codel target 0", "target 0", {}),
        ("codel target 0ms", "target 0ms", {}),
        ("pie limit 0", "limit 0", {}),
        ("pie alpha 0", "alpha 0", {}),
        ("pie tupdate 0ms beta 3", "tupdate 0ms", {"beta": 0.1875}),
        ("fq_pie ecn_prob 0", "ecn_prob 0", {}),
        ("fq_pie quantum 0", "quantum 0", {}),
        ("dualpi2 step_thresh 0ms", "step_thresh 0ms", {}),
        ("dualpi2 step_thresh 0p", "step_thresh 0p", {}),
        ("dualpi2 limit 0 tupdate 20ms", "limit 0", {"tupdate": "20ms"}),
        ("cake memlimit 0", "memlimit 0", {"overhead": 14}),
        ("cake bandwidth 0", "bandwidth 0", {"overhead": 14}),
        # It makes a target of 1us of this; and of sfb's the kernel takes the port's own for 0.
        ("cake bandwidth 5mbit rtt 0", "rtt 0", {"bandwidth": "5mbit", "overhead": 14}),
        ("sfb limit 0", "limit 0", {"ecn": True}),
        # It passes this on.
        ("dualpi2 min_qlen_step 0", "", {"min_qlen_step": 0}),
    ],
)
def test_what_the_kernel_bounds_is_bounded_and_noted(line, said, kept):
    link, found = link_of(f"tc qdisc add dev eth0 root {line}", "10mbit")
    assert link["qdisc"] == {"kind": line.split()[0], "dialect": "linux", **kept}
    assert len(found.notes) == bool(said)
    assert all(note.startswith(f"line 1: '{said}' of {line.split()[0]}: ") for note in found.notes)


# ---- red and choke ----


@pytest.mark.parametrize("spec", [RED, f"{RED} adaptive", "choke limit 1000 min 83 max 250"])
def test_the_bandwidth_of_red_is_its_capacity(spec):
    assert both(f"{spec} bandwidth 5mbit")["capacity"] == "5mbit"


def test_tcs_red_without_a_bandwidth_takes_ten_megabits():
    """tc/q_red.c; a dump does not show it, and tc/q_choke.c wants it."""
    link, found = link_of(f"tc qdisc add dev eth0 root {RED}", "1gbit")
    assert link["qdisc"]["capacity"] == "10mbit"
    assert "# capacity: tc takes 10mbit for a bandwidth that is not said" in found.text
    dumped, _ = link_of("qdisc red 1: dev eth0 root limit 400000b min 30000b max 90000b ewma 5", "1gbit")
    assert "capacity" not in dumped["qdisc"]
    link, found = link_of("tc qdisc add dev eth0 root choke limit 1000", "1gbit")
    assert "capacity" not in link["qdisc"] and "choke: tc wants bandwidth" in found.notes[0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        # tc sends 1 * 2^32 in 32 bits, 0, for which the kernel takes (2^32 - 1) / 2^Plog * (max - min) of 2^32: 2^16 is
        # the first power of 2 beyond 60,000.
        (f"{RED} probability 1 bandwidth 10mbit", "; on x86-64 the kernel takes 0.916"),
        (f"{RED} probability 1.0 bandwidth 10mbit adaptive", "; on x86-64 the kernel takes 0.916"),
        # 2^15 is the first beyond 20,000 bytes, which are 20 packets to the kernel.
        (
            "choke limit 1000 min 20 max 40 burst 55 bandwidth 10mbit probability 1",
            "; on x86-64 the kernel takes 0.00061",
        ),
        (f"{RED} probability 0.999999999 bandwidth 10mbit", None),
    ],
)
def test_a_probability_of_one_is_none_to_the_kernel(line, said):
    link, found = link_of(f"tc qdisc add dev eth0 root {line}", "10mbit")
    assert link["qdisc"]["probability"] == pytest.approx(1)
    name, word = line.split()[0], re.search(r"probability \S+", line)[0]
    assert list(found.notes) == ([f"line 1: '{word}' of {name}: more than tc's 32 bits hold{said}"] if said else [])


def test_a_probability_of_one_that_a_kernel_shows_is_one():
    shown = "qdisc red 1: dev eth0 root limit 400000b min 30000b max 90000b ewma 5 probability 1 Scell_log 15"
    assert link_of(shown, "1gbit")[1].notes == ()


def test_tcs_red_takes_three_times_a_min_for_its_max():
    assert both("red limit 400000 min 20000 avpkt 1000")["max"] == "60000b"
    assert both("choke limit 1000 min 20 bandwidth 10mbit")["max"] == "250p"


def test_a_burst_that_tc_refuses_is_refused():
    """30 packets of min do not fit into a burst of 10."""
    with pytest.raises(
        BadInput, match=r"^dump: line 1: burst: tc refuses 10; expected burst of 30 or more \(min / avpkt"
    ):
        link_of(f"tc qdisc add dev eth0 root {RED.replace('55', '10')}", "10mbit")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            "red limit 6mb min 1mb max 3mb avpkt 1000 burst 55",
            "expected burst of 1049 or more (min / avpkt, rounded up)",
        ),
        ("red limit 60000 min 500 max 1500 avpkt 1000 burst 55", "expected min of avpkt (1000 bytes) or more"),
        ("red limit 60000 min 1000 max 3000 avpkt 1000 burst 55", "expected burst of 1 (min / avpkt, rounded up) to 1"),
        ("choke limit 1000 min 83 max 250 burst 10 bandwidth 1mbit", "expected burst of 83 or more (min)"),
    ],
)
def test_the_burst_that_tc_would_take_is_named(spec, said):
    """What is named is taken, and a packet less is not."""
    with pytest.raises(BadInput) as caught:
        words.parse(spec)
    assert str(caught.value) == f"'{spec}': burst: tc refuses {re.findall('burst ([0-9]+)', spec)[0]}; {said}"
    if number := re.search(r"burst of ([0-9]+)", said):
        burst = int(number[1])
        assert "wq" in words.parse(re.sub("burst [0-9]+", f"burst {burst}", spec))
        with pytest.raises(BadInput):
            words.parse(re.sub("burst [0-9]+", f"burst {burst - 1}", spec))


def test_choke_has_not_all_words_of_red():
    line = "tc qdisc add dev eth0 root choke limit 1000 bandwidth 10mbit"
    for word in ("harddrop", "adaptive", "nodrop"):
        link, found = link_of(f"{line} {word}", "10mbit")
        assert link["qdisc"]["kind"] == "choke"
        assert found.notes == (f"line 1: '{word}': not a word of choke that aqmlab knows",)
        with pytest.raises(BadInput, match=f"'{word}': no parameter of choke"):
            words.parse(f"choke limit 1000 bandwidth 10mbit {word}")


def test_a_limit_of_memory_that_is_no_size_is_noted():
    """It was once an error of the program."""
    _, found = link_of("tc qdisc add dev eth0 root fq_codel memory_limit 5ms", "10mbit")
    assert found.notes == ("line 1: 'memory_limit' of fq_codel: aqmlab limits packets alone",)


# ---- what comes nearest ----

FQ = (
    "qdisc fq 8001: dev eth0 root refcnt 2 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 bands 3 priomap "
    "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 weights 589824 196608 65536 quantum 3028b initial_quantum 15140b "
    "low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop \n"
)
"""All that tc shows of an fq that nobody told anything, in this order."""


@pytest.mark.parametrize("text", [FQ, "tc qdisc add dev eth0 root fq\n"])
def test_linuxs_fq_has_its_own_defaults(text):
    """The kernel's sch_fq.c: 100 packets a flow, and two full frames a turn."""
    link, found = link_of(text, "10mbit")
    assert link["qdisc"] == {"kind": "drr", "dialect": "linux", "limit": "100p", "quantum": "3028b"}
    assert found.notes == ()


def test_a_word_of_fq_that_is_left_out_is_noted():
    said = "limit 500 flow_limit 40 quantum 1514 maxrate 1mbit ce_threshold 1ms horizon_cap nopacing"
    link, found = link_of(f"tc qdisc add dev eth0 root fq {said}", "10mbit")
    assert (link["qdisc"]["limit"], link["qdisc"]["quantum"]) == ("40p", "1514b")
    assert found.notes == (
        "line 1: 'limit 500' of fq: drr limits each flow by itself, and not all together",
        "line 1: 'maxrate 1mbit' of fq: aqmlab does not pace",
        "line 1: 'ce_threshold 1ms' of fq: drr marks nothing",
        "line 1: 'horizon_cap' of fq: aqmlab does not pace",
    )


def test_each_further_queue_of_mq_is_noted():
    lines = "tc qdisc add dev eth0 root mq\n" + "".join(
        f"tc qdisc replace dev eth0 parent :{k} fq_codel limit {k}00\n" for k in (1, 2, 3)
    )
    link, found = link_of(lines, "10mbit")
    assert link["qdisc"]["limit"] == "100p"
    assert found.notes == tuple(f"line {k + 1}: fq_codel below :{k} is a further queue, left aside" for k in (2, 3))


@pytest.mark.parametrize(
    "text",
    [
        "tc qdisc add dev eth0 root netem rate 5mbit 20 limit 100\n",
        "qdisc netem 8001: dev eth0 root refcnt 2 limit 100 rate 5Mbit packetoverhead 20\n",
        '[{"kind": "netem", "handle": "8001:", "dev": "eth0", "root": true, "options": {"limit": 100, '
        '"rate": {"rate": 625000, "packetoverhead": 20, "cellsize": 0, "celloverhead": 0}}}]',
    ],
)
def test_the_rate_of_netem_is_the_links_where_nothing_else_shapes(text):
    link, found = link_of(text)
    assert (link["rate"], link["overhead"]) == ("5mbit", f"{table.ETHERNET_HEADER + 20}b")
    assert link["qdisc"] == {"kind": "pfifo", "limit": "100p"}
    assert found.notes == () and "netem's limit" not in found.text


def test_a_netem_that_delays_too_has_both_in_its_limit():
    link, found = link_of("tc qdisc add dev eth0 root netem rate 5mbit delay 10ms\n")
    assert link["qdisc"] == {"kind": "pfifo", "limit": "1000p"} and found.tree["path"] == {"rtt": "10ms"}
    assert "# netem's limit counts the packets that it delays, too" in found.text


@pytest.mark.parametrize("below", ["pie", "red limit 400000 avpkt 1000 bandwidth 5mbit", "cake unlimited"])
def test_a_queue_below_netem_holds_nothing(below):
    lines = "tc qdisc add dev eth0 root handle 1: netem rate 5mbit\ntc qdisc add dev eth0 parent 1:1 handle 2: "
    link, found = link_of(lines + below)
    assert link["qdisc"]["kind"] == "pfifo" and found.notes == (
        f"line 2: {below.split()[0]} below netem is left aside: packets wait in netem, and not in it",
    )


def test_the_rate_of_netem_below_a_shaper_is_noted():
    lines = "tc qdisc add dev eth0 root handle 1: tbf rate 3mbit burst 2kb limit 30kb\n"
    link, found = link_of(lines + "tc qdisc add dev eth0 parent 1:1 netem rate 5mbit\n")
    assert link["rate"] == "3mbit" and len(found.notes) == 1 and "'rate 5mbit': of netem" in found.notes[0]


@pytest.mark.parametrize("word", ["adaptive", "nodrop"])
def test_a_word_of_red_that_sfq_does_not_have_is_named(word):
    """iproute2's q_sfq.c has ecn and harddrop of RED's; with adaptive the queue was once read as drop-tail."""
    link, found = link_of(f"tc qdisc add dev eth0 root sfq perturb 10 {word}\n", "10mbit")
    assert link["qdisc"]["kind"] == "sfq"
    assert found.notes == (f"line 1: '{word}': not a word of sfq that aqmlab knows",)


def test_a_red_above_netem_decides_about_what_waits_in_it():
    """sch_red.c measures the backlog of the qdisc below it, which is where packets wait for the rate."""
    lines = "tc qdisc add dev eth0 root handle 1: red limit 400000 avpkt 1000 bandwidth 5mbit\n"
    link, found = link_of(lines + "tc qdisc add dev eth0 parent 1:1 netem rate 5mbit\n")
    assert (link["rate"], link["qdisc"]["kind"], found.notes) == ("5mbit", "red", ())


def test_of_a_class_of_htb_whose_parent_was_not_pasted_the_ceil_counts():
    assert link_of(HTB + "class htb 1:10 parent 1:1 prio 0 rate 1Mbit ceil 5Mbit\n")[0]["rate"] == "5mbit"


def test_lengths_of_red_that_tc_refuses_without_a_burst_are_refused():
    """iproute2's q_red.c: (2 * 500 + 1500) / 3000 packets are no burst, and no weight belongs to it."""
    with pytest.raises(BadInput, match=r"line 1: min: tc refuses 500; expected min of avpkt .1000 bytes. or more"):
        link_of("tc qdisc add dev eth0 root red limit 60000 min 500 max 1500 avpkt 1000\n", "10mbit")


def test_a_bandwidth_of_red_that_is_no_rate_is_not_taken_for_one_that_is_not_said():
    link, found = link_of("tc qdisc add dev eth0 root red limit 400000 avpkt 1000 bandwidth 10%\n", "50mbit")
    assert "capacity" not in link["qdisc"] and "capacity" not in found.text
    assert found.notes == ("line 1: bandwidth '10%': expected a rate such as 10mbit",)


def test_a_red_without_avpkt_is_noted():
    """iproute2's q_red.c refuses it."""
    found = link_of("tc qdisc add dev eth0 root red limit 400000 bandwidth 10mbit\n", "10mbit")[1]
    assert found.notes == ("line 1: red: tc wants avpkt",)


def test_what_round_trip_times_of_dualpi2_take_the_place_of_is_said():
    why = "target, beta: left aside by tc, which computes all of them from max_rtt and typical_rtt"
    with pytest.warns(Doubt, match=why):
        assert words.parse("dualpi2 target 5ms max_rtt 60ms beta 1")["target"] == "10ms"
    assert why in link_of("tc qdisc add dev eth0 root dualpi2 target 5ms max_rtt 60ms beta 1\n", "10mbit")[1].text
