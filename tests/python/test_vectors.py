"""From a capture to connection vectors and back through both text formats: our own packets, our own vectors."""

import ipaddress
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aqmlab.errors import BadInput
from aqmlab.vectors import FORMATS, Unit, Vector, convert, reading, write
from captures import (
    ACC,
    ACK,
    FIN,
    INIT,
    KNOWN,
    LINKS,
    PEERS,
    PSH,
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
    pcapng,
)

pytestmark = pytest.mark.usefixtures("compiled")


def sizes(vector: Vector) -> list[tuple[int, int]]:
    return [(unit.side, unit.size_bytes) for unit in vector.units if unit.size_bytes]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", KNOWN)
def test_vectors_come_back_from_their_packets(tmp_path: Path, name: str, form: str) -> None:
    capture = pcap(frames_of(packets_of(KNOWN[name])))
    assert converted(tmp_path, capture, form) == [KNOWN[name]]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("version", [4, 6])
def test_every_link_type_and_file_format(tmp_path: Path, link: str, version: int) -> None:
    frames = frames_of(packets_of(WEB), link, version)
    number = LINKS[link][0]
    files = [
        *(pcap(frames, number, order, nano) for order in "<>" for nano in (True, False)),
        *(pcapng(frames, number, order, exponent) for order in "<>" for exponent in (6, 9)),
        # Headers are enough.
        pcap(frames, number, snap=110),
    ]
    for file in files:
        assert converted(tmp_path, file) == [WEB]


units = st.lists(
    st.tuples(st.sampled_from([INIT, ACC]), st.integers(1, 5 * 10**6), st.integers(1, 20_000)), min_size=1, max_size=12
)


@st.composite
def sequential(draw: st.DrawFn) -> Vector:
    made: list[Unit] = []
    for side, wait, size in draw(units):
        # An end that goes on after less than the quiet time is still in the same unit; the first comes at once.
        wait = 0 if not made else wait + 500_001 if made[-1].side == side else wait
        made.append(Unit(side, wait, size))
    made.append(Unit(made[-1].side, draw(st.integers(1, 10**6)), 0))
    return replace(WEB, units=tuple(made))


@settings(max_examples=150, deadline=None)
@given(vector=sequential(), near=st.integers(0, 200_000), far=st.integers(1, 200_000))
def test_any_sequential_connection_comes_back(
    tmp_path_factory: pytest.TempPathFactory, vector: Vector, near: int, far: int
) -> None:
    tmp_path = tmp_path_factory.mktemp("any")
    packets = packets_of(vector, near_us=near, far_us=far)
    assert converted(tmp_path, pcap(frames_of(packets))) == [replace(vector, rtt_us=2 * (near + far))]


concurrent_units = st.lists(st.tuples(st.integers(500_001, 5 * 10**6), st.integers(1, 5_000)), max_size=6)


@st.composite
def concurrent(draw: st.DrawFn) -> Vector:
    made: list[Unit] = []
    for side in (INIT, ACC):
        made.append(Unit(side, 0, 100))
        made += [Unit(side, wait, size) for wait, size in draw(concurrent_units)]
        made.append(Unit(side, draw(st.integers(1, 10**6)) + 10**8 * side, 0))
    return replace(PEERS, units=tuple(made))


@settings(max_examples=150, deadline=None)
@given(vector=concurrent())
def test_any_concurrent_connection_comes_back(tmp_path_factory: pytest.TempPathFactory, vector: Vector) -> None:
    tmp_path = tmp_path_factory.mktemp("any")
    assert converted(tmp_path, pcap(frames_of(packets_of(vector)))) == [vector]


def test_one_pair_of_crossing_segments_makes_a_connection_concurrent(tmp_path: Path) -> None:
    """The third request leaves before the second answer is there; the answer does not acknowledge it either."""
    ends = Ends()
    at = ends.handshake()
    _, there = ends.data(at, INIT, 0, 100, 0)
    _, back = ends.data(there, ACC, 0, 3_000, 100)
    _, there = ends.data(back, INIT, 100, 100, 3_000)
    ends.data(back + 5, INIT, 200, 100, 3_000)
    ends.data(there, ACC, 3_000, 500, 200)
    (vector,) = converted(tmp_path, pcap(frames_of(in_order(ends.packets))))
    assert vector.is_concurrent
    assert sizes(vector) == [(INIT, 300), (ACC, 3_500)]


