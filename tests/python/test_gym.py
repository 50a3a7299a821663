"""A link as an environment for agents that learn. Needs the compiled engine."""

import importlib.util
import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import polars as pl
import pytest
from gymnasium.utils.env_checker import check_env

import aqmlab
import aqmlab.gym
from agents import NAME, SCENARIO, WEB, are_equal, episode, random_actions
from aqmlab.errors import BadInput
from aqmlab.gym import Link
from aqmlab.laws import observed
from aqmlab.laws.observed import QUANTITIES, Eyes, Range, Seen
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("nothing_allowed")

ACTIONS = [
    "probability",
    {"probability": (0, 0.2, "square")},
    {"target": ("1ms", "50ms", "log"), "alpha": (0.01, 0.5)},
    ["pie", "codel target 5ms", "pfifo"],
]


@pytest.mark.parametrize("action", ACTIONS, ids=str)
def test_the_environment_passes_the_checker_of_gymnasium(action):
    with gymnasium.make(NAME, scenario=SCENARIO, action=action, duration="2s") as env:
        check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("action", ACTIONS, ids=str)
def test_the_environment_passes_the_checker_of_stable_baselines3(action):
    if importlib.util.find_spec("stable_baselines3") is None:
        pytest.skip("left out: stable_baselines3 is not installed")
    from stable_baselines3.common.env_checker import check_env as check

    check(Link(SCENARIO, action=action, duration="2s"))


@pytest.mark.parametrize("action", ACTIONS, ids=str)
def test_the_same_seed_and_actions_make_the_same_episode(action):
    env, other = (Link([SCENARIO, WEB], action=action, duration="1s") for _ in range(2))
    actions = random_actions(env, 100)
    first = episode(env, 5, actions)
    assert are_equal(first, episode(other, 5, actions)) and are_equal(first, episode(env, 5, actions))
    assert not are_equal(first, episode(env, 6, actions))
    assert [step[3] for step in first[1:]] == [False] * 99 + [True]
    assert all(np.isfinite(step[0]).all() and step[0] in env.observation_space for step in first[1:])


def test_an_environment_is_pickled_as_its_arguments_and_where_its_random_numbers_are():
    first = Link(SCENARIO, duration="100ms", action={"target": ("1ms", "100ms")}, windows=2)
    again = pickle.loads(pickle.dumps(first))
    assert again.observation_space == first.observation_space and again.action_space == first.action_space
    assert are_equal(episode(first, 3, []), episode(again, 3, []))
    first.close()
    # Seeds follow from the last that was given, in the copy too.
    again = pickle.loads(pickle.dumps(first))
    assert first.reset()[1]["seed"] == again.reset()[1]["seed"]
    wrapped = gymnasium.make(NAME, scenario=SCENARIO, duration="100ms")
    assert pickle.loads(pickle.dumps(wrapped)).reset(seed=3)[1]["seed"] == 3


def test_what_cannot_be_pickled_says_so_in_a_line():
    env = Link(SCENARIO, duration="100ms")
    env.reset(seed=3)
    with pytest.raises(BadInput, match=r"under way cannot be pickled; expected one after close$"):
        pickle.dumps(env)
    several = gymnasium.make_vec(NAME, 2, scenario=SCENARIO, duration="100ms")
    with pytest.raises(BadInput, match=r"in threads cannot be pickled; expected a function that makes them$"):
        pickle.dumps(several)
    several.close()


def test_a_seed_draws_one_of_several_links_and_is_that_of_the_scenario():
    env = Link([SCENARIO, WEB], duration="1s")
    drawn = [env.reset(seed=seed)[1] for seed in range(20)]
    assert {info["scenario"] for info in drawn} == {0, 1}
    assert [info["seed"] for info in drawn] == list(range(20))
    assert env.reset(seed=3, options={"scenario": 1})[1]["scenario"] == 1
    # Without a seed, seeds follow from the last.
    later = [[env.reset(seed=9)[1], env.reset()[1], env.reset()[1]] for _ in range(2)]
    assert later[0] == later[1] and len({info["seed"] for info in later[0]}) == 3


