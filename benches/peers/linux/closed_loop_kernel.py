"""The kernel's side of the closed-loop comparison: long TCP flows of a Linux kernel over one of its queue disciplines.

    python benches/peers/linux/closed_loop_kernel.py KERNEL [CASE ...]

measures closed_loop_reference.json anew, or the cases that are named; those with DualPI2 are in
closed_loop_reference_7_3.json and need Linux 6.17 or newer, those with Prague in closed_loop_reference_prague.json and
need the L4S team's tcp_prague. KERNEL is the program that `build`, beside this
file, makes: Linux as a process whose clock stands still while anything works, so that hosts, delays and queues are as
exact as the kernel's own timers on any machine. closed_loop.py sets aqmlab beside it.

Inside the kernel every host is a network namespace. Sending hosts, one for each round-trip time, are joined to a router
and the router to the receiving host by pairs of virtual Ethernet ports. Half of a round-trip time passes before the
bottleneck (netem on the sender's port), half on the way back (netem on the router's). The bottleneck is the router's
port to the receiver: HTB of the case's rate, which sends one packet at a time, and the discipline below it.
Segmentation and its reversal are left to nobody: packets are packets everywhere (gso_max_segs 1).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import selectors
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import booted
import dualpi2
from booted import enter, shell
from closed_loop_cases import (
    CASES,
    CASES_7_3,
    CASES_PRAGUE,
    NEWER,
    PRAGUE,
    REFERENCE,
    SETTLE_S,
    START_S,
    Case,
)

HERE = Path(__file__).resolve()
PORT = 5201
RECEIVER = "10.0.2.1"
SAMPLE_S = 0.01


class Child:
    """A process of its own on a host."""

    def __init__(self, host: str, work: Callable[[], Any]) -> None:
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                enter(host)
                told = work()
            except BaseException as problem:
                told = {"error": repr(problem)}
            os.write(write, json.dumps(told).encode())
            os._exit(0)
        os.close(write)
        self.pipe = read

    def result(self) -> Any:
        """Waits for its end."""
        with os.fdopen(self.pipe, "rb") as pipe:
            told = json.loads(pipe.read())
        os.waitpid(self.pid, 0)
        if isinstance(told, dict) and "error" in told:
            raise SystemExit(told["error"])
        return told

    def stop(self) -> None:
        """Ends it."""
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.pipe)


def build(case: Case) -> list[str]:
    """Makes the network; returns the sending hosts."""
    senders = [f"A{number}" for number in range(len(case.rtts_ms))]
    for host in (*senders, "R", "B"):
        shell(f"ip netns add {host}")
        shell(f"ip -n {host} link set lo up")
    join("B", "b0", "r1", "10.0.2")
    for number, (host, rtt_ms) in enumerate(zip(senders, case.rtts_ms, strict=True)):
        join(host, "e0", f"p{number}", f"10.1.{number}")
        delay = f"netem delay {rtt_ms / 2}ms limit 1000000"
        shell(f"tc -n {host} qdisc add dev e0 root {delay}")
        shell(f"tc -n R qdisc add dev p{number} root {delay}")
    # Hosts may use what is allowed here.
    allowed = "reno cubic prague" if case.is_accurate else "reno cubic dctcp bbr"
    Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").write_text(allowed)
    Path("/proc/sys/net/ipv4/tcp_mem").write_text("1000000 1000000 1000000")
    for number, host in enumerate(senders):
        on_host(host, partial(configure, case.cc_at(number), ecn=ecn_sysctl(case, has_ecn=case.ecn_at(number))))
    # Whoever receives from DCTCP has to answer as DCTCP does; accurate feedback is any host's.
    last = "dctcp" if "dctcp" in case.cc else "cubic" if case.is_accurate else case.cc
    for host in ("R", "B"):
        on_host(host, partial(configure, last, ecn=ecn_sysctl(case, has_ecn=case.ecn)))
    for words in bottleneck(case):
        if dualpi2.is_one(words):
            on_host("R", partial(dualpi2.add, words))
        else:
            shell(words.replace("tc ", "tc -n R ", 1))
    return senders


def ecn_sysctl(case: Case, *, has_ecn: bool) -> int:
    """The sysctl tcp_ecn of a host: none, that of RFC 3168, or accurate ECN."""
    return (3 if case.is_accurate else 1) if has_ecn else 0


def configure(cc: str, *, ecn: int) -> None:
    """Sets up TCP of the host that this process is on; `ecn` is the sysctl tcp_ecn."""
    for key, value in {
        "ip_forward": "1",
        "tcp_congestion_control": cc,
        "tcp_ecn": str(ecn),
        # A flow whose SYN is lost still asks for ECN: otherwise chance decides which flows have it.
        "tcp_ecn_fallback": "0",
        "tcp_no_metrics_save": "1",
        # Windows that never limit.
        "tcp_rmem": "4096 6000000 60000000",
        "tcp_wmem": "4096 4000000 60000000",
    }.items():
        Path(f"/proc/sys/net/ipv4/{key}").write_text(value)


def on_host(host: str, work: Callable[[], Any]) -> Any:
    """Does something on a host."""
    return Child(host, work).result()


def join(host: str, port: str, router_port: str, net: str, router: str = "R") -> None:
    """A wire from a host to a router."""
    shell(f"ip link add {port} netns {host} type veth peer name {router_port} netns {router}")
    for at, name, last in ((host, port, 1), (router, router_port, 254)):
        shell(f"ip -n {at} addr add {net}.{last}/24 dev {name}")
        shell(f"nsenter --net=/run/netns/{at} ethtool -K {name} tso off gso off gro off")
        shell(f"ip -n {at} link set {name} up gso_max_segs 1")
    shell(f"ip -n {host} route add default via {net}.254")


def bottleneck(case: Case) -> list[str]:
    """The commands that make the bottleneck."""
    return shaped(case.rate, case.qdisc, case.bucket)


def shaped(rate: str, qdisc: str, bucket: int) -> list[str]:
    """The commands that make the port r1 of a router a link of a rate with a discipline."""
    burst = f"burst {bucket} cburst {bucket}"
    return [
        "tc qdisc add dev r1 root handle 1: htb default 1",
        f"tc class add dev r1 parent 1: classid 1:1 htb rate {rate} {burst} quantum 1514",
        f"tc qdisc add dev r1 parent 1:1 handle 10: {qdisc}",
    ]


def receive(address: str = RECEIVER) -> None:
    """The receiving host: swallows what comes, in large pieces, for each wake-up costs real time."""
    selector = selectors.DefaultSelector()
    listener = socket.socket()
    listener.bind((address, PORT))
    listener.listen(1000)
    selector.register(listener, selectors.EVENT_READ)
    buffer = bytearray(1 << 20)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                accepted, _ = listener.accept()
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 65_536)
                selector.register(accepted, selectors.EVENT_READ)
            else:
                assert isinstance(key.fileobj, socket.socket)
                if key.fileobj.recv_into(buffer) == 0:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()


def send(start: float, end: float, address: str = RECEIVER, settled: float = 0.0) -> dict[str, float]:
    """A sender: data without end. Returns what TCP_INFO says of it."""
    time.sleep(max(0.0, start - time.time()))
    flow = socket.create_connection((address, PORT))
    flow.settimeout(0.5)
    chunk = bytes(1 << 18)
    before = None
    while (now := time.time()) < end:
        if before is None and now >= settled:
            before = now, tcp_info(flow)["bytes_acked"]
        with contextlib.suppress(TimeoutError):
            flow.send(chunk)
    told = tcp_info(flow)
    since, acked = before or (start, 0)
    return told | {"goodput_bps": (told["bytes_acked"] - acked) * 8 / (time.time() - since)}


def tcp_info(flow: socket.socket) -> dict[str, float]:
    """What the kernel tells of a flow (struct tcp_info)."""
    data = flow.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    words = struct.unpack_from("<8B24I", data)
    return {"retransmits": words[8 + 23], "bytes_acked": struct.unpack_from("<Q", data, 120)[0]}


class Watch:
    """Asks the kernel for the length of the queue (rtnetlink(7), RTM_GETQDISC), which is cheaper than to run tc."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        index = socket.if_nametoindex("r1")
        # struct nlmsghdr (type 38, NLM_F_REQUEST and NLM_F_ECHO), struct tcmsg with the handle of the discipline.
        body = struct.pack("=BxxxiIII", 0, index, 0x10 << 16, 0, 0)
        self.request = struct.pack("=IHHII", 16 + len(body), 38, 9, 0, 0) + body

    def queue(self) -> tuple[int, int]:
        """Packets and bytes that wait."""
        self.socket.send(self.request)
        data = self.socket.recv(65_536)
        for kind, value in attributes(data[16 + 20 :]):
            if kind == 7:  # TCA_STATS2
                for inner, queue in attributes(value):
                    if inner == 3:  # TCA_STATS_QUEUE: qlen, backlog, drops, requeues, overlimits
                        length, backlog = struct.unpack_from("=II", queue)
                        return length, backlog
        raise SystemExit(f"no length of the queue in {data!r}")


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes of a netlink message."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :]


