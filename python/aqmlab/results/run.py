"""A finished run: a folder with `scenario.toml`, `manifest.json`, `summary.json` and its tables, read lazily."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import polars as pl

from aqmlab import arguments, files, forks, toml_text
from aqmlab.errors import BadInput
from aqmlab.json_files import Json, NoJson, read_json
from aqmlab.results import pages, video
from aqmlab.scenario import measured_window

MANIFEST: dict[str, type] = {"seed": int, "digest": str, "scenario_digest": str, "version": str, "self_checks": list}
SUMMARY: dict[str, type] = {"forward": dict, "reverse": dict, "exchanges": dict}
"""What a finished result has; what else there is, is asked for with care."""
TOLD = ("own_causes",)
"""What a summary says in words of a law, among its quantities."""


def with_keys(path: Path, keys: dict[str, type]) -> Json:
    """A file of a finished result, which has these keys of these kinds."""
    found = read_json(path)
    for key, kind in keys.items():
        if not isinstance(found.get(key), kind):
            raise BadInput(f"{path}: {key}: {found.get(key)!r}: expected what a finished result has there")
    return found


def summary_in(folder: Path) -> Json:
    """What a finished result found; quantities that a hand has made texts are refused."""
    path = folder / "summary.json"
    try:
        found = with_keys(path, SUMMARY)
    except NoJson:
        raise _broken(path, "is damaged") from None
    pending = [(key, found[key]) for key in SUMMARY]
    while pending:
        name, value = pending.pop()
        if isinstance(value, str):
            raise BadInput(f"{path}: {name}: {value!r}: expected a number; make the run again")
        if isinstance(value, dict):
            pending += [(f"{name}.{key}", inner) for key, inner in value.items() if key not in TOLD]
    return found


def of_link(queue: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows of a queue table that are of one link; a table without a column `link` is of one alone."""
    return queue.filter(pl.col("link") == name) if "link" in queue.columns else queue


class Run:
    """One finished run."""

    def __init__(self, folder: Path, keep: object = None) -> None:
        """`keep` is what the folder lives as long as."""
        self.folder = folder
        self._keep = keep
        self.manifest = with_keys(folder / "manifest.json", MANIFEST)
        self.summary = summary_in(folder)
        for name in self.manifest.get("tables", {}):
            if (folder / name).exists():
                _readable(folder / name)

    def __repr__(self) -> str:
        """Seed and where it lies."""
        return f"<Run of seed {self.seed} in {self.folder}>"

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
        path = self.folder / "scenario.toml"
        found = toml_text.read(path, files.SCENARIO)
        if not {"duration", "traffic"} <= found.keys():
            raise _broken(path, "is damaged")
        return found

    @property
    def window(self) -> tuple[float, float]:
        """Start and end of what was measured, seconds since the start of the run."""
        return measured_window(self.scenario)

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
    def films(self) -> pl.DataFrame:
        """One row a film that viewers of video asked for within the measured window: starts, stalls, bitrate."""
        return video.films(self.exchanges, self.scenario["traffic"], self.window, self.folder)

    @property
    def pages(self) -> pl.DataFrame:
        """One row a page of `archive2024` or `unc2001` that was begun within the measured window: when it was all
        there, if it was."""
        return self.pages_of(pages.blocks(self.scenario["traffic"]))

    def pages_of(self, blocks: Sequence[int]) -> pl.DataFrame:
        """The pages of some blocks of traffic, by their numbers; raises `BadInput` where one is none of the run's."""
        if not isinstance(blocks, Iterable) or isinstance(blocks, str):
            raise BadInput(f"blocks: {blocks!r}: expected numbers of blocks of traffic, as in [0, 2]")
        last = len(self.scenario["traffic"]) - 1
        blocks = [arguments.whole(block, "blocks", 0, last) for block in blocks]
        forks.check()
        gap_s = pages.LIVE_GAP_S if self.live else 0.0
        return pages.pages(self.folder, self.scenario["traffic"], self.window, gap_s, blocks)

    @property
    def queue(self) -> pl.DataFrame:
        """One row an interval, link and direction, over the whole run."""
        return self._table("queue")

    @property
    def has_delays(self) -> bool:
        """Whether it was kept how many packets waited how long; results of older versions have no such table."""
        return (self.folder / "delays.parquet").exists()

    @property
    def delays(self) -> pl.DataFrame:
        """How many packets waited how long in the measured window: one row a length, link and direction."""
        return self._table("delays")

    @property
    def probes(self) -> pl.DataFrame:
        """One row a packet of a probe that was sent in the measured window."""
        return self._table("probes")

    @property
    def frames(self) -> pl.DataFrame:
        """One row a frame of real-time video that was encoded in the measured window: delay, size, rate asked for."""
        return self._table("frames")

    @property
    def drops(self) -> pl.DataFrame:
        """One row a loss or mark, over the whole run, of runs with `record.drops`."""
        return self._table("drops")

    @property
    def tcp(self) -> pl.DataFrame:
        """What senders did: one row a sample of a connection. Live runs have it, and others with `record.flows`."""
        return self._table("tcp")

    def _table(self, name: str) -> pl.DataFrame:
        forks.check()
        path = self.folder / f"{name}.parquet"
        if not path.exists():
            if path.name in self.manifest.get("tables", {}):
                raise _broken(path, "is missing")
            raise BadInput(f"{path}: the run did not write this table")
        files.opened(path, files.ROWS).close()
        with _said_of(path):
            return pl.read_parquet(path)


def _readable(path: Path) -> None:
    """Refuses a table that has no end, which says where its columns are: what was cut off, or is no table."""
    with _said_of(path):
        pl.read_parquet_schema(path)


@contextlib.contextmanager
def _said_of(path: Path) -> Iterator[None]:
    try:
        yield
    except pl.exceptions.PolarsError:
        raise _broken(path, "is damaged") from None


def _broken(path: Path, how: str) -> BadInput:
    """What to do about a file of a finished run that is not as the run wrote it."""
    resume = arguments.named("resume")
    return BadInput(
        f"{path}: {how}; expected what the run wrote: remove {path.parent} and run again, with {resume} where there "
        "are other runs beside it"
    )
