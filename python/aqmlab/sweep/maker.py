"""What makes a run: the engine that simulates it, and the Python that checks and condenses what it left."""

import hashlib
from functools import lru_cache
from pathlib import Path

from aqmlab import engine

SOURCES = (
    *("checks.py", "json_files.py", "links.py", "scenario.py", "stationarity.py", "statistics.py", "units.py"),
    *("laws/brought.py", "laws/compiled.py", "laws/declared.py", "laws/interpreted.py", "laws/observed.py"),
    *("laws/aside.py", "laws/forms.py", "laws/holding.py", "laws/policy.py", "laws/table.py"),
    *("results/at_limit.py", "results/by_application.py", "results/digests.py", "results/emodel.py"),
    *("results/empty.py", "results/exchanges.py"),
    *("results/felt.py", "results/held_back.py", "results/named.py", "results/pages.py", "results/result.py"),
    *("results/round_trips.py", "results/run.py", "results/seen.py", "results/settled.py", "results/store.py"),
    *("results/summaries.py", "results/times.py", "results/video.py", "results/ways.py", "results/window.py"),
    *("sweep/condensed.py", "sweep/work.py"),
)
"""What between them turn tables into what is kept of a run, and laws into functions: below the package's folder."""

Maker = tuple[str, str, str]
"""Version, SHA-256 of the compiled engine, SHA-256 over the sources."""


def maker() -> Maker:
    """What makes runs in this process."""
    return engine.version(), engine.file_sha256(), sources_sha256()


@lru_cache
def sources_sha256() -> str:
    """SHA-256 over names and texts of the sources."""
    # Once a process: what is edited later on is not what this process has loaded.
    whole, folder = hashlib.sha256(), Path(__file__).parents[1]
    for name in SOURCES:
        content = (folder / name).read_bytes()
        whole.update(f"{name} {len(content)} ".encode() + content)
    return whole.hexdigest()


def changed(theirs: Maker, ours: Maker) -> str:
    """What another maker has that is not ours: its engine, or its Python."""
    if theirs[:2] != ours[:2]:
        return f"another engine (version {theirs[0]}, SHA-256 {theirs[1][:12]}; here version {ours[0]}, {ours[1][:12]})"
    return f"other Python sources of the same engine (SHA-256 {theirs[2][:12]}; here {ours[2][:12]})"
