"""What the command line shows of runs on a terminal: short tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from aqmlab import links, units
from aqmlab.command.tables import has_widths, sentence, short_table, show
from aqmlab.results import readable, ways

if TYPE_CHECKING:  # results take a second to load, and a list of disciplines shows none
    from aqmlab.claims import Claim
    from aqmlab.comparison import Column, Comparison
    from aqmlab.json_files import Json
    from aqmlab.results.result import Result
    from aqmlab.runs.calibration import Calibration
    from aqmlab.runs.recording import Recording
    from aqmlab.separately import Part
    from aqmlab.statistics import Interval

PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
"""Names that people give are text: brackets and colons in them mean nothing."""


def console() -> Console:
    """Standard output; wide enough for a table where it is no terminal."""
    made = Console(**PLAIN)
    return made if made.is_terminal else Console(**PLAIN, width=max(made.width, 120))


def _cell(interval: Interval, unit: str, signed: bool = False) -> Text:
    return _text(readable.with_width(interval, unit, signed))


def _text(said: tuple[str, str]) -> Text:
    """A number and its half width, as `readable` says them."""
    value, width = said
    return Text.assemble(value, (f" {width}" if width else "", "dim"))


def result(out: Console, found: Result) -> None:
    """The short table at the end of `run`."""
    from aqmlab import applications
    from aqmlab.comparison import Column, Entry, ways_of_data
    from aqmlab.results import by_link, transport
    from aqmlab.results.findings import findings_of

    summary, widths = found.summary, found.summary.get("half_width_95", {})
    void = " (void)" if found.void else ""
    runs = f"{len(found.runs)} run{'s' * (len(found.runs) != 1)}"
    title = f"{found.name}{void}: {summary['measured_s']:g} s measured, {runs}"
    column = Column(Entry(found.name, ".", uncongested=False), found)
    if parts := applications.of([column]):  # what people get comes first
        sentence(out, title, "bold")
        title = "Each link" if links.are_several(found.scenario) else "The link"
    for part in parts:
        show(out, _part(part, column))
    if links.are_several(found.scenario):
        _links(out, title, [("", found)])
    else:
        show(out, _link(title, summary, widths, turned=ways_of_data([column])[0] == "reverse"))
    if over := by_link.over_full([found]):
        sentence(out, over, "dim")
    _exchanges(out, found)
    _why_missing(out, [column])
    figures = transport.shown([found])
    if figures:
        table = short_table()
        table.add_column("hosts", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
        for figure in figures:
            interval = figure.over(found)
            table.add_row(figure.title, "–" if interval is None else _cell(interval, figure.unit))
        show(out, table)
    findings(out, findings_of([(found.name, found)]))
    if found.live:
        sentence(out, _how_late(found), "dim")
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


def _links(out: Console, title: str, found: Sequence[tuple[str, Result]]) -> list[Table]:
    """Shows each link and direction of some results, and what packets waited at each link of their route."""
    from aqmlab.results import by_link

    table = ports = short_table(title)
    are_named = len(found) > 1
    for head in [""] * are_named + ["link", ""]:
        table.add_column(head, no_wrap=True)
    rows = [(name, port) for name, one in found for port in by_link.ports(one.scenario, one.summary)]
    units_read = [
        readable.of_column(unit, [_interval(port.figures[key]) for _, port in rows]) for _, key, unit in _OF_LINK
    ]
    for (head, _, _), unit in zip(_OF_LINK, units_read, strict=True):
        table.add_column(readable.headed(head, unit), justify="right", no_wrap=True)
    for name, port in rows:
        cells = [
            _number(port.figures[key], port.widths.get(key), unit)
            for (_, key, _), unit in zip(_OF_LINK, units_read, strict=True)
        ]
        table.add_row(*[name] * are_named, port.link, port.way, *cells)
    show(out, table, names=2 + are_named)
    every = [(name, one, by_link.crossings(one)) for name, one in found]
    names = list(dict.fromkeys(link for _, one, _ in every for link in links.of(one.scenario)))
    table = short_table()
    for head in [""] * are_named + ["mean wait, ms", ""]:
        table.add_column(head, no_wrap=True)
    for head in (*names, "together"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, _, crossings in every:
        for crossing in crossings:
            waits = {wait.link: _cell(wait.mean_s, "s") for wait in crossing.waits}
            waited = [*(waits.get(link, Text()) for link in names), _cell(crossing.together_s, "s")]
            table.add_row(*[name] * are_named, crossing.title, crossing.way, *waited)
    if table.row_count:
        show(out, table, names=2 + are_named)
    return [ports, table]


def _link(title: str, summary: Json, widths: Json, turned: bool) -> Table:
    """The one link, both directions: `turned` if that in reverse stands first, as on the page."""
    table = short_table(title)
    table.add_column("link")
    both = links.WAYS[::-1] if turned else links.WAYS
    for name in both:
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
        cells = [_number(summary[way][key], widths.get(way, {}).get(key), unit) for way in both]
        table.add_row(title, *cells)
    return table


def _exchanges(out: Console, found: Result) -> None:
    """As on pages; how long they took is read off the table of all, where the summary has three digits."""
    if found.summary["exchanges"]["completed"]:
        table = short_table()
        for title in ("exchanges\n", "median\nms", "90 %\nms", "99 %\nms", "in 0.5 s\n%", "in 2 s\n%"):
            table.add_column(title, justify="right")
        shown = ("completed", "p50", "p90", "p99", "share_under_500ms", "share_under_2s")
        numbers = [one if len(found.runs) > 1 else replace(one, half_width=None) for one in map(found.estimate, shown)]
        cases = numbers[0].value * len(found.runs)
        read = zip(numbers, ("count", "s", "s", "s", "share", "share"), strict=True)
        table.add_row(*(_text(readable.of_cases(one, unit, cases)) for one, unit in read))
        show(out, table, names=0)


def _why_missing(out: Console, columns: Sequence[Column]) -> None:
    """Why a table has no response times of exchanges."""
    from aqmlab import separately

    if why := separately.without_exchanges(columns):
        sentence(out, why, "dim")


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
        sentence(out, f"{line}.", "yellow")


def voids(out: Console, found: Sequence[tuple[str, str | None]]) -> None:
    """Which live runs do not count, and why."""
    for name, reason in found:
        if reason:
            sentence(out, Text.assemble((f"{name} is void: ", "bold red"), reason))


def unsettled(out: Console, found: Sequence[tuple[str, Result]]) -> None:
    """Which results are still on their way to where they will stay, as far as that can be told."""
    from aqmlab.results import settled

    for name, one in found:
        if words := settled.said(one.settled):
            sentence(out, Text.assemble((f"{name}: ", "yellow"), words))


def _number(value: float | None, width: float | None, unit: str) -> str:
    return " ".join(filter(None, readable.with_width(_interval(value, width), unit)))


def _interval(value: float | None, width: float | None = None) -> Interval:
    from aqmlab.statistics import Interval

    return Interval(math.nan if value is None else value, width, 0, "runs")


def comparison(out: Console, found: Comparison, subject: str = "", lead: str = "") -> None:
    """The tables at the end of `compare`, between what was compared and the answer in a sentence."""
    from aqmlab import applications, separately
    from aqmlab.results import by_link, transport
    from aqmlab.results.findings import findings_of

    if subject:
        out.print(Text(subject, style="dim"))
    base = found.baseline
    several = found.has_several_links
    tables: list[Table] = []
    are_alike = False
    felt = applications.of(found.columns, found)
    if felt:
        sentence(out, found.name, "bold")
    for part in felt:  # what people get comes first
        are_alike |= _show_part(out, part, base, tables)
    there = [] if several else found.ways_of_data
    users = _users_get(found, "%")
    columns = [*users, *(_link_gives(there[0]) if there else [])]
    shown = [_values(found, "Requests of all kinds" if felt else f"{found.name}: exchanges", users)] if users else []
    for way in there:
        turned = ", whose queue is longer" if there == ["reverse", "forward"] and way == "reverse" else ""
        before = "The link, " if felt or shown else f"{found.name}: the link "
        shown.append(_values(found, f"{before}{ways.WORDS[way]}{turned}", _link_gives(way)))
    for table in shown:
        show(out, table)
    tables += shown
    _why_missing(out, found.columns)
    if several:
        tables += _links(out, "Each link", [(column.label, column.result) for column in found.columns])
    results = [column.result for column in found.columns]
    if hosts := transport.columns(results, are_apart=bool(separately.ways(found))):
        table = short_table("Hosts")
        table.add_column("", no_wrap=True)
        for one in hosts:
            table.add_column(one.heading, justify="right", no_wrap=True)
        for k, column in enumerate(found.columns):
            values = [(one.numbers[k], one.unit) for one in hosts]
            table.add_row(
                Text(column.label, style="bold" if column is base else ""),
                *("–" if value is None else _cell(value, unit) for value, unit in values),
                style="dim" if column.uncongested else "",
            )
        tables.append(table)
        show(out, table)
    others = [column for column in found.congested if column is not found.base_of(column)]
    if others and columns:
        tables.append(_differences(found, base, others, there[:1]))
        show(out, tables[-1])
    compared = [found.difference(one, found.base_of(one), what) for one in others for _, what, _ in columns]
    are_alike |= any(map(readable.is_alike, compared))
    for part in separately.of(found):
        are_alike |= _show_part(out, part, base, tables)
    findings(out, findings_of([(column.name, column.result) for column in found.congested]))
    voids(out, [(column.name, column.void) for column in found.columns])
    unsettled(out, [(column.name, column.result) for column in found.columns])
    if over := by_link.over_full(results):
        sentence(out, over, "dim")
    is_settled = any(window.is_trusted for column in found.columns for window in column.windows)
    basis = readable.basis(found.reps, any(map(has_widths, tables)), is_settled, are_alike)
    sentence(out, basis, "dim")
    if lead:
        if len(others) > 1:
            out.print(Text(ONE_BY_ONE, style="dim"))
        out.print(Text(lead, style="bold"))


ONE_BY_ONE = (
    "Each interval is of one comparison alone; each sentence below allows for all comparisons of its measure at once."
)
"""Why a table may tell two apart that the answer of a comparison does not."""


_WAY_GIVES = (
    ("used", "utilisation", "share"),
    ("loss", "loss_ratio", "share"),
    ("marked", "mark_ratio", "share"),
    ("delay, mean", "queue_delay_mean_s", "s"),
    ("delay, 99 %", "queue_delay_p99_s", "s"),
)
_AGAINST = ("loss_ratio", "queue_delay_mean_s", "queue_delay_p99_s")
"""What of a link is compared with the baseline on a terminal."""


def _link_gives(way: str, share: str = "%", names: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """The columns of one direction of the only link, which the table's title says. Several links have a table each."""
    return [
        (f"{title}\n{share if unit == 'share' else 'ms'}", f"{way}.{name}", unit)
        for title, name, unit in _WAY_GIVES
        if not names or name in names
    ]


