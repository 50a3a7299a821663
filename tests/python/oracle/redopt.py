"""REDopt: RED with parameters from a model of the TCP flows that share the link.

Source: Ziegler, Brandauer and Fdida 2001 and Brandauer et al. 2001, as far as they are known (the page's deviations);
Padhye, Firoiu, Towsley and Kurose 1998 for TCP's rate; Firoiu and Borden 2000 for the weight.

With C the link's mean packets a second, N the flows and R their round trip without the queue:

    C' = C (1 - u (1 - p)), what is left to TCP where UDP arrives with a share u of the link (``udp_rate``)
    max - min = c1 (C' R + (min + max) / 2) + c2 N + c3,  min = (max - min) / 3,  the buffer 1.5 max, whole packets
    W = (C' R + (min + max) / 2) / N, the window with the queue in the middle of the band
    1/W = sqrt(2 b p / 3) + 4 min(1, 3 sqrt(3 b p / 8)) p (1 + 32 p^2)
    max_p = 2 p times ``boost``
    w_q = 1 - 0.1^(1/n), n what the link sends while a window grows from W/2 to W, at b round trips a packet

with b packets for an ACK (``acked``) and a timeout of four round trips.

The first three are the model's equations with the bandwidth that is left to TCP in place of the link's (Brandauer et
al. 2001), the round trip in them being that with the queue in the middle of the band: R + (min + max) / 2 C'. The
weight, too, is from the model's middle of the band, not from thresholds that were given; that is declared for the
buffer.

Settled by what the engine does: C' and not C in the band, as it is in the window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from oracle import red
from oracle.frame import Discipline, Uniform
from oracle.parameters import Length, Parameters, Written

DEFAULTS: dict[str, Written] = {
    **red.DEFAULTS,
    "limit": "",
    "min": "",
    "max": "",
    "probability": "",
    "wq": "",
    "mean_packet": "1500b",
    "flows": 64.0,
    "rtt": "150ms",
    "c1": 0.02158,
    "c2": 0.567,
    "c3": 85.0,
    "udp_rate": "0bit",
    "boost": 1.1,
    "acked": 2.0,
}
TIMEOUT_IN_ROUND_TRIPS = 4.0


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """REDopt before a link of ``rate_bps``."""
    defaults = {**DEFAULTS, **designed(given, rate_bps)}
    parameters = Parameters({**defaults, **red.computed(defaults, given)}, given)
    return Discipline(red.Red(parameters, rate_bps, uniform), parameters.length("limit"))


def designed(given: Mapping[str, Written], rate_bps: int) -> dict[str, Written]:
    """The parameters that follow from the network."""
    known = Parameters(DEFAULTS, given)
    c = rate_bps / (8.0 * known.size("mean_packet"))
    n = known.number("flows")
    rtt = known.time_ns("rtt") / 1e9
    udp = known.bits_per_second("udp_rate") / rate_bps
    b = known.number("acked")

    c1 = known.number("c1")

    def left(p: float) -> float:
        return c * (1.0 - udp * (1.0 - p))

    def band(p: float) -> float:
        # The middle is 5/6 of the band, and part of what it grows with.
        return (c1 * left(p) * rtt + known.number("c2") * n + known.number("c3")) / (1.0 - c1 * 5.0 / 6.0)

    def window(p: float) -> float:
        return (left(p) * rtt + band(p) * 5.0 / 6.0) / n

    p = loss(window, b)
    low, high = band(p) / 3.0, band(p) / 3.0 + band(p)
    round_trip = rtt + (low + high) / 2.0 / left(p)
    grows_in = window(p) / 2.0 * b * round_trip
    return {
        "min": Length(low, in_bytes=False),
        "max": Length(high, in_bytes=False),
        "limit": Length(math.ceil(1.5 * high), in_bytes=False),
        "probability": min(1.0, 2.0 * p * known.number("boost")),
        "wq": -math.expm1(math.log(0.1) / (grows_in * c)),
    }


def loss(window: Callable[[float], float], b: float) -> float:
    """The p at which TCP's window is the one that is left to it, between 0 and 1, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        p = (low + high) / 2.0
        if 1.0 / window(p) > inverse_window(p, b):
            low = p
        else:
            high = p
    return (low + high) / 2.0


def inverse_window(p: float, b: float) -> float:
    """1/W of a flow that loses a part p of its packets (Padhye et al. 1998, the approximate formula)."""
    timeouts = min(1.0, 3.0 * math.sqrt(3.0 * b * p / 8.0))
    root = math.sqrt(2.0 * b * p / 3.0)
    return root + TIMEOUT_IN_ROUND_TRIPS * timeouts * p * (1.0 + 32.0 * p * p)
