"""What can be run and may not be what was meant, said of a scenario before it runs."""

from aqmlab import links, shaping, units
from aqmlab.engine import Resolved
from aqmlab.errors import doubt

CHANGED = ("rate", "reverse_rate", "delay", "reverse_delay", "outage")
"""What an entry of a schedule changes of a link."""


def of(resolved: Resolved) -> None:
    """Says so of shapers that never shape, loads beside users, and changes of a link that never come."""
    shaping.doubts(resolved)
    _loads(resolved)
    _schedules(resolved)


def _loads(resolved: Resolved) -> None:
    for number, block in enumerate(resolved.scenario.get("traffic", [])):
        if "load" in block and "users" in block and not any(load.traffic == number for load in resolved.loads):
            doubt(
                f'{resolved.origin}: traffic.{number}.load = "{block["load"]}" is not looked for, since '
                f"users = {block['users']} says who there is"
            )


def _schedules(resolved: Resolved) -> None:
    duration = str(resolved.scenario["duration"])
    end_s = units.seconds(duration, "duration")
    for name, link in links.of(resolved.scenario).items():
        before = {key: link.get(key, "0s") for key in CHANGED}
        for number, change in enumerate(link.get("schedule", [])):
            where = f"{resolved.origin}: {links.key(resolved.scenario, name)}.schedule.{number}"
            if units.seconds(change["at"], "at") >= end_s:
                doubt(f'{where}.at = "{change["at"]}" is not reached, since the run ends at {duration}')
            after = {key: change.get(key, was) for key, was in before.items()}
            if after == before:
                doubt(f"{where}: changes nothing")
            before = {**after, "outage": "0s"}
