"""The verb `aqmlab new`: an example of what the command reads, written into the folder where one is, to be changed."""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from aqmlab.command.verbs import AsJson, print_json
from aqmlab.errors import BadInput


@dataclass(frozen=True)
class Example:
    """A file to begin with."""

    name: str
    path: Path
    verb: str
    """What runs it."""

    @property
    def doc(self) -> str:
        """What it is, read in its file."""
        return _first(self.path)

    def as_dict(self) -> dict[str, str]:
        """For `--json`."""
        return {"name": self.name, "verb": self.verb, "doc": self.doc}


VERBS = {
    "home-cable": "compare",
    "web": "compare",
    "web-pi": "run",
    "long-flows": "compare",
    "live-web": "live",
    "sweep": "sweep",
    "demo": "compare",
    "parking-lot": "run",
    "home-and-core": "run",
    "handover": "compare",
    "rrul": "compare",
}
"""The examples, and what runs each; those that need other files besides stay out."""

CODE = {"law": "my_law.py", "discipline": "two_bands.py"}
"""Laws and disciplines of one's own to begin with."""


def examples() -> list[Example]:
    """The examples there are: in the package, or in the repository that an editable one links to."""
    place = Path(__file__).parents[1] / "examples"
    found = [(name, place / f"{name}.toml", verb) for name, verb in VERBS.items()]
    found += [(name, place / "laws" / file, "check") for name, file in CODE.items()]
    return [Example(name, path, verb) for name, path, verb in found]


def _first(path: Path) -> str:
    """What an example is: the first paragraph of the comment that it opens with, or what a class says of itself."""
    if path.suffix == ".py":
        classes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
        return f"In Python, to be changed: {ast.get_docstring(classes[0])}"
    said = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# "):
            break
        said.append(line[2:])
    return " ".join(said)


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("new", short_help="Write an example to begin with.")(new)


def complete(incomplete: str) -> list[tuple[str, str]]:
    """Names of examples that begin so, for the shell."""
    return [(one.name, one.doc) for one in examples() if one.name.startswith(incomplete)]


def new(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Which example; without, a list.", autocompletion=complete)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The file to write; by default NAME.toml, my_law.py, two_bands.py.", metavar="FILE"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write an example to begin with: a scenario, a comparison or a sweep, with comments, or a law or a discipline in
    Python. Without NAME: list them."""
    found = examples()
    if name is None:
        if out is not None:
            raise BadInput(f"new -o {out}: expected the name of an example before it, as in aqmlab new web -o {out}")
        _list(found, as_json)
        return
    chosen = next((one for one in found if one.name == name), None)
    if chosen is None:
        raise BadInput(f"new {name}: expected one of {', '.join(one.name for one in found)}")
    target = out or Path(chosen.path.name)
    if chosen.path.suffix == ".py" and target.suffix != ".py":  # by which a law is known
        raise BadInput(f"-o {target}: expected a name that ends in .py, as {chosen.path.name}")
    text = chosen.path.read_text(encoding="utf-8")
    # The commands in its comments are for the place where it now is.
    for before in (f"examples/{chosen.path.name}", chosen.path.name):
        text = text.replace(f" {before}", f" {shlex.quote(str(target))}")
    try:
        file = target.open("x", encoding="utf-8")
    except FileExistsError:
        raise BadInput(f"{target}: is there already; expected -o with another name") from None
    except OSError as error:
        raise BadInput(f"{target}: cannot be written: {error.strerror}") from None
    try:
        with file:
            file.write(text)
    except OSError as error:
        target.unlink(missing_ok=True)  # a part of it would be in the way of the next attempt
        raise OSError(error.errno, error.strerror, str(target)) from None
    # The first that its comments name says more than the verb alone, as how many runs decide something.
    named = re.search(rf"^#\s+(aqmlab {chosen.verb} .*?)(?:\s{{2,}}.*)?$", text, re.MULTILINE)
    command = named[1] if named else shlex.join(["aqmlab", chosen.verb, str(target)])
    if as_json:
        print_json({"file": str(target), "command": command})
    else:
        print(f"{target}\nRun it: {command}")


def _list(found: list[Example], as_json: bool) -> None:
    if as_json:
        print_json({"examples": [one.as_dict() for one in found]})
        return
    from aqmlab.command import explanations, terminal

    explanations.registry(terminal.console(), "examples", [{"name": one.name, "doc": one.doc} for one in found])
