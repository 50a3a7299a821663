"""The figures of a report, as SVG and PNG.

Colours mean the same in all of them: the uncongested link is grey and dashed (nobody waits there), drop-tail is
black (the one to beat), each discipline has a hue of its own, solid with ECN and dashed without when both are shown.
The hues are those of Okabe and Ito (2008), which colour-blind people tell apart too; ECN is never told by hue.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from aqmlab.comparison import Column, Comparison
from aqmlab.figures.agreement import witness_panels
from aqmlab.figures.calibration import calibration_fit
from aqmlab.figures.drawn import Drawn, Pictures, pictures
from aqmlab.figures.looks import looks_of
from aqmlab.figures.queue import queue_series, signal_series
from aqmlab.figures.responses import response_cdf, response_tail
from aqmlab.results import Json

__all__ = ["Drawn", "Pictures", "calibrations", "of_columns", "of_comparison", "pictures", "save"]


def save(figures: Iterable[Pictures], folder: Path) -> list[Path]:
    """Writes each figure as SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        for suffix, content in ((".svg", figure.svg.encode()), (".png", figure.png)):
            path = folder / f"{figure.name}{suffix}"
            path.write_bytes(content)
            paths.append(path)
    return paths


def of_comparison(comparison: Comparison) -> list[Drawn]:
    """All figures of a comparison, the most important first."""
    columns = comparison.columns
    return of_columns(columns) + _maybe(witness_panels(columns, looks_of(columns)))


def of_columns(columns: Sequence[Column]) -> list[Drawn]:
    """All figures of some results, the most important first."""
    looks = looks_of(columns)
    figures = []
    if any(run.has_exchanges for column in columns if column.completed > 0 for run in column.result.runs):
        figures += [response_cdf(columns, looks), response_tail(columns, looks)]
    figures += [queue_series(columns, looks), *_maybe(signal_series(columns, looks))]
    return figures + calibrations([column.result.calibration for column in columns])


def calibrations(groups: Sequence[Sequence[Json]]) -> list[Drawn]:
    """One figure for each different calibration."""
    found = {calibration["key"]: calibration for group in groups for calibration in group}
    return [calibration_fit(facts, k) for k, facts in enumerate(found.values())]


def _maybe(figure: Drawn | None) -> list[Drawn]:
    return [] if figure is None else [figure]
