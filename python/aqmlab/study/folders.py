"""Where studies lie, and what they are called; read without anything that runs or draws them."""

import re
from pathlib import Path
from typing import Any

from aqmlab import files, toml_text
from aqmlab.errors import BadInput, shown

AS_A_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
"""How a study is called: folders are named after it."""

FILE = "study.toml"

ALL = "all"
"""What names every study there is."""


def folder_of_all() -> Path:
    """Where the studies lie: in the package, or in the repository that an editable one links to."""
    place = (Path(__file__).resolve().parents[1] / "studies").resolve()
    here = Path.cwd().resolve()
    return place.relative_to(here) if place.is_relative_to(here) else place


def known() -> list[str]:
    """Ids of the studies there are, in the order of the alphabet."""
    place = folder_of_all()
    return sorted(path.parent.name for path in place.glob(f"*/{FILE}")) if place.is_dir() else []


def find(what: str) -> Path:
    """The folder of a study, of its id or its path."""
    if what in known():
        return folder_of_all() / what
    path = Path(what)
    if path.name == FILE and path.is_file():
        return path.parent
    if (path / FILE).is_file():
        return path
    if path.is_dir():
        raise BadInput(f"{path}: holds no {FILE}; expected the folder of a study")
    raise BadInput(f"study {what}: expected one of {', '.join([*known(), ALL])}, or a folder with a {FILE}")


def title(folder: Path) -> dict[str, Any]:
    """What stands in `study.toml` before its first table: id, title, paper."""
    path = folder / FILE
    before, _, _ = files.text(path, files.STUDY).partition("\n[")
    try:
        tree = toml_text.loads(before, str(path))
    except BadInput:  # a bracket in a text of several lines, or no TOML at all
        return head(folder)
    return _named(tree, path)


def head(folder: Path) -> dict[str, Any]:
    """`study.toml` as tables, with an id and a title."""
    path = folder / FILE
    return _named(toml_text.read(path, files.STUDY), path)


def _named(tree: dict[str, Any], path: Path) -> dict[str, Any]:
    for key in ("id", "title"):
        if not isinstance(tree.get(key), str) or not tree[key].strip():
            raise BadInput(f"{path}: {key}: {shown(tree.get(key))}expected a text")
    if not AS_A_FOLDER.fullmatch(tree["id"]):
        raise BadInput(f"{path}: id: {tree['id']!r}: expected letters, digits and hyphens, as in 'my-study'")
    return tree
