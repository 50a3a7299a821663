"""The one door to the compiled engine: its text in, Python values out, its errors as ours."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, TypeVar

from aqmlab import _native as native
from aqmlab import files as reading
from aqmlab.errors import BadInput, Misbehaved

Tree = dict[str, Any]
"""A scenario as nested tables, as `tomllib` gives them."""

Tick = dict[str, float]
"""Progress of a run: `time_s`, `duration_s`, `bottleneck_packets`, `wall_s`."""


Passed = tuple[tuple[Any, ...], tuple[int, int, int, float], tuple[float, int]]
"""What was seen of a step: of a queue, as `aqmlab.laws.observed.Seen` has it; of hosts their connections, exchanges
under way, those completed within the step, and the sum of their response times in seconds; what the link could send in
the mean of the step, and can at its end, bits a second."""

Answer = TypeVar("Answer")


OVERRIDE = "override"
"""The place of what is set beside a file."""


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
    """Where it is asked for: the file and the line, or `OVERRIDE`."""


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
    except OSError as error:
        raise _unwritten(error, directory) from None
    return summary


def _unwritten(error: OSError, directory: Path) -> OSError:
    """Why tables cannot be written, with where; the engine says it in words, the system's number among them."""
    said = re.search(r"\(os error (\d+)\)", str(error))
    return error if said is None else OSError(int(said[1]), os.strerror(int(said[1])), str(directory))


def bring_library(library: str, path: Path, sha256: str) -> dict[str, Any]:
    """Brings the law of a shared library for scenarios that name the file `path`: its `disciplines`, `built_with`."""
    return _brought(native.bring_library, library, path, sha256)


def bring_table(address: int, path: Path, sha256: str) -> dict[str, Any]:
    """Brings a law whose table stands at an address of this process, for good."""
    return _brought(native.bring_table, address, path, sha256)


def bring_policy(
    name: str,
    doc: str,
    source: str,
    step_ns: int,
    memory: int,
    made: Callable[[], Callable[[tuple[Any, ...]], float]],
    path: Path,
    sha256: str,
) -> dict[str, Any]:
    """Brings a law that what `made` makes steers in each queue; it is asked every `step_ns`, and knows `memory` steps.

    It is told the fields of `aqmlab.laws.observed.Seen`, and answers with a probability.
    """
    try:
        found: dict[str, Any] = json.loads(
            native.bring_policy(name, doc, source, step_ns, memory, made, str(path), sha256)
        )
    except native.ScenarioError as error:
        raise BadInput(str(error)) from None
    return found


class Stepped:
    """A run that is made a step at a time, looked into and steered.

    `text` is a scenario. One direction (`way`: 0 forward, 1 in reverse) of its link `link` is looked at. Where `laws`
    are given, the discipline there is called `steered`: it signals by a probability if there are none, else one of
    these decides, each the discipline this way of the only link of a scenario. Raises `BadInput` if a scenario makes
    no sense.
    """

    def __init__(self, text: str, origin: str, link: str, way: int, laws: Sequence[str] | None = None) -> None:
        given = None if laws is None else list(laws)
        self._run = _asked(lambda: native.Stepped(text, origin, link, way, given))

    def advance(self, until_ns: int) -> Passed:
        """Lets everything happen that does before this instant; what was seen since this was asked last."""
        return _asked(lambda: self._run.advance(until_ns))

    def steer(self, probability: float) -> None:
        """Packets are signalled with this probability from now on."""
        self._run.steer(probability)

    def choose(self, law: int) -> None:
        """The law of this number decides from now on."""
        self._run.choose(law)

    def set(self, link: str, way: int, changes: Mapping[str, str]) -> None:
        """Sets parameters of a discipline, all at once, written as in a scenario; `BadInput` if it takes them not."""
        _asked(lambda: self._run.set(link, way, list(changes.items())))

    def close(self) -> None:
        """Ends the run."""
        self._run.close()


class Crew:
    """So many threads of the engine, in which runs pass while Python does something else."""

    def __init__(self, threads: int) -> None:
        self._crew = native.Crew(threads)

    def batch(self) -> "Batch":
        """A batch without runs."""
        return Batch(self._crew.batch())

    def close(self) -> None:
        """Ends the threads."""
        self._crew.close()


