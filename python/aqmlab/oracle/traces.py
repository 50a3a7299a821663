"""Random traces: parameters, offers, takes and quiet gaps drawn from a seed, and what the oracle decides of them.

A trace is a request of the protocol in README.md. The same number gives the same trace on every machine, for it is
drawn from the project's own stream.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from aqmlab.oracle import build
from aqmlab.oracle.frame import Packet
from aqmlab.oracle.stream import Stream

Request = dict[str, Any]
Reply = dict[str, Any]

FAMILIES = (
    *("pfifo", "bfifo", "red/paper", "red/ns2", "red/linux", "ared/paper", "ared/ns2", "ared/linux"),
    *("pi", "rem/paper", "rem/ns2"),
)
"""What is traced: a discipline, and its dialect where it has several."""

_T = TypeVar("_T")


class Dice:
    """Random choices from a stream."""

    def __init__(self, seed: int, path: str) -> None:
        self._stream = Stream(seed, path)

    def flip(self, probability: float) -> bool:
        """True with this probability."""
        return self._stream.unit() < probability

    def between(self, low: float, high: float) -> float:
        """Uniform."""
        return low + (high - low) * self._stream.unit()

    def spread(self, low: float, high: float) -> float:
        """Uniform in the logarithm, to four digits."""
        return float(f"{low * math.exp(math.log(high / low) * self._stream.unit()):.4g}")

    def whole(self, low: int, high: int) -> int:
        """Uniform on low..high."""
        return low + self._stream.below(high - low + 1)

    def one_of(self, choices: Sequence[_T]) -> _T:
        """Any of these."""
        return choices[self._stream.below(len(choices))]


@dataclass(frozen=True)
class Site:
    """What parameters and timing have in common."""

    rate_bps: int
    mean_packet: int

    @property
    def slot_ns(self) -> float:
        """Time to send a packet of mean size."""
        return 8e9 * self.mean_packet / self.rate_bps


def trace(family: str, number: int, operations: int) -> Request:
    """The trace of this number: parameters that go together, and about so many operations."""
    kind, _, dialect = family.partition("/")
    dice = Dice(number, f"trace/{family}")
    site = Site(dice.whole(1, 100) * 10 ** dice.whole(4, 6), dice.one_of([500, 500, 1000, 1500, dice.whole(40, 3000)]))
    params = {"dialect": dialect} if dialect else {}
    period_ns: Fraction | None = None
    match kind:
        case "pfifo" | "bfifo":
            params |= {"limit": _length(dice, site, 0.0, 20.0, dice.flip(0.5))}
            params |= {"drop": dice.one_of(["tail", "head"])}
        case "red":
            params |= _red(dice, site)
        case "ared":
            adaptive, period_ns = _ared(dice, site)
            params |= adaptive
        case "pi":
            controller, period_ns = _pi(dice, site)
            params |= controller
        case "rem":
            priced, period_ns = _rem(dice, site)
            params |= priced
    return {
        "kind": kind,
        "params": params,
        "rate_bps": site.rate_bps,
        "seed": number,
        "ops": _operations(dice, site, period_ns, operations),
    }


def decide(request: Request) -> Reply:
    """What the oracle decides."""
    stream = Stream(request["seed"], "vector")
    discipline = build(request["kind"], request["params"], request["rate_bps"], stream)
    decisions: list[Any] = []
    offers = 0
    for word, at_ns, *rest in request["ops"]:
        discipline.advance(at_ns)
        if word == "look":
            law, waiting = discipline.law, discipline.waiting
            state = {"packets": waiting.packets, "bytes": waiting.bytes}
            decisions.append({**state, "probability": law.probability(), "control": law.control()})
            continue
        if word == "offer":
            offers += 1
            told = discipline.offer(Packet(offers, *rest), at_ns)
        else:
            told = discipline.take(at_ns)
        decisions.append(", ".join(map(str, told)))
    return {"decisions": decisions}


# ---- parameters ----


def _red(dice: Dice, site: Site) -> dict[str, str]:
    in_bytes = dice.flip(0.25)
    low = dice.whole(0, 8) if dice.flip(0.4) else dice.between(0.0, 8.0)
    high = low + (dice.whole(0, 12) if dice.flip(0.4) else dice.between(0.5, 12.0))
    params = _commons(dice, site, high) | {
        "min": _amount(low, site, in_bytes),
        "max": _amount(high, site, in_bytes),
        "probability": _number(dice.between(0.0, 1.0) if dice.flip(0.5) else dice.spread(0.01, 1.0)),
        "wq": _number(dice.one_of([1.0, dice.between(0.1, 1.0), dice.spread(0.001, 1.0)])),
        "gentle": _flag(dice.flip(0.5)),
    }
    return params | _red_options(dice, site, high, in_bytes)


def _red_options(dice: Dice, site: Site, high: float, in_bytes: bool) -> dict[str, str]:
    params = {}
    if dice.flip(0.2):
        params["gentle_end"] = _amount(high * dice.between(1.0, 4.0), site, in_bytes)
    if dice.flip(0.3):
        params["wait"] = _flag(dice.flip(0.5))
    if dice.flip(0.5):
        params["mark_until"] = dice.one_of(["max", "end", "full"])
    if dice.flip(0.3):
        params["mark_p"] = _number(dice.between(0.0, 1.0))
    return params


def _ared(dice: Dice, site: Site) -> tuple[dict[str, str], Fraction]:
    interval_ms = dice.whole(1, 500)
    bottom = dice.spread(0.001, 0.1)
    top = dice.between(0.2, 1.0)
    in_bytes = dice.flip(0.25)
    given = dice.one_of(["both", "both", "min", "max", "none"])
    low = dice.between(0.5, 8.0)
    high = low + dice.between(0.5, 12.0)
    params = _commons(dice, site, high) | {
        "interval": f"{interval_ms}ms",
        "bottom": _number(bottom),
        "top": _number(top),
        "probability": _number(dice.between(bottom, top) if dice.flip(0.8) else dice.spread(0.0005, 1.0)),
        "alpha": _number(dice.one_of([0.01, dice.between(0.0, 0.3)])),
        "beta": _number(dice.one_of([0.9, dice.between(0.3, 1.0)])),
    }
    if given in ("both", "min"):
        params["min"] = _amount(low, site, in_bytes)
    if given in ("both", "max"):
        params["max"] = _amount(high, site, in_bytes)
    if given == "none":
        # So that half of what the link sends in this time is within reach of a short trace; 10 s are the most.
        delay_us = round(site.slot_ns * dice.between(5.0, 15.0) / 1e3)
        params["target_delay"] = f"{min(max(1, delay_us), 10_000_000)}us"
    if dice.flip(0.7):
        params["wq"] = _number(dice.one_of([1.0, dice.between(0.1, 1.0), dice.spread(0.01, 1.0)]))
    if dice.flip(0.3):
        params["gentle"] = _flag(dice.flip(0.5))
    if given == "both":
        params |= _red_options(dice, site, high, in_bytes)
    return params, Fraction(interval_ms * 10**6)


def _pi(dice: Dice, site: Site) -> tuple[dict[str, str], Fraction]:
    hertz = dice.whole(10, 1000)
    params = _commons(dice, site, 10.0) | {"qref": _target(dice, site), "w": f"{hertz}hz"}
    design = dice.one_of(["given", "given", "given", "flows", "none"])
    if design == "given":
        # Sums of binary fractions are exact: p comes back to 0 in any order of operations, if it does.
        a = dice.whole(64, 2**15)
        params |= {"a": repr(a / 2**16), "b": repr(dice.whole(0, a - 1) / 2**16)}
    if design == "flows":
        # Few enough flows for the round trip that the gains come out between 0 and 1.
        rtt_ms = dice.whole(10, 500)
        in_flight = rtt_ms * 1e6 / site.slot_ns
        most = int(min(in_flight**2, in_flight * rtt_ms / 1e3 * hertz) / 4.0)
        if most >= 1:
            params |= {
                "flows": str(dice.whole(1, most)),
                "rtt": f"{rtt_ms}ms",
                "beta": _number(dice.between(0.05, 0.8)),
            }
    return params, Fraction(10**9, hertz)


def _rem(dice: Dice, site: Site) -> tuple[dict[str, str], Fraction]:
    interval_us = dice.whole(100, 20_000)
    params = _commons(dice, site, 10.0) | {
        "target": _target(dice, site),
        "gamma": _number(dice.spread(0.001, 1.0)),
        "alpha": _number(dice.between(0.0, 1.0)),
        "phi": _number(dice.spread(1.001, 50.0)),
        "interval": f"{interval_us}us",
    }
    if dice.flip(0.4):
        params["inw"] = _number(dice.spread(0.01, 1.0))
    return params, Fraction(interval_us * 1000)


def _commons(dice: Dice, site: Site, high: float) -> dict[str, str]:
    """Parameters that all laws have; the limit not always."""
    params = {
        "mode": "byte" if dice.flip(0.3) else "packet",
        "mean_packet": f"{site.mean_packet}b",
        "ecn": _flag(dice.flip(0.6)),
    }
    if dice.flip(0.6):
        params["limit"] = _length(dice, site, 0.5 * high, 2.5 * high, dice.flip(0.3))
    return params


def _target(dice: Dice, site: Site) -> str:
    packets = dice.one_of([float(dice.whole(0, 15)), dice.whole(0, 60) / 4.0])
    if dice.flip(0.2):
        return f"{round(packets * site.slot_ns)}ns"
    return _amount(packets, site, dice.flip(0.25))


def _length(dice: Dice, site: Site, low: float, high: float, in_bytes: bool) -> str:
    packets = dice.between(low, high)
    return _amount(packets if in_bytes else round(packets), site, in_bytes)


def _amount(packets: float, site: Site, in_bytes: bool) -> str:
    return f"{round(packets * site.mean_packet)}b" if in_bytes else f"{round(packets, 3)}p"


def _number(x: float) -> str:
    return f"{x:.4g}"


def _flag(yes: bool) -> str:
    return "true" if yes else "false"


# ---- operations ----


def _operations(dice: Dice, site: Site, period_ns: Fraction | None, count: int) -> list[list[Any]]:
    """Phases in which the queue fills, drains, holds or rests, and looks at the state in between."""
    ops: list[list[Any]] = []
    now = 0
    while len(ops) < count:
        offers = dice.one_of([0.95, 0.75, 0.55, 0.5, 0.5, 0.1])
        pace = dice.one_of([0.0, 0.1, 0.5, 1.0])
        for _ in range(dice.whole(3, 25)):
            if not dice.flip(0.3):
                now += round(dice.between(0.0, 2.0) * pace * site.slot_ns)
            if dice.flip(offers):
                ops.append(["offer", now, _size(dice, site), *_label(dice)])
            else:
                ops.append(["take", now])
            if dice.flip(0.08):
                ops.append(["look", now])
        now = _later(dice, site, period_ns, now)
        ops.append(["look", now])
    return ops


def _later(dice: Dice, site: Site, period_ns: Fraction | None, now: int) -> int:
    """The end of a quiet gap: any time, or just before or at a tick."""
    if period_ns is not None and dice.flip(0.6):
        tick = round((now // period_ns + dice.whole(1, 5)) * period_ns)
        return max(now, tick - dice.whole(0, 1))
    return now + round(dice.one_of([0.0, 1.0, 10.0, 100.0]) * dice.between(0.0, 1.0) * site.slot_ns)


def _size(dice: Dice, site: Site) -> int:
    return dice.one_of([site.mean_packet, site.mean_packet, 40, 1500, dice.whole(1, 3000)])


def _label(dice: Dice) -> tuple[str, int]:
    return dice.one_of(["not-ect", "not-ect", "ect0", "ect0", "ect1", "ce"]), dice.whole(1, 9)
