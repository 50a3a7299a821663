"""Qdiscs of Linux that aqmlab has no discipline for, read as what comes nearest: fq and netem.

Sources: the kernel's sch_fq.c and sch_netem.c, and iproute2's tc/q_fq.c and tc/q_netem.c.
"""

import math
from collections.abc import Mapping, Sequence

from aqmlab.engine import Tree
from aqmlab.tc import quantities as q
from aqmlab.tc.dump import Dump, Node, number
from aqmlab.tc.quantities import Raw

FLOW_LIMIT = "100p"
"""What fq lets wait of a flow."""

FQ_QUANTUM = "3028b"
"""Two full frames of Ethernet."""

LEFT_OUT_OF_FQ: Mapping[str, tuple[tuple[Raw, ...], str]] = {
    "limit": (("10000", "10000p", 10000), "drr limits each flow by itself, and not all together"),
    "maxrate": ((), "aqmlab does not pace"),
    "ce_threshold": ((), "drr marks nothing"),
    "buckets": (("1024", 1024), "drr has a queue for each hash value"),
    "orphan_mask": (("1023", 1023), "drr has a queue for each hash value"),
    "initial_quantum": (("15140", "15140b", 15140), "a new flow of drr has one quantum"),
    "low_rate_threshold": (("550Kbit", "550kbit", 68750), "aqmlab does not pace"),
    "refill_delay": (("40ms", "40.0ms", 40000), "a flow of drr that comes again has one quantum"),
    "timer_slack": (("10us", "10.0us", "10000ns", 10, 10000), "aqmlab does not pace"),
    "horizon": (("10s", "10.0s", 10000000), "aqmlab does not pace"),
    "horizon_cap": ((), "aqmlab does not pace"),
    "offload_horizon": (("0", "0us", 0), "aqmlab does not pace"),
    "weights": (("589824", 589824), "aqmlab has no priorities of sockets"),
}
"""Words of fq that nothing stands for: how tc shows what every fq has, and what to say of another value.

Of weights the first of three is kept.
"""

NETEM_LIMIT = 1000.0
"""Packets that tc lets netem hold where nothing is said."""


def drr_for_fq(node: Node, found: Dump, remarks: list[str]) -> Tree:
    """Linux's fq without its pacing, as deficit round robin."""
    remarks.append("Linux's fq paces the flows of a host; what it does without pacing is nearest to drr")
    for word, (usual, why) in LEFT_OUT_OF_FQ.items():
        if word in node.words and node.words[word] not in usual:
            said = word if word == "horizon_cap" else f"{word} {node.words[word]}"
            found.note(node.line, f"{said!r} of fq: {why}")
    limit = number(q.packets, node, "flow_limit", found, math.inf)
    quantum = number(q.size, node, "quantum", found, math.inf)
    return {
        "kind": "drr",
        "dialect": "linux",
        "limit": FLOW_LIMIT if limit is None else f"{limit:.0f}p",
        "quantum": FQ_QUANTUM if quantum is None else q.size_text(quantum),
    }


def emulator(qdiscs: Sequence[Node]) -> Node | None:
    """The netem that has a rate."""
    return next((node for node in qdiscs if node.kind == "netem" and "rate" in node.words), None)


def queue_of_netem(node: Node, below: Node | None, found: Dump, remarks: list[str]) -> Tree:
    """The drop-tail queue in which netem holds what waits for its rate."""
    if below is not None:
        found.note(below.line, f"{below.kind} below netem is left aside: packets wait in netem, and not in it")
    if "delay" in node.words:
        remarks.append("netem's limit counts the packets that it delays, too; here those that wait alone")
    limit = number(q.packets, node, "limit", found, math.inf)
    return {"kind": "pfifo", "limit": f"{NETEM_LIMIT if limit is None else limit:.0f}p"}
