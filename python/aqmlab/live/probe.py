"""Tries what a live run needs of a kernel, in namespaces that are thrown away, and prints it as JSON.

    python -I probe.py [--virtual] [--marks | --namespaces]

Nothing is asked of files that say what a kernel was built with: a queue discipline is there if `tc` can put it on a
device, a congestion controller if a socket takes it, accurate ECN if the setting takes its value. With --marks nothing
else than that is tried, with --namespaces only whether there can be any. This file stands alone: it also runs in a
kernel of virtual time.
"""

import ctypes
import fcntl
import json
import os
import platform
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
PR_SET_TIMERSLACK = 29
CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_SYS_RESOURCE = 12, 21, 24
"""capabilities(7)."""

SYSTEM = "/usr/sbin:/sbin:/usr/bin:/bin"
"""Where ip and tc may lie though a user's PATH does not name it."""

QDISCS = {
    "pfifo": "",
    "bfifo": "",
    "tbf": "rate 10mbit burst 3000 limit 100000",
    "htb": "",
    "hfsc": "",
    "prio": "",
    "netem": "",
    "drr": "",
    "sfq": "",
    "fq": "",
    "red": "limit 100000 min 10000 max 30000 avpkt 1000",
    "gred": "setup DPs 1 default 0",
    "choke": "limit 1000 bandwidth 10mbit",
    "sfb": "",
    "codel": "",
    "fq_codel": "",
    "pie": "",
    "fq_pie": "",
    "cake": "",
    "dualpi2": "",
}
"""Queue disciplines of Linux that belong before a bottleneck, with what `tc` insists on."""

CONTROLLERS = (
    "reno cubic bbr dctcp bic cdg highspeed htcp hybla illinois lp nv prague scalable vegas veno westwood yeah"
)

WAKE_UPS = 2000
PAUSE_S = 500e-6


def main() -> None:
    """Prints one JSON object."""
    found: dict[str, Any] = {"release": platform.release(), "is_virtual": "--virtual" in sys.argv}
    if "--namespaces" in sys.argv:
        print(json.dumps({**found, "namespaces": enter()}))
        return
    if "--marks" in sys.argv:
        print(json.dumps({**found, "namespaces": enter(), "accurate_ecn": counts_marks()}))
        return
    # Before the namespaces: a user namespace's root may not ask for real-time scheduling either.
    if not found["is_virtual"]:
        found["lateness_s"] = lateness()
    found["namespaces"] = said = enter()
    found["accurate_ecn"] = said is None and counts_marks()
    found["tun"] = tun() if said is None else said
    found["qdiscs"] = {name: said is None and takes(name, words) for name, words in QDISCS.items()}
    found["controllers"] = [name for name in CONTROLLERS.split() if said is None and has_controller(name)]
    found["available"] = available()
    found["ipv6"] = Path("/proc/sys/net/ipv6").exists()
    print(json.dumps(found))


def lateness() -> dict[str, float]:
    """How late a sleeper is woken, over a second."""
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    late = []
    for _ in range(WAKE_UPS):
        due = time.monotonic() + PAUSE_S
        time.sleep(PAUSE_S)
        late.append(max(time.monotonic() - due, 0.0))
    late.sort()
    return {"p50": late[WAKE_UPS // 2], "p99": late[WAKE_UPS * 99 // 100], "max": late[-1]}


def path() -> str:
    """Where the programs that set networks up are looked for, in the form of PATH."""
    return ":".join(filter(None, (os.environ.get("PATH"), SYSTEM)))


def has_capabilities(*numbers: int) -> bool:
    """Whether this process has them: root of a container may lack what another user has."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return os.geteuid() == 0
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return all(int(effective, 16) >> number & 1 for number in numbers)


def is_privileged() -> bool:
    """Whether this process may make namespaces and interfaces, as the engine asks for itself."""
    return has_capabilities(CAP_NET_ADMIN, CAP_SYS_ADMIN)


def enter() -> str | None:
    """Into a network namespace of its own, within a user namespace where it takes that; or why not."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group, needs_none = os.geteuid(), os.getegid(), is_privileged()
    flags = CLONE_NEWNET if needs_none else CLONE_NEWUSER | CLONE_NEWNET
    if libc.unshare(flags):
        return os.strerror(ctypes.get_errno())
    try:
        if not needs_none:
            # user_namespaces(7): groups may be mapped once nobody can drop one to gain from it.
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    except OSError as error:
        return error.strerror
    return None if is_privileged() else "the user namespace has no capabilities"


def tun() -> str | None:
    """Makes the device that disciplines are tried on; or says why that cannot be."""
    try:
        # Never closed: the device is there as long as this process.
        device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"aqm0", IFF_TUN | IFF_NO_PI))
    except OSError as error:
        return error.strerror
    return None


def takes(name: str, words: str) -> bool:
    """Whether `tc` can put a discipline on a device."""

    def tc(asked: str) -> bool:
        words = ["tc", "qdisc", *asked.split()]
        environment = {**os.environ, "PATH": path()}
        return subprocess.run(words, capture_output=True, check=False, env=environment).returncode == 0

    try:
        took = tc(f"add dev aqm0 root handle 1: {name} {words}")
        return took and tc("del dev aqm0 root")
    except OSError:
        return False


def counts_marks() -> bool:
    """Whether hosts of this namespace can ask for accurate ECN (RFC 9768): ip-sysctl, `tcp_ecn`, 3.

    Linux 6.18 has the settings of the option that goes with it, and does not take this one.
    """
    settings = Path("/proc/sys/net/ipv4")
    try:
        (settings / "tcp_ecn").write_text("3")
    except OSError:
        return False
    return (settings / "tcp_ecn_option").exists()


def available() -> list[str]:
    """The congestion controllers at hand by their names, also those that nobody here has heard of."""
    try:
        return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
    except OSError:
        return []


def has_controller(name: str) -> bool:
    """Whether a socket of this namespace takes a congestion controller; Linux loads it where it is a module."""
    with socket.socket() as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            return False
    return True


if __name__ == "__main__":
    main()
