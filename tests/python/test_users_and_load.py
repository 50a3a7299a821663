"""A block of web users has users or a load: what is set replaces the other, and both in a file are not passed over."""

import tomllib
import warnings

import pytest

import aqmlab
from aqmlab import doubts, engine, scenario
from aqmlab.errors import BadInput, Doubt
from conftest import BASE, NATIVE


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
