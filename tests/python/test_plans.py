"""Plans of many runs: how large they may be, and that what is done for each does not grow with their number."""

from pathlib import Path

import pytest

import aqmlab
import fake_native
from aqmlab import bounds, engine, prepared
from aqmlab.errors import BadInput
from aqmlab.sweep import grid, plan, sweeps
from conftest import BASE

POPULATION = BASE.replace('load = "98mbit"', "users = 20")
GRID = """
[scenario]
duration = "30s"
warmup = "10s"
[scenario.link]
rate = "10mbit"
qdisc = {{ kind = "pfifo" }}
[[scenario.traffic]]
kind = "web"
users = 20
[[grid]]
{axes}
"""
THOUSAND = ", ".join(map(str, range(1, 1001)))
AXIS = '[[grid.axis]]\nname = "{name}"\nkey = "{key}"\nvalues = [{values}]\n'


@pytest.fixture(autouse=True)
def nothing_is_built(monkeypatch):
    def refuse(*_):
        raise AssertionError("resolved before the plan was found too large")

    monkeypatch.setattr(fake_native, "resolve", refuse)


def swept(tmp_path: Path, axes: str, seeds: int | None = None) -> sweeps.Sweep:
    (tmp_path / "grid.toml").write_text(GRID.format(axes=axes))
    return sweeps.read(tmp_path / "grid.toml", seeds)


@pytest.mark.parametrize("call", [aqmlab.run, aqmlab.live, lambda s, reps: aqmlab.compare(s, "pfifo", "pi", reps=reps)])
def test_repetitions_without_bound_are_refused_at_once(call):
    with pytest.raises(BadInput, match=r"reps: 1,000,000,000 runs; expected at most 50,000 in one plan"):
        call(POPULATION, reps=1_000_000_000)


def test_variants_without_bound_are_refused_at_once():
    with pytest.raises(BadInput, match=r"compare: 100,000 runs; expected at most 50,000 in one plan"):
        aqmlab.compare(POPULATION, *["pfifo"] * 20_000, reps=5)
    tables = {"variant": [{"name": f"{k}"} for k in range(bounds.LARGEST_PLAN + 1)]}
    with pytest.raises(BadInput, match=r"variant: 50,001 runs; expected at most 50,000"):
        aqmlab.compare(tables)


def test_a_sweep_of_a_million_points_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(grid, "_point", lambda *_: pytest.fail("a point was built"))
    axes = AXIS.format(name="users", key="traffic.0.users", values=THOUSAND)
    axes += AXIS.format(name="number", key="traffic.0.window", values=THOUSAND)
    with pytest.raises(BadInput, match=r"grid\.toml: grid\.0 \(grid\): 1,000,000 runs; expected at most 50,000"):
        swept(tmp_path, axes)


def test_seeds_without_bound_are_refused_at_once(tmp_path):
    with pytest.raises(BadInput, match=r"seeds: 1,000,000,000 runs; expected at most 50,000"):
        swept(tmp_path, AXIS.format(name="users", key="traffic.0.users", values="1, 2"), seeds=1_000_000_000)
    with pytest.raises(BadInput, match=r"grid\.toml: 100,000 runs; expected at most 50,000"):
        swept(tmp_path, AXIS.format(name="users", key="traffic.0.users", values=THOUSAND), seeds=100)


class Counted:
    """The stand-in's `resolve`, and how often it was asked with how much text."""

    def __init__(self) -> None:
        self.calls, self.longest = 0, 0
        self._resolve = RESOLVE

    def __call__(self, text: str, origin: str, overrides) -> str:
        self.calls, self.longest = self.calls + 1, max(self.longest, len(text))
        return self._resolve(text, origin, overrides)


RESOLVE = fake_native.resolve


@pytest.mark.parametrize("count", [10, 40])
def test_what_is_done_for_a_variant_does_not_grow_with_their_number(monkeypatch, tmp_path, count):
    """Each is resolved once; beside that the scenario itself is, and the first of them for its seed."""
    counted = Counted()
    monkeypatch.setattr(fake_native, "resolve", counted)
    read = []
    monkeypatch.setattr(fake_native, "disciplines", lambda given=fake_native.disciplines: (read.append(1), given())[1])
    engine._disciplines.cache_clear()
    monkeypatch.setattr(prepared, "make", lambda *_: pytest.fail("enough"))
    text = POPULATION + "".join(
        f'[[variant]]\nname = "{k}"\nlink.qdisc = {{ kind = "pfifo", limit = "{k}p" }}\n' for k in range(1, count + 1)
    )
    with pytest.raises(pytest.fail.Exception, match="enough"):
        aqmlab.compare(text, out=tmp_path / "out")
    assert counted.calls <= count + 2
    assert counted.longest < 2 * len(POPULATION) and len(read) <= 1


def test_repetitions_are_of_the_same_scenario(monkeypatch, tmp_path):
    monkeypatch.setattr(fake_native, "resolve", RESOLVE)
    found = aqmlab.run(POPULATION, reps=3, out=tmp_path / "out")
    assert [run.seed for run in found.runs] == [7, 8, 9]
    assert len({run.manifest["demand_digest"] for run in found.runs}) == 1


def test_what_is_done_for_a_point_does_not_grow_with_their_number(monkeypatch, tmp_path):
    counted = Counted()
    monkeypatch.setattr(fake_native, "resolve", counted)
    asked = swept(tmp_path, AXIS.format(name="users", key="traffic.0.users", values="1, 2, 3, 4, 5"), seeds=3)
    tasks = plan.plan(asked.runs)
    assert len(tasks) == 15 and len({task.key for task in tasks}) == 15
    assert counted.calls <= 15
