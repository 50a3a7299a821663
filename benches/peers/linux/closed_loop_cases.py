"""The cases of the closed-loop comparison: the same network for the kernel and for aqmlab."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parent / "closed_loop_reference.json"
NEWER = Path(__file__).resolve().parent / "closed_loop_reference_7_3.json"
"""Of the cases with DualPI2, which Linux has from 6.17 on."""
PRAGUE = Path(__file__).resolve().parent / "closed_loop_reference_prague.json"
"""Of the cases with Prague, which the L4S team's Linux has."""

START_S = 1.0
"""Flows start within this time."""
SETTLE_S = 10.0
"""What is not measured."""


@dataclass(frozen=True)
class Case:
    """Flows over a discipline."""

    name: str
    title: str
    qdisc: str
    """As in `tc qdisc add ... handle 10: QDISC`."""
    ours: dict[str, Any]
    """The same as `[link.qdisc]` of a scenario."""
    rate: str
    """Of HTB, Mb/s."""
    flows: int
    rtts_ms: list[float]
    """The flows take them in turn."""
    cc: str
    """`cubic+dctcp`: one in turn for each round-trip time."""
    ecn: bool = False
    seconds: float = 50.0
    runs: int = 3
    """Of the kernel: each has its own times of start, and whatever the discipline draws."""
    here: str = ""
    """What aqmlab has in the place of `prague`; empty: the same."""
    bucket: int = 10
    """Of HTB, bytes. After a pause two packets leave at once with 1600, one after the other with 10, as from a link;
    but what its timer is late is lost then. So: 1600 where the link is hardly ever idle or is fast."""

    def cc_at(self, number: int) -> str:
        """What the flows of a round-trip time have."""
        words = self.cc.split("+")
        return words[number % len(words)]

    def cc_here(self, number: int) -> str:
        """What they have in aqmlab."""
        cc = self.cc_at(number)
        return self.here if cc == "prague" and self.here else cc

    def ecn_at(self, number: int) -> bool:
        """Whether they have ECN. Beside others, only scalable ones have: ECN is what names the queue there."""
        return self.ecn and ("+" not in self.cc or self.cc_at(number) in SCALABLE)

    @property
    def is_accurate(self) -> bool:
        """Whether feedback of marks is accurate (RFC 9768), as Prague needs it."""
        return "prague" in self.cc

    @property
    def rate_bps(self) -> float:
        """The rate in bits a second."""
        return float(self.rate.removesuffix("mbit")) * 1e6


SCALABLE = ("dctcp", "prague")
FRAME = 1514
"""Bytes of a full packet on the wire as HTB and the disciplines count them: 14 of Ethernet."""


def red(low: int, high: int, limit: int, burst: int) -> str:
    """RED with thresholds in full packets. `burst` is what tc works the weight of the average out from."""
    lengths = f"limit {limit * FRAME} min {low * FRAME} max {high * FRAME}"
    return f"red {lengths} avpkt {FRAME} burst {burst} probability 0.1"


RED = {
    "kind": "red",
    "dialect": "linux",
    "limit": "200p",
    "min": "20p",
    "max": "60p",
    "probability": 0.1,
    "wq": 1 / 128,
}
"""As tc works it out from red(20, 60, 200, 70)."""
CODEL = {"kind": "codel", "dialect": "linux"}
PIE = {"kind": "pie", "dialect": "linux"}
FQ_CODEL = {"kind": "fq_codel", "dialect": "linux", "quantum": "1500b"}
"""Sizes here are those of IP packets: the kernel's 1514 is a packet with its Ethernet header."""
CAKE = {"kind": "cake", "diffserv": "besteffort", "isolation": "flows"}


def reno5() -> list[Case]:
    """Five Reno flows. Under fair queueing their round-trip times differ: equal ones fall in step."""

    def case(name: str, qdisc: str, ours: dict[str, Any], ecn: bool = False) -> Case:
        fair = name.startswith(("fq", "cake"))
        title = f"5 reno, {'30 to 50' if fair else '40'} ms, 20 Mb/s{', ECN' if ecn else ''}: {qdisc.split()[0]}"
        rtts: list[float] = [30, 35, 40, 45, 50] if fair else [40]
        # In one run in five a mark of PIE's comes for certain, and then all packets are marked: see its page.
        runs = 30 if name == "pie-ecn" else 3
        return Case(f"reno5-{name}", title, qdisc, ours, "20mbit", 5, rtts, "reno", ecn, runs=runs)

    return [
        case("pfifo", "pfifo limit 100", {"kind": "pfifo", "limit": "100p"}),
        case("red", red(20, 60, 200, 70), RED),
        case("codel", "codel", CODEL),
        case("pie", "pie", PIE),
        case("fq_codel", "fq_codel", FQ_CODEL),
        case("cake", "cake unlimited besteffort flows", CAKE),
        case("red-ecn", f"{red(20, 60, 200, 70)} ecn", RED | {"ecn": True}, True),
        case("codel-ecn", "codel ecn", CODEL | {"ecn": True}, True),
        case("pie-ecn", "pie ecn", PIE | {"ecn": True}, True),
        case("fq_codel-ecn", "fq_codel", FQ_CODEL, True),
    ]


