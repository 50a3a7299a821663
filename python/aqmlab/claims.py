"""What Le, Aikat, Jeffay and Smith found in 2003 and 2007, asked of a comparison's own data.

Each claim is put as measures with bounds that were fixed before any run, and the verdict follows from intervals alone:

- holds: every interval lies within its bounds;
- does not hold: an interval lies outside its bounds as a whole;
- cannot be decided: an interval crosses a bound, or there is none.

The studies print curves, hardly any numbers, so words had to be given sizes. A claim is asked only if the comparison
has the disciplines and the load it speaks of.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from aqmlab.comparison import Column, Comparison
from aqmlab.statistics import Interval
from aqmlab.window import CDF_TIMES, TAIL_TIMES

LE2003 = "Le et al., SIGCOMM 2003"
LE2007 = "Le et al., IEEE/ACM ToN 15(6), 2007"

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be decided"

EQUAL = 0.03
"""Curves that are called equal lie within 3 points of each other: 2 mm in a printed figure 6 cm high, about what two
drawn lines need to be told apart."""
CLEAR = 0.05
"""A significant or large gain is 5 points or more: half the distance between two grid lines of the figures."""
MUCH = 0.10
"""Much worse or better is 10 points or more: one grid line of the figures."""
SLIGHT = 0.01
"""An order `at least as good` may be missed by one point: the width of a drawn line."""
SIMILAR = 0.02
"""Utilisation and completed exchanges are called similar within 2 %: the least by which the studies' loads differ
noticeably (90, 98 and 105 % are 8 % apart)."""

POINTS, PERCENT, SHARE = "points", "%", "% of exchanges"


@dataclass(frozen=True)
class Finding:
    """One measured number of a claim and the bounds it was given."""

    label: str
    interval: Interval
    low: float
    high: float
    """Both bounds are exclusive; infinite ones are none."""
    unit: str

    @property
    def verdict(self) -> str:
        """What the interval says about the bounds."""
        if self.interval.half_width is None or not math.isfinite(self.interval.value):
            return OPEN
        if self.low < self.interval.low and self.interval.high < self.high:
            return HOLDS
        if self.interval.high <= self.low or self.interval.low >= self.high:
            return FAILS
        return OPEN

    @property
    def number(self) -> str:
        """`+3.10 ± 0.40 points`."""
        if not math.isfinite(self.interval.value):
            return "no data"
        sign = "" if self.unit == SHARE else "+"
        width = self.interval.half_width
        around = "" if width is None else f" ± {100 * width:.2f}"
        return f"{100 * self.interval.value:{sign}.2f}".replace("-", "−") + f"{around} {self.unit}"

    @property
    def said(self) -> str:
        """`PI 24: +3.10 ± 0.40 points`."""
        return f"{self.label}: {self.number}"


@dataclass(frozen=True)
class Claim:
    """One claim of a study, and what this comparison's data say to it."""

    id: str
    source: str
    text: str
    measure: str
    bound: str
    reason: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """`holds`, `does not hold` or `cannot be decided`."""
        verdicts = {finding.verdict for finding in self.findings}
        if FAILS in verdicts:
            return FAILS
        return HOLDS if verdicts == {HOLDS} else OPEN

    @property
    def number(self) -> str:
        """All findings, in words."""
        return "; ".join(finding.said for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `holds` is true, false or null."""
        facts = {key: item for key, item in asdict(self).items() if key != "findings"}
        return {
            **facts,
            "verdict": self.verdict,
            "holds": {HOLDS: True, FAILS: False, OPEN: None}[self.verdict],
            "number": self.number,
            "findings": [
                {
                    "label": f.label,
                    **f.interval.as_dict(),
                    "low": f.low if math.isfinite(f.low) else None,
                    "high": f.high if math.isfinite(f.high) else None,
                    "verdict": f.verdict,
                }
                for f in self.findings
            ],
        }


def claims(comparison: Comparison) -> list[Claim]:
    """Every claim that this comparison's data can answer."""
    bench = _Bench(comparison)
    return [*_at_98(bench), *_at_90(bench)]


class _Bench:
    """The columns by the roles they have in the studies, and the ways to measure them."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.uncongested = comparison.uncongested
        self.drop_tail = self._find("pfifo", limit="240p")
        self.pi = self._find("pi", ecn=False, qref="24p")
        self.pi_ecn = self._find("pi", ecn=True, qref="24p")
        self.rem = self._find("rem", ecn=False, target="24p")
        self.rem_ecn = self._find("rem", ecn=True, target="24p")
        self.ared_byte = self._find("ared", ecn=False, mode="byte", min="12p")
        self.ared_packet = self._find("ared", ecn=False, mode="packet", min="12p")

    def _find(self, kind: str, ecn: bool | None = None, **wanted: str) -> Column | None:
        for column in self.comparison.congested:
            qdisc = column.qdisc
            if qdisc["kind"] != kind or (ecn is not None and column.ecn is not ecn):
                continue
            if all(str(qdisc.get(key)) == value for key, value in wanted.items()):
                return column
        return None

    @cached_property
    def load_percent(self) -> int | None:
        load = self.comparison.load
        return None if load is None else round(100 * load)

    def ahead(self, one: Column, other: Column, start: float, end: float) -> Interval:
        """How many more exchanges of one are done than of the other, on average over a stretch of response times."""
        i, j = _index(start), _index(end) + 1
        return self.comparison.contrast(
            one, other, lambda w: float(w.cdf[i:j].mean()), lambda w: w.cdf_parts[:, i:j].mean(axis=1)
        )

    def ahead_at(self, one: Column, other: Column, time: float) -> Interval:
        """The same at one response time."""
        return self.ahead(one, other, time, time)

    def done_within(self, column: Column, time: float) -> Interval:
        """Share of exchanges done within a time."""
        k = _index(time)
        return column.statistic(lambda w: float(w.cdf[k]), lambda w: w.cdf_parts[:, k])

    def more(self, one: Column, other: Column, measure: str) -> Interval:
        """Difference of a measure."""
        return self.comparison.difference(one, other, measure)

    def relatively_more(self, one: Column, other: Column, measure: str) -> Interval:
        """Difference of a measure relative to the other's value."""
        base = other.estimate(measure).value
        found = self.more(one, other, measure)
        if not base:
            return Interval(math.nan, None, found.n, "none")
        width = None if found.half_width is None else found.half_width / base
        return Interval(found.value / base, width, found.n, found.basis)

    def slower_than(self, one: Column, other: Column, time: float) -> Interval:
        """How many more exchanges of one than of the other take longer than a time."""
        k = int(np.searchsorted(TAIL_TIMES, time))
        return self.comparison.contrast(
            one,
            other,
            lambda w: float(w.tail[k]),
            lambda w: w.tail_counts[:, k] / np.where(w.completed > 0, w.completed, np.nan),
        )


def _index(time: float) -> int:
    return int(np.searchsorted(CDF_TIMES, time - 1e-9))


def _pairs(
    ones: Sequence[Column],
    others: Sequence[Column],
    measure: Callable[[Column, Column], Interval],
    low: float,
    high: float,
    unit: str = POINTS,
) -> tuple[Finding, ...]:
    """Each of the ones against each of the others."""
    return tuple(
        Finding(f"{one.name} − {other.name}", measure(one, other), low, high, unit)
        for one in ones
        for other in others
        if one is not other
    )


def _present(*columns: Column | None) -> list[Column]:
    return [column for column in columns if column is not None]


def _at_98(b: _Bench) -> Iterator[Claim]:
    if b.load_percent != 98:
        return
    yield from _drops_98(b)
    yield from _ared_98(b)
    yield from _ecn_98(b)
    yield from _tail_98(b)


def _drops_98(b: _Bench) -> Iterator[Claim]:
    """Without ECN."""
    good, drop_tail = _present(b.pi, b.rem, b.ared_byte), b.drop_tail
    if drop_tail and good:
        yield Claim(
            "le2007-2a",
            LE2007,
            "Dropping at 98 % load, PI, REM and ARED in byte mode serve the faster exchanges, up to some 300 ms, "
            "better than drop-tail.",
            "mean distance between the response-time curves from 50 to 300 ms",
            "above 0 for each",
            "the claim gives an order, no size",
            _pairs(good, [drop_tail], lambda x, y: b.ahead(x, y, 0.05, 0.3), 0.0, math.inf),
        )
        better = _present(b.pi, b.ared_byte)
        found = _pairs(better, [drop_tail], lambda x, y: b.ahead(x, y, 0.3, 2.0), -SLIGHT, math.inf)
        found += _pairs(_present(b.rem), [drop_tail], lambda x, y: b.ahead(x, y, 0.3, 2.0), -math.inf, SLIGHT)
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
                for x in _present(b.pi, b.rem, b.ared_byte, b.ared_packet)
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
            _pairs([drop_tail], good, lambda x, y: b.more(x, y, "loss_ratio"), 0.0, 1.0),
        )
        if b.pi:
            yield Claim(
                "le2003-9a",
                LE2003,
                "Without ECN, above 90 % load, PI gives users a modest gain over drop-tail.",
                "mean distance between the curves from 0 to 2 s",
                "above 0, at most 10 points",
                "modest is less than the distance of two grid lines of the figures",
                _pairs([b.pi], [drop_tail], lambda x, y: b.ahead(x, y, 0.0, 2.0), 0.0, MUCH),
            )
        worse = _present(b.rem, b.ared_packet)
        if worse:
            yield Claim(
                "le2007-11a",
                LE2007,
                "Without ECN, REM and ARED in packet mode serve users worse than drop-tail.",
                "mean distance between the curves from 0 to 2 s",
                "below 0 for each",
                "the claim gives an order, no size",
                _pairs(worse, [drop_tail], lambda x, y: b.ahead(x, y, 0.0, 2.0), -1.0, 0.0),
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
                for finding in _pairs([one], good[k + 1 :], lambda x, y: b.ahead_at(x, y, 0.3), -EQUAL, EQUAL)
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
            _pairs([b.uncongested], good, lambda x, y: b.ahead_at(x, y, 0.5), CLEAR, 1.0),
        )
    if b.ared_byte and (controllers := _present(b.pi, b.rem)):
        yield Claim(
            "le2007-3c",
            LE2007,
            "ARED in byte mode loses slightly fewer packets than PI and REM.",
            "loss ratio, both directions",
            "below 0 for each",
            "the claim gives an order, no size",
            _pairs([b.ared_byte], controllers, lambda x, y: b.more(x, y, "loss_ratio"), -1.0, 0.0),
        )
    if b.rem and (others := _present(b.pi, b.ared_byte)):
        found = _pairs(others, [b.rem], lambda x, y: b.more(x, y, "utilisation"), 0.0, 1.0)
        found += _pairs(others, [b.rem], lambda x, y: b.relatively_more(x, y, "completed"), 0.0, math.inf, PERCENT)
        yield Claim(
            "le2007-3d",
            LE2007,
            "ARED in byte mode and PI use the link better and complete more exchanges than REM.",
            "utilisation, then completed exchanges",
            "above 0 for each",
            "the claim gives an order, no size",
            found,
        )


