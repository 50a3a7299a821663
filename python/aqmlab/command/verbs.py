"""What the verbs of the command line have in common: options, progress, complaints, JSON.

Modules of verbs load what a verb needs within it: `aqmlab --version` and the completion of words load none of it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from aqmlab import stopping
from aqmlab.command import completion
from aqmlab.errors import BadInput, Doubt, Interrupted, one_line

if TYPE_CHECKING:
    from aqmlab.progress import Monitor, View

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results; by default one below results/.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, and nothing else.")]
Jobs = Annotated[int | None, typer.Option(help="Runs at a time; by default one a core.", min=1)]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="tcp://HOST:PORT", help="Make the runs on the Dask cluster of this scheduler."),
]
Settings = Annotated[
    list[str],
    typer.Option(
        "--set",
        help="Change a key of the scenario: --set link.qdisc.qref=24p",
        metavar="KEY=VALUE",
        autocompletion=completion.settings,
    ),
]


def _allowed(is_allowed: bool) -> bool:
    if is_allowed:
        from aqmlab.laws import brought

        brought.allow_all()
    return is_allowed


AllowCode = Annotated[
    bool,
    typer.Option("--allow-code", help="Run the code that a scenario names: files of laws.", callback=_allowed),
]

Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with what was interrupted; finished runs are kept in any case.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Make runs anew that are kept from before.")]


def either_fresh_or_resumed(fresh: bool, resume: bool) -> None:
    """Refuses to make runs anew and to go on with them at once."""
    if resume and fresh:
        raise BadInput("--fresh: makes every run anew; expected it without --resume, which keeps them")


def changes(settings: Sequence[str]) -> dict[str, Any]:
    """What `--set` says of a scenario. A file of code among the values is named by the user, and may run."""
    from aqmlab import arguments, scenario
    from aqmlab.laws import brought

    found: dict[str, Any] = {}
    for key, value in map(scenario.parse_setting, settings):
        found.pop(key, None)  # of one key that is there twice the last counts, and its place
        found[key] = value
    found = arguments.changes(found, "set")
    brought.allow_set(found)
    return found


def complain(message: str, exit_code: int) -> int:
    """Says in one line on standard error what was wrong; the answer is the exit code given."""
    print(f"aqmlab: {one_line(message)}", file=sys.stderr)
    return exit_code


@contextlib.contextmanager
def doubts_said() -> Iterator[None]:
    """Says doubts as complaints are said, each once; they change no exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", Doubt)
        otherwise, told = warnings.showwarning, set[str]()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, Doubt):
                otherwise(message, category, filename, lineno, file, line)
            elif str(message) not in told:
                told.add(str(message))
                complain(f"warning: {message}", 0)

        warnings.showwarning = show
        yield


def print_json(value: Any) -> None:
    """The one object that `--json` asks for; in ASCII where standard output has not every character."""
    has_all = str(getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
    print(json.dumps(value, indent=2, ensure_ascii=not has_all, allow_nan=False))


class Stoppable(TyperGroup):
    """Verbs that say what they were stopped in, in a line."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the verb."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:  # without words where nobody knows what is finished
            raise typer.Exit(complain(str(stop) or "stopped", Interrupted.exit_code)) from None
        except BrokenPipeError as error:  # typer takes every one for that of a reader who went away
            if stopping.nobody_reads():
                raise
            raise typer.Exit(complain(stopping.cause(error), 3)) from None


@contextlib.contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """Says of Ctrl-C that comes when runs are over, as while their tables are shown, how many the folder has."""
    try:
        yield
    except KeyboardInterrupt as stop:
        from aqmlab.results import store

        count = 0 if str(stop) else store.runs_in(folder)
        if not count:
            raise
        raise kept(count, folder) from None


def kept(count: int, folder: Path) -> Interrupted:
    """Ctrl-C, when so many runs are finished."""
    runs = "1 run is" if count == 1 else f"{count} runs are"
    return Interrupted(f"stopped: {runs} finished in {folder}; the same command with --resume goes on")


def say(what: str) -> None:
    """A line on standard error about what goes on."""
    print(f"aqmlab: {what}", file=sys.stderr, flush=True)


def _remark(text: str) -> None:
    complain(text, 0)


@contextlib.contextmanager
def watched(as_json: bool, are_several: bool = False) -> Iterator[Monitor]:
    """Bars on a terminal; elsewhere a line if a run will take long, and of several one each minute."""
    from aqmlab import bars as on_screen
    from aqmlab.progress import Both
    from aqmlab.runs.progress_lines import Lines
    from aqmlab.runs.watchdog import Forecast

    bars = None if as_json else on_screen.on_terminal()
    if bars is not None:
        with bars:
            yield bars
    elif are_several and not as_json:
        yield Both(Forecast(_remark), Lines(_remark, "runs"))
    else:
        yield Forecast(_remark)


@contextlib.contextmanager
def viewed(as_json: bool, monitor: Monitor, has_command: bool = False) -> Iterator[View]:
    """A screen or lines for live runs; where a program writes between them, lines."""
    from aqmlab.bars import Bars
    from aqmlab.command import live_view as views
    from aqmlab.progress import Unseen

    if as_json:
        yield Unseen()
        return
    bars = monitor if isinstance(monitor, Bars) else None
    with views.on_standard_error(bars, beside_output=has_command) as view:
        yield view
