"""Where evaluations, studies and docs/validation.md overlap: the page is what the data give, and it can fail."""

import json
import sys
from dataclasses import replace

import pytest

from aqmlab import engine
from aqmlab.statistics import half_width
from conftest import NATIVE, ROOT

sys.path.insert(0, str(ROOT / "benches/peers/linux"))
sys.path.insert(0, str(ROOT / "benches/peers"))
sys.path.insert(0, str(ROOT / "benches/overlaps"))

import judged
import overlaps
import places
import replay
import runs
import theory
from judged import AGREES, DIFFERS, UNDECIDED
from places import Number


@pytest.fixture(autouse=True)
def real(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


@pytest.fixture(scope="module")
def found(request):
    before = engine.native
    engine.native = NATIVE
    yield judged.lines()
    engine.native = before


def test_the_page_is_what_the_data_give():
    assert overlaps.PAGE.read_text(encoding="utf-8") == overlaps.page(), "make overlaps"


def test_what_does_not_agree_has_a_reason_and_what_does_has_none(found):
    assert overlaps.wrong(found) == []


def test_each_comparison_is_made_once_and_of_two_different_places(found):
    assert len({line.id for line in found}) == len(found)
    for entry in judged.plan()["overlap"]:
        assert entry["here"] != entry["there"]
        assert {"within", "sign", "between"} & entry.keys(), entry


def test_disciplines_of_every_kind_are_compared():
    kinds = set(places.evaluations()) - {"pfifo"}
    said = json.dumps([one for entry in judged.plan()["overlap"] for one in places.expanded(entry)])
    assert {kind for kind in kinds if f'"{kind}"' not in said} == set()


@pytest.mark.parametrize(
    ("here", "there", "allowed", "verdict"),
    [
        (Number(15.2, 0.1, 3), Number(15.0), 0.07, AGREES),
        (Number(17.0, 0.1, 3), Number(15.0), 0.07, DIFFERS),
        (Number(16.0, 0.3, 3), Number(15.0), 0.07, UNDECIDED),
        (Number(16.0, 0.03, 3), Number(15.0, 0.5, 5), 0.07, UNDECIDED),
    ],
)
def test_a_difference_is_judged_with_its_whole_interval(here, there, allowed, verdict):
    assert judged.between(here.minus(there), -allowed * there.value, allowed * there.value) == verdict


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        (Number(2.0, 1.0, 3), Number(0.5, 0.4, 3), AGREES),
        (Number(-2.0, 1.0, 3), Number(0.5, 0.4, 3), DIFFERS),
        (Number(2.0, 3.0, 3), Number(0.5, 0.4, 3), UNDECIDED),
        (Number(2.0, 1.0, 3), Number(0.5, 0.6, 3), UNDECIDED),
    ],
)
def test_a_sign_is_judged_with_whole_intervals(one, other, verdict):
    assert judged.same_side(one, other) == verdict


def test_the_interval_of_a_difference_is_that_of_independent_means():
    one, other = [1.0, 2.0, 3.0], [5.0, 5.5, 6.5]
    numbers = [Number(sum(row) / 3, half_width(row), 3) for row in (one, other)]
    found = numbers[0].minus(numbers[1])
    # The variances are 1 and 0.583; Welch's degrees of freedom 3.74, of which Student's t is 2.86.
    assert found.value == pytest.approx(-3.667, abs=1e-3)
    assert found.half_width == pytest.approx(2.856 * (1 / 3 + 0.5833 / 3) ** 0.5, rel=2e-3)


def test_a_number_that_moved_is_noticed(found):
    """A quarter more of one side, and lines that agreed do not."""
    # Those that are allowed to differ by a packet's time are left out where that is much of them.
    tight = [line for line in found if line.rule == "within" and 0 < line.allowed <= 0.16 * abs(line.there.value)]
    agreed = [line for line in tight if line.verdict == AGREES]
    assert len(agreed) > 100
    moved = [
        judged.between(replace(line.here, value=1.25 * line.here.value).minus(line.there), -line.allowed, line.allowed)
        for line in agreed
    ]
    assert moved.count(AGREES) == 0


