"""The verb `aqmlab advise`: its words, and the screen that it answers with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aqmlab.command import completion
from aqmlab.command.verbs import AsJson, Jobs, Out, complain, print_json, say, viewed, watched

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.advice.advising import Advice
    from aqmlab.advice.race import Race
    from aqmlab.advice.verified import Verified


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command(name="advise", short_help="Say which discipline a link should have.")(advise)


def advise(
    down: Annotated[str, typer.Option(metavar="RATE", help="Rate towards the users, as 50mbit; 256kbit to 10gbit.")],
    up: Annotated[str, typer.Option(metavar="RATE", help="Rate from them, as 10mbit; 256kbit up to that of --down.")],
    rtt: Annotated[
        str | None, typer.Option(metavar="TIME..TIME", help="Round trips to servers; 10ms..80ms if none is said.")
    ] = None,
    homes: Annotated[int | None, typer.Option(help="Homes behind the link.")] = None,
    users: Annotated[int | None, typer.Option(help="People who browse at the same time.")] = None,
    mix: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Who does what, in TOML: users, downloads, uploads, calls, games, bbr, video."
        ),
    ] = None,
    capture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Traffic of the link's own: a pcap or pcapng file, in place of a mix."),
    ] = None,
    begun_in: Annotated[
        str | None,
        typer.Option("--from", metavar="NETWORK", help="Where the users of the capture are, as 192.168.0.0/16."),
    ] = None,
    access: Annotated[
        str,
        typer.Option(
            help="The line: docsis, dsl, atm, ethernet, lte; port: between routers, unshaped.",
            autocompletion=completion.lines,
        ),
    ] = "ethernet",
    platform: Annotated[
        str,
        typer.Option(
            "--on",
            help="What is set up: linux, openwrt, freebsd, systemd-networkd, mikrotik, router-without-aqm; of a port "
            "linux, hardware.",
            autocompletion=completion.platforms,
        ),
    ] = "linux",
    have: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What is set on the router now: a dump of tc -s qdisc show, or tc lines."),
    ] = None,
    what_for: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="WHAT[=WEIGHT],...",
            help="What matters: calls,web=2,video,games,downloads; all alike if none is said.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="What is not known is drawn by it.", min=0)] = 1,
    rounds: Annotated[
        int | None, typer.Option(help="Runs of each candidate at most; by default 6 to 40, fewer on fast links.", min=2)
    ] = None,
    rate_error: Annotated[
        float,
        typer.Option(
            metavar="PERCENT",
            help="What if the shaper is set so much above --down and --up? 0: it is not tried; nor is it of a port.",
            min=0,
            max=100,
        ),
    ] = 10.0,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Try the answer between real TCP stacks in virtual time too; some minutes."),
    ] = False,
    jobs: Jobs = None,
    out: Out = None,
    with_report: Annotated[bool, typer.Option("--report", help="Write a page as well, with all candidates.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say which discipline a link should have, and what that is worth.

    Candidates of the platform race on links drawn from what is known of yours. The answer is a discipline with its
    settings, what each application gets beside today's queue, and the lines to set it up.
    """
    from aqmlab.advice import advising, question, words
    from aqmlab.command import terminal
    from aqmlab.errors import Interrupted
    from aqmlab.runs.progress_lines import with_lines

    has_page = with_report or out is not None
    if has_page:
        _place(out)
    asked = question.read(down, up, rtt, homes, users, mix, access, platform, what_for, seed, capture, begun_in, have)
    with watched(as_json) as bars:
        found = advising.advise(
            asked,
            jobs,
            rounds,
            monitor=bars if as_json else with_lines(bars, say),
            told=lambda race: None if as_json else _provisional(race),
            rate_error=rate_error / 100,
        )
    checked, console = None, terminal.console()
    try:
        if not as_json:
            _screen(console, found)
        if verify and not found.stopped:
            checked = _verified(found, as_json)
            if not as_json:
                _witnesses(console, checked)
    finally:
        # Whatever fails or is stopped above, the runs of the race are made.
        if as_json:
            print_json(words.as_dict(found, checked))
        if has_page:
            page = _page(found, out, checked)
            if not as_json:
                _files(console, found, page)
    if found.stopped:
        raise Interrupted(f"stopped {found.stopped}: the advice is of what was finished")


def _place(out: Path | None) -> None:
    """Refuses a folder for the page, before anything runs, that is there or cannot be."""
    from aqmlab.errors import BadInput
    from aqmlab.results import store

    if out is not None and out.exists():
        raise BadInput(f"-o {out}: is there already; expected a folder that is not")
    store.claim(out if out is not None else _free(), resume=False)


