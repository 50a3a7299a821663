"""What a platform can do about a link: disciplines with their settings, each way."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab import engine, units
from aqmlab.advice.access import ACCESS
from aqmlab.errors import BadInput

TODAY = "fifo, as today"
"""What there is without advice: no shaper, and drop-tail queues, of provider and modem or of the ports."""

FULL_FRAME = 1514


@dataclass(frozen=True)
class Way:
    """One direction of the link, as a shaper in front of it knows it."""

    shaped_bps: float
    rtt_s: float
    """The longest that is expected."""
    overhead_keyword: str


Settings = Callable[[Way], dict[str, Any]]


@dataclass(frozen=True)
class Candidate:
    """A discipline and its settings."""

    name: str
    settings: Settings | None
    """Of a shaper or a port at one direction; nothing of what there is today."""
    in_modem: bool = False
    """Whether it stands in the modem, at the line's own rate, with no shaper."""
    router: Mapping[str, Any] | None = None
    """Of what is set now: the link that the router's shaper makes."""

    def qdisc(self, way: Way) -> dict[str, Any]:
        """As `[link.qdisc]` has it."""
        assert self.settings is not None
        return self.settings(way)


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.4g}ms"


def _codel(way: Way) -> dict[str, Any]:
    """RFC 8289 §4.3, RFC 8290 §5.2.1: target is not below the time of one and a half full frames, and interval not
    below the longest usual round trip, nor below target."""
    interval = max(0.1, way.rtt_s)
    target = max(interval / 20, 1.5 * FULL_FRAME * 8 / way.shaped_bps)
    return {"target": _time(target), "interval": _time(max(interval, target))}


def _with(kind: str, *makers: Settings, **fixed: Any) -> Settings:
    def made(way: Way) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": kind}
        for maker in makers:
            found |= maker(way)
        return found | fixed

    return made


def _cake(way: Way) -> dict[str, Any]:
    return {
        "bandwidth": units.rate_text(way.shaped_bps),
        "overhead_keyword": way.overhead_keyword,
        "diffserv": "besteffort",
        "rtt": _time(max(0.1, way.rtt_s)),
    }


def _cake_rtt(way: Way) -> dict[str, Any]:
    return {"rtt": _time(max(0.01, way.rtt_s))}


def _held(seconds: float) -> Settings:
    """What a queue of so long a time holds, four full frames at least."""
    return lambda way: {"limit": _bytes(way, seconds)}


def _bytes(way: Way, seconds: float, fewest: int = 4) -> str:
    """So long a time of the rate, or so many full frames."""
    return f"{max(fewest * FULL_FRAME, round(way.shaped_bps * seconds / 8))}b"


ROOM_S = 0.1
"""The time of a port's rate that a queue with a law has room for: the kernel's own limits would be met before a law."""


def _packets(fewest: int) -> Settings:
    """Room for full frames of that time, or for so many."""
    return lambda way: {"limit": f"{max(fewest, round(way.shaped_bps * ROOM_S / 8 / FULL_FRAME))}p"}


def _cake_of_port(way: Way) -> dict[str, Any]:
    return {"diffserv": "besteffort", "rtt": _time(max(0.1, way.rtt_s))}


WRED_EXPONENT = 9
"""Each sample weighs 2 to the minus this in the average: what WRED comes with."""

THRESHOLDS = ((5, 15, 10), (10, 50, 2))
"""Lower and upper, ms, and per cent at the upper one: ten of a hundred is what WRED comes with, two is Floyd and
Jacobson's of 1993."""


def _wred(low_s: float, high_s: float, probability: float) -> Settings:
    def made(way: Way) -> dict[str, Any]:
        return {
            "min": _bytes(way, low_s),
            "max": _bytes(way, high_s, 12),
            "limit": _bytes(way, ROOM_S, 24),
            "probability": probability,
            "wq": 0.5**WRED_EXPONENT,
            "mean_packet": "1000b",
        }

    return made


def _red(low_s: float, high_s: float, probability: float) -> Settings:
    """As Linux has room for: its average has 32 bits, and what a threshold takes of them is lost to the weight; and
    signals rise between the thresholds by whole parts of 2 to the minus 32 a byte (include/net/red.h)."""
    plain = _wred(low_s, high_s, probability)

    def made(way: Way) -> dict[str, Any]:
        values = plain(way)
        low, high = (int(values[name].removesuffix("b")) for name in ("min", "max"))
        exponent = min(WRED_EXPONENT, 31 - high.bit_length())
        slope = int(probability * 2**32) // (high - low)
        # Rounded up: less than a whole part would be none.
        held = math.ceil(slope * (high - low) / 2**32 * 1e6) / 1e6
        return {**values, "wq": 0.5**exponent, "probability": held}

    return made


