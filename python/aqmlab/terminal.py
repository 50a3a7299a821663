"""What the command line shows on a terminal: short tables."""

import math
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aqmlab import units
from aqmlab.calibration import Calibration
from aqmlab.claims import Claim
from aqmlab.comparison import Column, Comparison
from aqmlab.results import Result
from aqmlab.statistics import Interval

Row = dict[str, Any]


def console() -> Console:
    """Standard output; wide enough for a table where it is no terminal."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=max(made.width, 120))


def say(value: float | None, unit: str, signed: bool = False, decimals: int | None = None) -> str:
    """A number in the unit in which people read it: shares in per cent, times in milliseconds."""
    if value is None or not math.isfinite(value):
        return "–"
    sign = "+" if signed and value > 0 else ""
    match unit:
        case "share":
            return f"{sign}{100 * value:.{2 if decimals is None else decimals}f}"
        case "count":
            return sign + units.say_count(value)
        case "s" if decimals is not None:
            return f"{sign}{1000 * value:,.{decimals}f}"
        case "s":
            return f"{sign}{1000 * value:.3g}" if abs(value) < 1 else f"{sign}{1000 * value:,.0f}"
        case "bps":
            return units.say_rate(value)
    return f"{sign}{value:.4g}"


def with_width(interval: Interval, unit: str, signed: bool = False) -> tuple[str, str]:
    """A number and its half width as two texts, `97.41` and `± 0.12`, with as many decimals as the width is worth."""

    def said(decimals: int | None) -> str:
        return say(interval.value, unit, signed, decimals).replace("-", "−")

    width = interval.half_width
    if width is None or not math.isfinite(width):
        return said(None), ""
    decimals = None
    if unit == "s":
        decimals = 0 if width >= 0.01 else 1 if width >= 0.001 else 2
    return said(decimals), f"± {say(width, unit, decimals=decimals)}"


def _table(title: str | None = None) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def _cell(interval: Interval, unit: str, signed: bool = False) -> Text:
    value, width = with_width(interval, unit, signed)
    return Text.assemble(value, (f" {width}" if width else "", "dim"))


def basis(reps: int) -> str:
    """Where the intervals of a comparison or result come from."""
    if reps > 1:
        return f"± 95 % t-interval across {reps} independent runs."
    return "One run: no interval across runs. ± 95 % from 20 parts of its window, too narrow for bursty traffic."


def result(out: Console, found: Result) -> None:
    """The short table at the end of `run`."""
    summary, widths = found.summary, found.summary.get("half_width_95", {})
    table = _table(f"{found.name}: {summary['measured_s']:g} s measured, {len(found.runs)} run(s)")
    table.add_column("link")
    for name in ("forward", "reverse"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [
        ("utilisation (%)", "utilisation", "share"),
        ("throughput", "throughput_bps", "bps"),
        ("loss (%)", "loss_ratio", "share"),
        ("marked (%)", "mark_ratio", "share"),
        ("queueing delay, mean (ms)", "queue_delay_mean_s", "s"),
        ("queueing delay, 99 % (ms)", "queue_delay_p99_s", "s"),
    ]
    for title, key, unit in rows:
        cells = [_number(summary[way][key], widths.get(way, {}).get(key), unit) for way in ("forward", "reverse")]
        table.add_row(title, *cells)
    out.print(table)
    exchanges, spread = summary["exchanges"], widths.get("exchanges", {})
    if exchanges["completed"]:
        table = _table()
        for title in ("exchanges\n", "median\nms", "90 %\nms", "99 %\nms", "in 0.5 s\n%", "in 2 s\n%"):
            table.add_column(title, justify="right")
        times, around = exchanges["response_time_s"], spread.get("response_time_s", {})
        table.add_row(
            _number(exchanges["completed"], spread.get("completed"), "count"),
            *(_number(times[key], around.get(key), "s") for key in ("p50", "p90", "p99")),
            *(_number(exchanges[key], spread.get(key), "share") for key in ("share_under_500ms", "share_under_2s")),
        )
        out.print(table)


def _number(value: float | None, width: float | None, unit: str) -> str:
    number = math.nan if value is None else value
    return " ".join(filter(None, with_width(Interval(number, width, 0, "runs"), unit)))


def comparison(out: Console, found: Comparison) -> None:
    """The tables at the end of `compare`."""
    table = _table(found.name)
    table.add_column("", no_wrap=True)
    columns = [
        ("used\n%", "utilisation", "share"),
        ("loss\n%", "loss_ratio", "share"),
        ("marked\n%", "mark_ratio", "share"),
        ("completed\n", "completed", "count"),
        ("median\nms", "p50", "s"),
        ("90 %\nms", "p90", "s"),
        ("in 0.5 s\n%", "share_under_500ms", "share"),
    ]
    for title, _, _ in columns:
        table.add_column(title, justify="right")
    base = found.baseline
    for column in found.columns:
        table.add_row(
            Text(column.name, style="bold" if column is base else ""),
            *(say(column.estimate(measure).value, unit) for _, measure, unit in columns),
            style="dim" if column.uncongested else "",
        )
    out.print(table)
    others = [column for column in found.congested if column is not base]
    if others:
        out.print(_differences(found, base, others))
    out.print(Text(basis(found.reps), style="dim"))


def _differences(found: Comparison, base: Column, others: Sequence[Column]) -> Table:
    table = _table(f"Against {base.name}, under the same demands")
    table.add_column("", no_wrap=True)
    columns = [
        ("loss\npoints", "loss_ratio", "share"),
        ("completed\n", "completed", "count"),
        ("median\nms", "p50", "s"),
        ("90 %\nms", "p90", "s"),
        ("in 0.5 s\npoints", "share_under_500ms", "share"),
    ]
    for title, _, _ in columns:
        table.add_column(title, justify="right")
    for column in others:
        note = "" if found.are_paired(column, base) else " (other demands)"
        cells = [_cell(found.difference(column, base, measure), unit, signed=True) for _, measure, unit in columns]
        table.add_row(column.name + note, *cells)
    return table


def verdicts(out: Console, found: Sequence[Claim]) -> None:
    """One line for all claims, and one for each that does not hold."""
    if not found:
        return
    counts = [f"{sum(c.verdict == v for c in found)} {v}" for v in ("holds", "does not hold", "cannot be decided")]
    out.print(Text(f"Claims of the studies: {', '.join(counts)}.", style="bold"))


def calibrations(out: Console, found: Sequence[Calibration]) -> None:
    """The fit behind each load."""
    for c in found:
        table = _table(f"traffic.{c.traffic}: {units.say_rate(c.load_bps)} in one direction, {c.direction}")
        table.add_column("users", justify="right")
        table.add_column("offered on the uncongested link", justify="right")
        table.add_column("fit", justify="right")
        for point in c.points:
            fit = c.intercept_bps + c.slope_bps_per_user * point.users
            style = "bold" if point.users == c.users else ""
            table.add_row(
                f"{point.users:,}", units.say_rate(point.throughput_bps, 5), units.say_rate(fit, 5), style=style
            )
        out.print(table)
        window = "" if c.window_error is None else f", other windows vary by about ±{c.window_error:.1%}"
        each = ", ".join(f"{way} {units.say_rate(bps)}" for way, bps in c.confirmed_each_bps.items())
        out.print(
            Text.assemble(
                (f"{c.users:,} users", "bold"),
                f" offer {units.say_rate(c.confirmed_bps, 5)} ({c.error:+.2%}; {each}); "
                f"{c.proportional_bps_per_user:,.0f} b/s a user, fit within "
                f"{units.say_rate(c.residual_rms_bps, 2)} rms{window}{' (from the cache)' if c.cached else ''}",
            )
        )


def registry(out: Console, title: str, rows: Sequence[Row]) -> None:
    """What there is of one kind."""
    table = _table(title)
    table.add_column("name", style="bold")
    table.add_column("what it is")
    table.add_column("source", style="dim")
    for row in rows:
        aliases = f" ({', '.join(row['aliases'])})" if row.get("aliases") else ""
        source = row.get("source") or ""
        table.add_row(row["name"] + aliases, row["doc"], source)
    out.print(table)


def explanation(out: Console, row: Row) -> None:
    """One discipline, stack or traffic model with all its numbers."""
    source = str(row.get("source") or "")
    year = f", {row['year']}" if row.get("year") and str(row["year"]) not in source else ""
    out.print(Text(row["name"], style="bold"))
    out.print(row["doc"], markup=False)
    if source:
        out.print(Text(f"{source}{year}", style="dim"))
    if row.get("aliases"):
        out.print(f"Also called {', '.join(row['aliases'])}.", markup=False)
    if "marks" in row:
        out.print("Marks ECN-capable packets if ecn is set." if row["marks"] else "Drops only; marks nothing.")
    table = _table()
    if params := row.get("params"):
        for title in ("parameter", "default", "range", "what it does", "source of the default"):
            table.add_column(title, style="dim" if title.startswith("source") else "")
        for param in params:
            default = str(param.get("default") if param.get("default") not in (None, "") else "computed")
            table.add_row(param["name"], default, _range(param), param["doc"], param["source"])
    else:
        for title in ("value of", "", "source"):
            table.add_column(title, style="dim" if title == "source" else "")
        for value in row.get("values", []):
            table.add_row(value["name"], str(value["value"]), str(value.get("source") or ""))
    if table.row_count:
        out.print(table)


def _range(param: Row) -> str:
    bounds, unit = param.get("range"), param.get("unit") or ""
    if not bounds or not all(isinstance(bound, int | float) for bound in bounds):
        return str(bounds or "")
    return f"{bounds[0]:g} to {bounds[1]:g} {unit}".strip()
