"""The command on an advice's page that runs its two scenarios: it ends well, whatever is recommended."""

import html
import shlex
from pathlib import Path

import pytest

from aqmlab.advice.candidates import TODAY
from aqmlab.cli import invoke
from aqmlab.report import advice as report
from test_advise_words import COMMAND, OF_SOME, SOME, advised, with_pages

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.parametrize(
    ("best", "again"),
    [
        (TODAY, "aqmlab run today.toml --reps 5 --report"),
        ("cake", "aqmlab compare today.toml recommended.toml --reps 5 --report"),
    ],
)
def test_the_scenarios_of_an_advice_can_be_run_as_its_page_says(
    best: str, again: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    low, high = OF_SOME[TODAY], OF_SOME["cake"]
    scores = {TODAY: high, "cake": low} if best == TODAY else {TODAY: low, "cake": high}
    found = with_pages(advised(scores, {TODAY: 2.0, "cake": 4.0}), SOME)
    assert found.first.name == best
    page = html.unescape(report.write(found, COMMAND, tmp_path / "mine").read_text())
    assert page.count(again) == 1 and page.count(" --reps 5 --report") == 1
    monkeypatch.chdir(tmp_path / "mine")
    _, *words = shlex.split(again.replace("--reps 5 --report", "--reps 1 -o again"))
    assert invoke(words) == 0
