"""How to go on where rounds leave an advice undecided."""

import math
import shlex
from collections.abc import Sequence

from aqmlab.advice.advising import Advice
from aqmlab.advice.candidates import TODAY


def going_on(advice: Advice, command: Sequence[str]) -> list[str]:
    """How to go on where the rounds were too few: a sentence and the command, as words of the one that was given.

    It is no part of what a program reads, which is the same on every machine: how long it takes is not.
    """
    if not advice.race.is_undecided:
        return []
    race = advice.race
    more = race.looks[-1] if advice.stopped else max(FEW_ROUNDS, math.ceil(GO_ON * race.rounds))
    running = len(race.running) + (TODAY not in race.running)
    runs = advice.runs + (more - race.rounds) * running
    minutes = max(1, math.ceil(advice.took_s / advice.runs * runs / 60)) if advice.runs else 1
    return [
        f"{race.rounds} rounds leave this undecided. More of them take some {minutes} min here, the first ones again "
        "included:",
        shlex.join([*_without(command, more), "--rounds", str(more)]),
    ]


GO_ON = 2.5
"""Times the rounds: intervals are narrower by more than a third."""

FEW_ROUNDS = 15
"""Fewer are too few to go on with."""


def _without(command: Sequence[str], more: int) -> list[str]:
    """A command without its rounds, and into another folder than that which is there now."""
    said: list[str] = []
    is_value = is_folder = False
    for word in command:
        name, equals, _ = word.partition("=")
        if is_value:
            is_value = False
        elif name == "--rounds":
            is_value = not equals
        elif is_folder or (name == "--out" and equals) or (word.startswith("-o") and word != "-o"):  # -oDIR is one word
            said.append(f"{word.rstrip('/')}-{more}")
            is_folder = False
        else:
            is_folder = word in ("-o", "--out")
            said.append(word)
    return said
