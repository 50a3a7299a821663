"""Claims about 98 % load without ECN: PI, REM and ARED against drop-tail, and the slowest exchanges."""

import math
from collections.abc import Iterator

from aqmlab.claims.bench import Bench, pairs, present
from aqmlab.claims.verdict import (
    CLEAR,
    EQUAL,
    LE2003,
    LE2007,
    MUCH,
    PERCENT,
    POINTS,
    SHARE,
    SLIGHT,
    Claim,
    Finding,
)
from aqmlab.statistics import Interval


def drops(b: Bench) -> Iterator[Claim]:
    """Without ECN."""
    good, drop_tail = present(b.pi, b.rem, b.ared_byte), b.drop_tail
    if drop_tail and good:
        yield Claim(
            "le2007-2a",
            LE2007,
            "Dropping at 98 % load, PI, REM and ARED in byte mode serve the faster exchanges, up to some 300 ms, "
            "better than drop-tail.",
            "mean distance between the response-time curves from 50 to 300 ms",
            "above 0 for each",
            "the claim gives an order, no size",
            pairs(good, [drop_tail], lambda x, y: b.ahead(x, y, 0.05, 0.3), 0.0, math.inf),
        )
        better = present(b.pi, b.ared_byte)
        found = pairs(better, [drop_tail], lambda x, y: b.ahead(x, y, 0.3, 2.0), -SLIGHT, math.inf)
        found += pairs(present(b.rem), [drop_tail], lambda x, y: b.ahead(x, y, 0.3, 2.0), -math.inf, SLIGHT)
        yield Claim(
            "le2007-2b",
            LE2007,
            "For the slower third, PI and ARED in byte mode are similar to drop-tail or slightly better, REM similar "
            "or slightly worse.",
            "mean distance between the curves from 0.3 to 2 s",
            "PI and ARED at least −1 point, REM at most +1 point",
            "similar may miss the order by the width of a drawn line",
            found,
        )
        yield Claim(
            "le2007-3a",
            LE2007,
            "Drop-tail with 240 packets uses the link slightly better and completes slightly more exchanges than any "
            "dropping AQM.",
            "utilisation and completed exchanges of drop-tail against each",
            "above 0 for each",
            "the claim gives an order; slightly is not bounded from above",
            tuple(
                finding
                for x in present(b.pi, b.rem, b.ared_byte, b.ared_packet)
                for finding in (
                    Finding(
                        f"utilisation, {drop_tail.name} − {x.name}",
                        b.more(drop_tail, x, "utilisation"),
                        0.0,
                        1.0,
                        POINTS,
                    ),
                    Finding(
                        f"completed, {drop_tail.name} − {x.name}",
                        b.relatively_more(drop_tail, x, "completed"),
                        0.0,
                        math.inf,
                        PERCENT,
                    ),
                )
            ),
        )
        yield Claim(
            "le2007-3b",
            LE2007,
            "But it loses more packets than PI, REM and ARED in byte mode.",
            "loss ratio of drop-tail against each, both directions",
            "above 0 for each",
            "the claim gives an order, no size",
            pairs([drop_tail], good, lambda x, y: b.more(x, y, "loss_ratio"), 0.0, 1.0),
        )
        if b.pi:
            yield Claim(
                "le2003-9a",
                LE2003,
                "Without ECN, above 90 % load, PI gives users a modest gain over drop-tail.",
                "mean distance between the curves from 0 to 2 s",
                "above 0, at most 10 points",
                "modest is less than the distance of two grid lines of the figures",
                pairs([b.pi], [drop_tail], lambda x, y: b.ahead(x, y, 0.0, 2.0), 0.0, MUCH),
            )
        worse = present(b.rem, b.ared_packet)
        if worse:
            yield Claim(
                "le2007-11a",
                LE2007,
                "Without ECN, REM and ARED in packet mode serve users worse than drop-tail.",
                "mean distance between the curves from 0 to 2 s",
                "below 0 for each",
                "the claim gives an order, no size",
                pairs(worse, [drop_tail], lambda x, y: b.ahead(x, y, 0.0, 2.0), -1.0, 0.0),
            )
    if len(good) > 1:
        yield Claim(
            "le2007-2c",
            LE2007,
            "Up to some 300 ms PI, REM and ARED in byte mode are equal.",
            "distance between their curves at 300 ms",
            "within 3 points",
            "nearer curves cannot be told apart in print",
            tuple(
                finding
                for k, one in enumerate(good)
                for finding in pairs([one], good[k + 1 :], lambda x, y: b.ahead_at(x, y, 0.3), -EQUAL, EQUAL)
            ),
        )
    if good and b.uncongested:
        yield Claim(
            "le2007-2d",
            LE2007,
            "Without ECN no AQM offsets the degradation that 98 % load brings.",
            "distance of the uncongested curve to each at 500 ms",
            "at least 5 points",
            "what is nearer than half a grid line would count as offset",
            pairs([b.uncongested], good, lambda x, y: b.ahead_at(x, y, 0.5), CLEAR, 1.0),
        )
    if b.ared_byte and (controllers := present(b.pi, b.rem)):
        yield Claim(
            "le2007-3c",
            LE2007,
            "ARED in byte mode loses slightly fewer packets than PI and REM.",
            "loss ratio, both directions",
            "below 0 for each",
            "the claim gives an order, no size",
            pairs([b.ared_byte], controllers, lambda x, y: b.more(x, y, "loss_ratio"), -1.0, 0.0),
        )
    if b.rem and (others := present(b.pi, b.ared_byte)):
        found = pairs(others, [b.rem], lambda x, y: b.more(x, y, "utilisation"), 0.0, 1.0)
        found += pairs(others, [b.rem], lambda x, y: b.relatively_more(x, y, "completed"), 0.0, math.inf, PERCENT)
        yield Claim(
            "le2007-3d",
            LE2007,
            "ARED in byte mode and PI use the link better and complete more exchanges than REM.",
            "utilisation, then completed exchanges",
            "above 0 for each",
            "the claim gives an order, no size",
            found,
        )


def tail(b: Bench) -> Iterator[Claim]:
    """The slowest exchanges, without ECN."""
    columns = present(b.drop_tail, b.pi, b.rem, b.ared_byte)
    if not columns:
        return
    yield Claim(
        "le2007-4a",
        LE2007,
        "At 98 % load about 90 % of exchanges take less than 2 s under the best dropping settings.",
        "share of exchanges within 2 s",
        "85 to 95 %",
        "about: half a grid line to either side",
        tuple(Finding(column.name, b.done_within(column, 2.0), 0.85, 0.95, SHARE) for column in columns),
    )
    others = [column for column in columns if column is not b.drop_tail]
    if b.drop_tail and others:
        long_enough = min(w.measured_s for column in columns for w in column.windows) >= 3600
        found = pairs([b.drop_tail], others, lambda x, y: b.slower_than(x, y, 50.0), -1.0, 0.0)
        if not long_enough:
            found = tuple(
                Finding(f.label, Interval(f.interval.value, None, f.interval.n, "none"), f.low, f.high, f.unit)
                for f in found
            )
        yield Claim(
            "le2007-4b",
            LE2007,
            "Of the slowest 0.05 % of exchanges, beyond some 50 s, drop-tail is best.",
            "share of exchanges slower than 50 s, drop-tail against each"
            + ("" if long_enough else " (this window is too short: it cuts off what it should count)"),
            "below 0 for each, in a window of an hour or more",
            "a window must be many times longer than what it times",
            found,
        )
