"""What tc and the kernel make of words: by the order in which they stand, by what follows from others, by bounds.

Sources: iproute2's tc/q_*.c, of which q_cake.c, q_sfb.c and q_dualpi2.c compute most; for what a kernel keeps, its
net/sched/sch_*.c.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from aqmlab.tc import quantities as q
from aqmlab.tc import red
from aqmlab.tc.quantities import Raw
from aqmlab.tc.table import CELLS, FRAMINGS, OF_RED, ROUND_TRIPS, VLAN, Choice, Flag, Row

Said = Sequence[tuple[str, Raw]]
"""Words as they were written, each with its value; 1 where it stands alone."""

OF_FRAMING = frozenset({*FRAMINGS, *CELLS, VLAN, "raw", "overhead", "mpu"})

USUAL_RATIO = 6
"""How many times dualpi2's typical round-trip time its longest one is, where only one is said."""

ALPHA_FACTOR, BETA_FACTOR = 0.100000001490116, 0.300000011920929
"""A tenth and three tenths in single precision, in which tc has them."""

LONGEST_US = 2.0**32
"""tc has times in 32 bits."""

ALPHA_BETA_SCALE = 256
"""dualpi2's alpha and beta are whole multiples of 1/256 Hz, rounded down."""

SMALLEST_QUANTUM = 256
"""Bytes of a quantum at least, of those that have such a bound: sch_fq_codel.c, sch_fq_pie.c, sch_sfq.c."""

HAVE_SMALLEST_QUANTUM = ("fq_codel", "fq_pie", "sfq")

QUANTA_OF_DRR = (256, 1 << 20)
"""Bytes of a class's quantum, at least and at most: sch_drr.c."""

SFQ_DEPTH, SFQ_FLOWS, SFQ_USUAL_FLOWS = 127, 65408, 128
"""sfq's most packets of a flow, which are the usual ones; its most flows and its usual ones: sch_sfq.c.

There are no more flows than a divisor that is said, and no more packets than all flows may have.
"""

NOT_SENT = {
    "codel": ("limit", "target", "interval"),
    "fq_codel": ("limit", "flows", "quantum", "target", "interval"),
    "sfq": ("flows", "quantum", "divisor", "depth"),
    "pie": ("limit", "target", "tupdate", "alpha", "beta"),
    "fq_pie": ("limit", "flows", "target", "tupdate", "alpha", "beta", "quantum", "ecn_prob"),
    "dualpi2": ("limit", "target", "tupdate", "step_thresh"),
    "red": ("min", "max"),
    "choke": ("min", "max"),
    "cake": ("bandwidth", "rtt", "memlimit"),
    "sfb": ("limit",),
}
"""By qdisc: words whose 0 stands for what there is anyway."""

UNSENT = "tc does not pass 0 on, and the default stands"

INSTEAD = {
    ("cake", "rtt"): "tc passes a target of 1us on but no rtt, and the defaults stand here",
    ("sfb", "limit"): "the kernel takes the port's txqueuelen for 0, and the default stands here",
}
"""What to say of a word whose 0 has other effects."""

TAKEN: Mapping[str, Mapping[str, tuple[int, float]]] = {
    "sfq": {"limit": (2, math.inf)},
    "red": {"limit": (1, math.inf)},
    "choke": {"limit": (2, math.inf)},  # max at least, which is above min, which is a packet at least
    "cake": {"overhead": (-64, 256), "mpu": (0, 256)},
}
"""By qdisc: the numbers that tc takes of words of which it refuses others."""


def settled(row: Row | None, said: Said) -> dict[str, Raw]:
    """The words that count: of those that say the same thing, the last one."""
    alike = _alike(row) if row is not None else {}
    said = [(row.other_names.get(word, word) if row is not None else word, raw) for word, raw in said]
    words: dict[str, Raw] = {}
    for word, raw in said:
        for other in alike.get(word, (word,)):
            words.pop(other, None)
        words[word] = raw
    return _framed(said, words) if row is not None and row.tc == "cake" else words


