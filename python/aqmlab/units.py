"""Rates and times as people write them (`100mbit`, `60s`), and numbers as people read them."""

import re
from typing import Any

from aqmlab.errors import BadInput

_RATES = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}
_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_SIZES = {"b": 1.0, "kb": 1024.0, "mb": 1024.0**2, "gb": 1024.0**3}
"""As in tc(8): a window of `16kb` has 16384 bytes."""
_FREQUENCIES = {"hz": 1.0, "khz": 1e3, "mhz": 1e6}
_QUANTITY = re.compile(r"\s*([+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Z%]*)\s*")

_QUANTITIES = {
    **{name: ("bit/s", size) for name, size in _RATES.items()},
    **{name: ("s", size) for name, size in _TIMES.items()},
    **{name: ("bytes", size) for name, size in _SIZES.items()},
    **{name: ("Hz", size) for name, size in _FREQUENCIES.items()},
    **{"p": ("packets", 1.0), "%": ("%", 1.0), "": ("", 1.0)},
}


_BYTES_A_SECOND = {
    "bps": ("bytes", "bit"),
    "kbps": ("kilobytes", "kbit"),
    "mbps": ("megabytes", "mbit"),
    "gbps": ("gigabytes", "gbit"),
}
"""Units that tc(8) reads as bytes a second, while people mean bits a second."""


def _read(value: Any, units: dict[str, float], key: str, example: str) -> float:
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2].lower() not in units or match[1].startswith(("+", "-")):
        said = f"{key}: {value!r}: expected a number with one of the units {', '.join(units)}, as in {example}"
        if units is _RATES and match is not None and (meant := _BYTES_A_SECOND.get(match[2].lower())):
            said += f"; tc reads {match[2].lower()} as {meant[0]} a second: write {meant[1]} for bits"
        raise BadInput(said)
    return float(match[1]) * units[match[2].lower()]


def quantity(text: str) -> tuple[float, str] | None:
    """The number in bits a second, seconds, bytes, packets, hertz or per cent that a value of a scenario says, and
    which of these: `90mbit` is 9e7 bit/s; None of any other text."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2].lower() not in _QUANTITIES:
        return None
    unit, size = _QUANTITIES[match[2].lower()]
    return float(match[1]) * size, unit


def rate_bps(value: Any, key: str) -> float:
    """Bits a second of a text such as `100mbit`; `key` is named when it is none."""
    return _read(value, _RATES, key, "100mbit")


def seconds(value: Any, key: str) -> float:
    """Seconds of a text such as `300s`; `key` is named when it is none."""
    return _read(value, _TIMES, key, "300s")


def rate_text(bps: float) -> str:
    """The shortest exact way to write a rate in a scenario."""
    for unit in ("gbit", "mbit", "kbit"):
        if bps >= _RATES[unit]:
            return f"{bps / _RATES[unit]:.12g}{unit}"
    return f"{bps:.12g}bit"


def say_bytes(size: int) -> str:
    """What somebody asks for to be read, with prefixes of 1000: `10 kB`."""
    return f"{size / 1e6:g} MB" if size >= 1_000_000 else f"{size / 1e3:g} kB" if size >= 1000 else f"{size:g} B"


def say_memory(count: int) -> str:
    """So many bytes of memory to be read, with prefixes of 1024: `7.1 GB`."""
    return f"{count / 2**30:.1f} GB" if count >= 2**30 else f"{count / 2**20:.0f} MB"


def say_mebibytes(count: int) -> str:
    """The memory that a run took, to be read: `119 MiB`."""
    return f"{count / 2**20:,.0f} MiB"


def significant(value: float, digits: int) -> str:
    """A number with so many digits, without an exponent: `250`, and `0.00` for what is next to nothing."""
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    return f"{float(text):.0f}" if abs(value) >= 1 else f"{abs(value):.{digits - 1}f}"


RATES = {"Gb/s": 1e9, "Mb/s": 1e6, "kb/s": 1e3, "b/s": 1.0}
"""Units in which rates are read, the largest first."""


def rate_unit(bps: float) -> tuple[str, float]:
    """The unit in which a rate is read, with its size: `Mb/s`."""
    return next(((unit, size) for unit, size in RATES.items() if abs(bps) >= size), ("b/s", 1.0))


def say_rate(bps: float, digits: int = 4) -> str:
    """A rate to be read: `98.02 Mb/s`."""
    unit, size = rate_unit(bps)
    # Less than that is what sums of floating-point numbers leave behind.
    return f"{significant(bps / size, digits) if abs(bps) >= 1e-3 else 0} {unit}"


def say_rates(rates: tuple[float, float]) -> str:
    """The rates of a link forward and in reverse to be read: `100 Mb/s`, `50 Mb/s forward and 10 Mb/s in reverse`."""
    forward, reverse = (say_rate(bps) for bps in rates)
    return forward if forward == reverse else f"{forward} forward and {reverse} in reverse"


def say_seconds(value: float, digits: int = 3) -> str:
    """A time to be read: `142 ms`, `1.06 s`."""
    if value != 0 and abs(value) < 0.9995e-3:
        return f"{value * 1e6:.{digits}g} µs"
    if abs(value) < 0.9995:
        return f"{value * 1e3:.{digits}g} ms"
    return f"{value:.{max(digits, 3)}g} s" if abs(value) < 1000 else f"{value:,.0f} s"


def say_hours(hours: float) -> str:
    """A long time to be read: `3.2 h`, `14 min`, `8.1 s`."""
    for unit, size in (("h", 1.0), ("min", 60.0)):
        if hours * size >= 1:
            return f"{hours * size:,.3g} {unit}" if hours < 1000 else f"{hours:,.0f} h"
    return f"{hours * 3600:.2g} s"


def say_share(share: float, decimals: int = 0, signed: bool = False) -> str:
    """A share to be read: `12 %`, `+0.15 %`."""
    return f"{100 * share:{'+' if signed else ''}.{decimals}f} %".replace("-", "−")


def say_count(value: float) -> str:
    """A count to be read: `1,234,567`."""
    return f"{value:,.0f}"
