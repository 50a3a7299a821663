"""RED-PD: the history of RED's signals tells the flows that send most, and those are filtered before RED.

Source: Mahajan, Floyd and Wetherall 2001; ns-2.35, queue/red-pd.cc and tcl/ex/red-pd/monitoring.tcl, and the page for
what is not as there (signals of all kinds count, packets are filtered independently, whether a flow responds, shares of
the last interval's signals, let-offs without the 0.4 s).

At the end of an interval, with p the signalled part of what reached RED in it and p_avg the mean of that and the
p_avg before (p itself at first, as monitoring.tcl has it), each flow that was signalled is put on a list. The next
interval is 0.6 R / sqrt(1.5 p_avg), between 2 R and 10 R (``rtt`` R); the first is 10 R.

- Identified is who is on three of the last five lists, the newest among them. If p > 0.001, flows identified that did
  not change in the last four intervals and 0.4 s get p_new = min(p, p_avg) times their signals on the newest list over
  the mean of those identified, at most 2 min(p, p_avg). A flow not yet filtered begins with p_new, or
  1/2 if that is less. Of others the probability doubles if p_new is above it, and else grows by p_new (unresponsive:
  three times, 2 p_new); if that is more than 1, what the flow is left is halved instead (divided by three).
- Flows filtered that are on none of five lists and did not change in the last three (unresponsive: five) intervals are
  let off: by 0.05, or to a half where it is 0.1 or less (unresponsive: to two thirds up to 0.075), and where it is
  0.005 (0.0025) or less already, they are no longer filtered, and their last change is forgotten.

Packets of filtered flows are dropped with that probability where something is to be gained: while the average, as the
last packet left it, is at min or above and more than one packet waits; unresponsive flows always.

Readings: a flow never changed does not wait. A filtered packet is no sample of the average, and neither an arrival nor
a signal for p.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from oracle import red
from oracle.frame import Discipline, Packet, Signal, Uniform, chance
from oracle.parameters import Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {**red.DEFAULTS, "rtt": "40ms"}
LEAST_WAIT_NS = 400_000_000


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """RED-PD before a link of ``rate_bps``."""
    parameters = Parameters({**DEFAULTS, **red.computed(DEFAULTS, given)}, given)
    return Discipline(RedPd(parameters, rate_bps, uniform), parameters.length("limit"))


@dataclass
class Seen:
    """What a flow did in an interval."""

    arrivals: int = 0
    filtered: int = 0
    signals: int = 0

    def lost(self) -> float:
        """The part of its packets that were filtered or signalled."""
        return (self.filtered + self.signals) / self.arrivals


@dataclass
class Filter:
    """A flow that is filtered."""

    p: float
    before: tuple[float, float] | None = None
    """Its rate and the part it lost in the interval before."""
    good: int = 0
    bad: int = 0
    is_unresponsive: bool = False


class RedPd(red.Red):
    """The law."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        super().__init__(parameters, rate_bps, uniform)
        self.rtt_ns = parameters.time_ns("rtt")
        self.began_ns = 0
        self.ends_ns = 10 * self.rtt_ns
        self.lengths_ns: list[int] = []
        self.p_avg: float | None = None
        self.seen: dict[int, Seen] = {}
        self.lists: deque[dict[int, int]] = deque(maxlen=5)
        self.filters: dict[int, Filter] = {}
        self.changed_ns: dict[int, int] = {}

    # ---- packets ----

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Filters; what is left is RED's."""
        seen = self.seen.setdefault(packet.flow, Seen())
        seen.arrivals += 1
        if self.filters_now(packet.flow, waiting) and chance(self.filters[packet.flow].p, self.uniform):
            seen.filtered += 1
            return Signal("drop", "early")
        signal = super().arrival(packet, waiting, now_ns)
        if signal is not None:
            seen.signals += 1
        return signal

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """A loss by the limit is a signal."""
        super().refusal(packet, waiting, now_ns)
        seen = self.seen.setdefault(packet.flow, Seen())
        seen.arrivals += 1
        seen.signals += 1

    def filters_now(self, flow: int, waiting: Waiting) -> bool:
        """Whether a packet of ``flow`` may be filtered."""
        if flow not in self.filters:
            return False
        return self.filters[flow].is_unresponsive or (self.avg >= self.min and waiting.packets > 1)

    # ---- intervals ----

    def due_ns(self, ticks_done: int) -> int | None:
        """The end of the interval."""
        return self.ends_ns

    def tick(self, waiting: Waiting, now_ns: int) -> None:
        """The end of an interval."""
        at_red = sum(seen.arrivals - seen.filtered for seen in self.seen.values())
        signals = sum(seen.signals for seen in self.seen.values())
        p = signals / at_red if at_red else 0.0
        p_avg = self.p_avg = p if self.p_avg is None else (self.p_avg + p) / 2.0
        self.lists.append({flow: seen.signals for flow, seen in self.seen.items() if seen.signals})
        self.lengths_ns.append(now_ns - self.began_ns)

        self.judge_responses((now_ns - self.began_ns) / 1e9)
        if p > 0.001:
            self.hold_down(min(p, p_avg), now_ns)
        self.let_off(now_ns)

        self.seen = {}
        self.began_ns = now_ns
        length = 0.6 * self.rtt_ns / math.sqrt(1.5 * p_avg) if p_avg > 0.0 else math.inf
        self.ends_ns = now_ns + round(min(10.0 * self.rtt_ns, max(2.0 * self.rtt_ns, length)))

    def has_waited(self, flow: int, intervals: int, least_ns: int, now_ns: int) -> bool:
        """Whether the last change of a flow is so many intervals, and ``least_ns``, ago."""
        if flow not in self.changed_ns:
            return True
        wait_ns = max(least_ns, sum(self.lengths_ns[-intervals:]))
        return now_ns - self.changed_ns[flow] >= wait_ns

    def hold_down(self, p: float, now_ns: int) -> None:
        """Begins to filter those identified, or filters them more."""
        signals = {
            flow: count for flow, count in sorted(self.lists[-1].items()) if sum(flow in one for one in self.lists) >= 3
        }
        for flow, count in signals.items():
            if not self.has_waited(flow, 4, LEAST_WAIT_NS, now_ns):
                continue
            p_new = min(p * count * len(signals) / sum(signals.values()), 2.0 * p)
            held = self.filters.get(flow)
            if held is None:
                self.filters[flow] = Filter(min(p_new, 0.5))
            else:
                factor = 3.0 if held.is_unresponsive else 2.0
                raised = factor * held.p if p_new > held.p else held.p + (factor - 1.0) * p_new
                held.p = raised if raised <= 1.0 else 1.0 - (1.0 - held.p) / factor
            self.changed_ns[flow] = now_ns

    def let_off(self, now_ns: int) -> None:
        """Filters those less that RED no longer signals."""
        for flow, held in list(self.filters.items()):
            is_hard = held.is_unresponsive
            if any(flow in one for one in self.lists) or not self.has_waited(flow, 5 if is_hard else 3, 0, now_ns):
                continue
            if held.p <= (0.0025 if is_hard else 0.005):
                del self.filters[flow]
                del self.changed_ns[flow]
            else:
                divisor = 1.5 if is_hard else 2.0
                held.p = held.p - 0.05 if held.p > divisor * 0.05 else held.p / divisor
                self.changed_ns[flow] = now_ns

    def judge_responses(self, seconds: float) -> None:
        """Compares each filtered flow's interval with the one before: where it lost more, its rate should have fallen
        with the root of that."""
        for flow, held in self.filters.items():
            seen = self.seen.get(flow)
            if seen is None:
                held.before = None
                continue
            rate, lost = seen.arrivals / seconds, seen.lost()
            if held.before is not None and 0.1 * lost < held.before[1] < lost:
                if rate > held.before[0] * math.sqrt(held.before[1] / lost):
                    held.bad += 1
                else:
                    held.good += 1
                if held.bad >= max(3, 4 * held.good):
                    held.is_unresponsive = True
            held.before = (rate, lost)
