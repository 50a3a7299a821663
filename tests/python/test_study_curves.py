"""Distributions that outlive their runs: what a result folder has, what is kept with a study, what is drawn of it."""

import shutil
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import studies
from aqmlab import cli, engine, sweep
from aqmlab.errors import BadInput
from aqmlab.json_files import read_json
from aqmlab.results.exchanges import CDF_TIMES, TAIL_TIMES
from aqmlab.study import curves, definition, folders
from aqmlab.sweep import making
from aqmlab.sweep.kept import Kept
from conftest import NATIVE, ROOT

sys.path.insert(0, str(ROOT / "tools"))
import study_figures

pytestmark = pytest.mark.usefixtures("settled_runs")

BED = '[[bed]]\nname = "lab"\ntitle = "the laboratory"\nset = { "path.access_rate" = "50mbit" }\n'
MEDIUM = '\n[profiles.medium]\nseeds = 4\nset = { duration = "25s", warmup = "5s" }\n'
FIGURES = """
[[figure]]
id = "2"
title = "Slow ones"
kind = "ccdf"
curves = [{ grid = "web", aqm = ["pfifo", "pi"], ecn = "off" }]

[[figure]]
id = "3"
title = "On paper"
kind = "cdf"
printed = true
curves = [{ grid = "web", aqm = ["pfifo", "pi"] }]
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The study that tests write; runs are made in this process, which has the stand-in."""
    monkeypatch.setattr(making, "Processes", lambda jobs: sweep.InProcess())
    monkeypatch.chdir(tmp_path)
    return studies.write(tmp_path / "tiny", studies.STUDY + FIGURES + BED + MEDIUM)


def made(*more: str, out: str = "results/study-tiny") -> Path:
    assert cli.invoke(["study", "tiny", *more, "--out", out]) == 0
    return Path(out)


def keep(result: Path, folder: Path) -> Path | None:
    return curves.keep(result, folder, read_json(result / "study.json"))


def kept_runs(folder: Path) -> dict[tuple[str, str], int]:
    found = pl.read_parquet(folder / curves.FILE).group_by("bed", "point").len()
    return {(row["bed"], row["point"]): row["len"] for row in found.iter_rows(named=True)}


def test_a_result_folder_has_the_distribution_of_every_run(folder):
    found = pl.read_parquet(made() / curves.FILE)
    assert found.height == 18  # six points, two of them the same runs, under three seeds
    run = found.row(by_predicate=(pl.col("point") == "web/pi/on") & (pl.col("seed") == 2), named=True)
    kept = Kept()
    of_run = [
        one
        for one in map(kept.load, [path.name for path in kept.folder.iterdir() if path.is_dir()])
        if one.seed == 2 and one.scenario["link"]["qdisc"]["kind"] == "pi" and one.scenario["tcp"]["ecn"] == "on"
    ]
    (window,) = (one.window for one in of_run)
    assert run["bed"] == "" and run["completed"] == window.completed.sum()
    assert np.array_equal(np.array(run["within"]) / run["completed"], window.cdf)
    assert np.array_equal(np.array(run["longer"]) / run["completed"], window.tail)
    assert (len(run["within"]), len(run["longer"])) == (CDF_TIMES.size, TAIL_TIMES.size)


def test_those_of_the_published_scale_stand_before_medium_ones_and_quick_ones_are_not_kept(folder):
    assert keep(made("--quick", out="quick"), folder) is None and not (folder / curves.FILE).exists()
    medium = made("--medium", "--only", "web/pi/*", out="medium")
    assert keep(medium, folder) == folder / curves.FILE
    assert kept_runs(folder) == {("", "web/pi/off"): 4, ("", "web/pi/on"): 4}
    # Three runs of the published scale say more than four shorter ones, whichever come last.
    for result in (made(), medium):
        assert keep(result, folder) == folder / curves.FILE
        assert set(kept_runs(folder).values()) == {3} and len(kept_runs(folder)) == 6
        assert set(pl.read_parquet(folder / curves.FILE)["scale"]) == {"full"}


def test_parts_add_up_and_fewer_runs_replace_nothing(folder):
    keep(made("--only", "web/pi/*", "--seeds", "3", out="part"), folder)
    assert kept_runs(folder) == {("", "web/pi/off"): 3, ("", "web/pi/on"): 3}
    keep(made("--only", "web/*/off", "--seeds", "2", out="fewer"), folder)
    assert kept_runs(folder) == {
        ("", "web/pi/off"): 3,
        ("", "web/pi/on"): 3,
        ("", "web/pfifo/off"): 2,
        ("", "web/uncongested/off"): 2,
    }
    keep(made("--only", "web/pi/off", "--seeds", "4", "--bed", "lab", out="bed"), folder)
    keep(made("--only", "web/pi/off", "--seeds", "4", out="more"), folder)
    runs = kept_runs(folder)
    assert (runs["", "web/pi/off"], runs["", "web/pi/on"], runs["lab", "web/pi/off"]) == (4, 3, 4)