LINUX = {"dialect": "linux"}

# Not ared: tc's `red adaptive` was seen to adapt nothing (tc/write.py).
_SHAPED: Mapping[str, Settings] = {
    "fq_codel": _with("fq_codel", _codel, ecn=True),
    "cake": _with("cake", _cake),
    "cake rtt as here": _with("cake", _cake, _cake_rtt),
    "cake ack-filter": _with("cake", _cake, ack_filter="on"),
    "codel": _with("codel", _codel),
    "pie": _with("pie"),
    "fq_pie": _with("fq_pie"),
    "sfq": _with("sfq"),
    "short fifo": _with("bfifo", _held(0.05)),
}

_OF_PORT: Mapping[str, Settings] = {
    "fq_codel": _with("fq_codel", _codel, _packets(10_240), ecn=True),
    "codel": _with("codel", _codel, _packets(1000)),
    "pie": _with("pie", _packets(1000)),
    "fq_pie": _with("fq_pie", _packets(10_240)),
    "cake": _with("cake", _cake_of_port, _packets(10_240)),
    **{
        f"{name} {low} to {high} ms at {share} %": _with("red", law(low / 1e3, high / 1e3, share / 100), ecn=True)
        for name, law in (("red", _red), ("wred", _wred))
        for low, high, share in THRESHOLDS
    },
    **{f"fifo of {ms} ms": _with("bfifo", _held(ms / 1e3)) for ms in (2, 10, 50)},
}


def _of_red(name: str) -> list[str]:
    return [one for one in _OF_PORT if one.startswith(f"{name} ")]


PORTS: Mapping[str, Sequence[str]] = {
    "linux": ("fq_codel", "cake", "codel", "pie", "fq_pie", *_of_red("red"), "fifo of 2 ms", "fifo of 10 ms"),
    "hardware": (*_of_red("wred"), "fifo of 2 ms", "fifo of 10 ms", "fifo of 50 ms"),
}
"""What a router's own port may have: on Linux by tc, in hardware by weighted RED and the length of a queue."""

PLATFORMS: Mapping[str, Sequence[str]] = {
    "linux": tuple(_SHAPED),
    "openwrt": ("fq_codel", "cake", "cake rtt as here", "cake ack-filter"),
    "freebsd": ("fq_codel", "codel", "pie", "fq_pie", "short fifo"),
    "systemd-networkd": ("fq_codel", "cake", "cake rtt as here", "cake ack-filter", "codel", "pie", "fq_pie"),
    "mikrotik": ("fq_codel", "cake", "cake rtt as here", "cake ack-filter"),
    "router-without-aqm": (),
}
"""What can be configured where: on Linux by tc, on OpenWrt by its sqm-scripts, on FreeBSD by dummynet, on Linux again
by systemd.network(5), on MikroTik's routers by RouterOS 7."""

LINUX_KERNELS = ("linux", "openwrt", "systemd-networkd", "mikrotik")


def of(platform: str, line: str, rtt_s: float) -> list[Candidate]:
    """What a platform has for a kind of link, and first what there is today."""
    is_port = ACCESS[line].is_port
    names, settings = (PORTS[platform], _OF_PORT) if is_port else (PLATFORMS[platform], _SHAPED)
    found = [Candidate(TODAY, None)]
    if line == "docsis":
        found.append(Candidate("modem's docsis_pie", _with("docsis_pie"), in_modem=True))
    for name in names:
        if name != "cake rtt as here" or rtt_s <= 0.07:
            own = settings[name]
            found.append(Candidate(name, _in_dialect(own) if platform in LINUX_KERNELS else own))
    if len(found) == 1:
        raise BadInput(
            f"--on {platform}: has no discipline to choose from on {line}; put a router behind it that shapes, "
            "and say --on openwrt, linux or freebsd"
        )
    return found


def _in_dialect(settings: Settings) -> Settings:
    """As Linux's kernel does it, where the discipline has that form."""

    def made(way: Way) -> dict[str, Any]:
        values = settings(way)
        return {**values, **LINUX} if "linux" in _dialects(values["kind"]) else values

    return made


def _dialects(kind: str) -> Sequence[str]:
    (row,) = [row for row in engine.disciplines() if row["name"] == kind]
    for param in row["params"]:
        if param["name"] == "dialect":
            return [str(choice) for choice in param["words"]]
    return []