def _alike(row: Row) -> dict[str, tuple[str, ...]]:
    """For each word those that say the same thing."""
    groups: list[tuple[str, ...]] = []
    for word in row.words:
        match word:
            case Flag():
                groups.append((word.tc, word.off or f"no{word.tc}"))
            case Choice():
                groups.append(tuple(word.words.values()))
    if row.tc == "cake":
        groups += [("rtt", *ROUND_TRIPS), ("bandwidth", "unlimited"), ("nat", "nonat"), ("wash", "nowash")]
    return {word: group for group in groups for word in group}


def _framed(said: Said, words: dict[str, Raw]) -> dict[str, Raw]:
    """CAKE's overhead as tc sums it up: a keyword adds its bytes to those before it, a number sets them.

    A keyword that stands first and alone stays what it is: the words behind it change what it says, as in a scenario.
    """
    framing = [(word, raw) for word, raw in said if word in OF_FRAMING]
    keywords = [word for word, _ in framing if word in FRAMINGS or word in (VLAN, "raw")]
    if not keywords or (keywords == [framing[0][0]] and keywords != [VLAN]):
        return words
    overhead, cells = 0, ""
    changed: dict[str, Raw] = {}
    for word, raw in framing:
        if word == "overhead":
            try:
                overhead = int(q.split(str(raw))[0])
            except ValueError:
                return words  # it is named where it is read
            least, most = TAKEN["cake"]["overhead"]
            if not least <= overhead <= most:
                return words  # tc refuses it
        elif word == "mpu":
            changed["mpu"] = raw
        elif word == VLAN:
            overhead += 4
        elif word == "raw":
            overhead, cells = 0, "noatm"
        elif word in CELLS:
            cells = word
        else:
            added, least, own = FRAMINGS[word]
            overhead = added if word == "conservative" else overhead + added
            changed |= {"mpu": str(least)} if least else {}
            cells = own or cells
    kept = {word: raw for word, raw in words.items() if word not in OF_FRAMING or word == "raw"}
    return {**kept, **changed, "overhead": overhead, **({cells: 1} if cells else {})}


def is_sent(row: Row, word: str, raw: Raw) -> bool:
    """Whether tc passes the value of a word on to the kernel; with what is no number it does not come so far."""
    if word not in NOT_SENT.get(row.tc, ()):
        return True
    try:
        number, unit = q.split(str(raw))
    except ValueError:
        return True
    return number != 0 or (unit in q.PACKET_UNITS and word != "step_thresh")


def taken(row: Row, words: Mapping[str, Raw]) -> tuple[dict[str, Raw], list[str]]:
    """The words of a command that tc does not refuse by their numbers, and what to say of the others.

    Of RED without the words that a weight is computed from nothing is said: they are no command of tc's.
    """
    refused: dict[str, str] = {}
    if not row.is_red or not OF_RED.isdisjoint(words):
        for word, ends in TAKEN.get(row.tc, {}).items():
            number = _bare(words.get(word))
            if number is not None and not ends[0] <= number <= ends[1]:
                refused[word] = said_of(*ends)
    if row.is_red and (least := _least_probability(row, words)):
        number = _bare(words.get("probability"))
        if number is not None and number < least:
            refused["probability"] = f"{least:.3g} or more"
    kept = {word: raw for word, raw in words.items() if word not in refused}
    return kept, [f"{word} {words[word]}: tc refuses it; expected {said}" for word, said in refused.items()]


def said_of(least: int, most: float) -> str:
    """Which numbers are expected, in words."""
    return f"{least} or more" if most == math.inf else f"{least} to {most:.0f}"