def sequential_with(change: str) -> list[Packet]:
    """A request, an answer of ten segments of which the fourth has an accident, a second request."""
    ends = Ends()
    at = ends.handshake()
    _, there = ends.data(at, INIT, 0, 100, 0)
    arrived = there
    for number in range(10):
        sent = there + 10 * number
        arrived = ends.send(sent, ACC, ACK | PSH, 1000 * number, 1000, 100)
    victim = ends.packets[-7]
    if change == "lost behind":
        again = there + 300_000
        arrived = ends.send(again, ACC, ACK | PSH, 3000, 1000, 100)
    if change == "lost before":
        ends.packets.remove(victim)
        arrived = ends.send(there + 300_000, ACC, ACK | PSH, 3000, 1000, 100)
    if change == "reordered":
        ends.packets[ends.packets.index(victim)] = replace(victim, time_ns=victim.time_ns + 25 * US)
    if change == "not captured":
        ends.packets.remove(victim)
    ends.send(arrived, INIT, ACK, 100, 0, 10_000)
    ends.data(arrived + 2_000, INIT, 100, 50, 10_000)
    return in_order(ends.packets)


@pytest.mark.parametrize(
    ("change", "loss"),
    # One of the answer's ten segments is lost, of eleven that were sent, on either side of the vantage point.
    [("nothing", 0.0), ("lost behind", 1 / 11), ("lost before", 1 / 11), ("reordered", 0.0), ("not captured", 0.0)],
)
def test_losses_and_reordering_change_no_size_and_no_think_time(tmp_path: Path, change: str, loss: float) -> None:
    (vector,) = converted(tmp_path, pcap(frames_of(sequential_with(change))))
    # The answer's first segment leaves when the request is there; the next request 2 ms after the last arrived.
    assert [(u.side, u.wait_us, u.size_bytes) for u in vector.units[:-1]] == [
        (INIT, 0, 100),
        (ACC, 1, 10_000),
        (INIT, 2_000, 50),
    ]
    assert vector.losses == (0.0, pytest.approx(loss, abs=1e-6))
    assert vector.rtt_us == RTT_US


def test_data_that_the_capture_misses_at_the_end_of_a_unit_are_known_by_their_acknowledgement(tmp_path: Path) -> None:
    packets = packets_of(WEB)
    last = max((p for p in packets if p.side == ACC and p.payload), key=lambda p: p.sequence if p.payload == 200 else 0)
    packets.remove(last)
    (vector,) = converted(tmp_path, pcap(frames_of(packets)))
    assert [unit.size_bytes for unit in vector.units] == [350, 7_200, 90, 1, 0]


def test_a_closed_window_and_a_keep_alive_are_no_pause_and_no_loss(tmp_path: Path) -> None:
    ends = Ends()
    at = ends.handshake()
    _, there = ends.data(at, INIT, 0, 1000, 0)
    closed = ends.packets[-1]
    ends.packets[-1] = replace(closed, window=0)
    opens = there + 3_000_000
    there = ends.send(opens, ACC, ACK, 0, 0, 1000)
    ends.data(there + 1, INIT, 1000, 500, 0)
    # RFC 1122: the last byte again, all acknowledged.
    ends.send(there + 10**7, INIT, ACK, 1499, 1, 0)
    (vector,) = converted(tmp_path, pcap(frames_of(in_order(ends.packets))))
    assert sizes(vector) == [(INIT, 1500)]
    assert vector.losses == (0.0, 0.0)


def test_retransmitted_handshakes_tell_no_round_trip_time_if_the_data_do(tmp_path: Path) -> None:
    packets = packets_of(WEB)
    syn = packets[0]
    early = replace(syn, time_ns=syn.time_ns - 3 * 10**9)
    frames = [(time + 4 * 10**9, frame) for time, frame in frames_of([early, *packets])]
    (vector,) = converted(tmp_path, pcap(frames))
    # Relative to the capture's first frame, which is the first SYN; the wait of the first unit is unchanged.
    assert vector == WEB


def test_vectors_are_written_in_the_order_of_their_starts(tmp_path: Path) -> None:
    found = converted(tmp_path, pcap(frames_of(many(20))))
    assert [vector.start_us for vector in found] == [20_000 * number for number in range(20)]
    assert [vector.units[1].size_bytes for vector in found] == list(range(500, 520))


