"""What a law is put through before anything depends on it, in a process of its own, and what that shows in words."""

import contextlib
import faulthandler
import math
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

from aqmlab import arguments, engine, files, toml_text, units
from aqmlab.engine import Resolved
from aqmlab.errors import AqmlabError, BadInput
from aqmlab.json_files import Json
from aqmlab.laws import brought, forms, interpreted
from aqmlab.laws.brought import Brought
from aqmlab.laws.watched import Watched
from aqmlab.runs import starter

PROGRAM = "from aqmlab.runs.law_check import main; main()"

OPERATIONS = 20_000
"""Of a trace: arrivals and departures, with ticks in between."""
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Link:
    """The link of a trace, and the queue before it."""

    rate: str
    limit: str
    operations: int = OPERATIONS

    def __str__(self) -> str:
        """Its rate and its limit."""
        return f"a link of {self.rate} and limit {self.limit}"


SLOWEST = Link("64kbit", "1000p", 8_000)
SLOWEST_OF_POLICIES = Link("640kbit", "1000p", 8_000)
"""In place of it, for policies under fair queueing. These are asked at each step while packets wait: waits of a minute
in many queues were a hundred thousand answers a trace, most of a check. Alone a policy has waits of a minute too."""
LINKS = (Link("10mbit", "60p"), Link("10mbit", "1000p"), Link("10gbit", "1000p"), SLOWEST)
"""A queue that is often full, and one that hardly ever is; waits of microseconds, and of a minute and more."""
TOTALS = ("offered", "taken", "lost", "refused", "marked", "ticks", "lost_when_idle", "reordered")
"""The counts that are added up over all traces."""
ENGINES = ("limit", "ecn", "capacity")
"""Parameters that every law has, which are the engine's."""
WORDS = {"s": "s", "Hz": "hz", "bit/s": "bit", "bytes": "b"}
"""Units as a scenario has them."""
PATIENCE_S = 60.0
"""How long a trace may take."""
BRINGING_S = 60.0
"""How long it may take until a law is compiled."""
VARIED = Link("10mbit", "1000p", 5_000)
"""The trace for each value of a parameter beside its default."""
TIMED = 5
"""Pairs of traces, the law's and drop-tail's, from which the cost of a decision is taken: the quickest of each."""

FOUND, REFUSED = "found", "refused"
AS_WRITTEN = "as-written"


@dataclass
class Checked:
    """What the check of a law or discipline came to."""

    name: str
    path: str
    how: str
    """`compiled` or `interpreted` Python, a `library`, or a `policy`."""
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
    """What a decision costs more than in drop-tail: nanoseconds of processor time a packet that arrives or leaves."""
    kind: str = "law"
    """Whether it is a law, or a discipline, which holds packets."""
    trace: str = ""
    """The trace that was tried last."""

    def as_dict(self) -> Json:
        """For `--json`."""
        return asdict(self)


def check(path: str | Path) -> Checked:
    """Puts the law or discipline of a file through all that there is, and says what came out.

    Raises `BadInput` where the file has none. A broken promise is no exception: it is the answer's `problem`.
    """
    path = arguments.path(path, "path", "the path of a law's file")
    file, is_fair = forms.meant(path)
    if is_fair and files.is_file(file):
        raise BadInput(f"{path}: no such file; expected {file}, which is put to the test under fair queueing too")
    found: Checked | None = None
    with _apart(path) as at:
        try:
            while (answer := at.answer(BRINGING_S if found is None else PATIENCE_S)) is not None:
                kind, said = answer
                if kind == REFUSED:
                    raise BadInput(said)
                found, is_over = said
                if is_over:
                    assert found is not None
                    return found
            called = at.called()
        except (EOFError, ConnectionError):
            code = at.process.wait()
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            said = f"ended its process {how}%s; expected one that writes to its state alone"
            return _broken(found, path, said, at.seen())
    if not called and found is not None and found.how == brought.COMPILED:
        called = _as_written(path)
    return _broken(found, path, f"gave no answer for {PATIENCE_S:g} s%s; expected calls that end", called)


def _as_written(path: Path) -> str:
    """Where a compiled law that does not end is in its file: its text does not end either, and tells its lines."""
    with _apart(path, AS_WRITTEN) as at:
        try:
            patience_s = BRINGING_S
            while (answer := at.answer(patience_s)) is not None:
                kind, said = answer
                if kind == REFUSED or said[1]:
                    return ""
                patience_s = PATIENCE_S
            return at.called()
        except (EOFError, ConnectionError):
            return ""


