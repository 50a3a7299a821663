"""Results: folders of finished runs, read lazily.

A run is a folder with `scenario.toml`, `manifest.json`, `summary.json` and its tables. A result is one run, or several
independent ones in the sub-folders `rep-1`, `rep-2`, ... under a merged summary.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from aqmlab import files, scratch, toml_text, units
from aqmlab.errors import AqmlabError, BadInput
from aqmlab.statistics import half_width

if TYPE_CHECKING:
    import pandas as pd

    from aqmlab.statistics import Interval
    from aqmlab.window import Window

Json = dict[str, Any]


def read_json(path: Path) -> Json:
    """Reads a JSON object; what is wrong with the file is said in one line."""
    try:
        value = json.loads(files.text(path, files.RESULT))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path}: expected a JSON object")
    return value


MANIFEST: dict[str, type] = {"seed": int, "digest": str, "scenario_digest": str, "version": str, "self_checks": list}
SUMMARY: dict[str, type] = {"forward": dict, "reverse": dict, "exchanges": dict}
"""What a finished result has; what else there is, is asked for with care."""


def _with(path: Path, keys: dict[str, type]) -> Json:
    """A file of a finished result, which has these keys of these kinds."""
    found = read_json(path)
    for key, kind in keys.items():
        if not isinstance(found.get(key), kind):
            raise BadInput(f"{path}: {key}: {found.get(key)!r}: expected what a finished result has there")
    return found


class Temporary:
    """A folder that goes away with the last result that lives in it."""

    def __init__(self) -> None:
        self._scratch = scratch.Folder("result")
        self.folder = self._scratch.path


class Run:
    """One finished run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = _with(folder / "manifest.json", MANIFEST)
        self.summary = _with(folder / "summary.json", SUMMARY)

    @property
    def seed(self) -> int:
        """Seed of its random streams."""
        return int(self.manifest["seed"])

    @property
    def digest(self) -> str:
        """SHA-256 over what the run found; the same for the same scenario, seed and version."""
        return str(self.manifest["digest"])

    @cached_property
    def scenario(self) -> Json:
        """The resolved scenario as tables."""
        return toml_text.read(self.folder / "scenario.toml", files.SCENARIO)

    @property
    def window(self) -> tuple[float, float]:
        """Start and end of what was measured, seconds since the start of the run."""
        duration, warmup, cooldown = (
            units.seconds(self.scenario.get(key, "0s"), key) for key in ("duration", "warmup", "cooldown")
        )
        return warmup, duration - cooldown

    @property
    def live(self) -> Json:
        """How a run between real hosts was made; empty for a simulated one."""
        found: Json = self.manifest.get("live") or {}
        return found

    @property
    def void(self) -> str | None:
        """Why a live run does not count: what of its budget it broke."""
        return self.live.get("void")

    @property
    def settled(self) -> Json | None:
        """Whether it was settled in its measured window, as `settled.Finding`; none of a run that was not asked."""
        return self.manifest.get("settled")

    @property
    def has_exchanges(self) -> bool:
        """Whether every exchange was written down."""
        return (self.folder / "exchanges.parquet").exists()

    @property
    def exchanges(self) -> pl.DataFrame:
        """One row an exchange completed in the measured window."""
        return self._table("exchanges")

    @property
    def queue(self) -> pl.DataFrame:
        """One row an interval and direction, over the whole run."""
        return self._table("queue")

    @property
    def probes(self) -> pl.DataFrame:
        """One row a packet of a probe that was sent in the measured window."""
        return self._table("probes")

    @property
    def tcp(self) -> pl.DataFrame:
        """What the kernel said of some connections of a live run, one row a sample."""
        return self._table("tcp")

    def _table(self, name: str) -> pl.DataFrame:
        path = self.folder / f"{name}.parquet"
        if not path.exists():
            raise BadInput(f"{path}: the run did not write this table")
        files.opened(path, files.ROWS).close()
        return pl.read_parquet(path)


