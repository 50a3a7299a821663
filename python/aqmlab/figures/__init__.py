"""The figures of results: for reports, and for a paper, at a width and in a type that is asked for.

>>> from aqmlab import figures
>>> figures.of(comparison)["response-cdf"].save("cdf.pdf", width="column", font="Liberation Serif")
>>> figures.write(comparison, "paper/figures", width="84mm", size="9pt", format="svg")

Colours mean the same in all of them: the uncongested link is grey and dashed (nobody waits there), drop-tail is
black (the one to beat), each discipline has a hue of its own, PI the same in every report and study, solid with ECN and
dashed without when both are shown.
The hues are those of Okabe and Ito (2008), which colour-blind people tell apart too; ECN is never told by hue.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from aqmlab import arguments
from aqmlab.comparison import Column, Comparison, Entry
from aqmlab.errors import BadInput
from aqmlab.figures import glyphs
from aqmlab.figures.agreement import witness_panels
from aqmlab.figures.apart import block_responses, probe_delays
from aqmlab.figures.applications import application_distributions
from aqmlab.figures.calibration import calibration_fit
from aqmlab.figures.delay import delay_marks
from aqmlab.figures.drawn import FORMATS, Drawn, Pictures, pictures
from aqmlab.figures.looks import looks_of
from aqmlab.figures.paper import SIZE, WIDTHS, sheet_of
from aqmlab.figures.queue import delay_series, queue_series, signal_series, throughput_series
from aqmlab.figures.responses import response_cdf, response_tail
from aqmlab.figures.sheet import Sheet
from aqmlab.figures.topology import network
from aqmlab.figures.waits import delay_distribution
from aqmlab.json_files import Json
from aqmlab.results import store
from aqmlab.results.result import Result

__all__ = [
    "FORMATS",
    "WIDTHS",
    "Drawn",
    "Pictures",
    "Sheet",
    "calibrations",
    "of",
    "of_columns",
    "of_comparison",
    "pictures",
    "save",
    "sheet_of",
    "write",
]


def of(found: Result | Comparison) -> dict[str, Drawn]:
    """The figures of a result or a comparison by name, the most important first."""
    if not isinstance(found, Result | Comparison):
        raise BadInput(
            f"found: {found!r}: expected a result or a comparison, as aqmlab.run, aqmlab.compare and aqmlab.load give"
        )
    if isinstance(found, Comparison):
        return {drawn.name: drawn for drawn in of_comparison(found)}
    column = Column(Entry(found.name, ".", uncongested=False), found)
    return {drawn.name: drawn for drawn in of_columns([column])}


def write(
    found: Result | Comparison,
    folder: str | Path,
    names: Sequence[str] = (),
    *,
    width: str = "column",
    size: str = SIZE,
    font: str = "",
    format: str = "pdf",
) -> list[Path]:
    """Writes figures for a paper into a folder: all of them, or those of some names."""
    if format not in FORMATS:
        raise BadInput(f"format: {format!r}: expected one of {', '.join(FORMATS)}")
    place = arguments.path(folder, "folder")
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise BadInput(f'names: {names!r}: expected a list of names of figures, as in ["queue"]')
    sheet = sheet_of(width, size, font)
    there = of(found)
    for name in names:
        if name not in there:
            raise BadInput(f"figure {name!r}: expected one of {', '.join(there)}")
    paths = [place / f"{name}.{format}" for name in names or there]
    try:
        place.mkdir(parents=True, exist_ok=True)
        with glyphs.missing_said(_names(found), "figures"):
            for path in paths:
                store.write_bytes(path, there[path.stem].as_format(format, sheet))
    except OSError as error:
        raise BadInput(
            f"{place}: cannot be written: {error.strerror or error}; expected a folder for figures"
        ) from None
    return paths


def _names(found: Result | Comparison) -> list[str]:
    """What people have called things that figures name."""
    if isinstance(found, Comparison):
        return [column.label for column in found.columns]
    return [found.name]


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
    looks = looks_of(columns)
    apart = _maybe(block_responses(comparison, looks)) + _maybe(probe_delays(comparison, looks))
    return of_columns(columns) + apart + _maybe(witness_panels(columns, looks))


def of_columns(columns: Sequence[Column]) -> list[Drawn]:
    """All figures of some results, the most important first."""
    looks = looks_of(columns)
    figures = _maybe(application_distributions(columns, looks))
    if any(run.has_exchanges for column in columns if column.completed > 0 for run in column.result.runs):
        figures += [response_cdf(columns, looks), response_tail(columns, looks)]
    figures += [*_maybe(delay_marks(columns, looks)), *_maybe(delay_distribution(columns, looks))]
    figures += _maybe(delay_series(columns, looks))
    figures += [queue_series(columns, looks), *_maybe(throughput_series(columns, looks))]
    figures += [*_maybe(signal_series(columns, looks)), *_maybe(network(columns))]
    return figures + calibrations([column.result.calibration for column in columns])


def calibrations(groups: Sequence[Sequence[Json]]) -> list[Drawn]:
    """One figure for each different calibration."""
    found = {calibration["key"]: calibration for group in groups for calibration in group}
    return [calibration_fit(facts, k) for k, facts in enumerate(found.values())]


def _maybe(figure: Drawn | None) -> list[Drawn]:
    return [] if figure is None else [figure]
