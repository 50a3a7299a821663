"""The runs from which the compiler learns which way the engine mostly goes: `make profiled`.

    python benches/training.py

The benchmarks' workloads, each for some seconds, and the disciplines that people use. Nothing is written. The engine
that runs them was built to count its branches, which makes it several times slower.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from workloads import arrivals, bulk, mix, packmime, transfers, web

from aqmlab import engine

DISCIPLINES = ("red", "ared", "pi", "pie", "codel", "cobalt", "fq_codel", "fq_pie", "cake", "dualpi2", "sfq")


def runs() -> list[str]:
    """The scenarios, as text."""
    by_discipline = [bulk(6, f'kind = "{kind}"\n') for kind in DISCIPLINES]
    transfers_of = [transfers(40, stack) for stack in ("freebsd4", "linux")]
    return [
        bulk(20, 'kind = "pfifo"\nlimit = "239p"\n'),
        *by_discipline,
        *transfers_of,
        web(90),
        packmime(40),
        mix(40),
        arrivals(4),
    ]


def main() -> None:
    """Makes every run once."""
    for text in runs():
        with tempfile.TemporaryDirectory() as folder:
            summary = engine.simulate(engine.resolve(text, "training.toml"), Path(folder))
        print(f"{summary['scenario']}: {summary['engine']['bottleneck_packets']:,} packets", flush=True)


if __name__ == "__main__":
    main()
