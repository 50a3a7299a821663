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

Several kernels may lie side by side, each in a folder of its own under a name; one has no name.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from aqmlab.errors import BadInput, CannotRun
from aqmlab.json_files import Json, is_number, read_json
from aqmlab.live import kernel_source
from aqmlab.results import store
from aqmlab.runs.kernels import VARIABLE, called, folder, names, program

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

FACTS = "kernel.json"
"""What is known of a kernel that was built here, beside its program."""

MENUS = ("default", "advanced")
"""Options among those of disciplines and congestion controls that open menus, and are none."""

NAMES = {"fifo": "pfifo, bfifo", "hstcp": "highspeed"}
"""What is not called as its option is."""

OBJECTS = 900
"""About how many files are compiled: for a bar that is roughly right."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that is there."""

    path: str
    name: str | None
    """As `--kernel` calls it; none for the one without a name, or one that is somewhere else."""
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

    def has(self, prefix: str) -> list[str]:
        """What it was built with whose options begin like this, as `tc` and `tcp.cc` call it."""
        found = [option.removeprefix(prefix).lower() for option in self.options if option.startswith(prefix)]
        return [NAMES.get(name, name) for name in found if name not in MENUS]


def find(name: str | None = None) -> Kernel | None:
    """The kernel of this name; without one that of AQMLAB_KERNEL, or that in the cache which has none."""
    path = program(name)
    return None if path is None else _at(path, name or called())


def _at(path: Path, name: str | None) -> Kernel:
    facts = _facts(path)
    return Kernel(
        path=str(path),
        name=name,
        release=facts["release"] if facts else _release(path),
        source=facts.get("source"),
        options=tuple(facts.get("options", ())),
        changes=tuple(facts.get("changes", ())),
        built=facts.get("built"),
        seconds=facts.get("seconds"),
    )


def _facts(path: Path) -> Json:
    """What lies beside the program of a kernel that was built here, in the shape that it has; else nothing."""
    file = path.with_name(FACTS)
    if not file.exists():
        return {}
    facts = read_json(file)
    words = {key: facts.get(key, "") for key in ("source", "built")} | {"release": facts.get("release")}
    lists = {key: facts.get(key, []) for key in ("options", "changes")}
    wrong = [key for key, item in words.items() if not isinstance(item, str)]
    wrong += [
        key for key, item in lists.items() if not (isinstance(item, list) and all(isinstance(i, str) for i in item))
    ]
    wrong += [] if is_number(facts.get("seconds", 0.0)) else ["seconds"]
    if wrong:
        said = json.dumps(facts.get(wrong[0]))[:60] if wrong[0] in facts else "missing"
        raise BadInput(
            f"{file}: {wrong[0]}: {said}: expected what aqmlab kernel build writes; with --fresh it does anew"
        )
    return facts


def needed(name: str | None = None) -> Kernel:
    """The kernel of this name, or a line that says how to get one."""
    found = find(name)
    if found is not None:
        return found
    if name is None and not os.environ.get(VARIABLE):
        raise CannotRun(f"virtual time: no kernel in {folder()}: aqmlab kernel build makes one in some minutes")
    name = name or os.environ[VARIABLE]
    there = ", ".join(names()) or "none with a name"
    raise BadInput(
        f"kernel {name}: none is called so; there is {there}; aqmlab kernel build --release {name}, or --name {name} "
        "with --source, makes one"
    )


def build(
    source: Path | None,
    out: Path | None,
    say: Callable[[str], None],
    fresh: bool = False,
    *,
    release: str | None = None,
    name: str | None = None,
) -> Kernel:
    """Builds a kernel, where there is none yet; `say` hears what is being done.

    From `source`, or from Debian's source of a `release` such as 7.3, or from its source of 6.12. It gets the `name`,
    or that of the release.

    Raises: BadInput for a source that is none, CannotRun where something is missing or the compiler fails.
    """
    if release is not None and source is not None:
        raise BadInput("kernel build: --release with --source: expected one of them")
    if out is not None and name is not None:
        raise BadInput("kernel build: --name with --out: expected one of them")
    if release is not None:
        kernel_source.check_release(release)
    name = release if name is None else name
    final = out if out is not None else folder(name)
    program = final / "linux"
    if source is not None and source.is_dir():
        _need_linux(source, source)
        if final.resolve().is_relative_to(source.resolve()):
            raise BadInput(
                f"kernel build: {final}: lies in the source {source}; expected another folder, as -o names one"
            )

    def is_there() -> bool:
        return not fresh and program.is_file() and (final / FACTS).is_file()

    if not is_there() and re.search(r"[\s:]", str(final.resolve())):
        raise BadInput(
            f"kernel build: {final.resolve()}: Linux cannot be built in a path with spaces or colons; expected another "
            "folder, as -o or AQMLAB_CACHE names one"
        )
    final.mkdir(parents=True, exist_ok=True)
    with _alone(final, say):
        if is_there():
            _refuse_another(_facts(program), final, source, release)
            say(f"{program} is there already")
        else:
            _remove_stale(final, say)
            with contextlib.ExitStack() as held:
                _build(kernel_source.found(source, release, final, held, say), final, say)
    return _at(program, name if out is None else None)


