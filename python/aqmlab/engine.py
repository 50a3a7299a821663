"""The one door to the compiled engine: its text in, Python values out, its errors as ours."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from aqmlab import _native as native
from aqmlab import files as reading
from aqmlab.errors import BadInput, Misbehaved

Tree = dict[str, Any]
"""A scenario as nested tables, as `tomllib` gives them."""

Tick = dict[str, float]
"""Progress of a run: `time_s`, `duration_s`, `bottleneck_packets`, `wall_s`."""


@dataclass(frozen=True)
class Load:
    """A block of traffic that asks for a load instead of giving its population."""

    traffic: int
    """Which block, from 0."""
    load_bps: float
    """Mean throughput in one direction that it shall have on the uncongested link, IP packets."""
    direction: str
    """`forward`, `reverse` or `both`: which way its responses flow."""
    place: str = ""
    """Where it is asked for: the file and the line, or `override`."""


@dataclass(frozen=True)
class Reached:
    """A load for which connections were chosen from a set of vectors, and what those offer."""

    traffic: int
    """Which block, from 0."""
    load_bps: float
    offered_bps: float
    scale: float
    """Copies of the set."""
    left_out: int
    """Connections left out of them."""


@dataclass(frozen=True)
class KeptFile:
    """A file that a scenario goes on needing: it is too large to be copied into the text."""

    file: str
    """Its name, as the scenario has it: relative to the folder of the scenario."""
    sha256: str
    """What is in it."""


@dataclass(frozen=True)
class Need:
    """A part of the memory that a run will need."""

    key: str
    """The key of the scenario that asks for it."""
    bytes: int


@dataclass(frozen=True)
class Resolved:
    """A checked scenario with every default filled in."""

    toml: str
    scenario: Tree
    digest: str
    loads: tuple[Load, ...]
    origin: str = field(compare=False)
    files: tuple[KeptFile, ...] = ()
    reached: tuple[Reached, ...] = ()
    memory: tuple[Need, ...] = field(default=(), compare=False)
    """What a run will need; nothing is known as long as a load is to be calibrated."""

    @property
    def name(self) -> str:
        """What the scenario is called."""
        return str(self.scenario.get("name", self.origin))


def resolve(text: str, origin: str, overrides: Sequence[tuple[str, str]] = ()) -> Resolved:
    """Checks a scenario; raises `BadInput` with one line that names file, key, value and what was expected."""
    try:
        answer = json.loads(native.resolve(text, origin, list(overrides)))
    except native.ScenarioError as error:
        raise BadInput(str(error)) from None
    loads = tuple(
        Load(int(row["traffic"]), float(row["load_bps"]), row["direction"], row.get("place", ""))
        for row in answer["loads"]
    )
    files = tuple(KeptFile(row["file"], row["sha256"]) for row in answer["files"])
    reached = tuple(Reached(**row) for row in answer.get("reached", []))
    memory = tuple(Need(**row) for row in answer.get("memory", []))
    return Resolved(answer["toml"], answer["scenario"], answer["digest"], loads, origin, files, reached, memory)


def check_toml(text: str, origin: str) -> None:
    """Checks that a text is TOML of a size and depth that are read; raises `BadInput` with one line where it is not."""
    try:
        native.check_toml(text, origin)
    except native.ScenarioError as error:
        raise BadInput(str(error)) from None


def equilibrium(resolved: Resolved) -> dict[str, float] | None:
    """What the parameters of the discipline forward were computed for; only redopt's are for an equilibrium."""
    found: dict[str, float] | None = json.loads(native.equilibrium(resolved.toml, resolved.origin))
    return found


def simulate(resolved: Resolved, directory: Path, progress: Callable[[Tick], None] | None = None) -> dict[str, Any]:
    """Runs a scenario into an existing folder and returns its summary; what `progress` raises ends the run."""
    try:
        summary: dict[str, Any] = json.loads(native.simulate(resolved.toml, str(directory), progress, resolved.origin))
    except native.ScenarioError as error:
        raise BadInput(str(error)) from None
    except native.LawError as error:
        raise Misbehaved(str(error)) from None
    return summary


