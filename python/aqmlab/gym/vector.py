"""Several links at once: simulated time passes in as many threads as there are cores."""

from typing import Any

from gymnasium.vector import AutoresetMode, SyncVectorEnv

from aqmlab import engine
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
        super().__init__([lambda: Link(**arguments)] * num_envs, autoreset_mode=autoreset_mode)

    def step(self, actions: Any) -> Any:
        """As Gymnasium's vector environments do; simulated time passes in threads."""
        begun = [
            (link, *link.begin(action))
            for link, action, over in zip(self.envs, actions, self._autoreset_envs, strict=True)
            if isinstance(link, Link) and not over
        ]
        runs, until_ns = [run for _, run, _ in begun], [until for *_, until in begun]
        for (link, *_), passed in zip(begun, engine.advance_all(runs, until_ns, self.threads), strict=True):
            link.passed(passed)
        return super().step(actions)
