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


def key(given: str, known: Iterable[str]) -> str:
    """The same of a dotted key, by its first step that none of the known keys has."""
    there, before = list(known), ""
    for step, *rest in (given.split(".")[k:] for k in range(given.count(".") + 1)):
        steps = list(dict.fromkeys(one.removeprefix(before).split(".")[0] for one in there if one.startswith(before)))
        if step not in steps:
            found = difflib.get_close_matches(step.lower(), steps, n=1)
            if found:
                whole = ".".join([f"{before}{found[0]}", *rest])
                return f"did you mean {whole if whole in there else f'{before}{found[0]}'}?"
            return f"expected one of {', '.join(f'{before}{one}' for one in steps)}"
        if not any(one.startswith(f"{before}{step}.") for one in there):
            return f"expected {before}{step}"
        before += f"{step}."
    return f"expected one of {', '.join(one for one in there if one.startswith(before))}"
