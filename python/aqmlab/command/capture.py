"""The verb `aqmlab capture`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab import units
from aqmlab.errors import BadInput, doubt

if TYPE_CHECKING:
    from aqmlab.capture.against import Check, Paired
    from aqmlab.capture.measure import Measured
    from aqmlab.results.run import Run


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command(name="capture", short_help="Work a live run's figures out from its packets alone.")(capture)


def capture(
    file: Annotated[Path, typer.Argument(metavar="FILE.pcapng", help="Packets captured at the queue.")],
    run: Annotated[
        Path | None, typer.Option("--against", help="The run's result folder, to check its figures.", metavar="FOLDER")
    ] = None,
    begin: Annotated[str | None, typer.Option("--from", help="Start of what is measured, as 10s.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="End of what is measured.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output, and nothing else.")
    ] = False,
) -> None:
    """Work a live run's figures out once more, from its captured packets alone.

    Packets, drops and marks by reason, throughput, the wait in the queue, retransmissions, and response times. With
    --against, beside what the run recorded of the same window.
    """
    from aqmlab.capture.against import against, lacking
    from aqmlab.capture.measure import measure
    from aqmlab.command import capture_tables, terminal

    recorded = None if run is None else _run(run)
    start_s, end_s = (0.0, None) if recorded is None else recorded.window
    start_s = start_s if begin is None else _time_s(begin, "--from")
    end_s = end_s if end is None else _time_s(end, "--to")
    if end_s is not None and end_s <= start_s:
        raise BadInput(f"--to {end or end_s}: expected a time after {start_s:g} s")
    if recorded is not None and (begin is not None or end is not None):
        raise BadInput("capture --against: expected neither --from nor --to, as the run's own window is compared")
    if recorded is not None and (said := lacking(file, recorded)) is not None:
        doubt(said)
    found = measure(file, start_s, end_s)
    checks, pairs = ([], {}) if recorded is None else against(found, recorded)
    if as_json:
        print(json.dumps(_as_dict(found, checks, pairs), indent=2))
    else:
        capture_tables.measured(terminal.console(), found)
        if recorded is not None:
            capture_tables.against(terminal.console(), checks, pairs)
    if any(check.agrees is False for check in checks):
        raise typer.Exit(1)


def _time_s(text: str, option: str) -> float:
    time_s = units.seconds(text, option)
    if not math.isfinite(1e9 * time_s):
        raise BadInput(f"{option} {text}: expected a finite time such as 10s")
    return time_s


def _as_dict(found: Measured, checks: list[Check], pairs: dict[str, Paired]) -> dict[str, Any]:
    said = found.as_dict()
    if checks:
        said["against"] = {
            "checks": [check.as_dict() for check in checks],
            "response_times": {name: pair.as_dict() for name, pair in pairs.items()},
        }
    return said


def _run(folder: Path) -> Run:
    from aqmlab.results import digests
    from aqmlab.results.result import Result

    runs = Result(folder).runs
    if len(runs) != 1:
        raise BadInput(f"{folder}: holds {len(runs)} runs: expected one, as {folder}/rep-1")
    for line in digests.changed(runs):
        doubt(line)
    return runs[0]
