"""What words of the field mean here: the glossary of the documentation, which the package has too."""

import re
from collections.abc import Iterator
from pathlib import Path

PLACE = Path(__file__).parents[1] / "glossary.md"
_ROW = re.compile(r"^\| (.+?) \| (.+) \|$", re.MULTILINE)
_BESIDE = re.compile(r" \(.*?\)|`")


def meaning(word: str) -> tuple[str, str] | None:
    """A term as the glossary has it, and what it means, in its Markdown; none of a word that it has not."""
    return next((row for row in rows() if word.casefold() in _called(row[0])), None)


def terms() -> list[str]:
    """All words that it has."""
    return [name for term, _ in rows() for name in _BESIDE.sub("", term).split(", ")]


def rows() -> Iterator[tuple[str, str]]:
    """Terms and what they mean; none where the package has no glossary."""
    if not PLACE.is_file():
        return
    for term, said in _ROW.findall(PLACE.read_text(encoding="utf-8")):
        if said not in ("meaning", "---"):
            yield term, said


def _called(term: str) -> set[str]:
    """`block (of traffic)` is called `block`, too."""
    names = {term, *_BESIDE.sub("", term).split(", ")}
    return {name.replace("`", "").casefold() for name in names}
