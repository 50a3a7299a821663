"""The findings of several results beside each other: what all of them say is said once, and of none by its name."""

from collections.abc import Sequence

from aqmlab.results.result import Result


def findings_of(found: Sequence[tuple[str, Result]]) -> list[str]:
    """The findings of several results by their names; what one of them says of a block the others need not.

    What all of them say is said of none by its name.
    """
    each = [(name, result.manifest.get("findings", [])) for name, result in found]
    lines: dict[str, str] = {}
    for name, own in each:
        for line in own:
            is_of_all = all(line in others for _, others in each)
            lines.setdefault(line.partition(":")[0], line if is_of_all else _of(name, line))
    return list(lines.values())


def _of(name: str, line: str) -> str:
    """A finding with whose it is before it; what is found of a law that is in the name is not named twice."""
    what, _, said = line.partition(": ")
    return f"{name}: {said if what in name.split() else line}"
