"""The few kinds of exceptions Python sees, each with the exit code the command line ends with."""

import re
import warnings

LONGEST = 1000
"""Characters of a message: most lists of all that could have been meant fit in."""

MOST_LISTED, LISTED = 60, 20
"""Names that a list of what was expected has at most, and those that are left of a longer one."""

_LIST = re.compile(rf"(?<=one of )(?:[\w.-]+, ){{{MOST_LISTED},}}[\w.-]+")

LONGEST_REPEATED = 120
"""Characters of what was put in, as a message repeats it: a word (a file's name), or what stands in quotes."""

_REPEATED = re.compile(r"""(?<![\w"'])(["'])(?:(?!\1).)*\1(?!\w)|\S{121,}""")
"""Quotes in their pairs, however short, so that what stands between two of them is not taken for quoted."""


def one_line(text: str) -> str:
    """A message on one line, whatever was put in: nothing in it breaks lines, moves a cursor, or goes on for ever."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(text.split()))
    line = _LIST.sub(_first_names, line)
    return _without_middle(_REPEATED.sub(lambda found: _without_middle(found[0], LONGEST_REPEATED), line), LONGEST)


def _first_names(found: re.Match[str]) -> str:
    names = found[0].split(", ")
    return f"{', '.join(names[:LISTED])} and {len(names) - LISTED} more"


def _without_middle(text: str, length: int) -> str:
    """Both ends: what tells files apart, and what was expected, is at either."""
    if len(text) <= length:
        return text
    half = (length - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def shown(item: object) -> str:
    """A value as a complaint begins with it: `missing; `, or the value and a colon."""
    return "missing; " if item is None else f"{item!r}: "


class AqmlabError(Exception):
    """Anything aqmlab says to its user: one line."""

    exit_code = 1

    def __str__(self) -> str:
        """One line, whatever was put in."""
        return one_line(super().__str__())


class BadInput(AqmlabError, ValueError):  # noqa: N818 - what it is says more than that it is an error
    """A scenario, option or folder that cannot be used: names the thing, the value and what was expected."""

    exit_code = 2


class Misbehaved(AqmlabError):  # noqa: N818
    """A law from outside has broken its promises: names it, and what it did."""


class CannotRun(AqmlabError):  # noqa: N818
    """This machine cannot do what was asked."""

    exit_code = 3


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during several runs; the message says what is finished and how to go on."""

    exit_code = 130


class Doubt(UserWarning):
    """Something that can be run, and may not be what was meant: one line."""


def doubt(what: str) -> None:
    """Says a doubt, once."""
    warnings.warn(" ".join(what.split()), Doubt, stacklevel=2)
