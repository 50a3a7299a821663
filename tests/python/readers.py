"""Every reader of files, as a function of the bytes of one; with the folders in which the tests find such files."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aqmlab import engine, files, scenario, variants
from aqmlab.errors import BadInput, Doubt
from aqmlab.results import result
from aqmlab.sweep import sweeps
from aqmlab.tc import read as tc_read
from aqmlab.vectors import capture, reading
from aqmlab.vectors.convert import convert

ROOT = Path(__file__).resolve().parents[2]
MALFORMED = ROOT / "testdata/malformed"
BULK = '\nduration = "2s"\n[[traffic]]\nkind = "bulk"\n'


@dataclass(frozen=True)
class Reader:
    """What reads a kind of file."""

    read: Callable[[Path], object]
    ending: str
    malformed: Path
    sound: tuple[Path, ...]
    """Files that it takes."""

    def files(self) -> Iterator[Path]:
        """Malformed and sound ones."""
        yield from sorted(self.malformed.iterdir())
        yield from self.sound


def _scenario(path: Path) -> None:
    source = scenario.read(path)
    for variant in variants.from_file(source) if variants.has_variants(source) else []:
        variant.source.resolve()
    if not variants.has_variants(source):
        source.resolve()


def _kept(key: str) -> Callable[[Path], object]:
    """A scenario that names the file."""
    return lambda path: engine.resolve(key.format(path.name) + BULK, str(path.with_name("s.toml")))


def _block(block: str) -> Callable[[Path], object]:
    return lambda path: engine.resolve(
        'duration = "2s"\n[[traffic]]\n' + block.format(path.name), str(path.with_name("s.toml"))
    )


def _tc(path: Path) -> object:
    text = files.content(path, files.TC).decode("utf-8", "replace")
    return tc_read.read(text, path.name, None, None, None)


def _capture(path: Path) -> object:
    capture.interfaces(path)
    return sum(1 for _ in capture.frames(path))


def _vectors_of(path: Path) -> object:
    out = path.with_name(f"{path.name}.cvec")
    try:
        return convert(path, out)
    finally:
        out.unlink(missing_ok=True)


def _result(path: Path) -> object:
    folder = path.with_name(f"{path.name}.folder")
    folder.mkdir(exist_ok=True)
    for name in ("manifest.json", "summary.json"):
        (folder / name).write_bytes(path.read_bytes())
    return result.Result(folder)


def _found(folder: str, *patterns: str) -> tuple[Path, ...]:
    return tuple(path for pattern in patterns for path in sorted((ROOT / folder).glob(pattern)))


READERS = {
    "scenario": Reader(_scenario, "toml", MALFORMED / "scenario", _found("examples", "[dlw]*.toml")),
    "sweep": Reader(lambda path: sweeps.read(path), "toml", MALFORMED / "sweep", _found("examples", "sweep.toml")),
    "table": Reader(engine.table_quantity, "csv", MALFORMED / "table", ()),
    "table of a scenario": Reader(_kept('path.rtt = {{ table = "{}" }}'), "csv", MALFORMED / "table", ()),
    "vectors": Reader(reading.read, "cvec", MALFORMED / "vectors", _found("testdata", "vectors.cvec")),
    "vectors of a scenario": Reader(_block('kind = "tmix"\nvectors = "{}"\n'), "cvec", MALFORMED / "vectors", ()),
    "trace of a link": Reader(_kept('link.trace = "{}"'), "txt", MALFORMED / "trace", ()),
    "trace of packets": Reader(_block('kind = "udp-trace"\npackets = "{}"\n'), "txt", MALFORMED / "trace", ()),
    "demands": Reader(_block('kind = "replay"\ndemands = "{}"\n'), "csv", MALFORMED / "demands", ()),
    "tc": Reader(_tc, "txt", MALFORMED / "tc", _found("testdata/tc", "*.txt", "*.json")),
    "capture": Reader(_capture, "pcap", MALFORMED / "capture", ()),
    "vectors of a capture": Reader(_vectors_of, "pcap", MALFORMED / "capture", ()),
    "result": Reader(_result, "json", MALFORMED / "result", ()),
}


def complaint(reader: Reader, path: Path) -> str | None:
    """What is said of a file; None where it is read. Only `BadInput` may come out, on a line of bounded length.

    What is doubted of a file that is read all the same, as of a capture that is cut off, is a line, too.
    """
    refused = None
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always", Doubt)
        try:
            reader.read(path)
        except BadInput as error:
            refused = str(error)
    for said in (*(str(doubt.message) for doubt in doubts), *([] if refused is None else [refused])):
        assert said.isprintable() and len(said) <= 1000, said
    return refused