def test_time_stamps_that_fall_a_little_give_starts_in_order(tmp_path: Path) -> None:
    """As of a network card with several queues: the second connection comes later in the file and began earlier."""
    first = packets_of(replace(WEB, start_us=5_000))
    second = packets_of(replace(WEB, start_us=4_000), ports=(7, 80))
    found = converted(tmp_path, pcap(frames_of([*first[:-1], second[0], first[-1], *second[1:]])[:-1]))
    # The first frame is not the earliest one, which starts are counted from.
    assert [vector.start_us for vector in found] == [0, 1_000]


def test_a_clock_that_goes_back_far_or_leaps_is_a_line(tmp_path: Path) -> None:
    whole = packets_of(WEB)
    again = [replace(p, ports=(7, 80)) for p in whole]
    late = [replace(p, time_ns=p.time_ns + 20 * 10**9) for p in whole]
    back = (late[-1].time_ns - again[0].time_ns) / 1e9
    with pytest.raises(BadInput) as raised:
        converted(tmp_path, pcap(frames_of([*late, *again])))
    assert str(raised.value).endswith(
        f"frame {len(late) + 1} is {back:.6g} s earlier than one before: "
        "expected frames in the order of their times, up to 10 s; reordercap sorts them"
    )
    # A frame without a time before those of today.
    stray = (0, bytes(12) + b"\x08\x06" + bytes(28))
    today = [(time + 1_700_000_000 * 10**9, frame) for time, frame in frames_of(packets_of(WEB))]
    with pytest.raises(BadInput, match=r"frame 2 begins a connection 1\.968e\+04 days after the first frame"):
        converted(tmp_path, pcap([stray, *today]))


def kept_alive(for_us: int) -> list[Packet]:
    """A request, acknowledgements every two hours for so long, another request, an answer."""
    ends = Ends()
    at = ends.handshake()
    ends.data(at, INIT, 0, 100, 0)
    for late in range(7_200_000_000, for_us, 7_200_000_000):
        ends.send(at + late, INIT, ACK, 100, 0, 0)
    _, there = ends.data(at + for_us, INIT, 100, 50, 0)
    ends.data(there, ACC, 0, 10, 150)
    return in_order(ends.packets)


def test_what_readers_refuse_is_cut_and_counted(tmp_path: Path) -> None:
    limit = 1 << 40
    (vector,) = converted(tmp_path, pcap(frames_of(kept_alive(limit + 1))))
    assert [unit.wait_us for unit in vector.units[:3]] == [0, limit - 1, 1]
    (vector,) = converted(tmp_path, pcap(frames_of(kept_alive(limit - 1))))
    assert vector.units[1].wait_us == limit - 1
    target = tmp_path / "y.cvec"
    source = tmp_path / "y.pcap"
    source.write_bytes(pcap(frames_of(packets_of(WEB, near_us=200_000_000, far_us=101_000_000))))
    assert convert(source, target).as_dict()["beyond_limits"] == 1
    assert reading.read(target)[0].rtt_us == 600_000_000


def test_a_connection_silent_for_longer_than_any_keep_alive_is_left(tmp_path: Path) -> None:
    silence = 7_440 * 10**9
    whole = packets_of(WEB)
    cut = next(k for k, packet in enumerate(whole) if packet.payload == 90)
    gap = whole[cut].time_ns - whole[cut - 1].time_ns
    source = tmp_path / "x.pcap"
    for pause, units, beginnings in ((silence, 4, 0), (silence + 1, 2, 1)):
        parts = [*whole[:cut], *(replace(p, time_ns=p.time_ns + pause - gap) for p in whole[cut:])]
        source.write_bytes(pcap(frames_of(parts)))
        target = tmp_path / f"{pause}.cvec"
        counts = convert(source, target).as_dict()
        (vector,) = reading.read(target)
        assert len(sizes(vector)) == units
        assert (counts["unfinished"], counts["without_beginning"]) == (beginnings, beginnings)


jitter = st.lists(st.integers(0, 10**10), min_size=1, max_size=40)


