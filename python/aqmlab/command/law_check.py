"""The verb `check`: whether a law or discipline of one's own keeps its promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aqmlab.command.verbs import AsJson, complain, print_json

if TYPE_CHECKING:
    from aqmlab.runs.law_check import Checked


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command(short_help="Put a law or a discipline of your own to the test.")(check)


def check(
    law: Annotated[
        Path,
        typer.Argument(
            metavar="LAW.py|LAW.so|POLICY.onnx", help="A law or a discipline in Python, a shared library, or a policy."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Put a law or a discipline of your own to the test before anything depends on it.

    Random arrivals, departures and ticks, a full queue, silence: are verdicts verdicts, probabilities from 0 to 1, the
    same calls answered alike, and what does a decision cost? Is every packet that a discipline holds sent once or lost
    once? Where something is wrong, the last packets tell the story.
    """
    from aqmlab.runs import law_check

    found = law_check.check(law)
    if as_json:
        print_json(found.as_dict())
    else:
        _show(found)
    if found.problem:
        raise typer.Exit(complain(found.problem, 1))


def _show(found: Checked) -> None:
    """A line each: what is right, what is to be said, what it costs, and the last packets before something is wrong."""
    from aqmlab.command import terminal
    from aqmlab.command.tables import item, sentence

    out = terminal.console()
    by = f", {found.built_with}" if found.built_with else ""
    sentence(out, f"{found.name} ({found.path}): {found.how}{by}")
    for line in found.kept:
        item(out, "  right   ", line)
    for line in found.remarks:
        item(out, "  remark  ", line)
    if found.decision_ns is not None:
        cost = f"{found.decision_ns:,.0f} ns of processor time"
        item(out, "  cost    ", f"{cost} a packet that arrives or leaves, beyond drop-tail")
    for line in found.story:
        item(out, "  then    ", line)