def _values(found: Comparison, title: str, columns: Sequence[tuple[str, str, str]]) -> Table:
    """A row of numbers for each variant."""
    table = short_table(title)
    table.add_column("", no_wrap=True)
    for head, _, _ in columns:
        table.add_column(head, justify="right")
    for column in found.columns:
        table.add_row(
            Text(column.label, style="bold red" if column.void else "bold" if column is found.baseline else ""),
            *(_read(column, what, unit) for _, what, unit in columns),
            style="dim" if column.uncongested else "",
        )
    return table


def _read(column: Column, what: str, unit: str) -> Text:
    """A number of a direction of the link, or of exchanges."""
    found = column.estimate(what)
    return _cell(found, unit) if ways.place(what) else _text(readable.of_cases(found, unit, column.completed))


def _users_get(found: Comparison, share: str) -> list[tuple[str, str, str]]:
    """The columns of exchanges, where anybody makes any."""
    if not any(column.completed > 0 for column in found.columns):
        return []
    return [
        ("completed\n", "completed", "count"),
        ("median\nms", "p50", "s"),
        ("90 %\nms", "p90", "s"),
        (f"in 0.5 s\n{share}", "share_under_500ms", "share"),
    ]


def _show_part(out: Console, part: Part, base: Column, tables: list[Table]) -> bool:
    """Shows one of the tables, with what is to be said of it; whether a number of it is the same in every run."""
    tables.append(_part(part, base))
    show(out, tables[-1])
    if part.note:
        out.print(Text(part.note, style="dim"))
    return any(one is not None and readable.is_alike(one) for _, row in part.rows for one in row)


