"""Parameters drawn at random, from the table of a discipline: any that the engine lists, without knowing which.

A value follows from its kind, its range and its default. Lengths are a few packets, so that a trace of a few hundred
operations meets them; times keep about the proportions that the defaults have, on the scale of a packet's time on the
link; numbers are on either side of the default. Some are at the ends of their ranges, some are left out.
What must fit together, such as thresholds in order, is in :data:`ORDERED`; whatever else a discipline refuses is drawn
again by :mod:`oracle.conformance`, and left out if that does not help.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from oracle.parameters import Parameters
from oracle.stream import Stream

ORDERED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ("min", "max", "gentle_end")),
    ("", ("min_in", "max_in")),
    ("", ("min_out", "max_out")),
    ("", ("bottom", "probability", "top")),
    ("pi", ("b", "a")),
    ("dcn", ("a", "b")),
    ("afd", ("alpha", "beta")),
    ("blue", ("decrement", "increment")),
    ("sfb", ("target", "max")),
    ("sfb", ("decrement", "increment")),
    ("sfb", ("decrement", "increment")),
    ("sfb", ("db", "rehash")),
    ("codel", ("target", "interval")),
    ("fq_codel", ("target", "interval")),
    ("cobalt", ("target", "interval")),
    ("cake", ("target", "rtt")),
    ("docsis_pie", ("latency_low", "latency_high")),
)
"""Parameters whose values rise in this order: of one discipline, or of any that has them."""

TOGETHER = {"pi": (("a", "b"), ("flows", "rtt"))}
"""Parameters that are given together or not at all."""

SUMS_OF_GAINS = {"pi": ("a", "b"), "pi2": ("alpha", "beta"), "dcn": ("a", "b"), "afd": ("alpha", "beta")}
"""Gains whose multiples add up and may cancel. They are drawn as binary fractions, whose sums are exact: rounding,
which the order of operations decides, could otherwise leave 1e-17 on one side where there is 0 on the other, and a
number would be drawn there and not here."""

POWERS_OF_TWO = (("sfq", "divisor"),)
"""Whole numbers that may be nothing else."""

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
class Param:
    """A parameter as the engine lists it; an absent end of its range is ``None``."""

    name: str
    kind: str
    words: Sequence[str]
    default: str
    low: float | None
    high: float | None

    def within(self, x: float) -> float:
        """The nearest value in the range."""
        return max(self.low if self.low is not None else x, min(self.high if self.high is not None else x, x))


@dataclass(frozen=True)
class Row:
    """A discipline as the engine lists it."""

    name: str
    marks: bool
    params: Sequence[Param]

    @classmethod
    def read(cls, listed: Mapping[str, Any]) -> Row:
        """A row of the engine's list."""
        return cls(listed["name"], listed["marks"], [Param(**param) for param in listed["params"]])

    def dialects(self) -> list[str]:
        """Its dialects; an empty one if it has no several."""
        return [word for param in self.params if param.name == "dialect" for word in param.words] or [""]


@dataclass(frozen=True)
class Site:
    """What parameters and timing of a trace have in common."""

    rate_bps: int
    mean_packet: int
    flows: int
    in_bytes: bool
    """The unit of lengths other than the limit."""
    is_extreme: bool
    """Whether ends of ranges are likely."""

    @classmethod
    def draw(cls, dice: Dice) -> Site:
        """Anything from 64 kbit/s to 100 Gb/s."""
        return cls(
            rate_bps=dice.one_of([10**6, 10**7, 10**8, round(dice.spread(64e3, 1e11)), round(dice.spread(64e3, 1e11))]),
            mean_packet=dice.one_of([500, 1000, 1500, dice.whole(38, 3000)]),
            flows=dice.one_of([1, 2, 3, 8, 8, 40]),
            in_bytes=dice.flip(0.25),
            is_extreme=dice.flip(0.1),
        )

    @property
    def slot_ns(self) -> float:
        """Time to send a packet of mean size."""
        return 8e9 * self.mean_packet / self.rate_bps


@dataclass
class Settings:
    """Parameters as they are written in scenarios, and the times among them, defaults included."""

    written: dict[str, str] = field(default_factory=dict)
    times_ns: list[float] = field(default_factory=list)


