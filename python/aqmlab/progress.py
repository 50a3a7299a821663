"""Progress of runs: bars on a terminal, silence elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text


class Monitor(Protocol):
    """Who wants to hear how runs get on. Called from several threads."""

    def expect(self, runs: int, simulated_s: float) -> None:
        """So many runs are coming, so much simulated time in all."""

    def begin(self, label: str, simulated_s: float) -> int:
        """A run begins; the answer identifies it."""

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """How far a run is: `time_s`, `duration_s`, `bottleneck_packets`, `wall_s`."""

    def end(self, run: int) -> None:
        """A run has ended, well or not."""


class Silent:
    """Hears everything and says nothing."""

    def expect(self, runs: int, simulated_s: float) -> None:
        """See `Monitor`."""

    def begin(self, label: str, simulated_s: float) -> int:
        """See `Monitor`."""
        return 0

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """See `Monitor`."""

    def end(self, run: int) -> None:
        """See `Monitor`."""


class View(Monitor, Protocol):
    """Who wants to see live runs: hears more of each than of a simulated one, and what is to be known before."""

    def say(self, remarks: Sequence[str]) -> None:
        """What is not as the scenario says, before the first run."""

    def about(self, run: int, scenario: Mapping[str, Any], clock: str) -> None:
        """What a run that has begun is: its resolved scenario, `real` or `virtual` time."""

    def hear(self, text: str) -> None:
        """What a program inside says, as it says it."""


class Unseen(Silent):
    """Sees everything and shows nothing."""

    def say(self, remarks: Sequence[str]) -> None:
        """See `View`."""

    def about(self, run: int, scenario: Mapping[str, Any], clock: str) -> None:
        """See `View`."""

    def hear(self, text: str) -> None:
        """See `View`."""


class _Column(ProgressColumn):
    """A column whose text is computed from a task."""

    def __init__(self, say: Callable[[Task], str], style: str = "") -> None:
        super().__init__()
        self._say = say
        self._style = style

    def render(self, task: Task) -> Text:
        """Text of one row."""
        return Text(self._say(task), style=self._style, justify="right")


def clock_text(seconds: float | None) -> str:
    """A time as on a clock: minutes and seconds, hours where there are any."""
    if seconds is None:
        return "-:--"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


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
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            _Column(lambda task: f"{task.percentage:3.0f} %"),
            _Column(lambda task: f"{task.completed:,.0f}/{task.total or 0:,.0f} s simulated", "cyan"),
            _Column(_rate, "green"),
            _Column(_left),
            console=console,
            transient=True,
            expand=True,
        )
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._overall: TaskID | None = None
        self._runs = 0
        self._ended = 0
        self._simulated_s = 0.0
        self._at: dict[int, float] = {}
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

    def expect(self, runs: int, simulated_s: float) -> None:
        """See `Monitor`."""
        with self._lock:
            self._runs += runs
            self._simulated_s += simulated_s
            if self._runs > 1 and self._overall is None:
                self._overall = self._bars.add_task("", total=self._simulated_s)
            self._refresh()

    def begin(self, label: str, simulated_s: float) -> int:
        """See `Monitor`."""
        with self._lock:
            run = self._bars.add_task(label, total=simulated_s)
            self._at[run] = 0.0
            return run

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """See `Monitor`."""
        wall_s = max(tick["wall_s"], 1e-9)
        rate = tick["bottleneck_packets"] / wall_s
        with self._lock:
            self._at[run] = tick["time_s"]
            self._rates[run] = rate
            self._bars.update(TaskID(run), completed=tick["time_s"], packets_per_s=rate, speed=tick["time_s"] / wall_s)
            self._refresh()

    def end(self, run: int) -> None:
        """See `Monitor`."""
        with self._lock:
            self._ended += 1
            self._at[run] = self._bars.tasks[self._bars.task_ids.index(TaskID(run))].total or 0.0
            self._rates.pop(run, None)
            self._bars.remove_task(TaskID(run))
            self._refresh()

    def _refresh(self) -> None:
        if self._overall is None:
            return
        done = sum(self._at.values())
        self._bars.update(
            self._overall,
            description=f"[bold]{self._ended} of {self._runs} runs",
            total=self._simulated_s,
            completed=done,
            packets_per_s=sum(self._rates.values()),
            speed=done / max(time.monotonic() - self._started, 1e-9),
        )


def on_terminal() -> Bars | None:
    """Bars where standard error is a terminal, else nothing."""
    console = Console(file=sys.stderr)
    return Bars(console) if console.is_terminal else None
