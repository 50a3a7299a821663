"""The verb `aqmlab sweep`: a grid of runs from a file, one row a run."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aqmlab import links, scenario, units
from aqmlab.command import completion
from aqmlab.command.verbs import (
    AllowCode,
    AsJson,
    Fresh,
    Jobs,
    Out,
    Scheduler,
    changes,
    complain,
    either_fresh_or_resumed,
    print_json,
    watched,
)
from aqmlab.command.watch import Opens, followed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from aqmlab.sweep.sweeps import Finished

SHOWN = 40
"""Points that the table on a terminal has at most."""

Heading = tuple[str, str, str]
"""Head, column of the rows, unit."""

OF_LINK: tuple[Heading, ...] = (
    ("used", "utilisation", "share"),
    ("loss", "loss_ratio", "share"),
    ("queueing delay", "queue_delay_mean_s", "s"),
)
"""What the table has of a direction of a link."""

OF_USERS: tuple[Heading, ...] = (
    ("TCP goodput\nboth ways", "tcp_goodput_bps", "bps"),
    ("response time\nmedian, ms", "exchanges_response_time_s_p50", "s"),
    ("response time\n90 %, ms", "exchanges_response_time_s_p90", "s"),
)

COMPLAINTS = 20
"""Lines of what failed at most."""

FINDINGS = 8
"""Lines of what was found in runs at most."""

MARK = "!"
"""Behind a point of which a run failed a self-check."""


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command("sweep", short_help="Run a scenario at every point of a grid.")(sweep)


def sweep(
    file: Annotated[Path, typer.Argument(metavar="GRID.toml", help="A scenario and [[grid]] tables.")],
    out: Out = None,
    seeds: Annotated[int | None, typer.Option(help="Runs of each point, instead of what the file says.", min=1)] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what was interrupted.")] = False,
    fresh: Fresh = False,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            help="Change a key of all scenarios: --set duration=30s",
            metavar="KEY=VALUE",
            autocompletion=completion.settings,
        ),
    ] = [],  # noqa: B006 - typer copies it
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    opens: Opens = False,
) -> None:
    """Run a scenario at every point of a grid of changes to it.

    One row a run goes into runs.parquet in the result folder as runs finish. A run that was made before, in this sweep
    or in any other, is not made again.
    """
    from aqmlab.command import terminal
    from aqmlab.sweep import cluster, failing, sweeps
    from aqmlab.sweep.kept import Kept

    either_fresh_or_resumed(fresh, resume)
    asked = sweeps.read(file, seeds, changes(settings))
    folder = out or _folder(asked.name, resume)
    with contextlib.ExitStack() as over:
        with (
            watched(as_json, are_several=True) as bars,
            cluster.connected(scheduler) as executor,
            followed(folder, bars, opens=opens) as (monitor, _),
        ):
            try:
                found = sweeps.run(
                    asked, folder, jobs=jobs, resume=resume, fresh=fresh, monitor=monitor, executor=executor
                )
            except sweeps.Incomplete as error:
                found = error.found
            over.enter_context(Kept().interruptible(f"stopped: {len(found.rows)} runs are finished in {folder}", fresh))
        if as_json:
            print_json(found.as_dict())
        else:
            show(terminal.console(), found)
    failed = [*(f"self-check failed: {each}" for each in failing.said(found.rows, found.sweep.points))]
    failed += failing.not_made(found)
    for each in failed[:COMPLAINTS]:
        complain(each, 1)
    if len(failed) > COMPLAINTS:
        complain(f"and {len(failed) - COMPLAINTS} more such lines: see {found.table} and {folder / sweeps.FILE}", 1)
    if failed:
        raise typer.Exit(1)


def _folder(name: str, resume: bool) -> Path:
    """A new one below results/; to be resumed, the newest there is."""
    from aqmlab.results import store

    base = Path("results") / scenario.slug(name)
    if not resume:
        return store.free_name(base)
    there = [base]
    while (following := base.with_name(f"{base.name}-{len(there) + 1}")).exists():
        there.append(following)
    return there[-1]


def show(out: Console, found: Finished) -> None:
    """A line a point, means over its seeds; how far its loads may be trusted; and what the runs took."""
    from aqmlab.command import tables
    from aqmlab.results import ways
    from aqmlab.sweep import failing, offered

    sweep, failed = found.sweep, failing.points(found.rows)
    title = f"{sweep.name}: {len(found.rows)} runs of {len(sweep.points)} points"
    names = list(links.of(sweep.points[0].source.tree)) if sweep.points else []
    of_users = [column for column in OF_USERS if any(row.get(column[1]) is not None for row in found.rows)]
    if len(names) > 1:
        if of_users:
            tables.show(out, _table(found, title, of_users, failed))
        tables.show(out, _by_link(found, names, failed), names=3)
    else:
        way, *more = _ways(found) or ["forward"]
        if columns := [*_of_link(found, way), *of_users]:
            tables.show(out, _table(found, title, columns, failed))
        for other in more:
            tables.show(out, _table(found, f"The link, {ways.WORDS[other]}", _of_link(found, other), failed))
    if len(sweep.points) > SHOWN:
        out.print(f"… and {len(sweep.points) - SHOWN} more points.", style="dim")
    if any(len(seeds) > 1 for seeds in sweep.seeds.values()):
        out.print("± 95 % t-interval across independent runs.", style="dim")
    if failed:
        count = sum(failed.values())
        said = f"{count} run{'s' * (count > 1)} of the points with {MARK} failed a self-check."
        tables.sentence(out, f"{said} Column self_checks_failed of {found.table.name} has which.", "yellow")
    for line in _few(failing.findings(found.rows, sweep.points), found):
        tables.sentence(out, f"{line}.", "yellow")
    if line := offered.off_said(found.facts.get("offered")):
        tables.sentence(out, line, "yellow")
    out.print(_effort(found), style="dim")
    if found.rows:
        out.print(f"\nRows in {found.table}", markup=False, soft_wrap=True)


def _few(lines: Sequence[str], found: Finished) -> list[str]:
    """The first of them, and where the rest stands."""
    more = len(lines) - FINDINGS
    rest = [f"And {more} more such lines: column findings of {found.table.name}"] if more > 0 else []
    return [*lines[:FINDINGS], *rest]


def _ways(found: Finished, link: str = "") -> list[str]:
    """The directions in which data flows on the only link, or on one of several, as `ways.of_data` puts them."""
    from aqmlab.results import ways

    wanted = ("throughput_bps", "queue_mean_packets")
    figures = [
        {way: {name: row.get(f"{_before(way, link)}{name}") for name in wanted} for way in links.WAYS}
        for row in found.rows
    ]
    return ways.of_data(figures) if figures else []


def _before(way: str, link: str = "") -> str:
    """What stands before the name of a figure of a direction, in the name of its column."""
    return f"{links.MANY}_{link}_{way}_" if link else f"{way}_"


def _of_link(found: Finished, way: str) -> list[Heading]:
    """The columns of a direction of the only link."""
    from aqmlab.results import ways

    columns = [
        (f"{title}\n{ways.WORDS[way]}, {'%' if unit == 'share' else 'ms'}", f"{_before(way)}{name}", unit)
        for title, name, unit in OF_LINK
    ]
    return [column for column in columns if any(row.get(column[1]) is not None for row in found.rows)]


def _table(found: Finished, title: str, columns: Sequence[Heading], failed: Mapping[str, int]) -> Table:
    from aqmlab.command import tables

    table = tables.short_table(title)
    table.add_column("point", no_wrap=True)
    for head, _, _ in columns:
        table.add_column(head, justify="right", no_wrap=True)
    for point in found.sweep.points[:SHOWN]:
        table.add_row(_name(point.name, failed), *(_cell(found, point.name, name, unit) for _, name, unit in columns))
    return table


def _name(point: str, failed: Mapping[str, int]) -> Text:
    """A point, with a mark where a run of it failed a self-check."""
    from rich.text import Text

    return Text.assemble(point, (f" {MARK}", "bold yellow")) if point in failed else Text(point)


def _cell(found: Finished, point: str, name: str, unit: str) -> Text:
    """The mean over the seeds of a point."""
    from rich.text import Text

    from aqmlab.results import readable

    interval = found.mean(point, name)
    if interval is None:
        return Text("–")
    value, width = readable.with_width(interval, unit)
    return Text.assemble(value, (f" {width}" if width else "", "dim"))


def _by_link(found: Finished, names: Sequence[str], failed: Mapping[str, int]) -> Table:
    """The directions of each of several links in which data flows."""
    from aqmlab.command import tables

    table = tables.short_table()
    for head in ("point", "link", ""):
        table.add_column(head, no_wrap=True)
    for title, _, unit in OF_LINK:
        table.add_column(f"{title}\n{'%' if unit == 'share' else 'ms'}", justify="right", no_wrap=True)
    flowing = [(link, way) for link in names for way in _ways(found, link)]
    for point in found.sweep.points[:SHOWN]:
        for link, way in flowing:
            cells = [_cell(found, point.name, f"{_before(way, link)}{name}", unit) for _, name, unit in OF_LINK]
            table.add_row(_name(point.name, failed), link, way, *cells)
    return table


def _effort(found: Finished) -> str:
    from aqmlab.sweep.kept import Kept

    facts = found.facts
    made, kept = facts["runs_made"], facts["runs_kept"]
    count, size = Kept().size()
    said = f"{made} runs made in {units.say_seconds(facts['wall_s'])}, {units.say_seconds(facts['cpu_s'])} of processor"
    peak = f"; at most {units.say_mebibytes(facts['peak_rss_bytes'])} of memory a worker" if made else ""
    before = f"; {kept} known from before" if kept else ""
    return f"{said}{peak}{before}. Kept for next time: {count:,} runs, {size / 2**20:,.0f} MiB."
