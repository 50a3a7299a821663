"""Columns whose links are not the same: no figure of one link stands for the others, and none is of another link."""

import pytest

import aqmlab
from aqmlab import engine, figures, links, report, subject
from aqmlab.command import terminal
from aqmlab.figures import topology
from aqmlab.links import WAYS
from aqmlab.results import ways
from aqmlab.results.window import OF_LINK
from conftest import NATIVE
from page_cells import BeautifulSoup, cells, text
from test_report_numbers import Stored

ALONE = """
name = "today"
duration = "5s"
warmup = "1s"
[links.modem]
rate = "4mbit"
qdisc = { kind = "pfifo", limit = "100p" }
[[traffic]]
kind = "TRAFFIC"
"""

TWO = (
    ALONE.replace("today", "shaped")
    .replace('"100p" }', '"100p" }\n[links.router]\nrate = "3mbit"\nqdisc = { kind = "codel" }')
    .replace('"TRAFFIC"', '"TRAFFIC"\nroute = ["modem", "router"]')
)
OTHER_NAME = ALONE.replace("links.modem", "links.fibre").replace("today", "elsewhere")
BULK = "bulk"
EXCHANGES = 'poisson"\narrivals = "5hz"\nsize = "20000b'


@pytest.fixture
def compared(tmp_path, monkeypatch):
    """A comparison of scenarios, each with this traffic."""
    monkeypatch.setattr(engine, "native", NATIVE)

    def of(traffic, *scenarios):
        paths = [tmp_path / f"{k}.toml" for k in range(len(scenarios))]
        for path, scenario in zip(paths, scenarios, strict=True):
            path.write_text(scenario.replace("TRAFFIC", traffic))
        return aqmlab.compare(*paths, jobs=1, out=tmp_path / "out")

    return of


def said(found, capsys):
    terminal.comparison(terminal.console(), found)
    return capsys.readouterr().out


@pytest.mark.parametrize("scenarios", [(ALONE, TWO), (TWO, ALONE), (ALONE, OTHER_NAME)])
@pytest.mark.parametrize("traffic", [BULK, EXCHANGES])
def test_no_table_is_of_a_single_link(compared, capsys, scenarios, traffic, undrawn):
    found = compared(traffic, *scenarios)
    screen = said(found, capsys)
    assert "Each link" in screen and "delay, mean\n" not in screen.partition("Each link")[0]
    against = screen.partition("Against")[2].partition("\n\n")[0]
    assert ("completed" in against) == (traffic is EXCHANGES) and "loss" not in against and "delay" not in against
    page = BeautifulSoup(report.write(found).read_text(encoding="utf-8"), "html.parser")
    heads = [text(head) for head in page.select('table[data-table="measures"] th, [data-table^="difference"] th')]
    assert bool(heads) == (traffic is EXCHANGES) and not any("delay" in head or "loss" in head for head in heads)
    (each,) = [one for one in page.find_all("details") if text(one.summary) == "Each link and direction by itself"]
    shown = {text(cell) for cell in each.select("td.word")} - set(WAYS)
    assert shown == {link for column in found.columns for link in links.of(column.scenario)}
    assert found.load is None
    stored = Stored(found.folder)
    assert all(stored.is_right(cell) for cell in cells(str(page)))


def test_differences_of_a_first_link_that_is_another_are_null(compared):
    for column in compared(EXCHANGES, ALONE, TWO).as_dict()["variants"]:
        assert column["measures"]["forward.loss_ratio"]["value"] is not None
        for name, one in (column["difference_to_baseline"] or {}).items():
            is_of_link = name in OF_LINK or ways.place(name) is not None
            assert (one["value"] is None) == is_of_link and (one["basis"] == "none") >= is_of_link


def test_differences_of_the_same_first_link_are_numbers(compared):
    _, other = compared(BULK, TWO, TWO.replace("3mbit", "2mbit").replace("shaped", "slower")).as_dict()["variants"]
    assert other["difference_to_baseline"]["forward.queue_delay_mean_s"]["value"] is not None


def test_the_first_sentence_and_figures_say_which_link_is_whose(compared):
    found = compared(BULK, ALONE, TWO)
    assert subject.of(found.columns).endswith("That is today; others differ in the links and the traffic.")
    drawn = topology.network(found.columns)
    assert drawn is not None and drawn.caption.endswith("That is the network of shaped; others have other links.")
    every = figures.of(found)
    for name in ("delay", "queue"):
        of_figure = figures.pictures(every[name]).for_page()
        assert all(label in of_figure for label in ("today: modem", "shaped: modem", "shaped: router")), name
