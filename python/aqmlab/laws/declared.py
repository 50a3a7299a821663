"""`@aqmlab.law`: what a class says of a law. `holding` has what is said of a discipline.

The class has parameters, plain numbers that are its state, and methods that the engine calls. Nothing is compiled or
loaded here: a declaration is read when a scenario names its file. What a class inherits is its own as well.
"""

import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, TypeVar, overload

from aqmlab import arguments, units
from aqmlab.errors import BadInput

PASS, DROP, MARK, SIGNAL = 0, 1, 2, 3
"""Verdicts: forward; lose; mark; signal as the packet can carry it."""
EARLY, FORCED, OVERLOAD = 0, 16, 32
"""Causes, added to a verdict: drawn; past the threshold; too heavy to mark."""
TAIL = 8
"""Cause of a discipline alone: the queue is full."""
OWN = 256
"""Causes of a law's own are multiples of this: the first is once this."""

DECIDES = ("on_arrival", "on_departure")
"""Methods that answer a verdict."""
METHODS = ("prepare", *DECIDES, "on_overflow", "on_idle", "tick")
"""Methods that the engine calls."""

KINDS = ("number", "integer", "flag", "time", "frequency", "rate", "size")
"""Kinds of parameters, in the order of their numbers in the interface."""
_OF_UNIT = {"s": "time", "Hz": "frequency", "bit/s": "rate", "bytes": "size"}

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Parameter:
    """A parameter: what `parameter` makes of its default."""

    kind: str
    default: float
    low: float
    high: float
    doc: str
    unit: str


def parameter(
    default: float | int | bool | str,
    doc: str = "",
    *,
    low: float | str | None = None,
    high: float | str | None = None,
    unit: str = "",
) -> Any:
    """Declares a parameter of a law. The default says its kind: 0.5, 3, True, "5ms", "170hz", "10mbit" or "1500b".

    The law reads a time in whole nanoseconds, a rate in bits a second, a size in bytes, a frequency in hertz. `doc`
    says what the parameter is for. `low` and `high` are the bounds of its values, written as the default is. Numbers of
    numpy are numbers. A whole number is from 0 to 2**53, a fraction is any number, and a size ends at 65535 bytes
    unless `high` says otherwise. `unit` is the unit that `aqmlab explain` shows for a plain number. Raises `BadInput`
    if the default has no kind or is out of its bounds.
    """
    for name, text in (("doc", doc), ("unit", unit)):
        _check_text(f"parameter: {name}", text)
    kind, number = quantity(default)
    ends = [implied if bound is None else bound for bound, implied in zip((low, high), _BOUNDS[kind], strict=True)]
    least, most = (_bound(name, default, kind, bound) for name, bound in zip(("low", "high"), ends, strict=True))
    if kind == "integer" and most > 2.0**53:  # up to there each of them is a double
        most, ends[1] = 2.0**53, 2**53
    # Whole numbers are compared as they are: one that is no double would become another.
    exact = int(default) if kind == "integer" else number
    if not least <= exact <= most or not math.isfinite(number) or (kind == "size" and number % 1):
        word = _WORDS[kind] if math.isfinite(number) or kind != "number" else "a finite number"
        raise BadInput(f"parameter: default: {default!r}: expected {word}{_between(*ends)}")
    return Parameter(kind, number, least, most, doc, unit)


_BOUNDS: Mapping[str, tuple[float | str, float | str]] = {
    "number": (-math.inf, math.inf),
    "integer": (0, 2**53),
    "flag": (0, 1),
    "time": ("0s", "1000s"),
    "frequency": ("0.1hz", "1mhz"),
    "rate": ("1bit", "1tbit"),
    "size": ("0b", "65535b"),
}
"""The bounds of a parameter that declares none."""
_WORDS = {
    "number": "a number",
    "integer": "a whole number",
    "flag": "a number",
    "time": "a time",
    "frequency": "a frequency",
    "rate": "a rate",
    "size": "a size in whole bytes",
}


