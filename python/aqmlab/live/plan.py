"""What the process of the test bed is told, and whether this machine can do it: the same for a run and for a prompt."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

from aqmlab.engine import Resolved
from aqmlab.errors import BadInput, CannotRun
from aqmlab.json_files import Json
from aqmlab.laws import brought
from aqmlab.live import kernel_qdisc, preflight, unfit, virtual
from aqmlab.live.settings import (
    Settings,
    missing_controllers,
    place_of_accurate_ecn,
    refuse_missing,
    settings,
)
from aqmlab.live.tried import tried

EVERYWHERE = ("reno", "cubic")
"""Congestion controllers that every kernel of virtual time has."""


def check(resolved: Resolved, *, is_virtual: bool, kernel: str | None = None, has_traffic: bool = True) -> None:
    """Makes sure, before anything runs, that this machine can do it; one line says what is missing.

    `has_traffic` says whether the scenario's own runs.
    """
    for position, block in enumerate(resolved.scenario["traffic"]):
        if rate := block.get("max_pacing_rate"):
            raise BadInput(
                f'{resolved.origin}: traffic.{position}.max_pacing_rate = "{rate}": is not set on real hosts; '
                "expected a live run without it"
            )
    _refuse_emulated_hosts(resolved)
    if has_traffic:
        unfit.check(resolved)
    kernel_qdisc.settings(resolved, is_virtual=is_virtual)  # says where Linux has no such discipline
    wanted = settings(resolved)
    if is_virtual:
        virtual.check(kernel)
        _refuse_without_accurate_ecn(wanted, resolved, kernel, is_virtual)
        _refuse_what_no_kernel_inside_has(wanted, resolved, kernel)
        return
    preflight.check()
    kernel_qdisc.check(resolved)
    _refuse_without_accurate_ecn(wanted, resolved, kernel, is_virtual)
    if absent := missing_controllers(wanted, preflight.controllers()):
        preflight.load_controllers(absent)
    refuse_missing(wanted, preflight.controllers(), resolved.origin)


def _refuse_without_accurate_ecn(wanted: Settings, resolved: Resolved, kernel: str | None, is_virtual: bool) -> None:
    """Ends in one line where hosts are to count marks (RFC 9768) and the kernel cannot."""
    if (place := place_of_accurate_ecn(wanted, resolved)) is None:
        return
    found = _said_of_marks(is_virtual, kernel)
    # Why a kernel gave no answer, the run says.
    if "failed" not in found and not found["accurate_ecn"]:
        whose = "the kernel of virtual time" if is_virtual else "this machine's kernel"
        raise CannotRun(
            f'{resolved.origin}: {place}.ecn = "accurate": {whose}, Linux {found["release"]}, has no accurate ECN '
            "(net.ipv4.tcp_ecn = 3); expected one that has: aqmlab kernel build --release 7.3 makes one for "
            "aqmlab live --virtual --kernel 7.3"
        )


def _refuse_what_no_kernel_inside_has(wanted: Settings, resolved: Resolved, kernel: str | None) -> None:
    """Ends in one line where the kernel of virtual time has not what is asked of it beside what every one has."""
    if not kernel_qdisc.is_asked(resolved) and not missing_controllers(wanted, EVERYWHERE):
        return
    found = _said_inside(kernel)
    if "failed" in found or found["namespaces"] is not None:
        return  # why, the run says
    whose = f"the kernel of virtual time, Linux {found['release']},"
    kernel_qdisc.check(resolved, found["qdiscs"], whose)
    refuse_missing(wanted, found["available"], resolved.origin, whose)


@cache
def _said_inside(kernel: str | None) -> Json:
    """What the kernel of virtual time says of itself; runs of the same command ask it once."""
    return tried(virtual_time=True, name=kernel)


@cache
def _said_of_marks(is_virtual: bool, kernel: str | None) -> Json:
    """What the kernel says of accurate ECN; runs of the same command ask it once."""
    return tried("--marks", virtual_time=is_virtual, name=kernel)


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
    tells_progress: bool = True,
) -> Json:
    """What `live.json` holds; `origin` is the scenario beside which its files lie.

    Where nobody follows it, it need not tell its progress.
    """
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
        "progress": tells_progress,
        "laws": brought.handed_on(resolved.scenario),
    }
