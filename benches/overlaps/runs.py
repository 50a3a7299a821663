"""The runs that overlaps are shown by, kept in measured.json: a quarter of an hour on one core.

    python benches/overlaps/runs.py                 all of them
    python benches/overlaps/runs.py NAME ...        only runs, bridges, walks and queues of these names

A **run** is a case of an evaluation, asked for numbers that its page does not keep. A **bridge** is a case of an
evaluation in which the keys that are named, and no others, are given the values that they have in a scenario of a
study or of docs/validation.md: what comes of it must be that scenario, key by key. A **walk** changes these keys one
group after the other. A **queue** is what a discipline's second writing (tests/python/oracle) makes of UDP beyond the
link's rate.
"""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / one) for one in ("benches/overlaps", "benches/peers", "benches/peers/linux", "tests/python")]

import places  # noqa: E402
import polars  # noqa: E402

import aqmlab  # noqa: E402
from aqmlab import scenario  # noqa: E402
from aqmlab.errors import Doubt  # noqa: E402
from aqmlab.evaluation import disciplines  # noqa: E402
from aqmlab.scenario import Tree  # noqa: E402
from aqmlab.statistics import half_width  # noqa: E402
from aqmlab.study import definition  # noqa: E402

MEASURED = HERE / "measured.json"
ASKED = HERE / "runs.toml"
NAMES = ("name", "seed")
"""What a scenario is called makes no difference."""
UNRESPONSIVE_LOAD = 1.2
"""Of the link, in section 5.3 of the evaluations."""


def asked() -> dict[str, Any]:
    """The runs, bridges, walks and queues of runs.toml, one for each value of `each`."""
    plan = tomllib.loads(ASKED.read_text(encoding="utf-8"))
    return {
        kind: [one for entry in found for one in places.expanded(entry)] if isinstance(found, list) else found
        for kind, found in plan.items()
    }


@cache
def points(words: str) -> Mapping[str, Tree]:
    """The scenarios of the quick evaluation of a discipline, and of drop-tail beside it, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        study = disciplines.study(Path(folder), words, [], quick=True)
    return {point.name: point.source.tree for point in study.points}


def evaluated(of: str, case: str) -> Tree:
    """The scenario of a case of an evaluation: `congestion/access/medium` of `pie`. Drop-tail is `pfifo`."""
    words, name = ("bfifo", disciplines.BASELINE) if of == "pfifo" else (of, disciplines.discipline(of).name)
    return points(words)[f"{case}/{name}"]


def validated(to: str, case: str) -> Tree:
    """A scenario that docs/validation.md or docs/studies.md has figures of, with every default filled in."""
    if to == "closed-loop":
        import closed_loop
        from closed_loop_cases import CASES, CASES_7_3

        text = closed_loop.scenario_of(next(one for one in (*CASES, *CASES_7_3) if one.name == case))
        return resolved(scenario.read(text).tree)
    if to == "ns-2":
        import compare_ns2
        from ns2_reference import CASES as OF_NS2

        return resolved(scenario.read(compare_ns2.scenario_of(next(one for one in OF_NS2 if one.name == case))).tree)
    study = definition.read(ROOT / "studies" / to)
    return resolved(next(point for point in study.points if point.name == case).source.tree)


def resolved(tree: Tree) -> Tree:
    """With every default filled in, without what makes no difference."""
    found = scenario.read(tree).resolve().scenario
    return {key: item for key, item in found.items() if key not in NAMES}


def leaves(item: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys with their values; lists of tables are numbered."""
    if isinstance(item, Mapping):
        for key, below in item.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    elif isinstance(item, list) and item and isinstance(item[0], Mapping):
        for number, below in enumerate(item):
            yield from leaves(below, f"{path}.{number}")
    else:
        yield path, item


def differing(one: Tree, other: Tree) -> list[str]:
    """The keys in which two scenarios differ."""
    here, there = dict(leaves(one)), dict(leaves(other))
    return sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))


def changed(tree: Tree, keys: Sequence[str], to: Tree) -> Tree:
    """A scenario in which some keys, tables among them, have the values of another one."""
    for key in keys:
        item = _at(to, key)
        tree = _without(tree, key) if item is None else scenario.with_key(tree, key, scenario.copied(item))
    return tree