def _ared_98(b: _Bench) -> Iterator[Claim]:
    """The two modes of ARED."""
    packet, byte = b.ared_packet, b.ared_byte
    if packet is None:
        return
    if others := _present(b.drop_tail, b.pi, b.rem):
        yield Claim(
            "le2007-5a",
            LE2007,
            "ARED in packet mode is much worse than drop-tail, PI and REM.",
            "distance between the curves at 500 ms",
            "at least 5 points behind each",
            "much is seen at a glance: half the distance of two grid lines",
            _pairs(others, [packet], lambda x, y: b.ahead_at(x, y, 0.5), CLEAR, 1.0),
        )
    if b.uncongested:
        yield Claim(
            "le2003-7",
            LE2003,
            "ARED (packet mode, dropping) at 98 % load: response times are very poor.",
            "distance of the uncongested curve at 500 ms",
            "at least 10 points",
            "a whole grid line of the figures",
            _pairs([b.uncongested], [packet], lambda x, y: b.ahead_at(x, y, 0.5), MUCH, 1.0),
        )
    everyone = _present(b.drop_tail, b.pi, b.pi_ecn, b.rem, b.rem_ecn)
    if everyone:
        yield Claim(
            "le2003-9c",
            LE2003,
            "ARED with recommended settings serves users worst of all.",
            "mean distance between the curves from 0 to 2 s, each against ARED in packet mode",
            "above 0 for each",
            "the claim gives an order, no size",
            _pairs(everyone, [packet], lambda x, y: b.ahead(x, y, 0.0, 2.0), 0.0, 1.0),
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
            _pairs([byte], [packet], lambda x, y: b.more(x, y, "loss_ratio"), 0.0, 1.0),
        )
    k = (_index(0.7), _index(1.0), _index(1.3))
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


