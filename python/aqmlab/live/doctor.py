"""What this machine can run live, what is missing, and what to do about it.

Everything is tried rather than asked for: `probe.py` runs once in this kernel and once in the kernel of virtual time.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aqmlab.errors import AqmlabError
from aqmlab.json_files import Json
from aqmlab.live import kernel, kernel_qdisc, probe, registry
from aqmlab.live.tried import tried
from aqmlab.runs import kernels

YES, LIMITED, NO = "yes", "with limits", "no"

LATE_S = 200e-6
"""Of the usual budget: 99 % of packets within this."""
LATEST_S = 5e-3
"""And none later than this."""

FILES = 65_536
"""Open files that a run of tens of thousands of connections needs."""

SHARP_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "xen")
"""Clock sources that are read in tens of nanoseconds and never through a device."""

NEEDED, WANTED = ("ip",), ("tc", "ethtool", "ping", "iperf3", "curl", "tshark")
PACKAGES = {"ip": "iproute2", "tc": "iproute2", "ping": "iputils-ping"}
"""Debian's packages of programs that are not called as theirs."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    found: str
    good: str
    """`yes`, `with limits` or `no`."""
    remedy: str | None = None
    """What to do about it, in words."""


@dataclass(frozen=True)
class Diagnosis:
    """All that was looked at, and what follows."""

    findings: tuple[Finding, ...]
    verdicts: dict[str, Finding]
    """`real time`, `virtual time`, `kernel qdisc`."""

    @property
    def can_run(self) -> bool:
        """Whether something live can run here."""
        return any(self.verdicts[key].good != NO for key in ("real time", "virtual time"))

    def as_dict(self) -> Json:
        """For JSON."""
        return {
            "findings": [asdict(one) for one in self.findings],
            "verdicts": {key: asdict(one) for key, one in self.verdicts.items()},
            "can_run": self.can_run,
        }


def examine() -> Diagnosis:
    """Looks at everything; takes some seconds."""
    if not sys.platform.startswith("linux"):
        nothing = Finding("system", sys.platform, NO, "live runs are made of Linux's namespaces and devices")
        return Diagnosis((nothing,), dict.fromkeys(("real time", "virtual time", "kernel qdisc"), nothing))
    here = tried(virtual_time=False)
    inside = _inside()
    basics = [*_rights(here), *_programs()]
    timing = list(_timing(here))
    networking = list(_networking(here))
    machine = _virtual(inside)
    named = [_virtual(_inside(name), f"kernel {name} of virtual time") for name in kernels.names()]
    return Diagnosis(
        (*basics, *networking, *timing, machine, *named),
        {
            "real time": _verdict("real time", basics, [*networking, *timing]),
            "virtual time": Finding("virtual time", machine.found, machine.good, machine.remedy),
            "kernel qdisc": _qdisc_verdict(here, inside),
        },
    )


def _inside(name: str | None = None) -> Json:
    """What a kernel of virtual time says of itself. One that is broken does not stand in the way of others."""
    try:
        return {"missing": True} if kernel.find(name) is None else tried(virtual_time=True, name=name)
    except AqmlabError as error:
        return {"failed": str(error)}


def _rights(here: Json) -> Iterator[Finding]:
    yield Finding("kernel", os.uname().release, YES)
    who = "root" if probe.is_privileged() else "user namespaces"
    refused = here.get("namespaces", here.get("failed", "the probe failed"))
    if refused is None:
        yield Finding("network namespaces", who, YES)
        refused = here["tun"]
        if refused is None:
            yield Finding("TUN devices", "/dev/net/tun", YES)
            return
    else:
        yield Finding(
            "network namespaces",
            str(refused),
            NO,
            "run as root, or allow user namespaces (sysctl -w user.max_user_namespaces=10000, on some systems also "
            "kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0); in a container, "
            "start that with CAP_SYS_ADMIN",
        )
        if Path("/dev/net/tun").exists():
            refused = "not tried"
    yield Finding(
        "TUN devices",
        f"/dev/net/tun: {refused}",
        NO,
        "modprobe tun, and chmod 666 /dev/net/tun for others than root; in a container, start that with "
        "--device /dev/net/tun",
    )


def _programs() -> Iterator[Finding]:
    for group, good in ((NEEDED, NO), (WANTED, LIMITED)):
        missing = [name for name in group if shutil.which(name, path=probe.path()) is None]
        there = [name for name in group if name not in missing]
        purpose = "programs" if group is NEEDED else "tools to look with"
        if missing:
            packages = dict.fromkeys(PACKAGES.get(name, name) for name in missing)
            install = f"apt-get install {' '.join(packages)}"
            if good == LIMITED:
                install += "; live runs do without" + (
                    "" if "tc" in there else ", but for the kernel's own disciplines"
                )
            yield Finding(purpose, f"{', '.join(there) or 'none'}; not {', '.join(missing)}", good, install)
        else:
            yield Finding(purpose, ", ".join(there), YES)


def _networking(here: Json) -> Iterator[Finding]:
    controllers = here.get("controllers", [])
    missing = [name for name in ("reno", "cubic") if name not in controllers]
    yield Finding(
        "congestion controllers",
        ", ".join(controllers) or "none",
        LIMITED if missing else YES,
        f"modprobe {' '.join('tcp_' + name for name in missing)}, or virtual time, which has them all"
        if missing
        else None,
    )
    qdiscs = [name for name, takes in here.get("qdiscs", {}).items() if takes]
    yield Finding("queue disciplines of the kernel", ", ".join(qdiscs) or "none", YES if qdiscs else LIMITED)
    if not here.get("ipv6", False):
        yield Finding("IPv6", "not in this kernel", LIMITED, "keep [live] family at ipv4")


