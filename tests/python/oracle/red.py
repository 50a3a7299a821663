"""RED: signals arriving packets with a probability that rises with a slow average of the queue.

Source: Floyd and Jacobson 1993; Floyd 2000 for gentle; RFC 3168 §7 for ECN. The dialects are those of ns-2.35
(queue/red.cc), Linux (net/sched/sch_red.c, include/net/red.h) and ALTQ (:mod:`oracle.altq`).

=========  ==================================================================================================
avg        the average queue, here in packets or mean packets
w_q        ``wq``, weight of a sample
min_th     ``min``, max_th ``max``, max_p ``probability``
p_b        the base probability: 0 below min, a ramp to max_p at max, 1 from there on; with gentle a second ramp
           from max_p at max to 1 at ``gentle_end``
p_a        the probability after spacing: p_b / (1 - count p_b)
count      packets since the last signal, -1 below min
=========  ==================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from oracle.altq import DIGITS, AltqRed
from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Measure, Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "dialect": "paper",
    "min": "5p",
    "max": "15p",
    "probability": 0.02,
    "wq": 0.002,
    "gentle": False,
    "gentle_end": "",
    "mode": "packet",
    "mean_packet": "500b",
    "wait": "",
    "mark_until": "",
    "mark_p": 1.0,
    "average_overflow": False,
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """RED before a link of ``rate_bps``."""
    parameters = Parameters({**DEFAULTS, **computed(DEFAULTS, given)}, given)
    return Discipline(Red(parameters, rate_bps, uniform), parameters.length("limit"))


def computed(defaults: Mapping[str, Written], given: Mapping[str, Written]) -> dict[str, Written]:
    """The parameters that follow from others: where gentle ends, spacing and marking by dialect."""
    known = Parameters(defaults, given)
    dialect = known.word("dialect")
    return {
        "gentle_end": known.length("max").times(2.0),
        "wait": dialect == "ns2",
        "mark_until": "full" if dialect == "linux" else "max",
    }


def idle_table(wq: float, mean_packet: int, rate_bps: int) -> tuple[list[int], int]:
    """Stab and Scell_log as tc makes them, in its ticks of 64 ns (tc_red_eval_idle_damping)."""
    ticks_per_packet = math.ceil(Fraction(8 * mean_packet * 10**9, 64 * rate_bps))
    per_tick = -math.log1p(-wq) / ticks_per_packet if wq < 1.0 else math.inf
    scell_log = 0
    # The last cell has to begin before 2^64 us.
    while 31 / per_tick >= 512 * 2**scell_log and scell_log < 56:
        scell_log += 1
    entries = [int(min(31.0, cell * 2**scell_log * per_tick)) for cell in range(1, 255)]
    return [0, *entries, 31], scell_log


class Red(Law):
    """The law."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        self.dialect = parameters.word("dialect")
        self.mean_packet = parameters.size("mean_packet")
        self.in_byte_mode = parameters.word("mode") == "byte"
        measured_in_bytes = self.in_byte_mode or parameters.length("min").in_bytes
        self.measure = Measure(measured_in_bytes, self.mean_packet)
        self.min = self.measure.packets(parameters.length("min"))
        self.max = self.measure.packets(parameters.length("max"))
        self.is_gentle = parameters.flag("gentle")
        self.gentle_end = self.measure.packets(parameters.length("gentle_end"))
        self.max_p = parameters.number("probability")
        self.wq = parameters.number("wq")
        self.waits = parameters.flag("wait")
        self.marks = parameters.flag("ecn")
        self.mark_until = parameters.word("mark_until")
        self.mark_p = parameters.number("mark_p")
        self.rate_bps = rate_bps
        self.uniform = uniform
        self.stab, self.scell_log = idle_table(self.wq, self.mean_packet, rate_bps)

        self.avg = 0.0
        self.idle_since_ns: int | None = 0
        self.count = -1
        self.count_bytes = 0  # ns-2: bytes since the last signal
        self.was_in_band = False  # ns-2's `old`
        self.stored_draw = 0.0  # Linux's qR, as a fraction of its range
        self.altq: AltqRed | None = None
        if self.dialect == "altq":
            low, high, end = (
                self.measure.exact_packets(parameters.length(name))
                for name in ("min", "max", "gentle_end" if self.is_gentle else "max")
            )
            counted_as_one = self.mean_packet if self.in_byte_mode else None
            overflows = parameters.flag("average_overflow")
            self.altq = AltqRed(self.wq, (low, high, end), counted_as_one, overflows, uniform)

    # ---- what the frame calls ----

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Samples the queue and judges the packet."""
        self.sample(waiting, now_ns)
        if self.altq is not None:
            cause = self.altq.judge(packet, waiting, self.max_p)
        elif self.dialect == "ns2":
            cause = self.judge_as_ns2(packet, waiting)
        elif self.dialect == "linux":
            cause = self.judge_as_linux(packet)
        else:
            cause = self.judge(packet)
        return None if cause is None else self.signal(packet, cause)

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """A packet refused by the limit is sampled, and restarts the spacing."""
        self.sample(waiting, now_ns)
        if self.altq is not None:
            self.altq.refused(waiting)
        elif self.dialect == "ns2":
            # red.cc judges before it looks at the limit: the band is entered or left, whatever the limit says.
            # A draw would change nothing.
            self.was_in_band = self.may_signal_as_ns2(waiting)
            self.count = 0
            self.count_bytes = 0
        elif self.dialect == "linux":
            # sch_red judges first too, and is not told what its child queue refuses.
            self.judge_as_linux(packet)
        else:
            self.count = -1 if self.avg < self.min else 0

    def vain_request(self, now_ns: int) -> None:
        """The link is idle from here on; asking again changes nothing."""
        if self.idle_since_ns is None:
            self.idle_since_ns = now_ns

    def probability(self) -> float:
        """p_b at the present average."""
        return self.curve()

    def control(self) -> float:
        """The average queue."""
        return self.avg

    # ---- the average ----

    def sample(self, waiting: Waiting, now_ns: int) -> None:
        """Makes an arrival's sample of the queue enter the average."""
        idle_since = self.idle_since_ns
        self.idle_since_ns = None
        if self.altq is not None:
            self.altq.sample(waiting, idle_since, now_ns)
            self.avg = self.altq.packets
        elif idle_since is None:
            self.avg = (1.0 - self.wq) * self.avg + self.wq * self.measure.queue(waiting)
        elif self.dialect == "ns2":
            # Whole packets that could have been sent, and then the sample as ever.
            slots = (now_ns - idle_since) * self.rate_bps // (8 * self.mean_packet * 10**9)
            self.avg *= (1.0 - self.wq) ** slots
            self.avg = (1.0 - self.wq) * self.avg + self.wq * self.measure.queue(waiting)
        else:
            self.avg = self.decayed(idle_since, now_ns)

    def decayed(self, idle_since_ns: int, now_ns: int) -> float:
        """The average after an idle time: (1 - w_q)^m, with m the packets that could have been sent."""
        if self.altq is not None:
            return self.altq.idle(idle_since_ns, now_ns) / (1 << (self.altq.wshift + DIGITS))
        if self.dialect == "linux":
            return self.decayed_as_linux((now_ns - idle_since_ns) // 1000)
        slots = (now_ns - idle_since_ns) * self.rate_bps / (8 * self.mean_packet * 1e9)
        return self.avg * math.pow(1.0 - self.wq, slots)

    def decayed_as_linux(self, us: int) -> float:
        """red_calc_qavg_from_idle_time: a shift by an entry of the table; while that is 0, down to half in a line."""
        us = min(us, 255 << self.scell_log)
        shift = self.stab[us >> self.scell_log]
        if shift == 0:
            taken = self.avg * us / 2**self.scell_log
            return self.avg - taken if taken < self.avg / 2.0 else self.avg / 2.0
        # A shift by 31 bits leaves nothing of any average that the kernel has.
        return math.ldexp(self.avg, -shift) if shift < 31 else 0.0

    # ---- the probability ----

    @property
    def end(self) -> float:
        """The average from which everything is signalled."""
        return self.gentle_end if self.is_gentle else self.max

    def curve(self) -> float:
        """p_b."""
        if self.altq is not None:
            return self.altq.probability(self.max_p)
        if self.avg >= self.end:
            return 1.0
        if self.avg < self.min:
            return 0.0
        if self.avg < self.max:
            return self.max_p * (self.avg - self.min) / (self.max - self.min)
        return self.max_p + (1.0 - self.max_p) * (self.avg - self.max) / (self.gentle_end - self.max)

    def spaced(self, p: float, count: int) -> float:
        """p_a: signals spread evenly over 1 to 1/p packets, or with wait over 1/p to 2/p (ns-2 modify_p)."""
        if self.waits:
            if count * p < 1.0:
                return 0.0
            return p / (2.0 - count * p) if count * p < 2.0 else 1.0
        return p / (1.0 - count * p) if count * p < 1.0 else 1.0

    # ---- the decision: None, "early" or "forced" ----

    def judge(self, packet: Packet) -> str | None:
        """The paper's figure 2."""
        if self.avg < self.min:
            self.count = -1
            return None
        if self.avg >= self.end:
            self.count = 0
            return "forced"
        self.count += 1
        p = self.curve()
        if self.in_byte_mode:
            p *= packet.size / self.mean_packet
        if not chance(self.spaced(p, self.count), self.uniform):
            return None
        self.count = 0
        return "early"

    def judge_as_ns2(self, packet: Packet, waiting: Waiting) -> str | None:
        """red.cc with use_mark_p_: no signal at a queue of one, none for the first packet above min."""
        self.count += 1
        self.count_bytes += packet.size
        if not self.may_signal_as_ns2(waiting):
            self.was_in_band = False
            return None
        if not self.was_in_band:
            self.was_in_band = True
            self.count = 1
            self.count_bytes = packet.size
            return None
        count = self.count_bytes // self.mean_packet if self.in_byte_mode else self.count
        p = self.spaced(self.curve(), count)
        # modify_p scales by size after the spacing, and only what the spacing left below 1.
        if self.in_byte_mode and p < 1.0:
            p *= packet.size / self.mean_packet
        if not chance(p, self.uniform):
            return None
        self.count = 0
        self.count_bytes = 0
        return "forced" if self.avg >= self.end else "early"

    def may_signal_as_ns2(self, waiting: Waiting) -> bool:
        """Whether red.cc considers a signal at all: more than one packet (byte, where bytes are measured) waits."""
        queue = waiting.bytes if self.measure.in_bytes else waiting.packets
        return self.avg >= self.min and queue > 1

    def judge_as_linux(self, packet: Packet) -> str | None:
        """red.h, red_action: a draw is kept until count p_b reaches it; the first packet in the band never signals."""
        if self.avg < self.min:
            self.count = -1
            return None
        if self.avg >= self.end:
            self.count = -1
            return "forced"
        self.count += 1
        if self.count == 0:
            self.stored_draw = self.uniform.unit()
            return None
        p = self.curve()
        if self.in_byte_mode:
            p *= packet.size / self.mean_packet
        if self.count * p < self.stored_draw:
            return None
        self.count = 0
        self.stored_draw = self.uniform.unit()
        return "early"

    # ---- mark or drop ----

    def signal(self, packet: Packet, cause: str) -> Signal:
        """Marks if ECN allows; what could be marked and is dropped is told as overload."""
        if not (self.marks and packet.has_ect):
            return Signal("drop", cause)
        if self.altq is not None:
            places = {"max": ("band",), "end": ("band", "slope"), "full": ("band", "slope", "above")}
            is_light = self.altq.place() in places[self.mark_until]
        else:
            is_light = self.avg < {"max": self.max, "end": self.end, "full": math.inf}[self.mark_until]
        if is_light and self.curve() <= self.mark_p:
            return Signal("mark", cause)
        return Signal("drop", "overload")
