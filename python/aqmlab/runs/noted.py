"""Notes of the progress of runs, which another process can read while they go on.

They lie in the user's cache folder and not among the results, so that a result stays what it is. Whoever writes them
holds a lock (flock(2)), which ends with the process: notes that nobody holds are of work that is no longer under way.
Each line is a JSON object; `kind` says which: `work`, `expect`, `begin`, `tick`, `end`, `over`.
"""

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from aqmlab import files
from aqmlab.files import cache_folder
from aqmlab.progress import Monitor, Size, View, cut

EVERY_S = 0.25
"""A run is noted no more often."""

LINES = 400
"""Nor more often than so many times by now: a run of an hour is noted every nine seconds in the end."""

MOST_BYTES = 64 << 20
"""Of all notes of one command; beyond, only beginnings and ends are noted."""

PER_CENT = ("p50", "p95", "p99")


def folder() -> Path:
    """Where notes lie."""
    return cache_folder() / "watch"


def of(results: Path) -> list[Path]:
    """Notes of work on a folder of results that is under way, the newest last."""
    return [path for path in under_way() if path.name.startswith(_name(results))]


def under_way() -> list[Path]:
    """Notes of all work of this user that is under way on this machine, the newest last."""
    with contextlib.suppress(OSError):
        return sorted(filter(is_written, folder().glob("*.jsonl")), key=lambda path: path.stat().st_mtime_ns)
    return []


def is_written(path: Path) -> bool:
    """Whether somebody still writes these notes."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def folder_of(path: Path) -> str:
    """The folder of results that notes are of."""
    try:
        with path.open(encoding="utf-8") as file:
            return str(json.loads(file.readline())["folder"])
    except (OSError, ValueError, KeyError):
        return "?"


def _name(results: Path) -> str:
    return hashlib.sha256(os.fsencode(files.end_of_links(results))).hexdigest()[:16]


def _tidy(where: Path) -> None:
    """Removes notes that nobody writes any more, held so that nobody begins to meanwhile."""
    for left in where.glob("*.jsonl"):
        with contextlib.suppress(OSError), left.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _begun(path: Path) -> BinaryIO:
    """A new file of notes, held: who tidies up may find it before, and remove it, and then it is made once more."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            file = path.open("wb", buffering=0)
            with contextlib.suppress(OSError):  # a file system without locks
                # Whoever looks whether it is held has it for a moment.
                fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists():
                return file
            file.close()


@dataclass
class _Run:
    began: float
    noted: float = 0.0
    """When; the clock is monotonic."""
    before: Mapping[str, Any] = field(default_factory=dict)
    """The tick that was noted last."""
    counts: dict[str, list[float]] = field(default_factory=dict)
    """Of live runs, whose ticks say what is new."""


