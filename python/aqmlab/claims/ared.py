"""Claims about the two modes of ARED at 98 % load."""

import math
from collections.abc import Iterator

from aqmlab.claims.bench import Bench, index, pairs, present
from aqmlab.claims.verdict import (
    CLEAR,
    LE2003,
    LE2007,
    MUCH,
    PERCENT,
    POINTS,
    Claim,
    Finding,
)


def modes(b: Bench) -> Iterator[Claim]:
    """The two modes of ARED."""
    packet, byte = b.ared_packet, b.ared_byte
    if packet is None:
        return
    if others := present(b.drop_tail, b.pi, b.rem):
        yield Claim(
            "le2007-5a",
            LE2007,
            "ARED in packet mode is much worse than drop-tail, PI and REM.",
            "distance between the curves at 500 ms",
            "at least 5 points behind each",
            "much is seen at a glance: half the distance of two grid lines",
            pairs(others, [packet], lambda x, y: b.ahead_at(x, y, 0.5), CLEAR, 1.0),
        )
    if b.uncongested:
        yield Claim(
            "le2003-7",
            LE2003,
            "ARED (packet mode, dropping) at 98 % load: response times are very poor.",
            "distance of the uncongested curve at 500 ms",
            "at least 10 points",
            "a whole grid line of the figures",
            pairs([b.uncongested], [packet], lambda x, y: b.ahead_at(x, y, 0.5), MUCH, 1.0),
        )
    everyone = present(b.drop_tail, b.pi, b.pi_ecn, b.rem, b.rem_ecn)
    if everyone:
        yield Claim(
            "le2003-9c",
            LE2003,
            "ARED with recommended settings serves users worst of all.",
            "mean distance between the curves from 0 to 2 s, each against ARED in packet mode",
            "above 0 for each",
            "the claim gives an order, no size",
            pairs(everyone, [packet], lambda x, y: b.ahead(x, y, 0.0, 2.0), 0.0, 1.0),
        )
    if byte:
        found = (
            Finding(f"at 500 ms, {byte.name} − {packet.name}", b.ahead_at(byte, packet, 0.5), CLEAR, 1.0, POINTS),
            Finding("completed", b.relatively_more(byte, packet, "completed"), 0.0, math.inf, PERCENT),
            Finding("utilisation", b.more(byte, packet, "utilisation"), 0.0, 1.0, POINTS),
        )
        yield Claim(
            "le2007-5b",
            LE2007,
            "In byte mode ARED is far better than in packet mode, completes more and uses the link better.",
            "distance between the curves at 500 ms; completed exchanges; utilisation",
            "at least 5 points; above 0; above 0",
            "far is seen at a glance: half the distance of two grid lines",
            found,
        )
        yield Claim(
            "le2007-5c",
            LE2007,
            "Although at 98 % load it loses slightly more packets than in packet mode.",
            "loss ratio, both directions",
            "above 0",
            "the claim gives an order, no size",
            pairs([byte], [packet], lambda x, y: b.more(x, y, "loss_ratio"), 0.0, 1.0),
        )
    k = (index(0.7), index(1.0), index(1.3))
    plateau = packet.statistic(
        lambda w: float((w.cdf[k[2]] - w.cdf[k[1]]) - (w.cdf[k[1]] - w.cdf[k[0]])),
        lambda w: (w.cdf_parts[:, k[2]] - w.cdf_parts[:, k[1]]) - (w.cdf_parts[:, k[1]] - w.cdf_parts[:, k[0]]),
    )
    yield Claim(
        "le2003-8",
        LE2003,
        "Responses that suffer a timeout mostly need a second or more, which shows as a plateau in the curve before.",
        "exchanges that end between 1.0 and 1.3 s less those between 0.7 and 1.0 s, under ARED in packet mode",
        "above 0",
        "without timeouts a distribution of response times falls; more exchanges after 1 s than before it are the step "
        "that follows the plateau. Timeouts of single exchanges are not recorded",
        (Finding(packet.name, plateau, 0.0, 1.0, POINTS),),
    )
