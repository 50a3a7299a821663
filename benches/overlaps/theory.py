"""What theory says of an evaluation's own case: closed forms, and the references that disciplines are set to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from places import PACKET_BITS, Number, WrongPlaceError, parameter, seconds

RATES = {"access": 20e6, "peering": 100e6, "data-centre": 10e9}
PAYLOAD = 1448 / 1500
"""Of a full packet of a host with timestamps."""
BUFFER_S = 0.1
"""The buffer of the evaluations is the bandwidth-delay product at 100 ms."""
DATA_CENTRE_S, STEP = 200e-6, 65
"""The round trip there, and the step in packets that DCTCP's authors say."""
REFERENCES = ("target", "qref")
LOAD = 1.2
"""Of the link, in section 5.3."""


def rate_of(asked: Mapping[str, Any]) -> float:
    """Of the link of a case."""
    return RATES[asked.get("rate", "access")]


def target(asked: Mapping[str, Any]) -> float:
    """The wait at which a controller's queue is at its reference: a time, packets, or packets' worth of bytes."""
    of, rate = asked["of"], rate_of(asked)
    name = next(name for name in REFERENCES if _has(of, name))
    wait = seconds(parameter(of, name), rate)
    if parameter(of, name).endswith("p") and parameter(of, "mode") == "byte":
        wait *= 8 * float(parameter(of, "mean_packet").removesuffix("b")) / PACKET_BITS
    return wait


def rem(asked: Mapping[str, Any]) -> float:
    """Where REM's price stays where it is: alpha (q - target) + x - c = 0, counted in mean packets an interval; or an
    empty queue, where that would be below it."""
    number = {name: parameter("rem", name) for name in ("interval", "mean_packet", "alpha", "target")}
    size_bits = 8 * float(number["mean_packet"].removesuffix("b"))
    excess = (LOAD - 1) * rate_of(asked) * seconds(number["interval"], rate_of(asked)) / size_bits
    waiting = float(number["target"].removesuffix("p")) - excess / float(number["alpha"])
    # Rounding leaves some of nothing.
    return 0.0 if waiting < 1e-9 else waiting * size_bits / rate_of(asked)


def ared(asked: Mapping[str, Any]) -> float:
    """ARED's upper threshold as the wait of so many packets: three times the lower one, which is half of what the link
    sends in `target_delay`, counted in packets of `mean_packet`."""
    counted = PACKET_BITS / (8 * float(parameter("ared", "mean_packet").removesuffix("b")))
    return 3 * counted * seconds(parameter("ared", "target_delay"), rate_of(asked)) / 2


def swing() -> float:
    """By how many packets the queue of one DCTCP flow swings (Alizadeh et al. 2010, section 3.3)."""
    return math.sqrt(2 * (RATES["data-centre"] * DATA_CENTRE_S / PACKET_BITS + STEP)) / 2


def step(_: Mapping[str, Any]) -> float:
    """The wait in the middle of that swing, which goes down from K + 1."""
    return (STEP + 1 - swing() / 2) * PACKET_BITS / RATES["data-centre"]


FORMULAS: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "target": target,
    "rem": rem,
    "ared": ared,
    "step": step,
    "lost": lambda asked: 1 - 1 / LOAD,
    "goodput": lambda asked: rate_of(asked) * PAYLOAD,
    "half": lambda asked: rate_of(asked) * PAYLOAD / 2,
    # The window grows evenly from one product to two, and as many packets as it has are sent in a round trip:
    # the mean of x (1 + x) over that of 1 + x, x from 0 to 1.
    "sawtooth": lambda asked: BUFFER_S * 5 / 9,
    "one": lambda asked: 1.0,
    "none": lambda asked: 0.0,
}


def of_theory(asked: Mapping[str, Any]) -> Number:
    """What a formula says of a case."""
    return Number(FORMULAS[asked["theory"]](asked))


def least(name: str, rate: str) -> float:
    """A difference that is always allowed: the time of a packet, or a quarter of DCTCP's swing."""
    times = {"packet": PACKET_BITS / RATES[rate], "swing": swing() / 4 * PACKET_BITS / RATES["data-centre"]}
    return times[name]


def _has(of: str, name: str) -> bool:
    try:
        return bool(parameter(of, name))
    except (StopIteration, WrongPlaceError):
        return False
