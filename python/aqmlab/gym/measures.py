"""Measures of a step, which rewards are made of."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from aqmlab.errors import BadInput
from aqmlab.json_files import is_number
from aqmlab.laws.observed import Seen

Hosts = tuple[int, int, int, float]
"""Connections, exchanges under way, exchanges completed in the step, and the sum of their response times in seconds."""

Rates = tuple[float, int]
"""What the link could send in the mean of the step, and can at its end, bits a second."""

Reward = Callable[[Mapping[str, float]], float]
RewardLike = str | Mapping[str, float] | Reward

MEASURES: Mapping[str, str] = {
    "utilisation": "bits that left, of those that the link can send in the step, 0 to 1 (a little more where it has "
    "caught up)",
    "rate_mbps": "bits that left, Mb/s",
    "wait_ms": "mean wait of the packets that left, ms; 0 if none left",
    "wait_max_ms": "longest of these waits, ms",
    "backlog_ms": "time that the link needs for what waits at the end of the step, ms",
    "losses": "packets that were lost, of those that arrived",
    "marks": "packets that were marked, of those that arrived",
    "probability": "probability of a signal that the discipline shows",
    "connections": "connections that are not over",
    "under_way": "exchanges and transfers under way",
    "completed": "exchanges and transfers completed in the step",
    "response_ms": "mean response time of these, ms; 0 if there are none",
}
"""What each measure is, by name."""


def of(seen: Seen, hosts: Hosts, rates: Rates, step_s: float) -> dict[str, float]:
    """All measures of a step of so many seconds, in their order."""
    offered, delivered, delivered_bytes, dropped, marked, _, queue_bytes, wait_sum, wait_max, _, probability = seen
    mean_bps, present_bps = rates
    connections, under_way, completed, response_s = hosts
    arrived = offered or 1
    return {
        "utilisation": 8.0 * delivered_bytes / (mean_bps * step_s) if mean_bps else 0.0,
        "rate_mbps": 8e-6 * delivered_bytes / step_s,
        "wait_ms": wait_sum * 1e-6 / (delivered or 1),
        "wait_max_ms": wait_max * 1e-6,
        "backlog_ms": 8e3 * queue_bytes / (present_bps or 1),
        "losses": dropped / arrived if dropped < arrived else 1.0,
        "marks": marked / arrived if marked < arrived else 1.0,
        "probability": probability,
        "connections": float(connections),
        "under_way": float(under_way),
        "completed": float(completed),
        "response_ms": 1e3 * response_s / (completed or 1),
    }


def checked(reward: Any) -> float:
    """What a reward has answered, as a number; raises `BadInput` where it is none, or infinite."""
    try:
        found = float(reward)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise BadInput(f"reward: answered {reward!r}; expected a number that is finite")
    return found


def reward(asked: RewardLike) -> Reward:
    """The function of the measures that a reward is: a measure, a weighted sum of some, or a function itself.

    Raises `BadInput` where a measure is unknown.
    """
    if callable(asked):
        return asked
    weights: Mapping[Any, Any] = {asked: 1.0} if isinstance(asked, str) else asked
    if not isinstance(weights, Mapping) or not weights:
        raise BadInput(f"reward: {asked!r}: expected a measure, weights of measures, or a function of them")
    for name, weight in weights.items():
        if name not in MEASURES:
            raise BadInput(f"reward: {name!r}: expected of {', '.join(MEASURES)}")
        if not is_number(weight) or not math.isfinite(weight):
            raise BadInput(f"reward: {name}: {weight!r}: expected a number that is finite, the measure's weight")
    terms = [(str(name), float(weight)) for name, weight in weights.items()]
    return lambda measures: sum(weight * measures[name] for name, weight in terms)
