"""Captures as they are: frames out of order or seen twice, headers cut off, segments of any size, stray resets."""

import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aqmlab import cli
from aqmlab.errors import BadInput
from aqmlab.vectors import convert, cvec, order, reading
from aqmlab.vectors.order import Numbered, by_time
from aqmlab.vectors.segments import Segment
from captures import (
    ACC,
    ACK,
    FIN,
    INIT,
    KNOWN,
    MSS,
    RST,
    RTT_US,
    SYN,
    US,
    WEB,
    Ends,
    Packet,
    converted,
    frames_of,
    in_order,
    many,
    paced,
    packets_of,
    pcap,
)

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.parametrize("first", [INIT, ACC])
@pytest.mark.parametrize("block_us", [1_000, 100_000, 9_000_000])
def test_two_interfaces_that_are_written_in_turns_are_one_capture(tmp_path: Path, first: int, block_us: int) -> None:
    """Within a block all frames of one end come before those of the other, whenever they went by."""
    packets = many(8)
    blocks = sorted(packets, key=lambda p: (p.time_ns // (block_us * US), p.side != first))
    assert blocks != packets
    assert converted(tmp_path, pcap(frames_of(blocks))) == converted(tmp_path, pcap(frames_of(packets)))


def numbered(times: list[int]) -> list[Numbered]:
    host = (bytes(4), 1)
    return [(at, number, Segment(at, host, host, 0, 0, 0, 0, 0, None)) for number, at in enumerate(times)]


falling = st.lists(st.integers(0, 10**10), max_size=60)


@settings(max_examples=300, deadline=None)
@given(later=falling)
def test_segments_come_by_their_times_and_as_they_are_where_these_are_equal(later: list[int]) -> None:
    """Times rise by 5 s in the mean and fall by up to 10 s."""
    rising = [10**10 + 5 * 10**9 * number for number in range(len(later))]
    items = numbered([at - min(fall, 10**10) // 10**9 * 10**9 for at, fall in zip(rising, later, strict=True)])
    assert list(by_time(iter(items))) == sorted(items)


@settings(max_examples=300, deadline=None)
@given(times=falling, most=st.integers(1, 20))
def test_of_segments_that_wait_there_is_a_most(times: list[int], most: int) -> None:
    taken: list[int] = []

    def arriving() -> Iterator[Numbered]:
        for item in numbered(times):
            taken.append(item[1])
            yield item

    found = []
    for item in by_time(arriving(), most):
        found.append(item)
        assert len(taken) - len(found) <= most or len(taken) == len(times)
    # None is lost, and what is behind fewer others than may wait is in order.
    assert sorted(found) == sorted(numbered(times))
    if len(times) <= most:
        assert found == sorted(found)


def test_what_comes_too_late_to_be_sorted_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order.by_time, "__defaults__", (2,))
    whole = [replace(packet, time_ns=10**6 * number) for number, packet in enumerate(packets_of(WEB))]
    source = tmp_path / "x.pcap"
    for places, late in ((2, 0), (3, 1)):
        moved = [*whole[:6], *whole[7 : 7 + places], whole[6], *whole[7 + places :]]
        source.write_bytes(pcap(frames_of(moved)))
        counts = convert(source, tmp_path / f"{places}.cvec").as_dict()
        assert (counts["earlier_frames"], counts["unsorted_segments"]) == (1, late)


def with_reset(side: int, sequence: int, after: int, acknowledged: int = 0) -> list[Packet]:
    """The connection of `WEB` with a reset behind its packet of this number; sequence numbers count from the first."""
    whole = packets_of(WEB)
    before = whole[after]
    own = whole[0] if side == INIT else whole[1]
    number = (own.sequence + sequence) % 2**32
    reset = Packet(before.time_ns + 1, side, RST, number, acknowledged, window=0)
    return [*whole[: after + 1], reset, *whole[after + 1 :]]


@pytest.mark.parametrize(
    ("side", "sequence", "is_heeded"),
    [
        # The initiator has sent 350 bytes, which are acknowledged, and is offered 32,000; the acceptor 7,200.
        *((INIT, 351, True), (INIT, 350, False), (INIT, 351 + 32_000, True), (INIT, 351 + 32_001, False)),
        *((ACC, 7_201, True), (ACC, 7_200, False), (ACC, 7_201 + 64_000, True), (ACC, 3_000_000_000, False)),
    ],
)
def test_a_reset_outside_of_the_window_changes_nothing(
    tmp_path: Path, side: int, sequence: int, is_heeded: bool
) -> None:
    whole = packets_of(WEB)
    acknowledged = max(k for k, packet in enumerate(whole) if packet.payload == 1_000 or packet.payload == 200) + 1
    source, target = tmp_path / "x.pcap", tmp_path / "x.cvec"
    source.write_bytes(pcap(frames_of(with_reset(side, sequence, acknowledged))))
    counts = convert(source, target).as_dict()
    (vector,) = reading.read(target)
    assert (vector == WEB) is not is_heeded
    assert counts["stray_resets"] == (0 if is_heeded else 1)
    assert [unit.size_bytes for unit in vector.units] == ([350, 7_200, 0] if is_heeded else [350, 7_200, 90, 1, 0])


@pytest.mark.parametrize(
    ("flags", "acknowledged", "answered"), [(RST | ACK, 1, False), (RST | ACK, 0, True), (RST, 1, True)]
)
def test_a_reset_that_acknowledges_no_syn_does_not_refuse_a_connection(
    tmp_path: Path, flags: int, acknowledged: int, answered: bool
) -> None:
    syn = packets_of(WEB)[0].sequence
    packets = with_reset(ACC, 77, 0, (syn + acknowledged) % 2**32)
    packets[1] = replace(packets[1], flags=flags)
    # A whole connection beside it, as one is expected.
    packets = in_order([*packets, *packets_of(WEB, ports=(7, 80))])
    source = tmp_path / "x.pcap"
    source.write_bytes(pcap(frames_of(packets)))
    counts = convert(source, tmp_path / "x.cvec").as_dict()
    assert counts["sequential"] == 1 + answered
    assert (counts["without_data"], counts["stray_resets"]) == (not answered, answered)


def test_an_initiator_that_gives_up_resets_what_is_not_answered(tmp_path: Path) -> None:
    ends = Ends(ports=(7, 80))
    ends.send(0, INIT, flags=2)
    ends.send(1_000, INIT, RST, 0)
    source = tmp_path / "x.pcap"
    source.write_bytes(pcap(frames_of(in_order([*ends.packets, *packets_of(WEB)]))))
    counts = convert(source, tmp_path / "x.cvec").as_dict()
    assert (counts["without_data"], counts["stray_resets"]) == (1, 0)


@pytest.mark.parametrize("unit", [MSS, 44 * MSS, 64_000])
@pytest.mark.parametrize("point", ["behind", "before"])
def test_losses_are_a_share_of_segments_however_the_card_is_given_them(tmp_path: Path, unit: int, point: str) -> None:
    """704 segments of which 10 are sent again, one at a time."""
    size = 704 * MSS
    ends = Ends()
    at = ends.handshake()
    for begin in range(0, size, unit):
        ends.send(at + begin // 1000, INIT, ACK, begin, min(unit, size - begin))
    lost = [88_000 + 44_000 * number for number in range(10)]
    if point == "before":
        ends.packets = [
            part
            for packet in ends.packets
            for part in without(packet, sorted((ends.isn[INIT] + 1 + begin) % 2**32 for begin in lost))
        ]
    for number, begin in enumerate(lost):
        ends.send(at + 200_000 + 20_000 * number, INIT, ACK, begin, MSS)
    ends.send(at + 500_000, ACC, ACK, 0, 0, size)
    (vector,) = converted(tmp_path, pcap(frames_of(in_order(ends.packets))))
    assert sum(part.size_bytes for part in vector.units) == size
    assert vector.losses[INIT] == pytest.approx(10 / 714, abs=1e-6)


def without(packet: Packet, lost: list[int]) -> list[Packet]:
    """What is left of a unit of data without the segments that begin at these sequence numbers."""
    for sequence in lost:
        offset = (sequence - packet.sequence) % 2**32
        if packet.payload > offset:
            first = replace(packet, payload=offset)
            rest = packet.payload - offset - MSS
            second = replace(packet, sequence=(sequence + MSS) % 2**32, payload=rest)
            return [*([first] if offset else []), *(without(second, lost) if rest else [])]
    return [packet]


def test_the_path_has_the_smaller_of_two_largest_segments_and_ethernets_where_neither_end_says_one(
    tmp_path: Path,
) -> None:
    for told, segments in (
        ((1_000, 500), 20),
        ((500, 1_000), 20),
        ((None, 1_000), 10),
        ((None, None), 7),
        ((0, 0), 209),
    ):
        ends = Ends()
        at = -ends.near_us
        for side, largest in zip((INIT, ACC), told, strict=True):
            options = b"" if largest is None else struct.pack("!BBH", 2, 4, largest)
            at = ends.send(at, side, SYN | (ACK if side == ACC else 0), options=options)
        ends.send(at, INIT)
        ends.send(at, INIT, ACK, 0, 10_000)
        ends.send(at + 300_000, INIT, ACK, 0, 40)
        ends.send(at + 600_000, ACC, ACK, 0, 0, 10_000)
        (vector,) = converted(tmp_path, pcap(frames_of(in_order(ends.packets))))
        assert vector.losses[INIT] == pytest.approx(1 / (segments + 1), abs=1e-6)


def with_copies(packets: list[Packet], delay_us: int, count: int = 1) -> list[Packet]:
    """Each packet again, so many times and so much later."""
    copies = [replace(p, time_ns=p.time_ns + delay_us * US * k) for p in packets for k in range(1 + count)]
    return in_order(copies)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize(("delay_us", "count"), [(0, 1), (5, 1), (5, 3), (3_000, 1)])
@pytest.mark.parametrize("version", [4, 6])
def test_a_packet_that_is_seen_twice_is_taken_once(
    tmp_path: Path, name: str, delay_us: int, count: int, version: int
) -> None:
    """With an identification as IPv4 may have, and without one as in IPv6."""
    packets = packets_of(KNOWN[name])
    if version == 4:
        packets = [replace(packet, identification=1 + number) for number, packet in enumerate(packets)]
    source, target = tmp_path / "x.pcap", tmp_path / "x.cvec"
    source.write_bytes(pcap(frames_of(with_copies(packets, delay_us, count), version=version)))
    counts = convert(source, target).as_dict()
    assert reading.read(target) == [KNOWN[name]]
    # Of pure acknowledgements without an identification nobody knows whether they are copies.
    bare = [packet for packet in packets if not packet.payload and not packet.flags & (SYN | FIN)]
    assert counts["copies"] == count * (len(packets) - (0 if version == 4 else len(bare)))
    assert counts["tcp_segments"] == (1 + count) * len(packets)


def test_copies_are_found_however_many_packets_there_are(tmp_path: Path) -> None:
    """A segment a millisecond for a second, and each again 2.5 ms later."""
    ends = Ends()
    at = ends.handshake()
    _, there = paced(ends, at, INIT, 0, 1_000)
    ends.send(there, ACC, ACK, 0, 0, 1_000 * MSS)
    source, target = tmp_path / "x.pcap", tmp_path / "x.cvec"
    source.write_bytes(pcap(frames_of(with_copies(in_order(ends.packets), 2_500), version=6)))
    # Two SYNs and the data.
    assert convert(source, target).as_dict()["copies"] == 1_002
    assert reading.read(target)[0].losses == (0.0, 0.0)


@pytest.mark.parametrize(
    ("again_us", "rtt_us", "identifications", "losses"),
    [
        *(
            (3_001, 80_000, (0, 0), 1),
            (3_000, 80_000, (0, 0), 0),
            (3_001, 80_000, (7, 7), 1),
            (2_000, 80_000, (7, 8), 1),
        ),
        # Within a building, a retransmission may come so soon.
        *((500, 1_000, (0, 0), 0), (501, 1_000, (0, 0), 1), (501, 1_000, (7, 7), 0), (501, 1_000, (7, 8), 1)),
    ],
)
def test_what_a_sender_can_have_sent_again_is_no_copy(
    tmp_path: Path, again_us: int, rtt_us: int, identifications: tuple[int, int], losses: int
) -> None:
    ends = Ends(near_us=rtt_us // 8, far_us=rtt_us // 2 - rtt_us // 8)
    at = ends.handshake()
    ends.send(at, INIT, ACK, 0, MSS)
    ends.send(at + again_us, INIT, ACK, 0, MSS)
    for place, number in zip((-2, -1), identifications, strict=True):
        ends.packets[place] = replace(ends.packets[place], identification=number)
    ends.send(at + 100_000, ACC, ACK, 0, 0, MSS)
    (vector,) = converted(tmp_path, pcap(frames_of(in_order(ends.packets))))
    assert vector.losses[INIT] == losses / 2


# As Linux has them: largest segment, SACK permitted, timestamps, one of padding, window scale.
OPTIONS = bytes.fromhex("020403e8 0402 080a0000000100000000 01 030303")


@pytest.mark.parametrize(
    ("snap", "is_cut"),
    # Ethernet, IPv4, TCP without options are 54 bytes; the scale's last byte is the 74th.
    [(54, True), (55, True), (58, True), (68, True), (72, True), (73, True), (74, False), (128, False)],
)
def test_a_scale_that_was_cut_off_is_told(
    tmp_path: Path, snap: int, is_cut: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    packets = [replace(p, options=OPTIONS) if p.flags & SYN else p for p in packets_of(WEB)]
    source, target = tmp_path / "x.pcap", tmp_path / "x.cvec"
    source.write_bytes(pcap(frames_of(packets), snap=snap))
    assert cli.invoke(["vectors", str(source), "-o", str(target)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    advice = (
        "1 connections whose windows may be larger, as the scale in their SYNs was cut off: "
        "were more bytes of each frame kept (tcpdump -s 128), it could be read"
    )
    assert (advice in said) is is_cut
    (vector,) = reading.read(target)
    assert vector.windows == ((8_000, 4_000) if is_cut else (64_000, 32_000))


def test_a_reset_is_heeded_in_the_largest_window_where_the_scale_was_cut_off(tmp_path: Path) -> None:
    """What 4,000 offered without its scale may be at most, and a byte more."""
    for sequence, stray in ((351 + (4_000 << 14), 0), (352 + (4_000 << 14), 1)):
        packets = with_reset(INIT, sequence, 11)
        packets = [replace(p, options=OPTIONS) if p.flags & SYN else p for p in packets]
        source, target = tmp_path / "x.pcap", tmp_path / f"{stray}.cvec"
        source.write_bytes(pcap(frames_of(packets), snap=68))
        assert convert(source, target).as_dict()["stray_resets"] == stray


def test_a_scale_that_is_not_there_is_not_cut_off(tmp_path: Path) -> None:
    """Whole options without it, or with an end before what was cut off; and where one end has none, none is in use."""
    none, ended = OPTIONS[:4], OPTIONS[:6] + bytes(34)
    for initiator, acceptor, told in ((none, none, 0), (ended, ended, 0), (none, OPTIONS, 0), (OPTIONS, OPTIONS, 1)):
        own = {INIT: initiator, ACC: acceptor}
        packets = [replace(p, options=own[p.side]) if p.flags & SYN else p for p in packets_of(WEB)]
        source, target = tmp_path / "x.pcap", tmp_path / "x.cvec"
        target.unlink(missing_ok=True)
        source.write_bytes(pcap(frames_of(packets), snap=68))
        assert convert(source, target).as_dict()["without_scale"] == told


def test_128_bytes_are_enough_for_the_longest_headers(tmp_path: Path) -> None:
    """Of IPv6 with a VLAN tag and all 40 bytes of options."""
    packets = [replace(p, options=bytes([1]) * 20 + OPTIONS) if p.flags & SYN else p for p in packets_of(WEB)]
    assert len(packets[0].options) == 40
    assert converted(tmp_path, pcap(frames_of(packets, "vlan", 6), snap=128)) == [WEB]


@pytest.mark.parametrize(("offered", "losses"), [(0, 0.0), (8_000, 8 / 12)])
def test_probes_of_a_closed_window_are_no_losses(tmp_path: Path, offered: int, losses: float) -> None:
    """Eight times the same new byte, of which the first is none that was seen before; then what follows it."""
    ends = Ends()
    at = ends.handshake()
    _, there = ends.data(at, INIT, 0, 2 * MSS, 0)
    full = 2 * MSS
    ends.windows = (64_000, offered)
    ends.send(there, ACC, ACK, 0, 0, full)
    for number in range(9):
        at = there + 400_000 * (1 + number)
        ends.send(at, INIT, ACK, full, 1)
        ends.send(at + 40_000, ACC, ACK, 0, 0, full)
    ends.windows = (64_000, 32_000)
    there = ends.send(at + 400_000, ACC, ACK, 0, 0, full)
    ends.data(there, INIT, full, MSS, 0)
    (vector,) = converted(tmp_path, pcap(frames_of(in_order(ends.packets))))
    assert [part.size_bytes for part in vector.units if part.size_bytes] == [3 * MSS]
    assert vector.rtt_us == RTT_US
    assert vector.losses[INIT] == pytest.approx(losses, abs=1e-6)


@pytest.mark.parametrize("late_us", [-1, 0])
def test_starts_up_to_the_limit_are_counted_from_the_earliest_frame_wherever_it_is(
    tmp_path: Path, late_us: int
) -> None:
    """Two frames of another protocol, of which the second is 10 s earlier, and a connection at the limit."""
    other = bytes(12) + b"\x08\x06" + bytes(28)
    start_us = cvec.LIMIT + late_us
    frames = [(10**10, other), (0, other), *frames_of(packets_of(replace(WEB, start_us=start_us)))]
    if late_us < 0:
        assert converted(tmp_path, pcap(frames)) == [replace(WEB, start_us=start_us)]
        return
    with pytest.raises(BadInput, match=r"frame 3 begins a connection 12\.73 days after the first frame"):
        converted(tmp_path, pcap(frames))
