"""Measures of a step, which rewards are made of."""

from collections.abc import Callable, Mapping
from typing import Any

from aqmlab.errors import BadInput
from aqmlab.laws.observed import Seen

Hosts = tuple[int, int, int, float]
"""Connections, exchanges under way, exchanges completed in the step, and the sum of their response times in seconds."""

Measure = Callable[[Seen, Hosts, float], float]
Reward = Callable[[Mapping[str, float]], float]
RewardLike = str | Mapping[str, float] | Reward

MEASURES: Mapping[str, tuple[str, Measure]] = {
    "utilisation": (
        "bits that left, of those that the link can send in the step, 0 to 1 (a little more where it has caught up)",
        lambda seen, hosts, step_s: 8.0 * seen.delivered_bytes / (seen.rate_bps * step_s) if seen.rate_bps else 0.0,
    ),
    "rate_mbps": ("bits that left, Mb/s", lambda seen, hosts, step_s: 8e-6 * seen.delivered_bytes / step_s),
    "wait_ms": (
        "mean wait of the packets that left, ms; 0 if none left",
        lambda seen, hosts, step_s: seen.wait_sum_ns * 1e-6 / max(seen.delivered_packets, 1),
    ),
    "wait_max_ms": ("longest of these waits, ms", lambda seen, hosts, step_s: seen.wait_max_ns * 1e-6),
    "backlog_ms": (
        "time that the link needs for what waits at the end of the step, ms",
        lambda seen, hosts, step_s: 8e3 * seen.queue_bytes / max(seen.rate_bps, 1),
    ),
    "losses": (
        "packets that were lost, of those that arrived",
        lambda seen, hosts, step_s: min(seen.dropped_packets / max(seen.offered_packets, 1), 1.0),
    ),
    "marks": (
        "packets that were marked, of those that arrived",
        lambda seen, hosts, step_s: min(seen.marked_packets / max(seen.offered_packets, 1), 1.0),
    ),
    "probability": ("probability of a signal that the discipline shows", lambda seen, hosts, step_s: seen.probability),
    "connections": ("connections that are not over", lambda seen, hosts, step_s: float(hosts[0])),
    "under_way": ("exchanges and transfers under way", lambda seen, hosts, step_s: float(hosts[1])),
    "completed": ("exchanges and transfers completed in the step", lambda seen, hosts, step_s: float(hosts[2])),
    "response_ms": (
        "mean response time of these, ms; 0 if there are none",
        lambda seen, hosts, step_s: 1e3 * hosts[3] / max(hosts[2], 1),
    ),
}
"""By name: what each is, and the function that reckons it of a step of so many seconds."""


def of(seen: Seen, hosts: Hosts, step_s: float) -> dict[str, float]:
    """All measures of a step."""
    return {name: measure(seen, hosts, step_s) for name, (_, measure) in MEASURES.items()}


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
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight != weight:
            raise BadInput(f"reward: {name}: {weight!r}: expected a number, the measure's weight")
    terms = [(str(name), float(weight)) for name, weight in weights.items()]
    return lambda measures: sum(weight * measures[name] for name, weight in terms)
