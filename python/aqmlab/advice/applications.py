"""What a run is to each application, in the application's own words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab import units
from aqmlab.advice import captured, situation
from aqmlab.advice.captured import Piece
from aqmlab.advice.question import DURATION_S, Question
from aqmlab.results import held_back, readable, video
from aqmlab.results import pages as loaded
from aqmlab.results.felt import GAME_LOST_S, PAGE_IN_S, late_of, opinion_of, places

GAME_UNPLAYABLE_S = 0.25
"""The 99th percentile one way at which a game has no score left."""

CALL_SPAN_MOS = 3.41
"""From the worst opinion, 1, to that of a call of G.711 without delay or loss, 4.41 (ITU-T G.107)."""


@dataclass(frozen=True)
class Figure:
    """One thing that is said of an application."""

    key: str
    title: str
    short: str
    """The title for a narrow column."""
    unit: str
    """`share`, `mos`, `s`, `bps` or `per_hour`."""
    better: int
    """1 where more is better, -1 where less is."""
    rate_bps: float = math.inf
    """Of a goodput or a bitrate that of the link."""
    prose: str = ""
    """What a sentence calls it, where not by its title."""

    @property
    def in_prose(self) -> str:
        """What a sentence calls it: its title, where that has no comma."""
        return self.prose or self.title

    @property
    def possible(self) -> tuple[float, float]:
        """The least and the most that it can be."""
        if self.unit in readable.POSSIBLE:
            return readable.POSSIBLE[self.unit]
        if self.unit == "bps":
            return 0.0, self.rate_bps
        return 0.0, GAME_LOST_S if self.key == "game_p99_s" else math.inf


FIGURES = (
    Figure("calls_mos", "a call's MOS", "MOS", "mos", 1, prose="calls"),
    Figure("pages_in_2s", "pages within 2 s", "pages", "share", 1),
    Figure("game_p99_s", "games, 99th percentile", "game", "s", -1, prose="game delay (99th percentile)"),
    Figure("down_bps", "downloads", "down", "bps", 1),
    Figure("up_bps", "uploads", "up", "bps", 1),
)

FILMS = (
    Figure("film_startup_s", "a film's start", "start", "s", -1),
    Figure("film_stalls_per_hour", "stalls of a film an hour", "stalls", "per_hour", -1),
    Figure("film_bitrate_bps", "a film's bitrate", "film", "bps", 1),
)
"""Where somebody watches films."""

OF_CAPTURE = (
    FIGURES[0],
    Figure("answers_in_2s", "answers within 2 s", "answers", "share", 1),
    FIGURES[2],
    Figure("down_bps", "goodput down", "down", "bps", 1),
    Figure("up_bps", "goodput up", "up", "bps", 1),
)
"""Where the traffic is that of a capture."""


def figures(question: Question) -> Sequence[Figure]:
    """What is said of a question's applications."""
    if question.captured is not None:
        asked: Sequence[Figure] = OF_CAPTURE
    else:
        every = (*FIGURES[:2], *FILMS, *FIGURES[2:])
        asked = [one for one in every if question.mix.most(_WHO.get(one.key, "video"))]
    rates = {"up_bps": question.up_bps}
    return [replace(one, rate_bps=rates.get(one.key, question.down_bps)) if one.unit == "bps" else one for one in asked]


_WHO = {
    "calls_mos": "calls",
    "pages_in_2s": "users",
    "game_p99_s": "games",
    "down_bps": "downloads",
    "up_bps": "uploads",
}
"""Who has each figure: a key of a mix. The others are of films."""


Row = Mapping[str, float | None]
"""A figure each: nothing where nobody asked, not a number where somebody did and it went too badly for one."""


def of_run(
    folder: Path, summary: Mapping[str, Any], traffic: Sequence[Mapping[str, Any]], piece: Piece | None = None
) -> dict[str, float | None]:
    """The figures of one run; `traffic` are the blocks of its scenario, `piece` what it has of a capture."""
    if piece is not None:
        tcp = summary["tcp"]
        return {
            **measured(folder, traffic, piece),
            "down_bps": tcp["forward_goodput_bps"],
            "up_bps": tcp["reverse_goodput_bps"],
        }
    rates = {"forward": 0.0, "reverse": 0.0}
    found = dict.fromkeys(rates, False)
    for block, held in held_back.blocks(summary).items():
        direction = traffic[int(block)]["direction"]
        rates[direction] += held["goodput_bps"]
        found[direction] = True
    return {
        **measured(folder, traffic),
        "down_bps": rates["forward"] if found["forward"] else None,
        "up_bps": rates["reverse"] if found["reverse"] else None,
    }


