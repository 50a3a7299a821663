"""What was measured of each case, and the bounds on it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import workloads
from cases import IDLE, SCALE_FLOWS, SCALE_RATES, WEB_FULL_S, WEB_SHORT_S, scale_name


@dataclass
class Runs:
    """Every repetition of one case."""

    user_s: list[float]
    rss_mib: list[float]
    packets: int
    events: int
    simulated_s: float
    ns2_s: list[float]
    ns2_setup_s: list[float]
    ns2_packets: int
    instructions_per_packet: float | None = None
    other_s: list[float] = field(default_factory=list)
    """Of another engine on the same scenario; empty where none was asked for, or it cannot run it."""
    other_packets: int = 0

    def us(self, pick: Callable[[Sequence[float]], float] = statistics.median) -> float:
        """Microseconds a packet."""
        return pick(self.user_s) / self.packets * 1e6

    def ns2_us(self, pick: Callable[[Sequence[float]], float] = statistics.median) -> float | None:
        """ns-2's microseconds a packet, its set-up taken off."""
        if not self.ns2_s:
            return None
        return (pick(self.ns2_s) - pick(self.ns2_setup_s)) / self.ns2_packets * 1e6

    def ns2_ratio(self) -> float | None:
        """How many times as much a packet costs in ns-2."""
        quietest = self.ns2_us(min)
        return None if quietest is None else quietest / self.us(min)

    def other_ratio(self) -> float | None:
        """What a packet costs here, by what it costs in the other engine."""
        return self.us(min) / (min(self.other_s) / self.other_packets * 1e6) if self.other_s else None

    def values(self) -> dict[str, Any]:
        """For JSON."""
        ns2 = self.ns2_us()
        return {
            "us_per_packet": {"min": r4(self.us(min)), "median": r4(self.us()), "max": r4(self.us(max))},
            "user_s": [r4(s) for s in self.user_s],
            "peak_rss_mib": round(max(self.rss_mib), 1),
            "packets": self.packets,
            "events_per_packet": round(self.events / self.packets, 3),
            "simulated_s": self.simulated_s,
            "instructions_per_packet": self.instructions_per_packet,
            "ns2": None
            if ns2 is None
            else {
                "us_per_packet": r4(ns2),
                "user_s": [r4(s) for s in self.ns2_s],
                "setup_s": [r4(s) for s in self.ns2_setup_s],
                "packets": self.ns2_packets,
                "ratio": r4(self.ns2_ratio() or math.nan),
            },
            "against": None
            if not self.other_s
            else {
                "user_s": [r4(s) for s in self.other_s],
                "packets": self.other_packets,
                "ratio": r4(self.other_ratio() or math.nan),
            },
        }


Results = dict[str, Runs]


def r4(x: float) -> float:
    """To four decimals."""
    return round(x, 4)


@dataclass(frozen=True)
class Target:
    """A bound, and the function that reads the figure it bounds out of all results."""

    title: str
    bound: float
    unit: str
    figure: Callable[[Results], float | None]
    at_least: bool = False

    @property
    def is_time(self) -> bool:
        """Whether the figure is a time, which depends on the machine and its hour."""
        return self.unit in ("us", "s")

    def on_the_day(self, results: Results) -> float | None:
        """A time as it would have been on the day of the goals; None of what is no time, or without ns-2 beside it."""
        figure, factor = self.figure(results), day_of_goals(results)
        return None if figure is None or factor is None or not self.is_time else figure * factor

    def verdict(self, results: Results) -> tuple[float | None, bool | None]:
        """The figure, and whether it, or a time of the day of the goals, is within the bound; None: not measured."""
        figure, on_the_day = self.figure(results), self.on_the_day(results)
        if figure is None:
            return None, None
        held = figure if on_the_day is None else on_the_day
        return figure, held >= self.bound if self.at_least else held <= self.bound


NS2_US_OF_GOALS = 0.582
"""What a packet of the long flows over drop-tail took ns-2 on the day and the machine of the bounds in us and s."""


def day_of_goals(results: Results) -> float | None:
    """What turns a time measured here into one of the day of the goals, by ns-2; None where that was not measured."""
    runs = results.get("bulk-droptail")
    ns2 = runs.ns2_us() if runs else None
    return None if ns2 is None else NS2_US_OF_GOALS / ns2


def us_of(name: str) -> Callable[[Results], float | None]:
    """Reads the microseconds a packet of a case."""
    return lambda results: results[name].us() if name in results else None


