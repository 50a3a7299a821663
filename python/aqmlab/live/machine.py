"""Runs one program in a kernel of virtual time, and makes sure that it ends.

    python -I machine.py DIR

DIR/machine.json says what is run: see `virtual.command`, which writes it. The kernel's root is the machine's file
system (hostfs), with the rights of whoever runs it; what the kernel must have of its own is mounted over it: /proc,
/sys, /dev, /run, /dev/shm. The program's output comes out of this process, its exit code is this process's. Where the
kernel does not come so far, DIR/error.json says why, as the program itself would, and the exit code is 3.

Nothing is left behind, whoever dies first: this process goes with its parent, the kernel with this process, and the
kernel's processes with the kernel (PR_SET_PDEATHSIG at each step; arch/um sets it for its own).

This file stands alone: isolated Python starts it without the rest of aqmlab.
"""

import ctypes
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1
ADDR_NO_RANDOMIZE = 0x0040000
"""personality(2)."""

EPOCH_NS = 1_767_225_600 * 1_000_000_000
"""What the clock inside says at its start, 2026-01-01: part of what makes runs repeat."""

MARK = "AQMLAB_LIVE"
"""See registry.py."""

LOOKS_S = 0.05
"""How often the program's output is passed on and its progress looked at."""

LEAST_ROOM = 64 << 10
"""Bytes: where less is free after a kernel has ended, nothing was while it ran, for it gives back files of its own."""

CANNOT_RUN = 3

OF_SHELLS = ("UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "BASH_VERSINFO", "OPTIND")
"""Variables that a shell keeps to itself: it ends where a script sets one, or OPTIND to what is no number."""

HIDDEN = ("/proc", "/sys", "/dev", "/run")
"""What a kernel has of its own: what the machine has there is not to be seen inside."""

SILENT = "virtual time: no progress"
"""How the reason begins where the program said nothing for too long."""

INIT = """#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t devpts -o ptmxmode=0666 pts /dev/pts
mount -t tmpfs run /run
mkdir -p /run/netns
ulimit -Hn 1048576 && ulimit -Sn 1048576
. {environment}
rm -f {environment}
cd {cwd} || {{ echo o >/proc/sysrq-trigger; sleep 1000; }}
{seeding}
{program} </dev/null >{stdout} 2>{stderr}
echo "$?" >{code}
echo o >/proc/sysrq-trigger
sleep 1000
"""


def main(directory: Path) -> int:
    """Runs what DIR/machine.json says; the answer is the exit code."""
    asked = json.loads((directory / "machine.json").read_text(encoding="utf-8"))
    die_with_parent(asked["parent"])
    files = {name: directory / f"machine.{name}" for name in ("stdout", "stderr", "code", "log", "init", "environment")}
    for path in files.values():
        path.unlink(missing_ok=True)
    own = directory / "machine.kernel"
    shutil.rmtree(own, ignore_errors=True)
    if '"' in str(directory):
        return fail(directory, f"virtual time: {directory}: expected a path without quotation marks (a kernel's words)")
    if unseen := hidden(directory) or hidden(Path.cwd()):
        return fail(directory, f"virtual time: {unseen}")
    memory = place_of_memory(asked["memory_mb"])
    if memory is None:
        return fail(directory, f"virtual time: expected {asked['memory_mb']} MB free in /dev/shm, TMPDIR or /tmp")
    write_init(asked, files)
    try:
        with files["log"].open("wb") as log:
            kernel = subprocess.Popen(
                words(asked, own.name, files["init"]),
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={key: os.environ[key] for key in ("PATH", MARK) if key in os.environ} | {"TMPDIR": memory},
                preexec_fn=partial(tie_down, os.getpid(), idle_processor()),
            )
    except OSError as error:
        files["environment"].unlink(missing_ok=True)
        return fail(
            directory, f"virtual time: {asked['kernel']}: {error.strerror}; expected a kernel built as a program"
        )
    ends_early = watch(kernel, asked, directory, files)
    is_full = has_no_room(directory)
    files["environment"].unlink(missing_ok=True)  # of a kernel that did not come so far
    shutil.rmtree(own, ignore_errors=True)
    if files["code"].exists() and (code := files["code"].read_text().strip()):
        return int(code)
    if not (directory / "error.json").exists():
        how = f"{directory}: no space left" if is_full else how_it_ended(kernel.returncode, files["log"])
        how = f"virtual time: {how}"
        return fail(directory, ends_early or how, is_silent=ends_early.startswith(SILENT))
    return CANNOT_RUN


def hidden(folder: Path) -> str | None:
    """Why a folder cannot be reached within a kernel, in a line, where it cannot."""
    for own in HIDDEN:
        if Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(own)):
            return f"{folder}: expected a folder that does not lie below {own}, of which the kernel has its own"
    return None


