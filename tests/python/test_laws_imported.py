"""Laws that import modules of their user's own: kept runs go by what these hold as well. Needs the compiled engine."""

import os
import sys

import pytest

from aqmlab import sweep
from aqmlab.errors import AqmlabError, BadInput
from aqmlab.laws import brought, imported
from aqmlab.progress import Silent
from aqmlab.sweep import work
from conftest import ROOT
from own_laws import of_a_sweep, own, run

pytestmark = pytest.mark.usefixtures("nothing_allowed")


@pytest.fixture
def own_modules(tmp_path, monkeypatch):
    """A folder that is looked for modules, here and in processes that are started."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{ROOT / 'python'}")
    monkeypatch.setattr(imported, "_SEEN", {})
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def importing(tmp_path, line="from helper import EVERY", body="self.seen += 0 * EVERY", how="(compiled=False)"):
    path = own(tmp_path, body, how)
    path.write_text(path.read_text().replace("import aqmlab\n", f"import aqmlab\n{line}\n", 1))
    return path


def test_a_changed_module_of_a_law_is_another_run(link, tmp_path, own_modules):
    (own_modules / "helper.py").write_text("EVERY = 1\n")
    alone = of_a_sweep(link, own(tmp_path, name="alone.py"))
    path = importing(tmp_path)
    first, again = of_a_sweep(link, path), of_a_sweep(link, path)
    (own_modules / "helper.py").write_text("EVERY = 2\n")
    changed = of_a_sweep(link, path)
    (own_modules / "helper.py").write_text("EVERY = 1\n")
    assert first == again == of_a_sweep(link, path)
    assert first[0].digest == changed[0].digest and first[0].key != changed[0].key
    assert alone[0].modules == "" != first[0].modules


@pytest.mark.parametrize("how", ["", "(compiled=False)"])
def test_a_module_that_was_changed_is_imported_anew_in_the_same_process(link, tmp_path, own_modules, how):
    path = importing(tmp_path, body="return aqmlab.DROP if self.seen % EVERY == 0 else aqmlab.PASS", how=how)
    lost = []
    for every in (5, 50):
        (own_modules / "helper.py").write_text(f"EVERY = {every}\n")
        found = run(link, str(path), duration="3s")
        lost.append(found.summary["forward"]["dropped_packets"])
        assert found.manifest["laws"][0]["modules"].keys() == {"helper"}
    assert lost[0] > 2 * lost[1] > 0


def test_modules_are_found_wherever_an_import_names_them(tmp_path, own_modules):
    (own_modules / "package/inner").mkdir(parents=True)
    for name, text in {
        "helper.py": "import numpy, aqmlab, math, other",
        "other.py": "",
        "late.py": "",
        "unasked.py": "",
        "package/__init__.py": "from . import near",
        "package/near.py": "from .inner.deep import X",
        "package/inner/__init__.py": "from .. import beside",
        "package/inner/deep.py": "X = 1",
        "package/beside.py": "",
        "package/unasked.py": "",
    }.items():
        (own_modules / name).write_text(text)
    path = importing(tmp_path, "import helper\nimport package.near", "import late; self.seen += 0")
    inner = ["package", "package.beside", "package.inner", "package.inner.deep", "package.near"]
    assert list(brought.of_file(path).modules) == ["helper", "late", "other", *inner]


def test_a_worker_that_has_other_modules_is_refused(link, tmp_path, own_modules):
    (own_modules / "helper.py").write_text("EVERY = 1\n")
    tasks = of_a_sweep(link, importing(tmp_path))
    assert len(list(sweep.InProcess().each(tasks, Silent()))) == 1
    (own_modules / "helper.py").write_text("EVERY = 2\n")
    with pytest.raises(AqmlabError, match=r"mine \(.*mine.py\) imports other modules here; expected the same files"):
        work.do(tasks[0])
    handed = [
        {"path": str(tmp_path / "mine.py"), "sha256": brought.of_file(tmp_path / "mine.py").sha256, "modules": ""}
    ]
    with pytest.raises(BadInput, match="imports what has changed while runs were under way; start again"):
        brought.take_over(handed)


def test_what_is_installed_is_no_module_of_ones_own(tmp_path):
    assert imported.modules_of(b"import numpy.random, os.path, aqmlab\nfrom polars import Series\n") == {}
