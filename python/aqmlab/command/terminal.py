"""What the command line shows on a terminal: short tables."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from aqmlab import links, units
from aqmlab.results import readable

if TYPE_CHECKING:  # results take a second to load, and a list of disciplines shows none
    from aqmlab.claims import Claim
    from aqmlab.comparison import Column, Comparison
    from aqmlab.explained import WorkedOut
    from aqmlab.json_files import Json
    from aqmlab.results.result import Result
    from aqmlab.runs.calibration import Calibration
    from aqmlab.runs.recording import Recording
    from aqmlab.separately import Part
    from aqmlab.statistics import Interval
    from aqmlab.vectors import Converted

Row = dict[str, Any]

_TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_RATES = (("tbit", 1e12), ("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0))
_NUMBER = re.compile(r"([0-9]+\.[0-9]+)([a-z]*)")


PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
"""Names that people give are text: brackets and colons in them mean nothing."""


def console() -> Console:
    """Standard output; wide enough for a table where it is no terminal."""
    made = Console(**PLAIN)
    return made if made.is_terminal else Console(**PLAIN, width=max(made.width, 120))


def _table(title: str | None = None) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def _cell(interval: Interval, unit: str, signed: bool = False) -> Text:
    value, width = readable.with_width(interval, unit, signed)
    return Text.assemble(value, (f" {width}" if width else "", "dim"))


def result(out: Console, found: Result) -> None:
    """The short table at the end of `run`."""
    from aqmlab.results import held_back, transport

    summary, widths = found.summary, found.summary.get("half_width_95", {})
    void = " (void)" if found.void else ""
    title = f"{found.name}{void}: {summary['measured_s']:g} s measured, {len(found.runs)} run(s)"
    if links.are_several(found.scenario):
        _links(out, title, [("", found)])
    else:
        out.print(_link(title, summary, widths))
    _exchanges(out, summary, widths)
    figures = transport.shown([found])
    if figures:
        table = _table()
        table.add_column("hosts", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
        for figure in figures:
            interval = figure.over(found)
            table.add_row(figure.title, "–" if interval is None else _cell(interval, figure.unit))
        out.print(table)
    findings(out, held_back.of_results([(found.name, found)]))
    if found.live:
        out.print(Text(_how_late(found), style="dim"), soft_wrap=True)
        if inside := readable.program(found):
            out.print(Text(inside, style="dim"), soft_wrap=True)
    voids(out, [(found.name, found.void)])
    unsettled(out, [(found.name, found)])


_OF_LINK = (
    ("used\n%", "utilisation", "share"),
    ("throughput\n", "throughput_bps", "bps"),
    ("loss\n%", "loss_ratio", "share"),
    ("marked\n%", "mark_ratio", "share"),
    ("delay, mean\nms", "queue_delay_mean_s", "s"),
    ("delay, 99 %\nms", "queue_delay_p99_s", "s"),
)
"""Figures of each of several links."""


def _links(out: Console, title: str, found: Sequence[tuple[str, Result]]) -> None:
    """Each link and direction of some results, and what packets waited at each link of their route."""
    from aqmlab.results import by_link

    table = _table(title)
    are_named = len(found) > 1
    for head in [""] * are_named + ["link", ""]:
        table.add_column(head, no_wrap=True)
    for head, _, _ in _OF_LINK:
        table.add_column(head, justify="right", no_wrap=True)
    for name, one in found:
        for port in by_link.ports(one.scenario, one.summary):
            cells = [_number(port.figures[key], port.widths.get(key), unit) for _, key, unit in _OF_LINK]
            table.add_row(*[name] * are_named, port.link, port.way, *cells)
    out.print(table)
    every = [(name, one, by_link.crossings(one.scenario, one.summary)) for name, one in found]
    names = list(dict.fromkeys(link for _, one, _ in every for link in links.of(one.scenario)))
    table = _table()
    for head in [""] * are_named + ["mean wait, ms", ""]:
        table.add_column(head, no_wrap=True)
    for head in (*names, "together"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, _, crossings in every:
        for crossing in crossings:
            waits = {wait.link: readable.say(wait.mean_s, "s") for wait in crossing.waits}
            cells = [*(waits.get(link, "") for link in names), readable.say(crossing.together_s, "s")]
            table.add_row(*[name] * are_named, crossing.title, crossing.way, *cells)
    if table.row_count:
        out.print(table)


def _link(title: str, summary: Json, widths: Json) -> Table:
    """The one link, both directions."""
    table = _table(title)
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
    return table


def _exchanges(out: Console, summary: Json, widths: Json) -> None:
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


def _how_late(found: Result) -> str:
    """How a live result was made."""
    late = (found.summary.get("live") or {}).get("lateness_s") or {}
    words = [
        f"{title} {units.say_seconds(late[key])}"
        for key, title in (("p50", "median"), ("p99", "99 %"), ("max", "longest"))
        if late.get(key) is not None
    ]
    how = f"Live in {found.live['clock']} time on Linux {found.live.get('kernel') or '?'}"
    return f"{how}; lateness {', '.join(words)}." if words else f"{how}."


def findings(out: Console, lines: Sequence[str]) -> None:
    """What is to be known of a run before its figures are believed to be the link's."""
    for line in lines:
        out.print(Text(f"{line}.", style="yellow"), soft_wrap=True)


