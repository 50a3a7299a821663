"""The `aqmlab` command.

Results go to standard output, progress and complaints to standard error. Exit codes: 0 done, 1 a self-check failed,
2 bad input, 3 this machine cannot do it, 130 stopped by Ctrl-C, 141 whoever read the output went away.

What a verb needs is loaded within it, so that help, lists and the completion of words come at once.
"""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab import engine, files, scenario, stopping
from aqmlab.arguments import of_command_line
from aqmlab.command import advise, beginnings, completion, explaining, law_check, pages, testbed
from aqmlab.command import capture as capture_commands
from aqmlab.command import evaluate as evaluate_commands
from aqmlab.command import figures as figures_command
from aqmlab.command import flent as flent_command
from aqmlab.command import report as report_command
from aqmlab.command import study as study_commands
from aqmlab.command import sweep as sweep_commands
from aqmlab.command import tc as tc_command
from aqmlab.command import vectors as vectors_command
from aqmlab.command import watch as watch_command
from aqmlab.command.command_line import ClickException, NoArgsIsHelpError, UsageError, command_of
from aqmlab.command.verbs import (
    AllowCode,
    AsJson,
    Jobs,
    Out,
    Settings,
    Stoppable,
    changes,
    complain,
    doubts_said,
    keeping,
    print_json,
    viewed,
    watched,
)
from aqmlab.command.watch import Opens, followed
from aqmlab.errors import AqmlabError, BadInput, Interrupted
from aqmlab.laws import brought

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    cls=Stoppable,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A laboratory for active queue management: what a queue discipline does to the users of a link.",
)

Seed = Annotated[int | None, typer.Option(help="Seed of the (first) run, instead of the scenario's.", min=0)]
Reps = Annotated[int, typer.Option(help="Independent runs, with the seeds seed, seed + 1, ...", min=1)]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the interrupted work in the folder given with -o.")]
Uncongested = Annotated[
    str | None,
    typer.Option(
        "--uncongested-rate", help="Rate of the link loads are calibrated on; by default ten times the link's."
    ),
]
Kernel = Annotated[
    str | None,
    typer.Option(help="With --virtual: which kernel, as named by kernel build, such as 7.3.", metavar="NAME"),
]
WithReport = Annotated[bool, typer.Option("--report", help="Write the report as well.")]


@app.command()
def run(
    scenario_file: Annotated[str, typer.Argument(metavar="SCENARIO.toml")],
    out: Out = None,
    seed: Seed = None,
    reps: Reps = 1,
    settings: Settings = [],  # noqa: B006 - typer copies it
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    jobs: Jobs = None,
    resume: Resume = False,
    uncongested_rate: Uncongested = None,
    with_report: WithReport = False,
    opens: Opens = False,
) -> None:
    """Simulate a scenario and keep its tables."""
    from aqmlab import api
    from aqmlab.command import terminal

    edits = changes(settings)
    source = scenario.read(Path(scenario_file)).with_changes(edits)
    folder = _folder(out, resume, str(source.tree.get("name", "run")))
    _foresee(source, as_json)
    with keeping(folder):
        with watched(as_json, reps > 1) as bars, followed(folder, bars, opens=opens) as (monitor, _):
            found = api.run(
                Path(scenario_file),
                seed=seed,
                reps=reps,
                out=folder,
                set=edits,
                jobs=jobs,
                resume=resume,
                uncongested_rate=uncongested_rate,
                monitor=monitor,
            )
        page = pages.write(found) if with_report else None
        if as_json:
            print_json(found.summary)
        else:
            console = terminal.console()
            terminal.result(console, found)
            _say_where(console, found.folder, page)
    _judge(found.manifest["self_checks"])


