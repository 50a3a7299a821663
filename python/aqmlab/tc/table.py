"""Which qdisc of Linux each discipline is, and which word of tc each of its parameters.

One row a discipline, read in both directions. Sources: the man page of each qdisc (tc-red(8), tc-fq_codel(8), ...),
iproute2's tc/q_*.c for what dumps show, and the kernel's net/sched/sch_*.c for what is fixed there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aqmlab.tc import quantities as q

ETHERNET_HEADER = 14
"""Bytes that the kernel counts to a packet on an Ethernet port, and aqmlab does not."""

WITHOUT_HEADER = ("ppp", "tun", "wg")
"""How ports are called whose packets begin with the IP header where they wait: `ppp0`, `pppoe-wan`, `tun0`, `wg0`."""


ADAPTIVE = frozenset({"adaptive", "adaptative"})
"""Words that make tc's red the discipline that is called ared here."""

OF_A_DUMP = frozenset({"ewma", "Plog"})
"""Words by which a dump shows what a kernel has of RED, where a command has others."""

OF_RED = frozenset({"avpkt", "burst", "bandwidth"}) | OF_A_DUMP
"""Words from which parameters of RED are computed."""


@dataclass(frozen=True)
class Value:
    """A word that a value follows."""

    ours: str
    tc: str
    kind: q.Kind
    json: tuple[str, ...] = ()
    """Its names in JSON, where they are others."""


@dataclass(frozen=True)
class Flag:
    """A word that stands alone: there for true, absent or `off` for false."""

    ours: str
    tc: str
    off: str = ""


@dataclass(frozen=True)
class Choice:
    """Words that stand alone, one for each value of ours."""

    ours: str
    words: Mapping[str, str]
    """Our value to tc's word."""
    json: str = ""
    json_words: Mapping[str, str] = field(default_factory=dict)
    """Our value to that of JSON, where it is not tc's word."""
    is_shorthand: bool = False
    """Whether it stands for values that have words of their own, and is not written."""


Word = Value | Flag | Choice


