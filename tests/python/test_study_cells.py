"""Windows of a study in memory: read once, as long as they fit, and what is kept small of them says the same."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from aqmlab.measures import catalogue
from aqmlab.results.exchanges import CDF_TIMES, LATE_TIMES, SIZE_EDGES
from aqmlab.results.window import Window
from aqmlab.statistics import BATCHES
from aqmlab.study.cells import Cell, Recent
from study_cells import window
from subjects import Runs

AMONG_CLASSES = 70_000.0
"""More than two bytes hold."""


def _with_classes() -> Window:
    """A window whose exchanges are counted by block of traffic and by size of the response."""
    shape = (len(SIZE_EDGES) + 1, BATCHES, CDF_TIMES.size)
    counts = np.arange(np.prod(shape), dtype=float).reshape(shape) % AMONG_CLASSES
    done = np.full(shape[:2], AMONG_CLASSES)
    tails = np.arange(LATE_TIMES.size, dtype=float)[::-1] + np.zeros((*shape[:2], 1))
    found = {"completed": done, "cdf_counts": counts, "tail_counts": tails}
    of_classes = {f"{name}_{what}": item for name in ("block", "size") for what, item in found.items()}
    return replace(window([0.1, 0.4]), **of_classes)


@dataclass(frozen=True)
class Read:
    """A run that counts how often its window is read."""

    reads: list[Window] = field(default_factory=list)

    @property
    def window(self) -> Window:
        """One more reading."""
        self.reads.append(_with_classes())
        return self.reads[-1]


def _cells(count: int) -> tuple[list[Any], list[Read]]:
    runs = [Read() for _ in range(count)]
    point: Any = None
    return [Cell(point, [run]) for run in runs], runs  # type: ignore[list-item]


def test_windows_that_fit_are_read_once() -> None:
    cells, runs = _cells(3)
    recent = Recent()
    for _ in range(4):
        for cell in cells:
            recent.of(cell)
    assert [len(run.reads) for run in runs] == [1, 1, 1]


def test_those_that_were_not_asked_for_longest_make_room() -> None:
    cells, runs = _cells(3)
    recent = Recent(memory=1)
    for cell in cells:
        recent.of(cell)
    recent.of(cells[2])
    recent.of(cells[0])
    assert [len(run.reads) for run in runs] == [2, 1, 1], "the last one stays however large it is"


@pytest.mark.parametrize("whose", [{"block": 1}, {"to_bytes": SIZE_EDGES[1]}])
@pytest.mark.parametrize(("measure", "given"), [("within", {"time_s": 0.25}), ("quantile", {"q": 0.9999})])
def test_what_is_kept_small_says_the_same(whose: dict[str, Any], measure: str, given: dict[str, float]) -> None:
    kept, plain = Recent().of(_cells(1)[0][0])[0], _with_classes()
    assert kept.size_cdf_counts.nbytes < plain.size_cdf_counts.nbytes / 1.9
    assert kept.size_tail_counts.nbytes < plain.size_tail_counts.nbytes / 3.9
    (one,) = catalogue.read({"measure": measure, **given, **whose}, "it")
    np.testing.assert_array_equal(np.array(one.parts(Runs([kept]))), np.array(one.parts(Runs([plain]))))
    assert np.shape(one.parts(Runs([kept]))) == (1, BATCHES)
    assert one.values(Runs([kept])) == one.values(Runs([plain]))
