"""The environment: a link whose discipline an agent steers, a step of simulated time after the other."""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces

from aqmlab import arguments, links, toml_text, units
from aqmlab.engine import Batch, Passed, Resolved, Stepped
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.gym import actions, measures
from aqmlab.gym.actions import ActionLike
from aqmlab.gym.measures import RewardLike
from aqmlab.laws import brought, interpreted, interrupted, observed
from aqmlab.laws.observed import Eyes, Seen
from aqmlab.scenario import ScenarioLike, Source
from aqmlab.scenario import read as read_scenario

QUEUES = ("qdisc", "reverse_qdisc")

DEFAULT_REWARD = {"utilisation": 1.0, "wait_ms": -0.01, "losses": -1.0}
"""A full link is worth as much as 100 ms of wait."""

HALF = 20.0
"""Exchanges under way, or connections, that are seen as one half."""

OF_HOSTS: Mapping[str, int] = {"connections": 0, "exchanges": 1}
"""What no law can see, by its place in `Hosts`: n connections that are not over, or n exchanges and transfers under
way, as n / (n + 20)."""

OF_EPISODES: Mapping[str, str] = {
    "duration": "the argument duration",
    "warmup": "the argument warmup",
    "cooldown": "no such key, as an episode has none",
    "seed": "that of reset",
}
"""Keys of scenarios that an episode has in its own way."""

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")

_SEEDS = 2**31
LARGEST_SEED = 2**63 - 1
"""That a scenario can have."""


class Prepared(NamedTuple):
    """A scenario whose discipline can be steered."""

    text: str
    origin: str
    laws: list[str] | None
    """Laws to choose among, each as the discipline of a scenario of this link."""
    whole: actions.Whole
    """Parameters of the scenario's own discipline that are whole numbers."""
    calls_python: bool
    """Whether the engine calls a law or a policy in the interpreter."""


