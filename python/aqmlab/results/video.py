"""What viewers of video saw: films as they were played, with their starts, stalls and bitrates.

A run's table of exchanges has one row for each segment that came. From these rows the buffer of each viewer is played
again, by the numbers of its block: `segment`, `startup`. A film begins with a segment that opened its connection, and
counts if it was asked for within the measured window, which is when all of its segments are in the table that came by
the end.

Films of which nothing came have no row there. Where the run wrote its demands down, they are among these. Elsewhere it
is known of two kinds of viewers that they wait for one: whoever begins within the window and got nothing at all, and
whoever has seen a film of a known length to its end.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab import statistics, units
from aqmlab.results import pages

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
    "waited_s": pl.Float64,
}
"""Of `films`: one without a picture has no `startup_s`, and had `waited_s` for it by the end. One of which nothing came
has no bitrate; where it is not known when it was asked for, `begun_s` is the latest that it can have been."""

UNKNOWN = -1
"""The viewer of a film of which nothing came, where demands do not say whose it was."""

Window = tuple[float, float]
"""Start and end of what was measured, seconds."""


def _in_ns(window: Window) -> tuple[int, int]:
    first, end = window
    return round(first * 1e9), round(end * 1e9)


@dataclass(frozen=True)
class Segment:
    """A segment that came."""

    asked_ns: int
    came_ns: int
    size_bytes: int


@dataclass(frozen=True)
class Played:
    """A film as it was played, up to an instant."""

    startup_ns: int | None
    """From being asked for to the first picture; nothing if there was none."""
    stalls: int
    stalled_ns: int
    watched_ns: int
    bitrate_bps: float
    """Mean over what came of the film."""
    switches: int
    """How often the bitrate changed."""


@dataclass
class _Player:
    """A buffer that is played, from an instant on; in nanoseconds, as the player in the run has it."""

    at: int
    buffered: int = 0
    is_playing: bool = False
    begun: int | None = None
    watched: int = 0
    stalls: int = 0
    stalled: int = 0
    out: int = 0
    """When the buffer was last empty."""

    def pass_until(self, now: int, is_over: bool = False) -> None:
        """Lets the film play; one that is over cannot stall."""
        if self.is_playing:
            passed = now - self.at
            played = min(passed, self.buffered)
            self.watched += played
            if passed > self.buffered and not is_over:
                self.is_playing, self.stalls, self.out = False, self.stalls + 1, self.at + self.buffered
            self.buffered -= played
        self.at = now

    def go_on(self) -> None:
        """Plays from now on, if it does not yet."""
        if self.is_playing:
            return
        self.is_playing = True
        if self.begun is None:
            self.begun = self.at
        else:
            self.stalled += self.at - self.out


def play(segments: Sequence[Segment], segment_ns: int, startup_ns: int, end_ns: int, is_whole: bool) -> Played:
    """Plays a film from its segments, in their order, until `end_ns`.

    It begins when `startup_ns` are buffered, and goes on so after a stall. `is_whole` says that nothing is to come
    after the last of these segments: what is there is then played without waiting for more.
    """
    asked = segments[0].asked_ns
    player = _Player(asked)
    for place, segment in enumerate(segments):
        player.pass_until(segment.came_ns)
        player.buffered += segment_ns
        if player.buffered >= startup_ns or (is_whole and place == len(segments) - 1):
            player.go_on()
    player.pass_until(max(end_ns, player.at), is_over=is_whole)
    if player.begun is not None and not player.is_playing:
        player.stalled += player.at - player.out
    sizes = [segment.size_bytes for segment in segments]
    return Played(
        None if player.begun is None else player.begun - asked,
        player.stalls,
        player.stalled,
        player.watched,
        sum(sizes) * 8e9 / (len(sizes) * segment_ns),
        sum(before != after for before, after in pairwise(sizes)),
    )


def films(
    exchanges: pl.DataFrame, blocks: Sequence[Mapping[str, Any]], window: Window, folder: Path | None = None
) -> pl.DataFrame:
    """The films of a run, a row each: of its table of exchanges, its blocks of traffic, and its window.

    The run's folder has the demands, if they were written down.
    """
    rows = [
        row
        for block, keys in enumerate(blocks)
        if keys["kind"] == KIND
        for row in _of_block(
            block, keys, exchanges.filter(pl.col("traffic") == block), _in_ns(window), _openings(folder, block)
        )
    ]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def unheard(
    exchanges: pl.DataFrame, blocks: Sequence[Mapping[str, Any]], window: Window, folder: Path | None = None
) -> int:
    """Of how many viewers nothing came, where it is not known whether they asked for a film within the window."""
    found = 0
    for block, keys in enumerate(blocks):
        if keys["kind"] == KIND and _openings(folder, block) is None and _latest_ns(keys, _in_ns(window)) is None:
            seen = exchanges.filter(pl.col("traffic") == block)["source"].n_unique()
            found += int(keys.get("viewers", 1)) - seen
    return found


def _openings(folder: Path | None, block: int) -> list[int] | None:
    """When viewers of a block opened connections, nanoseconds; nothing where demands were not written down."""
    path = None if folder is None else folder / f"demands-{block}.csv"
    if path is None or not path.exists():
        return None
    texts = dict.fromkeys(("at_s", "direction", "response_bytes"), pl.String)
    asked = pl.read_csv(path, comment_prefix="#", schema_overrides=texts)
    opened = asked.filter(pl.col("direction").is_not_null() & pl.col("response_bytes").is_not_null())
    return [pages.nanoseconds(at) for at in opened["at_s"]]


def _ns(text: Any, key: str) -> int:
    """A time of a scenario in whole nanoseconds, as the engine has it."""
    return round(units.seconds(text, key) * 1e9)


def _latest_ns(keys: Mapping[str, Any], window: tuple[int, int]) -> int | None:
    """The latest at which a viewer of a block begins, if it is certain that all begin within the window."""
    start = keys.get("start")
    ends = start.get("uniform") if isinstance(start, Mapping) else [start, start]
    if not isinstance(ends, list) or not all(isinstance(end, str) for end in ends):
        return None
    first, last = (_ns(end, "start") for end in ends)
    return last if window[0] <= first and last < window[1] else None


def _of_block(
    block: int,
    keys: Mapping[str, Any],
    exchanges: pl.DataFrame,
    window: tuple[int, int],
    openings: Sequence[int] | None,
) -> Iterator[tuple[Any, ...]]:
    first, end = window
    segment, startup = (_ns(keys[key], key) for key in ("segment", "startup"))
    # Of films of any length it is not known whether the last one has more to come: it is then taken to have not.
    most = -(-_ns(keys["film"], "film") // segment) if isinstance(keys["film"], str) else 0
    columns = ["start_ns", "response_time_ns", "response_bytes", "setup_ns"]
    viewers = dict(sorted((int(viewer), own) for (viewer,), own in exchanges.group_by("source")))
    for viewer, own in viewers.items():
        parts: list[list[Segment]] = []
        for asked, took, size, setup in own.sort("start_ns").select(columns).rows():
            if setup > 0:
                parts.append([])
            if parts:  # what comes before belongs to a film that had begun before
                parts[-1].append(Segment(asked, asked + took, size))
        for place, segments in enumerate(parts):
            is_last = place + 1 == len(parts)
            # One that another follows is over: the next begins when this was played.
            is_whole = not is_last or len(segments) >= most
            found = play(segments, segment, startup, end, is_whole)
            begun = segments[0].asked_ns
            if begun >= first:
                waited = end - begun if found.startup_ns is None else found.startup_ns
                yield (
                    block,
                    viewer,
                    begun / 1e9,
                    None if found.startup_ns is None else found.startup_ns / 1e9,
                    found.stalls,
                    found.stalled_ns / 1e9,
                    found.watched_ns / 1e9,
                    found.bitrate_bps,
                    found.switches,
                    waited / 1e9,
                )
            if openings is None and is_last and most and is_whole and found.watched_ns >= len(segments) * segment:
                over = begun + (found.startup_ns or 0) + found.stalled_ns + found.watched_ns
                if first <= over < end:
                    yield _waiting(block, viewer, over, end)
    latest = _latest_ns(keys, window)
    if openings is not None:
        came = Counter(exchanges.filter(pl.col("setup_ns") > 0)["start_ns"])
        within = [at for at in openings if first <= at <= end]
        for at in sorted((Counter(within) - came).elements()):
            yield _waiting(block, UNKNOWN, at, end)
    elif latest is not None:
        for viewer in range(int(keys.get("viewers", 1))):
            if viewer not in viewers:
                yield _waiting(block, viewer, latest, end)


def _waiting(block: int, viewer: int, begun: int, end: int) -> tuple[Any, ...]:
    """A film of which nothing came."""
    return block, viewer, begun / 1e9, None, 0, 0.0, 0.0, None, 0, (end - begun) / 1e9


def said(found: pl.DataFrame) -> dict[str, float | int | None]:
    """Films together: how many, stalls an hour of watching, how long they stood still, and how they looked.

    One without a picture by the end has stood still since it was asked for, and starts later than that.
    """
    unstarted = found.filter(pl.col("startup_s").is_null())
    watched_s = float(found["watched_s"].sum())
    stalled_s = float(found["stalled_s"].sum()) + float(unstarted["waited_s"].sum())
    has_begun = found["startup_s"].is_not_null().to_numpy()
    watched = found.filter(pl.col("watched_s") > 0)
    bitrates, weights = (watched[column].to_numpy() for column in ("bitrate_bps", "watched_s"))
    return {
        "films": found.height,
        "watched_s": watched_s,
        "stalls_per_hour": float(found["stalls"].sum()) * 3600 / watched_s if watched_s > 0 else None,
        "stalled_share": stalled_s / (stalled_s + watched_s) if stalled_s + watched_s > 0 else None,
        "startup_median_s": statistics.median_of_waits(found["waited_s"].to_numpy(), has_begun),
        "unstarted_share": unstarted.height / found.height if found.height else None,
        "bitrate_mean_bps": float(np.average(bitrates, weights=weights)) if watched.height else None,
    }
