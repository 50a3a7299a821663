"""What the queue disciplines of a Linux kernel decide, packet by packet: timed packets go in, what becomes of each is
written down.

    python benches/peers/linux/decisions.py KERNEL [NAME ...]    record all cases, or those whose name begins so
    ... --longer 10 --into FOLDER                                ten times the packets, kept elsewhere
    LINUX_RECORDS=FOLDER cargo test --package aqmlab-scenario --test all -- --nocapture linux::    replays those

KERNEL is the program that `build`, beside this file, makes: Linux as a process whose clock stands still while anything
works. The cases are the lists CASES of the files cases*.py beside this one; what comes out goes to testdata/linux, a
file a case. It is the same every time but for a few steps of the clock and what the kernel draws at random.

Inside the kernel a TUN device carries HTB, and the discipline under test below it. Packet sockets put IP packets into
the device at their time, with the flow in their priority, which names the queue, so that no hash matters; another one,
a tap, sees what leaves, when, and with which ECN field. HTB asks for one packet whenever it has tokens; a TUN device
has no link header, so sizes are those of IP packets everywhere.

A record is an object: `case` (its name), `kernel`, `tc` (the commands, in order), `ours` (the same as `[link.qdisc]` of
a scenario), `rate_bps`, `quantum_ns` (the unit of times: the clock's step), and arrays. Where all of one are equal, a
number stands for it; where few differ, `{"of": [3, 7], "is": "aab"}` is 3, 3, 7.

- An entry a packet in order of arrival: `at` (since the packet before), `bytes`, `flow`, `ecn` (0 not ECT, 1 ECT(1),
  2 ECT(0), 3 CE), `dscp`.
- `headers`, where they matter: by flow, as `packets.Case` has them.
- `refused`: the numbers, from 0, of packets for which the discipline's enqueue told the sender of a loss.
- An entry a departure: `left_at` (since the departure before), `left` (number of the packet, less that of the departure
  before, less 1; from -1), `left_ecn`, and `left_after` (how many packets had arrived by then, less the same of the
  departure before: departures and arrivals at one instant are in the order in which they were).

Packets that never left were lost. Time 0 is 2^30 ns times a whole number on the kernel's clock. `stats` is what `tc -s`
says in the end.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib
import json
import os
import socket
import string
import struct
import sys
import tempfile
import termios
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import adaptive
import booted
import dualpi2
from booted import shell
from packets import Case, frame, packets, rate_bps

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[2] / "testdata" / "linux"

DEVICE = "tun0"
ETH_P_IP, ETH_P_ALL = 0x0800, 0x0003
ENOBUFS = 105
QUANTUM_NS = 256
"""The step of the kernel's virtual clock."""
LETTERS = string.ascii_letters + string.digits
EPOCH_NS = 1 << 30
"""Time 0 is a multiple of it: what the kernel rounds times to divides it."""