def nearest(row: Row, word: str, written: str, given: Mapping[str, str], packet_bytes: float) -> str:
    """The value nearest to a written one that tc takes; `given` are those of the words before it."""
    least, most = TAKEN.get(row.tc, {}).get(word, (-math.inf, math.inf))
    if row.is_red and word == "probability" and {"min", "max"} <= given.keys():
        band = float(given["max"]) - float(given["min"])
        least = red.least_probability(band * packet_bytes if row.tc == "choke" else band)
        most = red.MOST_PROBABILITY
    number = _bare(written)
    if number is None or least <= number <= most:
        return written
    return f"{min(max(number, least), most):.9g}"


def _bare(raw: Raw | None) -> float | None:
    """The number of a word as it was written, unless it counts packets as scenarios do; what is computed is no word."""
    try:
        number, unit = q.split(raw) if isinstance(raw, str) else (None, "")
    except ValueError:
        return None  # it is named where it is read
    return None if unit in q.PACKET_UNITS else number


def _least_probability(row: Row, words: Mapping[str, Raw]) -> float:
    """The smallest probability that tc takes of a RED; 0 where that is not known."""
    if OF_RED.isdisjoint(words) or not _bare(words.get("limit")):
        return 0.0
    try:
        least, most = red.lengths(words, row.ours)
        unit = red.average_packet(words) if row.tc == "choke" else 1.0
    except ValueError:
        return 0.0
    return red.least_probability(unit * (most - least))


def passed(row: Row, words: Mapping[str, Raw]) -> tuple[dict[str, Raw], list[str]]:
    """The words of a command that tc passes on, and what to say of the others."""
    is_ours = row.is_red and OF_RED.isdisjoint(words)
    sent = {word: raw for word, raw in words.items() if is_ours or is_sent(row, word, raw)}
    return sent, [
        f"'{word} {raw}' of {row.tc}: {INSTEAD.get((row.tc, word), UNSENT)}"
        for word, raw in words.items()
        if word not in sent
    ]


def kept(row: Row, words: Mapping[str, Raw]) -> tuple[dict[str, Raw], list[str]]:
    """The words of a command as the kernel keeps them, and what to say where that is something else."""
    bounded, remarks = passed(row, words)
    remarks += _of_a_probability_of_one(row, words)
    return bounded, remarks + _bounded(row, bounded)


def beyond_bounds(row: Row, words: Mapping[str, Raw]) -> list[str]:
    """What to say of words of a command for which the kernel takes its nearest bound."""
    return _bounded(row, dict(words))


def quantum_of_drr(size: float) -> int:
    """Bytes of the quantum that the kernel takes for a class that is given another."""
    least, most = QUANTA_OF_DRR
    return min(max(round(size), least), most)


def _bounded(row: Row, bounded: dict[str, Raw]) -> list[str]:
    remarks = []
    if row.tc in HAVE_SMALLEST_QUANTUM:
        remarks += _bound(row, bounded, "quantum", max, SMALLEST_QUANTUM)
    if row.tc == "sfq":
        remarks += _bound(row, bounded, "depth", min, SFQ_DEPTH)
        most = min(_count(bounded, "divisor") or SFQ_FLOWS, SFQ_FLOWS)
        remarks += _bound(row, bounded, "flows", min, most)
        flows = _count(bounded, "flows") or min(SFQ_USUAL_FLOWS, most)
        remarks += _bound(row, bounded, "limit", min, flows * (_count(bounded, "depth") or SFQ_DEPTH))
    return remarks


def _of_a_probability_of_one(row: Row, words: Mapping[str, Raw]) -> list[str]:
    if not row.is_red or _bare(words.get("probability")) != 1:
        return []
    said = f"'probability {words['probability']}' of {row.tc}: more than tc's 32 bits hold"
    try:
        least, most = red.lengths(words, row.ours)
        unit = red.average_packet(words) if row.tc == "choke" else 1.0
    except (KeyError, ValueError):
        return [said]
    taken_for_it = red.instead_of_one(unit * (most - least), unit)
    return [f"{said}; on x86-64 the kernel takes {taken_for_it:.3g}"] if taken_for_it < 1 else []


