"""The kernel of virtual time: Linux as a program (User-Mode Linux) whose clock stands still while anything works.

In time-travel mode (`time-travel=inf-cpu`, arch/um/kernel/time.c) the clock of User-Mode Linux moves only when every
process waits: it jumps to the next timer. No packet is ever late then, whatever the machine is doing. Such a program is
compiled from a distribution's kernel source in some minutes and kept in the user's cache folder.

Three things in the source are changed:

- Timers tick 1000 times a second, as on most servers; User-Mode Linux has 100, which is not a choice of its
  configuration.
- The kernel asks the machine for no random numbers. What is left of its randomness comes from its (virtual) clock and
  from the seed that a run gives it, so that runs repeat.
- It is compiled for speed rather than size, with every congestion control that the source has, and
  every queue discipline but a few.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from aqmlab.errors import BadInput, CannotRun
from aqmlab.json_files import Json
from aqmlab.results import store
from aqmlab.runs import calibration

VARIABLE = "AQMLAB_KERNEL"
"""Names a kernel to be used in place of the one in the cache."""

PACKAGE = "linux-source-6.12"
"""Debian's package of the source that this was made with; other versions that have time-travel mode do as well."""

SOURCES = "/usr/src"
"""Where that package puts its archive, linux-source-VERSION.tar.xz."""

TOOLS = {"make": "make", "gcc": "gcc", "flex": "flex", "bison": "bison", "bc": "bc", "tar": "tar", "xz": "xz-utils"}
"""Programs that compiling needs, and Debian's packages of them."""

WANTED = (
    "UML_TIME_TRAVEL_SUPPORT HIGH_RES_TIMERS NO_HZ_IDLE HOSTFS PROC_FS SYSFS TMPFS DEVTMPFS DEVTMPFS_MOUNT MAGIC_SYSRQ "
    "NAMESPACES NET_NS PID_NS USER_NS EPOLL EVENTFD TIMERFD SIGNALFD IO_URING FUTEX SYSCTL UNIX PACKET INET IPV6 TUN "
    "VETH DUMMY IFB INET_DIAG INET_TCP_DIAG INET_UDP_DIAG IP_ADVANCED_ROUTER IP_MULTIPLE_TABLES IPV6_MULTIPLE_TABLES "
    "SYN_COOKIES TCP_CONG_ADVANCED NET_SCHED NET_SCH_DEFAULT NET_CLS_ACT NET_CLS_U32 NET_CLS_MATCHALL NET_CLS_FLOW "
    "NET_CLS_BASIC NET_CLS_FLOWER NET_ACT_MIRRED NET_ACT_SKBEDIT NET_ACT_POLICE NET_ACT_CSUM IKCONFIG IKCONFIG_PROC "
    "CC_OPTIMIZE_FOR_PERFORMANCE PREEMPT_NONE"
)
"""Options that are switched on, besides all queue disciplines and congestion controls."""

UNWANTED = (
    "CC_OPTIMIZE_FOR_SIZE DEBUG_INFO DEBUG_KERNEL SOUND UML_NET UML_RANDOM HW_RANDOM MODULES BLK_DEV_UBD BLK_DEV_LOOP "
    "BLK_DEV_NBD EXT4_FS REISERFS_FS ISO9660_FS AUTOFS_FS QUOTA NETFILTER AUDIT CGROUPS BSD_PROCESS_ACCT PPP SLIP SSL"
)
"""Options that are switched off: what a laboratory has no use for, and what brings in the machine's randomness."""

NOT_FOR_LINKS = ("NET_SCH_TEQL", "NET_SCH_MULTIQ", "NET_SCH_MQPRIO", "NET_SCH_TAPRIO", "NET_SCH_PLUG")
"""Disciplines for hardware with several queues or for other ends than a bottleneck's."""

OBJECTS = 900
"""About how many files are compiled: for a bar that is roughly right."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that is there."""

    path: str
    release: str
    """As `uname -r` says it inside."""
    source: str | None
    options: tuple[str, ...]
    """What of its configuration is on; nothing where somebody else built it."""
    changes: tuple[str, ...]
    built: str | None
    seconds: float | None

    def as_dict(self) -> Json:
        """For JSON."""
        return asdict(self)


def folder() -> Path:
    """Where it is kept."""
    return calibration.cache_folder() / "kernel"


