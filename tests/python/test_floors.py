"""The package is built in floors: ARCHITECTURE.md lists them, and imports only go down."""

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

from conftest import ROOT

PACKAGE = ROOT / "python/aqmlab"
PROGRAMS = {"aqmlab.__main__", "aqmlab.live.child", "aqmlab.live.group"}
"""Modules that are started as programs, by people or by path: nobody imports them."""

Arrow = tuple[str, str]
"""A module, and one that it imports."""


def floors() -> list[tuple[str, list[str]]]:
    """Name and parts of each floor, the lowest first, as ARCHITECTURE.md draws them: a part in `/` is a folder."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (drawing,) = re.findall(r"^```text\n(interface .*?)^```", text, re.DOTALL | re.MULTILINE)
    # A line that begins with spaces goes on with the floor above it.
    rows = re.findall(r"^(\S+(?: \S+)*) {2,}(.*(?:\n +.*)*)$", drawing, re.MULTILINE)
    return [(name, parts.split()) for name, parts in reversed(rows)]


def sources() -> dict[str, str]:
    """The text of each module of the package, by its dotted name; a package's own is that of its `__init__`."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        *folders, name = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(folders if name == "__init__" else [*folders, name])] = path.read_text(encoding="utf-8")
    return found


def imported(name: str, text: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Modules of the package that one imports: at its top, within functions, for type checkers, and deferred."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: line {node.lineno}: a relative import"
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "deferred.names":
            named = [
                one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
        else:
            continue
        for whole in named:
            # What is imported from a module is no module itself.
            found = whole if whole in modules else whole.rpartition(".")[0]
            if found in modules and found != name and not whole.endswith("._native"):
                yield found


def arrows(modules: Mapping[str, str]) -> set[Arrow]:
    """Who imports whom."""
    return {(name, other) for name, text in modules.items() for other in imported(name, text, modules)}


def part_of(module: str) -> str:
    """The part that a module belongs to, as floors list it: its folder, or itself where it lies in none."""
    _, _, below = module.partition(".")
    first, _, rest = below.partition(".")
    if not first:
        return "__init__"
    return f"{first}/" if rest or (PACKAGE / first).is_dir() else first


def circle(found: set[Arrow]) -> list[str]:
    """A circle of arrows; empty where there is none."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for one, other in found:
        sorter.add(one, other)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def upward(found: set[Arrow], listed: list[tuple[str, list[str]]]) -> list[str]:
    """Arrows from a floor to a higher one."""
    height = {part: k for k, (_, parts) in enumerate(listed) for part in parts}
    return sorted(f"{a} -> {b}" for a, b in found if height[part_of(a)] < height[part_of(b)])


def test_every_module_is_on_one_floor():
    listed = [part for _, parts in floors() for part in parts]
    assert sorted(listed) == sorted({part_of(module) for module in sources()})


def test_imports_only_go_down():
    found = arrows(sources())
    assert upward(found, floors()) == []


def test_nothing_is_imported_in_a_circle():
    """Neither modules, nor folders: what lies in one is read as a whole."""
    found = arrows(sources())
    assert circle(found) == []
    assert circle({(part_of(a), part_of(b)) for a, b in found if part_of(a) != part_of(b)}) == []


def test_the_package_holds_nothing_that_it_does_not_use():
    """What only tests, benches and tools use lies with them: users get the package."""
    modules = sources()
    packages = {name for name in modules if (PACKAGE.parent / name.replace(".", "/")).is_dir()}
    asked_for = {other for _, other in arrows(modules)}
    assert set(modules) - packages - asked_for == PROGRAMS


@pytest.mark.parametrize(
    "text",
    [
        "from aqmlab import study",
        "import aqmlab.study",
        "from aqmlab.study import read",
        "def late():\n    from aqmlab.study import read",
        "if TYPE_CHECKING:\n    from aqmlab.study import Study",
        '__getattr__, __dir__ = deferred.names(__name__, {"read": "aqmlab.study"})',
    ],
)
def test_every_kind_of_import_is_seen(text):
    found = arrows({"aqmlab": "", "aqmlab.study": "", "aqmlab.units": text})
    assert ("aqmlab.units", "aqmlab.study") in found
    assert "aqmlab.units -> aqmlab.study" in upward(found, floors())


def test_a_circle_is_seen():
    assert circle({("a", "b"), ("b", "c")}) == []
    assert set(circle({("a", "b"), ("b", "c"), ("c", "a")})) == {"a", "b", "c"}
