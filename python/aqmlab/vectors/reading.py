"""Reads connection vectors, in either of their text formats, which the engine knows."""

from pathlib import Path

from aqmlab import engine
from aqmlab.vectors.model import Unit, Vector


def read(path: Path) -> list[Vector]:
    """The vectors of a file; raises `BadInput` with the line that is wrong."""
    return [
        Vector(
            start_us=row["start_us"],
            is_concurrent=row["is_concurrent"],
            units=tuple(Unit(*unit) for unit in row["units"]),
            windows=(row["windows"][0], row["windows"][1]),
            rtt_us=row["rtt_us"],
            losses=(row["losses"][0], row["losses"][1]),
        )
        for row in engine.vectors(path)
    ]
