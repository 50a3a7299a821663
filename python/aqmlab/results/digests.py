"""Digests of tables: taken as a run is finished, and again where its results are opened."""

import contextlib
import hashlib
from collections.abc import Iterator, Sequence, Set
from pathlib import Path

import numpy as np
import polars as pl

from aqmlab import engine, forks
from aqmlab.json_files import Json
from aqmlab.results.run import Run

SLICE_ROWS = 1 << 19
"""Rows of a table in memory at a time while its digest is taken."""
MOST_ROWS = 10_000_000
"""Rows of all tables that are opened together, of which all digests are taken: less than a second. Of more, those of
tables that are younger than their manifest."""
NAMED = 3
"""Tables that were changed or removed and are named, each in a line."""


def left_out_of(summary: Json) -> Set[str]:
    """Columns that are no part of a digest: the only link is the same in every row, whatever it is called."""
    return set() if summary.get("routes") else {"link"}


def table_digest(path: Path, left_out: Set[str]) -> tuple[int, str]:
    """Number of rows, and SHA-256 over names, types, nulls and values of columns but those left out: independent of how
    Parquet packs them.

    Read in slices, for the exchanges of two hours are tens of millions of rows.
    """
    whole = hashlib.sha256()
    every = pl.read_parquet_schema(path)
    # Of a time its nanoseconds are what was found.
    left_out = left_out | {f"{name.removesuffix('_ns')}_s" for name in every if name.endswith("_ns")}
    schema = pl.Schema({name: kind for name, kind in every.items() if name not in left_out})
    whole.update(str(schema).encode())
    start, read = 0, SLICE_ROWS
    while read == SLICE_ROWS:
        rows = pl.scan_parquet(path).select(list(schema)).slice(start, SLICE_ROWS).collect()
        read = rows.height
        if start and not read:
            break
        start += read
        for column in rows.iter_columns():
            whole.update(f"{column.name}:{column.len()};".encode())
            if column.null_count():
                whole.update(column.is_null().to_numpy().tobytes())
                column = column.fill_null(0) if column.dtype.is_numeric() else column.fill_null("")
            if column.dtype.is_numeric():
                whole.update(np.ascontiguousarray(column.to_numpy()).data)
            else:
                whole.update("\0".join(map(str, column)).encode())
    return start, whole.hexdigest()


def changed(runs: Sequence[Run]) -> list[str]:
    """A line for each table that is not as its run wrote it, though it can be read: what the manifest says, and what
    the table is now; and one for each that is there no more.

    Of runs of another version digests say nothing, which may have been taken otherwise.
    """
    forks.check()
    found = [line for run in runs for line in _removed(run)]
    ours = [run for run in runs if run.manifest["version"] == engine.version()]
    rows = sum(said["rows"] for run in ours for said in run.manifest.get("tables", {}).values())
    found += [line for run in ours for line in _changed(run, only_younger=rows > MOST_ROWS)]
    if len(found) <= NAMED:
        return found
    return [*found[:NAMED], f"and {len(found) - NAMED} more tables were changed or removed"]


def _removed(run: Run) -> Iterator[str]:
    for name, said in run.manifest.get("tables", {}).items():
        path = run.folder / name
        if not path.exists():
            yield (
                f"{path}: was removed after the run: manifest.json says {said['rows']:,} rows; what is shown does "
                "without them"
            )


def _changed(run: Run, only_younger: bool) -> Iterator[str]:
    finished = (run.folder / "manifest.json").stat().st_mtime_ns
    for name, said in run.manifest.get("tables", {}).items():
        path = run.folder / name
        # What cannot be read is refused where it is needed.
        with contextlib.suppress(OSError, pl.exceptions.PolarsError):
            rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
            if rows == said["rows"] and only_younger and path.stat().st_mtime_ns <= finished:
                continue
            _, sha256 = table_digest(path, left_out_of(run.summary))
            if sha256 != said["sha256"]:
                yield (
                    f"{path}: was changed after the run: manifest.json says {said['rows']:,} rows with digest "
                    f"{said['sha256'][:8]}, it has {rows:,} with {sha256[:8]}; figures are of what it has now"
                )
