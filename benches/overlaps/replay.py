"""Makes the runs of evaluations' pages again, one by one and without the study around them, and compares the numbers.

    python benches/overlaps/replay.py                    all disciplines: twenty minutes on one core
    python benches/overlaps/replay.py pie red            these
    python benches/overlaps/replay.py pie --only mix     the cases of one grid
    ... --set 'tcp.syn_backoff=[1, 2, 4, 8]'             with a key set, to see whether it is what changed

A run is determined by its scenario and its seed. So the numbers must be those of the page to the last digit, unless
what hosts or disciplines do was changed since: then this says which cases are other now, and by how much.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import places  # noqa: E402

import aqmlab  # noqa: E402
from aqmlab import scenario  # noqa: E402
from aqmlab.evaluation import disciplines, template  # noqa: E402
from aqmlab.scenario import Tree  # noqa: E402
from aqmlab.sweep.grid import Point  # noqa: E402

NOTHING: Mapping[str, Any] = MappingProxyType({})
ALIKE = 1e-9
"""Of a mean, which is summed in another order."""


@dataclass(frozen=True)
class Again:
    """A number of a page, and what comes of the same runs today."""

    of: str
    section: str
    label: str
    grid: str
    number: str
    before: places.Number
    now: float

    @property
    def is_alike(self) -> bool:
        """Whether both are the same."""
        return abs(self.now - self.before.value) <= ALIKE * abs(self.before.value)

    @property
    def is_within(self) -> bool:
        """Whether the number of today is within the interval of the page."""
        return abs(self.now - self.before.value) <= (self.before.half_width or 0.0)


@cache
def points(of: str) -> Sequence[Point]:
    """All points of the quick evaluation of a discipline."""
    with tempfile.TemporaryDirectory() as folder:
        return disciplines.study(Path(folder), "bfifo" if of == "pfifo" else of, [], quick=True).points


def again(of: str, grids: Sequence[str] = (), changes: Mapping[str, Any] = NOTHING) -> Iterator[Again]:
    """Each number of a discipline's page, and what its runs have today."""
    kept = {one["id"]: one for one in places.evaluations()[of]["requirements"]}
    name = disciplines.BASELINE if of == "pfifo" else disciplines.discipline(of).name
    seeds = places.evaluations()[of]["profile"]["seeds"]
    for asked in template.template()["requirement"]:
        one = kept.get(template.id_of(asked), {})
        if asked.get("is_again") or (grids and asked["grid"] not in grids):
            continue
        for case in one.get("cases", []):
            at = {**case["at"], "aqm": f"{name}-{disciplines.SCALED}" if "aqm" in case["at"] else name}
            there = {tuple(sorted(p.at.items())): p for p in points(of) if p.grid == asked["grid"]}
            without = {**at, **{axis: value for axis, value in asked.get("without", {}).items() if axis in at}}
            # Drop-tail stands without ECN beside the cases with it, too.
            point = there.get(tuple(sorted(at.items()))) or there[tuple(sorted(without.items()))]
            n = case["goodput"]["n"]
            found = _measured(point.source.with_changes(changes).tree, asked, seeds[0], n)
            for number, now in found.items():
                scale = places.SCALES[case[number]["unit"]]
                width = case[number]["half_width_95"]
                before = places.Number(case[number]["value"] * scale, None if width is None else width * scale, n)
                yield Again(of, asked["section"], case["label"], asked["grid"], number, before, now)


def _measured(tree: Tree, asked: Mapping[str, Any], seed: int, runs: int) -> dict[str, float]:
    summaries = [one.summary for one in aqmlab.run(tree, seed=seed, reps=runs, jobs=1).runs]
    goodput = template.goodput_of(asked)
    link = f"links.{asked['link']}." if "link" in asked else ""
    key = {
        "goodput_bps": "tcp.forward_goodput_bps",
        "throughput_bps": f"{link}forward.throughput_bps",
        "summary": goodput.get("key", ""),
    }[goodput["measure"]]
    return {
        "goodput": sum(_at(one, key) for one in summaries) / runs,
        "delay": sum(_at(one, f"{link}forward.queue_delay_mean_s") for one in summaries) / runs,
    }


def _at(summary: Any, key: str) -> float:
    for step in key.split("."):
        summary = summary[step]
    return float(summary)


def main(words: Sequence[str]) -> int:
    """Prints what is other than before, and returns 1 if anything is."""
    parser = argparse.ArgumentParser(prog="replay.py", description="The runs of evaluations' pages, made again.")
    parser.add_argument("names", nargs="*", metavar="DISCIPLINE")
    parser.add_argument("--only", action="append", default=[], metavar="GRID", help="only this grid")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of every scenario")
    args = parser.parse_args(words)
    changes = dict(scenario.parse_setting(one) for one in args.set)
    other, count = 0, 0
    for of in args.names or places.evaluations():
        for one in again(of, args.only, changes):
            count += 1
            if not one.is_alike:
                other += 1
                by = (one.now / one.before.value - 1) * 100
                said = "within its interval" if one.is_within else "OUTSIDE its interval"
                print(f"{of}  {one.section}  {one.label}  {one.number}: {by:+.2f} %, {said}", flush=True)
        print(f"{of}: {other} of {count} numbers are other so far", file=sys.stderr, flush=True)
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
