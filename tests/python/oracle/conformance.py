"""Runs random traces through the oracle and through the engine, and compares decision by decision.

``python -m oracle.conformance compare ENGINE [COUNT [FIRST]] [FAMILY ...]`` runs COUNT (1000) traces of each
family, numbered from FIRST (1), through the program ENGINE, built by ``cargo build --release --package aqmlab-scenario
--example replay``; with ``--update-docs`` it writes what came out into docs/validation.md. ``... show ENGINE FAMILY
NUMBER`` tells one as a story. ``... write ENGINE FOLDER`` writes the traces that are kept as test data, one JSON object
a line with request and reply together.
"""

from __future__ import annotations

import functools
import itertools
import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oracle import traces
from oracle.settings import Row
from oracle.traces import Reply, Request
from oracle.vectors import close

OPERATIONS = 200
"""Length of a compared trace."""
KEPT = 18
"""Traces of each family kept as test data."""
CANDIDATES = 500
"""Traces that they are chosen from."""
KEPT_OPERATIONS = 40
"""Length of a kept one."""
CHUNK = 100
"""Traces that a process takes at a time."""
ATTEMPTS = 40
"""Draws of parameters for a trace, after which something is wrong with the family's."""
ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs/validation.md"
PATIENCE = 3
"""Draws after which a parameter that was refused is left out."""


@dataclass(frozen=True)
class Family:
    """A discipline, and its dialect where it has several."""

    row: Row
    dialect: str

    @property
    def name(self) -> str:
        """As it is written on the command line."""
        return f"{self.row.name}/{self.dialect}" if self.dialect else self.row.name

    @property
    def file_name(self) -> str:
        """Where its kept traces are."""
        return f"{self.name.replace('/', '-')}.jsonl"


@dataclass
class Outcome:
    """What came of some traces of a family."""

    traces: int = 0
    agree: int = 0
    decisions: int = 0
    refused: int = 0
    """Draws of parameters that the engine did not admit, and that were drawn again."""
    bad: tuple[int, ...] = ()
    """Traces that disagree."""

    def with_more(self, other: Outcome) -> Outcome:
        """Both together."""
        return Outcome(
            self.traces + other.traces,
            self.agree + other.agree,
            self.decisions + other.decisions,
            self.refused + other.refused,
            self.bad + other.bad,
        )


def main(arguments: list[str]) -> int:
    """The commands above."""
    options = [text for text in arguments if text.startswith("--")]
    match [text for text in arguments if not text.startswith("--")]:
        case ["compare", engine, *rest] if set(options) <= {"--update-docs"}:
            numbers = [int(text) for text in itertools.takewhile(str.isdigit, rest)]
            count, first = [*numbers, *(1000, 1)[len(numbers) :]]
            return compare(engine, count, first, rest[len(numbers) :], "--update-docs" in options)
        case ["show", engine, family, number] if not options:
            return show(engine, family, int(number))
        case ["write", engine, folder] if not options:
            write(engine, Path(folder))
            return 0
    print(__doc__, file=sys.stderr)
    return 2


def compare(engine: str, count: int, first: int, names: list[str], updates_docs: bool) -> int:
    """Prints a line a family; 1 if any trace disagrees."""
    chosen = [family for family in families(engine) if not names or family.name in names or family.row.name in names]
    outcomes: dict[str, Outcome] = {}
    with multiprocessing.Pool(min(os.cpu_count() or 1, 8)) as pool:
        for family in chosen:
            began = time.monotonic()
            starts = range(first, first + count, CHUNK)
            parts = pool.starmap(
                compare_some, [(engine, family, at, min(CHUNK, first + count - at)) for at in starts], chunksize=1
            )
            outcome = outcomes[family.name] = functools.reduce(Outcome.with_more, parts, Outcome())
            print(
                f"{family.name:18}  {outcome.agree} of {outcome.traces} traces agree, {outcome.decisions} decisions"
                f" ({outcome.refused} redrawn, {time.monotonic() - began:.1f} s)",
                flush=True,
            )
            if outcome.bad:
                more = " ..." if len(outcome.bad) > 10 else ""
                print(f"{'':18}  disagree: {' '.join(map(str, outcome.bad[:10]))}{more}")
    if updates_docs:
        update_docs(outcomes)
    return 1 if any(outcome.bad for outcome in outcomes.values()) else 0


def update_docs(outcomes: Mapping[str, Outcome]) -> None:
    """Writes the table into docs/validation.md, a row a family."""
    sys.path.append(str(ROOT / "benches/peers"))
    import marked

    rows = [
        f"| `{name}` | {outcome.traces:,} | {outcome.decisions:,} | {outcome.agree:,} |"
        for name, outcome in outcomes.items()
    ]
    whole = functools.reduce(Outcome.with_more, outcomes.values(), Outcome())
    table = "\n".join(
        [
            "| family | traces | decisions | traces that agree |",
            "|---|--:|--:|--:|",
            *rows,
            f"| all {len(outcomes)} | {whole.traces:,} | {whole.decisions:,} | {whole.agree:,} |",
        ]
    )
    marked.put(DOCS, "traces", table)