@app.command(short_help="Run a scenario between real TCP stacks.")
def live(
    scenario_file: Annotated[str, typer.Argument(metavar="SCENARIO.toml")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND ...]", help="A program to run inside.", show_default=False),
    ] = None,
    out: Out = None,
    seed: Seed = None,
    reps: Reps = 1,
    settings: Settings = [],  # noqa: B006 - typer copies it
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    virtual: Annotated[
        bool, typer.Option("--virtual", help="In a kernel of virtual time: never late, as long as it takes.")
    ] = False,
    kernel: Kernel = None,
    capture: Annotated[
        str | None, typer.Option(help="Write packets down: off, before or after the queue, both.", metavar="WHERE")
    ] = None,
    side: Annotated[str, typer.Option(help="Where COMMAND runs: left, where forward comes from, or right.")] = "left",
    traffic: Annotated[
        bool, typer.Option("--traffic/--no-traffic", help="The scenario's own traffic beside COMMAND.")
    ] = True,
    jobs: Jobs = None,
    resume: Resume = False,
    uncongested_rate: Uncongested = None,
    with_report: WithReport = False,
    opens: Opens = False,
) -> None:
    """Run a scenario between real TCP stacks, with the queue discipline between them.

    In real time on this machine, where it must keep up; or in virtual time, where it cannot be late. A run that broke
    its budget of lateness is kept and called void.
    """
    from aqmlab import api
    from aqmlab.command import terminal

    edits = changes(settings)
    source = scenario.read(Path(scenario_file)).with_changes(edits)
    folder = _folder(out, resume, str(source.tree.get("name", "live")))
    _foresee(source, as_json)
    with keeping(folder):
        with (
            watched(as_json) as bars,
            viewed(as_json, bars, bool(command)) as screen,
            followed(folder, bars, screen, opens) as (monitor, view),
        ):
            found = api.live(
                Path(scenario_file),
                seed=seed,
                reps=reps,
                out=folder,
                set=edits,
                virtual=virtual,
                kernel=kernel,
                capture=capture,
                command=command or (),
                side=side,
                traffic=traffic,
                jobs=jobs,
                resume=resume,
                uncongested_rate=uncongested_rate,
                monitor=monitor,
                view=view,
            )
        page = pages.write(found) if with_report else None
        if as_json:
            print_json(found.summary)
        else:
            console = terminal.console()
            terminal.result(console, found)
            _say_where(console, found.folder, page)
    _judge(found.manifest["self_checks"])


@app.command()
def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...", help="See above.", show_default=False, autocompletion=completion.what_is_compared
        ),
    ],
    out: Out = None,
    seed: Seed = None,
    reps: Reps = 1,
    settings: Settings = [],  # noqa: B006 - typer copies it
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    jobs: Jobs = None,
    resume: Resume = False,
    baseline: Annotated[str | None, typer.Option(help="What the others are measured against.")] = None,
    uncongested_rate: Uncongested = None,
    live: Annotated[bool, typer.Option("--live", help="Also between real TCP stacks, in real time.")] = False,
    virtual: Annotated[bool, typer.Option("--virtual", help="Also between real TCP stacks, in virtual time.")] = False,
    kernel_qdisc: Annotated[
        bool, typer.Option("--kernel-qdisc", help="With --live or --virtual: also with the kernel's own discipline.")
    ] = False,
    kernel: Kernel = None,
    with_report: WithReport = False,
    opens: Opens = False,
) -> None:
    """Compare disciplines under the same demands.

    WHAT is a scenario with [[variant]] tables; or a scenario and disciplines in tc's words, each quoted ("pi qref 24p
    ecn", "fq_codel / pfifo limit 100" forward and in reverse, uncongested for the reference); or several scenarios; or
    several result folders.

    With --live, --virtual and --kernel-qdisc each discipline also runs between real hosts, and a table says where
    simulator and test bed agree.
    """
    from aqmlab import api, lead, subject
    from aqmlab.agreement import agreements
    from aqmlab.command import agreement_tables, terminal
    from aqmlab.comparison import Incomplete
    from aqmlab.runs.runner import default_jobs
    from aqmlab.study import compared

    edits = changes(settings)
    api.check_together(what)
    are_folders = all(word and files.is_folder(word) for word in what)
    name = "comparison"
    if not are_folders:
        source = scenario.read(Path(what[0])).with_changes(edits)
        name = str(source.tree.get("name", name))
        _foresee(source, as_json)
    folder = _folder(out, resume, name)
    with contextlib.ExitStack() as held:
        held.enter_context(keeping(folder))
        # Drawers get ready beside the runs, but for those in real time, which nobody is to disturb.
        is_free = with_report and not live and not are_folders
        ready = held.enter_context(pages.drawers(jobs or default_jobs())) if is_free else None
        with (
            watched(as_json, are_several=True) as bars,
            viewed(as_json, bars) as screen,
            followed(folder, bars, screen, opens) as (monitor, view),
        ):
            try:
                found = api.compare(
                    *([Path(what[0]), *what[1:]] if not are_folders else what),
                    seed=seed,
                    reps=reps,
                    out=folder,
                    set=edits,
                    jobs=jobs,
                    resume=resume,
                    baseline=baseline,
                    uncongested_rate=uncongested_rate,
                    live=live,
                    virtual=virtual,
                    kernel_qdisc=kernel_qdisc,
                    kernel=kernel,
                    monitor=monitor,
                    view=view,
                )
            except Incomplete as error:
                found = error.comparison
        begun = None if ready is None else pages.begun(ready, found)
        asked, witnessed = compared.claims(found), agreements.of_comparison(found)
        if as_json:
            if with_report:
                pages.write(found, asked, begun)
            answer = {**found.as_dict(), "claims": [claim.as_dict() for claim in asked]}
            print_json({**answer, "agreements": [item.as_dict() for item in witnessed]})
        else:
            console = terminal.console()
            terminal.comparison(console, found, subject.of(found.columns), lead.of(found))
            agreement_tables.agreements(console, witnessed)
            terminal.verdicts(console, asked)
            page = pages.write(found, asked, begun) if with_report else None
            _say_where(console, found.folder, page)
    _judge(
        [
            dict(check, run=f"{column.name} {check.get('run', '')}".strip())
            for column in found.columns
            for check in column.result.manifest["self_checks"]
        ],
        [failure.message for failure in found.failed],
    )


