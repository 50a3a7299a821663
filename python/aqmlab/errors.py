"""The few kinds of exceptions Python sees, each with the exit code the command line ends with."""

import warnings


class AqmlabError(Exception):
    """Anything aqmlab says to its user: one line."""

    exit_code = 1

    def __str__(self) -> str:
        """One line, whatever was put in."""
        return " ".join(super().__str__().split())


class BadInput(AqmlabError, ValueError):  # noqa: N818 - what it is says more than that it is an error
    """A scenario, option or folder that cannot be used: names the thing, the value and what was expected."""

    exit_code = 2


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