def _part(part: Part, base: Column) -> Table:
    from aqmlab.results.by_application import MOS

    table = short_table(f"{part.title}: {MOS}" if part.table == "applications.calls" else part.title)
    table.add_column("", no_wrap=True)
    for title, _, _ in part.columns:
        table.add_column(title, justify="right")
    for row, (column, _) in enumerate(part.rows):
        said = map(_text, part.said(row, is_counted=True))
        table.add_row(
            Text(column.label, style="bold red" if column.void else "bold" if column is base else ""),
            *said,
            style="dim" if column.uncongested else "",
        )
    return table


def _differences(found: Comparison, base: Column, others: Sequence[Column], link: Sequence[str]) -> Table:
    """What users get against the baseline, and then the link in one direction, if there is one link."""
    each = ", each witness against its own" if found.witnesses else ""
    is_paired = all(found.are_paired(column, found.base_of(column)) for column in others)
    same = ", under the same demands" if is_paired else ""
    of_link = [one for way in link for one in _link_gives(way, "points", _AGAINST)]
    where = "".join(f"; the link {ways.WORDS[way]}" for way in link)
    table = short_table(f"Against {base.name}{same}{each}{where}")
    table.add_column("", no_wrap=True)
    columns = [*_users_get(found, "points"), *of_link]
    for title, _, _ in columns:
        table.add_column(title, justify="right")
    for column in others:
        own = found.base_of(column)
        note = f" ({unlike})" if (unlike := found.unlike(column, own)) else ""
        cells = [_cell(found.difference(column, own, measure), unit, signed=True) for _, measure, unit in columns]
        table.add_row(column.label + note, *cells)
    return table


