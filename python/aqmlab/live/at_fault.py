"""Why a live run failed: for want of what this machine has not, or because a law of one's own broke its promises."""

import re
from collections.abc import Sequence

from aqmlab.errors import AqmlabError, BadInput, CannotRun, Misbehaved
from aqmlab.json_files import Json
from aqmlab.laws import brought
from aqmlab.laws.brought import Brought

DECIDES = "router"
"""The thread of the test bed in which disciplines decide."""

_FAULT = re.compile(rf"{DECIDES}: (?P<said>the (?:law|discipline) (?P<name>\w+) .*)", re.DOTALL)


def told(facts: Json, laws: Sequence[Brought]) -> AqmlabError:
    """What the test bed has left in `error.json`, of a run with these laws.

    Beside `message` and `exit_code` it has `left`, the threads that did not end, and `is_silent` where a kernel of
    virtual time made no progress.
    """
    message = str(facts.get("message", "the test bed failed"))
    names = {row["name"] for law in laws for row in law.rows}
    if (fault := _FAULT.fullmatch(message)) is not None and fault["name"] in names:
        return Misbehaved(fault["said"])
    if facts.get("exit_code") == BadInput.exit_code:
        return BadInput(message)
    if DECIDES in facts.get("left", ()):
        return ended("the test bed did not end when it was told to", laws)
    able = facts.get("is_silent") and any(law.runs_apart for law in laws)
    return ended(message, laws) if able else CannotRun(message)


def ended(what: str, laws: Sequence[Brought], verb: str = "live") -> AqmlabError:
    """What to say of a test bed that went without a word, or fell silent: some laws may do that to it."""
    able = [law for law in laws if law.runs_apart]
    return Misbehaved(f"{what}; it ran the code of {brought.said(able)}") if able else CannotRun(f"{verb}: {what}")
