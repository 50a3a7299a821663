"""Policies that were learnt on a link and are disciplines. Needs the compiled engine."""

import importlib.util
import itertools
import json
import os
import pickle
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import polars as pl
import pytest

import aqmlab
import aqmlab.gym
from agents import KERNEL, NAME, SCENARIO
from aqmlab import cli, engine
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.gym import Link, Policy
from aqmlab.laws import brought, observed, policy
from aqmlab.live import kernel
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("nothing_allowed")


def layers(env: Link, seed: int = 1) -> list:
    """A network that answers with many probabilities, all small."""
    rng = np.random.default_rng(seed)
    size = env.observation_space.shape[0]
    return [
        (rng.normal(0, 0.5, (8, size)), rng.normal(0, 0.1, 8), "tanh"),
        (rng.normal(0, 0.02, (1, 8)), [-0.8], "none"),
    ]


@pytest.fixture
def saved(tmp_path) -> Path:
    env = Link(SCENARIO)
    return Policy.of(layers(env), env, name="learnt").save(tmp_path / "learnt.onnx")


def test_a_policy_does_as_a_law_what_it_does_in_its_environment(saved, tmp_path):
    """The same probabilities, to the bit, over a whole run; and the same packets were lost and marked."""
    (tmp_path / "link.toml").write_text(SCENARIO)
    keys = {"duration": "12s", "warmup": "0s", "cooldown": "0s", "record.interval": "10ms"}
    as_law = {"link.qdisc": {"kind": str(saved), "limit": "200p", "ecn": True}}
    found = aqmlab.run(tmp_path / "link.toml", seed=8, set={**keys, **as_law})
    env = Link(SCENARIO, duration="12s")
    learnt = Policy(saved.read_bytes())
    observation, _ = env.reset(seed=8)
    infos = []
    for _ in range(1200):
        observation, _, _, _, info = env.step(learnt.act(observation))
        infos.append(info)
    queue = pl.read_parquet(found.folder / "queue.parquet").filter(pl.col("direction") == 0)
    assert len(set(queue["probability"])) > 1000
    # A row of the table is written at the end of its interval, when the law has been asked again.
    assert queue["probability"].to_list()[:1199] == [info["probability"] for info in infos[1:]]
    forward = found.summary["forward"]
    assert (forward["dropped_packets"] > 50) and (forward["marked_packets"] > 20)
    assert forward["dropped_packets"] == queue["dropped_packets"].sum()
    (law,) = found.manifest["laws"]
    assert (law["name"], law["how"]) == ("learnt", "policy") and law["built_with"].startswith("onnxruntime ")
    assert list(found.folder.rglob("*learnt.onnx"))


