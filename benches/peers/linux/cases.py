"""The deterministic disciplines: drop-tail, CoDel, FQ-CoDel, SFQ, DRR.

Each gets loads from half to three times the rate, bursts, packets of 40 to 1500 bytes, every ECN field, and quiet gaps
shorter and longer than anything it remembers, at rates from 1 Mb/s to 1 Gb/s.
"""

from __future__ import annotations

from typing import Any

from packets import Case, Phase

SIZES = {1500: 6.0, 576: 1.0, 40: 2.0, 1000: 1.0, 300: 0.5}
ECN = {0: 1.0, 1: 1.0, 2: 2.0, 3: 0.3}
ONE = {0: 1.0}
FEW = {0: 8.0, 1: 4.0, 2: 1.0, 3: 0.3}
MANY = {flow: 1.0 + 20.0 * (flow % 37 == 0) for flow in range(200)}
UNIT_S = {"1mbit": 4.5, "10mbit": 0.45, "100mbit": 0.045, "1gbit": 0.0045}
"""Time for some 2000 packets of a story."""


def story(
    rate: str, flows: dict[int, float], ecn: dict[int, float], longer: float = 1.0, dscp: dict[int, float] = ONE
) -> tuple[Phase, ...]:
    """What a discipline may meet."""
    unit = UNIT_S[rate] * longer
    kind: dict[str, Any] = {"flows": flows, "ecn": ecn, "dscp": dscp}
    return (
        Phase(0.3 * unit, 0.5, sizes=SIZES, **kind),
        Phase(0.8 * unit, 1.3, sizes=SIZES, **kind),
        Phase(0.15 * unit, 0.7, sizes=SIZES, **kind),
        Phase(0.6 * unit, 1.1, burst=5, **kind),
        Phase(0.3 * unit),
        Phase(0.3 * unit, 3.0, sizes=SIZES, **kind),
        Phase(0.4 * unit, 0.9, sizes={40: 1.0, 1500: 1.0}, burst=20, **kind),
        Phase(3.0 * unit),
        Phase(0.5 * unit, 2.0, sizes={1500: 1.0}, manner="even", **kind),
    )


def fifo() -> list[Case]:
    """Drop-tail in packets and bytes, losing at either end."""
    return [
        Case(
            name,
            words,
            {"kind": name.split("-")[0], **ours},
            rate,
            story(rate, ONE, {0: 1.0}),
            seed=seed,
        )
        for seed, (name, words, ours, rate) in enumerate(
            (
                ("pfifo-tail", "pfifo limit 30", {"limit": "30p"}, "10mbit"),
                ("pfifo-one", "pfifo limit 1", {"limit": "1p"}, "100mbit"),
                ("pfifo-head", "pfifo_head_drop limit 20", {"limit": "20p", "drop": "head"}, "10mbit"),
                ("bfifo-tail", "bfifo limit 20000", {"limit": "20000b"}, "10mbit"),
                ("bfifo-fast", "bfifo limit 3000", {"limit": "3000b"}, "1gbit"),
            ),
            start=1,
        )
    ]


def timed(rate: str) -> tuple[str, dict[str, Any]]:
    """CoDel's times for a rate: an interval far below the stories' long gap, and 16 of them between their two gaps."""
    target, interval = {
        "1mbit": ("25ms", "200ms"),
        "10mbit": ("3ms", "20ms"),
        "100mbit": ("300us", "2ms"),
        "1gbit": ("30us", "200us"),
    }[rate]
    return f"target {target} interval {interval}", {"target": target, "interval": interval}


def codel() -> list[Case]:
    """CoDel, dropping and marking."""
    cases: list[Case] = []
    for name, rate, words, more in (
        ("drop-1m", "1mbit", "", {}),
        ("drop-10m", "10mbit", "", {}),
        ("drop-100m", "100mbit", "", {}),
        ("drop-1g", "1gbit", "", {}),
        ("limit", "10mbit", "limit 40", {"limit": "40p"}),
        ("limit-two", "100mbit", "limit 2", {"limit": "2p"}),
        ("ecn-10m", "10mbit", "ecn", {"ecn": True}),
        ("ecn-100m", "100mbit", "limit 50 ecn", {"limit": "50p", "ecn": True}),
        ("ce_threshold", "10mbit", "ce_threshold 2ms", {"ce_threshold": "2ms"}),
        ("ce_threshold-ecn", "10mbit", "ecn ce_threshold 10ms", {"ce_threshold": "10ms", "ecn": True}),
    ):
        times, ours = timed(rate)
        ours = {"kind": "codel", "dialect": "linux", **ours, **more}
        phases = story(rate, ONE, ECN)
        cases.append(Case(f"codel-{name}", f"codel {times} {words}".strip(), ours, rate, phases, seed=10 + len(cases)))
    ours = {"kind": "codel", "dialect": "linux", "ecn": True}
    cases.append(Case("codel-default", "codel ecn", ours, "10mbit", story("10mbit", ONE, ECN, 2), seed=9))
    return cases