def voids(out: Console, found: Sequence[tuple[str, str | None]]) -> None:
    """Which live runs do not count, and why."""
    for name, reason in found:
        if reason:
            out.print(Text.assemble((f"{name} is void: ", "bold red"), reason), soft_wrap=True)


def unsettled(out: Console, found: Sequence[tuple[str, Result]]) -> None:
    """Which results are still on their way to where they will stay, as far as that can be told."""
    from aqmlab.results import settled

    for name, one in found:
        if words := settled.said(one.settled):
            out.print(Text.assemble((f"{name}: ", "yellow"), words), soft_wrap=True)


def _number(value: float | None, width: float | None, unit: str) -> str:
    from aqmlab.statistics import Interval

    number = math.nan if value is None else value
    return " ".join(filter(None, readable.with_width(Interval(number, width, 0, "runs"), unit)))


def comparison(out: Console, found: Comparison, subject: str = "", lead: str = "") -> None:
    """The tables at the end of `compare`, between what was compared and the answer in a sentence."""
    from aqmlab import separately
    from aqmlab.results import held_back, transport

    if subject:
        out.print(Text(subject, style="dim"))
    table = _table(found.name)
    table.add_column("", no_wrap=True)
    columns = [
        ("used\n%", "utilisation", "share"),
        ("loss\n%", "loss_ratio", "share"),
        ("marked\n%", "mark_ratio", "share"),
        *_users_get(found, "%"),
    ]
    for title, _, _ in columns:
        table.add_column(title, justify="right")
    base = found.baseline
    for column in found.columns:
        table.add_row(
            Text(column.label, style="bold red" if column.void else "bold" if column is base else ""),
            *(readable.say(column.estimate(measure).value, unit) for _, measure, unit in columns),
            style="dim" if column.uncongested else "",
        )
    out.print(table)
    if links.are_several(base.scenario):
        _links(out, "Each link", [(column.label, column.result) for column in found.columns])
    if figures := transport.shown([column.result for column in found.columns]):
        table = _table()
        table.add_column("", no_wrap=True)
        for figure in figures:
            table.add_column(figure.heading, justify="right", no_wrap=True)
        for column in found.columns:
            values = [figure.over(column.result) for figure in figures]
            table.add_row(
                Text(column.label, style="bold" if column is base else ""),
                *("–" if v is None else readable.say(v.value, f.unit) for v, f in zip(values, figures, strict=True)),
                style="dim" if column.uncongested else "",
            )
        out.print(table)
    others = [column for column in found.congested if column is not found.base_of(column)]
    if others:
        out.print(_differences(found, base, others))
    for part in separately.of(found):
        out.print(_part(part, base))
    findings(out, held_back.of_results([(column.name, column.result) for column in found.congested]))
    voids(out, [(column.name, column.void) for column in found.columns])
    unsettled(out, [(column.name, column.result) for column in found.columns])
    several = links.are_several(base.scenario)
    where = f" of {next(iter(links.of(base.scenario)))}, the first link" if several else ""
    note = f"Used, loss and marked: both directions{where} together. {readable.basis(found.reps)}"
    out.print(Text(note, style="dim"))
    if lead:
        out.print(Text(lead, style="bold"))


