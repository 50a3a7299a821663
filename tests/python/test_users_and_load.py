"""A block of web users has users or a load: what is set replaces the other, and both in a file are not passed over."""

import tomllib
import warnings

import pytest

import aqmlab
from aqmlab import doubts, engine, scenario
from aqmlab.errors import BadInput, Doubt
from aqmlab.study import definition
from aqmlab.sweep import grid, plan, sweeps
from conftest import BASE, NATIVE
from studies import STUDY, write


def block(source):
    return source.tree["traffic"][0]


def test_a_load_that_is_set_replaces_users_and_the_other_way_round():
    source = scenario.read(BASE)
    assert "load" in block(source)
    of_users = source.with_changes({"traffic.0.users": 40})
    assert block(of_users)["users"] == 40 and "load" not in block(of_users)
    assert of_users.resolve().loads == ()
    back = of_users.with_changes({"traffic.0.load": "5mbit"})
    assert "users" not in block(back)
    assert [load.load_bps for load in back.resolve().loads] == [5e6]
    both = source.with_changes({"traffic.0.load": "5mbit", "traffic.0.users": 40})
    assert block(both)["users"] == 40 and block(both)["load"] == "5mbit"
    with pytest.raises(BadInput, match=r"traffic\.7\.load"):
        source.with_changes({"traffic.7.load": "5mbit"})


def test_a_finished_run_is_calibrated_anew_for_another_load(base, tmp_path):
    first = aqmlab.run(base, out=tmp_path / "first")
    again = aqmlab.run(tmp_path / "first/scenario.toml", set={"traffic.0.load": "49mbit"}, out=tmp_path / "again")
    users = [tomllib.loads((one.folder / "scenario.toml").read_text())["traffic"][0]["users"] for one in (first, again)]
    assert users[1] == pytest.approx(users[0] / 2, rel=0.05)


def test_a_load_beside_users_is_said_not_to_count(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    text = BASE.replace("load = ", "users = 40\nload = ")
    with pytest.warns(Doubt, match='traffic.0.load = "98mbit" is not looked for, since users = 40 says who there is'):
        doubts.of(scenario.read(text).resolve(), scenario.read(text).tree)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Doubt)
        doubts.of(scenario.read(BASE).resolve(), scenario.read(BASE).tree)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('{ at = "60s", rate = "5mbit" }', 'link.schedule.0.at = "60s" is not reached, since the run ends at 40s'),
        ('{ at = "3s" }', "link.schedule.0: changes nothing"),
    ],
)
def test_changes_of_a_link_that_never_come_are_said(monkeypatch, change, said):
    monkeypatch.setattr(engine, "native", NATIVE)
    text = f'duration = "40s"\nlink = {{ rate = "10mbit", schedule = [{change}] }}\ntraffic = [{{ kind = "bulk" }}]\n'
    with pytest.warns(Doubt, match=said):
        doubts.of(scenario.read(text).resolve(), scenario.read(text).tree)


OF_USERS = BASE.replace('load = "98mbit"', "users = 40")
GRID = '[[grid]]\nname = "web"\n'
LOADS = '[[grid.axis]]\nname = "load"\nkey = "traffic.0.load"\nvalues = ["5mbit", "9mbit"]\n'
USERS = '[[grid.axis]]\nname = "users"\nkey = "traffic.0.users"\nvalues = [40, 80]\n'
RATES = '[[grid.axis]]\nname = "rate"\nkey = "link.rate"\nvalues = ["50mbit", "100mbit"]\n'
CELL = '[[grid.cell]]\nat.rate = "50mbit"\nset = { "traffic.0.load" = "5mbit" }\n'


def demands(text, tmp_path, base=OF_USERS, **options):
    """What each point of a sweep has of load and users."""
    (tmp_path / "base.toml").write_text(base)
    (tmp_path / "grid.toml").write_text(f'scenario = "base.toml"\n{text}')
    asked = sweeps.read(tmp_path / "grid.toml", **options)
    return [{key: block(one.source).get(key) for key in ("load", "users")} for one in asked.points]


