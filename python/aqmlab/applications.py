"""Tables of what people get of each application, and of what differs from a baseline in that."""

import math
from collections.abc import Sequence

from aqmlab import separately
from aqmlab.comparison import Column, Comparison
from aqmlab.results import video
from aqmlab.results.by_application import APPLICATIONS, Application, Heading, blocks, figures, samples, waits
from aqmlab.results.named import Numbers
from aqmlab.separately import Part
from aqmlab.statistics import Interval

__all__ = ["APPLICATIONS", "figures", "of", "samples", "waits"]

DIFFERENCE_UNITS = {
    "share": "difference",
    "s": "difference_s",
    "number": "difference_number",
    "mos": "difference_mos",
    "bps": "difference_bps",
}

SLOW = 0.95
"""Share of pages within two seconds below which those that never came matter."""

FEWEST = 10
"""Pages or calls of all runs of a variant: a share of fewer moves by more than ten points with one of them."""


def of(columns: Sequence[Column], found: Comparison | None = None) -> list[Part]:
    """A table for each application that all columns have; with a comparison also what differs from its baseline."""
    each = [numbers.applications for column in columns for numbers in column.result.numbers]
    return [
        Part(
            f"applications.{one.name}",
            one.title,
            headings := _headings(one, found),
            tuple((column, _row(one, headings, column, found)) for column in columns),
            " ".join(
                filter(
                    None, (_without(one, columns), _unheard(one, columns), _unseen(one, columns), _few(one, columns))
                )
            ),
            tuple(map(float, _counted(one, columns))),
        )
        for one in APPLICATIONS
        if all(one.name in there for there in each)
    ]


WORST = {
    "pages": "no page was begun in time, or half of them or more were not loaded",
    video.KIND: "no film is known, or half of them or more had no picture",
    "live": "of the frames less than 99 %, less than half, or none came whole",
}
"""Why a run has no number of an application that somebody used."""


def _without(one: Application, columns: Sequence[Column]) -> str:
    """In which runs an application has no number, and why: there is no mean over the others."""
    said = []
    for column in columns:
        runs = column.result.numbers
        none = sum(
            any(_is_missing(run, f"applications.{one.name}.{name}") for _, _, name in one.headings) for run in runs
        )
        if none:
            said.append(f"under {column.label}" + (f" in {none} of {len(runs)} runs" if len(runs) > 1 else ""))
    if one.name not in WORST or not said:
        return ""
    return f"–: {WORST[one.name]}, {' and '.join(said)}."


def _is_missing(run: Numbers, name: str) -> bool:
    value = run.measure(name)
    return value is not None and math.isnan(value)


def _unheard(one: Application, columns: Sequence[Column]) -> str:
    """Of how many viewers it is not known whether they wait for a film."""
    if one.name != video.KIND:
        return ""
    found = [
        sum(video.unheard(run.exchanges, run.scenario["traffic"], run.window, run.folder) for run in column.result.runs)
        for column in columns
    ]
    said = [f"{count} under {column.label}" for count, column in zip(found, columns, strict=True) if count]
    if not said:
        return ""
    return (
        "Nothing came for some viewers; whether they had asked for a film is not known without record.demands: "
        f"{', '.join(said)}."
    )


def _unseen(one: Application, columns: Sequence[Column]) -> str:
    """That pages which never came are left out where nobody wrote down that they were asked for, as slow links hide."""
    if one.name != "pages" or all(
        run.scenario.get("record", {}).get("demands") for column in columns for run in column.result.runs
    ):
        return ""
    shares = [column.estimate("applications.pages.share_in_2s").value for column in columns]
    if not any(share < SLOW for share in shares):
        return ""
    return (
        "Pages that had not come by the end are left out, which makes slow ones look better: "
        "they count with record.demands = true."
    )


def _few(one: Application, columns: Sequence[Column]) -> str:
    """That shares say little where there are few of what is counted."""
    word = {"pages": "page", "exchanges": "exchange", "calls": "call"}.get(one.name)
    if word is None:
        return ""
    found = _counted(one, columns)
    if min(found) >= FEWEST:
        return ""
    count = f"{min(found)}" if min(found) == max(found) else f"{min(found)} to {max(found)}"
    words = f"{word}{'' if count == '1' else 's'}{', each way counted,' if one.name == 'calls' else ''}"
    of_each = " of each variant" if len(columns) > 1 else ""
    return f"Shares say little here: {count} {words}{of_each} in all."


def _counted(one: Application, columns: Sequence[Column]) -> list[int]:
    """How many samples there are of an application in all runs of each column."""
    return [sum(one.samples(run, blocks(run, one)).size for run in column.result.runs) for column in columns]


def _headings(one: Application, found: Comparison | None) -> tuple[Heading, ...]:
    if found is None or len(found.columns) < 2:
        return one.headings
    units = {"share": "points", "s": "ms"}
    others = []
    for title, unit, name in one.headings:
        if name in one.differs:
            short = title.replace("\n", " ").split(",")[0].removesuffix(" %").removesuffix(" ms").strip()
            unit_word = f", {units[unit]}" if unit in units else ""
            heading = f"{short} against\nbaseline{unit_word}"
            others.append((heading, DIFFERENCE_UNITS[unit], f"{separately.AGAINST}{name}"))
    return (*one.headings, *others)


def _row(
    one: Application, headings: Sequence[Heading], column: Column, found: Comparison | None
) -> tuple[Interval | None, ...]:
    table = f"applications.{one.name}"
    if found is None:
        return tuple(column.estimate(f"{table}.{name}") for _, _, name in headings)
    has_difference = column is not found.base_of(column)
    return tuple(separately.number(found, column, table, name, has_difference) for _, _, name in headings)
