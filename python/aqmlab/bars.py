"""Bars on a terminal that say how runs get on."""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from aqmlab.progress import NOTHING, Size, clock_text


class _Column(ProgressColumn):
    """A column whose text is computed from a task."""

    def __init__(self, say: Callable[[Task], str], style: str = "") -> None:
        super().__init__()
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
    speed = task.fields.get("speed", 0.0)
    return clock_text((task.total or 0.0) / speed - task.completed / speed if speed else None) + " left"


class Bars(AbstractContextManager["Bars"]):
    """A bar for each run that is under way and one for all of them, on standard error."""

    def __init__(self, console: Console) -> None:
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            _Column(lambda task: f"{task.percentage:3.0f} %"),
            _Column(lambda task: f"{task.fields['done_s']:,.0f}/{task.fields['of_s']:,.0f} s simulated", "cyan"),
            _Column(_rate, "green"),
            _Column(_left),
            console=console,
            transient=True,
            expand=True,
        )
        self._lock = threading.Lock()
        self._started: float | None = None
        self._overall: TaskID | None = None
        self._runs = 0
        self._ended = 0
        self._size = NOTHING
        self._sizes: dict[int, Size] = {}
        self._shares: dict[int, float] = {}
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
            self._runs += runs
            self._size += size
            if self._runs > 1 and self._overall is None:
                self._overall = self._bars.add_task("", total=self._size.cost, done_s=0.0, of_s=0.0)
            self._refresh()

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        with self._lock:
            if self._started is None:
                self._started = time.monotonic()
            run = self._bars.add_task(label, total=size.simulated_s, done_s=0.0, of_s=size.simulated_s)
            self._sizes[run], self._shares[run] = size, 0.0
            return run

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        wall_s = max(tick["wall_s"], 1e-9)
        rate = tick["bottleneck_packets"] / wall_s
        with self._lock:
            done_s = tick["time_s"]
            self._shares[run] = done_s / max(self._sizes[run].simulated_s, done_s, 1e-9)
            self._rates[run] = rate
            self._bars.update(TaskID(run), completed=done_s, done_s=done_s, packets_per_s=rate, speed=done_s / wall_s)
            self._refresh()

    def end(self, run: int) -> None:
        """Hears that a run has ended."""
        with self._lock:
            self._ended += 1
            self._shares[run] = 1.0
            self._rates.pop(run, None)
            self._bars.remove_task(TaskID(run))
            self._refresh()

    def _refresh(self) -> None:
        if self._overall is None:
            return
        done_s = sum(share * self._sizes[run].simulated_s for run, share in self._shares.items())
        done = sum(share * self._sizes[run].cost for run, share in self._shares.items())
        passed_s = 0.0 if self._started is None else time.monotonic() - self._started
        self._bars.update(
            self._overall,
            description=f"{self._ended} of {self._runs} runs",
            total=self._size.cost,
            completed=done,
            done_s=done_s,
            of_s=self._size.simulated_s,
            packets_per_s=sum(self._rates.values()),
            speed=done / max(passed_s, 1e-9),
        )


def on_terminal() -> Bars | None:
    """Bars where standard error is a terminal, else nothing."""
    console = Console(file=sys.stderr, markup=False, emoji=False)
    return Bars(console) if console.is_terminal else None
