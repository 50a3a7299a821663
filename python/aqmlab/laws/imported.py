"""Modules of the user's own that the file of a law imports: what comes of the law's runs depends on them as well.

A module is one's own that neither belongs to Python or aqmlab nor lies where packages are installed. They are found in
the text, as `import` names them, and in the texts of those that are found.
"""

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

_INSTALLED = ("site-packages", "dist-packages")
_OTHERS = (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("platstdlib")), Path(__file__).parents[1])


@dataclass(frozen=True)
class _Module:
    """A module's file as it was read."""

    path: Path
    sha256: str
    stamp: tuple[int, int]
    """When it was written, and its size."""


_SEEN: dict[str, _Module] = {}
"""Modules that laws of this process have imported, by their names."""


def modules_of(content: bytes) -> dict[str, str]:
    """By their names, the digests of the modules that a file of Python imports, after it was run."""
    found: dict[str, _Module] = {}
    left = [(content, "")]
    while left:
        for name in _named_in(*left.pop()):
            path = None if name in found else _own_file(name)
            if path is None or (stamp := _stamp(path)) is None:
                continue
            text = path.read_bytes()
            found[name] = _Module(path, hashlib.sha256(text).hexdigest(), stamp)
            if path.suffix == ".py":
                left.append((text, name if path.stem == "__init__" else name.rpartition(".")[0]))
    _SEEN.update(found)
    return {name: module.sha256 for name, module in sorted(found.items())}


def forget_changed() -> bool:
    """Whether a module that a law imported has another text now: all of them are imported anew then."""
    if all(_is_as_it_was(module) for module in _SEEN.values()):
        return False
    for name in _SEEN:
        sys.modules.pop(name, None)
    _SEEN.clear()
    return True


def _is_as_it_was(module: _Module) -> bool:
    stamp = _stamp(module.path)
    return stamp is not None and (
        stamp == module.stamp or hashlib.sha256(module.path.read_bytes()).hexdigest() == module.sha256
    )


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        said = path.stat()
    except OSError:
        return None
    return said.st_mtime_ns, said.st_size


def together(modules: Mapping[str, str]) -> str:
    """One digest of all the modules of a law; an empty one if it has none."""
    whole = "".join(f"{name} {sha256}\n" for name, sha256 in sorted(modules.items()))
    return hashlib.sha256(whole.encode()).hexdigest() if whole else ""


def _named_in(content: bytes, package: str) -> Iterator[str]:
    """What may be a module of all that a text imports, packages before what is in them."""
    for step in ast.walk(ast.parse(content)):
        if isinstance(step, ast.Import):
            whole = [one.name for one in step.names]
        elif isinstance(step, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - step.level] if step.level else []
            place = ".".join([*above, *([step.module] if step.module else [])])
            whole = [place, *(f"{place}.{one.name}" for one in step.names)]
        else:
            continue
        for name in whole:
            parts = name.split(".")
            yield from (".".join(parts[: count + 1]) for count in range(len(parts)))


def _own_file(name: str) -> Path | None:
    """The file of a module, if it is one's own."""
    if name.partition(".")[0] in (*sys.stdlib_module_names, "aqmlab"):
        return None
    spec = _spec(name)
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    path = Path(spec.origin).resolve()
    is_others = any(part in _INSTALLED for part in path.parts) or any(map(path.is_relative_to, _OTHERS))
    return None if is_others else path


def _spec(name: str) -> ModuleSpec | None:
    """Where a module is, without running it."""
    if (there := sys.modules.get(name)) is not None:
        return there.__spec__
    above = name.rpartition(".")[0]
    package = _spec(above) if above else None
    if above and (package is None or package.submodule_search_locations is None):
        return None
    return PathFinder.find_spec(name, package.submodule_search_locations if package is not None else None)