def draw(dice: Dice, site: Site, row: Row, dialect: str, left_out: Collection[str] = ()) -> Settings:
    """Parameters of a discipline, some always ``left_out``."""
    drawn = Settings({"dialect": dialect} if dialect else {})
    scale = _scale(dice, site, row)
    averages = any(param.name == "wq" for param in row.params)
    if averages and dice.flip(0.3):
        averages = False
        drawn.written["wq"] = "1"
    for param in row.params:
        is_threshold = averages and param.kind == "length" and param.name != "limit"
        seldom = 0.0 if is_threshold and param.default else _LEFT_OUT.get(param.kind, 0.4)
        if param.name in ("dialect", *drawn.written, *left_out) or dice.flip(seldom):
            continue
        drawn.written[param.name] = _value(dice, site, row, param, scale, is_threshold)
    for pair in TOGETHER.get(row.name, ()):
        if any(name not in drawn.written for name in pair):
            drawn.written = {name: text for name, text in drawn.written.items() if name not in pair}
    for owner, names in ORDERED:
        if owner in ("", row.name):
            _put_in_order(drawn.written, row, names)
    for param in row.params:
        text = drawn.written.get(param.name, param.default)
        if _is_time(param, text):
            drawn.times_ns.append(_time_ns(text))
    return drawn


# An average that creeps up to a queue of a whole number of packets meets a threshold of that number, or falls short of
# it by 1e-16, as the order of operations has it. So averages are compared with thresholds that no queue has, unless the
# last sample is all there is to them.

_LEFT_OUT = {"length": 0.15, "length or time": 0.15, "time": 0.15, "frequency": 0.15, "size": 0.2}
"""How often a parameter is left out; without lengths and times of its own scale a short trace shows little."""


def _value(dice: Dice, site: Site, row: Row, param: Param, scale: float, is_fraction: bool) -> str:
    """A value of a parameter, as it is written."""
    if param.name == "ecn" and not row.marks:
        return "false"
    if param.kind == "flag":
        return "true" if dice.flip(0.6 if param.name == "ecn" else 0.5) else "false"
    if param.kind == "word":
        return dice.one_of(param.words)
    at_end = dice.flip(0.3 if site.is_extreme else 0.02)
    if param.kind == "length or time":
        return _time(dice, site, param, scale) if dice.flip(0.3) else _length(dice, site, param, is_fraction)
    if param.kind == "length":
        return _length(dice, site, param, is_fraction)
    if param.kind == "time":
        return _time(dice, site, param, scale)
    if param.kind == "frequency":
        return f"{_four(param.within(1e9 / (_time_on(param, scale) * dice.spread(0.1, 10.0))))}hz"
    if param.kind == "selector":
        mask = dice.one_of([0, 1, 2, 3, 3, 3, 0xFF])
        return f"{dice.whole(0, 3) & mask:#04x}/{mask:#04x}"
    if param.kind == "rate":
        return f"{round(param.within(site.rate_bps * dice.one_of([1.0, dice.spread(0.01, 2.0)])))}bit"
    if param.kind == "size":
        mean = site.mean_packet if param.name == "mean_packet" else 1514
        return f"{round(param.within(dice.one_of([mean, mean, dice.whole(38, 3000)])))}b"
    if param.kind == "integer":
        whole = round(_number(dice, param, scale, at_end))
        return str(1 << (whole.bit_length() - 1) if (row.name, param.name) in POWERS_OF_TWO else whole)
    gains = SUMS_OF_GAINS.get(row.name, ())
    x = _number(dice, param, scale, at_end)
    return repr(max(1, round(x * 2**14)) / 2**14) if param.name in gains else _four(x)


