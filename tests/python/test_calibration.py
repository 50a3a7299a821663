import dataclasses
import itertools
import json
import os
import threading
import time
import tomllib
from pathlib import Path

import polars as pl
import pytest

import aqmlab
import fake_native
from aqmlab import api, cli, engine, scenario, toml_text
from aqmlab.command import terminal
from aqmlab.errors import BadInput
from aqmlab.progress import Silent
from aqmlab.runs import calibration
from aqmlab.runs.loads import Loads
from aqmlab.sweep import grid, plan
from conftest import BASE, NATIVE


def test_the_population_that_offers_the_load_is_found():
    (found,) = aqmlab.calibrate(BASE)
    # The stand-in's users offer 5250 b/s each, give or take 0.3 % and the bursts of a 20 s window.
    assert found.users == pytest.approx(98e6 / 5250, rel=0.03)
    assert abs(found.error) <= 0.002
    assert found.confirmed_bps == pytest.approx(98e6, rel=0.002)
    assert found.proportional_bps_per_user == pytest.approx(98e6 / found.users, rel=0.01)
    assert found.uncongested_rate_bps == 1e9
    assert sum(found.confirmed_each_bps.values()) / 2 == pytest.approx(found.confirmed_bps)
    assert found.users in [point.users for point in found.points]
    assert len(found.points) >= 3


def test_several_runs_have_one_population_that_offers_the_load_on_average_over_their_seeds():
    (found,) = aqmlab.calibrate(BASE, seed=5, reps=3)
    assert list(found.confirmed_by_seed_bps) == ["5", "6", "7"] and found.seed == 5
    loads = list(found.confirmed_by_seed_bps.values())
    assert len(set(loads)) == 3 and sum(loads) / 3 == pytest.approx(found.confirmed_bps)
    assert found.confirmed_bps == pytest.approx(98e6, rel=0.01)
    # Student's t of two degrees of freedom.
    spread = (sum((load - found.confirmed_bps) ** 2 for load in loads) / 2) ** 0.5
    assert found.window_error == pytest.approx(4.302653 * spread / 3**0.5 / found.confirmed_bps)
    result = aqmlab.run(BASE, seed=5, reps=3)
    runs = result.runs
    assert {run.scenario["traffic"][0]["users"] for run in runs} == {found.users}
    assert [run.manifest["calibration"][0]["key"] for run in runs] == [found.key] * 3


def test_of_several_seeds_each_run_checks_the_load_of_all():
    result = aqmlab.run(BASE, seed=5, reps=2)
    said = [c["detail"] for c in result.manifest["self_checks"] if c["name"] == "the offered load is the wanted one"]
    assert len(said) == 2 and all("on average over seeds 5 to 6" in one for one in said)


def test_all_loads_of_the_variants_of_a_comparison_are_looked_for(capsys):
    other = [{"name": "as it is"}, {"name": "less", "set": {"traffic.0.load": "90mbit"}}]
    queues = [{"name": "pi", "set": {"link.qdisc": "pi"}}, {"name": "ideal", "uncongested": True}]
    found = aqmlab.calibrate(scenario.read(BASE).tree | {"variant": [*other, *queues]})
    assert [one.load_bps for one in found] == [98e6, 90e6]
    assert [one.name for one in found] == ["traffic.0 of as it is, pi and ideal", "traffic.0 of less"]
    terminal.calibrations(terminal.console(), found)
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("traffic.0")]
    assert [title.partition(": ")[0] for title in titles] == [one.name for one in found]
    assert "variants" not in aqmlab.calibrate(BASE)[0].as_dict()
    by_users = [{"name": "few", "set": {"traffic.0.users": 100}}]
    assert len(aqmlab.calibrate(scenario.read(BASE).tree | {"variant": [*by_users, *other[1:]]})) == 1
    with pytest.raises(BadInput, match="expected a block with a load to calibrate"):
        aqmlab.calibrate(scenario.read(BASE).tree | {"variant": by_users})


def test_one_calibration_serves_every_discipline_and_is_remembered(monkeypatch):
    (first,) = aqmlab.calibrate(BASE)
    fake_native.calls.clear()
    for changes in ({}, {"link.qdisc": {"kind": "pi", "ecn": True}, "tcp.ecn": "on"}, {"name": "other"}):
        (again,) = aqmlab.calibrate(BASE, set=changes)
        assert again.cached and again.users == first.users
    assert fake_native.calls == []
    assert not aqmlab.calibrate(BASE, seed=8)[0].cached
    assert not aqmlab.calibrate(BASE, set={"traffic.0.load": "90mbit"})[0].cached
    assert not aqmlab.calibrate(BASE, fresh=True)[0].cached
    monkeypatch.setattr(engine, "file_sha256", lambda: "another build")
    assert not aqmlab.calibrate(BASE)[0].cached


