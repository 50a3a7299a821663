"""What a report of a comparison says of a law of one's own."""

import re
import shlex

import pytest

import aqmlab
from aqmlab import figures, report
from aqmlab.results.findings import findings_of
from conftest import ROOT
from own_laws import command, own
from page_cells import BeautifulSoup, text
from test_directions import BULK


@pytest.fixture
def found(tmp_path, compiled):
    """PI as a law of one's own that the interpreter runs, alone and under fair queueing, beside others."""
    law = tmp_path / "my_pi_i.py"
    example = (ROOT / "examples/laws/my_pi.py").read_text(encoding="utf-8")
    law.write_text(example.replace("class MyPi:", "class MyPiI:").replace("law(", "law(compiled=False, ", 1))
    words = (str(law), "my_pi_i qref 20", "fq_my_pi_i", "pie", "codel")
    return aqmlab.compare(BULK, *words, jobs=2, out=tmp_path / "out", set={"duration": "6s"})


def test_a_law_is_called_by_its_name_and_its_file(found):
    page = BeautifulSoup(report.write(found).read_text(encoding="utf-8"), "html.parser")
    said = {text(cell.find_parent("tr").th): text(cell) for cell in page.select('td[data-value-of="link.qdisc"]')}
    for name in ("my_pi_i", "fq_my_pi_i"):
        assert said[name].startswith("law my_pi_i.py, limit 1000p, qref 50"), said[name]
    assert not any("sha256" in one or "{" in one for one in said.values())
    lines = [text(one) for one in page.select(".finding")]
    assert [line for line in lines if line.startswith("my_pi_i: ran in the interpreter, ")] == lines


def test_a_law_that_is_in_a_variant_s_name_is_not_named_twice(found):
    by_name = {column.name: column.result for column in found.columns}
    for name in ("my_pi_i", "my_pi_i qref 20"):
        (line,) = findings_of([(name, by_name[name]), ("pie", by_name["pie"])])
        assert re.match(rf"{name}: ran in the interpreter", line), line
    (line,) = findings_of([("mine", by_name["my_pi_i"]), ("pie", by_name["pie"])])
    assert line.startswith("mine: my_pi_i: ran in the interpreter")


def test_the_figure_of_probabilities_says_who_is_not_in_it_and_why(found):
    drawn = figures.of(found)["probability"]
    assert [panel.column for panel in drawn.draw.args[0]] == ["my_pi_i", "my_pi_i qref 20", "pie"]
    assert drawn.caption.endswith(
        "Not drawn: fq_my_pi_i, where each queue has a law and a probability of its own; codel, which sets none."
    )


def test_laws_without_a_probability_have_none_in_any_queue(base, compiled):
    drawn = figures.of(aqmlab.compare(BULK, "pie", "fq_codel", "fq_pie", jobs=2, set={"duration": "4s"}))["probability"]
    assert "Not drawn: fq_pie, where each queue has a law and a probability of its own; fq_codel, which sets none." in (
        drawn.caption
    )


@pytest.mark.parametrize("reps", [1, 2])
def test_a_page_says_how_runs_of_a_law_are_repeated(reps, link, tmp_path, compiled, undrawn):
    law, shared = own(tmp_path), {"reps": reps, "set": {"duration": "3s"}}
    run = aqmlab.run(link, **shared | {"set": {"duration": "3s", "link.qdisc": str(law)}}, out=tmp_path / "run")
    compared = aqmlab.compare(link, str(law), "pie", **shared, out=tmp_path / "compared")
    for found in (run, compared):
        page = BeautifulSoup(report.write(found).read_text(encoding="utf-8"), "html.parser")
        heading = page.find("h2", string="How to repeat it")
        words = [word for word in shlex.split(text(heading.find_next("pre")))[1:] if word not in ("-o", "again")]
        again = tmp_path / f"again-{found.folder.name}"
        assert command(*words, "-o", str(again)) == ""
        assert aqmlab.load(again).digest == found.digest