def _users_get(found: Comparison, share: str) -> list[tuple[str, str, str]]:
    """The columns of exchanges; where nobody makes any, what packets wait."""
    if not any(column.completed > 0 for column in found.columns):
        return [("queueing\ndelay, ms", "queue_delay_mean_s", "s")]
    return [
        ("completed\n", "completed", "count"),
        ("median\nms", "p50", "s"),
        ("90 %\nms", "p90", "s"),
        (f"in 0.5 s\n{share}", "share_under_500ms", "share"),
    ]


def _part(part: Part, base: Column) -> Table:
    table = _table(part.title)
    table.add_column("", no_wrap=True)
    for title, _, _ in part.headings:
        table.add_column(title, justify="right")
    for column, found in part.rows:
        said = [readable.said_apart(one, unit) for one, (_, unit, _) in zip(found, part.headings, strict=True)]
        table.add_row(
            Text(column.label, style="bold red" if column.void else "bold" if column is base else ""),
            *(Text.assemble(value, (f" {width}" if width else "", "dim")) for value, width in said),
            style="dim" if column.uncongested else "",
        )
    return table


def _differences(found: Comparison, base: Column, others: Sequence[Column]) -> Table:
    each = ", each witness against its own" if found.witnesses else ""
    table = _table(f"Against {base.name}, under the same demands{each}")
    table.add_column("", no_wrap=True)
    columns = [
        ("loss\npoints", "loss_ratio", "share"),
        *_users_get(found, "points"),
    ]
    for title, _, _ in columns:
        table.add_column(title, justify="right")
    for column in others:
        own = found.base_of(column)
        note = "" if found.are_paired(column, own) else " (other demands)"
        cells = [_cell(found.difference(column, own, measure), unit, signed=True) for _, measure, unit in columns]
        table.add_row(column.label + note, *cells)
    return table


def verdicts(out: Console, found: Sequence[Claim]) -> None:
    """One line for all claims, and one for each that does not hold."""
    if not found:
        return
    counts = [f"{sum(c.verdict == v for c in found)} {v}" for v in ("holds", "does not hold", "cannot be decided")]
    out.print(Text(f"Claims of the studies: {', '.join(counts)}.", style="bold"))
    here = [claim for claim in found if claim.verdict == "cannot be decided" and claim.unbelieved]
    if here:
        known = [claim.at_full_scale["verdict"] for claim in here if claim.at_full_scale is not None]
        full = [f"{known.count(v)} {v}" for v in dict.fromkeys(known)]
        at = f"; at the published scale, of these: {', '.join(full)}" if full else ""
        out.print(
            Text(f"{len(here)} cannot be decided here, where runs are not known to be settled{at}."), soft_wrap=True
        )


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


def recording(out: Console, found: Recording) -> None:
    """What was recorded, and where it lies."""
    rates = found.uncongested_rate_bps, found.uncongested_reverse_rate_bps
    table = _table(f"recorded on the uncongested link of {units.say_rates(rates)}")
    for name in ("connections", "exchanges", "response bytes"):
        table.add_column(name, justify="right")
    table.add_column("file", overflow="fold")
    for d in found.demands:
        table.add_row(f"{d.connections:,}", f"{d.exchanges:,}", f"{d.response_bytes:,}", d.file)
    out.print(table)
    out.print(f"Replayed by {found.scenario}", markup=False, soft_wrap=True)


