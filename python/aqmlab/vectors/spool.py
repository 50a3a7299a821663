"""Puts vectors, which come in the order in which connections end, into the order in which they began, by a file."""

import pickle
import tempfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from aqmlab.vectors.model import Unit, Vector


class Spool:
    """Holds vectors in any order on disk; in memory are two numbers of each."""

    def __init__(self, folder: Path) -> None:
        # Without a name, readable by nobody else, gone with the process.
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `__exit__`
        self._starts = array("q")
        self._places = array("q")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, start_ns: int, vector: Vector) -> None:
        """Puts a vector away that begins at `start_ns`, whatever it says itself."""
        self._starts.append(start_ns)
        self._places.append(self._file.tell())
        units = [(unit.side, unit.wait_us, unit.size_bytes) for unit in vector.units]
        kept = (vector.is_concurrent, units, vector.windows, vector.rtt_us, vector.losses)
        # Of plain tuples, which takes a third of the time of the classes.
        pickle.dump(kept, self._file, pickle.HIGHEST_PROTOCOL)

    def in_order(self, origin_ns: int) -> Iterator[Vector]:
        """The vectors, in the order of their starts from `origin_ns`; of the same start as they were added."""
        if not self._starts:
            return
        import numpy as np  # only those who convert captures need it

        for index in np.argsort(np.asarray(self._starts), kind="stable"):
            self._file.seek(self._places[index])
            is_concurrent, units, windows, rtt_us, losses = pickle.load(self._file)
            start_us = (self._starts[index] - origin_ns) // 1000
            yield Vector(start_us, is_concurrent, tuple(Unit(*unit) for unit in units), windows, rtt_us, losses)
