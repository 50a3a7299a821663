"""Files of JSON that aqmlab wrote: an object each, and what is wrong with one is said in a line; what stands in it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab import files
from aqmlab.errors import BadInput

Json = dict[str, Any]


class NoJson(BadInput):
    """A file that is damaged: what stands in it is no JSON."""


def read_json(path: Path) -> Json:
    """Reads a JSON object; what is wrong with the file is said in one line."""
    try:
        value = json.loads(files.text(path, files.RESULT))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise NoJson(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path}: expected a JSON object")
    return value


def at(tree: Any, key: str | Sequence[str], missing: Any = None) -> Any:
    """What stands in tables and lists under a dotted key or its parts; `missing` where there is nothing."""
    for step in key.split(".") if isinstance(key, str) else key:
        if isinstance(tree, list):
            tree = tree[int(step)] if step.isdecimal() and int(step) < len(tree) else missing
        else:
            tree = tree.get(step, missing) if isinstance(tree, Mapping) else missing
    return tree


def is_number(item: Any) -> bool:
    """A number, and no truth value."""
    return isinstance(item, int | float) and not isinstance(item, bool)
