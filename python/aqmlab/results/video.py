"""What viewers of video saw: films as they were played, with their starts, stalls and bitrates.

A run's table of exchanges has one row for each segment that came. From these rows the buffer of each viewer is played
again, by the numbers of its block: `segment`, `startup`. A film begins with a segment that opened its connection, and
counts if it began within the measured window, which is when all of its segments are in the table.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from aqmlab import units

KIND = "video"

COLUMNS = {
    "traffic": pl.Int64,
    "viewer": pl.Int64,
    "begun_s": pl.Float64,
    "startup_s": pl.Float64,
    "stalls": pl.Int64,
    "stalled_s": pl.Float64,
    "watched_s": pl.Float64,
    "bitrate_bps": pl.Float64,
    "switches": pl.Int64,
}
"""Of `films`."""


@dataclass(frozen=True)
class Segment:
    """A segment that came."""

    asked_s: float
    came_s: float
    size_bytes: int


@dataclass(frozen=True)
class Played:
    """A film as it was played, up to an instant."""

    startup_s: float | None
    """From being asked for to the first picture; nothing if there was none."""
    stalls: int
    stalled_s: float
    watched_s: float
    bitrate_bps: float
    """Mean over what came of the film."""
    switches: int
    """How often the bitrate changed."""


@dataclass
class _Player:
    """A buffer that is played, from an instant on."""

    at_s: float
    buffered_s: float = 0.0
    is_playing: bool = False
    begun_s: float | None = None
    watched_s: float = 0.0
    stalls: int = 0
    stalled_s: float = 0.0
    out_s: float = 0.0
    """When the buffer was last empty."""

    def pass_until(self, now_s: float, is_over: bool = False) -> None:
        """Lets the film play; one that is over cannot stall."""
        if self.is_playing:
            passed = now_s - self.at_s
            played = min(passed, self.buffered_s)
            self.watched_s += played
            if passed > self.buffered_s and not is_over:
                self.is_playing, self.stalls, self.out_s = False, self.stalls + 1, self.at_s + self.buffered_s
            self.buffered_s -= played
        self.at_s = now_s

    def go_on(self) -> None:
        """Plays from now on, if it does not yet."""
        if self.is_playing:
            return
        self.is_playing = True
        if self.begun_s is None:
            self.begun_s = self.at_s
        else:
            self.stalled_s += self.at_s - self.out_s


def play(segments: Sequence[Segment], segment_s: float, startup_s: float, end_s: float, is_whole: bool) -> Played:
    """Plays a film from its segments, in their order, until `end_s`.

    It begins when `startup_s` are buffered, and goes on so after a stall. `is_whole` says that nothing is to come
    after the last of these segments: what is there is then played without waiting for more.
    """
    asked_s = segments[0].asked_s
    player = _Player(asked_s)
    for place, segment in enumerate(segments):
        player.pass_until(segment.came_s)
        player.buffered_s += segment_s
        if player.buffered_s >= startup_s or (is_whole and place == len(segments) - 1):
            player.go_on()
    player.pass_until(max(end_s, player.at_s), is_over=is_whole)
    if player.begun_s is not None and not player.is_playing:
        player.stalled_s += player.at_s - player.out_s
    sizes = [segment.size_bytes for segment in segments]
    return Played(
        None if player.begun_s is None else player.begun_s - asked_s,
        player.stalls,
        player.stalled_s,
        player.watched_s,
        sum(sizes) * 8 / (len(sizes) * segment_s),
        sum(before != after for before, after in pairwise(sizes)),
    )


def films(exchanges: pl.DataFrame, blocks: Sequence[Mapping[str, Any]], end_s: float) -> pl.DataFrame:
    """The films of a run, a row each: of its table of exchanges, its blocks of traffic, and the end of its window."""
    rows = [
        row
        for block, keys in enumerate(blocks)
        if keys["kind"] == KIND
        for row in _of_block(block, keys, exchanges.filter(pl.col("traffic") == block), end_s)
    ]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _of_block(block: int, keys: Mapping[str, Any], exchanges: pl.DataFrame, end_s: float) -> Iterator[tuple[Any, ...]]:
    segment_s, startup_s = (units.seconds(keys[key], key) for key in ("segment", "startup"))
    # Of films of any length it is not known whether the last one has more to come: it is then taken to have not.
    most = math.ceil(units.seconds(keys["film"], "film") / segment_s) if isinstance(keys["film"], str) else 0
    columns = ["start_s", "response_time_s", "response_bytes", "setup_ns"]
    for (viewer,), own in sorted(exchanges.group_by("source"), key=lambda item: item[0]):
        parts: list[list[Segment]] = []
        for asked, took, size, setup in own.sort("start_ns").select(columns).rows():
            if setup > 0:
                parts.append([])
            if parts:  # what comes before belongs to a film that had begun before
                parts[-1].append(Segment(asked, asked + took, size))
        for place, segments in enumerate(parts):
            # One that another follows is over: the next begins when this was played.
            is_whole = place + 1 < len(parts) or len(segments) >= most
            found = play(segments, segment_s, startup_s, end_s, is_whole)
            yield (
                block,
                viewer,
                segments[0].asked_s,
                found.startup_s,
                found.stalls,
                found.stalled_s,
                found.watched_s,
                found.bitrate_bps,
                found.switches,
            )


def said(found: pl.DataFrame) -> dict[str, float | int | None]:
    """Films together: how many, stalls an hour of watching, how long they stood still, and how they looked."""
    watched_s = float(found["watched_s"].sum())
    stalled_s = float(found["stalled_s"].sum())
    startups = found["startup_s"].drop_nulls().to_numpy()
    weights = found["watched_s"].to_numpy()
    has_any = watched_s > 0
    return {
        "films": found.height,
        "watched_s": watched_s,
        "stalls_per_hour": float(found["stalls"].sum()) * 3600 / watched_s if has_any else None,
        "stalled_share": stalled_s / (stalled_s + watched_s) if has_any else None,
        "startup_median_s": float(np.median(startups)) if startups.size else None,
        "bitrate_mean_bps": float(np.average(found["bitrate_bps"].to_numpy(), weights=weights)) if has_any else None,
    }