@pytest.mark.parametrize(
    "hosts",
    [
        {"tcp": {"stack": "linux", "cc": "dctcp"}},
        {"tcp": {"ecn": "on"}, "traffic.0.cc": "dctcp"},
        {"tcp": {"stack": "linux", "cc": "dctcp", "ecn": "on"}, "traffic.0.cc": "reno"},
        {"stacks.mine": {"base": "linux", "cc": "dctcp"}, "traffic.0.stack": "mine"},
    ],
)
def test_hosts_that_cannot_do_without_ecn_are_calibrated(hosts, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    resolved = scenario.read(BASE).with_changes(hosts).resolve()
    tree = calibration._calibration_tree(calibration.engine_tree(resolved), 0, (1e9, 1e9), "x")
    tcp = {**tree["tcp"], **tree["traffic"][0]}
    assert tcp["ecn"] == ("on" if tcp["cc"] == "dctcp" else "off")
    again = engine.resolve(toml_text.dumps(scenario.with_users(tree, 0, 10)), "again")
    assert again.scenario["traffic"][0]["users"] == 10


def test_a_broken_cache_costs_time_only():
    (first,) = aqmlab.calibrate(BASE)
    (entry,) = calibration.cache_folder().iterdir()
    entry.write_text('{"users": ')
    assert aqmlab.calibrate(BASE)[0].users == first.users
    assert json.loads(entry.read_text())["users"] == first.users


def test_a_cache_that_cannot_be_written_costs_time_only(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path / "file"))
    assert aqmlab.calibrate(BASE)[0].users > 0


