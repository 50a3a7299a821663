"""`aqmlab vectors` as a command, what it refuses, and what `explain` tells of its files."""

import json
import struct
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aqmlab import cli
from aqmlab.errors import BadInput, Doubt
from aqmlab.vectors import convert, write
from captures import PEERS, WEB, block, converted, frames_of, many, packets_of, pcap, pcapng

pytestmark = pytest.mark.usefixtures("compiled")

GOOD = pcap(frames_of(packets_of(WEB)))
GOOD_NG = pcapng(frames_of(packets_of(WEB)))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "cut off at byte 0: expected 4 more of its first bytes"),
        (b"not a capture", "expected a capture in pcap or pcapng, begins with 6e 6f 74 20"),
        (b"\x1f\x8b\x08\x08 compressed", "begins with 1f 8b 08 08: gunzip it first"),
        (GOOD[:20], "cut off at byte 20: expected 4 more of the file header"),
        (GOOD[: 24 + 7], "expected 9 more of a packet header, after 0 whole packets"),
        (pcap(frames_of(packets_of(WEB)), link=105), "link type 105: expected Ethernet"),
        (pcapng(frames_of(packets_of(WEB)), link=105), "link type 105: expected Ethernet"),
        (GOOD[:4] + b"\x01" + GOOD[5:], "pcap version 1: expected version 2"),
        (GOOD[:32] + b"\xff\xff\xff\xff" + GOOD[36:], "a packet of 4294967295 bytes: expected at most"),
        (GOOD_NG[:28] + block("<", 3, bytes(8)), "a packet without a time"),
        (GOOD_NG[:28] + block("<", 6, bytes(20)), "interface 0: expected one of 0"),
        (GOOD_NG[:28] + block("<", 6, bytes(4)), "a block of type 6 and 16 bytes: expected a longer one"),
        (GOOD_NG[:28] + struct.pack("<II", 6, 13), "a block of 13 bytes: expected a multiple of 4"),
        (GOOD_NG[:8] + b"abcd" + GOOD_NG[12:], "byte order 61 62 63 64"),
        (pcap([(at, frame[:40]) for at, frame in frames_of(packets_of(WEB))]), "21 of them without a whole TCP header"),
        (pcap([]), "expected a TCP connection with its SYN and data, found 0 frames"),
    ],
)
def test_a_bad_capture_is_one_line_and_leaves_nothing(tmp_path: Path, data: bytes, problem: str, capsys) -> None:  # type: ignore[no-untyped-def]
    source, target = tmp_path / "x.pcap", tmp_path / "x.cvec"
    source.write_bytes(data)
    with pytest.raises(BadInput, match=problem) as raised:
        convert(source, target)
    assert str(raised.value).startswith(str(source))
    assert cli.invoke(["vectors", str(source), "-o", str(target)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("whole", [GOOD, GOOD_NG], ids=["pcap", "pcapng"])
def test_a_capture_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path, whole: bytes) -> None:
    """As what a full disk or a killed program leaves."""
    source, target = tmp_path / "x.pcap", tmp_path / "x.cvec"
    source.write_bytes(whole[:-1])
    with pytest.warns(Doubt, match=r"cut off at byte \d+: expected 1 more of a .*, after 20 whole packets, which are"):
        found = convert(source, target)
    assert (found.counts["frames"], found.counts["sequential"]) == (20, 1)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_damage_does_worse_than_a_line(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    tmp_path = tmp_path_factory.mktemp("damaged")
    file = bytearray(data.draw(st.sampled_from([GOOD, GOOD_NG])))
    for _ in range(data.draw(st.integers(1, 5))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    del file[data.draw(st.integers(0, len(file))) :]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Doubt)
            found = converted(tmp_path, bytes(file))
    except BadInput:
        return
    assert all(unit.size_bytes >= 0 and unit.wait_us >= 0 for vector in found for unit in vector.units)


def test_the_verb(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    source, target = tmp_path / "x.pcap", tmp_path / "x.cvec"
    source.write_bytes(pcap(frames_of(many(3))))
    assert cli.invoke(["vectors", str(source), "-o", str(target), "--format", "alternate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sequential"] == 3
    assert target.read_text().startswith("S 0 1 1 1\n")
    target = tmp_path / "y.cvec"
    assert cli.invoke(["vectors", str(source), "-o", str(target), "--quiet-time", "1s"]) == 0
    assert "3 sequential" in capsys.readouterr().out
    target = tmp_path / "z.cvec"
    assert cli.invoke(["vectors", str(source), "-o", str(target), "--format", "other"]) == 2
    assert capsys.readouterr().err == "aqmlab: --format other: expected one of original, alternate\n"
    assert cli.invoke(["vectors", str(source), "-o", str(target), "--from", "10.0.0/8"]) == 2
    assert capsys.readouterr().err == "aqmlab: --from 10.0.0/8: expected a network such as 10.0.0.0/8\n"
    assert cli.invoke(["vectors", str(source), "-o", str(target), "--quiet-time", "1e400s"]) == 2
    assert capsys.readouterr().err == "aqmlab: --quiet-time 1e400s: expected a finite time such as 500ms\n"
    assert not target.exists()


def test_an_output_that_exists_or_cannot_be_is_refused_and_left_as_it_was(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    source, other = tmp_path / "x.pcap", tmp_path / "other.cvec"
    source.write_bytes(pcap(frames_of(many(3))))
    other.write_text("mine")
    (tmp_path / "z.cvec.part").write_text("mine too")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.cvec").symlink_to(tmp_path / "nowhere")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for out, problem in (
        (str(source), f"{source}: exists; expected the name of a new file"),
        (str(other), f"{other}: exists; expected the name of a new file"),
        (str(tmp_path / "link.cvec"), f"{tmp_path / 'link.cvec'}: exists; expected the name of a new file"),
        (str(tmp_path / "folder"), f"{tmp_path / 'folder'}: exists; expected the name of a new file"),
        (".", ".: expected the name of a new file, such as campus.cvec"),
        ("", ".: expected the name of a new file, such as campus.cvec"),
        (str(tmp_path / "no" / "x.cvec"), f"{tmp_path}/no/x.cvec: {tmp_path}/no is no folder; expected a place"),
        (str(other / "x.cvec"), f"{other}/x.cvec: {other} is no folder; expected a place"),
    ):
        assert cli.invoke(["vectors", str(source), "-o", out]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"aqmlab: {problem}") and said.count("\n") == 1
    assert cli.invoke(["vectors", str(source), "-o", str(tmp_path / "z.cvec")]) == 0
    after = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after.keys() - before.keys() == {tmp_path / "z.cvec"}
    assert all(after[path] == data for path, data in before.items())


def test_explain_tells_what_a_set_asks_for(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.cvec"
    path.write_text(write(WEB, 1) + write(replace(PEERS, start_us=4_000_000), 2))
    assert cli.invoke(["explain", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["connections"], found["concurrent"], found["span_s"]) == (2, 1, 4.0)
    assert (found["initiator_bytes"], found["acceptor_bytes"]) == (350 + 90 + 222 + 16, 7_200 + 1 + 726 + 84)
    rows = {row["name"]: row for row in found["quantities"]}
    assert rows["unit of the acceptor"]["mean"] == (7_200 + 1 + 726 + 84) / 4
    # A tenth of four units is the largest in part; of a hundredth the same.
    assert rows["unit of the acceptor"]["share_of_largest"]["10%"] == pytest.approx(0.4 * 7_200 / 8_011)
    assert rows["unit of the acceptor"]["up_to"]["10kb"] == {"of_values": 1.0, "of_bytes": 1.0}
    assert rows["epochs of a sequential connection"]["quantiles"]["p50"] == 2
    assert rows["round-trip time"]["quantiles"]["p99"] == pytest.approx(0.08)
    assert cli.invoke(["explain", str(path)]) == 0
    assert "2 connections in 4 s, 1 of them concurrent" in capsys.readouterr().out
    path.write_text("SEQ 0 1 1 1\nw 1 1\nr 1\nl 0 0\n> -5\n")
    assert cli.invoke(["explain", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"aqmlab: {path}:5: found -5, expected a size in bytes")
