"""Folders that runs go to: whether they may, and whether what lies there is what is to be gone on with."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from aqmlab import files
from aqmlab.errors import BadInput
from aqmlab.json_files import read_json
from aqmlab.results import store
from aqmlab.runs import runner
from aqmlab.runs.runner import Job

REPETITION = re.compile(r"rep-([1-9][0-9]*)")
"""The folder of one of several runs."""


def check(folder: Path, reps: int) -> None:
    """Refuses the folder that the command works in, and those around it: a single run becomes its folder."""
    here = Path.cwd()
    if reps == 1 and files.end_of_links(folder) in (here, *here.parents):
        raise BadInput(f"{folder}: is the folder that aqmlab works in, or around it; expected a new result folder")


def same_work(folder: Path, planned: Sequence[Job]) -> None:
    """Refuses to resume a folder that holds something else."""
    own = {name for job in planned for name in (job.folder.name, f".{job.folder.name}.partial")}
    held = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    more = [int(found[1]) for name in held - own if (found := REPETITION.fullmatch(name)) and (folder / name).is_dir()]
    if more:
        raise BadInput(f"{folder}: holds {max(more)} runs; expected reps of {max(more)} or more to go on with it")
    if held and "manifest.json" not in held and (len(planned) == 1 or not held & own):
        raise BadInput(f"{folder}: holds no run; expected the folder of the one to be resumed")
    for job in planned:
        if job.folder != folder and job.folder.is_dir() and not (job.folder / "manifest.json").exists():
            raise BadInput(f"{job.folder}: holds no run; expected the folder of the one to be resumed")
        if (job.folder / "manifest.json").exists() and not runner.is_finished(job):
            raise BadInput(
                f"{job.folder}: holds another scenario or seed, or is of another {_others(job)}; "
                "expected the one to be resumed"
            )
    if (
        len(planned) > 1
        and (folder / "manifest.json").exists()
        and read_json(folder / "manifest.json")["kind"] == "run"
    ):
        raise BadInput(f"{folder}: holds a single run; expected one with {len(planned)} runs to be resumed")


def _others(job: Job) -> str:
    if job.bed is None:
        return "engine"
    return "engine, test bed or kernel" if job.bed.is_virtual else "engine or test bed"


@contextlib.contextmanager
def alone(folder: Path, reps: int, resume: bool) -> Iterator[None]:
    """The folder of several runs is made, and one command's at a time; a single run is written beside its own."""
    if reps == 1:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with store.alone(folder):
        store.claim(folder, resume)  # somebody else may have begun meanwhile, and be through
        yield
