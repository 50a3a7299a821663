"""Captures for the tests: packets of connections whose vectors are known, in any format and link type, and back."""

import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

from aqmlab.vectors import ACCEPTOR, INITIATOR, Unit, Vector, convert, reading

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MSS = 1000
US = 1000
INIT, ACC = INITIATOR, ACCEPTOR
RTT_US = 80_000
PLAIN = {"windows": (64_000, 32_000), "rtt_us": RTT_US}
WEB = Vector(
    0,
    False,
    (Unit(INIT, 0, 350), Unit(ACC, 51_257, 7_200), Unit(INIT, 2_000_000, 90), Unit(ACC, 9, 1), Unit(ACC, 3_000_000, 0)),
    **PLAIN,  # type: ignore[arg-type]
)
MAIL = replace(
    WEB,
    units=(
        Unit(ACC, 0, 80),
        Unit(INIT, 7, 20),
        Unit(ACC, 1, 30),
        Unit(ACC, 700_000, 12),
        Unit(INIT, 40, 6),
        Unit(INIT, 2, 0),
    ),
)
PEERS = replace(
    WEB,
    is_concurrent=True,
    units=(
        *(Unit(INIT, 0, 222), Unit(INIT, 62_436_302, 16), Unit(INIT, 725, 0)),
        *(Unit(ACC, 0, 726), Unit(ACC, 600_000, 84), Unit(ACC, 99_000_000, 0)),
    ),
)
KNOWN = {"web": WEB, "mail": MAIL, "peers": PEERS}


@dataclass(frozen=True)
class Packet:
    """A TCP segment at the vantage point."""

    time_ns: int
    side: int
    flags: int
    sequence: int
    acknowledgement: int
    payload: int = 0
    window: int = 1000
    options: bytes = b""
    ports: tuple[int, int] = (40_000, 80)
    identification: int = 0


@dataclass
class Ends:
    """Two ends of a connection and a vantage point `near_us` from the initiator and `far_us` from the acceptor."""

    start_us: int = 0
    near_us: int = 10_000
    far_us: int = 30_000
    ports: tuple[int, int] = (40_000, 80)
    isn: tuple[int, int] = (0xFFFF_FF00, 7)
    windows: tuple[int, int] = (64_000, 32_000)
    """Advertised with a shift of 3."""
    packets: list[Packet] = field(default_factory=list)

    def send(
        self,
        at_us: int,
        side: int,
        flags: int = ACK,
        begin: int = 0,
        size: int = 0,
        acknowledged: int = 0,
        options: bytes = b"",
    ) -> int:
        """`side` sends at a time of its own clock; the answer is when it arrives. Positions count from 0."""
        delays = (self.near_us, self.far_us)
        self.packets.append(
            Packet(
                (at_us + delays[side]) * US,
                side,
                flags,
                (self.isn[side] + (0 if flags & SYN else 1 + begin)) % 2**32,
                (self.isn[1 - side] + 1 + acknowledged) % 2**32 if flags & ACK else 0,
                size,
                1000 if flags & SYN else self.windows[side] >> 3,
                options,
                self.ports,
            )
        )
        return at_us + self.near_us + self.far_us

    def handshake(self) -> int:
        """The three segments; the answer is when the initiator sends the last. The SYN is seen at the start."""
        options = struct.pack("!BBHBBBB", 2, 4, MSS, 1, 3, 3, 3)
        at = self.send(self.start_us - self.near_us, INITIATOR, SYN, options=options)
        at = self.send(at, ACCEPTOR, SYN | ACK, options=options)
        self.send(at, INITIATOR)
        return at

    def data(self, at_us: int, side: int, begin: int, size: int, acknowledged: int) -> tuple[int, int]:
        """Sends a unit and has it acknowledged at once; the answer is when it was sent and when it is there."""
        arrived = at_us
        for offset in range(0, size, MSS):
            length = min(MSS, size - offset)
            arrived = self.send(at_us, side, ACK | PSH, begin + offset, length, acknowledged)
        self.send(arrived, 1 - side, ACK, acknowledged, 0, begin + size)
        return at_us, arrived


