"""Numbers with units: as a scenario writes them, as tc takes them on its command line, and as it shows them.

A dump is text (`5ms`, `1514b`, `10Mbit`, to three digits or whole kilobytes) or JSON (microseconds, bytes, bytes a
second); see tc(8). What cannot be read raises `ValueError`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aqmlab.units import rate_text

Raw = str | int | float
"""A value of a dump: text from a line, a number from JSON."""

_NUMBER = re.compile(r"(-?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)([A-Za-z%]*)")
_TIMES = {"s": 1e6, "sec": 1e6, "secs": 1e6, "ms": 1e3, "msec": 1e3, "msecs": 1e3, "us": 1.0, "usec": 1.0, "": 1.0}
_TIMES |= {"usecs": 1.0, "ns": 1e-3, "min": 60e6, "h": 3600e6}  # the last ones are the scenario's own
_SIZES = {"": 1, "b": 1, "kb": 1 << 10, "k": 1 << 10, "mb": 1 << 20, "m": 1 << 20, "gb": 1 << 30, "g": 1 << 30}
_SIZES |= {"kbit": (1 << 10) // 8, "mbit": (1 << 20) // 8, "gbit": (1 << 30) // 8}
PACKET_UNITS = ("p", "pkt", "pkts", "packet", "packets")
_RATES = {"bit": 1.0, "": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12, "kibit": 1024.0}
_RATES |= {"mibit": 1024.0**2, "gibit": 1024.0**3, "bps": 8.0, "kbps": 8e3, "mbps": 8e6, "gbps": 8e9}


def split(text: str) -> tuple[float, str]:
    """A number and its unit in lower case."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or not math.isfinite(float(match[1])):
        raise ValueError(f"{text[:40]!r}: expected a number")
    return float(match[1]), match[2].lower()


