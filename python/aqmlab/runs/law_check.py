"""What a law is put through before anything depends on it, in a process of its own, and what that shows in words."""

import signal
import sys
from dataclasses import asdict, dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from aqmlab import engine, toml_text
from aqmlab.engine import Resolved
from aqmlab.errors import AqmlabError, BadInput
from aqmlab.json_files import Json
from aqmlab.laws import brought, interpreted
from aqmlab.laws.brought import Brought
from aqmlab.runs import starter

PROGRAM = "from aqmlab.runs.law_check import main; main()"

OPERATIONS = 20_000
"""Of a trace: arrivals and departures, with ticks in between."""
SEEDS = (1, 2, 3)
LIMITS = ("60p", "1000p")
"""A queue that is often full, and one that hardly ever is."""
RATE = "10mbit"
PATIENCE_S = 60.0
"""How long a trace may take."""
TIMED = 5
"""Pairs of traces, the law's and drop-tail's, from which the cost of a decision is taken: the quickest of each."""

FOUND, REFUSED = "found", "refused"


@dataclass
class Checked:
    """What came out."""

    name: str
    path: str
    how: str
    built_with: str
    problem: str = ""
    """What is wrong, in a line; nothing where nothing is."""
    story: list[str] = field(default_factory=list)
    """The last operations before it."""
    kept: list[str] = field(default_factory=list)
    """What was tried and found right."""
    remarks: list[str] = field(default_factory=list)
    """What is no mistake and may not be meant."""
    decision_ns: float | None = None
    """What a decision costs more than in drop-tail."""
    kind: str = "law"
    """Whether it is a law, or a discipline, which holds packets."""

    def as_dict(self) -> Json:
        """For `--json`."""
        return asdict(self)


def check(path: Path) -> Checked:
    """Puts the law of a file through all that there is; raises `BadInput` where it is no law."""
    ours, its = Pipe()
    process = starter.python(PROGRAM, [str(its.fileno())], [its.fileno()], starter.environment())
    its.close()
    found: Checked | None = None
    try:
        ours.send(str(path))
        while True:
            if not ours.poll(PATIENCE_S):
                return _broken(found, path, f"gave no answer for {PATIENCE_S:g} s; expected calls that end")
            kind, said = ours.recv()
            if kind == REFUSED:
                raise BadInput(said)
            found, is_over = said
            if is_over:
                assert found is not None
                return found
    except (EOFError, ConnectionError):
        code = process.wait()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return _broken(found, path, f"ended its process {how}; expected one that writes to its state alone")
    finally:
        ours.close()
        process.kill()
        process.wait()


def _broken(found: Checked | None, path: Path, what: str) -> Checked:
    found = found or Checked(path.stem, str(path), "", "")
    found.problem = f"the {found.kind} {found.name} {what}"
    return found


def serve(connection: "Connection[Any, Any]") -> None:
    """Checks the law whose path comes through the connection."""
    try:
        law = brought.of_file(Path(connection.recv()))
        found = Checked(law.name, str(law.path), law.how, law.built_with, kind=law.kind)
        connection.send((FOUND, (found, False)))
        _check(law, found)
        connection.send((FOUND, (found, True)))
    except AqmlabError as error:
        connection.send((REFUSED, str(error)))


