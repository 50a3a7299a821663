"""Methods of a law compiled by Numba to functions of the binary interface: no interpreter is in the run.

A state is a record of numbers, the facts another; methods are compiled for these types as they are written. They may
call other methods of the class and functions of their own file.
"""

import dis
import inspect
import re
import types as python_types
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from aqmlab.errors import BadInput, CannotRun
from aqmlab.laws.declared import DECIDES, METHODS, Declaration, place_of
from aqmlab.laws.table import FAILED, FIELDS, Facts

FACTS = (*FIELDS, "sojourn_ns", "rate_bps")
"""What a law may read of the argument of a call."""

EXTRA = 'pip install "aqmlab[laws]"'
"""What brings Numba."""


@lru_cache
def _numba() -> Any:
    try:
        import numba
        import numba.extending
    except ImportError:
        raise CannotRun(
            f"numba is not installed; expected {EXTRA}, or @aqmlab.law(compiled=False) to run the law as it is"
        ) from None
    return numba


def built_with() -> str:
    """What compiles laws here, for the record."""
    import llvmlite.binding as llvm

    return f"Numba {_numba().__version__}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


def functions(declared: Declaration) -> dict[str, Any]:
    """The functions of a law; `BadInput` names the file and the line that cannot be compiled."""
    import numpy as np

    numba = _numba()
    fields = [(name, np.int64 if declared.is_integer(name) else np.float64) for name in declared.fields]
    kind, state = _record(declared.cls.__name__, [*fields, ("_begun", np.int64)])
    for word in declared.causes:
        _constant_on(kind, word, declared.number_of(word))
    facts, methods = _facts(), {}
    scopes: dict[int, dict[str, Any]] = {}
    for name, method in declared.methods.items():
        # A method that is inherited may be of another file.
        file = id(method.__globals__)
        if file not in scopes:
            scopes[file] = _scope(method.__globals__, numba)
        methods[name] = numba.njit(error_model="python")(_within(method, scopes[file]))
        if name not in METHODS:
            _callable_on(kind, name, methods[name])
    made: dict[str, Any] = {"prepare": _prepare(declared, state, facts, methods.get("prepare"))}
    for name in METHODS[1:]:
        if name in methods:
            call = _deciding if name in DECIDES else _doing
            with _refusing(declared, name):
                made[name] = call(methods[name], state, facts)
            if name in DECIDES:
                _check_answer(declared, name, methods[name])
    called = [item for scope in scopes.values() for item in scope.values() if numba.extending.is_jitted(item)]
    for function in (*methods.values(), *called):
        _check_fractions(declared, function, kind)
    return made


def _check_answer(declared: Declaration, name: str, method: Any) -> None:
    """Refuses a way through a method whose answer is a fraction, a truth value, or nothing, as without a return.

    A conversion would make a verdict of it, or fail at each packet.
    """
    from numba.core import ir

    types = _numba().types
    for one in method.overloads.values():
        known = one.type_annotation
        steps = [step for block in known.blocks.values() for step in block.body]
        given: dict[str, Any] = {step.target.name: step.value for step in steps if isinstance(step, ir.Assign)}
        for step in steps:
            if not isinstance(step, ir.Return):
                continue
            said = step.value
            while isinstance(given.get(said.name), ir.Expr) and given[said.name].op == "cast":
                said = given[said.name].value
            answer = known.typemap[said.name]
            wrong = ((types.Float, "a fraction"), (types.Boolean, "True or False"))
            nothing = ((types.NoneType, "nothing"), (types.Optional, "nothing"))
            if what := next((what for kind, what in (*wrong, *nothing) if isinstance(answer, kind)), None):
                raise BadInput(
                    f"{declared.methods[name].__code__.co_filename}:{step.loc.line}: {declared.cls.__name__}.{name} "
                    f"answers {what}; expected a verdict on every way through it: PASS, SIGNAL, MARK or DROP"
                )


