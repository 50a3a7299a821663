"""Arguments of the Python interface: one of another kind is refused in a line that names it and what was expected.

A message that names an argument calls it as whoever gave it wrote it: in Python or on the command line.
"""

import contextlib
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import combinations
from numbers import Integral
from pathlib import Path
from typing import Any

from aqmlab.errors import BadInput

_ARE_FLAGS: ContextVar[bool] = ContextVar("_ARE_FLAGS", default=False)


@contextlib.contextmanager
def of_command_line() -> Iterator[None]:
    """What is asked for meanwhile comes from the command line."""
    token = _ARE_FLAGS.set(True)
    try:
        yield
    finally:
        _ARE_FLAGS.reset(token)


def called(name: str) -> str:
    """An argument without its value: `resume`, or `--resume` on the command line."""
    return f"--{name.replace('_', '-')}" if _ARE_FLAGS.get() else name


def named(name: str, value: Any = True) -> str:
    """An argument with its value: `resume=True`, or `--resume` on the command line."""
    if _ARE_FLAGS.get():
        flag = called(name)
        return flag if value is True else f"{flag} {shlex.quote(str(value))}"
    return f"{name}={_python(value)}"


def changed(name: str, key: str, value: Any, written: str | None = None) -> str:
    """A change of a key, as one of the mapping `name` or of `--set`; `written` is its value in TOML."""
    if _ARE_FLAGS.get():
        return f"--set {key}={value if written is None else written}"
    return f"{name}={{{_python(key)}: {_python(value)}}}"


def again(fresh: bool = False) -> str:
    """What is called again; one that was `fresh` is without that, for the two are not called together."""
    said = "the same command with --resume" if _ARE_FLAGS.get() else "the same call with resume=True"
    return f"{said} in place of {named('fresh')}" if fresh else said


def _python(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def whole(given: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """A whole number, of numpy's too; a truth value is none."""
    is_whole = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_whole or int(given) < least or (most is not None and int(given) > most):
        bounds = f"{least} or more" if most is None else f"from {least} to {most}"
        raise BadInput(f"{name}: {given!r}: expected a whole number, {bounds}")
    return int(given)


def path(given: Any, name: str = "out", expected: str = "the path of a folder") -> Path:
    """The path that is given, as a text or as whatever has one."""
    if not isinstance(given, str | os.PathLike):
        raise BadInput(f"{name}: {given!r}: expected {expected}")
    text(str(given), name)
    return Path(given)


def text(given: str, where: str) -> str:
    """A text that can be written into a file; one with half a character cannot."""
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"{where}: {given!r}: character {error.start} is not UTF-8; expected text in UTF-8") from None
    return given


DEEPEST = 40
"""Tables and lists within each other: the engine reads no deeper either."""


def values(given: Any, where: str, depth: int = 0) -> None:
    """Refuses tables and lists that are no scenario's: keys that are no texts, nothing as a value, and what is nested
    too deeply, as what contains itself is. Other values are seen when they are written."""
    if depth > DEEPEST:
        raise BadInput(f"{where.split('.')[0]}: nested too deep; expected at most {DEEPEST} levels")
    if isinstance(given, Mapping):
        for key, item in given.items():
            if not isinstance(key, str):
                raise BadInput(f"{where}: {key!r}: expected keys that are texts")
            below = f"{where}{'.' if depth else ': '}{text(key, where)}"
            if type(item) is not str or not item.isascii():  # most are
                values(item, below, depth + 1)
    elif isinstance(given, list | tuple):
        for number, item in enumerate(given):
            values(item, f"{where}.{number}", depth + 1)
    elif given is None:
        raise BadInput(f"{where}: None: a scenario holds texts, numbers, true and false, lists and tables only")
    elif isinstance(given, str):
        text(given, where)


def truths(**given: Any) -> None:
    """Refuses what is neither true nor false."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise BadInput(f"{name}: {value!r}: expected True or False")


def changes(given: Any, name: str) -> dict[str, Any]:
    """Dotted keys of a scenario with their values, in which paths are texts; none where there is nothing.

    Raises `BadInput` also where a table that is set whole undoes what a key before it sets.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise BadInput(f'{name}: {given!r}: expected keys with their values, as in {{"link.rate": "10mbit"}}')
    values(given, name)
    found = {key: _plain(item) for key, item in given.items()}
    for (key, value), (later, table) in combinations(found.items(), 2):
        if key.startswith(f"{later}.") and not _says(table, key[len(later) + 1 :].split("."), value):
            undone, by = changed(name, key, value), changed(name, later, table)
            raise BadInput(f"{undone}: {by} undoes it; expected it after that")
    return found


def _says(table: Any, path: Sequence[str], value: Any) -> bool:
    """Whether tables say this of what is below them."""
    for step in path:
        if isinstance(table, Sequence) and not isinstance(table, str) and step.isdecimal() and int(step) < len(table):
            table = table[int(step)]
        elif isinstance(table, Mapping) and step in table:
            table = table[step]
        else:
            return False
    return bool(table == value)


def _plain(item: Any) -> Any:
    if isinstance(item, Mapping):
        return {key: _plain(entry) for key, entry in item.items()}
    return os.fspath(item) if isinstance(item, os.PathLike) else item
