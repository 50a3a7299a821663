"""The verb `aqmlab flent`: a run as a data file of flent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.command.verbs import AsJson, print_json


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command("flent", short_help="Write a run as a data file of flent.")(flent)


def flent(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.", metavar="FILE.flent.gz")],
    title: Annotated[str, typer.Option(help="In flent's legends; by default the scenario's name.")] = "",
    as_json: AsJson = False,
) -> None:
    """Write a run as a data file of flent: the series of its test RRUL, to be plotted beside those of real links."""
    from aqmlab import api
    from aqmlab.comparison import Comparison
    from aqmlab.errors import BadInput
    from aqmlab.results import flent as data_file

    found = api.load_to_show(folder)
    if isinstance(found, Comparison) or len(found.runs) != 1:
        inside = ", ".join(sorted(path.parent.name for path in folder.glob("*/manifest.json")))
        raise BadInput(f"{folder}: has several runs; expected the folder of one of them: {inside}")
    path = data_file.write(found.runs[0], out, title)
    if as_json:
        print_json({"file": str(path)})
    else:
        print(path)