@dataclass(frozen=True)
class Row:
    """A discipline and its qdisc."""

    ours: str
    tc: str
    words: tuple[Word, ...]
    fixed: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    """What the qdisc has no word for: our parameter to the only value that Linux has (None: it has no such thing)
    and what to say where the scenario has another."""
    foreign: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Words of the qdisc that we have no parameter for: values that follow, and what to say when one is there."""
    sets: Mapping[str, Any] = field(default_factory=dict)
    """What reading a dump sets besides."""
    needs: str = ""
    """What it needs that not every Linux has."""
    by_classes: tuple[str, ...] = ()
    """Parameters that classes of the qdisc stand for, not words."""
    other_names: Mapping[str, str] = field(default_factory=dict)
    """Words that stand alone and say the same as another word."""
    computed_from: tuple[str, ...] = ()
    """Words with a value each, from which tc computes the values of others."""
    is_red: bool = False
    """Whether avpkt, burst and bandwidth stand for a weight, as in tc-red(8)."""


ECN = Flag("ecn", "ecn", "noecn")
MTU = (None, "Linux takes the port's MTU")
CODEL_WORDS = (
    Value("limit", "limit", q.PACKETS),
    Value("target", "target", q.CODEL_TIME),
    Value("interval", "interval", q.CODEL_TIME),
    Value("ce_threshold", "ce_threshold", q.CODEL_TIME),
    ECN,
)
PIE_WORDS = (
    Value("limit", "limit", q.PACKETS),
    Value("target", "target", q.TIME),
    Value("tupdate", "tupdate", q.TIME),
    Value("alpha", "alpha", q.SIXTEENTHS),
    Value("beta", "beta", q.SIXTEENTHS),
    ECN,
    Flag("bytemode", "bytemode", "nobytemode"),
    Flag("dq_rate_estimator", "dq_rate_estimator", "no_dq_rate_estimator"),
)
PIE_FIXED = {
    "max_burst": ("150ms", "Linux has 150 ms"),
    "mean_packet": MTU,
    "derandomize": (True, "Linux always spaces signals"),
}
FLOWS = (Value("flows", "flows", q.COUNT), Value("quantum", "quantum", q.SIZE))
AS_LINUX = {"dialect": ("linux", "ns-2 holds one packet, or byte, less than its limit")}
NO_ECN = {"ecn": (False, "the qdisc marks nothing")}
RED_WORDS = (
    Value("limit", "limit", q.BYTES),
    Value("min", "min", q.BYTES),
    Value("max", "max", q.BYTES),
    Value("probability", "probability", q.NUMBER),
    Flag("ecn", "ecn"),
)
RED_FIXED = {
    "gentle": (False, "Linux signals every packet above max"),
    "wait": (False, "Linux spaces signals without it"),
    "mark_p": (1.0, "Linux has no such ceiling"),
    "mode": ("packet", "Linux measures bytes and signals each packet alike"),
    "average_overflow": (False, "Linux's average does not overflow"),
}
RED_FOREIGN = {
    "avpkt": (1, ""),
    "burst": (1, ""),
    "bandwidth": (1, ""),
    "ewma": (1, ""),
    "Plog": (1, ""),
    "Scell_log": (1, ""),
    "harddrop": (0, ""),
    "nodrop": (0, "it spares packets that cannot be marked, and aqmlab drops them"),
    "adaptive": (0, ""),
    "adaptative": (0, ""),
    "qevent": (3, "aqmlab has no events"),
}
CHOKE_FOREIGN = {name: RED_FOREIGN[name] for name in ("avpkt", "burst", "bandwidth", "ewma", "Plog", "Scell_log")}
MEMORY = {"memory_limit": (1, "aqmlab limits packets alone")}
MEMORY_LIMIT = "32Mb"
"""What the kernel has unless it is told otherwise, and what every dump shows: more than its packets take."""


def is_plain(word: str, raw: Any) -> bool:
    """Whether the value of a word that no parameter stands for is the one that it has anyway."""
    if word == "memory_limit" and raw not in ("0", "0p", 0):
        try:
            return bool(q.size(raw) >= q.size(MEMORY_LIMIT))
        except ValueError:
            return False
    return raw in ("0", "0p", 0)


HEAD_DROP = "pfifo_head_drop"
ROUND_TRIPS = ["datacentre", "lan", "metro", "regional", "internet", "oceanic", "satellite", "interplanetary"]
CELLS = ("noatm", "atm", "ptm")
FRAMINGS: Mapping[str, tuple[int, int, str]] = {
    "conservative": (48, 0, "atm"),
    "ethernet": (38, 84, ""),
    "docsis": (18, 64, "noatm"),
    "pppoe-ptm": (30, 0, "ptm"),
    "bridged-ptm": (22, 0, "ptm"),
    "pppoa-vcmux": (10, 0, "atm"),
    "pppoa-llc": (14, 0, "atm"),
    "pppoe-vcmux": (32, 0, "atm"),
    "pppoe-llcsnap": (40, 0, "atm"),
    "bridged-vcmux": (24, 0, "atm"),
    "bridged-llcsnap": (32, 0, "atm"),
    "ipoa-vcmux": (8, 0, "atm"),
    "ipoa-llcsnap": (16, 0, "atm"),
}
"""CAKE's keywords: the bytes that each adds, the fewest of a packet and the cells that it sets; 0 and "" for neither.

See tc-cake(8), "overhead compensation parameters".
"""
VLAN = "ether-vlan"
"""CAKE's word for a tag of 4 bytes, which may be repeated."""
ISOLATIONS = ("triple-isolate", "dual-srchost", "dual-dsthost", "hosts", "flows", "srchost", "dsthost", "flowblind")

