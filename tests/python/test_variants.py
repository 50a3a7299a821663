import pytest

from aqmlab import engine, scenario, shaping, variants
from aqmlab.errors import BadInput, Doubt
from aqmlab.tc.write import write
from conftest import BASE, NATIVE


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def from_words(*specs):
    return variants.from_file(variants.written_out(scenario.read(BASE), specs))


ASYMMETRIC = BASE.replace('rate = "100mbit"', 'rate = "50mbit"\nreverse_rate = "10mbit"')


def links(base, *specs):
    wanted = variants.from_file(variants.written_out(scenario.read(base), specs))
    return [(variant.name, variant.source.resolve().scenario["link"]) for variant in wanted]


def test_words_are_of_both_directions_or_of_each_by_itself(compiled):
    one, two, three = links(
        ASYMMETRIC, "pfifo limit 240", "cake bandwidth 48mbit /  cake bandwidth 9mbit", "pi qref 24p/pfifo_fast"
    )
    assert one[1]["qdisc"] == one[1]["reverse_qdisc"]
    assert two[0] == "cake bandwidth 48mbit / cake bandwidth 9mbit"
    assert [two[1][key]["bandwidth"] for key in variants.QUEUES] == ["48mbit", "9mbit"]
    assert [three[1][key]["kind"] for key in variants.QUEUES] == ["pi", "pfifo"]


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (
            "cake bandwidth 48mbit",
            "exceeds link.reverse_rate 10mbit in reverse, .* or one discipline for each direction",
        ),
        ("cake bandwidth 51mbit / pfifo", "bandwidth 51mbit exceeds link.rate 50mbit forward"),
        ("cake bandwidth 50mbit / cake bandwidth 10001kbit", "bandwidth 10.001mbit exceeds link.reverse_rate 10mbit"),
        ("pfifo / pfifo / pfifo", 'or two in the form "forward / reverse"'),
        ("pfifo /", 'or two in the form "forward / reverse"'),
        ("pfifo / uncongested", "is the reference in both directions"),
        ("pfifo / fq_coddel", "did you mean fq_codel"),
        ("cake bandwidth much", "link.qdisc.bandwidth: 'much'"),
    ],
)
def test_words_that_fit_no_link_are_refused(compiled, spec, named):
    with pytest.raises(BadInput, match=named):
        links(ASYMMETRIC, spec)


def test_a_disciplines_name_alone_is_its_table(compiled):
    tail = '[[traffic]]\nkind = "bulk"\n'
    text = f'[link]\nqdisc = "codel"\nreverse_qdisc = "pfifo"\n{tail}'
    short = scenario.read(text)
    assert short.resolve().scenario["link"]["qdisc"]["kind"] == "codel"
    limited = short.with_changes({"link.qdisc.limit": "20p"}).resolve().scenario["link"]
    assert (limited["qdisc"]["limit"], limited["reverse_qdisc"]["kind"]) == ("20p", "pfifo")
    other = short.with_changes({"link.qdisc": "pie", "link.qdisc.limit": "30p"}).resolve().scenario["link"]
    assert (other["qdisc"]["kind"], other["qdisc"]["limit"]) == ("pie", "30p")
    both = text + '[[variant]]\nname = "a"\nlink.qdisc = "fq_codel"\n[[variant]]\nname = "b"\nlink.qdisc.limit = "9p"\n'
    a, b = (each.source.resolve().scenario["link"] for each in variants.from_file(scenario.read(both)))
    assert (a["qdisc"]["kind"], a["reverse_qdisc"]["kind"]) == ("fq_codel", "fq_codel")
    assert (b["qdisc"]["kind"], b["qdisc"]["limit"]) == ("codel", "9p")
    with pytest.raises(BadInput, match=r"<scenario>:2: link\.qdisc\.kind.*did you mean codel"):
        scenario.read(text.replace('"codel"', '"coddel"')).resolve()


def test_a_shaper_as_fast_as_its_link_is_taken(compiled):
    assert len(links(ASYMMETRIC, "cake bandwidth 50mbit / cake bandwidth 10mbit")) == 1


def test_in_a_scenario_a_shaper_beyond_its_link_is_doubted(compiled):
    qdisc = {"kind": "cake", "bandwidth": "48mbit"}
    found = scenario.read(ASYMMETRIC).with_changes({"link.qdisc": qdisc}).resolve()
    with pytest.warns(Doubt, match=r"link.reverse_qdisc.bandwidth 48mbit exceeds link.reverse_rate 10mbit in reverse"):
        shaping.doubts(found)
    remarks = [
        remark for section in write(found, "a", "b").sections for line in section.lines for remark in line.remarks
    ]
    assert sum("exceeds" in remark for remark in remarks) == 1


LINUX = BASE.replace("freebsd4", "linux")


def hosts_ecn(scenario_text, changes=()):
    """What "codel ecn" leaves of a scenario's `tcp.ecn`."""
    source = scenario.read(scenario_text).with_changes(dict(changes))
    (variant,) = variants.from_file(variants.written_out(source, ["codel ecn"]))
    return variant.source.resolve().scenario["tcp"]["ecn"]


