"""What `aqmlab advise` makes of a run: a number for each application, and a score of all."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from aqmlab.advice import advising, applications, assumptions, question, scores, situation, words
from aqmlab.advice.candidates import TODAY
from aqmlab.cli import invoke
from aqmlab.errors import BadInput
from aqmlab.results import emodel, felt

pytestmark = pytest.mark.usefixtures("compiled")


def test_what_is_late_for_a_game_is_a_delay_that_occurred() -> None:
    delays = np.array([0.01] * 98 + [0.02, np.nan])
    assert felt.late_of(delays) == 0.02, "99 % of the packets, and nothing between them and the lost one"
    assert felt.late_of(np.append(delays, np.nan)) == felt.GAME_LOST_S


def test_a_call_takes_the_playout_that_suits_it() -> None:
    still = np.full(1000, 0.030)
    # 30 ms, the least buffer of 20 ms, and 20 ms of packetisation: mouth to ear 70 ms, nothing lost.
    assert felt.opinion_of(still) == pytest.approx(emodel.opinion(emodel.rating(_after(0.070))))
    # A tenth of the packets 130 ms later: waiting for all of them costs less than losing them.
    late = np.where(np.arange(1000) % 10 == 0, 0.160, 0.030)
    assert felt.opinion_of(late) == pytest.approx(emodel.opinion(emodel.rating(_after(0.200))))
    assert felt.opinion_of(np.full(10, np.nan)) == 1.0


def _after(delay_s: float) -> emodel.Call:
    return emodel.Call(delay_s)


def test_a_game_counts_what_is_lost() -> None:
    rows = pl.DataFrame(
        {
            "direction": [0] * 200 + [1] * 200,
            "source": [0] * 200 + [1] * 200,
            "packet": [*range(200), *range(200)],
            # Of 200 packets in reverse 4 are lost, 2 %: the 99th percentile is one of them.
            "delay_s": [0.02] * 200 + [0.03] * 196 + [None] * 4,
        }
    )
    assert applications.games(rows) == felt.GAME_LOST_S
    assert applications.games(rows.filter(pl.col("direction") == 0)) == pytest.approx(0.02)


def test_pages_are_those_that_were_asked_for(tmp_path: Path) -> None:
    # Nobody asked in all of the run: it leaves no file.
    assert applications.pages(tmp_path) is None
    demands = tmp_path / "demands-0.csv"
    demands.write_text("connection,at_s\n")
    assert applications.pages(tmp_path) is None
    # Asked before the window; three within; one too late to be there within 2 s of a run of 24 s.
    demands.write_text("connection,at_s\n1,3.9\n2,5\n3,6\n4,21.9\n5,22.5\n")
    answered = {"traffic": [0, 0, 0, 0, 3], "start_s": [3.9, 5.0, 6.0, 22.5, 7.0]}
    pl.DataFrame({**answered, "response_time_s": [1.0, 2.0, 2.1, 0.5, 0.1]}).write_parquet(
        tmp_path / "exchanges.parquet"
    )
    # One took 2 s, one 2.1 s, one never came.
    assert applications.pages(tmp_path) == pytest.approx(1 / 3)


def test_a_score_weighs_what_was_asked_for() -> None:
    row = {"calls_mos": 4.41, "pages_in_2s": 0.5, "game_p99_s": 0.125, "down_bps": 8e6, "up_bps": None}
    asked = question.read("10mbit", "1mbit")
    # (1 + 0.5 + 0.5 + 0.8) / 4
    assert applications.score(asked, row) == pytest.approx(0.7)
    asked = question.read("10mbit", "1mbit", what_for="web=3,downloads")
    assert applications.score(asked, row) == pytest.approx((3 * 0.5 + 0.8) / 4)


def test_a_queue_under_which_nobody_begins_a_page_has_none_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With homes people wait for one page before the next: the slower the queue, the fewer are begun."""
    asked = question.read("20mbit", "4mbit", homes=2, platform="freebsd", what_for="web,calls")
    pages = {TODAY: None, "fq_codel": 0.3, "codel": 0.0}

    def made(work: object, *_: object) -> list[applications.Row]:
        return [
            # Nobody begins one under any queue in the third round.
            {"calls_mos": 4.41, "pages_in_2s": None if seed == 2 else pages.get(one.name, 1.0)}
            for one, seed, _ in work  # type: ignore[attr-defined]
        ]

    monkeypatch.setattr(advising, "made", made)
    found = advising.advise(asked, rounds=3, rate_error=0.0)
    scores = {name: found.race.scores[name] for name in pages}
    assert scores == {TODAY: [0.5, 0.5, 1.0], "fq_codel": [0.65, 0.65, 1.0], "codel": [0.5, 0.5, 1.0]}
    assert any("the first has none in time in that round" in one for one in words.notes(found))
    # Tables have the same rounds as the score: those in which somebody asked under some queue.
    shares = next(one for one in applications.FIGURES if one.key == "pages_in_2s")
    values = {name: found.value(name, shares) for name in pages}
    assert {name: one and (one.value, one.n) for name, one in values.items()} == {
        TODAY: (0.0, 2),
        "fq_codel": (pytest.approx(0.3), 2),
        "codel": (0.0, 2),
    }
    assert found.worth(shares).rounds == 2
    # What nobody does has no weight anywhere.
    rows = [{"calls_mos": 4.41, "pages_in_2s": None}, {"calls_mos": 1.0, "pages_in_2s": None}]
    assert applications.beside_each_other(rows) == rows
    assert [applications.score(asked, row) for row in rows] == [1.0, 0.0]


