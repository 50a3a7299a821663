"""Pages that a verb writes beside its tables. What draws is loaded only where a page was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from aqmlab.claims import Claim
    from aqmlab.comparison import Comparison
    from aqmlab.figures.drawers import Begun, Drawers
    from aqmlab.results.result import Result


def drawers(count: int) -> AbstractContextManager[Drawers]:
    """Processes that get ready to draw."""
    from aqmlab.figures import drawers

    return drawers.drawers(count)


def begun(ready: Drawers, found: Comparison) -> Begun:
    """The figures of a comparison, which the processes draw from now on."""
    from aqmlab import figures

    return ready.begin(list(figures.of(found).values()))


def write(found: Result | Comparison, asked: Sequence[Claim] = (), drawn: Begun | None = None) -> Path:
    """The page, written into the folder of what was found."""
    from aqmlab import report

    return report.write(found, asked, drawn)
