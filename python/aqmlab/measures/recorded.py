"""Measures that are numbers of a run's summary or of its resolved scenario: one a run, without parts."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from aqmlab import links, units
from aqmlab.json_files import Json, at, is_number
from aqmlab.links import WAYS
from aqmlab.measures import keys
from aqmlab.measures.measure import (
    BOTH,
    LINK,
    ONE_WAY,
    Formula,
    Measure,
    Parameter,
    Params,
    at_link,
    choice,
)
from aqmlab.measures.subject import Seen
from aqmlab.results import coarse, times

NAN = float("nan")
QUANTILES = {0.5: "p50", 0.95: "p95", 0.99: "p99"}
"""The quantiles of queueing delay that summaries have."""


def _number(summary: Json, key: str) -> float:
    found = at(summary, key)
    return float(found) if is_number(found) else NAN


def _plain(key: str, words: str) -> Callable[[Params], Formula]:
    return lambda _: Formula(lambda s: _number(s.summary, key), None, words, words)


def _each_way(key: str, words: str) -> Callable[[Params], Formula]:
    """A number that each direction has."""

    def formula(params: Params) -> Formula:
        way = params["direction"]
        return Formula(lambda s: _number(s.summary, f"{way}.{key}"), None, f"{words}, {way}", _brief(words, way))

    return formula


def _brief(words: str, way: str) -> str:
    return words if way == "forward" else f"{words}, {way}"


def _goodput(params: Params) -> Formula:
    way = params["direction"]
    key = "tcp.goodput_bps" if way == BOTH else f"tcp.{way}_goodput_bps"
    said = "both directions together" if way == BOTH else way
    return Formula(lambda s: _number(s.summary, key), None, f"TCP goodput, {said}", _brief("goodput", way))


def _delay_quantile(params: Params) -> Formula:
    q, way = params["q"], params["direction"]
    words = f"{100 * q:g}th percentile of the queueing delay"
    key = f"{way}.queue_delay_{QUANTILES[q]}_s"

    def whole(seen: Seen) -> float:
        return _number(seen.summary, key)

    return Formula(whole, None, f"{words}, {way}", _brief(words, way), lambda s: coarse.bin_s(key, whole(s)))


def _flow_goodput(seen: Seen, block: int) -> float:
    """Goodput of one endless flow of a block; NaN if the block has none."""
    flows = quantity(at(seen.scenario, f"traffic.{block}.flows"))
    found = _number(seen.summary, f"tcp.held_back.{block}.goodput_bps")
    return found / flows if flows > 0 else NAN


def _of_block(params: Params) -> Formula:
    block = params["block"]
    words = f"goodput of a flow of block {block}"
    return Formula(lambda s: _flow_goodput(s, block), None, words, words)


def _ratio_of_blocks(params: Params) -> Formula:
    block, to = params["block"], params["to"]

    def whole(seen: Seen) -> float:
        other = _flow_goodput(seen, to)
        return _flow_goodput(seen, block) / other if other > 0 else NAN

    words = f"goodput of a flow of block {block} ÷ that of one of block {to}"
    return Formula(whole, None, words, f"block {block} ÷ block {to}")


def _probe_wait(params: Params) -> Formula:
    q = params["q"]
    key = f"probes.one_way_delay_s.p{round(100 * q)}"

    def delay(seen: Seen) -> float:
        return _number(seen.summary, key)

    def whole(seen: Seen) -> float:
        return delay(seen) - _propagation_of_probes_s(seen.scenario)

    words = f"{100 * q:g}th percentile of what probes take beyond propagation"
    return Formula(whole, None, words, f"{100 * q:g}th percentile", lambda s: coarse.bin_s(key, delay(s)))


def _probe_wait_mean(params: Params) -> Formula:
    def whole(seen: Seen) -> float:
        return _number(seen.summary, "probes.one_way_delay_mean_s") - _propagation_of_probes_s(seen.scenario)

    words = "mean of what probes take beyond propagation"
    return Formula(whole, None, words, words)


def _propagation_of_probes_s(tree: Json) -> float:
    """The propagation, one way, of all packets of probes; NaN unless it is the same for all."""
    blocks = [block for block in tree.get("traffic", []) if block["kind"] == "probe"]
    found = {
        _propagation_ns(tree, block, way)
        for block in blocks
        for way in WAYS
        if block.get("direction", "forward") in (way, BOTH)
    }
    (one_ns,) = found if len(found) == 1 else (None,)
    return NAN if one_ns is None else times.seconds(one_ns)


def _propagation_ns(tree: Json, block: Json, way: str) -> int | None:
    """The same of a block of UDP in one direction; none where its packets differ in it.

    Over UDP the client is whoever sends: the whole round trip lies before what it sends.
    """
    share = 1 if block.get("rtt_at") == "clients" else 0.5
    delays = [_delay_s(links.of(tree)[name], way) for name in links.route(tree, block, way)]
    whole_s = share * quantity(block.get("rtt", at(tree, "path.rtt"))) + sum(delays)
    return times.nanoseconds(whole_s) if math.isfinite(whole_s) else None


def _delay_s(link: Json, way: str) -> float:
    """The delay behind a link; NaN where it changes."""
    key = "delay" if way == WAYS[0] else "reverse_delay"
    own = link.get(key, link.get("delay", "0s"))
    changed = [change.get(key, own) for name in ("schedule", "states") for change in link.get(name, ())]
    found = {quantity(delay) for delay in (own, *changed)}
    return found.pop() if len(found) == 1 else NAN


def _loss_run_longer(params: Params) -> Formula:
    n, way = params["n"], params["direction"]

    def whole(seen: Seen) -> float:
        runs: Sequence[float] | None = at(seen.summary, f"{way}.loss_runs")
        total = sum(runs) if runs else 0
        return sum(runs[n:]) / total if runs and total else NAN

    words = f"share of runs of consecutive losses longer than {n}"
    return Formula(whole, None, f"{words}, {way}", _brief(f"longer than {n}", way))


def _per_exchange(key: str, words: str) -> Callable[[Params], Formula]:
    def whole(seen: Seen) -> float:
        completed = _number(seen.summary, "exchanges.completed")
        return _number(seen.summary, key) / completed if completed > 0 else NAN

    return lambda _: Formula(whole, None, f"{words} for each completed exchange", f"{words} an exchange")


def _queue_share(params: Params) -> Formula:
    way = params["direction"]
    key = "qdisc.limit" if way == "forward" else "reverse_qdisc.limit"

    def whole(seen: Seen) -> float:
        limit = at(links.first(seen.scenario), key)
        if not isinstance(limit, str) or not limit.endswith("p"):
            return NAN
        return _number(seen.summary, f"{way}.queue_mean_packets") / quantity(limit)

    return Formula(whole, None, f"mean queue as a share of its limit, {way}", _brief("share of the buffer", way))


def _summary(params: Params) -> Formula:
    key = params["key"]
    keys.check(key)

    def whole(seen: Seen) -> float:
        if key in keys.of_applications():
            found = seen.of_parts().get(key)
            return NAN if found is None else found
        return _number(seen.summary, key)

    return Formula(whole, None, f"`{key}` of the summary", key, lambda s: coarse.bin_s(key, whole(s)))


def _parameter(params: Params) -> Formula:
    key = params["key"]
    return Formula(lambda s: quantity(at(s.scenario, key)), None, f"`{key}` of the scenario", key)


def quantity(item: Any) -> float:
    """The number in a value of a scenario, in seconds, bits a second, packets or bytes; NaN if there is none."""
    if is_number(item):
        return float(item)
    if not isinstance(item, str):
        return NAN
    found = units.quantity(item)
    if found is None:
        return NAN
    number, unit = found
    return number / 100 if unit == "%" else number


_KEY = Parameter("key", "a dotted key", lambda item: isinstance(item, str) and bool(item.strip()), is_needed=True)
_Q = Parameter("q", "one of 0.5, 0.95, 0.99", lambda q: is_number(q) and q in QUANTILES, is_needed=True)
_PROBE_Q = Parameter(
    "q",
    "one of 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99",
    lambda q: is_number(q) and q in (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99),
    is_needed=True,
)
_N = Parameter("n", "a whole number from 0 to 62", lambda n: type(n) is int and 0 <= n <= 62, is_needed=True)
"""Runs of 63 losses and more are counted as one kind."""


def _block(name: str) -> Parameter:
    return Parameter(name, "the number of a block of traffic, from 0", _is_block, is_needed=True)


def _is_block(item: Any) -> bool:
    return type(item) is int and item >= 0


MEASURES = (
    Measure("goodput_bps", (choice("direction", (*WAYS, BOTH), "forward"),), _goodput),
    Measure("flow_goodput_bps", (_block("block"),), _of_block),
    Measure("goodput_ratio", (_block("block"), _block("to")), _ratio_of_blocks),
    Measure("probe_wait_s", (_PROBE_Q,), _probe_wait),
    Measure("probe_wait_mean_s", (), _probe_wait_mean),
    Measure("udp_loss_ratio", (), _plain("udp.loss_ratio", "UDP loss ratio")),
    Measure(
        "queue_delay_sd_s",
        (ONE_WAY, LINK),
        at_link(_each_way("queue_delay_sd_s", "standard deviation of the queueing delay")),
    ),
    Measure("queue_delay_quantile_s", (_Q, ONE_WAY, LINK), at_link(_delay_quantile)),
    Measure(
        "queue_mean_packets",
        (ONE_WAY, LINK),
        at_link(_each_way("queue_mean_packets", "mean queue")),
    ),
    Measure("queue_share", (ONE_WAY, LINK), at_link(_queue_share)),
    Measure(
        "loss_run_mean",
        (ONE_WAY, LINK),
        at_link(_each_way("loss_run_mean", "mean run of consecutive losses")),
    ),
    Measure("loss_run_longer", (_N, ONE_WAY, LINK), at_link(_loss_run_longer)),
    Measure("timeouts", (), _plain("tcp.timeouts", "timeouts")),
    Measure("timeouts_per_exchange", (), _per_exchange("tcp.timeouts", "timeouts")),
    Measure(
        "retransmitted_per_exchange",
        (),
        _per_exchange("tcp.retransmitted_segments", "segments sent again"),
    ),
    Measure("jain_index", (), _plain("tcp.jain_index", "Jain's fairness index")),
    Measure("flows_failed", (), _plain("tcp.flows_failed", "connections given up")),
    Measure("summary", (_KEY,), _summary),
    Measure("parameter", (_KEY,), _parameter, is_exact=True),
)
