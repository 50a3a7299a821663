"""A number with its interval, and where it is read: an evaluation, a study, a table of docs/validation.md, a run.

All numbers are in seconds, bits a second and shares.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))

import marked  # noqa: E402

from aqmlab.evaluation import known  # noqa: E402
from aqmlab.statistics import student  # noqa: E402

ROOT = HERE.parents[1]
MEASURED = HERE / "measured.json"
VALIDATION = ROOT / "docs" / "validation.md"
SCALES = {"ms": 1e-3, "Mb/s": 1e6, "s": 1.0, "%": 0.01, "": 1.0}
CONFIDENT = 0.975
PACKET_BITS = 12_000
"""A packet of 1500 bytes, as all of the evaluations' long flows send."""


class WrongPlaceError(Exception):
    """A place at which there is no such number."""


@dataclass(frozen=True)
class Number:
    """A mean of `n` runs, or what is known exactly."""

    value: float
    half_width: float | None = None
    """Of its interval of 95 %; None where there is none."""
    n: int = 1

    @property
    def variance(self) -> float:
        """Of the mean; 0 of what is known exactly, or is the same in all runs."""
        if not self.half_width or self.n < 2:
            return 0.0
        return (self.half_width / student(CONFIDENT, self.n - 1)) ** 2

    def minus(self, other: Number) -> Number:
        """The difference of independent means (Welch and Satterthwaite)."""
        total = self.variance + other.variance
        if total == 0.0:
            return Number(self.value - other.value, 0.0, min(self.n, other.n))
        freedom = total**2 / sum(one.variance**2 / (one.n - 1) for one in (self, other) if one.variance > 0)
        return Number(self.value - other.value, student(CONFIDENT, freedom) * math.sqrt(total), min(self.n, other.n))

    def over(self, unit: float) -> Number:
        """The same in another unit."""
        return Number(self.value / unit, None if self.half_width is None else self.half_width / unit, self.n)


@cache
def evaluations() -> Mapping[str, Any]:
    """What the evaluations found, by discipline; drop-tail's under `pfifo`."""
    return known.every()


def of_evaluation(of: str, section: str, number: str, at: Mapping[str, str]) -> Number:
    """Goodput or delay of a discipline in the case of a section that its page shows."""
    requirements = {one["id"]: one for one in evaluations()[of]["requirements"]}
    cases = [case for case in requirements[section].get("cases", []) if at.items() <= case["at"].items()]
    plain = [case for case in cases if "aqm" in at or "aqm" not in case["at"]]
    if len(plain) != 1:
        raise WrongPlaceError(f"{of}, {section}, {dict(at)}: {len(plain)} cases; expected one")
    found, scale = plain[0][number], SCALES[plain[0][number]["unit"]]
    return Number(found["value"] * scale, _scaled(found["half_width_95"], scale), found["n"])


def parameter(of: str, name: str) -> str:
    """A parameter of a discipline as its evaluation had it, which is its default."""
    return str(next(one["value"] for one in evaluations()[of]["subject"]["parameters"] if one["name"] == name))


def finding(study: str, claim: str, label: str, scale: str = "full") -> Mapping[str, Any]:
    """What was found for a claim, at its largest scale, as the study keeps it."""
    found = json.loads((ROOT / "studies" / study / "found.json").read_text(encoding="utf-8"))
    findings = [one for one in found[scale]["claims"][f"{study}-{claim}"]["findings"] if one["label"] == label]
    if len(findings) != 1:
        raise WrongPlaceError(f"{study}-{claim}: {label}: {len(findings)} findings; expected one")
    one: Mapping[str, Any] = findings[0]
    return one


def of_study(study: str, claim: str, label: str) -> Number:
    """A number that was found for a claim."""
    found = finding(study, claim, label)
    return Number(found["value"], found["half_width_95"], found["n"])


@cache
def tables() -> Mapping[str, list[list[str]]]:
    """The tables of docs/validation.md that scripts write, by the names of their marks."""
    return {
        name: [_cells(line) for line in text.splitlines() if line.startswith("|")]
        for name, text in marked.texts(VALIDATION).items()
    }


def of_validation(table: str, row: str, quantity: str, column: str) -> Number:
    """A number of a table of docs/validation.md: of its row, a quantity and a column."""
    head, _, *rows = tables()[table]
    found = [one for one in rows if (one[0], one[head.index("quantity")]) == (row, quantity)]
    if len(found) != 1:
        raise WrongPlaceError(f"validation.md, {table}: {row}, {quantity}: {len(found)} rows; expected one")
    return read(found[0][head.index(column)], quantity)


def read(text: str, quantity: str) -> Number:
    """A cell such as `46.91 ± 0.26`, in the unit that ends the quantity's name."""
    value, _, width = text.replace(",", "").partition(" ± ")
    unit = quantity.rpartition(", ")[2]
    scale = SCALES.get(unit, 1.0)
    # How many runs an interval is of is not in the table; it is ten or more where there is one.
    return Number(float(value) * scale, float(width) * scale if width else None, 10)


@cache
def measured() -> Mapping[str, Any]:
    """What `runs.py` found, by the name of a run."""
    found: Mapping[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def of_run(name: str, number: str) -> Number:
    """A number of a run that was made for this comparison."""
    found = measured()["runs"][name]["numbers"][number]
    return Number(found["value"], found["half_width_95"], found["n"])


def of_bridge(name: str, number: str) -> Number:
    """A number of an evaluation's scenario after it was changed into another one."""
    found = measured()["bridges"][name]["numbers"][number]
    return Number(found["value"], found["half_width_95"], found["n"])


def of_queue(name: str, number: str) -> Number:
    """A number of the second writing of a discipline."""
    found = measured()["queues"][name]["numbers"][number]
    return Number(found["value"], found["half_width_95"], found["n"])


def expanded(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry for each combination of the values of `each`, whose names in braces stand for them in its texts.

    Names that are listed under `together` take their values in step.
    """
    each, steps = entry.get("each", {}), entry.get("together", [])
    in_step = [dict(zip(steps, values, strict=True)) for values in zip(*(each[name] for name in steps), strict=True)]
    free = [[{name: value} for value in values] for name, values in each.items() if name not in steps]
    rest = {key: item for key, item in entry.items() if key not in ("each", "together")}
    combined = itertools.product(in_step or [{}], *free)
    return [_filled(rest, dict(pair for one in chosen for pair in one.items())) for chosen in combined]


def _filled(item: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(item, str):
        return re.sub(r"\{(\w+)\}", lambda found: str(names.get(found[1], found[0])), item)
    if isinstance(item, Mapping):
        return {key: _filled(below, names) for key, below in item.items()}
    return [_filled(below, names) for below in item] if isinstance(item, list) else item


def seconds(said: str, rate_bps: float) -> float:
    """A time, or how long the link needs for so many packets of full size."""
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", said).groups()  # type: ignore[union-attr]
    scales = {"ms": 1e-3, "us": 1e-6, "s": 1.0, "p": PACKET_BITS / rate_bps}
    return float(number) * scales[unit]


def _scaled(width: float | None, scale: float) -> float | None:
    return None if width is None else width * scale


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
