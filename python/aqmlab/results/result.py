"""A result: one finished run, or several independent ones in the sub-folders `rep-1`, `rep-2`, ... of one folder."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from aqmlab import scratch
from aqmlab.errors import AqmlabError, BadInput
from aqmlab.json_files import Json, read_json
from aqmlab.results import named
from aqmlab.results.named import Numbers
from aqmlab.results.run import Run, summary_in, with_keys
from aqmlab.results.summaries import void_of
from aqmlab.results.window import Window, condense
from aqmlab.statistics import Interval

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("exchanges", "queue", "delays", "drops", "probes", "frames", "tcp", "films", "pages")
"""What a result has as frames."""


class Temporary:
    """A folder that goes away with the last result or run that lives in it."""

    def __init__(self) -> None:
        self._scratch = scratch.Folder("result")
        self.folder = self._scratch.path

    def __reduce__(self) -> tuple[Any, ...]:
        raise BadInput(
            f"{self.folder}: a result in a temporary folder, which goes with its process, cannot be pickled; expected "
            f"a run or comparison with out=, whose folder stays"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "Temporary":
        return self


class Result:
    """What a scenario led to: one run, or several independent ones."""

    def __init__(
        self, folder: Path, keep: Temporary | None = None, condensed: Mapping[Path, Window] | None = None
    ) -> None:
        """`condensed` are the windows of runs that are known already, by folder."""
        self.folder = folder
        self._keep = keep
        self._condensed = condensed or {}
        self.manifest = read_json(folder / "manifest.json")
        kind = self.manifest.get("kind")
        if kind not in ("run", "replications"):
            raise BadInput(f"{folder}/manifest.json: kind: {kind!r}: expected 'run' or 'replications'")
        self.summary = summary_in(folder)
        names = with_keys(folder / "manifest.json", {"runs": list})["runs"] if kind == "replications" else ["."]
        if not names or not all(isinstance(name, str) for name in names):
            raise BadInput(f"{folder}/manifest.json: runs: {names!r}: expected the folders of runs")
        self.runs: list[Run] = [Run(folder / name, keep) for name in names]

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
    def laws(self) -> list[Json]:
        """The laws, disciplines and policies of one's own that decided in its runs, as their manifests have them."""
        return [law for run in self.runs for law in run.manifest.get("laws", [])]

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
        """One row an interval, link and direction; with several runs a column `rep` says which."""
        return self._tables([run.queue for run in self.runs])

    @cached_property
    def delays(self) -> pl.DataFrame:
        """How many packets waited how long; with several runs a column `rep` says in which."""
        return self._tables([run.delays for run in self.runs])

    @cached_property
    def probes(self) -> pl.DataFrame:
        """One row a packet of a probe sent in the measured window; with several runs a column `rep` says which."""
        return self._tables([run.probes for run in self.runs])

    @cached_property
    def frames(self) -> pl.DataFrame:
        """One row a frame of real-time video encoded in the measured window; with several runs a column `rep`."""
        return self._tables([run.frames for run in self.runs])

    @cached_property
    def drops(self) -> pl.DataFrame:
        """One row a loss or mark, of runs with `record.drops`; with several runs a column `rep` says which."""
        return self._tables([run.drops for run in self.runs])

    @cached_property
    def films(self) -> pl.DataFrame:
        """One row a film that viewers of video began within the measured window; with several runs a column `rep`."""
        return self._tables([run.films for run in self.runs])

    @cached_property
    def pages(self) -> pl.DataFrame:
        """One row a page that readers began within the measured window; with several runs a column `rep`."""
        return self._tables([run.pages for run in self.runs])

    @cached_property
    def tcp(self) -> pl.DataFrame:
        """What senders did: one row a sample of a connection; with several runs a column `rep` says which.

        Live runs have this table, and simulated runs with `record.flows`.
        """
        return self._tables([run.tcp for run in self.runs])

    @cached_property
    def windows(self) -> list[Window]:
        """The condensed window of each run."""
        return [numbers.window for numbers in self.numbers]

    @cached_property
    def numbers(self) -> list[Numbers]:
        """The numbers of each run by their names."""
        return [Numbers(run, partial(self._window, run)) for run in self.runs]

    def _window(self, run: Run) -> Window:
        return self._condensed.get(run.folder) or condense(run)

    def estimate(self, measure: str) -> Interval:
        """A measure, such as `p90` or `loss_ratio`, with the best interval these runs allow: as a comparison has it.

        One of a link is of both directions together, unless its name says which: `forward.queue_delay_p99_s`, or
        `links.core.forward.utilisation` of several links. Of a direction it may be every number that the summary has.
        Numbers of a part of the traffic are called `traffic.0.p90`, `probes.reverse.one_way_delay_s.p99` and
        `applications.calls.mos_mean`. Raises `BadInput` where these runs have no such number.
        """
        return named.estimate(self.numbers, measure)

    def to_pandas(self, table: str = "exchanges") -> "pd.DataFrame":
        """A table, such as `exchanges` or `queue`, for pandas.

        Raises `BadInput` where the runs have no such table, and `AqmlabError` where pandas is not installed.
        """
        if table not in TABLES:
            raise BadInput(f"table: {table!r}: expected one of {', '.join(TABLES)}")
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
