"""What a live run shows while it goes on: a screen on a terminal, a line now and then elsewhere."""

import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.measure import Measurement
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from aqmlab import links, units
from aqmlab.bars import Bars
from aqmlab.command.tables import sentence
from aqmlab.links import WAYS
from aqmlab.progress import Size, Unseen, clock_text

LEVELS = " ▁▂▃▄▅▆▇█"
HISTORY = 200
"""Steps of a sparkline at most; it shows as many of the last ones as there is room for."""

LINE_EVERY_S = 5.0
"""Between two lines where there is no terminal."""

BUDGET = {"lateness": "200us", "lateness_max": "5ms"}
"""The budget of a scenario that states none, as `[live]` has it."""

REMARK_WIDTH = 300
"""What is shown of a remark; all of it is in the manifest."""


@dataclass
class _State:
    """What is known of the run under way."""

    label: str
    duration_s: float
    number: int
    scenario: Mapping[str, Any] = field(default_factory=dict)
    clock: str = "real"
    tick: dict[str, Any] = field(default_factory=dict)
    delays: tuple[deque[float], deque[float]] = field(default_factory=lambda: (_history(), _history()))
    rates: tuple[deque[float], deque[float]] = field(default_factory=lambda: (_history(), _history()))
    sums: dict[str, list[float]] = field(default_factory=lambda: {"drops": [0.0, 0.0], "marks": [0.0, 0.0]})
    """Since the start of the run; each tick has those since the last."""
    started: float = field(default_factory=time.monotonic)

    def hear(self, tick: Mapping[str, Any]) -> None:
        self.tick = dict(tick)
        for key, sums in self.sums.items():
            if key in tick:
                sums[:] = [sums[way] + (_at(tick, key, way) or 0.0) for way in (0, 1)]
                self.tick[key] = list(sums)
        for way in (0, 1):
            self.delays[way].append(_at(tick, "queue_delay_s", way) or 0.0)
            self.rates[way].append(_at(tick, "rate_bps", way) or 0.0)

    def link_bps(self, way: int) -> float:
        """What the link carries; 0 of several, over which traffic goes together."""
        if links.are_several(self.scenario):
            return 0.0
        link = links.first(self.scenario)
        rate = link.get("rate" if way == 0 else "reverse_rate", link.get("rate"))
        return units.rate_bps(rate, "rate") if rate else 0.0

    def budget_s(self, key: str) -> float:
        return units.seconds(self.scenario.get("live", {}).get(key, BUDGET[key]), f"live.{key}")


def _history() -> deque[float]:
    return deque(maxlen=HISTORY)


class _Shown(Unseen):
    """What a screen and lines have in common."""

    def __init__(self, console: Console, bars: Bars | None = None) -> None:
        self._console = console
        self._bars = bars
        self._state: _State | None = None
        self._runs = 0

    def say(self, remarks: Sequence[str]) -> None:
        """Hears remarks before the first run."""
        for remark in remarks:
            shown = remark if len(remark) <= REMARK_WIDTH else f"{remark[: REMARK_WIDTH - 1].rsplit(',', 1)[0]}, …"
            sentence(self._console, Text.assemble(("note: ", "yellow"), shown))

    def expect(self, runs: int, size: Size) -> None:
        """Hears that runs are coming."""
        self._runs += runs

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        if self._bars is not None:
            self._bars.pause()
        number = 1 if self._state is None else self._state.number + 1
        self._state = _State(label, size.simulated_s, number)
        return number

    def about(self, run: int, scenario: Mapping[str, Any], clock: str) -> None:
        """Hears what a run is that has begun."""
        if self._state is not None:
            self._state.scenario, self._state.clock = scenario, clock

    def hear(self, text: str) -> None:
        """Hears what a program inside says."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        if self._state is not None:
            self._state.hear(tick)

    def _head(self, state: _State) -> str:
        which = f" ({state.number} of {self._runs})" if self._runs > 1 else ""
        return f"{state.label}{which}"


class Lines(_Shown, AbstractContextManager["Lines"]):
    """A line every few seconds."""

    def __init__(self, console: Console, bars: Bars | None = None) -> None:
        super().__init__(console, bars)
        self._due = 0.0

    def __enter__(self) -> Self:
        """Nothing to be set up."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lines stay."""

    def about(self, run: int, scenario: Mapping[str, Any], clock: str) -> None:
        """Hears what a run is that has begun."""
        super().about(run, scenario, clock)
        self._due = time.monotonic() + LINE_EVERY_S
        if self._state is not None:
            self._print(f"{self._head(self._state)}: live in {clock} time, {self._state.duration_s:g} s")

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        super().tick(run, tick)
        if self._state is not None and time.monotonic() >= self._due:
            self._due = time.monotonic() + LINE_EVERY_S
            self._print(line(self._state.tick))

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class Screen(_Shown, AbstractContextManager["Screen"]):
    """The run as it goes, redrawn in place; nothing of it stays."""

    def __init__(self, console: Console, bars: Bars | None = None) -> None:
        super().__init__(console, bars)
        self._live: Live | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes it away."""
        self._close()

    def __enter__(self) -> Self:
        """Shows nothing yet."""
        return self

    def begin(self, label: str, size: Size) -> int:
        """Hears that a run begins."""
        number = super().begin(label, size)
        if self._live is None:
            self._live = Live(console=self._console, transient=True, auto_refresh=True, refresh_per_second=5)
            self._live.start()
        return number

    def tick(self, run: int, tick: Mapping[str, Any]) -> None:
        """Hears how far a run is."""
        super().tick(run, tick)
        if self._live is not None and self._state is not None:
            self._live.update(picture(self._state, self._head(self._state)))

    def about(self, run: int, scenario: Mapping[str, Any], clock: str) -> None:
        """Hears what a run is that has begun."""
        super().about(run, scenario, clock)
        if self._live is not None and self._state is not None:
            self._live.update(picture(self._state, self._head(self._state)))

    def end(self, run: int) -> None:
        """Hears that a run has ended."""
        if self._state is not None and self._state.number >= self._runs:
            self._close()

    def _close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def on_standard_error(bars: Bars | None = None, *, beside_output: bool = False) -> Screen | Lines:
    """A screen where it is a terminal, in the place of the bars there; else lines, as beside a program's output."""
    console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False) if bars is None else bars.console
    return Screen(console, bars) if console.is_terminal and not beside_output else Lines(console, bars)