def compare_some(engine: str, family: Family, first: int, count: int) -> Outcome:
    """Compares traces of a family."""
    outcome = Outcome(traces=count)
    asked, outcome.refused = admitted(engine, family, range(first, first + count), OPERATIONS)
    for request, theirs in asked:
        ours = decided(request, theirs)
        outcome.decisions += len(theirs["decisions"])
        if difference(ours, theirs) is None:
            outcome.agree += 1
        else:
            outcome.bad += (request["seed"],)
    return outcome


def admitted(engine: str, family: Family, numbers: range, operations: int) -> tuple[list[tuple[Request, Reply]], int]:
    """Traces of these numbers with the engine's replies; parameters that it refuses are drawn again. And how many
    were."""
    found: dict[int, tuple[Request, Reply]] = {}
    blamed: dict[int, set[str]] = {number: set() for number in numbers}
    refused = 0
    for attempt in range(ATTEMPTS):
        left = [number for number in numbers if number not in found]
        if not left:
            break
        requests = [
            traces.trace(family.row, family.dialect, number, operations, attempt, blamed[number]) for number in left
        ]
        for request, reply in zip(requests, ask(engine, requests), strict=True):
            if "decisions" in reply:
                found[request["seed"]] = (request, reply)
                continue
            refused += 1
            # What is refused again and again may only have one value beside the others.
            if attempt >= PATIENCE:
                named = _BLAMED.search(reply["refused"])
                blamed[request["seed"]] |= {named[1]} if named else set()
    else:
        raise RuntimeError(f"{family.name}: in {ATTEMPTS} draws no parameters that are admitted: {reply['refused']}")
    return [found[number] for number in numbers], refused


_BLAMED = re.compile(r"link\.qdisc\.(\w+)")


def decided(request: Request, theirs: Reply) -> Reply:
    """What the oracle decides, or how it fails."""
    try:
        return traces.decide(request, theirs["decisions"])
    except Exception:  # whatever it is, it is a disagreement to be shown
        return {"decisions": [], "failed": traceback.format_exc()}


def show(engine: str, name: str, number: int) -> int:
    """Tells one trace up to the first disagreement."""
    family = next((family for family in families(engine) if family.name == name), None)
    if family is None:
        print(f"{name}: expected one of {', '.join(family.name for family in families(engine))}", file=sys.stderr)
        return 2
    ((request, theirs),), _ = admitted(engine, family, range(number, number + 1), OPERATIONS)
    ours = decided(request, theirs)
    print(f"{family.name} before {request['rate_bps']} bit/s: {request['params']}")
    at = difference(ours, theirs)
    if at is None:
        print(f"agrees over {len(ours['decisions'])} decisions")
        return 0
    for op, decision in list(zip(request["ops"], ours["decisions"], strict=False))[: at + 1]:
        print(f"  {' '.join(map(str, op))}: {decision}")
    print(f"  the engine: {theirs['decisions'][at]}")
    print(ours.get("failed", ""))
    return 1


def families(engine: str) -> list[Family]:
    """Every discipline of the engine, in its dialects."""
    (reply,) = ask(engine, [{"list": "disciplines"}])
    rows = [Row.read(listed) for listed in reply["disciplines"]]
    return [Family(row, dialect) for row in rows for dialect in row.dialects()]


def ask(engine: str, requests: list[Request]) -> list[Reply]:
    """The engine's replies."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([engine], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def difference(ours: Reply, theirs: Reply) -> int | None:
    """The first decision that differs."""
    if "failed" in ours:
        return 0
    pairs = zip(ours["decisions"], theirs["decisions"], strict=True)
    return next((at for at, (one, other) in enumerate(pairs) if not same(one, other)), None)


def same(one: Any, other: Any) -> bool:
    """Whether two decisions are equal, and two states but for rounding."""
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    counted = all(one[key] == other[key] for key in ("packets", "bytes"))
    return counted and all(close(one[key], other[key]) for key in ("probability", "control"))


def write(engine: str, folder: Path) -> None:
    """Writes the kept traces, a file a family, and removes those of families that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.jsonl"):
        old.unlink()
    for family in families(engine):
        asked, _ = admitted(engine, family, range(1, CANDIDATES + 1), KEPT_OPERATIONS)
        asked = most_telling(asked)
        kept = [{**request, **traces.decide(request, theirs["decisions"])} for request, theirs in asked]
        (folder / family.file_name).write_text("".join(f"{line(trace)}\n" for trace in kept))


def most_telling(asked: list[tuple[Request, Reply]]) -> list[tuple[Request, Reply]]:
    """As many as are kept: those that show a kind of decision that fewer than three before them showed, and then the
    first of the others."""
    seen: Counter[str] = Counter()
    telling: list[tuple[Request, Reply]] = []
    others: list[tuple[Request, Reply]] = []
    for request, reply in asked:
        told = [text for text in reply["decisions"] if isinstance(text, str)]
        kinds = {item.partition(" #")[0] for text in told for item in text.split(", ")}
        (telling if any(seen[kind] < 3 for kind in kinds) else others).append((request, reply))
        seen.update(kinds)
    return [*telling, *others][:KEPT]


def line(trace: Mapping[str, Any]) -> str:
    """A kept trace, request and reply together."""
    return json.dumps(trace, separators=(",", ":"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