def _at(tree: Any, key: str) -> Any:
    for step in key.split("."):
        try:
            tree = tree[int(step)] if isinstance(tree, list) else tree[step]
        except (KeyError, IndexError):
            return None
    return tree


def _without(tree: Tree, key: str) -> Tree:
    above, _, last = key.rpartition(".")
    inner = _at(tree, above) if above else tree
    if not isinstance(inner, Mapping) or last not in inner:
        return tree
    rest = {name: item for name, item in inner.items() if name != last}
    return scenario.with_key(tree, above, rest) if above else rest


def numbers(tree: Tree, seeds: int) -> dict[str, Any]:
    """What is kept of the runs of a scenario: means with intervals of 95 %, in seconds, bits a second and shares."""
    with warnings.catch_warnings():
        # A bridge has one key of the other side's after the other, some of which do nothing yet.
        warnings.simplefilter("ignore", Doubt)
        made = aqmlab.run(tree, seed=1, reps=seeds, jobs=1)
    rows = [_of_summary(one.summary) for one in made.runs]
    if tree.get("record", {}).get("drops"):
        for row, one in zip(rows, made.runs, strict=True):
            row["short flows' drops"] = _of_short_flows(one.folder)
    kept = {key: [row[key] for row in rows] for key in rows[0] if all(row[key] is not None for row in rows)}
    return {
        key: {"value": sum(values) / len(values), "half_width_95": half_width(values), "n": len(values)}
        for key, values in kept.items()
    }


def _of_summary(found: Mapping[str, Any]) -> dict[str, float | None]:
    forward, tcp = found["forward"] or {}, found["tcp"] or {}
    lost, marked, offered = (forward.get(f"{key}_packets") for key in ("dropped", "marked", "offered"))
    blocks = {f"goodput {number}": block["goodput_bps"] for number, block in (tcp.get("held_back") or {}).items()}
    times = found["exchanges"]["response_time_s"]
    rates = list(blocks.values())
    return {
        "goodput": tcp.get("forward_goodput_bps"),
        **blocks,
        "ratio": rates[0] / rates[1] if len(rates) == 2 and rates[1] else None,
        "throughput": forward.get("throughput_bps"),
        "utilisation": forward.get("busy_ratio"),
        "delay": forward.get("queue_delay_mean_s"),
        "queue": forward.get("queue_mean_packets"),
        "loss": forward.get("loss_ratio"),
        "signals": (lost + marked) / offered if offered else None,
        "marks": forward.get("mark_ratio"),
        "jain": tcp.get("jain_index"),
        "median": times["p50"],
        "90 %": times["p90"],
    }


def _of_short_flows(folder: Path) -> float:
    """How many packets a discipline signalled of all flows but the long one, which is that of which most were.

    What the limit of the queue takes is no signal of the discipline.
    """
    signals = (polars.col("direction") == 0) & (polars.col("cause") != "tail")
    lost = polars.read_parquet(folder / "drops.parquet").filter(signals)
    of_each = lost.group_by("flow").len()["len"].sort(descending=True)
    return float(of_each[1:].sum())


def run(asked_of: Mapping[str, Any]) -> dict[str, Any]:
    """A case of an evaluation, with keys that are set."""
    tree = evaluated(asked_of["of"], asked_of["case"])
    for key, item in asked_of.get("set", {}).items():
        tree = scenario.with_key(tree, key, item)
    if "queue" in asked_of:
        there = validated(asked_of["queue"]["study"], asked_of["queue"]["case"])
        tree = changed(tree, ["link.qdisc"], there)
    return {"numbers": numbers(tree, int(asked_of.get("seeds", 3)))}


def bridged(asked_of: Mapping[str, Any], families: Mapping[str, Any]) -> tuple[Tree, Tree, list[str]]:
    """An evaluation's scenario, the one that it is changed into, and the keys that are changed."""
    family = families[asked_of["to"]]
    keys = [key for group in family["group"] for key in group["keys"]]
    return evaluated(asked_of["of"], asked_of["from"]), validated(asked_of["to"], asked_of["case"]), keys


