"""Video: what viewers saw, played again from the rows of a run."""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

import aqmlab
from aqmlab import api, applications
from aqmlab.comparison import Column, Entry
from aqmlab.results import video
from aqmlab.results.run import Run
from aqmlab.results.video import Segment, play

S = 10**9
"""A second, in nanoseconds."""


def segments(*came_s: float) -> list[Segment]:
    return [Segment(0, round(came * S), 500_000) for came in came_s]


def test_a_film_without_a_stall() -> None:
    found = play(segments(1.0, 2.0, 3.0), 4 * S, 4 * S, 100 * S, is_whole=True)
    assert (found.startup_ns, found.stalls, found.stalled_ns, found.watched_ns) == (S, 0, 0, 12 * S)
    assert (found.bitrate_bps, found.switches) == (1e6, 0)
    # The run ends before the film does.
    assert play(segments(1.0, 2.0, 3.0), 4 * S, 4 * S, 9 * S, is_whole=False).watched_ns == 8 * S


def test_a_film_stands_still_until_there_is_enough() -> None:
    # Played from 1 s to 5 s; the next one is there at 7 s, and is enough: 2 s. Then from 7 to 11 s, and 12.5 s.
    found = play(segments(1.0, 7.0, 12.5), 4 * S, 4 * S, 100 * S, is_whole=True)
    assert (found.stalls, found.stalled_ns, found.watched_ns) == (2, 7 * S // 2, 12 * S)
    # Two segments are asked for: it begins at 7 s, and what comes at 12.5 s finds 2.5 s in the buffer.
    found = play(segments(1.0, 7.0, 12.5), 4 * S, 8 * S, 100 * S, is_whole=True)
    assert (found.startup_ns, found.stalls, found.watched_ns) == (7 * S, 0, 12 * S)
    # A segment of which nothing is known when the run ends: out at 5 s, until 9 s.
    found = play(segments(1.0), 4 * S, 4 * S, 9 * S, is_whole=False)
    assert (found.stalls, found.stalled_ns, found.watched_ns) == (1, 4 * S, 4 * S)
    # Nothing was ever played.
    assert play(segments(1.0), 4 * S, 8 * S, 9 * S, is_whole=False).startup_ns is None


def test_times_that_are_no_sum_of_seconds_are_exact() -> None:
    # 3 times 1.2 is less than 3.6 in seconds: the third segment is enough all the same.
    block = {"kind": "video", "segment": "1200ms", "startup": "3600ms", "film": "8400ms"}
    rows = [(0, 0, 5.0 + k, 0.5, 0.1 if k == 0 else 0.0, 100_000) for k in range(7)]
    found = video.films(table(rows), [block], (0.0, 60.0))
    # A film of 8.4 s has seven segments: it is over when they were played, and the next one is waited for since then.
    assert found["startup_s"].to_list() == [2.5, None] and found["stalls"].to_list() == [0, 0]
    assert found["watched_s"].to_list() == [8.4, 0.0] and found["begun_s"].to_list() == [5.0, 15.9]


def test_switches_are_counted() -> None:
    sizes = [1, 1, 2, 2, 1]
    made = [Segment(0, place * S, size) for place, size in enumerate(sizes)]
    assert play(made, 4 * S, 4 * S, 100 * S, is_whole=True).switches == 2


Row = tuple[int, int, float, float, float, int]
"""Block, viewer, when a segment was asked for, how long it took, with what of that before it was open, and its size."""


def table(rows: Sequence[Row]) -> pl.DataFrame:
    names = ["traffic", "source", "start_s", "response_time_s", "setup_s", "response_bytes"]
    found = pl.DataFrame(rows, schema=names, orient="row")
    times = [
        pl.col(f"{name}_s").mul(1e9).round().cast(pl.Int64).alias(f"{name}_ns")
        for name in ("start", "response_time", "setup")
    ]
    return found.with_columns(*times)


def run_of(tmp_path: Path, film: str, more: Sequence[Row] = ()) -> Run:
    """A run of 100 s, 90 measured: a web block, and three viewers whose segments are known."""
    keys = 'segment = "4s"\nstartup = "4s"'
    (tmp_path / "scenario.toml").write_text(
        'duration = "100s"\nwarmup = "10s"\n[[traffic]]\nkind = "web"\n'
        f'[[traffic]]\nkind = "video"\n{keys}\nfilm = {film}\n'
    )
    rows = [
        # Viewer 0: a film that had begun before, of which nothing is known; then one of two segments, and another.
        (1, 0, 11.0, 1.0, 0.0, 500_000),
        (1, 0, 20.0, 1.0, 0.1, 500_000),
        (1, 0, 21.0, 1.0, 0.0, 1_000_000),
        (1, 0, 29.0, 2.0, 0.1, 500_000),
        (1, 0, 31.0, 9.0, 0.0, 500_000),
        # Viewer 1: a single segment; the next is under way when the run ends.
        (1, 1, 90.0, 1.0, 0.1, 500_000),
        (0, 1, 90.0, 1.0, 0.1, 500_000),
        *more,
    ]
    table(rows).write_parquet(tmp_path / "exchanges.parquet")
    manifest = {"seed": 1, "digest": "", "scenario_digest": "", "version": "", "self_checks": []}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "summary.json").write_text(json.dumps({"forward": {}, "reverse": {}, "exchanges": {}}))
    return Run(tmp_path)