def words(asked: dict[str, Any], own: str, init: Path) -> list[str]:
    """The kernel's command line, with a folder of its own in the one that it is started in.

    It makes one line of them, and words of that again: in quotation marks they may have spaces.
    """
    return [
        asked["kernel"],
        f"mem={asked['memory_mb']}M",
        "time-travel=inf-cpu",
        f"time-travel-start={EPOCH_NS}",
        "rootfstype=hostfs",
        "root=/dev/root",
        "rootflags=/",
        "rw",
        f'init="{init}"',
        # Its messages are the log; there are no terminals, and no place in the home folder.
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        f"uml_dir={own}",
        "loglevel=4",
        "panic=-1",
    ]


def write_init(asked: dict[str, Any], files: dict[str, Path]) -> None:
    """The script that the kernel starts."""
    # Where chance is left inside, it is the run's: RNDADDENTROPY credits sixty-four bytes to the kernel's pool, so that
    # nobody waits for more, and RNDRESEEDCRNG draws on it at once (random(4)).
    seed = (
        "import fcntl,hashlib,struct;"
        f"b=hashlib.sha512(b'aqmlab {int(asked['seed'])}').digest();"
        "f=open('/dev/urandom','wb');"
        "fcntl.ioctl(f,0x40085203,struct.pack('ii',512,64)+b);"
        "fcntl.ioctl(f,0x5207)"
    )
    # What others keep in their environment is nobody else's business: the script removes it as it starts.
    write_private(files["environment"], exports({**os.environ, "PYTHONHASHSEED": "0"}), 0o600)
    text = INIT.format(
        cwd=shlex.quote(str(Path.cwd())),
        seeding=shlex.join([sys.executable, "-I", "-S", "-c", seed]),
        program=shlex.join(asked["program"]),
        **{name: shlex.quote(str(files[name])) for name in ("stdout", "stderr", "code", "environment")},
    )
    write_private(files["init"], text, 0o700)


def exports(environment: dict[str, str]) -> str:
    """An environment as lines that a shell reads, without what no shell has and what every one has of its own."""
    kept = {key: value for key, value in environment.items() if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key)}
    return "".join(
        f"export {key}={shlex.quote(value)}\n" for key, value in sorted(kept.items()) if key not in OF_SHELLS
    )


def write_private(path: Path, text: str, mode: int) -> None:
    """A file that never was anybody else's to read."""
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    # Python has what is no UTF-8 in names and environments as surrogates.
    with os.fdopen(made, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def watch(kernel: "subprocess.Popen[bytes]", asked: dict[str, Any], directory: Path, files: dict[str, Path]) -> str:
    """Until the kernel has ended; the answer says why it was ended, where it was."""
    stops: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: stops.append(number))
    relays = [Relay(files["stdout"], sys.stdout.buffer), Relay(files["stderr"], sys.stderr.buffer)]
    moved, seen = time.monotonic(), -1
    reason = ""
    while True:
        try:
            kernel.wait(LOOKS_S)
        except subprocess.TimeoutExpired:
            size = sum(path.stat().st_size for path in (directory / "progress.jsonl", files["stdout"]) if path.exists())
            if size != seen:
                moved, seen = time.monotonic(), size
            if stops:
                reason = "stopped"
            elif time.monotonic() - moved > asked["patience_s"]:
                reason = f"{SILENT} for {asked['patience_s']} s; does a program wait by watching the clock?"
            if reason:
                kernel.kill()
                kernel.wait()
        for relay in relays:
            relay.pass_on()
        if kernel.returncode is not None:
            return reason


