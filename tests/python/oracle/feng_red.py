"""Feng's self-configuring RED: the maximum probability follows the average out of the band.

Source: Feng, Kandlur, Saha and Shin 1999, §3. When the average falls below min, max_p is divided by ``alpha``; when it
rises above max, it is multiplied by ``beta``; each once, on the way. It stays within ``bottom`` and ``top``.

Readings: an average of exactly min or max is in the band, so that the way out of it begins there; red.cc (ns-2.35,
updateMaxPFeng) and ns-3 need an average strictly between to forget where it was. The start is below the band, without
a division.
"""

from __future__ import annotations

from collections.abc import Mapping

from oracle import red
from oracle.frame import Discipline, Uniform
from oracle.parameters import Parameters, Waiting, Written

DEFAULTS: dict[str, Written] = {
    **red.DEFAULTS,
    "probability": 0.1,
    "alpha": 3.0,
    "beta": 2.0,
    "bottom": 1e-4,
    "top": 1.0,
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """Feng's RED before a link of ``rate_bps``."""
    parameters = Parameters({**DEFAULTS, **red.computed(DEFAULTS, given)}, given)
    return Discipline(FengRed(parameters, rate_bps, uniform), parameters.length("limit"))


class FengRed(red.Red):
    """The law."""

    def __init__(self, parameters: Parameters, rate_bps: int, uniform: Uniform) -> None:
        super().__init__(parameters, rate_bps, uniform)
        self.alpha = parameters.number("alpha")
        self.beta = parameters.number("beta")
        self.bottom = parameters.number("bottom")
        self.top = parameters.number("top")
        self.place = "below"

    def sample(self, waiting: Waiting, now_ns: int) -> None:
        """As RED, and then the step, before the packet is judged."""
        super().sample(waiting, now_ns)
        place = "below" if self.avg < self.min else "above" if self.avg > self.max else "between"
        if place != self.place:
            if place == "below":
                self.max_p = max(self.bottom, self.max_p / self.alpha)
            elif place == "above":
                self.max_p = min(self.top, self.max_p * self.beta)
        self.place = place
