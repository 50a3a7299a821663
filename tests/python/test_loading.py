"""Help, lists and explanations load nothing that draws or reckons; runs load nothing that draws."""

import json
import os
import re
import subprocess
import sys

import pytest

import aqmlab
from aqmlab import __main__, cli, stopping, study, sweep
from conftest import ROOT

HEAVY = ("scipy", "matplotlib", "polars", "numpy", "pandas", "jinja2", "pydantic", "distributed")
LOADED = """
import json, sys
from aqmlab import cli
code = cli.invoke(sys.argv[1:])
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]), file=sys.stderr)
"""


def loaded_by(*arguments):
    """Modules there are after a command, in a process of its own with the engine itself."""
    made = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        env={"PYTHONPATH": str(ROOT / "python"), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    code, modules = json.loads(made.stderr)
    assert code == 0 and made.stdout
    return set(modules)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["compare", "--help"],
        ["list", "--json"],
        ["explain", "pi", "--json"],
    ],
    ids=" ".join,
)
def test_what_asks_for_no_table_loads_no_library_for_it(arguments):
    assert loaded_by(*arguments) & {*HEAVY, "rich"} == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["explain", "pi"],
        ["explain", "web/unc2001"],
        ["explain", "redopt", "--rate", "10mbit", "--set", "flows=64"],
        ["list", "studies"],
    ],
    ids=" ".join,
)
def test_lists_and_explanations_load_the_library_of_tables_alone(arguments):
    found = loaded_by(*arguments)
    assert found & {*HEAVY, "rich"} == {"rich"}


SHORT = """
duration = "3s"
warmup = "1s"
[link]
rate = "10mbit"
qdisc = { kind = "pi" }
[[traffic]]
kind = "bulk"
flows = 4
rtt = "20ms"
"""


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["compare", "pi", "codel"]],
    ids=lambda arguments: arguments[0],
)
def test_runs_without_a_page_load_nothing_that_draws(arguments, tmp_path):
    scenario = tmp_path / "short.toml"
    scenario.write_text(SHORT)
    verb, *disciplines = arguments
    found = loaded_by(verb, str(scenario), *disciplines, "-o", str(tmp_path / "out"), "--jobs", "2")
    assert found & {"matplotlib", "jinja2", "distributed", "pandas", "pydantic"} == set()


@pytest.mark.parametrize("duration", ["3s", "60s"])
def test_a_run_loads_no_scipy_for_its_tests(duration, tmp_path):
    scenario = tmp_path / "short.toml"
    scenario.write_text(SHORT)
    loaded = loaded_by("run", str(scenario), "--set", f"duration={duration}", "-o", str(tmp_path / "out"))
    found = json.loads((tmp_path / "out/manifest.json").read_text())["settled"]
    assert bool(found["series"]) == (duration == "60s"), "the longer one is tested"
    assert "scipy" not in loaded


@pytest.mark.parametrize("package", [aqmlab, study, sweep], ids=lambda package: package.__name__)
def test_every_public_name_is_there_when_it_is_asked_for(package):
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        found = getattr(package, name)
        # Verdicts and their causes are numbers, which have no name.
        assert isinstance(found, int) or found.__name__ == name
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


REFERENCE = """
import sys
import aqmlab
for name in sys.argv[1:]:
    found = aqmlab
    for step in name.split(".")[1:]:
        found = getattr(found, step)
    assert found.__doc__, name
assert aqmlab.figures.of and not {"comparison", "figures", "statistics", "study", "sweep"} - set(dir(aqmlab))
"""


def test_what_the_reference_lists_is_there_after_the_import_alone():
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    names = re.findall(r"^\.\. auto\w+:: (aqmlab[\w.]+)$", page, re.MULTILINE)
    # The page says that `aqmlab.gym` has an import of its own.
    names = [name for name in names if not name.startswith("aqmlab.gym.")]
    assert "aqmlab.comparison.Column" in names and "aqmlab.sweep.sweeps.read" in names
    subprocess.run([sys.executable, "-c", REFERENCE, *names], env={"PYTHONPATH": str(ROOT / "python")}, check=True)


def test_the_reference_has_every_name_of_the_package():
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    assert {*aqmlab.__all__, "comparison.Incomplete"} <= set(re.findall(r"aqmlab\.([\w.]+)", page))


@pytest.mark.parametrize(
    "before",
    [
        "from aqmlab.live import kernel",
        "import aqmlab; aqmlab.live; import aqmlab.live.kernel",
        "import aqmlab, importlib; importlib.reload(aqmlab)",
    ],
)
def test_the_function_stands_before_the_package_of_its_name(before):
    """In whatever order they are asked for; what lies in the package is imported from it all the same."""
    then = """
import sys, types, aqmlab
from aqmlab import live
assert live is aqmlab.live is aqmlab.api.live and isinstance(live, types.FunctionType)
from aqmlab.live import kernel
assert kernel is sys.modules["aqmlab.live.kernel"] and live is aqmlab.live
"""
    subprocess.run([sys.executable, "-c", before + then], env={"PYTHONPATH": str(ROOT / "python")}, check=True)


@pytest.mark.parametrize(("said", "then"), [(None, "1"), ("3", "3")])
def test_a_command_starts_no_threads_for_algebra(monkeypatch, said, then):
    """A library reads the number as it is loaded, which only the command itself does after this."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", said)
    found = []
    monkeypatch.setattr(stopping, "before_anything_runs", lambda: None)
    monkeypatch.setattr(cli, "main", lambda: found.append(os.environ["OPENBLAS_NUM_THREADS"]))
    __main__.main()
    assert found == [then]
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", then)  # what main put there goes with the test
