"""Reads capture files: pcap and pcapng, either byte order, a frame at a time.

pcap: draft-ietf-opsawg-pcap; pcapng: draft-ietf-opsawg-pcapng; the numbers of link types: tcpdump.org/linktypes.html.
Written here and not taken from a library, as those at hand say nothing where a file is cut off, and read a pcapng of
several interfaces as if all had the first one's clock.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from aqmlab import files
from aqmlab.errors import BadInput, doubt

_PCAP = {0xA1B2C3D4: 1_000, 0xA1B23C4D: 1}
_SECTION = 0x0A0D0D0A
_INTERFACE, _OLD_PACKET, _PLAIN_PACKET, _STATISTICS, _PACKET = 1, 2, 3, 5, 6
_BYTE_ORDER = 0x1A2B3C4D
_COMMENT, _NAME, _RESOLUTION, _OFFSET = 1, 2, 9, 14
_DROPS = {5, 7}
"""Of an interface's statistics: packets that the interface, and that the operating system, dropped."""
_UNKNOWN = 2**64 - 1
# No frame is longer; a length beyond is a damaged file.
_LONGEST = 1 << 24

FALLS_NS = 10_000_000_000
"""Queues of a network card and interfaces that are captured at once are off by milliseconds, a capture's buffers by
seconds. Time that goes back further is that of several captures, or of a clock that was set."""


class _CutOff(BadInput):
    """The file ends in the middle of something."""


class Frame(NamedTuple):
    """A captured frame."""

    time_ns: int
    link_type: int
    data: bytes
    """As much of it as was captured."""
    length: int
    """How long it was on the wire."""
    interface: str = ""
    """Where it was captured, if the file names that."""
    comment: str = ""
    """What the file says of it."""


@dataclass
class _Interface:
    link_type: int
    ticks_per_s: int = 1_000_000
    offset_s: int = 0
    name: str = ""
    missing: int = 0
    """Packets of it that are not in the file, by its last statistics."""

    def time_ns(self, ticks: int) -> int:
        return ticks * 1_000_000_000 // self.ticks_per_s + self.offset_s * 1_000_000_000


def frames(path: Path) -> Iterator[Frame]:
    """Every whole frame of a capture; raises `BadInput` where the file is none, or ends before the first is whole.

    One that ends in the middle of a later frame, as where what wrote it was killed or had no room left, is doubted, and
    one that says that packets are missing from it.
    """
    try:
        with files.opened(path, files.CAPTURE) as file:
            bytes_in = _Bytes(path, file)
            try:
                yield from _any(bytes_in)
            except _CutOff as cut:
                if not bytes_in.packets:
                    raise
                doubt(f"{cut}, which are read")
            if missing := bytes_in.missing:
                doubt(f"{path}: says that packets are missing from it: {missing:,}")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def interfaces(path: Path) -> list[str]:
    """Names of the interfaces that a capture describes before its first frame."""
    try:
        with files.opened(path, files.CAPTURE) as file:
            bytes_in = _Bytes(path, file)
            next(_any(bytes_in), None)
            return [interface.name for interface in bytes_in.interfaces]
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


_COMPRESSED = {b"\x1f\x8b": "gunzip", b"\x28\xb5\x2f\xfd": "unzstd", b"\xfd7zX": "unxz", b"BZh": "bunzip2"}
"""How files begin that were compressed, and what undoes it."""


def _any(file: "_Bytes") -> Iterator[Frame]:
    magic = file.take(4, "its first bytes")
    for order in "<>":
        (word,) = struct.unpack(order + "I", magic)
        if word in _PCAP:
            yield from _pcap(file, order, _PCAP[word])
            return
    if magic != struct.pack(">I", _SECTION):
        said = next((f": {tool} it first" for start, tool in _COMPRESSED.items() if magic.startswith(start)), "")
        raise BadInput(f"{file.path}: expected a capture in pcap or pcapng, begins with {magic.hex(' ')}{said}")
    yield from _pcapng(file)


class _Times:
    """When sections of a pcapng file were captured, which is one after the other: of the same time are two captures."""

    def __init__(self) -> None:
        self._begins_ns: int | None = None
        self._ends_ns = 0
        self._is_first = False

    def next_section(self) -> None:
        """What follows is of another section."""
        self._is_first = True

    def overlap(self, time_ns: int) -> str | None:
        """What is wrong with the time of the next packet, if it is the first of a section that cannot follow."""
        is_first, self._is_first = self._is_first, False
        if not is_first:
            self._ends_ns = max(self._ends_ns, time_ns)
            return None
        begins_ns, ends_ns = self._begins_ns, self._ends_ns
        self._begins_ns = self._ends_ns = time_ns
        if begins_ns is None or (time_ns > begins_ns and ends_ns - time_ns <= FALLS_NS):
            return None
        return (
            f"a section that begins at {time_ns / 1e9:.9g} s after one from {begins_ns / 1e9:.9g} to "
            f"{ends_ns / 1e9:.9g} s: expected a capture, not several of the same time"
        )


