"""One reader of words: what tc takes, what `aqmlab tc` writes, and the names of aqmlab's own parameters."""

import math
import re
import warnings
from random import Random

import pytest

from aqmlab import engine, links, toml_text
from aqmlab.errors import BadInput, Doubt
from aqmlab.tc import quantities as q
from aqmlab.tc import table, words
from aqmlab.tc.read import read
from aqmlab.tc.write import bottlenecks
from conftest import NATIVE


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


@pytest.mark.parametrize(
    "spec, qdisc",
    [
        ("fq_codel limit 1000", {"kind": "fq_codel", "limit": "1000p"}),
        ("fq_codel limit 12kb noecn", {"kind": "fq_codel", "limit": "12kb", "ecn": False}),
        ("bfifo limit 150000", {"kind": "bfifo", "limit": "150000b"}),
        ("cake besteffort dual-dsthost", {"kind": "cake", "diffserv": "besteffort", "isolation": "dual-dsthost"}),
        ("cake docsis ack-filter", {"kind": "cake", "overhead_keyword": "docsis", "ack_filter": "on"}),
        ("cake bandwidth 48Mbit metro", {"kind": "cake", "bandwidth": "48mbit", "rtt_keyword": "metro"}),
        ("cake unlimited no-ack-filter", {"kind": "cake", "ack_filter": "off"}),
        ("cake ack_filter aggressive", {"kind": "cake", "ack_filter": "aggressive"}),
        ("pfifo_fast", {"kind": "pfifo"}),
        ("pfifo_head_drop limit 50", {"kind": "pfifo", "limit": "50p", "drop": "head"}),
        ("pie alpha 2 beta 20 target 20000", {"kind": "pie", "alpha": 0.125, "beta": 1.25, "target": "20ms"}),
        ("pie alpha 0.125 noecn", {"kind": "pie", "alpha": 0.125, "ecn": False}),
        ("fq_pie ecn_prob 10", {"kind": "fq_pie", "ecn_prob": 0.1}),
        ("sfq perturb 10 headdrop", {"kind": "sfq", "perturb": "10s", "headdrop": True}),
        ("sfb rehash 600000", {"kind": "sfb", "rehash": "600s"}),
        ("codel target 4999us", {"kind": "codel", "target": "4.999ms"}),
        ("dualpi2 step_thresh 10p overflow", {"kind": "dualpi2", "step_thresh": "10p", "drop_on_overload": False}),
        ("pi ecn noecn", {"kind": "pi", "ecn": False}),
        ("pi noecn ecn", {"kind": "pi", "ecn": True}),
        ("red min 5p ecn noecn", {"kind": "red", "min": "5p", "ecn": False}),
        ("pi qref 24p a 1e-5 ecn", {"kind": "pi", "qref": "24p", "a": 1e-5, "ecn": True}),
        ("pi noecn", {"kind": "pi", "ecn": False}),
        ("droptail limit 240p", {"kind": "pfifo", "limit": "240p"}),
        ("ared gentle false min 12p", {"kind": "ared", "gentle": False, "min": "12p"}),
    ],
)
def test_words_of_tc_and_our_own(spec, qdisc):
    assert words.parse(spec) == qdisc


@pytest.mark.parametrize(
    ("spec", "key", "given"),
    [
        ("fq_codel target -5ms", "target", "-5ms"),
        ("codel interval -0.1s", "interval", "-0.1s"),
        ("sfb max -1500b", "max", "-1500b"),
        ("fq_codel limit -5p", "limit", "-5p"),
    ],
)
def test_what_no_scenario_takes_is_refused_as_it_was_written(spec, key, given):
    assert words.parse(spec)[key] == given


def test_what_tc_computes_for_red_is_computed_from_its_words():
    """tc-red(8): max is a quarter of the limit, min a third of that; a kernel showed ewma 5 for such a burst of 55."""
    found = words.parse("red limit 400000 avpkt 1000 burst 55")
    assert found == {"kind": "red", "limit": "400000b", "max": "100000b", "min": "33333b", "mean_packet": "1000b",
                     "probability": 0.02, "wq": 2.0**-5}  # fmt: skip
    assert words.parse("red limit 400000 min 30k max 90k avpkt 1000 burst 55 adaptive")["kind"] == "ared"
    # Without a limit its own lengths stay, and min is five packets: 2^-n for a burst of 50, see tc/red.py.
    assert words.parse("red avpkt 1000 burst 50").keys() == {"kind", "mean_packet", "probability", "wq"}
    # Lengths in packets are so many of avpkt's bytes.
    of_bytes = words.parse("red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 ecn harddrop")
    of_packets = words.parse("red limit 60p min 5p max 15p avpkt 1000 burst 20 ecn harddrop")
    assert of_bytes["wq"] == of_packets["wq"] and of_packets["min"] == "5p" and of_bytes["mark_until"] == "max"
    # What a dump shows, and aqmlab's own.
    assert words.parse("red limit 60000b min 5000b max 15000b ewma 4 Scell_log 13")["wq"] == 2.0**-4
    assert words.parse("red min 5p wq 0.002") == {"kind": "red", "min": "5p", "wq": 0.002}


