"""What advice says is held against real TCP stacks in virtual time."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from aqmlab.advice import verified, words
from aqmlab.advice.applications import FIGURES
from aqmlab.cli import invoke
from aqmlab.live import kernel
from aqmlab.statistics import Interval
from test_live_virtual import KERNEL, needs_kernel

pytestmark = pytest.mark.usefixtures("compiled")


VERIFIED = ["advise", "--down", "2mbit", "--up", "1mbit", "--on", "openwrt", "--rounds", "3", "--verify", "--json"]


def test_what_is_missing_for_real_stacks_is_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(kernel.VARIABLE, raising=False)
    assert invoke([*VERIFIED[:-1], "-o", str(tmp_path / "page")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Not verified between real stacks: " in shown and "aqmlab kernel build" in shown
    assert "Not verified between real stacks: " in (tmp_path / "page/report.html").read_text()
    found = json.loads((tmp_path / "page/advice.json").read_text())
    assert "kernel" in found["verified"]["missing"] and found["verified"]["figures"] == {}


@needs_kernel
def test_real_stacks_say_what_it_is_worth(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel.VARIABLE, KERNEL)
    assert invoke(VERIFIED) == 0
    found = json.loads(capsys.readouterr().out)
    seen = found["verified"]
    assert seen["missing"] is None and seen["rounds"] == 3
    # A game behind a queue of its own waits less than behind a full one, whoever looks: by more than all tolerances.
    game = seen["figures"]["game_p99_s"]
    assert game["same_way"] and max(game["simulated"]["value"], game["live"]["value"]) < -0.05
    # No more than the link's rate, and most of what the simulator finds there.
    for key, bps in (("down_bps", 2e6), ("up_bps", 1e6)):
        gap = seen["figures"][key]["gap"]["value"]
        assert abs(gap) < 0.25 * bps, key


def finding(gap: float, half_width: float, n: int = 3, tolerance: float = 0.05) -> verified.Finding:
    one = next(one for one in FIGURES if one.key == "pages_in_2s")
    return verified.Finding(one, None, None, Interval(gap, half_width, n, "runs"), tolerance)


def test_witnesses_agree_where_the_interval_is_within_the_tolerance() -> None:
    assert finding(0.01, 0.03).verdict == "agrees" and finding(0.1, 0.03).verdict == "differs"
    assert finding(0.04, 0.03).verdict == "undecided"
    # Two links on which all pages came in time are not enough to say so.
    assert finding(0.0, 0.0, n=2).verdict == "undecided"
    assert finding(0.0, 0.0, n=3).verdict == finding(0.1, 0.0, n=3).verdict == "undecided"


@pytest.mark.parametrize(
    ("simulated", "live", "gap", "half_width", "said"),
    [
        ((0.2, 0.1), (0.3, 0.1), 0.1, 0.01, True),
        ((0.2, 0.1), (-0.2, 0.1), -0.4, 0.1, False),
        # Signs that differ are chance where an interval has nought in it, or where there is none,
        ((0.02, 0.1), (-0.2, 0.1), -0.22, 0.1, None),
        ((0.2, None), (-0.2, 0.1), -0.4, 0.1, None),
        # and no matter where both agree on what it is worth.
        ((0.01, 0.005), (-0.01, 0.005), -0.02, 0.01, None),
    ],
)
def test_witnesses_are_of_two_minds_where_both_are_sure(
    simulated: tuple[float, float | None],
    live: tuple[float, float | None],
    gap: float,
    half_width: float,
    said: bool | None,
) -> None:
    each = [Interval(value, width, 3, "runs") for value, width in (simulated, live)]
    one = replace(finding(gap, half_width), simulated=each[0], live=each[1])
    assert one.same_way is said and one.as_dict()["same_way"] is said
    sentences = " ".join(words.verified(verified.Verified("", "6.12", 3, {}, [one])))
    assert ("One finds it better and the other worse" in sentences) == (said is False)


def test_sentences_say_where_witnesses_agree() -> None:
    found = verified.Verified("", "6.12", 3, {}, [finding(0.0, 0.01), finding(0.3, 0.01), finding(0.04, 0.03)])
    said = " ".join(words.verified(found))
    assert "agree on what it is worth for pages within 2 s." in said and "differ for pages within 2 s." in said
    assert "do not decide it for pages within 2 s." in said
    rows = words.witnesses(found)
    assert [row["verdict"] for row in rows] == ["agrees", "differs", "undecided"] and rows[0]["tolerance"] == "5"


def test_goodput_is_what_was_acknowledged_over_the_time_it_was_seen() -> None:
    sent = pl.DataFrame(
        {
            "traffic": [3, 3, 3, 3],
            "source": [0, 0, 1, 1],
            "side": [0, 0, 0, 0],
            "time_s": [4.0, 8.0, 4.0, 6.0],
            "acknowledged_bytes": [1000, 5000, 0, 1000],
        }
    )
    assert verified._goodput(sent) == pytest.approx(8 * (4000 / 4 + 1000 / 2))
