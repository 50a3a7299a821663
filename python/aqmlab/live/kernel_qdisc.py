"""`[live] qdisc = "kernel"`: the kernel's disciplines in place of ours, set up by the lines that `aqmlab tc` writes.

The router hands each packet that is due at the bottleneck to the kernel and takes it back when htb, shaped to the
link's rate, lets go of it. Devices, routes and readings are the engine's; here is what it is told to set up, what the
kernel does otherwise than the scenario says, and whether this machine's kernel has it.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from aqmlab import links
from aqmlab.engine import Resolved
from aqmlab.errors import CannotRun
from aqmlab.json_files import Json
from aqmlab.live import probe
from aqmlab.tc import table, write
from aqmlab.tc.lines import Section

DEVICES = ("forward", "reverse")
"""The devices on whose way out each direction's discipline is."""

SHAPER = "htb"

BURST_S = {"real": 1e-3, "virtual": 1e-5}
"""Time whose bytes the shaper may make up for: what its timers, and those who wait for them, are late by. In virtual
time nothing is late, and a clock of 256 ns remains."""

_KIND = re.compile(r"^tc qdisc add dev \S+ (?:root|parent \S+) handle \S+ (?:stab .* )?(\w+)\b")


def is_asked(resolved: Resolved) -> bool:
    """Whether a scenario wants the kernel's discipline."""
    return bool(resolved.scenario.get("live", {}).get("qdisc", "aqmlab") == "kernel")


def settings(resolved: Resolved, *, is_virtual: bool) -> Json | None:
    """What the engine is to set up; nothing where the discipline is ours. `BadInput` where Linux has none like it."""
    if not is_asked(resolved):
        return None
    return {
        "links": [
            [line.text for section in sections for line in section.lines]
            for sections in _of_links(resolved, is_virtual)
        ],
        "kinds": dict(probe.QDISCS),
    }


def remarks(resolved: Resolved) -> list[str]:
    """What the kernel's discipline does otherwise than the scenario says."""
    if not is_asked(resolved):
        return []
    said = [
        remark
        for section in _sections(resolved, is_virtual=True)
        for remark in (*section.remarks, *(remark for line in section.lines for remark in line.remarks))
    ]
    if with_average := [kind for kind in kinds(resolved) if kind in ("red", "choke")]:
        said.append(
            f"{' and '.join(with_average)}: below a shaper Linux's does not learn that its queue is idle, for htb asks "
            "no empty class: the average stays what it was until packets come"
        )
    return [f"kernel qdisc: {remark}" for remark in dict.fromkeys(said)]


def check(resolved: Resolved, inside: Mapping[str, bool] | None = None, whose: str = "") -> None:
    """Raises `CannotRun` in one line where a kernel has not what a scenario asks of it.

    That is this machine's, or the one of virtual time, `whose` disciplines are those `inside`.
    """
    if not is_asked(resolved):
        return
    if shutil.which("tc", path=probe.path()) is None:
        raise CannotRun(f'{resolved.origin}: live.qdisc = "kernel": expected the program tc (Debian: iproute2)')
    wanted = [SHAPER, *(kind for kind in kinds(resolved) if kind != SHAPER)]
    has = available() if inside is None else inside
    if absent := [_named(kind) for kind in dict.fromkeys(wanted) if not has.get(kind, False)]:
        found = ", ".join(kind for kind, is_there in has.items() if is_there) or "none"
        here = "this machine's kernel or its tc", "with --virtual it is a kernel with all that its version of Linux has"
        there = f"{whose} or this machine's tc", "--kernel names another"
        who, how = here if inside is None else there
        raise CannotRun(
            f'{resolved.origin}: live.qdisc = "kernel": {who} has no {", ".join(absent)}; it has {found} ({how})'
        )


def _named(kind: str) -> str:
    """A kind that is absent, with the versions that have it where not all do."""
    row = table.to_read(kind)
    return f"{kind}, which needs {row.needs}" if row is not None and row.needs else kind


def kinds(resolved: Resolved) -> list[str]:
    """The kinds of queue disciplines that the lines make."""
    lines = (line.text for section in _sections(resolved, is_virtual=True) for line in section.lines)
    found = [match[1] for line in lines if (match := _KIND.match(line))]
    return list(dict.fromkeys(found))


def available() -> Mapping[str, bool]:
    """Which queue disciplines this machine's kernel and tc can make, tried in a namespace that is thrown away."""
    # It is told that it need not measure how late sleepers are.
    made = subprocess.run(
        [sys.executable, "-I", str(Path(probe.__file__)), "--virtual"], capture_output=True, text=True, check=False
    )
    try:
        return dict(json.loads(made.stdout)["qdiscs"])
    except (ValueError, KeyError):
        return {}


def _sections(resolved: Resolved, is_virtual: bool) -> list[Section]:
    """Shapers and disciplines of all links, both ways."""
    return [section for sections in _of_links(resolved, is_virtual) for section in sections]


def _of_links(resolved: Resolved, is_virtual: bool) -> list[tuple[Section, Section]]:
    """Shaper and discipline of each link, forward and in reverse."""
    burst_s = BURST_S["virtual" if is_virtual else "real"]
    return [write.bottlenecks(resolved, name, DEVICES, burst_s) for name in links.of(resolved.scenario)]
