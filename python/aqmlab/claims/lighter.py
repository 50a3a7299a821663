"""Claims about 90 % load."""

from collections.abc import Iterator

from aqmlab.claims.bench import Bench, pairs, present
from aqmlab.claims.verdict import CLEAR, EQUAL, LE2007, SLIGHT, Claim


def at_90(b: Bench) -> Iterator[Claim]:
    """All of them."""
    drop_tail = b.drop_tail
    if b.ared_byte and (others := present(drop_tail, b.pi, b.rem)):
        yield Claim(
            "le2007-1a",
            LE2007,
            "Dropping at 90 % load, ARED in byte mode is best for virtually all exchanges.",
            "mean distance between the curves from 50 ms to 2 s",
            "above 0 against each",
            "the claim gives an order, no size",
            pairs([b.ared_byte], others, lambda x, y: b.ahead(x, y, 0.05, 2.0), 0.0, 1.0),
        )
    if drop_tail and b.pi and b.rem:
        yield Claim(
            "le2007-1b",
            LE2007,
            "PI, REM and drop-tail are equal for the fastest exchanges, up to 125 ms.",
            "distance between the curves at 125 ms",
            "within 3 points",
            "nearer curves cannot be told apart in print",
            pairs([b.pi, b.rem], [drop_tail], lambda x, y: b.ahead_at(x, y, 0.125), -EQUAL, EQUAL),
        )
        found = pairs([b.pi], [drop_tail], lambda x, y: b.ahead(x, y, 0.125, 2.0), 0.0, 1.0)
        found += pairs([drop_tail], [b.rem], lambda x, y: b.ahead(x, y, 0.125, 2.0), -SLIGHT, 1.0)
        yield Claim(
            "le2007-1c",
            LE2007,
            "From there to 2 s PI is better than drop-tail, and drop-tail at least as good as REM.",
            "mean distance between the curves from 125 ms to 2 s",
            "above 0; at least −1 point",
            "at least as good may miss the order by the width of a drawn line",
            found,
        )
    marking = present(b.pi_ecn, b.rem_ecn)
    if marking and b.uncongested:
        yield Claim(
            "le2007-11c",
            LE2007,
            "With ECN at 90 % load, PI and REM on 100 Mb/s are close to the link of 1 Gb/s.",
            "distance of the uncongested curve at 500 ms",
            "at most 5 points",
            "half the distance of two grid lines",
            pairs([b.uncongested], marking, lambda x, y: b.ahead_at(x, y, 0.5), -1.0, CLEAR),
        )