def test_films_are_told_of_the_rows_of_a_run(tmp_path: Path) -> None:
    run = run_of(tmp_path, '"8s"')
    found = run.films
    assert found.columns == list(video.COLUMNS) and set(found["traffic"]) == {1}
    assert found["viewer"].to_list() == [0, 0, 0, 1]
    # The third is waited for since the second was over, and nothing came of it.
    assert found["begun_s"].to_list() == [20.0, 29.0, 44.0, 90.0]
    # The second stands still from 35 to 40 s; the last from 95 s to the end of the run at 100 s.
    assert found["startup_s"].to_list() == [1.0, 2.0, None, 1.0]
    assert found["stalls"].to_list() == [0, 1, 0, 1] and found["stalled_s"].to_list() == [0.0, 5.0, 0.0, 5.0]
    assert found["watched_s"].to_list() == [8.0, 8.0, 0.0, 4.0]
    assert found["waited_s"].to_list() == [1.0, 2.0, 56.0, 1.0]
    assert found["bitrate_bps"].to_list() == [1.5e6, 1e6, None, 1e6] and found["switches"].to_list() == [1, 0, 0, 0]
    told = video.said(found)
    assert told["films"] == 4 and told["stalls_per_hour"] == pytest.approx(2 * 3600 / 20)
    assert told["stalled_share"] == pytest.approx(66 / 86) and told["startup_median_s"] == 1.5
    assert told["unstarted_share"] == 0.25
    assert told["bitrate_mean_bps"] == pytest.approx((1.5e6 * 8 + 1e6 * 12) / 20)
    assert set(video.said(found.clear()).values()) == {0, None}
    assert applications.samples(run)["video"].tolist() == [1.5, 1.0, 0.0, 1.0]


def test_a_film_asked_for_before_the_window_does_not_count(tmp_path: Path) -> None:
    run = run_of(tmp_path, '"8s"', [(1, 0, 9.5, 1.0, 0.1, 500_000), (1, 2, 10.0, 1.0, 0.1, 500_000)])
    assert run.films["viewer"].to_list() == [0, 0, 0, 1, 2]
    assert run.films["begun_s"].min() == 10.0