def test_a_shaper_too_fast_under_which_nobody_begins_a_page_has_none_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question.read("20mbit", "4mbit", homes=2, platform="freebsd", what_for="web,calls")

    def made(work: object, *_: object) -> list[applications.Row]:
        better = {TODAY: 0.1, "fq_codel": 0.9}
        return [
            {"calls_mos": 4.41, "pages_in_2s": better.get(one.name, 0.2) if too_fast is None or seed else None}
            for one, seed, too_fast in work  # type: ignore[attr-defined]
        ]

    monkeypatch.setattr(advising, "made", made)
    found = advising.advise(asked, rounds=6)
    assert found.first.name == "fq_codel"
    assert [row["pages_in_2s"] for row in found.too_fast] == [0.0, *[0.9] * 5]
    assert any("the first has none in time in that round" in one for one in words.notes(found))


def test_who_wants_films_has_some() -> None:
    assert question.read("50mbit", "10mbit").mix.video == (0, 0)
    asked = question.read("50mbit", "10mbit", what_for="video=2,calls")
    assert asked.mix.video == (1, 2) and asked.weights["video"] == 2
    assert [one.key for one in applications.figures(asked)][2:5] == [one.key for one in applications.FILMS]
    assert "films: 1 to 2" in assumptions.unknown(asked)
    assert scores.definition(asked) == (
        "A score is the mean of calls (weight 1) and films (weight 2), each from 0 to 1. "
        "Pages, games and downloads with uploads do not count."
    )
    # Without films nothing is said of them, and other questions are what they were.
    plain = question.read("50mbit", "10mbit")
    assert scores.definition(plain) == (
        "A score is the mean of calls, pages, games and downloads with uploads, each from 0 to 1."
    )


def test_a_score_is_said_to_be_made_as_it_is_made(tmp_path: Path) -> None:
    """Each number that the words have of a row, worked out by hand."""
    asked = question.read("50mbit", "10mbit")
    row = {"calls_mos": 2.7, "pages_in_2s": 0.4, "game_p99_s": 0.1, "down_bps": 2.5e7, "up_bps": 9e6}
    assert scores.how(asked) == (
        "In the score count calls by (MOS − 1) / 3.41, as the best of G.711 is 4.41; pages by the share of those "
        "within 2 s; games by 1 less the 99th percentile of delay over 250 ms, and 0 beyond; downloads and uploads by "
        "their share of the line's rate, in the mean of both (docs/guide/advise.md, What comes out)."
    )
    made = [1.7 / 3.41, 0.4, 1 - 0.1 / 0.25, (25 / 50 + 9 / 10) / 2]
    assert applications.score(asked, row) == pytest.approx(sum(made) / 4)
    # Uploads alone fill the line where nobody downloads.
    file = tmp_path / "mix.toml"
    file.write_text("users = 0\ncalls = 0\ngames = 0\ndownloads = 0\n", encoding="utf-8")
    of_uploads = question.read("50mbit", "10mbit", mix=file)
    assert scores.definition(of_uploads) == "A score is that of uploads alone, from 0 to 1."
    assert scores.how(of_uploads).startswith("In the score count uploads by their share of the line's rate (")