class Link(gymnasium.Env[Any, Any]):
    """A link of a scenario whose discipline an agent steers: `gymnasium.make("aqmlab/Link-v0", scenario=...)`.

    - `scenario` is a path, the text of a file, its tables, or several of these, of which each episode draws one.
    - `set` changes keys of the scenarios by their dotted names.
    - `step` is the control interval, `warmup` what is simulated before an episode, `duration` how long one is. The last
      step is a whole one too.
    - `observe` names what is seen of each step, `windows` how many steps back are seen.
    - `action` is "probability", parameters with ranges, or a list of laws to choose among.
    - `reward` is a measure, weights of measures, or a function of all measures of a step.
    - `link` and `way` ("forward" or "reverse") say which discipline is steered; by default the first link's, forward.
    - `allow_code=True` lets the scenarios name laws in files, whose code then runs in this process.

    Observations are vectors of numbers from 0 to 1, the newest step first. An episode ends by truncation. The seed of
    `reset` is that of the scenario; without one, seeds follow from the last that was given. The guide has all names
    (docs/guide/agents.md). Raises `BadInput` if an argument or the scenario is wrong.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    @brought.scoped
    def __init__(
        self,
        scenario: ScenarioLike | Sequence[ScenarioLike],
        *,
        set: Mapping[str, Any] | None = None,
        step: str = "10ms",
        warmup: str = "0s",
        duration: str = "20s",
        observe: Sequence[str] = observed.DEFAULT,
        windows: int = observed.WINDOWS,
        action: ActionLike = "probability",
        reward: RewardLike | None = None,
        link: str | None = None,
        way: str = "forward",
        allow_code: bool = False,
    ) -> None:
        if way not in links.WAYS:
            raise BadInput(f"way: {way!r}: expected forward or reverse")
        self._arguments: dict[str, Any] = {
            "set": set, "step": step, "warmup": warmup, "duration": duration, "observe": observe, "windows": windows,
            "action": action, "reward": reward, "link": link, "way": way, "allow_code": allow_code,
        }  # fmt: skip
        self._scenario = scenario
        self.way = links.WAYS.index(way)
        self.step_ns, self.warmup_ns, self.duration_ns = (
            round(units.seconds(text, key) * 1e9)
            for key, text in (("step", step), ("warmup", warmup), ("duration", duration))
        )
        if self.step_ns < 1000:
            raise BadInput(f"step: {step}: expected a microsecond or more")
        if self.duration_ns < self.step_ns:
            raise BadInput(f"duration: {duration}: expected a step or more, {step}")
        names = _names(observe)
        observed.check_names(names, [*observed.QUANTITIES, *OF_HOSTS], "observe")
        observed.check_windows(windows, "windows")
        self.duration_ns = -(-self.duration_ns // self.step_ns) * self.step_ns
        self.observe, self.windows = names, windows
        self.step_s = self.step_ns * 1e-9
        self._eyes = Eyes(self.step_s, [name for name in names if name in observed.QUANTITIES], windows)
        self._of_hosts = [OF_HOSTS[name] for name in names if name in OF_HOSTS]
        self.reward = measures.reward(DEFAULT_REWARD if reward is None else reward)

        changes = arguments.changes(set, "set")
        for key, expected in OF_EPISODES.items():
            if key in changes:
                raise BadInput(f"set: {key}: an episode does not take the scenario's; expected {expected}")
        sources = _sources(scenario, changes)
        self.link = link if link is not None else next(iter(links.of(sources[0].tree)))
        self.action = actions.read(action, self.link, self.way)
        if self.action.laws is not None:
            self._check_steered(changes, sources[0].tree)
        brought.allow_set(changes)
        self._scenarios = [self._prepared(source) for source in sources]
        self._calls_python = any(each.calls_python for each in self._scenarios)

        size = windows * (len(names) - len(self._of_hosts)) + len(self._of_hosts)
        self.observation_space = spaces.Box(0.0, 1.0, (size,), np.float32)
        self.action_space = self.action.space
        self._run: Stepped | None = None
        self._end: Callable[[], object] = _nothing
        self._now_ns = self._end_ns = self._chosen = 0
        self._ahead: Passed | None = None
        for number in range(len(self._scenarios)):
            # What cannot be run or steered is said now.
            run = self._begun(number, 1)
            try:
                self._ask(self.action.check, run, self._scenarios[number].whole)
            except Misbehaved as error:
                raise interpreted.with_place(error) from None
            finally:
                self._end()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its arguments and where its random numbers are, unless an episode is under way."""
        if self._run is not None:
            raise BadInput("an environment whose episode is under way cannot be pickled; expected one after close")
        drawn = {"_np_random": self._np_random, "_np_random_seed": self._np_random_seed}
        return partial(type(self), self._scenario, **self._arguments), (), drawn

    def _check_steered(self, changes: Mapping[str, Any], tree: Mapping[str, Any]) -> None:
        """Refuses to set a parameter of the discipline in whose place the agent is: it would say nothing."""
        if self.link not in links.of(tree):
            return  # said with what links there are
        place = f"{links.key(tree, self.link)}.{QUEUES[self.way]}."
        for key in changes:
            name = key.removeprefix(place)
            if name != key and name not in actions.KEPT:
                raise BadInput(
                    f"set: {key}: the agent is in the place of that discipline; expected "
                    f"{', '.join(actions.KEPT)}, or an action that sets its parameters"
                )

    def _prepared(self, source: Source) -> Prepared:
        tree = source.tree
        if self.link not in links.of(tree):
            raise BadInput(f"link: {self.link!r}: expected one of {', '.join(links.of(tree))}, of {source.origin}")
        whole = f"{self.warmup_ns + self.duration_ns}ns"
        changed = source.with_changes({"duration": whole, "warmup": "0s", "cooldown": "0s"})
        resolved = changed.resolve()
        if resolved.loads:
            raise BadInput(
                f"{source.origin}: traffic: asks for a load; expected its users, which aqmlab calibrate finds"
            )
        found = read_scenario(resolved.toml)
        link = links.of(found.tree)[self.link]
        own = link[QUEUES[self.way]]
        if self.action.laws is None:
            return Prepared(resolved.toml, source.origin, None, actions.whole_numbers(own), _calls_python(resolved))
        place = f"{links.key(found.tree, self.link)}.{QUEUES[self.way]}"
        steered = found.with_changes({place: actions.steered(own)})
        laws = [_law(name, actions.before(link, law, source.origin)) for name, law in self.action.laws]
        calls_python = any(map(_calls_python, (resolved, *laws)))
        return Prepared(
            toml_text.dumps(steered.tree), source.origin, [law.toml for law in laws], frozenset(), calls_python
        )

    def _begun(self, number: int, seed: int) -> Stepped:
        text, origin, laws, whole, _ = self._scenarios[number]
        text = toml_text.dumps({**toml_text.loads(text, origin), "seed": seed})
        try:
            with interpreted.noted() as made:
                run = self._ask(Stepped, text, origin, self.link, self.way, laws)
        except Misbehaved as error:
            raise interpreted.with_place(error) from None
        # Whoever drops an environment within an episode ends it, too.
        self._end = ending = weakref.finalize(self, _ended, made, run)
        ending.atexit = False
        self.action.begin(whole)
        return run

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode, after the warm-up.

        `options` may say which `scenario` is run, by its number. The answer is what is seen and, in `info`, the time,
        the number and the seed of the scenario.
        """
        seed = None if seed is None else arguments.whole(seed, "seed", 0, LARGEST_SEED)
        if not isinstance(options, Mapping | None):
            raise BadInput(f"options: {options!r}: expected a table, as in {{'scenario': 0}}")
        asked = {**(options or {})}
        chosen = asked.pop("scenario", None)
        if asked:
            raise BadInput(f"options: {next(iter(asked))!r}: expected 'scenario', with its number")
        if chosen is not None:
            chosen = arguments.whole(chosen, "options: scenario", 0, len(self._scenarios) - 1)
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(_SEEDS))
        number = int(self.np_random.integers(len(self._scenarios)))
        number = number if chosen is None else chosen
        self.close()
        self._chosen, scenario_seed = number, drawn if seed is None else seed
        self._run = self._begun(number, scenario_seed)
        self._eyes.begin()
        self._ahead = None
        self._now_ns, self._end_ns = self.warmup_ns, self.warmup_ns + self.duration_ns
        # Of the warm-up the last whole steps are seen, and nothing of what is before them.
        steps = min(self.windows, self.warmup_ns // self.step_ns)
        passed = self._passed(self._run, self.warmup_ns - steps * self.step_ns)
        for left in range(steps - 1, -1, -1):
            passed = self._passed(self._run, self.warmup_ns - left * self.step_ns)
            self._eyes.look(Seen(*passed[0]))
        info = {"time_s": self._now_ns * 1e-9, "scenario": number, "seed": scenario_seed}
        return self._observation(passed), info

    def _ask(self, ask: Callable[Asked, Answer], *asked: Asked.args, **words: Asked.kwargs) -> Answer:
        """Asks the engine for something in which it may call laws; what each step asks for goes without this."""
        return interrupted.raised_at_end(ask, *asked, **words) if self._calls_python else ask(*asked, **words)

    def _passed(self, run: Stepped, until_ns: int) -> Passed:
        """Lets a run pass."""
        try:
            if self._calls_python:
                return interrupted.raised_at_end(run.advance, until_ns)
            return run.advance(until_ns)
        except Misbehaved as error:
            raise self._ended_by(error) from None
        except BaseException:
            # Where a law was to answer, the run is over; else it has passed, and nobody has seen what came of it.
            self.close()
            raise

    def _ended_by(self, error: Misbehaved) -> Misbehaved:
        """A law that misbehaves ends the episode."""
        self.close()
        return interpreted.with_place(error)

    def said(self, action: Any) -> Any:
        """What the agent says, for `begin`; raises `BadInput` where it is no action. Nothing is done yet."""
        if self._run is None:
            raise gymnasium.error.ResetNeeded("no episode is under way: expected reset before step")
        if self._now_ns >= self._end_ns:
            raise gymnasium.error.ResetNeeded("the episode is over: expected reset before step")
        return self.action.read(action)

    def begin(self, said: Any) -> tuple[Stepped, int]:
        """Does what the agent says. The answer is the run, and the instant until which it then is to pass.

        Whoever calls this lets it pass, and hands what was seen to `passed` before the next `step`.
        """
        assert self._run is not None, "`said` comes first"
        try:
            if self._calls_python:
                interrupted.raised_at_end(self.action.apply, self._run, said)
            else:
                self.action.apply(self._run, said)
        except Misbehaved as error:
            raise self._ended_by(error) from None
        except BadInput:
            raise
        except BaseException:
            self.close()
            raise
        self._now_ns += self.step_ns
        return self._run, self._now_ns

    def arriving(self, batch: Batch) -> Iterator[tuple[int, Passed]]:
        """What a batch answers that has this link among others of its arguments."""
        arriving = batch.passed()
        while (found := self._ask(next, arriving, None)) is not None:
            yield found

    def passed(self, passed: Passed) -> None:
        """Takes what was seen of a step that `begin` has begun."""
        self._ahead = passed

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Does what the agent says, and lets a step pass.

        The answer is what is seen, the reward, and whether the episode has ended: never by termination, at its
        duration by truncation. `info` has all measures of the step, `time_s` and `action`, what the agent said in
        words.
        """
        if self._ahead is None:
            self._ahead = self._passed(*self.begin(self.said(action)))
        passed, self._ahead = self._ahead, None
        counts, hosts, rates = passed
        seen = Seen(*counts)
        self._eyes.look(seen)
        found = measures.of(seen, hosts, rates, self.step_s)
        info = {**found, "time_s": self._now_ns * 1e-9, "scenario": self._chosen, "action": dict(self.action.values)}
        reward = measures.checked(self.reward(found))
        return self._observation(passed), reward, False, self._now_ns >= self._end_ns, info

    def _observation(self, passed: Passed) -> Any:
        _, hosts, _ = passed
        return self._eyes.seen([hosts[at] / (hosts[at] + HALF) for at in self._of_hosts])

    def close(self) -> None:
        """Ends the episode; its memory is free."""
        self._ahead = self._run = None
        self._end()