def test_what_an_agent_does_can_be_seen():
    env = Link(SCENARIO, duration="10s", step="100ms", reward="wait_ms")
    waits = {}
    for action in (-1.0, -0.5):
        env.reset(seed=1)
        waits[action] = np.mean([env.step(np.array([action], np.float32))[1] for _ in range(100)][50:])
    # 200 packets of at most 1500 bytes take 120 ms at 20 Mb/s; a probability of 1/16 empties the queue.
    assert waits[-1.0] > 60 and waits[-0.5] < 20
    env = Link(SCENARIO, duration="10s", step="100ms", reward="wait_ms", action={"target": ("1ms", "100ms", "log")})
    for action in (-1.0, 1.0):
        env.reset(seed=1)
        waits[action] = np.mean([env.step(np.array([action], np.float32))[1] for _ in range(100)][70:])
    assert waits[-1.0] < 20 < 50 < waits[1.0]


def test_a_parameter_that_is_set_does_what_the_scenario_with_it_does():
    """The least value of the range is what the first run has all the time, the other by its text."""
    sums = []
    for text, action in ((SCENARIO, -1.0), (SCENARIO.replace('"pie"', '"pie", target = "40ms"'), 0.0)):
        env = Link(text, duration="5s", action={"target": ("40ms", "80ms") if action else ("20ms", "60ms")})
        env.reset(seed=4)
        sums.append([env.step(np.array([action], np.float32))[4] for _ in range(500)])
    for one, other in zip(*sums, strict=True):
        assert one == other
    assert sums[0][0]["action"] == {"target": '"40000000ns"'}


def test_measures_are_what_they_say():
    env = Link(WEB, duration="20s", step="100ms", reward=lambda measures: measures["rate_mbps"] - measures["losses"])
    env.reset(seed=2)
    steps = [env.step(np.array([-1.0], np.float32)) for _ in range(200)]
    infos = [info for *_, info in steps]
    assert all(reward == info["rate_mbps"] - info["losses"] for _, reward, *_, info in steps)
    # 40 transfers of 30 kB a second, Poisson: 800 in all, within five standard deviations.
    completed = sum(info["completed"] for info in infos)
    assert abs(completed - 800) < 5 * 800**0.5
    mean_mbps = np.mean([info["rate_mbps"] for info in infos])
    assert abs(mean_mbps - (4 + completed * 30 * 1024 * 8 / 20e6)) < 1.0
    assert infos[50]["utilisation"] == pytest.approx(infos[50]["rate_mbps"] / 20)
    slowest = max(info["response_ms"] for info in infos)
    assert 20 < min(info["response_ms"] for info in infos if info["completed"]) < slowest


def test_observations_are_what_the_guide_says():
    seen = Seen(20, 10, 10_000, 4, 2, 5, 2_500, 200_000_000, 30_000_000, 10_000_000, 0.25)
    # A wait of 20 ms; 80 kbit of 100 kbit; 20 arrivals of 8.33; 20 kbit wait 2 ms; 4 and 2 of 20; the root of 1/4.
    expected = {
        "wait": 0.5,
        "wait_max": 0.6,
        "rate": 0.8,
        "arrivals": 20 / (20 + 100 / 12),
        "backlog": 2 / 22,
        "losses": 0.2,
        "marks": 0.1,
        "probability": 0.5,
    }
    assert expected.keys() == QUANTITIES.keys()
    eyes = Eyes(0.01, list(expected), 2)
    first = eyes.look(seen)
    assert first.tolist() == pytest.approx([*expected.values()] + [0.0] * 8)
    eyes.look(Seen(*[0] * 9, 10_000_000, 0.0))
    second = eyes.seen([0.5])
    assert second.tolist() == pytest.approx([0.0] * 8 + [*expected.values()] + [0.5])


def test_actions_stand_for_values():
    assert [Range(0, 1, "square").value(action) for action in (-1, 0, 1, 7, float("nan"))] == [0, 0.25, 1, 1, 0]
    assert [Range(2, 4).value(action) for action in (-1, 0, 1)] == [2, 3, 4]
    assert [Range(1e-3, 1e-1, "log").value(action) for action in (-1, 0, 1)] == pytest.approx([1e-3, 1e-2, 1e-1])


def test_every_measure_that_is_described_is_reckoned_in_its_order():
    nothing = observed.Seen(*[0] * 10, 0.0)
    assert list(aqmlab.gym.measures.of(nothing, (0, 0, 0, 0.0), (0.0, 0), 0.01)) == list(aqmlab.gym.MEASURES)


