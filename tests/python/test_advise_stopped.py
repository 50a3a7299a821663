"""What of an advice is kept where Ctrl-C comes, and where what follows the runs fails."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aqmlab.advice import advising, verified
from aqmlab.cli import invoke

pytestmark = pytest.mark.usefixtures("compiled")

LINK = ["--down", "2mbit", "--up", "1mbit", "--on", "openwrt", "--for", "games", "--jobs", "2"]

MEASURED = {"calls_mos": 4.0, "pages_in_2s": 0.5, "down_bps": 1e6, "up_bps": 5e5}


@pytest.fixture
def stopped_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs of no time, all of which are made together at a look; Ctrl-C comes while those of one look are made."""

    def at(place: int | None) -> None:
        calls = []

        def made(work: Sequence[Any], *_: Any) -> list[dict[str, float]]:
            calls.append(work)
            if len(calls) - 1 == place:
                raise KeyboardInterrupt
            # Today's queue is far behind; one of the others is ahead in one round, the next in another.
            waits = [
                0.2 if one.settings is None else 0.02 + 0.1 * ((seed + len(one.name)) % 2) for one, seed, _ in work
            ]
            return [{**MEASURED, "game_p99_s": wait} for wait in waits]

        monkeypatch.setattr(advising, "made", made)

    return at


def test_what_is_finished_is_advised_after_ctrl_c(
    stopped_in: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stopped_in(1)
    assert invoke(["advise", *LINK, "--rounds", "12", "-o", str(tmp_path / "mine")]) == 130
    shown = capsys.readouterr()
    assert shown.err.splitlines()[-1] == ("aqmlab: stopped after 8 of 12 rounds: the advice is of what was finished")
    assert "Recommended: " in shown.out and "It was stopped after 8 of 12 rounds." in shown.out
    assert "8 rounds leave this undecided." in shown.out and "--rounds 12" in shown.out
    found = json.loads((tmp_path / "mine/advice.json").read_text())
    assert found["stopped"] == "after 8 of 12 rounds" and found["rounds"] == 8
    # And for a program.
    stopped_in(1)
    assert invoke(["advise", *LINK, "--rounds", "12", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["rounds"] == 8


def test_ctrl_c_before_the_first_look_leaves_nothing_to_say(
    stopped_in: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_in(0)
    assert invoke(["advise", *LINK, "--rounds", "12"]) == 130
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err == "aqmlab: stopped\n"


def test_ctrl_c_while_a_wrong_rate_is_tried_leaves_the_race(
    stopped_in: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_in(1)
    assert invoke(["advise", *LINK, "--rounds", "6", "--json"]) == 130
    found = json.loads(capsys.readouterr().out)
    assert found["stopped"] == "before a shaper that is too fast was tried" and found["too_fast"] is None
    assert found["rounds"] == 6


@pytest.mark.parametrize(("failure", "code"), [(KeyboardInterrupt(), 130), (OSError("no room"), 3)])
def test_real_stacks_that_fail_leave_the_advice(
    failure: BaseException,
    code: int,
    stopped_in: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    stopped_in(None)

    def fails(*_: Any, **__: Any) -> None:
        raise failure

    monkeypatch.setattr(verified, "verify", fails)
    words = ["advise", *LINK, "--rounds", "6", "--verify"]
    assert invoke([*words, "--json"]) == code
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["verified"] is None and found["stopped"] is None
    assert ("the advice is that of the race alone" in shown.err) == (code == 130)
    assert invoke([*words, "-o", str(tmp_path / "mine")]) == code
    assert "Recommended: " in capsys.readouterr().out and (tmp_path / "mine/report.html").exists()


def test_a_page_that_cannot_be_written_leaves_the_advice(
    stopped_in: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from aqmlab.report import advice as report

    def fails(*_: Any, **__: Any) -> None:
        raise OSError("no room")

    stopped_in(None)
    monkeypatch.setattr(report, "write", fails)
    for option, sign in (("--report", "Recommended: "), ("--json", '"recommended"')):
        assert invoke(["advise", *LINK, "--rounds", "6", "-o", str(tmp_path / "mine"), option]) == 3
        assert sign in capsys.readouterr().out


def test_a_folder_that_cannot_be_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(advising, "advise", lambda *_, **__: pytest.fail("runs are made"))
    file = tmp_path / "one.toml"
    file.write_text("")
    for place in (file / "mine", Path("/proc/mine"), file, tmp_path):
        assert invoke(["advise", *LINK, "-o", str(place)]) == 2
        shown = capsys.readouterr()
        assert shown.out == "" and shown.err.count("\n") == 1 and f"{place}: " in shown.err
    monkeypatch.chdir(tmp_path)
    Path("results").symlink_to("/proc")
    assert invoke(["advise", *LINK, "--report"]) == 2
    assert "expected a writable place" in capsys.readouterr().err