def test_a_film_without_a_picture_is_waited_for_until_the_end() -> None:
    # One is watched from 4.25 s after it was asked for; of nine one of the two segments came that they need to begin.
    rows = [(0, 5.0 + 4 * k, 0.25, 0.02 if k == 0 else 0.0, 1_000_000) for k in range(14)]
    rows += [(viewer, 5.0, 20.0, 0.02, 100_000) for viewer in range(1, 10)]
    block = {"kind": "video", "segment": "4s", "startup": "8s", "film": "600s"}
    found = video.films(table([(0, *row) for row in rows]), [block], (0.0, 60.0))
    told = video.said(found)
    assert (told["films"], told["unstarted_share"]) == (10, 0.9)
    assert told["startup_median_s"] is None  # more than half had none
    assert told["stalled_share"] == pytest.approx(9 * 55 / (9 * 55 + 50.75))
    most = video.said(found.filter(pl.col("viewer") < 2).extend(found.filter(pl.col("viewer") == 0)))
    assert most["startup_median_s"] == 4.25


STARVING = """
name = "starving"
duration = "30s"
warmup = "10s"
record.demands = {demands}
[link]
rate = "1mbit"
qdisc = {{ kind = "pfifo", limit = "200p" }}
[path]
rtt = "40ms"
[[traffic]]
kind = "video"
viewers = 30
film = "8s"
start = {start}
"""


def played(folder: Path, demands: bool, start: str) -> Run:
    folder.mkdir()
    text = STARVING.format(demands=str(demands).lower(), start=start)
    (folder / "starving.toml").write_text(text, encoding="utf-8")
    return api.run(folder / "starving.toml", out=folder / "out").runs[0]


@pytest.mark.usefixtures("compiled")
def test_films_of_which_nothing_came_are_known_of_demands(tmp_path: Path) -> None:
    run = played(tmp_path / "a", True, '{ uniform = ["0s", "20s"] }')
    found, (first, last) = run.films, run.window
    asked = pl.read_csv(run.folder / "demands-0.csv").filter(pl.col("direction").is_not_null())["at_s"]
    assert sorted(found["begun_s"]) == pytest.approx(asked.filter(asked.is_between(first, last)).to_list())
    # All of the nine films of which something came had been asked for before the window.
    assert found.height > 20 and set(found["viewer"]) == {video.UNKNOWN}
    assert found["waited_s"].to_list() == pytest.approx([last - begun for begun in found["begun_s"]])
    assert video.unheard(run.exchanges, run.scenario["traffic"], run.window, run.folder) == 0


@pytest.mark.usefixtures("compiled")
def test_without_demands_it_is_known_of_some_viewers_that_they_wait(tmp_path: Path) -> None:
    # All begin within the window: whoever got nothing waits for the first film, whoever has seen one for the next.
    known, found = (played(tmp_path / str(k), k, '{ uniform = ["11s", "20s"] }').films for k in (True, False))
    assert found.height == known.height and found["startup_s"].null_count() == known["startup_s"].null_count() > 10
    assert 20.0 in found["begun_s"] and 0 < found["waited_s"].sum() <= known["waited_s"].sum()
    came = pl.col("bitrate_bps").is_not_null()
    assert found.filter(came).equals(known.filter(came))
    # Others may wait since before the window: how many that are is said.
    run = played(tmp_path / "before", False, '{ uniform = ["0s", "20s"] }')
    seen = run.exchanges["source"].n_unique()
    assert video.unheard(run.exchanges, run.scenario["traffic"], run.window, run.folder) == 30 - seen > 10
    (part,) = applications.of([Column(Entry("a", ".", uncongested=False), aqmlab.load(run.folder))])
    assert f"is not known without record.demands: {30 - seen} under a." in part.note
    assert part.note.startswith("–: no film is known, or half of them or more had no picture, under a. ")


def test_a_last_film_of_any_length_may_be_over(tmp_path: Path) -> None:
    run = run_of(tmp_path, '{ exponential = "20s" }')
    assert run.films["stalls"].to_list() == [0, 1, 0], "it is not known whether another one is waited for"