def cubic10() -> list[Case]:
    """Ten CUBIC flows of four round-trip times."""

    def case(name: str, qdisc: str, ours: dict[str, Any], ecn: bool = False) -> Case:
        title = f"10 cubic, 20 to 160 ms, 40 Mb/s{', ECN' if ecn else ''}: {qdisc.split()[0]}"
        # PIE with ECN: see reno5.
        runs = 12 if name == "pie-ecn" else 3
        return Case(f"cubic10-{name}", title, qdisc, ours, "40mbit", 10, [20, 40, 80, 160], "cubic", ecn, runs=runs)

    return [
        case("pfifo", "pfifo limit 200", {"kind": "pfifo", "limit": "200p"}),
        case("codel", "codel", CODEL),
        case("pie", "pie", PIE),
        case("fq_codel", "fq_codel", FQ_CODEL),
        case("pie-ecn", "pie ecn", PIE | {"ecn": True}, True),
    ]


def others() -> list[Case]:
    """Slower, faster, and with small windows."""
    pfifo = {"kind": "pfifo", "limit": "30p"}
    marks = CODEL | {"ce_threshold": "5ms", "target": "50ms", "interval": "200ms"}
    return [
        Case("reno10-pfifo", "10 reno, 20 ms, 10 Mb/s: pfifo", "pfifo limit 30", pfifo, "10mbit", 10, [20], "reno"),
        Case("reno10-codel", "10 reno, 20 ms, 10 Mb/s: codel", "codel", CODEL, "10mbit", 10, [20], "reno"),
        Case(
            "cubic5-pfifo",
            "5 cubic, 20 ms, 10 Mb/s: pfifo",
            "pfifo limit 50",
            pfifo | {"limit": "50p"},
            "10mbit",
            5,
            [20],
            "cubic",
        ),
        Case("cubic5-pie", "5 cubic, 20 ms, 10 Mb/s: pie", "pie", PIE, "10mbit", 5, [20], "cubic"),
        Case(
            "cubic8-pfifo",
            "8 cubic, 60 ms, 100 Mb/s: pfifo",
            "pfifo limit 300",
            pfifo | {"limit": "300p"},
            "100mbit",
            8,
            [60],
            "cubic",
            seconds=40.0,
        ),
        Case(
            "dctcp4-step",
            "4 dctcp, 40 ms, 20 Mb/s: marks above 5 ms",
            "codel ce_threshold 5ms target 50ms interval 200ms",
            marks,
            "20mbit",
            4,
            [40],
            "dctcp",
            True,
        ),
    ]


def few_and_many() -> list[Case]:
    """One flow and twenty, on slow links and on a fast one."""
    step = "codel ce_threshold 5ms target 50ms interval 200ms"
    marks = CODEL | {"ce_threshold": "5ms", "target": "50ms", "interval": "200ms"}
    return [
        case("1 reno, 40 ms, 5 Mb/s", *pfifo(30), seconds=110.0),
        case("1 cubic, 40 ms, 5 Mb/s", "codel", CODEL, seconds=110.0),
        case("20 reno, 20 to 160 ms, 5 Mb/s", *pfifo(60), runs=5),
        case("20 cubic, 20 to 160 ms, 10 Mb/s", "pie", PIE, runs=5),
        case("20 cubic, 20 to 160 ms, 200 Mb/s", "fq_codel", FQ_CODEL, seconds=25.0, runs=5),
        case("1 dctcp, 20 ms, 10 Mb/s, ECN", step, marks),
        case("20 dctcp, 20 to 160 ms, 20 Mb/s, ECN", "fq_codel", FQ_CODEL, runs=5),
    ]


def bbr() -> list[Case]:
    """Flows of BBR. How their probes for bandwidth fall together is chance: many runs, and long ones."""
    return [
        case("1 bbr, 40 ms, 5 Mb/s", *pfifo(50), seconds=110.0, runs=10),
        case("2 bbr, 40 ms, 20 Mb/s", *pfifo(100), seconds=110.0, runs=20),
        case("4 bbr, 20 to 160 ms, 20 Mb/s", "codel", CODEL, seconds=110.0, runs=12),
        case("2 bbr, 40 ms, 10 Mb/s", "fq_codel", FQ_CODEL, seconds=110.0, runs=12),
        case("4 bbr, 20 to 160 ms, 20 Mb/s", *pfifo(200), seconds=110.0, runs=12),
        case("4 bbr, 20 to 160 ms, 20 Mb/s", "fq_codel", FQ_CODEL, seconds=110.0, runs=12),
    ]


