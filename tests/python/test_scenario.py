import copy
import tomllib

import pytest

from aqmlab import scenario, units
from aqmlab.errors import BadInput
from conftest import BASE

TREE = tomllib.loads(BASE)


def test_settings_are_toml_or_else_text():
    assert scenario.parse_setting("link.qdisc.qref=24p") == ("link.qdisc.qref", "24p")
    assert scenario.parse_setting('a="24p"') == ("a", "24p")
    assert scenario.parse_setting("seed=3") == ("seed", 3)
    assert scenario.parse_setting("link.qdisc.ecn=true") == ("link.qdisc.ecn", True)
    with pytest.raises(BadInput, match="key=value"):
        scenario.parse_setting("seed")


def test_keys_reach_into_tables_and_lists():
    tree = scenario.with_key(TREE, "traffic.0.users", 10)
    tree = scenario.with_key(tree, "path.rtt", "80ms")
    assert tree["traffic"][0]["users"] == 10
    assert tree["path"] == {"rtt": "80ms"}
    with pytest.raises(BadInput, match="expected 0, the only one there is"):
        scenario.with_key(tree, "traffic.1.users", 10)
    for digit in ("²", "٠"):
        with pytest.raises(BadInput, match=f"traffic.{digit}.users: '{digit}': expected 0, the only one there is"):
            scenario.with_key(tree, f"traffic.{digit}.users", 10)
    with pytest.raises(BadInput, match="is a value"):
        scenario.with_key(tree, "name.x", 1)


def test_a_table_with_a_kind_replaces_the_old_one_whole():
    base = {"link": {"rate": "1mbit", "qdisc": {"kind": "pi", "qref": "24p"}}}
    change = {"link": {"qdisc": {"kind": "pfifo"}}}
    assert scenario.merged(base, change) == {"link": {"rate": "1mbit", "qdisc": {"kind": "pfifo"}}}
    assert scenario.merged(base, {"link": {"rate": "2mbit"}})["link"]["qdisc"]["qref"] == "24p"
    assert base["link"]["qdisc"]["kind"] == "pi"


def test_demands_are_the_same_whatever_the_link_does_and_others_otherwise():
    def changed(key, item):
        return scenario.demand_digest(scenario.with_key(TREE, key, item))

    same = scenario.demand_digest(TREE)
    assert changed("link.qdisc", {"kind": "pi"}) == same
    assert changed("tcp.ecn", "on") == same
    assert changed("traffic.0.ecn", "on") == same
    assert changed("name", "other") == same
    assert changed("tcp.stack", "linux") == same
    assert changed("path.rtt", "80ms") != same
    assert changed("traffic.0.model", "packmime") != same
    assert changed("duration", "40s") != same


def test_a_table_is_left_out_of_a_text_only_if_nothing_else_changes():
    text = "a = 1\n[[variant]]\nb = 2\n  [ variant.c ]\nd = 3\n[e]\nf = 4\n[variants]\ng = 5\n"
    left = scenario.text_without(text, "variant")
    assert left == "a = 1\n\n\n\n\n[e]\nf = 4\n[variants]\ng = 5\n"
    assert scenario.Source({"a": 1, "e": {"f": 4}, "variants": {"g": 5}}, "x").is_said_by(left)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        # Within a text, a line may look like the head of a table.
        ('a = """\n[[variant]]\n"""\n[[variant]]\nname = "x"\n', {"a": "[[variant]]\n"}),
        ('variant = [{ name = "x" }]\na = 1\n', {"a": 1}),
    ],
)
def test_a_text_that_would_say_something_else_without_a_table_is_known(text, tree):
    assert not scenario.Source(tree, "x").is_said_by(scenario.text_without(text, "variant"))


def test_a_text_is_asked_together_with_what_was_set_since():
    source = scenario.read("a = 1\n[e]\nf = 4\n").with_changes({"e.f": 5, "g": "24p"})
    assert source.is_said_by("a = 1\n\n[e]\nf = 4\n")
    assert not source.is_said_by("[e]\nf = 4\n")


def test_what_a_change_leaves_alone_is_shared_and_never_changed():
    tree = {"link": {"rate": "1mbit", "qdisc": {"kind": "pi"}}, "path": {}, "traffic": [{"users": 1}, {"users": 2}]}
    before = copy.deepcopy(tree)
    changed = scenario.with_key(scenario.merged(tree, {"link": {"rate": "2mbit"}}), "traffic.1.users", 3)
    assert tree == before and changed["traffic"] == [{"users": 1}, {"users": 3}]
    assert changed["path"] is tree["path"] and changed["traffic"][0] is tree["traffic"][0]
    assert changed["link"]["qdisc"] is tree["link"]["qdisc"]


def test_rates_and_times_are_read_with_their_units_only():
    assert units.rate_bps("100mbit", "x") == 100e6
    assert units.rate_bps("1.5Gbit", "x") == 1.5e9
    assert units.seconds("120min", "x") == 7200
    for wrong in ("100mbps", "100", 100, "mbit", ""):
        with pytest.raises(BadInput, match=r"link\.rate"):
            units.rate_bps(wrong, "link.rate")


def test_a_rate_is_written_so_that_it_reads_back_the_same():
    for bps in (1e9, 1e8, 98.5e6, 64e3, 999.0, 123456789.0):
        assert units.rate_bps(units.rate_text(bps), "x") == bps


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("given", [{}, {"duration": "33s"}, {"warmup": "7s"}, {"duration": "1min", "cooldown": "5s"}])
def test_lengths_that_a_scenario_leaves_out_are_those_of_the_engine(given):
    tree = {**{key: item for key, item in TREE.items() if key not in scenario.LENGTHS}, **given}
    resolved = scenario.Source(tree, "x").resolve().scenario
    assert scenario.measured_window(tree) == pytest.approx(scenario.measured_window(resolved), abs=1e-9)


def test_folder_names_are_plain():
    assert scenario.slug("ARED 12/36, byte mode") == "ared-12-36-byte-mode"
    assert scenario.slug("../..") == "run"
