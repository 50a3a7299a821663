"""The tables of a study: rows of cells, columns of measures, groups of columns along an axis; as HTML parts and CSV."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab import near
from aqmlab.errors import BadInput, shown
from aqmlab.json_files import Json
from aqmlab.statistics import Interval
from aqmlab.study.figures import left_out as left
from aqmlab.study.figures.cell import Cell, Find, LeftOut, Place, nothing, without_label
from aqmlab.study.figures.curves import label_cells, told_by_grid
from aqmlab.study.figures.layout import runs_said
from aqmlab.study.measured import Asked, asked_of, bases_said, has_interval, with_width

MOST_ACROSS = 10
"""Columns of numbers that a page has room for beside each other."""
KEYS = ("id", "title", "rows", "measures", "by", "caption")


@dataclass(frozen=True)
class Entry:
    """A number of a table."""

    value: str
    width: str
    interval: Interval | None
    """None where there is no such cell."""


@dataclass(frozen=True)
class Tabled:
    """A finished table."""

    name: str
    title: str
    caption: str
    groups: list[tuple[str, int]]
    """Title and columns of each group; one without a title if there is no axis to group by."""
    columns: list[tuple[str, str]]
    """Title and unit of each column."""
    rows: list[tuple[str, list[Entry]]]
    references: frozenset[str]
    """Rows of uncongested links."""
    shown: frozenset[tuple[str, str]]
    """Each point with each measure that it shows of it."""
    is_part: bool
    """Whether points of it were not run."""

    @property
    def is_turned(self) -> bool:
        """Whether its groups stand below one another on a page, which is not wide enough for them."""
        return len(self.groups) > 1 and len(self.columns) > MOST_ACROSS

    @property
    def across(self) -> list[tuple[str, str]]:
        """The columns of one group."""
        return self.columns[: self.groups[0][1]]

    @property
    def down(self) -> list[tuple[str, list[tuple[str, list[Entry]]]]]:
        """Each group with its rows, without rows that have nothing there."""
        found, start = [], 0
        for title, size in self.groups:
            rows = [(name, entries[start : start + size]) for name, entries in self.rows]
            found.append((title, [(n, own) for n, own in rows if any(one.interval is not None for one in own)]))
            start += size
        return found

    def csv(self) -> str:
        """The table as CSV, a row for each number: row, group, measure, unit, value, half width, n, basis."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("row", "group", "measure", "unit", "value", "half_width_95", "n", "basis"))
        heads = [group for group, size in self.groups for _ in range(size)]
        for row, entries in self.rows:
            for group, (title, unit), entry in zip(heads, self.columns, entries, strict=True):
                if entry.interval is not None:
                    found = entry.interval
                    numbers = (_number(found.value), _number(found.half_width), found.n, found.basis)
                    writer.writerow((row, group, title, unit, *numbers))
        return out.getvalue()


def check(table: Mapping[str, Any], where: str) -> None:
    """Refuses a `[[table]]` that cannot be made, before anything runs."""
    for key in table:
        if key not in KEYS:
            raise BadInput(f"{where}: {key}: {table[key]!r}: unknown key; {near.expected(key, KEYS)}")
    if not isinstance(table.get("id"), str | int):
        raise BadInput(f"{where}: id: {shown(table.get('id'))}expected a text")
    for key in ("rows", "measures"):
        if not isinstance(table.get(key), list) or not table[key]:
            raise BadInput(f"{where}: {key}: {table.get(key)!r}: expected a list of at least one")
    for position, measure in enumerate(table["measures"]):
        asked_of(measure, f"{where}: measures.{position}")


def check_axes(table: Mapping[str, Any], points: Sequence[Place], where: str) -> None:
    """Refuses an axis that the rows of a table do not have."""
    axes = list(dict.fromkeys(axis for point in points for axis in point.at))
    if "by" in table and table["by"] not in axes:
        raise BadInput(f"{where}: by: {table['by']!r}: expected one of {', '.join(axes) or 'no axis'}")


def build(specs: Sequence[Json], find: Find, left_out: LeftOut = nothing) -> list[Tabled]:
    """All tables that have something to show, in the order of the study; captions say which points were not run."""
    found = [_built(spec, find, left_out) for spec in specs]
    return [table for table in found if table is not None]


def with_something_new(tabled: Sequence[Tabled]) -> list[Tabled]:
    """Without tables of which points were not run, and all others stand with the same measures in one before them."""
    kept: list[Tabled] = []
    for one in tabled:
        if not one.is_part or not any(one.shown <= before.shown for before in kept):
            kept.append(one)
    return kept


