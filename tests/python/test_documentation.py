"""Documents that come from the code, or run it: the notebook, the command reference, the manual page."""

import re
import sys

import nbformat
import pytest
from nbclient import NotebookClient

import aqmlab
from aqmlab import engine
from aqmlab.command import explanations
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import command_reference

CHECKED = """
waits = {column.name: column.estimate("queue_delay_mean_s").value for column in comparison.columns}
medians = {column.name: column.estimate("p50").value for column in comparison.columns}
print(waits["pfifo limit 200p"], waits["codel"], medians["pfifo limit 200p"], medians["codel"], medians["fq_codel"])
"""


def test_the_notebook_runs_and_its_words_are_true(monkeypatch, tmp_path):
    """In a kernel of its own, with the engine itself."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(ROOT / "docs/guide/three-disciplines.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "stored without outputs: a build makes them"
    notebook.cells.append(nbformat.v4.new_code_cell(CHECKED))
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    table, figure, said = (cell.outputs for cell in notebook.cells if cell.cell_type == "code" and cell.outputs)
    assert "fq_codel" in table[0].data["text/plain"] and any("image/png" in one.get("data", {}) for one in figure)
    wait_droptail, wait_codel, droptail, codel, fq_codel = map(float, said[0].text.split())
    # A queue of 200 packets of 1500 bytes is 0.24 s at 10 Mb/s; CoDel's target is 5 ms.
    assert wait_codel < wait_droptail / 3 and wait_droptail < 0.24
    assert fq_codel < codel < droptail


def test_the_command_reference_is_current():
    assert command_reference.PAGE.read_text(encoding="utf-8") == command_reference.page(), "make man writes it anew"


def test_lines_of_the_readme_s_commands_are_whole_where_it_is_read():
    """GitHub shows some 95 characters of a line."""
    shown = re.findall(r"^```(?:sh|python)\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert len(shown) > 4 and [line for box in shown for line in box.splitlines() if len(line) > 90] == []


def test_the_first_page_of_the_site_begins_where_the_readme_does():
    places = [(ROOT / place).read_text(encoding="utf-8") for place in ("README.md", "docs/site/index.md")]
    tables = [re.findall(r"^\|.*\|$", text.partition("| You want to know")[2], re.MULTILINE)[:7] for text in places]
    of_readme, of_site = ([re.sub(r"\]\([^)]*\)", "]", row) for row in table] for table in tables)
    assert len(of_readme) > 6 and of_readme == of_site


def test_what_a_verb_does_is_said_whole_in_a_line():
    lines = re.findall(r"^\* `[a-z]+`: .*$", command_reference.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) > 20 and [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


WITH_PAGES = [row for row in engine.disciplines() if (ROOT / f"docs/disciplines/{row['name']}.md").is_file()]


@pytest.mark.parametrize("discipline", WITH_PAGES, ids=lambda row: row["name"])
def test_a_page_and_the_command_line_say_the_same_ranges(discipline):
    page = (ROOT / f"docs/disciplines/{discipline['name']}.md").read_text(encoding="utf-8")
    rows = [row.split(" | ") for row in page.partition("generated: parameters")[2].splitlines()]
    ranges = {row[0].strip("| `"): row[2] for row in rows if len(row) == 5}
    for param in discipline["params"]:
        if not param.get("words") and param.get("range") not in (None, [None, None]):
            assert ranges[param["name"]] == explanations.range_text(param), param["name"]


def test_the_manual_page_is_current(tmp_path):
    there = command_reference.MANUAL.read_text(encoding="utf-8")
    assert there == command_reference.manual(tmp_path), "make man writes it anew"


def test_the_guide_names_every_table_and_key_of_a_result(base, tmp_path):
    guide = (ROOT / "docs/guide/results.md").read_text(encoding="utf-8")
    rows = [re.findall(r"`([^`]+)`", row.split(" | ")[0]) for row in guide.splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in row}
    aqmlab.run(base, reps=2, out=tmp_path / "out")
    several = aqmlab.load(tmp_path / "out")
    written = {path.name for path in several.runs[0].folder.iterdir()}
    keys = {*several.manifest, *several.runs[0].manifest, "laws", "live"}
    tables = {f"{name}.parquet" for name in ("exchanges", "queue", "delays", "drops", "probes", "frames", "tcp")}
    assert (written | tables | keys) - named == set()


@pytest.mark.parametrize("verb", ["run", "compare", "new", "kernel build"])
def test_the_manual_page_has_every_verb(verb):
    assert f"aqmlab {verb}" in command_reference.MANUAL.read_text(encoding="utf-8").replace("\\-", "-")
