"""What each application got in a run, in its own words: pages in two seconds, stalls an hour, MOS, delays.

A block of traffic is of an application if it says so (`application = "calls"`); films, real-time video and readers of
pages are what they are without that. A block of pages whose tables do not tell which objects are of one page has
figures of its exchanges.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from aqmlab import statistics, units
from aqmlab.results import felt, held_back, pages, video
from aqmlab.results.run import Run
from aqmlab.statistics import Array

Heading = tuple[str, str, str]
"""Title, in two lines for a terminal, unit, and the name of the number."""

Figures = Mapping[str, float | None]
"""A number each, by its name; nothing where there is none."""


@dataclass(frozen=True)
class Application:
    """An application, and what is said of it."""

    name: str
    title: str
    headings: tuple[Heading, ...]
    """Without differences."""
    figures: Callable[[Run, Sequence[int]], Figures]
    samples: Callable[[Run, Sequence[int]], Array]
    """What each page, film, call, game or flow got: of one that got nothing, infinity or nought."""
    axis: str
    """What the samples are."""
    better: int
    """1 where more of that is better, -1 where less is."""
    differs: tuple[str, ...]
    """The figures that are shown beside those of the baseline."""
    counted: str = ""
    """What is counted of it."""
    meant: str = ""
    """What its figures mean."""
    waits: Callable[[Run, Sequence[int]], tuple[Array, Array]] | None = None
    """Of samples that the end of a run may cut off: how long each took, or was waited for, and whether it was over."""


def blocks(run: Run, application: Application) -> list[int]:
    """The blocks of an application."""
    traffic = run.scenario["traffic"]
    own = {"pages": _pages_of, "exchanges": _unjoined, "video": _films_of, "live": _live_of}.get(application.name)
    return own(traffic) if own else felt.places(traffic, application.name)


def _pages_of(traffic: Sequence[Mapping[str, Any]]) -> list[int]:
    called = set(felt.places(traffic, "pages")) - set(_unjoined(traffic))
    return sorted(called | set(pages.blocks(traffic, [pages.READERS])))


def _unjoined(traffic: Sequence[Mapping[str, Any]]) -> list[int]:
    """Blocks of pages of several objects that cannot be put together."""
    whole = pages.blocks(traffic)
    called = felt.places(traffic, "pages")
    return [place for place in called if place not in whole and not pages.are_answers(traffic[place])]


def _films_of(traffic: Sequence[Mapping[str, Any]]) -> list[int]:
    own = [place for place, block in enumerate(traffic) if block["kind"] == video.KIND]
    return sorted({*felt.places(traffic, "video"), *own})


def _live_of(traffic: Sequence[Mapping[str, Any]]) -> list[int]:
    return [place for place, block in enumerate(traffic) if block["kind"] == "rtp_video"]


def _loaded(run: Run, blocks: Sequence[int]) -> pl.DataFrame:
    """Pages with when they began and how long they took: those of readers, and answers that are pages by themselves."""
    readers = run.pages_of(blocks).select("begun_s", "load_s")
    joined = pages.blocks(run.scenario["traffic"])
    answers = [pages.answers(run.folder, block, run.window) for block in blocks if block not in joined]
    return pl.concat([readers, *answers])


def _pages(run: Run, blocks: Sequence[int]) -> Figures:
    found = _loaded(run, blocks)
    return {
        "loaded": float(found["load_s"].count()),
        "share_in_2s": pages.within(found, felt.PAGE_IN_S, run.window),
        "load_median_s": pages.median_s(found, run.window),
    }


def _page_times(run: Run, blocks: Sequence[int]) -> Array:
    return _numbers(_loaded(run, blocks)["load_s"].fill_null(math.inf))


def _page_waits(run: Run, blocks: Sequence[int]) -> tuple[Array, Array]:
    return pages.waits(_loaded(run, blocks), run.window)


def _exchanges(run: Run, blocks: Sequence[int]) -> Figures:
    times = _response_times(run, blocks)
    return {
        "completed": float(times.size),
        "share_under_2s": float((times <= felt.PAGE_IN_S).mean()) if times.size else None,
        "p50": float(statistics.quantiles(times, [0.5])[0]) if times.size else None,
    }


def _response_times(run: Run, blocks: Sequence[int]) -> Array:
    return _numbers(run.exchanges.filter(pl.col("traffic").is_in(blocks))["response_time_s"])


def _films(run: Run, blocks: Sequence[int]) -> Figures:
    found = run.films.filter(pl.col("traffic").is_in(blocks))
    said = video.said(found)
    return {
        name: None if said[name] is None else float(said[name])  # type: ignore[arg-type]
        for name in (
            *("films", "startup_median_s", "unstarted_share"),
            *("stalls_per_hour", "stalled_share", "bitrate_mean_bps"),
        )
    }


def _bitrates(run: Run, blocks: Sequence[int]) -> Array:
    return _numbers(run.films.filter(pl.col("traffic").is_in(blocks))["bitrate_bps"].fill_null(0.0)) / 1e6


def _frames(run: Run, blocks: Sequence[int]) -> Figures:
    found = run.frames.filter(pl.col("traffic").is_in(blocks))
    came = found.filter(pl.col("delay_s").is_not_null())
    # One that was lost came within no time: of the delays of the others alone, who loses more would seem faster.
    delays = found["delay_s"].fill_null(math.inf)
    start, end = run.window
    sources = sum(int(run.scenario["traffic"][block]["flows"]) for block in blocks)
    return {
        "bitrate_source_bps": float(came["bytes"].sum()) * 8 / (end - start) / sources,
        "delay_p50_s": _finite(statistics.quantiles(delays, [0.5])[0]) if found.height else None,
        "delay_p99_s": _finite(statistics.quantiles(delays, [0.99])[0]) if found.height else None,
        "lost": 1 - came.height / found.height if found.height else None,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _frame_delays(run: Run, blocks: Sequence[int]) -> Array:
    found = run.frames.filter(pl.col("traffic").is_in(blocks))
    return _numbers(found["delay_s"].fill_null(math.inf)) * 1e3


def _each_way(run: Run, blocks: Sequence[int], figure: Callable[[Any], float]) -> Array:
    """A figure of each source of probes that sent anything."""
    rows = run.probes.filter(pl.col("traffic").is_in(blocks))
    found = [
        figure(flow.sort("packet")["delay_s"].to_numpy())
        for _, flow in sorted(rows.group_by("traffic", "source", "direction"), key=lambda item: item[0])
    ]
    return np.asarray(found, dtype=np.float64)


def _calls(run: Run, blocks: Sequence[int]) -> Figures:
    found = _opinions(run, blocks)
    if not found.size:
        return {"mos_mean": None, "mos_least": None, "satisfied": None}
    satisfied = felt.satisfied(found)
    return {"mos_mean": float(found.mean()), "mos_least": float(found.min()), "satisfied": satisfied}


def _opinions(run: Run, blocks: Sequence[int]) -> Array:
    traffic = run.scenario["traffic"]
    found = [
        _each_way(
            run, [block], partial(felt.opinion_of, packet_s=units.seconds(traffic[block]["interval"], "interval"))
        )
        for block in blocks
    ]
    return np.concatenate(found) if found else np.empty(0)


def _games(run: Run, blocks: Sequence[int]) -> Figures:
    found = _each_way(run, blocks, felt.late_of)
    return {"p99_mean_s": float(found.mean()), "p99_most_s": float(found.max())} if found.size else {}


def _late(run: Run, blocks: Sequence[int]) -> Array:
    return _each_way(run, blocks, felt.late_of) * 1e3


def _flows(run: Run, blocks: Sequence[int]) -> Figures:
    held = held_back.blocks(run.summary)
    rates = [float(held[str(block)]["goodput_bps"]) for block in blocks if str(block) in held]
    flows = sum(int(run.scenario["traffic"][block]["flows"]) for block in blocks if str(block) in held)
    return {"goodput_bps": math.fsum(rates), "goodput_flow_bps": math.fsum(rates) / flows} if flows else {}


def _none(run: Run, blocks: Sequence[int]) -> Array:
    del run, blocks
    return np.empty(0)


MOS = "MOS (how a call sounds: 1 bad to 5 excellent)"
"""What the opinion of a call is, where it is named first."""

GOODPUT: tuple[Heading, ...] = (
    ("goodput\nof all", "bps", "goodput_bps"),
    ("goodput\nof a flow", "bps", "goodput_flow_bps"),
)

APPLICATIONS = (
    Application(
        "pages",
        "Pages",
        (
            ("loaded\n", "count", "loaded"),
            ("in 2 s\n%", "share", "share_in_2s"),
            ("load time,\nmedian, ms", "s", "load_median_s"),
        ),
        _pages,
        _page_times,
        "load time of a page (s)",
        -1,
        ("share_in_2s", "load_median_s"),
        "pages",
        "Pages: loaded when the last object is there; of those begun 2 s before the end or earlier. Those that never "
        "came count where the run records demands.",
        _page_waits,
    ),
    Application(
        "exchanges",
        "Exchanges of pages",
        (
            ("completed\n", "count", "completed"),
            ("in 2 s\n%", "share", "share_under_2s"),
            ("median\nms", "s", "p50"),
        ),
        _exchanges,
        _response_times,
        "response time of an exchange (s)",
        -1,
        ("share_under_2s", "p50"),
        "exchanges",
        "Exchanges of pages: each is an object; which of them are of one page is not known of this traffic.",
    ),
    Application(
        "video",
        "Films",
        (
            ("films\n", "count", "films"),
            ("start,\nmedian, ms", "s", "startup_median_s"),
            ("never\nstarted %", "share", "unstarted_share"),
            ("stalls\nan hour", "number", "stalls_per_hour"),
            ("stood still\n%", "share", "stalled_share"),
            ("bitrate\n", "bps", "bitrate_mean_bps"),
        ),
        _films,
        _bitrates,
        "bitrate of a film (Mb/s)",
        1,
        ("startup_median_s", "stalls_per_hour", "bitrate_mean_bps"),
        "films",
        "Films: stalls in an hour of watching; bitrates are means over what came; one that never started stood still.",
    ),
    Application(
        "live",
        "Real-time video",
        (
            ("rate of\na source", "bps", "bitrate_source_bps"),
            ("frame delay,\nmedian, ms", "s", "delay_p50_s"),
            ("frame delay,\n99 %, ms", "s", "delay_p99_s"),
            ("frames\nlost %", "share", "lost"),
        ),
        _frames,
        _frame_delays,
        "delay of a frame (ms)",
        -1,
        ("bitrate_source_bps", "delay_p99_s"),
        "frames of real-time video",
        "Real-time video: the delay of a frame is from the encoder to the receiver; one that did not come whole is "
        "lost, and came within no time.",
    ),
    Application(
        "calls",
        "Calls, each way",
        (
            ("MOS,\nmean", "mos", "mos_mean"),
            ("MOS,\nworst call", "mos", "mos_least"),
            ("satisfied\n%", "share", "satisfied"),
        ),
        _calls,
        _opinions,
        "MOS of a call, one way",
        1,
        ("mos_mean",),
        "calls",
        f"Calls: {MOS} by the E-model of ITU-T G.107 for G.711, with the play-out that suits best; users are "
        "satisfied from 4.03 on.",
    ),
    Application(
        "games",
        "Games, each way",
        (("delay, 99 %,\nmean, ms", "s", "p99_mean_s"), ("delay, 99 %,\nworst, ms", "s", "p99_most_s")),
        _games,
        _late,
        "delay of a game, 99 %, one way (ms)",
        -1,
        ("p99_mean_s",),
        "games",
        "Games: the delay below which 99 % of a flow's packets stay; a lost packet counts as one second.",
    ),
    Application("downloads", "Downloads", GOODPUT, _flows, _none, "", 1, ("goodput_bps",)),
    Application("backups", "Uploads (backups)", GOODPUT, _flows, _none, "", 1, ("goodput_bps",)),
)

TABLES = {
    "pages": "exchanges",
    "exchanges": "exchanges",
    "video": "exchanges",
    "live": "frames",
    "calls": "probes",
    "games": "probes",
}
"""The table that an application's figures are made of, beside the summary."""


