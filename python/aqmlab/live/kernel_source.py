"""Where the source of a kernel comes from: a path, a package that is installed, or Debian's archive.

A release of Linux newer than the machine's own distribution has (linux-source-7.3 of trixie-backports) is downloaded
from the mirror that the machine is set to. apt-get gets folders and a list of sources of its own for that, so that the
machine's own lists, its packages and its sources stay as they are; the archive is signed, and checked by the keys that
Debian has installed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from aqmlab import files
from aqmlab.errors import BadInput, CannotRun

PACKAGE = "linux-source-6.12"
"""Debian's package of the source that this was made with; other versions that have time-travel mode do as well."""

SOURCES = "/usr/src"
"""Where such a package puts its archive, linux-source-VERSION.tar.xz."""

TOOLS = {"make": "make", "gcc": "gcc", "flex": "flex", "bison": "bison", "bc": "bc", "tar": "tar", "xz": "xz-utils"}
"""Programs that compiling needs, and Debian's packages of them."""

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
"""Debian's keys, of its package debian-archive-keyring."""

MIRROR = "http://deb.debian.org/debian"
"""Debian's archive, where the machine names no mirror of it."""

APT = "/etc/apt"
"""Where the machine says which mirror it uses."""

COMPRESSED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd")
"""What gzip, xz, bzip2 and zstd begin with."""

SUITES = "trixie trixie-backports"
"""Where Debian has newer releases of Linux."""


def check_release(release: str) -> None:
    """Makes sure that a release is written as one."""
    if re.fullmatch(r"[0-9]+\.[0-9]+", release) is None:
        raise BadInput(f"--release {release}: expected a release of Linux such as 7.3")


def found(
    given: Path | None, release: str | None, place: Path, held: contextlib.ExitStack, say: Callable[[str], None]
) -> Path:
    """The archive or folder to build from; fetched where that is possible, into `place`, for as long as `held` is."""
    if given is not None:
        if not given.exists():
            raise BadInput(f"--source {given}: expected an archive or folder of the Linux kernel's source")
        if not given.is_dir() and not _is_archive(given):
            raise BadInput(f"--source {given}: is no archive; expected one of the Linux kernel's source, or its folder")
        return given
    if release is not None:
        if (installed := _installed(f"linux-source-{release}.tar.*")) is not None:
            return installed
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix=".source-", dir=place))
        return _downloaded(release, Path(folder), say)
    if (installed := _installed("linux-source-*.tar.*")) is not None:
        return installed
    packages = [PACKAGE, *TOOLS.values()]
    install = f"apt-get install {' '.join(packages)}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotRun(
            f"kernel build: no source in {SOURCES}: expected, as root, {install}; or --source with an archive of Linux"
        )
    say(install)
    words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode or (installed := _installed("linux-source-*.tar.*")) is None:
        last = (done.stderr.strip().splitlines() or ["no archive came"])[-1]
        raise CannotRun(f"kernel build: {install}: {last}; or give --source with an archive of Linux")
    return installed


def _is_archive(path: Path) -> bool:
    """Whether a file begins as what tar unpacks."""
    with files.opened(path, files.SOURCE) as file:
        begins = file.read(512)
    return begins.startswith(COMPRESSED) or begins[257:262] == b"ustar"


def need_tools() -> None:
    """Makes sure that what compiles is there."""
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    if missing:
        raise CannotRun(f"kernel build: expected {', '.join(missing)}: as root, apt-get install {' '.join(missing)}")


def mirror(places: Path) -> str:
    """Debian's mirror in a folder as /etc/apt: the first one that is there for packages of Debian itself."""
    files = [places / "sources.list", *sorted((places / "sources.list.d").glob("*"))]
    for file in files:
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        if file.suffix == ".sources":
            uris = [word for line in lines if line.startswith("URIs:") for word in line.split()[1:]]
        else:
            uris = [word for line in lines for word in line.split() if "://" in word]
        for uri in uris:
            if re.search(r"/debian/?$", uri):
                return uri.rstrip("/")
    return MIRROR


def _installed(pattern: str) -> Path | None:
    """The newest archive of the distribution's packages whose name is like this."""

    def version(path: Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", path.name)]

    return max(Path(SOURCES).glob(pattern), key=version, default=None)


def _downloaded(release: str, folder: Path, say: Callable[[str], None]) -> Path:
    """The archive of a release, out of Debian's package of it."""
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing or not Path(KEYRING).is_file():
        what = missing[0] if missing else KEYRING
        raise CannotRun(f"--release {release}: expected {what}, as Debian has it; or --source with an archive of Linux")
    package, uri = f"linux-source-{release}", mirror(Path(APT))
    say(f"downloading {package} from {uri}")
    for name in ("parts", "lists/partial", "cache", "archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "parts/debian.sources").write_text(
        f"Types: deb\nURIs: {uri}\nSuites: {SUITES}\nComponents: main\nSigned-By: {KEYRING}\n", encoding="ascii"
    )
    own = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": folder / "parts",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Dir::Cache::Archives": folder / "archives",
        "APT::Sandbox::User": "",
    }
    apt = ["apt-get", "-qq", *(word for key, value in own.items() for word in ("-o", f"{key}={value}"))]
    _run([*apt, "update"], folder, release)
    _run([*apt, "download", package], folder, release)
    (packed,) = folder.glob("*.deb")
    _run(["dpkg-deb", "--extract", packed.name, "unpacked"], folder, release)
    packed.unlink()
    archives = list(folder.glob("unpacked/usr/src/linux-source-*.tar.*"))
    if not archives:
        raise CannotRun(f"--release {release}: {package} has no archive of Linux; give --source with one")
    return archives[0]


def _run(words: Sequence[str], folder: Path, release: str) -> None:
    """Runs a program in a folder; its last word, should it fail, is the reason."""
    done = subprocess.run(
        words,
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise CannotRun(f"--release {release}: {words[0]} {words[-1]}: {last}; or give --source with an archive")