def bring_library(library: str, path: Path, sha256: str) -> dict[str, Any]:
    """Brings the law of a shared library for scenarios that name the file `path`: its `disciplines`, `built_with`."""
    return _brought(native.bring_library, library, path, sha256)


def bring_table(address: int, path: Path, sha256: str) -> dict[str, Any]:
    """Brings a law whose table stands at an address of this process, for good."""
    return _brought(native.bring_table, address, path, sha256)


def drive(resolved: Resolved, seed: int, operations: int, tells: bool = False) -> dict[str, Any]:
    """Puts the forward discipline through random operations: counts, or a `fault` and where `tells` its `story`."""
    found: dict[str, Any] = json.loads(native.drive(resolved.toml, resolved.origin, seed, operations, tells))
    return found


def _brought(bring: Callable[..., str], what: str | int, path: Path, sha256: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(bring(what, str(path), sha256))
    except native.ScenarioError as error:
        raise BadInput(str(error)) from None
    return found


def has_test_bed() -> bool:
    """Whether this build can run scenarios between real hosts, which takes Linux."""
    return hasattr(native, "live")


def version() -> str:
    """Version of the engine."""
    return native.version()


def file_sha256() -> str:
    """SHA-256 of the compiled engine: two builds of one version may differ."""
    return _sha256_of(str(native.__file__))


@lru_cache
def _sha256_of(file: str) -> str:
    # Once a process: a file that is built anew later on is not what this process has loaded.
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def disciplines() -> list[dict[str, Any]]:
    """Every discipline: name, kind, law, doc, source, year, marks, params, aliases."""
    return list(_disciplines(native))


@lru_cache
def _disciplines(made_by: Any) -> list[dict[str, Any]]:
    # Of this engine for as long as it is loaded; thousands of variants are read by it.
    rows: list[dict[str, Any]] = json.loads(made_by.disciplines())
    return rows


def stacks() -> list[dict[str, Any]]:
    """Every TCP stack profile: name, doc, values."""
    rows: list[dict[str, Any]] = json.loads(native.stacks())
    return rows


def measures() -> list[dict[str, Any]]:
    """Every measure: name, title, unit, formula, source, key, parameters."""
    rows: list[dict[str, Any]] = json.loads(native.measures())
    return rows


def traffic_models() -> list[dict[str, Any]]:
    """Every kind of traffic or model of a kind: name, doc, keys, and the words in which a block is spoken of."""
    rows: list[dict[str, Any]] = json.loads(native.traffic_models())
    return rows


def speaks_tcp(block: Mapping[str, Any]) -> bool:
    """Whether the hosts of a block of traffic do."""
    return any(row["speaks_tcp"] for row in traffic_models() if row["kind"] == block["kind"])


def quantities(model: str) -> list[dict[str, Any]]:
    """What a traffic model draws by default; nothing of one that has no such thing."""
    rows: list[dict[str, Any]] = json.loads(native.quantities(model))
    return rows


def table_quantity(path: Path) -> dict[str, Any]:
    """The distribution in a CSV file of two columns; raises `BadInput` with the line that is wrong."""
    try:
        row: dict[str, Any] = json.loads(native.table_quantity(str(path), reading.text(path, reading.TABLE)))
    except native.ScenarioError as error:
        raise BadInput(str(error)) from None
    return row


def vectors(path: Path) -> list[dict[str, Any]]:
    """The connection vectors of a file, in either format; raises `BadInput` with the line that is wrong."""
    try:
        rows: list[dict[str, Any]] = json.loads(native.vectors(str(path), reading.text(path, reading.VECTORS)))
    except native.ScenarioError as error:
        raise BadInput(str(error)) from None
    return rows
