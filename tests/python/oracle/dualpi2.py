"""DualPI2: a short queue for Scalable flows and a long one for Classic flows, with coupled signals.

Source: De Schepper, Briscoe and White 2023 (RFC 9332 appendix A); in the dialect ``linux`` net/sched/sch_dualpi2.c,
which also lends its scheduler to the RFC, for that leaves it open. PI2's controller works on the greater age of the two
heads. ECT(1) and CE go to the L-queue, others to the Classic one (C); without ``ecn`` all do, and are dropped.

==========  =============================================  =====================================================
signals     RFC: when the sum of probabilities exceeds 1,  Linux: drawn, two draws for the square; nothing while
            which then loses 1                             less than two MTUs are left
C           p'^2; from overload on drops only              the same
L           max(ramp, k p'); from overload on p'^2 drops,  k p'; beyond overload p'^2 drops, the rest is marked;
            and of the rest k p' is marked                 then the step
overload    k p' >= 1                                      k p' > 1
ramp, step  0 up to 0.8 ms, 1 from 1.2 ms on, 0 for the    marks what waited longer than ``step_thresh``, or left
            only packet of the L-queue                     more packets behind, unless the packet found
                                                           fewer than ``min_qlen_step`` L-packets
==========  =============================================  =====================================================

The scheduler keeps a credit: what leaves while both queues hold packets is charged, L-packets up by the Classic weight,
Classic ones down by the L weight. L goes first while it is not positive. When both are found empty it starts anew.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from fractions import Fraction

from oracle.frame import Discipline, Law, Packet, Told, Uniform, chance
from oracle.parameters import Length, Parameters, Written
from oracle.pi2 import Controller, is_scalable
from oracle.stream import flow_hash

DEFAULTS: dict[str, Written] = {
    "limit": "",
    "ecn": True,
    "dialect": "rfc",
    "target": "15ms",
    "tupdate": "",
    "max_rtt": "",
    "alpha": "",
    "beta": "",
    "coupling_factor": 2.0,
    "drop_on_overload": True,
    "classic_protection": 0.1,
    "native": "",
    "min_th": "",
    "range": "",
    "th_len": 1,
    "step_thresh": "1ms",
    "min_qlen_step": 0,
    "drop_early": False,
    "any_ect": False,
    "queue_protection": "",
    "critical_delay": "",
    "critical_score": "4ms",
    "aging": "4194304bit",
    "mtu": "1500b",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """DualPI2 before a link of ``rate_bps``."""
    known = Parameters(DEFAULTS, given)
    is_linux = known.word("dialect") == "linux"
    limit: Written = "10000p" if is_linux else Length(rate_bps // 32, True)
    is_cable = known.word("dialect") == "docsis"
    computed: dict[str, Written] = {
        "limit": limit,
        "native": "step" if is_linux else "ramp",
        "min_th": "800us",
        "range": "400us",
        "queue_protection": is_cable,
    }
    if is_cable:
        # MULPI: the ramp takes 2^19 ns and ends at 1 ms, or begins at two packets where these take longer.
        two_packets_ns = 2 * known.size("mtu") * 8 * 10**9 // rate_bps
        computed["min_th"] = f"{max(1_000_000 - 2**19, two_packets_ns)}ns"
        computed["range"] = f"{2**19}ns"
    settled = Parameters({**DEFAULTS, **computed}, given)
    if not settled.has("critical_delay"):
        settled = Parameters({**DEFAULTS, **computed, "critical_delay": f"{highest_ns(settled)}ns"}, given)
    return DualPi2(settled, uniform, rate_bps)


def highest_ns(parameters: Parameters) -> int:
    """Where the L-queue's own marks reach 1; of a step by time where it is."""
    if parameters.word("native") == "ramp":
        return parameters.time_ns("min_th") + parameters.time_ns("range")
    return parameters.time_ns("step_thresh") if parameters.is_time("step_thresh") else 1_000_000