def of_load(*loads):
    return [{"load": load, "users": None} for load in loads]


def of_users(*users):
    return [{"load": None, "users": each} for each in users]


def test_a_load_that_an_axis_a_cell_or_a_setting_of_a_sweep_gives_replaces_users(tmp_path):
    assert demands(GRID + LOADS, tmp_path) == of_load("5mbit", "9mbit")
    assert demands(GRID + USERS, tmp_path, BASE) == of_users(40, 80)
    assert demands(GRID + RATES + CELL, tmp_path) == of_load("5mbit") + of_users(40)
    assert demands(GRID + RATES, tmp_path, changes={"traffic.0.load": "7mbit"}) == of_load("7mbit", "7mbit")
    of_grid = GRID + 'set = { "traffic.0.users" = 9 }\n' + RATES
    assert demands(of_grid, tmp_path, BASE) == of_users(9, 9)
    assert demands(of_grid, tmp_path, changes={"traffic.0.load": "7mbit"}) == of_load("7mbit", "7mbit")
    assert demands(GRID + LOADS + '[[grid.cell]]\nat.load = "5mbit"\nset = { "traffic.0.users" = 7 }\n', tmp_path) == [
        *of_users(7),
        *of_load("9mbit"),
    ]
    tables = '[[grid.axis]]\nname = "mix"\nvalue = [{ name = "web", traffic = [{ kind = "web", users = 3 }] }]\n'
    assert demands(GRID + tables + LOADS, tmp_path) == of_load("5mbit", "9mbit")


def test_the_file_in_the_folder_of_a_sweep_asks_for_the_load_that_was_set(tmp_path):
    rows = {"scenario": tomllib.loads(OF_USERS), "grid": [{"name": "web", "set": {"traffic.0.users": 9}}]}
    asked = grid.as_asked(rows, "grid.toml", {"traffic.0.load": "7mbit"}, None)
    (one,) = grid.read(asked, "grid.toml")[0].points
    assert (block(one.source)["load"], "users" in block(one.source)) == ("7mbit", False)


def test_an_axis_of_loads_and_one_of_users_are_refused(tmp_path):
    with pytest.raises(BadInput) as refused:
        demands(GRID + USERS + LOADS, tmp_path)
    assert str(refused.value) == (
        f"{tmp_path / 'grid.toml'}: grid.0 (web).axis.1 (load): traffic.0.load: stands in the place of "
        "traffic.0.users, which axis users (40) sets to 40, in web/40/5mbit; expected either of them"
    )


def test_a_sweep_says_once_that_a_load_beside_users_does_not_count(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    both = tomllib.loads(BASE.replace("load = ", "users = 40\nload = "))
    found = grid.read({"scenario": both, "grid": [tomllib.loads(RATES)["grid"] | {"name": "web"}]}, "grid.toml")
    with pytest.warns(Doubt) as said:
        plan.plan([(point, 1) for point in found[0].points])
    assert [str(one.message) for one in said] == [
        'grid.toml [web, 50mbit]: traffic.0.load = "98mbit" is not looked for, since users = 40 says who there is'
    ]


def test_a_load_that_is_set_in_a_study_replaces_users_but_not_those_of_an_axis(tmp_path):
    text = STUDY.replace('set = { duration = "20s",', 'set = { "traffic.0.users" = 600, duration = "20s",')
    folder = write(tmp_path / "made", text)
    found = definition.read(folder, "quick", changes={"traffic.0.load": "5mbit"})
    has = {point.name: {key: block(point.source).get(key) for key in ("load", "users")} for point in found.points}
    assert [has.pop("again/1800")] == of_users(1800)
    assert len(has) > 2 and list(has.values()) == of_load(*["5mbit"] * len(has))
