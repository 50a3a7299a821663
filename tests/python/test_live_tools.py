"""Foreign tools see the link as it was set: ping, iperf3, curl, tshark, each where it is installed.

In virtual time, which nothing on this machine can make late; left out, with the reason, where there is no kernel for it
or no test bed in this build.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aqmlab import engine
from aqmlab.live import kernel, plan, process, virtual
from aqmlab.runs import calibration
from conftest import NATIVE

KERNEL = os.environ.get(kernel.VARIABLE) or str(calibration.cache_folder() / "kernel/linux")
"""Looked for before tests have a cache of their own."""

RATE_BPS = 20e6
RTT_MS = 40.0

LINK = """
[link]
rate = "20mbit"
[link.qdisc]
kind = "pi"
ecn = true
[path]
rtt = "40ms"
[tcp]
stack = "linux"
ecn = "on"
[[traffic]]
kind = "bulk"
flows = 1
"""

ON_THE_RIGHT = "nsenter --net=$AQMLAB_RIGHT_NS"
"""The data of these tests come from there, in reverse: forward goes from left to right."""

pytestmark = [
    pytest.mark.skipif(not hasattr(NATIVE, "live"), reason="left out: this build has no test bed"),
    pytest.mark.skipif(
        not os.access(KERNEL, os.X_OK), reason="left out: no kernel of virtual time (aqmlab kernel build)"
    ),
]


@pytest.fixture(autouse=True)
def real_engine(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    monkeypatch.setenv(kernel.VARIABLE, KERNEL)


def inside(folder: Path, script: str, *needs: str) -> None:
    """Runs a script on the left side, in virtual time, with nothing else on the link."""
    for tool in ("nsenter", *needs):
        if shutil.which(tool) is None:
            pytest.skip(f"left out: {tool} is not installed")
    run(folder, "60s", ["/bin/sh", "-ec", f"cd {folder}\n{script}"])


def run(folder: Path, duration: str, command: list[str] | None) -> None:
    """Runs a command, or else the scenario's own traffic."""
    text = f'duration = "{duration}"\nwarmup = "0s"\n{LINK}'
    resolved = engine.resolve(text, str(folder / "scenario.toml"))
    (folder / "scenario.toml").write_text(resolved.toml)
    told = plan.of(
        resolved,
        str(folder / "scenario.toml"),
        is_virtual=True,
        command=command or (),
        has_traffic=command is None,
    )
    (folder / process.PLAN).write_text(json.dumps(told))
    done = subprocess.run(virtual.command(folder), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done
    summary = json.loads((folder / process.OUTCOME).read_text())["summary"]
    assert command is None or summary["live"]["command_status"] == 0, (done, summary["live"])


def test_ping_sees_the_round_trip_time(tmp_path):
    inside(tmp_path, "ping -c 10 -i 0.2 $AQMLAB_RIGHT >said; ping -6 -c 10 -i 0.2 $AQMLAB_RIGHT6 >said6", "ping")
    for name, size in (("said", 84), ("said6", 104)):
        last = (tmp_path / name).read_text().splitlines()[-1]
        assert last.startswith("rtt min/avg/max/mdev"), last
        low, _, high, deviation = (float(item) for item in last.split()[3].split("/"))
        # Both ways over the bottleneck; an access link of 1 Gb/s before and after it takes a fiftieth of that. What is
        # left over is the kernel's clock, which counts in 256 ns and moves by that whenever somebody reads it.
        expected = RTT_MS + 2e3 * (1 + 2 / 50) * size * 8 / RATE_BPS
        assert low == pytest.approx(expected, abs=0.005) and high == pytest.approx(expected, abs=0.005), last
        assert deviation <= 0.002, last


def test_iperf3_reaches_the_payload_rate(tmp_path):
    script = f"""
    {ON_THE_RIGHT} iperf3 -s -1 >/dev/null &
    sleep 1
    iperf3 -R -c $AQMLAB_RIGHT -t 6 -O 2 -J >said.json
    """
    inside(tmp_path, script, "iperf3")
    said = json.loads((tmp_path / "said.json").read_text())
    # Of 1500 bytes of IP 1448 are payload: 20 of IP, 20 of TCP, 12 of timestamps.
    payload_bps = RATE_BPS * 1448 / 1500
    assert said["end"]["sum_received"]["bits_per_second"] == pytest.approx(payload_bps, rel=0.01)


def test_curl_waits_for_two_round_trips(tmp_path):
    # A reference to the interpreter by its path: what the user's shell calls python may be a script around it.
    script = f"""
    echo short >page
    {ON_THE_RIGHT} {sys.executable} -m http.server -b $AQMLAB_RIGHT 8000 >/dev/null 2>&1 &
    sleep 2
    curl -s -o /dev/null -w '%{{http_code}} %{{time_total}}' http://$AQMLAB_RIGHT:8000/page >said
    """
    inside(tmp_path, script, "curl")
    code, seconds = (tmp_path / "said").read_text().split()
    # One for the connection, one for request and answer; half a kilobyte of headers takes 0.2 ms each way.
    assert code == "200" and 2 * RTT_MS <= 1e3 * float(seconds) <= 2 * RTT_MS + 1


def test_tshark_sees_marks_and_the_senders_answer(tmp_path):
    # Slow start into 50 packets of queue: PI marks, the receiver echoes, the sender says that it has slowed down.
    script = f"""
    {ON_THE_RIGHT} iperf3 -s -1 >/dev/null &
    tshark -q -i aqm0 -s 80 -w here.pcapng 2>/dev/null &
    sleep 3
    iperf3 -R -c $AQMLAB_RIGHT -t 3 -J >said.json
    sleep 1
    kill -INT $!
    wait
    """
    inside(tmp_path, script, "iperf3", "tshark")
    asked = ["-T", "fields", "-e", "ip.src", "-e", "ip.dsfield.ecn", "-e", "tcp.flags.ece", "-e", "tcp.flags.cwr"]
    lines = subprocess.run(
        ["tshark", "-r", str(tmp_path / "here.pcapng"), "-Y", "tcp.len > 0 || tcp.flags.ack == 1", *asked],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    from_right = [row for row in rows if row[0] == "10.255.0.1"]
    marks = [row for row in from_right if row[1] == "3"]
    assert 0 < len(marks) < len(from_right)
    assert any(row[1] == "2" for row in from_right)  # ECT(0), as RFC 3168 §5 has it for TCP
    truths = ("1", "True")
    assert any(row[2] in truths for row in rows if row[0] == "10.127.0.1"), "the receiver echoes (ECE)"
    assert any(row[3] in truths and row[1] == "2" for row in from_right), "the sender answers (CWR)"


def test_runs_repeat_to_the_byte(tmp_path):
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        run(tmp_path / name, "3s", None)
    tables = sorted(path.name for path in (tmp_path / "first").glob("*.parquet"))
    assert {"queue.parquet", "tcp.parquet"} <= set(tables)
    for name in (*tables, process.OUTCOME):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name