def _bound(name: str, default: Any, kind: str, bound: Any) -> float:
    """A bound of a parameter as the interface has it."""
    bound_kind, number = quantity(bound)
    if kind in _OF_UNIT.values() and number != 0 and bound_kind not in _OF_UNIT.values():
        raise BadInput(f"parameter: {name}: {bound!r}: expected a text with a unit, as the default {default!r} has")
    if kind != "flag" and number != 0 and bound_kind != kind and {bound_kind, kind} != {"number", "integer"}:
        raise BadInput(f"parameter: {name}: {bound!r}: expected {_WORDS[kind]}, as the default {default!r} is")
    if math.isnan(number) or (kind not in ("number", "flag") and number < 0):
        least = "" if kind in ("number", "flag") else ", at least 0"
        raise BadInput(f"parameter: {name}: {bound!r}: expected {_WORDS[kind]}{least}")
    return number


def _between(low: float | str, high: float | str) -> str:
    """What lies between two bounds, in words."""
    if low == -math.inf:
        return "" if high == math.inf else f", at most {high}"
    return f", at least {low}" if high == math.inf else f", from {low} to {high}"


def plain(value: Any) -> Any:
    """A number of numpy's as Python's own; anything else as it is."""
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


def quantity(written: float | int | bool | str) -> tuple[str, float]:
    """What kind of parameter a default makes, and the number that the interface has for it."""
    one = plain(written)
    if isinstance(one, bool):
        return "flag", float(one)
    if isinstance(one, Real):
        try:
            number = float(one)
        except OverflowError:
            number = math.inf if one > 0 else -math.inf  # type: ignore[operator]
        return "integer" if isinstance(one, Integral) else "number", number
    found = units.quantity(one) if isinstance(one, str) else None
    if found is None or found[1] not in _OF_UNIT:
        raise BadInput(f"parameter: {written!r}: expected a number, or a text such as 5ms, 170hz, 10mbit or 1500b")
    number, unit = found
    if unit == "s":
        number *= 1e9
    return _OF_UNIT[unit], round(number) if unit in ("s", "bit/s") and math.isfinite(number) else number


def _check_text(where: str, given: Any) -> None:
    if not isinstance(given, str):
        raise BadInput(f"{where}: {given!r}: expected a text")


@dataclass(frozen=True)
class Cause:
    """A cause of a law's own: what `cause` makes."""

    doc: str
    kind: int


def cause(doc: str = "", *, kind: int = EARLY) -> Any:
    """Declares a cause for which a law loses or marks packets, as in `BURST = aqmlab.cause("Too many at once.")`.

    A verdict is given it as in `aqmlab.DROP + self.BURST`. Its name in tables is that of the class's word in small
    letters. `doc` says what it is. `kind` is the cause as which it counts where causes are summed up: EARLY, FORCED or
    OVERLOAD, or TAIL of a discipline.
    """
    return Cause(doc, kind)


@dataclass(frozen=True)
class Declaration:
    """What a class says of a law."""

    cls: type
    name: str
    doc: str
    compiled: bool
    tick: str | None
    marks: bool
    hosts: bool
    gauges: Mapping[str, str]
    source: str
    year: int
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    state: Mapping[str, float | int] = field(default_factory=dict)
    """Fields that are no parameters, with what they begin with."""
    methods: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    holds: bool = False
    """Whether it is a discipline, which holds packets, and no law."""
    causes: Mapping[str, Cause] = field(default_factory=dict)
    """Causes of its own, by their words in the class."""

    @property
    def fields(self) -> list[str]:
        """Parameters, then state: where each stands is eight bytes behind the one before."""
        return [*self.parameters, *self.state]

    def is_integer(self, name: str) -> bool:
        """Whether a field is a whole number in the state."""
        found = self.parameters.get(name)
        return isinstance(self.state.get(name), int) if found is None else found.kind not in ("number", "frequency")

    def number_of(self, cause: str) -> int:
        """What is added to a verdict for a cause of its own."""
        return OWN * (1 + list(self.causes).index(cause))

    @property
    def place(self) -> str:
        """The file and the line of the class."""
        return place_of(self.cls)