class Notes:
    """A monitor that writes notes of runs that go into a folder."""

    def __init__(self, results: Path, command: str) -> None:
        self._lock = threading.Lock()
        self._next = itertools.count(1)
        self._runs: dict[int, _Run] = {}
        self._written = 0
        self._is_over = False
        self.path = folder() / f"{_name(results)}-{os.getpid()}.jsonl"
        self._file: BinaryIO | None = None
        # Without notes the runs are the same: a disk that is full or read-only is no reason to stop.
        with contextlib.suppress(OSError):
            _tidy(self.path.parent)
            self._file = _begun(self.path)
        self._write({"kind": "work", "folder": str(results), "command": command})

    @property
    def are_kept(self) -> bool:
        """Whether they can be written."""
        return self._file is not None

    def over(self) -> None:
        """Says that the work is over; said once."""
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self._write({"kind": "over"})

    def close(self) -> None:
        """Says that the work is over, and takes the notes away: who reads them has them open."""
        self.over()
        with self._lock:
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self.path.unlink()
                self._file.close()
                self._file = None
                # Folders that were made for them and have nothing else go too.
                with contextlib.suppress(OSError):
                    self.path.parent.rmdir()
                    self.path.parent.parent.rmdir()

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming."""
        with self._lock:
            self._write({"kind": "expect", "runs": runs})

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        with self._lock:
            run = next(self._next)
            self._runs[run] = _Run(time.monotonic())
            self._write({"kind": "begin", "run": run, "label": label, "duration_s": size.simulated_s})
            return run

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        with self._lock:
            known, now = self._runs.get(run), time.monotonic()
            if known is None:
                return
            if "port_packets" not in tick:
                for key in ("drops", "marks"):
                    known.counts[key] = [
                        a + b
                        for a, b in itertools.zip_longest(known.counts.get(key, []), tick.get(key, []), fillvalue=0)
                    ]
                tick = {**tick, **known.counts}
            if now - known.noted < max(EVERY_S, (now - known.began) / LINES) or self._written > MOST_BYTES:
                return
            self._write({"kind": "tick", "run": run, **point(tick, known.before)})
            known.noted, known.before = now, tick

    def end(self, run: int) -> None:
        """Hears that a run has ended, well or not."""
        with self._lock:
            self._runs.pop(run, None)
            self._write({"kind": "end", "run": run})

    def cut(self, run: int) -> None:
        """Hears that a run was cut off."""
        with self._lock:
            self._runs.pop(run, None)
            self._write({"kind": "end", "run": run, "cut": True})

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        text = json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        self._written += len(text)
        with contextlib.suppress(OSError):
            self._file.write(text)


def point(tick: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """What is drawn of a tick, with rates and delays since the one before; lists are by link, forward before reverse.

    `time_s`, `wall_s`; `links`, their names; `rate_bps`, `queue_packets`, `delay_s` (mean wait of what left since);
    `drops`, `marks` and `packets`, those that left, since the run began; `waits_s` and `response_s`, at 50, 95 and
    99 % of packets and exchanges of the measured window so far; `exchanges`. What a tick does not tell is left out.
    """
    found: dict[str, Any] = {key: tick[key] for key in ("time_s", "wall_s", "exchanges") if key in tick}
    times = tick.get("response_s") or {}
    if all(times.get(key) is not None for key in PER_CENT):
        found["response_s"] = [times[key] for key in PER_CENT]
    if "port_packets" not in tick:
        keys = {"rate_bps": "rate_bps", "queue_packets": "queue_packets", "queue_delay_s": "delay_s"}
        found |= {ours: list(tick[key]) for key, ours in keys.items() if key in tick}
        return found | {key: list(tick[key]) for key in ("drops", "marks") if tick.get(key)}
    passed_s = tick["time_s"] - before.get("time_s", 0.0)
    none = [0] * len(tick["port_packets"])
    of_bytes, of_packets, of_waits = (
        [now - then for now, then in zip(tick[key], before.get(key, none), strict=True)]
        for key in ("port_bytes", "port_packets", "port_wait_ns")
    )
    return found | {
        "links": list(tick["links"]),
        "rate_bps": [8 * size / passed_s if passed_s > 0 else 0.0 for size in of_bytes],
        "queue_packets": list(tick["port_queue_packets"]),
        "delay_s": [
            wait / packets / 1e9 if packets else None for wait, packets in zip(of_waits, of_packets, strict=True)
        ],
        "packets": list(tick["port_packets"]),
        "drops": list(tick["port_drops"]),
        "marks": list(tick["port_marks"]),
        "waits_s": list(tick["port_waits_s"]),
    }


class Noted:
    """A monitor that is heard, and noted too."""

    def __init__(self, heard: Monitor, notes: Notes) -> None:
        self.heard, self._notes = heard, notes
        self._numbers: dict[int, int] = {}

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming."""
        self.heard.expect(runs, size)
        self._notes.expect(runs, size)

    def share(self, at_once: int) -> None:
        """Hears how many runs may be made at a time."""
        self.heard.share(at_once)

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        run = self.heard.begin(label, size)
        self._numbers[run] = self._notes.begin(label, size)
        return run

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        self.heard.tick(run, tick)
        self._notes.tick(self._numbers[run], tick)

    def end(self, run: int) -> None:
        """Hears that a run has ended."""
        self.heard.end(run)
        self._notes.end(self._numbers.pop(run))

    def cut(self, run: int) -> None:
        """Hears that a run was cut off."""
        cut(self.heard, run)
        self._notes.cut(self._numbers.pop(run))


class NotedView(Noted):
    """The same of a view."""

    def __init__(self, view: View, notes: Notes) -> None:
        super().__init__(view, notes)
        self._view = view

    def say(self, remarks: Sequence[str]) -> None:
        """Hears remarks before the first run."""
        self._view.say(remarks)

    def about(self, run: int, scenario: Mapping[str, Any], clock: str) -> None:
        """Hears what a run is that has begun."""
        self._view.about(run, scenario, clock)

    def hear(self, text: str) -> None:
        """Hears what a program inside says."""
        self._view.hear(text)


@contextlib.contextmanager
def noting(results: Path, command: str) -> Iterator[Notes]:
    """Notes of what is done meanwhile."""
    notes = Notes(results, command)
    try:
        yield notes
    finally:
        notes.close()
