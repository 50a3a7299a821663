"""Claims about ECN at 98 % load."""

import math
from collections.abc import Iterator

from aqmlab.claims.bench import Bench, pairs, present
from aqmlab.claims.verdict import (
    CLEAR,
    EQUAL,
    LE2003,
    LE2007,
    PERCENT,
    POINTS,
    SIMILAR,
    Claim,
    Finding,
)


def marks(b: Bench) -> Iterator[Claim]:
    """With ECN."""
    for name, plain, marking, claim_id in (("PI", b.pi, b.pi_ecn, "le2007-6"), ("REM", b.rem, b.rem_ecn, "le2007-7")):
        if plain is None or marking is None:
            continue
        yield Claim(
            f"{claim_id}a",
            LE2007,
            f"ECN makes {name} significantly better at 98 % load.",
            "distance between the curves at 500 ms, with ECN against without",
            "at least 5 points",
            "half the distance of two grid lines",
            pairs([marking], [plain], lambda x, y: b.ahead_at(x, y, 0.5), CLEAR, 1.0),
        )
        yield Claim(
            f"{claim_id}b",
            LE2007,
            f"{name} loses fewer packets with ECN.",
            "loss ratio, both directions, with ECN against without",
            "below 0",
            "the claim gives an order, no size",
            pairs([marking], [plain], lambda x, y: b.more(x, y, "loss_ratio"), -1.0, 0.0),
        )
        used = b.more(marking, plain, "utilisation")
        done = b.relatively_more(marking, plain, "completed")
        low, high = (-SIMILAR, SIMILAR) if name == "PI" else (0.0, math.inf)
        yield Claim(
            f"{claim_id}c",
            LE2007,
            "Utilisation and completed exchanges "
            + ("are similar with ECN and without." if name == "PI" else "rise with ECN."),
            "utilisation; completed exchanges; with ECN against without",
            "within 2 %" if name == "PI" else "above 0",
            "loads that differ by less are not told apart" if name == "PI" else "the claim gives an order, no size",
            (
                Finding("utilisation", used, low, high, POINTS),
                Finding("completed", done, low, high, PERCENT),
            ),
        )
    both = present(b.pi_ecn, b.rem_ecn)
    if b.pi_ecn and b.rem_ecn:
        found = tuple(
            Finding(
                f"at {t:g} s, {b.rem_ecn.name} − {b.pi_ecn.name}",
                b.ahead_at(b.rem_ecn, b.pi_ecn, t),
                -EQUAL,
                EQUAL,
                POINTS,
            )
            for t in (0.1, 0.3, 0.5, 1.0)
        )
        yield Claim(
            "le2007-7d",
            LE2007,
            "With ECN, REM is about as good as PI.",
            "distance between the curves at 0.1, 0.3, 0.5 and 1 s",
            "within 3 points",
            "nearer curves cannot be told apart in print",
            found,
        )
    if both and b.drop_tail:
        yield Claim(
            "le2003-9b",
            LE2003,
            "With ECN, PI and REM are significantly better than drop-tail above 90 % load.",
            "distance between the curves at 500 ms",
            "at least 5 points",
            "half the distance of two grid lines",
            pairs(both, [b.drop_tail], lambda x, y: b.ahead_at(x, y, 0.5), CLEAR, 1.0),
        )
        yield Claim(
            "le2003-10",
            LE2003,
            "With ECN a link can run near saturation.",
            "utilisation with ECN against drop-tail at 98 % load",
            "at least −2 points for each",
            "as near to saturation as the queue that fills the link best",
            pairs(both, [b.drop_tail], lambda x, y: b.more(x, y, "utilisation"), -SIMILAR, 1.0),
        )
    if both and (areds := present(b.ared_byte, b.ared_packet)):
        yield Claim(
            "le2007-11b",
            LE2007,
            "At 98 % load PI and REM with ECN beat ARED.",
            "mean distance between the curves from 0 to 2 s",
            "above 0 for each",
            "the claim gives an order, no size",
            pairs(both, areds, lambda x, y: b.ahead(x, y, 0.0, 2.0), 0.0, 1.0),
        )
