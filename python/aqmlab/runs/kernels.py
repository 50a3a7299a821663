"""Where the programs of the kernels of virtual time lie, and which of them is meant by a name."""

import hashlib
import os
import re
from functools import cache
from pathlib import Path

from aqmlab.errors import BadInput
from aqmlab.files import cache_folder

VARIABLE = "AQMLAB_KERNEL"
"""Names a kernel, or the program of one, to be used in place of the one in the cache that has no name."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a kernel may be called: a version or a word, which is the name of a folder."""


def folder(name: str | None = None) -> Path:
    """Where the kernel of a name is kept, or the one without a name."""
    if name is None:
        return cache_folder() / "kernel"
    if NAME.fullmatch(name) is None:
        raise BadInput(f"kernel {name!r}: expected a name of letters, digits, dots and hyphens such as 7.3")
    return cache_folder() / "kernels" / name


def names() -> list[str]:
    """The names of the kernels that lie beside the one without a name."""
    found = (cache_folder() / "kernels").glob("*/linux")
    return sorted(path.parent.name for path in found if NAME.fullmatch(path.parent.name) and os.access(path, os.X_OK))


def called() -> str | None:
    """The name of the kernel that is taken where none is named: AQMLAB_KERNEL may say one, or the path of a program."""
    named = os.environ.get(VARIABLE)
    return named if named and "/" not in named else None


def sha256(name: str | None = None) -> str | None:
    """Of the program of this kernel, as it is now; none where there is no such kernel."""
    path = program(name)
    if path is None:
        return None
    state = path.stat()
    return _sha256(path, (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns))


@cache
def _sha256(path: Path, state: tuple[int, ...]) -> str:
    """Read once as long as the file's `state` is the same."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def program(name: str | None) -> Path | None:
    """Where the program of this kernel is, if there is one."""
    name = called() if name is None else name
    named = os.environ.get(VARIABLE) if name is None else None
    path = Path(named) if named else folder(name) / "linux"
    if not path.is_file() or not os.access(path, os.X_OK):
        if named:
            raise BadInput(f"{VARIABLE}: {named}: expected a kernel built as a program (aqmlab kernel build makes one)")
        return None
    return path
