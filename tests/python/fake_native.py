"""Stands in for the compiled engine: resolves a handful of keys, and "simulates" by drawing plausible tables.

It imitates the interface, not the physics: response times come from a formula in which a discipline's name and ECN set
how many exchanges suffer a timeout. Tests of the Python side can thus know what must come out.
"""

import hashlib
import json
import re
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab import scenario, toml_text
from aqmlab._native import known_as as known_as
from aqmlab._native import measures as measures
from aqmlab._native import traffic_models as traffic_models


class LawError(RuntimeError):
    pass


class ScenarioError(ValueError):
    pass


BITS_PER_USER = 5250.0
EXCHANGES_PER_USER_S = 0.02  # a seventh of the real model's: tests shall be quick
INTERVAL_S = 0.1
TOP = {"name", "duration", "warmup", "cooldown", "seed", "link", "path", "tcp", "traffic", "record", "live"}
SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
RATES = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
COMMON = {"limit": "10000p", "ecn": False}
PARAMS = {
    "pfifo": {**COMMON, "limit": "240p"},
    "pi": {"qref": "24p", "mode": "packet", "a": 1.822e-5, "b": 1.816e-5, "w": "170hz", **COMMON},
    "rem": {**COMMON, "target": "24p", "mode": "byte", "gamma": 0.001, "phi": 1.001},
    "ared": {**COMMON, "min": "12p", "max": "36p", "gentle": True, "mode": "packet", "wq": 0.0001},
}
# Share of exchanges with a timeout, without and with ECN.
TIMEOUTS = {"pfifo": (0.10, 0.10), "pi": (0.09, 0.02), "rem": (0.11, 0.02), "ared": (0.08, 0.07)}

delay_per_tick_s = 0.0
"""Tests make runs slow with it."""
calls: list[str] = []
"""Names of the scenarios that were simulated."""


def version() -> str:
    return "0.0.test"


def _quantity(value: Any, units: dict[str, float], where: str, example: str) -> float:
    match = re.fullmatch(r"([0-9.]+)([a-z]+)", value) if isinstance(value, str) else None
    if match is None or match[2] not in units:
        raise ScenarioError(f"{where}: {value!r}: expected a number with a unit, as in {example}")
    return float(match[1]) * units[match[2]]


def resolve(text: str, origin: str, overrides: list[tuple[str, str]]) -> str:
    tree = tomllib.loads(text)
    for key, written in overrides:
        tree = scenario.with_key(tree, key, tomllib.loads(f"value = {written}")["value"], origin)
    for key in tree:
        if key not in TOP:
            raise ScenarioError(f"{origin}: {key}: unknown key; expected one of {', '.join(sorted(TOP))}")
    tree = {"name": "unnamed", "warmup": "0s", "cooldown": "0s", "seed": 1, **tree}
    duration = _quantity(tree.get("duration"), SECONDS, f"{origin}: duration", "300s")
    if _quantity(tree["warmup"], SECONDS, f"{origin}: warmup", "60s") >= duration:
        raise ScenarioError(f"{origin}: warmup: {tree['warmup']}: expected less than the duration {tree['duration']}")
    link = tree.setdefault("link", {})
    if _quantity(link.get("rate"), RATES, f"{origin}: link.rate", "100mbit") <= 0:
        raise ScenarioError(f"{origin}: link.rate: {link['rate']}: expected more than zero")
    link.setdefault("reverse_rate", link["rate"])
    qdisc = link.setdefault("qdisc", {"kind": "pfifo"})
    if qdisc.get("kind") not in PARAMS:
        raise ScenarioError(f"{origin}: link.qdisc.kind: {qdisc.get('kind')!r}: expected one of {', '.join(PARAMS)}")
    known = {"kind": "", **PARAMS[qdisc["kind"]]}
    for key in qdisc:
        if key not in known:
            raise ScenarioError(f"{origin}: link.qdisc.{key}: unknown key; expected one of {', '.join(known)}")
    link["qdisc"] = {**known, **qdisc}
    tree["path"] = {"access": "connection", **tree.get("path", {})}
    tree["tcp"] = {
        "stack": "freebsd4",
        "cc": "reno",
        "repair": "newreno",
        "ecn": "off",
        "window": "16kb",
        **tree.get("tcp", {}),
    }
    if not tree.get("traffic"):
        raise ScenarioError(f"{origin}: traffic: empty; expected one or more [[traffic]] tables")
    loads = []
    for position, block in enumerate(tree["traffic"]):
        block.setdefault("direction", "both")
        if "load" in block:
            load_bps = _quantity(block["load"], RATES, f"{origin}: traffic.{position}.load", "98mbit")
            loads.append({"traffic": position, "load_bps": load_bps, "direction": block["direction"]})
    resolved = toml_text.dumps(tree)
    digest = hashlib.sha256(json.dumps({**tree, "name": None}, sort_keys=True).encode()).hexdigest()
    return json.dumps(
        {"toml": resolved, "scenario": tree, "digest": digest, "loads": loads, "files": [], "reached": []}
    )


