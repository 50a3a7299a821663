"""Whether the code of a compiled law surely ends: it has no loop, calls nothing of its own in a circle, indexes
nothing, and uses nothing from elsewhere but `math`. Such a law can neither hold up a run nor break the process.

A law that prints counts as none: a process of its own keeps what it prints apart from the answer of a command.
"""

import dis
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

from aqmlab.laws.declared import Declaration

MODULES = ("math", "aqmlab")
"""What a law may name: functions that end, and words of verdicts."""

INDEXES = ("BINARY_SUBSCR", "BINARY_SLICE", "STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR")


def is_straight(declared: Declaration) -> bool:
    """Whether every call of the law ends, whatever its state and its facts are."""
    methods = {name: item for name, item in declared.methods.items() if isinstance(item, FunctionType)}
    scope = next(iter(methods.values())).__globals__
    if any(method.__globals__ is not scope for method in methods.values()):  # inherited from another file
        return False
    there = {**scope, **methods}
    calls: dict[str, set[str]] = {}
    left = set(methods)
    while left:
        name = left.pop()
        code = there[name].__code__
        named = {word for one in _codes(code) for word in one.co_names} & there.keys()
        calls[name] = {word for word in named if isinstance(there[word], FunctionType)}
        if not _is_plain(code) or not all(_is_known(there[word]) for word in named):
            return False
        left |= calls[name] - calls.keys()
    return not _has_circle(calls)


def _is_known(item: Any) -> bool:
    return isinstance(item, FunctionType | int | float) or (isinstance(item, ModuleType) and item.__name__ in MODULES)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions within it."""
    yield code
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield from _codes(item)


def _is_plain(code: CodeType) -> bool:
    if code.co_freevars or "print" in code.co_names:
        return False
    steps = [step for one in _codes(code) for step in dis.get_instructions(one)]
    return not any(
        step.opname == "FOR_ITER"
        or step.opname in INDEXES
        or (step.opname == "BINARY_OP" and step.argrepr == "[]")
        or (step.opcode in dis.hasjrel and isinstance(step.argval, int) and step.argval <= step.offset)
        for step in steps
    )


def _has_circle(calls: Mapping[str, set[str]]) -> bool:
    """Whether something calls itself, by others or at once."""
    left = dict(calls)
    while ends := [name for name, called in left.items() if not called & left.keys()]:
        for name in ends:
            del left[name]
    return bool(left)
