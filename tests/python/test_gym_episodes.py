"""What an episode is measured by, what it begins with, and how it ends where something fails. Needs the engine."""

import gc
import weakref

import gymnasium
import numpy as np
import pytest

import aqmlab
from agents import NAME, SCENARIO, WEB
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.gym import Link
from aqmlab.laws import interpreted
from own_laws import own
from processes import threads
from watcher import until

pytestmark = pytest.mark.usefixtures("nothing_allowed")

CHANGING = SCENARIO.replace(
    'rate = "20mbit"', 'rate = "10mbit"\nschedule = [{ at = "5s", rate = "1mbit", reverse_rate = "10mbit" }]'
)
FULL = {"traffic": [{"kind": "bulk", "flows": 10}]}


@pytest.mark.parametrize(
    "action", ["probability", {"limit": ("200p", "201p")}, ["pfifo", "pie"]], ids=["probability", "limit", "laws"]
)
@pytest.mark.parametrize("told", ["nominal", "present"])
def test_a_link_that_changes_is_measured_by_what_it_can_send(action, told):
    """A full link of 1 Mb/s is full, whatever its law is told; in the step of the change it could send what both rates
    give, and one packet more or less."""
    text = CHANGING.replace("schedule", f'told_rate = "{told}"\nschedule').replace('"pie"', '"pfifo"')
    env = Link(text.replace(", ecn = true", ""), set=FULL, action=action, step="200ms", duration="10s", windows=1)
    env.reset(seed=1)
    nothing = 0 if isinstance(action, list) else [-1.0]
    steps = [env.step(nothing) for _ in range(50)]
    full = [info["utilisation"] for *_, info in steps]
    # A packet takes 12 ms of 200 at 1 Mb/s.
    assert all(abs(share - 1) < 0.07 for share in full[10:])
    before, after = steps[24][4], steps[40][4]
    # At most 200 packets of 1500 bytes.
    assert 120 < before["backlog_ms"] <= 240 and 1200 < after["backlog_ms"] <= 2400
    # What is observed goes by what the law is told; parameters are seen with the link's own rate.
    rate = steps[40][0][env.observe.index("rate")]
    is_told = told == "present" or isinstance(action, dict)
    assert abs(rate - (1.0 if is_told else 0.1)) < 0.07


def test_a_step_in_which_the_rate_changes_could_send_what_both_rates_give():
    # 5.0 s lies in the middle of a step of 400 ms that begins at 4.8.
    env = Link(CHANGING, set=FULL, step="400ms", duration="8s", action=["pfifo", "pie"])
    env.reset(seed=1)
    steps = [env.step(0)[4]["utilisation"] for _ in range(20)]
    # It could send 2.2 Mbit; a packet of 12 kbit more or less.
    assert abs(steps[12] - 1) < 0.02


