"""A run in a process of its own: where it has a law that could end this one, or hold up the interpreter.

The process is told what to do through a pipe and tells how far it is through the same. Whatever ends it, the message
names the law, and what has finished before stays.
"""

import contextlib
import ctypes
import signal
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from aqmlab import engine
from aqmlab.engine import Resolved
from aqmlab.errors import AqmlabError, BadInput, CannotRun, Misbehaved
from aqmlab.json_files import Json
from aqmlab.laws import brought, interpreted
from aqmlab.runs import starter

PROGRAM = "from aqmlab.runs.apart import main; main()"

READY, TICK, DONE, REFUSED, UNWRITTEN = "ready", "tick", "done", "refused", "unwritten"
KINDS = {kind.__name__: kind for kind in (AqmlabError, BadInput, CannotRun, Misbehaved)}

SILENCE_S = 60.0
"""Time without a sign of life after which a law is taken not to end: a run whose laws are compiled speaks ten
times a second."""

_LINE_BUFFERED = 1
"""`_IOLBF` of `stdio.h`."""

LOOK_S = 0.1
"""How often the one who waits is asked whether it still does, when nothing is heard."""


def simulate(resolved: Resolved, directory: Path, progress: Callable[[Mapping[str, Any]], None]) -> Json:
    """As `engine.simulate`; what interpreted laws took is in the answer's `laws`."""
    ours, its = Pipe()
    try:
        process = starter.python(PROGRAM, [str(its.fileno())], [its.fileno()], starter.environment(), prints=True)
    except OSError as error:
        raise CannotRun(f"a process for the run cannot be started: {error}") from None
    finally:
        its.close()
    last: Mapping[str, Any] = {"time_s": 0.0, "duration_s": 0.0, "bottleneck_packets": 0, "wall_s": 0.0}
    began = heard = time.monotonic()
    is_ready = False
    try:
        ours.send((resolved.toml, resolved.origin, str(directory), brought.handed_on(resolved.scenario)))
        while True:
            if not ours.poll(LOOK_S):
                now = time.monotonic()
                if is_ready and now - heard > SILENCE_S:
                    raise Misbehaved(_said(resolved, f"gave no sign of life for {SILENCE_S:g} s", last))
                progress({**last, "wall_s": now - began})
                continue
            heard = time.monotonic()
            kind, *said = ours.recv()
            if kind == READY:
                is_ready = True
                continue
            if kind == DONE:
                found: Json = said[0]
                return found
            if kind == REFUSED:
                raise KINDS[said[0]](said[1])
            if kind == UNWRITTEN:
                raise OSError(*said)
            last = said[0]
            progress(last)
    except (EOFError, ConnectionError):
        code = process.wait()
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        raise Misbehaved(_said(resolved, how, last)) from None
    finally:
        ours.close()
        process.kill()
        process.wait()


def _said(resolved: Resolved, what: str, last: Mapping[str, Any]) -> str:
    laws = brought.said(brought.of(resolved.scenario))
    return f"the process of the run {what} after {last['time_s']:.1f} s of simulated time; it ran the code of {laws}"


def serve(connection: "Connection[Any, Any]") -> None:
    """Makes the run that comes through the connection."""
    toml, origin, directory, laws = connection.recv()
    try:
        brought.take_over(laws)
        resolved = engine.resolve(toml, origin)
        connection.send((READY,))
        summary = engine.simulate(resolved, Path(directory), lambda tick: connection.send((TICK, dict(tick))))
        costs = {sha256: {"calls": cost.calls, "s": cost.ns / 1e9} for sha256, cost in interpreted.COSTS.items()}
        connection.send((DONE, {**summary, "laws": costs} if costs else summary))
    except AqmlabError as error:
        raised = interpreted.raised_by(str(error))
        kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in KINDS)
        connection.send((REFUSED, kind, "; ".join([str(error), *raised])))
    except ConnectionError:  # nobody listens any more
        raise
    except OSError as error:
        connection.send((UNWRITTEN, error.errno, error.strerror or str(error), error.filename))


def _print_in_lines() -> None:
    """What a law prints is seen at once, line by line: this process is ended when its run is over."""
    sys.stdout = sys.stderr
    with contextlib.suppress(AttributeError, ValueError):  # a C library that calls it otherwise
        library = ctypes.CDLL(None)
        library.setvbuf(ctypes.c_void_p.in_dll(library, "stdout"), None, _LINE_BUFFERED, 0)


def main() -> None:
    """Serves the connection whose file descriptor is the argument."""
    _print_in_lines()
    serve(Connection(int(sys.argv[1])))
