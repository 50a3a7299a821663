"""A kernel of virtual time, started for one program and gone with it.

What `build`, beside this file, makes is Linux as a process whose clock stands still while anything works. A script of
this folder starts it with `outside`, and the kernel starts the same script with `--inside FOLDER`, where `FOLDER` has
what is asked for and takes what is told.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
INSIDE = "--inside"
LONGEST_S = 3600
CLONE_NEWNET = 0x40000000
PR_SET_TIMERSLACK = 29


def boot(kernel: str, script: Path, folder: Path) -> None:
    """Runs `script --inside folder` as the only program of a kernel, to its end. What it prints is in folder/log."""
    init = folder / "init"
    init.write_text(
        "#!/bin/sh\nexport PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
        "mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; mount -t tmpfs t /run\n"
        "mkdir -p /run/netns\n"
        f"{sys.executable} -B {script} {INSIDE} {folder} >{folder}/log 2>&1\n"
        "echo o > /proc/sysrq-trigger; sleep 9\n"
    )
    init.chmod(0o755)
    words = [kernel, "mem=1G", "time-travel=inf-cpu", "rootfstype=hostfs", "root=/dev/root", "rootflags=/", "rw"]
    words += [f"init={init}", "con=null", "con0=null"]
    quiet = subprocess.DEVNULL
    subprocess.run(words, stdin=quiet, stdout=quiet, stderr=quiet, check=False, timeout=LONGEST_S)


def told(folder: Path, name: str, of: object) -> str:
    """What the program left in a file of its folder; the end of what it printed, and the end, if it did not."""
    written = folder / name
    if not written.exists():
        log = folder / "log"
        raise SystemExit(f"{of}: no {name}; {log.read_text()[-2000:] if log.exists() else 'no kernel'}")
    return written.read_text()


def prepare() -> None:
    """What holds for the whole of a kernel: timers to the nanosecond, and no IPv6 on what is made from now on."""
    LIBC.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")


def shell(words: str) -> str:
    """Runs a command and returns what it prints."""
    done = subprocess.run(words.split(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{words}: {done.stderr.strip()}")
    return done.stdout


def enter(host: str) -> None:
    """Moves this process into the namespace of a host."""
    with Path(f"/run/netns/{host}").open() as namespace:
        if LIBC.setns(namespace.fileno(), CLONE_NEWNET):
            raise SystemExit(f"setns {host}: errno {ctypes.get_errno()}")