class Result:
    """What a scenario led to: one run, or several independent ones."""

    def __init__(
        self, folder: Path, keep: Temporary | None = None, condensed: "Mapping[Path, Window] | None" = None
    ) -> None:
        """`condensed` are the windows of runs that are known already, by folder."""
        self.folder = folder
        self._keep = keep
        self._condensed = condensed or {}
        self.manifest = read_json(folder / "manifest.json")
        kind = self.manifest.get("kind")
        if kind not in ("run", "replications"):
            raise BadInput(f"{folder}/manifest.json: kind: {kind!r}: expected 'run' or 'replications'")
        self.summary = _with(folder / "summary.json", SUMMARY)
        names = _with(folder / "manifest.json", {"runs": list})["runs"] if kind == "replications" else ["."]
        if not names or not all(isinstance(name, str) for name in names):
            raise BadInput(f"{folder}/manifest.json: runs: {names!r}: expected the folders of runs")
        self.runs: list[Run] = [Run(folder / name) for name in names]

    def __repr__(self) -> str:
        """Name, runs and where it lies."""
        return f"<Result {self.name!r}: {len(self.runs)} run(s) in {self.folder}>"

    @property
    def name(self) -> str:
        """What the scenario is called."""
        return str(self.scenario.get("name", self.folder.name))

    @property
    def scenario(self) -> Json:
        """The resolved scenario as tables, with the seed of the first run."""
        return self.runs[0].scenario

    @property
    def digest(self) -> str:
        """SHA-256 over what all runs found."""
        return str(self.manifest["digest"])

    @property
    def live(self) -> Json:
        """How runs between real hosts were made; empty for simulated ones."""
        return self.runs[0].live

    @property
    def void(self) -> str | None:
        """Why a live result does not count, if one of its runs does not."""
        return void_of([(run.folder.name, run.void) for run in self.runs])

    @property
    def settled(self) -> list[Json | None]:
        """Whether each run was settled in its measured window."""
        return [run.settled for run in self.runs]

    @property
    def calibration(self) -> list[Json]:
        """How the populations were found, one entry a block of traffic that asked for a load."""
        return list(self.manifest.get("calibration", []))

    @cached_property
    def exchanges(self) -> pl.DataFrame:
        """One row an exchange completed in the measured window; with several runs a column `rep` says which."""
        return self._tables([run.exchanges for run in self.runs])

    @cached_property
    def queue(self) -> pl.DataFrame:
        """One row an interval and direction; with several runs a column `rep` says which."""
        return self._tables([run.queue for run in self.runs])

    @cached_property
    def probes(self) -> pl.DataFrame:
        """One row a packet of a probe sent in the measured window; with several runs a column `rep` says which."""
        return self._tables([run.probes for run in self.runs])

    @cached_property
    def tcp(self) -> pl.DataFrame:
        """What the kernel said of some connections of live runs; with several runs a column `rep` says which."""
        return self._tables([run.tcp for run in self.runs])

    @cached_property
    def windows(self) -> "list[Window]":
        """The condensed window of each run."""
        from aqmlab.window import condense  # it stands on this module

        return [self._condensed.get(run.folder) or condense(run) for run in self.runs]

    def estimate(self, measure: str) -> "Interval":
        """A measure, such as `p90` or `loss_ratio`, with the best interval these runs allow: as a comparison has it."""
        from aqmlab.comparison import Column, Entry  # it stands on this module

        return Column(Entry(self.name, ".", False), self).estimate(measure)

    def to_pandas(self, table: str = "exchanges") -> "pd.DataFrame":
        """A table, `exchanges`, `queue`, `probes` or `tcp`, for pandas (which must be installed)."""
        if table not in ("exchanges", "queue", "probes", "tcp"):
            raise BadInput(f"{table!r}: expected 'exchanges', 'queue', 'probes' or 'tcp'")
        try:
            import pandas as pd
        except ImportError:
            raise AqmlabError("pandas is not installed; the tables are polars frames without it") from None
        frame: pl.DataFrame = getattr(self, table)
        return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})

    def _tables(self, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        if len(frames) == 1:
            return frames[0]
        rep = [frame.select(pl.lit(k, pl.UInt16).alias("rep"), pl.all()) for k, frame in enumerate(frames, start=1)]
        return pl.concat(rep)


def void_of(reasons: Sequence[tuple[str, str | None]]) -> str | None:
    """Why several runs together do not count: the reasons of those that are void, with their names."""
    said = [(name, reason) for name, reason in reasons if reason]
    if not said:
        return None
    return str(said[0][1]) if len(reasons) == 1 else "; ".join(f"{name}: {reason}" for name, reason in said)


LONGEST = ("max", "p999", "longest_away_s", "unread_max_s", "rate_error_worst", "waited_for_processor_worst_second_s")
"""What a live run says of its worst moment: of several runs the worst, and not their mean."""


def merge_summaries(summaries: Sequence[Json], names: Sequence[str] = ()) -> Json:
    """The means over independent runs, and under `half_width_95` half the widths of their 95 % intervals.

    A number that is null in any run is null; counts by size that are null are none, unless they are in all runs; texts
    and flags are those of the first run. Of `live`, what was the worst in any run is the worst of all.
    """
    merged = _means(list(summaries))
    assert isinstance(merged, dict)
    merged["seed"] = summaries[0].get("seed")
    merged["seeds"] = [summary.get("seed") for summary in summaries]
    merged["runs"] = len(summaries)
    if merged.get("live"):
        every = [summary["live"] for summary in summaries]
        merged["live"] = _worst(every, merged["live"])
        called = names or [f"rep-{k}" for k in range(1, len(summaries) + 1)]
        merged["live"]["void"] = void_of([(name, one.get("void")) for name, one in zip(called, every, strict=True)])
    skipped = ("scenario", "seed", "seeds", "runs")
    merged["half_width_95"] = {
        key: _half_widths([summary[key] for summary in summaries]) for key in summaries[0] if key not in skipped
    }
    if merged.get("live"):
        merged["half_width_95"]["live"] = _without_longest(merged["half_width_95"]["live"])
    return merged


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _means(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, dict):
        if not all(isinstance(value, dict) for value in values):
            return None
        return {key: _means([value.get(key) for value in values]) for key in first}
    if all(_is_number(value) for value in values):
        return sum(values) / len(values)
    if any(isinstance(value, list) for value in values):  # counts by size, as far as there are any
        counts = [value or [] for value in values]
        longest = max(map(len, counts))
        return [_means([count[k] if k < len(count) else 0 for count in counts]) for k in range(longest)]
    return None if any(value is None for value in values) else first


def _worst(values: Sequence[Any], merged: Any) -> Any:
    """Puts what was longest in any run in the place of the mean."""
    if isinstance(merged, dict) and all(isinstance(value, dict) for value in values):
        return {
            key: _most([value.get(key) for value in values])
            if key in LONGEST
            else _worst([value.get(key) for value in values], item)
            for key, item in merged.items()
        }
    if isinstance(merged, list) and all(isinstance(value, list) and len(value) == len(merged) for value in values):
        return [_worst([value[k] for value in values], item) for k, item in enumerate(merged)]
    return merged


def _most(values: Sequence[Any]) -> Any:
    """The one farthest from zero; of pairs each by itself."""
    if all(isinstance(value, list) for value in values):
        return [_most(each) for each in zip(*values, strict=False)]
    return max(filter(_is_number, values), key=abs, default=None)


def _without_longest(widths: Any) -> Any:
    """A worst moment has no interval."""
    if not isinstance(widths, dict):
        return widths
    return {key: None if key in LONGEST else _without_longest(item) for key, item in widths.items()}


def _half_widths(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        if not all(isinstance(value, dict) for value in values):
            return None
        return {key: _half_widths([value.get(key) for value in values]) for key in values[0]}
    return half_width(values) if all(_is_number(value) for value in values) else None
