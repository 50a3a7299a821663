"""Ctrl-C and other signals while an environment's laws run in the interpreter. Needs the engine."""

import os
import signal
import threading
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from agents import NAME, SCENARIO, are_equal, episode
from aqmlab.gym import Link, Policy
from aqmlab.laws import interpreted, interrupted
from own_laws import own

pytestmark = pytest.mark.usefixtures("nothing_allowed")

HOLDS = '''
import aqmlab


@aqmlab.discipline
class Mine:
    """Keeps packets in a list."""

    every = aqmlab.parameter(50, "Stands for nothing.", low=1)

    def __init__(self):
        self.waiting = []

    def offer(self, packet, queue):
        sum(range(1000))
        if queue.is_full:
            return queue.drop(packet, aqmlab.TAIL)
        self.waiting.append(packet)

    def take(self, queue):
        return self.waiting.pop(0) if self.waiting else None
'''
WORKS, HANGS = "sum(range(1000))", "while packet.now_ns > 10**8: pass"


class ToldError(Exception):
    """What a handler of the test's own raises."""


def of(path: Path, **more) -> dict:
    """The arguments of an environment whose discipline is in a file."""
    arguments = {"scenario": SCENARIO, "action": {"every": (2, 60)}, "step": "100ms", "duration": "1000s"}
    return {**arguments, "set": {"link.qdisc": {"kind": str(path), "limit": "200p"}}, **more}


def law(tmp_path: Path, body: str = WORKS) -> Path:
    return own(tmp_path, body, "(compiled=False)")


def interrupted_after(seconds: float, number: int = signal.SIGINT) -> None:
    """Ctrl-C, from a thread: most such signals arrive just when the engine calls a law."""
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()


def steps(env, action) -> None:
    """Steps until something is raised."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        env.step(action)
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("kind", ["law", "discipline", "one of several", "policy"])
def test_ctrl_c_is_raised_when_a_step_is_over_and_ends_the_episode(tmp_path, kind, capfd):
    path, more, action = law(tmp_path), {}, [0.5]
    if kind == "discipline":
        path.write_text(HOLDS)
    elif kind == "one of several":
        more, action = {"action": [str(path), "pfifo"], "set": {}}, 0
    elif kind == "policy":
        seen = Link(SCENARIO)
        path = tmp_path / "policy.onnx"
        Policy.of([(np.zeros((1, seen.observation_space.shape[0])), [0.1], "none")], seen).save(path)
        more, action = {"action": [str(path), "pfifo"], "set": {}}, 0
    env = Link(**of(path, **more))
    handlers = [signal.getsignal(number) for number in interrupted.NUMBERS]
    for trial in range(5):
        env.reset(seed=1)
        interrupted_after(0.05 + 0.017 * trial)
        with pytest.raises(KeyboardInterrupt):
            steps(env, action)
        assert [signal.getsignal(number) for number in interrupted.NUMBERS] == handlers
    env.close()
    assert capfd.readouterr().err == "" and not interpreted.FAILURES and interrupted.KEPT.error is None


@pytest.mark.parametrize("body", [WORKS, HANGS])
def test_ctrl_c_ends_a_step_soon(tmp_path, body):
    env = Link(**of(law(tmp_path, body), step="1000s"))
    env.reset(seed=1)
    interrupted_after(0.3)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        env.step([0.5])
    assert time.monotonic() - began < 10
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode is under way"):
        env.step([0.5])


def test_ctrl_c_in_a_law_and_while_ranges_are_tried_is_no_fault_of_the_law(tmp_path, capfd):
    path = law(tmp_path, "if self.seen == 100: os.kill(os.getpid(), signal.SIGINT)")
    path.write_text(f"import os\nimport signal\n{path.read_text()}")
    env = Link(**of(path))
    env.reset(seed=1)
    with pytest.raises(KeyboardInterrupt):
        steps(env, [0.5])
    path.write_text(f"{path.read_text()}\n    def prepare(self, link):\n        os.kill(os.getpid(), signal.SIGINT)\n")
    with pytest.raises(KeyboardInterrupt):
        Link(**of(path))
    assert capfd.readouterr().err == "" and not interpreted.FAILURES


def test_a_handler_of_ones_own_is_called_and_what_it_raises_is_raised(tmp_path):
    def tell(number, frame):
        raise ToldError

    env = Link(**of(law(tmp_path)))
    before = signal.signal(signal.SIGALRM, tell)
    try:
        env.reset(seed=1)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(ToldError):
            steps(env, [0.5])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    env.reset(seed=1)
    env.step([0.5])


def test_a_handler_that_raises_nothing_changes_nothing(tmp_path):
    heard = []
    env, actions = Link(**of(law(tmp_path), duration="1s")), [[0.1 * step] for step in range(10)]
    expected = episode(env, 3, actions)
    before = signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        assert are_equal(episode(env, 3, actions), expected)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert heard


def test_an_interrupt_ends_the_episodes_of_all_links(tmp_path, capfd):
    several = gymnasium.make_vec(NAME, num_envs=3, threads=2, **of(law(tmp_path)))
    for _ in range(3):
        several.reset(seed=1)
        interrupted_after(0.2)
        with pytest.raises(KeyboardInterrupt):
            steps(several, [[0.5]] * 3)
        with pytest.raises(gymnasium.error.ResetNeeded, match="no episode is under way"):
            several.step([[0.5]] * 3)
    several.close()
    assert capfd.readouterr().err == ""


def test_an_episode_in_another_thread_is_not_interrupted(tmp_path):
    """Its laws go on while the main thread hears of the signal."""
    actions = [[0.1 * step] for step in range(10)]
    alone, main = (Link(**of(law(tmp_path), duration=duration)) for duration in ("1s", "1000s"))
    expected, found = episode(alone, 3, actions), []
    main.reset(seed=1)
    thread = threading.Thread(target=lambda: found.append(episode(alone, 3, actions)))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        interrupted_after(0.1)
        steps(main, [0.5])
    thread.join()
    assert are_equal(found[0], expected)
