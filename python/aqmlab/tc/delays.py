"""Delays and losses on the way: `netem` on what comes in at a port.

A queue of netem's behind the discipline under study would hide from it, so it stands on an `ifb` before the port.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any

from aqmlab.engine import Tree
from aqmlab.errors import BadInput
from aqmlab.tc import quantities as q
from aqmlab.tc.lines import Line, Section

_MOST_US = 1e12
"""The longest time of a scenario."""


def of_paths(tree: Tree, traffic: list[Tree], dev: str, reverse_dev: str) -> list[Section]:
    """Half of the round-trip time before each port of one link."""
    rtt = tree["path"]["rtt"]
    mean = mean_us(rtt)
    remarks = of_each_connection(rtt)
    own = [f"traffic.{n} ({b['kind']}): {_said(b['rtt'])}" for n, b in enumerate(traffic) if "rtt" in b]
    if own:
        remarks.append(f"not expressed: the rtt of {', '.join(own)}")
    emulated = [f"traffic.{n}.rtt_at" for n, b in enumerate(traffic) if b.get("rtt_at") == "clients"]
    shared = ["path.access"] if tree["path"].get("access") == "host" else []
    if emulated or shared:
        remarks.append(f"not expressed: {', '.join(emulated + shared)}; half of the delay lies on each way here")
    remarks.append(f"access_rate {tree['path']['access_rate']}: the hosts' own ports")
    losses = [float(tree["path"].get(key, 0.0)) for key in ("loss", "reverse_loss")]
    if "reorder" in tree["path"]:
        remarks.append("not expressed: path.reorder; netem's is the share that is not delayed")
    if mean <= 0 and not any(losses):
        return []
    lines: list[Line] = []
    for position, (port, way) in enumerate(((reverse_dev, "forward"), (dev, "back"))):
        lines += on_arrival(port, f"delay{position}", mean / 2, losses[position], f"on its way {way}")
    return [Section("delay: half of the round-trip time each way, before the ports", tuple(lines), tuple(remarks))]


def on_arrival(port: str, ifb: str, delay_us: float, loss: float = 0.0, said: str = "") -> list[Line]:
    """A delay and a share of losses of what comes in at a port; `ifb` is the device that it passes."""
    return [
        Line(f"ip link add name {ifb} type ifb", (f"what comes in at {port}{', ' if said else ''}{said}",)),
        Line(f"ip link set dev {ifb} up"),
        Line(f"tc qdisc add dev {port} ingress"),
        Line(f"tc filter add dev {port} parent ffff: protocol all matchall action mirred egress redirect dev {ifb}"),
        Line(f"tc qdisc add dev {ifb} root handle 1: netem delay {q.time_text(delay_us)}{_loss(loss)} limit 1000000"),
    ]


def of_each_connection(rtt: Any) -> list[str]:
    """What is to be said of a round-trip time that differs from connection to connection."""
    if not isinstance(rtt, Mapping):
        return []
    return [
        f"rtt {_said(rtt)} is each connection's own; netem delays all packets alike (its distributions reorder "
        f"them within a connection), so this is the mean, {q.time_text(mean_us(rtt))}"
    ]


def _loss(share: float) -> str:
    return f" loss {100 * share:.10g}%" if share > 0 else ""


def _said(rtt: Any) -> str:
    """A distribution in a few words."""
    if not isinstance(rtt, Mapping):
        return str(rtt)
    form, what = next((name, item) for name, item in rtt.items() if name != "step")
    match form:
        case "uniform" | "even":
            return f"{form} from {what[0]} to {what[1]}"
        case "table":
            return f"from a table of {len(what)} points"
    return f"{form} {what}" if not isinstance(what, Mapping) else f"{form} of {', '.join(map(str, what.values()))}"


def mean_us(rtt: Any) -> float:
    """The mean of a distribution of times, microseconds; raises `BadInput` if it has none, or one beyond any time."""
    try:
        mean = _mean_us(rtt)
    except OverflowError:
        mean = math.inf
    if mean > _MOST_US:
        raise BadInput(
            f"rtt {_said(rtt)}: expected a distribution with a mean of at most {q.time_text(_MOST_US)}, "
            "as netem delays all packets alike"
        )
    return mean


def _mean_us(rtt: Any) -> float:
    if not isinstance(rtt, Mapping):
        return q.microseconds(str(rtt))
    form, what = next((name, item) for name, item in rtt.items() if name != "step")
    match form:
        case "uniform" | "even":
            return (q.microseconds(what[0]) + q.microseconds(what[1])) / 2
        case "exponential":
            return q.microseconds(what)
        case "pareto":
            if "mean" in what:
                return q.microseconds(what["mean"])
            shape = float(what["shape"])
            return q.microseconds(what["scale"]) * (shape / (shape - 1) if shape > 1 else math.inf)
        case "weibull":
            return q.microseconds(what["scale"]) * math.gamma(1 + 1 / float(what["shape"]))
        case "lognormal":
            return q.microseconds(what["median"]) * math.exp(float(what["sigma"]) ** 2 / 2)
        case "table":
            points = [(q.microseconds(time), float(share)) for time, share in what]
            start = points[0][0] * points[0][1]
            return start + sum(
                (high + low) / 2 * (above - below) for (low, below), (high, above) in itertools.pairwise(points)
            )
    raise BadInput(f"path.rtt: {form!r}: its mean is not known here")
