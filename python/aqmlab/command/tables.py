"""Tables and sentences on a terminal: a table that is wider than the screen comes as several, one below the other, and
words are not cut at its edge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from aqmlab.results.readable import TOO_FEW

WIDEST = 100_000
"""Columns of a screen on which every table fits."""


def short_table(title: str | None = None) -> Table:
    """A table with its title on the left and a line below its head."""
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def sentence(out: Console, said: str | Text, style: str = "") -> None:
    """Prints prose: lines of whole words on a terminal, and one line elsewhere, where lines are searched.

    Paths and commands are printed as they are, so that they can be taken from the screen.
    """
    out.print(Text(said) if isinstance(said, str) else said, style=style, soft_wrap=not out.is_terminal)


def item(out: Console, head: str, said: str) -> None:
    """Prints some words behind a head, below which none of them stand on a terminal."""
    if not out.is_terminal:
        sentence(out, f"{head}{said}")
        return
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(head, said)
    out.print(grid)


def show(out: Console, table: Table, names: int = 1) -> None:
    """Prints a table of which nothing is cut off.

    Where the screen is too narrow, each of several tables has the first columns, `names` of them, and as many of the
    others as fit. What is no terminal has no width.
    """
    if table.title:
        sentence(out, str(table.title), "bold")
    plain = copy(table)
    plain.title = None
    width = _width(out, plain)
    if not out.is_terminal and width > out.width:
        out = Console(file=out.file, width=width, highlight=False, markup=False, emoji=False)
    if width <= out.width:
        out.print(plain)
        return
    out.print()
    for part in _parts(out, plain, names):  # a blank line stands between two of them
        out.print(Padding(part, (0, 0, 1, 1), expand=False))


def has_widths(table: Table) -> bool:
    """Whether a half width stands in any cell, or that one says nothing."""
    return any("±" in str(cell) or TOO_FEW in str(cell) for column in table.columns for cell in column.cells)


def _parts(out: Console, table: Table, names: int) -> Iterator[Table]:
    rest = range(names, len(table.columns))
    while rest:
        count = 1
        while count < len(rest) and _width(out, _of(out, table, names, rest[: count + 1])) <= out.width:
            count += 1
        yield _of(out, table, names, rest[:count])
        rest = rest[count:]


def _of(out: Console, table: Table, names: int, columns: Sequence[int]) -> Table:
    """The columns of names, none wider than half a screen, and some others."""
    part = copy(table)
    part.show_edge = False
    said = [
        replace(column, no_wrap=False, overflow="fold", max_width=out.width // 2) for column in table.columns[:names]
    ]
    others = [replace(table.columns[k], overflow="fold") for k in columns]
    part.columns = [replace(column, _index=k) for k, column in enumerate((*said, *others))]
    return part


def _width(out: Console, table: Table) -> int:
    """The columns of the screen that a table asks for: a blank stands at its left even without edges."""
    return out.measure(table, options=out.options.update(max_width=WIDEST)).maximum + (not table.show_edge)
