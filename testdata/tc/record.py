"""Runs the lines that `aqmlab tc` writes in a real kernel, and keeps what its `tc` then shows.

    record.py LINUX [CASE ...]

LINUX is a User-Mode Linux program (a kernel built with ARCH=um, best with time-travel, and the qdiscs of cases.toml).
Each case of cases.toml is a scenario; its lines are run as written between two ports, each with a burst of packets
through it. CASE.txt keeps the session with its prompts; CASE.json what `tc -s -d -j qdisc show` printed.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SHOWN = (
    "tc -s qdisc show",
    "tc -s -d qdisc show",
    "tc class show dev eth0",
    "tc class show dev eth1",
    "tc -s -j qdisc show",
)
SHOWN_JSON = "tc -s -d -j qdisc show"
UML = [
    "mem=512M",
    "time-travel=inf-cpu",
    "rootfstype=hostfs",
    "root=/dev/root",
    "rootflags=/",
    "rw",
    "con=null",
    "con0=null",
]
PROMPT = "root@router:~# "
BURST = """
import socket, time
for port in ("10.0.0.2", "10.0.1.2"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)
    for burst in range(40):
        for number in range(40):
            s.sendto(bytes(972), (port, 9000 + number % 8))
        time.sleep(.02)
"""


def scenario_of(case: dict[str, Any]) -> dict[str, Any]:
    """The scenario of a case: a link of 10 Mb/s, 40 ms, a few flows."""
    link = {"rate": "10mbit", **case.get("link", {}), "qdisc": case["qdisc"]}
    if "reverse_qdisc" in case:
        link["reverse_qdisc"] = case["reverse_qdisc"]
    return {"name": "recorded", "link": link, "path": {"rtt": "40ms"}, "traffic": [{"kind": "bulk", "flows": 8}]}


def outside(linux: str, names: list[str]) -> None:
    """Writes the lines of the cases, has them run, and puts the sessions beside this file."""
    from aqmlab import scenario
    from aqmlab.tc.write import write

    cases = tomllib.loads((HERE / "cases.toml").read_text())
    lines = {}
    for name in names or cases:
        source = scenario.read(scenario_of(cases[name]))
        lines[name] = list(write(source.resolve(), "eth0", "eth1").lines)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "lines.json").write_text(json.dumps(lines))
        init = Path(folder) / "init"
        init.write_text(
            "#!/bin/sh\nexport PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
            "mount -t proc p /proc; mount -t sysfs s /sys; mount -t tmpfs t /run; mkdir -p /run/netns\n"
            f"{sys.executable} {Path(__file__).resolve()} inside {folder} > {folder}/log 2>&1\n"
            "echo o > /proc/sysrq-trigger; sleep 9\n"
        )
        init.chmod(0o755)
        subprocess.run(
            [linux, *UML, f"init={init}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=600,
            check=False,
        )
        log = (Path(folder) / "log").read_text()
        if log:
            print(log)
        for name in lines:
            session = json.loads((Path(folder) / f"{name}.json").read_text())
            (HERE / f"{name}.txt").write_text(session["text"])
            (HERE / f"{name}.json").write_text(session["json"])


def run(command: str) -> str:
    """Runs a line of shell and answers what it printed; complaints go to the log."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        print(f"{command}: {done.returncode} {done.stderr.strip()}", flush=True)
    return done.stdout


def inside(folder: Path) -> None:
    """In the kernel: every case in its turn, on ports made anew."""
    for name, lines in json.loads((folder / "lines.json").read_text()).items():
        run("ip netns add far; ip -n far link set lo up")
        for port, net in (("eth0", "10.0.0"), ("eth1", "10.0.1")):
            run(f"ip link add {port} type veth peer name {port} netns far")
            run(f"ip link set {port} up; ip -n far link set {port} up")
            run(f"ip addr add {net}.1/24 dev {port}; ip -n far addr add {net}.2/24 dev {port}")
        run("ip route add default via 10.0.0.2")
        session = [f"{PROMPT}uname -r", run("uname -r").strip(), f"{PROMPT}tc -V", run("tc -V").strip()]
        for line in lines:
            session += [PROMPT + line, *run(line).splitlines()]
        run(f"{sys.executable} -c '{BURST}'")
        for command in SHOWN:
            session += [PROMPT + command, *run(command).splitlines()]
        text = "\n".join(session) + "\n"
        (folder / f"{name}.json").write_text(json.dumps({"text": text, "json": run(SHOWN_JSON).strip() + "\n"}))
        run("ip link del eth0; ip link del eth1; ip netns del far; ip link del delay0; ip link del delay1")


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        inside(Path(sys.argv[2]))
    elif len(sys.argv) > 1:
        outside(sys.argv[1], sys.argv[2:])
    else:
        sys.exit(__doc__)