class Batch:
    """Runs that pass at once, within a `with`: after it none passes any more, whatever was raised in it."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._batch.end()

    def begin(self, number: int, run: Stepped, until_ns: int) -> None:
        """Hands over a run, which is to pass until this instant, by a number."""
        self._batch.begin(number, run._run, until_ns)

    def passed(self) -> Iterator[tuple[int, Passed]]:
        """Of each run its number and what `Stepped.advance` returns, whichever is there first."""
        while (found := _asked(lambda: next(self._batch, None))) is not None:
            yield found


def _asked(ask: Callable[[], Answer]) -> Answer:
    try:
        return ask()
    except native.ScenarioError as error:
        raise BadInput(str(error)) from None
    except native.LawError as error:
        raise Misbehaved(str(error)) from None


def bring_discipline(address: int, path: Path, sha256: str) -> dict[str, Any]:
    """The same of a discipline that holds packets."""
    return _brought(native.bring_discipline, address, path, sha256)


def drive(resolved: Resolved, seed: int, operations: int, tells: bool = False) -> dict[str, Any]:
    """Puts the forward discipline through random operations: counts, or a `fault` and where `tells` its `story`."""
    found: dict[str, Any] = json.loads(native.drive(resolved.toml, resolved.origin, seed, operations, tells))
    return found


def replay(resolved: Resolved, seed: int, ops: list[list[Any]]) -> list[Any]:
    """What the forward discipline decides in a story.

    Its steps are `["offer", ns, bytes, ecn, flow]`, `["take", ns]` and `["look", ns]`. The words of offers and takes
    are those of testdata/vectors; a look finds the backlog and what the discipline shows.
    Random numbers are those of the stream `vector` of the seed. Raises `Misbehaved` if a law breaks a promise.
    """
    found = json.loads(native.replay(resolved.toml, resolved.origin, seed, json.dumps(ops)))
    if "fault" in found:
        raise Misbehaved(found["fault"])
    decisions: list[Any] = found["decisions"]
    return decisions


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


def file() -> str:
    """The file of the compiled engine."""
    return str(native.__file__)


def file_sha256() -> str:
    """SHA-256 of the compiled engine: two builds of one version may differ."""
    return _sha256_of(file())


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


def known_as(name: str) -> str:
    """What the field knows by a name that is none of a discipline here, and what comes nearest; empty of others."""
    return native.known_as(name) or ""


def stacks() -> list[dict[str, Any]]:
    """Every TCP stack profile: name, doc, values."""
    rows: list[dict[str, Any]] = json.loads(native.stacks())
    return rows


NAMES_BY_STACK = {
    "newreno": "Reno's window with repair = newreno (RFC 6582); with the stack ns2 with ns2-newreno.",
    "sack": "Reno's window with repair = sack (RFC 6675); with the stack ns2 with ns2-sack1, with linux with rack.",
    "cubic-rfc": "CUBIC of RFC 9438 with any stack; with freebsd4 and ns2 that is what cubic means.",
    "cubic-linux": "CUBIC as the kernel has it with any stack; with the stack linux that is what cubic means.",
}
"""Further words of `cc`, which stand for a controller and what goes with it (docs/guide/scenario.md)."""


def controllers() -> list[dict[str, Any]]:
    """Every congestion controller: name, doc, whether it sets window and rate by a model of the path."""
    rows: list[dict[str, Any]] = json.loads(native.controllers())
    return [*rows, *({"name": name, "doc": doc, "models_path": False} for name, doc in NAMES_BY_STACK.items())]


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


def kinds_over_udp() -> frozenset[str]:
    """The kinds of traffic whose hosts do not speak TCP."""
    return _kinds_over_udp(native)


@lru_cache
def _kinds_over_udp(made_by: Any) -> frozenset[str]:
    # Asked of every point of a claim.
    rows = json.loads(made_by.traffic_models())
    return frozenset(row["kind"] for row in rows) - {row["kind"] for row in rows if row["speaks_tcp"]}


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
