"""A finished run without its large tables: what claims, figures and rows of a table are made of.

A run of two hours leaves gigabytes, of which a study needs the summary, counts by part of the window and how the queue
went. That is some hundred kilobytes, and can be kept of every run ever made, and sent from where it was made.
"""

import hashlib
import io
import json
import math
import os
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab import checks, reference
from aqmlab.json_files import Json
from aqmlab.results import by_application, ways
from aqmlab.results.named import Numbers
from aqmlab.results.run import Run
from aqmlab.results.window import COUNTS, Counts, Window, condense
from aqmlab.statistics import Array

FORMAT = 6
"""Grows whenever what is kept of a run changes; what was kept in another format is not read."""

QUEUE_ROWS = 2000
"""Rows of the queue table that are kept, all links and directions together: finer than a figure can show."""

RANGE = ("min", "max")
"""What says how far a state went within intervals that are put together: the mean of each is not enough, for means vary
less than what they are taken of. Unlike quantiles, these stay exact however often rows are put together."""

FACTS, SCENARIO, WINDOW, QUEUE = "run.json", "scenario.toml", "window.npz", "queue.parquet"
FILES = (SCENARIO, WINDOW, QUEUE, FACTS)


@dataclass(frozen=True)
class Condensed:
    """One finished run, condensed."""

    key: str
    """What the run is: see `Task.key`."""
    summary: Json
    facts: Json
    """What the manifest says of it, and what making it took."""
    scenario_toml: str
    """The scenario, resolved."""
    parts: Mapping[str, bytes]
    """The window and the queue table as files, read when they are asked for."""

    @property
    def seed(self) -> int:
        """Seed of its random streams."""
        return int(self.facts["seed"])

    @property
    def digest(self) -> str:
        """SHA-256 over what the run found."""
        return str(self.facts["digest"])

    @property
    def demand_digest(self) -> str | None:
        """Runs with the same one and the same seed are compared pair by pair."""
        found: str | None = self.facts["demand_digest"]
        return found

    @property
    def self_checks(self) -> list[Json]:
        """Name, holds, detail of each."""
        return list(self.facts["self_checks"])

    @property
    def calibration(self) -> list[Json]:
        """How populations were found for loads."""
        return list(self.facts["calibration"])

    @property
    def of_parts(self) -> dict[str, float | None]:
        """Numbers of blocks, of probes each way and of applications by their names, such as `traffic.0.p90`.

        None of a run of which no block is of an application.
        """
        found: dict[str, float | None] = self.facts["of_parts"]
        return found

    @property
    def cpu_s(self) -> float:
        """Processor time of the simulation."""
        return float(self.summary["engine"]["cpu_s"])

    @property
    def wall_s(self) -> float:
        """Time from start to end, condensing included."""
        return float(self.facts["wall_s"])

    @property
    def simulated_s(self) -> float:
        """Length of the run."""
        return float(self.facts["simulated_s"])

    @property
    def peak_rss_bytes(self) -> int:
        """Most memory that the process had while it made the run; 0 where that cannot be told."""
        return int(self.facts["peak_rss_bytes"])

    @cached_property
    def scenario(self) -> Json:
        """The resolved scenario as tables."""
        return tomllib.loads(self.scenario_toml)

    @cached_property
    def window(self) -> Window:
        """Counts of the measured window."""
        return replace(_window(self.parts[WINDOW]), figures=ways.figures(self.summary), settled=self.settled)

    @property
    def settled(self) -> Json | None:
        """Whether the run was settled in its measured window, as its manifest has it."""
        found: Json | None = self.facts["settled"]
        return found

    @cached_property
    def queue(self) -> pl.DataFrame:
        """The queue table in at most 2,000 rows, over the whole run.

        Of several intervals put together counts are sums, waits are means over packets, other columns means over the
        intervals and the longest wait the longest; `time_s` is the end of the last. How far a state went within them
        is then in columns of its own: `queue_packets_min` and `queue_packets_max`, over the intervals.
        """
        return pl.read_parquet(io.BytesIO(self.parts[QUEUE]))

    def as_asked(self, calibrations: Sequence[Json], is_reference: bool = False) -> "Condensed":
        """This run for a point whose loads were calibrated so.

        Whoever else asks for the same run may have come to its populations otherwise, or have given them: what is said
        of the load is the point's own. Where the point is the uncongested reference, it has to be that.
        """
        others = [c for c in self.self_checks if c["name"] not in (checks.LOAD, reference.UNCONGESTED)]
        own = checks.of_loads(calibrations, self.seed)
        own += [reference.check(self.summary, self.scenario, self.key)] if is_reference else []
        facts = {**self.facts, "calibration": list(calibrations), "self_checks": others + [c.as_dict() for c in own]}
        return replace(self, facts=facts)

    def files(self) -> dict[str, bytes]:
        """Name -> content, the facts last, which have the digests of the others."""
        parts = {SCENARIO: self.scenario_toml.encode(), WINDOW: self.parts[WINDOW], QUEUE: self.parts[QUEUE]}
        facts = {
            "format": FORMAT,
            "key": self.key,
            "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()},
            "facts": self.facts,
            "summary": self.summary,
        }
        return {**parts, FACTS: json.dumps(facts, ensure_ascii=False, allow_nan=False).encode()}

    def save(self, folder: Path) -> None:
        """Writes it into an existing folder, and waits until it is on the disk."""
        for name, content in self.files().items():
            with (folder / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())

    @classmethod
    def load(cls, folder: Path) -> "Condensed":
        """Reads it back; raises `OSError`, `ValueError` or `KeyError` if it is not whole or of another format.

        What a part holds is compared with its digest: a file system that was cut off may have kept its name alone.
        """
        return cls.from_files({name: (folder / name).read_bytes() for name in FILES})

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> "Condensed":
        """The inverse of `files`."""
        facts = json.loads(files[FACTS])
        if facts["format"] != FORMAT:
            raise ValueError(f"format {facts['format']}: expected {FORMAT}")
        for name, expected in facts["sha256"].items():
            if hashlib.sha256(files[name]).hexdigest() != expected:
                raise ValueError(f"{name}: is not what was written")
        parts = {name: files[name] for name in (WINDOW, QUEUE)}
        return cls(facts["key"], facts["summary"], facts["facts"], files[SCENARIO].decode(), parts)

    def to_bytes(self) -> bytes:
        """Packs the run into one piece, to be sent."""
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
            for name, content in self.files().items():
                archive.writestr(name, content)
        return whole.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Condensed":
        """The inverse of `to_bytes`."""
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return cls.from_files({name: archive.read(name) for name in FILES})