def finite(raw: Any) -> float:
    """A number of JSON, which also has numbers that are none, and integers without end."""
    try:
        value = float(raw)
    except (TypeError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{str(raw)[:40]!r}: expected a number")
    return value


def _in(units: dict[str, Any], text: str, what: str) -> float:
    number, unit = split(text)
    if unit not in units:
        raise ValueError(f"{text!r}: expected {what}")
    return number * float(units[unit])


def microseconds(raw: Raw) -> float:
    """A time, `5ms` or the 5000 of JSON."""
    return _in(_TIMES, raw, "a time such as 5ms") if isinstance(raw, str) else finite(raw)


def size(raw: Raw) -> float:
    """Bytes of `1514b`, `32Mb`, or of a number."""
    return _in(_SIZES, raw, "a size such as 1514b") if isinstance(raw, str) else finite(raw)


def rate(raw: Raw) -> float:
    """Bits a second of `10Mbit`, or of JSON's bytes a second."""
    return _in(_RATES, raw, "a rate such as 10mbit") if isinstance(raw, str) else 8.0 * finite(raw)


def packets(raw: Raw) -> int:
    """A count of packets: `1000p`, `1000`."""
    number, unit = split(raw) if isinstance(raw, str) else (finite(raw), "")
    if unit not in ("", "p", "pps") or number != int(number):
        raise ValueError(f"{raw!r}: expected a number of packets")
    return int(number)


def selector(raw: Raw) -> str:
    """Which values of a byte are meant, `0x1/0x3`, in the form that scenarios have: `0x01/0x03`."""
    value, _, mask = str(raw).partition("/")
    try:
        numbers = [int(half, 0) for half in (value, mask)]
    except ValueError:
        numbers = []
    if not numbers or not all(0 <= number <= 0xFF for number in numbers):
        raise ValueError(f"{str(raw)[:40]!r}: expected VALUE/MASK of a byte such as 0x01/0x03")
    return "/".join(f"{number:#04x}" for number in numbers)


def time_text(us: float) -> str:
    """A time as scenarios and tc both read it."""
    for unit in ("s", "ms"):
        if us >= _TIMES[unit]:
            return f"{us / _TIMES[unit]:.9g}{unit}"
    return f"{us:.9g}us"


def size_text(size_bytes: float) -> str:
    """A size as scenarios and tc both read it."""
    return f"{round(size_bytes)}b"


def number(value: float) -> int | float:
    """A number as TOML has it: whole ones without a point."""
    return int(value) if value == int(value) else value


def shortest(shown: float, as_shown: Callable[[float], float]) -> float:
    """The number of fewest digits that tc shows as `shown`: its counters round, and 5 ms come back as 4999 us."""
    for digits in range(1, 10):
        candidate = float(f"{shown:.{digits}g}")
        if candidate == shown or as_shown(candidate) == shown:
            return candidate
    return shown


class RefusedError(ValueError):
    """What tc understands and does not take."""


@dataclass(frozen=True)
class Site:
    """What conversions need to know of the place: the link's rate, and the bytes that count as a packet."""

    rate_bps: float
    packet_bytes: float


@dataclass(frozen=True)
class Kind:
    """One kind of value: a scenario's as tc's word, and tc's word or number as a scenario's."""

    to_tc: Callable[[Any, Site], str]
    from_tc: Callable[[Raw], Any]
    """Of a dump, whose rounding it undoes."""
    of_command: Callable[[str], Any] | None = None
    """Of a command line, where a word means what it says and dumps show something else."""

    def from_command(self, word: str) -> Any:
        """The scenario's value for a word of a command line."""
        return (self.of_command or self.from_tc)(word)


def _length(value: Any, unit: str, site: Site) -> float:
    """A length of queue, `24p` or `12000b`, in packets or bytes."""
    number, written = split(str(value))
    if written != "p" and written not in _SIZES:
        raise ValueError(f"{value!r}: expected packets or bytes")
    given = "p" if written == "p" else "b"
    amount = number if given == "p" else number * _SIZES[written]
    if given == unit:
        return amount
    return amount * site.packet_bytes if unit == "b" else max(1.0, amount / site.packet_bytes)


def _codel_shown(us: float) -> float:
    # codel.h: 1024 ns are the unit of time, and tc shows whole microseconds of what the kernel kept.
    return float(int(us * 1000) // 1024 * 1024 // 1000)


def _sfb_shown(share: float) -> float:
    # tc's q_sfb.c: shares are multiples of 1/65535, shown to six digits.
    return float(f"{round(share * 65535) / 65535:.6g}")


def _whole_number(raw: Raw) -> int:
    value = split(raw)[0] if isinstance(raw, str) else raw
    if value != int(value):
        raise ValueError(f"{raw!r}: expected a whole number")
    return int(value)


def _real(raw: Raw) -> float:
    return split(raw)[0] if isinstance(raw, str) else finite(raw)


def _time_or_packets(raw: Raw) -> str:
    if isinstance(raw, str) and split(raw)[1] in PACKET_UNITS:
        return f"{packets(re.sub('[A-Za-z]+$', '', raw))}p"
    return time_text(microseconds(raw))


def _digits(word: str) -> int:
    if not word.isascii() or not word.isdigit():
        raise ValueError(f"{word[:40]!r}: expected a whole number")
    return int(word)


def _at_most(most: int, word: str) -> int:
    value = _digits(word)
    if value > most:
        raise RefusedError(f"{value}: tc refuses it; expected 0 to {most}")
    return value


def _passed_on(value: float, most: int) -> str:
    """A whole number as tc takes it and passes it on, which it does not do with 0."""
    return str(min(max(round(value), 1), most))


def _per_cent(word: str) -> float:
    return split(word)[0] if word.endswith("%") else float(_digits(word))


def _us(value: Any) -> float:
    return microseconds(str(value))


PACKETS = Kind(lambda v, site: str(round(_length(v, "p", site))), lambda raw: f"{packets(raw)}p")
BYTES = Kind(lambda v, site: str(round(_length(v, "b", site))), lambda raw: size_text(size(raw)))
COUNT = Kind(lambda v, site: str(round(float(v))), lambda raw: packets(raw))
SIZE = Kind(lambda v, site: str(round(size(str(v)))), lambda raw: size_text(size(raw)))
PLAIN_BYTES = Kind(lambda v, site: str(v), lambda raw: _whole_number(raw))
TIME = Kind(lambda v, site: time_text(_us(v)), lambda raw: time_text(microseconds(raw)))
CODEL_TIME = Kind(TIME.to_tc, lambda raw: time_text(shortest(microseconds(raw), _codel_shown)), TIME.from_tc)
# tc-sfb(8) takes bare milliseconds, and shows times with a unit, or in JSON microseconds.
MILLISECONDS = Kind(
    lambda v, site: str(round(_us(v) / 1e3)),
    lambda raw: time_text(microseconds(raw) * (1e3 if isinstance(raw, str) and not split(raw)[1] else 1.0)),
)
# tc-sfq(8) takes bare seconds, and shows `10sec`, or in JSON seconds.
SECONDS = Kind(lambda v, site: str(round(_us(v) / 1e6)), lambda raw: time_text(1e6 * _real(raw)))
TIME_OR_PACKETS = Kind(lambda v, site: str(v), lambda raw: _time_or_packets(raw))
NUMBER = Kind(lambda v, site: f"{float(v):.9g}", lambda raw: number(_real(raw)))
SFB_SHARE = Kind(NUMBER.to_tc, lambda raw: number(shortest(_real(raw), _sfb_shown)), NUMBER.from_tc)
MOST_SIXTEENTHS, MOST_PER_CENT = 32, 99
"""ALPHA_MAX and BETA_MAX of tc/q_pie.c and tc/q_fq_pie.c; the latter refuses an ecn_prob of 100."""
# tc-pie(8): alpha and beta are whole numbers of sixteenths of a Hz.
SIXTEENTHS = Kind(
    lambda v, site: _passed_on(16 * float(v), MOST_SIXTEENTHS),
    lambda raw: number(_whole_number(raw) / 16),
    lambda word: number(_at_most(MOST_SIXTEENTHS, word) / 16),
)
PER_CENT = Kind(
    lambda v, site: _passed_on(100 * float(v), MOST_PER_CENT),
    lambda raw: number(_whole_number(raw) / 100),
    lambda word: number(_at_most(MOST_PER_CENT, word) / 100),
)
# The kernel keeps a whole number of per cent.
PER_CENT_SIGN = Kind(
    lambda v, site: f"{round(100 * float(v))}%", PER_CENT.from_tc, lambda word: number(_per_cent(word) / 100)
)
SELECTOR = Kind(lambda v, site: str(v), lambda raw: selector(raw))
RATE = Kind(lambda v, site: str(v), lambda raw: rate_text(rate(raw)))


def same(one: Any, other: Any) -> bool:
    """Whether two values of a scenario say the same, whatever their units."""
    if isinstance(one, str) and isinstance(other, str) and one != other:
        try:
            (a, unit), (b, other_unit) = split(one), split(other)
        except ValueError:
            return False
        for units in (_TIMES, _RATES, _SIZES):  # tc has sizes in kbit, a scenario has none
            if unit in units and other_unit in units and unit and other_unit:
                return _near(a * units[unit], b * units[other_unit])
        return unit == other_unit and _near(a, b)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return _near(float(one), float(other))
    return bool(one == other)


def _near(a: float, b: float) -> bool:
    # Both came from decimal text of at most a dozen digits.
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