class DualPi2(Discipline):
    """The discipline."""

    def __init__(self, parameters: Parameters, uniform: Uniform, rate_bps: int) -> None:
        self.is_linux = parameters.word("dialect") == "linux"
        period_ns, alpha, beta = gains(parameters)
        self.controller = Controller(parameters, alpha, beta)
        super().__init__(_Shown(self.controller, period_ns), parameters.length("limit"))
        self.drops_on_overload = parameters.flag("drop_on_overload")
        self.marks = parameters.flag("ecn")
        self.mtu = parameters.size("mtu")
        self.uniform = uniform
        self.step_ns = parameters.time_ns("step_thresh") if parameters.is_time("step_thresh") else None
        self.step_packets = None if self.step_ns is not None else parameters.length("step_thresh").amount

        self.step_least = parameters.number("min_qlen_step")
        self.drops_early = parameters.flag("drop_early")
        self.spared: set[int] = set()
        self.takes_any_ect = parameters.flag("any_ect")
        self.rate_bps = rate_bps
        self.protection = Protection(parameters) if parameters.flag("queue_protection") else None

        self.has_ramp = parameters.word("native") == "ramp"
        self.ramp_from_ns = parameters.time_ns("min_th")
        self.ramp_ns = parameters.time_ns("range")
        self.ramp_spares = parameters.number("th_len")
        # Whole percent, as tc-dualpi2(8) has them.
        self.classic_weight = math.floor(100.0 * parameters.number("classic_protection") + 0.5)
        self.l_weight = 100 - self.classic_weight

        self.l_queue: deque[Packet] = deque()
        self.c_queue: deque[Packet] = deque()
        self.l_sum = 0.0
        self.c_sum = 0.0
        self.first_credit = self.mtu * (self.classic_weight - self.l_weight)
        self.credit = self.first_credit

    # ---- the controller ----

    def tick(self, now_ns: int) -> None:
        """The controller's step."""
        ages_ns = [now_ns - queue[0].arrived_ns for queue in (self.l_queue, self.c_queue) if queue]
        self.controller.step(max(ages_ns, default=0) / 1e9)

    @property
    def is_overload(self) -> bool:
        """Whether marks no longer suffice."""
        if not self.drops_on_overload:
            return False
        return self.controller.coupled > 1.0 or (not self.is_linux and self.controller.coupled == 1.0)

    # ---- packets ----

    def offer(self, packet: Packet, now_ns: int) -> list[Told]:
        """Offers a packet; what is told of it."""
        packet.arrived_ns = now_ns
        if self._is_full(packet):
            return [Told("drop", "tail", packet.number)]
        is_l = self.marks and (is_scalable(packet) or (self.takes_any_ect and packet.has_ect))
        if is_l and self.protection is not None:
            is_l = not self._is_sanctioned(packet, now_ns)
        signal = None
        if self.drops_early:
            signal = self.control_l(packet) if is_l else self.control_c(packet)
            if signal is not None and signal.word == "drop":
                return [signal]
        if is_l and len(self.l_queue) < self.step_least:
            self.spared.add(packet.number)
        (self.l_queue if is_l else self.c_queue).append(packet)
        self.waiting.packets += 1
        self.waiting.bytes += packet.size
        return [*([] if signal is None else [signal]), Told("accept", number=packet.number)]

    def _is_sanctioned(self, packet: Packet, now_ns: int) -> bool:
        """RFC 9957's qprotect, with the waiting time of what is in the L-queue at the link's rate."""
        assert self.protection is not None
        delay_ns = sum(waiting.size for waiting in self.l_queue) * 8 * 10**9 // self.rate_bps
        if not self.has_ramp:
            above = (
                delay_ns > self.step_ns if self.step_ns is not None else len(self.l_queue) > (self.step_packets or 0)
            )
            native = float(above)
        elif len(self.l_queue) < self.ramp_spares or delay_ns <= self.ramp_from_ns:
            native = 0.0
        else:
            native = min(1.0, (delay_ns - self.ramp_from_ns) / self.ramp_ns)
        return self.protection.sanctions(packet, delay_ns, native, now_ns)

    def take(self, now_ns: int) -> list[Told]:
        """The link asks for a packet; what is told."""
        told: list[Told] = []
        while self.l_queue or self.c_queue:
            charge = 0
            if self.l_queue and (not self.c_queue or self.credit <= 0):
                packet = self.l_queue.popleft()
                if self.c_queue:
                    charge = self.classic_weight * packet.size
                serve = self.serve_l
            else:
                packet = self.c_queue.popleft()
                if self.l_queue:
                    charge = -self.l_weight * packet.size
                serve = self.serve_c
            self.waiting.packets -= 1
            self.waiting.bytes -= packet.size
            signal = serve(packet, now_ns)
            if signal is not None:
                told.append(signal)
                if signal.word == "drop":
                    continue
            self.credit += charge
            return [*told, Told("send", number=packet.number)]
        self.credit = self.first_credit
        return [*told, Told("none")]

    def serve_l(self, packet: Packet, now_ns: int) -> Told | None:
        """What happens to an L-packet that leaves."""
        return self.serve_l_as_linux(packet, now_ns) if self.is_linux else self.serve_l_as_rfc(packet, now_ns)

    def serve_l_as_rfc(self, packet: Packet, now_ns: int) -> Told | None:
        """RFC 9332 §A.1, and §A.2 for overload."""
        if self.is_overload:
            if self.sums_up_l(self.controller.base**2):
                return Told("drop", "overload", packet.number)
            return Told("mark", "early", packet.number) if self.sums_up_l(self.controller.coupled) else None
        native = self.ramp(packet, now_ns) if self.has_ramp else float(self.is_above_step(packet, now_ns))
        if not self.sums_up_l(max(native, self.controller.coupled)):
            return None
        return Told("mark", "forced" if native >= 1.0 else "early", packet.number)

    def serve_l_as_linux(self, packet: Packet, now_ns: int) -> Told | None:
        """must_drop with dualpi2_scalable_marking, and do_step_aqm."""
        if not self.drops_early and (signal := self.control_l(packet)) is not None:
            return signal
        if not self.has_ramp:
            return Told("mark", "forced", packet.number) if self.is_above_step(packet, now_ns) else None
        native = self.ramp(packet, now_ns)
        if not chance(native, self.uniform):
            return None
        return Told("mark", "forced" if native >= 1.0 else "early", packet.number)

    def control_l(self, packet: Packet) -> Told | None:
        """What the controller does to an L-packet (must_drop with dualpi2_scalable_marking)."""
        if self.waiting.bytes >= 2 * self.mtu:
            if self.is_overload:
                if self.draws_twice():
                    return Told("drop", "overload", packet.number)
                return Told("mark", "early", packet.number)
            if chance(self.controller.coupled, self.uniform):
                return Told("mark", "early", packet.number)
        return None

    def ramp(self, packet: Packet, now_ns: int) -> float:
        """The probability of the L-queue's own marks, 0 while it holds no more than ``th_len``, this one included."""
        if len(self.l_queue) + 1 <= self.ramp_spares:
            return 0.0
        beyond_ns = now_ns - packet.arrived_ns - self.ramp_from_ns
        if beyond_ns >= self.ramp_ns:
            return 1.0
        return beyond_ns / self.ramp_ns if beyond_ns > 0 else 0.0

    def is_above_step(self, packet: Packet, now_ns: int) -> bool:
        """Whether a packet stayed longer than the step's time, or leaves more packets behind."""
        if packet.number in self.spared:
            return False
        if self.step_ns is not None:
            return now_ns - packet.arrived_ns > self.step_ns
        assert self.step_packets is not None
        return len(self.l_queue) > self.step_packets

    def serve_c(self, packet: Packet, now_ns: int) -> Told | None:
        """What happens to a Classic packet that leaves."""
        return None if self.drops_early else self.control_c(packet)

    def control_c(self, packet: Packet) -> Told | None:
        """What the controller does to a Classic packet."""
        if self.is_linux:
            is_signalled = self.waiting.bytes >= 2 * self.mtu and self.draws_twice()
        else:
            self.c_sum += min(1.0, self.controller.base**2)
            is_signalled = self.c_sum > 1.0
            if is_signalled:
                self.c_sum -= 1.0
        if not is_signalled:
            return None
        # What was sanctioned is not marked here (RFC 9331 §5.4.1.2).
        if not (self.marks and packet.has_ect) or is_scalable(packet):
            return Told("drop", "early", packet.number)
        return Told("drop", "overload", packet.number) if self.is_overload else Told("mark", "early", packet.number)

    def sums_up_l(self, probability: float) -> bool:
        """The RFC's recur for the L-queue; more than 1 counts as 1."""
        self.l_sum += min(1.0, probability)
        if self.l_sum > 1.0:
            self.l_sum -= 1.0
            return True
        return False

    def draws_twice(self) -> bool:
        """True with the square of p'."""
        return chance(self.controller.base, self.uniform) and chance(self.controller.base, self.uniform)


