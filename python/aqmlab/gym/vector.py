"""Several links at once: simulated time passes in as many threads as there are cores."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from aqmlab import arguments, engine
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.gym.link import Link
from aqmlab.laws import interpreted
from aqmlab.runs import runner

_NOTHING: dict[str, Any] = {}


class ThreadedVector(SyncVectorEnv[Any, Any]):
    """`num_envs` links of the same arguments, which `gymnasium.make_vec("aqmlab/Link-v0", ...)` makes.

    All simulate a step at once, on `threads` threads without the interpreter's lock, by default one a core: that of
    Python and others of the engine. What each sees and is rewarded with is reckoned in turn in that of Python, while
    the others simulate the links that come after. `autoreset_mode` is Gymnasium's. An episode of one is the same as
    alone, whatever the number of threads.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        threads: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **of_each: Any,
    ) -> None:
        for name, number in (("num_envs", num_envs), ("threads", 1 if threads is None else threads)):
            arguments.whole(number, name)
        self.threads = threads or runner.default_jobs()
        # They live as long as this: to start a thread takes longer than many a step.
        self._crew = engine.Crew(min(self.threads, num_envs) - 1)
        super().__init__([lambda: Link(**of_each)] * num_envs, autoreset_mode=autoreset_mode)

    def step(self, actions: Any) -> Any:
        """As Gymnasium's vector environments do; simulated time passes in threads.

        Where one of the actions is none, `BadInput` is raised before any link has moved. Whatever else is raised ends
        the episodes of all links: some of them have moved, and others not.
        """
        links = [link for link in self.envs if isinstance(link, Link)]
        actions = _one_each(actions, len(links))
        is_next = self.autoreset_mode == AutoresetMode.NEXT_STEP
        over = self._autoreset_envs.tolist() if is_next else [False] * len(links)
        said = [None if over[number] else link.said(actions[number]) for number, link in enumerate(links)]
        try:
            return self._passed(links, actions, said, over) if is_next else self._passed_first(links, actions, said)
        except BaseException as error:
            for link in links:
                link.close()
            if isinstance(error, Misbehaved):
                raise interpreted.with_place(error) from None
            raise

    def _passed(self, links: list[Link], actions: Any, said: list[Any], over: list[bool]) -> Any:
        """A step in which links whose episode is over begin another one, in place of what they would do."""
        observations, infos = np.empty_like(self._observations), [_NOTHING] * len(links)
        with self._crew.batch() as batch:
            for number, link in enumerate(links):
                if not over[number]:
                    batch.begin(number, *link.begin(said[number]))
            for number, passed in links[0].arriving(batch):
                links[number].passed(passed)
                found = links[number].step(actions[number])
                self._env_obs[number], self._rewards[number], _, self._truncations[number], infos[number] = found
        for number, link in enumerate(links):
            if over[number]:
                self._env_obs[number], infos[number] = link.reset()
                self._rewards[number], self._truncations[number] = 0.0, False
        # Gymnasium's `reset` answers these of links that it does not reset.
        for number, seen in enumerate(self._env_obs):
            observations[number] = seen
        self._autoreset_envs = self._truncations.copy()
        return observations, self._rewards.copy(), self._terminations.copy(), self._truncations.copy(), _of_all(infos)

    def _passed_first(self, links: list[Link], actions: Any, said: list[Any]) -> Any:
        """A step of Gymnasium's own, whose simulated time has passed before."""
        with self._crew.batch() as batch:
            for number, link in enumerate(links):
                batch.begin(number, *link.begin(said[number]))
            for number, passed in links[0].arriving(batch):
                links[number].passed(passed)
        return super().step(actions)

    def __reduce__(self) -> tuple[Any, ...]:
        raise BadInput("environments in threads cannot be pickled; expected a function that makes them")

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all links and threads."""
        self._crew.close()
        super().close_extras(**kwargs)


def _one_each(actions: Any, count: int) -> Any:
    """Actions, if there is one for each link."""
    try:
        given = len(actions)
    except TypeError:
        given = None
    if given != count:
        raise BadInput(f"actions: {actions!r}: expected {count}, one for each link")
    return actions


def _of_all(infos: list[dict[str, Any]]) -> dict[str, Any]:
    """What each link says, as Gymnasium has it of several: an array for each name, and which of them have said it."""
    first = infos[0]
    if not all(info.keys() == first.keys() for info in infos):
        return _of_some(infos)
    found: dict[str, Any] = {}
    # Most are numbers: one array has them all, a row each.
    numbers = [name for name, value in first.items() if type(value) is float]
    rows = np.array([[info[name] for info in infos] for name in numbers])
    rest = [name for name in first if type(first[name]) is not float]
    columns = {name: _column([info[name] for info in infos], first[name]) for name in rest}
    has = np.ones(len(infos), bool)
    for name, column in (*zip(numbers, rows, strict=True), *columns.items()):
        found[name], found[f"_{name}"] = column, has
    return found


def _of_some(infos: list[dict[str, Any]]) -> dict[str, Any]:
    """The same where not all say all: what one has not said is zero, empty or None."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for info in infos for name in info):
        has = np.array([name in info for info in infos])
        example = infos[int(has.argmax())][name]
        empty = None if isinstance(example, str) else type(example)()
        found[name] = _column([info.get(name, empty) for info in infos], example)
        found[f"_{name}"] = has
    return found


def _column(values: list[Any], example: Any) -> Any:
    if isinstance(example, dict):
        return _of_all(values)
    return np.array(values, object if isinstance(example, str) else type(example))