@settings(max_examples=150, deadline=None)
@given(
    vectors=st.lists(st.tuples(sequential() | concurrent(), st.integers(0, 10**9)), min_size=1, max_size=4),
    near=st.integers(0, 10**5) | st.integers(0, 4 * 10**8),
    far=st.integers(1, 10**5),
    stretch=st.sampled_from([1, 1, 10**3, 10**5]),
    early=jitter,
    form=st.sampled_from(FORMATS),
)
def test_whatever_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    vectors: list[tuple[Vector, int]],
    near: int,
    far: int,
    stretch: int,
    early: list[int],
    form: str,
) -> None:
    """Any connections with any paths, stretched to years, and stamped early by up to the time that may fall."""
    tmp_path = tmp_path_factory.mktemp("any")
    packets: list[Packet] = []
    for number, (vector, start) in enumerate(vectors):
        packets += packets_of(replace(vector, start_us=start), near_us=near, far_us=far, ports=(1000 + number, 80))
    frames = frames_of([replace(p, time_ns=p.time_ns * stretch) for p in in_order(packets)])
    frames = [(max(time - early[i % len(early)], 0), frame) for i, (time, frame) in enumerate(frames)]
    (tmp_path / "x.pcapng").write_bytes(pcapng(frames))
    target = tmp_path / "x.cvec"
    try:
        counts = convert(tmp_path / "x.pcapng", target, form).as_dict()
    except BadInput as refused:
        # A path longer than connections are waited for, or a start beyond what the format holds.
        assert "without data" in str(refused) or "days after the first frame" in str(refused)
        assert list(tmp_path.iterdir()) == [tmp_path / "x.pcapng"]
        return
    found = reading.read(target)
    assert len(found) == counts["sequential"] + counts["concurrent"]
    assert sum(vector.bytes_from(INIT) for vector in found) == counts["initiator_bytes"]


def test_a_writer_that_takes_its_time_pauses_from_its_beginning(tmp_path: Path) -> None:
    """Players count from the writing of a unit: 2 MB in 2 s, a second, 1 kB, which is 3 s after the 2 MB began."""
    ends = Ends()
    at = ends.handshake()
    last, _ = paced(ends, at, INIT, 0, 2_000)
    again, there = ends.data(last + 1_001_000, INIT, 2_000_000, 1_000, 0)
    assert again - at == 3_000_000
    ends.data(there, ACC, 0, 10, 2_001_000)
    (vector,) = converted(tmp_path, pcap(frames_of(in_order(ends.packets))))
    assert [(u.side, u.wait_us, u.size_bytes) for u in vector.units[:3]] == [
        (INIT, 0, 2_000_000),
        (INIT, 3_000_000, 1_000),
        (ACC, 1, 10),
    ]


def test_each_end_of_a_concurrent_connection_pauses_from_its_beginning(tmp_path: Path) -> None:
    ends = Ends()
    at = ends.handshake()
    for side in (INIT, ACC):
        last, _ = paced(ends, at, side, 0, 2_000)
        _, there = ends.data(last + 1_001_000, side, 2_000_000, 1_000, 0)
        ends.send(there + side, side, FIN | ACK, 2_001_000, 0, 0)
    (vector,) = converted(tmp_path, pcap(frames_of(in_order(ends.packets))))
    assert vector.is_concurrent
    for side in (INIT, ACC):
        assert [(u.wait_us, u.size_bytes) for u in vector.units if u.side == side][:2][1] == (3_000_000, 1_000)


def test_what_is_over_waits_on_disk_for_a_connection_that_never_ends(tmp_path: Path) -> None:
    """A unit takes 64 B in memory, and 200 vectors of 60 units 768 kB: far less is needed with them than without."""
    turns = tuple(Unit(number % 2, 0 if number == 0 else 7, 10) for number in range(60))
    one = packets_of(replace(WEB, units=(*turns, Unit(ACC, 7, 0))))
    forever = packets_of(WEB, ports=(9, 9))[:6]
    each = frames_of([*one, replace(forever[-1], time_ns=one[-1].time_ns)])

    def peak(count: int) -> int:
        # One a minute and a half: what is over is known for four minutes.
        more = [(time + 90 * 10**9 * k, frame) for k in range(1, count + 1) for time, frame in each]
        source, target = tmp_path / f"{count}.pcap", tmp_path / f"{count}.cvec"
        source.write_bytes(pcap([*frames_of(forever), *more]))
        tracemalloc.start()
        try:
            counts = convert(source, target).as_dict()
            assert (counts["sequential"], counts["unfinished"]) == (count + 1, 1)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # What modules keep when they are first used is not of the connections.
    peak(9)
    assert peak(210) - peak(10) < 200 * 60 * 64 / 4


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    whole = packets_of(WEB)
    begins = [replace(p, ports=(1, 80)) for p in packets_of(WEB)[3:]]
    unanswered = [replace(whole[0], ports=(2, 80))]
    refused = [replace(whole[0], ports=(3, 80)), replace(whole[1], ports=(3, 80), flags=RST | ACK)]
    silent = [replace(p, ports=(4, 80)) for p in whole[:3]]
    no_synack = [replace(p, ports=(5, 80)) for p in whole if not p.flags & SYN or p.side == INIT]
    cut = [replace(p, ports=(6, 80)) for p in whole[:8]]
    packets = in_order([*whole, *begins, *unanswered, *refused, *silent, *no_synack, *cut])
    source, target = tmp_path / "x.pcap", tmp_path / "x.cvec"
    other = [(0, bytes(12) + b"\x08\x06" + bytes(28)), (0, frames_of(whole)[0][1][:40])]
    source.write_bytes(pcap([*other, *frames_of(packets)]))
    counts = convert(source, target).as_dict()
    assert counts["sequential"] == 2
    assert counts["unfinished"] == 1
    assert counts["without_beginning"] == 2
    assert counts["without_answer"] == 1
    assert counts["without_data"] == 2
    assert (counts["other_frames"], counts["unreadable_frames"]) == (1, 1)
    assert counts["frames"] == len(packets) + 2
    # The connection that goes on beyond the capture has no close: its lines end with a size.
    assert [lines.split()[-2] for lines in target.read_text().split("SEQ")[1:]] == ["t", "<"]


