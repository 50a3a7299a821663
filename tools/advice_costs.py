"""Writes what advice says of the costs of disciplines, from the benchmark of decisions.

python tools/advice_costs.py
"""

import json
from pathlib import Path

from aqmlab.advice import candidates
from aqmlab.advice.candidates import Way

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "benches" / "decisions.json"
TARGET = ROOT / "python" / "aqmlab" / "advice" / "costs.json"

REGIME = "mixed"
"""A link that is always full, 100 flows, frames of several sizes: nearest to the mix of an advice."""


def kinds() -> set[str]:
    """The disciplines that any platform can have, and what there is today."""
    way = Way(50e6, 0.06, "ethernet")
    found = [
        candidate
        for line, platforms in (("docsis", candidates.PLATFORMS), ("port", candidates.PORTS))
        for platform in platforms
        for candidate in candidates.of(platform, line, 0.06)
        if candidate.settings is not None
    ]
    return {"bfifo", *(str(candidate.qdisc(way)["kind"]) for candidate in found)}


def text() -> str:
    """The file."""
    measured = json.loads(SOURCE.read_text(encoding="utf-8"))
    drop_tail = {"ns": measured["droptail_ns"][REGIME], "instructions": measured["droptail_instructions"][REGIME]}
    found = {
        "date": measured["date"],
        "cpu": measured["machine"]["cpu"],
        "link": drop_tail,
        "disciplines": {
            kind: {key: measured["disciplines"][kind][key][REGIME] for key in ("ns", "instructions")}
            for kind in sorted(kinds())
        },
    }
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