def _refuse_another(facts: Json, final: Path, source: Path | None, release: str | None) -> None:
    """Ends in one line where the kernel that is there is not the one that is asked for."""
    wanted = None
    if release is not None and re.match(rf"{re.escape(release)}(?![0-9])", facts["release"]) is None:
        wanted = f"not {release}"
    was = facts.get("source")
    if source is not None and (was is None or Path(was).resolve() != source.resolve()):
        wanted = f"not from {source}"
    if wanted is not None:
        raise BadInput(
            f"kernel build: {final / 'linux'}: is Linux {facts['release']} from {was or 'elsewhere'}, {wanted}; "
            "expected --fresh to build it anew, or another --name"
        )


def _remove_stale(final: Path, say: Callable[[str], None]) -> None:
    """Removes what builds that were killed have left in a folder that is held."""
    for path in (*final.glob(".building-*"), *final.glob(".source-*")):
        say(f"removing {path}, which a build that was killed has left")
        shutil.rmtree(path, ignore_errors=True)


def _build(source: Path, final: Path, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    kernel_source.need_tools()
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
            "source": str(source.resolve()),
            "options": options,
            "changes": changes,
            "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "seconds": round(time.monotonic() - began, 1),
        }
        store.write_json(final / FACTS, facts)
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
            try:
                shutil.copytree(source, self.tree, symlinks=True, ignore=shutil.ignore_patterns(".git", "*.o", "*.cmd"))
            except OSError as error:
                # A list of files and reasons, where there are many of them.
                why = error.args[0][0][2] if isinstance(error, shutil.Error) else str(error)
                raise CannotRun(f"kernel build: copying {source}: {re.sub(r'^.Errno [0-9]+. ', '', why)}") from None
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
        code = _as_group(words, self.tree, {**environment, "LC_ALL": "C"}, self._log_fd)
        if code:
            raise CannotRun(f"kernel build: {words[0]} failed: {_complaint(self._log)}; see {self._log}")

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(10.0):
            text = self._log.read_text(encoding="utf-8", errors="replace")
            compiled = len(re.findall(r"^  (?:CC|AS) ", text, re.MULTILINE))
            self._say(f"compiled {compiled} of about {OBJECTS} files")


def _as_group(words: Sequence[str], place: Path, environment: Mapping[str, str], log_fd: int) -> int:
    """Runs a program with all that it starts, which ends with this process; the answer is its exit code."""
    group = [sys.executable, "-I", str(Path(__file__).with_name("group.py")), str(os.getpid()), *words]
    with subprocess.Popen(
        group,
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log_fd,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            while True:
                # Libraries have handlers of signals with which a wait without end goes on.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(1.0)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def _need_linux(tree: Path, source: Path) -> None:
    if not (tree / "arch/um/Kconfig").is_file():
        raise BadInput(f"--source {source}: expected the source of the Linux kernel (arch/um/Kconfig in it)")


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
    said = [line for line in lines if "No space left" in line]
    said = said or [line for line in lines if re.search(r"error|not found|No such", line, re.IGNORECASE)]
    return (said or lines or ["it said nothing"])[-1].strip()[:200]


def _release(path: Path) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise CannotRun(f"{path}: {error.strerror}; expected a kernel built as a program") from None
    return done.stdout.strip() or "unknown"


@contextlib.contextmanager
def _alone(final: Path, say: Callable[[str], None]) -> Iterator[None]:
    """One build at a time in a folder: the second waits, and finds the first one's."""
    with (final / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another build in {final}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
