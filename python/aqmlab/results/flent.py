"""A run as flent keeps its own: a data file of format version 4, with the series of its test RRUL.

The format is flent's: JSON, gzipped, with `metadata`, `version`, `x_values` (seconds), `results` (a list for each
series, as long as `x_values`, null where there is nothing) and `raw_values` (samples with `t`, seconds since 1970, and
`val`).
Rates are in Mb/s, pings in ms.

- `TCP download ...` and `TCP upload ...`: what was acknowledged of the endless flows of a class, between two rows of
  `tcp.parquet`; forward is down.
- `Ping (ms) ...`: the one-way delay of a probe's packet forward, and that in reverse at the instant when it arrived,
  between the two packets that were sent back next to it. A ping of which a packet was lost has no value.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab import engine, links, units
from aqmlab.errors import BadInput, doubt
from aqmlab.json_files import Json
from aqmlab.results import round_trips, store
from aqmlab.results.run import Run
from aqmlab.statistics import Array

VERSION = 4
SUFFIX = ".flent.gz"
STEP_S = 0.2
"""Between two values, as in flent's tests."""

CLASSES: Mapping[str, str] = {"CS0": "BE", "0": "BE", "CS1": "BK", "8": "BK", "40": "CS5", "46": "EF"}
"""What RRUL calls a codepoint; others are called what they are."""

ICMP_BYTES = 84
"""ping(8)'s echo request: a probe of this size stands for it."""

WAYS = {"download": 0, "upload": 1}
AVERAGE, SUM = "avg", "sum"


@dataclass(frozen=True)
class Series:
    """One series: at these seconds of the run these values."""

    name: str
    units: str
    at_s: Array
    values: Array
    """NaN where a packet was lost."""


def of_run(run: Run, title: str = "") -> Json:
    """The content of the data file of a run."""
    series = [*_transfers(run), *_pings(run)]
    if not series:
        raise BadInput(
            f"{run.folder}: has nothing that flent shows; expected endless flows and record.flows = "
            '"200ms", or probes both ways, as aqmlab new rrul has them'
        )
    duration_s = units.seconds(run.scenario["duration"], "duration")
    x_values = [round(k * STEP_S, 9) for k in range(int(duration_s / STEP_S) + 1)]
    results = {one.name: _at(one, np.asarray(x_values)) for one in series}
    results |= _together(results)
    began = datetime.fromtimestamp((run.folder / "manifest.json").stat().st_mtime, UTC)
    said = began.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    name = title or str(run.scenario.get("name", ""))
    bulk = [units.seconds(b["start"], "start") for b in run.scenario["traffic"] if isinstance(b.get("start"), str)]
    metadata = {
        "NAME": "rrul",
        "TITLE": name,
        "TIME": said,
        "T0": said,
        "LENGTH": round(run.window[1] - max(bulk, default=0.0)),
        "TOTAL_LENGTH": duration_s,
        "STEP_SIZE": STEP_S,
        "HOST": "aqmlab",
        "HOSTS": ["aqmlab"],
        "LOCAL_HOST": "aqmlab",
        "IP_VERSION": 4,
        "NOTE": f"aqmlab {run.manifest.get('version', engine.version())}, digest {run.digest}",
        "DATA_FILENAME": None,
        "TEST_PARAMETERS": {},
        "SERIES_META": {one.name: {"UNITS": one.units} for one in series},
    }
    raw = {one.name: _raw(one, began.timestamp()) for one in series}
    return {"metadata": metadata, "version": VERSION, "x_values": x_values, "results": results, "raw_values": raw}


def write(run: Run, path: Path, title: str = "") -> Path:
    """Writes the data file, which flent wants to be called `.flent.gz` or `.flent`."""
    if not path.name.endswith((SUFFIX, ".flent")):
        raise BadInput(f"-o {path}: expected a name that ends in {SUFFIX}")
    if path.exists():
        raise BadInput(f"-o {path}: is there already; expected a name that is not")
    content = of_run(run, title)
    content["metadata"]["DATA_FILENAME"] = path.name
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False).encode()
    try:
        store.write_bytes(path, gzip.compress(text, mtime=0) if path.name.endswith(SUFFIX) else text)
    except OSError as error:
        raise BadInput(f"-o {path}: cannot be written: {error.strerror}") from None
    return path