def _check_fractions(declared: Declaration, function: Any, kind: Any) -> None:
    """Refuses a fraction that is put into a field of whole numbers, where it would lose what lies behind the point.

    `function` is a method, or another function of the file, to which the law may have been handed.
    """
    from numba.core import ir

    for one in function.overloads.values():
        known = one.type_annotation
        for step in (step for block in known.blocks.values() for step in block.body):
            if not isinstance(step, ir.SetAttr) or not isinstance(known.typemap[step.target.name], kind):
                continue
            given = known.typemap[step.value.name]
            if declared.is_integer(step.attr) and isinstance(given, _numba().types.Float):
                begins = "a whole number" if step.attr in declared.parameters else declared.state[step.attr]
                file, law = function.py_func.__code__.co_filename, declared.cls.__name__
                raise BadInput(
                    f"{file}:{step.loc.line}: {law}.{step.attr} begins as {begins} and is given a fraction; expected "
                    f"it to begin as a fraction, as in {step.attr} = 0.0, or to be given a whole number, as by int()"
                )


class _refusing:  # noqa: N801 - it reads as a verb
    """Turns a complaint of Numba into one line with the place."""

    def __init__(self, declared: Declaration, method: str) -> None:
        self.declared, self.method = declared, method

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        from numba.core.errors import NumbaError

        if isinstance(error, KeyError):  # what Numba says of a field that a record has not
            name = str(error.args[0])
            if (asked := _asked_for(name, self.declared)) not in (None, "self"):
                facts = ", ".join([*FACTS, "chance", "uniform"])
                raise BadInput(
                    f"{_use_of(name, self.declared)}: {asked} has no {name}; expected one of {facts}"
                ) from None
            raise BadInput(
                f"{_use_of(name, self.declared)}: {self.declared.cls.__name__} has no field {name}; expected it in the "
                f"class, with the number it begins with, as in {name} = 0.0"
            ) from None
        if error is None or not isinstance(error, NumbaError | NotImplementedError | TypeError | AttributeError):
            return
        place, reason = _reason(error, self.declared.methods.get(self.method))
        if isinstance(error, AttributeError) and error.name:
            place = _use_of(error.name, self.declared)
        if self.method in DECIDES and (answers := re.search(r"No conversion from (.+?) to int32", reason)):
            raise BadInput(
                f"{place}: {self.declared.cls.__name__}.{self.method} answers {answers[1]}; expected a verdict on "
                f"every way through it: PASS, SIGNAL, MARK or DROP"
            ) from None
        raise BadInput(
            f"{place}: {self.declared.cls.__name__}.{self.method} cannot be compiled: {reason}; expected numbers, the "
            f"law's own fields and methods, and math, or @aqmlab.law(compiled=False) to run it as it is"
        ) from None


def _asked_for(name: str, declared: Declaration) -> str | None:
    """Of what a field is asked for where it is used first, by its name in the method; `None` if that is not plain."""
    for method in declared.methods.values():
        before: Any = None
        for step in dis.get_instructions(method):
            if step.argval == name:
                return before if isinstance(before, str) else None
            before = step.argval[-1] if isinstance(step.argval, tuple) and step.argval else step.argval
    return None


def _use_of(name: str, declared: Declaration) -> str:
    """Where a field is used first."""
    for method in declared.methods.values():
        for step in dis.get_instructions(method):
            if step.argval == name and step.positions is not None:
                return f"{method.__code__.co_filename}:{step.positions.lineno}"
    return declared.place


