"""The verb `aqmlab evaluate`: a discipline in the scenarios of RFC 7928, or a congestion controller in those of
RFC 9743, beside others, on one page.

Exit codes: 1 where a run is not what it claims to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from aqmlab.command import completion
from aqmlab.command.verbs import (
    AllowCode,
    AsJson,
    Fresh,
    Jobs,
    Out,
    Resume,
    Scheduler,
    complain,
    either_fresh_or_resumed,
    print_json,
    say,
    watched,
)
from aqmlab.command.watch import Opens, followed
from aqmlab.errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.evaluation.template import Compared, Form
    from aqmlab.json_files import Json

KINDS = ("goodput", "delay")
"""What the screen shows of a case."""

MARKS = {"less": "<", "more": ">", "undecided": "?"}


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("evaluate", short_help="Evaluate a discipline or a controller as an RFC asks.")(evaluate)


def evaluate(
    what: Annotated[
        str,
        typer.Argument(
            metavar="DISCIPLINE|cc:NAME",
            help="In words: pie, 'pie target 5ms'; a law of your own, my_law.py, or fq_my_law.py under fair queueing; "
            "or a congestion controller: cc:bbr.",
            autocompletion=completion.queues,
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS,...",
            help="What it is held against besides the baseline, drop-tail or CUBIC; codel,fq_codel if not said, and of "
            "controllers cc:reno,cc:bbr.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes instead of hours: shorter and fewer runs.")] = False,
    seeds: Annotated[int | None, typer.Option(help="Runs of each point.", min=1)] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only points with such names, as 'rtt/*'. May be repeated."),
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Answers to what no simulation can answer.")
    ] = None,
    allow_code: AllowCode = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    resume: Resume = False,
    fresh: Fresh = False,
    out: Out = None,
    as_json: AsJson = False,
    opens: Opens = False,
) -> None:
    """Evaluate a discipline as RFC 7928 asks, or a congestion controller as RFC 9743 asks: scenarios on one page."""
    from aqmlab.command import terminal
    from aqmlab.evaluation import answers as answering
    from aqmlab.evaluation import controllers, disciplines, page
    from aqmlab.study import runs
    from aqmlab.sweep import cluster, failing

    either_fresh_or_resumed(fresh, resume)
    others = _others(against)
    form: ModuleType = controllers if what.startswith(controllers.PREFIX) else disciplines
    among = _chosen(form, what, others)
    given = answering.read(answers, among[0].form)
    folder = out or Path("results") / (f"evaluate-{among[0].name}{'-quick' if quick else ''}{'-part' if only else ''}")
    answering.together(folder, given, among[0].form)  # what stands there is to be understood before anything runs
    asked = form.study(folder, what, others, quick=quick, seeds=seeds, only=only or ())
    with (
        watched(as_json) as bars,
        cluster.connected(scheduler) as executor,
        followed(folder, bars, opens=opens) as (monitor, _),
    ):
        (done,) = runs.run(
            {folder: asked},
            jobs=jobs,
            fresh=fresh,
            executor=executor,
            monitor=monitor,
            say=(lambda _: None) if as_json else say,
            write=page.writer(among, given),
            spares=True,
        )
    if as_json:
        print_json(done.found)
    else:
        show(terminal.console(), done.found)
        terminal.console().print(f"Report: {done.report}", markup=False, soft_wrap=True)
    failed = done.found["self_checks"]["failed"]
    for check in failed:
        complain(f"self-check failed: {check['run']}: {check['name']}: {check['detail']}", 1)
    lost = failing.of_laws(done.found["failed"], done.study.runs)
    for line in lost:
        complain(f"not made: {line}", 1)
    if failed or lost:
        raise typer.Exit(1)


def _chosen(form: ModuleType, what: str, others: Sequence[str] | None) -> list[Compared]:
    """What is compared. A folder may be called as a discipline is: only what nobody knows is taken for a place."""
    from aqmlab.tc import words

    if not what.strip():
        raise BadInput(f"{what!r}: is empty; expected a discipline, a law by its file, or cc:CONTROLLER")
    is_place = what.endswith(".toml")
    try:
        if not is_place:
            found: list[Compared] = form.chosen(what, others)
            return found
    except BadInput:
        if not Path(what).is_dir() or what.split()[0] in words.kinds():
            raise
    raise BadInput(
        f"{what}: is no discipline; expected one, a law, or cc:CONTROLLER, for which there are scenarios already"
    )


def _others(against: str | None) -> list[str] | None:
    """What `--against` names; nothing at all is nobody."""
    if against is None:
        return None
    others = [word.strip() for word in against.split(",")]
    if any(others) and not all(others):
        raise BadInput(f"--against {against!r}: a name is empty; expected names with one comma between two")
    return [one for one in others if one]


def show(out: Console, found: Json) -> None:
    """A line a requirement: the case that stands for it, and how often it is less or more than the baseline."""
    from rich.text import Text

    from aqmlab.command import tables
    from aqmlab.evaluation import known, template

    evaluation = found["evaluation"]
    form, baseline = template.FORMS[evaluation["of"]], evaluation["against"][0]
    label, name = evaluation["subject"]["label"], evaluation["subject"]["name"]
    table = tables.short_table(found["title"])
    table.add_column("section", no_wrap=True)
    for head in (
        "",
        f"{label}, first rate",
        baseline,
        "delay",
        "goodput",
        *(["own"] if form is template.CONTROLLERS else []),
    ):
        table.add_column(head, no_wrap=True)
    for one in evaluation["requirements"]:
        if one["status"] != "run":
            table.add_row(one["section"], one["title"], Text(one["status"], style="yellow"), "", "", "")
            continue
        rows = _rows(one["shown"], name, form)
        beside = one[form.beside]
        table.add_row(
            one["section"],
            one["title"],
            _said(rows.get(name)),
            _said(rows.get(baseline)),
            _counts(beside["delay"]),
            _counts(beside["goodput"]),
            *([_counts(beside["also"])] if "also" in beside else []),
        )
    tables.show(out, table, names=2)
    for field in known.fields(found) if form is template.DISCIPLINES else []:
        count = len(field.standings)
        if not field.place(name):
            tables.sentence(out, f"{field.section}, {field.case}: no packet of it left the link, so it has no delay.")
            continue
        first, last = field.places(name)
        place = f"number {field.place(name)} of {count} by mean delay, the shortest first"
        told = "" if first == last else f" ({first} to {last}, as far as these runs tell)"
        said = f"{field.section}, {field.case}: {place}{told}."
        tables.sentence(out, said)
    own = "; own: the section's third number" if form is template.CONTROLLERS else ""
    open_ones = [question for question in evaluation["questions"] if not question["answer"]]
    if open_ones:
        asked = ", ".join(one["id"] for one in open_ones)
        tables.sentence(out, f"Unanswered, for the author: {asked} (--answers).", "yellow")
    tables.sentence(
        out,
        f"Goodput, mean queueing delay{own}. In how many cases less (<), more (>) or undecided (?) beside {baseline}. "
        f"{found['runs']:,} runs, {found['runs_kept']:,} kept from before.",
        "dim",
    )


def _rows(shown: Sequence[Json], name: str, form: Form) -> dict[str, Json]:
    """What stands in the first case at the first rate in which something of that name was run, by the names of all."""
    first = shown[0]["at"].get("rate")
    cases = [{row["name"]: row for row in case[form.kinds]} for case in shown if case["at"].get("rate") == first]
    return next((rows for rows in cases if name in rows), cases[0])


def _said(row: Json | None) -> str:
    from aqmlab.evaluation import outcome

    return "" if row is None else ", ".join(outcome.brief(row[kind]["value"], row[kind]["unit"]) for kind in KINDS)


def _counts(counts: Json) -> str:
    return " ".join(f"{counts[word]}{mark}" for word, mark in MARKS.items() if counts[word])