@app.command(short_help="Find the population that offers a load.")
def calibrate(
    scenario_file: Annotated[str, typer.Argument(metavar="SCENARIO.toml")],
    seed: Seed = None,
    reps: Reps = 1,
    settings: Settings = [],  # noqa: B006 - typer copies it
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    jobs: Jobs = None,
    uncongested_rate: Uncongested = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not read the cache.")] = False,
) -> None:
    """Find the population that offers the load a scenario asks for.

    One that misses it by more than a run may fails here too.
    """
    from aqmlab import api, checks
    from aqmlab.command import terminal

    with watched(as_json) as monitor:
        found = api.calibrate(
            Path(scenario_file),
            set=changes(settings),
            seed=seed,
            reps=reps,
            jobs=jobs,
            uncongested_rate=uncongested_rate,
            fresh=fresh,
            monitor=monitor,
        )
    if as_json:
        print_json({"calibrations": [item.as_dict() for item in found]})
    else:
        terminal.calibrations(terminal.console(), found)
    _judge([dict(checks.of_load(one.as_dict()).as_dict(), run=one.name) for one in found])


@app.command(short_help="Record who asks for how much when, to be replayed.")
def record(
    scenario_file: Annotated[str, typer.Argument(metavar="SCENARIO.toml")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file of demands to write.", metavar="FILE.csv")],
    seed: Seed = None,
    settings: Settings = [],  # noqa: B006 - typer copies it
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    jobs: Jobs = None,
    uncongested_rate: Uncongested = None,
) -> None:
    """Record who asks for how much when, on the uncongested link, to be replayed under any discipline.

    Beside FILE.csv a scenario FILE.toml is written, in which replays of the recording stand for the blocks that ask.
    """
    from aqmlab import api
    from aqmlab.command import terminal

    with watched(as_json) as monitor:
        found = api.record(
            Path(scenario_file),
            out,
            set=changes(settings),
            seed=seed,
            jobs=jobs,
            uncongested_rate=uncongested_rate,
            monitor=monitor,
        )
    if as_json:
        print_json(found.as_dict())
    else:
        terminal.recording(terminal.console(), found)


report_command.add_to(app)
figures_command.add_to(app)
explaining.add_to(app)
law_check.add_to(app)
tc_command.add_to(app)
advise.add_to(app)
vectors_command.add_to(app)
beginnings.add_to(app)
testbed.add_to(app)
capture_commands.add_to(app)
study_commands.add_to(app)
evaluate_commands.add_to(app)
sweep_commands.add_to(app)
watch_command.add_to(app)
flent_command.add_to(app)


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"aqmlab {engine.version()}")
        raise typer.Exit


