"""CAKE: its shaper with framing, tins, fairness among hosts, the ACK filter, ECN, overload and quiet gaps.

CAKE draws at random: the last byte of a turn, and for BLUE after an overflow. Sizes on the wire are multiples of what
divides the quantum too (bandwidth / 8 / 4096 bytes, from 300 to 1514), so that a byte decides nothing for thousands of
turns; where hosts are told apart, so are quanta over the number of their flows. At most eight flows and hosts are in a
tin, which its hash never puts together. Where queues overflow, a record is kept of a run in which BLUE took nothing.
"""

from typing import Any

from packets import Case, Phase

ECN = {0: 0.5, 2: 0.4, 1: 0.05, 3: 0.05}
FOUR = {0: 0.4, 1: 0.3, 2: 0.2, 3: 0.1}
SIZES = {1500: 0.6, 500: 0.2, 100: 0.2}


def case(name: str, words: str, ours: dict[str, Any], rate: str, phases: tuple[Phase, ...], **more: Any) -> Case:
    """A case of CAKE on its own, shaping to `rate`."""
    both = {"kind": "cake", "dialect": "linux", "mtu": "1500b", **ours}
    if more.get("shaped", False):
        return Case(f"cake-{name}", f"cake {words}", both, rate, phases, priority=False, **more)
    words = f"cake bandwidth {rate} {words}"
    return Case(f"cake-{name}", words, both | {"bandwidth": rate}, rate, phases, priority=False, shaped=False, **more)


def story(load: float, **more: Any) -> tuple[Phase, ...]:
    """Overload, a quiet gap, a lighter load, bursts, another gap and overload again."""
    return (
        Phase(1.0, load, **more),
        Phase(0.7),
        Phase(0.5, 0.8, **more),
        Phase(0.3, 0.7, **{**more, "burst": 8}),
        Phase(2.5),
        Phase(0.5, load, **more),
    )


def hosts(side: str) -> dict[int, dict[str, Any]]:
    """Flows 0 to 4 share one host on `side`, the sixth is another's."""
    other = "dst" if side == "src" else "src"
    addresses = [("10.3.0.1" if flow < 5 else "10.3.0.2", f"10.4.0.{1 + flow}") for flow in range(6)]
    return {flow: {side: one, other: another} for flow, (one, another) in enumerate(addresses)}


SIX = dict.fromkeys(range(5), 1.0) | {5: 5.0}
TINS = {0: 0.4, 8: 0.2, 46: 0.2, 34: 0.1, 18: 0.05, 63: 0.05}