def measured(
    folder: Path, traffic: Sequence[Mapping[str, Any]], piece: Piece | None = None, gap_s: float = 0.0
) -> dict[str, float | None]:
    """What tables alone say, of a simulated run and of a live one: calls, pages or answers, games, and films.

    `gap_s` is what real hosts take between an object and a request that follows from it.
    """

    def of(application: str) -> pl.DataFrame | None:
        """Its packets; nothing where the run has nobody who does so."""
        blocks = places(traffic, application)
        if not blocks:
            return None
        return pl.read_parquet(folder / "probes.parquet").filter(pl.col("traffic").is_in(blocks))

    if piece is not None:
        answered = {"answers_in_2s": answers(folder, piece)}
    elif loaded.blocks(traffic):
        window = situation.WARMUP_S, DURATION_S
        answered = {
            "pages_in_2s": loaded.within(loaded.pages(folder, traffic, window, gap_s), PAGE_IN_S, window),
        }
    else:
        answered = {"pages_in_2s": pages(folder) if places(traffic, "pages") else None}
    spoken, played = of("calls"), of("games")
    return {
        "calls_mos": None if spoken is None else calls(spoken),
        **answered,
        "game_p99_s": None if played is None else games(played),
        **(films(folder, traffic) if places(traffic, "video") else _NO_FILMS),
    }


