"""DualPI2, which Linux has from 6.17 on.

Where nothing is drawn, `dualpi2-sure-`, the target is seconds away, so that p' stays 0: what is left are the limit, the
turns of the two queues, and the step. The others, `dualpi2-drawn-`, draw: their loads are those of cases_random.py.
Flows have no priority, which DualPI2 would take for the name of a queue.
"""

from __future__ import annotations

from typing import Any

from cases_random import SIZES, load
from packets import Case, Phase

ALL: dict[int, float] = {0: 2.0, 1: 3.0, 2: 2.0, 3: 0.3}
"""ECN fields: both queues, and what cannot be marked."""

STILL = "target 4s alpha 0.00390625 beta 0.00390625"
"""Gains of 1/256 Hz, the least there are: p' falls by 0.0156 in a step, and rises by no more than 0.0001."""


def ours(**more: Any) -> dict[str, Any]:
    """The discipline in a scenario's words."""
    return {"kind": "dualpi2", "dialect": "linux", **more}


def stretches(burst: int, times: float = 1.0) -> tuple[Phase, ...]:
    """Loads below the rate and beyond it, one packet at a time and in bursts, and a pause; so many times as long."""
    kind: dict[str, Any] = {"sizes": SIZES, "ecn": ALL, "flows": {0: 3.0, 1: 1.0, 2: 1.0}}
    return (
        Phase(0.3 * times, 0.5, burst=burst, **kind),
        Phase(0.5 * times, 1.4, **kind),
        Phase(0.4 * times, 0.9, burst=burst, **kind),
        Phase(1.0),
        Phase(0.3 * times, 3.0, **kind),
        Phase(0.6 * times, 0.8, burst=2 * burst, **kind),
    )


def sure() -> list[Case]:
    """Turns, step and limit."""
    still = {"target": "4s", "alpha": 1 / 256, "beta": 1 / 256}

    def case(name: str, words: str, rate: str, seed: int, burst: int = 4, times: float = 1.0, **more: Any) -> Case:
        phases = stretches(burst, times)
        qdisc = f"dualpi2 {words} {STILL}"
        return Case(f"dualpi2-sure-{name}", qdisc, ours(**still, **more), rate, phases, seed=seed, priority=False)

    return [
        case("turns", "limit 100", "10mbit", 201, limit="100p"),
        case("protected", "limit 60 classic_protection 50%", "10mbit", 202, limit="60p", classic_protection=0.5),
        case("unprotected", "limit 60 classic_protection 0%", "10mbit", 203, limit="60p", classic_protection=0.0),
        case("packets", "limit 80 step_thresh 5p", "5mbit", 204, limit="80p", step_thresh="5p"),
        case(
            "spared",
            "limit 80 step_thresh 2ms min_qlen_step 4",
            "5mbit",
            205,
            limit="80p",
            step_thresh="2ms",
            min_qlen_step=4,
        ),
        case("fast", "limit 200", "100mbit", 206, burst=20, times=0.1, limit="200p"),
    ]


def drawn() -> list[Case]:
    """The controller, its drops and marks, in an overload too."""

    def case(name: str, words: str, seed: int, ecn: dict[int, float] | None = None, **more: Any) -> Case:
        phases = load(1.0, 5, 3, flows={0: 3.0, 1: 1.0, 2: 1.0}, ecn=ecn or ALL)
        qdisc = f"dualpi2 {words}".strip()
        return Case(f"dualpi2-drawn-{name}", qdisc, ours(**more), "10mbit", phases, seed=seed, priority=False)

    return [
        case("default", "", 211),
        case("classic", "", 212, ecn={0: 1.0}),
        case("scalable", "", 213, ecn={1: 1.0}),
        case("early", "drop_enqueue", 214, drop_early=True),
        case("overflow", "limit 50 overflow", 215, limit="50p", drop_on_overload=False),
        case(
            "set",
            "target 5ms tupdate 8ms alpha 0.5 beta 5 step_thresh 5p coupling_factor 3 classic_protection 25%",
            216,
            target="5ms",
            tupdate="8ms",
            alpha=0.5,
            beta=5.0,
            step_thresh="5p",
            coupling_factor=3,
            classic_protection=0.25,
        ),
    ]


CASES = [*sure(), *drawn()]
