"""A run in whose measured window no packet left says so, and what to change."""

from pathlib import Path

import pytest

from aqmlab import api, engine, report
from aqmlab.command import terminal
from conftest import NATIVE

LATE = """
name = "late"
duration = "4s"
warmup = "1s"
cooldown = "1s"
[link]
rate = "5mbit"
[[traffic]]
kind = "cbr"
rate = "1mbit"
start = "{start}"
"""
SAID = "no packet left the link in the measured window, from 1 s to 3 s, so that no figure says anything: "


@pytest.fixture(autouse=True)
def real_engine(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "native", NATIVE)


def test_it_is_said_once_on_the_terminal_and_at_the_top_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], undrawn: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "late.toml"
    path.write_text(LATE.format(start="3500ms"), encoding="utf-8")
    found = api.compare(path, "pfifo", "codel", reps=2, out=tmp_path / "out", jobs=1)
    terminal.comparison(terminal.console(), found)
    assert capsys.readouterr().out.count(SAID) == 1
    header, _, _ = report.write(found).read_text(encoding="utf-8").replace("\xa0", " ").partition("</header>")
    assert header.count(SAID) == 1
    terminal.result(terminal.console(), found["pfifo"])
    assert capsys.readouterr().out.count(SAID) == 1


def test_a_run_with_packets_says_nothing(tmp_path: Path) -> None:
    found = api.run(LATE.format(start="2s"), out=tmp_path / "run")
    assert found.manifest["findings"] == []