def _timing(here: Json) -> Iterator[Finding]:
    if late := here.get("lateness_s"):
        said = ", ".join(f"{label} {late[key] * 1e6:.0f} us" for label, key in _QUANTILES)
        is_late = late["p99"] > LATE_S or late["max"] > LATEST_S
        remedy = "end what else runs here; virtual time is never late" if is_late else None
        yield Finding("lateness of a sleeper, over a second", said, LIMITED if is_late else YES, remedy)
    clock = _text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if clock is not None:
        sharp = clock in SHARP_CLOCKS
        remedy = None if sharp else f"each look at the clock asks a device; expected one of {', '.join(SHARP_CLOCKS)}"
        yield Finding("clock source", clock, YES if sharp else LIMITED, remedy)
    cores = len(os.sched_getaffinity(0))
    remedy = None if cores > 1 else "router and hosts share one core: keep the rate low, or use virtual time"
    yield Finding("cores", str(cores), YES if cores > 1 else LIMITED, remedy)
    governor = _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor is not None:
        steady = governor == "performance"
        remedy = None if steady else "cpupower frequency-set -g performance: a core that slept wakes up slowly"
        yield Finding("CPU governor", governor, YES if steady else LIMITED, remedy)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Root may have more than its hard limit, though that of containers often not.
    enough = probe.has_capabilities(probe.CAP_SYS_RESOURCE) or hard == resource.RLIM_INFINITY or hard >= FILES
    remedy = None if enough else f"a connection takes two: raise it to {FILES} (ulimit -Hn, /etc/security/limits.conf)"
    yield Finding("open files", f"{_limit(soft)}, up to {_limit(hard)}", YES if enough else LIMITED, remedy)


_QUANTILES = (("median", "p50"), ("99 %", "p99"), ("longest", "max"))


def _limit(value: int) -> str:
    return "any number" if value == resource.RLIM_INFINITY else str(value)


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None


def _virtual(inside: Json, what: str = "kernel of virtual time") -> Finding:
    if inside.get("missing"):
        return Finding(what, f"none in {kernels.folder()}", NO, "aqmlab kernel build: some minutes, once")
    if "failed" in inside:
        remedy = inside.get("remedy", "aqmlab kernel build --fresh; it needs ptrace(2) and /dev/shm")
        return Finding(what, inside["failed"], NO, remedy)
    if inside["namespaces"] is not None or inside["tun"] is not None:
        return Finding(what, f"{inside['release']} has no TUN or namespaces", NO, "aqmlab kernel build --fresh")
    qdiscs = sum(inside["qdiscs"].values())
    found = f"{inside['release']}, {len(inside['controllers'])} congestion controllers, {qdiscs} queue disciplines"
    found += ", DualPI2" if inside["qdiscs"].get("dualpi2") else ", no DualPI2"
    found += ", AccECN" if inside.get("accurate_ecn") else ", no AccECN"
    return Finding(what, found, YES)


def _verdict(what: str, basics: Sequence[Finding], rest: Sequence[Finding]) -> Finding:
    missing = [one for one in basics if one.good == NO]
    if missing:
        return Finding(what, f"{missing[0].what}: {missing[0].found}", NO, missing[0].remedy)
    weak = [one for one in rest if one.good != YES]
    if weak:
        return Finding(what, "; ".join(f"{one.what}: {one.found}" for one in weak), LIMITED, weak[0].remedy)
    return Finding(what, "everything is there", YES)


def _qdisc_verdict(here: Json, inside: Json) -> Finding:
    """Which of the kernel's own disciplines can stand in the place of ours."""

    def offered(found: Mapping[str, Any]) -> list[str]:
        qdiscs = found.get("qdiscs", {})
        # Any discipline needs a shaper above it.
        return [name for name, takes in qdiscs.items() if takes] if qdiscs.get(kernel_qdisc.SHAPER) else []

    what = "kernel qdisc"
    real, simulated = offered(here), offered(inside)
    said = f"real time: {', '.join(real) or 'none'}; virtual time: {', '.join(simulated) or 'none'}"
    if not real and not simulated:
        return Finding(what, said, NO, "aqmlab kernel build makes a kernel that has them all")
    absent = [name for name in (*here.get("qdiscs", {}), *inside.get("qdiscs", {})) if name not in (*real, *simulated)]
    if absent or not simulated:
        remedy = None if simulated else "aqmlab kernel build makes a kernel that has them all"
        return Finding(what, said, LIMITED, remedy)
    return Finding(what, said, YES)


def show(out: Console, found: Diagnosis) -> None:
    """The table."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "what", "found", "what to do"):
        table.add_column(name, overflow="fold")
    for one in found.findings:
        table.add_row(_sign(one.good), one.what, one.found, one.remedy or "")
    out.print(table)
    for one in found.verdicts.values():
        because = f": {one.found}" if one.good != YES or one.what == "kernel qdisc" else ""
        out.print(Text.assemble((f"{one.what}: {one.good}", "bold"), because))


def _sign(good: str) -> Text:
    return {YES: Text("ok", "green"), LIMITED: Text("limit", "yellow"), NO: Text("none", "red")}[good]


def say_cleaned(out: Console, found: Sequence[registry.Remains]) -> None:
    """What was ended and removed, a line each."""
    for one in found:
        for pid in one.processes:
            out.print(f"ended process {pid}", markup=False)
        for name in one.folders:
            out.print(f"removed {name}", markup=False, soft_wrap=True)
    if not found:
        out.print("nothing was left over")
    for name in registry.living():
        out.print(f"alive, left alone: {name}", markup=False, soft_wrap=True)
    for name in registry.elsewhere():
        out.print(f"of another container or an earlier start, left alone: {name}", markup=False, soft_wrap=True)