def find() -> Kernel | None:
    """The kernel there is: that of AQMLAB_KERNEL, or that in the cache."""
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else folder() / "linux"
    if not path.is_file() or not os.access(path, os.X_OK):
        if named:
            raise BadInput(f"{VARIABLE}: {named}: expected a kernel built as a program (aqmlab kernel build makes one)")
        return None
    facts: Json = {}
    with contextlib.suppress(OSError, ValueError):
        facts = json.loads(path.with_name("kernel.json").read_text(encoding="utf-8"))
    if not facts:
        facts = {"release": _release(path)}
    return Kernel(
        path=str(path),
        release=str(facts["release"]),
        source=facts.get("source"),
        options=tuple(facts.get("options", ())),
        changes=tuple(facts.get("changes", ())),
        built=facts.get("built"),
        seconds=facts.get("seconds"),
    )


def needed() -> Kernel:
    """The kernel there is, or a line that says how to get one."""
    found = find()
    if found is None:
        raise CannotRun(f"virtual time: no kernel in {folder()}: aqmlab kernel build makes one in some minutes")
    return found


def build(source: Path | None, out: Path | None, say: Callable[[str], None], fresh: bool = False) -> Kernel:
    """Builds the kernel, where there is none yet; `say` hears what is being done.

    Raises: BadInput for a source that is none, CannotRun where something is missing or the compiler fails.
    """
    final = out if out is not None else folder()
    final.mkdir(parents=True, exist_ok=True)
    with _alone(final):
        if not fresh and (final / "linux").is_file() and (final / "kernel.json").is_file():
            say(f"{final / 'linux'} is there already")
        else:
            _build(source, final, say)
    facts = json.loads((final / "kernel.json").read_text(encoding="utf-8"))
    return Kernel(**{**facts, "path": str(final / "linux"), "options": tuple(facts["options"])})


def _build(source: Path | None, final: Path, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    source = _source(source, say)
    if source.is_dir():
        _need_linux(source, source)
    _need_tools()
    log = final / "build.log"
    with tempfile.TemporaryDirectory(prefix=".building-", dir=final) as name, log.open("w", encoding="utf-8") as file:
        steps = _Steps(Path(name), log, file.fileno(), say)
        steps.unpack(source)
        changes = _change(steps.tree)
        steps.run("make", "ARCH=um", "defconfig")
        wanted = [*WANTED.split(), *_offered(steps.tree)]
        edits = [word for option in wanted for word in ("-e", option)]
        edits += [word for option in UNWANTED.split() for word in ("-d", option)]
        steps.run("./scripts/config", *edits)
        steps.run("make", "ARCH=um", "olddefconfig")
        options = _options(steps.tree)
        if "UML_TIME_TRAVEL_SUPPORT" not in options:
            raise CannotRun(
                f"{source}: this source has no virtual time (UML_TIME_TRAVEL_SUPPORT); expected Linux 5.3 on"
            )
        say("compiling, some minutes")
        steps.compile()
        steps.run("strip", "-o", str(final / ".linux"), "linux")
        facts = {
            "release": (steps.tree / "include/config/kernel.release").read_text(encoding="utf-8").strip(),
            "source": str(source),
            "options": options,
            "changes": changes,
            "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "seconds": round(time.monotonic() - began, 1),
        }
        store.write_json(final / "kernel.json", facts)
        (final / ".linux").replace(final / "linux")
        say(f"removing {steps.tree}")


class _Steps:
    """The steps of a build: each writes into the log, and a failure names it."""

    def __init__(self, work: Path, log: Path, log_fd: int, say: Callable[[str], None]) -> None:
        self.tree = work / "linux"
        self._log = log
        self._log_fd = log_fd
        self._say = say

    def unpack(self, source: Path) -> None:
        """Puts the source into `tree`."""
        if source.is_dir():
            self._say(f"copying {source}")
            shutil.copytree(source, self.tree, symlinks=True, ignore=shutil.ignore_patterns(".git", "*.o", "*.cmd"))
        else:
            self._say(f"unpacking {source}")
            self.tree.mkdir()
            self._start(["tar", "-x", "-f", str(source.resolve()), "--strip-components=1"])
        _need_linux(self.tree, source)

    def run(self, *words: str) -> None:
        """Runs a program in the tree."""
        self._start(words)

    def compile(self) -> None:
        """Compiles, and says how far it is."""
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(done,), daemon=True)
        watch.start()
        try:
            self._start(["make", "ARCH=um", f"-j{len(os.sched_getaffinity(0))}", "linux"])
        finally:
            done.set()
            watch.join()

    def _start(self, words: Sequence[str]) -> None:
        # Settings of the surrounding make or of cross-compilers are not meant for this.
        unmeant = {"MAKEFLAGS", "MAKELEVEL", "ARCH", "CROSS_COMPILE", "LD_LIBRARY_PATH", "CFLAGS", "LDFLAGS"}
        environment = {key: value for key, value in os.environ.items() if key not in unmeant}
        os.write(self._log_fd, f"$ {' '.join(words[:6])}\n".encode())
        done = subprocess.run(
            words,
            cwd=self.tree,
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=self._log_fd,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            raise CannotRun(f"kernel build: {words[0]} failed: {_complaint(self._log)}; see {self._log}")

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(10.0):
            text = self._log.read_text(encoding="utf-8", errors="replace")
            compiled = len(re.findall(r"^  (?:CC|AS) ", text, re.MULTILINE))
            self._say(f"compiled {compiled} of about {OBJECTS} files")


def _source(given: Path | None, say: Callable[[str], None]) -> Path:
    """The archive or folder to build from; fetched where that is possible."""
    if given is not None:
        if not given.exists():
            raise BadInput(f"--source {given}: expected an archive or folder of the Linux kernel's source")
        return given
    if (found := _packaged()) is not None:
        return found
    packages = [PACKAGE, *TOOLS.values()]
    install = f"apt-get install {' '.join(packages)}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotRun(
            f"kernel build: no source in {SOURCES}: expected, as root, {install}; or --source with an archive of Linux"
        )
    say(install)
    words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode or (found := _packaged()) is None:
        last = (done.stderr.strip().splitlines() or ["no archive came"])[-1]
        raise CannotRun(f"kernel build: {install}: {last}; or give --source with an archive of Linux")
    return found


