"""What can be run and may not be what was meant, said of a scenario before it runs."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from aqmlab import engine, links, shaping, units
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import doubt

CHANGED = ("rate", "reverse_rate", "delay", "reverse_delay", "outage")
"""What an entry of a schedule changes of a link."""


NEEDS: Mapping[str, tuple[tuple[str, ...], str, tuple[Any, ...]]] = {
    "ECN": (("ect", "ect_on_control", "ect_on_retransmit", "ecn_floor", "abe"), "ecn", ("off",)),
    "pacing": (("pacing_burst",), "pacing", (False,)),
    "a handshake": (("syn_timer",), "handshake", (False,)),
    "delayed acknowledgements": (("delayed_ack_timeout",), "delayed_ack", ("off",)),
}
"""What some keys of hosts are about, and the key with its values that says that there is none."""
OF_LEDBAT = "ledbat_"


def of(resolved: Resolved, given: Tree) -> None:
    """Says so of shapers that never shape, loads beside users, hosts' keys without effect, and changes that never come.

    `given` is the scenario as its author wrote it.
    """
    shaping.doubts(resolved)
    _hosts(resolved, given)
    _loads(resolved)
    _schedules(resolved)


def _loads(resolved: Resolved) -> None:
    for number, block in enumerate(resolved.scenario.get("traffic", [])):
        if "load" in block and "users" in block and not any(load.traffic == number for load in resolved.loads):
            doubt(
                f'{resolved.origin}: traffic.{number}.load = "{block["load"]}" is not looked for, since '
                f"users = {block['users']} says who there is"
            )


def _hosts(resolved: Resolved, given: Tree) -> None:
    """Keys that are not as the stack has them, and do nothing beside others."""
    blocks = given.get("traffic", [])
    with_tcp = {row["kind"] for row in engine.traffic_models() if row["speaks_tcp"]}
    together = enumerate(_together(blocks, resolved))
    own = [(f"traffic.{k}", block, here) for k, (block, here) in together if here["kind"] in with_tcp]
    for where, said, values in [("tcp", given.get("tcp", {}), resolved.scenario.get("tcp", {})), *own]:
        if not isinstance(said, Mapping):
            continue
        usual = _stack(str(values.get("stack", "linux")))
        for key in (key for key in said if key in usual and values.get(key) != usual[key]):
            if (why := _idle(key, values)) is not None:
                doubt(f"{resolved.origin}: {where}.{key} = {_written(said[key])}: does nothing here, {why}")


def _together(blocks: Any, resolved: Resolved) -> list[tuple[Any, Tree]]:
    """What is written of each block, beside all keys of its hosts."""
    there = resolved.scenario["traffic"]
    if not isinstance(blocks, list) or len(blocks) != len(there):
        return []
    return [(said, {**resolved.scenario.get("tcp", {}), **block}) for said, block in zip(blocks, there, strict=True)]


def _idle(key: str, values: Tree) -> str | None:
    """Why a key of hosts does nothing, if so."""
    if key.startswith(OF_LEDBAT) and values["cc"] != "ledbat":
        return f'where cc = "{values["cc"]}" and not "ledbat"'
    for what, (keys, other, without) in NEEDS.items():
        if key in keys and values.get(other) in without and not (key == "pacing_burst" and "max_pacing_rate" in values):
            return f"without {what}: {other} = {_written(values[other])}"
    return None


def _written(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


@lru_cache
def _stack(name: str) -> Tree:
    """What hosts of a stack have by themselves; of one's own stacks what they are made from is not known here."""
    known = name if name in {row["name"] for row in engine.stacks()} else "linux"
    text = f'duration = "1s"\nlink.rate = "1mbit"\ntcp.stack = "{known}"\n[[traffic]]\nkind = "bulk"\n'
    found: Tree = engine.resolve(text, "stack").scenario.get("tcp", {})
    return found


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