@dataclass
class _Apart:
    """A process that checks a law."""

    process: subprocess.Popen[bytes]
    ours: "Connection[Any, Any]"
    frames: IO[bytes]
    path: Path

    def answer(self, patience_s: float) -> tuple[str, Any] | None:
        """What it tells next; nothing where that takes too long."""
        return self.ours.recv() if self.ours.poll(patience_s) else None

    def called(self) -> str:
        """Where in the law's own file it is: it writes that when it is asked."""
        self.process.send_signal(signal.SIGUSR1)
        self.ours.poll(1.0)
        return self.seen()

    def seen(self) -> str:
        """Where in the law's own file it was when it wrote its frames; nothing where it was elsewhere."""
        self.frames.seek(0)
        written = self.frames.read().decode(errors="replace")
        for file, line, name in re.findall(r'File "(.+)", line (\d+) in (\w+)', written):
            if file == str(self.path):
                return f" in {name} ({file}:{line})"
        return ""


@contextmanager
def _apart(path: Path, *how: str) -> Iterator[_Apart]:
    """Starts a process that checks the law of a file; it does not outlive its use."""
    ours, its = Pipe()
    with tempfile.TemporaryFile() as frames:
        keep = [its.fileno(), frames.fileno()]
        process = starter.python(PROGRAM, [*map(str, keep), *how], keep, starter.environment())
        its.close()
        try:
            with contextlib.suppress(ConnectionError):  # it is over already, which its answer tells
                ours.send(str(path))
            yield _Apart(process, ours, frames, path)
        finally:
            ours.close()
            process.kill()
            process.wait()


def _broken(found: Checked | None, path: Path, what: str, called: str) -> Checked:
    found = found or Checked(path.stem, str(path), "", "")
    found.problem = f"the {found.kind} {found.name} " + what % (called + (f", {found.trace}" if found.trace else ""))
    return found


class Reporter:
    """The process that checks a law, and tells the one that waits what it is at."""

    def __init__(self, connection: "Connection[Any, Any]", law: Brought) -> None:
        self.connection, self.law = connection, law
        self.found = Checked(law.name, str(law.path), law.how, law.built_with, kind=law.kind)

    def tell(self, is_over: bool = False) -> None:
        """Tells what is known by now."""
        self.connection.send((FOUND, (self.found, is_over)))

    def drive(self, qdisc: Json, link: Link, seed: int, said: str = "") -> Json | None:
        """The counts of a trace; `None` if the law broke a promise in it, which is then the answer.

        `said` is what is unusual of the discipline.
        """
        self.found.trace = f"with {said}{link} and seed {seed}"
        self.tell()
        qdisc = {"limit": link.limit, **qdisc}
        counts = _driven(before_a_link(qdisc, link.rate), seed, link.operations)
        if "fault" not in counts:
            return counts
        self._tell_story(qdisc, link, seed)
        return None

    def _tell_story(self, qdisc: Json, link: Link, seed: int) -> None:
        """The trace once more, with its story; and whether a compiled law fails as it is written, too, and where."""
        law, found, kind = self.law, self.found, qdisc["kind"]
        said = _driven(before_a_link(qdisc, link.rate), seed, link.operations, tells=True)
        raised = interpreted.FAILURES.get(law.name)
        once = f"the {law.kind} {law.name} failed once, and not again with the same calls"
        found.problem = f"{said.get('fault', once)}{f'; {raised}' if raised else ''}, {found.trace}"
        found.story = list(said.get("story", []))
        if law.how == brought.COMPILED:
            twin = brought.as_it_is(law)
            form = next(str(row["name"]) for row, own in zip(twin.rows, law.rows, strict=True) if own["name"] == kind)
            written = before_a_link({**qdisc, "kind": form, **_named(twin)}, link.rate)
            interpreted.FAILURES.pop(twin.name, None)
            if "fault" not in _driven(written, seed, link.operations):
                found.problem += "; as it is written it does not: expected whole numbers below 2**63"
            elif raised := interpreted.FAILURES.get(twin.name):
                found.problem += f"; as it is written: {raised}"


def serve(connection: "Connection[Any, Any]", as_written: bool = False) -> None:
    """Checks the law whose path comes through the connection; a compiled one as it is written, if so wanted."""
    try:
        law = brought.of_file(Path(connection.recv()))
        reporter = Reporter(connection, brought.as_it_is(law) if as_written else law)
        reporter.tell()
        _check(reporter)
        reporter.tell(is_over=True)
    except AqmlabError as error:
        connection.send((REFUSED, str(error)))


