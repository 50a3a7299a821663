"""Arguments of the Python interface: one of another kind is refused in a line that names it and what was expected."""

import os
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from aqmlab.errors import BadInput


def whole(given: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """A whole number, of numpy's too; a truth value is none."""
    is_whole = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_whole or int(given) < least or (most is not None and int(given) > most):
        bounds = f"{least} or more" if most is None else f"from {least} to {most}"
        raise BadInput(f"{name}: {given!r}: expected a whole number, {bounds}")
    return int(given)


def truths(**given: Any) -> None:
    """Refuses what is neither true nor false."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise BadInput(f"{name}: {value!r}: expected True or False")


def changes(given: Any, name: str) -> dict[str, Any]:
    """Dotted keys of a scenario with their values, in which paths are texts; none where there is nothing."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise BadInput(f'{name}: {given!r}: expected keys with their values, as in {{"link.rate": "10mbit"}}')
    return {key: _plain(item) for key, item in given.items()}


def _plain(item: Any) -> Any:
    if isinstance(item, Mapping):
        return {key: _plain(entry) for key, entry in item.items()}
    return os.fspath(item) if isinstance(item, os.PathLike) else item