ROWS = (
    Row("pfifo", "pfifo", (Value("limit", "limit", q.PACKETS),), {"drop": ("tail", ""), **NO_ECN, **AS_LINUX}),
    Row("pfifo", HEAD_DROP, (Value("limit", "limit", q.PACKETS),), {**NO_ECN, **AS_LINUX}, sets={"drop": "head"}),
    Row(
        "bfifo",
        "bfifo",
        (Value("limit", "limit", q.BYTES),),
        fixed={"drop": ("tail", "Linux has head drop for packets only, pfifo_head_drop"), **NO_ECN, **AS_LINUX},
    ),
    Row("red", "red", RED_WORDS, RED_FIXED, RED_FOREIGN, {"dialect": "linux"}, is_red=True),
    Row(
        "ared",
        "red",
        RED_WORDS,
        {
            **RED_FIXED,
            "interval": ("500ms", "Linux has 500 ms"),
            "alpha": (0.01, "Linux has 0.01"),
            "beta": (0.9, "Linux has 0.9"),
            "bottom": (0.01, "Linux has 0.01"),
            "top": (0.5, "Linux has 0.5"),
        },
        RED_FOREIGN,
        {"dialect": "linux", "gentle": False},
        is_red=True,
    ),
    Row(
        "choke",
        "choke",
        (
            Value("limit", "limit", q.PACKETS),
            Value("min", "min", q.PACKETS),
            Value("max", "max", q.PACKETS),
            Value("probability", "probability", q.NUMBER),
            Flag("ecn", "ecn"),
        ),
        {
            "candidates": (1, "Linux draws one"),
            "mode": ("packet", "Linux counts packets and signals each alike"),
        },
        CHOKE_FOREIGN,
        {"dialect": "linux"},
        is_red=True,
    ),
    Row(
        "codel",
        "codel",
        CODEL_WORDS,
        {"mtu": MTU, "ce_threshold_selector": ("0x00/0x00", "Linux's codel has no selector, its fq_codel has")},
        {},
        {"dialect": "linux"},
    ),
    Row(
        "fq_codel",
        "fq_codel",
        (
            CODEL_WORDS[0],
            *FLOWS,
            *CODEL_WORDS[1:],
            Value("ce_threshold_selector", "ce_threshold_selector", q.SELECTOR),
            Value("drop_batch", "drop_batch", q.COUNT),
        ),
        {"mtu": MTU},
        {**MEMORY, "ce_threshold_mask": (1, "")},
        {"dialect": "linux"},
    ),
    Row(
        "pie",
        "pie",
        PIE_WORDS,
        {**PIE_FIXED, "ecn_prob": (0.1, "Linux has 0.1")},
        {},
        {"dialect": "linux"},
    ),
    Row(
        "fq_pie",
        "fq_pie",
        (PIE_WORDS[0], *FLOWS, *PIE_WORDS[1:], Value("ecn_prob", "ecn_prob", q.PER_CENT)),
        PIE_FIXED,
        MEMORY,
        {"dialect": "linux"},
    ),
    Row(
        "dualpi2",
        "dualpi2",
        (
            Value("limit", "limit", q.PACKETS),
            Value("target", "target", q.TIME),
            Value("tupdate", "tupdate", q.TIME),
            Value("alpha", "alpha", q.NUMBER),
            Value("beta", "beta", q.NUMBER),
            Value("step_thresh", "step_thresh", q.TIME_OR_PACKETS, ("step-thresh-us", "step-thresh-pkts")),
            Value("min_qlen_step", "min_qlen_step", q.COUNT, ("min-qlen-step",)),
            Value("coupling_factor", "coupling_factor", q.COUNT, ("coupling",)),
            Choice(
                "drop_on_overload",
                {"true": "drop_on_overload", "false": "overflow"},
                "drop-overload",
                {"true": "drop", "false": "overflow"},
            ),
            Choice(
                "drop_early",
                {"true": "drop_enqueue", "false": "drop_dequeue"},
                "drop-early",
                {"true": "drop-enqueue", "false": "drop-dequeue"},
            ),
            Choice(
                "any_ect",
                {"true": "any_ect", "false": "l4s_ect"},
                "ecn-mask",
                {"true": "any-ect", "false": "l4s-ect"},
            ),
            Value("classic_protection", "classic_protection", q.PER_CENT_SIGN, ("c-protection",)),
        ),
        {
            "ecn": (True, "Linux marks always"),
            "native": ("step", "Linux's L-queue has the step alone"),
            "queue_protection": (False, "Linux has no queue protection"),
            "mtu": MTU,
        },
        {
            "memlimit": (1, ""),
            "memory-limit": (1, ""),
            "split_gso": (0, ""),
            "no_split_gso": (0, ""),
            "split-gso": (0, ""),
        },
        {"dialect": "linux"},
        needs="Linux 6.17 and iproute2 6.17",
        computed_from=("max_rtt", "typical_rtt"),
    ),
    Row(
        "cake",
        "cake",
        (
            Value("bandwidth", "bandwidth", q.RATE),
            Choice(
                "diffserv",
                {w: w for w in ("diffserv3", "diffserv4", "diffserv8", "precedence", "besteffort")},
                "diffserv",
            ),
            Choice(
                "isolation",
                {w: w for w in ISOLATIONS},
                "flowmode",
            ),
            Choice(
                "ack_filter",
                {"off": "no-ack-filter", "on": "ack-filter", "aggressive": "ack-filter-aggressive"},
                "ack-filter",
                {"off": "disabled", "on": "enabled", "aggressive": "aggressive"},
            ),
            Choice("rtt_keyword", {w: w for w in ROUND_TRIPS}, is_shorthand=True),
            Value("rtt", "rtt", q.TIME),
            Choice("overhead_keyword", {w: w for w in FRAMINGS}, is_shorthand=True),
            Choice("framing", {w: w for w in CELLS}, "atm"),
            Value("overhead", "overhead", q.PLAIN_BYTES),
            Value("mpu", "mpu", q.PLAIN_BYTES),
            Flag("ingress", "ingress", "egress"),
            Value("limit", "memlimit", q.BYTES, ("memory_limit",)),
        ),
        {"ecn": (True, "CAKE marks always"), "mtu": MTU},
        {
            "unlimited": (0, ""),
            "raw": (0, ""),
            VLAN: (0, ""),
            "via-ethernet": (0, ""),
            "nat": (0, "aqmlab sees no translated addresses"),
            "nonat": (0, ""),
            "wash": (0, "aqmlab leaves codepoints as they are"),
            "nowash": (0, ""),
            "split-gso": (0, ""),
            "no-split-gso": (0, ""),
            "split_gso": (0, ""),
            "autorate-ingress": (0, "aqmlab's rate stays"),
            "autorate_ingress": (0, "aqmlab's rate stays"),
            "autorate": (1, "aqmlab's rate stays"),
            "fwmark": (1, "aqmlab has no marks of a firewall"),
        },
        {"dialect": "linux"},
        other_names={"diffserv": "diffserv4"},
    ),
    Row(
        "sfb",
        "sfb",
        (
            Value("rehash", "rehash", q.MILLISECONDS),
            Value("db", "db", q.MILLISECONDS),
            Value("limit", "limit", q.PACKETS),
            Value("max", "max", q.COUNT),
            Value("target", "target", q.COUNT),
            Value("increment", "increment", q.SFB_SHARE),
            Value("decrement", "decrement", q.SFB_SHARE),
            Value("penalty_rate", "penalty_rate", q.COUNT),
            Value("penalty_burst", "penalty_burst", q.COUNT),
        ),
        {"ecn": (True, "Linux marks always"), "levels": (8, "Linux has 8"), "bins": (16, "Linux has 16")},
        {},
        {"dialect": "linux", "ecn": True},
    ),
    Row(
        "sfq",
        "sfq",
        (
            Value("limit", "limit", q.PACKETS),
            Value("quantum", "quantum", q.SIZE),
            Value("depth", "depth", q.COUNT),
            Flag("headdrop", "headdrop"),
            Value("flows", "flows", q.COUNT),
            Value("divisor", "divisor", q.COUNT),
            Value("perturb", "perturb", q.SECONDS),
        ),
        NO_ECN,
        dict.fromkeys(
            ("redflowlimit", "min", "max", "ewma", "avpkt", "burst", "probability", "Plog"),
            (1, "aqmlab's sfq has no RED within"),
        )
        | dict.fromkeys(("ecn", "harddrop"), (0, "aqmlab's sfq has no RED within"))
        | dict.fromkeys(
            ("prob_mark", "prob_mark_head", "prob_drop", "forced_mark", "forced_mark_head", "forced_drop"), (1, "")
        ),
        {"dialect": "linux"},
    ),
    Row(
        "drr",
        "drr",
        (),
        NO_ECN,
        sets={"dialect": "linux"},
        by_classes=("limit", "flows", "quantum", "drop"),
    ),
)
"""Red has two rows, and so has pfifo: what tc calls one thing is two here, and the other way round."""

