"""What this machine must have for a live run in real time; what is missing is said before anything runs."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from aqmlab import engine
from aqmlab.errors import CannotRun
from aqmlab.live import probe, registry
from aqmlab.live.settings import AVAILABLE

TUN = Path("/dev/net/tun")


def check() -> None:
    """Raises `CannotRun` with one line if this machine cannot do it."""
    if not sys.platform.startswith("linux"):
        raise CannotRun(f"live: the test bed is made of Linux's namespaces and devices; this is {sys.platform}")
    if not engine.has_test_bed():
        raise CannotRun("live: this build of aqmlab has no test bed; expected one made on Linux")
    check_programs()
    try:
        os.close(os.open(TUN, os.O_RDWR))
    except OSError as error:
        raise CannotRun(
            f"live: {TUN}: {error.strerror}; expected a kernel with TUN devices (modprobe tun) that this user may open;"
            " --virtual needs none"
        ) from None
    if (refused := _refused_namespaces()) is not None:
        who = "root" if os.geteuid() == 0 else "this user"
        raise CannotRun(
            f"live: {who} cannot make a network namespace: {refused}; expected root with CAP_SYS_ADMIN, or a kernel "
            "that allows user namespaces (user.max_user_namespaces, kernel.unprivileged_userns_clone)"
        )


def _refused_namespaces() -> str | None:
    """Why there can be no network namespace; tried in a process of its own, which goes with it."""
    words = [sys.executable, "-I", str(Path(probe.__file__)), "--namespaces"]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        refused: str | None = json.loads(made.stdout)["namespaces"]
    except (ValueError, KeyError):
        return (made.stderr.strip().splitlines() or ["unshare failed"])[-1]
    return refused


def check_programs() -> None:
    """Raises `CannotRun` where the program that sets the hosts up is not there, inside or outside."""
    if shutil.which("ip", path=probe.path()) is None:
        raise CannotRun("live: expected the program ip, which makes addresses and routes (Debian: iproute2)")


def beside() -> list[str]:
    """What else runs live on this machine: two runs in real time are each other's lateness."""
    if names := registry.living():
        return [f"{', '.join(names)}: runs live at the same time; what runs in real time will be late"]
    return []


def controllers() -> list[str]:
    """The congestion controllers of this kernel."""
    with contextlib.suppress(OSError):
        return AVAILABLE.read_text(encoding="ascii").split()
    return []


def load_controllers(names: list[str]) -> None:
    """Has the kernel look for modules of the controllers it has not at hand; what comes of it is seen afterwards."""
    for name in names:
        with contextlib.suppress(OSError):
            environment = {**os.environ, "PATH": probe.path()}
            subprocess.run(["modprobe", "-q", f"tcp_{name}"], check=False, capture_output=True, env=environment)
