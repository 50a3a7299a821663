"""How long exchanges took in each run of a study: distributions that outlive the runs.

`curves.parquet` of a result folder has a row a run. The same file beside `study.toml` keeps those of the published and
of the medium scale, of each test bed, so that the papers' figures can be drawn without the hundreds of hours that are
simulated for them, and grow as parts of a study are run.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab.errors import BadInput
from aqmlab.json_files import Json
from aqmlab.study.cells import Cells
from aqmlab.study.definition import FULL, MEDIUM, Study
from aqmlab.sweep import table

FILE = "curves.parquet"

SCHEMA = pl.Schema(
    {
        "bed": pl.String(),
        "point": pl.String(),
        "scale": pl.String(),
        "seed": pl.Int64(),
        "completed": pl.Int64(),
        "within": pl.List(pl.UInt32()),
        "longer": pl.List(pl.UInt32()),
    }
)
"""`bed` is empty for the bare model, `scale` the name of a profile. `completed` counts exchanges of the measured
window, `within` those that took no longer than each of `CDF_TIMES`, `longer` those that took longer than each of
`TAIL_TIMES`."""

RUN = ("bed", "point", "seed")
"""What tells rows apart."""
SMALL: dict[str, Any] = {"compression": "zstd", "compression_level": 19}
"""How they are written: they lie beside the study for good."""

KEPT = (FULL, MEDIUM)
"""Scales of which distributions are kept: those of the first that a point was run at."""


def rows_of(study: Study, cells: Cells) -> pl.DataFrame:
    """The distributions of all runs of a study that have exchanges."""
    bed = "" if study.bed is None else study.bed.name
    rows = []
    for cell in cells:
        for run, window in zip(cell.runs, cell.windows, strict=True):
            if window.completed.sum() > 0 and "completed" not in window.summarised:
                within, longer = window.cdf_counts.sum(axis=0), window.tail_counts.sum(axis=0)
                counts = within.astype(np.uint32).tolist(), longer.astype(np.uint32).tolist()
                rows.append((bed, cell.name, study.profile.name, run.seed, int(window.completed.sum()), *counts))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").sort(RUN)


def write(study: Study, cells: Cells, folder: Path) -> None:
    """Writes `curves.parquet` into the result folder of a study; none where no run has exchanges."""
    found = rows_of(study, cells)
    if found.is_empty():
        (folder / FILE).unlink(missing_ok=True)
    else:
        table.save(found, folder / FILE, **SMALL)


def keep(result: Path, study_folder: Path, found: Json) -> Path | None:
    """Puts the distributions of a result folder beside `study.toml`; `found` is its `study.json`.

    Not those of the quick scale. Those of a point replace what is kept of it if they are of a larger scale, or of the
    same one and of as many runs.
    """
    if found["profile"]["name"] not in KEPT or not (result / FILE).exists():
        return None
    new, path = read(result / FILE), study_folder / FILE
    old = read(path) if path.exists() else new.clear()
    both = _worth(old).join(_worth(new), on=["bed", "point"], suffix="_new")
    is_less = (pl.col("place_new") > pl.col("place")) | (
        (pl.col("place_new") == pl.col("place")) & (pl.col("runs_new") < pl.col("runs"))
    )
    new = new.join(both.filter(is_less), on=["bed", "point"], how="anti")
    old = old.join(new, on=["bed", "point"], how="anti")
    table.save(pl.concat([old, new]).sort(RUN), path, **SMALL)
    return path


def _worth(rows: pl.DataFrame) -> pl.DataFrame:
    """Of each point the place of its scale, 0 for the largest, and how many runs there are."""
    place = pl.col("scale").replace_strict(list(KEPT), list(range(len(KEPT))), return_dtype=pl.Int64)
    return rows.group_by("bed", "point").agg(place.first().alias("place"), pl.len().alias("runs"))


def read(path: Path) -> pl.DataFrame:
    """A file of distributions, checked."""
    try:
        found = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BadInput(f"{path}: {error}; expected the table of distributions that aqmlab study writes") from None
    if found.schema != SCHEMA:
        raise BadInput(f"{path}: columns {', '.join(found.columns)}; expected {', '.join(SCHEMA)}, typed as these")
    return found
