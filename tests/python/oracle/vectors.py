"""Runs the vectors of testdata/vectors; their format is in the README there."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oracle import build
from oracle.frame import Counted, Discipline, DrawsUsedUpError, Packet, Told, Uniform
from oracle.parameters import Written
from oracle.stream import Stream

_HEAD = {"about", "source", "discipline", "rate_bps", "seed", "draws", "parameters", "steps"}
_STEP = {
    *("at_ns", "offer", "take", "tick", "ecn", "flow", "times", "every_ns"),
    *("expect", "except", "probability", "control", "packets", "bytes", "within"),
}


@dataclass(frozen=True)
class Vector:
    """One vector as read."""

    path: Path
    discipline: str
    rate_bps: int
    seed: int | None
    draws: list[float]
    parameters: Mapping[str, Written]
    steps: list[Mapping[str, Any]]


@dataclass
class Outcome:
    """What the oracle made of a vector."""

    story: list[str] = field(default_factory=list)
    """What happened, up to the first disagreement."""
    disagreement: str | None = None
    """What differs, ``None`` if nothing does."""


def find(root: Path) -> list[Path]:
    """Every vector under ``root``, or ``root`` itself."""
    return [root] if root.is_file() else sorted(root.rglob("*.toml"))


def read(path: Path) -> Vector:
    """Reads a vector; a key that the format does not have is an error."""
    table = tomllib.loads(path.read_text())
    unknown = set(table) - _HEAD | {key for step in table["steps"] for key in set(step) - _STEP}
    if unknown:
        raise ValueError(f"{path}: no such key in a vector: {', '.join(sorted(unknown))}")
    return Vector(
        path,
        table["discipline"],
        table["rate_bps"],
        table.get("seed"),
        table.get("draws", []),
        table.get("parameters", {}),
        table["steps"],
    )


def run(vector: Vector) -> Outcome:
    """Runs ``vector`` and compares decision by decision, up to the first disagreement."""
    outcome = Outcome()
    # A vector without draws says that none are needed, or that they do not matter: then any will do.
    uniform: Uniform = Stream(vector.seed or 0, "vector")
    if vector.seed is not None:
        stream = Stream(vector.seed, "vector")
        if vector.draws != [stream.unit() for _ in vector.draws]:
            outcome.disagreement = "the draws are not those of the seed"
            return outcome
        uniform = Counted(uniform, len(vector.draws))
    discipline = build(vector.discipline, vector.parameters, vector.rate_bps, uniform)
    offers = 0
    for number, step in enumerate(vector.steps, 1):
        try:
            for repetition in range(1, step.get("times", 1) + 1):
                at_ns = step["at_ns"] + (repetition - 1) * step.get("every_ns", 0)
                discipline.advance(at_ns)
                if "offer" in step:
                    offers += 1
                    told = discipline.offer(_packet(offers, step), at_ns)
                else:
                    told = discipline.take(at_ns) if "take" in step else []
                outcome.story.append(f"step {number}: {at_ns} ns: {_deed(step)}: {', '.join(map(str, told))}")
                expected = step.get("except", {}).get(str(repetition), step.get("expect"))
                if expected is not None and not agrees(expected, told):
                    outcome.disagreement = f"step {number}, repetition {repetition}: the vector expects: {expected}"
                    return outcome
        except DrawsUsedUpError as used_up:
            outcome.disagreement = f"step {number}: {used_up}"
            return outcome
        outcome.disagreement = _state_disagreement(step, discipline)
        if outcome.disagreement is not None:
            outcome.disagreement = f"step {number}: {outcome.disagreement}"
            return outcome
    return outcome


def agrees(expected: str, told: list[Told]) -> bool:
    """Whether what was told is what is expected; numbers count where they are written."""
    items = [item.strip() for item in expected.split(",")]
    if len(items) != len(told):
        return False
    return all(
        item == str(one if "#" in item else Told(one.word, one.cause)) for item, one in zip(items, told, strict=True)
    )


def close(value: float | None, expected: float | None, within: float = 1e-9) -> bool:
    """Whether two numbers are equal but for rounding: relative, and absolute where they are small."""
    if value is None or expected is None:
        return value is expected
    return abs(value - expected) <= within * max(abs(expected), 0.001)


def _packet(number: int, step: Mapping[str, Any]) -> Packet:
    return Packet(number, step["offer"], step.get("ecn", "not-ect"), step.get("flow", 1))


def _deed(step: Mapping[str, Any]) -> str:
    if "offer" in step:
        return f"offer {step['offer']} {step.get('ecn', 'not-ect')}"
    return "take" if "take" in step else "tick"


def _state_disagreement(step: Mapping[str, Any], discipline: Discipline) -> str | None:
    within = step.get("within", 1e-9)
    waiting, law = discipline.waiting, discipline.law
    for key, have in (("packets", waiting.packets), ("bytes", waiting.bytes)):
        if key in step and step[key] != have:
            return f"{key}: the vector expects {step[key]}, here {have}"
    for key, value in (("probability", law.probability()), ("control", law.control())):
        if key in step and not close(value, step[key], within):
            return f"{key}: the vector expects {step[key]}, here {value}"
    return None