def _ecn_98(b: _Bench) -> Iterator[Claim]:
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
            _pairs([marking], [plain], lambda x, y: b.ahead_at(x, y, 0.5), CLEAR, 1.0),
        )
        yield Claim(
            f"{claim_id}b",
            LE2007,
            f"{name} loses fewer packets with ECN.",
            "loss ratio, both directions, with ECN against without",
            "below 0",
            "the claim gives an order, no size",
            _pairs([marking], [plain], lambda x, y: b.more(x, y, "loss_ratio"), -1.0, 0.0),
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
    both = _present(b.pi_ecn, b.rem_ecn)
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
            _pairs(both, [b.drop_tail], lambda x, y: b.ahead_at(x, y, 0.5), CLEAR, 1.0),
        )
        yield Claim(
            "le2003-10",
            LE2003,
            "With ECN a link can run near saturation.",
            "utilisation with ECN against drop-tail at 98 % load",
            "at least −2 points for each",
            "as near to saturation as the queue that fills the link best",
            _pairs(both, [b.drop_tail], lambda x, y: b.more(x, y, "utilisation"), -SIMILAR, 1.0),
        )
    if both and (areds := _present(b.ared_byte, b.ared_packet)):
        yield Claim(
            "le2007-11b",
            LE2007,
            "At 98 % load PI and REM with ECN beat ARED.",
            "mean distance between the curves from 0 to 2 s",
            "above 0 for each",
            "the claim gives an order, no size",
            _pairs(both, areds, lambda x, y: b.ahead(x, y, 0.0, 2.0), 0.0, 1.0),
        )


