"""What the process of the test bed is told, and whether this machine can do it: the same for a run and for a prompt."""

from __future__ import annotations

import os
from collections.abc import Sequence

from aqmlab.engine import Resolved
from aqmlab.errors import BadInput
from aqmlab.json_files import Json
from aqmlab.laws import brought
from aqmlab.live import kernel_qdisc, preflight, virtual
from aqmlab.live.settings import missing_controllers, refuse_missing, settings


def check(resolved: Resolved, *, is_virtual: bool, kernel: str | None = None) -> None:
    """Makes sure, before anything runs, that this machine can do it; one line says what is missing."""
    for position, block in enumerate(resolved.scenario["traffic"]):
        if rate := block.get("max_pacing_rate"):
            raise BadInput(
                f'{resolved.origin}: traffic.{position}.max_pacing_rate = "{rate}": is not set on real hosts; '
                "expected a live run without it"
            )
    _refuse_emulated_hosts(resolved)
    kernel_qdisc.settings(resolved, is_virtual=is_virtual)  # says where Linux has no such discipline
    if is_virtual:
        virtual.check(kernel)
        return  # that kernel has every controller that its source has, and says so itself where one is missing
    preflight.check()
    kernel_qdisc.check(resolved)
    wanted = settings(resolved)
    if absent := missing_controllers(wanted, preflight.controllers()):
        preflight.load_controllers(absent)
    refuse_missing(wanted, preflight.controllers(), resolved.origin)


def _refuse_emulated_hosts(resolved: Resolved) -> None:
    """What of hosts only the simulator has: links that their connections share, delays that come by their clocks."""
    scenario = resolved.scenario
    asked = {"path.access": (scenario["path"].get("access"), "host")}
    for position, block in enumerate(scenario["traffic"]):
        asked[f"traffic.{position}.rtt_at"] = (block.get("rtt_at"), "clients")
    for key, (value, refused) in asked.items():
        if value == refused:
            raise BadInput(
                f'{resolved.origin}: {key} = "{value}": is not made between real hosts; expected a live run without it'
            )


def remarks(resolved: Resolved) -> list[str]:
    """What the kernels do otherwise than the scenario says."""
    return [*settings(resolved).remarks, *kernel_qdisc.remarks(resolved)]


def capture(resolved: Resolved) -> str:
    """Where packets are captured, as the scenario says."""
    return str(resolved.scenario.get("live", {}).get("capture", "off"))


def of(
    resolved: Resolved,
    origin: str,
    *,
    is_virtual: bool,
    command: Sequence[str] = (),
    side: str = "left",
    has_traffic: bool = True,
    capture: str = "off",
) -> Json:
    """What `live.json` holds; `origin` is the scenario beside which its files lie."""
    return {
        "origin": origin,
        "virtual": is_virtual,
        "parent": os.getpid(),
        "settings": {
            **settings(resolved).as_dict(),
            "kernel_qdisc": kernel_qdisc.settings(resolved, is_virtual=is_virtual),
        },
        "command": list(command) or None,
        "side": side,
        "traffic": has_traffic,
        "capture": capture,
        "laws": brought.handed_on(resolved.scenario),
    }