@pytest.mark.parametrize(
    "spec, said",
    [
        ("fq_coddel", "'fq_coddel': unknown discipline, did you mean fq_codel?"),
        ("qwertz", "'qwertz': unknown discipline, expected a scenario file, a result folder, or one of aqmlab list"),
        ("", "unknown discipline"),
        ("fq_codel limt 5", "'limt': no parameter of fq_codel, did you mean limit?"),
        ("codel qqqq 5", "no parameter of codel, expected one of ce_threshold, ce_threshold_selector, dialect, ecn"),
        ("pi qref", "qref: expected a value after it"),
        ("codel limit", "limit: expected a value after it"),
        ("cake memlimit 5p", "memlimit '5p': expected a size"),
        ("choke limit 5ms burst 5p", "'5ms': expected packets or bytes"),
        ("red adaptive avpkt 1000", "avpkt: expected limit beside it"),
        ("red limit 40000 avpkt 0", "avpkt 0: expected at least 1 byte"),
        ("red limit 400000 avpkt 1000 burst 1", "burst: tc refuses 1; expected"),
        ("pfifo_fast limit 100", "'limit': pfifo_fast has no words; expected pfifo"),
        ("fq flow_limit 100", "a word of Linux's fq, which is something else"),
    ],
)
def test_words_that_mean_nothing_are_named_in_a_line(spec, said):
    with pytest.raises(BadInput) as refused:
        words.parse(spec)
    assert said in str(refused.value) and "\n" not in str(refused.value) and len(str(refused.value)) < 300


def test_words_of_tc_without_a_meaning_here_are_doubted():
    with pytest.warns(Doubt, match="'nat' is left aside: aqmlab sees no translated addresses"):
        assert words.parse("cake nat bandwidth 5mbit") == {"kind": "cake", "bandwidth": "5mbit"}
    assert words.parse("fq_codel memory_limit 32Mb drop_batch 64") == {"kind": "fq_codel", "drop_batch": 64}


# ---- what is written is read again ----

LINK = "10mbit"
DRAWS = 240


def test_a_time_without_a_unit_is_said_to_be_tc_s_where_it_is_short():
    said = "'fq_codel target 5': target 5 is 5 microseconds, as in tc; 5 milliseconds are 5ms"
    with pytest.warns(Doubt, match=re.escape(said)):
        assert words.parse("fq_codel target 5")["target"] == "5us"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for plain in ("fq_codel target 5ms", "codel target 5000", "fq_codel limit 5"):
            words.parse(plain)


def drawn(param, random):
    """A value that the parameter may have, often a round one and often not."""
    low, high = param["range"]
    few = random.choice([random.randrange(1, 20), random.randrange(1, 100_000)])
    match param["kind"]:
        case "flag":
            return random.random() < 0.5
        case "word":
            return random.choice(param["words"])
        case "length":
            return random.choice([f"{few}p", f"{100 * few}b"])
        case "length or time":
            return random.choice([f"{few}p", f"{few}us"])
        case "time":
            return random.choice([f"{few}us", f"{random.randrange(1, 100)}ms", f"{random.randrange(1, 700)}s"])
        case "size":
            return f"{random.randrange(64, 3000)}b"
        case "selector":
            mask = random.randrange(1, 256)
            return f"{random.randrange(256) & mask:#04x}/{mask:#04x}"
        case "rate":
            return f"{few}kbit"
        case "integer":
            return random.randrange(max(0, int(low)), min(int(high), 2000) + 1)
        case "number" if low >= 1:
            return random.randrange(int(low), min(int(high), 20) + 1)
        case "number":
            return random.choice([round(random.random(), 4), random.randrange(0, 21) / 16, random.randrange(101) / 100])


def resolved(qdisc, overhead):
    tree = {"link": {"rate": LINK, "overhead": f"{overhead}b", "qdisc": qdisc}, "traffic": [{"kind": "bulk"}]}
    return engine.resolve(toml_text.dumps(tree), "<scenario>")


def in_bytes(value, packet):
    return f"{round(q.split(value)[0] * packet)}b" if str(value).endswith("p") else value