def test_a_policy_is_compared_and_explained(saved, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("link.toml").write_text(SCENARIO.replace("duration", "duration", 1).replace('"12s"', '"4s"'))
    found = aqmlab.compare("link.toml", "learnt.onnx", "learnt ecn limit 100p", "fq_learnt", "pie")
    assert [column.name for column in found.columns] == ["learnt", "learnt ecn limit 100p", "fq_learnt", "pie"]
    assert cli.invoke(["explain", "learnt.onnx", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "learnt"


def test_a_policy_that_a_scenario_names_is_not_run_unasked(saved, tmp_path):
    (tmp_path / "link.toml").write_text(SCENARIO.replace('"pie"', '"./learnt.onnx"'))
    with pytest.raises(BadInput, match="names code, which is not run unasked: expected --allow-code"):
        aqmlab.run(tmp_path / "link.toml")
    brought.allow_all()
    result = aqmlab.run(tmp_path / "link.toml", set={"duration": "3s"}, out=tmp_path / "out")
    again = aqmlab.run(tmp_path / "out/scenario.toml")
    assert again.digest == result.digest


def test_a_policy_in_python_is_a_discipline(tmp_path):
    (tmp_path / "link.toml").write_text(SCENARIO.replace('"12s"', '"4s"'))
    env = gymnasium.make(NAME, scenario=SCENARIO)
    learnt = Policy.of(layers(env.unwrapped), env)
    for others in (["pie"], []):
        found = aqmlab.compare(tmp_path / "link.toml", learnt, *others, "pfifo")
        assert len(found.columns) == 2 + len(others)
        assert found.columns[0].result.manifest["laws"][0]["name"] == "policy"
    for qdisc in (learnt, {"kind": learnt, "limit": "100p"}):
        result = aqmlab.run(tmp_path / "link.toml", set={"link.qdisc": qdisc})
        assert result.manifest["laws"][0]["name"] == "policy"


def test_a_policy_is_pickled_as_what_its_file_has_in_it():
    env = Link(SCENARIO)
    found = Policy.of(layers(env), env, name="learnt")
    file, again = str(found), pickle.loads(pickle.dumps(found))
    seen = np.linspace(0, 1, env.observation_space.shape[0])
    assert again.about == found.about and (again.act(seen) == found.act(seen)).all()
    # Each has a file of its own, which lives as long as it does.
    assert str(again) != file and Path(str(again)).read_bytes() == found.content


def test_a_policy_is_opened_from_its_file(saved, tmp_path):
    found = Policy.load(saved)
    assert found.content == saved.read_bytes() and found.about == Policy.load(str(saved)).about
    assert aqmlab.run(SCENARIO, set={"duration": "3s", "link.qdisc": found}).manifest["laws"][0]["name"] == "learnt"
    (tmp_path / "other.onnx").write_bytes(b"no policy")
    for path, said in (
        (None, "path: None: expected the path of a file whose name ends in .onnx"),
        (tmp_path / "none.onnx", "none.onnx: no such file; expected a policy in ONNX"),
        (tmp_path / "other.onnx", "other.onnx: .*; expected a network that onnxruntime reads"),
    ):
        with pytest.raises(BadInput, match=said):
            Policy.load(path)


def test_a_policy_acts_for_one_link_or_several():
    env = Link(SCENARIO)
    learnt = Policy.of(layers(env), env)
    seen = np.random.default_rng(1).uniform(0, 1, (3, 24)).astype(np.float32)
    found = learnt.act(seen)
    assert found.shape == (3, 1) and np.abs(found).max() <= 1
    assert found.tolist() == [learnt.act(row).tolist() for row in seen]
    assert learnt.act(np.zeros(24)).shape == env.action_space.shape
    for bad in (
        np.zeros(23),
        np.zeros((2, 23)),
        np.zeros((1, 1, 24)),
        0.5,
        None,
        "x",
        [[0.0], [0.0, 1.0]],
        np.full(24, 1e300),
    ):
        with pytest.raises(BadInput, match=r"observation: .*: expected"):
            learnt.act(bad)
    for odd in (np.nan, np.inf, -np.inf):
        rows = np.zeros((2, 24))
        rows[1, 3] = odd
        for bad in (rows, rows[1]):
            with pytest.raises(BadInput, match=f"observation: {odd}: expected numbers that are finite"):
                learnt.act(bad)


def test_the_network_in_the_file_is_the_layers():
    env = Link(SCENARIO)
    made = layers(env)
    learnt = Policy.of(made, env)
    rng = np.random.default_rng(3)
    for _ in range(20):
        observation = rng.uniform(0, 1, env.observation_space.shape).astype(np.float32)
        (first, bias, _), (second, last, _) = made
        expected = second @ np.tanh(first @ observation + bias) + last
        assert learnt.act(observation) == pytest.approx(np.clip(expected, -1, 1), abs=1e-5)


def test_a_policy_in_a_queue_answers_as_it_does_for_an_observation(saved):
    """To the last bit, though its memory is bound to the network's."""
    learnt = Policy.load(saved)
    asked = [learnt._network.asked() for _ in range(2)]
    rng, eyes = np.random.default_rng(1), observed.Eyes(0.01, learnt.about.observe, learnt.about.windows)
    for step in range(50):
        counts = (*(int(number) for number in rng.integers(0, 10_000, 9)), 20_000_000, float(rng.uniform()))
        eyes.look(observed.Seen(*counts))
        expected = learnt.about.action.value(learnt._network.answer(eyes.seen()))
        assert asked[0](counts) == expected and (step or asked[1](counts) == expected)
    assert asked[1](counts) != expected, "each queue has eyes of its own"


WRAPPERS = {
    "RescaleAction": lambda env: gymnasium.wrappers.RescaleAction(env, 0.0, 1.0),
    "RescaleObservation": lambda env: gymnasium.wrappers.RescaleObservation(env, -1.0, 1.0),
    "NormalizeObservation": gymnasium.wrappers.NormalizeObservation,
    "FrameStackObservation": lambda env: gymnasium.wrappers.FrameStackObservation(env, 2),
    "MaxAndSkipObservation": gymnasium.wrappers.MaxAndSkipObservation,
    "StickyAction": lambda env: gymnasium.wrappers.StickyAction(env, 0.5),
}


@pytest.mark.filterwarnings("ignore:.*precision lowered by casting to float32")
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_policy_that_learnt_behind_a_wrapper_is_not_saved_without_it(name):
    env = Link(SCENARIO)
    wrapped = gymnasium.wrappers.TimeLimit(WRAPPERS[name](env), 10)
    with pytest.raises(
        BadInput, match=f"^policy: {name} may change what the agent sees or does, and no law has it; exp"
    ):
        Policy.of(layers(env), wrapped)
    # Rewards are nothing of a policy, and its answers are cut to their range anyway.
    harmless = gymnasium.wrappers.ClipAction(
        gymnasium.wrappers.NormalizeReward(gymnasium.make(NAME, scenario=SCENARIO))
    )
    Policy.of(layers(env), harmless)


class Several:
    """Some environments as stable-baselines3 has them, bare or wrapped."""

    def __init__(self, env):
        self.envs = [env]
        self.observation_space, self.action_space = env.observation_space, env.action_space


class VecMonitor:
    """Changes nothing that is seen or done."""

    def __init__(self, venv):
        self.venv = venv
        self.observation_space, self.action_space = venv.observation_space, venv.action_space


class VecNormalize(VecMonitor):
    def __init__(self, venv, norm_obs=True):
        super().__init__(venv)
        self.norm_obs = norm_obs


class VecFrameStack(VecMonitor):
    def __init__(self, venv):
        super().__init__(venv)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,), np.float32)


class Model(list):
    """Layers that were learnt in some environments; of a model that was opened from its file there are none."""

    def __init__(self, layers, several=None):
        super().__init__(layers)
        self.several = several

    def get_env(self):
        return self.several


def test_a_model_that_has_normalised_observations_is_not_saved():
    env = Link(SCENARIO)
    for several in (VecNormalize(Several(env)), VecMonitor(VecNormalize(VecMonitor(Several(env))))):
        with pytest.raises(BadInput, match=r"^policy: VecNormalize may change what the agent sees or does"):
            Policy.of(Model(layers(env), several), env)
    # Rewards alone are nothing of a policy.
    Policy.of(Model(layers(env), VecNormalize(VecMonitor(Several(env)), norm_obs=False)), env)


@pytest.mark.parametrize(
    ("name", "wrapped"),
    [
        ("VecFrameStack", lambda env: VecMonitor(VecFrameStack(Several(env)))),
        (
            "StickyAction",
            lambda env: VecMonitor(Several(gymnasium.wrappers.TimeLimit(WRAPPERS["StickyAction"](env), 9))),
        ),
        ("FrameStackObservation", lambda env: Several(WRAPPERS["FrameStackObservation"](env))),
    ],
)
def test_a_policy_that_learnt_behind_a_wrapper_is_not_saved_by_the_bare_link_either(name, wrapped):
    env = Link(SCENARIO)
    with pytest.raises(
        BadInput, match=f"^policy: {name} may change what the agent sees or does, and no law has it; exp"
    ):
        Policy.of(Model(layers(env), wrapped(env)), env)
    for several in (None, VecMonitor(Several(gymnasium.wrappers.TimeLimit(env, 9)))):
        Policy.of(Model(layers(env), several), env)


class FrameSkip(gymnasium.Wrapper):
    def step(self, action):
        self.env.step(action)
        return self.env.step(action)


class FromAnywhere(gymnasium.Wrapper):
    def reset(self, **given):
        return self.env.observation_space.sample(), {}


class HalfAction(gymnasium.wrappers.ClipAction):
    def action(self, action):
        return super().action(action) / 2


class Penalty(gymnasium.RewardWrapper):
    def reward(self, reward):
        return -reward


class Monitor(FrameSkip):
    """Goes by its name, which is that of a class of stable-baselines3."""


class Sticky(Link):
    def step(self, action):
        return super().step([0.5])


def test_a_wrapper_of_ones_own_is_refused_unless_it_leaves_steps_alone():
    env = Link(SCENARIO)
    for wrapped in (FrameSkip(env), FromAnywhere(env), HalfAction(env), Penalty(FrameSkip(env)), Sticky(SCENARIO)):
        name = "FrameSkip" if isinstance(wrapped, Penalty) else type(wrapped).__name__
        for model, given in ((layers(env), wrapped), (Model(layers(env), Several(wrapped)), env)):
            with pytest.raises(BadInput, match=f"^policy: {name} may change what the agent sees or does, and no law"):
                Policy.of(model, given)
    Policy.of(layers(env), Penalty(Monitor(gymnasium.wrappers.RecordEpisodeStatistics(env))))


class Tensor:
    def __init__(self, numbers):
        self.numbers = np.asarray(numbers, np.float32)

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.numbers


class Linear:
    def __init__(self, weights, bias):
        self.weight, self.bias = Tensor(weights), None if bias is None else Tensor(bias)


class Tanh:
    pass


class ReLU:
    pass


class FlattenExtractor:
    pass


class Scaler:
    pass


class Agent:
    """An agent as stable-baselines3 has them, which answers `off` more than its layers do."""

    def __init__(self, made, off=0.0, follow=(), **around):
        (self.first, bias, _), (self.second, last, _) = made
        self.bias = np.zeros(len(self.first)) if bias is None else bias
        self.last = np.asarray(last) + off
        layers = SimpleNamespace(policy_net=[Linear(self.first, bias), Tanh(), *follow])
        around = {"features_extractor": FlattenExtractor(), "squash_output": False, **around}
        self.policy = SimpleNamespace(mlp_extractor=layers, action_net=Linear(self.second, last), **around)

    def predict(self, observation, deterministic):
        assert deterministic
        return self.second @ np.tanh(self.first @ observation + self.bias) + self.last, None


def test_a_model_is_saved_if_its_answer_is_that_of_its_layers():
    env = Link(SCENARIO)
    (first, bias, _), end = made = layers(env)
    state = env.observation_space.np_random.bit_generator.state
    seen = np.linspace(0, 1, 24, dtype=np.float32)
    for model, same in ((Agent(made), made), (Agent([(first, None, ""), end]), [(first, 0 * bias, "tanh"), end])):
        assert Policy.of(model, env).act(seen) == Policy.of(same, env).act(seen)
    assert env.observation_space.np_random.bit_generator.state == state
    for given, said in (
        ({"features_extractor": Scaler()}, "features are made by Scaler, which no law has; expected FlattenExtractor"),
        ({"pi_features_extractor": Scaler()}, "features are made by Scaler, which no law has"),
        ({"squash_output": True}, "its answer is squashed"),
        ({"follow": [ReLU()]}, "ReLU follows tanh at once; expected a Linear between them"),
        ({"off": 0.001}, "Agent: answers -0.[0-9]+ where its layers answer -0.[0-9]+; expected a model that answers"),
        ({"off": np.nan}, "Agent: answers nan where its layers answer"),
        ({"off": np.zeros(2)}, "Agent: answers -0.[0-9]+, -0.[0-9]+ where its layers answer"),
    ):
        with pytest.raises(BadInput, match=f"^policy: {said}"):
            Policy.of(Agent(made, **given), env)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"observe": ("wait", "exchanges")}, "policy: no law sees exchanges; expected of wait"),
        ({"action": ["pie", "codel"]}, "policy: a law answers with a probability"),
        ({"action": {"target": ("1ms", "2ms")}}, "policy: a law answers with a probability"),
        ({"windows": 2}, "policy: takes 24 numbers; expected the 12 of the environment's observation"),
    ],
)
def test_what_no_law_can_see_or_do_is_not_saved(arguments, said):
    made = layers(Link(SCENARIO))
    with pytest.raises(BadInput, match=said):
        Policy.of(made, Link(SCENARIO, **arguments))


