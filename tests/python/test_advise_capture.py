"""`aqmlab advise --capture`: traffic of the link's own, cut into pieces, and what is said of it."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from aqmlab import engine
from aqmlab.advice import applications, candidates, captured, question, situation, words
from aqmlab.advice.captured import Answer
from aqmlab.cli import invoke
from aqmlab.errors import BadInput
from aqmlab.vectors import ACCEPTOR, INITIATOR, Unit
from captures import MAIL, PEERS, RTT_US, WEB, Packet, frames_of, in_order, packets_of, pcap

pytestmark = pytest.mark.usefixtures("compiled")

UNITS = (
    Unit(INITIATOR, 0, 350),
    Unit(ACCEPTOR, 30_000, 40_000),
    Unit(INITIATOR, 500_000, 90),
    Unit(ACCEPTOR, 20_000, 9_000),
    Unit(ACCEPTOR, 1_000_000, 0),
)


def connections(starts_s: list[float], units: tuple[Unit, ...] = UNITS) -> list[Packet]:
    packets: list[Packet] = []
    for number, start in enumerate(starts_s):
        vector = replace(WEB, start_us=round(start * 1e6), units=units)
        packets += packets_of(vector, ports=(2000 + number, 443))
    return in_order(packets)


def written(tmp_path: Path, packets: list[Packet], other: list[tuple[int, bytes]] | None = None) -> Path:
    """A capture; where no other frames are said, it ends with one at the end of its last piece of 24 s."""
    path = tmp_path / "home.pcap"
    frames = frames_of(packets)
    if other is None:
        first, last = frames[0][0], frames[-1][0]
        other = [udp(first + 24 * 10**9 * -(-(last - first) // (24 * 10**9)))]
    frames = sorted([*frames, *other])
    path.write_bytes(pcap(frames, snap=96))
    return path


def udp(time_ns: int) -> tuple[int, bytes]:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 128, 0, 0x4000, 64, 17, 0) + bytes([10, 0, 0, 1, 192, 168, 7, 9])
    return time_ns, bytes(12) + b"\x08\x00" + head + struct.pack("!HHHH", 5000, 443, 108, 0) + bytes(100)


def test_answers_of_a_vector_are_those_that_its_player_makes() -> None:
    rtt = RTT_US / 1e6
    first, second = captured._answers(replace(WEB, start_us=3_000_000, units=UNITS))
    # A round trip of handshake, one of request and answer, and what the server thinks.
    assert first == Answer(3.0, 0.03, pytest.approx(3 + rtt + 0.03 + rtt))
    # What the user thinks between the two is no part of the second.
    assert second == Answer(3.0, 0.02, pytest.approx(first.ends_s + 0.5 + 0.02 + rtt))
    # The first to speak is the server: its greeting answers nothing, and neither does what follows an answer.
    greeted = list(captured._answers(MAIL))
    assert [answer.thought_s for answer in greeted] == [1e-6]
    # Both at once: one answer, of the slower clock.
    (both,) = captured._answers(PEERS)
    assert both.thought_s == pytest.approx((600_000 + 99_000_000) / 1e6)
    # One that only sends has no answer.
    assert list(captured._answers(replace(WEB, units=(Unit(INITIATOR, 0, 10), Unit(INITIATOR, 5, 0))))) == []


def test_the_busiest_pieces_are_played_and_count_from_their_beginnings(tmp_path: Path) -> None:
    # Ten pieces of 24 s; the k-th has k connections, none across its end.
    starts = [24 * piece + 2 * number for piece in range(10) for number in range(piece)]
    found = captured.read(written(tmp_path, connections(starts)), None, 24.0)
    assert found.connections == 45 and len(found.pieces) == captured.FEWEST_PIECES
    each = 49_000
    assert [piece.down_bytes for piece in found.pieces] == [6 * each, 7 * each, 8 * each, 9 * each]
    assert found.down_bps == (6 * each * 8 / 24, 9 * each * 8 / 24)
    answers = captured.answers(found.pieces[0].vectors)
    # The capture begins with the first piece that has a connection, at 24 s.
    assert len(answers) == 12
    assert [answers[number, 0].begun_s for number in range(6)] == pytest.approx([0, 2, 4, 6, 8, 10])
    # A quarter of 24 pieces is six.
    starts = [24 * piece + 2 * number for piece in range(24) for number in range(1 + piece % 9)]
    assert len(captured.read(written(tmp_path, connections(starts)), None, 24.0).pieces) == 6


def test_what_a_capture_has_not_is_said(tmp_path: Path) -> None:
    packets = connections([0.0, 5.0, 30.0])
    late = [packet for packet in connections([2.0], UNITS) if packet.time_ns > 2.2e9]
    stranger = [replace(packet, ports=(9, 443)) for packet in late]
    path = written(tmp_path, [*packets, *stranger], [udp(n * 12 * 10**8) for n in range(40)])
    asked = question.read("20mbit", "5mbit", capture=path)
    found = asked.captured
    assert found is not None and (found.connections, found.unseen) == (3, 1)
    total = len(packets) + len(stranger) + 40
    assert found.other_frames == pytest.approx(40 / total)
    said = " ".join(words.captured(asked))
    assert "home.pcap: 3 TCP connections" in said and "in 2 pieces of 24 s" in said
    assert "little for the link" in said
    assert f"Not played: {4000 / total:.0f} % of its frames, which are not TCP" in said
    assert "and 1 connection that had begun before" in said
    # All that the round trips were.
    assert asked.rtt_s == (0.08, 0.08) and asked.own_rtt
    assert not question.read("20mbit", "5mbit", "10ms..30ms", capture=path).own_rtt
    # Those of others are left out: 10.0.0.1 opened all.
    with pytest.raises(BadInput, match="3 from elsewhere"):
        question.read("20mbit", "5mbit", capture=path, begun_in="172.16.0.0/12")


def test_losses_of_the_capture_are_not_played_but_said(tmp_path: Path) -> None:
    sent = connections([0.0, 1.0])
    data = [packet for packet in sent if packet.side == ACCEPTOR and packet.payload]
    again = [replace(packet, time_ns=packet.time_ns + 300_000_000) for packet in data[3:6]]
    asked = question.read("20mbit", "5mbit", capture=written(tmp_path, in_order([*sent, *again])))
    assert asked.captured is not None and asked.captured.lost[ACCEPTOR] > 0.01
    said = " ".join(words.captured(asked))
    assert "were lost on the way down" in said and "whether the line itself loses packets is not known" in said
    (block, *_) = situation.scenario(asked, situation.draw(asked, 1), candidates.of("linux", "dsl", 0.1)[0]).scenario[
        "traffic"
    ]
    assert block["kind"] == "tmix" and block["loss"] is False and block["rtt"] == "vectors"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"users": 3}, "--homes, --users, --mix, --capture: expected one of them"),
        ({"begun_in": "home"}, "--from home: expected a network such as 192.168.0.0/16"),
        ({"capture": None, "begun_in": "10.0.0.0/8"}, "--from 10.0.0.0/8: expected with --capture"),
    ],
)
def test_bad_words_are_said_in_a_line(tmp_path: Path, options: dict[str, object], said: str) -> None:
    path = written(tmp_path, connections([0.0]))
    with pytest.raises(BadInput, match=said):
        question.read("20mbit", "5mbit", **{"capture": path, **options})  # type: ignore[arg-type]


def test_a_capture_without_tcp_ends_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [], [udp(n) for n in range(5)])
    assert invoke(["advise", "--down", "20mbit", "--up", "5mbit", "--capture", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "expected a TCP connection with its SYN and data, found 5 frames, 0 TCP" in error
    assert invoke(["advise", "--down", "20mbit", "--up", "5mbit", "--capture", str(tmp_path / "none.pcap")]) == 2
    assert "none.pcap: no such file" in capsys.readouterr().err
    # Connections on which nobody answers.
    path = written(tmp_path, connections([0.0], (Unit(INITIATOR, 0, 5000), Unit(INITIATOR, 5, 0))))
    assert invoke(["advise", "--down", "20mbit", "--up", "5mbit", "--capture", str(path)]) == 2
    assert "one end waits for the other's data, found none" in capsys.readouterr().err


def test_what_is_shorter_than_a_run_is_not_spread_over_one(tmp_path: Path) -> None:
    short = written(tmp_path, connections([0.0, 5.0]), [])
    with pytest.raises(BadInput, match=r"home\.pcap: 6\.\d+ s long: expected 24 s or more"):
        question.read("20mbit", "5mbit", capture=short)
    # What begins in a piece that the capture ends in is left out.
    asked = question.read("20mbit", "5mbit", capture=written(tmp_path, connections([0.0, 5.0, 30.0]), []))
    assert asked.captured is not None and len(asked.captured.pieces) == 1
    assert asked.captured.pieces[0].down_bytes == 2 * 49_000
    assert " in 1 piece of 24 s" in " ".join(words.captured(asked))


def test_answers_are_in_time_by_what_the_network_took(tmp_path: Path) -> None:
    # The server thinks longer than the two seconds, which is not the network's; the second begins in the warm-up.
    slow = (Unit(INITIATOR, 0, 350), Unit(ACCEPTOR, 3_000_000, 20_000), Unit(ACCEPTOR, 5, 0))
    path = written(tmp_path, connections([0.0, 6.0, 8.0], slow))
    asked = question.read("50mbit", "10mbit", capture=path)
    drawn = situation.draw(asked, 0)
    assert drawn.piece is not None
    today = candidates.of("linux", "ethernet", 0.1)[0]

    def row(down: float) -> applications.Row:
        other = replace(asked, down_bps=down, up_bps=min(down, 1e7))
        resolved = situation.scenario(other, drawn, today)
        folder = tmp_path / f"{down:g}"
        folder.mkdir()
        summary = engine.simulate(resolved, folder)
        return applications.of_run(folder, summary, resolved.scenario["traffic"], drawn.piece)

    fast = row(5e7)
    assert fast["answers_in_2s"] == 1.0
    # 40 kB in 20 s: all that the two bring, in the measured window.
    assert fast["down_bps"] == pytest.approx(2 * 20_000 * 8 / 20)
    assert applications.score(replace(asked, weights=dict.fromkeys(asked.weights, 0.0) | {"web": 1.0}), fast) == 1.0
    # 20 kB take more than two seconds at 64 kb/s, of which a call has its part.
    assert row(2.56e5 / 4)["answers_in_2s"] == 0.0


def test_own_traffic_is_advised_and_lies_beside_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = (Unit(INITIATOR, 0, 350), Unit(ACCEPTOR, 30_000, 400_000), Unit(ACCEPTOR, 5, 0))
    path = written(tmp_path, connections([float(number) for number in range(20)], large))
    words_of = ["advise", "--down", "4mbit", "--up", "1mbit", "--capture", str(path), "--access", "docsis"]
    out = tmp_path / "mine"
    assert invoke([*words_of, "--on", "openwrt", "--rounds", "2", "--jobs", "1", "-o", str(out)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "home.pcap: 20 TCP connections" in shown and "answers within 2 s, %" in shown
    numbers = json.loads((out / "advice.json").read_text())
    assert numbers["link"]["capture"]["connections"] == 20
    figures = next(iter(numbers["candidates"].values()))["figures"]
    assert set(figures) == {"calls_mos", "answers_in_2s", "game_p99_s", "down_bps", "up_bps"}
    # The answers fill the queue now and then: a call that has a queue of its own is spared what it waits today.
    mos = {name: one["figures"]["calls_mos"]["value"] for name, one in numbers["candidates"].items()}
    assert mos["fq_codel"] > mos["fifo, as today"] + 0.3, mos
    # What lies beside it is the traffic that was played, by name alone, and can be run again.
    for name in ("today.toml", "recommended.toml"):
        resolved = engine.resolve((out / name).read_text(), str(out / name))
        assert resolved.scenario["traffic"][0]["vectors"]["file"] == "traffic.cvec"
    folder = tmp_path / "again"
    folder.mkdir()
    engine.simulate(engine.resolve((out / "today.toml").read_text(), str(out / "today.toml")), folder)
    assert pl.read_parquet(folder / "exchanges.parquet").filter(pl.col("traffic") == 0).height > 0
    assert "Answers: at most two seconds more" in (out / "report.html").read_text()


def test_questions_without_a_capture_are_drawn_as_ever() -> None:
    asked = question.read("20mbit", "4mbit")
    assert situation.draw(asked, 3).piece is None and words.captured(asked) == []
    found = [one.key for one in applications.figures(asked)]
    assert found == ["calls_mos", "pages_in_2s", "game_p99_s", "down_bps", "up_bps"]
