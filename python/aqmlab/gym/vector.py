"""Several links at once: simulated time passes in as many threads as there are cores."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from aqmlab import engine
from aqmlab.engine import Passed, Stepped
from aqmlab.errors import BadInput
from aqmlab.gym.link import Link
from aqmlab.runs import runner


class ThreadedVector(SyncVectorEnv[Any, Any]):
    """`num_envs` links of the same arguments, which `gymnasium.make_vec("aqmlab/Link-v0", ...)` makes.

    All simulate a step at once, on `threads` threads of the engine without the interpreter's lock; by default one a
    core. What each sees and is rewarded with is reckoned in turn. `autoreset_mode` is Gymnasium's. An episode of one
    is the same as alone, whatever the number of threads.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        threads: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **arguments: Any,
    ) -> None:
        for name, number in (("num_envs", num_envs), ("threads", 1 if threads is None else threads)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise BadInput(f"{name}: {number!r}: expected 1 or more")
        self.threads = threads or runner.default_jobs()
        # They live as long as this: to start a thread takes longer than many a step.
        self._helpers = ThreadPoolExecutor(max(1, self.threads - 1), "aqmlab-link")
        super().__init__([lambda: Link(**arguments)] * num_envs, autoreset_mode=autoreset_mode)

    def step(self, actions: Any) -> Any:
        """As Gymnasium's vector environments do; simulated time passes in threads."""
        links = [link for link in self.envs if isinstance(link, Link)]
        begun = [
            (link, *link.begin(action))
            for link, action, over in zip(links, actions, self._autoreset_envs, strict=True)
            if not over
        ]
        runs, until_ns = [run for _, run, _ in begun], [until for *_, until in begun]
        for (link, *_), passed in zip(begun, self._passed(runs, until_ns), strict=True):
            link.passed(passed)
        if self.autoreset_mode != AutoresetMode.NEXT_STEP:
            return super().step(actions)
        observations, infos = np.empty_like(self._observations), []
        for number, (link, action) in enumerate(zip(links, actions, strict=True)):
            if self._autoreset_envs[number]:
                observations[number], info = link.reset()
                self._rewards[number], self._truncations[number] = 0.0, False
            else:
                observations[number], self._rewards[number], _, self._truncations[number], info = link.step(action)
            infos.append(info)
        self._autoreset_envs = self._truncations.copy()
        return observations, self._rewards.copy(), self._terminations.copy(), self._truncations.copy(), _of_all(infos)

    def _passed(self, runs: list[Stepped], until_ns: list[int]) -> list[Passed]:
        """Lets all runs pass, every so many of them in a thread, the first of these in this one."""
        parts = [slice(first, None, self.threads) for first in range(min(self.threads, len(runs)))]
        found: list[Any] = [None] * len(runs)
        asked = [self._helpers.submit(engine.advance_all, runs[part], until_ns[part], 1) for part in parts[1:]]
        for part in parts[:1]:
            found[part] = engine.advance_all(runs[part], until_ns[part], 1)
        for part, answer in zip(parts[1:], asked, strict=True):
            found[part] = answer.result()
        return found

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all links and threads."""
        self._helpers.shutdown()
        super().close_extras(**kwargs)


def _of_all(infos: list[dict[str, Any]]) -> dict[str, Any]:
    """What each link says, as Gymnasium has it of several: an array for each name, and which of them have said it."""
    found: dict[str, Any] = {}
    alike = all(info.keys() == infos[0].keys() for info in infos)
    for name in infos[0] if alike else {name: None for info in infos for name in info}:
        values = [info[name] for info in infos] if alike else [info.get(name) for info in infos]
        has = np.ones(len(infos), bool) if alike else np.array([name in info for info in infos])
        example = values[0] if alike else values[int(has.argmax())]
        if isinstance(example, dict):
            found[name] = _of_all([value or {} for value in values])
        else:
            kind: Any = object if isinstance(example, str) else type(example)
            empty = None if kind is object else kind()
            found[name] = np.array(values if alike else [empty if value is None else value for value in values], kind)
        found[f"_{name}"] = has
    return found