def check_toml(text: str, origin: str) -> None:
    try:
        tomllib.loads(text)
    except ValueError as error:
        raise ScenarioError(f"{origin}: not valid TOML: {error}") from None


def equilibrium(text: str, origin: str) -> str:
    qdisc = tomllib.loads(text)["link"]["qdisc"]
    assert qdisc["kind"] in PARAMS, origin
    return "null"


def simulate(
    resolved_toml: str,
    directory: str,
    progress: Callable[[dict[str, float]], None] | None,
    origin: str = "scenario.toml",
) -> str:
    tree = tomllib.loads(resolved_toml)
    calls.append(tree["name"])
    duration, warmup, cooldown = (
        _quantity(tree[key], SECONDS, key, "1s") for key in ("duration", "warmup", "cooldown")
    )
    for step in range(11):
        if delay_per_tick_s:
            time.sleep(delay_per_tick_s)
        if progress is not None:
            at = duration * step / 10
            progress({"time_s": at, "duration_s": duration, "bottleneck_packets": 5e4 * at, "wall_s": 1e-3 + 0.02 * at})
    rate = _quantity(tree["link"]["rate"], RATES, "link.rate", "1mbit")
    qdisc = tree["link"]["qdisc"]
    marks = bool(qdisc["ecn"]) and tree["tcp"]["ecn"] != "off"
    users = sum(block.get("users", 0) for block in tree["traffic"])
    rng = np.random.default_rng(tree["seed"])
    window = duration - warmup - cooldown
    demand_bps = users * BITS_PER_USER * (1 + 0.003 * np.sin(users / 700))
    busy = demand_bps / rate > 0.5
    exchanges = _exchanges(rng, users, qdisc, marks, busy, warmup, window)
    exchanges.write_parquet(Path(directory) / "exchanges.parquet")
    queue = _queue(np.random.default_rng([tree["seed"], 1]), duration, rate, demand_bps, qdisc, marks, busy)
    queue.write_parquet(Path(directory) / "queue.parquet")
    return json.dumps(_summary(tree, exchanges, queue, rate, warmup, window, duration))