def _free() -> Path:
    from aqmlab.results import store

    return store.free_name(Path("results") / "advice")


def _verified(found: Advice, as_json: bool) -> Verified:
    from aqmlab.advice import verified
    from aqmlab.errors import Interrupted
    from aqmlab.progress import Silent

    try:
        with viewed(as_json, Silent()) as view:
            return verified.verify(found, view=view)
    except KeyboardInterrupt:  # what it says of finished runs is of those between real stacks, which nobody has
        raise Interrupted("stopped while real stacks tried it: the advice is that of the race alone") from None


def _page(found: Advice, out: Path | None, checked: Verified | None) -> Path:
    from aqmlab.report import advice as report

    return report.write(found, ["aqmlab", *sys.argv[1:]], out if out is not None else _free(), checked)


def _files(out: Console, found: Advice, page: Path) -> None:
    """Where the page is, and the lines for the router."""
    from aqmlab.advice import lines

    out.print(f"\nReport:    {page}", soft_wrap=True)
    of_router = lines.file(found.question, found.first)
    if of_router is not None:
        out.print(f"Router:    {page.parent / of_router[0]}", soft_wrap=True)


def _provisional(race: Race) -> None:
    """A line for each look, on standard error: who leads, and how sure that is."""
    from aqmlab.advice import words

    complain(words.so_far(race), 0)


def _screen(out: Console, found: Advice) -> None:
    from aqmlab.advice import assumptions, cells, gains, lines, more, scores, words
    from aqmlab.command.tables import sentence, short_table, show

    sentence(out, words.link(found.question), "bold")
    for said in (*words.verdict(found), *words.captured(found.question)):
        out.print(said)
    if going_on := more.going_on(found, ["aqmlab", *sys.argv[1:]]):
        said, command = going_on
        sentence(out, said)
        out.print(command, soft_wrap=True)
    out.print()
    table = short_table()
    wrong, is_other = assumptions.wrong_head(found), found.first.settings is not None
    heads = [
        "",
        "today",
        *([found.race.first.replace(" ", "\n", 1), "difference"] if is_other else []),
        *([wrong] if wrong else []),
    ]
    for position, head in enumerate(heads):
        table.add_column(head, justify="right" if position else "left", no_wrap=True)
    marks = {"better": "▲", "worse": "▼", "": " "}
    for row in gains.rows(found):
        other = [row["first"], f"{row['difference']} {marks[row['judged']]}"] if is_other else []
        harm = [f"{row['harm']} {marks[row['harm_judged']]}{_below(row['harm_of'], '  ')}"] if wrong else []
        table.add_row(f"{row['title']}{_below(row['of'])}", row["today"], *other, *harm)
    show(out, table)
    for said in words.notes(found):
        out.print(said)
    out.print()
    table = short_table()
    for head in ("candidate", "score", "runs", ""):
        table.add_column(
            head, justify="left" if head in ("candidate", "") else "right", vertical="bottom", no_wrap=True
        )
    for one in found.figures:
        table.add_column(cells.head(one), justify="right", no_wrap=True)
    for row in words.field(found):
        bare = [cells.bare(cell) for cell in row["cells"]]
        table.add_row(row["name"], row["score"], str(row["rounds"]), row["state"], *bare)
    show(out, table)
    out.print(words.states(found))
    out.print(scores.how(found.question))
    for said in (*words.cost(found), assumptions.granted(found)):
        out.print(said)
    out.print()
    written = lines.of(found.question, found.first)
    out.print(written, soft_wrap=True)
    for check in words.checks(found.question, written):
        out.print(check, style="dim", soft_wrap=True)


def _below(said: str, after: str = "") -> str:
    """A second line of a cell, if there is something to say."""
    return f"\n{said}{after}" if said else ""


def _witnesses(out: Console, found: Verified) -> None:
    """What it is worth by the simulator and by real stacks."""
    from aqmlab.advice import words
    from aqmlab.command.tables import short_table, show

    out.print()
    for sentence in words.verified(found):
        out.print(sentence)
    if not found.findings:
        return
    table = short_table()
    for position, head in enumerate(("worth", "simulated", "real stacks", "between both", "tolerance", "")):
        table.add_column(head, justify="right" if 0 < position < 5 else "left", no_wrap=True)
    for row in words.witnesses(found):
        table.add_row(*row.values())
    show(out, table)