def _reason(error: BaseException, method: Any) -> tuple[str, str]:
    """Where Numba stumbled, and why, in one line of its many."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    place = place_of(method) if method is not None else "?"
    file = place.rpartition(":")[0]
    # Numba writes paths as seen from here.
    found = re.findall(rf'File "[^"]*{re.escape(Path(file).name)}", line (\d+)', text)
    line = found[0] if found else None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [
        line for line in lines if not re.match(r"(Failed in|During:|File |\^|-|>>>|Overload|There are|This is)", line)
    ]
    why = next(
        (line for line in said if re.search(r"(Unknown|Untyped|No implementation|not support|Cannot|invalid)", line)),
        "",
    )
    return (f"{file}:{line}" if line else place), (why or (said[0] if said else type(error).__name__))


@lru_cache
def _facts() -> Any:
    """The type of the facts, whose `chance` and `uniform` call what the engine has handed in."""
    import numpy as np
    from llvmlite import ir

    numba = _numba()
    plain = {"c_long": np.int64, "c_longlong": np.int64, "c_double": np.float64}
    fields = [(one[0], plain.get(getattr(one[1], "__name__", ""), np.int64)) for one in Facts._fields_]
    kind, record = _record("Facts", fields)
    byte, word, double = ir.IntType(8).as_pointer(), ir.IntType(64), ir.DoubleType()

    def called(builder: Any, facts: Any, name: str, answer: Any, words: list[Any]) -> Any:
        base = builder.bitcast(facts, byte)
        at = builder.gep(base, [ir.Constant(word, record.offset(name))])
        function_type = ir.FunctionType(answer, [byte, *(item.type for item in words)])
        function = builder.inttoptr(builder.load(builder.bitcast(at, word.as_pointer())), function_type.as_pointer())
        return builder.call(function, [base, *words])

    def chance_of(typing: Any, facts: Any, probability: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, words: Any) -> Any:
            said = called(builder, words[0], "_chance", ir.IntType(32), [words[1]])
            return builder.icmp_signed("!=", said, ir.Constant(ir.IntType(32), 0))

        return numba.types.boolean(record, numba.types.float64), code

    def uniform_of(typing: Any, facts: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, words: Any) -> Any:
            return called(builder, words[0], "_uniform", double, [])

        return numba.types.float64(record), code

    chance, uniform = map(numba.extending.intrinsic, (chance_of, uniform_of))
    # Lambdas: Numba compares names and annotations of what is typed with those of what is compiled.
    on_facts = partial(numba.extending.overload_method, kind)
    on_facts("chance")(lambda self, probability: lambda self, probability: chance(self, float(probability)))
    on_facts("uniform")(lambda self: lambda self: uniform(self))
    return record


def _record(name: str, fields: list[tuple[str, Any]]) -> tuple[Any, Any]:
    """A record of these fields that has methods of its own: a kind of types and the one type of it."""
    import numpy as np
    from numba.core.datamodel import models

    types = _numba().types
    plain = _numba().from_dtype(np.dtype(fields, align=True))
    kind = type(name, (types.Record,), {})
    _numba().extending.register_model(kind)(models.RecordModel)
    facts = {
        key: {"type": one.type, "offset": one.offset, "alignment": one.alignment, "title": one.title}
        for key, one in plain.fields.items()
    }
    return kind, kind(list(facts.items()), plain.size, plain.aligned)


def _callable_on(kind: Any, name: str, method: Any) -> None:
    """Lets a law call a method of its own on `self`, which is a record to Numba."""
    _numba().extending.overload_method(kind, name)(
        lambda self, *words: lambda self, *words: method(self, *words),
    )


def _constant_on(kind: Any, name: str, number: int) -> None:
    """Lets a law read a word of its class that is the same in every state."""
    _numba().extending.overload_attribute(kind, name)(lambda self: lambda self: number)


def _scope(file: Mapping[str, Any], numba: Any) -> dict[str, Any]:
    """What the file of a law has, its functions to be compiled where they are called."""
    there = dict(file)
    for name, item in list(there.items()):
        if inspect.isfunction(item) and item.__globals__ is file:
            there[name] = numba.njit(error_model="python")(_within(item, there))
    return there


def _within(function: Callable[..., Any], scope: dict[str, Any]) -> Callable[..., Any]:
    return python_types.FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )


def _deciding(method: Any, state: Any, facts: Any) -> Any:
    numba = _numba()
    signature = numba.types.int32(numba.types.CPointer(state), numba.types.CPointer(facts))

    def call(state: Any, facts: Any) -> Any:
        try:
            return method(numba.carray(state, 1)[0], numba.carray(facts, 1)[0])
        except Exception:
            return FAILED

    return numba.cfunc(signature)(call)


def _doing(method: Any, state: Any, facts: Any) -> Any:
    numba = _numba()
    signature = numba.types.int32(numba.types.CPointer(state), numba.types.CPointer(facts))

    def call(state: Any, facts: Any) -> Any:
        try:
            method(numba.carray(state, 1)[0], numba.carray(facts, 1)[0])
            return 0
        except Exception:
            return FAILED

    return numba.cfunc(signature)(call)


def _prepare(declared: Declaration, state: Any, facts: Any, method: Any) -> Any:
    """Gives the fields what they begin with, once, and then does what the law's own `prepare` does."""
    begins = {f"begin_{name}": number for name, number in declared.state.items() if number != 0}
    lines = [f"        self.{word.removeprefix('begin_')} = {word}" for word in begins]
    text = "\n".join(["def begin(self, link):", "    if self._begun == 0:", "        self._begun = 1", *lines])
    text += "\n    own(self, link)\n" if method is not None else "\n"
    scope: dict[str, Any] = {"own": method, **begins}
    exec(text, scope)
    with _refusing(declared, "prepare"):
        return _doing(_numba().njit(scope["begin"]), state, facts)
