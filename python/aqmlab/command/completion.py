"""Words that a shell completes: names of disciplines, examples and studies, files, and keys of the scenario in hand.

The shell starts `aqmlab` for each word, so nothing here may load what takes time.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from aqmlab import engine
from aqmlab.advice import access, candidates
from aqmlab.study import folders

Words = list[tuple[str, str]]
"""What can stand there, each with what it is."""


def what_is_compared(incomplete: str) -> Words:
    """Scenarios and disciplines."""
    return [*_files(incomplete, ".toml", ".py", ".so", ".onnx"), *_beginning(incomplete, _named(engine.disciplines))]


def queues(incomplete: str) -> Words:
    """Disciplines."""
    return _beginning(incomplete, _named(engine.disciplines))


def what_is_explained(incomplete: str) -> Words:
    """Disciplines, stacks, controllers, traffic models and measures; files of distributions and of vectors."""
    measures = {row["name"]: row["formula"] for row in reversed(engine.measures())}
    kinds = (engine.disciplines, engine.stacks, engine.controllers, engine.traffic_models)
    rows = (*(row for read in kinds for row in _named(read)), *measures.items())
    return [*_beginning(incomplete, rows), *_files(incomplete, ".csv", ".cvec")]


def studies(incomplete: str) -> Words:
    """Ids of studies."""
    place = folders.folder_of_all()
    rows = ((name, str(folders.title(place / name)["title"])) for name in folders.known())
    return _beginning(incomplete, (*rows, ("all", "every one of them, as one plan")))


def lines(incomplete: str) -> Words:
    """Kinds of access that advice knows."""
    return _beginning(incomplete, ((one.name, one.doc) for one in access.ACCESS.values()))


def platforms(incomplete: str) -> Words:
    """What advice can be for."""
    every = {**candidates.PORTS, **candidates.PLATFORMS}
    rows = ((name, ", ".join(able) or "a cable modem's own") for name, able in every.items())
    return _beginning(incomplete, rows)


def settings(ctx: typer.Context, incomplete: str) -> Words:
    """Keys of the scenario that the command line names, each with the value that it has there."""
    # A --set that waits for its word leaves what was before it unread, in `args`.
    named = [ctx.params.get("scenario_file"), ctx.params.get("file"), *(ctx.params.get("what") or ()), *ctx.args]
    file = next((Path(str(word)) for word in named if str(word).endswith(".toml")), None)
    if file is None:
        return []
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return []
    return _beginning(incomplete, ((f"{key}=", str(value)) for key, value in _leaves(tree.get("scenario", tree))))


def _named(rows: Callable[[], list[dict[str, Any]]]) -> Iterator[tuple[str, str]]:
    for row in rows():
        for name in (row["name"], *row.get("aliases", [])):
            yield name, row["doc"]


def _beginning(incomplete: str, words: Any) -> Words:
    return [(word, about) for word, about in words if word.startswith(incomplete)]


def _files(incomplete: str, *suffixes: str) -> Words:
    """Files of these kinds that begin so, and folders, which may hold some."""
    place = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    found = []
    for path in sorted(place.glob("*")) if place.is_dir() else ():
        word = f"{path}/" if path.is_dir() else str(path)
        if word.startswith(incomplete) and not path.name.startswith(".") and (path.is_dir() or path.suffix in suffixes):
            found.append((word, ""))
    return found


def _leaves(tree: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys: those of tables, and of blocks by their numbers from 0, but not of variants and grids."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            if above or key not in ("variant", "grid"):
                yield from _leaves(value, f"{above}.{key}" if above else str(key))
    elif isinstance(tree, list) and tree and all(isinstance(one, Mapping) for one in tree):
        for number, one in enumerate(tree):
            yield from _leaves(one, f"{above}.{number}")
    else:
        yield above, tree