def _check(law: Brought, found: Checked) -> None:
    totals: dict[str, int] = {}
    marks, named = bool(law.rows[0]["marks"]), _named(law)
    for kind in (row["name"] for row in law.rows):
        for ecn in (False, True) if marks else (False,):
            for limit in LIMITS:
                resolved = before_a_link({"kind": kind, **named, "limit": limit, **({"ecn": True} if ecn else {})})
                for seed in SEEDS:
                    said = engine.drive(resolved, seed, OPERATIONS)
                    if "fault" in said:
                        return _tell(found, law, resolved, seed)
                    if engine.drive(resolved, seed, OPERATIONS)["history"] != said["history"]:
                        found.problem = (
                            f"the {law.kind} {law.name} gave other answers to the same calls; expected one that keeps "
                            f"all it knows in its fields and draws by chance and uniform alone"
                        )
                        return
                    for key in ("offered", "taken", "lost", "refused", "marked", "ticks", "lost_when_idle"):
                        totals[key] = totals.get(key, 0) + int(said[key])
    traces = len(law.rows) * len(LIMITS) * len(SEEDS) * (2 if marks else 1)
    found.kept = [
        f"{traces} traces, {totals['offered']:,} arrivals, {totals['taken']:,} departures, {totals['ticks']:,} ticks, "
        + (
            "every packet was sent once, lost once or held, and none held back for ever"
            if law.kind == "discipline"
            else "alone and under fair queueing: packets are conserved, verdicts are verdicts, probabilities are from "
            "0 to 1"
        ),
        "the same calls give the same answers",
        f"a full queue refused {totals['refused']:,} packets",
        f"it lost {totals['lost']:,} packets" + (f" and marked {totals['marked']:,}" if marks else ""),
    ]
    if law.how == brought.COMPILED and not _is_as_written(law, found):
        return
    if totals["lost"] + totals["marked"] == 0 and law.kind == "law":
        found.remarks.append("it signalled nothing, however long the queue was")
    elif marks and totals["marked"] == 0:
        alone = "a law that answers DROP alone" if law.kind == "law" else "a discipline that never marks"
        found.remarks.append(f"it marked nothing where it might; {alone} says marks=False")
    if totals["lost_when_idle"]:
        found.remarks.append(
            f"after a minute of silence it lost a lone packet that found an empty queue, in {totals['lost_when_idle']} "
            f"of {traces} traces"
        )
    found.decision_ns = _cost(law)


def _is_as_written(law: Brought, found: Checked) -> bool:
    """Whether a compiled law does what its text does in the interpreter, call by call; says so, or what came of it."""
    twin, name = brought.as_it_is(law), law.name
    for limit in LIMITS:
        for ecn in (False, True) if law.rows[0]["marks"] else (False,):
            more = {"limit": limit, **({"ecn": True} if ecn else {})}
            first, second = (before_a_link({"kind": one.name, **_named(one), **more}) for one in (law, twin))
            for seed in SEEDS:
                said = engine.drive(second, seed, OPERATIONS)
                if "fault" in said:
                    found.problem = (
                        f"the law {name} runs compiled and fails as it is written: "
                        f"{interpreted.FAILURES.get(twin.name, said['fault'])}"
                    )
                    return False
                if said["history"] != engine.drive(first, seed, OPERATIONS)["history"]:
                    found.problem = (
                        f"the law {name} does otherwise compiled than as it is written, with limit {limit} and seed "
                        f"{seed}; expected whole numbers below 2**63 and the same arithmetic, or "
                        f"@aqmlab.law(compiled=False)"
                    )
                    return False
    found.kept.append("compiled it decides as in the interpreter, packet by packet")
    return True


def _tell(found: Checked, law: Brought, resolved: Resolved, seed: int) -> None:
    """The trace once more, with its story."""
    said = engine.drive(resolved, seed, OPERATIONS, tells=True)
    raised = interpreted.FAILURES.get(law.name)
    found.problem = str(said.get("fault", f"the {law.kind} {law.name} failed once, and not again with the same calls"))
    found.problem += f"; {raised}" if raised else ""
    found.story = list(said.get("story", []))


def _cost(law: Brought) -> float:
    """Nanoseconds of a decision beyond what the queue takes without a law."""
    operations = OPERATIONS if law.how in (brought.INTERPRETED, brought.POLICY) else 20 * OPERATIONS
    pair = [before_a_link({**one, "limit": "60p"}) for one in ({"kind": law.name, **_named(law)}, {"kind": "pfifo"})]
    best = [float("inf")] * 2
    for _ in range(TIMED):
        for k, resolved in enumerate(pair):
            said = engine.drive(resolved, SEEDS[0], operations)
            best[k] = min(best[k], said["ns"] / (said["offered"] + said["taken"]))
    return best[0] - best[1]


def _named(law: Brought) -> Json:
    return {"law": {"file": law.path.name, "sha256": law.sha256}}


def before_a_link(qdisc: Json) -> Resolved:
    """A scenario around a discipline; nothing of it runs but that."""
    tree = {"link": {"rate": RATE, "qdisc": qdisc}, "traffic": [{"kind": "bulk"}]}
    return engine.resolve(toml_text.dumps(tree), "check")


def main() -> None:
    """Serves the connection whose file descriptor is the argument."""
    serve(Connection(int(sys.argv[1])))