@pytest.mark.parametrize("row", table.ROWS, ids=lambda row: f"{row.ours}-{row.tc}")
def test_whatever_is_written_for_linux_is_read_back_to_the_same_parameters(row):
    """All that tc has a word for, but where a remark beside the line says that Linux has something else."""
    random = Random(f"{row.ours} {row.tc}")
    params = {p["name"]: p for each in engine.disciplines() if each["name"] == row.ours for p in each["params"]}
    of_tc = [word.ours for word in row.words if not getattr(word, "is_shorthand", False)]
    compared = set()
    for _ in range(DRAWS if of_tc else 0):
        given = {name: drawn(params[name], random) for name in of_tc if name in params and random.random() < 0.6}
        given |= {"drop": "head"} if row.tc == table.HEAD_DROP else {}
        given |= {"mean_packet": f"{random.randrange(500, 1501)}b"} if row.is_red else {}
        try:
            wanted = resolved({"kind": row.ours, **given}, given.get("overhead", 0))
        except BadInput:
            continue
        line = bottlenecks(wanted, links.ONE, ("eth0", "eth1"), 1e-4)[0].lines[-1]
        spoken = re.search(r"handle 10: (.*)", line.text)[1]
        remarks = " ".join(line.remarks)
        if "tc refuses less than one" in remarks:
            continue
        found = resolved(words.parse(spoken), given.get("overhead", 0)).scenario["link"]["qdisc"]
        assert found["kind"] == row.ours
        values = wanted.scenario["link"]["qdisc"]
        for name in of_tc:
            here, there = values.get(name), found.get(name)
            is_red_length = row.is_red and params[name]["kind"] == "length"
            if here is None or (not is_red_length and re.search(rf"(^|[ ,]){name} [^ ]+: (?!memlimit)", remarks)):
                continue
            if row.tc == "cake" and name == "limit" and here.endswith("p"):
                continue  # CAKE's is of memory
            if is_red_length and row.ours != "choke":
                here = in_bytes(here, q.size(values["mean_packet"]))
                assert abs(q.size(here) - q.size(there)) <= 1, (spoken, name)
            elif not (is_red_length and f"{name} {here}:" in remarks):
                assert q.same(there, here), (spoken, name)
            compared.add(name)
    assert compared >= set(of_tc), row.ours


def test_compare_and_tc_read_take_the_same_line_for_the_same():
    """What `tc qdisc add` is given, read as a line and as words, is one discipline but for what Linux fixes.

    The rate by which red's average falls is the link's in words that have no bandwidth, and tc's own in a line.
    """
    for spec in (
        "fq_codel limit 800 noecn target 3ms memory_limit 32Mb",
        "red limit 400kb min 30k max 90k avpkt 1000 burst 55 ecn",
        "red limit 400000 avpkt 1000 adaptive",
        "choke limit 1000 bandwidth 10mbit",
        "pie limit 500 alpha 3 beta 25 tupdate 30ms ecn bytemode",
        "cake bandwidth 5mbit besteffort dual-dsthost ack-filter rtt 30ms",
        "sfq perturb 10 depth 20",
        "dualpi2 limit 1000 step_thresh 2ms classic_protection 12%",
    ):
        line = read(f"tc qdisc add dev eth0 root {spec}", "dump", None, None, "10mbit").tree["link"]["qdisc"]
        found = words.parse(spec)
        assert {name: line[name] for name in found} == found
        assert line.keys() - found.keys() <= {"dialect", "gentle", "overhead", "capacity"}


def test_a_share_in_per_cent_that_the_kernel_cannot_keep_is_remarked():
    """Linux has whole per cents; a share between was once no number that could be read back."""
    line = bottlenecks(
        resolved({"kind": "dualpi2", "classic_protection": 0.125}, 0), links.ONE, ("eth0", "eth1"), 1e-4
    )[0].lines[-1]
    assert "classic_protection 12%" in line.text
    assert "classic_protection 0.125: tc takes classic_protection 12%" in line.remarks


def test_tc_read_takes_no_average_packet_of_nothing():
    found = read("tc qdisc add dev eth0 root red limit 400000 avpkt 0", "dump", None, None, "10mbit")
    assert any("avpkt 0: expected at least 1 byte" in note for note in found.notes)


def test_weights_are_powers_of_a_half():
    assert math.log2(words.parse("red limit 400000 avpkt 1000 burst 55")["wq"]).is_integer()


def test_a_rate_is_the_same_in_whatever_unit():
    """47.5 Mb/s are 47,500 kb/s by powers of 1000: no line has a remark for it. Sizes go by powers of 1024."""
    assert q.same("47.5mbit", "47500kbit")
    assert not q.same("47.5mbit", "48640kbit")
    assert q.same("1.5mb", "1536kb")
