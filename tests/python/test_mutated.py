"""Files that are nearly as they should be: examples and malformed files, changed at random places.

Each is read, or refused in one line. `make fuzz` lets this run for as many seconds as AQMLAB_FUZZ_S says; else each
reader gets a hundred files.
"""

import os
import time

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aqmlab import engine
from captures import ACK, SYN, Ends, frames_of, pcap, pcapng
from conftest import NATIVE
from readers import READERS, Reader, complaint

SECONDS = float(os.environ.get("AQMLAB_FUZZ_S", "0")) / len(READERS)
LARGEST = 60_000
"""Bytes of a file to begin with: of longer ones the beginning."""

WORDS = [
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b"[[",
        b"]]",
        b'"',
        b"'",
        b'"""',
        b"\\",
        b"=",
        b".",
        b",",
        b":",
        b"#",
        b"\n",
        b"\r\n",
        b"\t",
    ),
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\\u0000", b"\xe2\x80\xa8", b"\x1b[2J"),
    *(b"0", b"-1", b"1", b"1e999", b"nan", b"inf", b"9223372036854775807", b"18446744073709551616", b"1" * 400),
    *(b"true", b"null", b"1bit", b"0s", b"1000000h", b"99999gbit", b"1p", b"0b", b"100%"),
    *(
        b"kind",
        b"link",
        b"rate",
        b"qdisc",
        b"traffic",
        b"table",
        b"load",
        b"users",
        b"bulk",
        b"web",
        b"tmix",
        b"uniform",
    ),
    *(b"SEQ ", b"CONC ", b"S ", b"C ", b"w ", b"r ", b"l ", b"I ", b"A ", b"t ", b"> ", b"< "),
    *(
        b"qdisc ",
        b"class ",
        b"dev ",
        b"parent ",
        b"root ",
        b"limit ",
        b"fq_codel ",
        b"htb ",
        b"cake ",
        b"[/]",
        b"$x_{$",
    ),
    *((n).to_bytes(4, order) for n in (0, 1, 28, 0x0A0D0D0A, 0xFFFFFFFF) for order in ("little", "big")),
]


@st.composite
def mutated(draw, seeds):
    content = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(content)))
        span = draw(st.integers(0, min(40, len(content) - at)))
        match draw(st.integers(0, 5)):
            case 0:
                content[at : at + span] = b""
            case 1:
                content[at:at] = draw(st.sampled_from(WORDS))
            case 2:
                content[at : at + span] = draw(st.sampled_from(WORDS))
            case 3:
                content[at:at] = content[at : at + span] * draw(st.integers(1, 50))
            case 4:
                content[at : at + span] = draw(st.binary(max_size=8))
            case _:
                del content[at:]
    return bytes(content)


def sound_captures() -> list[bytes]:
    ends = Ends()
    ends.send(0, 0, SYN)
    ends.send(40_000, 1, SYN | ACK)
    ends.send(80_000, 0, ACK, 0, 300)
    ends.send(120_000, 1, ACK, 0, 900, 300)
    frames = frames_of(ends.packets)
    return [pcap(frames), pcapng(frames)]


def seeds_of(reader: Reader) -> list[bytes]:
    found = [path.read_bytes()[:LARGEST] for path in reader.files()]
    return [*found, *sound_captures()] if reader.ending == "pcap" else found


@pytest.mark.parametrize("name", READERS)
def test_mutated_files(name, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    reader = READERS[name]
    path = tmp_path / f"mutated.{reader.ending}"

    @settings(
        max_examples=100 if not SECONDS else 1000,
        deadline=None,
        database=None,
        derandomize=not SECONDS,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(mutated(seeds_of(reader)))
    def reads_or_refuses(content):
        path.write_bytes(content)
        complaint(reader, path)

    until = time.monotonic() + SECONDS
    reads_or_refuses()
    while time.monotonic() < until:
        reads_or_refuses()
