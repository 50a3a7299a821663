"""The disciplines that draw at random: RED, adaptive RED, CHOKe, PIE, FQ-PIE, SFB.

Each case is one load, repeated: light load, an overload of half as much again as the link can carry, a lighter one,
then a gap in which the discipline forgets. What comes out of one repetition hardly depends on those before, so that
their sum says much. The parts of a load are its phases; those of the same place in each repetition are counted
together.
"""

from __future__ import annotations

from typing import Any

from packets import Case, Phase

SIZES = {1500: 6.0, 576: 1.0, 40: 2.0, 1000: 1.0}
ECN = {0: 1.0, 2: 2.0}
GREEDY = {0: 6.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}
"""Flow 0 sends more than all others together."""


def load(
    seconds: float,
    gap: float,
    times: int,
    flows: dict[int, float] | None = None,
    ecn: dict[int, float] | None = None,
    loads: tuple[float, ...] = (0.6, 1.5, 1.1),
) -> tuple[Phase, ...]:
    """So many repetitions; each load lasts `seconds`, and the gap after them `gap`."""
    kind: dict[str, Any] = {"sizes": SIZES, "flows": flows or {0: 1.0}, "ecn": ecn or {0: 1.0}}
    return (*(Phase(seconds, each, **kind) for each in loads), Phase(gap)) * times


def red() -> list[Case]:
    """RED with its thresholds in bytes, dropping and marking; and adaptive RED, which adapts to silence first."""
    words = "red limit 400000 min 15000 max 45000 avpkt 1000 burst 20 bandwidth 10mbit probability 0.1"
    # With these words tc-red(8) makes a weight of 1/8.
    ours: dict[str, Any] = {"kind": "red", "dialect": "linux", "limit": "400000b", "min": "15000b", "max": "45000b"}
    ours |= {"wq": 0.125, "probability": 0.1, "mean_packet": "1000b"}
    return [
        Case("red-drop", words, ours, "10mbit", load(0.4, 3, 5), seed=101),
        Case("red-ecn", words + " ecn", {**ours, "ecn": True}, "10mbit", load(0.4, 3, 5, ecn=ECN), seed=102),
        Case(
            "red-harddrop",
            words + " ecn harddrop",
            {**ours, "ecn": True, "mark_until": "max"},
            "10mbit",
            load(0.4, 3, 5, ecn=ECN),
            seed=103,
        ),
        Case(
            "ared-drop",
            words.replace("probability 0.1", "probability 0.02") + " adaptive",
            {**ours, "kind": "ared", "probability": 0.02, "gentle": False},
            "10mbit",
            (Phase(10), *load(1.5, 3, 2)),
            adapting=(400000, 15000, 45000, 3, 0.02),
            seed=104,
        ),
    ]


def choke() -> list[Case]:
    """CHOKe with a flow that sends more than the rest."""
    words = "choke limit 1000 min 15 max 45 burst 20 bandwidth 10mbit probability 0.1"
    ours: dict[str, Any] = {"kind": "choke", "dialect": "linux", "limit": "1000p", "min": "15p", "max": "45p"}
    ours |= {"wq": 0.125, "probability": 0.1, "mean_packet": "1000b"}
    told = load(0.4, 3, 5, flows=GREEDY)
    return [
        Case("choke-drop", words, ours, "10mbit", told, seed=111),
        Case(
            "choke-ecn",
            words + " ecn",
            {**ours, "ecn": True},
            "10mbit",
            load(0.4, 3, 5, flows=dict.fromkeys(range(20), 1.0), ecn=ECN),
            seed=112,
        ),
    ]


def pie() -> list[Case]:
    """PIE and FQ-PIE; the waiting time measured or estimated from the rate."""
    words = "target 15ms tupdate 15ms"
    # Its timer goes off a tick of the kernel's, here 1 ms, after what was asked for.
    ours = {"kind": "pie", "dialect": "linux", "limit": "1000p", "tupdate": "16ms"}
    return [
        Case("pie-drop", f"pie limit 1000 {words}", ours, "10mbit", load(1.5, 30, 2), seed=121),
        Case(
            "pie-ecn",
            f"pie limit 1000 {words} ecn",
            {**ours, "ecn": True},
            "10mbit",
            load(1.5, 30, 2, ecn=ECN),
            seed=122,
        ),
        Case(
            "pie-bytemode",
            f"pie limit 1000 {words} bytemode",
            {**ours, "bytemode": True},
            "10mbit",
            load(1.5, 30, 2),
            seed=123,
        ),
        Case(
            "pie-dq-rate",
            f"pie limit 1000 {words} dq_rate_estimator",
            {**ours, "dq_rate_estimator": True},
            "10mbit",
            load(1.5, 30, 2),
            seed=124,
        ),
        Case(
            "fq_pie-drop",
            f"fq_pie limit 10240 quantum 1500 {words}",
            {"kind": "fq_pie", "dialect": "linux", "limit": "10240p", "quantum": "1500b", "tupdate": "16ms"},
            "10mbit",
            load(1.5, 30, 2, flows={0: 3.0, 1: 1.0, 2: 0.2}),
            seed=125,
        ),
        Case(
            "fq_pie-ecn",
            f"fq_pie limit 10240 quantum 1500 {words} ecn",
            {
                "kind": "fq_pie",
                "dialect": "linux",
                "limit": "10240p",
                "quantum": "1500b",
                "tupdate": "16ms",
                "ecn": True,
            },
            "10mbit",
            load(1.5, 30, 2, flows={0: 3.0, 1: 1.0, 2: 0.2}, ecn=ECN),
            seed=126,
        ),
    ]


def sfb() -> list[Case]:
    """SFB with a flow that is found not to respond, and with many that share."""
    words = "sfb limit 1000 max 25 target 20 increment 0.005 decrement 0.0005 penalty_rate 10 penalty_burst 20"
    ours: dict[str, Any] = {"kind": "sfb", "dialect": "linux", "limit": "1000p", "target": 20, "max": 25}
    ours |= {"increment": 0.005, "decrement": 0.0005, "penalty_rate": 10, "penalty_burst": 20}
    return [
        Case(
            "sfb-greedy",
            words,
            {**ours, "ecn": True},
            "10mbit",
            load(0.7, 3, 3, flows=GREEDY),
            seed=131,
            priority=False,
        ),
        Case(
            "sfb-ecn",
            words,
            {**ours, "ecn": True},
            "10mbit",
            load(0.7, 3, 3, flows=GREEDY, ecn=ECN),
            seed=132,
            priority=False,
        ),
    ]


CASES = [*red(), *choke(), *pie(), *sfb()]