def _packaged() -> Path | None:
    """The newest archive of the distribution's package."""

    def version(path: Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", path.name)]

    return max(Path(SOURCES).glob("linux-source-*.tar.*"), key=version, default=None)


def _need_linux(tree: Path, source: Path) -> None:
    if not (tree / "arch/um/Kconfig").is_file():
        raise BadInput(f"--source {source}: expected the source of the Linux kernel (arch/um/Kconfig in it)")


def _need_tools() -> None:
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    if missing:
        raise CannotRun(f"kernel build: expected {', '.join(missing)}: as root, apt-get install {' '.join(missing)}")


def _change(tree: Path) -> list[str]:
    """Changes the source as the module's text says; says what was changed."""
    kconfig = tree / "arch/um/Kconfig"
    text = kconfig.read_text(encoding="utf-8")
    changed, count = re.subn(r"(^config HZ\n\tint\n\tdefault )100$", r"\g<1>1000", text, flags=re.MULTILINE)
    changes = []
    if count:
        kconfig.write_text(changed, encoding="utf-8")
        changes.append("timers tick 1000 times a second")
    # os_getrandom() seeds the kernel's pool of randomness at its start and whenever that is mixed anew.
    asks = tree / "arch/um/os-Linux/util.c"
    text = asks.read_text(encoding="utf-8")
    changed, count = re.subn(r"\breturn getrandom\(buf, len, flags\);", "return -1;", text)
    if count:
        asks.write_text(changed, encoding="utf-8")
        changes.append("no random numbers of the machine")
    return changes


def _offered(tree: Path) -> list[str]:
    """All queue disciplines and congestion controls that the source has."""
    found: list[str] = []
    for file, prefix in (("net/sched/Kconfig", "NET_SCH_"), ("net/ipv4/Kconfig", "TCP_CONG_")):
        text = (tree / file).read_text(encoding="utf-8")
        found += re.findall(rf"^config ({prefix}\w+)$", text, re.MULTILINE)
    return [name for name in dict.fromkeys(found) if name not in NOT_FOR_LINKS]


def _options(tree: Path) -> list[str]:
    text = (tree / ".config").read_text(encoding="utf-8")
    return sorted(re.findall(r"^CONFIG_(\w+)=y$", text, re.MULTILINE))


def _complaint(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [line for line in lines if re.search(r"error|not found|No such", line, re.IGNORECASE)]
    return (said or lines or ["it said nothing"])[-1].strip()[:200]


def _release(path: Path) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


@contextlib.contextmanager
def _alone(final: Path) -> Iterator[None]:
    """One build at a time in a folder: the second waits, and finds the first one's."""
    with (final / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