def test_films_that_nobody_watches_cannot_matter(tmp_path: Path) -> None:
    mix = tmp_path / "mix.toml"
    mix.write_text("users = 2\n")
    with pytest.raises(BadInput, match=re.escape(f"--for video: nobody watches in {mix}; expected a line as video")):
        question.read("50mbit", "10mbit", mix=mix, what_for="video")
    mix.write_text("users = 2\nvideo = [1, 3]\n")
    assert question.read("50mbit", "10mbit", mix=mix, what_for="video").mix.video == (1, 3)


def test_a_film_is_worth_its_bitrate_less_the_time_without_a_picture() -> None:
    columns = {"watched_s": [16.0, 20.0], "stalled_s": [2.0, 0.0], "bitrate_bps": [2e6, 4e6]}
    found = pl.DataFrame(columns)
    # 16 s at 2 of 4 Mb/s and 20 s at all of it, less 2 s of stalls and 2 s of starting, of 40 s.
    assert applications._pleasure(found, 2.0, 4e6) == pytest.approx((8 + 20 - 2 - 2) / 40)
    assert applications._pleasure(found, 100.0, 4e6) == 0.0
    row = {"film_score": 0.25, "calls_mos": 4.41}
    asked = question.read("10mbit", "1mbit", what_for="video=3,calls")
    assert applications.score(asked, row) == pytest.approx((3 * 0.25 + 1) / 4)


def test_a_viewer_without_a_film_has_waited_for_one_until_the_end(tmp_path: Path) -> None:
    columns = {"traffic": pl.Int64, "source": pl.Int64, "start_s": pl.Float64, "start_ns": pl.Int64}
    others = {"response_time_s": pl.Float64, "response_bytes": pl.Int64, "setup_ns": pl.Int64}
    pl.DataFrame(schema=columns | others).write_parquet(tmp_path / "exchanges.parquet")
    block = {"kind": "video", "application": "video", "segment": "4s", "startup": "4s", "film": "600s"}
    block |= {"ladder": ["235kbit"], "viewers": 2}
    for start, waited_s in (({"uniform": ["4s", "5200ms"]}, 18.8), ("0s", 20.0), ({"exponential": "5s"}, 20.0)):
        row = applications.films(tmp_path, [block | {"start": start}])
        assert row["film_startup_s"] == pytest.approx(waited_s) and row["film_bitrate_bps"] == 0.0
        assert np.isnan(row["film_stalls_per_hour"]), "nothing was watched"
        asked = question.read("10mbit", "1mbit", what_for="video=3,calls")
        assert row["film_score"] == 0.0 and applications.score(asked, {**row, "calls_mos": 4.41}) == 0.25
    # No mean is taken of the runs in which something was watched.
    assert advising.over([3.0, float("nan"), 2.0]) is None and advising.over([3.0, None, 2.0]) is not None


def test_a_run_in_which_nobody_watches_has_no_films(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mix.toml"
    file.write_text("users = 0\ncalls = 0\ngames = 0\ndownloads = 1\nuploads = 1\nvideo = [0, 1]\n")
    asked = question.read("4mbit", "1mbit", mix=file, platform="freebsd")
    assert {situation.draw(asked, seed).video for seed in range(4)} == {0, 1}
    words_of = ["advise", "--down", "4mbit", "--up", "1mbit", "--on", "freebsd", "--mix", str(file), "--rounds", "4"]
    assert invoke([*words_of, "--json", "--rate-error", "0"]) == 0
    found = json.loads(capsys.readouterr().out)["candidates"][TODAY]["figures"]
    assert found["film_bitrate_bps"]["n"] < found["down_bps"]["n"] == 4