class Protection:
    """RFC 9957: a score for each of 32 flows, and one for all the others, that falls by a nanosecond a nanosecond."""

    def __init__(self, parameters: Parameters) -> None:
        self.critical_delay_ns = parameters.time_ns("critical_delay")
        self.critical_score_ns = parameters.time_ns("critical_score")
        self.aging_bps = parameters.rate_bps("aging")
        self.owners: list[int | None] = [None] * 33
        self.expiries_ns = [0] * 33

    def sanctions(self, packet: Packet, delay_ns: int, native: float, now_ns: int) -> bool:
        """Whether a packet goes elsewhere."""
        place = self.pick(packet.flow, now_ns)
        more_ns = int(native * packet.size * 8e9 / self.aging_bps)
        score_ns = min(self.expiries_ns[place] - now_ns + more_ns, 5_000_000_000)
        self.expiries_ns[place] = now_ns + score_ns
        if delay_ns <= self.critical_delay_ns:
            return False
        return delay_ns * score_ns > self.critical_delay_ns * self.critical_score_ns

    def pick(self, flow: int, now_ns: int) -> int:
        """pick_bucket: the flow's own of two places, else the first of them that has expired, else the last of all."""
        bits = flow_hash(flow, 0)
        places = [bits % 32, bits // 32 % 32]
        own = [place for place in places if self.owners[place] == flow]
        expired = [place for place in places if self.expiries_ns[place] <= now_ns]
        place = (own or expired or [32])[0]
        self.owners[place] = flow
        self.expiries_ns[place] = max(self.expiries_ns[place], now_ns)
        return place


class _Shown(Law):
    """Shows the controller."""

    def __init__(self, controller: Controller, period_ns: int) -> None:
        self._controller = controller
        self.period_ns = Fraction(period_ns)

    def probability(self) -> float:
        """That of a Classic signal."""
        return self._controller.base**2

    def control(self) -> float:
        """p'."""
        return self._controller.base


def gains(parameters: Parameters) -> tuple[int, float, float]:
    """The period and the gains alpha and beta: given, computed from ``max_rtt``, or the dialect's."""
    is_linux = parameters.word("dialect") == "linux"
    max_rtt_ns = parameters.time_ns("max_rtt") if parameters.has("max_rtt") else 100_000_000
    if parameters.has("tupdate"):
        period_ns = parameters.time_ns("tupdate")
    elif is_linux and not parameters.has("max_rtt"):
        period_ns = 16_000_000
    else:
        period_ns = min(parameters.time_ns("target"), max_rtt_ns // 3)
    if is_linux and not parameters.has("max_rtt"):
        alpha, beta = 0.16, 3.2
    else:
        max_rtt_s = max_rtt_ns / 1e9
        alpha, beta = 0.1 * (period_ns / 1e9) / max_rtt_s**2, 0.3 / max_rtt_s
    return (
        period_ns,
        parameters.number("alpha") if parameters.has("alpha") else alpha,
        parameters.number("beta") if parameters.has("beta") else beta,
    )