def _number(dice: Dice, param: Param, scale: float, at_end: bool) -> float:
    """About the default, or anywhere in the range if that is short, or at an end of it. It may be a rate, and then
    grows as the times of the trace shrink."""
    low, high = param.low, param.high
    if at_end and low is not None and high is not None:
        return dice.one_of([low, high])
    default = float(param.default) if param.default else 0.0
    if param.kind == "integer":
        # Small tables and counts are met; large ones only where they are the default.
        return param.within(dice.one_of([dice.whole(1, 4), dice.whole(1, 30), default or dice.whole(1, 100)]))
    if low is not None and high is not None and high - low <= 1.0:
        near = default * dice.spread(0.1, 10.0) if default else dice.spread(1e-3, 1.0)
        return param.within(dice.one_of([dice.between(low, high), near]))
    if low is not None and 0.0 < low < default < 2.0 * low:
        return param.within(low + (default - low) * dice.spread(0.1, 1000.0))
    return param.within((default or 1.0) * dice.one_of([1.0, 1.0 / scale]) * dice.spread(0.1, 10.0))


def _length(dice: Dice, site: Site, param: Param, is_fraction: bool) -> str:
    """A few packets. A limit may be in a unit of its own, and none, one or two."""
    in_bytes = dice.flip(0.3) if param.name == "limit" else site.in_bytes
    if param.name == "limit":
        packets = float(
            dice.one_of([dice.whole(0, 2), dice.whole(3, 40), dice.whole(3, 40), *[dice.whole(20, 150)] * 3])
        )
        if in_bytes:
            packets *= dice.between(0.5, 1.5)
    else:
        packets = dice.one_of([float(dice.whole(0, 16)), dice.between(0.0, 16.0)])
        if is_fraction and packets == round(packets):
            packets += 0.377
    if in_bytes:
        # Between two bytes: a threshold that a queue meets exactly is a matter of rounding in an average.
        half = 0.0 if param.name == "limit" else 0.5
        return f"{param.within(round(packets * site.mean_packet) + half):g}b"
    return f"{param.within(round(packets, 3)):g}p"


def _time(dice: Dice, site: Site, param: Param, scale: float) -> str:
    """About the default on the scale of the trace, or an end of the range."""
    ns = _time_on(param, scale) * dice.spread(0.15, 6.0)
    if site.is_extreme and dice.flip(0.2):
        ns = dice.one_of([0.0, ns / 100.0, ns * 100.0])
    low, high = (param.low or 0.0) * 1e9, min(3600e9, (param.high or 3600.0) * 1e9)
    return f"{round(max(low, min(high, ns)))}ns"


def _time_on(param: Param, scale: float) -> float:
    """The default in the trace's time, or a packet's few."""
    default = _time_ns(param.default) if _is_time(param, param.default) else 0.0
    return default * scale if default > 0.0 else scale * 1e7


def _scale(dice: Dice, site: Site, row: Row) -> float:
    """By how much times are shorter than the defaults, of which the shortest becomes a few packets' time."""
    times = [_time_ns(param.default) for param in row.params if _is_time(param, param.default)]
    shortest = min((time for time in times if time > 0.0), default=1e7)
    return site.slot_ns * dice.spread(0.5, 30.0) / shortest


def _is_time(param: Param, text: str) -> bool:
    """Whether a parameter is a time, or a frequency, or nothing of the kind."""
    return param.kind in ("time", "frequency", "length or time") and text[-1:] in ("s", "z")


def _time_ns(text: str) -> float:
    """A time in nanoseconds; for a frequency, that of its period."""
    read = Parameters({"": ""}, {"": text})
    return float(10**9 / read.hertz("")) if text.lower().endswith("hz") else float(read.time_ns(""))


def _put_in_order(written: dict[str, str], row: Row, names: Sequence[str]) -> None:
    """Exchanges values so that they rise in the order of the names; with different units nothing is exchanged."""
    here = {param.name: param.default for param in row.params}
    if not any(name in written for name in names):
        return
    texts = {name: written.get(name) or here[name] for name in names if written.get(name) or here.get(name)}
    if len({_split(text)[1] for text in texts.values()}) == 1:
        written |= dict(zip(texts, sorted(texts.values(), key=lambda text: _split(text)[0]), strict=True))


def _split(text: str) -> tuple[float, str]:
    """A number and its unit."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    return float(digits), text[len(digits) :]


def _four(x: float) -> str:
    """A number to four digits and more above one, without an exponent."""
    return f"{Decimal(f'{x:.4g}' if x < 1.0 else f'{x:.4f}'):f}"
