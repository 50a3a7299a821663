"""The verb `aqmlab vectors`: connection vectors of a packet capture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.command.verbs import AsJson, print_json


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command("vectors", short_help="Write connection vectors of a packet capture.")(vectors)


def vectors(
    capture: Annotated[Path, typer.Argument(metavar="CAPTURE", help="A pcap or pcapng file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file of vectors to write.", metavar="FILE.cvec")],
    form: Annotated[str, typer.Option("--format", help="original (SEQ, CONC) or alternate (S, C).")] = "original",
    quiet_time: Annotated[str, typer.Option(help="A pause in one direction that ends a unit.")] = "500ms",
    network: Annotated[
        str | None, typer.Option("--from", help="Only connections that begin there, as 10.0.0.0/8.", metavar="NETWORK")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the TCP connections of a packet capture as connection vectors, for traffic of kind tmix."""
    from aqmlab.command import explanations, terminal
    from aqmlab.vectors.convert import capture_to_vectors

    found = capture_to_vectors(capture, out, form, quiet_time, network)
    if as_json:
        print_json(found.as_dict())
    else:
        explanations.converted(terminal.console(), found)