class _Bytes:
    """The bytes of a file, which have to be there."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = file
        self.taken = 0
        self.packets = 0
        self.interfaces: list[_Interface] = []
        """Of the section that is read."""
        self.times = _Times()
        self._missing_before = 0

    @property
    def missing(self) -> int:
        """Packets that are not in the file, as it says so far."""
        return self._missing_before + sum(interface.missing for interface in self.interfaces)

    def next_section(self) -> None:
        """Another section describes interfaces of its own."""
        self._missing_before = self.missing
        self.interfaces = []
        self.times.next_section()

    def take(self, count: int, what: str) -> bytes:
        data = self.file.read(count)
        self.taken += len(data)
        if len(data) < count:
            raise _CutOff(
                f"{self.path}: cut off at byte {self.taken}: expected {count - len(data)} more of {what}, "
                f"after {self.packets} whole packets"
            )
        return data

    def head(self, count: int, what: str) -> bytes:
        """Takes bytes as `take` does, but returns none at the end of the file."""
        data = self.file.read(count)
        self.taken += len(data)
        return data + self.take(count - len(data), what) if data else b""

    def refuse(self, problem: str) -> BadInput:
        return BadInput(f"{self.path}: {problem}, at byte {self.taken}, after {self.packets} whole packets")


def _pcap(file: _Bytes, order: str, ns_per_tick: int) -> Iterator[Frame]:
    header = file.take(20, "the file header")
    major, _, _, _, _, link = struct.unpack(order + "HHiIII", header)
    if major != 2:
        raise BadInput(f"{file.path}: pcap version {major}: expected version 2")
    # The upper bits tell of frame check sequences.
    link_type = link & 0xFFFF
    record = struct.Struct(order + "IIII")
    while head := file.head(16, "a packet header"):
        seconds, fraction, captured, length = record.unpack(head)
        if captured > _LONGEST:
            raise file.refuse(f"a packet of {captured} bytes: expected at most {_LONGEST}")
        data = file.take(captured, "a packet")
        file.packets += 1
        yield Frame(seconds * 1_000_000_000 + fraction * ns_per_tick, link_type, data, length)


def _pcapng(file: _Bytes) -> Iterator[Frame]:
    order = "<"
    kind = _SECTION
    head = file.take(4, "a block header")
    while True:
        if kind == _SECTION:
            magic = file.take(4, "a section header")
            order = "<" if struct.unpack("<I", magic)[0] == _BYTE_ORDER else ">"
            if struct.unpack(order + "I", magic)[0] != _BYTE_ORDER:
                raise file.refuse(f"byte order {magic.hex(' ')}: expected a section of a pcapng file")
            file.next_section()
        (total,) = struct.unpack(order + "I", head)
        # Type, length and, of a section, byte order are read; the length comes again at the end.
        rest = total - (12 if kind == _SECTION else 8)
        if total % 4 or rest < 4 or total > _LONGEST:
            raise file.refuse(f"a block of {total} bytes: expected a multiple of 4 up to {_LONGEST}")
        body = file.take(rest, "a block")[:-4]
        try:
            frame = _block(file, kind, body, order, file.interfaces)
        except struct.error:
            raise file.refuse(f"a block of type {kind} and {total} bytes: expected a longer one") from None
        if frame is not None:
            if (overlap := file.times.overlap(frame.time_ns)) is not None:
                raise file.refuse(overlap)
            file.packets += 1
            yield frame
        begin = file.head(8, "a block header")
        if not begin:
            return
        # A section's type reads the same in both orders; its length may be in another one than so far.
        kind, head = struct.unpack(order + "I", begin[:4])[0], begin[4:]


def _block(file: _Bytes, kind: int, body: bytes, order: str, interfaces: list[_Interface]) -> Frame | None:
    if kind == _INTERFACE:
        interfaces.append(_interface(body, order))
        return None
    if kind == _STATISTICS:
        number, _, _ = struct.unpack_from(order + "III", body)
        if number < len(interfaces):
            counts = [value for code, value in _options(body, 12, order) if code in _DROPS and len(value) == 8]
            drops = [struct.unpack(order + "Q", value)[0] for value in counts]
            interfaces[number].missing = sum(drop for drop in drops if drop != _UNKNOWN)
        return None
    if kind == _PLAIN_PACKET:
        raise file.refuse("a packet without a time: expected enhanced packet blocks")
    if kind == _PACKET:
        number, high, low, captured, length = struct.unpack_from(order + "IIIII", body)
    elif kind == _OLD_PACKET:
        number, _, high, low, captured, length = struct.unpack_from(order + "HHIIII", body)
    else:
        return None
    if number >= len(interfaces):
        raise file.refuse(f"a packet of interface {number}: expected one of {len(interfaces)} described so far")
    if captured > len(body) - 20:
        raise file.refuse(f"a packet of {captured} bytes in a block of {len(body)}: expected a longer block")
    interface = interfaces[number]
    data = body[20 : 20 + captured]
    comment = ""
    after = 20 + captured + -captured % 4
    if len(body) > after:
        comment = next((_text(value) for code, value in _options(body, after, order) if code == _COMMENT), "")
    time_ns = interface.time_ns((high << 32) | low)
    return Frame(time_ns, interface.link_type, data, length, interface.name, comment)


def _interface(body: bytes, order: str) -> _Interface:
    link_type, _, _ = struct.unpack_from(order + "HHI", body)
    made = _Interface(link_type)
    for code, value in _options(body, 8, order):
        if code == _NAME:
            made.name = _text(value)
        elif code == _RESOLUTION and value:
            exponent = value[0] & 0x7F
            made.ticks_per_s = (2 if value[0] & 0x80 else 10) ** exponent
        elif code == _OFFSET and len(value) == 8:
            (made.offset_s,) = struct.unpack(order + "q", value)
    return made


def _options(body: bytes, at: int, order: str) -> Iterator[tuple[int, bytes]]:
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        if code == 0:
            return
        yield code, body[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace").rstrip("\0")
