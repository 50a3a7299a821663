"""Methods of a law as they are, called by the engine through the interpreter: slow, and with any library in them."""

import copy
import ctypes
import dataclasses
import platform
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import partial
from numbers import Number, Real
from pathlib import Path, PurePath
from types import MappingProxyType, ModuleType
from typing import Any

from aqmlab.errors import Misbehaved
from aqmlab.laws import interrupted
from aqmlab.laws.declared import DECIDES, METHODS, Declaration
from aqmlab.laws.table import CALL, FAILED, Facts, offset

_OURS = str(Path(__file__).parent)
_FIXED = (type, ModuleType, Enum, Number, str, bytes, tuple, frozenset, PurePath, partial)
"""Kinds of objects that no method changes, though some have attributes."""


@dataclass
class Cost:
    """What the interpreter took."""

    calls: int = 0
    ns: int = 0


COSTS: dict[str, Cost] = {}
"""By the digest of the law's file: several may be called alike."""

FAILURES: dict[str, str] = {}
"""What a law raised last, by its name, in one line."""


def raised_by(said: str) -> list[str]:
    """What the laws and disciplines raised last that a complaint of the engine names."""
    return [told for name, told in FAILURES.items() if re.search(rf"the (law|discipline) {name} ", said)]


def with_place(error: Misbehaved) -> Misbehaved:
    """A complaint of the engine with what the law has raised, where it ran in this process, and forgets that."""
    said = str(error)
    raised = raised_by(said)
    for name in [name for name, told in FAILURES.items() if told in raised]:
        del FAILURES[name]
    return Misbehaved("; ".join([said, *raised]))


class Made:
    """What the interpreter has for the queues of a run: a law each, and what it is told."""

    def __init__(self) -> None:
        self._kept: list[tuple[dict[int, Any], int, dict[int, Any], int, Any]] = []

    def add(self, laws: dict[int, Any], state: int, views: dict[int, Any], facts: int) -> None:
        """Notes the law of a state, and at which address it is told things."""
        self._kept.append((laws, state, views, facts, laws[state]))

    def forget(self) -> None:
        """Drops it all, best before the run ends: after that the addresses may be those of other queues."""
        for laws, state, views, facts, law in self._kept:
            # A run that a law has ended is over already.
            if laws.get(state) is law:
                del laws[state]
            views.pop(facts, None)
        self._kept.clear()


_MADE: ContextVar[Made | None] = ContextVar("_MADE", default=None)


@contextmanager
def noted() -> Iterator[Made]:
    """Notes what is made within for queues, which the engine makes when a run begins; it does not tell when they end.

    Whoever has begun the run forgets what was noted when the run ends.
    """
    made = Made()
    before = _MADE.set(made)
    try:
        yield made
    except BaseException:
        made.forget()
        raise
    finally:
        _MADE.reset(before)


def note(laws: dict[int, Any], state: int, views: dict[int, Any], facts: int) -> None:
    """Notes what was made for a queue, where somebody wants that."""
    if (made := _MADE.get()) is not None:
        made.add(laws, state, views, facts)


def built_with() -> str:
    """What runs laws here, for the record."""
    return f"Python {platform.python_version()}"


def functions(declared: Declaration, sha256: str) -> dict[str, Any]:
    """The functions of a law, as ctypes has them; `sha256` is the digest of its file."""
    cost = COSTS[sha256] = Cost()
    # Of each state its law, and its gauges as they stand in it; of each address the facts that stand there.
    laws: dict[int, tuple[Any, list[tuple[str, Any, Any]]]] = {}
    views: dict[int, Facts] = {}
    clock = time.perf_counter_ns
    whole = [name for name in declared.fields if declared.is_integer(name)]
    _give_each_its_own(declared.cls)

    def field(state: int, name: str) -> Any:
        kind = ctypes.c_int64 if declared.is_integer(name) else ctypes.c_double
        return kind.from_address(state + offset(declared, name))

    def facts_at(address: int) -> Facts:
        found = views[address] = Facts.at(address)
        return found

    def made(state: int, facts: int) -> None:
        """The law that goes with a state, with its parameters: a new one where the state is new."""
        begun = ctypes.c_int64.from_address(state + 8 * len(declared.fields))
        if begun.value == 0:
            begun.value = 1
            kinds = {name: int if declared.is_integer(name) else float for name in declared.gauges}
            shown = [(name, kind, field(state, name)) for name, kind in kinds.items()]
            # What `__init__` computes from its parameters finds the values.
            new = begun_of(declared.cls)
            set_parameters(new, state)
            new.__init__()
            laws[state] = (new, shown)
            note(laws, state, views, facts)
        set_parameters(laws[state][0], state)

    def set_parameters(law: Any, state: int) -> None:
        for name in declared.parameters:
            setattr(law, name, field(state, name).value)

    def function(name: str) -> Any:
        method = declared.methods.get(name)
        decides, prepares = name in DECIDES, name == "prepare"

        def call(state: int, facts: int) -> int:
            began = clock()
            try:
                if interrupted.KEPT.error is not None:
                    interrupted.end_here()
                if prepares:
                    made(state, facts)
                law, gauges = laws[state]
                said = method(law, views.get(facts) or facts_at(facts)) if method is not None else 0
                for one in whole:
                    if (value := getattr(law, one)).__class__ is not int:
                        _refuse_fraction(one, value)
                for gauge, kind, shown in gauges:
                    shown.value = kind(getattr(law, gauge))
                return _verdict(name, said) if decides else 0
            except BaseException as error:
                if error is not interrupted.KEPT.error:
                    FAILURES[declared.name] = told(error, method)
                return FAILED
            finally:
                cost.calls += 1
                cost.ns += clock() - began

        interrupted.CALLED.add(call.__code__)
        return CALL(call)

    return {name: function(name) for name in METHODS if name == "prepare" or name in declared.methods}


