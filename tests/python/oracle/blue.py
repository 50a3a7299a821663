"""BLUE: one probability, up after an overflow, down while the link is idle.

Source: Feng, Kandlur, Saha and Shin 1999. With p_m the probability, d1 ``increment``, d2 ``decrement`` and
freeze_time ``freeze``:

- on an overflow, or with ``threshold`` when a packet meets a queue longer than that: if freeze_time has passed since
  the last step, p_m := p_m + d1, and this is the last step;
- while the link is idle: if freeze_time has passed since the last step, p_m := p_m - d2, and this is the last step.

Here the first step is never too soon, and a step may follow exactly freeze_time after the last. A step that meets the
end of the range is a step all the same: the report's rule has the bound on p_m, not on the clock.
"""

from __future__ import annotations

from collections.abc import Mapping

from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    "dialect": "paper",
    "limit": "1000p",
    "ecn": False,
    "increment": 0.0025,
    "decrement": 0.00025,
    "freeze": "100ms",
    "threshold": "",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """BLUE; the rate does not matter."""
    parameters = Parameters(DEFAULTS, given)
    return Discipline(Blue(parameters, uniform), parameters.length("limit"))


class Blue(Law):
    """The law."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        self.increment = parameters.number("increment")
        self.decrement = parameters.number("decrement")
        self.freeze_ns = parameters.time_ns("freeze")
        self.threshold = parameters.length("threshold") if parameters.has("threshold") else None
        self.marks = parameters.flag("ecn")
        self.uniform = uniform

        self.p = 0.0
        self.last_step_ns: int | None = None
        self.idle_since_ns: int | None = None

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Ends the idle time, and signals by chance."""
        self.idle_until(now_ns)
        self.idle_since_ns = None
        if self.threshold is not None and self.threshold.of(waiting) > self.threshold.amount:
            self.step_up(now_ns)
        if not chance(self.p, self.uniform):
            return None
        return Signal("mark" if self.marks and packet.has_ect else "drop", "early")

    def refusal(self, packet: Packet, waiting: Waiting, now_ns: int) -> None:
        """An overflow."""
        self.idle_until(now_ns)
        self.idle_since_ns = None
        self.step_up(now_ns)

    def vain_request(self, now_ns: int) -> None:
        """The link is idle from here on, or still."""
        if self.idle_since_ns is None:
            self.idle_since_ns = now_ns
        self.idle_until(now_ns)

    def probability(self) -> float:
        """p_m."""
        return self.p

    def step_up(self, now_ns: int) -> None:
        """The step of an overflow, unless frozen."""
        if self.last_step_ns is None or now_ns - self.last_step_ns >= self.freeze_ns:
            self.p = min(1.0, self.p + self.increment)
            self.last_step_ns = now_ns

    def idle_until(self, now_ns: int) -> None:
        """The steps of an idle time, each as soon as the freeze allows."""
        if self.idle_since_ns is None:
            return
        if self.freeze_ns == 0:
            # No time between steps: any idle instant is worth all of them.
            self.p, self.last_step_ns = 0.0, now_ns
            return
        due_ns = self.idle_since_ns
        if self.last_step_ns is not None:
            due_ns = max(due_ns, self.last_step_ns + self.freeze_ns)
        if self.p == 0.0 and due_ns <= now_ns:
            # Steps that change nothing but when the last one was.
            due_ns += (now_ns - due_ns) // self.freeze_ns * self.freeze_ns
        while due_ns <= now_ns:
            self.p = max(0.0, self.p - self.decrement)
            self.last_step_ns = due_ns
            due_ns += self.freeze_ns