@pytest.mark.parametrize("said", ["on", "plus", "accurate"])
def test_ecn_in_words_keeps_what_the_scenario_says_of_its_hosts(compiled, said):
    assert hosts_ecn(LINUX.replace("[tcp]", f'[tcp]\necn = "{said}"')) == said
    assert hosts_ecn(LINUX, {"tcp.ecn": said}) == said


def test_ecn_in_words_keeps_what_the_congestion_control_brings_along(compiled):
    assert hosts_ecn(LINUX.replace("[tcp]", '[tcp]\ncc = "prague"')) == "accurate"


def test_ecn_in_words_of_hosts_without_it_is_a_doubt(compiled):
    said = "'codel ecn': marks nothing, since tcp.ecn = \"off\" and no packet is ECN-capable"
    for text, changes in ((BASE.replace("[tcp]", '[tcp]\necn = "off"'), {}), (BASE, {"tcp.ecn": "off"})):
        with pytest.warns(Doubt, match=said):
            assert hosts_ecn(text, changes) == "off"


@pytest.mark.parametrize(
    "block", ['kind = "bulk"\necn = "on"', 'kind = "cbr"\nrate = "1mbit"\nect = "ect0"'], ids=["bulk", "cbr"]
)
def test_where_packets_of_a_block_can_be_marked_there_is_no_doubt(compiled, block):
    assert hosts_ecn(f"{BASE}\n[[traffic]]\n{block}\n", {"tcp.ecn": "off"}) == "off"


def test_ecn_switches_the_hosts_on_too():
    plain, marking, reference = from_words("pi qref 24p", "pi qref 24p ecn", "uncongested")
    assert "ecn" not in plain.source.tree["tcp"]
    assert marking.source.tree["tcp"] == {"stack": "freebsd4", "ecn": "on"}
    assert marking.source.tree["name"] == "pi qref 24p ecn"
    assert reference.uncongested and not marking.uncongested


def test_a_variant_changes_both_directions_unless_it_says_otherwise():
    text = BASE + (
        '[link.reverse_qdisc]\nkind = "rem"\n[[variant]]\nname = "a"\nlink.qdisc.kind = "pi"\n'
        '[[variant]]\nname = "b"\nlink = { qdisc = { kind = "pi" }, reverse_qdisc = { kind = "pfifo" } }\n'
        '[[variant]]\nname = "c"\nset = { "tcp.ecn" = "on", "traffic.0.users" = 5 }\n'
    )
    a, b, c = (variant.source.tree for variant in variants.from_file(scenario.read(text)))
    assert a["link"]["qdisc"] == {"kind": "pi"} and "reverse_qdisc" not in a["link"]
    assert b["link"]["reverse_qdisc"] == {"kind": "pfifo"}
    assert c["link"]["reverse_qdisc"] == {"kind": "rem"} and c["traffic"][0]["users"] == 5
    assert all("variant" not in tree for tree in (a, b, c))


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ("[[variant]]\n", r"variant\.0\.name"),
        ('[[variant]]\nname = "a"\nset = 3\n', r"variant\.0\.set"),
        ('[[variant]]\nname = "a"\nuncongested = "yes"\n', r"variant\.0\.uncongested"),
        ('[[variant]]\nname = "a"\n[[variant]]\nname = "A"\n', "makes the same folder as"),
        ('[[variant]]\nname = "a"\nbaseline = true\n[[variant]]\nname = "b"\nbaseline = true\n', "at most one"),
        ("[variant]\n", "expected one or more"),
    ],
)
def test_a_bad_variant_is_named(tables, named):
    with pytest.raises(BadInput, match=named):
        variants.from_file(scenario.read(BASE + tables))


def test_the_baseline_is_the_one_asked_for_or_marked_or_drop_tail():
    rows = [("ref", True, False, "pfifo"), ("pi", False, False, "pi"), ("dt", False, False, "pfifo")]
    assert variants.choose_baseline(rows, None) == "dt"
    assert variants.choose_baseline(rows, "pi") == "pi"
    assert variants.choose_baseline(rows[:2], None) == "pi"
    assert variants.choose_baseline([("a", False, False, "pi"), ("b", False, True, "rem")], None) == "b"
    with pytest.raises(BadInput, match="ref, pi, dt"):
        variants.choose_baseline(rows, "x")


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize(("said", "place"), [("seed = 4", "seed"), ("set = { seed = 4 }", "set.seed")])
def test_a_variant_has_no_seed_of_its_own(position, said, place):
    rows = ["", ""]
    rows[position] = said
    text = BASE + "".join(f'[[variant]]\nname = "v{at}"\n{row}\n' for at, row in enumerate(rows))
    with pytest.raises(BadInput, match=rf"variant\.{position}\.{place}: 4: all variants run under one seed; expected"):
        variants.from_file(scenario.read(text))