def begun_of(cls: Any) -> Any:
    """An object of a class before its `__init__`, which is to find the values of the parameters."""
    return cls.__new__(cls)


def containers(cls: type) -> dict[str, Any]:
    """Lists, tables and other objects in a class, also in one that it stands on, that can be changed."""
    found = {name: item for base in reversed(cls.__mro__[:-1]) for name, item in vars(base).items()}
    return {name: item for name, item in found.items() if not name.startswith("__") and _can_change(item)}


def _can_change(item: Any) -> bool:
    """Whether a method can change what stands in a class, as a list, an array or an object, but no tuple."""
    kind: Any = type(item)
    if kind.__hash__ is None:
        is_array_to_read = getattr(getattr(item, "flags", None), "writeable", True) is False
        return not is_array_to_read and not isinstance(item, MappingProxyType)
    is_frozen = dataclasses.is_dataclass(item) and kind.__dataclass_params__.frozen
    # What has __get__ is asked for it and not stored: a method, a property.
    if isinstance(item, _FIXED) or is_frozen or hasattr(kind, "__get__"):
        return False
    has_attributes = hasattr(item, "__dict__") or any(vars(base).get("__slots__") for base in kind.__mro__)
    goes_on = hasattr(kind, "__next__") or kind.__module__.startswith("numpy.random")
    return (has_attributes or goes_on) and not _is_the_only_one(item)


def _is_the_only_one(item: Any) -> bool:
    """Whether a copy of an object is the object, as of a function of a library or a fraction."""
    try:
        return copy.copy(item) is item
    except Exception:  # there is no copy of an open file
        return False


class _Own:
    """In the place of an object in a class: a law has copies of all of them when it first asks for one.

    Many queues of fair queueing see no packet, and have none.
    """

    def __init__(self, name: str, all_of_them: Mapping[str, Any]) -> None:
        self._name, self._all_of_them = name, all_of_them

    def __get__(self, law: Any, cls: type) -> Any:
        if law is None:
            return self._all_of_them[self._name]
        # What refers to another of them refers to the law's own.
        for name, item in self._copies().items():
            if name not in vars(law):
                setattr(law, name, item)
        return vars(law)[self._name]

    def _copies(self) -> dict[str, Any]:
        try:
            return copy.deepcopy(dict(self._all_of_them))
        except Exception as error:
            alone = {name: item for name, item in self._all_of_them.items() if not _has_a_copy(item)}
            name, item = next(iter((alone or self._all_of_them).items()))
            raise TypeError(
                f"{name}: a {type(item).__name__} in the class cannot be copied for each queue ({error}); expected it "
                f"in __init__(self), as in self.{name} = ..., or outside of the class for all queues to share"
            ) from None


def _has_a_copy(item: Any) -> bool:
    try:
        copy.deepcopy(item)
    except Exception:
        return False
    return True


def _give_each_its_own(cls: type) -> None:
    """Lets each queue have objects of its own, which begin as those in the class."""
    found = containers(cls)
    for name in found:
        setattr(cls, name, _Own(name, found))


def _verdict(method: str, said: Any) -> int:
    """A verdict is a whole number of 32 bits, and neither a fraction nor a truth value."""
    if isinstance(said, bool) or not hasattr(said, "__index__") or not -(2**31) <= int(said) < 2**31:
        raise TypeError(f"{method} answered {said!r}, which is no verdict; expected PASS, SIGNAL, MARK or DROP")
    return int(said)


def _refuse_fraction(name: str, value: Any) -> None:
    """A field that begins as a whole number holds no fraction: compiled, the law would be refused."""
    if isinstance(value, Real) and value != value // 1:
        raise TypeError(
            f"{name} begins as a whole number and is {value!r}; expected it to begin as a fraction, as in "
            f"{name} = 0.0, or to be given a whole number, as by int()"
        )


def told(error: BaseException, method: Callable[..., Any] | None = None) -> str:
    """What was raised, and where."""
    return f"{type(error).__name__}: {error}{place(error, method)}"


interrupted.CATCHING.add(told.__code__)


def place(error: BaseException, method: Callable[..., Any] | None = None) -> str:
    """Where something was raised outside of what calls laws; of a wrong answer, where the method begins."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_OURS)]
    if own:
        # The engine has called prepare, which makes the object first.
        called = f"in {own[0].name}, " if own[0].name in ("__init__", "__new__") else ""
        return f" ({called}{own[-1].filename}:{own[-1].lineno})"
    code = getattr(method, "__code__", None)
    return "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
