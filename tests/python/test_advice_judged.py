"""The judge of advice: what a choice cost, and what today's queue would, are of the same seeds."""

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from aqmlab.advice import question
from aqmlab.advice.candidates import TODAY
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("compiled")

WORDS = argparse.Namespace(quick=9, rounds=15, reality="as-said")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benches"))
    import advice

    yield advice
    sys.modules.pop("advice", None)


def judged(judge: Any, monkeypatch: pytest.MonkeyPatch, chosen: str, early: dict[str, float], late: dict[str, float]):
    """A link whose candidates have these means of the first seeds and of the others."""
    race = SimpleNamespace(first=chosen, shortfall=lambda: 0.05, running=[chosen])
    monkeypatch.setattr(judge.advising, "advise", lambda *args, **options: SimpleNamespace(race=race))

    def searched(asked: Any, every: Any, seeds: range, made: Any) -> Any:
        means = early if seeds.start == 0 else late
        noise = 0.001 * np.arange(len(seeds))[:, None] % 0.003
        return np.array([means[one.name] for one in every]) + noise

    monkeypatch.setattr(judge, "searched", searched)
    return judge.judged(question.read("20mbit", "4mbit", platform="freebsd"), 0, WORDS)


EARLY = {TODAY: 0.2, "fq_codel": 0.8, "codel": 0.5, "pie": 0.4, "fq_pie": 0.8, "short fifo": 0.3}


def test_what_today_costs_is_of_the_seeds_of_the_cost(judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    late = {**EARLY, TODAY: 0.3, "fq_codel": 0.7, "fq_pie": 0.75}
    found = judged(judge, monkeypatch, "fq_codel", EARLY, late)
    assert (found.chosen, found.best) == ("fq_codel", "fq_pie")
    assert found.cost == pytest.approx(0.05) and found.today == found.of_today == pytest.approx(0.45)


def test_today_is_not_the_best_of_seeds_on_which_others_did_not_run(
    judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs on them to be measured, and was surely worse on the first ones."""
    found = judged(judge, monkeypatch, "fq_codel", EARLY, {**EARLY, TODAY: 0.9})
    assert found.best in ("fq_codel", "fq_pie") and found.today == pytest.approx(-0.1)


def test_who_leaves_it_as_it_is_pays_what_that_costs(judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(judge, monkeypatch, TODAY, EARLY, {**EARLY, TODAY: 0.25})
    assert found.chosen == TODAY and found.cost == found.today == found.of_today == pytest.approx(0.55)


def test_kept_files_say_the_same_of_a_choice_and_of_today_where_they_are_one(judge: Any) -> None:
    kept = judge.read(ROOT / "benches/judged.jsonl")
    left = [one for one in kept.values() if one.chosen == TODAY]
    assert left and all(one.of_today == one.cost for one in left)
    assert all(one.of_today == 0 for one in kept.values() if one.best == TODAY != one.chosen)
    # And so does the table of the guide.
    guide = Path(ROOT / "docs/guide/advise.md").read_text(encoding="utf-8")
    for one in kept.values():
        assert f"| {one.chosen} | {one.best} | {one.cost:.3f} | {one.of_today:.3f} | {one.stated:.3f} |" in guide


def test_what_the_guide_and_the_validation_say_of_two_judgings_is_what_is_kept(judge: Any) -> None:
    table, again = (judge.read(ROOT / f"benches/{name}.jsonl") for name in ("judged", "judged-again"))
    assert list(again) == list(range(82)) and len(table) == 154
    within = sum(one.within for one in table.values())
    today, then = (sum(kept[number].within for number in again) for kept in (again, table))
    outside, was_outside = ({n for n, one in kept.items() if not one.within} for kept in (again, table))
    sure, was_sure = ({n for n, one in kept.items() if one.sure} for kept in (again, table))
    assert (within, today, then) == (152, 77, 80)
    assert (was_outside, was_sure) == ({3, 22}, {3})
    assert (outside, sure) == ({3, 10, 22, 66, 71}, {3, 22})
    left = [again[number] for number in outside - sure]
    assert all(0.004 <= one.cost <= 0.008 and one.stated <= 0.003 for one in left)
    guide, validation = (
        Path(ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("guide/advise", "validation")
    )
    for said in (f"stated on {within} of 154 links", f"stated on {today} of them, where the table has {then}"):
        assert said in guide
    for said in (f"on {within} of 154 links", f"within its interval on {today},", "links 10, 66 and 71"):
        assert said in validation