def ratio(name: str, base: str) -> Callable[[Results], float | None]:
    """Reads how many times the cost of the case `base` another one costs."""
    return lambda results: results[name].us(min) / results[base].us(min) if {name, base} <= results.keys() else None


def times_ns2(results: Results) -> float | None:
    """How many times aqmlab's cost ns-2 costs."""
    return results["bulk-droptail"].ns2_ratio() if "bulk-droptail" in results else None


def web_full_s(results: Results) -> float | None:
    """CPU seconds of 120 minutes of web users: measured, or extrapolated from the short run."""
    if "web-full" in results:
        return statistics.median(results["web-full"].user_s)
    if "web" in results:
        return statistics.median(results["web"].user_s) * WEB_FULL_S / WEB_SHORT_S
    return None


def web_rss(results: Results) -> float | None:
    """Most memory a web run had."""
    runs = results.get("web-full") or results.get("web")
    return max(runs.rss_mib) if runs else None


def idle_bytes(stack: str) -> Callable[[Results], float | None]:
    """Reads what an open connection takes, its vector and its share of the packets on their way included."""
    few, many = IDLE

    def read(results: Results) -> float | None:
        names = [f"idle-{stack}-{count}" for count in IDLE]
        if not results.keys() >= set(names):
            return None
        less, more = (min(results[name].rss_mib) for name in names)
        return (more - less) * 2**20 / (many - few)

    return read


def wide_ratio(results: Results) -> float | None:
    """A packet of ten flows on 10 Gb/s, by one of ten flows on 100 Mb/s."""
    names = [f"wide-{mbit}" for mbit, _ in workloads.WIDE_RATES]
    if not results.keys() >= set(names):
        return None
    slow, fast = (results[name].us(min) for name in names)
    return fast / slow


def kept_for_closed(results: Results) -> float | None:
    """Memory of a run of a million connections by that of one of a hundred thousand at the same rate."""
    names = ("arrivals-10", "arrivals-100")
    if not results.keys() >= set(names):
        return None
    less, more = (min(results[name].rss_mib) for name in names)
    return more / less


def scale_spread(results: Results) -> float | None:
    """The dearest case of the scaling matrix by the cheapest."""
    names = [scale_name(flows, mbit) for flows in SCALE_FLOWS for mbit, _ in SCALE_RATES]
    if not results.keys() >= set(names):
        return None
    costs = [results[name].us(min) for name in names]
    return max(costs) / min(costs)


TARGETS = (
    Target("100 long flows, drop-tail", 0.05, "us", us_of("bulk-droptail")),
    Target("the same in ns-2, times ours", 2.3, "x", times_ns2, at_least=True),
    Target("RED, times drop-tail", 1.10, "x", ratio("bulk-red", "bulk-droptail")),
    Target("PI, times drop-tail", 1.10, "x", ratio("bulk-pi120", "bulk-droptail")),
    Target("1480 connections/s, freebsd4", 0.08, "us", us_of("transfers-freebsd4")),
    Target("1480 connections/s, linux", 0.10, "us", us_of("transfers-linux")),
    Target("accurate ECN, times CUBIC with ECN", 1.10, "x", ratio("l4s-accurate", "l4s-linux")),
    Target("Prague, times CUBIC with ECN", 1.10, "x", ratio("l4s-prague", "l4s-linux")),
    Target("700 connections/s of PackMime", 0.40, "us", us_of("packmime")),
    Target("connection vectors, 90 Mb/s", 0.40, "us", us_of("tmix")),
    Target("1,000,000 connections in one run", 0.40, "us", us_of("arrivals-100")),
    Target("100,000 open connections, freebsd4", 0.40, "us", us_of("idle-freebsd4-100000")),
    Target("memory of an open connection, freebsd4", 1024.0, "B", idle_bytes("freebsd4")),
    Target("memory of an open connection, linux", 1024.0, "B", idle_bytes("linux")),
    Target("memory of 1,000,000 connections, times that of 100,000", 1.5, "x", kept_for_closed),
    Target("10 flows and 100 ms: 10 Gb/s, times 100 Mb/s", 1.5, "x", wide_ratio),
    Target("120 minutes of web users, CPU", 30.0, "s", web_full_s),
    Target("web users, peak memory", 500.0, "MiB", web_rss),
    Target("10 to 10,000 flows, 100 Mb/s to 10 Gb/s, dearest by cheapest", 1.5, "x", scale_spread),
    Target("10,000 long flows on 10,000 Mb/s", 0.12, "us", us_of(scale_name(10_000, 10_000))),
)
