"""Policies that were learnt, as files of ONNX that are disciplines."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from aqmlab import arguments, files
from aqmlab.errors import BadInput, CannotRun
from aqmlab.gym.actions import Probability
from aqmlab.gym.link import Link
from aqmlab.laws import observed, policy
from aqmlab.laws.policy import About, Network
from aqmlab.scratch import Folder

Layer = tuple[npt.ArrayLike, npt.ArrayLike, str]
"""Weights (a row for each number that comes out), biases, and what follows: `tanh`, `relu` or `none`."""

ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu", "none": None}
"""By our names, those of ONNX."""

OPSET, IR = 17, 9
"""Of ONNX: read by every onnxruntime since 1.13."""

NAME = re.compile("[a-z_][a-z0-9_]*")

HARMLESS = (
    gymnasium.Wrapper,
    gymnasium.RewardWrapper,
    gymnasium.wrappers.Autoreset,
    gymnasium.wrappers.NormalizeReward,
    gymnasium.wrappers.OrderEnforcing,
    gymnasium.wrappers.PassiveEnvChecker,
    gymnasium.wrappers.RecordEpisodeStatistics,
    gymnasium.wrappers.TimeLimit,
)
"""Classes of wrappers whose own `step` and `reset` let an agent see and do what it would without them."""

HARMLESS_OF_SB3 = ("Monitor", "VecMonitor", "VecCheckNan", "VecVideoRecorder")
"""The same of stable-baselines3, by name."""

MOST_APART = 1e-4
"""By so much the answers of a model and of its layers may differ, which are from -1 to 1: sums are rounded."""


class Policy:
    """A policy in memory: what its file has in it.

    `Policy.of` makes it, `Policy.load` opens its file. `act` answers for an observation of its environment. `save`
    writes the file, which is a discipline wherever the file of a law is. In Python a policy itself is one too:
    `aqmlab.compare("web-pi.toml", policy, "pie")`, `aqmlab.run("web-pi.toml", set={"link.qdisc": policy})`.
    """

    def __init__(self, content: bytes, where: str = "policy") -> None:
        if not isinstance(content, bytes):
            raise BadInput(f"{where}: {content!r}: expected what a policy's file has in it, which Policy.load reads")
        self.content, self._where = content, where
        self._network = Network(content, where)
        self._folder: Folder | None = None

    @classmethod
    def of(
        cls, model: Any, env: Any, *, name: str = "policy", doc: str = "A policy that an agent has learnt."
    ) -> "Policy":
        """The policy of a model that has learnt in `env`, a `Link` or what wraps one.

        `model` is an agent of stable-baselines3 whose policy is a network of layers (PPO, A2C), which then does what is
        most likely, or a list of `Layer`. `name` is what the law is called. Raises `BadInput` if a law could not see
        what the agent sees or do what it does, because a wrapper changes it or otherwise, and where the model is none
        of these. Wrappers are those of `env` and those that the model says it has learnt in.
        """
        link = getattr(env, "unwrapped", env)
        if not isinstance(link, Link):
            raise BadInput(f"policy: {type(link).__name__}: expected the environment that it has learnt in, a Link")
        _check_between(model, env)
        if not isinstance(link.action, Probability):
            raise BadInput("policy: a law answers with a probability; expected an environment with that action")
        unseen = [each for each in link.observe if each not in observed.QUANTITIES]
        if unseen:
            raise BadInput(f"policy: no law sees {', '.join(unseen)}; expected of {', '.join(observed.QUANTITIES)}")
        if not isinstance(name, str) or NAME.fullmatch(name) is None:
            raise BadInput(f"policy: name: {name!r}: expected small letters, digits and _")
        if not isinstance(doc, str):
            raise BadInput(f"policy: doc: {doc!r}: expected a text that says what the policy is")
        about = About(name, " ".join(doc.split()), link.step_ns, link.observe, link.windows, link.action.range)
        about.check("policy")
        made = cls(_content(_layers(model), about))
        made._check_answers(model)
        return made

    @classmethod
    def load(cls, path: str | Path) -> "Policy":
        """The policy of a file that `save` has written; raises `BadInput` if it is none."""
        place = arguments.path(path, "path", f"the path of a file whose name ends in {policy.ENDING}")
        return cls(files.content(place, files.POLICY), str(place))

    @property
    def about(self) -> About:
        """What the file says of the policy."""
        return self._network.about

    def act(self, observation: Any) -> npt.NDArray[np.float32]:
        """The action for an observation, as `Link.step` takes it: from -1 to 1; of several rows one each."""
        size = self.about.size
        try:
            with np.errstate(over="ignore"):
                seen = np.asarray(observation, np.float32)
        except (TypeError, ValueError):
            raise BadInput(f"observation: {observation!r}: expected {size} numbers, or rows of so many") from None
        if seen.ndim not in (1, 2) or seen.shape[-1] != size:
            raise BadInput(f"observation: shape {seen.shape}: expected ({size},), or rows of so many")
        if not (finite := np.isfinite(seen)).all():
            raise BadInput(f"observation: {seen[~finite][0]}: expected numbers that are finite")
        answers = [self._network.answer(row) for row in seen.reshape(-1, size)]
        return np.array(answers, np.float32).reshape(*seen.shape[:-1], 1).clip(-1.0, 1.0)

    def _check_answers(self, model: Any) -> None:
        """Refuses a model that answers otherwise than its layers do, as far as it can be asked."""
        predict = getattr(model, "predict", None)
        if predict is None:
            return
        for seen in np.random.default_rng(1).random((16, self.about.size), np.float32):
            said, ours = np.asarray(predict(seen, deterministic=True)[0], float).reshape(-1), float(self.act(seen)[0])
            if said.shape != (1,) or not abs(float(said[0].clip(-1.0, 1.0)) - ours) <= MOST_APART:
                theirs = ", ".join(f"{number:.6g}" for number in said)
                raise BadInput(
                    f"policy: {type(model).__name__}: answers {theirs} where its layers answer {ours:.6g}; expected a "
                    f"model that answers what its layers do"
                )

    def save(self, path: str | Path) -> Path:
        """Writes the policy's file, whose name ends in `.onnx`."""
        place = arguments.path(path, "path", f"the path of a file whose name ends in {policy.ENDING}")
        if place.suffix != policy.ENDING:
            raise BadInput(f"{place}: expected a name that ends in {policy.ENDING}")
        files.check_folder_of(place)
        place.write_bytes(self.content)
        return place

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what its file has in it: the other process makes a file of its own where it needs one."""
        return type(self), (self.content, self._where)

    def __fspath__(self) -> str:
        """As a path, which a value of `set` may be."""
        return str(self)

    def __str__(self) -> str:
        """The name of a file that has the policy, for as long as this object is there: what `compare` takes."""
        if self._folder is None:
            self._folder = Folder("policy")
            self.save(self._folder.path / f"{self.about.name}.onnx")
        return str(self._folder.path / f"{self.about.name}.onnx")


def save_policy(path: str | Path, model: Any, env: Any, *, name: str = "policy", doc: str = "") -> Policy:
    """Writes the policy of a model that has learnt in `env` to a file, as `Policy.of` and `Policy.save` do."""
    made = Policy.of(model, env, name=name, **({"doc": doc} if doc else {}))
    made.save(path)
    return made


def _check_between(model: Any, env: Any) -> None:
    """Refuses what stands between an agent and its link, and will not stand between the policy and a queue."""
    found = []
    # What it has learnt in, as stable-baselines3 has it: wrappers of several environments, and these.
    several: Any = getattr(model, "get_env", lambda: None)()
    while hasattr(several, "venv"):
        found += [several] if _changes(several, several.venv) else []
        several = several.venv
    for each in (env, *getattr(several, "envs", ())):
        while isinstance(each, gymnasium.Wrapper):
            found += [each] if _changes(each, each.env) else []
            each = each.env
        found += [each] if isinstance(each, Link) and not _is_harmless(each) else []
    if found:
        raise BadInput(
            f"policy: {type(found[0]).__name__} may change what the agent sees or does, and no law has it; expected a "
            f"model that has learnt without it"
        )


def _changes(wrapper: Any, within: Any) -> bool:
    """Whether a wrapper may change what is seen or done in the environment within it."""
    classes = [each.__name__ for each in type(wrapper).__mro__]
    if "VecNormalize" in classes:  # or rewards alone
        return bool(getattr(wrapper, "norm_obs", True))
    if type(wrapper) is gymnasium.wrappers.ClipAction:  # an action is cut to its range anyway
        return False
    spaces = [(each.observation_space, each.action_space) for each in (wrapper, within)]
    return spaces[0] != spaces[1] or not _is_harmless(wrapper)


def _is_harmless(env: Any) -> bool:
    """Whether `step` and `reset` are those of a class that is known to leave alone what is seen and done."""
    if type(env).__name__ in HARMLESS_OF_SB3:
        return True
    having = [next((each for each in type(env).__mro__ if name in vars(each)), None) for name in ("step", "reset")]
    return all(each in (*HARMLESS, Link) for each in having)


def _layers(model: Any) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], str]]:
    expected = "expected a PPO or A2C of stable-baselines3 with an MlpPolicy, or layers of weights and biases"
    if isinstance(model, Sequence):
        try:
            with np.errstate(over="ignore"):  # infinite weights are refused below
                given = [(np.asarray(w, np.float32), np.asarray(b, np.float32), kind) for w, b, kind in model]
        except (TypeError, ValueError):
            raise BadInput(f"policy: {model!r}: {expected}") from None
    else:
        try:
            modules = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
        except AttributeError:
            raise BadInput(f"policy: {type(model).__name__}: {expected}") from None
        _check_around(model.policy)
        given = []
        for module in modules:
            kind = type(module).__name__
            if kind == "Linear":
                weights = module.weight.detach().cpu().numpy()
                has_bias = module.bias is not None
                bias = module.bias.detach().cpu().numpy() if has_bias else np.zeros(len(weights), np.float32)
                given.append((weights, bias, "none"))
            elif kind.lower() in ACTIVATIONS and given and given[-1][2] != "none":
                raise BadInput(f"policy: {kind} follows {given[-1][2]} at once; expected a Linear between them")
            elif kind.lower() in ACTIVATIONS and given:
                given[-1] = (*given[-1][:2], kind.lower())
            else:
                raise BadInput(f"policy: a layer {kind}; expected Linear, Tanh and ReLU")
    for weights, bias, kind in given:
        if weights.ndim != 2 or bias.shape != weights.shape[:1] or kind not in list(ACTIVATIONS):
            raise BadInput(f"policy: a layer {weights.shape}, {bias.shape}, {kind!r}; {expected}")
        if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
            raise BadInput("policy: weights that are no numbers; expected a model that has learnt")
    if not given or given[-1][0].shape[0] != 1:
        raise BadInput(f"policy: no single number comes out; {expected}")
    return given


def _check_around(policy: Any) -> None:
    """Refuses what a policy of stable-baselines3 does before its layers or after them."""
    for which in ("features_extractor", "pi_features_extractor"):
        kind = type(getattr(policy, which, None)).__name__
        if kind not in ("NoneType", "FlattenExtractor"):
            raise BadInput(f"policy: features are made by {kind}, which no law has; expected FlattenExtractor")
    if getattr(policy, "squash_output", False):
        raise BadInput("policy: its answer is squashed (squash_output), which no law does; expected one that is not")


def _content(layers: Sequence[tuple[Any, Any, str]], about: About) -> bytes:
    """The file: layer after layer of y = W x + b."""
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise CannotRun(f"onnx is not installed; expected {policy.EXTRA}, to write policies") from None

    nodes, weights, last = [], [], policy.INPUT
    for number, (weight, bias, kind) in enumerate(layers):
        names = [f"weight{number}", f"bias{number}"]
        weights += [numpy_helper.from_array(each, name) for each, name in zip((weight, bias), names, strict=True)]
        sums, activation = f"sum{number}", ACTIVATIONS[kind]
        is_last = number == len(layers) - 1
        nodes.append(helper.make_node("Gemm", [last, *names], [sums], transB=1))
        last = sums
        if activation is not None:
            last = f"layer{number}"
            nodes.append(helper.make_node(activation, [sums], [last]))
        if is_last:
            nodes.append(helper.make_node("Identity", [last], [policy.OUTPUT]))
    came, said = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size])
        for name, size in ((policy.INPUT, about.size), (policy.OUTPUT, 1))
    )
    if layers[0][0].shape[1] != about.size:
        raise BadInput(
            f"policy: takes {layers[0][0].shape[1]} numbers; expected the {about.size} of the environment's observation"
        )
    graph = helper.make_graph(nodes, about.name, [came], [said], weights)
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="aqmlab"
    )
    helper.set_model_props(made, {policy.KEY: about.as_text()})
    content: bytes = made.SerializeToString(deterministic=True)
    return content