def registry(out: Console, title: str, rows: Sequence[Row]) -> None:
    """What there is of one kind."""
    table = _table(title)
    # The less between the columns, the more for the last one, where the words are.
    table.padding = (0, 1, 0, 0)
    table.add_column("name", style="bold", no_wrap=True)
    have_years = all("marks" in row for row in rows)
    if have_years:
        table.add_column("year", style="dim", no_wrap=True)
        table.add_column("kind", no_wrap=True)
        table.add_column("ECN", no_wrap=True)
    table.add_column("what it is")
    for row in rows:
        facts = [str(row["year"]), row["kind"], "marks" if row["marks"] else "–"] if have_years else []
        aliases = f" Also called {', '.join(row['aliases'])}." if row.get("aliases") else ""
        table.add_row(row["name"], *facts, Text.assemble(row["doc"], (aliases, "dim")))
    out.print(table)


def explanation(out: Console, row: Row) -> None:
    """One discipline, stack or traffic model with all its numbers."""
    out.print(_head(row))
    out.print(row["doc"], markup=False)
    if row.get("source"):
        out.print(Text(str(row["source"]), style="dim"))
    if row.get("aliases"):
        out.print(f"Also called {', '.join(row['aliases'])}.", markup=False)
    if params := row.get("params"):
        lines = [(param["name"], _default(param), range_text(param)) for param in params]
        _entries(out, ("parameter", "default", "range"), lines, [(p["doc"], p.get("source")) for p in params])
        if gauges := row.get("gauges"):
            shown = [(g["name"], g["unit"] or "–", g["column"]) for g in gauges]
            _entries(out, ("it shows", "unit", "column of queue.parquet"), shown, [(g["doc"], None) for g in gauges])
    elif values := row.get("values"):
        table = _table()
        table.add_column("value of", style="bold", no_wrap=True)
        table.add_column("")
        table.add_column("source", style="dim")
        for value in values:
            table.add_row(value["name"], str(value["value"]), str(value.get("source") or ""))
        out.print(table)


def worked_out(out: Console, found: WorkedOut) -> None:
    """A discipline's parameters before a link: first what was computed, then what was given, then the defaults."""
    out.print(Text.assemble(_head(found.row), f", before a link of {units.say_rate(found.rate_bps)}"))
    others = tuple(key for key in found.values if key not in (*found.given, *found.computed))
    groups = [("computed", found.computed), ("given", found.given), ("default", others)]
    width = max(len(key) for key in found.values)
    shown = {key: _shown(value) for key, value in found.values.items()}
    widest = max(map(len, shown.values()))
    for title, keys in groups:
        if keys:
            out.print()
        for position, key in enumerate(keys):
            line = Text.assemble((f"{title if position == 0 else '':10}", "dim"), (f"{key:{width}}  ", "bold"))
            line.append(f"{shown[key]:{widest}}", style="dim" if title == "default" else "")
            out.print(line)
    absent = [param["name"] for param in found.row["params"] if param["name"] not in found.values]
    if absent:
        out.print(Text(f"\nAbsent: {', '.join(absent)}.", style="dim"))
    if found.equilibrium is not None:
        _equilibrium(out, found, found.equilibrium)


def _equilibrium(out: Console, found: WorkedOut, at: dict[str, float]) -> None:
    queue_s = at["rtt_s"] - units.seconds(found.values["rtt"], "rtt")
    rows = [
        ("drop probability", f"{100 * at['drop_probability']:.3g} %"),
        ("queue", f"{at['queue_packets']:.4g} packets, {units.say_seconds(queue_s)}"),
        ("round-trip time", units.say_seconds(at["rtt_s"])),
        ("window of a flow", f"{at['window_packets']:.3g} packets"),
        ("left for TCP", f"{units.say_rate(at['tcp_bps'])}, {100 * at['tcp_bps'] / found.rate_bps:.3g} % of the link"),
    ]
    whose = "what UDP leaves of the link" if "udp_rate" in found.values else "the link"
    out.print(Text(f"\nEquilibrium: {_shown(found.values['flows'])} TCP flows just fill {whose}", style="bold"))
    for title, value in rows:
        out.print(f"{title:18}{value}", markup=False)
    if changed := [key for key in found.given if key in ("min", "max", "probability", "wq", "limit")]:
        verb = "was" if len(changed) == 1 else "were"
        out.print(Text(f"It is the model's own: {', '.join(changed)} {verb} given, not computed for it.", style="dim"))


