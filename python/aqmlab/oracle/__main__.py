"""Runs vectors through the oracle: ``python -m aqmlab.oracle testdata/vectors``."""

from __future__ import annotations

import sys
from pathlib import Path

from aqmlab.oracle import vectors


def main(arguments: list[str]) -> int:
    """Runs every vector named or found; 1 if any disagrees."""
    if not arguments:
        print("usage: python -m aqmlab.oracle FILE-OR-FOLDER ...", file=sys.stderr)
        return 2
    paths = [path for argument in arguments for path in vectors.find(Path(argument))]
    disagreements = 0
    for path in paths:
        outcome = vectors.run(vectors.read(path))
        if outcome.disagreement is not None:
            disagreements += 1
            print(path)
            for line in outcome.story:
                print(f"  {line}")
            print(f"  {outcome.disagreement}")
    print(f"{len(paths) - disagreements} of {len(paths)} vectors agree")
    return 1 if disagreements or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
