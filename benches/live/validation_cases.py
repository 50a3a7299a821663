"""The cases of the validation of the live test bed: scenarios that simulator and real TCP stacks both run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

RTT = ("30ms", "50ms")
"""Of long flows. Not all the same, or their windows fall in step, and one run tells little of the next."""
WEB_RTT = ("10ms", "150ms")
"""Of web users, as in the studies."""
QDISCS = ("pfifo", "red", "pi", "codel", "pie", "fq_codel")
NOT_IN_LINUX = ("pi",)
"""Disciplines that have no witness in the kernel."""


@dataclass(frozen=True)
class Case:
    """A scenario, and how often each witness is to see it."""

    name: str
    title: str
    kind: str
    """`bulk` or `web`."""
    scenario: dict[str, Any]
    runs: dict[str, int] = field(default_factory=dict)
    """By witness."""
    kernel: str | None = None
    """The kernel of virtual time, by its name; none for the one without a name."""

    @property
    def toml(self) -> str:
        """The scenario as text."""
        return "".join(_section(key, value) for key, value in self.scenario.items())

    def twin(self, users: int) -> str:
        """The scenario of a twin: the same users, and packets that reach the link some nanoseconds later."""
        (traffic,) = self.scenario["traffic"]
        changed = {
            **self.scenario,
            "path": {**self.scenario["path"], "access_rate": "999mbit"},
            "traffic": [{**{key: item for key, item in traffic.items() if key != "load"}, "users": users}],
        }
        return "".join(_section(key, value) for key, value in changed.items())


def qdisc(kind: str, rate: int, ecn: bool) -> dict[str, Any]:
    """A discipline before a link of `rate` Mb/s, with Linux's parameters where it is Linux's.

    Lengths are those of 20 Mb/s and five times as long at 100: the same in time. Drop-tail holds one and a half
    bandwidth-delay products of 40 ms, RED's thresholds are 12 and 36 ms.
    """
    scale = rate // 20
    own: dict[str, dict[str, Any]] = {
        "pfifo": {"limit": f"{100 * scale}p"},
        "red": {
            "dialect": "linux",
            "limit": f"{200 * scale}p",
            "min": f"{20 * scale}p",
            "max": f"{60 * scale}p",
            "probability": 0.1,
            # The kernel's counts bytes: it is told how many make a packet.
            "mean_packet": "1500b",
            "wq": 1 / 128 if rate == 20 else 1 / 512,  # Linux has powers of two
        },
        # A target of 15 ms, as PIE's.
        "pi": {"limit": f"{200 * scale}p", "qref": f"{25 * scale}p"},
        "codel": {"dialect": "linux"},
        "pie": {"dialect": "linux"},
        "fq_codel": {"dialect": "linux", "quantum": "1500b"},
    }
    made = {"kind": kind, **own[kind]}
    return made if kind == "pfifo" else {**made, "ecn": ecn}


def bulk(cc: str, rate: int, kind: str, ecn: bool) -> Case:
    """Ten flows that always have data.

    Without `ecn_fallback`: some SYNs are lost in the first overshoot, and how many flows then go without ECN for good
    is chance.
    """
    seconds, warmup = (60, 10) if rate == 20 else (40, 10)
    scenario = {
        "name": f"10 {cc} flows, {rate} Mb/s, {kind}{', ECN' if ecn else ''}",
        "duration": f"{seconds}s",
        "warmup": f"{warmup}s",
        "link": {"rate": f"{rate}mbit", "qdisc": qdisc(kind, rate, ecn)},
        "path": {"access_rate": "1gbit", "rtt": {"uniform": list(RTT)}},
        "tcp": {
            "stack": "linux",
            "cc": cc,
            **({"ecn": "on", "ecn_fallback": False} if ecn else {"ecn": "off"}),
        },
        "traffic": [{"kind": "bulk", "flows": 10, "start": {"uniform": ["0s", "1s"]}}],
    }
    name = f"{cc}-{rate}-{kind}{'-ecn' if ecn else ''}"
    runs = {"simulated": 20, "virtual": 3, "live": 3}
    if kind not in NOT_IN_LINUX:
        runs["kernel"] = 3
    return Case(name, str(scenario["name"]), "bulk", scenario, runs)


def accurate(cc: str) -> Case:
    """Four flows whose hosts count marks (RFC 9768) over DualPI2, in a Linux that has both.

    Linux's DCTCP sends ECT(0), so that the L-queue takes that too where all flows are DCTCP's.
    """
    scenario = {
        "name": f"4 {cc} flows, 20 Mb/s, dualpi2, accurate ECN",
        "duration": "60s",
        "warmup": "10s",
        "link": {
            "rate": "20mbit",
            "qdisc": {"kind": "dualpi2", "dialect": "linux", **({"any_ect": True} if cc == "dctcp" else {})},
        },
        "path": {"access_rate": "1gbit", "rtt": {"uniform": list(RTT)}},
        "tcp": {"stack": "linux", "cc": cc, "ecn": "accurate", "ecn_option": "linux", "ecn_fallback": False},
        "traffic": [{"kind": "bulk", "flows": 4, "start": {"uniform": ["0s", "1s"]}}],
    }
    runs = {"simulated": 20, "virtual": 2}
    return Case(f"{cc}-20-dualpi2-accurate", str(scenario["name"]), "bulk", scenario, runs, kernel="7.3")


def web(rate: int, load: int, kind: str) -> Case:
    """Web users in a closed loop, half of their pages over HTTP/1.1, the others over 1.0.

    At 100 Mb/s for half as long: thousands of users are as many exchanges, and five times the packets.
    """
    seconds, warmup = (240, 60) if rate == 20 else (120, 30)
    scenario = {
        "name": f"web users, {load} % of {rate} Mb/s, {kind}",
        "duration": f"{seconds}s",
        "warmup": f"{warmup}s",
        "link": {"rate": f"{rate}mbit", "qdisc": qdisc(kind, rate, False)},
        "path": {"access_rate": "1gbit", "rtt": {"uniform": list(WEB_RTT)}},
        "tcp": {"stack": "linux", "cc": "cubic"},
        "traffic": [{"kind": "web", "model": "unc2001", "load": f"{rate * load / 100:g}mbit"}],
    }
    runs = {"simulated": 10, "twin": 10, "virtual": 2, "live": 2}
    if kind not in NOT_IN_LINUX:
        runs["kernel"] = 2
    return Case(f"web-{rate}-{load}-{kind}", str(scenario["name"]), "web", scenario, runs)


CASES = [
    *(
        bulk(cc, rate, kind, ecn)
        for rate in (20, 100)
        for cc in ("reno", "cubic")
        for kind in QDISCS
        for ecn in (False, True)
        if not (ecn and kind == "pfifo")
    ),
    *(accurate(cc) for cc in ("reno", "cubic", "dctcp")),
    *(web(rate, load, kind) for rate in (20, 100) for load in (90, 98) for kind in ("pfifo", "pi", "fq_codel")),
]


def _section(key: str, value: Any, path: str = "") -> str:
    name = f"{path}{key}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "".join(f"[[{name}]]\n{_keys(item)}" for item in value)
    if isinstance(value, dict) and not path and key not in ("rtt", "start"):
        plain = {k: v for k, v in value.items() if k != "qdisc"}
        nested = "".join(_section(k, v, f"{name}.") for k, v in value.items() if k == "qdisc")
        return f"[{name}]\n{_keys(plain)}{nested}"
    if isinstance(value, dict):
        return f"[{name}]\n{_keys(value)}"
    return f"{name} = {_value(value)}\n"


def _keys(table: dict[str, Any]) -> str:
    return "".join(f"{key} = {_value(value)}\n" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    return repr(value) if isinstance(value, float) else json.dumps(value)
