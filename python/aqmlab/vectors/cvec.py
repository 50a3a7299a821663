"""Writes connection vectors in the two text formats that ns-2's Tmix reads: original (SEQ, CONC), alternate (S, C).

ns-2.35, doc/tmix.tex and tmix/tmix.cc. A vector begins with a line of its kind, its start in microseconds, how many
exchanges (of a concurrent one: units of each end) it has, and two numbers for it; then `w`, `r` and `l` for windows,
round-trip time and losses; then its units. The engine reads both formats (`aqmlab.vectors.reading`).

The original format has a line for each size (`>`, `<`; `c>`, `c<`) and each wait (`t`; `t>`, `t<`), the alternate one a
line for each unit, `I` or `A`: the wait after its own sending, the wait after the peer's unit, the size; size 0 closes.
Neither can say that the first unit of a sequential connection comes late. ns-2 turns a wait of 0 into one of 1, and so
does `write`. Where nobody closes, readers have the last end to send close a second later.
"""

from collections.abc import Iterator
from dataclasses import replace

from aqmlab.vectors.model import ACCEPTOR, INITIATOR, Vector

FORMATS = ("original", "alternate")

LIMIT = 1 << 40
"""The engine reads starts and waits (us) and sizes (bytes) below this: 12.7 days, 1.1 TB."""

LONGEST_RTT_US = 600_000_000
"""The longest round-trip time that the engine reads: what is longer is a stray acknowledgement."""


def within_limits(vector: Vector) -> Vector:
    """The vector with waits, sizes and round-trip time cut to what is read."""
    rtt_us = min(vector.rtt_us, LONGEST_RTT_US)
    if rtt_us == vector.rtt_us and all(max(unit.wait_us, unit.size_bytes) < LIMIT for unit in vector.units):
        return vector
    cut = (
        replace(unit, wait_us=min(unit.wait_us, LIMIT - 1), size_bytes=min(unit.size_bytes, LIMIT - 1))
        for unit in vector.units
    )
    return replace(vector, rtt_us=rtt_us, units=tuple(cut))


def write(vector: Vector, number: int, form: str = "original") -> str:
    """The lines of a vector; `number` is told twice, as the two numbers that a vector has."""
    alternate = form == "alternate"
    kind = ("SEQ", "CONC", "S", "C")[2 * alternate + vector.is_concurrent]
    counts = [vector.epochs]
    if vector.is_concurrent:
        counts = [vector.count_from(side) for side in (INITIATOR, ACCEPTOR)]
    head = [
        f"{kind} {vector.start_us} {' '.join(map(str, counts))} {number} {number}",
        # What readers refuse and no connection has: a window that is never open, a loss of everything.
        f"w {max(vector.windows[0], 1)} {max(vector.windows[1], 1)}",
        f"r {vector.rtt_us}",
        f"l {min(vector.losses[0], 0.999999):.6f} {min(vector.losses[1], 0.999999):.6f}",
    ]
    lines = _alternate(vector) if alternate else _original(vector)
    return "\n".join([*head, *lines]) + "\n"


def _alternate(vector: Vector) -> Iterator[str]:
    began: set[int] = set()
    before: int | None = None
    for unit in vector.units:
        after_peer = not vector.is_concurrent and before not in (None, unit.side)
        # What an end sends first it may send at once.
        is_first = unit.side not in began if vector.is_concurrent else before is None
        wait = unit.wait_us if is_first else max(unit.wait_us, 1)
        send, receive = (0, wait) if after_peer else (wait, 0)
        yield f"{'IA'[unit.side]} {send} {receive} {unit.size_bytes}"
        began.add(unit.side)
        before = unit.side


def _original(vector: Vector) -> Iterator[str]:
    began: set[int] = set()
    for position, unit in enumerate(vector.units):
        arrow = "><"[unit.side]
        if vector.is_concurrent:
            if unit.wait_us or unit.side in began:
                yield f"t{arrow} {max(unit.wait_us, 1)}"
            if unit.size_bytes:
                yield f"c{arrow} {unit.size_bytes}"
        else:
            if position:
                yield f"t {max(unit.wait_us, 1)}"
            if unit.size_bytes:
                yield f"{arrow} {unit.size_bytes}"
        began.add(unit.side)
