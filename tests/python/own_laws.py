"""Laws of tests' own: one that does what a test wants, libraries of C, and the scenario that they decide in."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import aqmlab
from aqmlab.laws import brought
from aqmlab.live import kernel
from aqmlab.runs import calibration
from aqmlab.sweep import grid, plan
from conftest import ROOT

KERNEL = os.environ.get(kernel.VARIABLE) or str(calibration.cache_folder() / "kernel/linux")
"""Looked for before tests have a cache of their own."""

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}

SCENARIO = """
duration = "12s"
warmup = "2s"
[link]
rate = "20mbit"
qdisc = "pfifo"
[path]
rtt = { uniform = ["10ms", "100ms"] }
[tcp]
ecn = "on"
[[traffic]]
kind = "bulk"
flows = 20
[[traffic]]
kind = "onoff"
rate = "8mbit"
flows = 4
"""

COUNTS = '''
import aqmlab


@aqmlab.law{how}
class Mine:
    """Does what the test wants."""

    seen = 0
    every = aqmlab.parameter(50, "One packet in so many is lost.", low=1)

    def on_arrival(self, packet):
        self.seen += 1
        {body}
        return aqmlab.DROP if self.seen % self.every == 0 else aqmlab.PASS
'''

BUILT_IN = {"pi": {}, "codel": {}, "pie": {}, "red": {"dialect": "ns2"}}


def own(tmp_path: Path, body: str = "pass", how: str = "", name: str = "mine.py") -> Path:
    (tmp_path / name).write_text(COUNTS.format(body=body, how=how))
    return tmp_path / name


def run(link, qdisc, **keys):
    return aqmlab.run(link, set={"link.qdisc": qdisc, **keys})


def library(name: str, folder: Path, *words: str, source: Path | None = None) -> Path:
    """A shared library of an example in C, or of a source."""
    made = folder / f"{name}.so"
    flags = ["-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", aqmlab.include()]
    source = source or ROOT / f"examples/own-law-c/{name}.c"
    subprocess.run(["cc", *flags, *words, "-o", str(made), str(source), "-lm"], check=True)
    return made


def command(*words: str) -> str:
    """What the command complains of, in a process that has no law yet."""
    done = subprocess.run([sys.executable, "-m", "aqmlab", *words], capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode == 0) == (done.stderr == ""), done
    return done.stderr


def of_a_sweep(link: Path, law: Path) -> list[plan.Task]:
    """The one run of a sweep over a law."""
    tree = {"name": "one", "scenario": tomllib.loads(link.read_text()) | {"duration": "3s"}}
    tree["scenario"]["link"]["qdisc"] = {"kind": law.name}
    tree["grid"] = [{"axis": [{"name": "limit", "key": "link.qdisc.limit", "values": ["50p"]}]}]
    brought.allow(law)
    (one,) = grid.read(tree, str(law.parent / "grid.toml"))
    return plan.plan([(point, 1) for point in one.points])
