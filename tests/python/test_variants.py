import pytest

from aqmlab import scenario, variants
from aqmlab.errors import BadInput
from conftest import BASE


def from_words(*specs):
    return variants.from_file(variants.written_out(scenario.read(BASE), specs))


def test_disciplines_in_the_words_of_tc():
    assert variants.parse_words("pi qref 24p a 1e-5 ecn limit 1000p") == {
        "kind": "pi",
        "qref": "24p",
        "a": 1e-5,
        "ecn": True,
        "limit": "1000p",
    }
    assert variants.parse_words("ared gentle false min 12p") == {"kind": "ared", "gentle": False, "min": "12p"}
    assert variants.parse_words("droptail limit 240p") == {"kind": "pfifo", "limit": "240p"}


@pytest.mark.parametrize(
    ("spec", "named"),
    [("pie", "pie"), ("", "expected"), ("pi qrf 24p", "'qrf'"), ("pi qref", "qref: expected a value")],
)
def test_words_that_mean_nothing_are_named(spec, named):
    with pytest.raises(BadInput, match=named):
        variants.parse_words(spec)


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
        ('[[variant]]\nname = "a"\n[[variant]]\nname = "A"\n', "called the same"),
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
