"""Arguments of the Python interface that are of another kind: one line names the argument, its value, what was
expected."""

import os

import numpy as np
import pytest

import aqmlab
from aqmlab import arguments, cli, scenario, study
from aqmlab.errors import BadInput
from aqmlab.gym import Link, Policy
from aqmlab.results import held_back
from aqmlab.sweep import sweeps
from conftest import BASE

LONG = """
duration = "3s"
[link]
rate = "10mbit"
[[traffic]]
kind = "bulk"
"""

GRID = """
[scenario.link]
rate = "10mbit"
[[scenario.traffic]]
kind = "bulk"
[[grid]]
name = "queues"
[[grid.axis]]
name = "aqm"
[[grid.axis.value]]
name = "pfifo"
set = { "link.qdisc" = "pfifo" }
[[grid.axis.value]]
name = "pi"
set = { "link.qdisc" = "pi" }
"""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"set": "duration=3s"}, "set: 'duration=3s': expected keys with their values"),
        ({"set": [1]}, r"set: \[1\]: expected keys with their values"),
        ({"set": {3: "x"}}, "set: {3: 'x'}: expected keys with their values"),
        ({"set": {"seed": None}}, "set: seed: None: a scenario holds texts, numbers"),
        ({"reps": 1.5}, "reps: 1.5: expected a whole number, 1 or more"),
        ({"reps": "2"}, "reps: '2': expected a whole number, 1 or more"),
        ({"reps": True}, "reps: True: expected a whole number, 1 or more"),
        ({"jobs": "2"}, "jobs: '2': expected a whole number, 1 or more"),
        ({"jobs": True}, "jobs: True: expected a whole number, 1 or more"),
        ({"resume": "x"}, "resume: 'x': expected True or False"),
        ({"monitor": 5}, "monitor: 5: expected a listener with expect, share, begin, tick and end"),
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


def test_other_verbs_refuse_them_too():
    with pytest.raises(BadInput, match="live: 'x': expected True or False"):
        aqmlab.compare(BASE, "pfifo", "pi", live="x")
    with pytest.raises(BadInput, match="fresh: 1: expected True or False"):
        aqmlab.calibrate(BASE, fresh=1)
    with pytest.raises(BadInput, match="out: 5: expected the path of a file"):
        aqmlab.record(BASE, 5)
    assert len(aqmlab.run(BASE, reps=np.int64(2), jobs=np.int8(1)).runs) == 2


def test_what_is_asked_of_results_is_named():
    found = aqmlab.compare(BASE, "pfifo", "pi")
    with pytest.raises(BadInput, match="5: no measure"):
        found["pi"].estimate(5)
    with pytest.raises(BadInput, match="'pie': expected one of pfifo, pi"):
        found.difference("pi", "pie", "p50")
    assert found.difference("pi", "pfifo", "p50") == found.difference(*map(found.column, ("pi", "pfifo")), "p50")
    assert len(found) == 2 and list(found) == ["pfifo", "pi"] and "pie" not in found


def test_messages_name_arguments_as_they_were_given(tmp_path, compiled, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/kept.txt").write_text("")
    grid = tmp_path / "sweep.toml"
    grid.write_text('name = "two"\n' + GRID)
    asked = [
        (lambda: aqmlab.run(BASE, out=tmp_path / "out"), "or resume=True to go on with it"),
        (lambda: aqmlab.compare(BASE, "pfifo", "pi", baseline="x"), 'baseline="x": expected one of pfifo, pi'),
        (lambda: sweeps.read(grid, changes={"link.qdisc": "pie"}), 'changes={"link.qdisc": "pie"}: queues/pfifo has '),
        (lambda: study.read("le2003", quick=True, medium=True), "quick=True medium=True: two scales"),
    ]
    for call, said in asked:
        with pytest.raises(BadInput) as refused:
            call()
        assert said in str(refused.value)
        with pytest.raises(BadInput) as refused, arguments.of_command_line():
            call()
        assert said not in str(refused.value) and "--" in str(refused.value)
    base = tmp_path / "base.toml"
    base.write_text(BASE)
    assert cli.invoke(["run", str(base), "-o", str(tmp_path / "out")]) == 2
    assert "or --resume to go on with it" in capsys.readouterr().err
    assert arguments.again() == "the same call with resume=True"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        *(({"seeds": seeds}, f"seeds: {seeds!r}: expected a whole number, 1 or more") for seeds in (-1, 0, 1.5, "x")),
        ({"only": "foo"}, 'only="foo": matches none of its'),
        ({"only": [3]}, 'only="3": matches none of its'),
        ({"what": 5}, "study 5: expected one of"),
        ({"changes": {"foo": 1}}, "foo"),
        ({"changes": 5}, "changes: 5: expected keys with their values"),
        ({"quick": "yes"}, "quick: 'yes': expected True or False"),
    ],
)
def test_arguments_of_a_study_are_named(wrong, said, compiled):
    with pytest.raises(BadInput, match=said):
        study.read(**{"what": "le2007", **wrong})