def place_of(what: Any) -> str:
    """Where a class or function is written: `my_law.py:12`."""
    methods = [item for item in vars(what).values() if inspect.isfunction(item)] if inspect.isclass(what) else [what]
    if not methods:
        return str(getattr(what, "__qualname__", what))
    code = inspect.unwrap(methods[0]).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


@overload
def law(cls: Class, /) -> Class: ...


@overload
def law(
    cls: None = None,
    /,
    *,
    name: str | None = None,
    compiled: bool = True,
    tick: str | None = None,
    marks: bool = True,
    hosts: bool = False,
    gauges: Mapping[str, str] | None = None,
    source: str = "",
    year: int = 0,
) -> Callable[[Class], Class]: ...


def law(
    cls: Any = None,
    /,
    *,
    name: str | None = None,
    compiled: bool = True,
    tick: str | None = None,
    marks: bool = True,
    hosts: bool = False,
    gauges: Mapping[str, str] | None = None,
    source: str = "",
    year: int = 0,
) -> Any:
    """Declares a class to be a law of queue management.

    - `name` is the law's name; by default it is made from that of the class: `MyLaw` is `my_law`.
    - `compiled=False` runs the methods in the interpreter, where they can use any library.
    - `tick` says how often the method `tick` is called: a time such as "15ms", or the name of a parameter that is a
      time or a frequency.
    - `marks=False` says that the law never marks; it then has no parameter `ecn`.
    - `hosts=True` tells the law the hosts of arriving packets.
    - `gauges` names fields that reports draw over time, and says of each what it is. `probability` is drawn anyway.
    - `source` and `year` say where the law comes from.

    Raises `BadInput` if the class cannot be a law.
    """

    def declare(cls: Class) -> Class:
        found = declared_by(cls, name, compiled, tick, marks, hosts, gauges or {}, source, year)
        _check(found)
        cls.__aqmlab_law__ = found  # type: ignore[attr-defined]
        return cls

    return declare if cls is None else declare(cls)


def declared_by(
    cls: type,
    name: str | None,
    compiled: bool,
    tick: str | None,
    marks: bool,
    hosts: bool,
    gauges: Mapping[str, str],
    source: str,
    year: int,
    holds: bool = False,
) -> Declaration:
    """What a class declares; `BadInput` if its gauges or its ticks make no sense."""
    own, state = _own(cls), _numbers(cls)
    if compiled:  # as it is written it reckons with the same numbers
        for key, number in state.items():
            setattr(cls, key, number)
    _check_words(cls, name=name, source=source, gauges=gauges, year=year, compiled=compiled, marks=marks, hosts=hosts)
    found = Declaration(
        cls,
        name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower(),
        " ".join((cls.__doc__ or "").split()),
        compiled,
        tick,
        marks,
        hosts,
        {**({"probability": "Probability of a signal."} if "probability" in own else {}), **gauges},
        source,
        year,
        {key: item for key, item in own.items() if isinstance(item, Parameter)},
        state,
        {key: item for key, item in own.items() if inspect.isfunction(item)},
        holds,
        {key: item for key, item in own.items() if isinstance(item, Cause)},
    )
    where = f"{found.place}: {cls.__name__}"
    for gauge in found.gauges:
        if gauge not in found.fields:
            there = ", ".join(found.fields) or f"the class's numbers, as in {gauge} = 0"
            raise BadInput(f"{where}: gauges: {gauge}: expected one of {there}")
    kinds = {"EARLY": EARLY, "FORCED": FORCED, "OVERLOAD": OVERLOAD, **({"TAIL": TAIL} if holds else {})}
    for word, one in found.causes.items():
        _check_text(f"{where}.{word}: doc", one.doc)
        if one.kind not in kinds.values():
            raise BadInput(f"{where}.{word}: kind: {one.kind!r}: expected aqmlab.{', aqmlab.'.join(kinds)}")
        setattr(cls, word, found.number_of(word))
    if not compiled and inspect.isfunction(made := inspect.getattr_static(cls, "__init__")) and not _takes(made, 1):
        raise BadInput(
            f"{place_of(made)}: {cls.__name__}.__init__{inspect.signature(made)}: expected (self), and parameters in "
            'the class, as in target = aqmlab.parameter("20ms", "What it is.")'
        )
    word = "discipline" if holds else "law"
    if tick is not None and not isinstance(tick, str):
        raise BadInput(f'{where}: tick: {tick!r}: expected a time, as in @aqmlab.{word}(tick="15ms")')
    if ("tick" in found.methods) != (tick is not None):
        raise BadInput(f'{where}: expected a method tick and how often it is called, as in @aqmlab.{word}(tick="15ms")')
    if tick is not None and tick not in found.parameters and not _is_time(tick):
        raise BadInput(f"{where}: tick: {tick}: expected a time such as 15ms, or the name of a parameter")
    return found


