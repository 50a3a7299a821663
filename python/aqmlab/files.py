"""Files that people name: regular ones, of a size that is read.

Every reader of such a file opens it here: a pipe or a device may have no end, and a file that is too large for what it
is to be is a mistake, told before it has filled the memory. The guide has the sizes
(docs/guide/scenario.md#how-large-files-may-be).
"""

import codecs
import os
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple

from aqmlab.errors import BadInput

MB = 2**20


class Kind(NamedTuple):
    """What a file is to be."""

    what: str
    most_bytes: int


SCENARIO = Kind("a scenario in TOML", 4 * MB)
GRID = Kind("a grid of runs in TOML", 4 * MB)
STUDY = Kind("a study in TOML", 4 * MB)
ANSWERS = Kind("answers in TOML", 4 * MB)
MIX = Kind("a mix of applications in TOML", 4 * MB)
CLAIMS = Kind("claims in TOML", 4 * MB)
PROSE = Kind("a text", 4 * MB)
TABLE = Kind("a distribution", 4 * MB)
VECTORS = Kind("connection vectors", 1024 * MB)
LIST = Kind("a list of packets or of demands", 1024 * MB)
LAW = Kind("a law, in Python, a shared library or a policy in ONNX", 64 * MB)
POLICY = Kind("a policy in ONNX", LAW.most_bytes)
TC = Kind("the output of tc", 16 * MB)
CAPTURE = Kind("a capture in pcap or pcapng", 1024 * 1024 * MB)
RESULT = Kind("JSON of a finished result folder", 64 * MB)
SOURCE = Kind("an archive of Linux's source", 16 * 1024 * MB)
ROWS = Kind("a table in Parquet", 1024 * 1024 * MB)


def opened(path: Path, kind: Kind) -> BinaryIO:
    """The file to be read; raises `BadInput` if it cannot be, is no regular file, or is too large."""
    try:
        # A pipe that nobody writes to would keep a reader waiting.
        place = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; expected {kind.what}") from None
    except (OSError, ValueError) as error:  # the latter of a name with a zero byte
        raise BadInput(f"{path}: cannot be read: {_reason(error)}; expected {kind.what}") from None
    try:
        facts = os.fstat(place)
        if stat.S_ISDIR(facts.st_mode):
            raise BadInput(f"{path}: is a folder; expected {kind.what}")
        if not stat.S_ISREG(facts.st_mode):
            raise BadInput(f"{path}: is no regular file; expected {kind.what}")
        if facts.st_size > kind.most_bytes:
            raise too_large(str(path), kind)
    except BadInput:
        os.close(place)
        raise
    return os.fdopen(place, "rb")


def content(path: Path, kind: Kind) -> bytes:
    """Reads all of a file."""
    with opened(path, kind) as file:
        return all_of(file, str(path), kind)


def found_folder(path: Path, expected: str) -> None:
    """Makes sure that there is a folder; raises `BadInput` that says what is there in its place."""
    try:
        facts = os.stat(path)  # noqa: PTH116 - of any text, also one with a zero byte
    except FileNotFoundError:
        raise BadInput(f"{path}: no such folder; expected {expected}") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read: {_reason(error)}; expected {expected}") from None
    if not stat.S_ISDIR(facts.st_mode):
        raise BadInput(f"{path}: is no folder; expected {expected}")


def end_of_links(path: Path) -> Path:
    """Where a path leads, as `Path.resolve` says it; also of links in a circle, where that raises an error."""
    return Path(os.path.realpath(path))


def is_folder(name: str | Path) -> bool:
    """Whether there is a folder of this name, which may be longer than a name can be."""
    try:
        return Path(name).is_dir()
    except OSError:
        return False


def is_file(name: str | Path) -> bool:
    """Whether there is a regular file of this name."""
    try:
        return Path(name).is_file()
    except OSError:
        return False


def all_of(file: BinaryIO, name: str, kind: Kind) -> bytes:
    """The rest of what is open, as far as it is of a size that is read."""
    try:
        found = file.read(kind.most_bytes + 1)
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {_reason(error)}; expected {kind.what}") from None
    if len(found) > kind.most_bytes:
        raise too_large(name, kind)
    return found


def text(path: Path, kind: Kind) -> str:
    """Reads all of a file of text, whose lines end as they do on this machine; a mark of the byte order is no text."""
    try:
        found = content(path, kind).removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8 text; expected {kind.what}") from None
    return found.replace("\r\n", "\n").replace("\r", "\n")


def too_large(name: str, kind: Kind) -> BadInput:
    """What is said of a file beyond its size."""
    return BadInput(f"{name}: is larger than {kind.most_bytes // MB} MB; expected {kind.what}")


def _reason(error: OSError | ValueError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def check_new(path: Path) -> None:
    """Makes sure that there is nothing of this name, and that there can be."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be written: {_reason(error)}; expected the name of a new file") from None
    raise BadInput(f"{path}: exists; expected the name of a new file")


def check_folder_of(out: Path) -> None:
    """Makes sure that a file can be written to `out`, before there is anything to write; raises `BadInput`."""
    import tempfile  # takes a while, and few commands need it

    if not is_folder(out.parent):
        raise BadInput(f"{out}: {out.parent} is no folder; expected a place that exists")
    try:
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise BadInput(f"{out}: cannot be written: {error.strerror or error}; expected a writable place") from None


def cache_folder() -> Path:
    """Where calibrations, runs and kernels are kept: `AQMLAB_CACHE`, or `aqmlab` in the user's cache folder."""
    if own := os.environ.get("AQMLAB_CACHE"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "aqmlab"
