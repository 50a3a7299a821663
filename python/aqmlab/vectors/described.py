"""What a set of connection vectors asks for, in numbers: as a traffic model's quantities are told."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from aqmlab import statistics
from aqmlab.vectors.model import ACCEPTOR, INITIATOR, Vector

_QUANTILES = (10, 25, 50, 75, 90, 95, 99)


def described(vectors: Sequence[Vector]) -> dict[str, Any]:
    """Counts, bytes and span of a set, and its quantities, empty ones left out."""
    first, last = vectors[0].start_us, vectors[-1].start_us
    epochs = [vector.epochs for vector in vectors if not vector.is_concurrent]
    thinks = {
        side: [
            unit.wait_us / 1e6
            for vector in vectors
            if not vector.is_concurrent
            for before, unit in zip(vector.units, vector.units[1:], strict=False)
            if unit.size_bytes and unit.side == side and before.side != side
        ]
        for side in (INITIATOR, ACCEPTOR)
    }
    sizes = {
        side: [unit.size_bytes for vector in vectors for unit in vector.units if unit.size_bytes and unit.side == side]
        for side in (INITIATOR, ACCEPTOR)
    }
    rows: list[tuple[str, str, Sequence[float]]] = [
        ("connection, both ways", "bytes", [v.bytes_from(INITIATOR) + v.bytes_from(ACCEPTOR) for v in vectors]),
        ("unit of the initiator", "bytes", sizes[INITIATOR]),
        ("unit of the acceptor", "bytes", sizes[ACCEPTOR]),
        ("epochs of a sequential connection", "", epochs),
        ("think time of the initiator", "s", thinks[INITIATOR]),
        ("think time of the acceptor", "s", thinks[ACCEPTOR]),
        ("time between connections", "s", list(np.diff([vector.start_us / 1e6 for vector in vectors]))),
        ("round-trip time", "s", [vector.rtt_us / 1e6 for vector in vectors]),
        ("window of the initiator", "bytes", [vector.windows[INITIATOR] for vector in vectors]),
        ("window of the acceptor", "bytes", [vector.windows[ACCEPTOR] for vector in vectors]),
        ("loss from the initiator", "share", [vector.losses[INITIATOR] for vector in vectors]),
        ("loss from the acceptor", "share", [vector.losses[ACCEPTOR] for vector in vectors]),
    ]
    return {
        "connections": len(vectors),
        "concurrent": sum(vector.is_concurrent for vector in vectors),
        "span_s": (last - first) / 1e6,
        "initiator_bytes": sum(sizes[INITIATOR]),
        "acceptor_bytes": sum(sizes[ACCEPTOR]),
        "quantities": [quantity(name, unit, values) for name, unit, values in rows if any(values)],
    }


def quantity(name: str, unit: str, values: Sequence[float]) -> dict[str, Any]:
    """A quantity as the engine tells one: of values that were counted instead of a distribution."""
    ordered = np.sort(np.asarray(values, dtype=float))
    total = float(ordered.sum())

    def of_largest(share: float) -> float:
        # The values above the quantile, with the part of the one at it that belongs there.
        count = share * ordered.size
        whole = int(count)
        part = ordered[-whole - 1] * (count - whole) if whole < ordered.size else 0.0
        return float((ordered[ordered.size - whole :].sum() + part) / total)

    row: dict[str, Any] = {
        "name": name,
        "unit": unit,
        "mean": total / ordered.size,
        "quantiles": {
            f"p{q}": float(found)
            for q, found in zip(_QUANTILES, statistics.quantiles(ordered, [q / 100 for q in _QUANTILES]), strict=True)
        },
        "share_of_largest": {"1%": of_largest(0.01), "10%": of_largest(0.1)},
    }
    if unit == "bytes" and not name.startswith("window"):
        below = {key: int(np.searchsorted(ordered, x, side="right")) for key, x in (("10kb", 1e4), ("1mb", 1e6))}
        row["up_to"] = {
            key: {"of_values": count / ordered.size, "of_bytes": float(ordered[:count].sum() / total)}
            for key, count in below.items()
        }
    return row