def paced(ends: Ends, at: int, side: int, begin: int, segments: int) -> tuple[int, int]:
    """Sends a segment a millisecond, each acknowledged; the answer is when the last was sent and when it is there."""
    sent = at
    for number in range(segments):
        sent, there = ends.data(at + 1_000 * number, side, begin + MSS * number, MSS, 0)
    return sent, there


def packets_of(vector: Vector, **where: object) -> list[Packet]:
    """What goes by when the ends of a vector talk without losses; as fast as that."""
    ends = replace(Ends(start_us=vector.start_us), **where)  # type: ignore[arg-type]
    established = ends.handshake()
    sent = [0, 0]
    if vector.is_concurrent:
        # The acceptor hears of the connection a path later, and speaks before it heard the data that came with it.
        free = [established, established + ends.near_us + ends.far_us]
        acknowledged_at: list[list[tuple[int, int]]] = [[(0, 0)], [(0, 0)]]
        plan = []
        for unit in vector.units:
            at = free[unit.side] + unit.wait_us
            plan.append((at, unit))
            free[unit.side] = at
            if unit.size_bytes:
                there = at + ends.near_us + ends.far_us
                done = acknowledged_at[1 - unit.side][-1][1] + unit.size_bytes
                acknowledged_at[1 - unit.side].append((there, done))
        for at, unit in plan:
            seen = max(done for when, done in acknowledged_at[unit.side] if when < at or when == 0)
            if unit.size_bytes:
                ends.data(at, unit.side, sent[unit.side], unit.size_bytes, seen)
                sent[unit.side] += unit.size_bytes
            else:
                there = ends.send(at, unit.side, FIN | ACK, sent[unit.side], 0, seen)
                own = max(done for when, done in acknowledged_at[1 - unit.side] if when <= there)
                ends.send(there, 1 - unit.side, ACK, sent[1 - unit.side], 0, own + 1)
        # What an end sends as something arrives was on its way out before the acknowledgement of that.
        return sorted(ends.packets, key=lambda packet: (packet.time_ns, packet.payload == 0))
    # When a unit was sent last and when it is there, at the beginning as if the handshake were one of the initiator.
    last_sent, last_there = established, established + ends.near_us + ends.far_us
    previous = INITIATOR
    for unit in vector.units:
        waits_for_peer = unit.side != previous
        at = (last_there if waits_for_peer else last_sent) + unit.wait_us
        if unit.size_bytes == 0:
            there = ends.send(at, previous, FIN | ACK, sent[previous], 0, sent[1 - previous])
            back = ends.send(there, 1 - previous, FIN | ACK, sent[1 - previous], 0, sent[previous] + 1)
            ends.send(back, previous, ACK, sent[previous] + 1, 0, sent[1 - previous] + 1)
            break
        last_sent, last_there = ends.data(at, unit.side, sent[unit.side], unit.size_bytes, sent[1 - unit.side])
        sent[unit.side] += unit.size_bytes
        previous = unit.side
    return in_order(ends.packets)


def in_order(packets: list[Packet]) -> list[Packet]:
    return sorted(packets, key=lambda packet: packet.time_ns)


def ip_packet(packet: Packet, version: int = 4) -> bytes:
    """The packet with its headers; checksums are left 0, nobody looks at them."""
    ports = packet.ports if packet.side == INITIATOR else packet.ports[::-1]
    offset = 5 + len(packet.options) // 4
    tcp = struct.pack(
        "!HHIIBBHHH", *ports, packet.sequence, packet.acknowledgement, offset << 4, packet.flags, packet.window, 0, 0
    )
    tcp += packet.options
    length = len(tcp) + packet.payload
    if version == 4:
        hosts = (bytes([10, 0, 0, 1]), bytes([192, 168, 7, 9]))
        source, target = hosts if packet.side == INITIATOR else hosts[::-1]
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, packet.identification, 0x4000, 64, 6, 0) + source + target
    else:
        hosts = (bytes([0x20, 1, *[0] * 13, 1]), bytes([0x20, 1, *[0] * 13, 2]))
        source, target = hosts if packet.side == INITIATOR else hosts[::-1]
        head = struct.pack("!IHBB", 6 << 28, length, 6, 64) + source + target
    return head + tcp + bytes(packet.payload)


