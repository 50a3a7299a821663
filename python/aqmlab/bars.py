"""Bars on a terminal that say how runs get on."""

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from aqmlab.progress import Size, clock_text
from aqmlab.remaining import Remaining

WIDE = 100
"""Columns of a terminal that has room for every number of a bar."""


class _Column(ProgressColumn):
    """A column whose text is computed from a task."""

    def __init__(self, say: Callable[[Task], str], style: str = "") -> None:
        super().__init__(Column(no_wrap=True))
        self._say = say
        self._style = style

    def render(self, task: Task) -> Text:
        """Text of one row."""
        return Text(self._say(task), style=self._style, justify="right")


def _rate(task: Task) -> str:
    rate = task.fields.get("packets_per_s", 0.0)
    return f"{rate / 1e6:.2f} M packets/s" if rate else ""


def _left(task: Task) -> str:
    if task.finished:
        return ""
    if "left_s" in task.fields:
        return clock_text(task.fields["left_s"]) + " left"
    speed = task.fields.get("speed", 0.0)
    return clock_text((task.total or 0.0) / speed - task.completed / speed if speed else None) + " left"


class Bars(AbstractContextManager["Bars"]):
    """A bar for each run that is under way and one for all of them, on standard error."""

    def __init__(self, console: Console) -> None:
        # What a narrow screen has no room for is left out, so that no number is cut.
        is_wide = console.width >= WIDE
        simulated = " simulated" if is_wide else ""
        self._bars = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
            BarColumn(bar_width=None),
            _Column(lambda task: f"{task.percentage:3.0f} %"),
            _Column(lambda task: f"{task.fields['done_s']:,.0f}/{task.fields['of_s']:,.0f} s{simulated}", "cyan"),
            *([_Column(_rate, "green")] if is_wide else []),
            _Column(_left),
            console=console,
            transient=True,
            expand=True,
        )
        self._lock = threading.Lock()
        self._overall: TaskID | None = None
        self._remaining = Remaining()
        self._rates: dict[int, float] = {}

    def __enter__(self) -> Self:
        """Shows the bars."""
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes them away."""
        self._bars.stop()

    @property
    def console(self) -> Console:
        """Where they are drawn."""
        return self._bars.console

    def pause(self) -> None:
        """Takes them away for good: something else is drawn there."""
        self._bars.stop()

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming."""
        with self._lock:
            self._remaining.expect(runs, size)
            if self._remaining.runs > 1 and self._overall is None:
                cost = self._remaining.size.cost
                self._overall = self._bars.add_task("", total=cost, done_s=0.0, of_s=0.0, left_s=None)
            self._refresh()

    def share(self, at_once: int) -> None:
        """Hears how many runs may be made at a time."""
        with self._lock:
            self._remaining.share(at_once)

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        with self._lock:
            run = self._bars.add_task(label, total=size.simulated_s, done_s=0.0, of_s=size.simulated_s)
            self._remaining.begin(run, size)
            return run

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        wall_s = max(tick["wall_s"], 1e-9)
        rate = tick["bottleneck_packets"] / wall_s
        with self._lock:
            done_s = tick["time_s"]
            self._remaining.tick(run, done_s)
            self._rates[run] = rate
            self._bars.update(TaskID(run), completed=done_s, done_s=done_s, packets_per_s=rate, speed=done_s / wall_s)
            self._refresh()

    def end(self, run: int) -> None:
        """Hears that a run has ended."""
        with self._lock:
            self._remaining.end(run)
            self._rates.pop(run, None)
            self._bars.remove_task(TaskID(run))
            self._refresh()

    def _refresh(self) -> None:
        if self._overall is None:
            return
        known = self._remaining
        done = known.done
        self._bars.update(
            self._overall,
            description=f"{known.ended} of {known.runs} runs",
            total=known.size.cost,
            completed=done.cost,
            done_s=done.simulated_s,
            of_s=known.size.simulated_s,
            packets_per_s=sum(self._rates.values()),
            left_s=known.left_s,
        )


def on_terminal() -> Bars | None:
    """Bars where standard error is a terminal, else nothing."""
    console = Console(file=sys.stderr, markup=False, emoji=False)
    return Bars(console) if console.is_terminal else None