class Relay:
    """What the program inside wrote into a file, passed on."""

    def __init__(self, source: Path, sink: IO[bytes]) -> None:
        self._source = source
        self._sink = sink
        self._at = 0

    def pass_on(self) -> None:
        """What is new."""
        try:
            with self._source.open("rb") as file:
                file.seek(self._at)
                new = file.read()
        except FileNotFoundError:
            return
        if new:
            self._at += len(new)
            self._sink.write(new)
            self._sink.flush()


def place_of_memory(memory_mb: int) -> str | None:
    """A folder for the file that is the kernel's memory: it must hold that, and allow programs to be run from it."""
    places = ["/dev/shm", os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp"]
    for place in places:
        try:
            room = os.statvfs(place)
        except OSError:
            continue
        free = room.f_bavail * room.f_frsize
        if not room.f_flag & os.ST_NOEXEC and os.access(place, os.W_OK) and free > memory_mb << 20:
            return str(Path(place).absolute())
    return None


def has_no_room(directory: Path) -> bool:
    """Whether nothing can be written any more where the files of a run lie."""
    room = os.statvfs(directory)
    # Of a file system without a number of files this is nought of nought.
    return room.f_bavail * room.f_frsize < LEAST_ROOM or (room.f_files > 0 and room.f_favail == 0)


def tie_down(parent: int, processor: int) -> None:
    """In the kernel's process before it starts.

    It goes with this one. It lies at the same addresses in every run, for the gap behind its program becomes memory,
    and Linux sizes its tables by that. And it keeps to one processor: a system call inside is a hand-over between two
    processes outside, of which one at a time works, and across processors that takes five times as long.
    """
    die_with_parent(parent)
    ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    os.sched_setaffinity(0, {processor})


def idle_processor() -> int:
    """The processor that has most to spare just now."""
    before = idle_ticks()
    time.sleep(0.1)
    after = idle_ticks()
    allowed = sorted(os.sched_getaffinity(0))
    return max(allowed, key=lambda cpu: (after.get(cpu, 0) - before.get(cpu, 0), (os.getpid() + cpu) % len(allowed)))


def idle_ticks() -> dict[int, int]:
    """How long each processor has had nothing to do; proc(5), /proc/stat."""
    lines = [line.split() for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines()]
    return {int(line[0][3:]): int(line[4]) for line in lines if line[0][:3] == "cpu" and line[0][3:].isdigit()}


def die_with_parent(parent: int) -> None:
    """This process is killed when its parent goes, or has gone; what it becomes by exec(3) too."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def how_it_ended(code: int, log: Path) -> str:
    """What the kernel said last, in a line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if re.search("panic|fail|error|machine\\.init: ", line, re.IGNORECASE)]
    if code < 0:
        said = [f": {line[:300]}" for line in telling[-1:]]
        return f"the kernel was killed by signal {-code}{''.join(said)}"
    return f"the kernel ended before the program: {(telling or lines or ['it said nothing'])[-1][:300]}"


def fail(directory: Path, message: str, is_silent: bool = False) -> int:
    """Leaves the reason, and whether it is that nothing was heard any more."""
    text = json.dumps({"message": message, "exit_code": CANNOT_RUN, **({"is_silent": True} if is_silent else {})})
    (directory / "error.json").write_text(text + "\n", encoding="utf-8")
    return CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
