"""Long TCP flows and transfers over three bottlenecks in a row, in ns-2 and in aqmlab, side by side.

ns-2's figures are kept in parking_reference.json, run by run; parking_cases.py measures them. Installs nothing.

    python benches/peers/parking.py                  aqmlab beside the kept figures, pass or fail
    python benches/peers/parking.py --update-docs    and put the table into docs/validation.md

Exit codes: 0 all within tolerance, 1 something is not, 2 bad input or a run failed, 3 aqmlab is missing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from hops import Comparison, Places, summary_of
from ns2_reference import MEASURES, Run, RunError, guarded
from parking_cases import CASES, HOPS, REFERENCE, Case, scenario_of

JUDGED = [measure for measure in MEASURES if measure.tolerance is not None]
KEYS = [measure.key for measure in JUDGED]
BY_NAME = {case.name: case for case in CASES}


def place(hop: int, way: str) -> str:
    """What a hop's queue is called in the table."""
    return f"hop {hop + 1}" if way == "forward" else f"hop {hop + 1}, in reverse"


def chosen(figures: Run) -> Run:
    """What is compared of all that is said of a queue."""
    return {key: figures[key] for key in KEYS}


def kept(name: str) -> list[Places]:
    """ns-2's runs of a case."""
    case = BY_NAME[name]
    stored = json.loads(REFERENCE.read_text())["cases"][name]
    if stored["arguments"] != case.ns2:
        raise RunError(f"{name}: the kept figures have other arguments; measure them anew: parking_cases.py missing")
    return [{place(hop, way): chosen(run["hops"][hop][way]) for hop, way in case.places} for run in stored["runs"]]


def run(aqmlab: Sequence[str], name: str, seed: int) -> Places:
    """One run of aqmlab."""
    case: Case = BY_NAME[name]
    links = summary_of(aqmlab, scenario_of(case), seed)["links"]
    return {place(hop, way): chosen(links[HOPS[hop]][way]) for hop, way in case.places}


def main(words: Sequence[str]) -> int:
    """The comparison."""
    stored = json.loads(REFERENCE.read_text())
    return Comparison(
        program="parking",
        peer=f"{stored['simulator']} (figures of {stored['date']}, {len(stored['seeds'])} seeds)",
        titles={case.name: case.title for case in CASES},
        measures=JUDGED,
        kept=kept,
        run=run,
        runs=10,
    ).main(words)


if __name__ == "__main__":
    sys.exit(guarded("parking", main))
