import re
from html.parser import HTMLParser

import pytest
from bs4 import BeautifulSoup

import aqmlab
from aqmlab import report
from conftest import BASE

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Strict(HTMLParser):
    """Checks that elements nest, and collects ids and addresses."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.addresses = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        self.note(attributes)

    def handle_startendtag(self, tag, attributes):
        self.note(attributes)

    def note(self, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "data", "action"):
                self.addresses.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def page(base, tmp_path):
    found = aqmlab.compare(base, "pfifo limit 240p", "pi ecn", "uncongested", out=tmp_path / "out")
    return report.write(found)


def test_the_page_needs_nothing_but_itself(page):
    text = page.read_text()
    parser = Strict()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert all(address.startswith("#") for address in parser.addresses)
    assert {address[1:] for address in parser.addresses} <= set(parser.ids)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(parser.ids)
    # One script, which is in the page and asks for nothing.
    assert re.findall("<script[^>]*>", text) == ["<script>"] and "@import" not in text
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(", text)
    assert re.findall(r"url\((?!#)", text) == []


def test_the_page_says_what_a_reader_needs(page):
    text = page.read_text()
    for heading in ("In numbers", "Against pfifo limit 240p", "The slowest exchanges", "Queueing delay", "The queue"):
        assert f"<h2>{heading}</h2>" in text
    for heading in ("Calibration", "Drop and mark probability", "What was compared", "Self-checks", "How to repeat it"):
        assert f"<h2>{heading}</h2>" in text
    assert text.index("<svg") < text.index("<h2>")
    assert "prefers-color-scheme: dark" in text and "@media print" in text
    assert aqmlab.load(page.parent).digest in text


def test_where_numbers_lie_and_what_is_common_is_folded(page):
    read = BeautifulSoup(page.read_text(), "html.parser")
    (place,) = read.select("#where")
    assert place.parent.name == "details" and read.select('a[href="#where"]')
    assert all(line.parent is place for line in read.select(".names")) and "difference_to_baseline" in place.text
    (common, *_) = read.select("dl.settings")
    assert common.parent.summary.text.startswith("Common to all: ") and "tcp.window" in common.text
    # One way of units: below the title of a column.
    for head in read.select("th[title]"):
        title = head.find(string=True, recursive=False) or ""
        assert not re.search(r"(, | \()(%|ms|points|[kMG]?b/s)\)?$", title.strip()), title


def test_figures_are_written_as_svg_and_png(page):
    names = {path.name for path in (page.parent / "figures").iterdir()}
    assert names == {
        f"{name}.{kind}"
        for name in ("response-cdf", "response-tail", "delay", "delay-time", "queue", "probability", "calibration")
        for kind in ("svg", "png")
    }
    assert (page.parent / "figures/queue.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_results_give_the_same_page(page):
    before = page.read_text()
    assert report.write(aqmlab.load(page.parent)).read_text() == before


def test_names_are_text_and_nothing_else(tmp_path):
    wild = BASE.replace("web users", "<script>alert(1)</script> & $x^2$")
    page = report.write(aqmlab.run(wild, out=tmp_path / "out", reps=2))
    text = page.read_text()
    assert "<script>alert" not in text and text.count("<script") == 1
    parser = Strict()
    parser.feed(text)
    assert parser.open == []