def test_exchanges_under_way_are_seen():
    env = Link(WEB, observe=("exchanges", "wait"), windows=3, duration="2s")
    env.reset(seed=1)
    found = [env.step(np.array([-1.0], np.float32)) for _ in range(200)]
    assert env.observation_space.shape == (4,)
    assert all(seen[-1] == np.float32(info["under_way"] / (info["under_way"] + 20)) for seen, *_, info in found)
    assert len({info["under_way"] for *_, info in found}) > 3


def test_links_in_threads_do_as_each_does_alone():
    arguments = {"scenario": [SCENARIO, WEB], "duration": "500ms"}
    vector = gymnasium.make_vec(NAME, num_envs=3, threads=2, **arguments)
    assert isinstance(vector, aqmlab.gym.ThreadedVector)
    alone = [Link(**arguments) for _ in range(3)]
    observations, _ = vector.reset(seed=11)
    for number, link in enumerate(alone):
        assert np.array_equal(observations[number], link.reset(seed=11 + number)[0])
    rng = np.random.default_rng(1)
    is_over = [False] * 3
    for _ in range(120):
        actions = rng.uniform(-1, 1, (3, 1)).astype(np.float32)
        observations, rewards, terminated, truncated, _ = vector.step(actions)
        for number, link in enumerate(alone):
            if is_over[number]:
                seen, reward, cut = link.reset()[0], 0.0, False
            else:
                seen, reward, _, cut, _ = link.step(actions[number])
            assert np.array_equal(observations[number], seen)
            assert (rewards[number], truncated[number], terminated[number]) == (reward, cut, False)
            is_over[number] = cut
    vector.close()


@pytest.mark.parametrize("threads", [1, 3, 9])
def test_the_number_of_threads_changes_nothing_in_any_mode(threads):
    def found(threads: int, mode: str) -> list[bytes]:
        vector = gymnasium.make_vec(
            NAME, num_envs=5, threads=threads, scenario=WEB, duration="100ms", autoreset_mode=mode
        )
        rng, kept = np.random.default_rng(2), [vector.reset(seed=4)[0].tobytes()]
        for _ in range(25):
            seen, rewards, _, cut, _ = vector.step(rng.uniform(-1, 1, (5, 1)).astype(np.float32))
            kept += [seen.tobytes(), rewards.tobytes(), cut.tobytes()]
        vector.close()
        return kept

    for mode in ("NextStep", "SameStep"):
        assert found(threads, mode) == found(2, mode)


def test_after_a_step_that_failed_all_links_begin_again():
    failing = [True]

    def reward(measures):
        if failing[0] and measures["rate_mbps"] > 0:
            raise RuntimeError("no reward")
        return measures["rate_mbps"]

    arguments = {"scenario": SCENARIO, "duration": "1s", "reward": reward}
    vector = gymnasium.make_vec(NAME, num_envs=6, threads=2, **arguments)
    vector.reset(seed=1)
    with pytest.raises(RuntimeError, match="no reward"):
        for _ in range(50):
            vector.step(np.zeros((6, 1), np.float32))
    failing[0] = False
    again = gymnasium.make_vec(NAME, num_envs=6, threads=1, **arguments)
    assert np.array_equal(vector.reset(seed=1)[0], again.reset(seed=1)[0])
    for _ in range(50):
        mine, other = (each.step(np.zeros((6, 1), np.float32)) for each in (vector, again))
        assert all(np.array_equal(one, two) for one, two in zip(mine[:4], other[:4], strict=True))
    vector.close()
    again.close()


def test_many_links_say_what_the_vector_environment_of_gymnasium_says():
    arguments = {"scenario": SCENARIO, "duration": "50ms", "action": ["pie", "codel"]}
    ours = gymnasium.make_vec(NAME, num_envs=2, **arguments)
    theirs = gymnasium.make_vec(NAME, num_envs=2, vectorization_mode="sync", **arguments)
    assert ours.reset(seed=1)[0].tolist() == theirs.reset(seed=1)[0].tolist()
    for _ in range(8):
        mine, other = ours.step(np.array([0, 1])), theirs.step(np.array([0, 1]))
        for one, two in zip(mine[:4], other[:4], strict=True):
            assert np.array_equal(one, two) and one.dtype == two.dtype
        assert mine[4].keys() == other[4].keys()
        for name, values in mine[4].items():
            if name != "action":
                assert np.array_equal(values, other[4][name]), name
        if "action" in mine[4]:
            assert mine[4]["action"]["law"].tolist() == other[4]["action"]["law"].tolist() == ["pie", "codel"]