def _tail_98(b: _Bench) -> Iterator[Claim]:
    """The slowest exchanges, without ECN."""
    columns = _present(b.drop_tail, b.pi, b.rem, b.ared_byte)
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
        found = _pairs([b.drop_tail], others, lambda x, y: b.slower_than(x, y, 50.0), -1.0, 0.0)
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


def _at_90(b: _Bench) -> Iterator[Claim]:
    if b.load_percent != 90:
        return
    drop_tail = b.drop_tail
    if b.ared_byte and (others := _present(drop_tail, b.pi, b.rem)):
        yield Claim(
            "le2007-1a",
            LE2007,
            "Dropping at 90 % load, ARED in byte mode is best for virtually all exchanges.",
            "mean distance between the curves from 50 ms to 2 s",
            "above 0 against each",
            "the claim gives an order, no size",
            _pairs([b.ared_byte], others, lambda x, y: b.ahead(x, y, 0.05, 2.0), 0.0, 1.0),
        )
    if drop_tail and b.pi and b.rem:
        yield Claim(
            "le2007-1b",
            LE2007,
            "PI, REM and drop-tail are equal for the fastest exchanges, up to 125 ms.",
            "distance between the curves at 125 ms",
            "within 3 points",
            "nearer curves cannot be told apart in print",
            _pairs([b.pi, b.rem], [drop_tail], lambda x, y: b.ahead_at(x, y, 0.125), -EQUAL, EQUAL),
        )
        found = _pairs([b.pi], [drop_tail], lambda x, y: b.ahead(x, y, 0.125, 2.0), 0.0, 1.0)
        found += _pairs([drop_tail], [b.rem], lambda x, y: b.ahead(x, y, 0.125, 2.0), -SLIGHT, 1.0)
        yield Claim(
            "le2007-1c",
            LE2007,
            "From there to 2 s PI is better than drop-tail, and drop-tail at least as good as REM.",
            "mean distance between the curves from 125 ms to 2 s",
            "above 0; at least −1 point",
            "at least as good may miss the order by the width of a drawn line",
            found,
        )
    marking = _present(b.pi_ecn, b.rem_ecn)
    if marking and b.uncongested:
        yield Claim(
            "le2007-11c",
            LE2007,
            "With ECN at 90 % load, PI and REM on 100 Mb/s are close to the link of 1 Gb/s.",
            "distance of the uncongested curve at 500 ms",
            "at most 5 points",
            "half the distance of two grid lines",
            _pairs([b.uncongested], marking, lambda x, y: b.ahead_at(x, y, 0.5), -1.0, CLEAR),
        )