def line(tick: Mapping[str, Any]) -> str:
    """A run in one line."""
    parts = [f"{tick['time_s']:.0f}/{tick['duration_s']:.0f} s"]
    if "rate_bps" in tick:
        parts.append("rate " + " / ".join(units.say_rate(_at(tick, "rate_bps", way) or 0.0) for way in (0, 1)))
    if "queue_packets" in tick:
        parts.append("queue " + " / ".join(f"{_at(tick, 'queue_packets', way) or 0:,.0f}" for way in (0, 1)))
    if "queue_delay_s" in tick:
        parts.append("delay " + " / ".join(_ms(_at(tick, "queue_delay_s", way)) for way in (0, 1)))
    counts = [key for key in ("drops", "marks") if key in tick]
    parts += [f"{key} " + " / ".join(f"{_at(tick, key, way) or 0:,.0f}" for way in (0, 1)) for key in counts]
    if tick.get("exchanges"):
        times = tick.get("response_s") or {}
        said = ", ".join(f"{key} {_ms(times.get(key))}" for key in ("p50", "p95", "p99") if key in times)
        parts.append(f"{tick['exchanges']:,} exchanges" + (f" ({said})" if said else ""))
    if late := tick.get("lateness_s"):
        parts.append(f"late p99 {_ms(late.get('p99'))}, max {_ms(late.get('max'))}, {tick.get('stalls', 0)} stalls")
    return "  ".join(parts)


def picture(state: _State, head: str) -> RenderableType:
    """The screen."""
    tick = state.tick
    at_s, whole_s = float(tick.get("time_s", 0.0)), state.duration_s
    wall_s = time.monotonic() - state.started
    left_s = (whole_s - at_s) * (wall_s / at_s) if at_s > 0 else None
    clock = "virtual time" if state.clock == "virtual" else "real time"
    # A kernel needs a moment before its clock begins to run.
    waits = "" if tick else "  making hosts and link …"
    top = Table.grid(expand=True, padding=(0, 1))
    top.add_column(ratio=1)
    top.add_column(justify="right", no_wrap=True)
    bar = ProgressBar(total=whole_s, completed=at_s, complete_style="cyan", finished_style="cyan")
    top.add_row(bar, Text(f"{clock_text(at_s)} of {clock_text(whole_s)}   {clock_text(left_s)} left", style="cyan"))
    return Panel(
        Group(top, Text(waits, style="dim"), _links(state), Text(""), _hosts(state)),
        title=Text.assemble((f" {head} ", "bold"), ("· live in ", "dim"), (f"{clock} ", "dim")),
        title_align="left",
        subtitle=Text(_subtitle(state), style="dim"),
        subtitle_align="right",
        border_style="bright_black",
        box=box.ROUNDED,
        padding=(1, 2),
    )


def _subtitle(state: _State) -> str:
    link = links.first(state.scenario)
    kind = str(link.get("qdisc", {}).get("kind", ""))
    if state.scenario.get("live", {}).get("qdisc") == "kernel":
        kind = f"the kernel's {kind}"
    tcp = state.scenario.get("tcp", {})
    words = [units.say_rate(state.link_bps(0)) if link else "", kind, str(tcp.get("cc", ""))]
    if links.are_several(state.scenario):
        words[:2] = [" and ".join(links.of(state.scenario)), "what left the last link, what waits at all"]
    if tcp.get("ecn", "off") != "off":
        words.append("ECN")
    return f" {' · '.join(filter(None, words))} " if link else ""


