"""The kernel's side of the comparison over two hops: long TCP flows of a Linux kernel over two of its disciplines in
a row.

    python benches/peers/linux/two_hops_kernel.py KERNEL [CASE ...]

measures two_hops_reference.json anew, or the cases that are named; two_hops.py sets aqmlab beside it. KERNEL and what
is said of it are those of closed_loop_kernel.py. Here two routers stand in a row. Each has a shaped port, r1, to the
right: the first router's leads to the second, the second's to the receiving host. Flows over the first hop alone end
at a host beside the second router, flows over the second alone begin there.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import booted
from booted import shell
from closed_loop_cases import START_S
from closed_loop_kernel import (
    RECEIVER,
    Child,
    configure,
    join,
    on_host,
    outside,
    receive,
    send,
    shaped,
    tell,
    watch,
)
from two_hops_cases import BUCKET, CASES, GROUPS, HOPS_OF, REFERENCE, Case, Hop

HERE = Path(__file__).resolve()
ROUTERS = ("R1", "R2")
BESIDE = "10.0.3.1"
"""Where flows over the first hop alone end."""
NETS = {"long": "10.1", "first": "10.2", "second": "10.3"}


def sender(group: str, number: int) -> str:
    """The name of the host that sends a flow."""
    return f"{group[0]}{number}"


def build(case: Case) -> None:
    """Makes the network."""
    senders = [(group, number, rtt) for group in GROUPS for number, rtt in enumerate(case.rtts_ms[group])]
    hosts = [*ROUTERS, "B", "D", *(sender(group, number) for group, number, _ in senders)]
    for host in hosts:
        shell(f"ip netns add {host}")
        shell(f"ip -n {host} link set lo up")
    join("R2", "l1", "r1", "10.0.1", ROUTERS[0])
    # What join made of the second router as a host behind the first is right for what goes back to the left as well.
    shell("ip -n R1 route add default via 10.0.1.1")
    join("B", "b0", "r1", "10.0.2", ROUTERS[1])
    join("D", "d0", "p", "10.0.3", ROUTERS[1])
    for group, number, rtt in senders:
        host, router, port = sender(group, number), ROUTERS[HOPS_OF[group][0]], f"{group[0]}{number}"
        join(host, "e0", port, f"{NETS[group]}.{number}", router)
        delay = f"netem delay {rtt / 2}ms limit 1000000"
        shell(f"tc -n {host} qdisc add dev e0 root {delay}")
        shell(f"tc -n {router} qdisc add dev {port} root {delay}")
    # Hosts may use what is allowed here.
    Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").write_text("reno cubic dctcp bbr")
    Path("/proc/sys/net/ipv4/tcp_mem").write_text("1000000 1000000 1000000")
    for host in hosts:
        on_host(host, lambda: configure(case.cc, ecn=int(case.ecn)))
    for router, hop in zip(ROUTERS, case.hops, strict=True):
        for words in links(hop):
            shell(words.replace("tc ", f"tc -n {router} ", 1))


def links(hop: Hop) -> list[str]:
    """The commands that make a hop."""
    return shaped(hop.rate, hop.qdisc, BUCKET)


def run(case: Case, seed: int) -> dict[str, Any]:
    """One run."""
    build(case)
    receivers = [Child("B", receive), Child("D", partial(receive, BESIDE))]
    time.sleep(0.5)
    began = time.time()
    end = began + case.seconds
    draw = random.Random(f"{case.name} {seed}")
    flows = [
        (group, Child(sender(group, number), flow(began + draw.uniform(0.0, START_S), end, group)))
        for group in GROUPS
        for number in range(len(case.rtts_ms[group]))
    ]
    watches = [
        Child(router, partial(watch, hop.rate_bps, began, end)) for router, hop in zip(ROUTERS, case.hops, strict=True)
    ]
    hops = [one.result() for one in watches]
    told = [(group, child.result()) for group, child in flows]
    for one in receivers:
        one.stop()
    acked = {group: sum(one["bytes_acked"] for of, one in told if of == group) for group in GROUPS}
    return {"hops": hops, "retransmits": sum(one["retransmits"] for _, one in told), "bytes_acked": acked}


def flow(start: float, end: float, group: str) -> Callable[[], Any]:
    """What a sender of a group does."""
    return partial(send, start, end, BESIDE if group == "first" else RECEIVER)


def measure_all(kernel: str, names: Sequence[str]) -> None:
    """Measures the cases that are named, or all, and keeps them in two_hops_reference.json."""
    for case in CASES:
        if names and case.name not in names:
            continue
        began = time.monotonic()
        told = [outside(kernel, {"case": case.name, "seed": seed}, HERE) for seed in range(1, case.runs + 1)]
        kept: dict[str, Any] = json.loads(REFERENCE.read_text()) if REFERENCE.exists() else {}
        tc = [words for hop in case.hops for words in links(hop)]
        kept[case.name] = {"kernel": told[0]["kernel"], "tc": tc, "runs": [one["run"] for one in told]}
        ordered = {one.name: kept[one.name] for one in CASES if one.name in kept}
        REFERENCE.write_text(json.dumps(ordered, indent=1) + "\n")
        print(f"{case.name}: {time.monotonic() - began:.0f} s", flush=True)


def inside(folder: Path) -> None:
    """Runs what is asked for; this is what the kernel starts."""
    asked = json.loads((folder / "asked.json").read_text())
    case = next(case for case in CASES if case.name == asked["case"])
    booted.prepare()
    tell(folder, run(case, asked["seed"]))


def main() -> None:
    """The command line."""
    if len(sys.argv) == 3 and sys.argv[1] == booted.INSIDE:
        inside(Path(sys.argv[2]))
        return
    names = {case.name for case in CASES}
    unknown = [word for word in sys.argv[2:] if word not in names]
    if len(sys.argv) < 2 or unknown:
        raise SystemExit(f"{unknown[0]}: expected one of {', '.join(sorted(names))}" if unknown else __doc__)
    measure_all(sys.argv[1], sys.argv[2:])


if __name__ == "__main__":
    main()
