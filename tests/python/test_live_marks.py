"""Hosts with `ecn = "accurate"` count marks, by their packets; left out where no kernel of virtual time does."""

import os
import struct
from pathlib import Path

import pytest

import aqmlab
from aqmlab import engine
from aqmlab.live import kernel, plan
from aqmlab.live.tried import tried
from aqmlab.runs import calibration
from conftest import NATIVE

KERNELS = [
    os.environ.get(kernel.VARIABLE),
    *(str(calibration.cache_folder() / name / "linux") for name in ("kernels/7.3", "kernel")),
]
"""Looked for before tests have a cache of their own."""

SCENARIO = """
duration = "4s"
warmup = "1s"
[link]
rate = "5mbit"
qdisc = { kind = "codel", ecn = true }
[path]
rtt = "20ms"
[tcp]
stack = "linux"
cc = "reno"
ecn = "accurate"
ecn_option = true
[live]
capture = "after"
capture_bytes = "96b"
[[traffic]]
kind = "bulk"
flows = 2
start = "0s"
"""


@pytest.fixture
def counting(monkeypatch) -> None:
    """A kernel that counts marks."""
    if not hasattr(NATIVE, "live"):
        pytest.skip("left out: this build has no test bed")
    monkeypatch.setattr(engine, "native", NATIVE)
    plan._said_of_marks.cache_clear()
    for path in filter(None, KERNELS):
        monkeypatch.setenv(kernel.VARIABLE, path)
        if os.access(path, os.X_OK) and tried("--marks", virtual_time=True).get("accurate_ecn"):
            return
    pytest.skip("left out: no kernel of virtual time with accurate ECN (aqmlab kernel build --release 7.3)")


def segments(path: Path) -> list[bytes]:
    """TCP segments over IPv4 of a capture, oldest first: blocks of type 6, draft-ietf-opsawg-pcapng §4.3."""
    data = path.read_bytes()
    at, found = 0, []
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 6:
            (captured,) = struct.unpack_from("<I", data, at + 20)
            found.append(data[at + 28 : at + 28 + captured])
        at += size
    return [one for one in found if one[9] == 6]


def test_hosts_count_marks_in_every_segment(counting, tmp_path):
    found = aqmlab.live(SCENARIO, out=tmp_path / "l", virtual=True)
    readback = found.manifest["live"]["readback"]
    for side in ("left", "right"):
        sysctls = readback[side]["sysctls"]
        assert (sysctls["net.ipv4.tcp_ecn"], sysctls["net.ipv4.tcp_ecn_option"]) == ("3", "2")
    assert found.summary["forward"]["mark_ratio"] > 0
    packets = segments(tmp_path / "l/packets.pcapng")
    flags = [int.from_bytes(one[32:34], "big") & 0x1FF for one in packets]  # AE, CWR, ECE, ..., SYN, FIN
    # RFC 9768 §3.1.1: the SYN has all three bits. Table 2: the SYN/ACK says that the SYN came without ECT.
    assert {bits & 0x1C0 for bits in flags if bits & 0x12 == 0x02} == {0x1C0}
    assert {bits & 0x1C0 for bits in flags if bits & 0x12 == 0x12} == {0x080}
    # The counter of marks begins at 5 (§3.2.1) and goes round in acknowledgements. These carry the option in the
    # order of AccECN1, kind 174 (§3.2.3), after timestamps.
    acks = [(bits >> 6, one) for bits, one in zip(flags, packets, strict=True) if not bits & 2 and len(one) < 96]
    assert {count for count, _ in acks} == set(range(8))
    assert any(one[52] == 174 for _, one in acks)
