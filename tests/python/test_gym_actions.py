"""What an agent does is what a scenario with it does: laws that it chooses, parameters that it sets. Needs the compiled
engine."""

import numpy as np
import pytest

import aqmlab
import aqmlab.gym
from agents import SCENARIO
from aqmlab.errors import BadInput
from aqmlab.gym import Link

pytestmark = pytest.mark.usefixtures("nothing_allowed")

SLOW = SCENARIO.replace('rate = "20mbit"', 'rate = "10mbit"')
ARED = SCENARIO.replace('"pie"', '"ared"')
TOLD_NOTHING = ARED.replace('"20mbit"', '"20mbit"\ntold_rate = "nothing"').replace(
    '"ared"', '"ared", capacity = "20mbit"'
)
FROM_THE_RATE = ("ared", "pi", "afd", "dcn")


def of_episode(env: Link, action, steps: int = 500) -> list[dict]:
    env.reset(seed=3)
    infos = [env.step(action)[4] for _ in range(steps)]
    return [{name: info[name] for name in info if name not in ("action", "probability")} for info in infos]


@pytest.mark.parametrize("name", FROM_THE_RATE)
@pytest.mark.parametrize("way", ["forward", "reverse"])
def test_a_law_that_is_chosen_has_the_parameters_that_it_has_before_this_link(name, way):
    """Drop-tail with the law on top of it, chosen for good, loses what the law loses."""
    key = {"forward": "link.qdisc", "reverse": "link.reverse_qdisc"}[way]
    keys = {"link.reverse_rate": "5mbit", "traffic": [{"kind": "bulk", "flows": 12}], key: {"kind": name}}
    if way == "reverse":
        keys["traffic"][0]["direction"] = "reverse"
    chosen = Link(SLOW, set=keys, action=[name, "pfifo"], duration="5s", way=way)
    chosen.reset(seed=3)
    losses = marks = delivered = 0.0
    for _ in range(500):
        info = chosen.step(0)[4]
        losses, marks = losses + (info["losses"] > 0), marks + (info["marks"] > 0)
        delivered += info["rate_mbps"] * 1e4 / 8
    found = aqmlab.run(SLOW, seed=3, set={**keys, "duration": "5s", "warmup": "0s", "record.interval": "10ms"})
    rows = found.queue.filter(found.queue["direction"] == {"forward": 0, "reverse": 1}[way])
    assert losses == (rows["dropped_packets"] > 0).sum() > 5
    assert marks == (rows["marked_packets"] > 0).sum()
    # One packet may be in transmission.
    assert abs(delivered - rows["delivered_bytes"].sum()) <= 1500


def test_a_law_that_is_chosen_needs_a_capacity_where_it_is_told_no_rate():
    with pytest.raises(BadInput, match=r"^action: ared: .*capacity.*expected the rate to compute from"):
        Link(TOLD_NOTHING, action=["ared", "codel"])
    asked = Link(TOLD_NOTHING, action=["ared capacity 20mbit", "codel"], duration="2s")
    told = Link(ARED, action=["ared", "codel"], duration="2s")
    assert of_episode(asked, 0, 200) == of_episode(told, 0, 200)


@pytest.mark.parametrize("name", ["red", "blue", "sred", "cobalt", "pie"])
def test_the_probability_that_a_chosen_law_shows_is_seen(name):
    env = Link(SLOW, set={"traffic": [{"kind": "bulk", "flows": 20}]}, action=[name, "pfifo"], duration="10s")
    env.reset(seed=3)
    shown = [env.step(0) for _ in range(1000)]
    probabilities = {info["probability"] for *_, info in shown}
    assert len(probabilities) > 3 and 0 < max(probabilities) <= 1
    newest = env.observe.index("probability")
    assert all(seen[newest] == np.float32(info["probability"] ** 0.5) for seen, *_, info in shown)
    # The other shows none.
    assert env.reset(seed=3) and env.step(1)[4]["probability"] == 0.0


def test_whole_numbers_are_set_as_such():
    env = Link(SCENARIO.replace('"pie"', '"sfb"'), action={"target": (10, 15)}, duration="1s")
    env.reset(seed=1)
    found = [env.step([action])[4]["action"]["target"] for action in (-1.0, -0.8, 0.33, 1.0)]
    assert found == ["10", "10", "13", "15"]


RED = SCENARIO.replace('"pie"', '"red", min = "6p", max = "18p", gentle_end = "400p"')
RANGES = {"min": ("5p", "50p"), "max": ("60p", "200p")}


def test_parameters_that_depend_on_each_other_are_set_together():
    env = Link(RED, action=RANGES, duration="2s")
    env.reset(seed=1)
    for action in ([1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]):
        info = env.step(action)[4]
    assert info["action"] == {"min": '"50p"', "max": '"200p"'}
    with pytest.raises(BadInput, match=r'^action: max = "40p": expected a length of at least min, 50p'):
        Link(RED, action={**RANGES, "max": ("40p", "200p")})


def test_a_parameter_that_does_not_go_with_a_range_is_named_with_what_was_tried():
    said = '^action: max = "100p": gentle_end = "36p": expected a length of at least max, 100p'
    with pytest.raises(BadInput, match=said):
        Link(RED.replace(', gentle_end = "400p"', ""), action={"max": ("16p", "100p")})
    with pytest.raises(BadInput, match=r"^action: target = 1: expected a time such as 15ms \(pie\)$"):
        Link(SCENARIO, action={"target": (1, 2)})


def test_the_scenarios_values_stand_in_the_warm_up():
    lengths = {"warmup": "2s", "duration": "1s"}
    other, steered = (
        Link(SCENARIO, action=each, **lengths) for each in ({"limit": ("9p", "99p")}, {"target": ("1ms", "2ms")})
    )
    assert np.array_equal(other.reset(seed=2)[0], steered.reset(seed=2)[0])
    least = Link(SCENARIO.replace('"pie"', '"pie", target = "1ms"'), action={"target": ("1ms", "2ms")}, **lengths)
    assert not np.array_equal(least.reset(seed=2)[0], steered.reset(seed=2)[0])


@pytest.mark.parametrize("name", ["fred", "rio", "rio_ps", "sfb"])
def test_laws_that_count_each_packet_until_it_leaves_are_not_chosen_among_others(name):
    with pytest.raises(BadInput, match=f"{name}: counts each packet until it leaves"):
        Link(SLOW, action=["pfifo", name])