def stats() -> dict[str, Any]:
    """What `tc -s` says of the discipline."""
    text = shell("tc -s -j qdisc show dev r1")
    if '"dualpi2"' in text:  # tc before 6.17 breaks off there
        return dualpi2.stats("r1")
    told = json.loads(text)
    return next(one for one in told if one.get("handle") == "10:")


def run(case: Case, seed: int) -> dict[str, Any]:
    """One run."""
    senders = build(case)
    receiver = Child("B", receive)
    time.sleep(0.5)
    began = time.time()
    end = began + case.seconds
    draw = random.Random(f"{case.name} {seed}")
    starts = [began + draw.uniform(0.0, START_S) for _ in range(case.flows)]

    def flow(start: float) -> Callable[[], Any]:
        return lambda: send(start, end, settled=began + SETTLE_S)

    flows = [Child(senders[n % len(senders)], flow(start)) for n, start in enumerate(starts)]
    counter = Child("B", lambda: marks(began, end))
    measured: dict[str, Any] = on_host("R", lambda: watch(case.rate_bps, began, end))
    marked = counter.result()
    if "dualpi2" in case.qdisc:
        # Its own counter has a packet twice that the controller and the step mark.
        measured |= {"marked": marked, "mark_ratio": marked / measured["packets"]}
    told = [child.result() for child in flows]
    receiver.stop()
    measured["retransmits"] = sum(one["retransmits"] for one in told)
    measured["bytes_acked"] = [one["bytes_acked"] for one in told]
    measured["goodput_bps"] = [one["goodput_bps"] for one in told]
    return measured


