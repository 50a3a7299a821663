"""Pages in a real browser: at every width and in both schemes nothing is cut off, too small or upon another."""

import re

import pytest

import aqmlab
import browser
from aqmlab import cli, report
from aqmlab.agreement.agreements import of_comparison
from aqmlab.study import overview_page, page
from aqmlab.study.compared import claims
from conftest import ROOT
from study_cells import cell
from test_study_page import CLAIMS, FOUND, STUDY, Where, claim, finding

LONG = "a-name-that-somebody-gave-without-a-single-space-in-it-and-that-goes-on-and-on"


@pytest.fixture(scope="module")
def chromium():
    with browser.started() as found:
        yield found


def compared(tmp_path):
    """The demo, short, with names that are too long; claims and calibration and all."""
    text = (ROOT / "examples/demo.toml").read_text()
    text = text.replace('name = "drop-tail 240"', f'name = "{LONG}"').replace(
        'name = "PI 24 + ECN"', 'name = "PI 24, with marks instead of drops <b>for those & who</b> $understand_them$"'
    )
    assert LONG in text
    source = tmp_path / "demo.toml"
    source.write_text(text)
    return aqmlab.compare(source, set={"duration": "30s", "warmup": "10s"}, reps=3, out=tmp_path / "compared")


@pytest.fixture
def pages(tmp_path, small):
    """Every kind of page."""
    found = compared(tmp_path)
    made = {
        "run": report.write(aqmlab.run(small, out=tmp_path / "run", reps=2)),
        "compare": report.write(found, claims(found)),
    }
    # Whatever the imagined runs decide, the longest verdict stands beside each claim.
    text, count = re.subn(r'(<p class="verdict \w+">)[^<]*', r"\1cannot be decided here", made["compare"].read_text())
    assert count > 10
    made["compare"].write_text(text)
    words = ["compare", str(small), "pfifo", "pi ecn", "uncongested", "--live", "--virtual", "--reps", "2", "--report"]
    assert cli.invoke([*words, "-o", str(tmp_path / "c")]) == 0
    made["live"] = tmp_path / "c" / "report.html"
    facts = {
        **FOUND,
        "claims": [*FOUND["claims"], claim("s-4", finding(label=LONG), *(finding(f"point {k}") for k in range(12)))],
    }
    cells = Where([cell(aqm, load=load) for aqm in ("pi-24", "pfifo-240", "rem-24") for load in ("90", "95", "98")])
    study = type(STUDY)(
        [
            *STUDY.figures,
            {"id": "b", "title": LONG, "kind": "ccdf", "panels": "load", "curves": [{}]},
            {"id": "c", "title": "Against", "kind": "against", "x": "load", "measure": "loss_ratio", "curves": [{}]},
            {"id": "d", "title": "In time", "kind": "over_time", "column": "queue_packets", "curves": [{}]},
            {"id": "e", "title": "Sizes", "kind": "sizes", "curves": [{}]},
        ],
        STUDY.tables,
    )
    agreements = of_comparison(aqmlab.load(tmp_path / "c"))
    made["study"] = page.write(facts, study, cells, tmp_path / "some2001", agreements)
    other = {**FOUND, "id": "other2002", "claims": [{**CLAIMS[0], "id": "o-1"}], "report": "some2001/report.html"}
    made["studies"] = overview_page.write_overview([facts, other], tmp_path)
    return made


def test_pages_are_right_at_every_width_and_in_both_schemes(chromium, pages):
    assert {name: found for name, one in pages.items() if (found := browser.faults(chromium, one))} == {}