def test_choosing_one_law_for_good_is_that_law():
    chosen = Link(SCENARIO, action=["pie ecn", "codel"], duration="5s")
    chosen.reset(seed=3)
    counts = [chosen.step(0)[4] for _ in range(500)]
    result = aqmlab.run(
        SCENARIO, seed=3, set={"duration": "5s", "warmup": "0s", "record.interval": "10ms", "record.drops": True}
    )
    drops = pl.read_parquet(result.folder / "drops.parquet").filter(pl.col("direction") == 0)
    signals = sum(round(info["losses"] + info["marks"] > 0) for info in counts)
    at = drops.filter(pl.col("time_s") < 5.0)["time_s"].to_numpy()
    assert signals == len(set(np.floor(at / 0.01 + 1e-9))) > 20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"step": "10"}, "step: '10': expected a number with one of the units"),
        ({"step": "10ns"}, "step: 10ns: expected a microsecond or more"),
        ({"duration": "1ms"}, "duration: 1ms: expected a step or more, 10ms"),
        ({"observe": ()}, "observe: nothing; expected one or more of wait"),
        ({"observe": ("wait", "weight")}, "observe: 'weight': expected of wait"),
        ({"windows": 0}, "windows: 0: expected how many steps back"),
        ({"windows": True}, "windows: True: expected"),
        ({"action": "target"}, "action: 'target': expected 'probability', a parameter with its range"),
        ({"action": {}}, "action: nothing"),
        ({"action": {"target": "5ms"}}, "action: target: '5ms': expected the lowest and the highest"),
        ({"action": {"target": ("5ms", "20p")}}, "expected two values of one unit"),
        ({"action": {"target": ("5ms", "1ms")}}, "expected a lower value before a higher one"),
        ({"action": {"target": ("0ms", "1ms", "log")}}, "expected a lowest value above 0"),
        ({"action": {"target": ("1ms", "2ms", "cubic")}}, "'cubic': expected a scale of linear, log, square"),
        ({"action": {"tarhet": ("1ms", "2ms")}}, "target"),
        ({"action": {"target": (1, 2)}}, "target"),
        ({"action": {"probability": (0, 2)}}, "action: probability: expected it alone, with a range from 0 to 1"),
        ({"action": ["pie"]}, "expected two or more laws to choose among"),
        ({"action": ["pie", "fq_codel"]}, "fq_codel: has queues of its own"),
        ({"action": ["pie", "pei"]}, "pei"),
        ({"reward": "speed"}, "reward: 'speed': expected of utilisation"),
        ({"reward": {"wait_ms": "much"}}, "reward: wait_ms: 'much': expected a number"),
        ({"reward": 3}, "reward: 3: expected a measure"),
        ({"observe": None}, "observe: nothing; expected one or more of wait"),
        ({"observe": 5}, "observe: 5: expected names of what is seen, as in ('wait', 'rate')"),
        ({"reward": {"wait_ms": float("inf")}}, "reward: wait_ms: inf: expected a number that is finite"),
        ({"set": "x"}, "set: 'x': expected keys with their values"),
        ({"set": {"link.qdisc.target": "5ms"}}, "set: link.qdisc.target: the agent is in the place of that discipline"),
        ({"link": "core"}, "link: 'core': expected one of link"),
        ({"way": "up"}, "way: 'up': expected forward or reverse"),
        ({"scenario": []}, "scenario: none; expected one or more"),
        ({"scenario": "link = 3"}, "link"),
        ({"scenario": WEB.replace('"poisson"', '"web"')}, "traffic"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_in_a_line(arguments, said):
    with pytest.raises(BadInput) as refused:
        Link(**{"scenario": SCENARIO, **arguments})
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_load_is_refused_and_steps_need_an_episode():
    load = SCENARIO.replace('kind = "bulk"\nflows = 6', 'kind = "web"\nmodel = "unc2001"\nload = "5mbit"')
    with pytest.raises(BadInput, match="asks for a load; expected its users, which aqmlab calibrate finds"):
        Link(load)
    env = Link(SCENARIO, duration="10ms")
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode is under way: expected reset before step"):
        env.step(env.action_space.sample())
    env.reset(seed=1)
    env.step(env.action_space.sample())
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode is over: expected reset before step"):
        env.step(env.action_space.sample())
    for number in (7, True, -1, "0"):
        with pytest.raises(BadInput, match=rf"scenario: {number!r}: expected a whole number, from 0 to 0"):
            env.reset(options={"scenario": number})
    with pytest.raises(BadInput, match="options: 'scenaria': expected 'scenario'"):
        env.reset(options={"scenaria": 0})
    assert env.reset(options={"scenario": np.int64(0)})[1]["scenario"] == 0
    for seed in (True, 2**64, -1, 1.5):
        with pytest.raises(BadInput, match=rf"seed: {seed!r}: expected a whole number, from 0 to {2**63 - 1}"):
            env.reset(seed=seed)
    assert env.reset(seed=np.int64(3))[1]["seed"] == 3 and env.reset(seed=2**63 - 1)
    with pytest.raises(BadInput, match="num_envs: 0: expected a whole number, 1 or more"):
        gymnasium.make_vec(NAME, num_envs=0, scenario=SCENARIO)


@pytest.mark.parametrize("answer", [None, "much", float("nan"), float("inf"), -np.inf, 10**400, [1, 2]], ids=str)
def test_a_reward_that_is_no_number_is_refused(answer):
    env = Link(SCENARIO, duration="1s", reward=lambda measures: answer)
    env.reset(seed=1)
    with pytest.raises(BadInput, match=r"reward: answered .*; expected a number"):
        env.step([0.0])


def test_the_last_step_is_a_whole_one():
    env = Link(SCENARIO, step="30ms", duration="100ms")
    env.reset(seed=1)
    assert [env.step([0.0])[3] for _ in range(4)] == [False, False, False, True]


def test_aqmlab_is_imported_without_gymnasium():
    code = "import sys, aqmlab, aqmlab.cli; assert not {'gymnasium', 'onnxruntime', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT / "python")})


@pytest.mark.parametrize(
    ("action", "given", "said"),
    [
        ("probability", [float("nan")], "expected 1 number from -1 to 1"),
        ("probability", None, "expected 1 number from -1 to 1"),
        ("probability", [0.1, 0.2], "expected 1 number from -1 to 1"),
        ({"target": ("1ms", "50ms"), "limit": ("10p", "100p")}, [0.5], "expected 2 numbers from -1 to 1"),
        ({"target": ("1ms", "50ms")}, [np.inf], "expected 1 number from -1 to 1"),
        ("probability", [10**400], "expected 1 number from -1 to 1"),
        (["pie", "codel"], 0.7, "expected a whole number from 0 to 1"),
        (["pie", "codel"], True, "expected a whole number from 0 to 1"),
        (["pie", "codel"], 2, "expected a whole number from 0 to 1"),
        (["pie", "codel"], -1, "expected a whole number from 0 to 1"),
        (["pie", "codel"], None, "expected a whole number from 0 to 1"),
    ],
)
def test_an_action_that_is_none_is_refused(action, given, said):
    env = Link(SCENARIO, action=action)
    env.reset(seed=1)
    with pytest.raises(BadInput, match=rf"action: .*: {said}"):
        env.step(given)


@pytest.mark.filterwarnings("error")
def test_a_number_beyond_the_range_is_taken_for_its_end_however_large_it_is():
    env = Link(SCENARIO, action={"probability": (0.1, 0.3)})
    env.reset(seed=1)
    for given, said in (([2], 0.3), ([1e40], 0.3), (np.array([-1e300]), 0.1), (np.float32(-3e38), 0.1)):
        assert env.step(given)[4]["probability"] == said


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("bad", [[[0.1], [float("nan")]], [[0.1], None], [[0.1], [0.1, 0.2]], [[0.1]], None, 0.1])
def test_a_bad_action_moves_no_link(bad, mode):
    vector, alone = (
        gymnasium.make_vec(NAME, num_envs=2, threads=2, scenario=SCENARIO, duration="200ms", autoreset_mode=mode)
        for _ in range(2)
    )
    good = np.full((2, 1), -0.5, np.float32)
    for each in (vector, alone):
        each.reset(seed=3)
        each.step(good)
    with pytest.raises(BadInput, match=r"actions?: .*: expected"):
        vector.step(bad)
    for _ in range(5):
        mine, other = vector.step(good), alone.step(good)
        assert all(np.array_equal(one, two) for one, two in zip(mine[:4], other[:4], strict=True))
        assert mine[4]["time_s"].tolist() == other[4]["time_s"].tolist()
    vector.close()
    alone.close()