AVERAGES = frozenset(row.ours for row in ROWS if row.is_red)
"""Ours whose qdiscs begin an idle time only when they are asked for a packet and have none, as no shaper asks them."""


NEAREST = {
    "pi": "pie, a PI controller of waiting time; or red",
    "pi2": "dualpi2, its Classic queue; or pie",
    "curvy_red": "dualpi2, which holds a target",
    "rem": "pie; or red",
    "dcn": "sfb, fq_codel",
    "afd": "choke, sfb, fq_codel",
    "rio": "red; Linux's gred has several REDs by codepoint, and aqmlab does not write it",
    "rio_ps": "red; Linux's gred has several REDs by codepoint, and aqmlab does not write it",
    "feng_red": "ared, which is red adaptive",
    "red_pd": "sfb, fq_codel",
    "fred": "choke, fq_codel",
    "sred": "choke",
    "docsis_pie": "pie",
    "cobalt": "codel; or cake, which has it within",
    "blue": "sfb; or cake, whose COBALT has it within",
    "step": "codel with ce_threshold; red with max just above min and probability 1",
    "gsp": "codel",
    "fq": "fq_codel, drr, sfq; Linux's fq paces the flows of a host and is something else",
}
"""Disciplines that Linux does not have, and what there comes nearest."""