def test_a_port_that_is_used_again_is_another_connection(tmp_path: Path) -> None:
    first = packets_of(WEB)
    again = packets_of(replace(WEB, start_us=first[-1].time_ns // US + 1000), isn=(123, 456))
    found = converted(tmp_path, pcap(frames_of([*first, *again])))
    assert [vector.units for vector in found] == [WEB.units, WEB.units]


def test_a_reset_ends_a_connection(tmp_path: Path) -> None:
    ends = Ends()
    at = ends.handshake()
    sent, there = ends.data(at, INIT, 0, 100, 0)
    ends.send(sent + 40_000, INIT, RST, 100)
    ends.send(there, ACC, ACK | PSH, 0, 500, 100)
    (vector,) = converted(tmp_path, pcap(frames_of(in_order(ends.packets))))
    # It closes both ends; what arrives later belongs to nothing.
    assert [(unit.side, unit.wait_us, unit.size_bytes) for unit in vector.units] == [(INIT, 0, 100), (INIT, 40_000, 0)]


def test_only_connections_that_begin_in_a_network(tmp_path: Path) -> None:
    capture = pcap(frames_of(packets_of(WEB)))
    inside = ipaddress.ip_network("10.0.0.0/8")
    assert converted(tmp_path, capture, network=inside) == [WEB]
    with pytest.raises(BadInput, match="1 from elsewhere"):
        converted(tmp_path, capture, network=ipaddress.ip_network("192.168.0.0/16"))
    # A SYN three times is one connection, also if answered in between; another one is another.
    packets = packets_of(WEB)
    again = [replace(packets[0], time_ns=10**9 * k) for k in (3, 9)]
    other = replace(packets[0], time_ns=20 * 10**9, sequence=5)
    with pytest.raises(BadInput, match="2 from elsewhere"):
        three = pcap(frames_of(in_order([*packets[:3], *again, other])))
        converted(tmp_path, three, network=ipaddress.ip_network("192.168.0.0/16"))


def test_the_formats_are_those_of_ns_2() -> None:
    """A sequential and a concurrent connection, letter by letter: ns-2.35's parser reads these lines."""
    vector = replace(WEB, losses=(0.01, 0.0))
    lines = ["SEQ 0 2 3 3", "w 64000 32000", "r 80000", "l 0.010000 0.000000", "> 350", "t 51257", "< 7200"]
    assert write(vector, 3).split("\n")[:7] == lines
    assert write(vector, 3).split("\n")[7:] == ["t 2000000", "> 90", "t 9", "< 1", "t 3000000", ""]
    units = ["I 0 0 350", "A 0 51257 7200", "I 0 2000000 90", "A 0 9 1", "A 3000000 0 0", ""]
    assert write(vector, 3, "alternate").split("\n")[4:] == units
    assert write(PEERS, 1).split("\n")[0] == "CONC 0 2 2 1 1"
    concurrent = ["c> 222", "t> 62436302", "c> 16", "t> 725", "c< 726", "t< 600000", "c< 84", "t< 99000000", ""]
    assert write(PEERS, 1).split("\n")[4:] == concurrent


def test_flags_are_those_of_the_reader() -> None:
    from aqmlab.vectors import segments

    assert (segments.FIN, segments.SYN, segments.RST, segments.ACK) == (FIN, SYN, RST, ACK)
