"""Reads TOML, and writes it: the few kinds of values a scenario holds, in the order they are given."""

import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aqmlab import engine, files
from aqmlab.errors import BadInput
from aqmlab.files import Kind

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = re.compile(r'[^"\\\x00-\x1f\x7f]*')
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def loads(text: str, origin: str) -> dict[str, Any]:
    """The tables of a document; raises `BadInput` with one line where it is none, too large or nested too deep."""
    engine.check_toml(text, origin)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{origin}: not valid TOML: {error}") from None
    except ValueError:  # Python's own limit on the digits of a number
        raise BadInput(f"{origin}: not valid TOML: a number has thousands of digits") from None


def read(path: Path, kind: Kind) -> dict[str, Any]:
    """Reads the tables of a file of TOML."""
    return loads(files.text(path, kind), str(path))


def dumps(tree: Mapping[str, Any]) -> str:
    """A table as a TOML document; `tomllib.loads` gives it back."""
    lines: list[str] = []
    _table(tree, (), lines)
    return "\n".join(lines).strip("\n") + "\n"


def value(item: Any) -> str:
    """One value, tables inline."""
    # Most are texts, and a plan writes very many.
    if type(item) is str and _PLAIN.fullmatch(item):
        return f'"{item}"'
    match item:
        case bool():
            return "true" if item else "false"
        case int():
            return str(item)
        case float():
            if math.isnan(item) or math.isinf(item):
                return "nan" if math.isnan(item) else ("inf" if item > 0 else "-inf")
            text = repr(float(item))  # NumPy's floats are floats and call themselves otherwise
            return text if any(mark in text for mark in ".en") else text + ".0"
        case str():
            return '"' + "".join(_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if _is_control(c) else c) for c in item) + '"'
        case Mapping():
            return "{ " + ", ".join(f"{_key(k)} = {value(v)}" for k, v in item.items()) + " }" if item else "{}"
        case list() | tuple():
            return "[" + ", ".join(value(entry) for entry in item) + "]"
    if type(item).__module__ == "numpy" and not hasattr(item, "__len__"):
        return value(item.item())
    raise BadInput(f"{item!r}: a scenario holds texts, numbers, true and false, lists and tables only")


def _is_control(character: str) -> bool:
    return ord(character) < 0x20 or ord(character) == 0x7F


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else value(name)


def _is_list_of_tables(item: Any) -> bool:
    return isinstance(item, list) and bool(item) and all(isinstance(entry, Mapping) for entry in item)


def _is_inline(item: Any, depth: int) -> bool:
    """Tables below the second level read best on one line: `rtt = { uniform = [...] }`."""
    return isinstance(item, Mapping) and depth >= 1 and not (depth == 1 and "kind" in item)


def _table(tree: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    later: list[tuple[str, Any]] = []
    for name, item in tree.items():
        if item is None:
            continue
        if type(item) is str:
            lines.append(f"{_key(name)} = {value(item)}")
            continue
        blocks = _is_list_of_tables(item) and not path
        if blocks or (isinstance(item, Mapping) and not _is_inline(item, len(path))):
            later.append((name, item))
        else:
            lines.append(f"{_key(name)} = {value(item)}")
    for name, item in later:
        here = (*path, _key(name))
        for entry in item if isinstance(item, list) else [item]:
            mark = "[[{}]]" if isinstance(item, list) else "[{}]"
            lines.append("\n" + mark.format(".".join(here)))
            _table(entry, here, lines)