NEAREST_OF_FAIR = "fq_codel, fq_pie; cake, which has COBALT on each queue"
"""What comes nearest to a law on each flow's queue, `fq_` before its name."""

SAME_AS = {"redopt": "red"}
"""Disciplines that are another one with parameters of their own making."""

CONTAINERS: Mapping[str, Mapping[str, int]] = {
    "htb": {"r2q": 1, "default": 1, "direct_packets_stat": 1, "direct_qlen": 1, "ver": 1, "offload": 0},
    "tbf": dict.fromkeys(
        ("rate", "burst", "buffer", "maxburst", "lat", "latency", "limit", "peakrate", "mtu", "minburst"), 1
    )
    | dict.fromkeys(("mpu", "overhead", "linklayer"), 1),
    "netem": dict.fromkeys(("limit", "gap", "seed", "ecn", "delay", "rate", "packetoverhead"), 1),
    "fq": dict.fromkeys(
        (
            *("limit", "flow_limit", "buckets", "orphan_mask", "quantum", "initial_quantum", "low_rate_threshold"),
            *("refill_delay", "timer_slack", "horizon", "maxrate", "defrate", "ce_threshold", "offload_horizon"),
            "bands",
        ),
        1,
    )
    | {"priomap": 16, "weights": 3}
    | dict.fromkeys(("horizon_drop", "horizon_cap", "nopacing", "pacing"), 0),
    "pfifo_fast": {"bands": 1, "priomap": 16, "multiqueue": 1},
    "noqueue": {},
    "mq": {},
    "ingress": {},
    "clsact": {},
}
"""Other qdiscs of Linux that are read for what they hold or left aside: their words, and how many values follow."""

CLASS_WORDS: Mapping[str, Mapping[str, int]] = {
    "htb": dict.fromkeys(
        ("prio", "quantum", "rate", "ceil", "burst", "cburst", "overhead", "mpu", "linklayer", "level", "mtu"), 1
    ),
    "drr": {"quantum": 1},
    "mq": {},
    "fq_codel": {},
    "cake": {},
    "sfq": {},
    "sfb": {},
    "red": {},
    "tbf": {},
    "netem": {},
    "codel": {},
}
"""Words of classes in `tc class show`."""


def to_write(kind: str, values: Mapping[str, Any]) -> Row | None:
    """The row that writes a discipline with these values, if Linux has it."""
    kind = SAME_AS.get(kind, kind)
    rows = [row for row in ROWS if row.ours == kind]
    if kind == "pfifo":
        return next(row for row in rows if (row.tc == HEAD_DROP) == (values.get("drop") == "head"))
    return rows[0] if rows else None


def to_read(tc_kind: str, is_adaptive: bool = False) -> Row | None:
    """The row that reads a qdisc."""
    return next((r for r in ROWS if r.tc == tc_kind and (r.ours == "ared") == is_adaptive), None)


def arity(row: Row) -> dict[str, int]:
    """How many values follow each word of a qdisc, by tc's words."""
    known = {word: count for word, (count, _) in row.foreign.items()}
    known |= dict.fromkeys(row.computed_from, 1) | dict.fromkeys(row.other_names, 0)
    for word in row.words:
        match word:
            case Value():
                known[word.tc] = 1
            case Flag():
                known |= {w: 0 for w in (word.tc, word.off) if w}
            case Choice():
                known |= dict.fromkeys(word.words.values(), 0)
    return known