def _exchanges(
    rng: np.random.Generator, users: int, qdisc: dict[str, Any], marks: bool, busy: bool, warmup: float, window: float
) -> pl.DataFrame:
    n = int(users * EXCHANGES_PER_USER_S * window)
    start = warmup + np.sort(rng.random(n)) * window
    rtt = rng.integers(10, 151, n) / 1000
    size = np.minimum(300 * rng.random(n) ** (-1 / 1.15), 1e8)
    rounds = 1 + np.ceil(np.log2(1 + size / 2920)) + size / 16000
    response = rtt * rounds * (1 + 0.2 * rng.random(n)) + size * 8 / 1e8
    luck, extra = rng.random(n), rng.exponential(0.4, n)
    if busy:
        limit = 240 if qdisc["kind"] == "pfifo" else 24
        share = TIMEOUTS[qdisc["kind"]][int(marks)] * (
            2.5 if (qdisc["kind"], qdisc.get("mode")) == ("ared", "packet") else 1
        )
        response += limit * 500 * 8 / 1e8
        response += np.where(luck < share, 1.0 + extra + rtt, 0.0) + np.where(luck < share / 8, 3.0, 0.0)
    keep = start + response <= warmup + window
    return pl.DataFrame(
        {
            "start_s": start[keep],
            "response_time_s": response[keep],
            "setup_s": np.where(rng.random(n) < 0.5, rtt, 0.0)[keep],
            "request_bytes": pl.Series(np.full(keep.sum(), 400), dtype=pl.UInt32),
            "response_bytes": pl.Series(size[keep].astype(int), dtype=pl.UInt64),
            "traffic": pl.Series(np.zeros(keep.sum(), int), dtype=pl.UInt16),
            "source": pl.Series(rng.integers(0, max(users, 1), n)[keep], dtype=pl.UInt32),
            "direction": pl.Series(rng.integers(0, 2, n)[keep], dtype=pl.UInt8),
        }
    )


