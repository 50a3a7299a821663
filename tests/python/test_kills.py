"""Commands killed at random moments: nothing torn is taken for whole, resumed they find the same, nothing is left.

Three of them in the ordinary tests, of `run`, `compare` and `sweep`; `make test-kill` asks for a hundred.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

import aqmlab
import studies
from aqmlab.errors import BadInput
from conftest import ROOT, hears_signals
from processes import session

KILLS = int(os.environ.get("AQMLAB_KILLS", "3"))
SEED = int(os.environ.get("AQMLAB_KILLS_SEED", "1"))

SCENARIO = """
duration = "{duration}"
warmup = "2s"
link = {{ rate = "10mbit", qdisc = {{ kind = "pfifo", limit = "24p" }} }}
[[traffic]]
kind = "web"
users = 300
"""
SWEEP = """
scenario = "web.toml"
[[grid]]
[[grid.axis]]
name = "users"
key = "traffic.0.users"
values = [200, 300]
"""
DONE = (0, 1)
"""Exit codes of a command that came to its end; 1 where a claim or a self-check of so short a run fails."""

LONG = "200s"
"""Half a second of processor time."""


@dataclass(frozen=True)
class Verb:
    """A command, and what tells that it found the same."""

    words: tuple[str, ...]
    digest: Callable[[Path], object]


def _of_study(out: Path) -> object:
    found = json.loads((out / "study.json").read_text())
    return [(claim["id"], claim["verdict"], claim["number"]) for claim in found["claims"]]


VERBS = {
    "run": Verb(
        ("run", "web.toml", "--reps", "2"), lambda out: json.loads((out / "manifest.json").read_text())["digest"]
    ),
    "compare": Verb(
        ("compare", "web.toml", "pfifo limit 24p", "pi qref 24p"),
        lambda out: json.loads((out / "comparison.json").read_text())["digest"],
    ),
    "sweep": Verb(("sweep", "grid.toml"), lambda out: sorted(pl.read_parquet(out / "runs.parquet")["digest"])),
    "study": Verb(("study", "tiny", "--quick", "--only", "web/p*/off"), _of_study),
}


class Site:
    """A folder in which a command works, with its own cache and temporary folders."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self.temporary = folder, folder / "out", folder / "tmp"
        self.temporary.mkdir(parents=True)
        (folder / "web.toml").write_text(SCENARIO.format(duration=LONG))
        (folder / "grid.toml").write_text(SWEEP)
        studies.write(folder / "tiny")

    def start(self, verb: Verb, *more: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(self.temporary)}
        return subprocess.Popen(
            [sys.executable, "-m", "aqmlab", *verb.words, "-o", "out", "--jobs", "2", *more],
            cwd=self.folder,
            env={**environment, "AQMLAB_CACHE": str(self.folder / "cache")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=hears_signals,
        )

    def left(self) -> list[str]:
        """Temporary folders and unfinished files."""
        unfinished = [path for path in self.folder.rglob("*") if path.name.endswith(".partial")]
        return sorted(str(path.relative_to(self.folder)) for path in (*self.temporary.iterdir(), *unfinished))


@pytest.fixture(scope="module")
def wholes(tmp_path_factory) -> dict[str, tuple[object, float]]:
    """What each command finds undisturbed and the seconds that it takes, once asked for."""
    return {}


def whole(name: str, known: dict[str, tuple[object, float]], folder: Path) -> tuple[object, float]:
    if name not in known:
        site, started = Site(folder / "whole"), time.monotonic()
        process = site.start(VERBS[name])
        said = process.communicate()[1]
        assert process.returncode in DONE and "Traceback" not in said, said
        assert site.left() == []
        known[name] = VERBS[name].digest(site.out), time.monotonic() - started
    return known[name]


def check_not_torn(name: str, out: Path, wanted: object) -> None:
    """What opens as finished is what the undisturbed command found."""
    if name not in ("run", "compare") or not out.is_dir():
        return
    try:
        found = aqmlab.load(out)
    except BadInput:
        return
    assert found.digest == wanted


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see processes")
@pytest.mark.parametrize("number", range(KILLS))
def test_killed_at_a_random_moment(number, wholes, tmp_path):
    rng = random.Random(f"{SEED} {number}")
    name = list(VERBS)[number % len(VERBS)]
    how = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    wanted, takes_s = whole(name, wholes, tmp_path)
    site, after_s = Site(tmp_path / "site"), rng.random() * takes_s
    about = f"{name}, {how.name} after {after_s:.3f} of {takes_s:.3f} s (AQMLAB_KILLS_SEED={SEED})"

    process = site.start(VERBS[name])
    try:
        said = process.communicate(timeout=after_s)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(how)
        said = process.communicate(timeout=60)[1]
        if how != signal.SIGKILL and process.returncode not in DONE:
            lines = said.strip().splitlines()
            assert process.returncode in (130, -how), (about, said)
            # Python itself takes some hundredths of a second before it reads the first line of anybody's.
            assert process.returncode != -how or after_s < 0.5, about
            assert not lines or lines[-1].startswith("aqmlab: stopped"), (about, said)
    deadline = time.monotonic() + 5.0
    while session(process.pid):
        assert time.monotonic() < deadline, about
        time.sleep(0.01)
    check_not_torn(name, site.out, wanted)

    again = site.start(VERBS[name], "--resume")
    said = again.communicate(timeout=120)[1]
    assert again.returncode in DONE and "Traceback" not in said, (about, said)
    assert VERBS[name].digest(site.out) == wanted, about
    assert site.left() == [] and session(again.pid) == [], about