def marks(began: float, end: float) -> int:
    """A receiver: how many packets come with CE in the measured time."""

    def seen() -> int:
        lines = Path("/proc/net/netstat").read_text().splitlines()
        names, values = (line.split() for line in lines if line.startswith("IpExt:"))
        return int(values[names.index("InCEPkts")])

    time.sleep(began + SETTLE_S - time.time())
    before = seen()
    time.sleep(end - SAMPLE_S - time.time())
    return seen() - before


def watch(rate_bps: float, began: float, end: float) -> dict[str, Any]:
    """A router: what passes, and the queue every 10 ms, in the measured time."""
    queue = Watch()
    time.sleep(began + SETTLE_S - time.time())
    before, since = stats(), time.time()
    samples = packets = backlog = 0
    due = since
    while (due := due + SAMPLE_S) < end - SAMPLE_S:
        time.sleep(max(0.0, due - time.time()))
        length, size = queue.queue()
        samples, packets, backlog = samples + 1, packets + length, backlog + size
    after, seconds = stats(), time.time() - since
    gone = {key: after[key] - before.get(key, 0) for key in after if isinstance(after[key], int)}
    sent, lost = gone["packets"], gone["drops"]
    marked = sum(gone.get(key, 0) for key in ("ecn_mark", "ce_mark", "marked"))
    return {
        "utilisation": gone["bytes"] * 8 / rate_bps / seconds,
        "loss_ratio": lost / (sent + lost),
        "mark_ratio": marked / (sent + lost),
        "queue_mean_packets": packets / samples,
        "queue_delay_s": backlog / samples * 8 / rate_bps,
        "packets": sent + lost,
        "lost": lost,
        "marked": marked,
    }


def inside(folder: Path) -> None:
    """Runs what is asked for; this is what the kernel starts."""
    asked = json.loads((folder / "asked.json").read_text())
    booted.prepare()
    tell(folder, run(Case(**asked["case"]), asked["seed"]))


def tell(folder: Path, result: dict[str, Any]) -> None:
    """Leaves the result of a run for the host."""
    (folder / "told.json").write_text(json.dumps({"kernel": os.uname().release, "run": result}))


def outside(kernel: str, asked: dict[str, Any], script: Path = HERE) -> dict[str, Any]:
    """Starts the kernel for one run of what is asked for, by a script: its release, and the figures."""
    with tempfile.TemporaryDirectory(prefix="closed-loop-") as name:
        folder = Path(name)
        (folder / "asked.json").write_text(json.dumps(asked))
        booted.boot(kernel, script, folder)
        told: dict[str, Any] = json.loads(booted.told(folder, "told.json", asked))
    return told


def measure_all(kernel: str, names: Sequence[str]) -> None:
    """Measures the cases that are named, and keeps them."""
    for cases, file in ((CASES, REFERENCE), (CASES_7_3, NEWER), (CASES_PRAGUE, PRAGUE)):
        measure(kernel, [name for name in names if name in {case.name for case in cases}], cases, file)


def measure(kernel: str, names: Sequence[str], cases: Sequence[Case], file: Path) -> None:
    """Measures those of some cases that are named, and keeps them in their file."""
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    for case in cases:
        if case.name not in names:
            continue
        began = time.monotonic()
        told = [outside(kernel, {"case": vars(case), "seed": seed}) for seed in range(1, case.runs + 1)]
        runs = [one["run"] for one in told]
        kept[case.name] = {"kernel": told[0]["kernel"], "tc": bottleneck(case), "runs": runs}
        ordered = {one.name: kept[one.name] for one in cases if one.name in kept}
        file.write_text(json.dumps(ordered, indent=1) + "\n")
        print(f"{case.name}: {time.monotonic() - began:.0f} s")


def main() -> None:
    """The command line."""
    if len(sys.argv) == 3 and sys.argv[1] == booted.INSIDE:
        inside(Path(sys.argv[2]))
        return
    names = {case.name for case in (*CASES, *CASES_7_3, *CASES_PRAGUE)}
    unknown = [word for word in sys.argv[2:] if word not in names]
    if len(sys.argv) < 2 or unknown:
        raise SystemExit(f"{unknown[0]}: expected one of {', '.join(sorted(names))}" if unknown else __doc__)
    measure_all(sys.argv[1], sys.argv[2:] or [case.name for case in CASES])


if __name__ == "__main__":
    main()
