"""What a kept run is known by: its engine, and the sources that it was made with."""

import sys
from pathlib import Path

import pytest

from aqmlab import engine, sweep
from aqmlab.laws import brought
from aqmlab.sweep import maker, plan, work
from aqmlab.sweep.kept import Kept
from conftest import ROOT
from grids import GRID, calibrating, file, in_process, planned

__all__ = ["file", "in_process"]


def test_an_engine_that_was_built_anew_answers_anew(monkeypatch):
    tasks = planned()
    found = dict(sweep.run(tasks))
    calibrated = calibrating()
    assert planned() == tasks and calibrating() == calibrated
    monkeypatch.setattr(engine, "file_sha256", lambda: "another build")
    rebuilt = planned()
    assert {task.digest for task in rebuilt} == {task.digest for task in tasks}
    assert not {task.key for task in rebuilt} & found.keys()
    assert all(Kept().get(task.key) is None for task in rebuilt)
    assert calibrating() == 2 * calibrated, "populations are the engine's answers too"


def test_what_is_condensed_otherwise_is_condensed_anew(monkeypatch):
    tasks = planned()
    monkeypatch.setattr(maker, "sources_sha256", lambda: "other sources")
    assert not {task.key for task in planned()} & {task.key for task in tasks}


NO_SOURCES = {
    "arguments.py",
    "engine.py",
    "errors.py",
    "files.py",
    "forks.py",
    "laws/imported.py",
    "laws/patience.py",
    "progress.py",
    "runs/runner.py",
    "runs/watchdog.py",
    "scratch.py",
    "sweep/maker.py",
    "sweep/plan.py",
    "toml_text.py",
}
"""The engine has a digest of its own; the others say what is asked for and whether it may run, not what comes of it."""


def at_work(task: plan.Task) -> set[str]:
    """Each module of the package that takes part between the tables of a run and what is kept of it."""
    seen: set[str] = set()
    package = Path(maker.__file__).parents[1]

    def note(frame, event, argument) -> None:
        place = Path(frame.f_code.co_filename)
        if event == "call" and place.is_relative_to(package):
            seen.add(place.relative_to(package).as_posix())

    sys.setprofile(note)
    try:
        work.do(task)
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    ("law", "how", "module"),
    [("two_bands.py", "", "laws/holding.py"), ("my_law.py", "compiled=False, ", "laws/interpreted.py")],
)
def test_the_sources_of_runs_with_laws_in_the_interpreter_are_those_that_they_are_made_with(
    law, how, module, tmp_path, monkeypatch
):
    path, text = tmp_path / law, (ROOT / "examples/laws" / law).read_text()
    path.write_text(text.replace("@aqmlab.law(", f"@aqmlab.law({how}"))
    brought.allow(path)
    # Here, where it is seen, in place of a process of its own.
    monkeypatch.setattr(brought, "runs_apart", lambda resolved: False)
    grid = GRID.replace('{ name = "pfifo", label', f'{{ name = "own", link.qdisc = "{path}", label')
    short = grid.replace('"30s"', '"2s"').replace('"10s"', '"1s"').replace("100mbit", "2mbit")
    task = planned(short.replace("90mbit", "1mbit").replace("98mbit", "2mbit"))[0]
    assert "law = " in task.toml
    monkeypatch.setattr(brought, "_BROUGHT", {})  # as in a worker
    monkeypatch.setattr(brought, "_PLACES", {})
    seen = at_work(task)
    assert seen - NO_SOURCES <= set(maker.SOURCES), seen
    assert {module, "laws/declared.py", "laws/table.py", "results/digests.py"} <= seen


def test_the_sources_of_what_is_kept_are_those_that_it_is_made_with(tmp_path, monkeypatch):
    package = Path(maker.__file__).parents[1]
    seen = at_work(planned(GRID.replace('load = "98mbit"', 'load = "98mbit"\napplication = "pages"'))[0])
    assert seen - NO_SOURCES <= set(maker.SOURCES), seen
    assert {"checks.py", "results/exchanges.py", "results/store.py", "results/window.py", "sweep/condensed.py"} <= seen
    assert {"results/by_application.py", "results/named.py"} <= seen
    assert all((package / name).exists() for name in maker.SOURCES)
    # Read once, and of the whole text of each.
    for name in maker.SOURCES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((package / name).read_bytes())
    monkeypatch.setattr(maker, "__file__", str(tmp_path / "sweep/maker.py"))
    digests = {maker.sources_sha256.__wrapped__()}
    assert digests == {maker.sources_sha256()}
    for name in maker.SOURCES:
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b" ")
        digests.add(maker.sources_sha256.__wrapped__())
    assert len(digests) == 1 + len(maker.SOURCES)
