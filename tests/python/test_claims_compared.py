"""Which points of the studies the columns of a comparison stand for, on the stand-in for the engine."""

import pytest

import aqmlab
from aqmlab import report
from aqmlab.claims import NOT_RUN
from aqmlab.study import compared
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("settled_runs")
DEMO = ROOT / "examples/demo.toml"
SHORT = {"duration": "30s", "warmup": "10s"}

FORMER = [
    "le2003-7",
    "le2003-8",
    "le2003-9a",
    "le2003-9b",
    "le2003-9c",
    "le2003-10",
    "le2007-2a",
    "le2007-2b",
    "le2007-2c",
    "le2007-2d",
    "le2007-3a",
    "le2007-3b",
    "le2007-3c",
    "le2007-3d",
    "le2007-4a",
    "le2007-4b",
    "le2007-5a",
    "le2007-5b",
    "le2007-5c",
    "le2007-6a",
    "le2007-6b",
    "le2007-6c",
    "le2007-7a",
    "le2007-7b",
    "le2007-7c",
    "le2007-7d",
    "le2007-11a",
    "le2007-11b",
]
"""What `make demo` can answer."""


def asked(scenario, *specs, **changes):
    return {claim.id: claim for claim in compared.claims(aqmlab.compare(scenario, *specs, set={**SHORT, **changes}))}


def test_claims_are_asked_of_the_simulator_alone():
    found = aqmlab.compare(DEMO, set=SHORT)
    assert compared.claims(found)
    for column in found.columns:
        column.witness = "live"
    assert compared.claims(found) == []


def test_the_demo_is_asked_at_its_load():
    at_98 = asked(DEMO)
    assert set(FORMER) <= set(at_98)
    # Numbers are named after the comparison's columns, not after the points that they stand for.
    assert [f.label for f in at_98["le2007-2a"].findings] == [
        "PI 24 − drop-tail 240",
        "REM 24 − drop-tail 240",
        "ARED 12/36, bytes − drop-tail 240",
    ]
    at_90 = asked(DEMO, **{"traffic.0.load": "90mbit"})
    assert {"le2007-1a", "le2007-1b", "le2007-1c", "le2007-11c"} <= set(at_90)
    assert not set(FORMER) & set(at_90)


@pytest.fixture
def demand(tmp_path):
    """The studies' experiment with a discipline of the caller's."""
    text = DEMO.read_text().split("[[variant]]")[0]
    path = tmp_path / "web.toml"
    path.write_text(text)
    return path


def test_another_parameter_is_another_discipline(demand):
    known = "pi qref 24p mode byte limit 10000p"
    assert "le2003-9a" in asked(demand, "pfifo limit 240p", known)
    assert "le2003-9a" not in asked(demand, "pfifo limit 240p", "pi qref 30p mode byte limit 10000p")
    assert "le2003-9a" not in asked(demand, "pfifo limit 250p", known)
    # Nor does one that marks stand for one that drops.
    assert "le2003-9a" not in asked(demand, "pfifo limit 240p", f"{known} ecn")


def test_a_check_with_no_point_left_takes_its_claim_with_it(demand):
    some = asked(demand, "pfifo limit 240p", "pi qref 24p mode byte limit 10000p")
    assert [f.label for f in some["le2007-2a"].findings] == ["pi qref 24p mode byte limit 10000p − pfifo limit 240p"]
    assert "le2007-2b" not in some, "half of it is about REM"
    assert "le2007-6a" not in some


def test_other_round_trip_times_are_asked_as_the_nearest_point_and_said():
    found = asked(DEMO, **{"path.rtt": "50ms"})
    assert set(FORMER) <= set(found)
    assert not any(name.startswith(("le2007-9", "le2007-10")) for name in found), "these are about another RTT"
    for claim in found.values():
        assert claim.conditions == ("path.rtt 50ms",)
        assert claim.remark.endswith("asked under other conditions: path.rtt 50ms") and not claim.full_scale
        assert claim.as_dict()["conditions"] == ["path.rtt 50ms"]
    assert all(not claim.conditions for claim in asked(DEMO).values())


def test_the_report_says_conditions_and_how_many_numbers_were_asked(demand):
    made = aqmlab.compare(
        demand, "pfifo limit 240p", "pi qref 24p mode byte limit 10000p", set={**SHORT, "path.rtt": "50ms"}
    )
    page = report.write(made, compared.claims(made)).read_text()
    assert "<b>1 of 3 numbers asked; asked under other conditions: path.rtt 50ms.</b>" in page
    assert "<b>Asked under other conditions: path.rtt 50ms.</b>" in page


