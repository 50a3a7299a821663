"""Video: what viewers saw, played again from the rows of a run."""

import json
from pathlib import Path

import polars as pl
import pytest

from aqmlab.results import video
from aqmlab.results.run import Run
from aqmlab.results.video import Segment, play


def segments(*came_s: float) -> list[Segment]:
    return [Segment(0.0, came, 500_000) for came in came_s]


def test_a_film_without_a_stall() -> None:
    found = play(segments(1.0, 2.0, 3.0), 4.0, 4.0, 100.0, is_whole=True)
    assert (found.startup_s, found.stalls, found.stalled_s, found.watched_s) == (1.0, 0, 0.0, 12.0)
    assert (found.bitrate_bps, found.switches) == (1e6, 0)
    # The run ends before the film does.
    assert play(segments(1.0, 2.0, 3.0), 4.0, 4.0, 9.0, is_whole=False).watched_s == 8.0


def test_a_film_stands_still_until_there_is_enough() -> None:
    # Played from 1 s to 5 s; the next one is there at 7 s, and is enough: 2 s. Then from 7 to 11 s, and 12.5 s.
    found = play(segments(1.0, 7.0, 12.5), 4.0, 4.0, 100.0, is_whole=True)
    assert (found.stalls, found.stalled_s, found.watched_s) == (2, 3.5, 12.0)
    # Two segments are asked for: it begins at 7 s, and what comes at 12.5 s finds 2.5 s in the buffer.
    found = play(segments(1.0, 7.0, 12.5), 4.0, 8.0, 100.0, is_whole=True)
    assert (found.startup_s, found.stalls, found.watched_s) == (7.0, 0, 12.0)
    # A segment of which nothing is known when the run ends: out at 5 s, until 9 s.
    found = play(segments(1.0), 4.0, 4.0, 9.0, is_whole=False)
    assert (found.stalls, found.stalled_s, found.watched_s) == (1, 4.0, 4.0)
    # Nothing was ever played.
    assert play(segments(1.0), 4.0, 8.0, 9.0, is_whole=False).startup_s is None


def test_switches_are_counted() -> None:
    sizes = [1, 1, 2, 2, 1]
    made = [Segment(0.0, float(place), size) for place, size in enumerate(sizes)]
    assert play(made, 4.0, 4.0, 100.0, is_whole=True).switches == 2


def run_of(tmp_path: Path, film: str) -> Run:
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
    ]
    names = ["traffic", "source", "start_s", "response_time_s", "setup_s", "response_bytes"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    times = [pl.col(f"{name}_s").mul(1e9).round().cast(pl.Int64).alias(f"{name}_ns") for name in ("start", "setup")]
    table.with_columns(*times).write_parquet(tmp_path / "exchanges.parquet")
    manifest = {"seed": 1, "digest": "", "scenario_digest": "", "version": "", "self_checks": []}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "summary.json").write_text(json.dumps({"forward": {}, "reverse": {}, "exchanges": {}}))
    return Run(tmp_path)


def test_films_are_told_of_the_rows_of_a_run(tmp_path: Path) -> None:
    run = run_of(tmp_path, '"8s"')
    found = run.films
    assert found.columns == list(video.COLUMNS) and set(found["traffic"]) == {1}
    assert found["viewer"].to_list() == [0, 0, 1] and found["begun_s"].to_list() == [20.0, 29.0, 90.0]
    # The second stands still from 35 to 40 s; the third from 95 s to the end of the run at 100 s.
    assert found["startup_s"].to_list() == [1.0, 2.0, 1.0]
    assert found["stalls"].to_list() == [0, 1, 1] and found["stalled_s"].to_list() == [0.0, 5.0, 5.0]
    assert found["watched_s"].to_list() == [8.0, 8.0, 4.0]
    assert found["bitrate_bps"].to_list() == [1.5e6, 1e6, 1e6] and found["switches"].to_list() == [1, 0, 0]
    told = video.said(found)
    assert told["films"] == 3 and told["stalls_per_hour"] == pytest.approx(2 * 3600 / 20)
    assert told["stalled_share"] == pytest.approx(10 / 30) and told["startup_median_s"] == 1.0
    assert told["bitrate_mean_bps"] == pytest.approx((1.5e6 * 8 + 1e6 * 12) / 20)
    assert video.said(found.clear())["stalls_per_hour"] is None


def test_a_last_film_of_any_length_may_be_over(tmp_path: Path) -> None:
    run = run_of(tmp_path, '{ exponential = "20s" }')
    assert run.films["stalls"].to_list() == [0, 1, 0]
