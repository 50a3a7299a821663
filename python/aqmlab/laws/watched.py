"""What a law has in its fields after each call, compiled and as it is written: the first that differs is named."""

import ctypes
from collections.abc import Mapping
from typing import Any

from aqmlab.laws.declared import Declaration
from aqmlab.laws.table import CALL


class Watched:
    """The calls of a law, and what its fields hold after each of them."""

    def __init__(self) -> None:
        self._fields: dict[str, bool] = {}
        self._methods: list[str] = []
        self._states = bytearray()

    def clear(self) -> None:
        """Forgets what was seen: another trace begins."""
        self._methods, self._states = [], bytearray()

    def watch(self, declared: Declaration, functions: Mapping[str, Any]) -> dict[str, Any]:
        """The functions of a law, which are seen from now on."""
        self._fields = {name: declared.is_integer(name) for name in declared.fields}
        size = 8 * len(self._fields)

        def watched(name: str, function: Any) -> Any:
            inner = CALL(function.address) if hasattr(function, "address") else function

            def call(state: int, facts: int) -> int:
                said: int = inner(state, facts)
                self._methods.append(name)
                self._states += ctypes.string_at(state, size)
                return said

            return CALL(call)

        return {name: watched(name, function) for name, function in functions.items()}

    def first_difference(self, written: "Watched") -> str:
        """The field that first differs from that of the law as it is written, in words; nothing if none does.

        Zeros are alike whatever their sign, and so are numbers that are none.
        """
        if self._states == written._states:
            return ""
        import numpy as np

        kinds = [(name, np.int64 if is_integer else np.float64) for name, is_integer in self._fields.items()]
        ours, theirs = (np.frombuffer(bytes(one._states), np.dtype(kinds)) for one in (self, written))
        calls = min(len(ours), len(theirs))
        first: dict[int, str] = {}
        for name in self._fields:
            here, there = ours[name][:calls], theirs[name][:calls]
            differ = np.flatnonzero((here != there) & ((here == here) | (there == there)))
            if differ.size:
                at = int(differ[0])
                first.setdefault(
                    at,
                    f"{name} is {here[at].item()!r} compiled and {there[at].item()!r} as it is written, after "
                    f"{self._methods[at]}",
                )
        return first[min(first)] if first else ""
