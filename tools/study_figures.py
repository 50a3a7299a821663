"""The figures of the papers that studies are made after, drawn from the distributions that are kept with each."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from aqmlab import units
from aqmlab.figures.drawn import as_on_page
from aqmlab.json_files import Json, read_json
from aqmlab.results import store
from aqmlab.results.exchanges import QUANTILES
from aqmlab.results.window import Counts, Window
from aqmlab.study import curves, figures, found
from aqmlab.study.cells import Cell, Cells
from aqmlab.study.definition import FULL, Study
from aqmlab.study.figures.cell import without_label
from aqmlab.study.figures.curves import curves_of
from aqmlab.sweep.grid import Point

HEAD = """# The papers' figures

Distributions of response times at the published scale, or of shorter runs where a figure says so, on the axes that the
papers print: milliseconds, shares by twenties, nothing enlarged. The number of a figure is the paper's; that of
le2004's figures 6 to 8 and of le2007's 4(a) and 4(b) is inferred. The papers' own figures are not here, since they are
not ours to print.

Every figure is drawn from `studies/ID/curves.parquet`, which keeps the distribution of each run. `aqmlab study ID`
makes the runs, all or with `--only` a part of them. `make studies TAKE=RESULTS` then keeps their distributions and
draws this page anew. What needs more of runs than that, as losses against a load, is kept as it was drawn, with the
command that made it. A figure of which less than half of the points were run since distributions are kept is not here
yet: [what is left to run](left.md).

