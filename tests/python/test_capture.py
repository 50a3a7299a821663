"""Captures of the queue: packets that were made up, with figures that are worked out beside them by hand."""

import json
import struct
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest

from aqmlab import cli
from aqmlab.capture.connections import _Stream
from aqmlab.capture.measure import measure
from aqmlab.errors import BadInput, Doubt
from aqmlab.vectors import ACCEPTOR, INITIATOR, convert
from aqmlab.vectors.capture import frames, interfaces
from captures import ACK, FIN, PSH, SYN, Packet, block, ip_packet

FORWARD, REVERSE = 0, 1
BEFORE, DROPPED, AFTER = "before the queue", "dropped", "after the queue"
MS, US = 1_000_000, 1_000
GET = b"GET /3000 HTTP/1.1\r\n"

Seen = tuple[int, int, str, bytes, str]
"""When (nanoseconds), which way, where, what, and what is said of it."""


def option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def pcapng(
    seen: Iterable[Seen],
    places: tuple[str, ...] = (BEFORE, DROPPED, AFTER),
    snap: int = 128,
    ways: tuple[str, ...] = ("forward", "reverse"),
    statistics: Iterable[tuple[int, dict[int, int]]] = (),
) -> bytes:
    """A capture as the test bed writes it, with these counts of its interfaces by their codes."""
    out = bytearray(block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    names = [f"{way}, {place}" for way in ways for place in places]
    for name in names:
        body = struct.pack("<HHI", 101, 0, snap) + option(2, name.encode()) + option(9, b"\x09") + option(0, b"")
        out += block("<", 1, body)
    for time, way, place, packet, comment in sorted(seen, key=lambda one: one[0]):
        if place not in places:
            continue
        number = names.index(f"{('forward', 'reverse')[way]}, {place}")
        kept = packet[:snap]
        body = struct.pack("<IIIII", number, time >> 32, time & 0xFFFF_FFFF, len(kept), len(packet))
        body += kept + bytes(-len(kept) % 4)
        if comment:
            body += option(1, comment.encode()) + option(0, b"")
        out += block("<", 6, body)
    for number, counts in statistics:
        said = b"".join(option(code, struct.pack("<Q", count)) for code, count in counts.items())
        out += block("<", 5, struct.pack("<III", number, 0, 0) + said + option(0, b""))
    return bytes(out)


class Made:
    """Packets of one connection on their way through the queues, a millisecond each, clients on the right."""

    def __init__(self, version: int = 4) -> None:
        self.version = version
        self.seen: list[Seen] = []
        self.sent = [0, 0]
        self.identification = 0

    def packet(self, side: int, flags: int, begin: int = 0, size: int = 0, acked: int = 0, text: bytes = b"") -> bytes:
        """A segment of the client (`INITIATOR`) or the server, of data from position `begin` on."""
        first = (4_294_967_000, 7)
        sequence = (first[side] + (0 if flags & SYN else 1 + begin)) % 2**32
        made = bytearray(
            ip_packet(Packet(0, side, flags, sequence, (first[1 - side] + 1 + acked) % 2**32, size), self.version)
        )
        made[len(made) - size : len(made) - size + len(text)] = text
        self.identification += 1
        if self.version == 4:
            made[4:6] = struct.pack("!H", self.identification)
        return bytes(made)

    def passes(self, at: int, packet: bytes, side: int, wait: int = 0, sends: int = MS, comment: str = "") -> None:
        """It comes at `at`, waits, is sent, and is there."""
        way = REVERSE if side == INITIATOR else FORWARD
        self.seen.append((at, way, BEFORE, packet, ""))
        if comment:
            changed = bytearray(packet)
            if self.version == 4:
                changed[1] |= 3
                changed[10:12] = b"\x12\x34"
            else:
                changed[1] |= 0x30
            packet = bytes(changed)
        self.seen.append((at + wait + sends, way, AFTER, packet, comment))

    def is_lost(self, at: int, packet: bytes, side: int, reason: str, wait: int = 0) -> None:
        way = REVERSE if side == INITIATOR else FORWARD
        self.seen.append((at, way, BEFORE, packet, ""))
        self.seen.append((at + wait, way, DROPPED, packet, f"dropped: {reason}"))


def conversation(version: int = 4) -> Made:
    """Two exchanges. The client is 20 us from the queue and back, the server 40 ms.

    Of the first response of 3000 bytes the second segment is lost and comes again; the second, of 500 bytes, ends with
    the server's FIN.
    """
    made = Made(version)
    client, server = INITIATOR, ACCEPTOR
    made.passes(0, made.packet(client, SYN), client)
    made.passes(41 * MS, made.packet(server, SYN | ACK), server)
    made.passes(42 * MS + 20 * US, made.packet(client, ACK), client)
    made.passes(42 * MS + 30 * US, made.packet(client, ACK | PSH, 0, 300, 0, GET), client, wait=990 * US)
    # The three come at once; the second is dropped from within the queue, the third waits for the first.
    made.passes(90 * MS, made.packet(server, ACK, 0, 1000, 300), server)
    made.is_lost(90 * MS, made.packet(server, ACK, 1000, 1000, 300), server, "early (pie)", wait=500 * US)
    made.passes(90 * MS, made.packet(server, ACK, 2000, 1000, 300), server, wait=MS, comment="marked: early (pie)")
    made.passes(91 * MS + 20 * US, made.packet(client, ACK, 300, 0, 1000), client)
    made.passes(200 * MS, made.packet(server, ACK, 1000, 1000, 300), server)
    made.passes(201 * MS + 20 * US, made.packet(client, ACK, 300, 0, 3000), client)
    # A pause, and a request that says nothing of its response.
    made.passes(500 * MS, made.packet(client, ACK | PSH, 300, 100, 3000), client)
    made.passes(541 * MS, made.packet(server, ACK | PSH, 3000, 500, 400), server)
    made.passes(550 * MS, made.packet(server, ACK | FIN, 3500, 0, 400), server)
    made.passes(551 * MS + 20 * US, made.packet(client, ACK | FIN, 400, 0, 3501), client)
    return made


def written(tmp_path: Path, seen: Iterable[Seen], **options: object) -> Path:
    path = tmp_path / "packets.pcapng"
    path.write_bytes(pcapng(seen, **options))  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("version", [4, 6])
def test_exchanges_are_from_the_first_byte_asked_to_the_last_byte_missing(tmp_path: Path, version: int) -> None:
    found = measure(written(tmp_path, conversation(version).seen))
    first, second = found.exchanges()
    assert (first.way, first.start_ns, first.end_ns) == (FORWARD, 0, 201 * MS)
    assert (first.setup_ns, first.missing_ns) == (42 * MS + 20 * US, 20 * US)
    assert first.response_time_s == pytest.approx(0.20102)
    assert (first.request_bytes, first.response_bytes) == (300, 3000)
    # Its FIN came eight milliseconds after its last byte.
    assert (second.start_ns, second.setup_ns, second.end_ns) == (500 * MS, 0, 542 * MS)
    assert (second.request_bytes, second.response_bytes) == (100, 500)
    assert found.connections.unfinished == 0


@pytest.mark.parametrize("version", [4, 6])
def test_queues_are_counted_and_waits_matched(tmp_path: Path, version: int) -> None:
    said = measure(written(tmp_path, conversation(version).seen)).as_dict()
    forward, reverse = said["forward"], said["reverse"]
    assert [forward[f"{what}_packets"] for what in ("offered", "delivered", "dropped", "marked")] == [7, 6, 1, 1]
    assert (forward["dropped"], forward["marked"]) == ({"early": 1}, {"early": 1})
    # One of six waited a millisecond; in reverse one of eight, for 10 us less.
    assert forward["queue_delay_mean_s"] == pytest.approx(1e-3 / 6)
    assert reverse["queue_delay_mean_s"] == pytest.approx(990e-6 / 7)
    # Quantiles are waits and times that occurred: of six waits the sixth, of two exchanges the first.
    assert forward["queue_delay_p99_s"] == pytest.approx(1e-3)
    said_of = said["exchanges"]["at_queue_s"]
    assert said_of["p50"] == said_of["p10"] < said_of["p75"] == said_of["p99"]
    assert (forward["retransmitted_segments"], reverse["retransmitted_segments"]) == (1, 0)
    assert (forward["unmatched_packets"], reverse["unmatched_packets"]) == (0, 0)
    assert (reverse["offered_packets"], reverse["delivered_packets"], reverse["dropped_packets"]) == (7, 7, 0)


def test_a_window_counts_what_happens_in_it(tmp_path: Path) -> None:
    found = measure(written(tmp_path, conversation().seen), 0.15, 0.52)
    said = found.as_dict()
    assert (said["forward"]["offered_packets"], said["forward"]["dropped_packets"]) == (1, 0)
    assert [exchange.response_bytes for exchange in found.exchanges()] == [3000]
    size = 20 + 20 + 1000
    assert said["forward"]["throughput_bps"] == pytest.approx(8 * size / 0.37)


def test_what_takes_room_and_comes_again_was_sent_again(tmp_path: Path) -> None:
    made = conversation()
    client, server = INITIATOR, ACCEPTOR
    for at in (560 * MS, 570 * MS):
        made.passes(at, made.packet(server, ACK | FIN, 3500, 0, 400), server)
    made.passes(565 * MS, made.packet(client, ACK, 401, 0, 3501), client)
    made.passes(580 * MS, made.packet(client, SYN), client)
    said = measure(written(tmp_path, made.seen)).as_dict()
    # A segment and two FINs; an acknowledgement is none, however often, and a SYN is.
    assert [said[way]["retransmitted_segments"] for way in ("forward", "reverse")] == [3, 1]
    assert said["exchanges"]["completed"] == 2


def test_a_transfer_is_all_that_the_client_sends(tmp_path: Path) -> None:
    made = Made()
    client, server = INITIATOR, ACCEPTOR
    made.passes(0, made.packet(client, SYN), client)
    made.passes(11 * MS, made.packet(server, SYN | ACK), server)
    made.passes(12 * MS + 8 * MS, made.packet(client, ACK), client)
    made.passes(21 * MS, made.packet(client, ACK, 0, 1400), client)
    made.passes(22 * MS, made.packet(client, ACK | FIN, 1400, 600), client)
    (only,) = measure(written(tmp_path, made.seen)).exchanges()
    assert (only.way, only.start_ns, only.end_ns, only.response_bytes) == (REVERSE, 0, 23 * MS, 2000)
    # Half of 8 ms to the client, half of 10 ms to the server.
    assert (only.missing_ns, only.completed_ns) == (9 * MS, 28 * MS)


@pytest.mark.parametrize("places", [(BEFORE, DROPPED), (DROPPED, AFTER)])
def test_one_side_tells_what_passed_there(tmp_path: Path, places: tuple[str, ...]) -> None:
    found = measure(written(tmp_path, conversation().seen, places=places))
    said = found.as_dict()["forward"]
    assert (said["queue_delay_mean_s"], said["dropped"]) == (None, {"early": 1})
    assert (said["offered_packets"], said["delivered_packets"]) == ((7, None) if BEFORE in places else (None, 6))
    # Before the queue the lost segment was there, with the other two; after it the SYN is a millisecond later.
    first, second = found.exchanges()
    assert (first.start_ns, first.end_ns) == ((0, 90 * MS) if BEFORE in places else (MS, 201 * MS))
    assert (second.request_bytes, second.response_bytes) == (100, 500)


def test_vectors_take_each_packet_once(tmp_path: Path) -> None:
    path = written(tmp_path, conversation().seen)
    found = convert(path, tmp_path / "out.cvec")
    assert (found.counts["sequential"], found.counts["initiator_bytes"], found.counts["acceptor_bytes"]) == (
        1,
        400,
        3500,
    )
    assert found.counts["tcp_segments"] == 14


def in_sections(tmp_path: Path, *sections: bytes) -> Path:
    path = tmp_path / "packets.pcapng"
    path.write_bytes(b"".join(sections))
    return path


def test_a_capture_goes_on_in_a_second_section(tmp_path: Path) -> None:
    seen = conversation().seen
    whole = measure(written(tmp_path, seen)).as_dict()
    parts = [one for one in seen if one[0] < 300 * MS], [one for one in seen if one[0] >= 300 * MS]
    assert measure(in_sections(tmp_path, *map(pcapng, parts))).as_dict() == whole


@pytest.mark.parametrize("read", [measure, lambda path: convert(path, path.with_suffix(".cvec"))])
def test_captures_of_the_same_time_are_not_taken_for_one(tmp_path: Path, read) -> None:  # type: ignore[no-untyped-def]
    once = pcapng(conversation().seen)
    with pytest.raises(BadInput, match=r"a section that begins at 0 s after one from 0 to 0\.\d+ s: .* after 28 whole"):
        read(in_sections(tmp_path, once, once))
    apart = [pcapng(conversation().seen, places=places) for places in ((AFTER,), (BEFORE, DROPPED))]
    with pytest.raises(BadInput, match="expected a capture, not several of the same time"):
        read(in_sections(tmp_path, *apart))


def test_an_interface_that_is_described_late_is_refused(tmp_path: Path) -> None:
    later = [(at + 10**9, *rest) for at, *rest in conversation().seen]
    path = in_sections(tmp_path, pcapng(conversation().seen, places=(BEFORE,)), pcapng(later, places=(AFTER,)))
    with pytest.raises(BadInput, match="packet 15 is of interface 'reverse, after the queue', which stands after the"):
        measure(path)


def test_packets_that_a_file_says_are_missing_are_told(tmp_path: Path) -> None:
    """The last statistics of an interface count, and those of each section; all ones are no count."""
    seen = conversation().seen
    parts = [one for one in seen if one[0] < 300 * MS], [one for one in seen if one[0] >= 300 * MS]
    first = pcapng(
        parts[0], statistics=[(0, {4: 9, 5: 3}), (0, {4: 20, 5: 5, 7: 2}), (1, {5: 2**64 - 1}), (77, {5: 9})]
    )
    path = in_sections(tmp_path, first, pcapng(parts[1], statistics=[(0, {4: 9, 5: 1000})]))
    with pytest.warns(Doubt, match=r"says that packets are missing from it: 1,007$"):
        assert measure(path).packets == 28


@pytest.mark.parametrize(
    ("captured", "problem"),
    [
        ({"seen": 28, "missed": 0, "error": None}, ""),
        ({"seen": 30, "missed": 2, "error": None}, ": 2 of 30 packets are missing, as the run's summary says\n"),
        ({"seen": 30, "missed": 2, "error": "no room"}, "summary says, and the file ends early: no room\n"),
        ({"links": {"core": {"forward": {"seen": 9, "missed": 1, "error": None}}}}, ": 1 of 9 packets are missing"),
        ({"links": {"home": {"forward": {"seen": 9, "missed": 1, "error": None}}}}, ""),
    ],
)
def test_packets_that_a_run_says_are_missing_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], captured: dict[str, object], problem: str
) -> None:
    path, folder = tmp_path / "packets.core.forward.pcapng", run_folder(tmp_path)
    path.write_bytes(pcapng(conversation().seen))
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({**summary, "live": {"capture": captured}}))
    assert cli.invoke(["capture", str(path), "--against", str(folder)]) == 0
    error = capsys.readouterr().err
    assert problem in error and bool(error) == bool(problem)