LINKS = {
    "ethernet": (1, {4: bytes(12) + b"\x08\x00", 6: bytes(12) + b"\x86\xdd"}),
    # Version, session and length, then what PPP carries.
    "pppoe": (
        1,
        {
            4: bytes(12) + b"\x88\x64\x11\x00\x00\x05\x00\x30\x00\x21",
            6: bytes(12) + b"\x88\x64\x11\x00\x00\x05\x00\x30\x00\x57",
        },
    ),
    "vlan": (1, {4: bytes(12) + b"\x81\x00\x00\x07\x08\x00", 6: bytes(12) + b"\x81\x00\x00\x07\x86\xdd"}),
    "raw": (101, {4: b"", 6: b""}),
    "loopback": (0, {4: b"\x02\x00\x00\x00", 6: b"\x1e\x00\x00\x00"}),
    "cooked": (113, {4: bytes(14) + b"\x08\x00", 6: bytes(14) + b"\x86\xdd"}),
    "cooked2": (276, {4: b"\x08\x00" + bytes(18), 6: b"\x86\xdd" + bytes(18)}),
}


def frames_of(packets: list[Packet], link: str = "ethernet", version: int = 4) -> list[tuple[int, bytes]]:
    """Times and frames."""
    head = LINKS[link][1][version]
    return [(packet.time_ns, head + ip_packet(packet, version)) for packet in packets]


def pcap(
    frames: list[tuple[int, bytes]], link: int = 1, order: str = "<", nano: bool = True, snap: int = 65_535
) -> bytes:
    """A pcap file."""
    magic, tick = (0xA1B23C4D, 1) if nano else (0xA1B2C3D4, 1000)
    out = bytearray(struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link))
    for time_ns, frame in frames:
        seconds, rest = divmod(time_ns, 10**9)
        out += struct.pack(order + "IIII", seconds, rest // tick, min(snap, len(frame)), len(frame)) + frame[:snap]
    return bytes(out)


def pcapng(frames: list[tuple[int, bytes]], link: int = 1, order: str = "<", exponent: int = 9) -> bytes:
    """A pcapng file of two interfaces, of which the second is used and ticks in 10^-exponent s."""
    out = bytearray(block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)))
    out += block(order, 1, struct.pack(order + "HHI", 105, 0, 0))
    option = struct.pack(order + "HHB3xHH", 9, 1, exponent, 0, 0)
    out += block(order, 1, struct.pack(order + "HHI", link, 0, 0) + option)
    out += block(order, 0xBAD, b"what nobody knows..."[:20])
    for time_ns, frame in frames:
        ticks = time_ns * 10**exponent // 10**9
        head = struct.pack(order + "IIIII", 1, ticks >> 32, ticks & 0xFFFF_FFFF, len(frame), len(frame))
        out += block(order, 6, head + frame)
    return bytes(out)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def many(count: int, **options: object) -> list[Packet]:
    """Connections that overlap, the first of them the longest."""
    made: list[Packet] = []
    for number in range(count):
        wait = 10**7 if number == 0 else 1000 * number
        vector = replace(
            WEB, start_us=20_000 * number, units=(WEB.units[0], Unit(ACC, wait, 500 + number), WEB.units[-1])
        )
        made += packets_of(vector, ports=(1000 + number, 80), **options)
    return in_order(made)


def converted(tmp_path: Path, capture: bytes, form: str = "original", **options: object) -> list[Vector]:
    """The vectors of a capture, by way of a file."""
    source, target = tmp_path / "x.pcap", tmp_path / "x.cvec"
    source.write_bytes(capture)
    target.unlink(missing_ok=True)
    convert(source, target, form, **options)  # type: ignore[arg-type]
    return reading.read(target)