Why all curves bend at 150, 300 and 1,020 ms: [le2003](../../studies/le2003/README.md#where-the-curves-bend). What the
numbers say of each claim: [the studies](../studies.md).
"""


TAKEN = "taken.json"
"""Beside such figures: the command and the date of each, by its name."""
BESIDE = {("le2003", "device"): "device-queue.png"}
"""Figures that no paper has, of the bare model, which the text beside a study shows: their files among all images."""
KINDS_TAKEN = ("against", "loss_runs", "sizes")
NUMBERED = re.compile(r"\d+[a-z]?(, \d+[a-z]?)*")
"""How papers number their figures; one of ours can stand for several."""


def take_drawn(folder: Path, study: Study, facts: Json, images: Path) -> list[Path]:
    """Copies the paper's figures that distributions are not enough for, of a result folder of the published scale.

    Only those of which every point was run: a part of a study draws them with fewer curves.
    """
    if facts["bed"] or facts["changes"] or facts["profile"]["name"] != FULL:
        return []
    ran = set(pl.read_parquet(folder / "runs.parquet", columns=["point"])["point"])
    everything = Cells(study.everything, [])
    names = [
        figures.name_of(spec)
        for spec in study.figures
        if _is_taken(spec)
        and {point.name for one in map(without_label, spec["curves"]) for point in everything.left_out(one)} <= ran
    ]
    drawn = [name for name in names if (folder / "figures" / f"{name}.png").exists()]
    if not drawn:
        return []
    place = images / study.id
    place.mkdir(parents=True, exist_ok=True)
    for name in drawn:
        shutil.copyfile(folder / "figures" / f"{name}.png", place / f"{name}.png")
    taken = _taken(place) | {name: {"command": facts["command"], "date": facts["date"]} for name in drawn}
    store.write_json(place / TAKEN, dict(sorted(taken.items())))
    return [place / f"{name}.png" for name in drawn]


def _is_taken(spec: Json) -> bool:
    return spec["kind"] in KINDS_TAKEN and NUMBERED.fullmatch(str(spec["id"])) is not None


def _taken(place: Path) -> Json:
    return read_json(place / TAKEN) if (place / TAKEN).exists() else {}


def write(studies: Sequence[Study], page: Path, images: Path) -> None:
    """Writes the page, and the figures as PNG into a folder for each study; what is not drawn any more goes."""
    parts, drawn_files = [HEAD], set[Path]()
    for study in studies:
        columns = [("", found.BARE), *((bed.name, bed.title) for bed in study.beds)]
        for bed, title in columns:
            cells = kept_cells(study, bed)
            specs = drawable(study.figures, cells)
            if not bed:
                write_beside(study, cells, images.parent)
            taken = {} if bed else _taken(images / study.id)
            kept = [spec for spec in study.figures if figures.name_of(spec) in taken]
            if not specs and not kept:
                continue
            parts.append(f"## {study.id}: {title}\n")
            drawn = [
                (spec, one)
                for spec in specs
                for one in figures.draw(
                    [spec], cells.find, cells.left_out, study.figures, _note_of(study, points_of(spec, cells))
                )
            ]
            for spec, one in drawn:
                note = _scale_said(study, spec, cells)
                place = images / study.id / f"{one.name}{f'-{bed}' if bed else ''}.png"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(as_on_page(one))
                drawn_files.add(place)
                number = one.name.removeprefix("figure-").removesuffix("-as-printed")
                link = Path(os.path.relpath(place, page.parent)).as_posix()
                parts.append(f"### {number}: {one.title}\n\n![{one.title}]({link})\n\n{note}{one.caption}\n")
            for spec in kept:
                place = images / study.id / f"{figures.name_of(spec)}.png"
                drawn_files.add(place)
                link, made = Path(os.path.relpath(place, page.parent)).as_posix(), taken[figures.name_of(spec)]
                caption = (
                    f"{' '.join(spec.get('caption', '').split())} Of `{made['command']}`, {made['date']}.".lstrip()
                )
                parts.append(f"### {spec['id']}: {spec['title']}\n\n![{spec['title']}]({link})\n\n{caption}\n")
    for path in set(images.glob("*/*.png")) - drawn_files:
        path.unlink()
    store.write_text(page, "\n".join(parts))


def write_beside(study: Study, cells: Cells, images: Path) -> None:
    """Writes the figures that the text beside a study shows."""
    for spec in study.figures:
        if (place := BESIDE.get((study.id, str(spec["id"])))) is not None:
            for one in figures.draw([spec], cells.find, cells.left_out, study.figures):
                (images / place).write_bytes(as_on_page(one))


class KeptCell(Cell):
    """A point of which distributions are kept, and nothing else of its runs."""

    def __init__(self, point: Point, scale: str, windows: Sequence[Window]) -> None:
        super().__init__(point, ())
        self._kept = list(windows)
        self.scale = scale

    @property
    def windows(self) -> list[Window]:
        """The distributions of each run."""
        return self._kept

    @cached_property
    def _resolved(self) -> Json:
        return self.point.source.resolve().scenario

    @property
    def scenario(self) -> Json:
        """The resolved scenario, before populations are put in the place of loads."""
        return self._resolved


def kept_cells(study: Study, bed: str) -> Cells:
    """The points of a study of which distributions are kept, on one test bed or on the bare model (`""`)."""
    path = study.folder / curves.FILE
    kept = curves.read(path).filter(pl.col("bed") == bed) if path.exists() else pl.DataFrame(schema=curves.SCHEMA)
    rows: dict[str, list[Json]] = {}
    for row in kept.iter_rows(named=True):
        rows.setdefault(row["point"], []).append(row)
    there = [(point, rows[point.name]) for point in study.everything if point.name in rows]
    return Cells(study.everything, [KeptCell(p, own[0]["scale"], list(map(_window, own))) for p, own in there])


def points_of(spec: Json, cells: Cells) -> list[Cell]:
    """The points of a figure of which distributions are kept, each once."""
    found = [cell for selector in map(without_label, spec["curves"]) for cell in cells.find(selector)]
    return list({cell.name: cell for cell in found}.values())


def _note_of(study: Study, points: Sequence[Cell]) -> Callable[[figures.Cell], str] | None:
    """What to say behind the names of curves of shorter runs, where longer ones stand beside them."""
    scales = {cell.scale for cell in points if isinstance(cell, KeptCell)}
    if len(scales) < 2:
        return None
    return lambda cell: _length(study, cell.scale) if isinstance(cell, KeptCell) and cell.scale != FULL else ""


def _length(study: Study, scale: str, key: str = "duration") -> str:
    """How long the runs of a shorter scale are: `35 min`."""
    return units.say_hours(units.seconds(study.tree["profiles"][scale]["set"][key], key) / 3600)


def _scale_said(study: Study, spec: Json, cells: Cells) -> str:
    """Which curves are of shorter runs, by the names in the legend, at the beginning of a caption; where any is."""
    points = points_of(spec, cells)
    shorter = {cell.name: cell.scale for cell in points if isinstance(cell, KeptCell) and cell.scale != FULL}
    if not shorter:
        return ""
    scale = next(iter(shorter.values()))
    length = f"{_length(study, scale)}, the first {_length(study, scale, 'warmup')} of them not measured"
    if len(shorter) == len(points):
        return f"All curves are of runs of {length}. "
    curves = curves_of(spec, cells.find)
    labels = dict.fromkeys(curve.label for curve in curves if curve.cell.name in shorter)
    return (
        f"Not of the published length, but of runs of {length}: {'; '.join(labels)}. Near "
        "saturation such a curve can be three points off that of whole runs. "
    )


def drawable(specs: Iterable[Json], cells: Cells) -> list[Json]:
    """The figures that distributions are enough for, those on papers' axes and tails, with half of their points."""

    def has_half(spec: Json) -> bool:
        left_out = [point.name for one in map(without_label, spec["curves"]) for point in cells.left_out(one)]
        return len(points_of(spec, cells)) >= len(set(left_out))

    return [spec for spec in specs if (spec.get(figures.PRINTED) or spec["kind"] == "ccdf") and has_half(spec)]


def _window(row: Json) -> Window:
    """A window of one part, with its distributions alone."""
    none = np.zeros((2, 1))
    return Window(
        measured_s=float("nan"),
        link=Counts((float("nan"), float("nan")), none, none, none, none, none, none, none),
        completed=np.array([float(row["completed"])]),
        quantiles=np.full((len(QUANTILES), 1), np.nan),
        whole_quantiles=np.full(len(QUANTILES), np.nan),
        cdf_counts=np.asarray(row["within"], dtype=float)[None, :],
        tail_counts=np.asarray(row["longer"], dtype=float)[None, :],
        summarised={},
    )
