"""The verb `aqmlab figures`: the figures of a result or comparison, for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.command.verbs import AsJson, print_json


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command("figures", short_help="Draw the figures of a result for a paper.")(write)


def write(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A result or comparison folder.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Which; without names all.", show_default=False)
    ] = None,
    width: Annotated[str, typer.Option(help="column (3.3in), page (7in), or a length, as in 84mm.")] = "column",
    size: Annotated[str, typer.Option(help="Of the type.")] = "8pt",
    font: Annotated[str, typer.Option(help="A family of type that is installed.")] = "",
    format_: Annotated[str, typer.Option("--format", help="pdf, svg or png.")] = "pdf",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the figures.", metavar="DIR")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Draw the figures of a result or comparison for a paper, as wide and in such type as it has."""
    from aqmlab import api, figures

    found = api.load_to_show(folder)
    paths = figures.write(found, out, names or (), width=width, size=size, font=font, format=format_)
    if as_json:
        there = figures.of(found)
        print_json({"figures": [{"file": str(path), "caption": there[path.stem].caption} for path in paths]})
    else:
        print("\n".join(map(str, paths)))
