"""Names that people give are text everywhere: no mathematics in figures, no markup in tables, nothing left out."""

import io

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from rich.console import Console

from aqmlab import bars
from aqmlab.command import terminal
from aqmlab.figures import legends
from aqmlab.figures.drawn import COLOURS
from aqmlab.figures.sheet import Sheet
from aqmlab.progress import Size

NAMES = ["$x_{$", "$$", "[/]", "[bold]red[/bold]", "_hidden", ":smile:", r"\frac{", "a & <b>"]


def test_names_in_tables_and_titles():
    out = Console(file=io.StringIO(), width=120, **terminal.PLAIN)
    for name in NAMES:
        table = terminal.short_table(name)
        table.add_column(name)
        table.add_row(name)
        out.print(table)
        out.print(name)
    said = out.file.getvalue()
    assert [said.count(name) >= 4 for name in NAMES] == [True] * len(NAMES), said


def test_names_beside_bars():
    console = Console(file=io.StringIO(), width=200, force_terminal=True, markup=False, emoji=False)
    with bars.Bars(console) as shown:
        for name in NAMES:
            run = shown.begin(name, Size(1.0, 1.0))
            shown.tick(run, {"time_s": 0.5, "wall_s": 1.0, "bottleneck_packets": 1})
            shown._bars.refresh()
            assert name in console.file.getvalue()
            shown.end(run)


@pytest.mark.parametrize("name", NAMES)
def test_names_in_figures(name):
    svg = io.StringIO()
    with rc_context(Sheet().style(COLOURS)):
        figure = Figure(figsize=(4, 3), layout="constrained")
        axes = figure.add_subplot()
        (line,) = axes.plot([0, 1], [0, 1])
        axes.set_title(name)
        legends.inside(axes, [(line, name)], "upper left")
        figure.savefig(svg, format="svg")
    text = svg.getvalue().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert text.count(f">{name}</text>") == 2, "as a title and in the legend, as it is"