def _queue(
    rng: np.random.Generator,
    duration: float,
    rate: float,
    demand_bps: float,
    qdisc: dict[str, Any],
    marks: bool,
    busy: bool,
) -> pl.DataFrame:
    steps = round(duration / INTERVAL_S)
    tables = []
    limit = 240 if qdisc["kind"] == "pfifo" else 24
    for direction in (0, 1):
        swing = np.convolve(rng.normal(0, 1, steps + 40), np.ones(40) / 40, "valid")[:steps] * 2.2
        load = np.clip(demand_bps / rate * (1 + 0.04 * swing), 0, 0.985)
        delivered = np.round(load * rate * INTERVAL_S / 8 / 510).astype(np.int64)
        loss = np.clip(0.02 * TIMEOUTS[qdisc["kind"]][int(marks)] * 10 * (1 + swing), 0, 0.3) if busy else 0 * swing
        dropped = np.round(delivered * loss).astype(np.int64)
        held = np.clip(limit * (0.75 + 0.5 * swing + 0.15 * rng.normal(0, 1, steps)), 0, limit * 2).astype(np.int64)
        held = np.minimum(held, 240) if busy else np.zeros(steps, np.int64)
        change = np.diff(held, prepend=0)
        probability = np.clip(0.03 * (1 + swing), 0, 1) if qdisc["kind"] != "pfifo" else np.full(steps, np.nan)
        tables.append(
            pl.DataFrame(
                {
                    "time_s": INTERVAL_S * np.arange(1, steps + 1),
                    "direction": pl.Series(np.full(steps, direction), dtype=pl.UInt8),
                    "offered_packets": pl.Series(delivered + dropped + change, dtype=pl.Int64).cast(pl.UInt64),
                    "delivered_packets": pl.Series(delivered, dtype=pl.UInt64),
                    "delivered_bytes": pl.Series(delivered * 510, dtype=pl.UInt64),
                    "dropped_packets": pl.Series(dropped, dtype=pl.UInt64),
                    "marked_packets": pl.Series(delivered // 30 if marks and busy else 0 * delivered, dtype=pl.UInt64),
                    "queue_packets": pl.Series(held, dtype=pl.UInt32),
                    "queue_bytes": pl.Series(held * 510, dtype=pl.UInt32),
                    "queue_delay_mean_s": held * 510 * 8 / rate,
                    "queue_delay_max_s": held * 510 * 8 / rate * 1.5,
                    "probability": probability,
                    "control": probability,
                    "tracked_flows": pl.Series([None] * steps, dtype=pl.Float64),
                },
                nan_to_null=True,
            )
        )
    return pl.concat(tables).sort("time_s", "direction")


def _summary(
    tree: dict[str, Any],
    exchanges: pl.DataFrame,
    queue: pl.DataFrame,
    rate: float,
    warmup: float,
    window: float,
    duration: float,
) -> dict[str, Any]:
    def direction(code: int) -> dict[str, Any]:
        rows = queue.filter(
            (pl.col("direction") == code) & (pl.col("time_s") > warmup + 1e-6) & (pl.col("time_s") <= warmup + window)
        )
        offered, dropped, marked = (int(rows[f"{name}_packets"].sum()) for name in ("offered", "dropped", "marked"))
        bits = int(rows["delivered_bytes"].sum()) * 8
        return {
            "utilisation": bits / rate / window,
            "busy_ratio": bits / rate / window,
            "throughput_bps": bits / window,
            "offered_packets": offered,
            "delivered_packets": int(rows["delivered_packets"].sum()),
            "dropped_packets": dropped,
            "marked_packets": marked,
            "loss_ratio": dropped / offered if offered else None,
            "mark_ratio": marked / offered if offered else None,
            "queue_delay_mean_s": rows["queue_delay_mean_s"].mean(),
            "queue_delay_sd_s": rows["queue_delay_mean_s"].std(),
            **{f"queue_delay_p{q}_s": rows["queue_delay_mean_s"].quantile(q / 100) for q in (50, 95, 99)},
            "queue_mean_packets": rows["queue_packets"].mean(),
            "loss_run_mean": 1.3 if dropped else None,
        }

    times = exchanges["response_time_s"]
    return {
        "scenario": tree["name"],
        "seed": tree["seed"],
        "measured_s": window,
        "forward": direction(0),
        "reverse": direction(1),
        "tcp": {
            "goodput_bps": 0.9e8,
            "retransmitted_segments": 100,
            "timeouts": 50,
            "flows_completed": 1000,
            "jain_index": None,
        },
        "udp": {"offered_packets": None, "lost_packets": None, "loss_ratio": None},
        "exchanges": {
            "completed": exchanges.height,
            "response_time_s": {f"p{q}": times.quantile(q / 100, "equiprobable") for q in (10, 25, 50, 75, 90, 95, 99)},
            "share_under_500ms": (times <= 0.5).mean(),
            "share_under_1s": (times <= 1.0).mean(),
            "share_under_2s": (times <= 2.0).mean(),
        },
        "engine": {
            "kind": "sim",
            "events": 12345,
            "bottleneck_packets": int(queue["delivered_packets"].sum()),
            "wall_s": 1.5 + time.perf_counter() % 1,
            "cpu_s": 1.5 + time.perf_counter() % 1,
            "packets_per_cpu_s": 4e6,
            "simulated_per_wall": duration / 1.5,
        },
    }


def disciplines() -> str:
    def row(name: str, year: int, marks: bool, doc: str) -> dict[str, Any]:
        kinds = {str: "length", float: "number", bool: "flag"}
        params = [
            {
                "name": key,
                "kind": kinds[type(value)],
                "default": str(value),
                "computed": False,
                "range": [0, 1e9],
                "words": [],
                "expected": "a number",
                "unit": "",
                "doc": f"The {key}.",
                "source": "a test",
            }
            for key, value in PARAMS[name].items()
        ]
        aliases = ["droptail"] if name == "pfifo" else []
        return {
            "name": name,
            "kind": "law" if marks else "discipline",
            "doc": doc,
            "source": "a test",
            "year": year,
            "marks": marks,
            "law": None,
            "params": params,
            "aliases": aliases,
        }

    return json.dumps(
        [
            row("pfifo", 1970, False, "A queue that drops what does not fit."),
            row("ared", 2001, True, "RED that adapts its own slope."),
            row("pi", 2001, True, "A proportional-integral controller of the queue."),
            row("rem", 2001, True, "A price for the link."),
        ]
    )


def stacks() -> str:
    values = [{"name": "min_rto", "value": "1s", "source": "RFC 6298"}]
    return json.dumps([{"name": "freebsd4", "doc": "Hosts of the UNC studies.", "values": values}])


def controllers() -> str:
    return json.dumps([{"name": "cubic", "doc": "A cubic window."}])


def quantities(model: str) -> str:
    return "[]"
