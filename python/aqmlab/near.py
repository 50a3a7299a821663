"""Names that are nearly right: what was meant, as it stands in a complaint."""

import difflib
from collections.abc import Iterable


def meant(given: object, known: Iterable[str]) -> str:
    """`did you mean web?`, of the known name that is nearest; nothing where none is near."""
    found = difflib.get_close_matches(str(given).lower(), list(known), n=1)
    return f"did you mean {found[0]}?" if found else ""


def expected(given: object, known: Iterable[str]) -> str:
    """The same, or else `expected one of` all of them."""
    names = list(known)
    return meant(given, names) or f"expected one of {', '.join(names)}"