def verdicts(out: Console, found: Sequence[Claim]) -> None:
    """One sentence for all claims."""
    here = [claim for claim in found if claim.verdict == "cannot be decided" and claim.unbelieved]
    counts = {
        said: sum(claim.verdict == verdict for claim in found if claim not in here)
        for verdict, said in (
            ("holds", ("holds", "hold")),
            ("does not hold", ("does not hold", "do not hold")),
            ("cannot be decided", ("cannot be decided", "cannot be decided")),
        )
    }
    parts = [f"{count} {one if count == 1 else several}" for (one, several), count in counts.items() if count]
    if here:
        known = [claim.at_full_scale["verdict"] for claim in here if claim.at_full_scale is not None]
        full = [f"{known.count(v)} {v}" for v in dict.fromkeys(known)]
        at = f"; at the published scale, of these: {', '.join(full)}" if full else ""
        parts.append(f"{len(here)} cannot be decided here, where runs are not known to be settled{at}")
    if parts:
        sentence(out, f"Claims of the studies: {', '.join(parts)}.", "bold")


def calibrations(out: Console, found: Sequence[Calibration]) -> None:
    """The fit behind each load."""
    from aqmlab.checks import seeds_of, seeds_said

    for c in found:
        where = {"both": "in each direction"}.get(c.direction, f"{c.direction} alone")
        table = short_table(f"{c.name}: {units.say_rate(c.load_bps)} {where}")
        table.add_column("users", justify="right")
        table.add_column("offered on the uncongested link", justify="right")
        table.add_column("fit", justify="right")
        for point in c.points:
            fit = c.intercept_bps + c.slope_bps_per_user * point.users
            style = "bold" if point.users == c.users else ""
            table.add_row(
                f"{point.users:,}", units.say_rate(point.throughput_bps, 5), units.say_rate(fit, 5), style=style
            )
        show(out, table)
        error = c.window_error
        facts = c.as_dict()
        are_several = len(seeds_of(facts)) > 1
        over, others = (f" on average over {seeds_said(facts)}", "seeds") if are_several else ("", "windows")
        window = "" if error is None else f", other {others} vary by about ± {units.say_share(error, 1)}"
        each = ", ".join(f"{way} {units.say_rate(bps)}" for way, bps in c.confirmed_each_bps.items())
        out.print(
            Text.assemble(
                (f"{c.users:,} users", "bold"),
                f" offer {units.say_rate(c.confirmed_bps, 5)}{over} "
                f"({units.say_share(c.error, 2, signed=True)}; {each}); "
                f"{c.proportional_bps_per_user:,.0f} b/s a user, fit within "
                f"{units.say_rate(c.residual_rms_bps, 2)} rms{window}{' (from the cache)' if c.cached else ''}",
            )
        )


def recording(out: Console, found: Recording) -> None:
    """What was recorded, and where it lies."""
    rates = found.uncongested_rate_bps, found.uncongested_reverse_rate_bps
    table = short_table(f"recorded on the uncongested link of {units.say_rates(rates)}")
    for name in ("connections", "exchanges", "response bytes"):
        table.add_column(name, justify="right")
    table.add_column("file", overflow="fold")
    for d in found.demands:
        table.add_row(f"{d.connections:,}", f"{d.exchanges:,}", f"{d.response_bytes:,}", d.file)
    show(out, table, names=0)
    out.print(f"Replayed by {found.scenario}", markup=False, soft_wrap=True)
