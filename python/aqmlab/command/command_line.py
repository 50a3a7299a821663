"""Has what typer has no public name for: the exceptions of a wrong command line, and values read without pydantic."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from typer._click.exceptions import BadParameter, ClickException, NoArgsIsHelpError, UsageError
from typer.main import get_command, get_command_name

__all__ = ["ClickException", "NoArgsIsHelpError", "UsageError", "command_of"]

WHOLE = re.compile(r"-?[0-9]{1,18}")


class _Plain:
    """Stands in for typer's reading of values; what is not plainly right is left to it, and to its complaints."""

    def __init__(self, kind: Any, param: Any) -> None:
        self._kind, self._info = kind, param.type_descriptor.parameter_info

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple else None
        if self._kind is int:
            return self._number(value, param, ctx)
        if self._kind is float:
            return self._of_typer(value, param, ctx)
        if self._kind is Path:
            return self._path(value, param, ctx)
        return value

    def _number(self, value: Any, param: Any, ctx: Any) -> Any:
        if isinstance(value, int) or (isinstance(value, str) and WHOLE.fullmatch(value)):
            number, least, most = int(value), self._info.min, self._info.max
            if (least is None or number >= least) and (most is None or number <= most):
                return number
        return self._of_typer(value, param, ctx)

    def _of_typer(self, value: Any, param: Any, ctx: Any) -> Any:
        """A number as typer reads it; what is none is named, with what was expected."""
        try:
            return self._by_typer(value, param, ctx)
        except BadParameter:
            what = "a whole number" if self._kind is int else "a number"
            least, most = self._info.min, self._info.max
            bounds = (
                [] if least is None else [f"{least:g} or more"] if most is None else [f"from {least:g} to {most:g}"]
            )
            expected = ", ".join([what, *bounds])
            raise BadParameter(f"{value!r}: expected {expected}", ctx=ctx, param=param) from None

    def _path(self, value: Any, param: Any, ctx: Any) -> Any:
        if not os.path.exists(value) or os.access(value, os.R_OK):  # noqa: PTH110 - of any text, however long
            return Path(value)
        return self._by_typer(value, param, ctx)

    def _by_typer(self, value: Any, param: Any, ctx: Any) -> Any:
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def command_of(app: typer.Typer, words: Sequence[str]) -> Any:
    """The command behind `app` for these words, which reads texts, flags, whole numbers and paths by itself.

    typer (0.29) has pydantic check that a text is one, and pydantic takes longer to load than everything else that a
    list of disciplines needs. Where the first word is a verb, typer reads the options of that verb alone.
    """
    command = get_command(_with_one_verb(app, words[0]) if words else app)
    _read_plainly(command)
    return command


def _with_one_verb(app: typer.Typer, word: str) -> typer.Typer:
    own = [verb for verb in app.registered_commands if word == (verb.name or _name(verb.callback))]
    if not own:
        return app
    small = copy.copy(app)
    small.registered_commands, small.registered_groups = own, []
    return small


def _name(function: Any) -> str:
    return get_command_name(function.__name__)


def _read_plainly(command: Any) -> None:
    for param in command.get_params(typer.Context(command)):  # --help is among them
        kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
        if kind in (str, list[str], bool, int, float, Path) and getattr(param, "_runtime_param", ...) is None:
            param._runtime_param = _Plain(kind, param)
    for one in getattr(command, "commands", {}).values():
        _read_plainly(one)
