"""One catalogue of measures: each name has one formula, and where engine and Python both work a number out, they agree.

Needs the compiled engine.
"""

import numpy as np
import pytest

import aqmlab
from aqmlab import engine, links
from aqmlab.measures import catalogue, link, recorded, responses, sizes
from aqmlab.measures.subject import Seen
from aqmlab.results import defined, window
from aqmlab.results.window import condense
from conftest import NATIVE

SCENARIO = """
duration = "25s"
warmup = "5s"
cooldown = "1s"

[link]
rate = "10mbit"
reverse_rate = "7mbit"
qdisc = { kind = "pie", ecn = true }

[tcp]
ecn = "on"

[[traffic]]
kind = "web"
users = 900
direction = "both"

[[traffic]]
kind = "bulk"
flows = 3

[[traffic]]
kind = "cbr"
rate = "3mbit"
"""


@pytest.fixture(scope="module")
def measured():
    """One run, which no test changes, and its response times in their order."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "native", NATIVE)
        result = aqmlab.run(SCENARIO)
        run = result.runs[0]
        return Seen(condense(run), run.summary, run.scenario), np.sort(run.exchanges["response_time_s"].to_numpy())


@pytest.fixture
def seen(measured):
    return measured[0]


def test_each_measure_of_the_catalogue_has_one_formula():
    every = [*responses.MEASURES, *link.MEASURES, *recorded.MEASURES, *sizes.MEASURES]
    names = [measure.name for measure in every]
    assert sorted(names) == sorted(defined.asked())
    for measure in every:
        known = [parameter.name for parameter in measure.parameters]
        assert sorted(known) == sorted(defined.asked()[measure.name].parameters), measure.name
    assert set(window.COMPARED) <= set(names) and set(window.OF_LINK) <= set(names)


def _number(summary, key):
    for step in key.split("."):
        summary = summary[step]
    return summary


def test_engine_and_python_agree(seen):
    """The summary is of what the engine counted, the measures are of its tables."""
    compared = 0
    for row in defined.every():
        if row.parameters is None or row.key is None:
            continue
        ways = links.WAYS if row.key.startswith("forward.") else (None,)
        for way in ways:
            asked = {"measure": row.name} | ({"direction": way} if way else {})
            [reading] = catalogue.read(asked, "a test")
            expected = _number(seen.summary, row.key.replace("forward.", f"{way}."))
            if row.name == "goodput_bps":
                expected = seen.summary["tcp"]["forward_goodput_bps"]
            found = reading.formula.whole(seen)
            assert found == pytest.approx(expected, rel=1e-12, abs=0), row.name
            assert found > 0 or row.name == "flows_failed", f"{row.name} is not tried"
            compared += 1
    assert compared > 15
    for name in window.COMPARED:
        expected = catalogue.named(name).formula.whole(seen)
        assert seen.window.measure(name) == pytest.approx(expected, rel=1e-12), name


def test_percentiles_of_the_summary_are_those_of_the_table_to_three_digits(measured):
    seen, times = measured
    for name, found in seen.summary["exchanges"]["response_time_s"].items():
        rank = int(np.ceil(int(name[1:]) * times.size / 100)) - 1
        assert found == pytest.approx(times[rank], rel=1e-3), name


def test_parts_add_up_to_the_whole(seen):
    for name in ("throughput_bps", "utilisation", "share_under_1s"):
        formula = catalogue.named(name).formula
        weights = seen.window.completed if name == "share_under_1s" else seen.window.link.covered_s[0]
        assert np.average(formula.parts(seen), weights=weights) == pytest.approx(formula.whole(seen), rel=1e-12)


def test_completed_is_not_a_number_of_blocks_that_complete_nothing(seen):
    found = []
    for block in range(3):
        (reading,) = catalogue.read({"measure": "completed", "block": block}, "x")
        found.append((reading.formula.whole(seen), reading.formula.parts(seen).sum()))
    web, bulk, cbr = found
    assert web[0] == seen.summary["exchanges"]["completed"] == web[1] / 20 > 0
    assert np.isnan([*bulk, *cbr]).all()


@pytest.mark.usefixtures("compiled")
def test_completed_is_null_where_nobody_could_complete_an_exchange():
    endless = SCENARIO.replace('kind = "web"\nusers = 900\ndirection = "both"', 'kind = "bulk"')
    keys = {"duration": "3s", "warmup": "0s", "cooldown": "0s"}
    found = aqmlab.compare(endless, "pfifo", "pi", set=keys)
    _, variant = found.as_dict()["variants"]
    assert variant["summary"]["exchanges"]["completed"] is None
    assert variant["measures"]["completed"]["value"] is variant["difference_to_baseline"]["completed"]["value"] is None
    (reading,) = catalogue.read({"measure": "completed"}, "x")
    run = found["pi"].runs[0]
    assert np.isnan(reading.formula.whole(Seen(condense(run), run.summary, run.scenario)))
    # Who could have, and did not, completed none.
    late = found.baseline.scenario | {"traffic": [{"kind": "bulk", "size": "1gb"}]}
    assert aqmlab.run(late, set={"link.rate": "1mbit"}).estimate("completed").value == 0