def test_what_is_no_policy_is_refused(saved, tmp_path):
    env = Link(SCENARIO)
    for model, said in (
        (object(), "policy: object: expected a PPO or A2C"),
        ([], "no single number comes out"),
        ([1], "policy: .*: expected a PPO or A2C"),
        ("x", "policy: 'x': expected a PPO or A2C"),
        ([([[1.0], [1.0, 2.0]], [0.0], "none")], "expected a PPO or A2C"),
        ([(np.zeros((1, 24)), [0.0], ["none"])], "policy: a layer"),
        ([(np.zeros((1, 24)), [0.0, 1.0], "none")], "policy: a layer"),
        ([(np.full((1, 24), np.nan), [0.0], "none")], "weights that are no numbers"),
    ):
        with pytest.raises(BadInput, match=said):
            Policy.of(model, env)
    with pytest.raises(BadInput, match="expected small letters"):
        Policy.of(layers(env), env, name="My policy")
    with pytest.raises(BadInput, match=r"expected a name that ends in \.onnx"):
        Policy.of(layers(env), env).save(tmp_path / "policy.pt")
    with pytest.raises(BadInput, match=r"nodir is no folder; expected a place that exists"):
        Policy.of(layers(env), env).save(tmp_path / "nodir/policy.onnx")
    content = saved.read_bytes()
    for number, (bad, said) in enumerate(
        (
            (b"nothing", "expected a network that onnxruntime reads"),
            (content.replace(b'"version": 1', b'"version": 2'), "version 2 of a policy; expected 1"),
            (content.replace(b'"aqmlab', b'"xqmlab').replace(b"\x06aqmlab\x12", b"\x06xqmlab\x12"), "no metadata"),
            (content.replace(b'"scale": "square"', b'"scale": "squire"'), "'squire': expected a scale"),
            (content.replace(b'"windows": 4', b'"windows": 5'), "expected one input of shape [1, 30]"),
            (content.replace(b'"wait"', b'"waif"'), "observe: 'waif': expected of wait"),
            (content.replace(b'"step_ns"', b'"step_xs"'), "cannot be read"),
        )
    ):
        path = tmp_path / f"bad{number}.onnx"
        path.write_bytes(bad)
        with pytest.raises(BadInput) as refused:
            brought.of_file(path)
        assert said in str(refused.value) and "\n" not in str(refused.value), number


