"""The verb `aqmlab study`: runs studies, judges their claims, writes their reports.

Exit codes: 1 where a claim comes out otherwise than `claims.toml` says, or a run is not what it claims to be.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab import units
from aqmlab.command import completion
from aqmlab.command.verbs import (
    AllowCode,
    AsJson,
    Fresh,
    Jobs,
    Out,
    Resume,
    Scheduler,
    Settings,
    changes,
    complain,
    either_fresh_or_resumed,
    print_json,
    say,
    viewed,
    watched,
)
from aqmlab.command.watch import Opens, followed
from aqmlab.errors import BadInput
from aqmlab.study import folders

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.json_files import Json
    from aqmlab.study.definition import Study
    from aqmlab.study.runs import Finished

BETWEEN, LEAST, MOST_LINES = 2, 20, 4
"""Of the table of claims: spaces between columns, and the columns of the screen that its numbers have at least, and the
lines at most."""


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("study", short_help="Run a published study and check its claims.")(study)


def study(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID|all|DIR]", help="One study, all of them, or a folder.", autocompletion=completion.studies
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes instead of hours: shorter runs.")] = False,
    medium: Annotated[bool, typer.Option("--medium", help="A third of the hours: shorter windows.")] = False,
    seeds: Annotated[int | None, typer.Option(help="Runs of each point, instead of the study's.", min=1)] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only points with such names, as web/*/98. May be repeated."),
    ] = None,
    bed: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The study's test bed of that name, in the place of the bare model."),
    ] = None,
    settings: Settings = [],  # noqa: B006 - typer copies it
    allow_code: AllowCode = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    resume: Resume = False,
    fresh: Fresh = False,
    out: Out = None,
    as_json: AsJson = False,
    live: Annotated[
        bool, typer.Option("--live", help="Also the study's comparison between real TCP stacks, in real time.")
    ] = False,
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Also the study's comparison between real TCP stacks, in virtual time.")
    ] = False,
    opens: Opens = False,
) -> None:
    """Run a published study, check its claims, write its report.

    Without a name: list the studies there are. all: every one of them, as one plan, with a page over all claims. DIR:
    a study of your own.
    """
    if what is None:
        given = {
            "--quick": quick,
            "--medium": medium,
            "--seeds": seeds is not None,
            "--only": bool(only),
            "--bed": bed is not None,
            "--set": bool(settings),
            "--jobs": jobs is not None,
            "--scheduler": scheduler is not None,
            "--resume": resume,
            "--fresh": fresh,
            "--out": out is not None,
            "--live": live,
            "--virtual": virtual,
            "--open": opens,
        }
        for flag in (flag for flag, is_given in given.items() if is_given):
            raise BadInput(f"{flag}: is of a study that is run; expected {', '.join(folders.known())} or all before it")
        _list(as_json)
        return
    from aqmlab.command import terminal
    from aqmlab.study import chosen, overview, runs
    from aqmlab.sweep import cluster

    either_fresh_or_resumed(fresh, resume)
    if settings and (live or virtual):
        raise BadInput(f"--set {settings[0]}: changes simulated runs; expected it without --live and --virtual")
    asked = chosen.read(what, quick, seeds, only or (), changes(settings), bed, medium)
    without = sorted({*folders.known()} - {one.folder.name for one in asked}) if what == folders.ALL else []
    if without and not as_json:
        say(f"{', '.join(without)}: left out, for want of the profile {asked[0].profile.name}")
    base = out or default_folder(what, asked[0])
    places = {base if what != folders.ALL else base / one.id: one for one in asked}
    if what == folders.ALL:
        overview.claim_folder(base)
    witnesses = [flag for flag, is_wanted in (("live", live), ("virtual", virtual)) if is_wanted]
    with (
        watched(as_json) as bars,
        cluster.connected(scheduler) as executor,
        _view(as_json, bars, bool(witnesses)) as screen,
        followed(base, bars, screen, opens) as (monitor, view),
    ):
        done = runs.run(
            places,
            jobs=jobs,
            fresh=fresh,
            executor=executor,
            witnesses=witnesses,
            monitor=monitor,
            view=view,
            say=(lambda _: None) if as_json else say,
        )
    answer = overview.write(base, done) if what == folders.ALL else done[0].found
    if as_json:
        print_json(answer)
    else:
        show(terminal.console(), done, base / overview.PAGE if what == folders.ALL else None)
    _judge(done)


def default_folder(what: str, first: Study) -> Path:
    """`results/study-le2003-quick`, `results/studies`; with `-part`, `-changed` where it is not the whole."""
    from aqmlab.study.definition import FULL

    scale = "" if first.profile.name == FULL else f"-{first.profile.name}"
    name = "studies" if what == folders.ALL else f"study-{first.id}{f'-{first.bed.name}' if first.bed else ''}"
    return Path("results") / f"{name}{scale}{'-part' if first.only else ''}{'-changed' if first.changes else ''}"


def rows() -> list[Json]:
    """The studies there are, as `aqmlab list` shows them."""
    place = folders.folder_of_all()
    tables = [folders.title(place / name) for name in folders.known()]
    return [{"name": table["id"], "doc": table["title"], "source": table.get("paper", "")} for table in tables]


def show(out: Console, done: Sequence[Finished], page: Path | None) -> None:
    """A line a claim, and where the reports are."""
    from rich.text import Text

    from aqmlab.command.agreement_tables import agreements as show_agreements
    from aqmlab.study import verdicts

    for one in done:
        _claims(out, one)
    if said := verdicts.counted([claim for one in done for claim in one.found["claims"]]):
        out.print(Text(f"Verdicts: {said}.", style="bold"))
    for one in done:
        show_agreements(out, one.agreements)
    for one in done:
        out.print(f"Report: {one.report}", markup=False, soft_wrap=True)
    if page is not None:
        out.print(f"All:    {page}", markup=False, soft_wrap=True)


def _claims(out: Console, one: Finished) -> None:
    from rich.table import Table
    from rich.text import Text

    from aqmlab.claims import FAILS, HOLDS, NOT_RUN, OPEN
    from aqmlab.command.tables import sentence

    styles = {HOLDS: "green", FAILS: "bold red", OPEN: "yellow", NOT_RUN: "dim"}
    facts = one.found
    sentence(out, f"{facts['id']}: {facts['title']}", "bold")
    table = Table(box=None, pad_edge=False, show_header=False)
    rows = [
        (claim["id"], claim["called"] + ("" if claim["as_known"] else f" (known: {claim['known_outcome']})"), claim)
        for claim in facts["claims"]
        if claim["verdict"] != NOT_RUN
    ]
    # What is to be known of a claim stands there, below one another; numbers that are too long for these lines are left
    # out. The page has them in full.
    widths = [max((len(row[position]) for row in rows), default=0) for position in (0, 1)]
    for width in widths:
        table.add_column(no_wrap=True, min_width=width)
    room = max(out.width - sum(widths) - 2 * BETWEEN, LEAST)
    table.add_column(overflow="fold")
    for name, verdict, claim in rows:
        said = _in_lines(claim["number"], room, claim["remark"])
        table.add_row(name, Text(verdict, style=styles[claim["verdict"]]), said)
    if rows:
        out.print(table)
    if unrun := len(facts["claims"]) - len(rows):
        out.print(Text(f"{'and ' if rows else ''}{unrun} {NOT_RUN}", style=styles[NOT_RUN]))
    effort = (
        f"{facts['runs']:,} runs, {facts['runs_kept']:,} of them kept from before; "
        f"{units.say_hours(facts['simulated_h'])} simulated in {units.say_hours(facts['cpu_h'])} of processor time, "
        f"{units.say_mebibytes(facts['peak_rss_bytes'])} at most in a run"
    )
    sentence(out, effort, "dim")
    if facts["profile"]["says"]:
        sentence(out, " ".join(facts["profile"]["says"].split()), "dim")
    out.print()


def _in_lines(text: str, room: int, remark: str) -> str:
    """As much of a text as its remark, with which it begins, has lines of such a room, and one line at least."""
    lines = min(max(len(_lines(remark, room)), 1), MOST_LINES)
    length = lines * room
    while len(_lines(said := _beginning(text, length), room)) > lines:
        length = len(said) - 1
    return said


def _lines(text: str, room: int) -> list[str]:
    return textwrap.wrap(text, room, break_on_hyphens=False)


def _beginning(text: str, room: int) -> str:
    """As much of a text as there is room for: whole words, and what stands in brackets whole or not at all."""
    if len(text) <= room:
        return text
    words = text[: room - 1].rpartition(" ")[0]
    if words.count("(") > words.count(")"):
        words = words[: words.rindex("(")]
    return f"{words.rstrip(' ;,:')} …"


def _list(as_json: bool) -> None:
    if as_json:
        print_json({"studies": rows()})
    else:
        from aqmlab.command import explanations, terminal

        explanations.registry(terminal.console(), "studies", rows())


@contextlib.contextmanager
def _view(as_json: bool, monitor: Any, is_live: bool) -> Iterator[Any]:
    """A screen only where something runs live: it takes the bars away."""
    if not is_live:
        yield None
        return
    with viewed(as_json, monitor) as view:
        yield view


def _judge(done: Sequence[Finished]) -> None:
    from aqmlab.study import outcome

    facts = [one.found for one in done]
    for failed in (check for one in facts for check in one["self_checks"]["failed"]):
        complain(f"self-check failed: {failed['run']}: {failed['name']}: {failed['detail']}", 1)
    for line in outcome.unexpected(facts):
        complain(f"not the known outcome: {line}", 1)
    if outcome.unexpected(facts) or any(one["self_checks"]["failed"] for one in facts):
        raise typer.Exit(1)
