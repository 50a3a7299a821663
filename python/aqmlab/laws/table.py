"""The binary interface of laws and disciplines, as `aqmlab_law.h` has it, filled in from a declaration."""

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from aqmlab.laws.declared import KINDS, METHODS, Declaration, quantity

VERSION = 2
"""Of the interface."""

FAILED = -1
"""What a call answers that cannot go on."""

FIELDS = ("now_ns", "size", "ecn", "may_mark", "flow", "source", "destination", "backlog_packets", "backlog_bytes")
"""Facts that are whole numbers, before those that are not."""

CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_CHANCE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_double)
_UNIFORM = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)


class Facts(ctypes.Structure):
    """What a law learns in a call: `struct aqmlab_facts`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in (*FIELDS, "sojourn_ns")),
        ("rate_bps", ctypes.c_double),
        ("_chance", _CHANCE),
        ("_uniform", _UNIFORM),
        ("_host", ctypes.c_void_p),
    )

    chance: Callable[[float], int]
    """True with this probability."""
    uniform: Callable[[], float]
    """A random number, uniform from 0 to 1 without 1."""

    @classmethod
    def at(cls, address: int) -> "Facts":
        """What stands at an address. Its functions, the same in every call, are looked up once."""
        found = cls.from_address(address)
        found.chance = partial(found._chance, address)
        found.uniform = partial(found._uniform, address)
        return found


_SIGNAL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
_LATER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
QUEUE_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class QueueFacts(ctypes.Structure):
    """What a discipline learns in a call: `struct aqmlab_queue`."""

    _fields_ = (
        *Facts._fields_,
        *((name, ctypes.c_int64) for name in ("handle", "dscp", "limit_packets", "limit_bytes", "is_full")),
        *((name, _SIGNAL) for name in ("_drop", "_mark")),
        ("_later", _LATER),
    )


class _Param(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("name", "doc", "unit")),
        *((name, ctypes.c_uint32) for name in ("kind", "offset")),
        *((name, ctypes.c_double) for name in ("default_value", "low", "high")),
    )


class _Gauge(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("name", "doc", "unit")),
        *((name, ctypes.c_uint32) for name in ("offset", "is_integer")),
    )


class _Cause(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("doc", ctypes.c_char_p), ("kind", ctypes.c_int32))


class _Law(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("version", "state_bytes")),
        *((name, ctypes.c_char_p) for name in ("name", "doc", "source", "built_with")),
        *((name, ctypes.c_uint32) for name in ("year", "marks")),
        ("params", ctypes.POINTER(_Param)),
        *((name, ctypes.c_uint32) for name in ("params_count", "gauges_count")),
        ("gauges", ctypes.POINTER(_Gauge)),
        ("causes", ctypes.POINTER(_Cause)),
        ("tick_ns", ctypes.c_int64),
        ("tick_param", ctypes.c_int32),
        ("wants_hosts", ctypes.c_uint32),
        ("causes_count", ctypes.c_uint32),
        *(
            (name, ctypes.c_void_p)
            for name in ("prepare", "on_arrival", "on_overflow", "on_departure", "on_idle", "tick")
        ),
    )


class _Discipline(ctypes.Structure):
    _fields_ = (("law", _Law), *((name, ctypes.c_void_p) for name in ("offer", "take")))


_KEPT: list[Any] = []
"""Tables and what they point to: the engine uses them as long as the process lives."""


def offset(declared: Declaration, name: str) -> int:
    """Where a field stands in the state."""
    return 8 * declared.fields.index(name)


def state_bytes(declared: Declaration) -> int:
    """The fields, and one more that says whether the state has begun."""
    return 8 * (len(declared.fields) + 1)


def address_of(declared: Declaration, functions: Mapping[str, Any], built_with: str) -> int:
    """Makes the table of a law or discipline out of its functions, Numba's or ctypes'; returns where it stands."""
    params = (_Param * max(1, len(declared.parameters)))(
        *(
            _Param(
                *(text.encode() for text in (name, found.doc, found.unit)),
                KINDS.index(found.kind),
                offset(declared, name),
                found.default,
                found.low,
                found.high,
            )
            for name, found in declared.parameters.items()
        )
    )
    gauges = (_Gauge * max(1, len(declared.gauges)))(
        *(
            _Gauge(name.encode(), doc.encode(), b"", offset(declared, name), declared.is_integer(name))
            for name, doc in declared.gauges.items()
        )
    )
    causes = (_Cause * max(1, len(declared.causes)))(
        *(_Cause(word.lower().encode(), found.doc.encode(), found.kind) for word, found in declared.causes.items())
    )
    by_parameter = declared.tick in declared.parameters
    calls = {
        name: getattr(found, "address", None) or ctypes.cast(found, ctypes.c_void_p).value
        for name, found in functions.items()
    }
    of_queue = {name: calls.pop(name) for name in ("offer", "take") if name in calls}
    assert calls.keys() <= set(METHODS) and bool(of_queue) == declared.holds, calls
    made = _Law(
        version=VERSION,
        state_bytes=state_bytes(declared),
        name=declared.name.encode(),
        doc=declared.doc.encode(),
        source=declared.source.encode(),
        built_with=built_with.encode(),
        year=declared.year,
        marks=declared.marks,
        params=params,
        params_count=len(declared.parameters),
        gauges_count=len(declared.gauges),
        gauges=gauges,
        causes=causes,
        tick_ns=0 if declared.tick is None or by_parameter else int(quantity(declared.tick)[1]),
        tick_param=list(declared.parameters).index(declared.tick) if by_parameter and declared.tick else -1,
        wants_hosts=declared.hosts,
        causes_count=len(declared.causes),
        **calls,
    )
    whole = _Discipline(made, **of_queue) if declared.holds else made
    _KEPT.append((whole, params, gauges, causes, dict(functions)))
    return ctypes.addressof(whole)
