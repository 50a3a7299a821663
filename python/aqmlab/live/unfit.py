"""Traffic that hosts on real sockets cannot send, told before anything runs: what the hosts refuse as they begin."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aqmlab import files, toml_text, units
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import BadInput
from aqmlab.live.settings import MTU

HEADERS = {"ipv4": 28, "ipv6": 48}
"""Of IP and UDP."""
MARK = 10
"""Bytes that a probe has beside these."""
BLOCKS = 100
"""Of traffic that the hosts tell apart by their ports."""
OF_FRAMES = "max_rate"
"""A key that only real-time video has, whose frames hosts on real sockets do not send."""
OF_PROBES = "interval"
"""A key that only probes have."""


def check(resolved: Resolved) -> None:
    """Raises `BadInput` with file, key and value of the first block that cannot be sent."""
    family = resolved.scenario.get("live", {}).get("family", "ipv4")
    if (blocks := len(resolved.scenario["traffic"])) > BLOCKS:
        raise BadInput(f"{resolved.origin}: traffic: {blocks} blocks: expected {BLOCKS} at most in a live run")
    for number, block in enumerate(resolved.scenario["traffic"]):
        where = f"{resolved.origin}: traffic.{number}"
        if OF_FRAMES in block:
            raise BadInput(
                f'{where}.kind = "{block["kind"]}": a live run has no real-time video yet; expected other kinds, or a '
                "simulated run"
            )
        least = HEADERS[family] + (MARK if OF_PROBES in block else 0)
        for key, place, size in _sizes(block, resolved.origin):
            if not least <= size <= MTU:
                raise BadInput(
                    f"{where}.{key} = {_written(block[key])}: {place}expected packets of {least} to {MTU} bytes, as "
                    "real hosts send over this link"
                )


def _sizes(block: Tree, origin: str) -> Iterator[tuple[str, str, float]]:
    """Sizes of unresponsive packets, with the key that has them and, of a file, the line: the least and the most."""
    if "packet" in block:
        for size in _ends(block["packet"]):
            yield "packet", "", size
    elif "packets" in block:
        path = Path(origin).parent / block["packets"]["file"]
        with files.opened(path, files.LIST) as file:
            for number, line in enumerate(file, 1):
                # The file was read: what ends in no number is a heading or a remark.
                last = line.rpartition(b",")[2].strip()
                if last.isdigit() and not line.lstrip().startswith(b"#"):
                    yield "packets", f"line {number} says {int(last)}, ", float(last)


def _ends(value: Any) -> tuple[float, float]:
    """The least and the greatest of a size or of a distribution of sizes."""
    if not isinstance(value, dict):
        return _bytes(value), _bytes(value)
    points = value.get("uniform") or [size for size, _ in value.get("table", ())]
    return (_bytes(points[0]), _bytes(points[-1])) if points else (0.0, float("inf"))


def _bytes(value: Any) -> float:
    return (units.quantity(str(value)) or (0.0, ""))[0]


def _written(value: Any) -> str:
    return toml_text.value(value["file"] if isinstance(value, dict) and "file" in value else value)