def quantities(out: Console, rows: Sequence[Row]) -> None:
    """What is drawn: a line for each quantity, and for sizes how mice and elephants share the bytes."""
    if not rows:
        return
    table = _table()
    table.padding = (0, 1, 0, 0)
    table.add_column("", no_wrap=False)
    table.add_column("mean", justify="right", no_wrap=True)
    for share in ("10 %", "25 %", "median", "75 %", "90 %", "99 %"):
        table.add_column(share, justify="right", no_wrap=True)
    table.add_column("largest\n10 % have", justify="right", no_wrap=True)
    table.add_column("largest\n1 % have", justify="right", no_wrap=True)
    for row in rows:
        values = [row["quantiles"][f"p{q}"] for q in (10, 25, 50, 75, 90, 99)]
        mean = "infinite" if row["mean"] is None else _measured(row["mean"], row["unit"])
        carried = [row["share_of_largest"][key] for key in ("10%", "1%")]
        table.add_row(
            str(row["name"]),
            mean,
            *(_measured(value, row["unit"]) for value in values),
            *("–" if share is None else f"{100 * share:.3g} %" for share in carried),
        )
    out.print(table)
    for row in rows:
        up_to = row.get("up_to")
        if up_to and up_to["10kb"]["of_values"] < 1:
            parts = []
            for key, size in (("10kb", "10 kB"), ("1mb", "1 MB")):
                share = up_to[key]["of_bytes"]
                carry = "" if share is None else f" and have {_percent(share)} of the bytes"
                parts.append(f"{_percent(up_to[key]['of_values'])} are up to {size}{carry}")
            out.print(Text(f"{row['name']}: {'; '.join(parts)}", style="dim"), soft_wrap=True)


def _percent(share: float) -> str:
    # Close to all is not all.
    return f"{100 * share:.3g} %" if share < 0.995 or share == 1 else f"{100 * share:.5g} %"


def _measured(value: float, unit: str) -> str:
    match unit:
        case "bytes":
            for name, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
                if value >= size:
                    return f"{value / size:.3g} {name}"
            return f"{value:.3g} B"
        case "s":
            return units.say_seconds(value)
        case "share":
            return f"{100 * value:.3g} %"
    return f"{value:.3g}"


def described(out: Console, path: Path, found: Row) -> None:
    """A set of connection vectors."""
    both = found["initiator_bytes"] + found["acceptor_bytes"]
    out.print(Text.assemble((str(path), "bold")))
    out.print(
        f"{found['connections']:,} connections in {found['span_s']:,.6g} s, "
        f"{found['concurrent']:,} of them concurrent; "
        f"{_measured(both, 'bytes')}, {_percent(found['acceptor_bytes'] / both)} of them from acceptors"
    )
    quantities(out, found["quantities"])


def converted(out: Console, found: Converted) -> None:
    """What became of a capture, in a few lines."""
    count = {name: f"{value:,}" for name, value in found.as_dict().items() if isinstance(value, int)}
    out.print(
        f"{count['sequential']} sequential and {count['concurrent']} concurrent connections of "
        f"{found.duration_s:,.6g} s in {found.vectors}",
        markup=False,
        soft_wrap=True,
    )
    out.print(
        f"{count['initiator_bytes']} B from initiators, {count['acceptor_bytes']} B from acceptors; "
        f"{count['unfinished']} connections whose end is missing",
        soft_wrap=True,
    )
    left = [
        f"{count[key]} {text}"
        for key, text in (
            ("without_beginning", "whose SYNs are missing"),
            ("without_answer", "never answered"),
            ("without_data", "without data"),
            ("elsewhere", "from elsewhere"),
        )
        if count[key] != "0"
    ]
    if left:
        out.print(Text(f"Left out: connections {', '.join(left)}.", style="dim"), soft_wrap=True)
    odd = [
        f"{count[key]} {text}"
        for key, text in (
            ("unreadable_frames", "frames without whole headers or fragments"),
            ("missed_bytes", "bytes acknowledged but not captured"),
            ("earlier_frames", "frames earlier than one before them"),
            ("beyond_limits", "connections with times or sizes beyond what is read, cut to that"),
        )
        if count[key] != "0"
    ]
    if odd:
        out.print(Text(f"In the capture: {', '.join(odd)}.", style="dim"), soft_wrap=True)


