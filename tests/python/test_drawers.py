"""Figures drawn by processes: the same bytes, also where one is lost or none can be had, and none left behind."""

import os
import select
import signal
import subprocess
import sys

import pytest

import aqmlab
from aqmlab import figures
from aqmlab.figures import drawers
from aqmlab.runs import starter
from processes import children, is_alive

PROGRAM = """
from aqmlab.figures.drawers import Drawers
held = Drawers(2)
print("ready", flush=True)
input()
"""


@pytest.fixture
def drawn(base, tmp_path):
    found = aqmlab.compare(base, "pfifo limit 240p", "pi qref 24p ecn", out=tmp_path / "results")
    return list(figures.of(found).values())


def files(found):
    return [(one.name, one.title, one.caption, one.svg, one.narrow, one.described, one.png) for one in found]


def test_drawers_draw_the_same_bytes_and_are_gone_afterwards(drawn):
    with drawers.drawers(2) as held:
        there = [drawer.process.pid for drawer in held._drawers]
        assert files(held.begin(drawn).finished()) == files(map(figures.pictures, drawn))
    assert len(there) == 2 and not any(map(is_alive, there))


def test_what_a_lost_drawer_was_to_draw_is_drawn_here(drawn):
    with drawers.drawers(1) as held:
        held._drawers[0].process.kill()
        assert files(held.begin(drawn).finished()) == files(map(figures.pictures, drawn))


def test_without_processes_all_is_drawn_here(drawn, monkeypatch):
    def refuse(*_):
        raise OSError("no more processes")

    monkeypatch.setattr(starter, "python", refuse)
    with drawers.drawers(2) as held:
        assert held._drawers == []
        assert files(held.begin(drawn).finished()) == files(map(figures.pictures, drawn))


@pytest.mark.skipif(sys.platform != "linux", reason="left out: only Linux ends processes with their parent")
def test_a_killed_caller_takes_its_drawers_with_it():
    caller = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert caller.stdout.readline() == b"ready\n"
    there = children(caller.pid)
    assert len(there) == 2
    handles = [os.pidfd_open(process) for process in there]
    os.kill(caller.pid, signal.SIGKILL)
    caller.communicate()
    for handle in handles:  # a handle can be read once its process has ended
        assert select.select([handle], [], [], 30)[0]
        os.close(handle)