CASES = [
    case(
        "besteffort",
        "besteffort",
        {"diffserv": "besteffort"},
        "4mbit",
        story(1.3, sizes=SIZES, flows=FOUR, ecn=ECN),
    ),
    case(
        "below",
        "besteffort flows",
        {"diffserv": "besteffort", "isolation": "flows"},
        "4mbit",
        story(1.3, sizes={757: 1.0}, flows=FOUR, ecn=ECN),
        shaped=True,
    ),
    case(
        "below-diffserv3",
        "flows",
        {"isolation": "flows"},
        "4mbit",
        story(1.3, sizes={757: 1.0}, flows=FOUR, ecn=ECN, dscp={0: 0.5, 8: 0.2, 46: 0.3}),
        shaped=True,
    ),
    case(
        "diffserv4",
        "diffserv4",
        {"diffserv": "diffserv4"},
        "4mbit",
        story(1.5, sizes=SIZES, flows={0: 0.6, 1: 0.4}, ecn=ECN, dscp=TINS),
    ),
    case(
        "diffserv8",
        "diffserv8",
        {"diffserv": "diffserv8"},
        "4mbit",
        story(1.5, sizes=SIZES, ecn=ECN, dscp=TINS | {1: 0.1, 48: 0.05, 16: 0.05}),
    ),
    case(
        "precedence",
        "precedence",
        {"diffserv": "precedence"},
        "4mbit",
        story(1.5, sizes=SIZES, ecn=ECN, dscp=TINS | {24: 0.1, 48: 0.05, 56: 0.05}),
    ),
    case(
        "ethernet",
        "besteffort flows ethernet",
        {"diffserv": "besteffort", "isolation": "flows", "overhead_keyword": "ethernet"},
        "11010048bit",
        (Phase(0.7, 1.3, sizes={1474: 0.6, 466: 0.2, 40: 0.2}, flows=FOUR, ecn=ECN), Phase(0.3), Phase(0.2, 0.9)),
    ),
    case(
        "atm",
        "besteffort flows pppoe-llcsnap",
        {"diffserv": "besteffort", "isolation": "flows", "overhead_keyword": "pppoe-llcsnap"},
        "17367040bit",
        (
            Phase(0.5, 1.3, sizes={1400: 0.5, 500: 0.2, 100: 0.2, 40: 0.1}, flows=FOUR, ecn=ECN),
            Phase(0.3),
            Phase(0.2, 0.9),
        ),
    ),
    case(
        "slow",
        "besteffort flows",
        {"diffserv": "besteffort", "isolation": "flows"},
        "1mbit",
        (Phase(5, 1.4, sizes=SIZES, flows=FOUR, ecn=ECN), Phase(4), Phase(3, 0.9, sizes=SIZES, flows=FOUR, burst=3)),
    ),
    case(
        "lan",
        "besteffort lan",
        {"diffserv": "besteffort", "rtt_keyword": "lan"},
        "4mbit",
        story(1.3, sizes=SIZES, flows=FOUR, ecn=ECN),
    ),
    case(
        "flowblind",
        "besteffort flowblind",
        {"diffserv": "besteffort", "isolation": "flowblind"},
        "4mbit",
        story(1.3, sizes=SIZES, flows=FOUR, ecn=ECN),
    ),
    case(
        "ingress",
        "besteffort ingress",
        {"diffserv": "besteffort", "ingress": True},
        "4mbit",
        story(1.3, sizes=SIZES, flows=FOUR, ecn=ECN),
    ),
    case(
        "dual-dsthost",
        "besteffort dual-dsthost",
        {"diffserv": "besteffort", "isolation": "dual-dsthost"},
        "4mbit",
        story(1.6, sizes={1500: 0.8, 300: 0.2}, flows=SIX, ecn=ECN),
        headers=hosts("dst"),
    ),
    case(
        "dual-srchost",
        "besteffort dual-srchost",
        {"diffserv": "besteffort", "isolation": "dual-srchost"},
        "4mbit",
        story(1.6, sizes={1500: 0.8, 300: 0.2}, flows=SIX, ecn=ECN),
        headers=hosts("src"),
    ),
    case(
        "triple",
        "besteffort triple-isolate",
        {"diffserv": "besteffort"},
        "4mbit",
        story(1.6, sizes={1500: 0.8, 300: 0.2}, flows=SIX, ecn=ECN),
        headers=hosts("dst"),
    ),
    case(
        "hosts",
        "besteffort hosts",
        {"diffserv": "besteffort", "isolation": "hosts"},
        "4mbit",
        story(1.6, sizes={1500: 0.8, 300: 0.2}, flows=SIX, ecn=ECN),
        headers={flow: {"src": f"10.3.0.{flow // 2}", "dst": f"10.4.0.{flow // 2}"} for flow in range(6)},
    ),
    case(
        # Its buffers have 2304 bytes each: 20 of them. Sizes that make no two queues equally long.
        "memlimit",
        "besteffort flows memlimit 47000",
        {"diffserv": "besteffort", "isolation": "flows", "limit": "20p"},
        "4mbit",
        (
            Phase(
                3.5,
                0.18,
                sizes={1500: 1.0, 1484: 1.0, 1453: 1.0, 1411: 1.0},
                flows=FOUR,
                ecn=ECN,
                burst=60,
                manner="even",
            ),
        ),
    ),
    *(
        case(
            name,
            f"besteffort flows {name}",
            {"diffserv": "besteffort", "isolation": "flows", "ack_filter": ours},
            "400kbit",
            (
                Phase(0.5, 3, sizes={40: 1.0}, flows={0: 0.7, 1: 0.3}, burst=3),
                Phase(0.5),
                Phase(1.5, 1.5, sizes={52: 0.9, 500: 0.1}, flows={0: 0.5, 1: 0.3, 2: 0.2}),
                Phase(1.5, 2.0, sizes={40: 0.95, 1500: 0.05}, flows={0: 0.4, 1: 0.4, 3: 0.2}, burst=2),
            ),
            headers={
                # Each says more than the one before; some say the same; some have blocks; some echo.
                0: {"acks": [4294960000, 100, 1, 0, 0]},
                1: {"acks": [1000, 1000, 4, 40, 0]},
                2: {"acks": [1000, 1000, 2, 0, 3]},
                3: {"proto": "udp"},
            },
        )
        for name, ours in (("ack-filter", "on"), ("ack-filter-aggressive", "aggressive"))
    ),
]