def _check(reporter: Reporter) -> None:
    law, found = reporter.law, reporter.found
    marks, totals, traces, silent = bool(law.rows[0]["marks"]), dict.fromkeys(TOTALS, 0), 0, 0
    overtaking = ""
    for qdisc, link, seed in _traces(law, [str(row["name"]) for row in law.rows]):
        said, again = reporter.drive(qdisc, link, seed), reporter.drive(qdisc, link, seed)
        if said is None or again is None:
            return
        if again["history"] != said["history"]:
            found.problem = (
                f"the {law.kind} {law.name} gave other answers to the same calls, {found.trace}; expected one that "
                f"keeps all it knows in its fields and draws by chance and uniform alone"
            )
            return
        traces, silent = traces + 1, silent + (said["taken"] == 0)
        for key in TOTALS:
            totals[key] += int(said[key])
        if said["overtaking"] and not overtaking:
            overtaking = "packet {} left before packet {} of its flow, ".format(*said["overtaking"]) + found.trace
    if silent == traces:
        found.problem = (
            f"the {law.kind} {law.name} lost all {totals['offered']:,} packets that arrived; expected one that lets "
            f"packets pass"
        )
        return
    found.kept = [
        f"{traces} traces, {totals['offered']:,} arrivals, {totals['taken']:,} departures, {totals['ticks']:,} ticks, "
        + (
            "every packet was sent once, lost once or held, and none held back for ever"
            if law.kind == "discipline"
            else "alone and under fair queueing: packets are conserved, verdicts are verdicts, probabilities are from "
            "0 to 1"
        ),
        f"links of {', '.join(dict.fromkeys(link.rate for link in LINKS))}"
        + (f" (under fair queueing {SLOWEST_OF_POLICIES.rate})" if law.how == brought.POLICY else ""),
        "the same calls give the same answers",
        f"a full queue refused {totals['refused']:,} packets",
        f"it lost {totals['lost']:,} packets" + (f" and marked {totals['marked']:,}" if marks else ""),
    ]
    if not _holds_with_other_values(reporter):
        return
    if law.how == brought.COMPILED and not _is_as_written(reporter):
        return
    if silent:
        found.remarks.append(f"it lost every packet in {silent} of {traces} traces")
    if totals["lost"] + totals["marked"] == 0 and law.kind == "law":
        found.remarks.append("it signalled nothing, however long the queue was")
    elif marks and totals["marked"] == 0:
        alone = "a law that answers DROP alone" if law.kind == "law" else "a discipline that never marks"
        found.remarks.append(f"it marked nothing where it might; {alone} says marks=False")
    if overtaking:
        found.remarks.append(f"it reordered packets of one flow, {totals['reordered']:,} in all: {overtaking}")
    if totals["lost_when_idle"]:
        found.remarks.append(
            f"after a minute of silence it lost a lone packet that found an empty queue, in {totals['lost_when_idle']} "
            f"of {traces} traces"
        )
    found.trace = "its cost"
    found.decision_ns = _cost(law)


def _traces(law: Brought, kinds: list[str]) -> Iterator[tuple[Json, Link, int]]:
    """Each discipline with the law, with each link and seed; where it marks, with ECN and without."""
    for kind in kinds:
        for ecn in ({}, {"ecn": True}) if law.rows[0]["marks"] else ({},):
            for link in _links(law, kind):
                for seed in SEEDS:
                    yield {"kind": kind, **_named(law), **ecn}, link, seed


def _links(law: Brought, kind: str) -> tuple[Link, ...]:
    of_a_fair_policy = law.how == brought.POLICY and kind != law.name
    return (*LINKS[:-1], SLOWEST_OF_POLICIES) if of_a_fair_policy else LINKS


def _holds_with_other_values(reporter: Reporter) -> bool:
    """Whether it keeps its promises with each of its own parameters set otherwise; says so, or what came of it."""
    law, tried = reporter.law, 0
    ecn = {"ecn": True} if law.rows[0]["marks"] else {}
    for param in law.rows[0]["params"]:
        values = _values_of(param) if param["name"] not in ENGINES else []
        for value in values:
            qdisc = {"kind": law.name, **_named(law), **ecn, param["name"]: value}
            if reporter.drive(qdisc, VARIED, SEEDS[0], f"{param['name']} = {toml_text.value(value)}, ") is None:
                return False
        tried += len(values)
    if tried:
        reporter.found.kept.append(f"it keeps its promises with {tried} other values of its parameters")
    return True