def test_names_and_comments_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, conversation().seen)
    assert interfaces(path)[:2] == ["forward, before the queue", "forward, dropped"]
    said = [(frame.interface, frame.comment) for frame in frames(path) if frame.comment]
    assert said == [("forward, dropped", "dropped: early (pie)"), ("forward, after the queue", "marked: early (pie)")]


def run_folder(tmp_path: Path, offered: int = 7) -> Path:
    """A run that recorded what `conversation` shows, but for `offered`."""
    folder = tmp_path / "run"
    folder.mkdir()
    facts = {
        "offered_packets": offered,
        "delivered_packets": 6,
        "dropped_packets": 1,
        "marked_packets": 1,
        "throughput_bps": 8 * (6 * 40 + 3500) / 0.6,
        "queue_delay_mean_s": 1e-3 / 6,
    }
    back = {
        "offered_packets": 7,
        "delivered_packets": 7,
        "dropped_packets": 0,
        "marked_packets": 0,
        "throughput_bps": 8 * (7 * 40 + 400) / 0.6,
        "queue_delay_mean_s": 990e-6 / 7,
    }
    summary = {
        "forward": facts,
        "reverse": back,
        "exchanges": {"completed": 2},
        "tcp": {"retransmitted_segments": 1, "lost_before_link_packets": 0},
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    manifest = {"kind": "run", "seed": 1, "digest": "x", "scenario_digest": "y", "version": "0", "self_checks": []}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "scenario.toml").write_text(
        'name = "x"\nduration = "600ms"\nwarmup = "0s"\ncooldown = "0s"\ntraffic = []\n'
    )
    rows = {
        "start_s": [0.0, 0.5],
        "response_time_s": [0.20102 + 50e-6, 0.04202 + 70e-6],
        "setup_s": [0.042, 0.0],
        "request_bytes": [300, 100],
        "response_bytes": [3000, 500],
        "traffic": [0, 0],
        "source": [0, 0],
        "direction": [0, 0],
    }
    pl.DataFrame(rows).write_parquet(folder / "exchanges.parquet")
    return folder


