"""A worker: a process that makes one run after the other, as `local` tells it through a pipe.

It ends when the pipe does: nobody is left behind when whoever started it is gone.
"""

import sys
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from aqmlab.errors import AqmlabError, BadInput, CannotRun, Misbehaved
from aqmlab.sweep.maker import maker
from aqmlab.sweep.work import do, resident_bytes

READY, TICK, DONE, REFUSED, BROKEN = "ready", "tick", "done", "refused", "broken"
"""What a worker says: that it is there; how far a run is; what was found; a complaint of one line; a traceback."""

KINDS: dict[str, type[AqmlabError]] = {kind.__name__: kind for kind in (AqmlabError, BadInput, CannotRun, Misbehaved)}
"""Complaints keep their kind, which is the exit code."""


def serve(connection: "Connection[Any, Any]") -> None:
    """Makes what comes through the connection until there is no more."""
    try:
        connection.send((READY, maker()))
        while True:
            task, scratch, most_bytes = connection.recv()

            def tell(tick: Mapping[str, Any]) -> None:
                connection.send((TICK, dict(tick)))

            try:
                found = do(task, tell, scratch, most_bytes)
                answer: tuple[Any, ...] = (DONE, found.to_bytes(), resident_bytes())
            except AqmlabError as error:
                kind = next(kind for kind in type(error).__mro__ if kind.__name__ in KINDS)
                answer = (REFUSED, kind.__name__, str(error))
            except OSError as error:
                if isinstance(error, ConnectionError):
                    raise
                answer = (REFUSED, CannotRun.__name__, f"{task.name}: {error}")
            except Exception:
                answer = (BROKEN, traceback.format_exc())
            connection.send(answer)
    except (EOFError, ConnectionError):
        return


def main() -> None:
    """Serves the connection whose file descriptor is the argument."""
    serve(Connection(int(sys.argv[1])))