def _called(block: Json) -> str:
    dscp = str(block.get("dscp", "CS0"))
    return CLASSES.get(dscp, dscp)


def _transfers(run: Run) -> list[Series]:
    """Goodput of endless flows, by direction and class."""
    if not (run.folder / "tcp.parquet").exists():
        return []
    blocks = [(place, block) for place, block in enumerate(run.scenario["traffic"]) if block["kind"] == "bulk"]
    found = []
    for way, name in ((1, "upload"), (0, "download")):
        ours = [(place, block) for place, block in blocks if block["direction"] in (links.WAYS[way], "both")]
        for called in dict.fromkeys(_called(block) for _, block in ours):
            places = [place for place, block in ours if _called(block) == called]
            sent = pl.col("traffic").is_in(places) & (pl.col("side") == way)
            one = _goodput(run.tcp.filter(sent), f"TCP {name} {called}")
            found += [] if one is None else [one]
    return found


def _goodput(rows: pl.DataFrame, name: str) -> Series | None:
    """Of all flows together: each one's rate between its rows, at the times of all rows."""
    flows = [
        (flow["time_s"].to_numpy(), flow["acknowledged_bytes"].to_numpy().astype(float))
        for _, flow in sorted(rows.sort("time_s").group_by("traffic", "source", "side"), key=lambda item: item[0])
        if flow.height > 1
    ]
    if not flows:
        return None
    at = np.unique(np.concatenate([times[1:] for times, _ in flows]))
    total = np.zeros(len(at))
    for times, acknowledged in flows:
        rates = 8e-6 * np.diff(acknowledged) / np.diff(times)
        total += np.interp(at, times[1:], rates, left=0.0, right=0.0)
    return Series(name, "Mbits/s", at, total)


def _pings(run: Run) -> list[Series]:
    if not (run.folder / "probes.parquet").exists():
        return []
    found: list[Series] = []
    for place, block in enumerate(run.scenario["traffic"]):
        if block["kind"] != "probe":
            continue
        is_icmp = units.quantity(str(block["packet"])) == (ICMP_BYTES, "bytes")
        name = f"Ping (ms) {'ICMP' if is_icmp else f'UDP {_called(block)}'}"
        sent, rtt = round_trips.of_block(run.probes, place)
        if not sent.size:
            continue
        if name in [one.name for one in found]:
            doubt(f"{run.folder}: traffic.{place}: is left out, as flent has one series {name!r}")
            continue
        found.append(Series(name, "ms", sent, 1e3 * rtt))
    return found


def _at(series: Series, x_values: Array) -> list[float | None]:
    """At the steps, between the samples on both sides; nothing before the first and after the last."""
    if len(series.at_s) < 2:
        return [None] * len(x_values)
    values = np.interp(x_values, series.at_s, series.values, left=np.nan, right=np.nan)
    return [None if np.isnan(value) else float(value) for value in values]


def _together(results: Mapping[str, Sequence[float | None]]) -> dict[str, list[float | None]]:
    """RRUL's averages and sums."""
    found: dict[str, list[float | None]] = {}
    for way in WAYS:
        ours = [values for name, values in results.items() if name.startswith(f"TCP {way} ")]
        if ours:
            found[f"TCP {way} {AVERAGE}"], found[f"TCP {way} {SUM}"] = _over(ours, AVERAGE), _over(ours, SUM)
    if transfers := [values for name, values in results.items() if name.startswith("TCP ")]:
        found["TCP totals"] = _over(transfers, SUM)
    if pings := [values for name, values in results.items() if name.startswith("Ping ")]:
        found["Ping (ms) avg"] = _over(pings, AVERAGE)
    return found


def _over(series: Sequence[Sequence[float | None]], how: str) -> list[float | None]:
    found: list[float | None] = []
    for values in zip(*series, strict=True):
        known = [value for value in values if value is not None]
        total = sum(known)
        found.append(None if not known else total / len(known) if how == AVERAGE else total)
    return found


def _raw(series: Series, began: float) -> list[dict[str, Any]]:
    pairs = zip(series.at_s.tolist(), series.values.tolist(), strict=True)
    return [{"t": began + at, "val": value} for at, value in pairs if not np.isnan(value)]
