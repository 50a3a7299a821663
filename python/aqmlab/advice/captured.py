"""Traffic of the link's own: the TCP connections of a capture, in pieces as long as a run, to be asked for again.

What is asked for again are connection vectors: sizes, thinking times and round trips, without what TCP and the queues
of the day made of them. A connection belongs to the piece that it begins in, with all of its bytes. Losses of the
capture are not played: most were those of the queue that is to be replaced.

Each answer is judged by itself. It is in time if it took at most two seconds longer than its server thought about it.
Answers that nobody could have had by then, whatever the network does, are no part of the count. Those of connections
that begin before the measured window are none either, as results have only what is completed within it.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from aqmlab import scratch, units
from aqmlab.errors import BadInput
from aqmlab.vectors import ACCEPTOR, INITIATOR, Vector, convert, cvec, reading
from aqmlab.vectors.convert import QUIET_NS, Network

FEWEST_PIECES = 4
BUSIEST = 0.25
"""Runs are of the busiest quarter of the pieces, of so many at least: a queue matters when it is full."""

WHOLE = 0.9
"""The share of a piece that has to be in the capture: what is asked for in less would be spread over all of a run."""

SHARES_OF_RTT = (0.05, 0.95)
"""What lies between is what round trips are said to be, where nobody says otherwise."""

SHORTEST_RTT_S, LONGEST_RTT_S = 1e-3, 2.0


@dataclass(frozen=True)
class Piece:
    """What runs of one seed ask for."""

    vectors: Path
    down_bytes: int
    """What those ask for who opened connections."""
    up_bytes: int


@dataclass(frozen=True)
class Captured:
    """What a capture has."""

    capture: Path
    duration_s: float
    connections: int
    other_frames: float
    """The share of frames that are not TCP, and are not played."""
    unseen: int
    """Connections that had begun before the capture did: they are not played."""
    elsewhere: int
    """Connections that others opened: they are not played."""
    lost: tuple[float, float]
    """Shares of data segments that were lost, from initiators and from acceptors."""
    rtt_s: tuple[float, float]
    pieces: Sequence[Piece]
    piece_s: float
    folder: scratch.Folder
    """The files of the pieces are gone with it."""

    @property
    def down_bps(self) -> tuple[float, float]:
        """What the least and the most busy of the pieces ask for, in the mean over it."""
        return self._between([piece.down_bytes for piece in self.pieces])

    @property
    def up_bps(self) -> tuple[float, float]:
        """The same of what initiators send."""
        return self._between([piece.up_bytes for piece in self.pieces])

    def as_dict(self) -> dict[str, Any]:
        """For a program."""
        return {
            "file": str(self.capture),
            "duration_s": self.duration_s,
            "connections": self.connections,
            "pieces": len(self.pieces),
            "piece_s": self.piece_s,
            "down_bps": list(self.down_bps),
            "up_bps": list(self.up_bps),
            "other_frames": self.other_frames,
            "without_beginning": self.unseen,
            "elsewhere": self.elsewhere,
            "lost_up": self.lost[INITIATOR],
            "lost_down": self.lost[ACCEPTOR],
        }

    def _between(self, sizes: Sequence[int]) -> tuple[float, float]:
        return min(sizes) * 8 / self.piece_s, max(sizes) * 8 / self.piece_s


def read(capture: Path, begun_in: str | None, piece_s: float) -> Captured:
    """The pieces of a capture; with `begun_in`, a network as 192.168.0.0/16, of what was opened there.

    Raises `BadInput` if the file is no capture, is shorter than a piece, or has no TCP connection with its beginning
    and data.
    """
    folder = scratch.Folder("capture")
    whole = folder.path / "all.cvec"
    found = convert(capture, whole, quiet_ns=QUIET_NS, network=_network(begun_in))
    vectors = reading.read(whole)
    counts = found.counts
    if found.duration_s < WHOLE * piece_s:
        raise BadInput(
            f"{capture}: {units.say_seconds(found.duration_s)} long: expected {units.say_seconds(piece_s)} or more, as "
            "long as a run; an hour of a busy evening is best"
        )
    pieces = _pieces(vectors, piece_s, found.duration_s, folder.path)
    if not pieces:
        raise BadInput(f"{capture}: expected connections in which one end waits for the other's data, found none")
    return Captured(
        capture,
        found.duration_s,
        len(vectors),
        (counts["other_frames"] + counts["unreadable_frames"]) / counts["frames"],
        counts["without_beginning"],
        counts["elsewhere"],
        (_lost(vectors, INITIATOR), _lost(vectors, ACCEPTOR)),
        _rtts(vectors),
        pieces,
        piece_s,
        folder,
    )


def _network(text: str | None) -> Network | None:
    try:
        return None if text is None else ipaddress.ip_network(text)
    except ValueError:
        raise BadInput(f"--from {text}: expected a network such as 192.168.0.0/16") from None


def _lost(vectors: Sequence[Vector], side: int) -> float:
    """The share of losses from one end, each connection with the weight of its bytes from there."""
    sizes = [vector.bytes_from(side) for vector in vectors]
    total = sum(sizes)
    shares = [vector.losses[side] for vector in vectors]
    return sum(share * size for share, size in zip(shares, sizes, strict=True)) / total if total else 0.0


def _rtts(vectors: Sequence[Vector]) -> tuple[float, float]:
    seen = [vector.rtt_us / 1e6 for vector in vectors]
    low, high = np.clip(np.quantile(seen, SHARES_OF_RTT, method="nearest"), SHORTEST_RTT_S, LONGEST_RTT_S)
    return round(float(low), 4), round(float(high), 4)


def _pieces(vectors: Sequence[Vector], piece_s: float, duration_s: float, folder: Path) -> list[Piece]:
    """The busiest, in the order of the capture; one that the capture ends in is left out."""
    by_number: dict[int, list[Vector]] = {}
    piece_us = round(piece_s * 1e6)
    whole = math.floor(duration_s / piece_s + 1 - WHOLE)
    for vector in vectors:
        if (number := vector.start_us // piece_us) < whole:
            by_number.setdefault(number, []).append(vector)
    # Runs of a piece in which nobody is answered have nothing to say.
    filled = {number: piece for number, piece in by_number.items() if any(map(_is_answered, piece))}
    keep = max(FEWEST_PIECES, round(BUSIEST * len(filled)))
    busiest = sorted(filled, key=lambda number: (-_bytes(filled[number]), number))[:keep]
    made = []
    for number in sorted(busiest):
        own = [_from_zero(vector, number * piece_us) for vector in filled[number]]
        path = folder / f"piece-{number + 1}.cvec"
        path.write_text("".join(cvec.write(vector, place, "original") for place, vector in enumerate(own, 1)))
        made.append(Piece(path, *(sum(vector.bytes_from(side) for vector in own) for side in (ACCEPTOR, INITIATOR))))
    return made


def _is_answered(vector: Vector) -> bool:
    return next(_answers(vector), None) is not None


def _from_zero(vector: Vector, start_us: int) -> Vector:
    return Vector(
        vector.start_us - start_us,
        vector.is_concurrent,
        vector.units,
        vector.windows,
        vector.rtt_us,
        vector.losses,
    )


def _bytes(vectors: Sequence[Vector]) -> int:
    return sum(vector.bytes_from(side) for vector in vectors for side in (INITIATOR, ACCEPTOR))


@dataclass(frozen=True)
class Answer:
    """An answer as it would be without any wait in a network."""

    begun_s: float
    """When its connection begins."""
    thought_s: float
    """What of its time is thought, by either end."""
    ends_s: float
    """When it could be there at the soonest."""


def answers(piece: Path) -> Mapping[tuple[int, int], Answer]:
    """Those of a piece, by the number of the connection in the file and by their order within it."""
    stamp = piece.stat().st_mtime_ns
    return _answers_of(piece, stamp)


@lru_cache(maxsize=64)
def _answers_of(piece: Path, stamp: int) -> Mapping[tuple[int, int], Answer]:
    del stamp  # another file under the same name is another piece
    vectors = reading.read(piece)
    return {
        (number, order): answer
        for number, vector in enumerate(vectors)
        for order, answer in enumerate(_answers(vector))
    }


def _answers(vector: Vector) -> Iterator[Answer]:
    """What the player of vectors makes an exchange of (`session::Player`), on a clock that knows round trips only."""
    begun, rtt = vector.start_us / 1e6, vector.rtt_us / 1e6
    if vector.is_concurrent:
        if not all(vector.bytes_from(side) for side in (INITIATOR, ACCEPTOR)):
            return
        thought = max(sum(unit.wait_us for unit in vector.units if unit.side == side) for side in (0, 1)) / 1e6
        yield Answer(begun, thought, begun + thought + 1.5 * rtt)
        return
    now, units = begun + rtt, vector.units
    for place, unit in enumerate(units):
        is_reply = place > 0 and units[place - 1].side != unit.side
        now += unit.wait_us / 1e6 + (rtt / 2 if is_reply else 0.0)
        next_one = units[place + 1] if place + 1 < len(units) else None
        if unit.side == INITIATOR and next_one and next_one.side == ACCEPTOR and next_one.size_bytes:
            # The first of a connection counts from its opening, and so what its opener waits then.
            thought = (next_one.wait_us + (0 if place else unit.wait_us)) / 1e6
            yield Answer(begun, thought, now + next_one.wait_us / 1e6 + rtt)
