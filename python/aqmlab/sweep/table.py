"""The table of a sweep: one row a run, with where it lies on the axes and what was found."""

import io
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from aqmlab import links
from aqmlab.json_files import Json, is_number
from aqmlab.results import seen, store
from aqmlab.sweep import offered
from aqmlab.sweep.condensed import Condensed
from aqmlab.sweep.grid import Point

FILE = "runs.parquet"

WRITE_EVERY_S = 2.0
"""A table of thousands of rows is not written anew for each of many short runs."""
WRITING = 0.1
"""The part of the time that goes by at most in writing a large one."""

LEFT_OUT = ("scenario", "seed", "live", "engine", "loss_runs")
"""Of the summary, what is no number of the run's own, or stands in a column of its own."""


TEXTS = ("grid", "point", "self_checks_failed", "findings", "demand_digest", "digest")
"""Columns of text, also where no row has any; those of axes always have some."""


class Table:
    """Rows as runs finish, in a file that is whole at any time."""

    # A row may say only later what was offered: when the uncongested run of the same demands is there.

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Json] = []
        self._offered = offered.Offered()
        self._written = 0
        self._due = time.monotonic() + WRITE_EVERY_S

    def add(self, point: Point, seed: int, run: Condensed) -> None:
        """Adds a run, and writes the table if that was not done just now."""
        self.rows.append(row(point, seed, run))
        self._offered.add(run, point.uncongested)
        if time.monotonic() > self._due:
            self.write()

    def write(self) -> None:
        """Writes all rows, whole or not at all."""
        if len(self.rows) == self._written:
            return
        began = time.monotonic()
        for one in self.rows:
            one["offered_load_bps"] = self._offered.of(one["demand_digest"], one["seed"])
        save(frame(self.rows), self.path)
        ended = time.monotonic()
        self._written, self._due = len(self.rows), ended + max(WRITE_EVERY_S, (ended - began) / WRITING)


def save(rows: pl.DataFrame, path: Path, **options: Any) -> None:
    """Writes a table to a Parquet file, whole or not at all; raises `OSError` where the disk is full."""
    content = io.BytesIO()  # of files polars raises something of its own
    rows.write_parquet(content, **options)
    store.write_bytes(path, content.getvalue())


def row(point: Point, seed: int, run: Condensed) -> Json:
    """One run: grid, point, axes by name and as numbers where they are numbers, seed, measures, what it took."""
    failed = [check for check in run.self_checks if not check["holds"]]
    return {
        "grid": point.grid,
        "point": point.name,
        **point.at,
        **{f"{name}_number": number for name, number in point.numbers.items()},
        "seed": seed,
        **offered.columns(run),
        **measures(run.summary),
        **{name.replace(".", "_"): value for name, value in run.of_parts.items()},
        "self_checks_hold": not failed,
        "self_checks_failed": "; ".join(f"{check['name']}: {check['detail']}" for check in failed) or None,
        "findings": "; ".join(seen.of(run.scenario, run.summary)) or None,
        "demand_digest": run.demand_digest,
        "digest": run.digest,
        "wall_s": run.wall_s,
        "cpu_s": run.cpu_s,
        "peak_rss_bytes": run.peak_rss_bytes,
    }


def measures(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """The numbers of a summary under flat names: `forward.loss_ratio` is `forward_loss_ratio`.

    Of several links each has its own: `links_core_forward_loss_ratio`.
    """
    found: dict[str, float | None] = {}
    is_one = len(summary.get(links.MANY) or {}) < 2
    for name, item in summary.items():
        if name not in LEFT_OUT and not (is_one and name == links.MANY):
            _flatten(name, item, found)
    return found


def _flatten(name: str, item: Any, found: dict[str, float | None]) -> None:
    if isinstance(item, Mapping):
        for key, entry in item.items():
            if key not in LEFT_OUT:
                _flatten(f"{name}_{key}", entry, found)
    elif item is None or is_number(item):
        found[name] = None if item is None else float(item)


def frame(rows: Sequence[Json]) -> pl.DataFrame:
    """The rows as a table, in the order of grids, points and seeds; a column that a row has not got is null there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = {*TEXTS, *(name for row in rows for name, item in row.items() if type(item) is str)}
    kinds = {
        name: pl.String
        if name in texts
        else pl.Boolean
        if name == "self_checks_hold"
        else pl.Int64
        if name in ("seed", "peak_rss_bytes", "calibration_seed")
        else pl.Float64
        for name in names
    }
    table = pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, schema=kinds)
    return table.sort("grid", "point", "seed", maintain_order=True)
