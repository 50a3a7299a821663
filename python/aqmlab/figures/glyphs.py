"""Characters that a font lacks, where boxes would be drawn without a word."""

import contextlib
import re
import warnings
from collections.abc import Iterator, Sequence

from aqmlab import arguments
from aqmlab.errors import doubt

_MISSING = re.compile(r"Glyph (?P<code>\d+) .*missing from .*?font\(?s?\)? ?(?P<fonts>[^.]*)")


@contextlib.contextmanager
def missing_said(names: Sequence[str], otherwise: str) -> Iterator[None]:
    """Says in a line which characters of which of these names have no glyph in what is drawn meanwhile.

    `otherwise` is what has characters that are in none of the names.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    lacking: dict[str, str] = {}
    for one in caught:
        found = _MISSING.match(str(one.message))
        if found is None:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        else:
            lacking[chr(int(found["code"]))] = found["fonts"]
    for name in dict.fromkeys(names):
        if own := [character for character in lacking if character in name]:
            _say(name, own, lacking[own[0]])
    if rest := [character for character in lacking if not any(character in name for name in names)]:
        _say(otherwise, rest, lacking[rest[0]])


def _say(name: str, characters: Sequence[str], fonts: str) -> None:
    them = "it" if len(characters) == 1 else "them"
    doubt(
        f"{name!r}: the font {fonts} has no {' '.join(sorted(characters))}, and boxes are drawn; expected "
        f"{arguments.named('font', 'FAMILY')} with a family that has {them}"
    )
