"""What the handler of a signal raises, as that of Ctrl-C does, while the engine calls laws in Python.

Python runs handlers in its main thread, between any two of its instructions: also before the first line of a function
that the engine calls. Nobody catches there what they raise, and the engine would take whatever stands in memory for the
function's answer. Here handlers raise within a law's own code, whose caller catches it, or when the engine is done.
"""

import signal
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

NUMBERS = (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGINT)
"""Signals whose handlers raise. The last one is the last that has its own again."""

CALLED: set[CodeType] = set()
"""Code of the functions that the engine calls, which catch whatever the law raises."""

CATCHING: set[CodeType] = set()
"""Code that these functions call when they have caught something; nobody catches what is raised in it."""

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class _Kept:
    """What a handler has raised, which whoever asked the engine is still to hear of."""

    error: BaseException | None = None


KEPT = _Kept()


def end_here() -> None:
    """Raises again what a handler has raised, in the main thread: whatever it asked the engine for is to end."""
    if KEPT.error is not None and threading.current_thread() is threading.main_thread():
        raise KEPT.error


def raised_at_end(ask: Callable[Asked, Answer], *asked: Asked.args, **words: Asked.kwargs) -> Answer:
    """Asks the engine for something in which it may call laws; what a handler raises meanwhile is raised afterwards.

    The next call of a law answers that it has failed, so that this is soon. Other threads have no handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        return ask(*asked, **words)
    handlers: dict[int, Any] = {}
    is_over = False

    def keep(number: int, frame: FrameType | None) -> None:
        try:
            handlers[number](number, frame)
        except BaseException as error:
            if is_over:
                raise
            KEPT.error = error
            if _is_caught(frame):
                raise

    try:
        for each in NUMBERS:
            if callable(handler := signal.getsignal(each)):
                handlers[each] = handler
                signal.signal(each, keep)
        return ask(*asked, **words)
    finally:
        try:
            # What has arrived until now is heard here, before the first signal has its own handler again.
            for number, handler in handlers.items():
                signal.signal(number, handler)
        finally:
            is_over = True
            error, KEPT.error = KEPT.error, None
            if error is not None:
                raise error from None


def _is_caught(frame: FrameType | None) -> bool:
    """Whether a law's own code is under way in a frame: what is raised there comes to the function that called it."""
    within = None
    while frame is not None and frame.f_code not in CALLED:
        within, frame = frame, frame.f_back
    return frame is not None and within is not None and within.f_code not in CATCHING