def test_the_cache_lies_where_people_expect_it(monkeypatch, tmp_path):
    monkeypatch.delenv("AQMLAB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert calibration.cache_folder() == tmp_path / "aqmlab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert calibration.cache_folder() == Path.home() / ".cache/aqmlab"


def test_a_load_beyond_the_uncongested_link_is_refused_before_anything_runs():
    with pytest.raises(BadInput, match=r"traffic\.0\.load = \"900mbit\": .*1gbit.*at most 800mbit"):
        aqmlab.calibrate(BASE, set={"traffic.0.load": "900mbit"})
    assert fake_native.calls == []


MUCH = BASE.replace("98mbit", "5gbit")


@pytest.mark.parametrize(
    ("text", "changes", "place"),
    [
        (MUCH, {}, "{file}:18"),
        (MUCH, {"traffic.0.load": "5gbit"}, "{file}"),
        # The lines of a text in which the load takes the place of users are not the author's.
        (MUCH.replace('load = "5gbit"', "users = 40"), {"traffic.0.load": "5gbit"}, "{file}"),
        (MUCH, {"link.qdisc": "codel"}, "{file}:18"),
    ],
)
def test_a_load_that_is_refused_is_called_by_a_line_of_its_author_alone(tmp_path, compiled, text, changes, place):
    file = tmp_path / "web.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as refused:
        aqmlab.calibrate(file, set=changes)
    assert str(refused.value).startswith(f"{place.format(file=file)}: traffic.0.load = ")


def test_a_load_of_a_grid_is_called_by_no_line(compiled):
    tables = {"scenario": tomllib.loads(MUCH), "grid": [{"name": "web"}]}
    ((point,),) = (one.points for one in grid.read(tables, "grid.toml"))
    with pytest.raises(BadInput, match=r"^grid\.toml \[web\]: traffic\.0\.load = "):
        plan.plan([(point, 1)])


def test_a_load_that_no_population_reaches_is_said_in_a_line(monkeypatch):
    original = fake_native._queue

    def stuck(rng, duration, rate, demand_bps, *rest):
        return original(rng, duration, rate, min(demand_bps, 40e6), *rest)

    monkeypatch.setattr(fake_native, "_queue", stuck)
    with pytest.raises(BadInput, match=r"\"98mbit\": cannot be reached"):
        aqmlab.calibrate(BASE)


def test_only_the_block_with_the_load_is_calibrated():
    (alone,) = aqmlab.calibrate(BASE)
    both = BASE + '\n[[traffic]]\nkind = "bulk"\nflows = 4\n'
    (beside,) = aqmlab.calibrate(both)
    assert beside.users == alone.users
    result = aqmlab.run(both)
    assert [block.get("users", block.get("flows")) for block in result.scenario["traffic"]] == [alone.users, 4]


LINKS = {"link": {"rate": "50mbit"}}, {"links": {"west": {"rate": "50mbit"}, "east": {"rate": "60mbit"}}}


@pytest.mark.parametrize("links", LINKS)
def test_those_who_are_calibrated_are_those_who_run(links, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    routes = [{"route": [name]} for name in links.get("links", ())] or [{}, {}]
    beside = {"kind": "cbr", "rate": "8kbit", **routes[0]}
    tree = {
        "duration": "20s",
        "warmup": "5s",
        **links,
        "traffic": [beside, {"kind": "web", "load": "8mbit", **routes[1]}],
    }
    asked = scenario.read(toml_text.dumps(tree)).resolve()
    base = calibration._calibration_tree(calibration.engine_tree(asked), 1, (1e9, 1e9), "x")
    whole = {**tree, "traffic": [beside, {"kind": "web", "users": 200, **routes[1]}]}
    firsts = []
    for one in (scenario.with_users(base, 1, 200), whole):
        run = aqmlab.run(toml_text.dumps({**one, "record": {"exchanges": True}})).runs[0]
        found = run.exchanges.filter(pl.col("traffic") == 1).sort("start_ns")
        firsts.append(found.group_by("source", maintain_order=True).first().sort("source"))
    assert len(firsts[0]) > 50
    assert firsts[0].select("source", "response_bytes").equals(firsts[1].select("source", "response_bytes"))


def test_a_scenario_without_a_load_has_nothing_to_calibrate():
    with pytest.raises(BadInput, match="expected a block with a load"):
        aqmlab.calibrate(BASE.replace('load = "98mbit"', "users = 100"))


class Counting(Silent):
    """Notes the most runs that were under way at a time, and how many shared the machine with the last search."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.going = self.most = 0

    def begin(self, label, size):
        with self.lock:
            self.going += 1
            self.most = max(self.most, self.going)
        return 0

    def end(self, run):
        with self.lock:
            self.going -= 1


@pytest.mark.parametrize(
    ("jobs", "asked"), [(1, ["90mbit", "98mbit"]), (2, ["80mbit", "90mbit", "98mbit"]), (3, ["98mbit"])]
)
def test_searches_share_the_runs_that_may_be_made_at_a_time(jobs, asked, monkeypatch):
    monkeypatch.setattr(fake_native, "delay_per_tick_s", 0.005)
    loads = Loads()
    scenarios = [scenario.read(BASE).with_changes({"traffic.0.load": one}).resolve() for one in (*asked, *asked)]
    keys = [loads.ask(one) for one in scenarios]
    assert not loads.are_known
    loads.find(jobs, counting := Counting())
    assert counting.most == jobs, "one search alone makes its points side by side, several no more than they may"
    found = [loads.of(each)[0] for each in keys]
    assert found[: len(asked)] == found[len(asked) :] and len({one.users for one in found}) == len(asked)
    again = Loads()
    assert [again.of(again.ask(one))[0].users for one in scenarios] == [one.users for one in found]


def test_an_error_in_one_search_ends_the_others(monkeypatch):
    monkeypatch.setattr(fake_native, "delay_per_tick_s", 0.01)
    loads = Loads()
    loads.ask(scenario.read(BASE).resolve())
    loads.ask(scenario.read(BASE).with_changes({"seed": 2}).resolve())
    original = calibration._search

    def failing(wanted, runs):
        if wanted.base["seed"] == 2:
            raise BadInput("no")
        return original(wanted, runs)

    monkeypatch.setattr(calibration, "_search", failing)
    with pytest.raises(BadInput, match="no"):
        loads.find(2, Silent())


def test_the_cache_forgets_what_nobody_asks_for():
    aqmlab.calibrate(BASE)
    (first,) = calibration.cache_folder().iterdir()
    long_ago = time.time() - calibration.UNUSED_S - 60
    os.utime(first, (long_ago, long_ago))
    assert aqmlab.calibrate(BASE)[0].cached
    assert first.stat().st_mtime > long_ago + 60, "it was asked for"
    os.utime(first, (long_ago, long_ago))
    aqmlab.calibrate(BASE, seed=8)
    (second,) = calibration.cache_folder().iterdir()
    assert second != first


def test_the_cache_keeps_all_loads_of_a_plan_however_many():
    aqmlab.calibrate(BASE)
    (first,) = calibration.cache_folder().iterdir()
    for k in range(2500):
        (first.parent / f"calibration-{k}.json").write_bytes(first.read_bytes())
    aqmlab.calibrate(BASE, seed=8)
    assert len(list(first.parent.iterdir())) == 2502


class Steps:
    """Populations of whom some begin something large: what they offer goes up in steps."""

    def __init__(self, offered):
        self.offered, self.measured_s = offered, 20.0
        self.points, self.each, self.by_seed, self.window_errors = {}, {}, {}, {}

    def run(self, populations):
        for users in populations:
            self.points[users] = float(self.offered(users))
            self.each[users], self.window_errors[users] = {"forward": self.points[users]}, None
            self.by_seed[users] = {1: self.points[users]}


@pytest.mark.parametrize(
    ("steps", "within"),
    [
        ([(800, 0.05)], 0.01),
        ([(806, 0.02), (812, -0.03), (816, 0.04)], 0.01),
        # Two users more and the load is passed by far: nothing lies between.
        ([(780, 0.3)], 0.03),
    ],
)
def test_a_search_that_misses_goes_on_between_those_next_to_the_load(steps, within):
    def offered(users):
        return 5000 * users * (1 + sum(share for at, share in steps if users >= at))

    resolved = scenario.read(BASE).with_changes({"traffic.0.load": "4mbit"}).resolve()
    wanted = calibration.wanted(resolved, resolved.loads[0], None)
    tried = Steps(offered)
    found = calibration._search(wanted, tried)
    assert abs(found.error) <= within
    best = min(tried.points.values(), key=lambda bps: abs(bps - 4e6))
    assert found.confirmed_bps == best == pytest.approx(offered(found.users))
    if within > 0.01:
        pairs = list(itertools.pairwise(sorted(tried.points)))
        assert [b - a for a, b in pairs if tried.points[a] < 4e6 < tried.points[b]] == [2]
    assert calibration._is_searched(found)


def test_an_answer_of_a_search_that_gave_up_early_is_not_remembered():
    (first,) = aqmlab.calibrate(BASE)
    (kept,) = calibration.cache_folder().glob("calibration-*")
    missed = json.loads(kept.read_text()) | {"error": 0.015}
    kept.write_text(json.dumps(missed))
    (again,) = aqmlab.calibrate(BASE)
    assert not again.cached and again.users == first.users


def test_a_load_below_that_of_the_fewest_users_is_said_in_a_line_with_its_seed(compiled):
    text = 'duration = "10s"\nwarmup = "1s"\nlink.rate = "10mbit"\ntraffic = [{ kind = "web", load = "1bit" }]\n'
    expected = (
        r'load = "1bit"{}: is below what 2 users offer, the fewest there are: .* expected a larger load or a longer'
    )
    with pytest.raises(BadInput, match=expected.format("")):
        aqmlab.calibrate(text)
    tables = {"scenario": tomllib.loads(text), "grid": [{"name": "web", "calibrate": "each-seed"}]}
    ((point,),) = (one.points for one in grid.read(tables, "grid.toml"))
    with pytest.raises(BadInput, match=expected.format(", seed 1")):
        plan.plan([(point, 1)])


@pytest.mark.parametrize(("error", "code"), [(0.0099, 0), (0.0143, 1), (-0.0143, 1)])
def test_a_population_that_misses_its_load_fails_the_command_that_finds_it(error, code, monkeypatch, capsys, tmp_path):
    (found,) = aqmlab.calibrate(BASE)
    missed = dataclasses.replace(found, error=error)
    monkeypatch.setattr(api, "calibrate", lambda *_, **__: [missed])
    (tmp_path / "base.toml").write_text(BASE)
    assert cli.invoke(["calibrate", str(tmp_path / "base.toml"), "--json"]) == code
    said = capsys.readouterr()
    assert json.loads(said.out)["calibrations"][0]["users"] == found.users
    line = "aqmlab: self-check failed: traffic.0: the offered load is the wanted one: "
    assert said.err.startswith(line if code else "")
    assert said.err.count("\n") == code
