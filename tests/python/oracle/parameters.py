"""Parameters as they are written in scenarios: ``"24p"``, ``"12kb"``, ``"5ms"``, ``"170hz"``, ``"4mbit"``, ``0.1``,
``true``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

_NUMBER_AND_UNIT = re.compile(r"([0-9.]+)([a-z]+)")
_BYTES = {"b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3}
_NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_HERTZ = {"hz": 1, "khz": 10**3, "mhz": 10**6}
_BITS_PER_SECOND = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_BITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


@dataclass(frozen=True)
class Length:
    """A length of queue, in packets or in bytes."""

    amount: float
    in_bytes: bool

    def times(self, factor: float) -> Length:
        """This length ``factor`` times."""
        return Length(self.amount * factor, self.in_bytes)

    def of(self, waiting: Waiting) -> int:
        """What waits, in the unit of this length."""
        return waiting.bytes if self.in_bytes else waiting.packets


Written = str | int | float | bool | Length
"""A parameter's value: as written, or a length already read or computed."""


@dataclass
class Waiting:
    """What waits in a queue."""

    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Measure:
    """How a law measures a queue: in packets, or in bytes of which ``mean_packet`` count as one packet."""

    in_bytes: bool
    mean_packet: int

    def queue(self, waiting: Waiting) -> float:
        """What waits, in packets or mean packets."""
        return waiting.bytes / self.mean_packet if self.in_bytes else waiting.packets

    def packets(self, length: Length) -> float:
        """A length that a parameter states, in packets or mean packets."""
        return length.amount / self.mean_packet if length.in_bytes else length.amount

    def exact_packets(self, length: Length) -> Fraction:
        """The same, without rounding."""
        return Fraction(length.amount) / (self.mean_packet if length.in_bytes else 1)


class Parameters:
    """What a discipline was given, over its defaults. A default of ``""`` means: computed, or absent."""

    def __init__(self, defaults: Mapping[str, Written], given: Mapping[str, Written]) -> None:
        unknown = sorted(set(given) - set(defaults))
        if unknown:
            raise ValueError(f"no such parameter: {', '.join(unknown)}")
        self._values = {name: value for name, value in {**defaults, **given}.items() if value != ""}

    def has(self, name: str) -> bool:
        """Whether ``name`` has a value."""
        return name in self._values

    def word(self, name: str) -> str:
        """A word, such as a dialect."""
        return str(self._values[name])

    def flag(self, name: str) -> bool:
        """True or false."""
        return str(self._values[name]).lower() == "true"

    def number(self, name: str) -> float:
        """A plain number."""
        value = self._values[name]
        assert not isinstance(value, Length), name
        return float(value)

    def size(self, name: str) -> int:
        """Whole bytes."""
        return int(self.length(name).amount)

    def is_time(self, name: str) -> bool:
        """Whether a parameter that may be a length or a time is a time."""
        return not isinstance(self._values[name], Length) and self._split(name)[1] in _NANOSECONDS

    def length(self, name: str) -> Length:
        """A length of queue."""
        value = self._values[name]
        if isinstance(value, Length):
            return value
        amount, unit = self._split(name)
        return Length(float(amount), False) if unit == "p" else Length(float(amount * _BYTES[unit]), True)

    def time_ns(self, name: str) -> int:
        """A time in nanoseconds."""
        amount, unit = self._split(name)
        return round(amount * _NANOSECONDS[unit])

    def hertz(self, name: str) -> Fraction:
        """A frequency."""
        amount, unit = self._split(name)
        return Fraction(float(amount * _HERTZ[unit]))

    def bits_per_second(self, name: str) -> float:
        """A rate."""
        amount, unit = self._split(name)
        return float(amount * _BITS[unit])

    def rate_bps(self, name: str) -> int:
        """A rate in bits a second."""
        amount, unit = self._split(name)
        return round(amount * _BITS_PER_SECOND[unit])

    def _split(self, name: str) -> tuple[Fraction, str]:
        match = _NUMBER_AND_UNIT.fullmatch(str(self._values[name]).lower())
        if match is None:
            raise ValueError(f"{name} = {self._values[name]!r}: expected a number with a unit")
        return Fraction(match[1]), match[2]