def _head(row: Row) -> Text:
    facts = []
    if "marks" in row:
        ecn = "with ecn it marks" if row["marks"] else "drops only"
        facts = [str(row.get("kind") or ""), str(row["year"]), ecn]
    return Text.assemble((row["name"], "bold"), *((f" · {fact}", "") for fact in facts if fact))


def _entries(
    out: Console,
    titles: tuple[str, str, str],
    lines: Sequence[tuple[str, str, str]],
    notes: Sequence[tuple[str, str | None]],
) -> None:
    """One entry after another, name first, with what is to be said of it in full lines below: at any width readable."""
    first, second = (max(len(line[column]) for line in (titles, *lines)) for column in (0, 1))

    def line(cells: tuple[str, str, str], styles: tuple[str, str, str]) -> Table:
        # A range that is too long goes on below itself.
        grid = Table.grid(padding=(0, 2, 0, 0))
        for width, style in zip((first, second, None), styles, strict=True):
            grid.add_column(width=width, style=style)
        grid.add_row(*map(Text, cells))
        return grid

    out.print()
    out.print(line(titles, ("dim underline",) * 3))
    for cells, (doc, source) in zip(lines, notes, strict=True):
        out.print(line(cells, ("bold", "", "dim")))
        out.print(Padding(Text.assemble(doc, (f" [{source}]", "dim") if source else ""), (0, 0, 0, 4)))


def _default(param: Row) -> str:
    if param.get("default") not in (None, ""):
        return str(param["default"])
    return "computed" if param.get("computed") else "absent"


def range_text(param: Row) -> str:
    """What may be written: `0 to 4e9 packets or bytes`, `1us to 10s`."""
    if words := param.get("words"):
        return ", ".join(words)
    low, high = param.get("range") or (None, None)
    unit = str(param.get("unit") or "")
    # Times and rates as a scenario has them: each end with a unit of its own.
    sizes = {"s": _TIMES, "bit/s": _RATES}.get(unit)
    ends = [None if end is None else _short(end) if sizes is None else _scaled(end, sizes) for end in (low, high)]
    unit = unit if sizes is None else ""
    match ends:
        case [None, None]:
            text = ""
        case [None, _]:
            text = f"at most {ends[1]}"
        case [_, None]:
            text = f"at least {ends[0]}"
        case _:
            text = f"{ends[0]} to {ends[1]}"
    return f"{text} {unit}".strip()


def _scaled(x: float, sizes: Sequence[tuple[str, float]]) -> str:
    # Zero is in the unit itself.
    unit, size = next((pair for pair in sizes if pair[1] <= (x or 1.0)), sizes[-1])
    return f"{_short(x / size)}{unit}"


def _short(x: float) -> str:
    """A number as people write it, with an exponent where zeros would have to be counted."""
    if x == 0 or 1e-3 <= abs(x) < 1e5:
        return f"{x:.12g}"
    mantissa, exponent = f"{x:.12e}".split("e")
    return f"{float(mantissa):.12g}e{int(exponent)}"


def _shown(value: Any) -> str:
    """A value of a scenario to be read: numbers to four digits, units as they are written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.12g}" if float(value).is_integer() else f"{value:.4g}"
    number = _NUMBER.fullmatch(str(value))
    if number is None or len(number[1].replace(".", "")) <= 5:
        return str(value)
    return f"{float(number[1]):.5g}{number[2]}"
