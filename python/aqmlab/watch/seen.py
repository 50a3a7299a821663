"""What has been seen of work under way, as its notes tell it, and what of that somebody has not been told yet."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqmlab.errors import BadInput

POINTS = 600
"""Points of a run that are kept at most; of more, every second goes."""

DRAWN = 40
"""Runs that are over whose points are kept; older ones keep their last."""

NOTHING: Mapping[str, Any] = {}


@dataclass
class Run:
    """One run."""

    label: str
    duration_s: float
    points: list[Mapping[str, Any]] = field(default_factory=list)
    last: Mapping[str, Any] = field(default_factory=dict)
    turn: int = 0
    """How often points were thinned: who was told some of an earlier turn is told all anew."""
    is_over: bool = False
    is_cut: bool = False
    """Whether it was cut off before its end."""

    def add(self, point: Mapping[str, Any]) -> None:
        """A point more."""
        self.last = point
        self.points.append(point)
        if len(self.points) > POINTS:
            self.points = self.points[::2]
            self.turn += 1


def of_notes(path: Path) -> "Seen":
    """What notes say by now; a line that is being written is left out."""
    found = Seen()
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError:
        raise BadInput(f"{path}: is over already; expected runs under way") from None
    for line in lines:
        with contextlib.suppress(ValueError):  # a line cut short by a full disk
            found.add(json.loads(line))
    return found


Told = dict[int, tuple[int, int, bool]]
"""Of each run the turn, how many points, and whether it was said to be over."""


@dataclass
class Seen:
    """Everything so far."""

    folder: str = ""
    command: str = ""
    expected: int = 0
    ended: int = 0
    """Runs that have ended by themselves."""
    is_over: bool = False
    runs: dict[int, Run] = field(default_factory=dict)

    def add(self, line: Mapping[str, Any]) -> None:
        """A line of the notes; one of a kind that is not known says nothing."""
        kind, run = line.get("kind"), self.runs.get(line.get("run", 0))
        if kind == "work":
            self.folder, self.command = str(line["folder"]), str(line["command"])
        elif kind == "expect":
            self.expected += int(line["runs"])
        elif kind == "begin":
            self.runs[int(line["run"])] = Run(str(line["label"]), float(line["duration_s"]))
        elif kind == "tick" and run is not None:
            run.add({key: item for key, item in line.items() if key not in ("kind", "run")})
        elif kind == "end" and run is not None:
            run.is_over, run.is_cut = True, bool(line.get("cut"))
            self.ended += not run.is_cut
            over = [one for one in self.runs.values() if one.is_over and one.points]
            for one in over[:-DRAWN]:
                one.points, one.turn = [], one.turn + 1
        elif kind == "over":
            self.is_over = True

    def as_dict(self) -> dict[str, Any]:
        """How far all is: of each run its last point."""
        return {
            **self.news({}),
            "runs": [
                {
                    "label": run.label,
                    "duration_s": run.duration_s,
                    "over": run.is_over,
                    "cut": run.is_cut,
                    "last": dict(run.last),
                }
                for run in self.runs.values()
            ],
        }

    @property
    def is_stopped(self) -> bool:
        """Whether the work has ended before all runs were made."""
        is_cut = any(run.is_cut or not run.is_over for run in self.runs.values())
        return self.is_over and (is_cut or self.ended < self.expected)

    def news(self, told: Told) -> dict[str, Any]:
        """What somebody who was told so much has not heard; `told` is brought up to date."""
        runs = []
        for number, run in self.runs.items():
            turn, count, was_over = told.get(number, (-1, 0, False))
            if (turn, count, was_over) == (run.turn, len(run.points), run.is_over):
                continue
            is_anew = turn != run.turn
            news: dict[str, Any] = {"run": number, "over": run.is_over, "cut": run.is_cut, "last": run.last}
            news["points"] = run.points if is_anew else run.points[count:]
            if is_anew:
                news |= {"anew": True, "label": run.label, "duration_s": run.duration_s}
            runs.append(news)
            told[number] = (run.turn, len(run.points), run.is_over)
        return {
            "folder": self.folder,
            "command": self.command,
            "expected": self.expected,
            "ended": self.ended,
            "over": self.is_over,
            "stopped": self.is_stopped,
            "runs": runs,
        }