def test_arguments_of_a_sweep_are_named(tmp_path):
    (tmp_path / "grid.toml").write_text(GRID)
    assert len(sweeps.read(tmp_path / "grid.toml", 3).runs) == 6
    for seeds in (0, True, "x"):
        with pytest.raises(BadInput, match=rf"seeds: {seeds!r}: expected a whole number, 1 or more"):
            sweeps.read(tmp_path / "grid.toml", seeds)
    with pytest.raises(BadInput, match="changes: 5: expected keys with their values"):
        sweeps.read(tmp_path / "grid.toml", changes=5)
    asked = sweeps.read(tmp_path / "grid.toml")
    for wrong, said in (({"jobs": 0}, "jobs: 0"), ({"resume": 1}, "resume: 1"), ({"folder": None}, "folder: None")):
        with pytest.raises(BadInput, match=rf"{said}: expected"):
            sweeps.run(asked, **{"folder": tmp_path / "out", **wrong})


UNDONE = {"link.qdisc.target": "5ms", "link.qdisc": "pie"}


def test_changes_that_undo_another_are_refused(tmp_path, compiled, capsys):
    said = r'set=\{"link.qdisc.target": "5ms"\}: set=\{"link.qdisc": "pie"\} undoes it; expected it after that'
    for verb in (aqmlab.run, aqmlab.compare, aqmlab.calibrate, Link):
        with pytest.raises(BadInput, match=said):
            verb(BASE, set=UNDONE)
    after = aqmlab.run(LONG, set=dict(reversed(UNDONE.items())))
    alike = aqmlab.run(LONG, set={**UNDONE, "link.qdisc": {"kind": "pie", "target": "5ms"}})
    assert after.scenario["link"]["qdisc"]["target"] == alike.scenario["link"]["qdisc"]["target"] == "5ms"
    (tmp_path / "long.toml").write_text(LONG)
    words = ["--set", "link.qdisc.target=5ms", "--set", "link.qdisc=pie"]
    assert cli.invoke(["run", str(tmp_path / "long.toml"), *words]) == 2
    expected = "--set link.qdisc.target=5ms: --set link.qdisc=pie undoes it; expected it after that"
    assert expected in capsys.readouterr().err
    again = [*words, "--set", "link.qdisc.target=6ms", "-o", str(tmp_path / "out")]
    assert cli.invoke(["run", str(tmp_path / "long.toml"), *again]) == 0
    assert aqmlab.load(tmp_path / "out").scenario["link"]["qdisc"]["target"] == "6ms"


def test_a_change_that_every_variant_undoes_is_refused(tmp_path, compiled):
    for others in (("pie", "codel"), ("pie", "uncongested")):
        with pytest.raises(BadInput, match=r'set=\{"link.qdisc.target": "5ms"\}: every variant undoes it; expected it'):
            aqmlab.compare(LONG, *others, set={"link.qdisc": "pie", "link.qdisc.target": "5ms"})
    variant = "[[variant]]\nname = '{0}'\nset = {{ 'link.qdisc.target' = '{0}' }}\n"
    text = LONG + variant.format("7ms") + variant.format("9ms")
    for key, value in {
        "link.qdisc.target": "7ms",
        "name": "other",
        "link.rate": "5mbit",
        "variant.0.name": "x",
    }.items():
        found = aqmlab.compare(text, set={"link.qdisc": "pie", key: value})
        assert key != "name" or found.name == "other"
    with pytest.raises(BadInput, match="every variant undoes it"):
        aqmlab.compare(text, set={"link.qdisc": "pie", "link.qdisc.target": "5ms"})