def _nothing() -> None:
    """Ends no run."""


def _ended(made: interpreted.Made, run: Stepped) -> None:
    """Ends a run, whose laws are forgotten before."""
    made.forget()
    run.close()


def _names(observe: str | Sequence[str] | None) -> tuple[str, ...]:
    """What is to be seen, as the argument `observe` has it."""
    if isinstance(observe, str):
        return (observe,)
    try:
        return () if observe is None else tuple(observe)
    except TypeError:
        raise BadInput(f"observe: {observe!r}: expected names of what is seen, as in ('wait', 'rate')") from None


def _calls_python(resolved: Resolved) -> bool:
    """Whether a run of a scenario calls the interpreter."""
    return any(law.how in (brought.INTERPRETED, brought.POLICY) for law in brought.of(resolved.scenario))


def _law(name: str, source: Source) -> Resolved:
    """A law before this link, as a scenario."""
    try:
        return source.resolve()
    except BadInput as error:
        raise BadInput(f"action: {name}: {error}") from None


def _sources(scenario: ScenarioLike | Sequence[ScenarioLike], changes: Mapping[str, Any]) -> list[Source]:
    several = isinstance(scenario, Sequence) and not isinstance(scenario, str)
    given: Sequence[Any] = scenario if several else [scenario]  # type: ignore[assignment]
    if not given:
        raise BadInput("scenario: none; expected one or more")
    return [read_scenario(one).with_changes(changes) for one in given]