def test_figures_are_drawn_of_what_is_kept_alone(folder, tmp_path):
    keep(made("--only", "web/pi/*", out="part"), folder)
    keep(made("--only", "web/*", "--bed", "lab", out="bed"), folder)
    images = tmp_path / "docs/img"
    (images / "tiny").mkdir(parents=True)
    (images / "tiny/figure-9.png").write_bytes(b"not drawn any more")
    (tmp_path / "docs/studies").mkdir()
    study_figures.write([definition.read(folder)], tmp_path / "docs/studies/figures.md", images)
    names = ["figure-2-lab", "figure-2", "figure-3-as-printed-lab", "figure-3-as-printed"]
    assert sorted(path.stem for path in (images / "tiny").iterdir()) == sorted(names)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (images / "tiny").iterdir())
    page = (tmp_path / "docs/studies/figures.md").read_text(encoding="utf-8")
    assert page.index("## tiny: the bare model") < page.index("## tiny: the laboratory")
    assert page.count("![On paper](../img/tiny/figure-3-as-printed.png)") == 1
    bare, _, bed = page.partition("## tiny: the laboratory")
    # How many runs the curves are of, and which points have none.
    assert "3 runs" in bare and "1 of 3 points is not run in this profile: drop-tail, ecn off." in bare
    assert "not run" not in bed


def test_a_file_that_is_none_of_them_is_refused_in_a_line(folder):
    (folder / curves.FILE).write_text("no table")
    with pytest.raises(BadInput, match=r"curves\.parquet: .*; expected the table of distributions"):
        curves.read(folder / curves.FILE)
    pl.DataFrame({"point": ["web/pi/on"]}).write_parquet(folder / curves.FILE)
    with pytest.raises(BadInput, match="columns point; expected bed, point, scale, seed, completed, within, longer"):
        curves.read(folder / curves.FILE)


def test_figures_that_need_more_than_distributions_are_kept_as_they_were_drawn(tmp_path):
    study = definition.read(ROOT / "studies/brandauer2001")
    facts = {
        "bed": None,
        "changes": {},
        "profile": {"name": "full"},
        "command": "aqmlab study brandauer2001",
        "date": "2026-11-28",
    }
    drawn, images = tmp_path / "results/figures", tmp_path / "docs/img/studies"
    drawn.mkdir(parents=True)
    for name in ("figure-3b", "figure-4-goodput"):
        (drawn / f"{name}.png").write_bytes(b"drawn")
    points = [point.name for point in study.everything if point.name.startswith("bulk/")]
    pl.DataFrame({"point": points[1:]}).write_parquet(drawn.parent / "runs.parquet")
    assert study_figures.take_drawn(drawn.parent, study, facts, images) == [], "a point of it was not run"
    pl.DataFrame({"point": points}).write_parquet(drawn.parent / "runs.parquet")
    for other in ({"bed": "segments"}, {"changes": {"seed": 1}}, {"profile": {"name": "quick"}}):
        assert study_figures.take_drawn(drawn.parent, study, facts | other, images) == []
    assert study_figures.take_drawn(drawn.parent, study, facts, images) == [images / "brandauer2001/figure-3b.png"]
    page = tmp_path / "docs/figures.md"
    study_figures.write([study], page, images)
    words = page.read_text(encoding="utf-8")
    assert "![Bulk data: UDP loss](img/studies/brandauer2001/figure-3b.png)" in words
    assert "Of `aqmlab study brandauer2001`, 2026-11-28." in words and "figure-3c" not in words
    assert (images / "brandauer2001/figure-3b.png").read_bytes() == b"drawn"


def test_the_page_of_the_papers_figures_is_current(tmp_path, monkeypatch):
    """Its words, and which figures there are; how they look is up to the library that draws them."""
    monkeypatch.setattr(engine, "native", NATIVE)
    page, images = tmp_path / "docs/studies/figures.md", tmp_path / "docs/img/studies"
    page.parent.mkdir(parents=True)
    for taken in (ROOT / "docs/img/studies").glob(f"*/{study_figures.TAKEN}"):
        (images / taken.parent.name).mkdir(parents=True)
        for file in (taken, *(taken.with_name(f"{name}.png") for name in read_json(taken))):
            shutil.copyfile(file, images / taken.parent.name / file.name)
    study_figures.write([definition.read(ROOT / "studies" / name) for name in folders.known()], page, images)
    committed = ROOT / "docs/studies/figures.md"
    assert page.read_text(encoding="utf-8") == committed.read_text(encoding="utf-8"), "make studies draws it anew"
    there = {path.relative_to(images) for path in images.rglob("*.png")}
    assert there == {path.relative_to(ROOT / "docs/img/studies") for path in (ROOT / "docs/img/studies").rglob("*.png")}
    beside = {path.name for path in images.parent.glob("*.png")}
    assert beside == set(study_figures.BESIDE.values()) and all((ROOT / "docs/img" / name).exists() for name in beside)
