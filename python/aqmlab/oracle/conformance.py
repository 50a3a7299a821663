"""Runs random traces through the oracle and through the engine, and compares decision by decision.

``python -m aqmlab.oracle.conformance compare ENGINE [COUNT [FIRST]]`` runs COUNT (1000) traces of each family, numbered
from FIRST (1), through the program ENGINE, built by ``cargo build --release --package aqmlab-scenario --example
replay``; ``... show ENGINE FAMILY NUMBER`` tells one as a story. ``... write FOLDER`` writes the traces that are kept
as test data, one JSON object a line with request and reply together.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from aqmlab.oracle import traces
from aqmlab.oracle.traces import FAMILIES, Reply, Request
from aqmlab.oracle.vectors import close

OPERATIONS = 200
"""Length of a compared trace."""
KEPT = 30
"""Traces of each family kept as test data."""
KEPT_OPERATIONS = 40
"""Length of a kept one."""


def main(arguments: list[str]) -> int:
    """The commands above."""
    match arguments:
        case ["compare", engine, *rest] if len(rest) <= 2 and all(text.isdigit() for text in rest):
            count, first = [*map(int, rest), *(1000, 1)[len(rest) :]]
            return compare(engine, count, first)
        case ["show", engine, family, number]:
            return show(engine, family, int(number))
        case ["write", folder]:
            write(Path(folder))
            return 0
    print(__doc__, file=sys.stderr)
    return 2


def compare(engine: str, count: int, first: int) -> int:
    """Prints a line a family; 1 if any trace disagrees."""
    clean = True
    for family in FAMILIES:
        requests = [traces.trace(family, number, OPERATIONS) for number in range(first, first + count)]
        bad, decisions = [], 0
        for request, theirs in zip(requests, ask(engine, requests), strict=True):
            ours = traces.decide(request)
            decisions += len(ours["decisions"])
            if difference(ours, theirs) is not None:
                bad.append(request["seed"])
        clean = clean and not bad
        print(f"{family:10}  {count - len(bad)} of {count} traces agree, {decisions} decisions", flush=True)
        if bad:
            print(f"{'':10}  disagree: {' '.join(map(str, bad[:10]))}{' ...' if len(bad) > 10 else ''}")
    return 0 if clean else 1


def show(engine: str, family: str, number: int) -> int:
    """Tells one trace up to the first disagreement."""
    request = traces.trace(family, number, OPERATIONS)
    ours, (theirs,) = traces.decide(request), ask(engine, [request])
    print(f"{family} before {request['rate_bps']} bit/s: {request['params']}")
    at = difference(ours, theirs)
    if at is None:
        print(f"agrees over {len(ours['decisions'])} decisions")
        return 0
    for op, decision in list(zip(request["ops"], ours["decisions"], strict=True))[: at + 1]:
        print(f"  {' '.join(map(str, op))}: {decision}")
    print(f"  the engine: {theirs.get('refused') or theirs['decisions'][at]}")
    return 1


def ask(engine: str, requests: list[Request]) -> list[Reply]:
    """The engine's replies."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([engine], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def difference(ours: Reply, theirs: Reply) -> int | None:
    """The first decision that differs."""
    if "refused" in theirs:
        return 0
    pairs = zip(ours["decisions"], theirs["decisions"], strict=True)
    return next((at for at, (one, other) in enumerate(pairs) if not same(one, other)), None)


def same(one: Any, other: Any) -> bool:
    """Whether two decisions are equal, and two states but for rounding."""
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    counted = all(one[key] == other[key] for key in ("packets", "bytes"))
    return counted and all(close(one[key], other[key]) for key in ("probability", "control"))


def write(folder: Path) -> None:
    """Writes the kept traces, a file a family."""
    folder.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        (folder / file_name(family)).write_text(kept(family))


def file_name(family: str) -> str:
    """Where the kept traces of a family are."""
    return f"{family.replace('/', '-')}.jsonl"


def kept(family: str) -> str:
    """The kept traces of a family, as text."""
    requests = [traces.trace(family, number, KEPT_OPERATIONS) for number in range(1, KEPT + 1)]
    lines = [json.dumps({**request, **traces.decide(request)}, separators=(",", ":")) for request in requests]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
