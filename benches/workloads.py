"""What the engine is measured on: scenarios as text, and the connection vectors that one of them reads."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MIX = ROOT / "examples" / "vectors" / "internet2-like.cvec"
VECTORS = "idle.cvec"
# Megabits a second, and simulated seconds that make some four million packets.
WIDE_RATES = ((100, 300), (10_000, 6))


def bulk(duration_s: int, qdisc: str, flows: int = 100, mbit: int = 100) -> str:
    """Long flows; access links ten times the bottleneck."""
    return f"""name = "{flows} long flows on {mbit} Mb/s"
duration = "{duration_s}s"
warmup = "2s"
[link]
rate = "{mbit}mbit"
[path]
access_rate = "{mbit * 10}mbit"
rtt = {{ even = ["10ms", "150ms"] }}
[tcp]
stack = "ns2"
mss = "1460b"
[[traffic]]
kind = "bulk"
flows = {flows}
start = {{ uniform = ["0s", "1s"] }}
[link.qdisc]
{qdisc}"""


def transfers(duration_s: int, stack: str) -> str:
    """Short transfers that arrive at random, with handshake, request and FIN."""
    return f"""name = "1480 transfers a second, {stack}"
duration = "{duration_s}s"
warmup = "20s"
[link]
rate = "100mbit"
[link.qdisc]
kind = "pfifo"
limit = "239p"
[path]
rtt = {{ uniform = ["10ms", "150ms"] }}
[tcp]
stack = "{stack}"
[[traffic]]
kind = "poisson"
arrivals = "1480hz"
request = "300b"
size = {{ pareto = {{ mean = "7000b", shape = 1.2 }} }}
"""


def web(duration_s: int) -> str:
    """The web users of the published experiment at 98 % load, both directions; the population as calibrated."""
    return f"""name = "18,670 web users over PI"
duration = "{duration_s}s"
warmup = "{duration_s // 6}s"
[link]
rate = "100mbit"
[link.qdisc]
kind = "pi"
qref = "24p"
[path]
rtt = {{ uniform = ["10ms", "150ms"] }}
[tcp]
stack = "freebsd4"
[[traffic]]
kind = "web"
model = "unc2001"
users = 18670
"""


def packmime(duration_s: int) -> str:
    """Connections of PackMime-HTTP, a few of them persistent, on a link that they load well."""
    return f"""name = "700 connections a second of PackMime"
duration = "{duration_s}s"
warmup = "20s"
[link]
rate = "100mbit"
[link.qdisc]
kind = "pfifo"
limit = "239p"
[path]
rtt = {{ uniform = ["10ms", "150ms"] }}
[tcp]
stack = "freebsd4"
[[traffic]]
kind = "web"
model = "packmime"
arrivals = "700hz"
direction = "forward"
"""


def mix(duration_s: int) -> str:
    """The connection vectors of the examples, copied until they offer 90 Mb/s."""
    return f"""name = "a mix of applications, 90 Mb/s"
duration = "{duration_s}s"
warmup = "20s"
[link]
rate = "100mbit"
[link.qdisc]
kind = "pfifo"
limit = "239p"
[tcp]
stack = "freebsd4"
[[traffic]]
kind = "tmix"
vectors = "{MIX}"
load = "90mbit"
"""


def arrivals(duration_s: int) -> str:
    """Ten thousand small transfers a second."""
    return f"""name = "10,000 transfers a second"
duration = "{duration_s}s"
warmup = "1s"
[link]
rate = "1gbit"
[link.qdisc]
kind = "pfifo"
limit = "2399p"
[path]
rtt = {{ uniform = ["10ms", "150ms"] }}
[tcp]
stack = "freebsd4"
[[traffic]]
kind = "poisson"
arrivals = "10000hz"
request = "300b"
size = {{ pareto = {{ mean = "7000b", shape = 1.2 }} }}
"""


IDLE_EVERY_S = 20
IDLE_EPOCHS = 4


def idle(stack: str) -> str:
    """Connections that ask for a little now and then and are open all the time."""
    return f"""name = "mostly idle connections, {stack}"
duration = "{IDLE_EVERY_S * IDLE_EPOCHS}s"
warmup = "{IDLE_EVERY_S}s"
[link]
rate = "1gbit"
[tcp]
stack = "{stack}"
[[traffic]]
kind = "tmix"
vectors = "{VECTORS}"
window = "64kb"
"""


def idle_vectors(connections: int) -> str:
    """One connection after the other over the first pause, each with an exchange every 20 s."""
    pause_us = IDLE_EVERY_S * 1_000_000
    epochs = f"> 300\nt 1000\n< 3000\nt {pause_us}\n" * IDLE_EPOCHS
    return "".join(
        f"SEQ {number * pause_us // connections} {IDLE_EPOCHS}\nw 65535 65535\n"
        f"r {10_000 + number * 7919 % 140_000}\nl 0 0\n{epochs}"
        for number in range(connections)
    )


# What the hosts of four long flows over DualPI2 are told, beside their stack.
LOW_LATENCY = {
    "linux": 'ecn = "on"\n',
    "accurate": 'ecn = "accurate"\n',
    "pacing": 'ecn = "accurate"\npacing = true\n',
    "prague": 'ecn = "accurate"\ncc = "prague"\n',
}


def low_latency(duration_s: int, hosts: str) -> str:
    """Four long flows over DualPI2, whose hosts are told what `LOW_LATENCY` says."""
    return f"""name = "four long flows over DualPI2, {hosts}"
duration = "{duration_s}s"
warmup = "1s"
[link]
rate = "100mbit"
[link.qdisc]
kind = "dualpi2"
[path]
rtt = "20ms"
[tcp]
stack = "linux"
{LOW_LATENCY[hosts]}[[traffic]]
kind = "bulk"
flows = 4
start = {{ uniform = ["0s", "100ms"] }}
"""


def wide(mbit: int, duration_s: int) -> str:
    """Ten long flows whose windows are the rate times 100 ms."""
    return f"""name = "10 long flows on {mbit} Mb/s, 100 ms"
duration = "{duration_s}s"
warmup = "2s"
[link]
rate = "{mbit}mbit"
[link.qdisc]
kind = "pfifo"
limit = "{mbit * 240 // 100 - 1}p"
[path]
access_rate = "{mbit * 10}mbit"
rtt = "100ms"
[tcp]
stack = "ns2"
mss = "1460b"
[[traffic]]
kind = "bulk"
flows = 10
start = {{ uniform = ["0s", "1s"] }}
"""