def of_run(run: Run, key: str, facts: Mapping[str, Any]) -> Condensed:
    """Condenses a run; memory does not grow with the number of its exchanges. `facts` are added to the manifest's."""
    wanted = (
        *("version", "seed", "digest", "scenario_digest", "demand_digest", "calibration", "reached", "self_checks"),
        "settled",
    )
    queue = io.BytesIO()
    thinned(run.queue).write_parquet(queue)
    window = condense(run)
    return Condensed(
        key=key,
        summary=run.summary,
        facts={**{name: run.manifest[name] for name in wanted}, "of_parts": _of_parts(run, window), **facts},
        scenario_toml=(run.folder / "scenario.toml").read_text(encoding="utf-8"),
        parts={WINDOW: _window_file(window), QUEUE: queue.getvalue()},
    )


def _of_parts(run: Run, window: Window) -> dict[str, float | None]:
    """What the tables say of parts of the traffic, which are read for that only where one is of an application."""
    if not any(by_application.blocks(run, one) for one in by_application.APPLICATIONS):
        return {}
    found = Numbers(run, lambda: window).of_parts
    return {name: value if value is not None and math.isfinite(value) else None for name, value in found.items()}


def thinned(queue: pl.DataFrame, rows: int = QUEUE_ROWS) -> pl.DataFrame:
    """The queue table with as many intervals of a direction put together as it takes; see `Condensed.queue`.

    Times are left in seconds alone.
    """
    queue = queue.select(pl.exclude("^.*_ns$"))
    together = -(-queue.height // rows)
    if together <= 1:
        return queue
    packets = pl.col("delivered_packets")
    wait = pl.col("queue_delay_mean_s")

    def merged(name: str) -> pl.Expr:
        if name in COUNTS:
            return pl.col(name).cast(pl.UInt64).sum()
        if name == "queue_delay_mean_s":
            weight = pl.when(wait.is_not_null()).then(packets).otherwise(0).cast(pl.Float64)
            total = weight.sum()
            return pl.when(total > 0).then((wait * weight).sum() / total).alias(name)
        if name == "queue_delay_max_s":
            return pl.col(name).max()
        return pl.col(name).last() if name == "time_s" else pl.col(name).cast(pl.Float64).mean()

    port = [name for name in ("link", "direction") if name in queue.columns]
    numbered = queue.sort(*port, "time_s").with_columns(
        (pl.int_range(pl.len()).over(port) // together).alias("together")
    )
    columns = [name for name in queue.columns if name not in port]
    states = [name for name in columns if name not in ("time_s", *COUNTS) and queue.schema[name].is_numeric()]
    # Seven digits are more than a figure shows, and half the size.
    least = [pl.col(name).min().cast(pl.Float32).alias(f"{name}_min") for name in states]
    most = [pl.col(name).max().cast(pl.Float32).alias(f"{name}_max") for name in states]
    grouped = numbered.group_by(*port, "together", maintain_order=True).agg(*map(merged, columns), *least, *most)
    names = [f"{name}_{what}" for name in states for what in RANGE]
    return grouped.sort("time_s", *port[::-1], maintain_order=True).select(*queue.columns, *names)


def _window_file(window: Window) -> bytes:
    arrays: dict[str, Any] = {}
    for field in fields(window):
        item = getattr(window, field.name)
        if field.name in ("figures", "settled"):
            continue  # in the summary, and among the facts
        if field.name == "summarised":
            arrays[field.name] = np.frombuffer(json.dumps(item).encode(), dtype=np.uint8)
        elif field.name == "link":
            arrays.update(_counts_arrays(item))
        elif field.name == "links":
            for link, counts in item.items():
                arrays.update({f"links/{link}/{name}": cells for name, cells in _counts_arrays(counts).items()})
        else:
            arrays[field.name] = _small(np.asarray(item, dtype=np.float64))
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _counts_arrays(counts: Counts) -> dict[str, Any]:
    found = {name: np.asarray(item, dtype=np.float64) for name, item in vars(counts).items() if name != "state"}
    found |= {f"state/{name}": cells for name, cells in counts.state.items()}
    return {name: _small(cells) for name, cells in found.items()}


def _small(values: Array) -> Any:
    """Counts as whole numbers of four bytes; the rest as it is."""
    if values.size and np.isfinite(values).all() and values.min() >= 0 and values.max() < 2**32:
        whole = values.astype(np.uint32)
        if (whole == values).all():
            return whole
    return values


def _window(content: bytes) -> Window:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    summarised = json.loads(arrays.pop("summarised").tobytes())
    floats = {name: np.asarray(item, dtype=np.float64) for name, item in arrays.items()}
    of_links: dict[str, dict[str, Array]] = {}
    for name in [name for name in floats if name.startswith("links/")]:
        _, link, own = name.split("/", 2)
        of_links.setdefault(link, {})[own] = floats.pop(name)
    measured_s = float(floats.pop("measured_s"))
    first = _counts({name: item for name, item in floats.items() if name in _COUNTED or "/" in name})
    others = {name: item for name, item in floats.items() if name not in _COUNTED and "/" not in name}
    return Window(
        measured_s=measured_s,
        summarised=summarised,
        links={link: _counts(own) for link, own in of_links.items()},
        figures={},
        settled=None,
        link=first,
        **others,
    )


_COUNTED = {field.name for field in fields(Counts)}


def _counts(arrays: dict[str, Array]) -> Counts:
    """The counts of a link, from arrays by name."""
    state = {name.removeprefix("state/"): item for name, item in arrays.items() if name.startswith("state/")}
    forward, reverse = arrays["rate_bps"]
    whole: dict[str, Any] = {name: item for name, item in arrays.items() if "/" not in name and name != "rate_bps"}
    return Counts(rate_bps=(float(forward), float(reverse)), state=state, **whole)