def bridge(asked_of: Mapping[str, Any], families: Mapping[str, Any]) -> dict[str, Any]:
    """Changes the keys, sees that nothing else differs, and runs what came of it."""
    start, end, keys = bridged(asked_of, families)
    there = changed(start, keys, end)
    left = differing(resolved(there), end)
    if left:
        raise SystemExit(f"{asked_of['name']}: differs in keys that are not named: {', '.join(left)}")
    return {"keys": differing(resolved(start), end), "numbers": numbers(there, asked_of.get("seeds", 10))}


def walk(asked_of: Mapping[str, Any], families: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a bridge before its first step, and after each."""
    start, end, _ = bridged(asked_of, families)
    steps, tree = [{"step": "as it is", "numbers": numbers(start, 3)}], start
    for group in families[asked_of["to"]]["group"]:
        tree = changed(tree, group["keys"], end)
        steps.append({"step": group["name"], "numbers": numbers(tree, 3)})
    return {"of": asked_of["of"], "steps": steps}


def queue(asked_of: Mapping[str, Any]) -> dict[str, Any]:
    """The mean wait of UDP packets behind the second writing of a discipline, in the window that evaluations measure.

    The sender is that of section 5.3: packets of one size at a constant rate, beyond what the link carries.
    """
    from oracle import DISCIPLINES, build
    from oracle.frame import Packet
    from oracle.stream import Stream

    if asked_of["of"] not in DISCIPLINES:
        raise SystemExit(f"{asked_of['of']}: has no second writing")
    tree = resolved(evaluated(asked_of["of"], f"overload/{asked_of['rate']}"))
    rate = {"access": 20_000_000, "peering": 100_000_000}[asked_of["rate"]]
    given = {key: item for key, item in tree["link"]["qdisc"].items() if key != "kind"}
    slot, gap = 12_000 * 10**9 // rate, round(12_000 * 10**9 / rate / UNRESPONSIVE_LOAD)
    begin, end = 40 * 10**9, 120 * 10**9
    waits, sent = [], []
    for seed in range(1, asked_of.get("seeds", 3) + 1):
        dice = Stream(seed, "overlap")
        discipline = build(asked_of["of"], given, rate, Stream(seed, "vector"))
        arrival, free, idle = int(dice.unit() * 6e9), 0, True
        arrived: dict[int, int] = {}
        number, waited, count = 0, 0, 0
        while arrival < end:
            if not idle and free <= arrival:
                now = free
            else:
                now, number = arrival, number + 1
                arrived[number] = now
                discipline.advance(now)
                for told in discipline.offer(Packet(number, 1500, flow=1), now):
                    if told.word == "drop":
                        arrived.pop(told.number)
                arrival += gap
                if not idle or now < free:
                    continue
            discipline.advance(now)
            idle = True
            for told in discipline.take(now):
                if told.word == "drop":
                    arrived.pop(told.number)
                elif told.word == "send":
                    came, idle, free = arrived.pop(told.number), False, now + slot
                    if begin <= free < end:
                        waited, count = waited + now - came, count + 1
        waits.append(waited / count / 1e9)
        sent.append(count * 12_000 / ((end - begin) / 1e9))
    return {
        "numbers": {
            name: {"value": sum(found) / len(found), "half_width_95": half_width(found), "n": len(found)}
            for name, found in (("delay", waits), ("throughput", sent))
        }
    }


def main(names: Sequence[str]) -> None:
    """Makes what is asked for, and keeps it."""
    plan = asked()
    kept = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    families = plan["family"]
    makers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
        "run": run,
        "bridge": lambda one: bridge(one, families),
        "walk": lambda one: walk(one, families),
        "queue": queue,
    }
    for kind, make in makers.items():
        of_kind = {one["name"]: one for one in plan.get(kind, [])}
        before = kept.get(f"{kind}s", {})
        found = {}
        for name, one in of_kind.items():
            if names and name not in names and kind not in names:
                if name in before:
                    found[name] = before[name]
                continue
            print(f"{kind} {name}", file=sys.stderr, flush=True)
            found[name] = make(one)
        kept[f"{kind}s"] = found
        write(kept)


def write(kept: Mapping[str, Any]) -> None:
    """A line for each, so that a change of one shows as one."""
    parts = []
    for kind, found in kept.items():
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in found.items())
        parts.append(f"{json.dumps(kind)}: {{\n{rows}\n}}")
    MEASURED.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
