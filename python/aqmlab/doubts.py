"""What can be run and may not be what was meant, said of a scenario before it runs."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from aqmlab import engine, links, reference, room, shaping, silence, units
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import doubt

CHANGED = ("rate", "reverse_rate", "delay", "reverse_delay", "outage")
"""What an entry of a schedule changes of a link."""

NEEDS: Mapping[str, tuple[tuple[str, ...], str, Any]] = {
    "ECN": (("ect", "ect_on_control", "ect_on_retransmit", "ecn_floor", "abe", "ect_on_all"), "ecn", "off"),
    "a handshake": (("syn_timer",), "handshake", False),
    "delayed acknowledgements": (("delayed_ack_timeout",), "delayed_ack", "off"),
}
"""What some keys of hosts are about, and the key with the value that says that there is none."""
OWN_ROUND_TRIPS = ("tmix", "replay")
"""The kinds of traffic whose files have a round trip of each connection."""
LEAST_PACKET_BYTES = 40
"""An acknowledgement without options."""
OF_LEDBAT = "ledbat_"

WITH_SACK = ("sack", "rack", "ns2-sack1")
"""The repairs with which receivers report what arrived."""
AT_ONCE = ("reno", "ns2-newreno", "ns2-sack1")
"""The repairs with which a window comes down at once in any case."""


def of(resolved: Resolved, given: Tree) -> None:
    """Says so of shapers that never shape, queues without room or with too little for their law, loads beside users or
    beyond a link, hosts' keys without effect, traffic that sends next to nothing, round trips that become none, and
    changes that never come.

    `given` is the scenario as its author wrote it.
    """
    shaping.doubts(resolved)
    _limits(resolved)
    room.doubts(resolved.scenario, resolved.origin)
    _hosts(resolved, given)
    for line in loads(resolved):
        doubt(f"{resolved.origin}: {line}")
    for line in _overloads(resolved.scenario):
        doubt(f"{resolved.origin}: {line}")
    silence.doubts(resolved)
    _ticks(resolved)
    _schedules(resolved)


def _limits(resolved: Resolved) -> None:
    for name, link in links.of(resolved.scenario).items():
        forward, reverse = (link.get(way, {}).get("limit", "1p") for way in ("qdisc", "reverse_qdisc"))
        for way, limit in (("qdisc", forward), ("reverse_qdisc", "1p" if reverse == forward else reverse)):
            length, unit = units.quantity(str(limit)) or (math.inf, "")
            if length < (1.0 if unit == "packets" else LEAST_PACKET_BYTES):
                where = f"{resolved.origin}: {links.key(resolved.scenario, name)}.{way}"
                doubt(f'{where}.limit = "{limit}": every packet is lost, on an idle link, too')


def loads(resolved: Resolved) -> list[str]:
    """What is to be said of loads beside users."""
    looked_for = {load.traffic for load in resolved.loads}
    return [
        f'traffic.{number}.load = "{block["load"]}" is not looked for, since users = {block["users"]} says who there is'
        for number, block in enumerate(resolved.scenario.get("traffic", []))
        if "load" in block and "users" in block and number not in looked_for
    ]


def _overloads(tree: Tree) -> list[str]:
    """A line for each load, or several together, beyond the rate of a link; nothing is said of a link that changes.

    Studies go beyond a link's rate on purpose, and ask for no doubts.
    """
    lines: dict[tuple[tuple[int, ...], str], str] = {}
    for name, link in links.of(tree).items():
        for way, key in zip(links.WAYS, ("rate", "reverse_rate"), strict=True):
            asked = {
                number: units.rate_bps(block["load"], "load")
                for number, block in enumerate(tree.get("traffic", []))
                if "load" in block and block["direction"] in (way, "both") and name in links.route(tree, block, way)
            }
            rate_bps, load_bps = units.rate_bps(link[key], key), sum(asked.values())
            if load_bps <= rate_bps or links.changes(link):
                continue
            # What cannot be offered on the uncongested link either is refused, in a line of its own.
            if max(asked.values()) > reference.HIGHEST_SHARE * reference.FACTOR * rate_bps:
                continue
            keys = [f'traffic.{number}.load = "{tree["traffic"][number]["load"]}"' for number in asked]
            share = f"{'together ' * (len(asked) > 1)}{units.say_share(load_bps / rate_bps)}"
            carries = f"{links.key(tree, name)}.{key} = {units.say_rate(rate_bps)}, more than it carries"
            lines.setdefault((tuple(asked), name), f"{' and '.join(keys)}: {share} of {carries}")
    return list(lines.values())


def _hosts(resolved: Resolved, given: Tree) -> None:
    """Keys that are not as the stack has them, and do nothing beside others: in a block, or in all that have no own."""
    with_tcp = {row["kind"] for row in engine.traffic_models() if row["speaks_tcp"]}
    blocks = [(k, *one) for k, one in enumerate(_together(given, resolved)) if one[1]["kind"] in with_tcp]
    common = given.get("tcp", {})
    for key in common if isinstance(common, Mapping) else ():
        _say(resolved, "tcp", key, common, [here for _, said, here in blocks if key not in said])
    for k, said, here in blocks:
        for key in said:
            _say(resolved, f"traffic.{k}", key, said, [here])


def _together(given: Tree, resolved: Resolved) -> list[tuple[Tree, Tree]]:
    """What is written of each block, and all keys of its hosts."""
    blocks, there = given.get("traffic", []), resolved.scenario["traffic"]
    if not isinstance(blocks, list) or len(blocks) != len(there):
        return []  # several blocks are made of one
    return [(said, {**resolved.scenario.get("tcp", {}), **block}) for said, block in zip(blocks, there, strict=True)]


def _say(resolved: Resolved, where: str, key: str, said: Tree, hosts: Sequence[Tree]) -> None:
    """Says that a key does nothing with any of these hosts, where it is not what their stack has anyway."""
    whys = [_idle(key, values) for values in hosts if _is_unusual(key, values)]
    if whys and len(whys) == len(hosts) and None not in whys:
        doubt(f"{resolved.origin}: {where}.{key} = {_written(said[key])}: does nothing here, {whys[0]}")


def _is_unusual(key: str, values: Tree) -> bool:
    usual = _stack(str(values.get("stack", "linux")))
    return key in usual and values.get(key) != usual[key]


def _idle(key: str, values: Tree) -> str | None:
    """Why a key of hosts does nothing, if so."""
    if key.startswith(OF_LEDBAT) and values["cc"] != "ledbat":
        return f'where cc = "{values["cc"]}" and not "ledbat"'
    for what, (keys, other, without) in NEEDS.items():
        if key in keys and values.get(other) == without:
            return f"without {what}: {other} = {_written(values[other])}"
    found = _IDLE.get(key)
    return None if found is None else found(values)


def _models_path(values: Tree) -> bool:
    """Whether a controller models the path: it paces, and brings its window down itself."""
    return values["cc"] in _modelling()


@lru_cache
def _modelling() -> frozenset[str]:
    return frozenset(row["name"] for row in engine.controllers() if row["models_path"])


def _reduction(values: Tree) -> str | None:
    if _models_path(values):
        return _where(values, "cc")
    return _where(values, "repair") if values["repair"] in AT_ONCE else None


def _taken_back(values: Tree) -> str | None:
    """A reduction is taken back where times of arrivals are kept."""
    if values["repair"] == "rack":
        return None
    if values["repair"] != "newreno":
        return _where(values, "repair")
    if _models_path(values):
        return _where(values, "cc")
    return _where(values, "reduction") if values["reduction"] != "prr" else None


def _all_capable(values: Tree) -> str | None:
    return _where(values, "ecn") if values["ecn"] != "accurate" else None


def _reports(values: Tree) -> str | None:
    return _where(values, "repair") if values["repair"] not in WITH_SACK else None


def _bursts(values: Tree) -> str | None:
    is_paced = values["pacing"] or _models_path(values) or "max_pacing_rate" in values
    return None if is_paced else f"without pacing: pacing = {_written(values['pacing'])}"


_IDLE: Mapping[str, Callable[[Tree], str | None]] = {
    "reduction": _reduction,
    "frto": _taken_back,
    "undo": _taken_back,
    "ect_on_all": _all_capable,
    "dsack": _reports,
    "pacing_burst": _bursts,
}
"""Of keys that depend on several others, why they do nothing, if so."""


def _where(values: Tree, key: str) -> str:
    return f"where {key} = {_written(values[key])}"


def _written(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


@lru_cache
def _stack(name: str) -> Tree:
    """What hosts of a stack have by themselves; of one's own stacks what they are made from is not known here."""
    known = name if name in {row["name"] for row in engine.stacks()} else "linux"
    text = f'duration = "1s"\nlink.rate = "1mbit"\ntcp.stack = "{known}"\n[[traffic]]\nkind = "bulk"\n'
    found: Tree = engine.resolve(text, "stack").scenario.get("tcp", {})
    return found


def _ticks(resolved: Resolved) -> None:
    """A delay emulator rounds a delay down to whole ticks."""
    for number, block in enumerate(resolved.scenario.get("traffic", [])):
        if "rtt_tick" not in block or (block["kind"] in OWN_ROUND_TRIPS and "rtt" not in block):
            continue
        where, rtt = ("rtt", block["rtt"]) if "rtt" in block else ("path.rtt", resolved.scenario["path"]["rtt"])
        ends = [rtt] if isinstance(rtt, str) else rtt.get("uniform") or rtt.get("even") or []
        shorter = [units.seconds(end, where) < units.seconds(block["rtt_tick"], "rtt_tick") for end in ends]
        if any(shorter):
            which = "round trips become 0" if all(shorter) else "round trips of less than a tick become 0"
            said = (
                f'{where} = "{rtt}" is less than a tick' if isinstance(rtt, str) else f'{where} begins at "{ends[0]}"'
            )
            doubt(f'{resolved.origin}: traffic.{number}.rtt_tick = "{block["rtt_tick"]}": {which}, since {said}')


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
