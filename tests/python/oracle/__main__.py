"""Runs vectors through the oracle: ``PYTHONPATH=tests/python python -m oracle testdata/vectors``."""

from __future__ import annotations

import sys
from pathlib import Path

from oracle import DISCIPLINES, vectors


def main(arguments: list[str]) -> int:
    """Runs every vector named or found; 1 if any disagrees."""
    if not arguments:
        print("usage: python -m oracle FILE-OR-FOLDER ...", file=sys.stderr)
        return 2
    found = [vectors.read(path) for argument in arguments for path in vectors.find(Path(argument))]
    ours = [vector for vector in found if vector.discipline in DISCIPLINES]
    disagreements = 0
    for vector in ours:
        outcome = vectors.run(vector)
        if outcome.disagreement is not None:
            disagreements += 1
            print(vector.path)
            for line in outcome.story:
                print(f"  {line}")
            print(f"  {outcome.disagreement}")
    print(f"{len(ours) - disagreements} of {len(ours)} vectors agree")
    if len(found) > len(ours):
        print(f"no oracle for: {', '.join(sorted({vector.discipline for vector in found} - set(DISCIPLINES)))}")
    return 1 if disagreements or not ours else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
