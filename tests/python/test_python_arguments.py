"""Arguments of the Python interface that are of another kind: one line names the argument, its value, what was
expected."""

import numpy as np
import pytest

import aqmlab
from aqmlab import scenario
from aqmlab.errors import BadInput
from aqmlab.results import held_back
from conftest import BASE


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"set": "duration=3s"}, "set: 'duration=3s': expected keys with their values"),
        ({"set": [1]}, r"set: \[1\]: expected keys with their values"),
        ({"set": {3: "x"}}, "set: {3: 'x'}: expected keys with their values"),
        ({"set": {"seed": None}}, "<scenario>: seed: None: a scenario holds texts, numbers"),
        ({"reps": 1.5}, "reps: 1.5: expected a whole number, 1 or more"),
        ({"reps": "2"}, "reps: '2': expected a whole number, 1 or more"),
        ({"jobs": "2"}, "jobs: '2': expected a whole number, 1 or more"),
        ({"out": 5}, "out: 5: expected the path of a folder"),
    ],
)
def test_arguments_of_another_kind_are_named(wrong, said):
    for verb in (lambda **keys: aqmlab.run(BASE, **keys), lambda **keys: aqmlab.compare(BASE, "pfifo", "pi", **keys)):
        with pytest.raises(BadInput, match=said):
            verb(**wrong)


def test_what_is_no_scenario_and_no_folder_is_named():
    with pytest.raises(BadInput, match="None: is no scenario; expected a path"):
        aqmlab.run(None)
    with pytest.raises(BadInput, match="folder: 3: expected the path of a folder"):
        aqmlab.load(3)


def test_numbers_of_numpy_are_numbers():
    source = scenario.read(BASE).with_changes({"seed": np.int64(3), "link.qdisc.limit": "10p"})
    assert source.tree["seed"] == 3
    assert 'seed = "3"' not in (text := source.resolve().toml) and "seed = 3" in text


def test_windows_over_paths_without_delay_hold_nothing_back():
    assert held_back._mean_inverse_s("0ms") == np.inf
    assert held_back._mean_inverse_s({"uniform": ["0ms", "10ms"]}) == np.inf
    assert held_back._mean_inverse_s({"even": ["0ms", "0ms"]}) == np.inf
    assert held_back._mean_inverse_s({"even": ["10ms", "20ms"]}) == pytest.approx(np.log(2) / 0.01)
    assert held_back._mean_inverse_s("0ms", 0.01) == pytest.approx(100)


@pytest.mark.parametrize("name", ["", " ", "\x1b[31mred", "two\nlines"])
def test_a_name_is_a_text_that_can_be_shown(name):
    with pytest.raises(BadInput, match=r"name: .*: expected a text without control characters"):
        scenario.read(BASE).with_changes({"name": name}).resolve()
    assert scenario.read(BASE).with_changes({"name": "Übung\u00a0à 5\u202fms"}).resolve().name
