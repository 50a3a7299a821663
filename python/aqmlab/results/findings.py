"""The findings of several results beside each other: what all of them say is said once, and of none by its name."""

from collections.abc import Sequence

from aqmlab.results.result import Result


def findings_of(found: Sequence[tuple[str, Result]]) -> list[str]:
    """The findings of several results by their names; what one of them says of a block the others need not.

    What all of them say is said of none by its name, and what some of them say in the same words once.
    """
    each = [(name, result.manifest.get("findings", [])) for name, result in found]
    lines: dict[str, str] = {}
    for _, own in each:
        for line in own:
            names = [name for name, others in each if line in others]
            lines.setdefault(line.partition(":")[0], line if len(names) == len(each) else _of(names, line))
    return list(lines.values())


def _of(names: Sequence[str], line: str) -> str:
    """A finding with whose it is before it; what is found of a law that is in the name is not named twice."""
    what, _, said = line.partition(": ")
    return f"{', '.join(names)}: {said if len(names) == 1 and what in names[0].split() else line}"
