"""Processes that draw: started while runs go on, ready when there is something to draw.

To import matplotlib and to find its fonts takes longer than to draw a figure. So a drawer does both at once, and then
draws what comes through its pipe. It ends with its caller, whatever ends that (see `runs.starter`); what a drawer that
is lost was to draw, the caller draws. Where no process can be had, there are no drawers, and all is drawn here.
"""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from matplotlib.figure import Figure

from aqmlab.figures.drawn import Drawn, Pictures, answering, as_on_page, told
from aqmlab.figures.sheet import PAGE, PHONE, Sheet
from aqmlab.runs import starter

PROGRAM = "from aqmlab.figures.drawers import main; main()"
MOST = 8
"""Drawers: a report of a comparison has some ten drawings."""

Task = Callable[[], bytes]
"""Draws one file; it can be pickled."""


@dataclass(frozen=True)
class Awaited:
    """A file of a figure that a drawer makes."""

    task: Task
    content: Future[bytes]

    def get(self) -> bytes:
        """Its content, drawn here if its drawer was lost."""
        try:
            return self.content.result()
        except (OSError, EOFError):
            return self.task()


class Drawers:
    """Some processes, which draw what they are given until they are closed."""

    def __init__(self, count: int) -> None:
        self._drawers: list[_Drawer] = []
        with contextlib.suppress(OSError):  # as many as can be had
            while len(self._drawers) < min(count, MOST):
                self._drawers.append(_Drawer.start())
        self._free: SimpleQueue[_Drawer] = SimpleQueue()
        for drawer in self._drawers:
            self._free.put(drawer)
        self._threads = ThreadPoolExecutor(max(1, len(self._drawers)), "aqmlab-drawers")

    def begin(self, found: Sequence[Drawn]) -> "Begun":
        """Has figures drawn for a report."""
        sheets = (PAGE, PHONE)
        svgs = [tuple(self.ask(partial(answering, drawn, sheet)) for sheet in sheets) for drawn in found]
        return Begun(self, found, [(wide, narrow) for wide, narrow in svgs])

    def ask(self, task: Task) -> Awaited:
        """Has one file drawn."""
        return Awaited(task, self._threads.submit(self._give, task))

    def _give(self, task: Task) -> bytes:
        if not self._drawers:
            raise EOFError
        drawer = self._free.get()
        try:
            return drawer.draw(task)
        finally:
            self._free.put(drawer)

    def close(self) -> None:
        """Ends the processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for drawer in self._drawers:
            drawer.end()
        self._threads.shutdown()
        for drawer in self._drawers:
            drawer.connection.close()


@contextlib.contextmanager
def drawers(count: int) -> Iterator[Drawers]:
    """Provides at most this many drawers, which end with the block."""
    held = Drawers(count)
    try:
        yield held
    finally:
        held.close()


@dataclass(frozen=True)
class Begun:
    """Figures of a report that are being drawn."""

    drawers: Drawers
    found: Sequence[Drawn]
    svgs: Sequence[tuple[Awaited, Awaited]]

    def finished(self) -> list[Pictures]:
        """Returns all figures as soon as they can be shown; PNGs are begun when the first is asked for."""
        made = []
        for k, (drawn, svgs) in enumerate(zip(self.found, self.svgs, strict=True)):
            (wide, of_wide), (narrow, of_narrow) = (told(svg.get()) for svg in svgs)
            raster = partial(self._png, k)
            described = of_wide, of_narrow
            made.append(Pictures(drawn.name, drawn.title, drawn.caption, wide, narrow, raster, described))
        return made

    def _png(self, place: int) -> bytes:
        return self._pngs[place].get()

    @cached_property
    def _pngs(self) -> list[Awaited]:
        return [self.drawers.ask(partial(as_on_page, drawn)) for drawn in self.found]


@dataclass
class _Drawer:
    process: "subprocess.Popen[bytes]"
    connection: "Connection[Any, Any]"

    @classmethod
    def start(cls) -> "_Drawer":
        ours, its = Pipe()
        try:
            process = starter.python(PROGRAM, [str(its.fileno())], [its.fileno()], starter.environment())
        except OSError:
            ours.close()
            raise
        finally:
            its.close()
        return cls(process, ours)

    def draw(self, task: Task) -> bytes:
        self.connection.send(task)
        return bytes(self.connection.recv())

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def main() -> None:
    """Draws what comes through the connection whose file descriptor is the argument."""
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    Drawn("", "", "", _first).as_format("svg")
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            connection.send(connection.recv()())


def _first(sheet: Sheet) -> Figure:
    """What a figure of a report needs, so that it is loaded."""
    figure = Figure(figsize=sheet.size(2), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([1, 10], [1, 10], label="a")
    axes.set(xscale="log", yscale="log", title="a", xlabel="a", ylabel="a")
    axes.legend()
    return figure