def test_a_run_is_checked_against_its_packets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, conversation().seen)
    folder = run_folder(tmp_path)
    assert cli.invoke(["capture", str(path), "--against", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["against"]
    assert all(check["agrees"] for check in said["checks"]), said
    times = said["response_times"]["forward"]
    assert (times["recorded"], times["captured"], times["paired"]) == (2, 2, 2)
    # The lesser of two differences, 50 and 70 us.
    assert times["difference_s"]["p50"] == pytest.approx(50e-6, abs=1e-9)
    assert cli.invoke(["capture", str(path), "--against", str(folder)]) == 0
    assert "2 of 2 exchanges found" in " ".join(capsys.readouterr().out.split())


def test_a_file_of_one_way_of_a_link_is_checked_against_that_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Packets of one way only: what takes both, an exchange, is neither told nor compared."""
    forward = [seen for seen in conversation().seen if seen[1] == FORWARD]
    path = tmp_path / "packets.core.forward.pcapng"
    path.write_bytes(pcapng(forward, ways=("forward",)))
    folder = run_folder(tmp_path)
    summary = json.loads((folder / "summary.json").read_text())
    others = {**summary["forward"], "offered_packets": 1}
    summary["links"] = {
        "home": {"forward": others, "reverse": others},
        "core": {"forward": summary["forward"], "reverse": summary["reverse"]},
    }
    summary["forward"] = others
    (folder / "summary.json").write_text(json.dumps(summary))
    with (folder / "scenario.toml").open("a") as scenario:
        scenario.write('[links.home]\nrate = "20mbit"\n[links.core]\nrate = "10mbit"\n')
    assert cli.invoke(["capture", str(path), "--against", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert "reverse" not in said and said["exchanges"] is None
    assert len(said["against"]["checks"]) == 6 and all(check["agrees"] for check in said["against"]["checks"])
    assert said["against"]["response_times"] == {}
    assert cli.invoke(["capture", str(path), "--against", str(folder)]) == 0
    assert "reverse" not in capsys.readouterr().out
    # Against the figures of the other link it differs, and a name that tells no link is refused.
    other = path.rename(tmp_path / "packets.home.forward.pcapng")
    assert cli.invoke(["capture", str(other), "--against", str(folder)]) == 1
    nameless = other.rename(tmp_path / "mine.pcapng")
    capsys.readouterr()
    assert cli.invoke(["capture", str(nameless), "--against", str(folder)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "packets.LINK.forward.pcapng, with LINK one of home, core" in error


def checks(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    scenario: str = "",
    marked: int = 1,
    lost: int = 0,
    end: int = 600,
) -> dict[str, dict[str, object]]:
    """What is said of the conversation in a window from 0 ms to `end`, by title."""
    path, folder = written(tmp_path, conversation().seen), run_folder(tmp_path)
    summary = json.loads((folder / "summary.json").read_text())
    summary["forward"]["marked_packets"] = marked
    summary["tcp"]["lost_before_link_packets"] = lost
    (folder / "summary.json").write_text(json.dumps(summary))
    text = (folder / "scenario.toml").read_text().replace("600ms", f"{end}ms")
    (folder / "scenario.toml").write_text(text + scenario)
    cli.invoke(["capture", str(path), "--against", str(folder), "--json"])
    return {check["title"]: check for check in json.loads(capsys.readouterr().out)["against"]["checks"]}


def test_a_mark_of_a_packet_that_waits_at_an_edge_counts_on_either_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The packet that is marked comes at 90 ms and leaves at 92 ms."""
    title = "marked packets, forward"
    for end, marked, agrees in ((600, 1, True), (600, 2, False), (91, 1, True), (91, 0, True), (91, 2, False)):
        folder = tmp_path / f"{end}-{marked}"
        folder.mkdir()
        said = checks(folder, capsys, marked=marked, end=end)[title]
        assert (said["least"], said["agrees"]) == (int(end == 91), agrees)


def test_what_packets_do_not_tell_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outage = '[link]\nrate = "10mbit"\n[[link.schedule]]\nat = "100ms"\noutage = "50ms"\n'
    waits, again = "mean queueing delay, forward", "retransmitted segments"
    for name, options, told in (
        ("as it is", {}, [True, True]),
        ("down", {"scenario": outage}, [None, True]),
        ("slower", {"scenario": outage.replace("50ms", "0s")}, [True, True]),
        ("lost", {"lost": 3}, [True, None]),
    ):
        folder = tmp_path / name
        folder.mkdir()
        said = checks(folder, capsys, **options)  # type: ignore[arg-type]
        assert [said[waits]["agrees"], said[again]["agrees"]] == told, name


def test_what_is_held_back_was_not_sent_again(tmp_path: Path) -> None:
    """The second of three segments comes after the third, and once more; then one that has new data as well."""
    made = Made()
    client, server = INITIATOR, ACCEPTOR
    made.passes(0, made.packet(client, SYN), client)
    made.passes(11 * MS, made.packet(server, SYN | ACK), server)
    made.passes(12 * MS, made.packet(client, ACK), client)
    made.passes(13 * MS, made.packet(client, ACK | PSH, 0, 300, 0, GET), client)
    for at, begin in ((20, 0), (22, 2000), (25, 1000)):
        made.passes(at * MS, made.packet(server, ACK, begin, 1000, 300), server)
    assert measure(written(tmp_path, made.seen)).as_dict()["forward"]["retransmitted_segments"] == 0
    made.passes(30 * MS, made.packet(server, ACK, 1000, 1000, 300), server)
    made.passes(32 * MS, made.packet(server, ACK, 2500, 1000, 300), server)
    assert measure(written(tmp_path, made.seen)).as_dict()["forward"]["retransmitted_segments"] == 2


@pytest.mark.parametrize("kept", [0, 1, 19])
def test_a_packet_without_its_header_is_left_out(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "packets.pcapng"
    path.write_bytes(pcapng(conversation().seen[:5], snap=kept))
    with pytest.warns(Doubt, match="5 of 5 packets have less than their IP header captured and are left out"):
        found = measure(path)
    assert found.connections.counts["unreadable"] == 5
    assert found.as_dict()["forward"]["offered_packets"] is None


@pytest.mark.parametrize(("option", "time"), [("--from", "1e300s"), ("--from", "1e400s"), ("--to", "1e400s")])
def test_times_are_finite(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, time: str) -> None:
    path = written(tmp_path, conversation().seen)
    assert cli.invoke(["capture", str(path), option, time]) == 2
    assert capsys.readouterr().err == f"aqmlab: {option} {time}: expected a finite time such as 10s\n"


def test_gaps_are_bounded() -> None:
    stream = _Stream(0)
    for begin in range(1, 2000, 2):
        assert not stream.comes(begin + 1, begin + 2)
    # The last gaps are known, and of the first nothing is.
    assert [stream.comes(begin, begin + 1) for begin in (1999, 1999, 1)] == [False, True, True]


def test_what_one_side_does_not_tell_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was dropped is not seen after the queue, and not at the hosts where it was before."""
    folder = run_folder(tmp_path)
    for places, told in (((BEFORE, DROPPED), [None, True]), ((DROPPED, AFTER), [True, None])):
        path = written(tmp_path, conversation().seen, places=places)
        assert cli.invoke(["capture", str(path), "--against", str(folder), "--json"]) == 0
        said = {check["title"]: check["agrees"] for check in json.loads(capsys.readouterr().out)["against"]["checks"]}
        assert [said[title] for title in ("exchanges", "retransmitted segments")] == told
        assert cli.invoke(["capture", str(path), "--against", str(folder)]) == 0
        assert "not told" in capsys.readouterr().out


@pytest.mark.parametrize(("end", "found", "recorded", "agrees"), [(540, 1, 2, True), (520, 1, 2, False)])
def test_an_exchange_that_ends_at_an_edge_counts_on_either_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], end: int, found: int, recorded: int, agrees: bool
) -> None:
    """The second ends at 542 ms by the capture."""
    said = checks(tmp_path, capsys, end=end)["exchanges"]
    assert (said["captured"], said["recorded"], said["agrees"]) == (found, recorded, agrees)


def test_a_segment_that_is_sent_again_at_an_edge_counts_on_either_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It comes at 200 ms from a server that is 40 ms away."""
    for end, agrees in ((170, True), (150, False)):
        folder = tmp_path / str(end)
        folder.mkdir()
        said = checks(folder, capsys, end=end)["retransmitted segments"]
        assert (said["captured"], said["recorded"], said["agrees"]) == (0, 1, agrees)


def test_a_capture_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "packets.pcapng"
    path.write_bytes(pcapng(conversation().seen)[:-3])
    with pytest.warns(Doubt, match=r"cut off at byte \d+: expected 3 more of a block, after 27 whole packets, which"):
        assert measure(path).packets == 27


def test_a_figure_that_the_packets_do_not_bear_out_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, conversation().seen)
    assert cli.invoke(["capture", str(path), "--against", str(run_folder(tmp_path, offered=8))]) == 1
    assert "differs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "cut off at byte 0"),
        (pcapng([], places=("somewhere",)), "expected a capture of the queue"),
        (pcapng([]), "expected packets, found none"),
        (pcapng(conversation().seen[:1])[:-3], "cut off"),
    ],
)
def test_what_is_no_capture_of_a_queue_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "packets.pcapng"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=problem):
        measure(path)
