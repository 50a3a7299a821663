"""The verb `aqmlab watch`, and the live page that other verbs open."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aqmlab import files
from aqmlab.command.verbs import print_json, say
from aqmlab.errors import BadInput

if TYPE_CHECKING:
    from aqmlab.progress import Monitor, View
    from aqmlab.runs.noted import Noted, NotedView, Notes
    from aqmlab.watch.server import Watch

LOOK_S = 0.2

Opens = Annotated[bool, typer.Option("--open", help="Open a live page of the runs in the browser.")]


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command("watch", short_help="Serve a live page over results that are being made.")(watch)


def watch(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FOLDER]", help="Of the results that are made; without it the only ones.", show_default=False
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="Of the page; by default one that is free.", min=0, max=65535)] = 0,
    opens: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print how far the runs are as one JSON object, and serve nothing.")
    ] = False,
) -> None:
    """Serve a live page over results that are being made: queues, rates, percentiles.

    Of run, live, compare, sweep, study and evaluate, whoever started them on this machine as the same user. The page
    is for browsers of this machine alone. It ends with the runs, or by Ctrl-C, which does nothing to them.
    """
    from aqmlab.watch import seen as seeing
    from aqmlab.watch.server import Watch

    if as_json:
        if opens or port:
            raise BadInput(f"{'--open' if opens else '--port'}: is of the page; expected --json without it")
        print_json(seeing.of_notes(_notes(folder)).as_dict())
        return
    page = Watch(_notes(folder), port)
    try:
        shown(page, opens)
        # With a timeout, so that Ctrl-C is heard at once.
        while not page.over.wait(LOOK_S):
            pass
        seen = page.seen
        said = f"the runs were stopped: {seen.ended} of {max(seen.expected, len(seen.runs))} are done"
        say(said if seen.is_stopped else "the runs are over")
    except KeyboardInterrupt:
        say("no longer watched; the runs go on")
    finally:
        page.close()


def _notes(folder: Path | None) -> Path:
    from aqmlab.runs import noted

    found = noted.under_way() if folder is None else noted.of(folder)
    if not found and folder is not None:
        files.found_folder(folder, "one of results that are made now")
    if not found:
        where = "" if folder is None else f"{folder}: "
        raise BadInput(
            f"{where}no runs are under way; expected some that aqmlab run, live, compare, sweep, study or evaluate "
            "makes now"
        )
    if folder is None and len(found) > 1:
        folders = ", ".join(noted.folder_of(path) for path in found)
        raise BadInput(f"watch: expected one of the folders that runs are under way for: {folders}")
    return found[-1]


def shown(page: Watch, opens: bool) -> None:
    """Says where it is, and opens it in a browser with windows if there is one."""
    say(f"live page: {page.address}")
    has_windows = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    if opens and not (has_windows and webbrowser.open(page.address)):
        say("no browser with windows was found here; open the address in one of this machine")


@contextlib.contextmanager
def followed(
    folder: Path, monitor: Monitor, view: View | None = None, opens: bool = False
) -> Iterator[tuple[Noted, NotedView]]:
    """A monitor and a view whose runs can be watched by others meanwhile; and the live page, if it is wanted."""
    from aqmlab.progress import Unseen
    from aqmlab.runs import noted

    command = "aqmlab " + shlex.join(sys.argv[1:])
    with noted.noting(folder, command) as notes, _served(notes) if opens else contextlib.nullcontext():
        yield noted.Noted(monitor, notes), noted.NotedView(view or Unseen(), notes)


@contextlib.contextmanager
def _served(notes: Notes) -> Iterator[None]:
    from aqmlab.runs import noted
    from aqmlab.watch.server import Watch

    if not notes.are_kept:
        raise BadInput(f"--open: {noted.folder()}: notes cannot be written; expected a folder of your own")
    page = Watch(notes.path)
    try:
        shown(page, True)
        yield
    finally:
        notes.over()  # also where runs were cut off: who looks shall not take them for going on
        page.close()
