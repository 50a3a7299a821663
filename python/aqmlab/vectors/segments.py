"""Finds the TCP segment in a frame: Ethernet (VLAN tags and PPPoE too), raw IP, loopback, Linux cooked; IPv4, IPv6."""

import struct
from typing import NamedTuple

from aqmlab.vectors.capture import Frame

FIN, SYN, RST, ACK = 1, 2, 4, 16

ETHERNET, LINUX_COOKED, LINUX_COOKED_2 = 1, 113, 276
_RAW = {12, 14, 101, 228, 229}
_LOOPBACK = {0, 108}
LINK_TYPES = {ETHERNET, LINUX_COOKED, LINUX_COOKED_2, *_RAW, *_LOOPBACK}
"""Those that are read."""

_IPV4, _IPV6, _TCP = 0x0800, 0x86DD, 6
_PPPOE = 0x8864
_OF_PPP = {0x0021: _IPV4, 0x0057: _IPV6}
_TAGS = {0x8100, 0x88A8, 0x9100}
_EXTENSIONS = {0, 43, 60, 135}
_FRAGMENT, _AUTHENTICATION = 44, 51
_NO_OPTIONS = (None, None, False)
_PORTS = struct.Struct("!HHIIBBH")


class Segment(NamedTuple):
    """A TCP segment as it went by."""

    time_ns: int
    source: tuple[bytes, int]
    """Address and port."""
    target: tuple[bytes, int]
    sequence: int
    acknowledgement: int
    flags: int
    window: int
    payload: int
    """Bytes of data, captured or not."""
    window_shift: int | None
    """Of a SYN that has the option."""
    largest: int | None = None
    """The largest segment (MSS) that the sender of this SYN takes, if it has the option."""
    identification: int = 0
    """Of its IPv4 packet, if it has one."""
    is_cut: bool = False
    """Of a SYN whether options may be missing as the capture has not the whole header."""


class Unreadable(Exception):  # noqa: N818 - a reason to count, nothing that goes wrong
    """A frame of which less than the headers was captured, or a piece of a packet."""


def has_header(frame: Frame) -> bool:
    """Whether the IP header of a raw packet was captured."""
    return len(frame.data) >= (40 if frame.data[:1] >= b"\x60" else 20)


def segment(frame: Frame) -> Segment | None:
    """The TCP segment in a frame; nothing if there is none; raises `Unreadable` if it cannot be told."""
    at = _network_layer(frame)
    if at is None:
        return None
    try:
        return _internet(frame, at)
    except (struct.error, IndexError):
        raise Unreadable from None


def _network_layer(frame: Frame) -> int | None:
    """Where the IP header begins."""
    data, link = frame.data, frame.link_type
    if link in _RAW:
        return 0
    if link in _LOOPBACK:
        return 4
    try:
        if link == LINUX_COOKED:
            kind, at = _word(data, 14), 16
        elif link == LINUX_COOKED_2:
            kind, at = _word(data, 0), 20
        else:
            kind, at = _word(data, 12), 14
        while kind in _TAGS:
            kind, at = _word(data, at + 2), at + 4
        if kind == _PPPOE:
            # A header of six bytes, then what PPP carries (RFC 2516).
            kind, at = _OF_PPP.get(_word(data, at + 6), 0), at + 8
    except IndexError:
        raise Unreadable from None
    return at if kind in (_IPV4, _IPV6) else None


def _word(data: bytes, at: int) -> int:
    return data[at] << 8 | data[at + 1]


def _internet(frame: Frame, at: int) -> Segment | None:
    data = frame.data
    version = data[at] >> 4
    on_wire = frame.length - at
    if version == 4:
        if data[at + 9] != _TCP:
            return None
        if _word(data, at + 6) & 0x3FFF:
            # More to come, or not the first.
            raise Unreadable
        # A network card that cuts the segments leaves the length 0.
        end = at + (_word(data, at + 2) or on_wire)
        source, target = data[at + 12 : at + 16], data[at + 16 : at + 20]
        return _tcp(frame, at + 4 * (data[at] & 15), end, source, target, _word(data, at + 4))
    if version != 6:
        return None
    end = at + 40 + (_word(data, at + 4) or on_wire - 40)
    source, target = data[at + 8 : at + 24], data[at + 24 : at + 40]
    following, at = data[at + 6], at + 40
    while following != _TCP:
        if following == _FRAGMENT:
            raise Unreadable
        if following in _EXTENSIONS:
            following, at = data[at], at + 8 * (data[at + 1] + 1)
        elif following == _AUTHENTICATION:
            following, at = data[at], at + 4 * (data[at + 1] + 2)
        else:
            return None
    return _tcp(frame, at, end, source, target, 0)


def _tcp(frame: Frame, at: int, end: int, source: bytes, target: bytes, identification: int) -> Segment:
    from_port, to_port, sequence, acknowledgement, offset, flags, window = _PORTS.unpack_from(frame.data, at)
    header = 4 * (offset >> 4)
    payload = end - at - header
    if header < 20 or payload < 0:
        raise Unreadable
    shift, largest, is_cut = _options(frame.data[at + 20 : at + header], header - 20) if flags & SYN else _NO_OPTIONS
    return Segment(
        frame.time_ns,
        (source, from_port),
        (target, to_port),
        sequence,
        acknowledgement,
        flags,
        window,
        payload,
        shift,
        largest,
        identification,
        is_cut,
    )


def _options(options: bytes, length: int) -> tuple[int | None, int | None, bool]:
    """Window shift and largest segment of a SYN, and whether there may be more of its `length` bytes of options."""
    shift = largest = None
    at = 0
    while at < len(options) and options[at] != 0:
        size = 1 if options[at] == 1 else options[at + 1] if at + 1 < len(options) else 0
        if size == 0:
            break
        if options[at] == 3 and size == 3 and at + 2 < len(options):
            # RFC 7323 §2.3: no shift is larger.
            shift = min(options[at + 2], 14)
        elif options[at] == 2 and size == 4 and at + 3 < len(options):
            largest = _word(options, at + 2)
        at += size
    has_ended = at < len(options) and options[at] == 0
    return shift, largest, len(options) < length and not has_ended