def _check_words(cls: type, name: Any, source: Any, gauges: Any, year: Any, **truths: Any) -> None:
    """Refuses what the words of a decorator cannot be."""
    where = f"{place_of(cls)}: {cls.__name__}"
    for word, text in (("name", "" if name is None else name), ("source", source)):
        _check_text(f"{where}: {word}", text)
    if not isinstance(gauges, Mapping) or not all(isinstance(text, str) for pair in gauges.items() for text in pair):
        example = '{"field": "What it is."}'
        raise BadInput(f"{where}: gauges: {gauges!r}: expected fields and what they are, as in {example}")
    arguments.whole(year, f"{where}: year", 0, 9999)
    arguments.truths(**{f"{where}: {word}": truth for word, truth in truths.items()})


def _numbers(cls: type) -> dict[str, Any]:
    """The fields of a class that are plain numbers, those of numpy as Python's own."""
    found = {key: plain(item) for key, item in _own(cls).items()}
    return {key: item for key, item in found.items() if isinstance(item, bool | int | float)}


def _own(cls: type) -> dict[str, Any]:
    """What a class has, with what it inherits: what stands in a class replaces what stands in one above it."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[:-1]):
        declared = vars(base).get("__aqmlab_law__")
        # A class that is a law itself has the numbers of its causes in their place.
        found |= vars(base) if declared is None else {**vars(base), **declared.causes}
    return {key: item for key, item in found.items() if not key.startswith("__")}


def _check(found: Declaration) -> None:
    """Refuses what could not work, each thing in one line with its place."""
    where, own = f"{found.place}: {found.cls.__name__}", _own(found.cls)
    if not any(name in found.methods for name in DECIDES):
        raise BadInput(f"{where}: expected a method {' or '.join(DECIDES)} that answers a verdict")
    for name, method in found.methods.items():
        # A class of a library may have such methods for its own purposes.
        if name.startswith("on_") and name not in METHODS and method.__module__ == found.cls.__module__:
            raise BadInput(
                f"{place_of(method)}: {found.cls.__name__}.{name}: expected a method that the engine calls, which are "
                f"{', '.join(METHODS)}, or a name that does not begin with on_"
            )
        if name in METHODS and not _takes(method, 2):
            told = {"prepare": "link", "on_idle": "queue", "tick": "queue"}.get(name, "packet")
            raise BadInput(
                f"{place_of(method)}: {found.cls.__name__}.{name}{inspect.signature(method)}: expected (self, {told})"
            )
    known = {*found.parameters, *found.state, *found.causes, *found.methods}
    if found.compiled:
        for name, begins in found.state.items():
            if isinstance(begins, int) and not -(2**63) <= begins < 2**63:
                raise BadInput(
                    f"{where}.{name}: {begins}: expected a whole number of 64 bits, or a fraction, as in {name} = "
                    f"0.0; @aqmlab.law(compiled=False) takes anything"
                )
        for name, item in own.items():
            if name not in known:
                raise BadInput(
                    f"{where}.{name}: {type(item).__name__}: expected a plain number, a parameter, a cause or a "
                    f"method; @aqmlab.law(compiled=False) takes anything"
                )


def _takes(method: Callable[..., Any], count: int) -> bool:
    """Whether a method can be called with so many arguments, itself one of them."""
    try:
        inspect.signature(method).bind(*[None] * count)
    except TypeError:
        return False
    return True


def _is_time(written: str) -> bool:
    found = units.quantity(written)
    return found is not None and found[1] == "s" and found[0] > 0