def films(folder: Path, traffic: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """What viewers saw: the mean time to the first picture, stalls an hour, and the mean bitrate.

    A film without a picture by the end of the run has waited for one so long at least, as has a viewer without a film.
    Where nothing was watched, its bitrate is nought, and of stalls there is no number.
    """
    exchanges, window = pl.read_parquet(folder / "exchanges.parquet"), (situation.WARMUP_S, DURATION_S)
    found = video.films(exchanges, traffic, window, folder)
    without = video.unheard(exchanges, traffic, window, folder)
    waits = [*found["waited_s"], *[DURATION_S - situation.WARMUP_S] * without]
    if not waits:
        return dict(_NO_FILMS)
    said = video.said(found)
    stalls, bitrate = said["stalls_per_hour"], said["bitrate_mean_bps"]
    return {
        "film_startup_s": float(np.mean(waits)),
        "film_stalls_per_hour": math.nan if stalls is None else stalls,
        "film_bitrate_bps": bitrate or 0.0,
        "film_score": _pleasure(found, math.fsum(waits), _best_bps(traffic)),
    }


_NO_FILMS: dict[str, float | None] = dict.fromkeys((*(one.key for one in FILMS), "film_score"))
"""Where nobody watched."""


def _best_bps(traffic: Sequence[Mapping[str, Any]]) -> float:
    """The highest bitrate that anybody may have."""
    rates = [rate for place in places(traffic, "video") for rate in traffic[place]["ladder"]]
    return max(units.rate_bps(rate, "ladder") for rate in rates)


def _pleasure(found: pl.DataFrame, waits_s: float, best_bps: float) -> float:
    """From 0 to 1: the bitrate that was watched, less the highest one for each second without a picture.

    These are the weights that Yin, Jindal, Sekar and Sinopoli (SIGCOMM 2015) call balanced, without those of changes
    of the bitrate, over all of the time since films were asked for.
    """
    watched, stalled = float(found["watched_s"].sum()), float(found["stalled_s"].sum())
    seen = float((found["bitrate_bps"] * found["watched_s"]).sum()) / best_bps
    total = watched + stalled + waits_s
    return max(0.0, (seen - stalled - waits_s) / total) if total else 0.0


def pages(folder: Path) -> float | None:
    """The share of pages that were there in time, of all that were asked for; what never came is late."""
    demands = folder / f"demands-{situation.WEB}.csv"
    if not demands.exists():  # nobody asked, in all of the run
        return None
    asked = pl.read_csv(demands, comment_prefix="#", schema_overrides={"at_s": pl.Float64})
    window = pl.col("at_s").is_between(situation.WARMUP_S, DURATION_S - PAGE_IN_S)
    total = asked.filter(window).height
    if not total:
        return None
    answered = pl.read_parquet(folder / "exchanges.parquet").filter(pl.col("traffic") == situation.WEB)
    in_time = answered.filter(
        pl.col("start_s").is_between(situation.WARMUP_S, DURATION_S - PAGE_IN_S)
        & (pl.col("response_time_s") <= PAGE_IN_S)
    ).height
    return in_time / total


def answers(folder: Path, piece: Piece) -> float | None:
    """The share of a capture's answers that were there in time, of all that could have been."""
    could = {
        key: answer
        for key, answer in captured.answers(piece.vectors).items()
        if answer.begun_s >= situation.WARMUP_S and answer.ends_s <= DURATION_S - PAGE_IN_S
    }
    if not could:
        return None
    rows = pl.read_parquet(folder / "exchanges.parquet").filter(pl.col("traffic") == situation.WEB)
    in_time = 0
    order: dict[int, int] = {}
    for source, took_s in rows.sort("source", "start_ns").select("source", "response_time_s").rows():
        place = order.get(source, 0)
        order[source] = place + 1
        answer = could.get((source, place))
        in_time += answer is not None and took_s - answer.thought_s <= PAGE_IN_S
    return in_time / len(could)


def calls(probes: pl.DataFrame) -> float:
    """The mean opinion score of the worse direction, over calls: people hear each other both ways."""
    return float(min(np.mean(scores) for scores in _each_way(probes, opinion_of).values()))


def games(probes: pl.DataFrame) -> float:
    """The delay below which 99 % of packets stay, in the worse direction."""
    return float(max(np.mean(delays) for delays in _each_way(probes, late_of).values()))


def _each_way(probes: pl.DataFrame, figure: Any) -> dict[int, list[float]]:
    ways: dict[int, list[float]] = {}
    for (direction, _), flow in sorted(probes.group_by("direction", "source"), key=lambda item: item[0]):
        ways.setdefault(int(direction), []).append(figure(flow.sort("packet")["delay_s"].to_numpy()))
    return ways


def beside_each_other(rows: Sequence[Row]) -> list[Row]:
    """Rows of one round, under a queue each, in which nobody has left out a page by waiting.

    Where people wait for one page before the next, they may begin none under a slow queue. It loads none in time if
    somebody began one under another queue.
    """
    if all(row.get("pages_in_2s") is None for row in rows):
        return list(rows)
    return [{**row, "pages_in_2s": 0.0} if row.get("pages_in_2s") is None else row for row in rows]


def parts(question: Question, row: Row) -> dict[str, float]:
    """Each application that counts as a number from 0 to 1; one that nobody used has none."""
    every: dict[str, Sequence[float]] = {
        "calls": [(mos - 1) / CALL_SPAN_MOS for mos in _known(row, "calls_mos")],
        "web": [*_known(row, "pages_in_2s"), *_known(row, "answers_in_2s")],
        "video": _known(row, "film_score"),
        "games": [1 - min(delay, GAME_UNPLAYABLE_S) / GAME_UNPLAYABLE_S for delay in _known(row, "game_p99_s")],
        "downloads": [
            *(bps / question.down_bps for bps in _known(row, "down_bps")),
            *(bps / question.up_bps for bps in _known(row, "up_bps")),
        ],
    }
    return {name: float(np.mean(values)) for name, values in every.items() if values and question.weights[name]}


def score(question: Question, row: Row) -> float:
    """All applications as one number from 0 to 1, by their weights."""
    weighed = [(question.weights[name], value) for name, value in parts(question, row).items()]
    total = math.fsum(weight for weight, _ in weighed)
    return math.fsum(weight * value for weight, value in weighed) / total if total else 0.0


WORKS = 0.25
"""Below, an application does not work: three of four pages are late, or a call has a MOS of 1.85, where nearly all
users are dissatisfied (below 2.58; ITU-T G.107, annex B). Nor does a mix whose score is lower: of the four applications
that count if nobody says otherwise, one at most can work as it should."""

_WHAT = {"calls": "calls", "web": "pages", "video": "films", "games": "games"}


def failing(question: Question, rows: Sequence[Row]) -> list[str]:
    """What does not work over these runs, in the mean. A download does at any rate: it takes longer."""
    of_runs = [parts(question, row) for row in rows]
    found = []
    for name, what in _WHAT.items():
        values = [one[name] for one in of_runs if name in one]
        if values and np.mean(values) < WORKS:
            found.append("answers" if name == "web" and question.captured is not None else what)
    return found


def _known(row: Row, key: str) -> list[float]:
    value = row.get(key)
    return [] if value is None else [value]