def pfifo(limit: int) -> tuple[str, dict[str, Any]]:
    """The discipline in tc's words and in ours."""
    return f"pfifo limit {limit}", {"kind": "pfifo", "limit": f"{limit}p"}


def case(flows: str, qdisc: str, ours: dict[str, Any], **more: Any) -> Case:
    """A case out of words such as `4 bbr, 20 to 160 ms, 20 Mb/s`, with `, ECN` or without."""
    number_cc, delays, rate, *rest = flows.split(", ")
    number, cc = number_cc.split()
    rtts: list[float] = [20, 40, 80, 160] if "to" in delays else [float(delays.split()[0])]
    kind = "step" if "ce_threshold" in qdisc else qdisc.split()[0]
    title = f"{flows}: {'marks above 5 ms' if kind == 'step' else kind}"
    speed = f"{rate.split()[0]}mbit"
    return Case(f"{cc}{number}-{kind}", title, qdisc, ours, speed, int(number), rtts, cc, bool(rest), **more)


WIDE = re.compile("reno5-pfifo|reno5-pie|reno10-.*|cubic5-.*|cubic8-.*|cubic10-.*|cubic20-fq_codel")
"""Cases whose links are hardly ever idle, or fast."""
CASES: tuple[Case, ...] = tuple(
    replace(case, bucket=1600) if WIDE.match(case.name) else case
    for case in (*reno5(), *cubic10(), *others(), *few_and_many(), *bbr())
)


def dualpi2() -> tuple[Case, ...]:
    """DualPI2. Linux's DCTCP sends ECT(0), so that the kernel's L-queue takes that too (`any_ect`); Reno and CUBIC are
    without ECN beside it. Here DCTCP sends ECT(1), which is the same to the discipline."""
    ours = {"kind": "dualpi2", "dialect": "linux"}

    def of(flows: str, rtts_ms: list[float], **more: Any) -> Case:
        number, cc, rate = flows.split(", ")
        delays = f"{rtts_ms[0]:g} ms"
        title = f"{number} {cc}, {delays}, {rate} Mb/s: dualpi2"
        name = f"{cc.replace('+', '-')}{number}-{rate}-dualpi2"
        words, has_ecn = ("dualpi2 any_ect", True) if "dctcp" in cc else ("dualpi2", False)
        return Case(name, title, words, ours, f"{rate}mbit", int(number), rtts_ms, cc, has_ecn, bucket=1600, **more)

    return (
        of("2, dctcp, 20", [20.0], seconds=30.0),
        of("2, reno, 20", [20.0], seconds=40.0),
        of("4, cubic+dctcp, 40", [20.0, 20.0], seconds=30.0),
        of("4, reno+dctcp, 40", [20.0, 20.0], seconds=30.0),
        of("5, cubic, 50", [20.0], seconds=30.0),
        of("10, cubic+dctcp, 100", [20.0, 20.0], seconds=20.0),
        of("4, dctcp, 200", [20.0], seconds=16.0),
    )


CASES_7_3 = dualpi2()


def prague() -> tuple[Case, ...]:
    """Prague over DualPI2, alone, beside CUBIC without ECN, and with several round-trip times."""
    ours = {"kind": "dualpi2", "dialect": "linux"}

    def of(flows: str, rtts_ms: list[float], **more: Any) -> Case:
        number, cc, rate = flows.split(", ")
        delays = f"{rtts_ms[0]:g} ms" if len(set(rtts_ms)) == 1 else f"{rtts_ms[0]:g} and {rtts_ms[-1]:g} ms"
        title = f"{number} {cc}, {delays}, {rate} Mb/s: dualpi2"
        name = f"{cc.replace('+', '-')}{number}-{rate}-{rtts_ms[-1]:g}ms"
        # Prague alone leaves a slow link idle now and then.
        bucket = 10 if "cubic" not in cc and float(rate) <= 40 else 1600
        return Case(name, title, "dualpi2", ours, f"{rate}mbit", int(number), rtts_ms, cc, True, bucket=bucket, **more)

    return (
        of("1, prague, 10", [20.0], seconds=40.0),
        of("2, prague, 20", [20.0], seconds=40.0),
        of("4, prague, 100", [20.0], seconds=30.0),
        of("4, prague, 100", [5.0], seconds=30.0),
        of("4, prague, 100", [60.0], seconds=40.0),
        of("10, prague, 20", [20.0], seconds=30.0),
        of("4, prague, 200", [20.0], seconds=20.0),
        of("4, prague+prague, 40", [5.0, 20.0], seconds=60.0),
        of("4, prague+prague, 40", [20.0, 80.0], seconds=60.0),
        of("4, cubic+prague, 40", [20.0, 20.0], seconds=40.0),
        of("10, cubic+prague, 100", [20.0, 20.0], seconds=30.0),
    )


CASES_PRAGUE = tuple(replace(case, here="prague-linux") for case in prague())
CASES_DRAFT = prague()
"""The same, with aqmlab's Prague as the draft has it."""