def _values_of(param: Json) -> list[Any]:
    """Values of a parameter beside its default: half and twice of it, zero and the bounds, as far as they may be."""
    low, high = (math.inf if bound is None else float(bound) for bound in param["range"])
    low = -math.inf if low == math.inf else low
    kind, default = str(param["kind"]), str(param["default"])
    if kind == "flag":
        return [default != "true"]
    found = units.quantity(default)
    if found is None:  # it is reckoned from others
        return []
    number, unit = found
    near = [number / 2, number * 2]
    if kind != "rate":  # no rate is zero
        near.insert(0, 0.0)
    if kind == "number":
        near += [bound for bound in (low, high) if math.isfinite(bound)]
    if kind == "integer":
        near = [float(int(one)) for one in (*near, low)]
    if kind == "time" and unit != "s":
        return []
    apart = [one for one in dict.fromkeys(near) if low <= one <= high and one != number]
    if kind == "integer":
        return [int(one) for one in apart]
    return apart if kind == "number" else [f"{f'{one:.9f}'.rstrip('0').rstrip('.')}{WORDS[unit]}" for one in apart]


def _is_as_written(reporter: Reporter) -> bool:
    """Whether a compiled law does what its text does in the interpreter, call by call; says so, or what came of it."""
    law, found = reporter.law, reporter.found
    ours, theirs = Watched(), Watched()
    twins, differs = (brought.as_compiled(law, ours), brought.as_it_is(law, theirs)), ""
    name, written = law.name, twins[1]
    for qdisc, link, seed in _traces(law, [name]):
        ours.clear()
        theirs.clear()
        if reporter.drive(qdisc, link, seed) is None:
            return False
        said, other = (
            _driven(
                before_a_link({"limit": link.limit, **qdisc, "kind": twin.name, **_named(twin)}, link.rate),
                seed,
                link.operations,
            )
            for twin in twins
        )
        if "fault" in other:
            found.problem = (
                f"the law {name} runs compiled and fails as it is written: "
                f"{interpreted.FAILURES.get(written.name, other['fault'])}, {found.trace}"
            )
            return False
        first = ours.first_difference(theirs)
        if said["history"] != other["history"]:
            found.problem = (
                f"the law {name} does otherwise compiled than as it is written, {found.trace}; "
                + (f"{first}; " if first else "")
                + "expected whole numbers below 2**63 and the same arithmetic, or @aqmlab.law(compiled=False)"
            )
            return False
        if first and not differs:
            differs = f"{first}, {found.trace}: runs may differ, though no decision did here"
    same = "" if differs else ", and has the same in its fields"
    found.kept.append(f"compiled it decides as in the interpreter, packet by packet{same}")
    if differs:
        found.remarks.append(differs)
    return True


def _cost(law: Brought) -> float:
    """Nanoseconds of processor time of a decision beyond what the queue takes without a law."""
    operations = OPERATIONS if law.how in (brought.INTERPRETED, brought.POLICY) else 20 * OPERATIONS
    pair = [
        before_a_link({**one, "limit": "60p"}, LINKS[0].rate)
        for one in ({"kind": law.name, **_named(law)}, {"kind": "pfifo"})
    ]
    best = [float("inf")] * 2
    for _ in range(TIMED):
        for k, resolved in enumerate(pair):
            said = _driven(resolved, SEEDS[0], operations)
            best[k] = min(best[k], said["ns"] / (said["offered"] + said["taken"]))
    return best[0] - best[1]


def _driven(resolved: Resolved, seed: int, operations: int, tells: bool = False) -> Json:
    """What a discipline does in a trace, whose queues end with it."""
    with interpreted.noted() as made:
        try:
            return engine.drive(resolved, seed, operations, tells)
        finally:
            made.forget()


def _named(law: Brought) -> Json:
    return {"law": {"file": law.path.name, "sha256": law.sha256}}


def before_a_link(qdisc: Json, rate: str = LINKS[0].rate) -> Resolved:
    """A scenario around a discipline; nothing of it runs but that."""
    tree = {"link": {"rate": rate, "qdisc": qdisc}, "traffic": [{"kind": "bulk"}]}
    return engine.resolve(toml_text.dumps(tree), "check")


def main() -> None:
    """Serves the connection whose file descriptor is the first argument; the second is that of a file, which is told
    where Python is if the process ends or is asked. `AS_WRITTEN` may follow.
    """
    frames = int(sys.argv[2])
    faulthandler.enable(frames)
    faulthandler.register(signal.SIGUSR1, frames)
    serve(Connection(int(sys.argv[1])), AS_WRITTEN in sys.argv[3:])
