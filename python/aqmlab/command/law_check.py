"""The verb `check`: whether a law or discipline of one's own keeps its promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.command.verbs import AsJson, complain, print_json


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command()(check)


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
        print(f"{found.name} ({found.path}): {found.how}{f', {found.built_with}' if found.built_with else ''}")
        for line in found.kept:
            print(f"  right   {line}")
        for line in found.remarks:
            print(f"  remark  {line}")
        if found.decision_ns is not None:
            cost = f"{found.decision_ns:,.0f} ns of processor time"
            print(f"  cost    {cost} a packet that arrives or leaves, beyond drop-tail")
        for line in found.story:
            print(f"  then    {line}")
    if found.problem:
        raise typer.Exit(complain(found.problem, 1))