def figures(run: Run) -> dict[str, dict[str, float | None]]:
    """The figures of a run's applications, by the names of both."""
    return {
        one.name: {name: found.get(name) for _, _, name in one.headings}
        for one in APPLICATIONS
        if (there := _there(run, one)) and (found := one.figures(run, there)) is not None
    }


def samples(run: Run) -> dict[str, Array]:
    """What each page, film, call and game of a run got, by the names of the applications."""
    return {one.name: one.samples(run, there) for one in APPLICATIONS if one.axis and (there := _there(run, one))}


def waits(run: Run) -> dict[str, tuple[Array, Array]]:
    """Of samples that the end of a run may cut off: how long each took or had been waited for, and whether it was over.

    By the names of the applications; in the order of `samples`.
    """
    return {one.name: one.waits(run, there) for one in APPLICATIONS if one.waits and (there := _there(run, one))}


def is_unused(run: Run, application: str, figure: str) -> bool:
    """Whether a figure is missing because nobody asked for what it is of: false where tables do not tell that."""
    one = next(one for one in APPLICATIONS if one.name == application)
    there = _there(run, one)
    if not one.axis or (TABLES[one.name] == "exchanges" and not _tells_what_never_came(run, there)):
        return False
    # A share of pages is missing only where none was begun early enough.
    return figure == "share_in_2s" or not one.samples(run, there).size


def _tells_what_never_came(run: Run, blocks: Sequence[int]) -> bool:
    """Whether it is known of films and readers' pages what was asked for and did not come."""
    traffic = run.scenario["traffic"]
    known = {*pages.blocks(traffic), *_films_of(traffic)}
    return bool(run.scenario.get("record", {}).get("demands")) and known.issuperset(blocks)


def _there(run: Run, one: Application) -> list[int]:
    """The blocks of an application of which the run has tables; none where the scenario's traffic did not run."""
    if not run.live.get("traffic", True):
        return []
    table = TABLES.get(one.name)
    return [] if table and not (run.folder / f"{table}.parquet").exists() else blocks(run, one)


def _numbers(series: pl.Series) -> Array:
    return series.drop_nulls().to_numpy().astype(np.float64)