@pytest.mark.parametrize("warmup", ["0s", "4ms", "10ms", "25ms", "40ms", "300ms"])
def test_after_a_warm_up_its_last_whole_steps_are_seen(warmup):
    """As an agent sees them that has done nothing so long."""
    warmed = Link(SCENARIO, warmup=warmup, duration="500ms")
    ms = int(float(warmup.removesuffix("ms").removesuffix("s")))
    found, _ = warmed.reset(seed=5)
    steps = min(4, ms // 10)
    # Whole steps end with the warm-up; what is before them is cut off.
    began = Link(SCENARIO, warmup=f"{ms - 10 * steps}ms", duration=f"{500 + 10 * steps}ms")
    seen, _ = began.reset(seed=5)
    assert began.warmup_ns == (ms - 10 * steps) * 10**6
    for _ in range(steps):
        seen = began.step([-1.0])[0]
    each = len(warmed.observe)
    assert np.array_equal(found[: each * steps], seen[: each * steps])
    assert not found[each * steps :].any()


FAILS = "if packet.now_ns > 10**8: self.nothing"


def failing(tmp_path, action="probability", **more) -> dict:
    path = own(tmp_path, FAILS, "(compiled=False)")
    keys = {"link.qdisc.kind": str(path), "link.qdisc.ecn": True}
    arguments = {"scenario": SCENARIO, "duration": "1s", "action": action, **more}
    return arguments if isinstance(action, list) else {**arguments, "set": keys}


def test_a_law_that_fails_in_an_episode_is_named_with_its_line_and_ends_it(tmp_path):
    env = Link(**failing(tmp_path, {"every": (2, 60)}))
    line = (tmp_path / "mine.py").read_text()[: (tmp_path / "mine.py").read_text().index(FAILS)].count("\n") + 1
    env.reset(seed=1)
    said = rf"^the law mine failed: .*; AttributeError: 'Mine' object has no attribute 'nothing' \(.*mine.py:{line}\)$"
    with pytest.raises(Misbehaved, match=said):
        [env.step([0.5]) for _ in range(100)]
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode is under way"):
        env.step([0.5])
    env.reset(seed=1)
    env.step([0.5])
    several = gymnasium.make_vec(NAME, num_envs=3, threads=2, **failing(tmp_path, {"every": (2, 60)}))
    several.reset(seed=1)
    with pytest.raises(Misbehaved, match=said):
        [several.step([[0.5]] * 3) for _ in range(100)]
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode is under way"):
        several.step([[0.5]] * 3)
    several.reset(seed=1)
    several.step([[0.5]] * 3)
    several.close()


ONE_FAILS = """if packet.now_ns > 10**8:
            aqmlab.asked.append(self)
            if self is aqmlab.asked[0] and len(aqmlab.asked) > 5: self.nothing
            time.sleep(0.002)"""


def test_where_a_law_fails_no_other_is_asked_any_more_and_none_is_forgotten_before(tmp_path, monkeypatch):
    """Others are within their steps when the first has failed: they pass them, and only then their episodes end."""
    asked = []
    monkeypatch.setattr(aqmlab, "asked", asked, raising=False)
    path = own(tmp_path, ONE_FAILS, "(compiled=False)")
    path.write_text(f"import time\n{path.read_text()}")
    given = {"scenario": SCENARIO, "duration": "1s", "action": {"every": (2, 60)}, "step": "200ms"}
    keys = {"link.qdisc.kind": str(path), "link.qdisc.ecn": True}
    before = threads("aqmlab-link")
    several = gymnasium.make_vec(NAME, num_envs=3, threads=3, set=keys, **given)
    several.reset(seed=1)
    with pytest.raises(Misbehaved, match="AttributeError: 'Mine' object has no attribute 'nothing'"):
        [several.step([[0.5]] * 3) for _ in range(4)]
    count = len(asked)
    several.close()
    until(lambda: threads("aqmlab-link") <= before)  # they have done all that they were given
    assert len(asked) == count and not interpreted.FAILURES


def test_what_is_set_holds_from_the_end_of_the_step_on(tmp_path, monkeypatch):
    """So its ticks go on at whole multiples of theirs."""
    monkeypatch.setattr(aqmlab, "heard", [], raising=False)
    path = tmp_path / "mine.py"
    path.write_text(
        "import aqmlab\n@aqmlab.law(tick='update', compiled=False)\nclass Mine:\n    'Hears when it is called.'\n"
        "    update = aqmlab.parameter('5ms', 'How often.')\n"
        "    def prepare(self, link):\n        aqmlab.heard.append(('set', link.now_ns))\n"
        "    def tick(self, queue):\n        aqmlab.heard.append(('tick', queue.now_ns))\n"
        "    def on_arrival(self, packet):\n        return aqmlab.PASS\n"
    )
    env = Link(SCENARIO, set={"link.qdisc": str(path)}, action={"update": ("1ms", "5ms")}, duration="100ms")
    env.reset(seed=1)
    aqmlab.heard.clear()
    for action in (1.0, -1.0, 1.0):
        env.step([action])
    sets = [now_ns for what, now_ns in aqmlab.heard if what == "set"]
    ticks = [now_ns for what, now_ns in aqmlab.heard if what == "tick"]
    assert sets == [0, 10**7, 2 * 10**7]
    assert ticks and all(now_ns % 10**6 == 0 for now_ns in ticks)


def test_a_law_that_fails_while_ranges_are_tried_is_named_with_its_line(tmp_path, monkeypatch):
    there = weakref.WeakSet()
    monkeypatch.setattr(aqmlab, "laws_there", there, raising=False)
    given = failing(tmp_path, {"every": (2, 60)})
    path = tmp_path / "mine.py"
    path.write_text(f"{path.read_text()}\n    def prepare(self, link):\n        aqmlab.laws_there.add(self)\n")
    Link(**given)
    path.write_text(f"{path.read_text()}        assert self.every <= 50\n")
    line = path.read_text().count("\n")
    with pytest.raises(Misbehaved, match=rf"^the law mine failed: .*; AssertionError: \(.*mine.py:{line}\)$"):
        Link(**given)
    gc.collect()
    assert not interpreted.FAILURES and not there


@pytest.mark.parametrize("is_closed", [True, False])
def test_an_environment_that_is_dropped_keeps_no_laws(tmp_path, monkeypatch, is_closed):
    there = weakref.WeakSet()
    monkeypatch.setattr(aqmlab, "laws_there", there, raising=False)
    path = own(tmp_path, "pass", "(compiled=False)")
    path.write_text(f"{path.read_text()}\n    def prepare(self, link):\n        aqmlab.laws_there.add(self)\n")
    fair = {"link.qdisc": str(path.with_name("fq_mine.py"))}
    env, kept = (Link(SCENARIO, set=fair, action={"limit": ("100p", "200p")}) for _ in range(2))
    for each in (env, kept, env):
        each.reset(seed=1)
        each.step([0.5])
    of_one = len(there) // 2
    assert of_one > 500
    env.itself = env
    if is_closed:
        env.close()
    del env, each
    gc.collect()
    assert len(there) == of_one
    kept.step([0.1])
    kept.close()
    gc.collect()
    assert not there


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_after_a_reward_that_failed_no_link_goes_on(mode):
    fails = [False]

    def reward(measures):
        if fails[0]:
            raise RuntimeError("no reward")
        return measures["rate_mbps"]

    arguments = {"scenario": SCENARIO, "duration": "1s", "reward": reward}
    several = gymnasium.make_vec(NAME, num_envs=4, threads=2, autoreset_mode=mode, **arguments)
    several.reset(seed=1)
    several.step([[0.5]] * 4)
    fails[0] = True
    with pytest.raises(RuntimeError, match="no reward"):
        several.step([[0.5]] * 4)
    fails[0] = False
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode is under way"):
        several.step([[0.5]] * 4)
    several.close()
    # Of a link alone the step is over, and the next one follows.
    alone, other = Link(**arguments), Link(**arguments)
    for env in (alone, other):
        env.reset(seed=1)
        env.step([0.5])
    fails[0] = True
    with pytest.raises(RuntimeError, match="no reward"):
        alone.step([0.5])
    fails[0] = False
    other.step([0.5])
    assert np.array_equal(alone.step([0.5])[0], other.step([0.5])[0])


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_a_bad_action_after_the_end_of_an_episode_moves_no_link(mode):
    vector, alone = (
        gymnasium.make_vec(NAME, num_envs=2, threads=2, scenario=SCENARIO, duration="30ms", autoreset_mode=mode)
        for _ in range(2)
    )
    for each in (vector, alone):
        each.reset(seed=3)
        [each.step([[0.1]] * 2) for _ in range(3)]
    bad = [[0.1], [float("nan")]]
    refused = BadInput if mode == "SameStep" else gymnasium.error.ResetNeeded
    with pytest.raises(refused):
        vector.step(bad)
    if mode == "Disabled":
        for each in (vector, alone):
            each.reset(options={"reset_mask": np.array([True, True])})
    mine, other = vector.step([[0.1]] * 2), alone.step([[0.1]] * 2)
    assert all(np.array_equal(one, two) for one, two in zip(mine[:4], other[:4], strict=True))
    vector.close()
    alone.close()


def test_links_that_are_not_reset_are_seen_as_they_are():
    arguments = {"scenario": SCENARIO, "duration": "1s"}
    ours = gymnasium.make_vec(NAME, num_envs=3, **arguments)
    theirs = gymnasium.make_vec(NAME, num_envs=3, vectorization_mode="sync", **arguments)
    for each in (ours, theirs):
        each.reset(seed=1)
    for _ in range(20):
        seen, other = ours.step([[0.0]] * 3)[0], theirs.step([[0.0]] * 3)[0]
    mask = {"reset_mask": np.array([False, True, False])}
    mine, other = ours.reset(options={**mask})[0], theirs.reset(options={**mask})[0]
    assert np.array_equal(mine, other) and np.array_equal(mine[::2], seen[::2]) and not mine[1].any()
    assert np.array_equal(ours.step([[0.0]] * 3)[0], theirs.step([[0.0]] * 3)[0])
    ours.close()
    theirs.close()


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("duration", "expected the argument duration"),
        ("warmup", "expected the argument warmup"),
        ("cooldown", "expected no such key, as an episode has none"),
        ("seed", "expected that of reset"),
    ],
)
def test_what_an_episode_has_otherwise_is_not_set(key, said):
    with pytest.raises(BadInput, match=f"^set: {key}: an episode does not take the scenario's; {said}$"):
        Link(WEB, set={key: 3 if key == "seed" else "3s"})


def test_a_law_that_a_scenario_names_runs_where_that_is_allowed(tmp_path):
    own(tmp_path, how="(compiled=False)")
    (tmp_path / "link.toml").write_text(SCENARIO.replace('"pie"', '"./mine.py"'))
    arguments = {"scenario": tmp_path / "link.toml", "duration": "100ms", "action": {"every": (2, 60)}}
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        Link(**arguments)
    env = Link(**arguments, allow_code=True)
    env.reset(seed=1)
    env.step([0.0])
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        Link(**arguments)
    several = gymnasium.make_vec(NAME, num_envs=2, **arguments, allow_code=True)
    several.reset(seed=1)
    several.close()
    with pytest.raises(BadInput, match="allow_code: 3: expected True or False"):
        Link(**arguments, allow_code=3)
