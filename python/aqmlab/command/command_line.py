"""Has what typer has no public name for: the exceptions of a wrong command line, and texts taken as they are."""

from __future__ import annotations

from typing import Any

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError, UsageError
from typer.main import get_command

__all__ = ["ClickException", "NoArgsIsHelpError", "UsageError", "command_of"]


class _AsGiven:
    """Stands in for typer's coercion where there is nothing to coerce."""

    @staticmethod
    def coerce(value: Any, param: Any, ctx: Any) -> Any:
        return () if value is None and param.multiple else value


def command_of(app: typer.Typer) -> Any:
    """The command behind `app`, which takes texts and flags as they are.

    typer (0.29) has pydantic check that a text is one, and pydantic takes longer to load than everything else that a
    list of disciplines needs.
    """
    command = get_command(app)
    _take_as_given(command)
    return command


def _take_as_given(command: Any) -> None:
    for param in command.get_params(typer.Context(command)):  # --help is among them
        kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
        if kind in (str, list[str], bool) and getattr(param, "_runtime_param", ...) is None:
            param._runtime_param = _AsGiven
    for one in getattr(command, "commands", {}).values():
        _take_as_given(one)
