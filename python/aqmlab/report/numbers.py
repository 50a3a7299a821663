"""The numbers that a page works out from several runs or tables, as a table beside it: `numbers.csv`.

Every other number of a page's tables is in a file of a run already, by the name that the page gives it.
"""

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass

from aqmlab.claims.verdict import Claim
from aqmlab.json_files import Json
from aqmlab.statistics import Interval

FILE = "numbers.csv"
HEAD = ("table", "row", "measure", "value", "half_width_95", "n", "basis")


@dataclass(frozen=True)
class Cell:
    """A number in a table: value, half width, and whether it is better or worse than the baseline by its interval."""

    value: str
    width: str
    judgement: str = ""
    measure: str = ""
    """The name by which the number is found in the table's file."""
    interval: Interval | None = None
    """The number itself; none where there is none."""


Row = tuple[str, str, str, Interval]
"""Table, row, measure and the number."""


def of_cells(table: str, row: str, cells: Iterable[Cell]) -> list[Row]:
    """The numbers of a row of a page's table."""
    return [(table, row, cell.measure, cell.interval) for cell in cells if cell.interval is not None]


def of_claims(asked: Iterable[Claim]) -> list[Row]:
    """The numbers of claims: a row each, by the words that stand before its numbers."""
    return [("claims", claim.id, finding.label, finding.interval) for claim in asked for finding in claim.findings]


def of_page(facts: Json) -> list[Row]:
    """All numbers of a page, in its order."""
    groups = (facts, *facts["also"])
    found = [
        one for group in groups for row in group["rows"] for one in of_cells("measures", row["name"], row["cells"])
    ]
    for row in (row for group in groups for row in group["differences"]):
        found += of_cells("difference_to_baseline", row["name"], row["cells"])
    for part in (*facts["applications"], *facts["parts"]):
        for name, cells in part["rows"]:
            found += of_cells(part["table"], name, cells)
    return found + of_claims(facts["claims"])


def text(rows: Iterable[Row]) -> str:
    """The rows as CSV, with every digit: seconds, bits a second, shares of one, counts."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    for table, row, measure, found in rows:
        writer.writerow((table, row, measure, _number(found.value), _number(found.half_width), found.n, found.basis))
    return out.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else repr(float(value))
