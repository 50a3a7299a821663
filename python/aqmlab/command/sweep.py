"""The verb `aqmlab sweep`: a grid of runs from a file, one row a run."""

from __future__ import annotations

from collections.abc import Sequence
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

COLUMNS = (
    ("used\nforward, %", "forward_utilisation", "share"),
    ("loss\nforward, %", "forward_loss_ratio", "share"),
    ("queueing delay\nforward, ms", "forward_queue_delay_mean_s", "s"),
    ("TCP goodput\nboth ways", "tcp_goodput_bps", "bps"),
    ("response time\nmedian, ms", "exchanges_response_time_s_p50", "s"),
    ("response time\n90 %, ms", "exchanges_response_time_s_p90", "s"),
)

OF_LINK = 3
"""Of these columns, the first are of the link, forward."""


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command("sweep")(sweep)


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
    from aqmlab.sweep import cluster, sweeps

    either_fresh_or_resumed(fresh, resume)
    asked = sweeps.read(file, seeds, changes(settings))
    folder = out or _folder(asked.name, resume)
    with (
        watched(as_json) as bars,
        cluster.connected(scheduler) as executor,
        followed(folder, bars, opens=opens) as (monitor, _),
    ):
        found = sweeps.run(asked, folder, jobs=jobs, resume=resume, fresh=fresh, monitor=monitor, executor=executor)
    if as_json:
        print_json(found.as_dict())
    else:
        show(terminal.console(), found)
    failed: dict[str, list[str]] = {}
    for row in found.rows:
        if not row["self_checks_hold"]:
            failed.setdefault(row["self_checks_failed"], []).append(f"{row['point']}, seed {row['seed']}")
    for detail, runs in failed.items():
        others = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        complain(f"self-check failed: {runs[0]}{others}: {detail}", 1)
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
    """A line a point, means over its seeds; and what the runs took."""
    from rich.text import Text

    from aqmlab.command import tables

    sweep = found.sweep
    table = tables.short_table(f"{sweep.name}: {len(found.rows)} runs of {len(sweep.points)} points")
    table.add_column("point", no_wrap=True)
    names = list(links.of(sweep.points[0].source.tree)) if sweep.points else []
    are_several = len(names) > 1
    columns = [
        column
        for column in COLUMNS[OF_LINK * are_several :]
        if any(row.get(column[1]) is not None for row in found.rows)
    ]
    for title, _, _ in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for point in sweep.points[:SHOWN]:
        table.add_row(Text(point.name), *(_cell(found, point.name, name, unit) for _, name, unit in columns))
    if columns:
        tables.show(out, table)
    if are_several:
        tables.show(out, _by_link(found, names), names=2)
    if len(sweep.points) > SHOWN:
        out.print(f"… and {len(sweep.points) - SHOWN} more points.", style="dim")
    if any(len(seeds) > 1 for seeds in sweep.seeds.values()):
        out.print("± 95 % t-interval across independent runs.", style="dim")
    out.print(_effort(found), style="dim")
    out.print(f"\nRows in {found.table}", markup=False, soft_wrap=True)


def _cell(found: Finished, point: str, name: str, unit: str) -> Text:
    """The mean over the seeds of a point."""
    from rich.text import Text

    from aqmlab.results import readable

    interval = found.mean(point, name)
    if interval is None:
        return Text("–")
    value, width = readable.with_width(interval, unit)
    return Text.assemble(value, (f" {width}" if width else "", "dim"))


def _by_link(found: Finished, names: Sequence[str]) -> Table:
    """What of the columns is of the link, forward, for each of several."""
    from rich.text import Text

    from aqmlab.command import tables

    table = tables.short_table()
    table.add_column("point", no_wrap=True)
    table.add_column("link", no_wrap=True)
    for title, _, _ in COLUMNS[:OF_LINK]:
        table.add_column(title, justify="right", no_wrap=True)
    for point in found.sweep.points[:SHOWN]:
        for link in names:
            cells = [_cell(found, point.name, f"links_{link}_{name}", unit) for _, name, unit in COLUMNS[:OF_LINK]]
            table.add_row(Text(point.name), link, *cells)
    return table


def _effort(found: Finished) -> str:
    from aqmlab.sweep.kept import Kept

    facts = found.facts
    made, kept = facts["runs_made"], facts["runs_kept"]
    count, size = Kept().size()
    said = f"{made} runs made in {units.say_seconds(facts['wall_s'])}, {units.say_seconds(facts['cpu_s'])} of processor"
    peak = f"; at most {facts['peak_rss_bytes'] / 2**20:,.0f} MiB of memory a worker" if made else ""
    before = f"; {kept} known from before" if kept else ""
    return f"{said}{peak}{before}. Kept for next time: {count:,} runs, {size / 2**20:,.0f} MiB."