def test_arguments_that_would_be_a_traceback_are_named(tmp_path, compiled):
    (tmp_path / "grid.toml").write_text(GRID)
    env, layers = Link(LONG, step="500ms", windows=1), [(np.zeros((1, 6)), np.zeros(1), "none")]
    policy, found = Policy.of(layers, env), aqmlab.run(LONG)
    run = found.runs[0]
    asked = [
        (
            lambda: sweeps.run("grid.toml", tmp_path),
            r"sweep: 'grid.toml': expected what sweeps.read gives for its file",
        ),
        (lambda: sweeps.read(None), "file: None: expected the path of a file with a grid"),
        (lambda: aqmlab.check(None), "path: None: expected the path of a law's file"),
        (lambda: policy.save(None), "path: None: expected the path of a file whose name ends in .onnx"),
        (
            lambda: Policy("mine.onnx"),
            "policy: 'mine.onnx': expected what a policy's file has in it, which Policy.load",
        ),
        (lambda: Policy.of(layers, env, doc=None), "policy: doc: None: expected a text"),
        (lambda: Policy.of(layers, env, name=3), "policy: name: 3: expected small letters"),
        (lambda: env.reset(options=3), r"options: 3: expected a table, as in \{'scenario': 0\}"),
        (lambda: run.pages_of(2), r"blocks: 2: expected numbers of blocks of traffic, as in \[0, 2\]"),
        (lambda: run.pages_of([1]), "blocks: 1: expected a whole number, from 0 to 0"),
        (lambda: run.pages_of(["web"]), "blocks: 'web': expected a whole number, from 0 to 0"),
    ]
    for call, said in asked:
        with pytest.raises(BadInput, match=said):
            call()
    assert run.pages_of(np.array([0])).is_empty()
    # A policy has a path itself.
    assert not aqmlab.check(policy).problem and aqmlab.load(os.fspath(run.folder)).digest == run.digest


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
    with pytest.raises(BadInput, match=r"name: .*: expected a text (without control characters|that is not empty)"):
        scenario.read(BASE).with_changes({"name": name}).resolve()
    assert scenario.read(BASE).with_changes({"name": "Übung\u00a0à 5\u202fms"}).resolve().name


WHOLE = {"duration": "3s", "link": {"rate": "10mbit"}, "traffic": [{"kind": "bulk"}]}
HALF = "\ud800"


def _within_itself():
    table = {"rate": "10mbit"}
    table["again"] = table
    return {**WHOLE, "link": table}


def _list_within_itself():
    every = []
    every.append(every)
    return {**WHOLE, "traffic": every}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({**WHOLE, 3: "x"}, "{}: 3: expected keys that are texts"),
        ({**WHOLE, "link": {"rate": "10mbit", None: 1}}, "{}: link: None: expected keys that are texts"),
        (_within_itself(), "{}: link: nested too deep; expected at most 40 levels"),
        (_list_within_itself(), "{}: traffic: nested too deep; expected at most 40 levels"),
        ({**WHOLE, "name": HALF}, r"{}: name: '\\ud800': character 0 is not UTF-8; expected text in UTF-8"),
        ({**WHOLE, HALF: 1}, r"{}: '\\ud800': character 0 is not UTF-8; expected text in UTF-8"),
        ({**WHOLE, "name": None}, "{}: name: None: a scenario holds texts, numbers, true and false, lists and tables"),
        ({**WHOLE, "link": {"rate": None}}, "{}: link.rate: None: a scenario holds texts, numbers"),
    ],
)
def test_tables_that_are_no_scenario_are_refused_wherever_they_are_given(wrong, said, tmp_path):
    for ask in (
        aqmlab.run,
        aqmlab.calibrate,
        lambda tree: aqmlab.compare(tree, "pi", "pfifo"),
        lambda tree: aqmlab.record(tree, tmp_path / "out.csv"),
    ):
        with pytest.raises(BadInput, match=said.format("<scenario>")):
            ask(wrong)
    if all(isinstance(key, str) for key in wrong):
        with pytest.raises(BadInput, match=said.format("set")):
            aqmlab.run(WHOLE, set=wrong)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: aqmlab.run(f'name = "{HALF}"\n'),
        lambda: aqmlab.run(f"{HALF}.toml"),
        lambda: aqmlab.compare(WHOLE, HALF),
        lambda: aqmlab.run(WHOLE, out=HALF),
        lambda: aqmlab.load(HALF),
    ],
)
def test_half_a_character_is_refused(ask):
    with pytest.raises(BadInput, match=r"character \d+ is not UTF-8; expected text in UTF-8"):
        ask()


@pytest.mark.parametrize("given", ["nope", ["nope"], {"nope": 3}])
def test_studies_are_run_by_the_folders_of_their_results(given):
    with pytest.raises(BadInput, match=r"studies: .*nope.*: expected each study by the folder of its results, as in "):
        study.run(given)


def test_a_table_that_is_set_takes_the_place_of_what_was_there():
    found = scenario.read({**WHOLE, "link": {"rate": "10mbit", "qdisc": {"kind": "pi"}}}).with_changes(
        {"link": {"rate": "5mbit"}}
    )
    assert found.tree["link"] == {"rate": "5mbit"}