def _links(state: _State) -> Table:
    """Both directions, side by side."""
    table = Table.grid(expand=True, padding=(0, 2))
    table.add_column(style="dim", no_wrap=True, width=10)
    for _ in WAYS:
        table.add_column(ratio=1, no_wrap=True)
    table.add_row("", *(Text(way, style="bold") for way in WAYS))
    table.add_row("rate", *(_rate(state, way) for way in (0, 1)))
    table.add_row("", *(_gauge(state, way) for way in (0, 1)))
    table.add_row("")
    table.add_row("queue", *(_queue(state, way) for way in (0, 1)))
    table.add_row("delay", *(_delay(state, way) for way in (0, 1)))
    table.add_row("", *(_Spark(state.delays[way], "magenta") for way in (0, 1)))
    table.add_row("drops", *(_count(state, "drops", way, "red") for way in (0, 1)))
    table.add_row("marks", *(_count(state, "marks", way, "yellow") for way in (0, 1)))
    return table


def _rate(state: _State, way: int) -> Text:
    rate, link = _at(state.tick, "rate_bps", way), state.link_bps(way)
    if rate is None:
        return Text("–", style="dim")
    share = f"  {100 * rate / link:.0f} % of {units.say_rate(link)}" if link else ""
    return Text.assemble((f"{units.say_rate(rate):<10}", "bold green"), (share, "dim"))


def _gauge(state: _State, way: int) -> RenderableType:
    link = state.link_bps(way)
    if not link:
        return Text("")
    rate = _at(state.tick, "rate_bps", way) or 0.0
    return ProgressBar(total=link, completed=min(rate, link), complete_style="green", finished_style="green")


def _queue(state: _State, way: int) -> Text:
    held = _at(state.tick, "queue_packets", way)
    return Text("–", style="dim") if held is None else Text.assemble((f"{held:,.0f}", "bold"), (" packets", "dim"))


def _delay(state: _State, way: int) -> Text:
    delay = _at(state.tick, "queue_delay_s", way)
    if delay is None:
        return Text("–", style="dim")
    highest = max(state.delays[way], default=0.0)
    return Text.assemble((_ms(delay), "bold magenta"), (f"  at most {_ms(highest)}", "dim"))


def _count(state: _State, key: str, way: int, style: str) -> Text:
    count = _at(state.tick, key, way)
    if count is None:
        return Text("–", style="dim")
    return Text(f"{count:,.0f}", style=style if count else "dim")


def _hosts(state: _State) -> Table:
    """What users see, and how well the test bed keeps time."""
    tick = state.tick
    table = Table.grid(expand=True, padding=(0, 2))
    table.add_column(style="dim", no_wrap=True, width=10)
    table.add_column(ratio=1, no_wrap=True)
    times = tick.get("response_s") or {}
    exchanges = Text.assemble(
        (f"{tick.get('exchanges', 0):,}", "bold"),
        (" done", "dim"),
        *(
            part
            for key, title in (("p50", "median"), ("p95", "95 %"), ("p99", "99 %"))
            if times.get(key) is not None
            for part in ((f"   {title} ", "dim"), (_ms(times[key]), "bold blue"))
        ),
    )
    table.add_row("exchanges", exchanges)
    table.add_row("open", Text.assemble((f"{tick.get('connections', 0):,}", "bold"), (" connections", "dim")))
    late = tick.get("lateness_s") or {}
    cells: list[tuple[str, str]] = []
    for key, title, limit in (("p99", "99 %", "lateness"), ("max", "longest", "lateness_max")):
        value, most = late.get(key), state.budget_s(limit)
        if value is not None:
            style = "bold green" if value <= most else "bold red"
            cells += [(f"{title} ", "dim"), (_ms(value), style), (f" of {_ms(most)}   ", "dim")]
    stalls = int(tick.get("stalls") or 0)
    cells += [(f"{stalls:,}", "bold" if stalls else "dim"), (" stall" + ("" if stalls == 1 else "s"), "dim")]
    table.add_row("lateness", Text.assemble(*cells))
    return table


class _Spark:
    """The last values as a row of little bars, the highest of them full."""

    def __init__(self, values: Sequence[float], style: str) -> None:
        self._values = values
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Shows as many as there is room for."""
        shown = list(self._values)[-options.max_width :]
        top = max(shown, default=0.0) or 1.0
        yield Text(
            "".join(LEVELS[max(1, round(value / top * (len(LEVELS) - 1)))] for value in shown), style=self._style
        )

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """From one to all."""
        return Measurement(1, options.max_width)


def _at(tick: Mapping[str, Any], key: str, way: int) -> float | None:
    values = tick.get(key)
    if not isinstance(values, Sequence) or len(values) <= way or values[way] is None:
        return None
    return float(values[way])


def _ms(value: float | None) -> str:
    """A time as short as it can be read."""
    return "–" if value is None else units.say_seconds(value)
