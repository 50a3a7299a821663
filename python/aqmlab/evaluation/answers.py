"""What no simulation can answer: the RFC's questions to who made what is evaluated, and the answers of a file."""

from collections.abc import Mapping
from pathlib import Path

from aqmlab import files, toml_text
from aqmlab.errors import BadInput
from aqmlab.evaluation import template
from aqmlab.evaluation.template import Form
from aqmlab.json_files import Json
from aqmlab.results import store

FILE = "answers.toml"
"""In the result folder: the questions, to be answered and given back with --answers."""


def read(path: Path | None, form: Form = template.DISCIPLINES) -> dict[str, str]:
    """The answers of a file, by the name of the question: `operation = "..."`; those that are empty are none."""
    if path is None:
        return {}
    tree = toml_text.read(path, files.ANSWERS)
    known = [str(question["id"]) for question in template.template(form)["question"]]
    for key, answer in tree.items():
        if key not in known:
            raise BadInput(f"{path}: {key}: unknown question; expected one of {', '.join(known)}")
        if not isinstance(answer, str):
            raise BadInput(f"{path}: {key}: {answer!r}: expected a text")
    return {key: answer.strip() for key, answer in tree.items() if answer.strip()}


def questions(given: Mapping[str, str], form: Form = template.DISCIPLINES) -> list[Json]:
    """Each with its answer; null where there is none."""
    return [{**question, "answer": given.get(str(question["id"]))} for question in template.template(form)["question"]]


def together(folder: Path, given: Mapping[str, str], form: Form = template.DISCIPLINES) -> dict[str, str]:
    """The answers that were given, and those that somebody has filled in in the folder."""
    path = folder / FILE
    return {**(read(path, form) if path.is_file() else {}), **given}


def write(folder: Path, given: Mapping[str, str], form: Form = template.DISCIPLINES) -> None:
    """Puts the questions into a folder as a file that can be filled in, with the answers that there are.

    A file that has just these is left as it is.
    """
    path = folder / FILE
    if path.is_file() and read(path, form) == given:
        return
    rows = []
    for question in template.template(form)["question"]:
        said = toml_text.value(given.get(str(question["id"]), ""))
        rows.append(f"# {question['section']}: {question['asks']}\n{question['id']} = {said}\n")
    store.write_text(path, "\n".join(rows))