def _count(words: Mapping[str, Raw], word: str) -> int | None:
    try:
        if word == "quantum":
            return int(q.size(words[word])) if word in words else None
        return q.packets(words[word]) if word in words else None
    except ValueError:
        return None  # it is named where it is read


def _bound(row: Row, words: dict[str, Raw], word: str, nearer: Callable[[int, int], int], bound: int) -> list[str]:
    count = _count(words, word)
    if count is None or count < 0 or nearer(count, bound) == count:
        return []
    said, words[word] = words[word], str(bound)
    return [f"'{word} {said}' of {row.tc}: the kernel takes {bound}"]


def commanded(row: Row, words: Mapping[str, Raw]) -> dict[str, Raw]:
    """The words of a command with those that tc computes; `ValueError` where tc refuses them."""
    match row.tc:
        case "sfb":
            return _lengths_of_sfb(words)
        case "dualpi2":
            return _gains_of_dualpi2(words)
    return dict(words)


def left_aside(row: Row, words: Mapping[str, Raw]) -> list[str]:
    """What to say of words of a command that others take the place of."""
    over = [word for word in ("target", "tupdate", "alpha", "beta") if word in words]
    if not over or not any(word in words for word in row.computed_from):
        return []
    return [f"{', '.join(over)}: left aside by tc, which computes all of them from {' and '.join(row.computed_from)}"]


def _lengths_of_sfb(words: Mapping[str, Raw]) -> dict[str, Raw]:
    """The most packets of a bin are 5/4 of its target, where one of them is not said, or is 0."""
    try:
        most, target = (q.packets(words.get(word, "0")) for word in ("max", "target"))
    except ValueError:
        return dict(words)  # it is named where it is read
    if most < 0 or target < 0:
        return dict(words)
    kept = {word: raw for word, raw in words.items() if word not in ("max", "target")}
    if not most and not target:
        return kept
    most = most or (5 * target + 1) // 4
    return {**kept, "max": str(most), "target": str(target or (4 * most + 3) // 5)}


def _gains_of_dualpi2(words: Mapping[str, Raw]) -> dict[str, Raw]:
    """Target, period and gains from the typical and the longest round-trip time, whatever else is said of them."""
    longest, typical = (_whole_us(words, word) for word in ("max_rtt", "typical_rtt"))
    kept = {word: raw for word, raw in words.items() if word not in ("max_rtt", "typical_rtt")}
    if not longest and not typical:
        return kept
    typical = typical or max(longest // USUAL_RATIO, 1)
    longest = longest or typical * USUAL_RATIO
    if typical > longest:
        raise ValueError(f"typical_rtt {words['typical_rtt']}: tc refuses more than max_rtt, {words['max_rtt']}")
    period = max(int(min(float(typical), longest / 3)), 1)
    alpha, beta = ALPHA_FACTOR * 1e6 * period / longest / longest, BETA_FACTOR * 1e6 / longest
    if min(alpha, beta) < 1 / ALPHA_BETA_SCALE:
        raise ValueError(f"max_rtt {q.time_text(longest)}: tc refuses it, as it rounds alpha {alpha:.3g} to 0")
    times = {"target": q.time_text(typical), "tupdate": q.time_text(period)}
    gains = {"alpha": alpha, "beta": beta}
    return kept | times | {name: f"{int(gain * ALPHA_BETA_SCALE) / ALPHA_BETA_SCALE}" for name, gain in gains.items()}


def _whole_us(words: Mapping[str, Raw], word: str) -> int:
    if word not in words:
        return 0
    try:
        us = q.microseconds(words[word])
    except ValueError as error:
        raise ValueError(f"{word} {error}") from None
    if not 0 <= us < LONGEST_US:
        raise ValueError(f"{word} {words[word]}: tc refuses it; expected 0 to {q.time_text(LONGEST_US)}")
    return int(us)