def name_of(spec: Mapping[str, Any]) -> str:
    """Name of a table's file."""
    return "table-" + (re.sub(r"[^a-z0-9]+", "-", str(spec["id"]).lower()).strip("-") or "x")


def _built(spec: Json, find: Find, left_out: LeftOut) -> Tabled | None:
    where = f"table {spec.get('id', '?')}"
    check(spec, where)
    asked = [one for k, item in enumerate(spec["measures"]) for one in asked_of(item, f"{where}: measures.{k}")]
    chosen: dict[str, Cell] = {}
    names: dict[str, str] = {}
    by = str(spec["by"]) if "by" in spec else None
    for selector in spec["rows"]:
        cells = find(without_label(selector))
        for cell in cells:
            chosen.setdefault(cell.name, cell)
            if "label" in selector and len(set(label_cells(cells, [by] if by else []))) == 1:
                names[cell.name] = str(selector["label"])
    cells = list(chosen.values())
    if not cells:
        return None
    axes = [by] if by else []
    said = [names.get(cell.name, label) for cell, label in zip(cells, label_cells(cells, axes), strict=True)]
    labels = told_by_grid(cells, said, axes)
    groups = _groups(cells, by)
    rows: dict[str, dict[str | None, Cell]] = {}
    for cell, label in zip(cells, labels, strict=True):
        rows.setdefault(label, {})[cell.at.get(by) if by else None] = cell
    entries = {
        label: [_entry(of_row.get(value), one) for value in groups for one in asked] for label, of_row in rows.items()
    }
    columns = [(one.title, one.unit) for _ in groups for one in asked]
    return Tabled(
        name=name_of(spec),
        title=str(spec.get("title", spec["id"])),
        caption=(
            f"± {_bases(entries, [title for title, _ in columns])}; {runs_said(cells, [], '')}."
            f"{_of_own_rate(cells, asked)}{left.said(spec['rows'], find, left_out)}"
        ),
        groups=[(title, len(asked)) for title in groups.values()],
        columns=columns,
        rows=list(entries.items()),
        references=frozenset(label for cell, label in zip(cells, labels, strict=True) if cell.uncongested),
        shown=frozenset((cell.name, one.title) for cell in cells for one in asked),
        is_part=any(left_out(without_label(selector)) for selector in spec["rows"]),
    )


def _bases(rows: Mapping[str, Sequence[Entry]], titles: Sequence[str]) -> str:
    """Where the intervals of a table come from; what differs from most is named by its measure, or else by its row."""
    found = [
        (label, title, entry.interval)
        for label, entries in rows.items()
        for title, entry in zip(titles, entries, strict=True)
        if entry.interval is not None
    ]
    of_measure: dict[str, set[str]] = {}
    for _, title, one in found:
        if math.isfinite(one.value):
            of_measure.setdefault(title, set()).add(one.basis if has_interval(one) else "none")
    said = bases_said([(title if len(of_measure.get(title, ())) == 1 else label, one) for label, title, one in found])
    alike = any(has_interval(one) and math.isfinite(one.value) and not with_width(one)[1] for _, _, one in found)
    return f"{said}; numbers without ± that are not named are the same in every run" if alike else said


def _of_own_rate(cells: Sequence[Cell], asked: Sequence[Asked]) -> str:
    """What is to be said of a link that is faster than the others."""
    if any(cell.uncongested for cell in cells) and any(one.reading.measure.name == "utilisation" for one in asked):
        return " Utilisation is that of a link's own rate, which is higher where the link is uncongested."
    return ""


def _groups(cells: Sequence[Cell], by: str | None) -> dict[str | None, str]:
    """Value of the axis to its title, in the order of the cells; one without a title if there is no axis."""
    if by is None:
        return {None: ""}
    numbers = {cell.at[by]: cell.numbers.get(by, math.inf) for cell in cells if by in cell.at}
    found = {cell.at[by]: cell.labels.get(by, cell.at[by]) for cell in cells if by in cell.at}
    ordered = sorted(found, key=lambda value: numbers[value])
    return {value: found[value] if not found[value].isdigit() else f"{by} {found[value]}" for value in ordered}


def _entry(cell: Cell | None, asked: Asked) -> Entry:
    if cell is None:
        return Entry("", "", None)
    interval = asked.of(cell)
    return Entry(*with_width(interval), interval)


def _number(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:.9g}"