def test_of_two_columns_the_one_with_fewest_differences_stands_for_a_point(tmp_path):
    # The first PI has other round-trip times, the second is the study's to the letter.
    pi = DEMO.read_text().split("[[variant]]")[3]
    other = pi.replace('"PI 24"', '"PI 24, 50 ms"').replace(
        "[variant.link", 'set = { "path.rtt" = "50ms" }\n[variant.link'
    )
    path = tmp_path / "two.toml"
    path.write_text(DEMO.read_text().replace(pi, f"{other}[[variant]]{pi}"))
    found = asked(path)["le2007-2a"]
    assert found.findings[0].label == "PI 24 − drop-tail 240" and not found.conditions


def test_another_link_or_traffic_is_another_experiment(demand, tmp_path):
    known = ("pfifo limit 240p", "pi qref 24p mode byte limit 10000p")
    assert "le2003-9a" in asked(demand, *known)
    text = demand.read_text()
    for old, new in (
        ('"100mbit"\n', '"50mbit"\n'),
        ('model = "unc2001"', 'model = "feldmann1999"'),
        ("[[traffic]]", '[[traffic]]\nkind = "bulk"\nflows = 1\n[[traffic]]'),
    ):
        assert old in text
        changed = text.replace(old, new, 1)
        if "50mbit" in new:
            changed = changed.replace('load = "98mbit"', 'load = "49mbit"')
        (tmp_path / "other.toml").write_text(changed)
        assert asked(tmp_path / "other.toml", *known) == {}, new


def test_the_order_of_keys_is_no_difference():
    link = {"rate": "100mbit"}
    one = {"link": link, "traffic": [], "path": {"rtt": {"uniform": ["10ms", "150ms"], "step": "1ms"}}}
    other = {"link": link, "traffic": [], "path": {"rtt": {"step": "1ms", "uniform": ["10ms", "150ms"]}}}
    assert compared._differences(one, other, False) == ()


def test_what_only_one_of_two_says_is_a_difference():
    bare = {"link": {"rate": "100mbit"}, "traffic": []}
    framed = {"link": {"rate": "100mbit", "overhead": "38b"}, "traffic": []}
    assert compared._differences(framed, bare, False) == ("link.overhead 38b",)
    assert compared._differences(bare, framed, False) == ("no link.overhead",)
    ring = {"link": {"rate": "100mbit", "device_queue": "64p"}, "traffic": []}
    assert compared._differences(ring, bare, False) == ("link.device_queue 64p",)
    assert compared._differences(ring, bare, True) == ()


def test_ecn_counts_where_a_block_of_traffic_has_its_own():
    def with_ecn(common, own=None):
        block = {"kind": "web", "model": "unc2001"} | ({} if own is None else {"ecn": own})
        return {"link": {"qdisc": {"kind": "pi", "ecn": True}}, "tcp": {"ecn": common}, "traffic": [block]}

    def essence(scenario):
        return compared._essence(scenario, False)

    assert essence(with_ecn("off", "on")) == essence(with_ecn("on")) != essence(with_ecn("off"))
    assert essence(with_ecn("on", "off")) == essence(with_ecn("off"))


def test_a_comparison_with_some_of_the_disciplines_says_how_many(demand):
    some = asked(demand, "pfifo limit 240p", "pi qref 24p mode byte limit 10000p")["le2007-2a"]
    assert some.remark == "1 of 3 numbers asked" and some.verdict != NOT_RUN
    assert all(not claim.remark for name, claim in asked(DEMO).items() if name == "le2007-2a")


def test_a_load_that_no_study_has_is_asked_nothing(demand):
    assert asked(DEMO, **{"traffic.0.load": "70mbit"}) == {}
    users = demand.read_text().replace('load = "98mbit"', "users = 1000")
    demand.write_text(users)
    assert asked(demand, "pfifo limit 240p", "pi qref 24p mode byte limit 10000p") == {}


def test_what_only_says_how_long_or_which_seed_makes_no_difference():
    one = {"duration": "1s", "seed": 1, "tcp": {"stack": "freebsd4", "ecn": "on"}, "path": {"rtt": "80ms"}}
    same = {"duration": "9s", "seed": 2, "name": "other", "tcp": {"stack": "freebsd4"}, "path": {"rtt": "80ms"}}
    other = same | {"tcp": {"stack": "linux"}, "path": {"rtt": "81ms"}}
    assert compared._differences(one, same, False) == ()
    assert compared._differences(other, one, False) == ("tcp.stack linux", "path.rtt 81ms")