def test_places_that_are_not_there_are_refused():
    with pytest.raises(places.WrongPlaceError, match="0 rows; expected one"):
        places.of_validation("closed-loop", "nothing", "utilisation", "Linux")
    with pytest.raises(places.WrongPlaceError, match="0 findings; expected one"):
        places.of_study("l4s", "1a", "nothing")
    with pytest.raises(places.WrongPlaceError, match="2 cases; expected one"):
        places.of_evaluation("pie", "5-1-1", "delay", {})


def test_theory_of_the_evaluations_own_cases():
    # PI's 50 packets of 1500 bytes at 20 Mb/s.
    assert theory.of_theory({"theory": "target", "of": "pi"}).value == pytest.approx(0.03)
    assert theory.of_theory({"theory": "target", "of": "docsis_pie"}).value == pytest.approx(0.01)
    # DCTCP at 65 packets: 60.6 of them wait at 10 Gb/s, and the queue swings by 10.8.
    assert theory.of_theory({"theory": "step"}).value == pytest.approx(60.6 * 1.2e-6, rel=1e-3)
    assert theory.swing() == pytest.approx(10.76, abs=0.01)


def test_a_bridge_changes_the_keys_that_are_named_and_no_others():
    plan = runs.asked()
    for one in plan["bridge"]:
        start, end, keys = runs.bridged(one, plan["family"])
        assert runs.differing(runs.resolved(runs.changed(start, keys, end)), end) == [], one["name"]
        # Without the last of its groups it is not there yet.
        last = plan["family"][one["to"]]["group"][-1]["keys"]
        short = runs.changed(start, [key for key in keys if key not in last], end)
        assert runs.differing(runs.resolved(short), end) != [], one["name"]
        assert places.measured()["bridges"][one["name"]]["keys"] == runs.differing(runs.resolved(start), end)


def test_every_run_that_is_asked_for_was_made():
    plan = runs.asked()
    for kind in ("run", "bridge", "walk", "queue"):
        assert {one["name"] for one in plan[kind]} == set(places.measured()[f"{kind}s"]), kind


@pytest.mark.parametrize("name", ["reno5-pie", "reno2-20-dualpi2"])
def test_a_bridge_leads_to_the_figures_that_are_kept(name):
    one = next(one for one in runs.asked()["bridge"] if one["name"] == name)
    start, end, keys = runs.bridged(one, runs.asked()["family"])
    kept = places.measured()["bridges"][name]["numbers"]
    for key, number in runs.numbers(runs.changed(start, keys, end), one["seeds"]).items():
        assert number["value"] == pytest.approx(kept[key]["value"], rel=1e-9), key


def test_a_walk_begins_with_the_figures_of_an_evaluations_page():
    for one in runs.asked()["walk"]:
        first = places.measured()["walks"][one["name"]]["steps"][0]["numbers"]
        for number in ("goodput", "delay"):
            kept = places.of_evaluation(one["of"], "8-2-2-to-8-2-4", number, {"rate": "access", "level": "medium"})
            assert first[number]["value"] == pytest.approx(kept.value, rel=1e-9), (one["name"], number)


@pytest.mark.parametrize(("of", "grid"), [("pie", "overload"), ("red", "rtt"), ("dualpi2", "friendly")])
def test_figures_of_pages_come_out_again(of, grid):
    lines = list(replay.again(of, [grid]))
    assert lines and all(line.is_alike for line in lines), lines


def test_the_second_writing_waits_as_theory_says():
    """PIE before UDP of 1.2 times the link: 15 ms, whoever wrote it."""
    found = runs.queue({"of": "step", "rate": "access", "seeds": 1})["numbers"]
    # A step that no packet is ECN-capable for is a queue that fills: 167 packets wait, and one is being sent.
    assert found["delay"]["value"] == pytest.approx(0.1, rel=0.01)
    assert found["throughput"]["value"] == pytest.approx(20e6, rel=1e-3)