@app.callback()
def _every_verb(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: runs a verb, says in one line what was wrong, and exits."""
    with stopping.like_ctrl_c():
        code = stopping.printed(invoke(sys.argv[1:] if arguments is None else arguments))
    stopping.ended()
    sys.exit(code)


def invoke(arguments: Sequence[str]) -> int:
    """Runs a verb; the answer is the exit code."""
    try:
        return _invoke(arguments)
    except BrokenPipeError:
        return stopping.UNREAD
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer and rich end the process then
            return stopping.UNREAD
        raise


def _invoke(arguments: Sequence[str]) -> int:
    try:
        _check_text(arguments)
        arguments = _as_here(arguments)
        with doubts_said(), brought.permission(), of_command_line():
            return int(command_of(app, arguments)(list(arguments), prog_name="aqmlab", standalone_mode=False) or 0)
    except AqmlabError as error:
        return complain(str(error), error.exit_code)
    except NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return 2
    except UsageError as error:
        verb = error.ctx.command_path if error.ctx is not None else "aqmlab"
        return complain(f"{error.format_message().rstrip('.')}; see {verb} --help", 2)
    except ClickException as error:
        return complain(error.format_message(), 2)
    except OSError as error:
        place = str(error.filename or "")
        if error.errno in EXPECTED and _is_named(place, arguments):
            return complain(f"{place}: {error.strerror}; expected {EXPECTED[error.errno]}", 2)
        return complain(stopping.cause(error), 3)
    except KeyboardInterrupt:  # before a verb began; `verbs.Stoppable` has the others
        return complain("stopped", Interrupted.exit_code)


EXPECTED = {
    errno.EACCES: "a place that you may read and write",
    errno.EPERM: "a place that you may read and write",
    errno.EROFS: "a place that can be written to",
    errno.ENAMETOOLONG: "a shorter name",
    errno.ELOOP: "links that lead somewhere",
    errno.ENOTDIR: "a folder in its path",
}
"""What would have done in place of a file or folder that the command line names and that cannot be used."""


HELP, VERSION = ("help", "-h"), ("version", "-V")
"""How other commands are asked for their help and version."""


def _as_here(arguments: Sequence[str]) -> Sequence[str]:
    """The words with `--help` and `--version` in the place of what other commands call so."""
    first, *rest = arguments or ("",)
    if first in VERSION and not rest:
        return ["--version"]
    if first in HELP:
        return [*rest, "--help"]
    if first == "init":
        raise BadInput("init: expected new, which writes an example to begin with, as in aqmlab new web")
    return [*arguments[:-1], "--help"] if rest[-1:] == ["-h"] and "--" not in rest else arguments


def _check_text(arguments: Sequence[str]) -> None:
    """Refuses what cannot be written into a manifest, nor be shown."""
    for word in arguments:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"{word!r}: character {error.start} is not UTF-8; expected text in UTF-8") from None


def _is_named(place: str, arguments: Sequence[str]) -> bool:
    """Whether a path is one that the command line names, lies below it, or on the way there."""
    path, named = Path(place), [Path(word.rpartition("=")[2]) for word in arguments if word not in ("", ".")]
    return place != "" and any(path == one or one in path.parents or path in one.parents for one in named)


def _folder(out: Path | None, resume: bool, name: str) -> Path:
    if out is None and resume:
        raise BadInput("--resume: expected the folder to go on with, as in -o results/demo")
    from aqmlab.results import store

    return out if out is not None else store.free_name(Path("results") / scenario.slug(name)[:100])


def _say_where(console: Console, folder: Path, page: Path | None) -> None:
    console.print(f"\nResults in {folder}", markup=False, soft_wrap=True)
    if page is not None:
        console.print(f"Report:    {page}", markup=False, soft_wrap=True)


def _foresee(source: scenario.Source, as_json: bool) -> None:
    """Says before a run what can be reckoned: what will hold its long flows back, and memory where it needs much."""
    if as_json:
        return
    from aqmlab.command import terminal
    from aqmlab.results import held_back
    from aqmlab.runs import memory

    with contextlib.suppress(AqmlabError):  # whoever runs it says what is wrong
        resolved = source.resolve()
        terminal.findings(terminal.console(), [*held_back.foreseen(resolved.scenario), *memory.foreseen(resolved)])


def _judge(checks: Sequence[dict[str, Any]], failures: Sequence[str] = ()) -> None:
    """A run that is not what it claims to be says so, and a variant that failed; the exit code does too."""
    failed = [check for check in checks if not check["holds"]]
    for check in failed:
        where = f"{check['run']}: " if check.get("run") else ""
        complain(f"self-check failed: {where}{check['name']}: {check['detail']}", 1)
    for failure in failures:
        complain(failure, 1)
    if failed or failures:
        raise typer.Exit(1)