def test_a_policy_that_fails_names_itself(saved, monkeypatch):
    class Broken(policy.Network):
        def _bound(self, row):
            raise KeyError("weights")

    monkeypatch.setattr(policy, "Network", Broken)
    brought.of_file(saved)
    with pytest.raises(Misbehaved, match=r"the law learnt failed: KeyError: 'weights' \(in tick, at 0.000000 s\)"):
        tree = tomllib.loads(SCENARIO)
        tree["link"]["qdisc"] = {"kind": str(saved)}
        brought.allow(saved)
        from aqmlab.scenario import read

        resolved = read(tree).resolve()
        engine.simulate(resolved, saved.parent)


@pytest.mark.skipif(not os.access(KERNEL, os.X_OK), reason="left out: no kernel of virtual time (aqmlab kernel build)")
def test_a_policy_decides_between_real_stacks_in_virtual_time(saved, tmp_path, monkeypatch):
    monkeypatch.setenv(kernel.VARIABLE, KERNEL)
    (tmp_path / "link.toml").write_text(SCENARIO)
    traffic = [{"kind": "cbr", "rate": "10mbit", "packet": "1000b"}]
    keys = {"duration": "3s", "warmup": "0s", "traffic": traffic, "link.qdisc.kind": str(saved)}
    found = aqmlab.live(tmp_path / "link.toml", set=keys, virtual=True)
    assert found.manifest["laws"][0]["how"] == "policy"
    queue = pl.read_parquet(found.folder / "queue.parquet").filter(pl.col("direction") == 0)
    # It is asked every 10 ms, and a row of the table is written every 100 ms.
    assert len(set(queue["probability"])) > 5
    forward = found.summary["forward"]
    # Half of what the link can send, of which no queue comes: all that is lost is lost by the policy.
    assert forward["offered_packets"] > 3000
    assert 0 < forward["dropped_by_cause"]["early"] == forward["dropped_packets"]


