"""A law that had no say, since nearly all was lost at the limit: said of a run and of a comparison."""

from pathlib import Path
from typing import Any

import pytest

from aqmlab import api, engine
from aqmlab.command import terminal
from aqmlab.results import at_limit
from conftest import NATIVE

FULL = """
name = "full"
duration = "4s"
warmup = "1s"
[link]
rate = "100mbit"
[[traffic]]
kind = "bulk"
flows = 20
"""


@pytest.fixture(autouse=True)
def real_engine(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "native", NATIVE)


@pytest.mark.filterwarnings("ignore:.*as drop-tail does")
def test_each_of_a_comparison_is_named_and_drop_tail_and_those_with_room_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "full.toml"
    path.write_text(FULL, encoding="utf-8")
    asked = ["pfifo limit 30", "codel limit 30", "codel limit 30 interval 50ms", "fq_codel limit 30", "pie"]
    terminal.comparison(terminal.console(), api.compare(path, *asked, out=tmp_path / "out", jobs=1))
    lines = [line for line in capsys.readouterr().out.splitlines() if "drop-tail queue" in line]
    assert len(lines) == 2
    assert lines[0].startswith("codel limit 30, codel limit 30 interval 50ms: forward, ")
    assert "lost packets were lost at codel's limit of 30p, and none were signalled by its law: it was a" in lines[0]
    assert lines[1].startswith("fq_codel limit 30: forward, ")


def port(lost: int, tail: int, marked: int = 0) -> dict[str, Any]:
    return {"dropped_packets": lost, "dropped_by_cause": {"tail": tail, "early": lost - tail}, "marked_packets": marked}


@pytest.mark.parametrize(
    ("found", "part"),
    [
        (port(60, 60), "forward, 60 of 60 lost packets were lost at pie's limit of 9p, and none were"),
        (port(2000, 1999), "1,999 of 2,000 lost packets were lost at pie's limit of 9p, and 1 was signalled"),
        (port(2000, 1950, 40), "1,950 of 2,000 lost packets were lost at pie's limit of 9p, and 90 were signalled"),
        (port(49, 49), None),
        (port(2000, 1800), None),
        (port(2000, 2000, 200), None),
        ({}, None),
    ],
)
def test_nearly_all_of_enough_losses(found: dict[str, Any], part: str | None) -> None:
    tree = {"link": {"qdisc": {"kind": "pie", "limit": "9p"}, "reverse_qdisc": {"kind": "sfq", "limit": "9p"}}}
    lines = at_limit.seen(tree, {"forward": found, "reverse": port(60, 60)})
    assert [part in line for line in lines if part] == ([True] if part else [])
    assert len(lines) == (part is not None)


def test_of_several_links_the_link_is_named() -> None:
    queue = {"kind": "codel", "limit": "9p"}
    tree = {"links": {"edge": {"qdisc": queue}, "core": {"reverse_qdisc": queue}}}
    idle: dict[str, Any] = {"forward": port(0, 0), "reverse": port(0, 0)}
    (line,) = at_limit.seen(tree, {"links": {"edge": idle, "core": {**idle, "reverse": port(70, 70)}}})
    assert line.startswith("core reverse, 70 of 70 lost packets were lost at codel's limit of 9p")