def fq_codel() -> list[Case]:
    """FQ-CoDel with few and many flows, and limits that overflow."""
    cases: list[Case] = []
    for name, rate, flows, words, more in (
        ("few-1m", "1mbit", FEW, "", {}),
        ("few-10m", "10mbit", FEW, "", {}),
        ("few-100m-noecn", "100mbit", FEW, "noecn", {"ecn": False}),
        ("many-10m", "10mbit", MANY, "", {}),
        ("many-1g", "1gbit", MANY, "", {}),
        ("one-flow", "10mbit", ONE, "flows 1", {"flows": 1}),
        ("limit", "10mbit", FEW, "limit 50", {"limit": "50p"}),
        ("limit-batch", "10mbit", FEW, "limit 100 drop_batch 4", {"limit": "100p", "drop_batch": 4}),
        ("limit-one", "10mbit", FEW, "limit 60 drop_batch 1 noecn", {"limit": "60p", "drop_batch": 1, "ecn": False}),
        ("limit-many", "100mbit", MANY, "limit 120 noecn", {"limit": "120p", "ecn": False}),
        ("limit-two", "10mbit", FEW, "limit 2", {"limit": "2p"}),
        ("limit-few", "100mbit", FEW, "limit 8 noecn", {"limit": "8p", "ecn": False}),
        ("quantum", "10mbit", FEW, "quantum 300", {"quantum": "300b"}),
        ("ce_threshold", "10mbit", FEW, "ce_threshold 1ms", {"ce_threshold": "1ms"}),
    ):
        times, ours = timed(rate)
        ours = {"kind": "fq_codel", "dialect": "linux", "quantum": "1500b", **ours, **more}
        words = f"fq_codel {times} {words}" if "quantum" in words else f"fq_codel quantum 1500 {times} {words}"
        phases = story(rate, flows, ECN)
        cases.append(Case(f"fq_codel-{name}", words.strip(), ours, rate, phases, seed=30 + len(cases)))
    for name, words, more in (
        ("selector-ect1", "ce_threshold_selector 0x01/0x03", {"ce_threshold_selector": "0x01/0x03"}),
        (
            "selector-none",
            "ce_threshold_selector 0x00/0x03 noecn",
            {"ce_threshold_selector": "0x00/0x03", "ecn": False},
        ),
        ("selector-dscp", "ce_threshold_selector 0xb9/0xfd", {"ce_threshold_selector": "0xb9/0xfd"}),
    ):
        times, ours = timed("10mbit")
        ours = {"kind": "fq_codel", "dialect": "linux", "quantum": "1500b", "ce_threshold": "1ms", **ours, **more}
        phases = story("10mbit", FEW, ECN, dscp={0: 1.0, 46: 1.0})
        words = f"fq_codel quantum 1500 {times} ce_threshold 1ms {words}"
        cases.append(Case(f"fq_codel-{name}", words, ours, "10mbit", phases, seed=30 + len(cases)))
    # What fq_codel takes unless told: the device's MTU, 1500 bytes here, for its quantum.
    ours = {"kind": "fq_codel", "dialect": "linux", "quantum": "1500b"}
    cases.append(Case("fq_codel-default", "fq_codel", ours, "10mbit", story("10mbit", FEW, ECN, 2), seed=29))
    return cases


def sfq() -> list[Case]:
    """SFQ without a change of hash: limits, depths, tables, either end."""
    cases: list[Case] = []
    for name, rate, flows, words, more in (
        ("few", "10mbit", FEW, "limit 127", {"limit": "127p"}),
        ("many", "10mbit", MANY, "limit 100", {"limit": "100p"}),
        ("depth", "10mbit", FEW, "limit 60 depth 10", {"limit": "60p", "depth": 10}),
        ("headdrop", "10mbit", FEW, "limit 30 headdrop", {"limit": "30p", "headdrop": True}),
        ("headdrop-depth", "10mbit", FEW, "limit 50 depth 8 headdrop", {"limit": "50p", "depth": 8, "headdrop": True}),
        ("flows", "100mbit", MANY, "limit 100 flows 10 divisor 256", {"limit": "100p", "flows": 10, "divisor": 256}),
        ("quantum", "10mbit", FEW, "limit 127 quantum 4000", {"limit": "127p", "quantum": "4000b"}),
        ("two", "10mbit", FEW, "limit 2", {"limit": "2p"}),
        ("singles", "10mbit", MANY, "limit 8 headdrop", {"limit": "8p", "headdrop": True}),
    ):
        ours = {"kind": "sfq", "dialect": "linux", "quantum": "1500b", **more}
        words = f"sfq {words}" if "quantum" in words else f"sfq quantum 1500 {words}"
        phases = story(rate, flows, {0: 1.0})
        cases.append(Case(f"sfq-{name}", words, ours, rate, phases, seed=50 + len(cases)))
    return cases


def drr() -> list[Case]:
    """DRR: a class a flow, each with a queue of its own and the same quantum."""
    cases: list[Case] = []
    for name, rate, flows, limit, quantum, end in (
        ("few", "10mbit", FEW, 20, 1500, "tail"),
        ("small-quantum", "10mbit", FEW, 30, 300, "tail"),
        ("large-quantum", "100mbit", FEW, 15, 4000, "tail"),
        ("head", "10mbit", FEW, 10, 1500, "head"),
        ("many", "100mbit", {flow: 1.0 + 5 * (flow % 10 == 0) for flow in range(40)}, 5, 1500, "tail"),
        ("head-one", "10mbit", FEW, 1, 500, "head"),
    ):
        inner = "pfifo" if end == "tail" else "pfifo_head_drop"
        more: list[str] = []
        for flow in flows:
            more.append(f"class add dev DEV parent 10: classid 10:{flow + 1:x} drr quantum {quantum}")
            more.append(f"qdisc add dev DEV parent 10:{flow + 1:x} {inner} limit {limit}")
        ours = {"kind": "drr", "dialect": "linux", "limit": f"{limit}p", "quantum": f"{quantum}b", "drop": end}
        phases = story(rate, flows, {0: 1.0})
        cases.append(Case(f"drr-{name}", "drr", ours, rate, phases, seed=70 + len(cases), more=tuple(more)))
    return cases


CASES = [*fifo(), *codel(), *fq_codel(), *sfq(), *drr()]