def test_the_guide_can_be_followed(tmp_path, monkeypatch, capsys):
    """Training as the guide has it, with fewer steps where there is stable-baselines3, else with what it has saved."""
    monkeypatch.chdir(tmp_path)
    guide = (ROOT / "docs/guide/agents.md").read_text()
    (written,) = re.findall(r"^```python\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    exec(compile(written, "look.py", "exec"), {})
    assert re.fullmatch(r"(0\.\d\d|1\.00) of the link in use, \d+\.\d ms of wait\n", capsys.readouterr().out)
    blocks = re.findall(r"^```sh\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    (train,) = (words for words in lines if words[0] == "python")
    if importlib.util.find_spec("stable_baselines3") is None:
        Path("policy.onnx").write_bytes((ROOT / "examples/agent/policy.onnx").read_bytes())
    else:
        program = [sys.executable, str(ROOT / train[1]), *train[2:], "--steps", "4000"]
        subprocess.run(program, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    keys = ("duration=4s", "warmup=1s", "link.rate=5mbit", 'traffic=[{ kind = "bulk", flows = 8 }]')
    short = [word for key in keys for word in ("--set", key)]
    shown = [words[1:] for words in lines if words[0] == "aqmlab"]
    assert [words[0] for words in shown] == ["check", "new", "compare", "run"]
    more = {"check": ["--json"], "new": [], "compare": short, "run": short}
    said = {}
    for words in shown:
        assert cli.invoke([*(word for word in words if word != "--report"), *more[words[0]]]) == 0, words
        said[words[0]] = capsys.readouterr().out
    checked = json.loads(said["check"])
    assert (checked["name"], checked["how"], checked["problem"]) == ("learnt", "policy", "")


def test_the_guide_has_every_name():
    text = (ROOT / "docs/guide/agents.md").read_text()
    names = itertools.chain(observed.QUANTITIES, aqmlab.gym.link.OF_HOSTS, aqmlab.gym.MEASURES)
    tables = text[text.index("### What the agent sees") :]
    rows = re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE)
    assert sorted(rows) == sorted(names)
