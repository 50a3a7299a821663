"""The verb `aqmlab report`: the page of a result or comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.command import pages
from aqmlab.command.verbs import AsJson, print_json


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command("report", short_help="Write a page of a result, with its figures.")(report)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A result or comparison folder.")],
    as_json: AsJson = False,
) -> None:
    """Write one self-contained HTML page, and its figures as SVG and PNG, into a result folder."""
    from aqmlab import api
    from aqmlab.comparison import Comparison
    from aqmlab.study import compared

    found = api.load_to_show(folder)
    page = pages.write(found, compared.claims(found) if isinstance(found, Comparison) else ())
    if as_json:
        figures = sorted(str(path) for path in (page.parent / "figures").iterdir())
        print_json({"report": str(page), "figures": figures})
    else:
        print(page)
