"""Tables on a terminal: whole on any screen, and on none."""

import io
import re
import textwrap

import pytest
from rich.console import Console

from aqmlab.command import tables, terminal

HEADS = [f"figure {number}\nms" for number in range(13)]
NAMES = ["fifo, as today", "a discipline with a long name of its own", "disciplines-and-rates/pfifo-limit-100/100ms"]


def shown(width: int, names: int = 1, is_terminal: bool = True) -> str:
    """A table of thirteen figures of each name."""
    table = tables.short_table("[a] title")
    for position, head in enumerate((*["name", "way"][:names], *HEADS)):
        table.add_column(head, no_wrap=True, justify="right" if position >= names else "left")
    for row, name in enumerate(NAMES):
        values = [f"{row}{column:02},000 ± 1,234" for column in range(len(HEADS))]
        table.add_row(name, *["forward"] * (names - 1), *values)
    out = Console(file=io.StringIO(), width=width, force_terminal=is_terminal, color_system=None, **terminal.PLAIN)
    tables.show(out, table, names)
    return out.file.getvalue()


@pytest.mark.parametrize(
    ("width", "names"), [(40, 1), (60, 1), (80, 1), (120, 1), (200, 1), (60, 2), (80, 2), (120, 2)]
)
def test_nothing_of_a_wide_table_is_cut(width, names):
    said = shown(width, names)
    assert max(map(len, said.splitlines())) <= width and "…" not in said and said.count("[a] title") == 1
    values = re.findall(r"\d{3},000 ± 1,234", said)
    assert sorted(values) == sorted(f"{row}{column:02},000 ± 1,234" for row in range(3) for column in range(13))
    count = len(re.findall(r"^ ─+ *$", said, re.MULTILINE))
    assert count > 1
    # Each of them has all names, though long ones go over several lines.
    tables_of_names = re.sub(r"forward|\d{3},000 ± 1,234|\s", "", said)
    assert [tables_of_names.count(re.sub(r"\s", "", name)) for name in NAMES] == [count] * len(NAMES)


def test_a_table_that_fits_is_one():
    said = shown(400)
    assert len(re.findall(r"^ ─+ *$", said, re.MULTILINE)) == 1 and all(name in said for name in NAMES)


def test_what_is_no_terminal_has_the_whole_table():
    said = shown(80, is_terminal=False)
    assert len(re.findall(r"^ ─+ *$", said, re.MULTILINE)) == 1 and all(name in said for name in NAMES)
    assert max(map(len, said.splitlines())) > 200


SENTENCE = "too short to tell whether it is settled: exchanges under way; see /a/path/of-some"


@pytest.mark.parametrize("width", [30, 80, 120])
def test_sentences_break_between_words_on_a_terminal_and_nowhere_else(width):
    def said(show, is_terminal):
        out = Console(file=io.StringIO(), width=width, force_terminal=is_terminal, color_system=None, **terminal.PLAIN)
        show(out)
        return out.file.getvalue().splitlines()

    for show, head in (
        (lambda out: tables.sentence(out, SENTENCE, "dim"), ""),
        (lambda out: tables.item(out, "  right   ", SENTENCE), "  right   "),
    ):
        lines = said(show, is_terminal=True)
        assert max(map(len, lines)) <= width and len(lines) == len(textwrap.wrap(SENTENCE, width - len(head)))
        assert lines[0].startswith(head) and all(line.startswith(" " * len(head)) for line in lines[1:])
        assert " ".join(line[len(head) :].strip() for line in lines) == SENTENCE
        assert said(show, is_terminal=False) == [f"{head}{SENTENCE}"]
