"""A limit that is full before the queue is what its law aims at: said before a run, and by `explain` of a rate."""

import json
import re
import warnings
from collections.abc import Mapping
from typing import Any

import pytest

from aqmlab import cli, doubts, engine, scenario
from conftest import NATIVE

FAST: Mapping[str, Any] = {
    "duration": "2s",
    "link": {"rate": "10gbit", "overhead": "38b"},
    "traffic": [{"kind": "bulk"}],
}


@pytest.fixture(autouse=True)
def real_engine(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "native", NATIVE)


def said(changes: Mapping[str, Any], tree: Mapping[str, Any] = FAST) -> list[str]:
    """What is said of rooms before a run."""
    source = scenario.read(dict(tree)).with_changes(changes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        doubts.of(source.resolve(), source.tree)
    return [str(one.message) for one in caught if "as drop-tail does" in str(one.message)]


def of(kind: str, **params: Any) -> list[str]:
    return said({"link.qdisc": {"kind": kind, **params}})


def test_a_limit_below_the_target_is_said_once_for_both_directions() -> None:
    (line,) = of("codel")
    # 1000 x 1538 bytes take 1.23 ms; 105 ms have 85,338 of them.
    assert re.sub("^.*: link", "link", line) == (
        "link.qdisc.limit = 1000p of codel holds 1.23 ms of full packets at 10 Gb/s, less than target = 5ms: it is "
        "full before its law has what it aims at, and then loses packets as drop-tail does; expected 85400p or more "
        "(target and a round trip of 100 ms)"
    )


@pytest.mark.parametrize(
    ("kind", "params", "part"),
    [
        ("pie", {}, "less than target = 15ms"),
        ("pi2", {}, "less than target = 20ms"),
        ("fq_pie", {}, "10240p of fq_pie holds 12.6 ms of full packets at 10 Gb/s, less than target = 15ms"),
        ("fq_codel", {"limit": "4000p"}, "4000p of fq_codel holds 4.92 ms"),
        ("fq_cobalt", {}, "less than target = 5ms"),
        ("codel", {"interval": "30ms"}, "expected 28500p or more (target and a round trip of 30 ms)"),
        ("dualpi2", {"dialect": "linux"}, "10000p of dualpi2 holds 12.3 ms"),
        # 1500 bytes and what framing adds to them take 1.2304 us.
        ("docsis_pie", {"limit": "1000000b"}, "1000000b of docsis_pie holds 820 µs of full packets at 10 Gb/s"),
        ("cake", {"limit": "100000b", "bandwidth": "1gbit"}, "holds 820 µs of full packets at 1 Gb/s"),
        ("step", {"limit": "800p"}, "holds 984 µs of full packets at 10 Gb/s, less than threshold = 1ms"),
        ("pi", {"qref": "5ms"}, "less than qref = 5ms"),
        ("pi", {"limit": "50p"}, "is no more than qref = 50p: "),
        ("pi", {"limit": "50p"}, "expected 100p or so (twice qref)"),
        ("rem", {"limit": "6p"}, "is no more than target = 20p of 500b: "),
        ("red", {"limit": "15p"}, "is no more than max = 15p: "),
        ("rio", {"limit": "20p"}, "is no more than max_out = 30p: "),
        ("gsp", {"limit": "100p"}, "is no more than threshold = 100p: "),
    ],
)
def test_whatever_aims_at_a_time_or_a_length_is_told(kind: str, params: dict[str, Any], part: str) -> None:
    (line,) = of(kind, **params)
    assert part in line


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("codel", {"limit": "85400p"}),
        ("codel", {"ce_threshold": "50us", "ecn": True}),
        ("fq_codel", {}),
        ("dualpi2", {}),
        ("cake", {}),
        ("pi", {"limit": "51p"}),
        ("rem", {"limit": "7p"}),
        ("red", {"limit": "16p"}),
        ("blue", {"threshold": "2000p"}),
        ("pfifo", {"limit": "1p"}),
        ("sfq", {}),
        # Of a queue without room is said that everything is lost.
        ("codel", {"limit": "0p"}),
    ],
)
def test_enough_room_and_no_aim_are_not_doubted(kind: str, params: dict[str, Any]) -> None:
    assert of(kind, **params) == []


def test_each_link_and_direction_is_told_apart() -> None:
    queue = {"kind": "codel"}
    several = {
        "duration": "2s",
        "links": {
            "edge": {"rate": "100mbit", "qdisc": queue, "reverse_qdisc": {"kind": "codel", "limit": "9p"}},
            "core": {"rate": "10gbit", "qdisc": queue, "reverse_qdisc": {"kind": "pie"}},
        },
        "traffic": [{"kind": "bulk", "route": ["edge", "core"]}],
    }
    found = [
        re.sub(r"^.*: (links\.\S+) = (\S+) of .*? less than (\S+) = .*$", r"\1 \2 \3", s) for s in said({}, several)
    ]
    assert found == [
        "links.edge.reverse_qdisc.limit 9p target",
        "links.core.qdisc.limit 1000p target",
        "links.core.reverse_qdisc.limit 1000p target",
    ]


def test_nothing_is_reckoned_where_the_rate_changes() -> None:
    assert said({"link.qdisc": {"kind": "codel"}, "link.schedule": [{"at": "1s", "rate": "1mbit"}]}) == []


def test_full_packets_are_those_of_the_hosts() -> None:
    (line,) = said({"link.qdisc": {"kind": "pie"}, "tcp.mss": "8948b"})
    assert "holds 7.23 ms" in line  # 9000 bytes and 38 of framing each


def test_explain_says_what_the_limit_holds_beside_the_target(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*words: str) -> str:
        assert cli.invoke(["explain", *words]) == 0
        return " ".join(capsys.readouterr().out.split())

    assert shown("codel", "--rate", "10gbit").endswith(
        "limit = 1000p holds 1.2 ms of full packets at 10 Gb/s, less than target = 5ms; expected 87500p or more "
        "(target and a round trip of 100 ms)."
    )
    assert shown("codel", "--rate", "10mbit").endswith("1.2 s of full packets at 10 Mb/s, no less than target = 5ms.")
    assert shown("pfifo", "--rate", "10mbit").endswith("limit = 1000p holds 1.2 s of full packets at 10 Mb/s.")
    assert json.loads(shown("codel", "--rate", "10gbit", "--json"))["room"] == {
        "holds_s": pytest.approx(1.2e-3),
        "aim": "target",
        "aim_s": 0.005,
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["codel", "--rate", "1kbit"],
            "target = 5ms is less than 1.5 full packets take at 1 kb/s, where one takes 12 s: the law signals though "
            "hardly anything waits; expected 18 s or more.",
        ),
        (["fq_codel", "--rate", "1mbit"], "where one takes 12 ms"),
        # 18 ms at 1 Mb/s, and 1.8 ms at 10 Mb/s.
        (["codel", "--rate", "1mbit", "--set", "target=18ms"], ""),
        (["codel", "--rate", "10mbit"], ""),
        # Of a law whose target is a reference of control.
        (["pie", "--rate", "1kbit"], ""),
    ],
)
def test_explain_says_of_a_slow_link_that_a_packet_takes_longer_than_the_target(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["explain", *words]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown and ("full packets take at" in shown) == bool(said)
