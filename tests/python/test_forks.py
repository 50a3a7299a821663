"""Forks of a process that has used tables: polars' threads are not in them, which is said in place of waiting."""

import subprocess
import sys
from multiprocessing import get_context

import pytest

import aqmlab
from aqmlab.errors import CannotRun
from conftest import BASE, ROOT

SCENARIO = """
duration = "1s"
[link]
rate = "10mbit"
qdisc = "pfifo"
[path]
rtt = "20ms"
[[traffic]]
kind = "bulk"
flows = 2
"""
PROGRAM = f"""
import sys
from multiprocessing import get_context
import aqmlab

def digest(seed):
    return aqmlab.run({SCENARIO!r}, seed=seed).digest

if __name__ == "__main__":
    what, how = sys.argv[1:]
    if what == "before":
        aqmlab.run({SCENARIO!r})
    else:
        aqmlab.run  # which loads what reads tables
    with get_context(how).Pool(1) as pool:
        print(pool.map_async(digest, [2]).get(timeout=60)[0] == digest(2))
"""


def said_by(tmp_path, *arguments) -> subprocess.CompletedProcess:
    """What a program says whose runs are made in processes that it forks or spawns, after a run of its own or not."""
    (tmp_path / "program.py").write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, tmp_path / "program.py", *arguments],
        env={"PYTHONPATH": str(ROOT / "python"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(("before", "how"), [("nothing", "fork"), ("nothing", "spawn"), ("before", "spawn")])
def test_runs_are_made_in_processes_of_ones_own(tmp_path, before, how):
    assert said_by(tmp_path, before, how).stdout == "True\n"


def test_a_fork_of_a_process_that_made_a_run_is_told_so(tmp_path):
    found = said_by(tmp_path, "before", "fork")
    last = found.stderr.splitlines()[-1]
    assert last.startswith("aqmlab.errors.CannotRun: this process was forked from one that had used tables")
    assert 'multiprocessing.get_context("spawn")' in last


_MADE: list[aqmlab.Result] = []
"""What a fork finds in the place of an argument."""


def _tried() -> list[str]:
    result, other = _MADE
    said = []
    for ask in (
        lambda: result.runs[0].queue,
        lambda: result.runs[0].pages,
        lambda: result.estimate("utilisation"),
        lambda: aqmlab.compare(result, other),
        lambda: aqmlab.calibrate(BASE, fresh=True),
    ):
        with pytest.raises(CannotRun) as refused:
            ask()
        said.append(str(refused.value))
    return said


def test_tables_are_not_read_there_either(base, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "_MADE", [aqmlab.run(base), aqmlab.run(base)])
    assert _MADE[0].queue.height
    with get_context("fork").Pool(1) as pool:
        (said,) = set(pool.apply_async(_tried).get(timeout=60))
    assert said.startswith("this process was forked from one that had used tables")