class Inside:
    """A case inside the kernel: device, disciplines, sockets."""

    def __init__(self, case: Case) -> None:
        shell(f"ip tuntap add dev {DEVICE} mode tun")
        # Somebody must hold the device for its carrier to be on. What it sends is never read, and lost.
        self.holder = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(self.holder, 0x400454CA, struct.pack("16sH22x", DEVICE.encode(), 0x1001))
        self.commands = [*self.under_htb(case), *(f"tc {words.replace('DEV', DEVICE)}" for words in case.more)]
        for command in self.commands:
            (dualpi2.add if dualpi2.is_one(command) else shell)(command)
        if case.adapting:
            adaptive.start(DEVICE, 0x10001, 0x100000, *case.adapting)
        shell(f"ip link set {DEVICE} up")
        self.case = case
        self.tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.tap.bind((DEVICE, ETH_P_ALL))
        self.tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 30)  # SO_RCVBUFFORCE
        self.tap.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
        self.senders: dict[int, socket.socket] = {}

    @staticmethod
    def under_htb(case: Case) -> list[str]:
        """The commands that put the discipline below HTB."""
        if not case.shaped:
            return [f"tc qdisc add dev {DEVICE} root handle 10: {case.qdisc}"]
        burst = "burst 1600 cburst 1600 quantum 1500"
        return [
            f"tc qdisc add dev {DEVICE} root handle 1: htb default 1",
            f"tc class add dev {DEVICE} parent 1: classid 1:1 htb rate {case.rate} {burst}",
            f"tc qdisc add dev {DEVICE} parent 1:1 handle 10: {case.qdisc}",
        ]

    def close(self) -> None:
        """Takes everything away."""
        for each in [self.tap, *self.senders.values()]:
            each.close()
        os.close(self.holder)
        shell(f"ip link del {DEVICE}")

    def sender(self, flow: int) -> socket.socket:
        """The socket of a flow."""
        if flow not in self.senders:
            new = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            new.setsockopt(socket.SOL_SOCKET, 32, 1 << 30)  # SO_SNDBUFFORCE
            if self.case.priority:
                new.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x10 << 16 | flow + 1)
            self.senders[flow] = new
        return self.senders[flow]

    def stats(self) -> list[dict[str, Any]]:
        """What `tc -s` says of the discipline under test and what is below it."""
        if self.case.name.startswith("dualpi2-"):
            return [dualpi2.stats(DEVICE)]
        told: list[dict[str, Any]] = json.loads(shell(f"tc -s -j qdisc show dev {DEVICE}"))
        return [one for one in told if one["kind"] != "htb"]

    def run(self) -> dict[str, Any]:
        """Sends the packets and writes down what happens."""
        sent = list(packets(self.case))
        if len(sent) > 65_536:
            raise SystemExit(f"{self.case.name}: {len(sent)} packets, but 65536 can be told apart")
        frames = [frame(number, one, self.case.headers.get(one.flow, {})) for number, one in enumerate(sent)]
        for one in sent:
            self.sender(one.flow)
        # Each reading of the clock moves it by one step.
        real, now, again = time.clock_gettime_ns(0), time.clock_gettime_ns(1), time.clock_gettime_ns(0)
        ahead = (real + again) // 2 - now
        # Not at once: to some disciplines the time at which the machine started is the last time anything happened.
        start = max(now // EPOCH_NS + 1, 4) * EPOCH_NS
        arrived: list[int] = []
        refused: list[int] = []
        left: list[tuple[int, int, int, int]] = []

        def drain() -> None:
            # Asking first: a call that finds nothing would read the clock, which moves it.
            while struct.unpack("i", fcntl.ioctl(self.tap, termios.FIONREAD, b"\0\0\0\0"))[0]:
                data, told, _, _ = self.tap.recvmsg(64, 64)
                second, ns = struct.unpack("qq", told[0][2])
                at = second * 1_000_000_000 + ns - ahead - start
                left.append((at, int.from_bytes(data[4:6], "big"), data[1] & 3, len(arrived)))

        for number, one in enumerate(sent):
            if number == 0 or one.at_ns != sent[number - 1].at_ns:
                time.sleep(max(0.0, (start + one.at_ns - time.clock_gettime_ns(1)) / 1e9))
            # For each packet, for sending one may take time.
            at = time.clock_gettime_ns(1) - start
            drain()
            arrived.append(at)
            try:
                self.senders[one.flow].sendto(frames[number], (DEVICE, ETH_P_IP))
            except OSError as error:
                if error.errno != ENOBUFS:
                    raise
                refused.append(number)
            drain()
        time.sleep(self.case.drain_s or sum(one.size for one in sent) * 8 / rate_bps(self.case.rate) + 1)
        drain()
        for at, number, _, after in left:
            if not (
                arrived[number] <= at and arrived[after - 1] <= at and (after == len(sent) or at <= arrived[after])
            ):
                raise SystemExit(f"{self.case.name}: packet {number} left at {at} ns, out of order with what arrived")
        stats = self.stats()
        if any(one.get("qlen") for one in stats):
            raise SystemExit(f"{self.case.name}: packets are left in the end")
        return {
            "case": self.case.name,
            "kernel": os.uname().release,
            "tc": self.commands,
            "ours": self.case.ours,
            "rate_bps": rate_bps(self.case.rate),
            "quantum_ns": QUANTUM_NS,
            "at": steps(arrived),
            "bytes": dense([one.size for one in sent]),
            "flow": dense([one.flow for one in sent]),
            "ecn": dense([one.ecn for one in sent]),
            "dscp": dense([one.dscp for one in sent]),
            **({"headers": self.case.headers} if self.case.headers else {}),
            "refused": refused,
            "left_at": steps([one[0] for one in left]),
            "left": dense(differences([one[1] for one in left], 1, -1)),
            "left_ecn": dense([one[2] for one in left]),
            "left_after": dense(differences([one[3] for one in left], 0, 0)),
            "stats": stats,
        }


def dense(values: list[int]) -> Any:
    """The array as it is kept: one number where all are equal, a letter a value where there are few."""
    different = sorted(set(values))
    if len(different) <= 1:
        return different[0] if different else []
    if len(different) > len(LETTERS):
        return values
    letter = dict(zip(different, LETTERS, strict=False))
    return {"of": different, "is": "".join(letter[value] for value in values)}


def differences(values: list[int], less: int, before: int) -> list[int]:
    """From one to the next."""
    return [value - last - less for last, value in zip([before, *values], values, strict=False)]


def steps(times: list[int]) -> list[int]:
    """From one to the next in steps of the clock."""
    for at in times:
        if at % QUANTUM_NS:
            raise SystemExit(f"{at} ns: the clock's steps are {QUANTUM_NS} ns")
    return differences([at // QUANTUM_NS for at in times], 0, 0)


def all_cases() -> list[Case]:
    """The cases of all files beside this one."""
    modules = [importlib.import_module(path.stem) for path in sorted(HERE.glob("cases*.py"))]
    return [case for module in modules for case in module.CASES]


def inside(folder: Path) -> None:
    """Runs the cases that are asked for; this is what the kernel starts."""
    booted.prepare()
    wanted = json.loads((folder / "wanted.json").read_text())
    for case in all_cases():
        if case.name in wanted["names"]:
            place = Inside(longer(case, wanted["longer"]))
            record = place.run()
            place.close()
            (folder / f"{case.name}.json").write_text(json.dumps(record, separators=(",", ":")) + "\n")


def longer(case: Case, times: float) -> Case:
    """The case with every phase so many times as long."""
    phases = tuple(replace(phase, seconds=phase.seconds * times) for phase in case.phases)
    return replace(case, phases=phases, drain_s=case.drain_s * times)


def outside(kernel: str, beginnings: tuple[str, ...], times: float, into: Path) -> None:
    """Starts the kernel and keeps what it wrote."""
    names = [case.name for case in all_cases() if not beginnings or case.name.startswith(beginnings)]
    with tempfile.TemporaryDirectory(prefix="decisions-") as temporary:
        folder = Path(temporary)
        (folder / "wanted.json").write_text(json.dumps({"names": names, "longer": times}))
        booted.boot(kernel, Path(__file__).resolve(), folder)
        into.mkdir(parents=True, exist_ok=True)
        for name in names:
            text = booted.told(folder, f"{name}.json", name)
            (into / f"{name}.json").write_text(text)
            record = json.loads(text)
            lost = len(record["at"]) - len(record["left_at"])
            print(f"{name}: {len(record['at'])} packets, {lost} lost, {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kernel", help="the program that `build` makes")
    parser.add_argument("names", nargs="*", help="beginnings of the names of the cases to record; all by default")
    parser.add_argument("--longer", type=float, default=1.0, help="how many times as long every phase is")
    parser.add_argument("--into", type=Path, default=KEPT, help="folder for the records; testdata/linux by default")
    if sys.argv[1:2] == [booted.INSIDE]:
        inside(Path(sys.argv[2]))
    else:
        given = parser.parse_args()
        outside(given.kernel, tuple(given.names), given.longer, given.into)
