"""Traffic that sends nothing within the run, or next to nothing: told by what its blocks say of instants and rates."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aqmlab import files, units
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import doubt

LISTS: Mapping[str, int] = {"packets": 0, "demands": 1}
"""Keys that name a file of traffic whose instants do not fall: the field of the instant."""

WITHIN = 1 << 16
"""Bytes within which a file's first instant is looked for."""


def doubts(resolved: Resolved) -> None:
    """Says so of each block."""
    duration = str(resolved.scenario["duration"])
    for number, block in enumerate(resolved.scenario.get("traffic", [])):
        found = _silence(block, units.seconds(duration, "duration"), resolved.origin)
        if found is not None:
            key, value, why = found
            doubt(f'{resolved.origin}: traffic.{number}.{key} = "{value}": {why}, since the run ends at {duration}')


def _silence(block: Tree, end_s: float, origin: str) -> tuple[str, str, str] | None:
    """A key with its value, and how little it lets a block send; `None` where it sends enough."""
    begin_s = _earliest_s(block.get("start", "0s"))
    left_s = end_s - begin_s
    for key in LISTS.keys() & block.keys():
        first_s = _first_instant_s(Path(origin).parent / block[key]["file"], LISTS[key])
        if first_s is None or first_s < left_s:
            return None
        return key, block[key]["file"], f"its first instant, {units.say_seconds(begin_s + first_s)}, is not reached"
    if "interval" in block and units.seconds(block["interval"], "interval") > left_s:
        return "interval", block["interval"], "each probe sends a packet at most"
    if "rate" in block and isinstance(block.get("packet"), str):
        bits = 8 * (units.quantity(block["packet"]) or (0.0, ""))[0]
        if units.rate_bps(block["rate"], "rate") * left_s < bits:
            return "rate", block["rate"], f"less than a packet of {block['packet']} in the mean"
    if "arrivals" in block and (units.quantity(block["arrivals"]) or (1.0, ""))[0] * end_s < 1:
        return "arrivals", block["arrivals"], "less than one in the mean"
    return None


def _earliest_s(start: Any) -> float:
    """The earliest instant at which sources may begin, as far as that is plain."""
    if isinstance(start, Mapping):
        start = next(iter(start.values()))
        start = start[0] if isinstance(start, list) and start else "0s"
    return units.seconds(start, "start") if isinstance(start, str) else 0.0


def _first_instant_s(path: Path, column: int) -> float | None:
    """The instant on the first line of a file, after its heading; `None` where that is not found."""
    with files.opened(path, files.LIST) as file:
        lines = file.read(WITHIN).decode("utf-8-sig", "replace").split("\n")
    data = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    for line in data[:2]:  # the first may be a heading
        fields = line.split(",")
        found = units.quantity(fields[column]) if column < len(fields) else None
        if found is not None and found[1] in ("s", ""):
            return found[0]
    return None
